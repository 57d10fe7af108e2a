package models

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/sim"
)

// holdersOf are the operations that a sorted set has as holders.
func holdersOf(s *redisServer, limit int32) []int32 {
	var out []int32
	for _, h := range s.admitted(redisLockKey, limit, nil) {
		out = append(out, h.Op)
	}
	return out
}

// Who stood among the first when it was added has a permit, and keeps it when
// somebody with an earlier time comes to stand before it. Who did not has none
// either when there is room later: its client has been told so.
func TestSemaphoreAdmitsByTheRankAtEntry(t *testing.T) {
	for _, engine := range Engines() {
		e, err := newRedisEngine(engine)
		require.NoError(t, err)
		e.start(nil)
		run := func(op int32, line string) {
			c := parseRedis(t, line)
			e.run(&c, &redisSession{}, wallAt(0), op)
		}
		holders := func() (out []int32) {
			if k := e.peek("z"); k != nil {
				for _, m := range k.members {
					if m.entered < 2 {
						out = append(out, m.op)
					}
				}
			}
			return out
		}
		run(1, "ZADD z 10 a")
		run(2, "ZADD z 11 b")
		run(3, "ZADD z 12 c")
		require.Equal(t, []int32{1, 2}, holders(), engine)
		run(4, "ZADD z 5 d") // by a slow clock
		require.Equal(t, []int32{4, 1, 2}, holders(), engine)
		run(5, "ZREM z a")
		run(5, "ZREM z d")
		require.Equal(t, []int32{2}, holders(), "%s: c stands second now, and knows nothing of it", engine)
		run(6, "ZADD z 20 b") // another time is no other permit
		require.Equal(t, []int32{2}, holders(), engine)
		run(7, "DEL z")
		require.Empty(t, holders(), engine)
	}
}

// A file keeps who was admitted; without one a crash forgets it.
func TestSemaphoreSurvivesWithItsFile(t *testing.T) {
	for _, c := range []struct {
		persistence string
		want        int
	}{{PersistNone, 0}, {PersistAlways, 2}} {
		o := redisOptions()
		o.Persistence = c.persistence
		inRedis(t, o, false, nil, func(l *redisLab) {
			for i, line := range []string{"ZADD lock 10 a", "ZADD lock 11 b", "ZADD lock 12 c"} {
				l.task.Op = int32(i + 1)
				l.ask(1, line)
			}
			require.Equal(l, []int32{1, 2}, holdersOf(l.alone, 2))
		})
		inRedis(t, o, false, []sim.Fault{crashAt(50*time.Millisecond, "redis-1", "", 10*time.Millisecond)}, func(l *redisLab) {
			for i, line := range []string{"ZADD lock 10 a", "ZADD lock 11 b", "ZADD lock 12 c"} {
				l.task.Op = int32(i + 1)
				l.ask(1, line)
			}
			l.sleep(100 * time.Millisecond)
			require.Len(l, holdersOf(l.alone, 2), c.want, c.persistence)
		})
	}
}
