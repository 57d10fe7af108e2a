package models

import "time"

// pgHost is what an engine runs on: a simulated server, or a test.
type pgHost interface {
	// wall reads the server's wall clock, in microseconds.
	wall() int64
	// alarm has ring called after d, with the given turn.
	alarm(s *pgSession, what pgAlarm, turn uint32, d time.Duration)
	// answer gives a session's client the result of its statement.
	answer(s *pgSession, q *PgStatement)
	// flush makes a transaction durable. If that takes until later, it returns
	// false, and calls committed then.
	flush(x *pgXact) bool
	// settled tells what became of a transaction, while its changes can still be
	// told.
	settled(x *pgXact, commit bool)
	// disconnected tells that the server has ended a session by itself.
	disconnected(s *pgSession)
}

// pgEngine is one PostgreSQL server's memory: tables, sessions, locks. It runs
// one statement at a time, each as if at one instant, until it ends or waits.
type pgEngine struct {
	host      pgHost
	tables    []*pgTableData
	sessions  []*pgSession // by number, from 1; nil when it has ended
	advisory  []*pgAdvisory
	serial    []*pgXact // serializable transactions that dependencies are kept of
	commits   int64     // so far: a snapshot is a number of commits
	snapshots int       // how many are held that may want old versions
	recovery  bool      // a standby: it only reads
	defaults  [pgSettings]int64
}

func (e *pgEngine) table(def *PgTable) *pgTableData {
	for _, t := range e.tables {
		if t.def == def {
			return t
		}
	}
	t := &pgTableData{def: def}
	e.tables = append(e.tables, t)
	return t
}

// connect opens a session.
func (e *pgEngine) connect() *pgSession {
	s := &pgSession{id: len(e.sessions) + 1, settings: e.defaults}
	e.sessions = append(e.sessions, s)
	return s
}

// disconnect ends a session as its backend does when it finds its client gone:
// it rolls back, and every lock is free.
func (e *pgEngine) disconnect(s *pgSession) {
	if s.over {
		return
	}
	s.over = true
	e.stopWaiting(s)
	s.stmt = nil
	e.sessions[s.id-1] = nil
	if s.xact != nil {
		e.rollback(s.xact)
	}
	e.releaseSessionLocks(s)
}

// terminate ends a session by the server's own will, with a last word.
func (e *pgEngine) terminate(s *pgSession, why PgCode) {
	s.result = PgResult{Code: why}
	if q := s.stmt; q != nil {
		e.stopWaiting(s)
		s.stmt = nil
		e.host.answer(s, q)
	}
	e.host.disconnected(s)
	e.disconnect(s)
}

// run begins a statement. The host's answer follows, at once or when the
// statement has waited.
func (e *pgEngine) run(s *pgSession, q *PgStatement, op int32) {
	s.turn++ // earlier timers mean nothing any more
	s.stmt, s.op, s.received = q, op, e.host.wall()
	s.after, s.begun, s.wait = 0, false, pgWait{}
	s.result = PgResult{}
	if d := s.settings[StatementTimeout]; d > 0 {
		e.host.alarm(s, alarmStatement, s.turn, time.Duration(d))
	}
	if s.xact != nil && s.xact.failed && q.Verb != PgRollback && q.Verb != PgCommit {
		s.result.Code = PgFailedTransaction
		e.finish(s)
		return
	}
	if e.control(s) {
		return
	}
	if s.xact == nil {
		e.begin(s, ReadCommitted, true)
	}
	e.takeSnapshot(s)
	e.step(s)
}

// control runs the statements that begin and end transactions.
func (e *pgEngine) control(s *pgSession) bool {
	q, x := s.stmt, s.xact
	switch q.Verb {
	case PgBegin:
		if x != nil {
			s.result.Code = PgActiveTransaction
		} else {
			e.begin(s, q.Level, false)
		}
	case PgSet:
		s.settings[q.Setting] = int64(q.Length)
	case PgCommit, PgRollback:
		switch {
		case x == nil:
			s.result.Code = PgNoActiveTransaction
		case q.Verb == PgRollback || x.failed:
			s.result.RolledBack = q.Verb == PgCommit
			e.rollback(x)
		case !e.mayCommit(x):
			s.result.Code = PgSerializationFailure
			e.rollback(x)
		case !e.commit(x):
			return true
		}
	default:
		return false
	}
	e.finish(s)
	return true
}

// step runs a statement, or goes on with one that has waited, and ends it
// unless it waits again.
func (e *pgEngine) step(s *pgSession) {
	if e.execute(s) {
		return
	}
	if s.result.Code == PgAdminShutdown { // it has terminated itself
		e.terminate(s, PgAdminShutdown)
		return
	}
	e.stopWaiting(s)
	x := s.xact
	if s.result.Code.failed() {
		e.fail(s)
	} else if x.implicit && !e.commit(x) {
		return
	}
	e.finish(s)
}

// resume goes on with a statement whose turn it is.
func (e *pgEngine) resume(s *pgSession) {
	granted := s.wait.granted
	s.wait = pgWait{granted: granted}
	e.step(s)
}

// durable is called when a transaction whose flush took its time is durable.
func (e *pgEngine) durable(x *pgXact) {
	s := x.session
	e.committed(x)
	if !s.over {
		e.finish(s)
	}
}

// abort ends a waiting statement with an error.
func (e *pgEngine) abort(s *pgSession, why PgCode) {
	e.stopWaiting(s)
	s.result = PgResult{Code: why}
	e.fail(s)
	e.finish(s)
}

// fail makes the transaction of a failed statement useless: its locks go at
// once (AbortCurrentTransaction), and only ROLLBACK is taken now.
func (e *pgEngine) fail(s *pgSession) {
	x := s.xact
	if x.implicit {
		e.rollback(x)
		return
	}
	e.rollback(x)
	s.xact = x
	x.failed, x.tuples, x.ops, x.fixed = true, x.tuples[:0], x.ops[:0], false
}

// finish answers and makes the session ready for its next statement.
func (e *pgEngine) finish(s *pgSession) {
	q := s.stmt
	s.stmt = nil
	s.turn++
	if d := s.settings[IdleInTransactionTimeout]; d > 0 && s.xact != nil {
		e.host.alarm(s, alarmIdle, s.turn, time.Duration(d))
	}
	e.host.answer(s, q)
}
