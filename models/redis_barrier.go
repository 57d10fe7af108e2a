package models

import (
	"errors"
	"strconv"
	"time"

	"locklab/sim"
)

// A barrier lets nobody on before all parties have come to it. Here it stands
// before every section: to acquire is to come and to wait. Nothing is held, and
// nothing is given back.

const redisBarrierKey = "barrier"

// barrierSystem counts who comes, or keeps their names.
func barrierSystem(names bool) func(env *Env) System {
	return func(env *Env) System {
		s := newRedis(env, "redis-1")
		return System{Lock: func(client *sim.Process) Lock {
			return &redisBarrier{env: env, link: redisLink{env: env, server: s.proc}, names: names, name: RedisString(client.Name())}
		}}
	}
}

// redisBarrier is a party's handle.
type redisBarrier struct {
	env   *Env
	link  redisLink
	names bool
	name  RedisValue
}

// Acquire implements Lock: come, and ask again and again whether all have.
func (l *redisBarrier) Acquire(t *sim.Task) (Grant, error) {
	opts := &l.env.Options
	start := t.Now()
	poll, goal, err := l.come(t)
	if err != nil {
		return Grant{}, err
	}
	for {
		r, err := l.link.do(t, &poll)
		switch {
		case err != nil && !errors.Is(err, sim.ErrUnknown):
			return Grant{}, err
		case err == nil && r.value.n >= goal: // no answer, or none with a number: ask again
			return Grant{}, nil
		case opts.Wait > 0 && t.Now().Sub(start) >= opts.Wait:
			return Grant{}, ErrBusy
		}
		t.Sleep(opts.Retry + time.Duration(t.Choose(sim.PointJitter, 0, int64(opts.RetryJitter))))
	}
}

// come says that this party is there. It returns the question to ask from then
// on, and from which number in the answer on all are there.
//
// A counter, which goes on counting so that the barrier can be used again: who
// is number n waits until the next multiple of the parties is reached.
//
//	INCR barrier
//	GET barrier       until it is high enough
//
// Or the names of those who are there, one set for each round:
//
//	ZADD barrier:1 0 name
//	ZCARD barrier:1   until it is the number of parties
func (l *redisBarrier) come(t *sim.Task) (poll RedisCommand, goal int64, err error) {
	parties := int64(l.env.Options.Clients)
	if l.names {
		round := redisBarrierKey + ":" + strconv.Itoa(t.Section())
		_, err = l.link.do(t, &RedisCommand{Verb: RedisZAdd, Key: round, Value: l.name})
		return RedisCommand{Verb: RedisZCard, Key: round}, parties, err
	}
	r, err := l.link.do(t, &RedisCommand{Verb: RedisIncr, Key: redisBarrierKey})
	switch {
	case err != nil:
		return poll, 0, err
	case r.kind != replyInt:
		return poll, 0, ErrBusy
	}
	return RedisCommand{Verb: RedisGet, Key: redisBarrierKey}, (r.value.n + parties - 1) / parties * parties, nil
}

// Renew implements Lock. Nothing is held.
func (*redisBarrier) Renew(*sim.Task, *Grant) error { return nil }

// Release implements Lock. Nothing is held.
func (*redisBarrier) Release(*sim.Task, *Grant) error { return nil }
