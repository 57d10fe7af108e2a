package scenarios

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/clock"
	"locklab/sim"
)

// smallSpec is a comparison that takes a second.
func smallSpec(parts ...string) CompareSpec {
	return CompareSpec{Seed: 1, Runs: 8, Quick: true, Only: parts,
		Designs: []string{"redis/lua-token", "postgres/advisory-session"}, Scenarios: []string{"kleppmann/gc-pause"}}
}

func comparisonJSON(t *testing.T, c *Comparison) string {
	var b bytes.Buffer
	require.NoError(t, c.WriteJSON(&b))
	return b.String()
}

// A comparison is the same for any number of workers, byte for byte, and can be
// read again.
func TestComparisonDoesNotDependOnWorkers(t *testing.T) {
	one, err := Compare(context.Background(), smallSpec(), CompareOptions{Workers: 1})
	require.NoError(t, err)
	four, err := Compare(context.Background(), smallSpec(), CompareOptions{Workers: 4})
	require.NoError(t, err)
	text := comparisonJSON(t, one)
	require.Equal(t, text, comparisonJSON(t, four))
	require.True(t, one.Complete)
	again, err := ReadComparison(strings.NewReader(text), "results.json")
	require.NoError(t, err)
	require.Equal(t, text, comparisonJSON(t, again))
	for _, p := range one.Parts {
		require.Equal(t, PartComplete, p.State, p.Name)
	}
	require.NotEmpty(t, one.Matrix)
	require.NotEmpty(t, one.Fewest)
	require.NotEmpty(t, one.Scenarios)
	require.NotEmpty(t, one.Curves)
	require.NotEmpty(t, one.Recovery)
	require.NotEmpty(t, one.Prices)
}

// The expected harm is found: a lease on a plain resource falls to a pause, a
// session lock does not, and the first seed is the one that the command runs.
func TestMatrixFindsWhatIsKnown(t *testing.T) {
	c, err := Compare(context.Background(), smallSpec(PartFewest, PartMatrix, PartStories), CompareOptions{})
	require.NoError(t, err)
	cell := func(design, family string) *MatrixCell {
		for i := range c.Matrix {
			if m := &c.Matrix[i]; m.Design == design && m.Resource == "plain" && m.Family == family {
				return m
			}
		}
		t.Fatalf("no cell of %s under %s", design, family)
		return nil
	}
	lease := cell("redis/lua-token", "pause")
	require.Equal(t, "two-writers", lease.Worst)
	require.Equal(t, 1, lease.Fewest)
	require.True(t, lease.Proven)
	require.Contains(t, lease.Command, "--faults pause --design redis/lua-token --resource plain")
	require.Equal(t, "safe", cell("postgres/advisory-session", "pause").Worst)
	require.Equal(t, "safe", cell("redis/lua-token", "none").Worst)
	require.False(t, cell("redis/lua-token", "failover").Possible, "there is no replica")
	require.True(t, cell("redis/lua-token", "disk").Possible)
	require.NotEmpty(t, lease.SavedBy)
	for _, f := range c.Families {
		require.Equal(t, f.Operator, f.Name == "operator")
	}
}

// Every story replays: same verdict, same trace.
func TestStoriesReplay(t *testing.T) {
	c, err := Compare(context.Background(), smallSpec(PartFewest, PartMatrix, PartStories, PartScenarios), CompareOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, c.Stories)
	for _, s := range c.Stories {
		f, err := LoadPlanFile([]byte(s.Plan), s.File())
		require.NoError(t, err)
		design, err := FindDesign(f.Design)
		require.NoError(t, err)
		resource, err := FindResource(f.Resource)
		require.NoError(t, err)
		r, err := NewRunner(Case{Design: design, Resource: resource, Params: f.Params, Plan: f.Plan})
		require.NoError(t, err)
		res, err := r.Run(f.Seed, sim.TraceHash)
		require.NoError(t, err)
		require.Equal(t, s.Verdict, res.Verdict.String(), s.ID)
		require.Equal(t, f.TraceHash, res.PlanFile().TraceHash, s.ID)
		r.Close()
	}
	for i := range c.Matrix {
		if m := &c.Matrix[i]; m.Story != "" {
			require.Equal(t, m.Worst, c.Story(m.Story).Verdict)
		} else {
			require.False(t, isHarm(m.Worst))
		}
	}
}

// What was done before an interruption stays, and is marked.
func TestInterruptedComparisonSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := Compare(ctx, smallSpec(PartMatrix, PartPrice), CompareOptions{Workers: 1, Progress: func(part string, _ int) {
		if part == PartPrice {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, c.Complete)
	require.Equal(t, PartComplete, c.State(PartMatrix))
	require.Equal(t, PartInterrupted, c.State(PartPrice))
	require.Equal(t, PartLeftOut, c.State(PartHerd))
	require.NotEmpty(t, c.Matrix)
	_, err = ReadComparison(strings.NewReader(comparisonJSON(t, c)), "results.json")
	require.NoError(t, err)
}

func TestComparisonRefusesNonsense(t *testing.T) {
	for _, bad := range []struct {
		spec CompareSpec
		says string
	}{
		{CompareSpec{Only: []string{"matrx"}}, "matrix"},
		{CompareSpec{Designs: []string{"redis/lua-tokn"}}, "redis/lua-token"},
		{CompareSpec{Runs: -1}, "--runs"},
		{CompareSpec{Only: []string{"stories"}}, "matrix as well"},
		{CompareSpec{Set: "ttl=soon"}, "--set"},
		{CompareSpec{Designs: []string{"none"}, Resources: []string{"fenced"}}, "none of these designs"},
		{CompareSpec{Scenarios: []string{"kleppmann/gc-paus"}}, "kleppmann/gc-pause"},
	} {
		_, err := NewComparison(bad.spec, nil)
		require.ErrorContains(t, err, bad.says)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := ReadComparison(strings.NewReader(`{"schema": 99}`), "x.json")
	require.ErrorContains(t, err, "schema is 99")
	_, err = ReadComparison(strings.NewReader(`nonsense`), "x.json")
	require.ErrorContains(t, err, "x.json")
}

// A panic is no verdict: it is told, with what repeats it.
func TestPanicsAreTold(t *testing.T) {
	c := &Comparison{Families: FaultFamilies(), Matrix: []MatrixCell{{Design: "d", Resource: "r", Family: "pause", Runs: 9, Panics: 2}},
		Fewest: []FewestCell{{Design: "d", Resource: "r", Panics: 3}}}
	runs, command := c.Panics()
	require.Equal(t, int64(5), runs)
	require.Equal(t, "locklab sweep --faults pause --design d --resource r --runs 9 --seed 0", command)
	runs, _ = (&Comparison{}).Panics()
	require.Zero(t, runs)
}

// Every kind of fault is in exactly one family, but for crashes, which are in
// two: of clients and of servers.
func TestFaultFamiliesCoverEveryKind(t *testing.T) {
	seen := map[string]int{}
	for _, f := range FaultFamilies() {
		for _, k := range f.Faults {
			seen[k]++
		}
	}
	for _, name := range sim.FaultNames() {
		want := 1
		if name == "crash" {
			want = 2
		}
		require.Equal(t, want, seen[name], name)
	}
}

// An adversary that is held to clients or servers strikes nobody else, and one
// without kinds nobody at all.
func TestVictims(t *testing.T) {
	p := DefaultParams()
	for _, victims := range []string{VictimClients, VictimServers} {
		a := NewAdversary(&p, []sim.FaultKind{sim.Crash, sim.Freeze, sim.ClockStep, sim.Partition})
		a.Victims = victims
		for seed := range uint64(200) {
			for _, f := range DrawPlan(seed, a).Faults {
				require.Equal(t, victims == VictimClients, clientNamed(f.On[0]), "%v", f)
			}
		}
	}
	require.Empty(t, DrawPlan(1, NewAdversary(&p, nil)).Faults)
	s, err := NewSweep(SweepSpec{Faults: []string{NoFaults}, Designs: []string{"redis/lua-token"}, Resources: []string{"plain"}, Runs: 1}, Find)
	require.NoError(t, err)
	require.Equal(t, "locklab sweep --faults none --design redis/lua-token --resource plain --seed 7 --runs 1 --save-plans .", s.Spec.Command(0, 7))
	_, err = NewSweep(SweepSpec{Victims: "everybody", Runs: 1}, Find)
	require.ErrorContains(t, err, "--victims")
}

// The first lock server of a replica group is its primary, not its monitor.
func TestRolesFollowTheOrderOfProcesses(t *testing.T) {
	d, err := FindDesign("redis-replica/lua-release")
	require.NoError(t, err)
	r, err := FindResource("plain")
	require.NoError(t, err)
	runner, err := NewRunner(Case{Design: d, Resource: r, Params: DefaultParams()})
	require.NoError(t, err)
	defer runner.Close()
	plan := runner.Cast(sim.Plan{Faults: []sim.Fault{{Kind: sim.Pause, On: []string{"lock-1"}, For: sim.Exactly(1)}}})
	require.Equal(t, []string{"redis-1"}, plan.Faults[0].On)
}

func TestCompareWith(t *testing.T) {
	base := func() *Comparison {
		c, err := NewComparison(smallSpec(PartMatrix, PartFewest), nil)
		require.NoError(t, err)
		for i := range c.Parts {
			if c.Parts[i].State != PartLeftOut {
				c.Parts[i].State = PartComplete
			}
		}
		c.Matrix = []MatrixCell{
			{Design: "a", Resource: "plain", Family: "pause", Worst: "safe", Harm: NewShare(0, 1000)},
			{Design: "b", Resource: "plain", Family: "pause", Worst: "two-writers", Harm: NewShare(100, 1000)},
			{Design: "c", Resource: "plain", Family: "pause", Worst: "two-writers", Harm: NewShare(100, 1000)},
		}
		c.Fewest = []FewestCell{{Design: "a", Resource: "plain", MaxFaults: 1, TwoWriters: -1}}
		return c
	}
	same := base()
	same.CompareWith(base())
	require.Equal(t, &Changes{Same: 4, Cells: []Change{}}, same.Changes)

	now := base()
	now.Spec.Runs = 9
	now.Matrix[0].Worst = "stuck"
	now.Matrix[1].Harm = NewShare(110, 1000) // within chance
	now.Matrix[2].Harm = NewShare(500, 1000)
	now.Matrix = append(now.Matrix, MatrixCell{Design: "d", Resource: "plain", Family: "pause", Worst: "fenced"})
	now.Fewest[0].TwoWriters = 1
	old := base()
	old.Matrix = append(old.Matrix, MatrixCell{Design: "e", Resource: "plain", Family: "pause", Worst: "safe"})
	now.CompareWith(old)
	at := func(part, column, design, what, before, after string) Change {
		return Change{Part: part, Column: column, Design: design, Resource: "plain", What: what, Old: before, New: after}
	}
	require.Equal(t, []Change{
		at("matrix", "pause", "a", "verdict", "safe", "stuck"),
		at("matrix", "pause", "c", "rate", "10.0 % harmed", "50.0 % harmed"),
		at("matrix", "pause", "d", "new", "", "fenced"),
		at("fewest", "", "a", "faults", "more than 1", "1"),
		at("matrix", "pause", "e", "gone", "safe", ""),
	}, now.Changes.Cells)
	require.Equal(t, int64(1), now.Changes.Same)
	require.Contains(t, now.Changes.Note, "8 runs")
}

// Somebody waits from its invocation to its return, in vain as long as nobody
// believes to hold the lock.
func TestWaits(t *testing.T) {
	at := func(s int64) checker.Instant { return checker.Instant{At: clock.Time(s * 1e9)} }
	h := &checker.History{End: clock.Time(20e9), Ops: []checker.Op{
		{Kind: checker.Acquire, Invoke: at(1), Return: at(2), Outcome: checker.OK, BelievesUntil: at(5)},
		{Kind: checker.Write, Invoke: at(3), Return: at(4), Outcome: checker.OK, Decision: checker.Accepted, Client: 0, Section: 1},
		{Kind: checker.Acquire, Invoke: at(3), Return: at(8), Outcome: checker.OK, BelievesUntil: checker.Never},
	}}
	wanted, unavailable := waits(h)
	require.Equal(t, 6*time.Second, wanted)      // from 1 to 2, and from 3 to 8
	require.Equal(t, 4*time.Second, unavailable) // from 1 to 2, and from 5 to 8
	require.Equal(t, 1, SectionsCompleted(h))
}

// A curve is what theory says: a lease of which e is over falls to a pause that
// is longer than the rest; a session lock to none.
func TestCurvesFollowTheory(t *testing.T) {
	spec := smallSpec(PartCurves)
	spec.Quick = false
	c, err := Compare(context.Background(), spec, CompareOptions{})
	require.NoError(t, err)
	for _, s := range c.Curves[0].Series {
		for _, q := range s.Points {
			want := int64(0) // of the eight writes before which the pause strikes
			if s.Design == "redis/lua-token" {
				for k := int64(1); k <= doseWrites; k++ {
					if q.Size+100*k > 1000 {
						want++
					}
				}
			}
			require.InDelta(t, want, q.Share.Runs, 1, "%s at %d", s.Design, q.Size) // the retry's delay and the messages' count too
		}
	}
}
