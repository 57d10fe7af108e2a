package checker_test

import (
	"time"

	"pgregory.net/rapid"

	. "locklab/checker"
	"locklab/clock"
)

// world is a tiny simulator for property tests: clients that share a lock,
// good or bad, and a register or a list, whose history it records. Every
// micro-step takes one nanosecond. Its faults: a lock that is granted to
// several, that ends early, grants that are never acknowledged, acknowledgements without a grant, late
// writes, writes that vanish, crashes.
type world struct {
	t       *rapid.T
	h       *History
	now     clock.Time
	agents  []*agent
	holder  int // the tenure that holds the lock by its position in h.Ops, -1 for none
	expires clock.Time
	value   int64
	list    []int64
	next    int64 // a value not written before
}

// agent is a client or a write that is still under way. step performs its next
// micro-step and returns false when it is done.
type agent struct{ step func() bool }

func (w *world) chance(name string, percent int) bool {
	return rapid.IntRange(0, 99).Draw(w.t, name) < percent
}

// drawHistory lets a random world run.
func drawHistory(t *rapid.T) *History {
	w := &world{t: t, holder: -1, h: &History{
		Clients: []string{"A", "B", "C"}, KnowsGrants: true, Omniscient: true,
		Promise: LeasePromise, TTL: time.Duration(rapid.IntRange(3, 30).Draw(t, "ttl")),
		StuckAfter: 40,
	}}
	if rapid.Bool().Draw(t, "list") {
		w.h.Data = List
	}
	if rapid.Bool().Draw(t, "session") {
		w.h.Promise = SessionPromise
	}
	w.h.Once = rapid.IntRange(0, 9).Draw(t, "once") == 0
	for c := range rapid.IntRange(1, 3).Draw(t, "clients") {
		w.agents = append(w.agents, w.client(int32(c), rapid.IntRange(1, 3).Draw(t, "sections")))
	}
	for len(w.agents) > 0 && w.now < 300 {
		i := rapid.IntRange(0, len(w.agents)-1).Draw(t, "who")
		w.now++
		w.expire()
		if !w.agents[i].step() {
			w.agents = append(w.agents[:i], w.agents[i+1:]...)
		}
	}
	w.h.End = w.now + 1
	w.h.Final = []int64{w.value}
	if w.h.Data == List {
		w.h.Final = append([]int64{}, w.list...)
	}
	return w.h
}

func (w *world) at() Instant { return Instant{At: w.now, Step: int64(w.now)} }

// expire ends a grant whose time has come, or, seldom, before.
func (w *world) expire() {
	if w.holder >= 0 && (w.now >= w.expires || w.chance("early end", 1)) {
		w.end(EndExpired)
	}
}

func (w *world) end(how End) {
	a := &w.h.Ops[w.holder]
	a.Ended, a.End = w.at(), how
	w.holder = -1
}

// call records an operation and returns its position.
func (w *world) call(op Op) int {
	op.ID = int32(len(w.h.Ops) + 1)
	op.Invoke, op.Return, op.Effect = w.at(), Never, Never
	op.Granted, op.Ended, op.BelievesUntil, op.SessionLost = Never, Never, Never, Never
	if op.Kind == Acquire {
		op.Tenure = op.ID
	}
	w.h.Ops = append(w.h.Ops, op)
	return len(w.h.Ops) - 1
}

func (w *world) answer(pos int, o Outcome) {
	w.h.Ops[pos].Outcome, w.h.Ops[pos].Return = o, w.at()
}

// client is a state machine: state is the function that performs the next micro-step.
func (w *world) client(c int32, sections int) *agent {
	var state func() bool
	section, tenure, pos := int32(0), 0, 0
	var idle, granting, told, working, applying, answered, releasing func() bool
	to := func(next func() bool) bool { state = next; return true }

	idle = func() bool {
		if int(section) == sections {
			return false
		}
		section++
		tenure = w.call(Op{Kind: Acquire, Client: c, Section: section})
		return to(granting)
	}
	granting = func() bool {
		a := &w.h.Ops[tenure]
		switch {
		case w.holder < 0 || w.chance("bad grant", 10):
			if w.holder >= 0 {
				w.end(EndTaken)
			}
			a.Granted, a.Effect = w.at(), w.at()
			w.holder, w.expires = tenure, w.now+clock.Time(w.h.TTL)
			if w.h.Promise == SessionPromise {
				w.expires = clock.Never
			}
			if w.chance("orphan", 5) {
				w.expires = w.now + 5
				return to(idle)
			}
		case w.chance("phantom", 3):
		default:
			return true // wait
		}
		return to(told)
	}
	told = func() bool {
		w.answer(tenure, OK)
		return to(working)
	}
	working = func() bool {
		a := &w.h.Ops[tenure]
		switch {
		case w.chance("crash", 3):
			a.BelievesUntil, a.Loss = w.at(), LossCrashed
			if w.holder == tenure && w.h.Promise == SessionPromise {
				w.expires = w.now + 1
			}
			return false
		case w.chance("release", 20):
			pos = w.call(Op{Kind: Release, Client: c, Section: section, Tenure: a.ID})
			w.h.Ops[tenure].BelievesUntil, w.h.Ops[tenure].Loss = w.at(), LossReleased
			return to(releasing)
		}
		pos = w.call(w.operation(c, section, int32(tenure+1)))
		if w.h.Ops[pos].Kind != Read && w.chance("late write", 15) {
			w.late(pos)
			return true
		}
		return to(applying)
	}
	applying = func() bool { w.apply(pos); return to(answered) }
	answered = func() bool {
		if w.h.Ops[pos].Decision == Rejected {
			w.answer(pos, Refused)
		} else {
			w.answer(pos, OK)
		}
		return to(working)
	}
	releasing = func() bool {
		w.h.Ops[pos].Effect = w.at()
		if w.holder == tenure {
			w.end(EndReleased)
		}
		w.answer(pos, OK)
		return to(idle)
	}
	state = idle
	return &agent{func() bool { return state() }}
}

// operation draws what a client does in its section.
func (w *world) operation(c, section, tenure int32) Op {
	op := Op{Kind: Read, Client: c, Section: section, Tenure: tenure}
	if rapid.Bool().Draw(w.t, "writes") {
		op.Kind = Write
		w.next++
		op.Value = w.next
		if w.h.Data == List {
			op.Kind = Append
		}
		if w.chance("same value", 20) {
			op.Value = rapid.Int64Range(0, w.next).Draw(w.t, "value")
		}
	}
	return op
}

// late leaves a write of unknown outcome under way: it lands some time, or never.
func (w *world) late(pos int) {
	if w.chance("dropped", 30) {
		return
	}
	w.agents = append(w.agents, &agent{func() bool { w.apply(pos); return false }})
}

// apply lets the resource decide an operation.
func (w *world) apply(pos int) {
	op := &w.h.Ops[pos]
	op.Effect = w.at()
	if w.chance("rejected", 5) {
		op.Decision = Rejected
		return
	}
	op.Decision, op.Applied = Accepted, 1
	vanishes := w.chance("vanishes", 4)
	switch op.Kind {
	case Read:
		op.Seen = w.value
		if w.h.Data == List {
			op.Seen = int64(len(w.list))
		}
	case Write:
		if !vanishes {
			w.value = op.Value
		}
	case Append:
		if !vanishes {
			w.list = append(w.list, op.Value)
		}
	}
}
