package scenarios

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/clock"
	"locklab/sim"
)

// asks is a history's acquire: who, when asked, when answered and how. Times
// are in milliseconds; 0 is never.
type asks struct {
	client, section int32
	from, to        int
	outcome         checker.Outcome
}

// waitsOf is a run of these acquires, in order of invocation.
func waitsOf(ended sim.EndReason, ops ...asks) *Result {
	h := &checker.History{Clients: []string{"client-1", "client-2", "client-3"}, End: msec(1000)}
	for i, a := range ops {
		o := checker.Op{ID: int32(i + 1), Client: a.client - 1, Section: a.section, Tenure: int32(i + 1), Kind: checker.Acquire,
			Outcome: a.outcome, Invoke: checker.Instant{At: msec(a.from)}, Return: checker.Never, Effect: checker.Never}
		if a.to > 0 {
			o.Return = checker.Instant{At: msec(a.to)}
		}
		h.Ops = append(h.Ops, o)
	}
	return &Result{History: h, Ended: ended}
}

func msec(n int) clock.Time { return clock.Time(n) * clock.Time(time.Millisecond) }

// In order: client-2 and client-3 wait for client-1 and are served as they came.
func TestMeasuresOfAFairQueue(t *testing.T) {
	m := Measure(waitsOf(sim.EndDone, asks{1, 1, 0, 2, checker.OK}, asks{2, 1, 1, 10, checker.OK}, asks{3, 1, 3, 20, checker.OK}))
	require.Equal(t, 3, m.Waits)
	require.Equal(t, 3, m.Served)
	require.Equal(t, 2, m.WaitersMax)
	require.Zero(t, m.OvertakenMax)
	require.Zero(t, m.OutOfOrder)
	require.EqualValues(t, 1000, m.Success())
	require.Equal(t, 9*time.Millisecond, m.WaitMedian)
	require.Equal(t, 17*time.Millisecond, m.WaitMax)
}

// client-2 asks first, and the others get it three times before it does.
func TestMeasuresOfAnUnfairLock(t *testing.T) {
	m := Measure(waitsOf(sim.EndDone, asks{2, 1, 1, 90, checker.OK}, asks{1, 1, 2, 10, checker.OK}, asks{3, 1, 5, 30, checker.OK}, asks{1, 2, 20, 40, checker.OK}))
	require.Equal(t, 3, m.OvertakenMax)
	require.Equal(t, 3, m.OutOfOrder)
	require.Equal(t, 89*time.Millisecond, m.WaitMax)
	// client-3 asked before client-1's second section, and was served before it.
	require.Equal(t, 3, m.WaitersMax)
}

// client-2 waits until the run is cut off: it starves, and was overtaken.
func TestMeasuresOfStarvation(t *testing.T) {
	ops := []asks{{2, 1, 1, 0, checker.Unknown}, {1, 1, 2, 10, checker.OK}, {1, 2, 20, 30, checker.OK}}
	m := Measure(waitsOf(sim.EndHorizon, ops...))
	require.Equal(t, 1, m.Starved)
	require.Equal(t, 2, m.OvertakenMax)
	require.Equal(t, 999*time.Millisecond, m.WaitMax)
	require.EqualValues(t, 667, m.Success())
	// When everybody has finished nobody waits: it had given up, and never knew.
	m = Measure(waitsOf(sim.EndDone, ops...))
	require.Zero(t, m.Starved)
	require.Equal(t, 1, m.GaveUp)
}

// An acquire after an unknown outcome goes on with the same wait; one of the
// next section says that the client had given up; a crash is neither.
func TestMeasuresOfUnknownOutcomes(t *testing.T) {
	m := Measure(waitsOf(sim.EndDone, asks{1, 1, 0, 0, checker.Unknown}, asks{1, 1, 50, 60, checker.OK}))
	require.Equal(t, 1, m.Waits)
	require.Equal(t, 60*time.Millisecond, m.WaitMax)
	m = Measure(waitsOf(sim.EndDone, asks{1, 1, 0, 0, checker.Unknown}, asks{1, 2, 50, 60, checker.OK}))
	require.Equal(t, []int{2, 1, 1}, []int{m.Waits, m.Served, m.GaveUp})
	require.Equal(t, 50*time.Millisecond, m.WaitMax)
	m = Measure(waitsOf(sim.EndDone, asks{1, 1, 0, 30, checker.Refused}, asks{2, 1, 50, 60, checker.OK}))
	require.Equal(t, []int{2, 1, 1}, []int{m.Waits, m.Served, m.GaveUp})
	crashed := waitsOf(sim.EndDone, asks{1, 1, 0, 0, checker.Unknown}, asks{2, 1, 1, 5, checker.OK})
	o := &crashed.History.Ops[0]
	o.Loss, o.BelievesUntil = checker.LossCrashed, checker.Instant{At: msec(7)}
	m = Measure(crashed)
	require.Equal(t, []int{2, 1, 1, 0, 0}, []int{m.Waits, m.Served, m.Crashed, m.GaveUp, m.Starved})
	require.EqualValues(t, 1000, m.Success())
}

// Two clients under a lock. The release at 20 ms sets off one request, or, when
// everybody wakes up, four; renewals and writes are no lock requests.
func TestMeasuresOfRequests(t *testing.T) {
	run := func(at ...int) Measures {
		res := waitsOf(sim.EndDone, asks{1, 1, 0, 2, checker.OK}, asks{2, 1, 1, 30, checker.OK})
		h := res.History
		h.Ops = append(h.Ops,
			checker.Op{ID: 3, Tenure: 1, Section: 1, Kind: checker.Write, Decision: checker.Accepted},
			checker.Op{ID: 4, Tenure: 1, Section: 1, Kind: checker.Renew},
			checker.Op{ID: 5, Tenure: 1, Section: 1, Kind: checker.Release, Effect: checker.Instant{At: msec(20)}})
		res.Requests = []Request{{msec(0), 1}, {msec(1), 2}, {msec(10), 3}, {msec(11), 4}, {msec(19), 5}}
		for _, ms := range at {
			res.Requests = append(res.Requests, Request{msec(ms), 2})
		}
		return Measure(res)
	}
	good := run(21)
	require.Equal(t, []int{6, 4, 1, 1}, []int{good.Requests, good.LockRequests, good.Releases, good.HerdMax})
	require.EqualValues(t, 4000, good.PerRelease())
	require.EqualValues(t, 6000, good.PerSection())
	require.EqualValues(t, 1000, good.PerSecond(), "one section in the one second that the run lasts")
	require.Equal(t, 4, good.SecondMax)
	require.Equal(t, 2, good.BurstMax)
	require.Equal(t, 1, good.RetriesMax)
	herd := run(21, 21, 22, 22, 31, 1020)
	require.Equal(t, 4, herd.HerdMax)
	require.EqualValues(t, 4000, herd.HerdMean)
	require.Equal(t, 4, herd.RetriesMax)
	require.Equal(t, 5, herd.BurstMax, "the release and the four")
	require.Equal(t, 8, herd.SecondMax, "all but the one at 1020 ms")
	require.EqualValues(t, 9000, herd.PerRelease())
}

func TestMeasuresOfArrivals(t *testing.T) {
	res := waitsOf(sim.EndDone, asks{1, 1, 10, 12, checker.OK}, asks{2, 1, 20, 25, checker.Refused}, asks{1, 2, 30, 31, checker.OK})
	res.Arrivals = []Arrival{
		{At: msec(10), Fate: ArrivalTaken, Client: 0, Section: 1},
		{At: msec(11), Fate: ArrivalTaken, Client: 1, Section: 1},
		{At: msec(12), Fate: ArrivalRefused},
		{At: msec(13), Fate: ArrivalTaken, Client: 0, Section: 2},
		{At: msec(14), Fate: ArrivalLeft},
	}
	m := Measure(res)
	require.Equal(t, []int{5, 1, 1, 1}, []int{m.Arrived, m.Refused, m.Left, m.GaveUp})
	require.EqualValues(t, 600, m.NotServed())
	require.Equal(t, 2*time.Millisecond, m.DelayMedian)
	require.Equal(t, 18*time.Millisecond, m.Delay99)
	require.Equal(t, Measures{}, Measure(&Result{History: &checker.History{}}), "of nothing")
}

func TestPercentile(t *testing.T) {
	var d []time.Duration
	for i := range 200 {
		d = append(d, time.Duration(i+1))
	}
	require.EqualValues(t, 100, percentile(d, 50))
	require.EqualValues(t, 198, percentile(d, 99))
	require.EqualValues(t, 1, percentile(d[:1], 99))
}

// The recipes' own numbers: after a release one waiter asks under
// zookeeper/lock, and every waiter twice under zookeeper/lock-herd (it lists
// the nodes, and watches the next owner's), but for the new owner, who lists
// only.
func TestHerdOfTheZooKeeperRecipes(t *testing.T) {
	for _, n := range []int{2, 5, 9} {
		for design, want := range map[string]int{"zookeeper/lock": 1, "zookeeper/lock-herd": 2*(n-1) - 1} {
			p := DefaultParams()
			p.Clients, p.Sections, p.Stagger = n, 1, 20*time.Millisecond
			m := Measure(seeded(t, design, p, 1))
			require.Equal(t, n, m.Served, design)
			require.Equal(t, want, m.HerdMax, "%s with %d clients", design, n)
			require.Zero(t, m.OutOfOrder, design)
		}
	}
}

// A span holds its beginning and not its end.
func TestMostWithin(t *testing.T) {
	ms := func(list ...int64) (out []clock.Time) {
		for _, m := range list {
			out = append(out, clock.Time(m*1e6))
		}
		return out
	}
	require.Equal(t, 0, mostWithin(nil, Burst))
	require.Equal(t, 1, mostWithin(ms(0, 11, 22), Burst))
	require.Equal(t, 3, mostWithin(ms(0, 100, 105, 109, 121), Burst))
	require.Equal(t, 2, mostWithin(ms(0, 100, 105, 110, 121), Burst))
}
