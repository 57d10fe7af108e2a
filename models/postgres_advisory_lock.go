package models

import "locklab/sim"

// pgLockKey is the key of the advisory lock that the designs use.
const pgLockKey = 1

// advisoryVariant tells the designs on a session-level advisory lock apart.
type advisoryVariant struct {
	reconnects bool // the driver opens a new session when the old one is gone, and says nothing
	pooled     bool // through a transaction-mode pooler
}

// advisorySystem adds the server, and the pooler where there is one.
func advisorySystem(v advisoryVariant) func(env *Env) System {
	return func(env *Env) System {
		g := newPostgres(env)
		hosts := g.processes()
		if v.pooled {
			hosts = []*sim.Process{newPgBouncer(env, g.primary.proc)}
		}
		return System{
			Watch:  g.processes(),
			Holder: g.advisoryHolder,
			Lock: func(*sim.Process) Lock {
				return &advisoryLock{advisoryVariant: v, link: pgLink{env: env, hosts: hosts}}
			},
		}
	}
}

// advisoryHolder is whose the advisory lock is on the server that counts as
// the primary.
func (g *pgGroup) advisoryHolder() Holding {
	if g.primary.proc.Down() {
		return Holding{}
	}
	if a := g.primary.engine.findAdvisory(pgLockKey); a != nil && len(a.grants) > 0 {
		return Holding{Op: a.grants[len(a.grants)-1]}
	}
	return Holding{}
}

// advisoryLock is a client's handle: a connection of its own, and on it
//
//	SELECT pg_try_advisory_lock(1)   -- to acquire; false: try again later
//	SELECT 1                         -- the monitor, where there is one
//	SELECT pg_advisory_unlock(1)     -- to release
//
// (PostgreSQL manual 9.27.10). The lock is the session's: it ends with it.
type advisoryLock struct {
	advisoryVariant
	link pgLink
}

// Acquire implements Lock.
func (l *advisoryLock) Acquire(t *sim.Task) (Grant, error) {
	r, err := l.link.do(t, &PgStatement{Verb: PgTryLock, Key: pgLockKey})
	switch {
	case err != nil:
		return Grant{}, err
	case !r.True():
		return Grant{}, ErrBusy
	}
	return Grant{}, nil
}

// Renew implements Lock: there is nothing to renew, only a session to look
// after (DistributedLock's HandleLostToken polls it like this). Who abandons
// the connection has lost the lock with it. A driver that reconnects by itself
// finds nothing amiss.
func (l *advisoryLock) Renew(t *sim.Task, _ *Grant) error {
	ping := &PgStatement{Verb: PgPing}
	if l.reconnects {
		_, err := l.link.do(t, ping)
		return err
	}
	if _, err := l.link.in(t, ping); err != nil {
		return errSessionGone
	}
	return nil
}

// Release implements Lock.
func (l *advisoryLock) Release(t *sim.Task, g *Grant) error {
	send := l.link.in
	if l.reconnects {
		send = l.link.do
	}
	r, err := send(t, &PgStatement{Verb: PgUnlock, Key: pgLockKey, grant: g.Op})
	if err == nil && !r.True() {
		return ErrLost
	}
	return err
}

// advisoryXactSystem is the design whose lock is a transaction's.
func advisoryXactSystem(env *Env) System {
	g := newPostgres(env, pgDataRow())
	g.inside(env, func() Resource {
		return resourceFunc(func(_ *sim.Task, grant *Grant) (Section, error) {
			return &txSection{x: grant.State.(*transaction), tenure: grant.Op}, nil
		})
	})
	return System{
		Watch:  g.processes(),
		Holder: g.advisoryHolder,
		Lock: func(*sim.Process) Lock {
			l := &advisoryXactLock{link: g.link()}
			l.x = transaction{link: &l.link, rec: env.Rec}
			return l
		},
	}
}

// advisoryXactLock is a client's handle on
//
//	BEGIN
//	SELECT pg_try_advisory_xact_lock(1)   -- false: ROLLBACK, and try again later
//	...                                   -- the section
//	COMMIT
//
// There is no unlock: the lock ends with the transaction, and with the session.
type advisoryXactLock struct {
	link pgLink
	x    transaction
}

// Acquire implements Lock.
func (l *advisoryXactLock) Acquire(t *sim.Task) (Grant, error) {
	if err := l.x.begin(t, ReadCommitted); err != nil {
		return Grant{}, err
	}
	r, err := l.link.in(t, &PgStatement{Verb: PgTryXactLock, Key: pgLockKey})
	if err != nil {
		return Grant{}, err
	}
	if !r.True() {
		if _, err := l.link.in(t, &PgStatement{Verb: PgRollback}); err != nil && l.link.live() {
			return Grant{}, err
		}
		return Grant{}, ErrBusy
	}
	return Grant{State: &l.x}, nil
}

// Renew implements Lock. A transaction needs no renewal.
func (l *advisoryXactLock) Renew(*sim.Task, *Grant) error { return nil }

// Release implements Lock.
func (l *advisoryXactLock) Release(t *sim.Task, _ *Grant) error { return l.x.end(t, PgCommit) }
