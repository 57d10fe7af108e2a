package models

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"
)

// RedisScript is a Lua script and what it does. The native engine runs Run,
// which is atomic as the script is: no key expires while it runs. An engine
// with an interpreter runs Text.
type RedisScript struct {
	Text string
	Run  func(db *redisDB, c *RedisCommand) RedisReply
}

// SHA returns the digest by which EVALSHA names the script.
func (s *RedisScript) SHA() string {
	sum := sha1.Sum([]byte(s.Text))
	return hex.EncodeToString(sum[:])
}

// name is a script's name for people: its first line, a comment.
func (s *RedisScript) name() string {
	first, _, _ := strings.Cut(s.Text, "\n")
	return "'" + strings.TrimSpace(strings.TrimPrefix(first, "--")) + "'"
}

// fails is the error of a redis.call in the script's given line, counted from
// 1: Redis says where it happened.
func (s *RedisScript) fails(r RedisReply, line int) RedisReply {
	return redisFail(r.value.text + " script: " + s.SHA() + ", on @user_script:" + strconv.Itoa(line) + ".")
}

// load keeps a script for EVALSHA, as EVAL does.
func (db *redisDB) load(s *RedisScript) {
	if !db.loaded(s) {
		db.scripts = append(db.scripts, s)
	}
}

func (db *redisDB) loaded(s *RedisScript) bool {
	for _, known := range db.scripts {
		if known == s || known.Text == s.Text {
			return true
		}
	}
	return false
}

// compareAndDelete removes the lock only if it is still this client's
// (redis.io, "Distributed Locks with Redis": the release script).
var compareAndDelete = RedisScript{
	Text: `-- del if mine
if redis.call("get", KEYS[1]) == ARGV[1] then
  return redis.call("del", KEYS[1])
end
return 0`,
	Run: func(db *redisDB, c *RedisCommand) RedisReply {
		e := db.find(c.Key)
		switch {
		case e != nil && e.sorted():
			return c.Script.fails(redisFail(errWrongType), 2)
		case e != nil && e.value == c.Value:
			return redisBool(db.del(c.Key))
		}
		return redisNumber(0)
	},
}

// setAndCount takes the lock and, only then, draws the next fencing token.
var setAndCount = RedisScript{
	Text: `-- set nx, incr token
if redis.call("set", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then
  return redis.call("incr", KEYS[2])
end
return false`,
	Run: func(db *redisDB, c *RedisCommand) RedisReply {
		if db.find(c.Key) != nil {
			return redisNil
		}
		db.set(c.Key, c.Value, db.now+c.TTL.Milliseconds())
		r := db.incr(c.Key2)
		if r.kind == replyError {
			return c.Script.fails(r, 3)
		}
		return r
	},
}

// extendIfMine gives the lock another time to live only if it is still this
// client's.
var extendIfMine = RedisScript{
	Text: `-- pexpire if mine
if redis.call("get", KEYS[1]) == ARGV[1] then
  return redis.call("pexpire", KEYS[1], ARGV[2])
end
return 0`,
	Run: func(db *redisDB, c *RedisCommand) RedisReply {
		e := db.find(c.Key)
		switch {
		case e != nil && e.sorted():
			return c.Script.fails(redisFail(errWrongType), 2)
		case e != nil && e.value == c.Value:
			return redisBool(db.expireAt(c.Key, db.now+c.TTL.Milliseconds()))
		}
		return redisNumber(0)
	},
}

// extendOrRecreate extends the lock if it is this client's, and takes it anew
// when it is gone, whoever may have held it meanwhile.
var extendOrRecreate = RedisScript{
	Text: `-- pexpire if mine, set if missing
local owner = redis.call("get", KEYS[1])
if owner == ARGV[1] then
  return redis.call("pexpire", KEYS[1], ARGV[2])
end
if not owner then
  redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2])
  return 1
end
return 0`,
	Run: func(db *redisDB, c *RedisCommand) RedisReply {
		e := db.find(c.Key)
		switch {
		case e == nil:
			db.set(c.Key, c.Value, db.now+c.TTL.Milliseconds())
			return redisNumber(1)
		case e.sorted():
			return c.Script.fails(redisFail(errWrongType), 2)
		case e.value == c.Value:
			return redisBool(db.expireAt(c.Key, db.now+c.TTL.Milliseconds()))
		}
		return redisNumber(0)
	},
}
