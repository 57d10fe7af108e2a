package checker

import (
	"math"
	"slices"
	"time"

	"locklab/clock"
)

// tenure is one grant's life, as far as the history tells.
type tenure struct {
	op *Op // its Acquire
	// order is its place among the grants: when it was granted or, for a
	// phantom and where nobody knows the grants, when its acquire returned.
	order Instant
	rank  int32 // its position in Checker.order; none if it was never granted
	// released is when it gave the lock up of its own will: when it sent its
	// release, or when the service saw one that is not in the history (a
	// lock that ends with its transaction).
	released Instant
	// passed is the grant of the next tenure after it.
	passed Instant
	next   int32 // that tenure; none if there is none
	// The last acknowledged acquire or renewal: when it was sent, among those
	// sent before the lock passed, before the grant ended, and so far.
	ackPassed, ackEnded, ackLast clock.Time
	refusal                      *Op  // the first renewal that was refused within the promise
	broken                       bool // reported as lease-broken

	// Its work: its first and last accepted operation and its first accepted
	// write, nil if there is none.
	first, last, firstWrite *act
}

// acknowledged reports whether the client was told that it holds the lock.
func (t *tenure) acknowledged() bool { return t.op.Outcome == OK && t.op.Return.Known() }

// granted reports whether the lock service granted it, as far as anybody knows.
func (t *tenure) granted(h *History) bool {
	if h.KnowsGrants {
		return t.op.Granted.Known()
	}
	return t.acknowledged()
}

// phantom reports whether the client was told of a grant that never was.
func (t *tenure) phantom(h *History) bool { return t.acknowledged() && !t.granted(h) }

// Op returns the operation with the given ID, or nil.
func (h *History) Op(id int32) *Op {
	if i := int(id) - 1; i >= 0 && i < len(h.Ops) && h.Ops[i].ID == id {
		return &h.Ops[i] // the rule: operations are counted from 1
	}
	if i := slices.IndexFunc(h.Ops, func(op Op) bool { return op.ID == id }); i >= 0 {
		return &h.Ops[i]
	}
	return nil
}

// collectTenures finds the tenures and assigns every operation to its own.
func (c *Checker) collectTenures() {
	c.indexOps()
	ops := c.h.Ops
	c.tenureOf = resized(c.tenureOf, len(ops))
	for i := range ops {
		op := &ops[i]
		c.tenureOf[i] = none
		if op.Kind == Acquire {
			c.tenureOf[i] = int32(len(c.tenures))
			c.tenures = append(c.tenures, tenure{op: op, rank: none, released: Never, passed: Never, next: none})
		}
	}
	for i := range ops {
		op := &ops[i]
		if op.Kind == Acquire {
			continue
		}
		at := c.acquireAt(op.Tenure)
		if at == none {
			continue
		}
		t := c.tenureOf[at]
		c.tenureOf[i] = t
		if op.Kind == Release {
			c.tenures[t].released = earlier(c.tenures[t].released, op.sent())
		}
	}
}

// acquireAt returns the position of the Acquire with the given ID, or none.
func (c *Checker) acquireAt(id int32) int32 {
	if id <= 0 { // an operation outside any tenure: not worth a search
		return none
	}
	at := int32(id - 1)
	if c.positions != nil {
		var ok bool
		if at, ok = c.positions[id]; !ok {
			return none
		}
	}
	if int(at) < len(c.h.Ops) && c.h.Ops[at].Kind == Acquire {
		return at
	}
	return none
}

// indexOps makes the map from IDs to positions, unless the IDs follow the
// rule and count from 1.
func (c *Checker) indexOps() {
	c.positions = nil
	for i := range c.h.Ops {
		if c.h.Ops[i].ID == int32(i)+1 {
			continue
		}
		c.positions = make(map[int32]int32, len(c.h.Ops))
		for j := range c.h.Ops {
			c.positions[c.h.Ops[j].ID] = int32(j)
		}
		return
	}
}

// orderGrants puts the tenures in order of their grant and notes what follows what.
func (c *Checker) orderGrants() {
	for i := range c.tenures {
		t := &c.tenures[i]
		if t.op.End == EndReleased {
			t.released = earlier(t.released, t.op.Ended)
		}
		switch {
		case c.h.KnowsGrants && t.op.Granted.Known():
			t.order = t.op.Granted
		case t.acknowledged():
			t.order = t.op.Return
		default:
			continue
		}
		c.order = append(c.order, int32(i))
	}
	c.sortTenures(c.order, func(t *tenure) Instant { return t.order })
	for rank, i := range c.order {
		c.tenures[i].rank = int32(rank)
	}
	c.findSuccessors()
	c.findLateGrants()
}

// sortTenures sorts indexes of tenures by an instant. Acquires mostly succeed
// in the order in which they were called, so an insertion sort is mostly one pass.
func (c *Checker) sortTenures(list []int32, key func(*tenure) Instant) {
	insertionSort(list, func(a, b int32) bool {
		return key(&c.tenures[a]).Before(key(&c.tenures[b]))
	})
}

// insertionSort is stable, and linear for what is nearly sorted; what is not
// falls back to a sort that is never quadratic.
func insertionSort[T any](list []T, less func(a, b T) bool) {
	moves := 16 * len(list)
	for i := 1; i < len(list); i++ {
		for j := i; j > 0 && less(list[j], list[j-1]); j-- {
			list[j], list[j-1] = list[j-1], list[j]
			moves--
		}
		if moves < 0 {
			slices.SortStableFunc(list, func(a, b T) int {
				switch {
				case less(a, b):
					return -1
				case less(b, a):
					return 1
				}
				return 0
			})
			return
		}
	}
}

// findSuccessors finds, for every granted tenure, the next one that is known
// to have been granted after it. Where nobody knows the grants, two acquires
// that were in flight together may have been granted in either order; only a
// tenure that was asked for after this one's acquire had returned is surely later.
func (c *Checker) findSuccessors() {
	for rank, i := range c.order {
		t := &c.tenures[i]
		for _, j := range c.order[rank+1:] {
			n := &c.tenures[j]
			if n.phantom(c.h) || !c.h.KnowsGrants && !t.op.Return.Before(n.op.Invoke) {
				continue
			}
			t.next, t.passed = j, n.order
			break
		}
	}
}

// findLateGrants notes whether the exception for late grants (see precedes)
// can matter at all in this history.
func (c *Checker) findLateGrants() {
	released := Never // the earliest release among the tenures granted later
	for rank := len(c.order) - 1; rank >= 0; rank-- {
		t := &c.tenures[c.order[rank]]
		if t.op.Return.Known() && released.Before(t.op.Return) {
			c.lateGrant = true
			return
		}
		released = earlier(released, t.released)
	}
}

// precedes reports whether tenure a comes before tenure b where the data is
// concerned. That is the order of grants, with one exception: when b released
// before a's acquire returned (a late grant: the reply was long under way),
// a's client begins only after b's has done, and their sections are serial in
// the opposite order.
func (c *Checker) precedes(a, b *tenure) bool {
	if a.rank > b.rank {
		return late(b, a)
	}
	return a.rank < b.rank && !late(a, b)
}

// late reports whether a, granted before b, learned of it after b had released.
func late(a, b *tenure) bool {
	return a.op.Return.Known() && b.released.Before(a.op.Return)
}

// leaseEnd is the true time up to which a lease is promised by an acquire or
// renewal sent at the given time.
func (h *History) leaseEnd(sent clock.Time) clock.Time {
	return sent.Add(h.TTL).Add(-h.Drift)
}

// sessionEnd is when a session grant's promise ends: with its client's crash,
// or with its session's loss in the network.
func (t *tenure) sessionEnd() Instant {
	if t.op.Loss == LossCrashed {
		return earlier(t.op.SessionLost, t.op.BelievesUntil)
	}
	return t.op.SessionLost
}

// crashedBefore reports whether the tenure's client crashed, believing, before i.
func (t *tenure) crashedBefore(i Instant) bool {
	return t.op.Loss == LossCrashed && t.op.BelievesUntil.Before(i)
}

func earlier(a, b Instant) Instant {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b Instant) Instant {
	if a.Before(b) {
		return b
	}
	return a
}

// between returns the time from a to b, saturating; 0 if b is not after a.
func between(a, b clock.Time) time.Duration {
	if b <= a {
		return 0
	}
	if d := time.Duration(b) - time.Duration(a); d > 0 {
		return d
	}
	return math.MaxInt64
}

// sent is when the request that was answered last was sent.
func (op *Op) sent() Instant {
	if op.Sent != (Instant{}) {
		return op.Sent
	}
	return op.Invoke
}
