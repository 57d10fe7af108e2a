package checker

import "locklab/clock"

// A register's sections are serial if they can be put in an order in which
// every section that read found what the one before it left. Think of values
// as towns and of sections that read v and left w as roads from v to w. A
// section that wrote without reading jumps: it may stand anywhere and starts a
// new journey at the value it wrote. So the question is whether all roads can
// be travelled, each exactly once, by as many journeys as there are starts:
// one from the initial value and one from each jump, and the last journey has
// to end at the final value. By Euler's theorem that is so exactly when
//
//   - at no value do more roads leave than arrive and start there,
//   - every road hangs together with some start, and
//   - some journey ends at the final value, and it can be the last.
//
// Values need not be different. Sections that only read must have read a value that
// stands between sections at some time.
//
// A section that wrote twice leaves only its last value in program order: if
// its first write lands after its second, the value that remains is no
// section's, and no order explains it.

// node is a value of the register, and what arrives at it and leaves.
type node struct {
	starts, in, out int32
	root            int32 // the component it belongs to (union-find)
	op              *Op   // somebody who read or wrote it
}

// ends is how many journeys end at the value. A negative number means that
// more sections went on from it than ever left it behind.
func (n *node) ends() int32 { return n.starts + n.in - n.out }

// checkRegister reports lost-update for a register. Where unknown writes make
// it doubtful which took effect, it reports only what is wrong either way.
func (c *Checker) checkRegister() {
	doubtful := 0
	if !c.h.Omniscient {
		doubtful = c.countUnknown()
	}
	if doubtful == 0 {
		c.collectSections(c.unknownCounted(false))
		c.checkTorn()
		if !c.serialRegister() {
			c.explainRegister()
		}
		return
	}
	c.collectSections(c.unknownCounted(true))
	if c.wholeSections() && c.serialRegister() || doubtful > 1 {
		return // with several doubtful writes there are more cases than these two
	}
	c.collectSections(c.unknownCounted(false))
	if c.wholeSections() && c.serialRegister() {
		return
	}
	if c.checkTorn(); !c.serialRegister() {
		c.explainRegister()
	}
}

// wholeSections reports whether no section is torn.
func (c *Checker) wholeSections() bool {
	for i := range c.sections {
		if c.sections[i].torn != nil {
			return false
		}
	}
	return true
}

// checkTorn reports sections into which somebody else wrote.
func (c *Checker) checkTorn() {
	for i := range c.sections {
		s := &c.sections[i]
		if s.torn == nil {
			continue
		}
		own := s.read
		if s.writes() {
			own = s.write
		}
		c.add(LostUpdate, c.effectOf(s.torn), own, s.torn)
	}
}

// serialRegister builds the graph and reports whether an order exists.
func (c *Checker) serialRegister() bool {
	c.values.reset(2*len(c.sections) + 2)
	c.nodes = c.nodes[:0]
	start := c.node(c.h.Initial, nil)
	c.nodes[start].starts++
	starts := int32(1)
	for i := range c.sections {
		s := &c.sections[i]
		switch {
		case !s.writes():
		case s.reads():
			from, to := c.node(s.read.Seen, nil), c.node(s.write.Value, s.write)
			c.nodes[from].out++
			c.nodes[to].in++
			c.join(from, to)
		default:
			c.nodes[c.node(s.write.Value, s.write)].starts++
			starts++
		}
	}
	return c.readersPlaced() && c.journeysExist() && c.finalReached(start, starts)
}

// node returns the node of a value. op is its writer, if there is one.
func (c *Checker) node(v int64, op *Op) int32 {
	n := c.values.number(v)
	if int(n) == len(c.nodes) {
		c.nodes = append(c.nodes, node{root: n})
	}
	if op != nil {
		c.nodes[n].op = op
	}
	return n
}

func (c *Checker) root(n int32) int32 {
	for c.nodes[n].root != n {
		c.nodes[n].root = c.nodes[c.nodes[n].root].root
		n = c.nodes[n].root
	}
	return n
}

func (c *Checker) join(a, b int32) { c.nodes[c.root(a)].root = c.root(b) }

// readersPlaced reports whether every section that only read found a value
// that stands between sections.
func (c *Checker) readersPlaced() bool {
	for i := range c.sections {
		if s := &c.sections[i]; s.reads() && !s.writes() && !c.stands(s.read.Seen) {
			return false
		}
	}
	return true
}

// stands reports whether the value is the initial one or was left by a section.
func (c *Checker) stands(v int64) bool {
	n := c.values.lookup(v)
	return n != none && c.nodes[n].starts+c.nodes[n].in > 0
}

// journeysExist reports whether all roads can be travelled from the starts.
func (c *Checker) journeysExist() bool {
	for i := range c.nodes {
		if c.nodes[i].ends() < 0 {
			return false
		}
	}
	return c.cutOff() == none
}

// cutOff returns a value whose component of roads holds no start: a circle
// that nobody enters. It returns none if there is no such component.
func (c *Checker) cutOff() int32 {
	reached := resized(c.active, len(c.nodes))
	c.active = reached
	for i := range c.nodes {
		reached[c.root(int32(i))] += c.nodes[i].starts
	}
	for i := range c.nodes {
		if reached[c.root(int32(i))] == 0 {
			return int32(i)
		}
	}
	return none
}

// finalReached reports whether the last journey can end at the final value.
// The one case in which a journey ends there but cannot be the last: it is the
// first, the only one in its component, and others have to follow it.
func (c *Checker) finalReached(start, starts int32) bool {
	if len(c.h.Final) != 1 {
		return true
	}
	final := c.values.lookup(c.h.Final[0])
	if final == none || c.nodes[final].ends() < 1 {
		return false
	}
	home := c.root(start)
	if c.root(final) != home || starts == 1 {
		return true
	}
	atHome := int32(0)
	for i := range c.nodes {
		if c.root(int32(i)) == home {
			atHome += c.nodes[i].starts
		}
	}
	return atHome > 1
}

// explainRegister reports why there is no order: the most telling reasons that
// the graph shows.
func (c *Checker) explainRegister() {
	before := len(c.findings)
	for i := range c.sections {
		if s := &c.sections[i]; s.reads() && !s.writes() && !c.stands(s.read.Seen) {
			c.add(LostUpdate, c.effectOf(s.read), s.read)
		}
	}
	for i := range c.nodes {
		if c.nodes[i].ends() < 0 {
			c.explainValue(c.values.keys[i])
		}
	}
	if len(c.findings) > before {
		return
	}
	if n := c.cutOff(); n != none && c.nodes[n].op != nil {
		c.add(LostUpdate, c.effectOf(c.nodes[n].op), c.nodes[n].op)
		return
	}
	c.explainFinal()
}

// explainValue names the writes of the sections that went on from a value that
// does not allow so many: the last two of them, or the only one together with
// what it read.
func (c *Checker) explainValue(v int64) {
	var first, second *section // the latest is second
	for i := range c.sections {
		s := &c.sections[i]
		if !s.writes() || !s.reads() || s.read.Seen != v {
			continue
		}
		switch {
		case second == nil || c.effectOf(second.write) <= c.effectOf(s.write):
			first, second = second, s
		case first == nil || c.effectOf(first.write) <= c.effectOf(s.write):
			first = s
		}
	}
	switch {
	case first != nil:
		c.add(LostUpdate, c.effectOf(second.write), first.write, second.write)
	case second != nil:
		c.add(LostUpdate, c.effectOf(second.write), second.read, second.write)
	}
}

// explainFinal names who wrote the final value, and whose write should stand instead.
func (c *Checker) explainFinal() {
	var culprit, last *Op
	for i := range c.accepted {
		op := c.accepted[i].op
		if op.Kind != Write {
			continue
		}
		last = op
		if len(c.h.Final) == 1 && op.Value == c.h.Final[0] {
			culprit = op
		}
	}
	for i := range c.sections {
		s := &c.sections[i]
		if culprit != nil && s.writes() && s.write != culprit && s.write.Tenure == culprit.Tenure {
			c.add(LostUpdate, c.effectOf(culprit), s.write, culprit)
			return
		}
	}
	if last == nil {
		c.add(LostUpdate, c.h.End)
		return
	}
	c.add(LostUpdate, c.h.End, last)
}

// effectOf is when the operation took effect, as far as anybody knows.
func (c *Checker) effectOf(op *Op) clock.Time {
	if _, _, at := c.h.judge(op); at.Known() {
		return at.At
	}
	return op.Invoke.At
}
