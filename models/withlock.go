package models

import (
	"errors"
	"time"

	"locklab/clock"
	"locklab/sim"
)

// WithLock runs critical sections on a resource under a lock.
func WithLock(env *Env, renews bool, lock Lock, resource Resource) Protocol {
	return &locked{env: env, renews: renews, lock: lock, resource: resource}
}

type locked struct {
	env      *Env
	renews   bool
	lock     Lock
	resource Resource
}

// tenure is one stay under the lock, as the client has it.
type tenure struct {
	Grant
	lost   bool // the client has learned that it is over
	checks bool // the client looks at its deadline before it writes
	rec    Recorder
}

// Do implements Protocol. A conflict at the resource repeats the section from
// the acquire on: under a new tenure, as a client must that has just learned
// that it was not alone.
func (l *locked) Do(t *sim.Task, job int, body func(Section) error) error {
	for {
		n, err := l.acquire(t, job)
		if err != nil {
			return err
		}
		err = l.hold(t, job, n, body)
		t.Enter(job, sim.PhaseRelease)
		l.release(t, n)
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// acquire tries until it has the lock or has waited long enough. All tries
// that were answered with a no are one operation; a try with an unknown
// outcome ends its operation, since it may have left something behind; so does
// one that lost its place in a queue, where it may have come to be the first.
func (l *locked) acquire(t *sim.Task, job int) (*tenure, error) {
	t.Enter(job, sim.PhaseAcquire)
	opts, rec := &l.env.Options, l.env.Rec
	var giveUpAt clock.Reading
	if opts.Wait > 0 {
		giveUpAt = t.Now().Add(opts.Wait)
	}
	op := rec.Invoke(t, OpAcquire, 0, 0, 0)
	for try := 1; ; try++ {
		rec.Try(t, op)
		g, err := l.lock.Acquire(t)
		if err == nil {
			rec.Acquired(t, op, g.Token)
			g.Op = op
			n := l.env.tenures.Get()
			n.Grant, n.checks, n.rec = g, opts.ChecksValidity, rec
			return n, nil
		}
		over := errors.Is(err, sim.ErrUnknown) || errors.Is(err, ErrLost)
		if over {
			rec.Return(t, op, err, 0)
		}
		if try == opts.Tries || opts.Wait > 0 && t.Now() >= giveUpAt {
			if !over {
				rec.Return(t, op, ErrGaveUp, 0)
			}
			return nil, ErrGaveUp
		}
		t.Sleep(opts.Retry + time.Duration(t.Choose(sim.PointJitter, 0, int64(opts.RetryJitter))))
		if over {
			op = rec.Invoke(t, OpAcquire, 0, 0, 0)
		}
	}
}

// hold runs the body, with a renewer beside it where the design renews.
func (l *locked) hold(t *sim.Task, job int, n *tenure, body func(Section) error) error {
	if l.renews {
		renewer := t.Spawn("renewer", sim.PhaseRenew, func(r *sim.Task) { l.renew(r, n) })
		defer t.Kill(renewer)
	}
	t.Enter(job, sim.PhaseRead)
	s, err := l.resource.Enter(t, &n.Grant)
	if err == nil {
		h := l.env.helds.Get()
		h.Section, h.tenure = s, n
		err = body(h)
	}
	if errors.Is(err, ErrRefused) || errors.Is(err, ErrConflict) {
		n.learnLoss(t)
	}
	return err
}

// renew extends the lease until it is told that the lease is gone, or is
// killed. After an unknown outcome it tries again: the lease may well live.
// When it has renewed as often as it may, it waits for the end.
func (l *locked) renew(t *sim.Task, n *tenure) {
	for i := 0; !n.lost; i++ {
		if limit := l.env.Options.RenewMax; limit > 0 && i == limit {
			t.Sleep(n.Deadline.Sub(t.Now()))
			n.learnLoss(t)
			return
		}
		t.Sleep(l.env.Options.Renew)
		op := l.env.Rec.Invoke(t, OpRenew, n.Op, 0, n.Token)
		err := l.lock.Renew(t, &n.Grant)
		l.env.Rec.Return(t, op, err, 0)
		if errors.Is(err, ErrLost) {
			n.learnLoss(t)
		}
	}
}

func (l *locked) release(t *sim.Task, n *tenure) {
	op := l.env.Rec.Invoke(t, OpRelease, n.Op, 0, n.Token)
	l.env.Rec.Return(t, op, l.lock.Release(t, &n.Grant), 0)
}

func (n *tenure) learnLoss(t *sim.Task) {
	if !n.lost {
		n.lost = true
		n.rec.LearnsLoss(t, n.Op)
	}
}

// held is the section as the body sees it: the resource's, plus what the
// client knows of its lock.
type held struct {
	Section
	*tenure
}

// Lost implements Section.
func (h *held) Lost(t *sim.Task) bool {
	if !h.lost && h.checks && h.Deadline != 0 && t.Now() >= h.Deadline {
		h.learnLoss(t)
	}
	if s, ok := h.State.(Session); ok && !h.lost && s.Over(t) {
		h.learnLoss(t)
	}
	return h.lost
}
