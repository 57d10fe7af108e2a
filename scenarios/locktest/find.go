package locktest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"locklab/reports"
	"locklab/scenarios"
	"locklab/sim"
)

// Broken is how a lock was broken: the shortest run that was found to show it.
type Broken struct {
	Found  []string            // what happened of what must never happen, the most severe first
	Plan   *scenarios.PlanFile // what -locktest.plan repeats
	Story  string              // the run, told
	Enough []string            // how large each fault has to be, in words
}

// Find plays against a lock as Check does, with the adversaries 1 to runs
// instead of drawn ones, and returns nil if none of them breaks it. It serves
// tests that expect a lock to be broken.
func Find(l Lock, runs int) (*Broken, error) {
	s, err := newSubject(l)
	if err != nil {
		return nil, err
	}
	g := &game{subject: s}
	defer g.close()
	b, err := g.play(sim.Plan{}, 1) // without any fault
	for seed := uint64(1); b == nil && err == nil && seed <= uint64(max(runs, 0)); seed++ {
		b, err = g.play(scenarios.DrawPlan(seed, s.adversary), seed)
	}
	return b, err
}

// game plays one run after the other against a lock, in one world.
type game struct {
	*subject
	runner *scenarios.Runner
}

func (g *game) close() {
	if g.runner != nil {
		g.runner.Close()
		g.runner = nil
	}
}

// play runs the lock under a plan, which may name roles. If that breaks the
// lock, it makes the plan as small as it can be and tells it.
func (g *game) play(p sim.Plan, seed uint64) (*Broken, error) {
	c, res, err := g.run(p, seed)
	if err != nil || len(violated(res, g.never)) == 0 {
		return nil, err
	}
	g.close() // a panic may have left something behind
	return g.shrink(c, seed)
}

func (g *game) run(p sim.Plan, seed uint64) (scenarios.Case, *scenarios.Result, error) {
	if g.runner == nil {
		r, err := scenarios.NewRunner(g.Case)
		if err != nil {
			return g.Case, nil, err
		}
		g.runner = r
	}
	if err := g.runner.SetPlan(g.runner.Cast(p)); err != nil {
		return g.Case, nil, err
	}
	res, err := g.runner.Run(seed, sim.TraceOff)
	return g.runner.Case, res, err
}

// shrink makes a plan as small as it can be. The shrinker keeps a run's two
// answers; where what must not happen is more than they say and was lost on
// the way, the plan stays as it was.
func (g *game) shrink(c scenarios.Case, seed uint64) (*Broken, error) {
	small, err := scenarios.Shrink(context.Background(), c, seed)
	if err != nil {
		return nil, err
	}
	shrunk := c
	shrunk.Plan, shrunk.Params = small.File.Plan, small.File.Params
	b, err := tell(shrunk, seed, g.never)
	if err != nil || b == nil {
		return tell(c, seed, g.never)
	}
	b.Enough = small.Words()
	return b, nil
}

// tell runs a case once more, with its trace, and tells what it shows; nil if
// that is nothing that must not happen.
func tell(c scenarios.Case, seed uint64, never []string) (*Broken, error) {
	r, err := scenarios.NewRunner(c)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	res, err := r.Run(seed, sim.TraceRecord)
	if err != nil {
		return nil, err
	}
	b := &Broken{Found: violated(res, never), Plan: res.PlanFile()}
	if len(b.Found) == 0 {
		return nil, nil
	}
	var story strings.Builder
	err = reports.WriteStory(&story, reports.Story(res), reports.Style{})
	b.Story = story.String()
	b.Plan.Scenario = "locktest"
	b.Plan.Title = fmt.Sprintf("%s on %s: %s", c.Design.Name, c.Resource.Name, strings.Join(b.Found, ", "))
	return b, err
}

// violated lists what a run shows of what must never happen; a program's panic
// always counts.
func violated(res *scenarios.Result, never []string) []string {
	var out []string
	if res.Failure != nil {
		out = append(out, "panic")
	}
	for _, word := range never {
		shown := res.Verdict.String() == word || res.Report.Lock.String() == word
		for i := range res.Report.Findings {
			shown = shown || res.Report.Findings[i].Kind.String() == word
		}
		if shown {
			out = append(out, word)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return severity(a) - severity(b) })
	return out
}

// severity orders the words as scenarios.Violations does.
func severity(word string) int { return slices.Index(scenarios.Violations(), word) }
