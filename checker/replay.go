package checker

// state is what the register held after a write.
type state struct {
	value int64
	pos   int32 // the write's position in h.Ops; none for the beginning
}

// replay applies the accepted operations in order of effect to a register or a
// list, and compares what reads saw and what was there in the end. Where they
// disagree because a write is gone, it reports write-lost if the write had
// been acknowledged. If it had not, nobody was promised anything: the write
// counts as never made (c.gone), so that no section need explain it.
func (c *Checker) replay() {
	if c.h.Data == List {
		c.replayList()
		return
	}
	c.states = append(c.states[:0], state{c.h.Initial, none})
	for i := range c.accepted {
		a := &c.accepted[i]
		switch {
		case a.op.Kind == Write:
			c.states = append(c.states, state{a.op.Value, a.pos})
		case a.op.Kind == Read && a.op.Outcome == OK && a.op.Seen != c.states[len(c.states)-1].value:
			c.rewind(a.op.Seen, a)
		}
	}
	if len(c.h.Final) == 1 && c.h.Final[0] != c.states[len(c.states)-1].value {
		c.rewind(c.h.Final[0], nil)
	}
}

// rewind handles a value that is not the one last written: seen by the read,
// or in the end if read is nil. The writes since the value was last there are gone.
func (c *Checker) rewind(seen int64, read *act) {
	if !c.h.Omniscient {
		c.checkSurelyGone(seen, read)
		return
	}
	p := len(c.states) - 1
	for p >= 0 && c.states[p].value != seen {
		p--
	}
	if p < 0 { // never written: checkSerial will not find an explanation either
		c.states = append(c.states, state{seen, none})
		return
	}
	back := c.states[p]
	if back.pos == none || c.h.Ops[back.pos].Applied <= 1 {
		c.lose(c.states[p+1:], read)
	} else if !c.h.Once { // or it is reported already
		c.addDuplicate(&c.h.Ops[back.pos], read)
	}
	if back.pos != none {
		c.gone[back.pos] = false // it was seen after all
	}
	c.states = append(c.states, back)
}

// lose marks the writes of the given states as gone and reports the newest
// that had been acknowledged.
func (c *Checker) lose(states []state, read *act) {
	var acknowledged *Op
	for _, s := range states {
		switch {
		case s.pos == none:
		case c.h.Ops[s.pos].Outcome == OK:
			acknowledged = &c.h.Ops[s.pos]
		default:
			c.gone[s.pos], c.anyGone = true, true
		}
	}
	if acknowledged != nil {
		c.addLost(acknowledged, read)
	}
}

// addLost reports that the write was not there when read looked, or in the end.
func (c *Checker) addLost(write *Op, read *act) {
	if read == nil {
		c.add(WriteLost, c.h.End, write)
		return
	}
	c.add(WriteLost, read.at.At, write, read.op)
}

// addDuplicate reports double-apply for a write whose second application
// overwrote what had been written since. A duplicate that does no such harm is
// reported only where the workload says once.
func (c *Checker) addDuplicate(write *Op, read *act) {
	if read == nil {
		c.add(DoubleApply, c.h.End, write)
		return
	}
	c.add(DoubleApply, read.at.At, write)
}

// checkSurelyGone is rewind where nobody knows when writes took effect: the
// value was surely out of date if some acknowledged write began after all
// writes of that value had returned, and returned before the read began.
func (c *Checker) checkSurelyGone(seen int64, read *act) {
	var last Instant // when the last write of the value had returned
	for i := range c.h.Ops {
		if op := &c.h.Ops[i]; op.Kind == Write && op.Value == seen && c.mayHaveApplied(op) {
			last = later(last, op.Return)
		}
	}
	for i := len(c.accepted) - 1; i >= 0; i-- {
		w := &c.accepted[i]
		if w.op.Kind != Write || read != nil && !w.before(read) {
			continue
		}
		if last.Before(w.op.Invoke) && w.op.Outcome == OK {
			c.addLost(w.op, read)
			return
		}
	}
}

// replayList does the same for a list, of whose end something may be missing.
func (c *Checker) replayList() {
	c.states = c.states[:0] // one for each element
	repeated := false
	for i := range c.accepted {
		a := &c.accepted[i]
		switch {
		case a.op.Kind == Append:
			c.states = append(c.states, state{a.op.Value, a.pos})
			repeated = repeated || a.op.Applied > 1
		case a.op.Kind == Read && a.op.Outcome == OK && !repeated && a.op.Seen < int64(len(c.states)):
			c.shorten(a)
		}
	}
	if c.h.Final != nil {
		c.checkMissing()
	}
}

// shorten handles a read that saw fewer elements than had been appended.
func (c *Checker) shorten(read *act) {
	length := max(read.op.Seen, 0)
	if c.h.Omniscient {
		c.lose(c.states[length:], read)
		c.states = c.states[:length]
		return
	}
	for _, s := range c.states { // only those that were surely there count
		if w := &c.h.Ops[s.pos]; w.Return.Before(read.from) {
			length--
		}
		if length < 0 {
			c.addLost(&c.h.Ops[s.pos], read)
			return
		}
	}
}

// checkMissing looks for what had been appended, and not been missed before,
// in the final list.
func (c *Checker) checkMissing() {
	c.values.reset(len(c.h.Final))
	left := c.nodes[:0]
	for _, v := range c.h.Final {
		n := c.values.number(v)
		if int(n) == len(left) {
			left = append(left, node{})
		}
		left[n].in++
	}
	c.nodes = left
	for _, s := range c.states {
		if n := c.values.lookup(s.value); n != none && left[n].in > 0 {
			left[n].in--
			continue
		}
		c.anyGone = true
		if c.h.Ops[s.pos].Outcome == OK {
			c.addLost(&c.h.Ops[s.pos], nil)
			continue
		}
		c.gone[s.pos] = true
	}
}
