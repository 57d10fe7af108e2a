package models

import "locklab/sim"

// postgresLeaderSystem adds the server for postgres/leader.
func postgresLeaderSystem(env *Env) System {
	g := newPostgres(env)
	return System{
		Watch:  g.processes(),
		Holder: g.advisoryHolder,
		Lock: func(*sim.Process) Lock {
			return &postgresLeader{advisoryLock{link: pgLink{env: env, hosts: g.processes()}}}
		},
	}
}

// postgresLeader is a candidate with a connection of its own, elected as the
// owner of the lock is, and on it
//
//	SELECT pg_try_advisory_lock(1)    -- to be elected; false: try again later
//	SELECT pg_try_advisory_lock(1)    -- the heartbeat: whose session has the lock gets it once more
//	SELECT pg_advisory_unlock_all()   -- to resign
//
// (https://www.ramitmittal.com/blog/leader-election-advisory-locks/: the leader
// asks for the lock at an interval.) A session-level lock is counted: one
// pg_advisory_unlock would take back one heartbeat, and leave the office to a
// leader that has resigned (manual 13.3.5).
type postgresLeader struct{ advisoryLock }

// Renew implements Lock: the heartbeat. It is sent on the session that was
// elected and on no other; who gives the session up has lost the office with it.
func (l *postgresLeader) Renew(t *sim.Task, _ *Grant) error {
	r, err := l.link.in(t, &PgStatement{Verb: PgTryLock, Key: pgLockKey})
	switch {
	case err != nil:
		return errSessionGone
	case !r.True():
		return ErrLost
	}
	return nil
}

// Release implements Lock: resign.
func (l *postgresLeader) Release(t *sim.Task, g *Grant) error {
	_, err := l.link.in(t, &PgStatement{Verb: PgUnlockAll, grant: g.Op})
	return err
}
