package models

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/sim"
)

func failoverAt(d time.Duration, mode string) sim.Fault {
	return sim.Fault{Kind: sim.Failover, On: []string{"redis-1"}, Mode: mode, Trigger: at(d)}
}

func isolate(d, length time.Duration, whom string) sim.Fault {
	return sim.Fault{Kind: sim.Partition, On: []string{whom}, Trigger: at(d), For: sim.Exactly(length)}
}

func TestReplicasFollow(t *testing.T) {
	inRedis(t, redisOptions(), true, nil, func(l *redisLab) {
		l.expect(1, "SET k v PX 5000 -> +OK", "INCR n -> :1", "ZADD z 1 a -> :1", "DEL n -> :1", "EVAL setAndCount lock v 5000 n -> :1")
		l.expect(1, "MULTI -> +OK", "INCR n -> +QUEUED", "ZREM z a -> +QUEUED", "EXEC -> [:2 :1]")
		l.sleep(10 * time.Millisecond)
		for n := 2; n <= 3; n++ {
			l.expect(n, "GET k -> \"v\"", "GET lock -> \"v\"", "GET n -> \"2\"", "EXISTS z -> :0", "ROLE -> [\"slave\"]",
				"SET k w -> -READONLY You can't write against a read only replica.",
				"MULTI -> +OK", "DEL k -> -READONLY You can't write against a read only replica.", "EXEC -> -EXECABORT Transaction discarded because of previous errors.")
			require.Equal(t, l.server(1).repl.offset, l.server(n).repl.offset)
		}
		l.expect(1, "FLUSHALL -> +OK", "ROLE -> [\"master\"]")
		l.sleep(10 * time.Millisecond)
		l.expect(3, "EXISTS k n -> :0")
	})
}

// (*) A replica does not expire keys: it hides them by its own clock, and they
// go with the primary's DEL. redis-2's clock is four seconds ahead.
func TestReplicasHideButDoNotExpire(t *testing.T) {
	inRedis(t, redisOptions(), true, []sim.Fault{stepClock(0, "redis-2", 4*time.Second)}, func(l *redisLab) {
		l.expect(1, "SET k v PX 10000 -> +OK")
		l.sleep(7 * time.Second)
		l.expect(2, "GET k -> (nil)", "TTL k -> :-2", "EXISTS k -> :0")
		l.expect(3, "GET k -> \"v\"")
		require.True(t, l.has(2, "k"), "hidden, and there")
		l.expect(1, "PEXPIRE k 20000 -> :1")
		l.sleep(10 * time.Millisecond)
		l.expect(2, "GET k -> \"v\"")
		l.sleep(21 * time.Second)
		require.False(t, l.has(1, "k") || l.has(2, "k") || l.has(3, "k"), "the primary's DEL came")
	})
}

// (*) Once promoted, a server expires keys by its own clock.
func TestAPromotedReplicaExpiresByItsOwnClock(t *testing.T) {
	for _, c := range []struct {
		skew time.Duration
		want string
	}{{4 * time.Second, "(nil)"}, {-4 * time.Second, `"v"`}} {
		inRedis(t, redisOptions(), true, []sim.Fault{stepClock(0, "redis-2", c.skew), failoverAt(7*time.Second, "demoted")}, func(l *redisLab) {
			l.expect(1, "SET k v PX 10000 -> +OK")
			l.sleep(7100 * time.Millisecond)
			l.expect(2, "ROLE -> [\"master\"]", "GET k -> "+c.want)
			require.Equal(t, c.want != "(nil)", l.has(2, "k"))
			l.sleep(3500 * time.Millisecond)
			l.expect(2, "GET k -> "+c.want)
			l.sleep(4 * time.Second)
			l.expect(2, "GET k -> (nil)")
		})
	}
}

// (*) WAIT answers how many replicas have acknowledged, also when its time is
// over.
func TestWait(t *testing.T) {
	inRedis(t, redisOptions(), true, []sim.Fault{isolate(time.Second, time.Hour, "redis-3"), isolate(3*time.Second, time.Hour, "redis-2")}, func(l *redisLab) {
		l.expect(1, "SET k 1 -> +OK", "WAIT 2 100 -> :2", "WAIT 0 0 -> :2")
		l.expect(2, "WAIT 1 100 -> -"+errWaitReplica)
		l.sleep(1100 * time.Millisecond)
		l.expect(1, "SET k 2 -> +OK", "WAIT 1 100 -> :1")
		began := l.task.Now()
		l.expect(1, "WAIT 2 100 -> :1")
		require.GreaterOrEqual(t, l.task.Now().Sub(began), 100*time.Millisecond)
		l.sleep(2 * time.Second)
		l.expect(1, "SET k 3 -> +OK", "WAIT 1 100 -> :0", "GET k -> \"3\"")
	})
}

// The stream is late by up to replication_lag, in order, and WAIT waits for it.
func TestReplicationLag(t *testing.T) {
	o := redisOptions()
	o.ReplicationLag = 300 * time.Millisecond
	w := sim.NewWorld(sim.Config{Seed: 3, LatencyMin: time.Millisecond, LatencyMax: time.Millisecond})
	defer w.Close()
	env := &Env{World: w, Options: o}
	l := &redisLab{T: t, env: env}
	w.AddNode("c").AddClient("c", func(task *sim.Task) {
		l.task = task
		task.Sleep(10 * time.Millisecond)
		late := false
		for range 20 {
			l.ask(1, "INCR n")
			l.sleep(10 * time.Millisecond)
			first, second := l.server(1).repl.offset, l.server(2).repl.offset
			require.LessOrEqual(t, second, first)
			late = late || second < first
		}
		require.True(t, late)
		l.expect(1, "WAIT 2 500 -> :2")
		l.expect(2, "GET n -> \"20\"")
		l.expect(3, "GET n -> \"20\"")
	})
	l.group = newRedisGroup(env, 2)
	_, err := w.Run()
	require.NoError(t, err)
	require.Nil(t, w.Failure())
}

// (*) The failover loses the last DEL too: a released lock comes back, until
// it expires by the new primary's clock.
func TestAReleasedLockComesBack(t *testing.T) {
	o := redisOptions()
	faults := []sim.Fault{isolate(time.Second, time.Hour, "redis-1"), failoverAt(1200*time.Millisecond, "")}
	faults[0].On, faults[0].From = []string{"redis-1"}, []string{"redis-2", "redis-3"}
	inRedis(t, o, true, faults, func(l *redisLab) {
		l.expect(1, "SET lock v NX PX 10000 -> +OK")
		l.sleep(1100 * time.Millisecond)
		l.expect(1, "EVAL compareAndDelete lock v -> :1", "GET lock -> (nil)")
		l.sleep(500 * time.Millisecond)
		l.expect(2, "GET lock -> \"v\"", "SET lock w NX PX 10000 -> (nil)")
		l.sleep(9 * time.Second)
		l.expect(2, "SET lock w NX PX 10000 -> +OK")
	})
}

// (*) A primary without persistence that is up again before the monitor
// notices wipes its replicas (redis.io, "Redis replication", safety when the
// master has persistence turned off). With a file it does not.
func TestARestartedEmptyPrimaryWipesItsReplicas(t *testing.T) {
	for _, c := range []struct{ persistence, want string }{{PersistNone, "(nil)"}, {PersistAlways, `"v"`}} {
		o := redisOptions()
		o.Persistence = c.persistence
		inRedis(t, o, true, []sim.Fault{crashAt(time.Second, "redis-1", "process", 500*time.Millisecond)}, func(l *redisLab) {
			l.expect(1, "SET k v -> +OK")
			l.sleep(1100 * time.Millisecond)
			l.expect(2, "GET k -> \"v\"")
			l.sleep(3 * time.Second)
			require.Equal(t, 0, l.group.primary, "nobody noticed")
			for n := 1; n <= 3; n++ {
				l.links[n] = link{}
				l.expect(n, "GET k -> "+c.want)
			}
		})
	}
}

// The monitor fails over when the primary has not answered for down_after; the
// old primary comes back as a replica, without what it alone had.
func TestFailoverAndReturn(t *testing.T) {
	inRedis(t, redisOptions(), true, []sim.Fault{isolate(time.Second, 20*time.Second, "redis-1")}, func(l *redisLab) {
		l.expect(1, "SET k 1 -> +OK")
		l.sleep(2500 * time.Millisecond)
		require.Equal(t, 0, l.group.primary, "not before down_after")
		l.sleep(2 * time.Second)
		require.Equal(t, 1, l.group.primary)
		l.server(1).db.set("alone", RedisInt(1), 0) // a client on its side of the partition
		l.server(1).spread(nil)
		l.expect(2, "SET k 2 -> +OK", "ROLE -> [\"master\"]")
		l.sleep(10 * time.Millisecond)
		l.expect(3, "GET k -> \"2\"")
		l.sleep(60 * time.Second)
		l.links[1] = link{}
		l.expect(1, "ROLE -> [\"slave\"]", "GET k -> \"2\"", "GET alone -> (nil)")
		require.Equal(t, l.server(2).repl.offset, l.server(1).repl.offset)
	})
}

// A monitor leaves an old primary alone for eight seconds. Its clients' old
// connections go on until then, and are cut when it is told.
func TestTwoPrimariesForAWhile(t *testing.T) {
	inRedis(t, redisOptions(), true, []sim.Fault{failoverAt(time.Second, "")}, func(l *redisLab) {
		l.expect(1, "SET k 1 -> +OK")
		l.sleep(3 * time.Second)
		old := l.links[1].conn
		l.expect(1, "SET k 2 -> +OK", "ROLE -> [\"master\"]")
		l.expect(2, "GET k -> \"1\"", "ROLE -> [\"master\"]")
		l.sleep(10 * time.Second)
		require.False(t, old.Open())
		l.expect(1, "ROLE -> [\"slave\"]", "GET k -> \"1\"")
	})
}

// A replica that has missed nothing but the promotion goes on in the new
// primary's history; the demoted primary does so too if it was not ahead.
func TestPartialResynchronisation(t *testing.T) {
	inRedis(t, redisOptions(), true, []sim.Fault{failoverAt(time.Second, "demoted")}, func(l *redisLab) {
		l.expect(1, "SET k 1 -> +OK")
		l.sleep(1200 * time.Millisecond)
		for n := 1; n <= 3; n++ {
			r := l.server(n).repl
			require.Equal(t, []int64{2, 1}, []int64{r.history, r.offset}, "redis-%d", n)
			require.Len(t, r.backlog, 1, "a full copy would have begun a new one")
		}
	})
}

// Promotion order: priority, then offset, then ID; priority 0 never.
func TestPromotionOrder(t *testing.T) {
	for _, c := range []struct {
		name         string
		p2, p3       int
		o2, o3       int64
		down2, down3 bool
		want         int
	}{
		{"the ID decides", 100, 100, 5, 5, false, false, 1},
		{"the offset decides", 100, 100, 5, 6, false, false, 2},
		{"priority comes first", 10, 100, 5, 6, false, false, 1},
		{"priority 0 never", 0, 100, 9, 6, false, false, 2},
		{"who is down cannot", 10, 100, 9, 6, true, false, 2},
		{"nobody is left", 0, 100, 9, 6, false, true, 0},
	} {
		var faults []sim.Fault
		if c.down2 {
			faults = append(faults, crashAt(500*time.Millisecond, "redis-2", "process", 0))
		}
		if c.down3 {
			faults = append(faults, crashAt(500*time.Millisecond, "redis-3", "process", 0))
		}
		faults = append(faults, failoverAt(time.Second, ""))
		inRedis(t, redisOptions(), true, faults, func(l *redisLab) {
			l.sleep(800 * time.Millisecond)
			l.server(2).repl.priority, l.server(3).repl.priority = c.p2, c.p3
			for n, offset := range map[int]int64{2: c.o2, 3: c.o3} {
				r := l.server(n).repl
				r.offset, r.backlogFrom = offset, offset
			}
			l.sleep(500 * time.Millisecond)
			require.Equal(t, c.want, l.group.primary, c.name)
		})
	}
}

// A lost piece of the stream is noticed and fetched again.
func TestAGapInTheStream(t *testing.T) {
	drop := sim.Fault{Kind: sim.DropRequest, On: []string{"redis-1->redis-2"}, Trigger: at(time.Second)}
	inRedis(t, redisOptions(), true, []sim.Fault{drop}, func(l *redisLab) {
		l.sleep(time.Second)
		l.expect(1, "INCR n -> :1", "INCR n -> :2")
		l.sleep(100 * time.Millisecond)
		require.False(t, l.has(2, "n"))
		l.sleep(1500 * time.Millisecond)
		l.expect(2, "GET n -> \"2\"")
	})
}

// A client that asks the monitor finds the new primary; one with an old
// connection stays until it breaks.
func TestClientsFindThePrimary(t *testing.T) {
	inRedis(t, redisOptions(), true, []sim.Fault{failoverAt(time.Second, "demoted")}, func(l *redisLab) {
		lk := redisLink{env: l.env, group: l.group, monitor: link{server: l.group.monitor.proc}}
		set := parseRedis(t, "SET k 1")
		_, err := lk.do(l.task, &set)
		require.NoError(t, err)
		first := lk.conn
		l.sleep(1500 * time.Millisecond)
		_, err = lk.do(l.task, &set)
		require.NoError(t, err)
		require.NotEqual(t, first, lk.conn)
		l.expect(2, "GET k -> \"1\"", "ROLE -> [\"master\"]")
	})
}

// (*) WAIT is no consensus: one replica has the lock, and the other one is
// promoted if the one that has it cannot be.
func TestWaitIsNoConsensus(t *testing.T) {
	faults := []sim.Fault{isolate(time.Second, time.Hour, "redis-2"), crashAt(2*time.Second, "redis-3", "node", 0), failoverAt(3*time.Second, "")}
	faults[0].From = []string{"redis-1"}
	inRedis(t, redisOptions(), true, faults, func(l *redisLab) {
		l.sleep(1100 * time.Millisecond)
		l.expect(1, "SET lock v NX PX 10000 -> +OK", "WAIT 1 100 -> :1")
		l.sleep(2 * time.Second)
		l.expect(2, "SET lock w NX PX 10000 -> +OK")
	})
}
