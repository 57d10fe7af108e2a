package models

import (
	"fmt"
	"strings"
	"time"

	"locklab/sim"
)

// PgTable is a table of the modelled PostgreSQL. Its first column is the
// primary key, and with it the table's only unique index. All columns are
// bigint or timestamptz, as microseconds (PostgreSQL manual 8.5); there is no
// NULL: where SQL would have it, a design uses 0.
type PgTable struct {
	Name    string
	Columns []string
	// data marks protected data, for the history: what a transaction does to
	// it is what a resource decides.
	data bool
}

// pgColumns is how many columns a table may have.
const pgColumns = 5

// PgRow is a row's columns.
type PgRow [pgColumns]int64

// PgVerb says what a statement does.
type PgVerb uint8

// The statements.
const (
	PgPing        PgVerb = iota + 1 // SELECT 1
	PgBegin                         // BEGIN ISOLATION LEVEL ...
	PgCommit                        // COMMIT
	PgRollback                      // ROLLBACK
	PgSet                           // SET statement_timeout = ...
	PgSelect                        // SELECT ... [FOR UPDATE [SKIP LOCKED | NOWAIT]]
	PgInsert                        // INSERT ... [ON CONFLICT ...] RETURNING *
	PgUpdate                        // UPDATE ... RETURNING *
	PgDelete                        // DELETE ... RETURNING *
	PgNow                           // SELECT now(), statement_timestamp(), clock_timestamp()
	PgInRecovery                    // SELECT pg_is_in_recovery()
	PgTerminate                     // SELECT pg_terminate_backend(...)
	PgLock                          // SELECT pg_advisory_lock(key)
	PgTryLock                       // SELECT pg_try_advisory_lock(key)
	PgXactLock                      // SELECT pg_advisory_xact_lock(key)
	PgTryXactLock                   // SELECT pg_try_advisory_xact_lock(key)
	PgUnlock                        // SELECT pg_advisory_unlock(key)
	PgUnlockAll                     // SELECT pg_advisory_unlock_all()
)

var pgFunctions = [...]string{PgPing: "1", PgNow: "now(), statement_timestamp(), clock_timestamp()", PgInRecovery: "pg_is_in_recovery()",
	PgTerminate: "pg_terminate_backend", PgLock: "pg_advisory_lock", PgTryLock: "pg_try_advisory_lock", PgXactLock: "pg_advisory_xact_lock",
	PgTryXactLock: "pg_try_advisory_xact_lock", PgUnlock: "pg_advisory_unlock", PgUnlockAll: "pg_advisory_unlock_all()"}

// PgIsolation is a transaction's isolation level.
type PgIsolation uint8

// The isolation levels that are modelled.
const (
	ReadCommitted PgIsolation = iota
	Serializable
)

// PgRowLock says what a SELECT does about row locks.
type PgRowLock uint8

// The row locks. An UPDATE may be given ForUpdateSkipLocked too: it then takes
// its rows from a sub-select that has it.
const (
	NoRowLock PgRowLock = iota
	ForUpdate
	ForUpdateSkipLocked
	ForUpdateNoWait
)

var pgRowLocks = [...]string{"", " FOR UPDATE", " FOR UPDATE SKIP LOCKED", " FOR UPDATE NOWAIT"}

// PgConflict says what an INSERT does about a duplicate key.
type PgConflict uint8

// The actions on conflict.
const (
	ConflictFails PgConflict = iota // unique_violation
	ConflictDoesNothing
	ConflictUpdates // DO UPDATE SET Set WHERE Where
)

// PgSetting is a setting of a session, a length of time; 0 switches it off.
type PgSetting uint8

// The settings (PostgreSQL manual 20.11).
const (
	StatementTimeout PgSetting = iota
	LockTimeout
	IdleInTransactionTimeout
	pgSettings
)

var pgSettingNames = [...]string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"}

// pgBase is what an expression begins with.
type pgBase uint8

const (
	pgConst pgBase = iota
	pgNow
	pgStatement
	pgClock
	pgColumn
	pgSerial
)

var pgBaseNames = [...]string{"", "now()", "statement_timestamp()", "clock_timestamp()", "", "nextval()"}

// PgExpr is a value: a constant, one of the three clocks or a column of the
// row, plus a constant.
type PgExpr struct {
	base pgBase
	col  int8
	n    int64
}

// PgValue is a constant.
func PgValue(n int64) PgExpr { return PgExpr{n: n} }

// PgNowPlus is now() plus a time: the start of the transaction, whatever has
// happened since (manual 9.9.5).
func PgNowPlus(d time.Duration) PgExpr { return PgExpr{base: pgNow, n: d.Microseconds()} }

// PgStatementPlus is statement_timestamp() plus a time: when the server
// received the statement.
func PgStatementPlus(d time.Duration) PgExpr {
	return PgExpr{base: pgStatement, n: d.Microseconds()}
}

// PgClockPlus is clock_timestamp() plus a time: the wall clock as it is now.
func PgClockPlus(d time.Duration) PgExpr { return PgExpr{base: pgClock, n: d.Microseconds()} }

// PgColumnPlus is a column of the row, plus a number.
func PgColumnPlus(col int, n int64) PgExpr { return PgExpr{base: pgColumn, col: int8(col), n: n} }

// PgSerial is the next number of the table's sequence. A number that was drawn
// is not drawn again, also after a rollback.
func PgSerial() PgExpr { return PgExpr{base: pgSerial} }

// PgCompare is a comparison.
type PgCompare uint8

// The comparisons. The zero PgCompare marks a condition that is not there.
const (
	Equal PgCompare = iota + 1
	Differs
	Less
	LessOrEqual
	Greater
)

var pgCompareNames = [...]string{"", "=", "<>", "<", "<=", ">"}

// PgCond is one condition of a WHERE: column, comparison, value.
type PgCond struct {
	Col   int
	Is    PgCompare
	Value PgExpr
}

// PgAssign gives a column a value. Column 0, the key, is never assigned to: an
// assignment to it is one that is not there.
type PgAssign struct {
	Col   int
	Value PgExpr
}

// PgStatement is one statement, as a typed operation: there is no SQL. String
// writes the SQL that it stands for.
type PgStatement struct {
	Verb  PgVerb
	Table *PgTable
	// ByKey restricts a SELECT, UPDATE or DELETE to the row with this key;
	// Where restricts it further. Rows are visited in the order of their keys.
	ByKey  bool
	Key    int64 // also: an advisory lock's key, or a session to terminate
	Where  [3]PgCond
	Limit1 bool
	Desc   bool // a plain SELECT: in the opposite order
	Lock   PgRowLock

	Values     [pgColumns]PgExpr // INSERT
	OnConflict PgConflict
	Set        [4]PgAssign // UPDATE, and ON CONFLICT DO UPDATE

	Level   PgIsolation
	Setting PgSetting
	Length  time.Duration

	// The rest is for the history, and no program can see it. A statement that
	// decides refuses the operation it belongs to when it finds no row; a silent
	// one only prepares it; an unlock names the acquire whose lock it gives back.
	decides, silent bool
	grant           int32
}

// Digest implements sim.Payload.
func (q *PgStatement) Digest(d *sim.Digest) {
	d.Word(uint64(q.Verb) | uint64(q.Lock)<<8 | uint64(q.OnConflict)<<16 | uint64(q.Level)<<24 | uint64(q.Setting)<<32 |
		pgBit(q.ByKey)<<40 | pgBit(q.Limit1)<<41 | pgBit(q.Desc)<<42)
	d.Int(q.Key)
	d.Int(int64(q.Length))
	if q.Table == nil {
		return
	}
	d.Text(q.Table.Name)
	for i := range q.Where {
		if c := &q.Where[i]; c.Is != 0 {
			d.Word(uint64(c.Col)<<8 | uint64(c.Is))
			c.Value.digest(d)
		}
	}
	for i := range q.Set {
		if a := &q.Set[i]; a.Col != 0 {
			d.Word(uint64(a.Col))
			a.Value.digest(d)
		}
	}
	if q.Verb == PgInsert {
		for i := range q.Table.Columns {
			q.Values[i].digest(d)
		}
	}
}

func (e *PgExpr) digest(d *sim.Digest) {
	d.Word(uint64(e.base)<<8 | uint64(uint8(e.col)))
	d.Int(e.n)
}

func pgBit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// String implements sim.Payload: the SQL that the statement stands for, with
// long random values cut short.
func (q *PgStatement) String() string {
	switch q.Verb {
	case PgBegin:
		if q.Level == Serializable {
			return "BEGIN ISOLATION LEVEL SERIALIZABLE"
		}
		return "BEGIN"
	case PgCommit:
		return "COMMIT"
	case PgRollback:
		return "ROLLBACK"
	case PgSet:
		return fmt.Sprintf("SET %s = '%s'", pgSettingNames[q.Setting], q.Length)
	case PgSelect:
		return "SELECT * FROM " + q.Table.Name + q.where() + pgRowLocks[q.Lock]
	case PgInsert:
		return q.insert()
	case PgUpdate:
		if q.Lock == ForUpdateSkipLocked {
			key := q.Table.Columns[0]
			return fmt.Sprintf("UPDATE %s SET %s WHERE %s = (SELECT %s FROM %s%s FOR UPDATE SKIP LOCKED) RETURNING *",
				q.Table.Name, q.assignments(), key, key, q.Table.Name, q.where())
		}
		return "UPDATE " + q.Table.Name + " SET " + q.assignments() + q.where()
	case PgDelete:
		return "DELETE FROM " + q.Table.Name + q.where()
	case PgPing, PgNow, PgInRecovery, PgUnlockAll:
		return "SELECT " + pgFunctions[q.Verb]
	}
	return fmt.Sprintf("SELECT %s(%d)", pgFunctions[q.Verb], q.Key)
}

func (q *PgStatement) insert() string {
	var values []string
	for i := range q.Table.Columns {
		values = append(values, q.Values[i].sql(q.Table))
	}
	s := "INSERT INTO " + q.Table.Name + " VALUES (" + strings.Join(values, ", ") + ")"
	switch q.OnConflict {
	case ConflictDoesNothing:
		s += " ON CONFLICT DO NOTHING RETURNING *"
	case ConflictUpdates:
		s += " ON CONFLICT (" + q.Table.Columns[0] + ") DO UPDATE SET " + q.assignments() + q.where() + " RETURNING *"
	}
	return s
}

func (q *PgStatement) assignments() string {
	var out []string
	for _, a := range q.Set {
		if a.Col != 0 {
			out = append(out, q.Table.Columns[a.Col]+" = "+a.Value.sql(q.Table))
		}
	}
	return strings.Join(out, ", ")
}

func (q *PgStatement) where() string {
	var out []string
	if q.ByKey {
		out = append(out, fmt.Sprintf("%s = %d", q.Table.Columns[0], q.Key))
	}
	table := ""
	if q.Verb == PgInsert { // beside excluded's columns a bare name is ambiguous
		table = q.Table.Name + "."
	}
	for _, c := range q.Where {
		if c.Is != 0 {
			out = append(out, table+q.Table.Columns[c.Col]+" "+pgCompareNames[c.Is]+" "+c.Value.sql(q.Table))
		}
	}
	s := ""
	if len(out) > 0 {
		s = " WHERE " + strings.Join(out, " AND ")
	}
	if q.Limit1 {
		s += " ORDER BY " + q.Table.Columns[0]
		if q.Desc {
			s += " DESC"
		}
		s += " LIMIT 1"
	}
	return s
}

func (e *PgExpr) sql(t *PgTable) string {
	base := pgBaseNames[e.base]
	switch {
	case e.base == pgConst && e.n > 1<<53: // a random identity
		return fmt.Sprintf("%04x..", uint64(e.n)>>47)
	case e.base == pgConst:
		return fmt.Sprint(e.n)
	case e.base == pgColumn:
		base = t.Name + "." + t.Columns[e.col]
	}
	switch {
	case e.n == 0:
		return base
	case e.base == pgColumn:
		return fmt.Sprintf("%s + %d", base, e.n)
	case e.n < 0:
		return fmt.Sprintf("%s - interval '%s'", base, time.Duration(-e.n)*time.Microsecond)
	}
	return fmt.Sprintf("%s + interval '%s'", base, time.Duration(e.n)*time.Microsecond)
}

// PgCode is how a statement ended: an SQLSTATE (manual, appendix A).
type PgCode uint8

// The codes.
const (
	PgOK                   PgCode = iota
	PgUniqueViolation             // 23505
	PgReadOnly                    // 25006: the server is in recovery
	PgFailedTransaction           // 25P02: only ROLLBACK helps
	PgIdleTimeout                 // 25P03, the session is over
	PgSerializationFailure        // 40001
	PgDeadlockDetected            // 40P01
	PgLockNotAvailable            // 55P03: NOWAIT or lock_timeout
	PgQueryCanceled               // 57014: statement_timeout
	PgAdminShutdown               // 57P01, the session is over
	PgActiveTransaction           // 25001: a BEGIN inside a transaction, a warning
	PgNoActiveTransaction         // 25P01: a COMMIT or ROLLBACK outside one, a warning
)

var pgStates = [...]string{"00000", "23505", "25006", "25P02", "25P03", "40001", "40P01", "55P03", "57014", "57P01", "25001", "25P01"}

var pgStateNames = [...]string{"", "unique_violation", "read_only_sql_transaction", "in_failed_sql_transaction",
	"idle_in_transaction_session_timeout", "serialization_failure", "deadlock_detected", "lock_not_available", "query_canceled",
	"admin_shutdown", "active_sql_transaction", "no_active_sql_transaction"}

// String returns the SQLSTATE.
func (c PgCode) String() string { return pgStates[c] }

// failed reports whether the code is an error and not a warning.
func (c PgCode) failed() bool { return c != PgOK && c < PgActiveTransaction }

// PgResult is what a statement returned.
type PgResult struct {
	Code PgCode
	// Rows counts the rows returned or changed; an advisory function returns
	// one row, whose first column is 1 for true.
	Rows int
	Row  PgRow // the first
	// All holds every row of a SELECT that could return several.
	All []PgRow
	// RolledBack: a COMMIT that found the transaction failed and rolled back,
	// which is no error.
	RolledBack bool
}

// True reports whether a function returned true.
func (r *PgResult) True() bool { return r.Code == PgOK && r.Row[0] == 1 }

// Digest implements sim.Payload.
func (r *PgResult) Digest(d *sim.Digest) {
	d.Word(uint64(r.Code) | pgBit(r.RolledBack)<<8)
	d.Int(int64(r.Rows))
	for _, v := range r.Row {
		d.Int(v)
	}
}

// String implements sim.Payload. Of a row, the columns at its end that are 0 are
// left out.
func (r *PgResult) String() string {
	switch {
	case r.Code.failed():
		return "ERROR " + r.Code.String() + " " + pgStateNames[r.Code]
	case r.RolledBack:
		return "ROLLBACK"
	case r.Rows == 0:
		return "0 rows"
	case r.Rows > 1:
		return fmt.Sprintf("%d rows", r.Rows)
	}
	var cols []string
	last := len(r.Row)
	for last > 1 && r.Row[last-1] == 0 {
		last--
	}
	for _, v := range r.Row[:last] {
		if v > 1<<53 {
			cols = append(cols, fmt.Sprintf("%04x..", uint64(v)>>47))
			continue
		}
		cols = append(cols, fmt.Sprint(v))
	}
	return "(" + strings.Join(cols, ", ") + ")"
}
