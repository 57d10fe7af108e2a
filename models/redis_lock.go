package models

import (
	"errors"
	"fmt"
	"time"

	"locklab/sim"
)

// The keys that the Redis designs use.
const (
	redisLockKey  = "lock"
	redisTokenKey = "lock:token"
)

// redisGrasp is how a design takes the lock.
type redisGrasp uint8

const (
	graspSet    redisGrasp = iota // SET NX PX
	graspSetNX                    // SETNX: it never expires
	graspExpire                   // SETNX, then EXPIRE
	graspIncr                     // SET NX PX, then INCR for a token
	graspScript                   // SET NX PX and INCR in one script
)

// redisLetGo is how a design gives the lock back.
type redisLetGo uint8

const (
	letGoScript redisLetGo = iota // compare and delete in a script
	letGoDel                      // delete without looking
	letGoGetDel                   // GET, compare, DEL
	letGoWatch                    // WATCH, GET, MULTI, DEL, EXEC
)

// redisVariant is what tells the Redis designs apart.
type redisVariant struct {
	grasp    redisGrasp
	letGo    redisLetGo
	identity RedisValue   // the value that every client writes; zero: a random one for each attempt
	renew    *RedisScript // renewal; nil: none, or a bare PEXPIRE where blindRenew
	// blindRenew extends whatever lock there is.
	blindRenew bool
	waits      bool // an acquire counts only when a replica has it (WAIT 1)
}

func (v *redisVariant) tokens() bool { return v.grasp == graspIncr || v.grasp == graspScript }

// preset is what the servers hold at the start.
func (v *redisVariant) preset(env *Env) []redisEntry {
	if v.tokens() && env.Options.TokenStart > 1 {
		return []redisEntry{{key: redisTokenKey, value: RedisInt(env.Options.TokenStart - 1)}}
	}
	return nil
}

// redisSystem adds one Redis server and returns the design's system on it.
func redisSystem(v redisVariant) func(env *Env) System {
	return func(env *Env) System {
		s := newRedis(env, "redis-1", v.preset(env)...)
		return System{
			Watch:  []*sim.Process{s.proc},
			Holder: func() Holding { return s.holding(redisLockKey) },
			Lock: func(*sim.Process) Lock {
				return &redisLock{redisVariant: v, env: env, link: redisLink{env: env, server: s.proc}}
			},
		}
	}
}

// redisReplicaSystem adds a primary with replicas and a monitor.
func redisReplicaSystem(v redisVariant) func(env *Env) System {
	return func(env *Env) System {
		g := newRedisGroup(env, env.Options.Replicas, v.preset(env)...)
		return System{
			Watch:  g.watch(),
			Holder: func() Holding { return g.holding(redisLockKey) },
			Lock: func(*sim.Process) Lock {
				return &redisLock{redisVariant: v, env: env, link: redisLink{env: env, group: g, monitor: link{server: g.monitor.proc}}}
			},
		}
	}
}

// redisLock is a client's handle on a lock in one Redis server, or in a group.
type redisLock struct {
	redisVariant
	env  *Env
	link redisLink
}

// Acquire implements Lock. The deadline counts from before the first request
// was sent.
func (l *redisLock) Acquire(t *sim.Task) (Grant, error) {
	g := Grant{}
	if l.identity == (RedisValue{}) {
		g.Mark = t.Unique()
	}
	if l.grasp != graspSetNX {
		g.Deadline = t.Now().Add(l.env.Options.TTL)
	}
	c := l.take(&g)
	r, err := l.link.do(t, &c)
	switch {
	case err != nil:
		return Grant{}, err
	case r.kind == replyError: // a script's: what it did before stands
		return Grant{}, errSpoilt
	case r.kind == replyNil || r.kind == replyInt && l.grasp != graspScript && r.value.n == 0:
		return Grant{}, ErrBusy
	}
	switch l.grasp {
	case graspScript:
		g.Token = r.value.n
	case graspExpire:
		_, err = l.link.do(t, &RedisCommand{Verb: RedisExpire, Key: redisLockKey, TTL: wholeSeconds(l.env.Options.TTL)})
	case graspIncr:
		r, err = l.link.do(t, &RedisCommand{Verb: RedisIncr, Key: redisTokenKey})
		switch {
		case err != nil:
		case r.kind == replyError:
			err = errSpoilt
		default:
			g.Token = r.value.n
		}
	}
	if err == nil && l.waits {
		err = l.replicated(t, &g)
	}
	if err != nil { // what has been taken may yet stand there
		return Grant{}, unsent(err)
	}
	return g, nil
}

// take is the command that takes the lock.
func (l *redisLock) take(g *Grant) RedisCommand {
	c := RedisCommand{Verb: RedisSet, Key: redisLockKey, Value: l.value(g), TTL: l.env.Options.TTL, NX: true}
	switch l.grasp {
	case graspSetNX, graspExpire:
		c.Verb, c.TTL, c.NX = RedisSetNX, 0, false
	case graspScript:
		c.Verb, c.NX, c.Key2, c.Script = RedisEval, false, redisTokenKey, &setAndCount
	}
	return c
}

// wholeSeconds is what EXPIRE can say, no shorter than d.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// replicated waits until a replica has acknowledged the lock. Without one the
// lock is given back: it would not outlive the primary.
func (l *redisLock) replicated(t *sim.Task, g *Grant) error {
	r, err := l.link.do(t, &RedisCommand{Verb: RedisWait, N: 1, TTL: l.env.Options.CallTimeout / 2})
	if err != nil || r.value.n >= 1 {
		return err
	}
	_ = l.Release(t, g) // if this fails, the lock stays until it expires
	return errNotReplicated
}

// errNotReplicated: the primary had the lock and no replica. For the server
// the try was a grant, and its client takes it back.
var errNotReplicated = fmt.Errorf("no replica has the lock: %w", sim.ErrUnknown)

// errSpoilt: somebody else has written what a key cannot mean here. The lock may
// have been taken before that was noticed.
var errSpoilt = fmt.Errorf("a key holds what nobody can use: %w", sim.ErrUnknown)

// unsent makes of a command that could not be sent an unknown outcome, where
// others have been sent before.
func unsent(err error) error {
	if err == errNoPrimary {
		return errUnsent
	}
	return err
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
	r, err := l.link.do(t, &c)
	switch {
	case err != nil:
		return unsent(err)
	case r.value.n == 0:
		return ErrLost
	}
	g.Deadline = deadline
	return nil
}

// Release implements Lock.
func (l *redisLock) Release(t *sim.Task, g *Grant) error {
	switch l.letGo {
	case letGoGetDel:
		return l.getAndDelete(t, g)
	case letGoWatch:
		return l.watchAndDelete(t, g)
	}
	c := RedisCommand{Verb: RedisEval, Key: redisLockKey, Value: l.value(g), Script: &compareAndDelete}
	if l.letGo == letGoDel {
		c = RedisCommand{Verb: RedisDel, Key: redisLockKey}
	}
	return deleted(l.link.do(t, &c))
}

// deleted reads the answer to a deletion.
func deleted(r *RedisReply, err error) error {
	switch {
	case err != nil:
		return unsent(err)
	case r.kind == replyError || r.value.n == 0:
		return ErrLost
	}
	return nil
}

// getAndDelete looks and then deletes. Between the two the lock may have
// become another's.
func (l *redisLock) getAndDelete(t *sim.Task, g *Grant) error {
	r, err := l.link.do(t, &RedisCommand{Verb: RedisGet, Key: redisLockKey})
	switch {
	case err != nil:
		return unsent(err)
	case r.kind != replyBulk || r.value != l.value(g):
		return ErrLost
	}
	return deleted(l.link.do(t, &RedisCommand{Verb: RedisDel, Key: redisLockKey}))
}

// watchAndDelete deletes the lock in a transaction that does nothing if the
// key was touched since it was looked at. All of it must be said on one
// connection: a WATCH ends with its connection.
func (l *redisLock) watchAndDelete(t *sim.Task, g *Grant) error {
	for {
		conn, err := l.link.open(t)
		if err != nil {
			return unsent(err)
		}
		r, err := l.watched(t, conn, g)
		switch {
		case errors.Is(err, sim.ErrClosed) || err == nil && r.kind == replyNilArray:
			continue // nothing was done; look again
		case err != nil:
			return unsent(err)
		case r.kind != replyArray:
			return ErrLost
		}
		return deleted(&r.items[0], nil)
	}
}

// watched returns EXEC's answer, or a nil reply if the lock is another's.
func (l *redisLock) watched(t *sim.Task, conn *sim.Conn, g *Grant) (*RedisReply, error) {
	var r *RedisReply
	for _, c := range [...]RedisCommand{
		{Verb: RedisWatch, Key: redisLockKey}, {Verb: RedisGet, Key: redisLockKey},
		{Verb: RedisMulti}, {Verb: RedisDel, Key: redisLockKey}, {Verb: RedisExec},
	} {
		var err error
		if r, err = l.link.on(t, conn, &c); err != nil {
			return nil, err
		}
		if c.Verb == RedisGet && (r.kind != replyBulk || r.value != l.value(g)) {
			_, err = l.link.on(t, conn, &RedisCommand{Verb: RedisUnwatch})
			return &RedisReply{}, err
		}
	}
	return r, nil
}
