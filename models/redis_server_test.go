package models

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/clock"
	"locklab/sim"
)

// (*) An expiry is an absolute time of the server's wall clock: a step forward
// expires keys at once, a step back makes them live longer.
func TestRedisExpiryFollowsTheWallClock(t *testing.T) {
	faults := []sim.Fault{stepClock(time.Second, "redis-1", 9*time.Second), stepClock(2*time.Second, "redis-1", -20*time.Second)}
	inRedis(t, redisOptions(), false, faults, func(l *redisLab) {
		l.expect(1, "SET a v PX 9500 -> +OK", "SET b v PX 15000 -> +OK")
		l.sleep(1100 * time.Millisecond)
		require.False(t, l.has(1, "a"), "it went by itself when the clock stepped")
		l.expect(1, "GET a -> (nil)", "GET b -> \"v\"")
		l.sleep(20 * time.Second)
		l.expect(1, "GET b -> \"v\"")
		l.sleep(5 * time.Second)
		l.expect(1, "GET b -> (nil)")
	})
}

// (*) What survives which crash, under each persistence. Half a second before
// the crash one key was written, three seconds before it another.
func TestRedisPersistence(t *testing.T) {
	for _, c := range []struct {
		persistence, mode string
		early, late       string
	}{
		{PersistNone, "process", "(nil)", "(nil)"}, {PersistNone, "node", "(nil)", "(nil)"},
		{PersistEverysec, "process", `"1"`, `"2"`}, // the kernel has it
		{PersistEverysec, "node", `"1"`, "(nil)"},  // up to a second is lost
		{PersistAlways, "process", `"1"`, `"2"`}, {PersistAlways, "node", `"1"`, `"2"`},
	} {
		o := redisOptions()
		o.Persistence = c.persistence
		inRedis(t, o, false, []sim.Fault{crashAt(4*time.Second, "redis-1", c.mode, time.Second)}, func(l *redisLab) {
			l.sleep(time.Second)
			l.expect(1, "SET early 1 -> +OK", "INCR n -> :1")
			l.sleep(2500 * time.Millisecond)
			l.expect(1, "SET late 2 -> +OK")
			l.sleep(3 * time.Second)
			l.links[1] = link{}
			require.Equal(t, []string{c.early, c.late}, []string{l.ask(1, "GET early"), l.ask(1, "GET late")}, "%s, %s crash", c.persistence, c.mode)
		})
	}
}

// (*) An expiry flows while the server is down, also by its wall clock.
func TestRedisExpiryFlowsWhileDown(t *testing.T) {
	for _, step := range []time.Duration{0, -time.Hour} {
		o := redisOptions()
		o.Persistence = PersistAlways
		faults := []sim.Fault{crashAt(time.Second, "redis-1", "process", 3*time.Second), stepClock(2*time.Second, "redis-1", step)}
		if step == 0 {
			faults = faults[:1]
		}
		inRedis(t, o, false, faults, func(l *redisLab) {
			l.expect(1, "SET k v PX 3500 -> +OK", "SET n 1 PX 60000 -> +OK", "ZADD z 2 b -> :1", "ZADD z 1 a -> :1", "PEXPIRE z 90000 -> :1", "INCR n -> :2", "SET gone 1 -> +OK", "DEL gone -> :1")
			l.sleep(4100 * time.Millisecond)
			l.links[1] = link{}
			require.Equal(t, step != 0, l.ask(1, "GET k") == `"v"`)
			l.expect(1, "GET n -> \"2\"", "ZRANGE z 0 -1 -> [\"a\" \"b\"]", "EXISTS gone -> :0")
			require.Equal(t, step == 0, l.ask(1, "TTL n") == ":56")
		})
	}
}

// A transaction is loaded as a whole or not at all. Here the disk has got to
// the first of its changes and not to the second (redis.conf,
// aof-load-truncated).
func TestRedisLoadsNoHalfTransaction(t *testing.T) {
	o := redisOptions()
	o.Persistence = PersistEverysec
	for seed := uint64(0); seed < 8; seed++ { // what of the unsynced survives is a choice
		w := sim.NewWorld(sim.Config{Seed: seed, Plan: sim.Plan{Faults: []sim.Fault{crashAt(time.Second, "redis-1", "node", time.Second)}}})
		env := &Env{World: w, Options: o}
		var s *redisServer
		w.AddNode("c").AddClient("c", func(task *sim.Task) {
			task.Sleep(500 * time.Millisecond)
			conn := task.Dial(s.proc)
			for _, line := range []string{"MULTI", "SET a 1", "SET b 1", "SET c 1", "EXEC"} {
				c := parseRedis(t, line)
				_, err := task.Call(conn, &c, 0)
				require.NoError(t, err)
			}
			task.Sleep(2 * time.Second)
			n := len(s.db.entries)
			require.True(t, n == 0 || n == 3, "%d of 3 keys", n)
		})
		s = newRedis(env, "redis-1")
		_, err := w.Run()
		require.NoError(t, err)
		require.Nil(t, w.Failure())
		w.Close()
	}
}

// With aof-always no reply goes out before its fsync, and a server that waits
// for the disk does nothing else.
func TestRedisWaitsForTheDisk(t *testing.T) {
	o := redisOptions()
	o.Persistence, o.CallTimeout = PersistAlways, 10*time.Second
	stall := sim.Fault{Kind: sim.FsyncStall, On: []string{"redis-1"}, For: sim.Exactly(3 * time.Second), Trigger: at(time.Second)}
	inRedis(t, o, false, []sim.Fault{stall}, func(l *redisLab) {
		l.expect(1, "SET k v PX 2000 -> +OK")
		l.sleep(1100 * time.Millisecond)
		other := l.task.Dial(l.alone.proc)
		set, get := parseRedis(t, "SET m 1"), parseRedis(t, "GET k")
		first := l.task.Start(l.task.Dial(l.alone.proc), &set, 0)
		second := l.task.Start(other, &get, 0)
		began := l.task.Now()
		_, err := l.task.Await(first)
		require.NoError(t, err)
		require.Greater(t, l.task.Now().Sub(began), 2*time.Second)
		r, err := l.task.Await(second)
		require.NoError(t, err)
		require.Equal(t, "(nil)", plain(r.(*RedisReply)), "its time came meanwhile")
		l.sleep(10 * time.Millisecond)
		require.False(t, l.has(1, "k"))
	})
}

// A session's transaction and its WATCH end with its connection.
func TestRedisSessionsEnd(t *testing.T) {
	inRedis(t, redisOptions(), false, nil, func(l *redisLab) {
		l.expect(1, "WATCH k -> +OK", "MULTI -> +OK", "SET k 1 -> +QUEUED")
		l.task.Hangup(l.links[1].conn)
		l.sleep(10 * time.Millisecond)
		require.Empty(t, l.alone.db.watchers)
		l.expect(1, "EXEC -> -ERR EXEC without MULTI", "GET k -> (nil)")
	})
}

// Memory pressure and other services do what they do to a key without asking
// who holds it.
func TestRedisDeeds(t *testing.T) {
	faults := []sim.Fault{
		{Kind: sim.Evict, On: []string{"redis-1"}, Key: "lock", Trigger: at(time.Second)},
		{Kind: sim.Evict, On: []string{"redis-1"}, Key: "lock", Trigger: at(time.Second + time.Millisecond)},
		{Kind: sim.Overwrite, On: []string{"redis-1"}, Key: "lock", Trigger: at(3 * time.Second)},
		{Kind: sim.Overwrite, On: []string{"redis-1"}, Key: "lock", Value: "7", Trigger: at(5 * time.Second)},
	}
	inRedis(t, redisOptions(), false, faults, func(l *redisLab) {
		l.expect(1, "SET lock v PX 60000 -> +OK", "WATCH lock -> +OK")
		l.sleep(1500 * time.Millisecond)
		l.expect(1, "MULTI -> +OK", "EXEC -> (nil array)", "GET lock -> (nil)", "SET lock w PX 60000 -> +OK")
		l.sleep(2 * time.Second)
		l.expect(1, "GET lock -> \"overwritten\"", "TTL lock -> :-1")
		l.sleep(2 * time.Second)
		l.expect(1, "GET lock -> \"7\"")
		reports := l.env.World.FaultReports()
		require.Equal(t, []bool{false, true, false, false}, []bool{reports[0].Idle, reports[1].Idle, reports[2].Idle, reports[3].Idle})
		failover := sim.Plan{Faults: []sim.Fault{{Kind: sim.Failover, On: []string{"redis-1"}}}}
		require.EqualError(t, l.env.World.CheckPlan(failover), "fault 1: redis-1: it has no replicas, so there is nobody to fail over to; use a redis-replica design")
		require.Equal(t, Holding{}, l.alone.holding(redisLockKey), "nobody's operation put it there")
	})
}

// Whoever watches sees a key go at the very moment, without anybody's asking.
func TestRedisHoldingEndsInTime(t *testing.T) {
	inRedis(t, redisOptions(), false, nil, func(l *redisLab) {
		l.task.Op = 5
		l.expect(1, "SET lock v PX 100 -> +OK")
		until := clock.Reading(l.alone.db.entries[0].expires)
		require.Equal(t, Holding{Op: 5, Until: until}, l.alone.holding(redisLockKey))
		l.sleep(101 * time.Millisecond)
		require.Empty(t, l.alone.db.entries)
	})
}
