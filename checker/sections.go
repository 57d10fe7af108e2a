package checker

// section is one attempt at a critical section as the data saw it: what it
// read from outside and what it left behind, in program order.
type section struct {
	tenure int32 // none for a lone operation outside any tenure
	// read is its first accepted read, if that came before its own writes.
	read *Op
	// write is its last accepted write in program order: what it leaves behind,
	// whatever the order in which its writes took effect.
	write *Op
	// torn is its first read that disagrees with what the section itself had
	// read or written before: somebody else wrote in between.
	torn *Op

	// For a list: where its first append stands, and how many it made.
	start, appends int32
}

// reads reports whether the section depends on what it found.
func (s *section) reads() bool { return s.read != nil }

// writes reports whether the section left something behind.
func (s *section) writes() bool { return s.write != nil }

// checkSerial reports lost-update: no sequential order of the sections
// explains the accepted operations. Where several may work at once, their
// sections owe no such order.
func (c *Checker) checkSerial() {
	switch {
	case !c.exclusive:
	case c.h.Data == List:
		c.checkList()
	default:
		c.checkRegister()
	}
}

// collectSections builds a register's sections, one for each tenure and one for each
// operation outside any. A refused operation ends an attempt: if it had
// written nothing, what it had read obliges nobody, and the body may run again
// (as after a conflict of a compare-and-swap). Unknown writes of a history
// that is not omniscient take part if counted says so.
func (c *Checker) collectSections(counted func(pos int) bool) {
	c.sections = resized(c.sections, len(c.tenures))
	for i := range c.sections {
		c.sections[i].tenure = int32(i)
	}
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		if !op.Kind.worksOnData() || c.gone[i] {
			continue
		}
		s := &c.sections[c.sectionAt(i)]
		switch d, _, _ := c.h.judge(op); {
		case d == Rejected:
			s.refuse()
		case d == Accepted || counted != nil && op.Outcome == Unknown && counted(i):
			s.include(op)
		}
	}
}

// refuse ends an attempt: one that had written nothing begins anew.
func (s *section) refuse() {
	if !s.writes() {
		*s = section{tenure: s.tenure}
	}
}

// sectionAt returns the index of the section of the operation at a position.
func (c *Checker) sectionAt(pos int) int32 {
	if t := c.tenureOf[pos]; t != none {
		return t
	}
	c.sections = append(c.sections, section{tenure: none})
	return int32(len(c.sections) - 1)
}

// include adds the next operation on a register in program order. A read whose
// answer never came back told the section nothing.
func (s *section) include(op *Op) {
	if op.Kind == Write {
		s.write = op
		return
	}
	if op.Kind != Read || op.Outcome != OK {
		return
	}
	switch {
	case s.write != nil:
		s.expect(op, s.write.Value)
	case s.read != nil:
		s.expect(op, s.read.Seen)
	default:
		s.read = op
	}
}

// expect compares a read with what the section knows must be there.
func (s *section) expect(read *Op, want int64) {
	if read.Seen != want && s.torn == nil {
		s.torn = read
	}
}
