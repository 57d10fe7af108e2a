package models

// execute runs the session's statement up to its end or its next wait; waits
// says which. An error is left in the result.
func (e *pgEngine) execute(s *pgSession) (waits bool) {
	q := s.stmt
	if q.writes() && e.recovery {
		s.result.Code = PgReadOnly
		return false
	}
	switch q.Verb {
	case PgPing:
		s.result.Rows, s.result.Row[0] = 1, 1
	case PgNow:
		s.result.Rows = 1
		s.result.Row = PgRow{s.xact.now, s.received, e.host.wall()}
	case PgInRecovery:
		s.result.Rows, s.result.Row[0] = 1, int64(pgBit(e.recovery))
	case PgTerminate:
		e.terminateBackend(s)
	case PgSelect, PgUpdate, PgDelete:
		return e.scan(s)
	case PgInsert:
		return e.insert(s)
	default:
		return e.advisoryStatement(s)
	}
	return false
}

// writes reports whether a standby refuses the statement. Advisory locks it
// grants, its own (manual 27.4.3).
func (q *PgStatement) writes() bool {
	return q.Verb == PgInsert || q.Verb == PgUpdate || q.Verb == PgDelete || q.Verb == PgSelect && q.Lock != NoRowLock
}

func (e *pgEngine) terminateBackend(s *pgSession) {
	k := int(s.stmt.Key)
	if k == s.id { // step sees to it
		s.result.Code = PgAdminShutdown
		return
	}
	s.result.Rows = 1
	if k >= 1 && k <= len(e.sessions) && e.sessions[k-1] != nil {
		s.result.Row[0] = 1
		if victim := e.sessions[k-1]; !victim.commits {
			e.terminate(victim, PgAdminShutdown)
		}
	}
}

// scan visits the rows of a SELECT, UPDATE or DELETE in the order of their
// keys. A statement that has waited for a row goes on with that row.
func (e *pgEngine) scan(s *pgSession) (waits bool) {
	q, t := s.stmt, e.table(s.stmt.Table)
	x := s.serializable()
	if x != nil {
		x.noteRead(pgRead{table: t, key: q.Key, all: !q.ByKey})
	}
	first := 0
	switch {
	case q.ByKey:
		first = t.at(q.Key)
	case s.begun:
		first = t.at(s.after)
	}
	for i := first; i < len(t.tuples); i++ {
		u := t.tuples[i]
		if q.Desc {
			u = t.tuples[len(t.tuples)-1-i]
		}
		if q.ByKey && u.key != q.Key {
			break
		}
		if x != nil && e.readConflicts(x, u) {
			s.result.Code = PgSerializationFailure
			return false
		}
		found, waits := e.visit(s, u)
		if waits {
			s.after, s.begun = u.key, true
			return true
		}
		if s.result.Code != PgOK {
			return false
		}
		if found && q.Limit1 {
			break
		}
	}
	return false
}

// visit does to one row what the statement wants. It reports whether the row
// was one of the statement's, or whether the statement must wait for it.
func (e *pgEngine) visit(s *pgSession, u *pgTuple) (found, waits bool) {
	q, x := s.stmt, s.xact
	v := u.visible(x, s.snapshot)
	if v == nil || !e.matches(s, &v.row) {
		return false, false
	}
	if q.Verb == PgSelect && q.Lock == NoRowLock {
		e.collect(s, &v.row)
		return true, false
	}
	if u.replaced(v) {
		if x.level == Serializable {
			s.result.Code = PgSerializationFailure
		}
		return false, false
	}
	if u.lockedFor(x) {
		switch q.Lock {
		case ForUpdateSkipLocked:
			return false, false
		case ForUpdateNoWait:
			s.result.Code = PgLockNotAvailable
			return false, false
		}
		e.awaitTuple(s, u)
		return false, true
	}
	// The row may have changed since the snapshot. READ COMMITTED looks again
	// at the newest version, with the clock of before (EvalPlanQual, manual
	// 13.2.1); SERIALIZABLE gives up.
	newest := u.newest(x)
	if newest != v {
		if x.level == Serializable {
			s.result.Code = PgSerializationFailure
			return false, false
		}
		u.lock(x) // the lock stays, whatever the second look finds
		if !e.matches(s, &newest.row) {
			return false, false
		}
		v = newest
	}
	return e.change(s, u, v.row), false
}

// change locks, updates or deletes a row.
func (e *pgEngine) change(s *pgSession, u *pgTuple, row PgRow) bool {
	q, x := s.stmt, s.xact
	if q.Verb != PgSelect && s.serializable() != nil && e.writeConflicts(x, u.table, u.key, u) {
		s.result.Code = PgSerializationFailure
		return false
	}
	switch q.Verb {
	case PgSelect:
		u.lock(x)
	case PgUpdate:
		row = e.assigned(s, row)
		u.write(x, row, false, s.op)
	case PgDelete:
		u.write(x, row, true, s.op)
	}
	e.collect(s, &row)
	return true
}

// collect adds a row to the result.
func (e *pgEngine) collect(s *pgSession, row *PgRow) {
	r := &s.result
	if r.Rows == 0 {
		r.Row = *row
	}
	r.Rows++
	if q := s.stmt; q.Verb == PgSelect && !q.ByKey && !q.Limit1 {
		r.All = append(r.All, *row)
	}
}

// insert runs an INSERT.
func (e *pgEngine) insert(s *pgSession) (waits bool) {
	q, x, t := s.stmt, s.xact, e.table(s.stmt.Table)
	if !s.begun {
		s.row, s.begun = PgRow{}, true
		for i := range q.Table.Columns {
			s.row[i] = e.value(s, &q.Values[i], nil)
			if q.Values[i].base == pgSerial {
				t.serial++
				s.row[i] = t.serial
			}
		}
	}
	row := s.row
	u := t.find(row[0])
	if u != nil && u.lockedFor(x) && u.pending {
		e.awaitWriter(s, u) // nobody knows yet whether the key is there
		return true
	}
	if u != nil {
		if v := u.latest(x); v != nil {
			return e.conflict(s, u, v)
		}
	}
	if s.serializable() != nil && e.writeConflicts(x, t, row[0], nil) {
		s.result.Code = PgSerializationFailure
		return false
	}
	if u == nil {
		u = t.add(row[0])
	}
	u.write(x, row, false, s.op)
	u.next.inserted = true
	e.collect(s, &row)
	return false
}

// conflict is an INSERT that finds its key taken. DO UPDATE locks the row and
// keeps the lock even where its WHERE is false and no row comes back; it works
// on the newest version, whether or not the snapshot shows it (INSERT, "ON
// CONFLICT Clause").
func (e *pgEngine) conflict(s *pgSession, u *pgTuple, v *pgVersion) (waits bool) {
	q, x := s.stmt, s.xact
	if q.OnConflict == ConflictFails {
		s.result.Code = PgUniqueViolation
		return false
	}
	if q.OnConflict == ConflictUpdates && u.lockedFor(x) {
		e.awaitTuple(s, u)
		return true
	}
	if x.level == Serializable && u.visible(x, x.snapshot) != v {
		s.result.Code = PgSerializationFailure
		return false
	}
	if q.OnConflict == ConflictDoesNothing {
		return false
	}
	u.lock(x)
	if e.matches(s, &v.row) {
		e.changeOnConflict(s, u, v.row)
	}
	return false
}

func (e *pgEngine) changeOnConflict(s *pgSession, u *pgTuple, row PgRow) {
	if s.serializable() != nil && e.writeConflicts(s.xact, u.table, u.key, u) {
		s.result.Code = PgSerializationFailure
		return
	}
	row = e.assigned(s, row)
	u.write(s.xact, row, false, s.op)
	e.collect(s, &row)
}

// assigned returns the row with the statement's assignments, all computed
// from the old one.
func (e *pgEngine) assigned(s *pgSession, old PgRow) PgRow {
	row := old
	for i := range s.stmt.Set {
		if a := &s.stmt.Set[i]; a.Col != 0 {
			row[a.Col] = e.value(s, &a.Value, &old)
		}
	}
	return row
}

// matches reports whether the row satisfies the WHERE.
func (e *pgEngine) matches(s *pgSession, row *PgRow) bool {
	for i := range s.stmt.Where {
		c := &s.stmt.Where[i]
		if c.Is == 0 {
			continue
		}
		a, b := row[c.Col], e.value(s, &c.Value, row)
		if ok := [...]bool{Equal: a == b, Differs: a != b, Less: a < b, LessOrEqual: a <= b, Greater: a > b}[c.Is]; !ok {
			return false
		}
	}
	return true
}

// value computes an expression.
func (e *pgEngine) value(s *pgSession, x *PgExpr, row *PgRow) int64 {
	switch x.base {
	case pgNow:
		return s.xact.now + x.n
	case pgStatement:
		return s.received + x.n
	case pgClock:
		return e.host.wall() + x.n
	case pgColumn:
		return row[x.col] + x.n
	}
	return x.n
}
