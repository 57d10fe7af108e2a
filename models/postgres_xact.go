package models

// pgXact is a transaction.
type pgXact struct {
	session  *pgSession
	level    PgIsolation
	implicit bool  // of one statement, without BEGIN
	failed   bool  // an error: only ROLLBACK helps
	now      int64 // now(): when it began, in microseconds of the wall clock
	snapshot int64 // SERIALIZABLE: commits that it sees; taken by its first query
	fixed    bool  // the snapshot is taken
	tuples   []*pgTuple
	ops      []int32           // provenance: the operations that wrote protected data
	settings [pgSettings]int64 // the session's when it began: a rollback takes every SET back

	pgDependencies
}

// pgSession is one backend.
type pgSession struct {
	id       int
	xact     *pgXact // nil outside a transaction
	own      pgXact  // memory for the next one at READ COMMITTED
	settings [pgSettings]int64

	// The statement that it is busy with; nil if none.
	stmt     *PgStatement
	op       int32 // provenance: the operation that the statement belongs to
	received int64 // statement_timestamp()
	snapshot int64 // commits that the statement sees
	counted  bool  // the snapshot is counted in pgEngine.snapshots
	after    int64 // a scan that waited goes on behind this key,
	begun    bool  // if it has got that far
	row      PgRow // what an INSERT inserts: its values are computed once
	result   PgResult

	wait        pgWait
	turn, waits uint32 // statements and pauses, and waits, so far: timers are told apart by them
	commits     bool   // the statement is done and its transaction commits: no interrupting that
	over        bool
}

// begin opens a transaction. now() is fixed here, at BEGIN's arrival, and for
// an autocommitted statement at its own.
func (e *pgEngine) begin(s *pgSession, level PgIsolation, implicit bool) *pgXact {
	x := &s.own
	if level == Serializable {
		x = &pgXact{} // its dependencies outlive it
		e.serial = append(e.serial, x)
	}
	*x = pgXact{session: s, level: level, implicit: implicit, now: s.received, tuples: x.tuples[:0], ops: x.ops[:0], settings: s.settings}
	s.xact = x
	return x
}

// takeSnapshot fixes what a statement sees: at READ COMMITTED what is
// committed now, at SERIALIZABLE what was committed when the transaction's
// first query began. BEGIN takes none (manual 13.2).
func (e *pgEngine) takeSnapshot(s *pgSession) {
	x := s.xact
	if x.level == ReadCommitted {
		s.snapshot = e.commits
		return
	}
	if !x.fixed {
		x.snapshot, x.fixed = e.commits, true
		e.snapshots++
	}
	s.snapshot = x.snapshot
}

// commit makes a transaction durable, which may take until later: the host
// then calls committed. Until then others see nothing of it, and its locks
// stay (xact.c: the flush and the wait for a standby come before
// ProcArrayEndTransaction).
func (e *pgEngine) commit(x *pgXact) (done bool) {
	s := x.session
	s.commits = true
	if x.changes() && !e.host.flush(x) {
		return false
	}
	e.committed(x)
	return true
}

// changes reports whether the transaction wrote anything.
func (x *pgXact) changes() bool {
	for _, u := range x.tuples {
		if u.pending {
			return true
		}
	}
	return false
}

// committed ends a transaction whose commit is durable.
func (e *pgEngine) committed(x *pgXact) {
	e.commits++
	x.session.commits = false
	e.host.settled(x, true)
	e.endXact(x, true)
}

// rollback ends a transaction without effect.
func (e *pgEngine) rollback(x *pgXact) {
	e.host.settled(x, false)
	x.doomed = true
	x.session.settings = x.settings
	e.endXact(x, false)
}

// endXact frees the rows and the transaction-level advisory locks, and lets
// those go on that waited for them.
func (e *pgEngine) endXact(x *pgXact, commit bool) {
	s := x.session
	s.xact = nil
	if x.fixed {
		e.snapshots--
	}
	x.ended = true
	e.forgetDependencies()
	tuples := x.tuples
	for _, u := range tuples {
		u.settle(commit, e.commits, e.snapshots > 0)
	}
	if len(e.advisory) > 0 {
		e.releaseXactLocks(s)
	}
	for _, u := range tuples {
		if len(u.waiters) > 0 {
			e.letGo(u)
		}
	}
}
