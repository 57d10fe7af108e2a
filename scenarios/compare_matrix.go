package scenarios

import (
	"context"
	"fmt"
	"strings"
)

// MatrixCell is what a design with a resource showed under a family of faults.
type MatrixCell struct {
	Design   string    `json:"design"`
	Resource string    `json:"resource"`
	Family   string    `json:"family"`
	Possible bool      `json:"possible"` // false: none of the faults can befall the design, and the cell says nothing
	Runs     int64     `json:"runs"`
	Verdicts []Outcome `json:"verdicts"` // those that were seen, the most severe first
	Locks    []Outcome `json:"locks"`
	Panics   int64     `json:"panics"`
	Worst    string    `json:"worst"`    // the most severe verdict that was seen; vacuous only if there is nothing else
	Share    Share     `json:"share"`    // of the runs with that verdict
	Harm     Share     `json:"harm"`     // of the runs with two-writers, lost-update or stuck
	First    uint64    `json:"first"`    // the lowest seed with the worst verdict
	Command  string    `json:"command"`  // repeats that seed
	Story    string    `json:"story"`    // the ID of its shortest story; "" where nothing was harmed
	Fewest   int       `json:"fewest"`   // faults in that story; -1 for none
	Proven   bool      `json:"proven"`   // no placement of fewer faults does it: exhausted
	SavedBy  []SavedBy `json:"saved_by"` // what the same plan does no harm to
}

// SavedBy is a design and resource that a plan did no harm to.
type SavedBy struct {
	Design   string `json:"design"`
	Resource string `json:"resource"`
	Verdict  string `json:"verdict"`
}

// ComparedScenario is a scenario of the comparison.
type ComparedScenario struct {
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	Story  string   `json:"story"`
	Source []string `json:"source"`
}

// ScenarioCell is what a design with a resource showed in a scenario.
type ScenarioCell struct {
	Scenario   string    `json:"scenario"`
	Design     string    `json:"design"`
	Resource   string    `json:"resource"`
	Runs       int64     `json:"runs"`
	Verdicts   []Outcome `json:"verdicts"`
	Locks      []Outcome `json:"locks"`
	Worst      string    `json:"worst"`
	Share      Share     `json:"share"`
	First      uint64    `json:"first"`
	Command    string    `json:"command"`
	Expected   string    `json:"expected"` // the verdict that the scenario expects; "" for none
	Why        string    `json:"why"`
	AsExpected bool      `json:"as_expected"` // every run gave the expected answers, or nothing was expected
	Story      string    `json:"story"`       // of the first seed; "" where nothing was harmed
}

// harmWords are the verdicts of which a story is told, the most severe first.
func harmWords() []string { return []string{"two-writers", "lost-update", "stuck"} }

func isHarm(verdict string) bool {
	for _, w := range harmWords() {
		if verdict == w {
			return true
		}
	}
	return false
}

// matrix sweeps each family of faults over all pairs.
func (c *comparer) matrix(ctx context.Context) error {
	total := int64(0)
	for i := range c.pairs {
		total += c.runsOf(&c.pairs[i])
	}
	c.plan(total * int64(len(c.out.Families)))
	for i := range c.out.Families {
		f := &c.out.Families[i]
		cells, err := c.column(ctx, f)
		c.out.Matrix = append(c.out.Matrix, cells...)
		if err != nil {
			return err
		}
	}
	return nil
}

// column sweeps one family. The pairs whose runs are long have a sweep of their
// own; the seeds, and so the adversaries, are the same.
func (c *comparer) column(ctx context.Context, f *FaultFamily) ([]MatrixCell, error) {
	found := make([]*MatrixCell, len(c.pairs))
	var failed error
	for _, long := range []bool{false, true} {
		var at []int
		for i := range c.pairs {
			if c.pairs[i].long == long {
				at = append(at, i)
			}
		}
		if len(at) == 0 || failed != nil {
			continue
		}
		s := c.familySweep(f, at)
		result := NewSweepResult(s.Spec)
		failed = s.Run(ctx, result, SweepOptions{Workers: c.Workers, Progress: c.did, Watchdog: c.Watchdog})
		tallies := make([]Tally, len(at))
		for _, r := range result.Cells() {
			tallies[r.Cell].Add(&r.Tally)
		}
		for k := range tallies {
			if tallies[k].Runs == 0 {
				continue
			}
			cell := matrixCell(f, &s.Spec, k, &tallies[k])
			if err := s.possible(k, cell); err != nil {
				return nil, err
			}
			found[at[k]] = cell
		}
	}
	var out []MatrixCell
	for _, cell := range found {
		if cell != nil {
			out = append(out, *cell)
		}
	}
	return out, failed
}

// familySweep is the sweep of a family over some of the pairs, of which all
// have equally many runs.
func (c *comparer) familySweep(f *FaultFamily, at []int) *Sweep {
	spec := &c.out.Spec
	runs := c.runsOf(&c.pairs[at[0]])
	s := &Sweep{worlds: 1, Spec: SweepSpec{Format: sweepFormat, Faults: f.Faults, Victims: f.Victims, Set: spec.Set,
		Seed: spec.Seed, Runs: runs, Block: min(runs, unitRunsMax)}} // a cell at a time, in one world
	if len(f.Faults) == 0 {
		s.Spec.Faults = []string{NoFaults}
	}
	a := NewAdversary(&c.params, f.kinds())
	a.Victims = f.Victims
	s.adversary = &a
	for _, i := range at {
		p := &c.pairs[i]
		s.cells = append(s.cells, Case{Design: p.design, Resource: p.resource, Params: c.params})
		s.Spec.Cells = append(s.Spec.Cells, CellName{Design: p.design.Name, Resource: p.resource.Name})
	}
	return s
}

// possible marks a cell in which no seed's plan had anything to strike, such as
// a failover where there is no replica.
func (s *Sweep) possible(cell int, out *MatrixCell) error {
	if out.Possible = len(s.adversary.Kinds) == 0; out.Possible {
		return nil
	}
	r, err := NewRunner(s.cells[cell])
	if err != nil {
		return err
	}
	defer r.Close()
	for i := range out.Runs {
		if plan := r.Cast(DrawPlan(s.Spec.Seed+uint64(i), *s.adversary)); len(plan.Faults) > 0 {
			out.Possible = true
			break
		}
	}
	return nil
}

func matrixCell(f *FaultFamily, spec *SweepSpec, cell int, t *Tally) *MatrixCell {
	name := spec.Cells[cell]
	out := &MatrixCell{Design: name.Design, Resource: name.Resource, Family: f.Name, Runs: t.Runs,
		Verdicts: t.verdictOutcomes(), Locks: t.lockOutcomes(), Panics: t.Panics().Runs, Fewest: -1, SavedBy: []SavedBy{}}
	harm := int64(0)
	for _, o := range out.Verdicts {
		if isHarm(o.Answer) {
			harm += o.Runs
		}
	}
	out.Harm = NewShare(harm, t.Runs)
	worst := out.Verdicts[0]
	out.Worst, out.Share, out.First = worst.Answer, NewShare(worst.Runs, t.Runs), worst.First
	out.Command = spec.Command(cell, worst.First)
	return out
}

// stage runs the scenarios with their own designs and resources.
func (c *comparer) stage(ctx context.Context) error {
	spec := &c.out.Spec
	s := &Sweep{worlds: 1, Spec: SweepSpec{Format: sweepFormat, Seed: spec.Seed, Runs: max(spec.Runs/10, 2), Block: unitRunsMax}}
	for _, scenario := range c.scenarios {
		cases, err := c.casesOf(scenario)
		if err != nil {
			return err
		}
		if len(cases) == 0 {
			continue
		}
		c.out.Titles = append(c.out.Titles, ComparedScenario{Name: scenario.Name, Title: scenario.Title, Story: strings.TrimSpace(scenario.Story),
			Source: names(scenario.Source)})
		for _, k := range cases {
			s.cells = append(s.cells, k)
			s.Spec.Cells = append(s.Spec.Cells, CellName{scenario.Ref(), k.Design.Name, k.Resource.Name})
		}
	}
	if len(s.cells) == 0 {
		return nil
	}
	c.plan(int64(len(s.cells)) * s.Spec.Runs)
	result := NewSweepResult(s.Spec)
	failed := s.Run(ctx, result, SweepOptions{Workers: c.Workers, Progress: c.did, Watchdog: c.Watchdog})
	for _, r := range result.Cells() {
		cell, err := c.scenarioCell(s, &r)
		if err != nil {
			return err
		}
		c.out.Scenarios = append(c.out.Scenarios, cell)
	}
	return failed
}

// casesOf are the cases that a scenario names, of the designs and resources
// that were asked for.
func (c *comparer) casesOf(s *Scenario) ([]Case, error) {
	cases, err := ChooseCases(s, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Ref(), err)
	}
	spec := &c.out.Spec
	var out []Case
	for _, k := range cases {
		if matchesAny(spec.Designs, k.Design.Name) && matchesAny(spec.Resources, k.Resource.Name) {
			out = append(out, k)
		}
	}
	return out, nil
}

func (c *comparer) scenarioCell(s *Sweep, r *CellResult) (ScenarioCell, error) {
	scenario := s.cells[r.Cell].Scenario
	out := ScenarioCell{Scenario: scenario.Name, Design: r.Design, Resource: r.Resource, Runs: r.Runs,
		Verdicts: r.verdictOutcomes(), Locks: r.lockOutcomes(), AsExpected: true}
	worst := out.Verdicts[0]
	out.Worst, out.Share, out.First = worst.Answer, NewShare(worst.Runs, r.Runs), worst.First
	out.Command = s.Spec.Command(r.Cell, worst.First)
	if e := scenario.Expected(r.Design, r.Resource); e != nil {
		out.Expected, out.Why = e.Verdict, e.Why
		out.AsExpected = allAre(out.Verdicts, e.Verdict) && (e.Lock == "" || allAre(out.Locks, e.Lock))
	}
	if !isHarm(out.Worst) {
		return out, nil
	}
	file, err := s.PlanFile(r.Cell, out.First)
	if err != nil {
		return out, err
	}
	out.Story = c.tell(storyOf(file, nil, false))
	return out, nil
}

func allAre(outcomes []Outcome, answer string) bool {
	return len(outcomes) == 1 && outcomes[0].Answer == answer
}
