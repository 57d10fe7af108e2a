package checker

// staleWrite is an accepted write of a tenure that a later one had overtaken.
type staleWrite struct {
	act  *act
	harm bool // reported as two-writers
}

// checkWriters reports stale-write and two-writers.
func (c *Checker) checkWriters() {
	if !c.exclusive {
		c.checkWorkers()
		return
	}
	newest := none // the highest rank among the tenures that have worked so far
	for i := range c.accepted {
		a := &c.accepted[i]
		if a.tenure == none || c.tenures[a.tenure].rank == none {
			continue
		}
		t := &c.tenures[a.tenure]
		if a.op.Kind.changesData() {
			if newest > t.rank || c.lateGrant {
				c.checkStale(t, a, newest)
			}
			c.checkBasis(t, a)
		}
		newest = max(newest, t.rank)
	}
}

// checkStale reports the write if a later tenure had worked before it, and
// also as two-writers if a later tenure had written.
func (c *Checker) checkStale(t *tenure, write *act, newest int32) {
	first := t.rank + 1
	if c.lateGrant {
		first = 0 // then a tenure granted earlier may count as the later one
	}
	worked, wrote := (*act)(nil), (*act)(nil)
	for rank := first; rank <= newest && wrote == nil; rank++ {
		u := &c.tenures[c.order[rank]]
		if u.first == nil || !u.first.before(write) || !c.precedes(t, u) {
			continue
		}
		if worked == nil {
			worked = u.first
		}
		if u.firstWrite != nil && u.firstWrite.before(write) {
			wrote = u.firstWrite
		}
	}
	if worked == nil {
		return
	}
	c.add(StaleWrite, write.at.At, worked.op, write.op)
	if wrote != nil {
		c.add(TwoWriters, write.at.At, wrote.op, write.op)
	}
	c.stale = append(c.stale, staleWrite{act: write, harm: wrote != nil})
}

// checkBasis reports two-writers for every stale write that fell between this
// write and the read that it was computed from: the later tenure overwrites
// what it never saw.
func (c *Checker) checkBasis(t *tenure, write *act) {
	if len(c.stale) == 0 {
		return
	}
	read := c.basis(write)
	if read.op == nil {
		return
	}
	for i := len(c.stale) - 1; i >= 0; i-- {
		s := &c.stale[i]
		if s.act.at.Before(read.at) {
			return // and so are all before it
		}
		if s.harm || !read.before(s.act) || !s.act.before(write) || !c.precedes(&c.tenures[s.act.tenure], t) {
			continue
		}
		s.harm = true
		c.add(TwoWriters, write.at.At, s.act.op, write.op, read.op)
	}
}

// basis returns the read that a write was computed from: the last accepted
// read of its tenure that was called before it and whose answer came back.
func (c *Checker) basis(write *act) act {
	if write.tenure == none {
		return act{}
	}
	for i := write.pos - 1; i >= 0; i-- {
		op := &c.h.Ops[i]
		if op == c.tenures[write.tenure].op {
			break // nothing of a tenure comes before its acquire
		}
		if c.tenureOf[i] != write.tenure || op.Kind != Read || op.Outcome != OK {
			continue
		}
		if d, from, at := c.h.judge(op); d == Accepted {
			return act{op: op, pos: i, tenure: write.tenure, from: from, at: at}
		}
	}
	return act{}
}

// checkWorkers reports two-writers for a semaphore: more than its capacity
// worked at once. A tenure works from its first accepted operation to its last,
// whatever its client believed and the service thought. Whom a quota or a
// barrier let in may work whenever they like.
func (c *Checker) checkWorkers() {
	if !c.h.held() {
		return
	}
	working := c.active[:0]
	for i := range c.accepted {
		a := &c.accepted[i]
		if a.tenure == none || c.tenures[a.tenure].first != a {
			continue
		}
		kept := working[:0]
		for _, j := range working {
			if !c.tenures[j].last.from.Before(a.at) {
				kept = append(kept, j)
			}
		}
		working = append(kept, a.tenure)
		if len(working) > c.capacity {
			c.addTenures(TwoWriters, a.at.At, working)
		}
	}
	c.active = working
}
