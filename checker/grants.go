package checker

import "locklab/clock"

// checkGrants compares what the lock service did with what it had promised.
func (c *Checker) checkGrants() {
	c.followRenewals()
	for _, i := range c.order {
		t := &c.tenures[i]
		if t.phantom(c.h) {
			c.add(Phantom, t.op.Return.At, t.op)
		}
		c.checkPassing(t)
		c.checkLoss(t)
	}
	if c.h.Tokens {
		c.checkTokens()
	}
	if c.h.KnowsGrants {
		c.checkCapacity()
	}
}

// followRenewals finds the last acknowledgement that counts for each tenure,
// and operations that touched another tenure's lock.
func (c *Checker) followRenewals() {
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		if op.Kind != Acquire && op.Kind != Renew && op.Kind != Release || c.tenureOf[i] == none {
			continue
		}
		t := &c.tenures[c.tenureOf[i]]
		if op.Kind != Acquire && op.Victim != 0 && op.Victim != op.Tenure {
			c.checkVictim(op)
		}
		switch {
		case op.Kind == Release:
		case op.Outcome == OK:
			t.acknowledge(op)
		case op.Kind == Renew && op.Outcome == Refused && t.refusal == nil && c.refusedEarly(t, op):
			t.refusal = op
		}
	}
}

// acknowledge notes an acknowledged acquire or renewal. One that was sent
// after the lock had passed on, or after the grant had ended, promises nothing
// about the time before.
func (t *tenure) acknowledge(op *Op) {
	sent := op.sent()
	t.ackLast = sent.At
	if op.Kind == Acquire || sent.Before(t.passed) {
		t.ackPassed = sent.At
	}
	if op.Kind == Acquire || sent.Before(t.op.Ended) {
		t.ackEnded = sent.At
	}
}

func (c *Checker) checkVictim(op *Op) {
	at := op.Effect
	if !at.Known() {
		at = op.Invoke
	}
	if v := c.acquireAt(op.Victim); v != none {
		c.add(ForeignRelease, at.At, op, &c.h.Ops[v])
		return
	}
	c.add(ForeignRelease, at.At, op)
}

// within reports whether i lies within the tenure's promise, given when its
// last acknowledged acquire or renewal was sent. Nothing lies within no promise.
func (c *Checker) within(t *tenure, i Instant, sent clock.Time) bool {
	switch c.h.Promise {
	case LeasePromise:
		return i.At < c.h.leaseEnd(sent)
	case SessionPromise:
		return i.Before(t.sessionEnd())
	}
	return false
}

// checkPassing reports lease-broken: the lock passed to another tenure within
// this one's promise, with no release sent. A crash of the client does not end
// a lease. Where several may hold at once, passing on means nothing.
func (c *Checker) checkPassing(t *tenure) {
	if !c.exclusive || t.next == none || !t.acknowledged() || !t.granted(c.h) {
		return
	}
	if c.within(t, t.passed, t.ackPassed) && !t.released.Before(t.passed) {
		t.broken = true
		c.add(LeaseBroken, t.passed.At, t.op, c.tenures[t.next].op)
	}
}

// checkLoss reports spurious-loss: a live holder lost the lock within its
// promise, or a renewal was refused although nothing had ended. What is already lease-broken is
// not reported again.
func (c *Checker) checkLoss(t *tenure) {
	if t.broken || !t.acknowledged() || !t.granted(c.h) {
		return
	}
	ended := t.op.Ended
	switch {
	case c.h.KnowsGrants && ended.Known() && ended.Before(t.released) &&
		!t.crashedBefore(ended) && c.within(t, ended, t.ackEnded):
		c.add(SpuriousLoss, ended.At, t.op)
	case t.refusal != nil:
		c.add(SpuriousLoss, decided(t.refusal).At, t.op, t.refusal)
	}
}

// refusedEarly reports whether the refused renewal was decided while the
// promise held and the grant lived. A renewal that was sent in time but
// arrived after the end was rightly refused.
func (c *Checker) refusedEarly(t *tenure, op *Op) bool {
	at := decided(op)
	if !at.Known() || !at.Before(t.released) || t.crashedBefore(at) {
		return false
	}
	if c.h.KnowsGrants && t.op.Ended.Before(at) {
		return false // then the loss itself is early, or the refusal is right
	}
	return c.within(t, at, t.ackLast)
}

// decided is when the lock service decided a lock operation or, if nobody knows, when the
// client learned it.
func decided(op *Op) Instant {
	if op.Effect.Known() {
		return op.Effect
	}
	return op.Return
}

// checkTokens reports tokens that are not above every token granted before.
func (c *Checker) checkTokens() {
	if !c.h.KnowsGrants {
		c.checkReturnedTokens()
		return
	}
	var top *Op
	for _, i := range c.order {
		t := &c.tenures[i]
		if t.op.Token <= 0 { // an orphan's token is known to nobody
			continue
		}
		if top != nil && t.op.Token <= top.Token {
			c.add(TokenOrder, t.order.At, top, t.op)
			continue
		}
		top = t.op
	}
}

// checkReturnedTokens does the same where nobody knows the grants: of two acquires in
// flight together either may have been granted first, so a token must only be
// above those that had been returned before its acquire was called, and unlike
// its neighbour's.
func (c *Checker) checkReturnedTokens() {
	var top *Op
	seen := 0 // c.order[:seen] had returned
	for i := range c.tenures {
		t := &c.tenures[i]
		if t.rank == none || t.op.Token <= 0 {
			continue
		}
		for ; seen < len(c.order) && c.tenures[c.order[seen]].order.Before(t.op.Invoke); seen++ {
			if op := c.tenures[c.order[seen]].op; op.Token > 0 && (top == nil || op.Token > top.Token) {
				top = op
			}
		}
		if top != nil && t.op.Token <= top.Token {
			c.add(TokenOrder, t.order.At, top, t.op)
		} else if t.rank > 0 {
			if prev := c.tenures[c.order[t.rank-1]].op; prev.Token == t.op.Token {
				c.add(TokenOrder, t.order.At, prev, t.op)
			}
		}
	}
}

// checkCapacity reports every grant that made more live grants than may be. A
// quota's grants live until their window ends, whatever their clients do.
func (c *Checker) checkCapacity() {
	live := c.active[:0]
	for _, i := range c.order {
		t := &c.tenures[i]
		if !t.op.Granted.Known() || !t.op.Granted.Before(t.op.Ended) {
			continue
		}
		kept := live[:0]
		for _, j := range live {
			if t.op.Granted.Before(c.tenures[j].op.Ended) {
				kept = append(kept, j)
			}
		}
		live = append(kept, i)
		if len(live) > c.capacity {
			c.addTenures(OverCapacity, t.op.Granted.At, live)
		}
	}
	c.active = live
}

// addTenures records a finding that concerns the given tenures' acquires.
func (c *Checker) addTenures(kind FindingKind, at clock.Time, list []int32) {
	ops := make([]*Op, len(list))
	for k, i := range list {
		ops[k] = c.tenures[i].op
	}
	c.add(kind, at, ops...)
}
