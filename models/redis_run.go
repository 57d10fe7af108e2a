package models

import (
	"time"

	"locklab/clock"
)

// wallMillis is a wall clock as Redis counts it.
func wallMillis(wall clock.Reading) int64 { return int64(wall) / int64(time.Millisecond) }

// wallMicros is a wall clock as TIME tells it, and as a client's time.time() does.
func wallMicros(wall clock.Reading) int64 { return int64(wall) / int64(time.Microsecond) }

// run implements redisEngine: it executes one command of a session atomically
// at the given wall-clock time. Time stands still while a transaction or a
// script runs, so no key expires inside.
func (db *redisDB) run(c *RedisCommand, s *redisSession, wall clock.Reading, op int32) RedisReply {
	db.now, db.micros, db.op = wallMillis(wall), wallMicros(wall), op
	switch c.Verb {
	case RedisMulti:
		if s.multi {
			return redisFail(errNestedMulti)
		}
		s.multi = true
		return redisOK
	case RedisExec:
		return db.exec(s)
	case RedisDiscard:
		if !s.multi {
			return redisFail(errDiscard)
		}
		db.end(s)
		return redisOK
	case RedisWatch:
		if s.multi {
			return redisFail(errWatchMulti)
		}
		db.watch(s, c.Key)
		if c.Key2 != "" {
			db.watch(s, c.Key2)
		}
		return redisOK
	case RedisTime:
		if !s.multi {
			return redisTime(wall)
		}
	}
	if s.multi {
		return db.enqueue(c, s)
	}
	return db.execute(c, s)
}

// redisTime answers TIME: seconds and microseconds, as strings.
func redisTime(wall clock.Reading) RedisReply {
	micros := wallMicros(wall)
	return redisList([]RedisReply{redisBulk(RedisInt(micros / 1_000_000)), redisBulk(RedisInt(micros % 1_000_000))})
}

// execute carries out a command that is not about the transaction itself.
func (db *redisDB) execute(c *RedisCommand, s *redisSession) RedisReply {
	if db.replica && c.Verb.writes() {
		return redisFail(errReadOnly)
	}
	switch c.Verb {
	case RedisSet:
		return db.setCommand(c)
	case RedisSetNX:
		if db.find(c.Key) != nil {
			return redisNumber(0)
		}
		db.set(c.Key, c.Value, 0)
		return redisNumber(1)
	case RedisGet:
		return db.get(c.Key)
	case RedisDel:
		return redisNumber(count(db.del(c.Key)) + count(c.Key2 != "" && db.del(c.Key2)))
	case RedisExpire, RedisPExpire:
		return redisBool(db.expireAt(c.Key, db.now+c.TTL.Milliseconds()))
	case RedisTTL, RedisPTTL:
		return db.ttl(c)
	case RedisIncr:
		return db.incr(c.Key)
	case RedisExists:
		return redisNumber(count(db.find(c.Key) != nil) + count(c.Key2 != "" && db.find(c.Key2) != nil))
	case RedisFlushAll:
		db.flush()
		return redisOK
	case RedisTime:
		return redisTime(clock.Reading(db.now * int64(time.Millisecond)))
	case RedisUnwatch:
		db.unwatch(s)
		return redisOK
	case RedisEval:
		db.load(c.Script)
		return c.Script.Run(db, c)
	case RedisEvalSHA:
		if !db.loaded(c.Script) {
			return redisFail(errNoScript)
		}
		return c.Script.Run(db, c)
	case RedisWait:
		return db.wait(c, s)
	case RedisZAdd, RedisZRem, RedisZCard, RedisZRange, RedisZRemRangeByScore, RedisZRank:
		return db.sortedSet(c)
	}
	return redisFail("ERR unknown command '" + c.Verb.String() + "', with args beginning with: ")
}

func count(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// wait answers WAIT where it cannot block: inside a transaction, or when
// nobody would ever acknowledge. The server lets the others wait.
func (db *redisDB) wait(c *RedisCommand, s *redisSession) RedisReply {
	switch {
	case db.replica:
		return redisFail(errWaitReplica)
	case c.TTL < 0:
		return redisFail(errTimeout)
	case db.acked == nil:
		return redisNumber(0)
	}
	return redisNumber(db.acked(s))
}

func (db *redisDB) get(key string) RedisReply {
	e := db.find(key)
	switch {
	case e == nil:
		return redisNil
	case e.sorted():
		return redisFail(errWrongType)
	}
	return redisBulk(e.value)
}

// setCommand is SET. With GET it answers the old value, whether it wrote or
// not.
func (db *redisDB) setCommand(c *RedisCommand) RedisReply {
	if why := c.badSet(); why != "" {
		return redisFail(why)
	}
	answer := redisOK
	if c.Get {
		if answer = db.get(c.Key); answer.kind == replyError {
			return answer
		}
	}
	old := db.find(c.Key)
	if c.NX && old != nil || c.XX && old == nil {
		if c.Get {
			return answer
		}
		return redisNil
	}
	expires := int64(0)
	switch {
	case c.TTL != 0:
		expires = db.now + c.TTL.Milliseconds()
	case c.KeepTTL && old != nil:
		expires = old.expires
	}
	db.set(c.Key, c.Value, expires)
	return answer
}

// badSet says why the options of a SET cannot be; "" if they can.
func (c *RedisCommand) badSet() string {
	switch {
	case c.NX && c.XX, c.KeepTTL && c.TTL != 0:
		return errSyntax
	case c.TTL != 0 && c.TTL.Milliseconds() <= 0:
		return "ERR invalid expire time in 'set' command"
	}
	return ""
}

// ttl answers TTL (in seconds, rounded to the nearest) and PTTL: -2 without
// the key, -1 without an expiry.
func (db *redisDB) ttl(c *RedisCommand) RedisReply {
	e := db.find(c.Key)
	switch {
	case e == nil:
		return redisNumber(-2)
	case e.expires == 0:
		return redisNumber(-1)
	}
	left := max(e.expires-db.now, 0)
	if c.Verb == RedisTTL {
		left = (left + 500) / 1000
	}
	return redisNumber(left)
}

// sortedSet executes the commands on sorted sets.
func (db *redisDB) sortedSet(c *RedisCommand) RedisReply {
	e := db.find(c.Key)
	if e != nil && !e.sorted() {
		return redisFail(errWrongType)
	}
	switch c.Verb {
	case RedisZAdd:
		return redisBool(db.zadd(c.Key, c.Value, c.N))
	case RedisZRem:
		return redisBool(db.zrem(c.Key, c.Value))
	case RedisZRemRangeByScore:
		return redisNumber(db.zremrange(c.Key, c.From, c.To))
	}
	if e == nil {
		e = &redisEntry{}
	}
	switch c.Verb {
	case RedisZRank:
		if i := e.rank(c.Value); i >= 0 {
			return redisNumber(int64(i))
		}
		return redisNil
	case RedisZRange:
		return e.between(c.N, c.M)
	}
	return redisNumber(int64(len(e.members)))
}

// between answers the members of a range of ranks. A negative rank counts from
// the end.
func (e *redisEntry) between(first, last int64) RedisReply {
	n := int64(len(e.members))
	if first < 0 {
		first = max(first+n, 0)
	}
	if last < 0 {
		last += n
	}
	last = min(last, n-1)
	items := make([]RedisReply, 0, max(last-first+1, 0))
	for i := first; i <= last; i++ {
		items = append(items, redisBulk(e.members[i].member))
	}
	return redisList(items)
}
