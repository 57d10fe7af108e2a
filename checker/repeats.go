package checker

// checkRepeats reports double-apply: something took effect more often than it may.
func (c *Checker) checkRepeats() {
	for i := range c.accepted {
		op := c.accepted[i].op
		if op.Applied > 1 && (op.Kind == Append || op.Kind == Write && c.h.Once) {
			c.add(DoubleApply, c.accepted[i].at.At, op)
		}
	}
	if c.h.Once {
		c.checkOnce()
	}
	if c.h.Data == List && c.h.Final != nil {
		c.checkFinalRepeats()
	}
}

// checkOnce reports sections that wrote under more than one tenure, and jobs
// that were done by more than one operation. The job's name is the value of a
// blind write or an append; a computed value names no job.
func (c *Checker) checkOnce() {
	if c.once == nil {
		c.once = make(map[sectionKey]int32)
	}
	clear(c.once)
	c.values.reset(len(c.accepted))
	c.states = c.states[:0] // the first to have done each job
	for i := range c.accepted {
		a := &c.accepted[i]
		if !a.op.Kind.changesData() {
			continue
		}
		first, seen := c.once[keyOf(a.op)]
		if !seen {
			c.once[keyOf(a.op)] = int32(i)
		}
		if seen && a.tenure != none && c.accepted[first].tenure != a.tenure {
			c.add(DoubleApply, a.at.At, c.accepted[first].op, a.op)
			continue
		}
		if a.op.Kind == Write && c.basis(a).op != nil {
			continue
		}
		n := c.values.number(a.op.Value)
		if int(n) == len(c.states) {
			c.states = append(c.states, state{pos: a.pos})
			continue
		}
		if job := &c.h.Ops[c.states[n].pos]; job.Tenure != a.op.Tenure {
			c.add(DoubleApply, a.at.At, job, a.op)
		}
	}
}

// checkFinalRepeats reports values that stand in the final list more often
// than operations may have appended them. A value that nobody appended is no
// repetition; checkSerial says that nothing explains it.
func (c *Checker) checkFinalRepeats() {
	c.values.reset(len(c.h.Ops))
	left := c.nodes[:0] // how many may still be found
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		if op.Kind != Append || !c.mayHaveApplied(op) {
			continue
		}
		n := c.values.number(op.Value)
		if int(n) == len(left) {
			left = append(left, node{op: op})
		}
		left[n].in += max(op.Applied, 1)
	}
	c.nodes = left
	for _, v := range c.h.Final {
		n := c.values.lookup(v)
		if n == none {
			continue
		}
		left[n].in--
		if left[n].in == -1 {
			c.add(DoubleApply, c.h.End, left[n].op)
		}
	}
}

// mayHaveApplied reports whether a write took effect or, for all we know, may have.
func (c *Checker) mayHaveApplied(op *Op) bool {
	d, _, _ := c.h.judge(op)
	return d == Accepted || !c.h.Omniscient && op.Outcome == Unknown
}
