package models

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/clock"
	"locklab/sim"
)

// pgDeaf is a recorder that only counts lost sessions.
type pgDeaf struct {
	Recorder
	lost []int32
}

func (*pgDeaf) Decided(int32, bool, int64)                          {}
func (d *pgDeaf) SessionLost(tenure int32)                          { d.lost = append(d.lost, tenure) }
func (*pgDeaf) Invoke(*sim.Task, OpKind, int32, int64, int64) int32 { return 0 }
func (*pgDeaf) Return(*sim.Task, int32, error, int64)               {}

// pgWorld is a world with a PostgreSQL server, a pooler before it, and clients.
type pgWorld struct {
	t      *testing.T
	world  *sim.World
	env    *Env
	rec    *pgDeaf
	group  *pgGroup
	pooler *sim.Process
}

// runPgWorld runs the given clients, called client-1 and so on, to their ends.
func runPgWorld(t *testing.T, change func(*sim.Config, *Options), clients ...func(w *pgWorld, t *sim.Task)) *pgWorld {
	cfg := sim.Config{LatencyMin: time.Millisecond, LatencyMax: time.Millisecond, Horizon: 10 * time.Hour}
	opts := Options{CallTimeout: 10 * time.Minute, PoolSize: 2}
	if change != nil {
		change(&cfg, &opts)
	}
	w := &pgWorld{t: t, world: sim.NewWorld(cfg), rec: &pgDeaf{}}
	t.Cleanup(w.world.Close)
	w.env = &Env{World: w.world, Rec: w.rec}
	w.env.Reset(opts)
	for i, run := range clients {
		name := "client-" + string(rune('1'+i))
		w.world.AddNode(name).AddClient(name, func(task *sim.Task) { run(w, task) })
	}
	w.group = newPostgres(w.env, pgDataRow())
	w.pooler = newPgBouncer(w.env, w.group.primary.proc)
	_, err := w.world.Run()
	require.NoError(t, err)
	require.Nil(t, w.world.Failure())
	return w
}

// direct and pooled open a connection.
func (w *pgWorld) direct() *pgLink { return &pgLink{env: w.env, hosts: w.group.processes()} }
func (w *pgWorld) pooled() *pgLink { return &pgLink{env: w.env, hosts: []*sim.Process{w.pooler}} }

// yes and no run an advisory function that must return true or false.
func (w *pgWorld) yes(t *sim.Task, l *pgLink, v PgVerb) { w.says(t, l, v, true) }
func (w *pgWorld) no(t *sim.Task, l *pgLink, v PgVerb)  { w.says(t, l, v, false) }
func (w *pgWorld) says(t *sim.Task, l *pgLink, v PgVerb, want bool) {
	q := &PgStatement{Verb: v, Key: 1}
	r, err := l.do(t, q)
	require.NoError(w.t, err)
	require.Equal(w.t, want, r.True(), "%s in %s at %s", q, t.Proc().Name(), time.Duration(w.world.Now()))
}

func (w *pgWorld) run(t *sim.Task, l *pgLink, v PgVerb) *PgResult {
	r, err := l.do(t, &PgStatement{Verb: v, Key: 1})
	require.NoError(w.t, err)
	return r
}

// until waits for a true time, in seconds.
func until(t *sim.Task, seconds float64) {
	t.Sleep(clock.Reading(seconds * 1e9).Sub(t.Now()))
}

// (*) Two clients share one backend, one after the other: the lock is granted
// to both.
func TestPgBouncerTwoClientsOneBackend(t *testing.T) {
	runPgWorld(t, nil, func(w *pgWorld, t *sim.Task) {
		l := w.pooled()
		w.yes(t, l, PgTryLock)
		until(t, 2)
		w.yes(t, l, PgUnlock)
	}, func(w *pgWorld, t *sim.Task) {
		l := w.pooled()
		until(t, 1)
		w.yes(t, l, PgTryLock)
		w.no(t, w.direct(), PgTryLock) // another session is kept out
		until(t, 3)
		w.yes(t, l, PgUnlock)
		w.yes(t, w.direct(), PgTryLock)
	})
}

// (*) The unlock reaches another backend: it returns false, and the lock stays
// until that backend has been idle for server_idle_timeout.
func TestPgBouncerStrandsTheLock(t *testing.T) {
	runPgWorld(t, nil, func(w *pgWorld, t *sim.Task) {
		l := w.pooled()
		w.yes(t, l, PgTryLock)
		until(t, 2)
		w.no(t, l, PgUnlock)
	}, func(w *pgWorld, t *sim.Task) {
		l := w.pooled()
		until(t, 1)
		w.run(t, l, PgBegin) // takes the backend that was used last, and keeps it
		until(t, 3)
		w.run(t, l, PgCommit)
		d := w.direct()
		w.no(t, d, PgTryLock)
		until(t, 3+590)
		w.no(t, d, PgTryLock)
		until(t, 3+610)
		w.yes(t, d, PgTryLock)
	})
}

// A transaction keeps its backend, and who finds none free waits.
func TestPgBouncerTransactions(t *testing.T) {
	one := func(_ *sim.Config, o *Options) { o.PoolSize = 1 }
	runPgWorld(t, one, func(w *pgWorld, t *sim.Task) {
		l := w.pooled()
		w.run(t, l, PgBegin)
		w.yes(t, l, PgTryXactLock)
		until(t, 5)
		w.run(t, l, PgCommit)
	}, func(w *pgWorld, t *sim.Task) {
		l := w.pooled()
		until(t, 1)
		w.yes(t, l, PgTryXactLock)
		require.Greater(w.t, t.Now(), clock.Reading(5e9), "it waited for the backend")
	})
}

// A client that goes away in its transaction takes the backend with it.
func TestPgBouncerClientLeaves(t *testing.T) {
	runPgWorld(t, nil, func(w *pgWorld, t *sim.Task) {
		l := w.pooled()
		w.run(t, l, PgBegin)
		w.yes(t, l, PgTryXactLock)
		until(t, 1)
		t.Hangup(l.conn)
	}, func(w *pgWorld, t *sim.Task) {
		d := w.direct()
		until(t, 0.9)
		w.no(t, d, PgTryLock)
		until(t, 1.1)
		w.yes(t, d, PgTryLock)
	})
}

// A backend that waits does not read its socket: its client's end is noticed
// only when the wait is over, and by then the dead has the lock.
func TestPgDeadClientIsNoticedLate(t *testing.T) {
	die := sim.Fault{Kind: sim.Crash, On: []string{"client-2"}, Trigger: sim.Trigger{At: sim.Exactly(2 * time.Second)}}
	w := runPgWorld(t, func(cfg *sim.Config, _ *Options) { cfg.Plan = sim.Plan{Faults: []sim.Fault{die}} },
		func(w *pgWorld, t *sim.Task) {
			l := w.direct()
			w.yes(t, l, PgTryLock)
			until(t, 10)
			waiters := w.group.primary.engine.findAdvisory(1).waiters
			require.Len(w.t, waiters, 1, "the dead one")
			require.Equal(w.t, []int{1}, waiters[0].blockedBy())
			w.yes(t, l, PgUnlock)
			require.Nil(w.t, w.group.primary.engine.findAdvisory(1), "granted, noticed and gone")
			w.yes(t, l, PgTryLock)
		},
		func(w *pgWorld, t *sim.Task) {
			until(t, 1)
			w.run(t, w.direct(), PgLock)
			w.t.Error("it is dead")
		})
	require.Len(t, w.rec.lost, 1)
}

// A dead client whose backend is idle is noticed at once by FIN and RST, and
// behind silence by keepalive.
func TestPgDeadClientIdle(t *testing.T) {
	for _, c := range []struct {
		name      string
		fault     sim.Fault
		keepalive time.Duration
		after     float64
	}{
		{"reset", sim.Fault{Kind: sim.Crash, On: []string{"client-2"}}, 0, 0.1},
		{"silence", sim.Fault{Kind: sim.Crash, On: []string{"client-2"}, Mode: "node"}, 0, 7200 + 9*75},
		{"silence, with keepalive settings", sim.Fault{Kind: sim.Crash, On: []string{"client-2"}, Mode: "node"}, 30 * time.Second, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.fault.Trigger.At = sim.Exactly(2 * time.Second)
			runPgWorld(t, func(cfg *sim.Config, o *Options) {
				cfg.Plan, o.Keepalive = sim.Plan{Faults: []sim.Fault{c.fault}}, c.keepalive
			}, func(w *pgWorld, t *sim.Task) {
				l := w.direct()
				until(t, 1.9)
				w.no(t, l, PgTryLock)
				if c.after > 1 {
					until(t, c.after-1) // since second 1, when it was heard last
					w.no(t, l, PgTryLock)
				}
				until(t, 2.1+c.after)
				w.yes(t, l, PgTryLock)
			}, func(w *pgWorld, t *sim.Task) {
				l := w.direct()
				until(t, 1)
				w.yes(t, l, PgTryLock)
				until(t, 100_000)
			})
		})
	}
}

// (*) Primary and standby each grant their own advisory locks, and a standby
// takes no writes.
func TestPgStandby(t *testing.T) {
	with := func(_ *sim.Config, o *Options) { o.Standby = AsyncStandby }
	runPgWorld(t, with, func(w *pgWorld, t *sim.Task) {
		primary := &pgLink{env: w.env, hosts: w.group.processes()[:1]}
		standby := &pgLink{env: w.env, hosts: w.group.processes()[1:]}
		w.yes(t, primary, PgTryLock)
		w.yes(t, standby, PgTryLock)
		w.no(t, primary, PgInRecovery)
		w.yes(t, standby, PgInRecovery)
		q := updateData(7)
		r, err := standby.do(t, &q)
		require.NoError(w.t, err)
		require.Equal(w.t, PgReadOnly, r.Code)
		_, err = primary.do(t, &q)
		require.NoError(w.t, err)
		q = selectData()
		until(t, 1)
		r, err = standby.do(t, &q)
		require.NoError(w.t, err)
		require.EqualValues(w.t, 7, r.Row[1])
	})
}

// A synchronous standby that is away holds commits up: they are durable here,
// and seen by nobody.
func TestPgSynchronousStandby(t *testing.T) {
	away := sim.Fault{Kind: sim.Pause, On: []string{"postgres-2"}, For: sim.Exactly(20 * time.Second), Trigger: sim.Trigger{At: sim.Exactly(time.Second)}}
	with := func(cfg *sim.Config, o *Options) {
		cfg.Plan, o.Standby = sim.Plan{Faults: []sim.Fault{away}}, SyncStandby
	}
	runPgWorld(t, with, func(w *pgWorld, t *sim.Task) {
		until(t, 2)
		q := updateData(7)
		r, err := w.direct().do(t, &q)
		require.NoError(w.t, err)
		require.Equal(w.t, 1, r.Rows)
		require.Greater(w.t, t.Now(), clock.Reading(21e9))
	}, func(w *pgWorld, t *sim.Task) {
		until(t, 10)
		q := selectData()
		r, err := w.direct().do(t, &q)
		require.NoError(w.t, err)
		require.EqualValues(w.t, 0, r.Row[1])
		q = selectData()
		q.Lock = ForUpdateNoWait
		r, err = w.direct().do(t, &q)
		require.NoError(w.t, err)
		require.Equal(w.t, PgLockNotAvailable, r.Code, "its locks stay")
	})
}
