package models

import (
	"time"

	"locklab/clock"
	"locklab/sim"
)

// The designs in this file are broken on purpose; leader_test.go shows that
// each is caught.

// MutantByRenewTime is a k8s/lease whose followers compare the record's
// timestamp with their own clock.
func MutantByRenewTime(base Design) *Design {
	base.Name, base.Build = "mutant", wrapLocks(base.Build, func(l Lock) Lock { return byRenewTime{l.(*k8sLease)} })
	return &base
}

// MutantNeverStepsDown is a k8s/lease whose work is not told when the renewal
// deadline has passed.
func MutantNeverStepsDown(base Design) *Design {
	base.Name, base.Build = "mutant", wrapLocks(base.Build, func(l Lock) Lock { return untold{l} })
	return &base
}

// MutantUnlocksOnce is a postgres/leader that takes back one grant of the many
// that its heartbeats have added.
func MutantUnlocksOnce(base Design) *Design {
	base.Name, base.Build = "mutant", wrapLocks(base.Build, func(l Lock) Lock { return onceUnlocker{l.(*postgresLeader)} })
	return &base
}

func wrapLocks(build func(*Env) System, wrap func(Lock) Lock) func(*Env) System {
	return func(env *Env) System {
		s := build(env)
		lock := s.Lock
		s.Lock = func(p *sim.Process) Lock { return wrap(lock(p)) }
		return s
	}
}

// byRenewTime takes a record for dead whose own timestamp is old.
type byRenewTime struct{ *k8sLease }

// Acquire implements Lock.
func (l byRenewTime) Acquire(t *sim.Task) (Grant, error) {
	g, err := l.k8sLease.Acquire(t)
	if err != ErrBusy || t.Wall() < l.observed.renewed.Add(l.observed.duration) {
		return g, err
	}
	l.observedAt = -clock.Reading(time.Hour)
	return l.k8sLease.Acquire(t)
}

// untold hides from the work what its term knows.
type untold struct{ Lock }

// Acquire implements Lock.
func (d untold) Acquire(t *sim.Task) (Grant, error) {
	g, err := d.Lock.Acquire(t)
	if term, ok := g.State.(*leaseTerm); ok {
		g.State = hidden{term}
	}
	return g, err
}

// Release implements Lock.
func (d untold) Release(t *sim.Task, g *Grant) error {
	open := *g
	open.State = g.State.(hidden).term
	return d.Lock.Release(t, &open)
}

type hidden struct{ term *leaseTerm }

type onceUnlocker struct{ *postgresLeader }

// Release implements Lock.
func (l onceUnlocker) Release(t *sim.Task, g *Grant) error {
	_, err := l.link.in(t, &PgStatement{Verb: PgUnlock, Key: pgLockKey, grant: g.Op})
	return err
}
