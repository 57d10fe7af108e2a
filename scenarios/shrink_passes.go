package scenarios

import (
	"slices"
	"time"

	"locklab/sim"
)

// dropUnfired leaves out the faults that never struck: whatever the run
// showed, it was not their doing.
func (s *shrinker) dropUnfired(first *trial) {
	c := s.best
	c.Plan.Faults = nil
	for i, f := range s.best.Plan.Faults {
		if first.faults[i].Fired {
			c.Plan.Faults = append(c.Plan.Faults, f)
		}
	}
	s.best = c
}

// fewerFaults drops faults one by one, the last first: a fault is often there
// because of an earlier one.
func (s *shrinker) fewerFaults() (changed bool) {
	for i := len(s.best.Plan.Faults) - 1; i >= 0; i-- {
		c := s.best
		c.Plan.Faults = slices.Delete(slices.Clone(c.Plan.Faults), i, i+1)
		changed = s.try(c) || changed
	}
	for i := len(s.best.Plan.Choices) - 1; i >= 0; i-- {
		c := s.best
		c.Plan.Choices = slices.Delete(slices.Clone(c.Plan.Choices), i, i+1)
		changed = s.try(c) || changed
	}
	return changed
}

// shorterRun wants fewer sections, writes and clients: each as few as can be,
// the fewest first.
func (s *shrinker) shorterRun() (changed bool) {
	for _, n := range []func(*Params) *int{
		func(p *Params) *int { return &p.Sections },
		func(p *Params) *int { return &p.Clients },
		func(p *Params) *int { return &p.Writes },
	} {
		now := *n(&s.best.Params)
		for few := 1; few < now; few++ {
			if s.try(s.withParams(func(p *Params) { *n(p) = few })) {
				changed = true
				break
			}
		}
	}
	return changed
}

// lessChance takes the chance out of latencies and retries, so that the story
// can be followed with a pencil.
func (s *shrinker) lessChance() (changed bool) {
	if p := s.best.Params; p.LatencyMin != p.LatencyMax {
		changed = s.try(s.withParams(func(p *Params) { p.LatencyMax = p.LatencyMin })) || changed
	}
	if s.best.Params.RetryJitter != 0 {
		changed = s.try(s.withParams(func(p *Params) { p.RetryJitter = 0 })) || changed
	}
	return changed
}

// plainerTriggers leaves out the parts of a place that are not needed to find
// it: client-1/section#1/write says more to a reader, and to other designs,
// than the number of an operation. A step or a bare time that falls on a place
// stays: what would replace it is a guess.
func (s *shrinker) plainerTriggers() (changed bool) {
	for i := range s.best.Plan.Faults {
		t := s.best.Plan.Faults[i].Trigger
		at := t.Before
		if at.IsZero() {
			at = t.After
		}
		for _, plainer := range []sim.PlacePattern{
			{Proc: at.Proc, Phase: at.Phase},
			{Proc: at.Proc, Section: at.Section, Phase: at.Phase},
			{Proc: at.Proc, Section: at.Section, Phase: at.Phase, Op: at.Op},
		} {
			if at.IsZero() || plainer == at || plainer.Phase == sim.PhaseNone {
				continue
			}
			if s.try(s.withFault(i, func(f *sim.Fault) { f.Trigger = replaced(t, plainer) })) {
				changed = true
				break
			}
		}
	}
	return changed
}

// replaced is a trigger with another place.
func replaced(t sim.Trigger, at sim.PlacePattern) sim.Trigger {
	if !t.Before.IsZero() {
		return sim.Trigger{Before: at}
	}
	return sim.Trigger{After: at}
}

// plainerModes wants each fault in its plainest form: a process that crashes
// rather than its machine, a connection that is reset rather than silently cut.
func (s *shrinker) plainerModes() (changed bool) {
	for i := range s.best.Plan.Faults {
		f := s.best.Plan.Faults[i]
		for _, m := range []struct {
			set   bool
			plain func(*sim.Fault)
		}{
			{f.Mode != "", func(f *sim.Fault) { f.Mode = "" }},
			{f.Monotonic != "", func(f *sim.Fault) { f.Monotonic = "" }},
			{f.Wall != "", func(f *sim.Fault) { f.Wall = "" }},
		} {
			if m.set {
				changed = s.try(s.withFault(i, m.plain)) || changed
			}
		}
	}
	return changed
}

// plainerEnds replaces "until something happens" by a length, which can then
// be made shorter.
func (s *shrinker) plainerEnds() (changed bool) {
	for i := range s.best.Plan.Faults {
		if s.best.Plan.Faults[i].Until.Kind == sim.MilestoneNone {
			continue
		}
		t, err := s.run(s.best)
		if err != nil {
			continue
		}
		lasted := time.Duration(t.faults[i].Healed - t.faults[i].Struck)
		if lasted <= 0 || lasted > durationMax {
			continue
		}
		changed = s.try(s.withFault(i, func(f *sim.Fault) {
			f.Until, f.AtMost, f.For = sim.Milestone{}, sim.Span{}, sim.Exactly(lasted)
		})) || changed
	}
	return changed
}

// smallerCounts lets message faults strike fewer messages.
func (s *shrinker) smallerCounts() (changed bool) {
	for i := range s.best.Plan.Faults {
		now := s.best.Plan.Faults[i].Count
		for few := 1; few < now; few++ {
			if s.try(s.withFault(i, func(f *sim.Fault) { f.Count = few })) {
				changed = true
				break
			}
		}
	}
	return changed
}

// magnitude is one number of a fault that can be made smaller.
type magnitude struct {
	field string
	get   func(*sim.Fault) *sim.Span
}

func magnitudes() []magnitude {
	return []magnitude{
		{"for", func(f *sim.Fault) *sim.Span { return &f.For }},
		{"by", func(f *sim.Fault) *sim.Span { return &f.By }},
		{"restart", func(f *sim.Fault) *sim.Span { return &f.Restart }},
		{"at_most", func(f *sim.Fault) *sim.Span { return &f.AtMost }},
	}
}

// smallerMagnitudes searches the threshold of every number of every fault. It
// also writes down what it found, so it runs last.
func (s *shrinker) smallerMagnitudes() (changed bool) {
	s.thresholds = nil
	for i := range s.best.Plan.Faults {
		for _, m := range magnitudes() {
			span := *m.get(&s.best.Plan.Faults[i])
			d, err := span.Resolve(s.best.Params.Spans)
			if err != nil || d == 0 {
				continue
			}
			set := func(f *sim.Fault, v int64) { *m.get(f) = sim.Exactly(time.Duration(v)) }
			changed = s.threshold(i, m.field, int64(d), set) || changed
		}
		if rate := s.best.Plan.Faults[i].Rate; rate != 0 {
			changed = s.threshold(i, "rate", rate, func(f *sim.Fault, v int64) { f.Rate = v }) || changed
		}
	}
	return changed
}

// threshold finds by halving the least value that is enough, to about three
// digits, and takes it. What is enough need not be one interval: the value
// that is kept has been tried and is enough, and the next smaller one has been
// tried and is not.
func (s *shrinker) threshold(i int, field string, now int64, set func(*sim.Fault, int64)) bool {
	sign := int64(1)
	if now < 0 {
		sign = -1
	}
	holds := func(v int64) bool {
		return v > 0 && s.err == nil && s.holds(s.withFault(i, func(f *sim.Fault) { set(f, sign*v) }))
	}
	size := now * sign
	grid := gridOf(field, size)
	enough, not := (size+grid-1)/grid, int64(0) // in steps of the grid
	if enough*grid != size && !holds(enough*grid) {
		return false // not worth rounding up
	}
	for enough-not > 1 {
		middle := not + (enough-not)/2
		if holds(middle * grid) {
			enough = middle
		} else {
			not = middle
		}
	}
	s.thresholds = append(s.thresholds, Threshold{Fault: i, Field: field, Enough: sign * enough * grid, NotEnough: sign * not * grid})
	if enough*grid == size {
		return false
	}
	s.best = s.withFault(i, func(f *sim.Fault) { set(f, sign*enough*grid) })
	return true
}

// gridOf is the power of ten to which a number is worth knowing: 10 ms of ten
// seconds, and never finer than a millisecond (or a thousandth of a percent).
func gridOf(field string, size int64) int64 {
	grid := int64(time.Millisecond)
	if field == "rate" {
		grid = 10_000
	}
	for size < grid {
		grid /= 10
	}
	for size/grid >= 5000 {
		grid *= 10
	}
	return grid
}
