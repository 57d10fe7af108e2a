package scenarios

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"locklab/sim"
)

// Shrunk is a plan made as small as it can be with both its answers kept.
type Shrunk struct {
	File       *PlanFile // complete: with hash, verdict and lock answer
	Thresholds []Threshold
	Runs       int // that it took
}

// Threshold is how large one magnitude of a plan must be: with Enough the
// answers are as they were, with NotEnough, the next smaller value that was
// tried, they are not.
type Threshold struct {
	Fault             int    // in the plan, from 0
	Field             string // for, by, restart, at_most or rate
	Enough, NotEnough int64  // nanoseconds, or parts per billion for a rate
}

// Words tells the thresholds: "a pause of 9.21s of client-1 is enough here,
// 9.2s is not".
func (s *Shrunk) Words() []string {
	var out []string
	for _, t := range s.Thresholds {
		out = append(out, t.words(&s.File.Plan.Faults[t.Fault]))
	}
	return out
}

func (t *Threshold) words(f *sim.Fault) string {
	write := func(v int64) string { return time.Duration(v).String() }
	if t.Field == "rate" {
		write = func(v int64) string { return strconv.FormatFloat(float64(v)/1e7, 'f', -1, 64) + "%" } // for people: no simulation sees it
	}
	who, less := strings.Join(f.On, ", "), write(t.NotEnough)+" is not"
	if t.NotEnough == 0 {
		less = "and nothing smaller was tried"
	}
	switch t.Field {
	case "restart":
		return fmt.Sprintf("a crash of %s for %s is enough here, %s", who, write(t.Enough), less)
	case "rate", "by", "for":
		if f.Kind == sim.Partition {
			who += " from " + strings.Join(f.From, ", ")
		}
		return fmt.Sprintf("a %s of %s on %s is enough here, %s", f.Kind, write(t.Enough), who, less)
	}
	return fmt.Sprintf("%s %s of the %s on %s is enough here, %s", t.Field, write(t.Enough), f.Kind, who, less)
}

// Shrink makes a plan smaller as long as the run's two answers stay the same,
// and an update that was lost is still lost:
// fewer faults, fewer clients and sections, nothing left to chance that need
// not be, plainer triggers, and the smallest magnitudes. Nothing is drawn, so
// the result depends on the case and the seed alone.
func Shrink(ctx context.Context, c Case, seed uint64) (*Shrunk, error) {
	s := &shrinker{ctx: ctx, seed: seed, best: c}
	defer s.close()
	first, err := s.run(c)
	if err != nil {
		return nil, err
	}
	s.want = first.answers
	s.dropUnfired(first)
	// Each pass may open the way for the others: a shorter pause lets a
	// section go. All only ever make the plan smaller, so this ends.
	for again := true; again && s.err == nil; {
		again = false
		for _, pass := range []func() bool{s.fewerFaults, s.shorterRun, s.lessChance, s.plainerTriggers, s.plainerModes, s.plainerEnds, s.smallerCounts} {
			again = pass() || again
		}
		if !again {
			again = s.smallerMagnitudes()
		}
	}
	if s.err != nil {
		return nil, s.err
	}
	return s.result()
}

// shrinker holds the smallest case so far.
type shrinker struct {
	ctx        context.Context
	seed       uint64
	best       Case
	want       answers
	thresholds []Threshold
	runner     *Runner // for the parameters of the last run
	runs       int
	err        error
}

// answers are what must not change.
type answers struct {
	verdict, lock string
	lost          bool // an update was lost: this must stay, but may come
}

func (a answers) keep(want answers) bool {
	return a.verdict == want.verdict && a.lock == want.lock && (a.lost || !want.lost)
}

// trial is what a run of the shrinker showed.
type trial struct {
	answers
	faults []sim.FaultReport
	hash   uint64
	file   *PlanFile
}

func (s *shrinker) close() {
	if s.runner != nil {
		s.runner.Close()
	}
}

// run runs a case, with the runner of the last one where only the plan
// differs.
func (s *shrinker) run(c Case) (*trial, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	if s.runner == nil || s.runner.Params != c.Params {
		next, err := NewRunner(c)
		if err != nil {
			return nil, err
		}
		s.close()
		s.runner = next
	}
	r := s.runner
	if err := r.SetPlan(c.Plan); err != nil {
		return nil, err
	}
	s.runs++
	res, err := r.Run(s.seed, sim.TraceHash)
	if err != nil {
		return nil, err
	}
	t := &trial{answers: answers{res.Verdict.String(), res.Report.Lock.String(), losesUpdate(res)}, faults: res.Faults, hash: res.Hash, file: res.PlanFile()}
	if res.Failure != nil {
		t.verdict = "panic"
	}
	return t, nil
}

// try makes a candidate the best if it gives the same answers and each of its
// faults strikes. A candidate that cannot be run is no better.
func (s *shrinker) try(c Case) bool {
	if s.err != nil || !s.holds(c) {
		return false
	}
	s.best = c
	return true
}

func (s *shrinker) holds(c Case) bool {
	t, err := s.run(c)
	if err != nil {
		s.err = s.ctx.Err()
		return false
	}
	for _, f := range t.faults {
		if !f.Fired {
			return false
		}
	}
	return t.keep(s.want)
}

// result runs the best once more and writes down what it showed.
func (s *shrinker) result() (*Shrunk, error) {
	t, err := s.run(s.best)
	if err != nil {
		return nil, err
	}
	return &Shrunk{File: t.file, Thresholds: s.thresholds, Runs: s.runs}, nil
}

// withFault is the best case with one fault changed.
func (s *shrinker) withFault(i int, change func(*sim.Fault)) Case {
	c := s.best
	c.Plan.Faults = append([]sim.Fault(nil), c.Plan.Faults...)
	change(&c.Plan.Faults[i])
	return c
}

// withParams is the best case with parameters changed.
func (s *shrinker) withParams(change func(*Params)) Case {
	c := s.best
	change(&c.Params)
	return c
}
