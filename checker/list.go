package checker

// A list shows its own history, so its sections are serial exactly when the
// appends of each stand together in it, in program order, and each read found
// as many elements as stand before its section's own appends. A section that only read must
// have looked between two sections.

// checkList reports lost-update for a list. When something vanished from it
// or was applied twice (findings of their own), lengths and places no longer
// correspond, and there is nothing to check.
func (c *Checker) checkList() {
	if c.anyGone || c.found(DoubleApply) || c.found(WriteLost) || !c.locateAppends() {
		return
	}
	c.collectListSections()
	for i := range c.sections {
		s := &c.sections[i]
		switch {
		case s.torn != nil:
			own := s.write
			if own == nil {
				own = s.read
			}
			c.add(LostUpdate, c.effectOf(s.torn), own, s.torn)
		case s.reads() && s.writes() && s.read.Seen != int64(s.start):
			c.add(LostUpdate, c.effectOf(s.write), s.read, s.write)
		case s.reads() && !s.writes() && !c.betweenSections(s.read.Seen):
			c.add(LostUpdate, c.effectOf(s.read), s.read)
		}
	}
}

// locateAppends finds where in the list each append stands: in the final list
// if its values are all different, else by order of effect. It returns false
// if neither is known.
func (c *Checker) locateAppends() bool {
	c.position = resized(c.position, len(c.h.Ops))
	for i := range c.position {
		c.position[i] = none
	}
	if c.h.Final != nil && c.differentValues() {
		return c.locateInFinal()
	}
	if !c.h.Omniscient {
		return false
	}
	return c.locateByEffect()
}

// locateByEffect fills the positions by order of effect. It returns false if
// the final list is another one.
func (c *Checker) locateByEffect() bool {
	n := int32(0)
	for i := range c.accepted {
		a := &c.accepted[i]
		if a.op.Kind != Append {
			continue
		}
		if c.h.Final != nil && (int(n) >= len(c.h.Final) || c.h.Final[n] != a.op.Value) {
			return false
		}
		c.position[a.pos] = n
		n++
	}
	c.owner = resized(c.owner, int(n))
	return c.h.Final == nil || int(n) == len(c.h.Final)
}

// differentValues reports whether no value was appended twice or stands twice
// in the final list.
func (c *Checker) differentValues() bool {
	c.values.reset(len(c.h.Ops))
	appends := 0
	for i := range c.h.Ops {
		if op := &c.h.Ops[i]; op.Kind == Append && c.mayHaveApplied(op) {
			c.values.number(op.Value)
			appends++
		}
	}
	if len(c.values.keys) < appends {
		return false
	}
	c.values.reset(len(c.h.Final))
	for _, v := range c.h.Final {
		c.values.number(v)
	}
	return len(c.values.keys) == len(c.h.Final)
}

// locateInFinal fills the positions from the final list, whose values are all
// different, and reports a value that nobody appended.
func (c *Checker) locateInFinal() bool {
	c.owner = resized(c.owner, len(c.h.Final))
	found := 0
	for i := range c.h.Ops { // the table numbers values by their place
		if op := &c.h.Ops[i]; op.Kind == Append && c.mayHaveApplied(op) {
			if c.position[i] = c.values.lookup(op.Value); c.position[i] != none {
				found++
			}
		}
	}
	if found < len(c.h.Final) {
		c.add(LostUpdate, c.h.End)
		return false
	}
	return true
}

// collectListSections builds the sections of a list.
func (c *Checker) collectListSections() {
	c.sections = resized(c.sections, len(c.tenures))
	for i := range c.sections {
		c.sections[i].tenure = int32(i)
	}
	for i := range c.owner {
		c.owner[i] = none
	}
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		if op.Kind != Append && op.Kind != Read {
			continue
		}
		switch d, _, _ := c.h.judge(op); {
		case d == Rejected:
			c.sections[c.sectionAt(i)].refuse()
		case op.Kind == Append && c.position[i] != none:
			n := c.sectionAt(i)
			c.owner[c.position[i]] = n
			c.sections[n].includeAppend(op, c.position[i])
		case op.Kind == Read && d == Accepted && op.Outcome == OK:
			c.sections[c.sectionAt(i)].includeLength(op)
		}
	}
}

func (s *section) includeAppend(op *Op, position int32) {
	if s.write == nil {
		s.start = position
	} else if position != s.start+s.appends && s.torn == nil {
		s.torn = op
	}
	s.write = op
	s.appends++
}

func (s *section) includeLength(op *Op) {
	switch {
	case s.write != nil:
		s.expect(op, int64(s.start+s.appends))
	case s.read != nil:
		s.expect(op, s.read.Seen)
	default:
		s.read = op
	}
}

// betweenSections reports whether a list of this length ever stood between two
// sections.
func (c *Checker) betweenSections(length int64) bool {
	if length < 0 || length > int64(len(c.owner)) {
		return false
	}
	return length == 0 || length == int64(len(c.owner)) ||
		c.owner[length-1] != c.owner[length]
}
