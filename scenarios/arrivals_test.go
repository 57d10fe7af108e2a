package scenarios

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/clock"
	"locklab/sim"
)

// The fixed-point inverse agrees with the mathematical function.
func TestExponential(t *testing.T) {
	const mean = time.Second
	for _, u := range []uint64{1, 2, 3, 1 << 20, 1<<62 - 1, 1 << 62, 1<<62 + 1, 3 << 61, 1<<63 - 1} {
		want := -math.Log(float64(u)/(1<<63)) * float64(mean)
		require.InDelta(t, want, float64(exponential(u, mean)), 5, "of %d", u)
	}
	require.Greater(t, exponential(1, durationMax), 43*durationMax, "no overflow")
	var sum, squares, above float64
	const n = 100_000
	for i := range n {
		u := sim.Seeded(7).Choose(sim.Choice{Key: uint64(i), Lo: 1, Hi: 1<<63 - 1})
		x := float64(exponential(uint64(u), mean)) / float64(mean)
		sum, squares = sum+x, squares+x*x
		if x > 1 {
			above++
		}
	}
	require.InDelta(t, 1, sum/n, 0.01)
	require.InDelta(t, 2, squares/n, 0.05, "the second moment of an exponential distribution")
	require.InDelta(t, 1/math.E, above/n, 0.005)
}

// openLoop are parameters of a run whose sections come from outside and do
// nothing but work, in a world without latency and without a lock.
func openLoop(clients, sections int, every, work time.Duration) Params {
	p := DefaultParams()
	p.Clients, p.Sections, p.Interarrival, p.Work = clients, sections, every, work
	p.LatencyMin, p.LatencyMax, p.Workload, p.Horizon = 0, 0, Write, durationMax
	return p
}

// TestQueueAgainstPollaczekKhinchine: Poisson arrivals, one worker, always the
// same work: an M/D/1 queue. Its mean wait is rho*D / (2*(1-rho)); with k
// workers and half the load it is much shorter.
func TestQueueAgainstPollaczekKhinchine(t *testing.T) {
	const work = 10 * time.Millisecond
	for _, rho := range []float64{0.3, 0.5, 0.8} {
		p := openLoop(1, 10_000, time.Duration(float64(work)/rho), work)
		p.Queue = totalSectionsMax
		mean := 0.0
		for seed := uint64(1); seed <= 5; seed++ {
			mean += meanWait(t, "none", p, seed) / 5
		}
		want := rho * float64(work) / (2 * (1 - rho))
		require.InEpsilon(t, want, mean, 0.04, "rho %v: %s", rho, time.Duration(mean))
	}
}

// meanWait is how long sections waited for a client, in nanoseconds.
func meanWait(t *testing.T, design string, p Params, seed uint64) float64 {
	sum := time.Duration(0)
	all := seeded(t, design, p, seed).Arrivals
	require.Len(t, all, p.Clients*p.Sections)
	for _, a := range all {
		require.Equal(t, ArrivalTaken, a.Fate)
		sum += time.Duration(a.Taken - a.At)
	}
	return float64(sum) / float64(len(all))
}

// TestServiceAgainstPollaczekKhinchine: the queue is at the server now. There
// are clients enough that no section waits for one, and each sends one request.
func TestServiceAgainstPollaczekKhinchine(t *testing.T) {
	const service = 10 * time.Millisecond
	for _, rho := range []float64{0.3, 0.5, 0.8} {
		p := openLoop(100, 500, time.Duration(float64(service)/rho), 0)
		p.ServiceTime, p.CallTimeout = service, time.Minute
		sum, n := time.Duration(0), 0
		res := seeded(t, "none", p, 1)
		for i := range res.History.Ops {
			if o := &res.History.Ops[i]; o.Kind == checker.Write {
				sum += time.Duration(o.Return.At-o.Invoke.At) - service
				n++
			}
		}
		require.Equal(t, 50_000, n)
		want := rho * float64(service) / (2 * (1 - rho))
		require.InEpsilon(t, want, float64(sum)/float64(n), 0.04, "rho %v", rho)
	}
}

// TestRefusalsAgainstErlang: without a queue, what finds every client busy is
// refused. The share is Erlang's loss formula, whatever the work's distribution.
func TestRefusalsAgainstErlang(t *testing.T) {
	const clients, work = 5, 10 * time.Millisecond
	for _, erlangs := range []float64{2, 4, 8} {
		p := openLoop(clients, 10_000, time.Duration(float64(work)/erlangs), work)
		p.Queue = 0
		loss := 1.0 // B(0), then B(k) = a*B(k-1) / (k + a*B(k-1))
		for k := 1.0; k <= clients; k++ {
			loss = erlangs * loss / (k + erlangs*loss)
		}
		m := Measure(seeded(t, "none", p, 1))
		require.Equal(t, clients*10_000, m.Arrived)
		require.InDelta(t, loss, float64(m.Refused)/float64(m.Arrived), 0.003, "%v erlangs", erlangs)
	}
}

// TestArrivals spells one small case out: one client, 10 ms of work, a section
// every 4 ms, room for one.
func TestArrivals(t *testing.T) {
	p := openLoop(1, 6, 4*time.Millisecond, 10*time.Millisecond)
	p.Spacing, p.Queue = Even, 1
	fates := func(p Params) string {
		var s string
		for _, a := range seeded(t, "none", p, 1).Arrivals {
			s += fmt.Sprint(time.Duration(a.At), " ")
			switch a.Fate {
			case ArrivalTaken:
				s += fmt.Sprint("at ", time.Duration(a.Taken), "; ")
			case ArrivalRefused:
				s += "refused; "
			case ArrivalLeft:
				s += "left; "
			}
		}
		return s
	}
	require.Equal(t, "4ms at 4ms; 8ms at 14ms; 12ms refused; 16ms at 24ms; 20ms refused; 24ms refused; ", fates(p), "24ms comes when 16ms is still in the queue")
	p.Queue, p.Wait = 3, 9*time.Millisecond
	require.Equal(t, "4ms at 4ms; 8ms at 14ms; 12ms left; 16ms at 24ms; 20ms left; 24ms left; ", fates(p))
	p.Clients, p.Sections = 2, 3
	require.Equal(t, "4ms at 4ms; 8ms at 8ms; 12ms at 14ms; 16ms at 18ms; 20ms at 24ms; 24ms at 28ms; ", fates(p))
}

// TestSameArrivalsUnderEveryDesign: a design changes when sections are begun,
// never when they are asked for.
func TestSameArrivalsUnderEveryDesign(t *testing.T) {
	p := openLoop(3, 20, 50*time.Millisecond, 20*time.Millisecond)
	times := func(design string, spacing Spacing) (out []clock.Time) {
		p.Spacing = spacing
		for _, a := range seeded(t, design, p, 3).Arrivals {
			out = append(out, a.At)
		}
		return out
	}
	for _, s := range []Spacing{Exponential, Uniform, Even} {
		require.Len(t, times("none", s), 60)
		require.Equal(t, times("none", s), times("redis/lua-release", s), s)
		require.Equal(t, times("none", s), times("etcd/lock", s), s)
	}
	require.NotEqual(t, times("none", Uniform), times("none", Exponential))
}

// seeded runs a design on plain.
func seeded(t *testing.T, design string, p Params, seed uint64) *Result {
	t.Helper()
	d, err := FindDesign(design)
	require.NoError(t, err)
	kind, err := FindResource("plain")
	require.NoError(t, err)
	r, err := NewRunner(Case{Design: d, Resource: kind, Params: p})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	res, err := r.Run(seed, sim.TraceOff)
	require.NoError(t, err)
	require.Nil(t, res.Failure)
	return res
}
