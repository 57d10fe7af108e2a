package models

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pgScript runs statements on a server without a world and says what must come
// of them.
type pgScript struct {
	t *testing.T
	*PgLab
	last []PgStep // of the latest statement
}

var pgTestTable = &PgTable{Name: "t", Columns: []string{"id", "v", "at"}}

// newScript returns a server with so many sessions and the rows (1, 10) and
// (2, 20).
func newScript(t *testing.T, sessions int) *pgScript {
	l := &pgScript{t: t, PgLab: NewPgLab(1_700_000_000_000_000_000)}
	for range sessions {
		l.Connect()
	}
	l.ok(1, insert(1, 10))
	l.ok(1, insert(2, 20))
	return l
}

// ok runs a statement that ends at once, without an error.
func (l *pgScript) ok(session int, q PgStatement) PgResult {
	l.t.Helper()
	l.last = l.Do(session, q)
	require.Empty(l.t, l.last[0].BlockedBy, "%s waits", q.String())
	require.False(l.t, l.last[0].Result.Code.failed(), "%s: %s", q.String(), l.last[0].Result.String())
	return l.last[0].Result
}

// fails runs a statement that ends at once, with an error.
func (l *pgScript) fails(session int, q PgStatement, want PgCode) {
	l.t.Helper()
	l.last = l.Do(session, q)
	require.Empty(l.t, l.last[0].BlockedBy, "%s waits", q.String())
	require.Equal(l.t, want.String(), l.last[0].Result.Code.String(), "%s", q.String())
}

// waits runs a statement that waits for the given sessions.
func (l *pgScript) waits(session int, q PgStatement, by ...int) {
	l.t.Helper()
	l.last = l.Do(session, q)
	require.Equal(l.t, by, l.last[0].BlockedBy, "%s", q.String())
}

// woke returns what the latest statement, or passing of time, brought to
// another session's waiting statement.
func (l *pgScript) woke(session int) PgResult {
	l.t.Helper()
	for _, s := range l.last {
		if s.Session == session && !s.Closed && s.BlockedBy == nil {
			return s.Result
		}
	}
	require.Fail(l.t, "the session's statement has not ended", "session %d: %v", session, l.last)
	return PgResult{}
}

func (l *pgScript) after(d time.Duration) { l.last = l.Advance(d) }

func verb(v PgVerb) PgStatement                { return PgStatement{Verb: v} }
func advisory(v PgVerb, key int64) PgStatement { return PgStatement{Verb: v, Key: key} }
func begin() PgStatement                       { return verb(PgBegin) }
func serializableBegin() PgStatement           { return PgStatement{Verb: PgBegin, Level: Serializable} }
func commit() PgStatement                      { return verb(PgCommit) }
func rollback() PgStatement                    { return verb(PgRollback) }
func set(s PgSetting, d time.Duration) PgStatement {
	return PgStatement{Verb: PgSet, Setting: s, Length: d}
}
func insert(key, v int64) PgStatement {
	return PgStatement{Verb: PgInsert, Table: pgTestTable, Values: [pgColumns]PgExpr{PgValue(key), PgValue(v), PgNowPlus(0)}}
}
func read(key int64) PgStatement {
	return PgStatement{Verb: PgSelect, Table: pgTestTable, ByKey: true, Key: key}
}
func readAll() PgStatement { return PgStatement{Verb: PgSelect, Table: pgTestTable} }
func lockRow(key int64, how PgRowLock) PgStatement {
	q := read(key)
	q.Lock = how
	return q
}
func update(key, v int64) PgStatement {
	return PgStatement{Verb: PgUpdate, Table: pgTestTable, ByKey: true, Key: key, Set: [4]PgAssign{{Col: 1, Value: PgValue(v)}}}
}
func addTo(key, n int64) PgStatement {
	q := update(key, 0)
	q.Set[0].Value = PgColumnPlus(1, n)
	return q
}
func where(q PgStatement, col int, is PgCompare, v PgExpr) PgStatement {
	q.Where[0] = PgCond{col, is, v}
	return q
}
func del(key int64) PgStatement {
	return PgStatement{Verb: PgDelete, Table: pgTestTable, ByKey: true, Key: key}
}

// upsert takes the row over if its v is below the limit.
func upsert(key, v, below int64) PgStatement {
	q := insert(key, v)
	q.OnConflict = ConflictUpdates
	q.Set = [4]PgAssign{{Col: 1, Value: PgValue(v)}, {Col: 2, Value: PgNowPlus(0)}}
	return where(q, 1, Less, PgValue(below))
}

func TestPgTransactions(t *testing.T) {
	l := newScript(t, 2)
	l.ok(1, begin())
	l.ok(1, update(1, 11))
	require.EqualValues(t, 11, l.ok(1, read(1)).Row[1])
	require.EqualValues(t, 10, l.ok(2, read(1)).Row[1], "nobody sees it before the commit")
	l.ok(1, insert(3, 30))
	l.ok(1, del(2))
	require.Equal(t, 2, l.ok(1, readAll()).Rows)
	require.Equal(t, 2, l.ok(2, readAll()).Rows)
	l.ok(1, commit())
	all := l.ok(2, readAll())
	require.Equal(t, 2, len(all.All))
	require.EqualValues(t, 11, all.All[0][1])
	require.EqualValues(t, 3, all.All[1][0])

	l.ok(1, begin())
	l.ok(1, update(1, 99))
	l.ok(1, del(3))
	l.ok(1, insert(4, 40))
	l.ok(1, rollback())
	require.Equal(t, all.All, l.ok(2, readAll()).All, "a rollback leaves nothing")

	l.fails(1, insert(1, 1), PgUniqueViolation)
	l.ok(1, begin())
	l.ok(1, update(1, 12))
	l.fails(1, insert(1, 1), PgUniqueViolation)
	l.fails(1, read(1), PgFailedTransaction)
	require.True(t, l.ok(1, commit()).RolledBack)
	require.EqualValues(t, 11, l.ok(1, read(1)).Row[1])

	require.Equal(t, PgNoActiveTransaction, l.ok(1, commit()).Code, "a warning")
	l.ok(1, begin())
	require.Equal(t, PgActiveTransaction, l.ok(1, begin()).Code, "a warning")
}

func TestPgRowLocksQueue(t *testing.T) {
	l := newScript(t, 4)
	l.ok(1, begin())
	l.ok(1, update(1, 11))
	l.waits(2, addTo(1, 1), 1)
	l.waits(3, addTo(1, 1), 2)    // behind the first in the line,
	l.waits(4, addTo(1, 1), 2, 3) // as pg_blocking_pids has it
	l.ok(1, commit())
	for s := 2; s <= 4; s++ {
		require.EqualValues(t, 10+s, l.woke(s).Row[1], "in the order in which they came")
	}

	l.ok(1, begin())
	l.ok(1, lockRow(1, ForUpdate))
	require.Equal(t, 0, l.ok(2, lockRow(1, ForUpdateSkipLocked)).Rows)
	l.fails(2, lockRow(1, ForUpdateNoWait), PgLockNotAvailable)
	require.Equal(t, 1, l.ok(2, read(1)).Rows, "readers wait for nobody")
	next := readAll()
	next.Lock, next.Limit1 = ForUpdateSkipLocked, true
	require.EqualValues(t, 2, l.ok(2, next).Row[0], "the next that is free")
	l.waits(3, del(1), 1)
	l.waits(4, lockRow(1, ForUpdate), 3)
	l.ok(1, rollback())
	require.Equal(t, 1, l.woke(3).Rows)
	require.Equal(t, 0, l.woke(4).Rows, "deleted meanwhile")
}

func TestPgWaitingStatementSeesTheNewestRowAndTheOldNow(t *testing.T) {
	l := newScript(t, 3)
	l.ok(1, begin())
	l.ok(1, update(1, 50))
	l.waits(2, upsert(1, 7, 60), 1) // 50 < 60: it takes over
	l.waits(3, upsert(1, 8, 40), 1)
	before := l.now
	l.after(5 * time.Second)
	l.ok(1, commit())
	require.Equal(t, 1, l.woke(2).Rows)
	require.EqualValues(t, 7, l.woke(2).Row[1])
	require.Equal(t, before, l.woke(2).Row[2], "now() is when the statement began")
	require.Equal(t, 1, l.woke(3).Rows, "7 < 40: session 2's row, not the one that the snapshot shows")
}

func TestPgOnConflictWhereFalse(t *testing.T) {
	l := newScript(t, 2)
	require.Equal(t, 0, l.ok(1, upsert(1, 5, 10)).Rows, "10 is not below 10: no row comes back")
	require.EqualValues(t, 10, l.ok(1, read(1)).Row[1])
	l.ok(1, begin())
	require.Equal(t, 0, l.ok(1, upsert(1, 5, 10)).Rows)
	require.Equal(t, 0, l.ok(2, lockRow(1, ForUpdateSkipLocked)).Rows, "but the row is locked")
	l.ok(1, rollback())
	require.Equal(t, 1, l.ok(1, upsert(1, 5, 11)).Rows)
	require.Equal(t, 1, l.ok(1, upsert(9, 5, 0)).Rows, "no conflict, no WHERE")
	nothing := insert(1, 0)
	nothing.OnConflict = ConflictDoesNothing
	require.Equal(t, 0, l.ok(1, nothing).Rows)
}

func TestPgUniqueIndexWaitsForTheOther(t *testing.T) {
	l := newScript(t, 3)
	l.ok(1, begin())
	l.ok(1, insert(5, 1))
	l.waits(2, insert(5, 2), 1)
	l.waits(3, insert(5, 3), 1) // no line: both wait for the transaction
	l.ok(1, rollback())
	require.Equal(t, 1, l.woke(2).Rows)
	require.Equal(t, PgUniqueViolation, l.woke(3).Code)

	l.ok(1, begin())
	l.ok(1, del(5))
	l.waits(2, insert(5, 2), 1)
	l.ok(1, commit())
	require.Equal(t, 1, l.woke(2).Rows)

	l.ok(1, begin())
	l.ok(1, lockRow(5, ForUpdate))
	l.fails(2, insert(5, 2), PgUniqueViolation) // a mere lock changes nothing about the key
}

func TestPgDeadlock(t *testing.T) {
	l := newScript(t, 2)
	l.ok(1, begin())
	l.ok(2, begin())
	l.ok(1, update(1, 1))
	l.ok(2, advisory(PgXactLock, 7))
	l.waits(1, advisory(PgXactLock, 7), 2)
	l.after(300 * time.Millisecond)
	l.waits(2, update(1, 2), 1)
	l.after(699 * time.Millisecond)
	require.Empty(t, l.last, "it takes deadlock_timeout to look")
	l.after(time.Millisecond)
	require.Equal(t, PgDeadlockDetected, l.woke(1).Code, "who has waited for a second finds it, and gives up")
	require.Equal(t, 1, l.woke(2).Rows)
	l.ok(2, commit())
	require.True(t, l.ok(1, commit()).RolledBack)
	require.EqualValues(t, 2, l.ok(1, read(1)).Row[1])
}

func TestPgTimeouts(t *testing.T) {
	l := newScript(t, 3)
	l.ok(1, begin())
	l.ok(1, update(1, 1))
	l.ok(2, set(StatementTimeout, 2*time.Second))
	l.ok(3, set(LockTimeout, 500*time.Millisecond))
	l.waits(2, update(1, 2), 1)
	l.waits(3, update(1, 3), 2)
	l.after(500 * time.Millisecond)
	require.Equal(t, PgLockNotAvailable, l.woke(3).Code)
	l.after(1500 * time.Millisecond)
	require.Equal(t, PgQueryCanceled, l.woke(2).Code)

	l.ok(1, commit())
	l.ok(1, set(IdleInTransactionTimeout, 3*time.Second))
	l.after(time.Minute)
	require.True(t, l.Live(1), "idle, but in no transaction")
	l.ok(1, begin())
	l.ok(1, update(1, 4))
	l.after(2 * time.Second)
	l.ok(1, verb(PgPing))
	l.after(2 * time.Second)
	require.True(t, l.Live(1), "each statement begins a new pause")
	l.waits(2, update(1, 5), 1)
	l.after(time.Second)
	require.False(t, l.Live(1))
	require.Equal(t, PgStep{Session: 1, Result: PgResult{Code: PgIdleTimeout}, Closed: true}, l.last[0])
	require.Equal(t, 1, l.woke(2).Rows)
}

// (*) now() is the transaction's start, the others are not.
func TestPgClocks(t *testing.T) {
	l := newScript(t, 1)
	l.ok(1, begin())
	start := l.now
	l.after(time.Second)
	r := l.ok(1, verb(PgNow))
	require.Equal(t, PgRow{start, start + 1e6, start + 1e6}, r.Row)
	l.ok(1, commit())
	r = l.ok(1, verb(PgNow))
	require.Equal(t, PgRow{start + 1e6, start + 1e6, start + 1e6}, r.Row, "a statement alone is its own transaction")
}

// (*) Advisory locks: re-entrant and counted, both levels conflict, session
// level ignores rollback, unlocking what one does not hold returns false.
func TestPgAdvisoryLocks(t *testing.T) {
	l := newScript(t, 3)
	yes := func(s int, q PgStatement) {
		t.Helper()
		r := l.ok(s, q)
		require.True(t, r.True(), "%s", q.String())
	}
	no := func(s int, q PgStatement) {
		t.Helper()
		r := l.ok(s, q)
		require.False(t, r.True(), "%s", q.String())
	}
	yes(1, advisory(PgTryLock, 1))
	yes(1, advisory(PgTryLock, 1))
	no(2, advisory(PgTryLock, 1))
	no(2, advisory(PgTryXactLock, 1))
	no(2, advisory(PgUnlock, 1))
	yes(1, advisory(PgUnlock, 1))
	no(2, advisory(PgTryLock, 1)) // counted
	yes(1, advisory(PgUnlock, 1))
	no(1, advisory(PgUnlock, 1))

	l.ok(1, begin())
	yes(1, advisory(PgTryLock, 1))
	yes(1, advisory(PgTryXactLock, 2))
	no(1, advisory(PgUnlock, 2)) // transaction level is not unlocked by hand
	l.ok(1, rollback())
	no(2, advisory(PgTryLock, 1)) // session level ignores the rollback
	yes(2, advisory(PgTryXactLock, 2))
	yes(3, advisory(PgTryLock, 2)) // that was a transaction of one statement

	l.waits(2, advisory(PgLock, 1), 1)
	l.waits(3, advisory(PgXactLock, 1), 1, 2)
	l.ok(1, advisory(PgUnlock, 1))
	l.woke(2)
	require.Equal(t, []int{2}, l.BlockedBy(3))
	l.last = l.Hangup(2)
	l.woke(3) // and its transaction of one statement is over again
	yes(1, advisory(PgTryLock, 1))
	yes(1, verb(PgUnlockAll))
	yes(2+1, advisory(PgTryLock, 1))
}

// (*) Advisory locks live in the memory of one server.
func TestPgCrashForgetsLocksAndKeepsCommits(t *testing.T) {
	l := newScript(t, 2)
	l.ok(1, advisory(PgTryLock, 1))
	l.ok(1, begin())
	l.ok(1, update(1, 99))
	l.ok(2, update(2, 21))
	l.Crash()
	require.False(t, l.Live(1))
	s := l.Connect()
	r := l.ok(s, advisory(PgTryLock, 1))
	require.True(t, r.True())
	require.EqualValues(t, 10, l.ok(s, read(1)).Row[1])
	require.EqualValues(t, 21, l.ok(s, read(2)).Row[1])
}

func TestPgTerminateBackend(t *testing.T) {
	l := newScript(t, 3)
	l.ok(1, begin())
	l.ok(1, update(1, 1))
	l.ok(1, advisory(PgTryLock, 1))
	l.waits(2, update(1, 2), 1)
	r := l.ok(3, advisory(PgTerminate, 1))
	require.True(t, r.True())
	require.EqualValues(t, 2, l.woke(2).Row[1])
	require.False(t, l.Live(1))
	r = l.ok(3, advisory(PgTryLock, 1))
	require.True(t, r.True())
}

func TestPgSerializable(t *testing.T) {
	t.Run("concurrent update", func(t *testing.T) {
		l := newScript(t, 2)
		l.ok(1, serializableBegin())
		l.ok(2, serializableBegin())
		l.ok(1, read(1))
		l.ok(2, read(1))
		l.ok(1, addTo(1, 1))
		l.waits(2, addTo(1, 1), 1)
		l.ok(1, commit())
		require.Equal(t, PgSerializationFailure, l.woke(2).Code)
	})
	t.Run("the first rolls back", func(t *testing.T) {
		l := newScript(t, 2)
		l.ok(1, serializableBegin())
		l.ok(2, serializableBegin())
		l.ok(1, addTo(1, 1))
		l.waits(2, addTo(1, 1), 1)
		l.ok(1, rollback())
		require.Equal(t, 1, l.woke(2).Rows)
		require.Equal(t, PgOK, l.ok(2, commit()).Code)
	})
	t.Run("the snapshot is taken by the first query", func(t *testing.T) {
		l := newScript(t, 2)
		l.ok(1, serializableBegin())
		l.ok(2, update(1, 11))
		require.EqualValues(t, 11, l.ok(1, read(1)).Row[1])
		l.ok(2, update(1, 12))
		require.EqualValues(t, 11, l.ok(1, read(1)).Row[1])
		l.fails(1, update(1, 13), PgSerializationFailure)
	})
	t.Run("write skew", func(t *testing.T) {
		l := newScript(t, 2)
		for s := 1; s <= 2; s++ { // on call: each sees two, and leaves
			l.ok(s, serializableBegin())
			require.Equal(t, 2, l.ok(s, readAll()).Rows)
		}
		l.ok(1, update(1, 0))
		l.ok(2, update(2, 0))
		l.ok(1, commit())
		l.fails(2, commit(), PgSerializationFailure)
	})
	t.Run("write skew by keys, the second writes after the first's commit", func(t *testing.T) {
		l := newScript(t, 2)
		l.ok(1, serializableBegin())
		l.ok(2, serializableBegin())
		l.ok(1, read(1))
		l.ok(2, read(2))
		l.ok(1, update(2, 0))
		l.ok(1, commit())
		l.fails(2, update(1, 0), PgSerializationFailure)
	})
	t.Run("phantom", func(t *testing.T) {
		l := newScript(t, 2)
		for s := 1; s <= 2; s++ {
			l.ok(s, serializableBegin())
			l.ok(s, readAll())
		}
		l.ok(1, insert(3, 0))
		l.ok(1, commit())
		l.fails(2, insert(4, 0), PgSerializationFailure)
	})
	t.Run("one dependency alone is harmless", func(t *testing.T) {
		l := newScript(t, 2)
		l.ok(1, serializableBegin())
		l.ok(2, serializableBegin())
		l.ok(1, readAll())
		l.ok(2, update(1, 0))
		l.ok(2, commit())
		l.ok(1, insert(3, 0))
		require.Equal(t, PgOK, l.ok(1, commit()).Code)
	})
	t.Run("read only anomaly", func(t *testing.T) {
		// Fekete, O'Neil and O'Neil (2004): the reader makes it one.
		l := newScript(t, 3)
		l.ok(1, serializableBegin())
		l.ok(1, readAll())
		l.ok(2, serializableBegin())
		l.ok(2, addTo(2, 20))
		l.ok(2, commit())
		l.ok(3, serializableBegin())
		l.ok(3, readAll())
		l.ok(3, commit())
		l.fails(1, update(1, -11), PgSerializationFailure)
	})
	t.Run("not beside READ COMMITTED", func(t *testing.T) {
		l := newScript(t, 2)
		l.ok(1, serializableBegin())
		l.ok(1, readAll())
		l.ok(2, begin())
		l.ok(2, readAll())
		l.ok(1, update(1, 0))
		l.ok(2, update(2, 0))
		require.Equal(t, PgOK, l.ok(1, commit()).Code)
		require.Equal(t, PgOK, l.ok(2, commit()).Code)
	})
}
