package models

import (
	"time"

	"locklab/clock"
	"locklab/sim"
)

// lessor counts leases down, on the leader alone: a lease's TTL is in the log,
// how much of it is left is not. Hence its two properties that matter to a
// lock. A renewal costs no log entry. And whoever becomes the leader starts
// every lease anew, so that a TTL is a minimum: elections that come faster than
// the TTL keep a dead client's lease alive for ever.
// (etcd: server/lease/lessor.go; issue 15247 for what follows from the stale
// variant.)
type lessor struct {
	primary bool
	due     []leaseDue
	timerAt clock.Reading // of the timer that is set; 0: none
}

// leaseDue is when a lease ends.
type leaseDue struct {
	lease int64
	at    clock.Reading
	// revoking says that it has ended and is being revoked.
	revoking bool
	// waiting are renewals that came too late, while the lease is being
	// revoked: they are answered when that is done.
	waiting []renewal
}

// renewal is who wants to be told what became of a keepalive.
type renewal struct {
	request *sim.Message // a client's own
	from    *sim.Process // or a follower's, and its number there
	serial  uint64
	lease   int64
	op      int32
}

const (
	// A lease whose revocation has not come through is revoked again after
	// this long (etcd: defaultExpiredleaseRetryInterval).
	revokeAgain = 3 * time.Second
	// A member is taken to be alive to what its peers say when it has ticked
	// within so many ticks (etcd: EtcdServer.isActive).
	activeTicks = 3
)

// demote ends the countdown: another leads. Renewals that wait for a
// revocation are left without an answer, and their clients ask elsewhere.
func (l *lessor) demote() { l.primary, l.due = false, l.due[:0] }

// promoteLessor starts every lease anew, and adds an election timeout: for so
// long the old leader may still have been acknowledging renewals
// (applyEntryNormal: Promote(ElectionTimeout)).
func (n *raftNode) promoteLessor() {
	l := &n.lessor
	l.primary, l.due = true, l.due[:0]
	now := n.p.Mono()
	for _, lease := range n.store.leases {
		l.due = append(l.due, leaseDue{lease: lease.id, at: now.Add(lease.ttl + electionTimeout)})
	}
	n.watchLeases()
}

// leaseChanged follows a command that was applied.
func (n *raftNode) leaseChanged(c *kvCommand) {
	l := &n.lessor
	if !l.primary {
		return
	}
	i := l.find(c.lease)
	switch c.verb {
	case kvAttach, kvCreate: // a session lives as long as its client is heard (ZooKeeper: touchSession)
		if i >= 0 && !l.due[i].revoking {
			l.due[i].at = n.p.Mono().Add(n.store.leases[n.store.leaseAt(c.lease)].ttl)
		}
	case kvGrant:
		if i < 0 {
			l.due = append(l.due, leaseDue{lease: c.lease, at: n.p.Mono().Add(c.ttl)})
			n.watchLeases()
		}
	case kvRevoke:
		if i >= 0 {
			waiting := l.due[i].waiting
			l.due = append(l.due[:i], l.due[i+1:]...)
			for _, r := range waiting {
				n.renewed(r, kvNoLease)
			}
		}
	}
}

func (l *lessor) find(lease int64) int {
	for i := range l.due {
		if l.due[i].lease == lease {
			return i
		}
	}
	return -1
}

// watchLeases sets a timer for the lease that ends first. A timer that comes
// early, because the lease was renewed, sets the next.
func (n *raftNode) watchLeases() {
	l := &n.lessor
	first := clock.Reading(0)
	for i := range l.due {
		if at := l.due[i].at; first == 0 || at < first {
			first = at
		}
	}
	if first == 0 || l.timerAt != 0 && l.timerAt <= first {
		return
	}
	l.timerAt = first
	n.p.TimerIn(max(first.Sub(n.p.Mono()), 0), raftTimerLessor)
}

// expireLeases proposes to revoke what has ended. The lease lives on, and its
// keys with it, until the log says otherwise.
func (n *raftNode) expireLeases() {
	l, now := &n.lessor, n.p.Mono()
	if l.timerAt > now { // of a timer that a later one has replaced
		return
	}
	l.timerAt = 0
	if !l.primary {
		return
	}
	for i := range l.due {
		d := &l.due[i]
		if d.at > now {
			continue
		}
		d.at = now.Add(revokeAgain)
		if n.surelyLeads() {
			handle, _ := n.cluster.record(&kvCommand{verb: kvRevoke, lease: d.lease})
			_ = n.raw.Propose(handle) // dropped, or not committed: there is another try
		}
		d.revoking = true
	}
	n.watchLeases()
}

// surelyLeads tells whether to act as the leader about leases. A member whose
// loop is blocked believes what it last knew. Since pull request 16822 etcd
// asks the quorum first when it has not ticked lately; a blocked loop cannot
// ask, so the answer is no.
func (n *raftNode) surelyLeads() bool {
	return n.leads && (n.cluster.staleLessor || n.p.Mono().Sub(n.ticked) <= activeTicks*raftTick)
}

// renew gives a lease its full time again, or hands the renewal to the leader.
func (n *raftNode) renew(r renewal) {
	switch {
	case !n.leads && r.request != nil && n.lead != 0:
		n.forward(r)
		return
	case !n.leads || !n.lessor.primary:
		n.renewed(r, kvUnavailable)
		return
	case !n.surelyLeads(): // still finding out: the caller asks elsewhere when it is tired of waiting
		return
	}
	i := n.lessor.find(r.lease)
	if i < 0 {
		n.renewed(r, kvNoLease)
		return
	}
	d := &n.lessor.due[i]
	if d.revoking || d.at <= n.p.Mono() {
		d.waiting = append(d.waiting, r)
		return
	}
	d.at = n.p.Mono().Add(n.store.leases[n.store.leaseAt(r.lease)].ttl)
	n.renewed(r, kvOK)
}

// renewed answers a renewal, to the client or to the follower that asked.
func (n *raftNode) renewed(r renewal, code kvCode) {
	if code != kvUnavailable {
		n.env.Rec.Applied(r.op)
	}
	if r.request != nil {
		n.reply(r.request, &kvReply{code: code, revision: n.store.revision})
		return
	}
	f := n.env.raft.forwards.Get()
	*f = forwarded{serial: r.serial, lease: r.lease, op: r.op, answer: true, code: code}
	n.p.Send(r.from, f)
}
