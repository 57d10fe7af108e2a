package checker

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// sectionStep is a critical section as one operation on the data.
type sectionStep struct {
	reads   bool
	seen    int64   // the value, or the list's length
	writes  bool    // it leaves value, or appends values
	value   int64   //
	appends []int64 //
	torn    bool    // it contradicts itself: no state explains it
	final   []int64 // not a section but the look at the end
	name    string
}

// sectionsBox is the data as whole sections changed it, each at one moment
// between its acquire's call and the last return or effect of its operations,
// followed by a look at what was there in the end. It returns false where the
// view would be a guess: where unknown writes are doubtful, or elements of a
// list vanished or were repeated.
func sectionsBox(c *Checker) (BlackBox, bool) {
	box := BlackBox{
		Name:    "sections",
		Implies: []FindingKind{StaleWrite, TwoWriters, LostUpdate, DoubleApply, WriteLost},
		Model:   registerModel(c.h.Initial),
	}
	if c.h.Data == List {
		box.Model = listModel()
		if c.anyGone || c.found(DoubleApply) || c.found(WriteLost) || !c.locateAppends() {
			return box, false
		}
		c.collectListSections()
	} else {
		if !c.h.Omniscient && c.countUnknown() > 0 {
			return box, false
		}
		c.collectSections(c.unknownCounted(false))
	}
	t := newTimeline(c)
	for i := range c.sections {
		if s := &c.sections[i]; (s.reads() || s.writes()) && !c.ambiguous(s) {
			c.addSection(t, &box, int32(i))
		}
	}
	if c.h.Final != nil && (c.h.Data == List || len(c.h.Final) == 1) {
		t.add(&box, int32(len(c.h.Clients)), sectionStep{final: c.h.Final, name: fmt.Sprintf("in the end: %v", c.h.Final)}, Never, Never)
	}
	return box, true
}

// ambiguous reports whether the section only read a value that was written
// more than once. Its place among the sections is then not known: as values
// go it may have an order that the true times forbid. Leaving out a section that changed nothing
// never makes the rest harder to explain.
func (c *Checker) ambiguous(s *section) bool {
	if s.writes() || c.h.Data == List {
		return false
	}
	n := 0
	if s.read.Seen == c.h.Initial {
		n++
	}
	for i := range c.h.Ops {
		if op := &c.h.Ops[i]; op.Kind == Write && op.Value == s.read.Seen && c.mayHaveApplied(op) {
			n++
		}
	}
	return n > 1
}

// addSection adds the section with the given index.
func (c *Checker) addSection(t *timeline, box *BlackBox, index int32) {
	s := &c.sections[index]
	step := sectionStep{reads: s.reads(), writes: s.writes(), torn: s.torn != nil}
	some := s.write
	if s.reads() {
		step.seen, some = s.read.Seen, s.read
	}
	if s.writes() {
		step.value = s.write.Value
	}
	call, back := some.Invoke, some.Invoke
	if s.tenure != none {
		call = c.tenures[s.tenure].op.Invoke
	}
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		if op != some && (s.tenure == none || c.tenureOf[i] != s.tenure) || !op.Kind.worksOnData() {
			continue
		}
		back = later(back, c.endOf(op))
		if op.Kind == Append && c.position[i] != none {
			step.appends = append(step.appends, op.Value)
		}
	}
	step.name = step.describe(explainer{h: c.h}.who(some))
	t.add(box, some.Client, step, call, back)
}

// endOf is when an operation was surely over. A write of which nobody knows
// when it took effect may still do so.
func (c *Checker) endOf(op *Op) Instant {
	d, _, at := c.h.judge(op)
	switch {
	case d == Rejected:
		return op.Invoke
	case d == Undecided && c.h.Omniscient:
		return op.Invoke
	case d == Undecided:
		return Never
	case op.Return.Known():
		return later(op.Return, at)
	}
	return at
}

func (s *sectionStep) describe(who string) string {
	switch {
	case s.reads && len(s.appends) > 0:
		return fmt.Sprintf("%s: length %d, append %v", who, s.seen, s.appends)
	case len(s.appends) > 0:
		return fmt.Sprintf("%s: append %v", who, s.appends)
	case s.reads && s.writes:
		return fmt.Sprintf("%s: read %d, write %d", who, s.seen, s.value)
	case s.writes:
		return fmt.Sprintf("%s: write %d", who, s.value)
	}
	return fmt.Sprintf("%s: read %d", who, s.seen)
}

func registerModel(initial int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return initial },
		Step: func(state, input, _ any) (bool, any) {
			value, step := state.(int64), input.(sectionStep)
			switch {
			case step.torn || step.reads && step.seen != value:
				return false, value
			case step.final != nil:
				return step.final[0] == value, value
			case step.writes:
				return true, step.value
			}
			return true, value
		},
		DescribeOperation: func(input, _ any) string { return input.(sectionStep).name },
		DescribeState:     func(state any) string { return fmt.Sprint(state) },
	}
}

func listModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return []int64(nil) },
		Step: func(state, input, _ any) (bool, any) {
			list, step := state.([]int64), input.(sectionStep)
			switch {
			case step.torn || step.reads && step.seen != int64(len(list)):
				return false, list
			case step.final != nil:
				return slices.Equal(step.final, list), list
			}
			return true, slices.Concat(list, step.appends)
		},
		Equal:             func(a, b any) bool { return slices.Equal(a.([]int64), b.([]int64)) },
		DescribeOperation: func(input, _ any) string { return input.(sectionStep).name },
		DescribeState:     func(state any) string { return fmt.Sprint(state) },
	}
}
