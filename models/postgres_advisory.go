package models

// pgAdvisory is an advisory lock that somebody holds. It lives in the memory
// of one server: a crash, a restart or a failover forgets it, and no standby
// ever hears of it (manual 13.3.5 and 27.4.3).
type pgAdvisory struct {
	key   int64
	owner *pgSession
	// How often the owner has taken it: at session level, which outlives the
	// transaction and ignores its rollback, and at transaction level. Both
	// keep other sessions out, at either level.
	session, xact int
	grants        []int32 // provenance: the operations that took it, the latest last
	waiters       []*pgSession
}

func (e *pgEngine) findAdvisory(key int64) *pgAdvisory {
	for i := range e.advisory {
		if e.advisory[i].key == key {
			return e.advisory[i]
		}
	}
	return nil
}

// takeAdvisory takes a lock if nobody else has it.
func (e *pgEngine) takeAdvisory(s *pgSession, key int64, xact bool) bool {
	a := e.findAdvisory(key)
	if a == nil {
		a = &pgAdvisory{key: key, owner: s}
		e.advisory = append(e.advisory, a)
	}
	if a.owner != s {
		return false
	}
	a.take(s, xact)
	return true
}

func (a *pgAdvisory) take(s *pgSession, xact bool) {
	a.owner = s
	if xact {
		a.xact++
	} else {
		a.session++
	}
	a.grants = append(a.grants, s.op)
}

// drop takes back one grant: the latest, or the one that the same client has
// (behind a pooler several share a session, and cannot tell).
func (a *pgAdvisory) drop(grant int32) {
	n := len(a.grants)
	for i := n - 1; i >= 0; i-- {
		if a.grants[i] == grant {
			a.grants = append(a.grants[:i], a.grants[i+1:]...)
			return
		}
	}
	if n > 0 {
		a.grants = a.grants[:n-1]
	}
}

// unlock gives one session-level grant back. Of what the session does not
// hold, or holds at transaction level only, it returns false, with a warning.
func (e *pgEngine) unlock(s *pgSession, key int64) bool {
	a := e.findAdvisory(key)
	if a == nil || a.owner != s || a.session == 0 {
		return false
	}
	a.session--
	a.drop(s.stmt.grant)
	e.passOn(a)
	return true
}

// releaseXactLocks gives back what the ending transaction had taken.
func (e *pgEngine) releaseXactLocks(s *pgSession) {
	e.releaseAll(s, func(a *pgAdvisory) *int { return &a.xact })
}

// releaseSessionLocks gives back every session-level grant.
func (e *pgEngine) releaseSessionLocks(s *pgSession) {
	e.releaseAll(s, func(a *pgAdvisory) *int { return &a.session })
}

// releaseAll gives back all grants of one level. Who gets a lock next goes on
// at once and may change the list, so the search begins anew each time.
func (e *pgEngine) releaseAll(s *pgSession, level func(*pgAdvisory) *int) {
	for i := 0; i < len(e.advisory); i++ {
		a := e.advisory[i]
		count := level(a)
		if a.owner != s || *count == 0 {
			continue
		}
		for ; *count > 0; *count-- {
			a.drop(0)
		}
		e.passOn(a)
		i = -1
	}
}

// passOn gives a lock that nobody holds any more to the first who waits, in
// the same instant (ProcLockWakeup).
func (e *pgEngine) passOn(a *pgAdvisory) {
	if a.session+a.xact > 0 {
		return
	}
	if len(a.waiters) == 0 {
		for i := range e.advisory {
			if e.advisory[i] == a {
				e.advisory = append(e.advisory[:i], e.advisory[i+1:]...)
				return
			}
		}
	}
	w := a.waiters[0]
	a.waiters = a.waiters[1:]
	a.take(w, w.stmt.Verb == PgXactLock)
	w.wait.granted = true
	e.resume(w)
}

// advisoryStatement runs an advisory function. waits says that the statement
// waits now.
func (e *pgEngine) advisoryStatement(s *pgSession) (waits bool) {
	q := s.stmt
	xact := q.Verb == PgXactLock || q.Verb == PgTryXactLock
	got := false
	switch q.Verb {
	case PgTryLock, PgTryXactLock:
		got = e.takeAdvisory(s, q.Key, xact)
	case PgLock, PgXactLock:
		if !s.wait.granted && !e.takeAdvisory(s, q.Key, xact) {
			a := e.findAdvisory(q.Key)
			a.waiters = append(a.waiters, s)
			e.await(s, pgWait{advisory: a})
			return true
		}
		got = true // the function returns void
	case PgUnlock:
		got = e.unlock(s, q.Key)
	case PgUnlockAll:
		e.releaseSessionLocks(s)
		got = true
	}
	s.result.Rows, s.result.Row[0] = 1, int64(pgBit(got))
	return false
}
