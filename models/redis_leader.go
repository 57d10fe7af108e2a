package models

import (
	"fmt"

	"locklab/sim"
)

// redisLeaderSystem adds one Redis server for redis/leader.
func redisLeaderSystem(env *Env) System {
	s := newRedis(env, "redis-1")
	return System{
		Watch:  []*sim.Process{s.proc},
		Holder: func() Holding { return s.holding(redisLockKey) },
		Lock: func(*sim.Process) Lock {
			return &redisLeader{redisLock{env: env, link: redisLink{env: env, server: s.proc}}}
		},
	}
}

// redisLeader is a candidate as the common libraries write it:
//
//	SET lock $me NX EX $ttl                -- to be elected
//	GET lock; if it is $me: EXPIRE lock $ttl   -- the heartbeat
//	GET lock; if it is $me: DEL lock           -- to resign
//
// $me is new for every process, not for every term. Nothing holds the two
// commands of a heartbeat or a resignation together: between them the key may
// come to be another's, which the second command then extends, or deletes.
// (https://github.com/pierreinglebert/redis-leader/blob/f0f3314/index.js, with PX and PEXPIRE;
// its own comment on stop names the race.)
type redisLeader struct{ redisLock }

// errNoHeartbeat: a leader that cannot read the key steps down. Whether it is
// still its own is not known.
var errNoHeartbeat = fmt.Errorf("the heartbeat was not answered: %w (%w)", ErrLost, sim.ErrUnknown)

// Acquire implements Lock.
func (l *redisLeader) Acquire(t *sim.Task) (Grant, error) {
	if l.identity == (RedisValue{}) {
		l.identity = RedisInt(t.Unique())
	}
	ttl := l.env.Options.TTL
	g := Grant{Deadline: t.Now().Add(ttl)}
	r, err := l.link.do(t, &RedisCommand{Verb: RedisSet, Key: redisLockKey, Value: l.identity, TTL: wholeSeconds(ttl), Seconds: true, NX: true})
	switch {
	case err != nil:
		return Grant{}, err
	case r.kind == replyNil:
		return Grant{}, ErrBusy
	}
	return g, nil
}

// Renew implements Lock: the heartbeat. What EXPIRE answers is not looked at.
func (l *redisLeader) Renew(t *sim.Task, g *Grant) error {
	deadline := t.Now().Add(l.env.Options.TTL)
	r, err := l.link.do(t, &RedisCommand{Verb: RedisGet, Key: redisLockKey})
	switch {
	case err != nil:
		return errNoHeartbeat
	case r.kind != replyBulk || r.value != l.identity:
		return ErrLost
	}
	if _, err := l.link.do(t, &RedisCommand{Verb: RedisExpire, Key: redisLockKey, TTL: wholeSeconds(l.env.Options.TTL)}); err != nil {
		return unsent(err)
	}
	g.Deadline = deadline
	return nil
}

// Release implements Lock: resign.
func (l *redisLeader) Release(t *sim.Task, g *Grant) error { return l.getAndDelete(t, g) }
