package models

import (
	"strconv"

	"locklab/clock"
	"locklab/sim"
)

// permits is the capacity of semaphores and quotas.
func permits(o Options) int { return o.Permits }

// A semaphore lets in several clients at once, each with a permit.

// semaphoreKeys is a semaphore of as many locks as there are permits, each as
// redis/lua-release has one: lock:1, lock:2 and so on.
func semaphoreKeys(env *Env) System {
	s := newRedis(env, "redis-1")
	keys := make([]string, env.Options.Permits)
	for i := range keys {
		keys[i] = redisLockKey + ":" + strconv.Itoa(i+1)
	}
	return System{
		Watch: []*sim.Process{s.proc},
		Holders: func(into []Holding) []Holding {
			for _, key := range keys {
				if h := s.holding(key); h.Op != 0 {
					into = append(into, h)
				}
			}
			return into
		},
		Lock: func(*sim.Process) Lock {
			return &keysSemaphore{env: env, link: redisLink{env: env, server: s.proc}, keys: keys}
		},
	}
}

// keysSemaphore is a client's handle. Its grant's State points to the key that
// it has.
type keysSemaphore struct {
	env  *Env
	link redisLink
	keys []string
}

// Acquire implements Lock: SET NX PX on one key after the other. All keys are
// tried before the client waits.
func (l *keysSemaphore) Acquire(t *sim.Task) (Grant, error) {
	g := Grant{Mark: t.Unique(), Deadline: t.Now().Add(l.env.Options.TTL)}
	for i := range l.keys {
		r, err := l.link.do(t, &RedisCommand{Verb: RedisSet, Key: l.keys[i], Value: RedisInt(g.Mark), TTL: l.env.Options.TTL, NX: true})
		if err != nil {
			return Grant{}, err
		}
		if r.kind == replyStatus {
			g.State = &l.keys[i]
			return g, nil
		}
	}
	return Grant{}, ErrBusy
}

// Renew implements Lock. This semaphore does not renew.
func (*keysSemaphore) Renew(*sim.Task, *Grant) error { return nil }

// Release implements Lock.
func (l *keysSemaphore) Release(t *sim.Task, g *Grant) error {
	return deleted(l.link.do(t, &RedisCommand{Verb: RedisEval, Key: *g.State.(*string), Value: RedisInt(g.Mark), Script: &compareAndDelete}))
}

// semaphoreZSet is a semaphore in a sorted set, whose members are those that
// have a permit or ask for one, each with the time at which it asked. It lies
// under the same key as a lock, so that the same operator's faults strike it.
//
// A member has a permit if it was among the first when it was added; that is
// what its client is told. Whoever was not removes itself again.
func semaphoreZSet(serverTime bool) func(env *Env) System {
	return func(env *Env) System {
		s := newRedis(env, "redis-1")
		return System{
			Watch: []*sim.Process{s.proc},
			Holders: func(into []Holding) []Holding {
				return s.admitted(redisLockKey, int32(env.Options.Permits), into)
			},
			Lock: func(*sim.Process) Lock {
				return &zsetSemaphore{env: env, link: redisLink{env: env, server: s.proc}, serverTime: serverTime}
			},
		}
	}
}

// admitted appends the operations whose members stood below a rank when they
// were added to the sorted set under a key, and are there still. A dead server
// without a file has none.
func (s *redisServer) admitted(key string, limit int32, into []Holding) []Holding {
	if s.proc.Down() && s.aof == nil {
		return into
	}
	e := s.engine.peek(key)
	if e == nil || e.gone(wallMillis(s.proc.Wall())) {
		return into
	}
	for _, m := range e.members {
		if m.entered < limit && m.op != 0 {
			into = append(into, Holding{Op: m.op, Until: clock.Reading(m.score)})
		}
	}
	return into
}

// zsetSemaphore is a client's handle.
type zsetSemaphore struct {
	env        *Env
	link       redisLink
	serverTime bool
}

// Acquire implements Lock: by this client's own clock, or in a script by the
// server's.
func (l *zsetSemaphore) Acquire(t *sim.Task) (Grant, error) {
	g := Grant{Mark: t.Unique(), Deadline: t.Now().Add(l.env.Options.TTL)}
	admitted, err := l.ask(t, RedisInt(g.Mark))
	switch {
	case err != nil:
		return Grant{}, err
	case !admitted:
		return Grant{}, ErrBusy
	}
	return g, nil
}

// ask adds the member and reports whether it has a permit. Scores are
// microseconds, as fine as time.time() in the book.
//
// The client's own clock (Josiah Carlson, Redis in Action, section 6.3.1):
//
//	MULTI
//	ZREMRANGEBYSCORE lock -inf now-timeout   who has been there for too long
//	ZADD lock now member
//	ZRANK lock member
//	EXEC
//	ZREM lock member                         unless the rank is below the limit
func (l *zsetSemaphore) ask(t *sim.Task, member RedisValue) (admitted bool, err error) {
	o := &l.env.Options
	if l.serverTime {
		r, err := l.link.do(t, &RedisCommand{Verb: RedisEval, Key: redisLockKey, Value: member, TTL: o.TTL, N: int64(o.Permits), Script: &takePermit})
		return err == nil && r.kind == replyInt && r.value.n == 1, err
	}
	now := wallMicros(t.Wall())
	r, err := l.link.pipeline(t, RedisCommand{Verb: RedisMulti},
		RedisCommand{Verb: RedisZRemRangeByScore, Key: redisLockKey, From: ScoreBound{Inf: -1}, To: ScoreBound{Score: now - o.TTL.Microseconds()}},
		RedisCommand{Verb: RedisZAdd, Key: redisLockKey, Value: member, N: now},
		RedisCommand{Verb: RedisZRank, Key: redisLockKey, Value: member},
		RedisCommand{Verb: RedisExec})
	if err != nil {
		return false, err
	}
	if rank := r.items[2]; rank.kind == replyInt && rank.value.n < int64(o.Permits) {
		return true, nil
	}
	_, err = l.link.do(t, &RedisCommand{Verb: RedisZRem, Key: redisLockKey, Value: member})
	return false, err // an unknown outcome: the member may stay and take up room
}

// Renew implements Lock. The book renews only its fair semaphore.
func (*zsetSemaphore) Renew(*sim.Task, *Grant) error { return nil }

// Release implements Lock.
func (l *zsetSemaphore) Release(t *sim.Task, g *Grant) error {
	return deleted(l.link.do(t, &RedisCommand{Verb: RedisZRem, Key: redisLockKey, Value: RedisInt(g.Mark)}))
}

// takePermit is the semaphore of the book in one script, with the one clock
// that everybody shares. Where there is no room nothing is added, so that
// nothing has to be removed again.
var takePermit = RedisScript{
	Text: `-- zadd if there is room
local t = redis.call("time")
local now = t[1] * 1000000 + t[2]
redis.call("zremrangebyscore", KEYS[1], "-inf", now - ARGV[2] * 1000)
if redis.call("zcard", KEYS[1]) < tonumber(ARGV[3]) then
  redis.call("zadd", KEYS[1], now, ARGV[1])
  return 1
end
return 0`,
	Run: func(db *redisDB, c *RedisCommand) RedisReply {
		if e := db.find(c.Key); e != nil && !e.sorted() {
			return c.Script.fails(redisFail(errWrongType), 4)
		}
		db.zremrange(c.Key, ScoreBound{Inf: -1}, ScoreBound{Score: db.micros - c.TTL.Microseconds()})
		if e := db.find(c.Key); e != nil && int64(len(e.members)) >= c.N {
			return redisNumber(0)
		}
		db.zadd(c.Key, c.Value, db.micros)
		return redisNumber(1)
	},
}
