package models

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/sim"
)

// redlockLab is one client before five nodes. Every message takes a
// millisecond.
type redlockLab struct {
	*testing.T
	env   *Env
	lock  *redlock
	nodes []*redlockNode
}

func redlockOptions() Options {
	return Options{TTL: 10 * time.Second, Nodes: 5, NodeTimeout: 50 * time.Millisecond, DriftFactor: 10_000, DriftMargin: 2 * time.Millisecond}
}

// run lets the client do something under a plan.
func (v redlockVariant) run(t *testing.T, o Options, faults []sim.Fault, client func(task *sim.Task, lab *redlockLab)) {
	t.Helper()
	w := sim.NewWorld(sim.Config{LatencyMin: time.Millisecond, LatencyMax: time.Millisecond, Plan: sim.Plan{Faults: faults}})
	defer w.Close()
	env := &Env{World: w, Options: o}
	lab := &redlockLab{T: t, env: env}
	w.AddNode("client-1").AddClient("client-1", func(task *sim.Task) {
		task.Enter(1, sim.PhaseAcquire)
		client(task, lab)
	})
	ensemble, quorum := newRedlockEnsemble(env, v.restart)
	lab.nodes = ensemble.nodes
	lab.lock = newRedlock(env, v, ensemble, quorum)
	_, err := w.Run()
	require.NoError(t, err)
	require.Nil(t, w.Failure(), "%v", w.Failure())
}

// holders says for each node whose value it holds; 0 for nobody's.
func (l *redlockLab) holders() []int64 {
	out := make([]int64, len(l.nodes))
	for i, n := range l.nodes {
		if v := n.vote(); v != nil {
			out[i] = v.value.n
		}
	}
	return out
}

// occupy takes the lock on some nodes (counted from 1) for somebody else.
func (l *redlockLab) occupy(t *sim.Task, nodes ...int) {
	for _, i := range nodes {
		c := &RedisCommand{Verb: RedisSet, Key: redisLockKey, Value: RedisInt(99), TTL: time.Minute, NX: true}
		_, err := t.Call(t.Dial(l.nodes[i-1].proc), c, 0)
		require.NoError(l, err)
	}
}

func dropTo(node string, at time.Duration, d time.Duration) sim.Fault {
	return sim.Fault{Kind: sim.DropRequest, On: []string{"client-1->" + node}, For: sim.Exactly(d), Trigger: sim.Trigger{At: sim.Exactly(at)}}
}

func crashOf(node string, restart time.Duration) sim.Fault {
	return sim.Fault{Kind: sim.Crash, On: []string{node}, Restart: sim.Exactly(restart), Trigger: sim.Trigger{At: sim.Exactly(time.Second)}}
}

func TestRedlockDrift(t *testing.T) {
	for _, c := range []struct {
		ttl    time.Duration
		factor int64
		margin time.Duration
		want   time.Duration
	}{
		{10 * time.Second, 10_000, 2 * time.Millisecond, 102 * time.Millisecond},
		{time.Millisecond, 10_000, 2 * time.Millisecond, 2*time.Millisecond + 10*time.Microsecond},
		{99, 10_000, 0, 0}, // below a nanosecond it is rounded down
		{8 * time.Second, 10_000, 0, 80 * time.Millisecond},
		{1000 * time.Hour, 1_000_000, 0, 1000 * time.Hour}, // no overflow
		{1_234_567_891, 333_333, 0, 411_522_218},
	} {
		require.Equal(t, c.want, redlockDrift(Options{TTL: c.ttl, DriftFactor: c.factor, DriftMargin: c.margin}), "%+v", c)
	}
	require.Equal(t, time.Second, redlockDrift(Options{TTL: time.Hour, DriftFactor: 1, Drift: time.Second}), "what was asked for")
}

func TestRedlockCountsFromBeforeItAsked(t *testing.T) {
	redlockVariant{}.run(t, redlockOptions(), nil, func(task *sim.Task, lab *redlockLab) {
		before := task.Now()
		g, err := lab.lock.Acquire(task)
		require.NoError(t, err)
		require.Equal(t, before.Add(10*time.Second-102*time.Millisecond), g.Deadline)
		require.Equal(t, []int64{g.Mark, g.Mark, g.Mark, g.Mark, g.Mark}, lab.holders())
	})
}

func TestRedlockOfTheTrustingCountsFromTheAnswers(t *testing.T) {
	redlockVariant{trusting: true}.run(t, redlockOptions(), nil, func(task *sim.Task, lab *redlockLab) {
		g, err := lab.lock.Acquire(task)
		require.NoError(t, err)
		require.Equal(t, task.Now().Add(10*time.Second), g.Deadline)
	})
}

func TestRedlockNeedsAMajority(t *testing.T) {
	for taken, want := range map[int]error{2: nil, 3: ErrBusy} {
		redlockVariant{}.run(t, redlockOptions(), nil, func(task *sim.Task, lab *redlockLab) {
			lab.occupy(task, []int{2, 4, 5}[:taken]...)
			before := lab.holders()
			_, err := lab.lock.Acquire(task)
			require.Equal(t, want, err)
			if want != nil {
				require.Equal(t, before, lab.holders(), "a minority is given back, and nobody else's lock touched")
			}
		})
	}
}

func TestRedlockTakesAHigherQuorum(t *testing.T) {
	o := redlockOptions()
	o.Quorum = 4
	redlockVariant{}.run(t, o, nil, func(task *sim.Task, lab *redlockLab) {
		lab.occupy(task, 1, 2)
		_, err := lab.lock.Acquire(task)
		require.Equal(t, ErrBusy, err)
	})
}

// Nodes that are down refuse at once and certainly did nothing; nodes that are
// silent cost the timeout, once for all, and may have said yes.
func TestRedlockWithoutSomeNodes(t *testing.T) {
	silent := func(nodes ...string) (out []sim.Fault) {
		for _, n := range nodes {
			out = append(out, dropTo(n, 0, time.Second))
		}
		return out
	}
	redlockVariant{}.run(t, redlockOptions(), silent("redis-1", "redis-5"), func(task *sim.Task, lab *redlockLab) {
		before := task.Now()
		_, err := lab.lock.Acquire(task)
		require.NoError(t, err)
		require.Equal(t, 50*time.Millisecond, task.Now().Sub(before))
	})
	redlockVariant{}.run(t, redlockOptions(), silent("redis-1", "redis-2", "redis-5"), func(task *sim.Task, lab *redlockLab) {
		_, err := lab.lock.Acquire(task)
		require.ErrorIs(t, err, sim.ErrUnknown)
		require.Equal(t, make([]int64, 5), lab.holders())
	})
	down := []sim.Fault{crashOf("redis-1", 0), crashOf("redis-2", 0), crashOf("redis-3", 0)}
	redlockVariant{}.run(t, redlockOptions(), down, func(task *sim.Task, lab *redlockLab) {
		task.Sleep(2 * time.Second)
		_, err := lab.lock.Acquire(task)
		require.Equal(t, ErrBusy, err)
	})
}

// A request that outlives its timeout lands behind the unlock, which went over
// a new connection: nobody holds that lock and it blocks its node until it
// expires.
func TestRedlockLateRequestOnAnAbandonedConnection(t *testing.T) {
	late := sim.Fault{Kind: sim.Delay, On: []string{"client-1->redis-1"}, By: sim.Exactly(200 * time.Millisecond), Count: 1,
		Trigger: sim.Trigger{At: sim.Exactly(time.Millisecond)}}
	redlockVariant{}.run(t, redlockOptions(), []sim.Fault{late}, func(task *sim.Task, lab *redlockLab) {
		task.Sleep(10 * time.Millisecond)
		lab.occupy(task, 3, 4, 5)
		_, err := lab.lock.Acquire(task)
		require.Equal(t, ErrBusy, err, "two nodes at most")
		require.Equal(t, []int64{0, 0, 99, 99, 99}, lab.holders())
		task.Sleep(time.Second)
		require.NotZero(t, lab.holders()[0], "the late SET")
	})
}

// A reply that comes after the timeout finds its connection closed: the client
// does not count it, and the unlock still goes there.
func TestRedlockLateReplyOnAnAbandonedConnection(t *testing.T) {
	late := sim.Fault{Kind: sim.Delay, On: []string{"redis-1->client-1"}, By: sim.Exactly(70 * time.Millisecond), Count: 1}
	redlockVariant{}.run(t, redlockOptions(), []sim.Fault{late}, func(task *sim.Task, lab *redlockLab) {
		g, err := lab.lock.Acquire(task)
		require.NoError(t, err)
		require.Equal(t, g.Mark, lab.holders()[0])
		require.NoError(t, lab.lock.Release(task, &g))
		require.Equal(t, make([]int64, 5), lab.holders())
		task.Sleep(time.Second)
	})
}

func TestRedlockAnswersThatCameTooLate(t *testing.T) {
	pause := sim.Fault{Kind: sim.Pause, On: []string{"client-1"}, For: sim.Exactly(9_900 * time.Millisecond)}
	place, err := sim.ParsePlace("client-1/section#1/acquire/op#8")
	require.NoError(t, err)
	pause.Trigger.Before = place
	for _, c := range []struct {
		variant redlockVariant
		want    error
	}{{redlockVariant{}, ErrTooLate}, {redlockVariant{wallClock: true}, ErrTooLate}, {redlockVariant{trusting: true}, nil}} {
		c.variant.run(t, redlockOptions(), []sim.Fault{pause}, func(task *sim.Task, lab *redlockLab) {
			_, err := lab.lock.Acquire(task)
			require.Equal(t, c.want, err)
			if c.want != nil { // a tenth of a second before the keys would have expired
				require.Equal(t, make([]int64, 5), lab.holders())
			}
		})
	}
}

func TestRedlockReleaseGoesEverywhere(t *testing.T) {
	redlockVariant{}.run(t, redlockOptions(), []sim.Fault{dropTo("redis-2", 10*time.Second, time.Second)}, func(task *sim.Task, lab *redlockLab) {
		lab.occupy(task, 4)
		g, err := lab.lock.Acquire(task)
		require.NoError(t, err)
		require.NoError(t, lab.lock.Release(task, &g))
		require.Equal(t, []int64{0, 0, 0, 99, 0}, lab.holders())
		require.Equal(t, ErrLost, lab.lock.Release(task, &g), "there was nothing left")
	})
}

func TestRedlockExtends(t *testing.T) {
	faults := []sim.Fault{dropTo("redis-1", 3*time.Second, time.Second), crashOf("redis-2", 0)}
	redlockVariant{}.run(t, redlockOptions(), faults, func(task *sim.Task, lab *redlockLab) {
		g, err := lab.lock.Acquire(task)
		require.NoError(t, err)
		task.Sleep(3100 * time.Millisecond)
		asked := task.Now()
		require.NoError(t, lab.lock.Renew(task, &g), "three of five")
		require.Equal(t, asked.Add(10*time.Second-102*time.Millisecond), g.Deadline)
		task.Sleep(9800 * time.Millisecond)
		require.NotZero(t, lab.holders()[4])
		require.NoError(t, lab.lock.Renew(task, &g), "in the last tenth of a second")
		task.Sleep(9900 * time.Millisecond)
		require.Equal(t, ErrLost, lab.lock.Renew(task, &g), "too late: nobody is asked")
		require.NotZero(t, lab.holders()[4])
	})
}

func TestRedlockExtensionThatFails(t *testing.T) {
	// Silent nodes may have said yes; the lease that there is stands.
	silent := []sim.Fault{dropTo("redis-1", time.Second, time.Second), dropTo("redis-2", time.Second, time.Second), dropTo("redis-3", time.Second, time.Second)}
	redlockVariant{}.run(t, redlockOptions(), silent, func(task *sim.Task, lab *redlockLab) {
		g, err := lab.lock.Acquire(task)
		require.NoError(t, err)
		before := g.Deadline
		task.Sleep(1500 * time.Millisecond)
		require.Equal(t, sim.ErrUnknown, lab.lock.Renew(task, &g))
		require.Equal(t, before, g.Deadline)
		task.Sleep(time.Second)
		require.NoError(t, lab.lock.Renew(task, &g))
	})
	// Nodes that have forgotten say no.
	forgotten := []sim.Fault{crashOf("redis-1", time.Millisecond), crashOf("redis-2", time.Millisecond), crashOf("redis-3", time.Millisecond)}
	redlockVariant{}.run(t, redlockOptions(), forgotten, func(task *sim.Task, lab *redlockLab) {
		g, err := lab.lock.Acquire(task)
		require.NoError(t, err)
		task.Sleep(1500 * time.Millisecond)
		require.Equal(t, ErrLost, lab.lock.Renew(task, &g))
	})
	// Answers that come when the old lease is over mean that the client has to
	// stop, and not that anybody refused.
	place, err := sim.ParsePlace("client-1/section#1/acquire/op#24")
	require.NoError(t, err)
	pause := sim.Fault{Kind: sim.Pause, On: []string{"client-1"}, For: sim.Exactly(time.Minute), Trigger: sim.Trigger{Before: place}}
	redlockVariant{}.run(t, redlockOptions(), []sim.Fault{pause}, func(task *sim.Task, lab *redlockLab) {
		g, err := lab.lock.Acquire(task)
		require.NoError(t, err)
		task.Sleep(time.Second)
		err = lab.lock.Renew(task, &g)
		require.True(t, errors.Is(err, ErrLost) && errors.Is(err, sim.ErrUnknown), "%v", err)
	})
}

// What the three kinds of restart do to the votes, and whether the node serves.
func TestRedlockNodeRestart(t *testing.T) {
	for _, c := range []struct {
		restart     redlockRestart
		keeps       bool
		firstAnswer replyKind // to a SET NX a moment after the restart
	}{{forgets, false, replyStatus}, {remembers, true, replyNil}, {staysAway, true, replyError}} {
		redlockVariant{restart: c.restart}.run(t, redlockOptions(), []sim.Fault{crashOf("redis-3", 500*time.Millisecond)}, func(task *sim.Task, lab *redlockLab) {
			g, err := lab.lock.Acquire(task)
			require.NoError(t, err)
			ask := func() replyKind {
				set := &RedisCommand{Verb: RedisSet, Key: redisLockKey, Value: RedisInt(7), TTL: time.Second, NX: true}
				r, err := task.Call(task.Dial(lab.nodes[2].proc), set, 0)
				require.NoError(t, err)
				return r.(*RedisReply).kind
			}
			task.Sleep(1200 * time.Millisecond)
			require.Equal(t, g.Mark, lab.holders()[2], "a node that is down grants nothing to anybody else")
			task.Sleep(500 * time.Millisecond)
			require.Equal(t, c.keeps, lab.holders()[2] == g.Mark)
			require.Equal(t, c.firstAnswer, ask())
			task.Sleep(9500 * time.Millisecond)
			require.Equal(t, c.restart == staysAway, ask() == replyError, "it is still away: the ttl began with the restart")
			task.Sleep(2 * time.Second)
			require.Equal(t, replyStatus, ask())
		})
	}
}
