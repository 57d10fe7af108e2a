package models

import (
	"errors"
	"strconv"
	"time"

	"locklab/clock"
	"locklab/sim"
)

// leaseSpec is what a Lease object of Kubernetes says
// (k8s.io/api/coordination/v1, LeaseSpec; acquireTime, which nobody reads, is
// left out).
type leaseSpec struct {
	holder      int64         // holderIdentity; 0: nobody
	duration    time.Duration // leaseDurationSeconds
	renewed     clock.Reading // renewTime, by the writer's wall clock: for people, no candidate goes by it
	transitions int64         // leaseTransitions
}

// leaseObject is the key of the Lease that candidates compete for.
func leaseObject() kvKey { return kvKey{"leases/", 1} }

// leaseReleased is the duration that a released lease bears: whoever finds it
// without a holder may take it at once.
const leaseReleased = time.Second

// k8sSystem adds an etcd cluster, the store behind Kubernetes. Candidates
// speak to it directly: the API server between them keeps nothing, and turns
// an object's resource version into a comparison of etcd's mod revision.
func k8sSystem(env *Env) System {
	c := newEtcd(env)
	return c.system(c.leaseHolder, func(client int) Lock { return &k8sLease{env: env, client: newKvClient(env, c.procs, client)} })
}

// k8sDrift is the clock drift that client-go's numbers allow for. The followers
// count LeaseDuration, the leader no longer than RetryPeriod + RenewDeadline:
// what lies between is for their clocks.
func k8sDrift(o Options) time.Duration { return max(o.TTL-o.Renew-o.RenewDeadline, 0) }

// leaseHolder is whose the Lease is, as the object says. When it runs out is
// known to no server, and to every follower by its own clock: such a lease lasts
// until it is released, or another takes it.
func (c *raftCluster) leaseHolder() Holding {
	if c.truth.applied < c.quiet {
		return Holding{}
	}
	if e := c.truth.find(leaseObject()); e != nil && e.spec.holder != 0 {
		return Holding{Op: e.op}
	}
	return Holding{}
}

// k8sLease is a candidate as client-go's LeaderElector is one
// (https://github.com/kubernetes/client-go/blob/master/tools/leaderelection/leaderelection.go).
// Its LeaseDuration is the ttl, its RetryPeriod the time between two renewals
// (renew), and between two tries of a candidate (retry, with retry_jitter for
// JitterFactor); its RenewDeadline is renew_deadline.
//
// No candidate trusts another's clock. The record is taken to be alive as long
// as it has been seen to change within the duration that it bears, counted by
// the reader's own clock from the answer in which it saw the change.
type k8sLease struct {
	env      *Env
	client   kvClient
	identity int64 // new for each process: its host's name and a UUID

	observed   leaseSpec     // observedRecord
	observedAt clock.Reading // observedTime: when the answer with it was in
	fetched    int64         // resource version of the record that was last read (for observedRawRecord)
	version    int64         // resource version of the object as this candidate has it
}

// Acquire implements Lock: one try of LeaderElector.acquire.
func (l *k8sLease) Acquire(t *sim.Task) (Grant, error) {
	if l.identity == 0 {
		l.identity = t.Unique()
	}
	l.client.deadline = 0
	if err := l.try(t); err != nil {
		return Grant{}, err
	}
	term := &leaseTerm{k8sLease: l, op: t.Op}
	term.renewer = t.Spawn("renewer", sim.PhaseRenew, term.keep)
	return Grant{State: term}, nil
}

// try is tryAcquireOrRenew. ErrBusy: another leads, or was faster. After
// sim.ErrUnknown the record may have been written.
func (l *k8sLease) try(t *sim.Task) error {
	now := t.Now()
	next := leaseSpec{holder: l.identity, duration: l.duration(), renewed: t.Wall()}
	var written error              // what is known of the first write, if there is one
	if l.leads() && l.alive(now) { // as if nobody had touched the record
		next.transitions = l.observed.transitions
		if written = l.update(t, next); written == nil {
			return nil
		}
	}
	found, err := l.get(t)
	switch {
	case err != nil && errors.Is(written, sim.ErrUnknown):
		return written
	case err != nil:
		return err
	case found.holder != 0 && l.alive(now) && !l.leads():
		return ErrBusy
	}
	next.transitions = found.transitions
	if !l.leads() && l.version != 0 {
		next.transitions++
	}
	return l.update(t, next)
}

// duration is LeaseDuration in whole seconds, which is what a record can say;
// the API server accepts none below one.
func (l *k8sLease) duration() time.Duration {
	return max(l.env.Options.TTL.Truncate(time.Second), time.Second)
}

// leads tells whether the record, as it was last seen, is this candidate's
// (IsLeader).
func (l *k8sLease) leads() bool { return l.observed.holder == l.identity }

// alive tells whether the record was seen to change lately (isLeaseValid).
func (l *k8sLease) alive(now clock.Reading) bool {
	return l.observedAt.Add(l.observed.duration) > now
}

func (l *k8sLease) observe(t *sim.Task, s leaseSpec) { l.observed, l.observedAt = s, t.Now() }

// get reads the record and sees whether it has changed. client-go compares its
// bytes: every write changes renewTime, so that the resource version says the same.
func (l *k8sLease) get(t *sim.Task) (leaseSpec, error) {
	reply, err := l.client.ask(t, kvRequest{kvCommand: kvCommand{verb: kvRange, key: leaseObject()}, linear: true})
	if err != nil {
		return leaseSpec{}, errUnavailable
	}
	e := &reply.found[0]
	l.version = e.mod
	if e.mod != l.fetched {
		l.observe(t, e.spec)
		l.fetched = e.mod
	}
	return e.spec, nil
}

// update writes the record if it is still the one that this candidate knows;
// with version 0 it creates it.
func (l *k8sLease) update(t *sim.Task, s leaseSpec) error {
	reply, err := l.client.ask(t, kvRequest{kvCommand: kvCommand{verb: kvTxn, target: kvModRevision, key: leaseObject(), equals: l.version,
		then: [2]kvStep{{action: kvPutSpec, key: leaseObject(), spec: s}}}})
	switch {
	case err != nil:
		return err
	case !reply.held:
		return ErrBusy
	}
	l.version = reply.found[0].mod
	l.observe(t, s)
	return nil
}

// Renew implements Lock. The term's renewer does it.
func (l *k8sLease) Renew(*sim.Task, *Grant) error { return nil }

// Release implements Lock: the program has done its work, and cancels.
func (l *k8sLease) Release(t *sim.Task, g *Grant) error {
	term := g.State.(*leaseTerm)
	t.Kill(term.renewer)
	switch {
	case term.over:
		return ErrLost
	case !l.env.Options.ReleaseOnCancel:
		return nil
	}
	return l.release(t)
}

// release is the function of that name: it reads the record and, if it is still
// this candidate's, writes one without a holder. A renewal that was under way
// may come between the two.
func (l *k8sLease) release(t *sim.Task) error {
	l.client.deadline = t.Now().Add(l.env.Options.RenewDeadline)
	for {
		found, err := l.get(t)
		switch {
		case err != nil:
			return sim.ErrUnknown // nothing was written, and a renewal may have been
		case found.holder != l.identity:
			return ErrLost
		}
		err = l.update(t, leaseSpec{duration: leaseReleased, renewed: t.Wall(), transitions: found.transitions})
		if !errors.Is(err, ErrBusy) {
			return asUnknown(err)
		}
	}
}

// leaseTerm is one term of leadership, as the leader has it.
type leaseTerm struct {
	*k8sLease
	op      int32 // the acquire that began it
	renewer *sim.Task
	over    bool
	until   clock.Reading // when, by the leader's clock, it ends if no renewal succeeds; 0 before the first has
}

// Over implements Session. A client that tests its deadline looks at the clock.
func (m *leaseTerm) Over(t *sim.Task) bool {
	return m.over || m.env.Options.ChecksValidity && m.until != 0 && t.Now() >= m.until
}

// keep is LeaderElector.renew. The first round begins at once, each other a
// RetryPeriod after the answer to the last; only then RenewDeadline begins to
// count. So a leader that is cut off goes on for RetryPeriod + RenewDeadline
// after the last answer, 12 s by the published numbers.
//
// One that wants the lease released does so before it tells the work to stop:
// Run cancels the work's context when renew, and in it release, has returned.
// While the servers cannot be reached that takes a call's timeout longer
// (https://github.com/kubernetes/kubernetes/pull/139991 is about it).
func (m *leaseTerm) keep(k *sim.Task) {
	o, rec := &m.env.Options, m.env.Rec
	for m.round(k) {
		m.until = k.Now().Add(o.Renew + o.RenewDeadline)
		k.Sleep(o.Renew)
	}
	if o.ReleaseOnCancel && m.leads() {
		op := rec.Invoke(k, OpRelease, m.op, 0, 0)
		rec.Return(k, op, m.release(k), 0)
	}
	m.over = true
	rec.LearnsLoss(k, m.op)
}

// round tries to renew until it has or RenewDeadline has passed
// (wait.PollUntilContextTimeout). That another leads by now does not end it
// early: it is one more try that failed.
func (m *leaseTerm) round(k *sim.Task) bool {
	period, rec := m.env.Options.Renew, m.env.Rec
	tick := k.Now()
	deadline := tick.Add(m.env.Options.RenewDeadline)
	m.client.deadline = deadline
	op := rec.Invoke(k, OpRenew, m.op, 0, 0)
	for {
		rec.Try(k, op)
		err := m.try(k)
		if err == nil {
			rec.Return(k, op, nil, 0)
			return true
		}
		// A ticker keeps one tick that comes while the last try goes on, and
		// drops the others.
		tick = tick.Add(period)
		if late := k.Now().Sub(tick); late > 0 {
			tick = tick.Add(late - late%period)
		} else {
			k.Sleep(min(-late, max(deadline.Sub(tick.Add(late)), 0)))
		}
		if k.Now() >= deadline {
			if !errors.Is(err, ErrBusy) {
				err = sim.ErrUnknown
			}
			rec.Return(k, op, err, 0)
			return false
		}
	}
}

// digest feeds a record into a trace hash; none leaves it alone.
func (s *leaseSpec) digest(d *sim.Digest) {
	if *s == (leaseSpec{}) {
		return
	}
	d.Int(s.holder)
	d.Int(int64(s.duration))
	d.Int(int64(s.renewed))
	d.Int(s.transitions)
}

// String writes a record for people: its holder and how long it lives.
func (s leaseSpec) String() string {
	holder := "nobody"
	if s.holder != 0 {
		holder = shortHex(s.holder)
	}
	return holder + "/" + strconv.FormatInt(int64(s.duration/time.Second), 10) + "s"
}
