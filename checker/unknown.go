package checker

// Where nobody is omniscient, a write with an unknown outcome counts as made
// if somebody saw its value. Not if nobody did: leaving out a write that
// nobody saw never makes a serial history look otherwise. When the value may also have
// come from elsewhere, the write is doubtful.

// How a value of the register came about; the flags of a table number in c.active.
const (
	valueKnown   = 1 << iota // it was there at the start, or by an acknowledged write
	valueSeen                // a read saw it, or it was there in the end
	valueUnknown             // an unknown write wrote it
	valueShared              // several unknown writes did
)

// countUnknown notes for every value how it came about, and returns how many
// unknown writes are doubtful.
func (c *Checker) countUnknown() int {
	c.values.reset(len(c.h.Ops) + 2)
	flags := c.active[:0]
	mark := func(v int64, flag int32) {
		n := c.values.number(v)
		if int(n) == len(flags) {
			flags = append(flags, 0)
		}
		if flag == valueUnknown && flags[n]&valueUnknown != 0 {
			flag = valueShared
		}
		flags[n] |= flag
	}
	mark(c.h.Initial, valueKnown)
	for _, v := range c.h.Final {
		mark(v, valueSeen)
	}
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		d, _, _ := c.h.judge(op)
		switch {
		case op.Kind == Read && op.Outcome == OK:
			mark(op.Seen, valueSeen)
		case op.Kind == Write && d == Accepted:
			mark(op.Value, valueKnown)
		case op.Kind == Write && d == Undecided && op.Outcome == Unknown:
			mark(op.Value, valueUnknown)
		}
	}
	c.active = flags
	return c.markUnknown(flags)
}

// markUnknown sorts the unknown writes into c.unknown and counts the doubtful.
func (c *Checker) markUnknown(flags []int32) int {
	c.unknown = resized(c.unknown, len(c.h.Ops))
	doubtful := 0
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		if d, _, _ := c.h.judge(op); op.Kind != Write || d != Undecided || op.Outcome != Unknown {
			continue
		}
		switch f := flags[c.values.lookup(op.Value)]; {
		case f&valueSeen == 0:
		case f&(valueKnown|valueShared) == 0:
			c.unknown[i] = surelyMade
		default:
			c.unknown[i] = perhapsMade
			doubtful++
		}
	}
	return doubtful
}

// What became of an unknown write, by position in h.Ops.
const (
	neverSeen uint8 = iota
	surelyMade
	perhapsMade
)

// unknownCounted returns which unknown writes take part in the sections: the
// sure ones, and the doubtful if asked for. Nil stands for none.
func (c *Checker) unknownCounted(doubtful bool) func(pos int) bool {
	if c.h.Omniscient {
		return nil
	}
	return func(pos int) bool {
		return c.unknown[pos] == surelyMade || doubtful && c.unknown[pos] == perhapsMade
	}
}
