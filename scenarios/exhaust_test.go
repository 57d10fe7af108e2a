package scenarios

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/sim"
)

// smallSearch is a search of one design and resource with few places.
func smallSearch(t *testing.T, design, resource, set string, faults ...string) ExhaustConfig {
	t.Helper()
	settings, err := ParseSet(set)
	require.NoError(t, err)
	p, err := ExhaustParams(settings)
	require.NoError(t, err)
	ds, err := PickDesigns([]string{design})
	require.NoError(t, err)
	rs, err := PickResources([]string{resource})
	require.NoError(t, err)
	kinds, err := ParseFaultKinds(faults)
	require.NoError(t, err)
	if len(faults) == 0 {
		kinds = nil
	}
	return ExhaustConfig{Design: ds[0], Resource: rs[0], Params: p, Kinds: kinds, MaxFaults: 1, Workers: 2}
}

func exhausted(t *testing.T, c ExhaustConfig) *Exhausted {
	t.Helper()
	e, err := Exhaust(context.Background(), c)
	require.NoError(t, err)
	return e
}

// described is everything that a search says, as text.
func described(e *Exhausted) string {
	var b strings.Builder
	fmt.Fprintln(&b, e.Headline(), e.Complete, e.Stopped, e.Ladder)
	for _, l := range e.Levels {
		fmt.Fprintf(&b, "%+v\n", l)
	}
	for _, f := range e.Fewest {
		fmt.Fprintln(&b, f.Answer, f.Faults, f.Runs, f.Words)
		for _, k := range f.Kinds {
			fmt.Fprintln(&b, k.Kinds, k.Runs)
			if k.Plan != nil {
				b.Write(MarshalPlanFile(k.Plan))
			}
		}
	}
	return b.String()
}

func TestOneFaultLetsTwoWriteUnderALease(t *testing.T) {
	e := exhausted(t, smallSearch(t, "redis/lua-release", "plain", "sections=2"))
	two := e.TwoWriters()
	require.NotNil(t, two)
	require.Equal(t, 1, two.Faults)
	var kinds []string
	for _, k := range two.Kinds {
		kinds = append(kinds, k.Kinds)
	}
	require.Subset(t, kinds, []string{"pause", "clock-step", "delay"})
	require.True(t, e.Complete)
	require.Equal(t, int64(1), e.Levels[0].Executions)
	require.Equal(t, int64(1), e.Levels[0].Verdicts["safe"], "the baseline is safe")
}

// Kleppmann's point about read-modify-write, found without being told: one
// pause is enough against fencing the writes, and none against versions costs
// an update.
func TestFencedWritesLoseAnUpdateAndVersionsDoNot(t *testing.T) {
	lost := func(resource string) *Fewest {
		e := exhausted(t, smallSearch(t, "redis/lua-token", resource, "sections=1", "pause"))
		for i := range e.Fewest {
			if e.Fewest[i].Answer == UpdateLost {
				return &e.Fewest[i]
			}
		}
		return nil
	}
	require.NotNil(t, lost("fenced"))
	require.Nil(t, lost("fenced-reads"))
	require.Nil(t, lost("versioned"))
	require.Nil(t, lost("marked"))
}

func TestExhaustDoesNotDependOnItsWorkers(t *testing.T) {
	c := smallSearch(t, "redis/lua-token", "fenced", "sections=1,retry=4s", "pause", "drop-reply")
	c.MaxFaults, c.KeepGoing, c.Workers = 2, true, 1
	one := described(exhausted(t, c))
	for _, workers := range []int{2, 5} {
		c.Workers = workers
		require.Equal(t, one, described(exhausted(t, c)))
	}
}

// The pruning leaves nothing out: placing process faults also before draws,
// message faults also where nothing is sent and clock steps also where nobody
// looks (and running plans again that are known to give the same run) shows
// no run that the search does not show.
func TestPruningAgainstBruteForce(t *testing.T) {
	searches := []ExhaustConfig{
		smallSearch(t, "redis/lua-release", "plain", "sections=1,retry=5s", "pause"),
		smallSearch(t, "redis/lua-release", "plain", "sections=1,retry=5s", "crash"),
		smallSearch(t, "redis/lua-token", "fenced", "sections=1,retry=5s", "drop-request", "cut"),
		smallSearch(t, "redis/watchdog", "plain", "sections=1,retry=5s", "stall", "drop-reply"),
		smallSearch(t, "redlock/wall-clock", "plain", "sections=1,retry=20s,nodes=3", "clock-step"),
	}
	if testing.Short() { // under the race detector
		searches = searches[:1]
	}
	for _, c := range searches {
		c.MaxFaults, c.KeepGoing = 2, true
		pruned, brute := shows(t, c, false), shows(t, c, true)
		require.Less(t, pruned.runs, brute.runs, c.Design.Name)
		for run, plan := range brute.seen {
			_, found := pruned.seen[run]
			require.True(t, found, "%s on %s shows by brute force alone:\n%s\n%s", c.Design.Name, c.Resource.Name, plan, run)
		}
		require.Len(t, brute.seen, len(pruned.seen), "all that the search places, brute force places too")
		t.Logf("%s on %s: %d runs pruned, %d by brute force, %d different", c.Design.Name, c.Resource.Name, pruned.runs, brute.runs, len(brute.seen))
	}
}

type shown struct {
	runs int64
	seen map[string]string // what a run showed, to the first plan that did
}

// shows runs a search and keeps what each of its runs showed to anybody: the
// whole history with its times.
func shows(t *testing.T, c ExhaustConfig, brute bool) shown {
	t.Helper()
	c.Workers = 1
	x, err := newExplorer(c)
	require.NoError(t, err)
	defer x.close()
	x.brute = brute
	out := shown{seen: map[string]string{}}
	x.onRun = func(res *Result, faults []sim.Fault) {
		if run := visible(res); out.seen[run] == "" {
			out.seen[run] = string(MarshalPlan(sim.Plan{Faults: faults}))
		}
	}
	for faults := 0; faults <= c.MaxFaults; faults++ {
		tally, err := x.level(context.Background(), faults)
		require.NoError(t, err)
		out.runs += tally.runs
	}
	return out
}

// visible is what a run showed: every operation with its times, and the two
// answers. When a client called something counts from what it sent: a stop
// before a draw and one after it differ in nothing else.
func visible(res *Result) string {
	var b strings.Builder
	fmt.Fprintln(&b, res.Verdict, res.Report.Lock, res.History.Final)
	for _, o := range res.History.Ops {
		o.Invoke, o.Sent = checker.Instant{}, checker.Instant{At: o.Sent.At}
		for _, at := range []*checker.Instant{&o.Return, &o.Effect, &o.Granted, &o.Ended, &o.BelievesUntil, &o.SessionLost} {
			at.Step = 0
		}
		fmt.Fprintf(&b, "%+v\n", o)
	}
	return b.String()
}

func TestExhaustStopsCleanly(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c := smallSearch(t, "redis/lua-release", "plain", "sections=2,retry=5s", "pause")
	c.MaxFaults, c.KeepGoing = 2, true
	c.Progress = func(p ExhaustProgress) {
		if p.Faults == 2 {
			cancel()
		}
	}
	e, err := Exhaust(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, e.Levels, 3)
	require.True(t, e.Levels[1].Complete)
	require.False(t, e.Levels[2].Complete)
	require.False(t, e.Complete)
	require.Greater(t, e.Levels[2].Executions, int64(0))
}

// Every plan that is found repeats exactly from its file, with the same
// answers.
func TestFoundPlansReplay(t *testing.T) {
	e := exhausted(t, smallSearch(t, "redis/lua-token", "fenced", "sections=2"))
	require.NotEmpty(t, e.Fewest)
	for _, f := range e.Fewest {
		require.NotNil(t, f.Shortest, f.Answer)
		back, err := LoadPlanFile(MarshalPlanFile(f.Shortest), "plan.yaml")
		require.NoError(t, err)
		r, err := NewRunner(Case{Design: e.Design, Resource: e.Resource, Params: back.Params, Plan: back.Plan})
		require.NoError(t, err)
		res, err := r.Run(back.Seed, sim.TraceHash)
		require.NoError(t, err)
		require.Equal(t, back.TraceHash, fmt.Sprintf("%016x", res.Hash))
		require.Equal(t, back.Verdict, res.Verdict.String())
		require.Equal(t, back.Lock, res.Report.Lock.String())
		for _, r := range res.Faults {
			require.True(t, r.Fired)
		}
		r.Close()
	}
}

func TestExhaustParams(t *testing.T) {
	p, err := ExhaustParams([]Setting{{"ttl", "30s"}})
	require.NoError(t, err)
	require.Equal(t, 1500*time.Millisecond, p.Retry)
	require.Equal(t, 450*time.Second, p.Horizon)
	_, err = ExhaustParams([]Setting{{"retry_jitter", "1ms"}})
	require.ErrorContains(t, err, "without chance")
	_, err = ExhaustParams([]Setting{{"ttl", "-1s"}})
	require.ErrorContains(t, err, "ttl")
	_, err = ParseFaultKinds([]string{"puase"})
	require.EqualError(t, err, `unknown fault "puase"; did you mean "pause"?`)
	for _, n := range []int{0, 5} {
		c := smallSearch(t, "none", "plain", "sections=1")
		c.MaxFaults = n
		_, err = Exhaust(context.Background(), c)
		require.ErrorContains(t, err, "allowed are 1 to 4")
	}
}

// With --all-points the messages between servers are points too: of those that
// a server sends when it has handled something, the first to each peer is lost
// in one run. Without it only what clients send is.
func TestAllPointsReachWhatServersSay(t *testing.T) {
	c := smallSearch(t, "etcd/lock", "plain", "sections=1,retry=4s", "drop-request")
	r, err := NewRunner(Case{Design: c.Design, Resource: c.Resource, Params: c.Params})
	require.NoError(t, err)
	defer r.Close()
	lostIn := func(all bool) map[string]int {
		c.AllPoints, c.Workers = all, 1
		x, err := newExplorer(c)
		require.NoError(t, err)
		defer x.close()
		lost := map[string]int{}
		x.onRun = func(_ *Result, faults []sim.Fault) {
			require.NoError(t, r.SetPlan(sim.Plan{Faults: faults}))
			res, err := r.Run(1, sim.TraceRecord)
			require.NoError(t, err)
			for _, m := range requestsIn(res) {
				if m.lost {
					lost[m.name]++
				}
			}
		}
		for faults := range 2 {
			_, err := x.level(context.Background(), faults)
			require.NoError(t, err)
		}
		return lost
	}
	require.NoError(t, r.SetPlan(sim.Plan{}))
	res, err := r.Run(1, sim.TraceRecord)
	require.NoError(t, err)
	usual, all := lostIn(false), lostIn(true)
	betweenServers := 0
	for _, m := range requestsIn(res) {
		switch {
		case !m.peer:
			require.Equal(t, 1, usual[m.name], m.name)
			require.Equal(t, 1, all[m.name], m.name)
		case m.first:
			betweenServers++
			require.Zero(t, usual[m.name], m.name)
			require.Equal(t, 1, all[m.name], m.name)
		}
	}
	require.Greater(t, betweenServers, 50)
}

// sentRequest is a request, or a message between servers.
type sentRequest struct {
	name  string // its link and its number there
	peer  bool   // between servers
	first bool   // to this peer since its sender handled something
	lost  bool
}

func requestsIn(res *Result) []sentRequest {
	var out []sentRequest
	byMessage, onLink := map[uint32]int{}, map[string]int{}
	handled, spoke := map[sim.ProcID]int{}, map[string]int{} // spoke: after how many of them
	procs := res.World.Processes()
	for i := range res.Trace {
		switch e := &res.Trace[i]; e.Kind {
		case sim.EventArrive:
			handled[e.Proc]++
		case sim.EventSend:
			server := procs[e.Proc].IsServer()
			if server && (e.Place.Phase != sim.PhaseSend || !procs[e.Peer].IsServer()) || e.Body == sim.Payload(sim.Text("FIN")) {
				continue // an answer, or the kernel's
			}
			link := procs[e.Proc].Name() + "->" + procs[e.Peer].Name()
			onLink[link]++
			m := sentRequest{name: fmt.Sprintf("%s %d", link, onLink[link]), peer: server}
			m.first = handled[e.Proc] > 0 && spoke[link] < handled[e.Proc]
			spoke[link] = handled[e.Proc]
			byMessage[e.Msg] = len(out)
			out = append(out, m)
		case sim.EventLost:
			if n, ok := byMessage[e.Msg]; ok && e.A == 0 {
				out[n].lost = true
			}
		}
	}
	return out
}
