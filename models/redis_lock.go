package models

import "locklab/sim"

// The keys that the Redis designs use.
const (
	redisLockKey  = "lock"
	redisTokenKey = "lock:token"
)

// compareAndDelete removes the lock only if it is still this client's
// (redis.io, "Distributed Locks with Redis": the release script).
var compareAndDelete = RedisScript{
	Text: `-- del if mine
if redis.call("get", KEYS[1]) == ARGV[1] then
  return redis.call("del", KEYS[1])
end
return 0`,
	Run: func(db *redisDB, c *RedisCommand) RedisReply {
		if e := db.find(c.Key); e != nil && e.value == c.Value {
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
		db.set(c.Key, c.Value).expires = db.now + c.TTL.Milliseconds()
		n, ok := db.incr(c.Key2)
		if !ok {
			return redisFail("ERR value is not an integer or out of range")
		}
		return redisNumber(n)
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
		if e := db.find(c.Key); e != nil && e.value == c.Value {
			return redisBool(db.expire(c.Key, c.TTL))
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
			db.set(c.Key, c.Value).expires = db.now + c.TTL.Milliseconds()
			return redisNumber(1)
		case e.value == c.Value:
			return redisBool(db.expire(c.Key, c.TTL))
		}
		return redisNumber(0)
	},
}

// redisVariant is what tells the single-Redis designs apart.
type redisVariant struct {
	token    bool         // the acquire script draws a fencing token
	identity RedisValue   // the value that every client writes; zero: a random one for each attempt
	blindDel bool         // release deletes without looking
	renew    *RedisScript // renewal; nil: none, or a bare PEXPIRE where blindRenew
	// blindRenew extends whatever lock there is.
	blindRenew bool
}

// redisSystem adds one Redis server and returns the design's system on it.
func redisSystem(v redisVariant) func(env *Env) System {
	return func(env *Env) System {
		s, p := newRedis(env, "redis-1")
		if v.token && env.Options.TokenStart > 1 {
			s.preset = []redisEntry{{key: redisTokenKey, value: RedisInt(env.Options.TokenStart - 1)}}
		}
		return System{
			Watch:  []*sim.Process{p},
			Holder: func() Holding { return s.holding(p, redisLockKey) },
			Lock: func(*sim.Process) Lock {
				return &redisLock{redisVariant: v, env: env, link: link{server: p}}
			},
		}
	}
}

// redisLock is a client's handle on a lock in one Redis server.
type redisLock struct {
	redisVariant
	env  *Env
	link link
}

// do sends one command. An error reply is a fault in the model, not an
// outcome.
func (l *redisLock) do(t *sim.Task, command RedisCommand) (*RedisReply, error) {
	c := l.env.commands.Get()
	*c = command
	p, err := l.link.call(t, l.env, c)
	if err != nil {
		return nil, err
	}
	r := p.(*RedisReply)
	if r.kind == replyError {
		panic("redis: " + c.String() + ": " + r.String())
	}
	return r, nil
}

// Acquire implements Lock: SET lock value NX PX ttl. The deadline counts from
// before the request was sent.
func (l *redisLock) Acquire(t *sim.Task) (Grant, error) {
	g := Grant{}
	if l.identity == (RedisValue{}) {
		g.Mark = t.Unique()
	}
	g.Deadline = t.Now().Add(l.env.Options.TTL)
	c := RedisCommand{Verb: RedisSet, Key: redisLockKey, Value: l.value(&g), TTL: l.env.Options.TTL, NX: true}
	if l.token {
		c.Verb, c.NX, c.Key2, c.Script = RedisEval, false, redisTokenKey, &setAndCount
	}
	r, err := l.do(t, c)
	if err != nil {
		return Grant{}, err
	}
	if r.kind == replyNil {
		return Grant{}, ErrBusy
	}
	if l.token {
		g.Token = r.value.n
	}
	return g, nil
}

// value is what this client's lock looks like in Redis.
func (l *redisLock) value(g *Grant) RedisValue {
	if g.Mark == 0 {
		return l.identity
	}
	return RedisInt(g.Mark)
}

// Renew implements Lock: another time to live, counted from before the request
// was sent.
func (l *redisLock) Renew(t *sim.Task, g *Grant) error {
	deadline := t.Now().Add(l.env.Options.TTL)
	c := RedisCommand{Verb: RedisEval, Key: redisLockKey, Value: l.value(g), TTL: l.env.Options.TTL, Script: l.renew}
	if l.blindRenew {
		c.Verb, c.Value = RedisPExpire, RedisValue{}
	}
	r, err := l.do(t, c)
	switch {
	case err != nil:
		return err
	case r.value.n == 0:
		return ErrLost
	}
	g.Deadline = deadline
	return nil
}

// Release implements Lock.
func (l *redisLock) Release(t *sim.Task, g *Grant) error {
	c := RedisCommand{Verb: RedisEval, Key: redisLockKey, Value: l.value(g), Script: &compareAndDelete}
	if l.blindDel {
		c = RedisCommand{Verb: RedisDel, Key: redisLockKey}
	}
	r, err := l.do(t, c)
	if err == nil && r.value.n == 0 {
		return ErrLost
	}
	return err
}
