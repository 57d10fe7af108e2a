package checker

// checkBeliefs reports overlap: more clients than may hold the lock believed
// at one true time that they did. A belief lasts from its acquire's return up
// to, not including, BelievesUntil. A client never overlaps itself. Whom a
// quota or a barrier let in may be at it for as long as they like.
func (c *Checker) checkBeliefs() {
	for i := range c.tenures {
		if c.tenures[i].acknowledged() {
			c.beliefs = append(c.beliefs, int32(i))
		}
	}
	c.sortTenures(c.beliefs, func(t *tenure) Instant { return t.op.Return })
	if !c.h.held() {
		return
	}

	believing := c.active[:0]
	for _, i := range c.beliefs {
		op := c.tenures[i].op
		if !op.Return.Before(op.BelievesUntil) {
			continue
		}
		kept := believing[:0]
		for _, j := range believing {
			if op.Return.Before(c.tenures[j].op.BelievesUntil) {
				kept = append(kept, j)
			}
		}
		believing = append(kept, i)
		if len(believing) > c.capacity {
			c.addOverlaps(believing)
		}
	}
	c.active = believing
}

// addOverlaps reports that the last of the believing tenures began while the
// others believed: for a lock once, with the one that began latest before it,
// so that a crowd gives a finding for each who joins and not for each pair; for
// a semaphore all together.
func (c *Checker) addOverlaps(believing []int32) {
	last := c.tenures[believing[len(believing)-1]].op
	others := believing[:len(believing)-1]
	if c.capacity > 1 {
		if c.clientsAmong(believing) > c.capacity && !c.clientAmong(others, last.Client) {
			c.addTenures(Overlap, last.Return.At, believing)
		}
		return
	}
	for k := len(others) - 1; k >= 0; k-- {
		if first := c.tenures[others[k]].op; first.Client != last.Client {
			c.add(Overlap, last.Return.At, first, last)
			return
		}
	}
}

// clientsAmong counts the different clients of the tenures.
func (c *Checker) clientsAmong(list []int32) int {
	n := 0
	for k, i := range list {
		if !c.clientAmong(list[:k], c.tenures[i].op.Client) {
			n++
		}
	}
	return n
}

func (c *Checker) clientAmong(list []int32, client int32) bool {
	for _, i := range list {
		if c.tenures[i].op.Client == client {
			return true
		}
	}
	return false
}
