package scenarios

import (
	"bytes"
	"context"
	"errors"
	"math/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"locklab/checker"
	"locklab/models"
	"locklab/sim"
)

func sweepOf(t require.TestingT, change func(*SweepSpec)) *Sweep {
	spec := SweepSpec{Faults: []string{"pause", "crash", "evict"}, Designs: []string{"redis/lua-release", "redis/lua-token"},
		Resources: []string{"plain", "fenced"}, Set: "ttl=2s,work=200ms", Seed: 1, Runs: 100}
	if change != nil {
		change(&spec)
	}
	s, err := NewSweep(spec, Find)
	require.NoError(t, err)
	return s
}

// runSweep runs what is missing and returns the file as it was streamed.
func runSweep(t require.TestingT, s *Sweep, result *SweepResult, workers int) string {
	var file bytes.Buffer
	require.NoError(t, s.Run(context.Background(), result, SweepOptions{Workers: workers, Done: func(u Unit) error {
		line, err := SweepLine(&s.Spec, u)
		file.Write(line)
		return err
	}}))
	return file.String()
}

func text(t require.TestingT, r *SweepResult) string {
	var b bytes.Buffer
	_, err := r.WriteTo(&b)
	require.NoError(t, err)
	return b.String()
}

// The number of workers changes nothing, not even the order of the lines.
func TestSweepDoesNotDependOnWorkers(t *testing.T) {
	s := sweepOf(t, nil)
	one, four := NewSweepResult(s.Spec), NewSweepResult(s.Spec)
	first := runSweep(t, s, one, 1)
	require.Equal(t, first, runSweep(t, s, four, 4))
	require.Equal(t, one, four)
	header, err := SweepHeader(&s.Spec)
	require.NoError(t, err)
	require.Equal(t, string(header)+first, text(t, one))
	require.Zero(t, one.Missing())
	require.EqualValues(t, 300, one.Runs(), "three cells: lua-release cannot use fenced")

	cells := one.Cells()
	require.Len(t, cells, 6, "each cell, without and with an operator's fault")
	require.EqualValues(t, 100, cells[0].Runs+cells[1].Runs)
	require.Equal(t, cells[0].Runs, cells[2].Runs, "the same adversaries for every design")
	for _, c := range cells {
		require.Equal(t, c.Runs, sum(c.Verdicts[:]))
		require.Equal(t, c.Runs, sum(c.Locks[:]))
		require.Equal(t, c.Runs, sum(c.Ends[:]))
	}
	require.Positive(t, cells[0].Showed("two-writers").Runs)
}

func sum(counts []Count) (n int64) {
	for _, c := range counts {
		n += c.Runs
	}
	return n
}

// A sweep counts what its runs, run one by one, show.
func TestSweepCountsItsRuns(t *testing.T) {
	s := sweepOf(t, func(spec *SweepSpec) {
		spec.Faults, spec.Designs, spec.Resources = []string{"pause"}, []string{"redis/lua-token"}, []string{"fenced"}
	})
	result := NewSweepResult(s.Spec)
	runSweep(t, s, result, 2)
	var want Tally
	for seed := uint64(1); seed <= 100; seed++ {
		res, err := s.once(0, seed, nil, sim.TraceHash)
		require.NoError(t, err)
		want.see(res)
	}
	require.Equal(t, want, result.Cells()[0].Tally)
}

// What a run finds first can be written as a plan file, and its replay is the
// same run.
func TestSweepPlanFile(t *testing.T) {
	s := sweepOf(t, nil)
	result := NewSweepResult(s.Spec)
	runSweep(t, s, result, 2)
	for _, c := range result.Cells() {
		found := c.Showed("two-writers")
		if found.Runs == 0 {
			continue
		}
		f, err := s.PlanFile(c.Cell, found.First)
		require.NoError(t, err)
		back, err := LoadPlanFile(MarshalPlanFile(f), "p.yaml")
		require.NoError(t, err)
		r, err := NewRunner(Case{Design: s.cells[c.Cell].Design, Resource: s.cells[c.Cell].Resource, Params: back.Params, Plan: back.Plan})
		require.NoError(t, err)
		res, err := r.Run(back.Seed, sim.TraceHash)
		require.NoError(t, err)
		require.Equal(t, f.TraceHash, res.PlanFile().TraceHash)
		require.Equal(t, checker.VerdictTwoWriters, res.Verdict)
		for _, report := range res.Faults {
			require.True(t, report.Fired, "faults that never fired are left out")
		}
		r.Close()
	}
}

// Stopped at any moment and continued, a sweep is the sweep.
func TestSweepResumes(t *testing.T) {
	s := sweepOf(t, nil)
	whole := NewSweepResult(s.Spec)
	runSweep(t, s, whole, 2)
	for _, after := range []int{0, 1, 100, 170} {
		ctx, cancel := context.WithCancel(context.Background())
		part := NewSweepResult(s.Spec)
		units := 0
		err := s.Run(ctx, part, SweepOptions{Workers: 3, Done: func(Unit) error {
			if units++; units > after/20 {
				cancel()
			}
			return nil
		}})
		require.ErrorIs(t, err, context.Canceled)
		if after <= 100 { // later, what the other workers had in hand may have been the rest
			require.Positive(t, part.Missing())
		}
		require.EqualValues(t, part.Missing(), len(s.todo(part)))
		again, _, err := ReadSweep(strings.NewReader(text(t, part)), "s.jsonl")
		require.NoError(t, err)
		runSweep(t, s, again, 1)
		require.Equal(t, text(t, whole), text(t, again))
	}
}

func TestSweepStopsWhenItsFileCannotBeWritten(t *testing.T) {
	s := sweepOf(t, nil)
	full := errors.New("no space left on device")
	err := s.Run(context.Background(), NewSweepResult(s.Spec), SweepOptions{Done: func(Unit) error { return full }})
	require.ErrorIs(t, err, full)
}

// Shards have every unit once between them, and put together in any order and
// grouping they are the sweep.
func TestShardsMergeToTheWhole(t *testing.T) {
	whole := NewSweepResult(sweepOf(t, nil).Spec)
	runSweep(t, sweepOf(t, nil), whole, 2)
	const n = 3
	var shards [n]*SweepResult
	for i := range shards {
		s := sweepOf(t, func(spec *SweepSpec) { spec.Shard, spec.Shards = i+1, n })
		shards[i] = NewSweepResult(s.Spec)
		runSweep(t, s, shards[i], 2)
		require.Zero(t, shards[i].Missing())
	}
	require.EqualValues(t, 300, shards[0].Runs()+shards[1].Runs()+shards[2].Runs())
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0, 1}} {
		merged := copyOf(t, shards[order[0]])
		for _, i := range order[1:] {
			require.NoError(t, merged.Merge(shards[i]))
		}
		require.Equal(t, text(t, whole), text(t, merged))
	}
	two := copyOf(t, shards[0])
	require.NoError(t, two.Merge(shards[1]))
	require.EqualValues(t, len(shards[2].units), two.Missing())
}

func copyOf(t require.TestingT, r *SweepResult) *SweepResult {
	out, _, err := ReadSweep(strings.NewReader(text(t, r)), "copy")
	require.NoError(t, err)
	return out
}

// Merging is associative, commutative and idempotent, and adding up tallies is
// associative and commutative: for any counts.
func TestMergeIsAUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := SweepSpec{Format: sweepFormat, Faults: []string{"pause"}, Seed: rapid.Uint64Range(0, 1<<40).Draw(t, "seed"),
			Runs: rapid.Int64Range(1, 300).Draw(t, "runs"), Block: unitRunsMin, Cells: []CellName{{Design: "a", Resource: "x"}, {Design: "b", Resource: "y"}}}
		all := make([]Unit, spec.units())
		for i := range all {
			all[i] = drawUnit(t, &spec, int64(i))
		}
		draw := func(name string) *SweepResult {
			r := NewSweepResult(spec)
			for _, u := range all {
				if rapid.Bool().Draw(t, name) {
					require.NoError(t, r.Add(u))
				}
			}
			return r
		}
		a, b, c := draw("a"), draw("b"), draw("c")
		union := func(rs ...*SweepResult) *SweepResult {
			out := NewSweepResult(spec)
			for _, r := range rs {
				require.NoError(t, out.Merge(r))
			}
			return out
		}
		left, right := union(union(a, b), c), union(a, union(b, c))
		require.Equal(t, left, right)
		require.Equal(t, left, union(c, b, a, b))
		require.Equal(t, text(t, left), text(t, copyOf(t, right)))

		x, y, z := &all[0].Tally, &all[len(all)-1].Tally, &all[len(all)/2].Tally
		add := func(ts ...*Tally) (out Tally) {
			for _, t := range ts {
				out.Add(t)
			}
			return out
		}
		xy, yz := add(x, y), add(y, z)
		require.Equal(t, add(&xy, z), add(x, &yz))
		require.Equal(t, add(x, y), add(y, x))
	})
}

func drawUnit(t *rapid.T, spec *SweepSpec, number int64) Unit {
	rng := rand.New(rand.NewSource(rapid.Int64().Draw(t, "unit")))
	_, from, runs := spec.span(number)
	draw := func(runs int64) (tally Tally) {
		for i := range runs {
			tally.Runs++
			tally.Events += rng.Int63n(500)
			for _, g := range tally.groups() {
				g.counts[rng.Intn(len(g.counts))].see(from + uint64(i))
			}
		}
		tally.Findings[0] = Count{} // there is no finding 0
		return tally
	}
	apart := rng.Int63n(runs + 1)
	u := Unit{Number: number, Tally: draw(runs - apart)}
	if apart > 0 {
		operator := draw(apart)
		u.Operator = &operator
	}
	return u
}

func TestMergeRefusesOtherSweeps(t *testing.T) {
	a := NewSweepResult(sweepOf(t, nil).Spec)
	for want, change := range map[string]func(*SweepSpec){
		`runs is 100 in one and 99 in the other`:        func(s *SweepSpec) { s.Runs = 99 },
		`seed is 1 in one and 2 in the other`:           func(s *SweepSpec) { s.Seed = 2 },
		`faults is`:                                     func(s *SweepSpec) { s.Faults = []string{"pause"} },
		`set is "ttl=2s,work=200ms" in one and nothing`: func(s *SweepSpec) { s.Set = "" },
	} {
		require.ErrorContains(t, a.Merge(NewSweepResult(sweepOf(t, change).Spec)), want)
	}
	other := a.Spec
	other.Fingerprint = "0"
	require.ErrorContains(t, a.Merge(NewSweepResult(other)), "different versions of locklab")
}

func TestSweepRefusesNonsense(t *testing.T) {
	for want, change := range map[string]func(*SweepSpec){
		"--runs: 0 is out of range":               func(s *SweepSpec) { s.Runs = 0 },
		"--seed: from 18446744073709551615 on":    func(s *SweepSpec) { s.Seed = 1<<64 - 1 },
		"there is no shard 3 of 2":                func(s *SweepSpec) { s.Shard, s.Shards = 3, 2 },
		`unknown fault "puase"`:                   func(s *SweepSpec) { s.Faults = []string{"puase"} },
		`unknown design "redis/lua"`:              func(s *SweepSpec) { s.Designs = []string{"redis/lua"} },
		"--set: ttl: 0s is out of range":          func(s *SweepSpec) { s.Set = "ttl=0s" },
		"leave out --scenario or --faults":        func(s *SweepSpec) { s.Scenarios = []string{"kleppmann/gc-pause"} },
		"resource fenced compares ordered tokens": func(s *SweepSpec) { s.Designs, s.Resources = []string{"none"}, []string{"fenced"} },
	} {
		spec := SweepSpec{Faults: []string{"pause"}, Designs: []string{"redis/lua-token"}, Seed: 1, Runs: 10}
		change(&spec)
		_, err := NewSweep(spec, Find)
		require.ErrorContains(t, err, want)
	}
}

func TestSweepOfScenarios(t *testing.T) {
	s, err := NewSweep(SweepSpec{Scenarios: []string{"kleppmann/gc-pause", "kleppmann/delayed-write"}, Seed: 1, Runs: 20}, Find)
	require.NoError(t, err)
	result := NewSweepResult(s.Spec)
	runSweep(t, s, result, 2)
	for _, c := range result.Cells() {
		scenario, err := Find(c.Scenario)
		require.NoError(t, err)
		if e := scenario.Expected(c.Design, c.Resource); e != nil {
			v, err := checker.ParseVerdict(e.Verdict)
			require.NoError(t, err)
			require.EqualValues(t, 20, c.Verdicts[v].Runs, "%s", c.CellName)
		}
	}
	require.Equal(t, "locklab run kleppmann/gc-pause --design redis/lua-release --resource plain --seed 3", s.Spec.Command(0, 3))
}

// resourcesForAll are resources of which every design can use one.
func resourcesForAll() []string {
	out := []string{"plain"}
	for _, r := range models.Resources() {
		if r.Build != nil {
			out = append(out, r.Name)
		}
	}
	return out
}

// Every design can meet every adversary.
func TestEveryDesignMeetsEveryFault(t *testing.T) {
	s, err := NewSweep(SweepSpec{Faults: []string{"*"}, Resources: resourcesForAll(), Seed: 1, Runs: 60}, Find)
	require.NoError(t, err)
	result := NewSweepResult(s.Spec)
	runSweep(t, s, result, 0)
	for _, c := range result.Cells() {
		require.Zero(t, c.Panics().Runs, "%s, seed %d", c.CellName, c.Panics().First)
	}
}

func TestReadSweepNamesFileAndLine(t *testing.T) {
	s := sweepOf(t, func(spec *SweepSpec) { spec.Runs = 40; spec.Designs = []string{"redis/lua-release"} })
	result := NewSweepResult(s.Spec)
	runSweep(t, s, result, 1)
	good := text(t, result)
	header, first, _ := strings.Cut(good, "\n")
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "f:1: the file is empty"},
		{"another file", "hello\n", "f:1: this is not the header of a sweep's file"},
		{"a history", `{"history":1,"clients":[]}` + "\n", "f:1: this is not the header of a sweep's file"},
		{"another version", strings.Replace(good, `"sweep":1`, `"sweep":2`, 1), "f:1: field sweep: version 2"},
		{"runs", strings.Replace(good, `"runs":40`, `"runs":-1`, 1), "f:1: field runs: -1 is out of range"},
		{"block", strings.Replace(good, `"block":20`, `"block":1`, 1), "f:1: field block: 1 is out of range"},
		{"type", strings.Replace(good, `"runs":40`, `"runs":"40"`, 1), "f:1: header: field runs: cannot be a string"},
		{"no unit", header + "\n{}\n", "f:2: there is no unit -1"},
		{"not JSON", header + "\n[\n", "f:2: want a JSON object"},
		{"unknown unit", header + "\n" + strings.Replace(first, `"unit":0`, `"unit":7`, 1), "f:2: there is no unit 7; the sweep has 2"},
		{"unknown word", strings.Replace(good, `"verdicts":{"`, `"verdicts":{"x`, 1), "f:2: field verdicts: a word that this version does not know"},
		{"twice", good + strings.Replace(strings.Split(good, "\n")[1], `"events":`, `"events":1`, 1) + "\n", "unit 0 stands there twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := ReadSweep(strings.NewReader(c.text), "f")
			require.ErrorContains(t, err, c.want)
		})
	}
	cut := len(good) - 10
	part, complete, err := ReadSweep(strings.NewReader(good[:cut]), "f")
	require.ErrorIs(t, err, ErrTruncated)
	require.EqualValues(t, 1, part.Missing())
	require.Equal(t, good[:complete], text(t, part))
}

func FuzzReadSweep(f *testing.F) {
	s := sweepOf(f, func(spec *SweepSpec) { spec.Runs = 40; spec.Designs = []string{"redis/lua-release"} })
	result := NewSweepResult(s.Spec)
	runSweep(f, s, result, 1)
	f.Add([]byte(text(f, result)))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, complete, err := ReadSweep(bytes.NewReader(data), "fuzz")
		if r == nil {
			require.Error(t, err)
			return
		}
		require.LessOrEqual(t, complete, int64(len(data)))
		r.Cells()
		require.Equal(t, text(t, r), text(t, copyOf(t, r)))
	})
}
