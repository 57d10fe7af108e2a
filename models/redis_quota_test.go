package models

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/sim"
)

// inQuota runs a client's program before a quota of two in ten seconds. count
// counts once more, under a number of an operation, and returns whose
// admissions are current then.
func inQuota(t *testing.T, faults []sim.Fault, program func(l *redisLab, count func(op int32) []int32)) {
	o := redisOptions()
	o.Permits = 2
	inRedis(t, o, false, faults, func(l *redisLab) {
		book := &quotaBook{server: l.alone, ttl: o.TTL.Milliseconds(), limit: 2}
		program(l, func(op int32) []int32 {
			if l.task.Op = op; op != 0 {
				l.ask(1, "EVAL countIfRoom lock 2 10000")
			}
			var out []int32
			for _, h := range book.holders(nil) {
				out = append(out, h.Op)
			}
			return out
		})
	})
}

// Two are let in, a third is not, and the next window begins without them.
func TestQuotaCountsAWindow(t *testing.T) {
	inQuota(t, nil, func(l *redisLab, count func(int32) []int32) {
		require.Equal(l, []int32{1}, count(1))
		require.Equal(l, []int32{1, 2}, count(2))
		require.Equal(l, []int32{1, 2}, count(3))
		l.sleep(10 * time.Second)
		require.Empty(l, count(0))
		require.Equal(l, []int32{4}, count(4))
	})
}

// A counter that is lost takes back nobody who was let in: their window lasts
// as long as it would have.
func TestQuotaRemembersALostCounter(t *testing.T) {
	crash := []sim.Fault{crashAt(time.Second, "redis-1", "", 10*time.Millisecond)}
	inQuota(t, crash, func(l *redisLab, count func(int32) []int32) {
		count(1)
		count(2)
		l.sleep(2 * time.Second)
		require.Equal(l, []int32{1, 2}, count(0))
		require.Equal(l, []int32{1, 2, 3}, count(3), "more than two in ten seconds")
		l.sleep(8500 * time.Millisecond)
		require.Equal(l, []int32{3}, count(0), "the lost window is over, the new one not")
	})
}
