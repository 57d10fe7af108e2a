package models

import "time"

// pgWait is what a session's statement waits for.
type pgWait struct {
	tuple    *pgTuple    // a row, in its line,
	end      bool        // or in none: for the end of whoever writes it
	advisory *pgAdvisory // or an advisory lock,
	granted  bool        // which has just become its own
}

func (w *pgWait) waiting() bool { return (w.tuple != nil || w.advisory != nil) && !w.granted }

// pgDeadlockTimeout is how long a session waits before it looks for a deadlock
// (deadlock_timeout, manual 20.12; the default). It looks once in each wait.
const pgDeadlockTimeout = time.Second

// pgAlarm says what a timer of a session is for.
type pgAlarm uint8

const (
	alarmStatement pgAlarm = iota // of a statement, and
	alarmIdle                     // of a pause between two: the turn is pgSession.turn
	alarmLock                     // of a wait, and
	alarmDeadlock                 // too: pgSession.waits
)

// await makes the statement wait.
func (e *pgEngine) await(s *pgSession, w pgWait) {
	s.wait = w
	s.waits++
	if !s.counted { // it goes on with the snapshot that it has
		s.counted = true
		e.snapshots++
	}
	e.host.alarm(s, alarmDeadlock, s.waits, pgDeadlockTimeout)
	if d := s.settings[LockTimeout]; d > 0 {
		e.host.alarm(s, alarmLock, s.waits, time.Duration(d))
	}
}

// awaitTuple makes the statement wait in the line for a row that somebody else
// holds.
func (e *pgEngine) awaitTuple(s *pgSession, u *pgTuple) {
	u.waiters = append(u.waiters, s)
	e.await(s, pgWait{tuple: u})
}

// awaitWriter makes an INSERT wait for the end of the transaction that writes
// the row with its key. All that do stand in no line (_bt_check_unique).
func (e *pgEngine) awaitWriter(s *pgSession, u *pgTuple) {
	u.waiters = append(u.waiters, s)
	e.await(s, pgWait{tuple: u, end: true})
}

// line lists who waits for the row in turn.
func (u *pgTuple) line() []*pgSession {
	for i, w := range u.waiters {
		if !w.wait.end {
			continue
		}
		line := append([]*pgSession(nil), u.waiters[:i]...)
		for _, w := range u.waiters[i+1:] {
			if !w.wait.end {
				line = append(line, w)
			}
		}
		return line
	}
	return u.waiters
}

// letGo lets those go on who waited for the row's owner: whoever waited for its
// end, and in turn those in the line, until one keeps the row.
func (e *pgEngine) letGo(u *pgTuple) {
	for _, w := range append([]*pgSession(nil), u.waiters...) {
		if w.wait.tuple == u && (u.owner == nil || w.wait.end) {
			u.waiters = without(u.waiters, w)
			e.resume(w)
		}
	}
}

// stopWaiting takes a session out of the queue that it may stand in. Its
// statement's snapshot is not needed any more.
func (e *pgEngine) stopWaiting(s *pgSession) {
	if s.counted {
		s.counted = false
		e.snapshots--
	}
	if u := s.wait.tuple; u != nil {
		u.waiters = without(u.waiters, s)
	}
	if a := s.wait.advisory; a != nil {
		a.waiters = without(a.waiters, s)
	}
	s.wait = pgWait{}
}

func without(list []*pgSession, s *pgSession) []*pgSession {
	for i, other := range list {
		if other == s {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// ring tells a session that a timer of its has run out, one that was set in
// the given turn.
func (e *pgEngine) ring(s *pgSession, what pgAlarm, turn uint32) {
	now := s.turn
	if what >= alarmLock {
		now = s.waits
	}
	if s.over || s.commits || turn != now {
		return
	}
	waits := s.stmt != nil && s.wait.waiting()
	switch {
	case what == alarmStatement && waits: // a statement takes time only when it waits
		e.abort(s, PgQueryCanceled)
	case what == alarmLock && waits:
		e.abort(s, PgLockNotAvailable)
	case what == alarmDeadlock && waits && e.deadlocked(s):
		e.abort(s, PgDeadlockDetected)
	case what == alarmIdle && s.stmt == nil && s.xact != nil:
		e.terminate(s, PgIdleTimeout)
	}
}

// deadlocked reports whether the session waits for itself: it is the one to
// look that gives up.
func (e *pgEngine) deadlocked(s *pgSession) bool {
	seen := []*pgSession{s}
	for i := 0; i < len(seen); i++ {
		b := seen[i].blocker()
		if b == s {
			return true
		}
		known := b == nil
		for _, other := range seen {
			known = known || other == b
		}
		if !known {
			seen = append(seen, b)
		}
	}
	return false
}

// blocker is the session that this one cannot go on without: who holds what it
// waits for. Behind the first in the line for a row, it is that first one (it
// has the tuple's lock).
func (s *pgSession) blocker() *pgSession {
	w := &s.wait
	switch {
	case s.stmt == nil || !w.waiting():
		return nil
	case w.advisory != nil:
		return w.advisory.owner
	case !w.end && w.tuple.line()[0] != s:
		return w.tuple.line()[0]
	}
	if w.tuple.owner == nil {
		return nil
	}
	return w.tuple.owner.session
}

// blockedBy lists the sessions that pg_blocking_pids would name: the holder
// and, in a line, those that stand before.
func (s *pgSession) blockedBy() []int {
	var out []int
	b := s.blocker()
	if b == nil {
		return nil
	}
	out = append(out, b.id)
	line := []*pgSession(nil)
	if a := s.wait.advisory; a != nil {
		line = a.waiters
	} else if !s.wait.end && b == s.wait.tuple.line()[0] {
		line = s.wait.tuple.line()[1:]
	}
	for _, w := range line {
		if w == s {
			break
		}
		out = append(out, w.id)
	}
	return out
}
