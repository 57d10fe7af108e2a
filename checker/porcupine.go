package checker

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// BlackBox is the opinion of porcupine, a linearizability checker that knows
// nothing of this package's checks, about one view of a history.
type BlackBox struct {
	Name   string
	Result porcupine.CheckResult // porcupine.Ok, Illegal or Unknown (out of time)
	// Implies are the findings of which at least one must have been reported
	// when porcupine rejects the view.
	Implies []FindingKind

	// For porcupine.Visualize.
	Model      porcupine.Model
	Operations []porcupine.Operation
	Info       porcupine.LinearizationInfo
	// Rank gives the place of an instant on the operations' time line, for
	// annotations: porcupine knows one number for time, not time and step.
	Rank func(Instant) int64
}

// Porcupine judges a history by linearizability, in up to three views, each within the timeout (0: no limit):
//
//   - "lock with expiry": acquires succeed only when there is room, and
//     expiry is an operation of its own that may happen once the promise has
//     ended. Only where the grants are known.
//   - "mutex": what Jepsen checks, a lock that is held from an acquire's
//     return to the end of the client's belief. Of a semaphore so many may
//     hold it as it has permits. Not for quotas, whose clients hold nothing,
//     nor for barriers, which let in all.
//   - "sections": whole critical sections as atomic operations on the data.
//     Only where one is to work at a time: the sections of others may interleave.
//
// Unknown outcomes are resolved from what the history knows, because porcupine
// takes exponential time in operations that never return.
func Porcupine(h *History, timeout time.Duration) []BlackBox {
	c := new(Checker)
	c.Check(h)
	var boxes []BlackBox
	if h.KnowsGrants {
		boxes = append(boxes, expiryBox(c))
	}
	if h.held() {
		boxes = append(boxes, mutexBox(c))
	}
	if c.exclusive {
		if box, ok := sectionsBox(c); ok {
			boxes = append(boxes, box)
		}
	}
	for i := range boxes {
		b := &boxes[i]
		b.Rank = newTimeline(c).rank
		b.Result, b.Info = porcupine.CheckOperationsVerbose(b.Model, b.Operations, timeout)
	}
	return boxes
}

// CrossCheck compares a report with porcupine's opinions about the same
// history, which should be omniscient. A rejection without any of the findings that it implies
// is a fault of locklab: a check overlooked something, or the simulator recorded what cannot be.
func CrossCheck(r Report, boxes []BlackBox) error {
	for i := range boxes {
		b := &boxes[i]
		if b.Result == porcupine.Illegal && !slices.ContainsFunc(b.Implies, r.Has) {
			return fmt.Errorf("porcupine rejects the view %q, but none of %v was found: this is a fault of locklab", b.Name, b.Implies)
		}
	}
	return nil
}

// lockStep is an operation on a lock: somebody takes it or lets go of it. The
// holder is a tenure in one view and a client in the other.
type lockStep struct {
	take   bool
	holder int32
	name   string
}

// lockModel is a lock that up to capacity different holders may have at once.
// A holder may take it again, and then has to let go as often. Letting go of
// what one does not hold changes nothing.
func lockModel(capacity int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return []int32(nil) },
		Step: func(state, input, _ any) (bool, any) {
			holders, step := state.([]int32), input.(lockStep)
			at := slices.Index(holders, step.holder)
			if !step.take {
				if at < 0 {
					return true, holders
				}
				return true, slices.Delete(slices.Clone(holders), at, at+1)
			}
			if at < 0 && different(holders) >= capacity {
				return false, holders
			}
			next := append(slices.Clone(holders), step.holder)
			slices.Sort(next)
			return true, next
		},
		Equal:             func(a, b any) bool { return slices.Equal(a.([]int32), b.([]int32)) },
		DescribeOperation: func(input, _ any) string { return input.(lockStep).name },
		DescribeState:     func(state any) string { return fmt.Sprintf("held by %v", state) },
	}
}

// different counts the different elements of a sorted list.
func different(sorted []int32) int {
	n := 0
	for i := range sorted {
		if i == 0 || sorted[i] != sorted[i-1] {
			n++
		}
	}
	return n
}

// expiryBox is the lock as the service ran it. A grant to a client that never
// learned of it counts as taken when it was granted; an acquire that was never
// granted and never acknowledged did nothing.
func expiryBox(c *Checker) BlackBox {
	box := BlackBox{
		Name:    "lock with expiry",
		Implies: []FindingKind{LeaseBroken, Phantom, OverCapacity},
		Model:   lockModel(c.capacity),
	}
	t := newTimeline(c)
	for _, i := range c.order {
		n := &c.tenures[i]
		back := n.op.Granted
		if n.acknowledged() {
			back = n.op.Return
			if n.op.Granted.Known() {
				back = later(back, n.op.Granted)
			}
		}
		who := explainer{h: c.h}.who(n.op)
		t.add(&box, n.op.Client, lockStep{true, n.op.ID, "granted to " + who}, n.op.Invoke, back)
		if from := c.mayEnd(n); from.Known() {
			t.add(&box, n.op.Client, lockStep{false, n.op.ID, "end of the grant to " + who}, from, Never)
		}
	}
	return box
}

// mayEnd is when a grant may end at the earliest. The service owes nothing to
// a client that was never told, nor after a release was sent. Without a promise, and for a
// semaphore, all that counts is when the grant did end.
func (c *Checker) mayEnd(n *tenure) Instant {
	switch {
	case !c.exclusive || c.h.Promise == NoPromise:
		return n.op.Ended
	case !n.acknowledged():
		return n.op.Granted
	case c.h.Promise == SessionPromise:
		return earlier(n.sessionEnd(), n.released)
	}
	return earlier(Instant{At: c.h.leaseEnd(n.ackPassed)}, n.released)
}

// mutexBox is the lock as the clients believe in it: the end of a belief,
// whatever ended it, counts as the release.
func mutexBox(c *Checker) BlackBox {
	box := BlackBox{Name: "mutex", Implies: []FindingKind{Overlap}, Model: lockModel(c.capacity)}
	t := newTimeline(c)
	for _, i := range c.beliefs {
		op := c.tenures[i].op
		if !op.Return.Before(op.BelievesUntil) {
			continue // it believed for no time at all
		}
		name := explainer{h: c.h}.name(op.Client)
		t.add(&box, op.Client, lockStep{true, op.Client, name + " acquires"}, op.Invoke, op.Return)
		if op.BelievesUntil.Known() {
			t.add(&box, op.Client, lockStep{false, op.Client, name + " " + op.Loss.String()}, op.BelievesUntil, op.BelievesUntil)
		}
	}
	return box
}

// timeline turns instants into porcupine's numbers, keeping their order: the
// number of an instant is its rank among all instants of the history.
type timeline struct{ instants []Instant }

func newTimeline(c *Checker) *timeline {
	t := &timeline{}
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		t.instants = append(t.instants, op.Invoke, op.Return, op.Effect, op.Granted, op.Ended, op.BelievesUntil, op.SessionLost)
	}
	for i := range c.tenures { // promises end at moments of their own
		t.instants = append(t.instants, c.mayEnd(&c.tenures[i]))
	}
	t.instants = append(t.instants, Instant{At: c.h.End}, Never)
	slices.SortFunc(t.instants, compareInstants)
	t.instants = slices.Compact(t.instants)
	return t
}

func compareInstants(a, b Instant) int {
	switch {
	case a.Before(b):
		return -1
	case b.Before(a):
		return 1
	}
	return 0
}

func (t *timeline) rank(i Instant) int64 {
	n, _ := slices.BinarySearchFunc(t.instants, i, compareInstants)
	return int64(n)
}

func (t *timeline) add(box *BlackBox, client int32, input any, call, back Instant) {
	box.Operations = append(box.Operations, porcupine.Operation{
		ClientId: max(int(client), 0), Input: input,
		Call: t.rank(call), Return: max(t.rank(back), t.rank(call)),
	})
}
