package models

import (
	"errors"
	"fmt"
	"time"

	"locklab/clock"
	"locklab/sim"
)

// Redlock as published (redis.io, "Distributed Locks with Redis"): N
// independent Redis servers, redis-1 to redis-N, are asked in parallel. The
// lock is held by whom a majority of them holds, for as long as the lease has
// left when the answers are in.
//
// Stories name places, so the order of a client's effects is fixed. With N
// nodes, the first try of an acquire is
//
//	acquire/op#1              draw the random value
//	acquire/op#2              the first clock read
//	acquire/op#3 to N+2       send SET lock value NX PX ttl to redis-1 .. redis-N
//	acquire/op#N+3 to 2N+2    await the answers, in the same order
//	acquire/op#2N+3           the second clock read
//
// so that with five nodes op#8 comes after the requests and before the first
// answer is looked at, and op#13 is the second clock read. redlock/wall-clock
// reads its monotonic clock as well then, as op#14, for the deadline that it
// works by. A failed try goes on with N sends and N answers of the unlock; so
// does a release. An extension is renew/op#2 (the first is the wait for it): a
// clock read, N sends, N answers, a clock read.

// redlockNodes is the published number of nodes.
const redlockNodes = 5

// ErrTooLate: the answers came when the lease had nothing left. The servers
// had said yes, so that for them the try was a grant, and nobody was told.
var ErrTooLate = fmt.Errorf("the answers came too late: %w", sim.ErrUnknown)

// redlockVariant is what tells the Redlock designs apart.
type redlockVariant struct {
	trusting  bool // a majority is enough, however long it took
	wallClock bool // elapsed time is measured by the wall clock
	restart   redlockRestart
}

// redlockRestart is what a node does about the memory that a crash took.
type redlockRestart uint8

const (
	forgets redlockRestart = iota // it serves again at once, empty
	remembers
	staysAway // it serves again, empty, when every lease that it may have forgotten has run out
)

// redlockDrift is the allowance for clocks that run at different rates: as
// published 1 % of the TTL, and 2 ms for the whole milliseconds of Redis.
func redlockDrift(o Options) time.Duration {
	if o.Drift > 0 {
		return o.Drift
	}
	const million = 1_000_000
	whole, rest := int64(o.TTL)/million, int64(o.TTL)%million
	return time.Duration(whole*o.DriftFactor+rest*o.DriftFactor/million) + o.DriftMargin
}

// redlockSystem adds the nodes and returns the design's system on them.
func redlockSystem(v redlockVariant) func(env *Env) System {
	return func(env *Env) System {
		e, quorum := newRedlockEnsemble(env, v.restart)
		s := System{Holder: e.holder, Lock: func(*sim.Process) Lock { return newRedlock(env, v, e, quorum) }}
		for _, n := range e.nodes {
			s.Watch = append(s.Watch, n.proc)
		}
		return s
	}
}

// redlock is a client's handle on the lock.
type redlock struct {
	redlockVariant
	env    *Env
	links  []link
	calls  []*sim.Call
	quorum int // how many nodes the client asks for
	grants int // how many make a grant: the same, unless the client is content with too few
}

func newRedlock(env *Env, v redlockVariant, e *redlockEnsemble, quorum int) *redlock {
	l := &redlock{redlockVariant: v, env: env, quorum: quorum, grants: e.quorum,
		links: make([]link, len(e.nodes)), calls: make([]*sim.Call, len(e.nodes))}
	for i, n := range e.nodes {
		l.links[i].server = n.proc
	}
	return l
}

// votes counts the nodes' answers to one question.
type votes struct {
	yes, no int
	absent  int // certainly did not handle the request
	unknown int // may have handled it, or yet will
}

// ask sends one command to every node and awaits all answers. The nodes share
// the command: nobody changes it.
func (l *redlock) ask(t *sim.Task, command RedisCommand) votes {
	c := l.env.commands.Get()
	*c = command
	for i := range l.links {
		l.calls[i] = l.links[i].start(t, c, l.env.Options.NodeTimeout)
	}
	var v votes
	for _, call := range l.calls {
		reply, err := t.Await(call)
		v.count(reply, err)
	}
	return v
}

func (v *votes) count(reply sim.Payload, err error) {
	switch {
	case err == nil && reply.(*RedisReply).saysYes():
		v.yes++
	case err == nil:
		v.no++
	case errors.Is(err, sim.ErrUnknown):
		v.unknown++
	default:
		v.absent++
	}
}

// saysYes tells OK to a SET and 1 from a script from everything else.
func (r *RedisReply) saysYes() bool {
	return r.kind == replyStatus || r.kind == replyInt && r.value.n == 1
}

// start sends a request without waiting for its answer, on a new connection if
// the last was abandoned or reset. One that is reset in this very moment is a
// node that did not hear the question.
func (l *link) start(t *sim.Task, body sim.Payload, timeout time.Duration) *sim.Call {
	if l.conn == nil || !l.conn.Open() {
		l.conn = t.Dial(l.server)
	}
	return t.Start(l.conn, body, timeout)
}

// Acquire implements Lock: one try.
func (l *redlock) Acquire(t *sim.Task) (Grant, error) {
	g := Grant{Mark: t.Unique()}
	start := l.now(t)
	v := l.ask(t, RedisCommand{Verb: RedisSet, Key: redisLockKey, Value: RedisInt(g.Mark), TTL: l.env.Options.TTL, NX: true})
	now := l.now(t)
	left := l.validity(now.Sub(start))
	if v.yes >= l.quorum && (left > 0 || l.trusting) {
		g.Deadline = l.deadline(t, now, left)
		return g, nil
	}
	l.unlock(t, &g) // everywhere: a node that was not heard may have said yes
	switch {
	case v.yes >= l.grants:
		return Grant{}, ErrTooLate
	case v.yes+v.unknown >= l.grants:
		return Grant{}, sim.ErrUnknown
	}
	return Grant{}, ErrBusy
}

// now reads the clock that elapsed time is measured by.
func (l *redlock) now(t *sim.Task) clock.Reading {
	if l.wallClock {
		return t.Wall()
	}
	return t.Now()
}

// validity is what is left of a lease that was asked for so long ago.
func (l *redlock) validity(elapsed time.Duration) time.Duration {
	return l.env.Options.TTL - elapsed - redlockDrift(l.env.Options)
}

// deadline is when a lease with so much left ends, by the monotonic clock. The
// trusting client thinks that its lease begins with the answers.
func (l *redlock) deadline(t *sim.Task, now clock.Reading, left time.Duration) clock.Reading {
	if l.trusting {
		return now.Add(l.env.Options.TTL)
	}
	if l.wallClock {
		now = t.Now()
	}
	return now.Add(left)
}

// Renew implements Lock: an extension counts if a majority grants it, and its
// answers are in, before the lease that it extends has run out.
func (l *redlock) Renew(t *sim.Task, g *Grant) error {
	start := t.Now()
	if start >= g.Deadline {
		return ErrLost
	}
	v := l.ask(t, RedisCommand{Verb: RedisEval, Key: redisLockKey, Value: RedisInt(g.Mark), TTL: l.env.Options.TTL, Script: &extendIfMine})
	now := t.Now()
	left := l.validity(now.Sub(start))
	switch {
	case now >= g.Deadline: // the servers may have extended it: nobody's refusal
		return fmt.Errorf("%w: %w", ErrLost, ErrTooLate)
	case v.yes >= l.quorum && left > 0:
		g.Deadline = now.Add(left)
		return nil
	case len(l.links)-v.no < l.quorum: // a majority is no longer to be had
		return ErrLost
	}
	return sim.ErrUnknown // the old lease stands; there may be time for another try
}

// Release implements Lock.
func (l *redlock) Release(t *sim.Task, g *Grant) error {
	v := l.unlock(t, g)
	switch {
	case v.yes > 0:
		return nil
	case v.unknown > 0:
		return sim.ErrUnknown
	}
	return ErrLost
}

// unlock removes the client's value wherever it is, also where it was not
// known to be.
func (l *redlock) unlock(t *sim.Task, g *Grant) votes {
	return l.ask(t, RedisCommand{Verb: RedisEval, Key: redisLockKey, Value: RedisInt(g.Mark), Script: &compareAndDelete})
}
