package checker

// sectionKey names a critical section; one that is repeated under another
// tenure keeps its number.
type sectionKey struct{ client, section int32 }

func keyOf(op *Op) sectionKey { return sectionKey{op.Client, op.Section} }

// repeat is what became of a section one of whose operations was refused.
type repeat struct {
	wrote    Instant // the last moment at which a write of it may have been accepted
	written  bool
	crashed  Instant // the last moment at which its client crashed in it
	reported bool
}

// checkRefusals reports refused for operations of overtaken tenures, and
// self-rejected for sections of the newest tenure that never came to write.
func (c *Checker) checkRefusals() {
	candidates := 0
	for i := range c.rejected {
		r := &c.rejected[i]
		switch {
		case r.tenure == none || c.tenures[r.tenure].rank == none:
			r.op = nil
		case c.overtaken(r) != nil:
			c.add(RefusedLate, r.at.At, r.op, c.overtaken(r))
			r.op = nil
		default:
			candidates++
		}
	}
	if candidates > 0 {
		c.followRepeats()
		c.checkSelfRejected()
	}
}

// overtaken returns the acquire of a tenure that made the refusal right: one
// granted later than the refused operation's own, before the refusal. For a
// semaphore, as many as it admits must have been granted since. A phantom has no
// right to the data at all: whoever was granted the lock last, before the
// refusal, was right to be protected from it.
func (c *Checker) overtaken(r *act) *Op {
	if t := &c.tenures[r.tenure]; t.phantom(c.h) {
		for i := len(c.order) - 1; i >= 0; i-- {
			if o := &c.tenures[c.order[i]]; o.granted(c.h) && o.order.Before(r.at) {
				return o.op
			}
		}
		return nil
	}
	rank := int(c.tenures[r.tenure].rank) + c.capacity
	if rank >= len(c.order) || !c.tenures[c.order[rank]].order.Before(r.at) {
		return nil
	}
	return c.tenures[c.order[rank]].op
}

// followRepeats learns what became of the sections with a refused operation.
func (c *Checker) followRepeats() {
	if c.repeats == nil {
		c.repeats = make(map[sectionKey]*repeat)
	}
	clear(c.repeats)
	for i := range c.rejected {
		if op := c.rejected[i].op; op != nil {
			c.repeats[keyOf(op)] = &repeat{}
		}
	}
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		s := c.repeats[keyOf(op)]
		if s == nil {
			continue
		}
		if op.Kind == Acquire && op.Loss == LossCrashed {
			s.crashed = later(s.crashed, op.BelievesUntil)
		}
		if !op.Kind.changesData() {
			continue
		}
		if d, _, at := c.h.judge(op); d == Accepted {
			s.wrote, s.written = later(s.wrote, at), true
		} else if !c.h.Omniscient && op.Outcome == Unknown {
			s.wrote, s.written = Never, true // for all we know it did
		}
	}
}

// checkSelfRejected reports each section at most once. A client that crashed
// after the refusal had no chance to repeat it.
func (c *Checker) checkSelfRejected() {
	for i := range c.rejected {
		r := &c.rejected[i]
		if r.op == nil {
			continue
		}
		s := c.repeats[keyOf(r.op)]
		completed := s.written && !s.wrote.Before(r.at)
		if completed || s.reported || r.at.Before(s.crashed) {
			continue
		}
		s.reported = true
		c.add(SelfRejected, r.at.At, r.op)
	}
}
