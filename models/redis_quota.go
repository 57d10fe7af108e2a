package models

import (
	"locklab/clock"
	"locklab/sim"
)

// A quota lets so many in within a window, which begins with the first of them
// and lasts a ttl, and knows nothing of what they do then (Redis, INCR,
// "Pattern: Rate limiter 2"). Its counter lies under the same key as a lock, so
// that the same operator's faults strike it.

// quotaSystem counts by two commands, or in one script.
func quotaSystem(script bool) func(env *Env) System {
	return func(env *Env) System {
		s := newRedis(env, "redis-1")
		book := &quotaBook{server: s, ttl: env.Options.TTL.Milliseconds(), limit: int64(env.Options.Permits)}
		return System{
			Watch:   []*sim.Process{s.proc},
			Holders: book.holders,
			Lock: func(*sim.Process) Lock {
				return &redisQuota{env: env, link: redisLink{env: env, server: s.proc}, script: script}
			},
		}
	}
}

// redisQuota is a client's handle.
type redisQuota struct {
	env    *Env
	link   redisLink
	script bool
}

// Acquire implements Lock:
//
//	INCR lock
//	PEXPIRE lock ttl    if it is now 1
//
// Whoever is refused has counted too.
func (l *redisQuota) Acquire(t *sim.Task) (Grant, error) {
	o := &l.env.Options
	c := RedisCommand{Verb: RedisIncr, Key: redisLockKey}
	if l.script {
		c.Verb, c.Value, c.TTL, c.Script = RedisEval, RedisInt(int64(o.Permits)), o.TTL, &countIfRoom
	}
	r, err := l.link.do(t, &c)
	switch {
	case err != nil:
		return Grant{}, err
	case r.kind != replyInt:
		return Grant{}, ErrBusy
	case l.script && r.value.n == 1:
		return Grant{}, nil
	case l.script || r.value.n > int64(o.Permits):
		return Grant{}, ErrBusy
	}
	if r.value.n == 1 {
		_, err = l.link.do(t, &RedisCommand{Verb: RedisPExpire, Key: redisLockKey, TTL: o.TTL})
	}
	return Grant{}, unsent(err)
}

// Renew implements Lock. Nothing is held.
func (*redisQuota) Renew(*sim.Task, *Grant) error { return nil }

// Release implements Lock. What is used up is not given back.
func (*redisQuota) Release(*sim.Task, *Grant) error { return nil }

// countIfRoom is INCR and PEXPIRE in one script (Redis, INCR, the second form
// of "Rate limiter 2"), which also compares.
var countIfRoom = RedisScript{
	Text: `-- incr, pexpire if first
local n = redis.call("incr", KEYS[1])
if n == 1 then
  redis.call("pexpire", KEYS[1], ARGV[2])
end
if n > tonumber(ARGV[1]) then
  return 0
end
return 1`,
	Run: func(db *redisDB, c *RedisCommand) RedisReply {
		r := db.incr(c.Key)
		if r.kind == replyError {
			return c.Script.fails(r, 2)
		}
		if r.value.n == 1 {
			db.expireAt(c.Key, db.now+c.TTL.Milliseconds())
		}
		return redisBool(r.value.n <= c.Value.n)
	},
}

// quotaBook knows whom a counter has let in. The counter itself does not: it is
// a number, and who was let in stays so when the number is lost. Then the
// window lasts for as long as it would have lasted.
type quotaBook struct {
	server *redisServer
	ttl    int64 // milliseconds
	limit  int64

	count   int64 // what the counter was when it was last looked at; 0: it was not there
	origin  int32 // who began it
	expires int64 // when its window is over: a wall-clock millisecond
	live    []admission
}

// admission is somebody who was let in, and when the window is over in which
// that counts.
type admission struct {
	op    int32
	until int64 // wall-clock millisecond; 0: with the counter
}

// holders implements System.Holders. It is asked after each change of the
// server, so that the counter has grown by one at most.
func (q *quotaBook) holders(into []Holding) []Holding {
	now := wallMillis(q.server.proc.Wall())
	e := q.server.engine.peek(redisLockKey)
	if e != nil && (e.gone(now) || !e.value.isN || q.server.proc.Down() && q.server.aof == nil) {
		e = nil
	}
	if q.count > 0 && (e == nil || e.op != q.origin) {
		q.close()
	}
	if e != nil {
		q.read(e, now)
	}
	kept := q.live[:0]
	for _, a := range q.live {
		if a.until == 0 || now <= a.until {
			kept = append(kept, a)
			into = append(into, Holding{Op: a.op, Until: clock.Reading(a.until)})
		}
	}
	q.live = kept
	return into
}

// close ends the book of a counter that is gone.
func (q *quotaBook) close() {
	for i := range q.live {
		if a := &q.live[i]; a.until == 0 {
			a.until = q.expires
		}
	}
	q.count = 0
}

// read looks at the counter.
func (q *quotaBook) read(e *redisEntry, now int64) {
	if q.count == 0 {
		q.origin, q.expires = e.op, now+q.ttl
	}
	if e.expires != 0 {
		q.expires = e.expires
	}
	if e.value.n > q.count && e.value.n <= q.limit && e.last != 0 {
		q.live = append(q.live, admission{op: e.last})
	}
	q.count = e.value.n
}
