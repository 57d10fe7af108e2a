package checker

import (
	"slices"

	"locklab/clock"
)

// span is a stretch of true time in which one client was willing.
type span struct {
	from, to clock.Time
	op       *Op
}

// checkStuck looks for stretches after the last fault in which nobody
// believed and no acquire succeeded for as long as the bound. Only in those does
// it look whether somebody was willing.
func (c *Checker) checkStuck() {
	if c.h.StuckAfter <= 0 || !c.h.FaultsOver.Known() {
		return
	}
	free := c.h.FaultsOver.At // since when nobody has believed
	for _, i := range c.beliefs {
		op := c.tenures[i].op
		c.checkFree(free, op.Return.At)
		free = max(free, op.Return.At)
		if op.Return.Before(op.BelievesUntil) {
			free = max(free, op.BelievesUntil.At)
		}
	}
	c.checkFree(free, c.h.End)
}

// checkFree reports the stretches of [from, to), in which nobody believed, through
// which some client was willing at every moment, if they reach the bound.
func (c *Checker) checkFree(from, to clock.Time) {
	if between(from, to) < c.h.StuckAfter {
		return
	}
	c.collectWilling(from, to)
	var run span // the stretch so far
	for _, s := range c.spans {
		if run.op == nil || s.from > run.to {
			c.addStuck(run)
			run = s
		}
		run.to = max(run.to, s.to)
	}
	c.addStuck(run)
}

func (c *Checker) addStuck(run span) {
	if run.op != nil && between(run.from, run.to) >= c.h.StuckAfter {
		c.add(Stuck, run.from, run.op)
	}
}

// collectWilling fills c.spans with the clients' willingness within [from, to),
// by its beginning.
func (c *Checker) collectWilling(from, to clock.Time) {
	c.spans = c.spans[:0]
	next := make(map[int32]*Op) // each client's next acquire; stretches like this are rare
	for i := len(c.tenures) - 1; i >= 0; i-- {
		op := c.tenures[i].op
		s := span{max(op.Invoke.At, from), min(c.willingUntil(op, next[op.Client]), to), op}
		if s.from < s.to {
			c.spans = append(c.spans, s)
		}
		next[op.Client] = op
	}
	slices.SortStableFunc(c.spans, func(a, b span) int { return int(min(max(a.from-b.from, -1), 1)) })
}

// willingUntil is when the willingness that an acquire began ends, unless the
// client's next acquire continues it. A client that was refused and tries again
// in the same section was willing during the pause between.
func (c *Checker) willingUntil(op, next *Op) clock.Time {
	until := c.h.End
	if next != nil {
		until = next.Invoke.At
	}
	switch {
	case op.Outcome == OK,
		op.Outcome == Refused && (next == nil || next.Section != op.Section):
		until = min(until, op.Return.At)
	case op.Loss == LossCrashed: // it crashed while it waited
		until = min(until, op.BelievesUntil.At)
	}
	return until
}
