package checker

// act is an operation that the resource decided. It took effect at some moment
// between from and at: the same instant where the simulator knows it, the
// whole of the call where only its client does.
type act struct {
	op       *Op
	pos      int32 // in h.Ops
	tenure   int32 // none for an operation outside any tenure
	from, at Instant
}

// before reports whether a surely took effect before b.
func (a *act) before(b *act) bool { return a.at.Before(b.from) }

// worksOnData reports whether the resource, not the lock service, decides the operation.
func (k Kind) worksOnData() bool {
	return k == Enter || k == Read || k == Write || k == Append
}

// changesData reports whether the operation writes.
func (k Kind) changesData() bool { return k == Write || k == Append }

// judge returns what the resource made of an operation, and between which
// instants. An acknowledgement is a decision, also where the simulator saw none:
// who tells a client that its write is done must not be believed to have done
// nothing. A refusal is one only where nobody is omniscient: the resource may
// never have been reached.
func (h *History) judge(op *Op) (d Decision, from, at Instant) {
	if !op.Kind.worksOnData() {
		return Undecided, Never, Never
	}
	d = op.Decision
	if d == Undecided {
		switch {
		case op.Outcome == OK:
			d = Accepted
		case op.Outcome == Refused && !h.Omniscient:
			d = Rejected
		}
	}
	switch {
	case d == Undecided:
		return Undecided, Never, Never
	case op.Effect.Known():
		return d, op.Effect, op.Effect
	case op.Return.Known():
		return d, op.Invoke, op.Return
	}
	return Undecided, Never, Never
}

// collectActs gathers what the resource decided, and when each tenure worked.
func (c *Checker) collectActs() {
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		d, from, at := c.h.judge(op)
		a := act{op: op, pos: int32(i), tenure: c.tenureOf[i], from: from, at: at}
		switch d {
		case Accepted:
			c.accepted = append(c.accepted, a)
		case Rejected:
			c.rejected = append(c.rejected, a)
		}
	}
	insertionSort(c.accepted, func(a, b act) bool { return a.at.Before(b.at) })
	for i := range c.accepted {
		a := &c.accepted[i]
		if a.tenure == none {
			continue
		}
		t := &c.tenures[a.tenure]
		if t.first == nil {
			t.first = a
		}
		if t.firstWrite == nil && a.op.Kind.changesData() {
			t.firstWrite = a
		}
		t.last = a
	}
}
