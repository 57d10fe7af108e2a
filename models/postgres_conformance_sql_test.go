package models

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// pgTestSerial is a table with a sequence.
var pgTestSerial = &PgTable{Name: "s", Columns: []string{"id", "v"}}

// pgReader reads a statement from the SQL that PgStatement.String writes of
// it, for transcripts.
type pgReader struct {
	t      require.TestingT
	text   string
	tokens []string
}

var pgToken = regexp.MustCompile(`'[^']*'|[A-Za-z_][A-Za-z_0-9.]*|\d+|<>|<=|[-+*(),=<>]`)

// readSQL reads a statement. It knows the tables t and s.
func readSQL(t require.TestingT, text string) PgStatement {
	r := &pgReader{t: t, text: text, tokens: pgToken.FindAllString(text, -1)}
	q := r.statement()
	require.Empty(t, r.tokens, "%s: what is the rest?", text)
	require.Equal(t, text, q.String())
	return q
}

// next takes a token, "" at the end.
func (r *pgReader) next() string {
	if len(r.tokens) == 0 {
		return ""
	}
	token := r.tokens[0]
	r.tokens = r.tokens[1:]
	return token
}

// accept takes the given words if they come next.
func (r *pgReader) accept(words string) bool {
	list := strings.Fields(words)
	if len(r.tokens) < len(list) {
		return false
	}
	for i, w := range list {
		if r.tokens[i] != w {
			return false
		}
	}
	r.tokens = r.tokens[len(list):]
	return true
}

func (r *pgReader) expect(words string) {
	require.True(r.t, r.accept(words), "%s: %s is missing before %q", r.text, words, r.tokens)
}

func (r *pgReader) statement() PgStatement {
	switch verb := r.next(); verb {
	case "BEGIN":
		if r.accept("ISOLATION LEVEL SERIALIZABLE") {
			return PgStatement{Verb: PgBegin, Level: Serializable}
		}
		return PgStatement{Verb: PgBegin}
	case "COMMIT":
		return PgStatement{Verb: PgCommit}
	case "ROLLBACK":
		return PgStatement{Verb: PgRollback}
	case "SET":
		return r.set()
	case "SELECT":
		if r.accept("* FROM") {
			q := PgStatement{Verb: PgSelect, Table: r.table()}
			r.where(&q)
			q.Lock = r.rowLock()
			return q
		}
		return r.function()
	case "INSERT":
		return r.insert()
	case "UPDATE":
		return r.update()
	case "DELETE":
		r.expect("FROM")
		q := PgStatement{Verb: PgDelete, Table: r.table()}
		r.where(&q)
		return q
	default:
		require.Fail(r.t, "no statement", "%s: %q", r.text, verb)
	}
	return PgStatement{}
}

func (r *pgReader) set() PgStatement {
	name := r.next()
	r.expect("=")
	for i, known := range pgSettingNames {
		if name == known {
			return PgStatement{Verb: PgSet, Setting: PgSetting(i), Length: r.length()}
		}
	}
	require.Fail(r.t, "no setting", "%s: %q", r.text, name)
	return PgStatement{}
}

func (r *pgReader) function() PgStatement {
	rest := strings.TrimPrefix(r.text, "SELECT ")
	r.tokens = nil
	name, key, _ := strings.Cut(strings.TrimSuffix(rest, ")"), "(")
	for verb, known := range pgFunctions {
		switch {
		case known == "":
		case rest == known:
			return PgStatement{Verb: PgVerb(verb)}
		case name == known:
			return PgStatement{Verb: PgVerb(verb), Key: r.number(key)}
		}
	}
	require.Fail(r.t, "no function", "%s", r.text)
	return PgStatement{}
}

func (r *pgReader) insert() PgStatement {
	r.expect("INTO")
	q := PgStatement{Verb: PgInsert, Table: r.table()}
	r.expect("VALUES (")
	for i := range q.Table.Columns {
		if i > 0 {
			r.expect(",")
		}
		q.Values[i] = r.expr(q.Table)
	}
	r.expect(")")
	switch {
	case r.accept("ON CONFLICT DO NOTHING RETURNING *"):
		q.OnConflict = ConflictDoesNothing
	case r.accept("ON CONFLICT ("):
		q.OnConflict = ConflictUpdates
		r.expect(q.Table.Columns[0] + " ) DO UPDATE SET")
		r.assignments(&q)
		r.where(&q)
		r.expect("RETURNING *")
	}
	return q
}

func (r *pgReader) update() PgStatement {
	q := PgStatement{Verb: PgUpdate, Table: r.table()}
	r.expect("SET")
	r.assignments(&q)
	key, table := q.Table.Columns[0], q.Table.Name
	if r.accept("WHERE " + key + " = ( SELECT " + key + " FROM " + table) {
		r.where(&q)
		r.expect("FOR UPDATE SKIP LOCKED ) RETURNING *")
		q.Lock = ForUpdateSkipLocked
		return q
	}
	r.where(&q)
	return q
}

func (r *pgReader) assignments(q *PgStatement) {
	for i := 0; ; i++ {
		q.Set[i].Col = r.column(q.Table)
		r.expect("=")
		q.Set[i].Value = r.expr(q.Table)
		if !r.accept(",") {
			return
		}
	}
}

func (r *pgReader) where(q *PgStatement) {
	n := 0
	for more := r.accept("WHERE"); more; more = r.accept("AND") {
		c := PgCond{Col: r.column(q.Table)}
		for i, name := range pgCompareNames {
			if i > 0 && r.accept(name) {
				c.Is = PgCompare(i)
				break
			}
		}
		c.Value = r.expr(q.Table)
		if c.Col == 0 && c.Is == Equal && c.Value.base == pgConst && n == 0 {
			q.ByKey, q.Key = true, c.Value.n
			continue
		}
		q.Where[n] = c
		n++
	}
	if r.accept("ORDER BY " + q.Table.Columns[0]) {
		q.Desc = r.accept("DESC")
		r.expect("LIMIT 1")
		q.Limit1 = true
	}
}

func (r *pgReader) rowLock() PgRowLock {
	for i := len(pgRowLocks) - 1; i > 0; i-- { // the longest first
		if r.accept(pgRowLocks[i]) {
			return PgRowLock(i)
		}
	}
	return NoRowLock
}

func (r *pgReader) table() *PgTable {
	name := r.next()
	for _, t := range []*PgTable{pgTestTable, pgTestSerial} {
		if t.Name == name {
			return t
		}
	}
	require.Fail(r.t, "no table", "%s: %q", r.text, name)
	return nil
}

func (r *pgReader) column(t *PgTable) int {
	name := strings.TrimPrefix(r.next(), t.Name+".")
	for i, known := range t.Columns {
		if known == name {
			return i
		}
	}
	require.Fail(r.t, "no column", "%s: %q", r.text, name)
	return 0
}

func (r *pgReader) expr(t *PgTable) PgExpr {
	for base, name := range pgBaseNames {
		if name == "" || !r.accept(strings.TrimSuffix(name, "()")+" ( )") {
			continue
		}
		e := PgExpr{base: pgBase(base)}
		switch {
		case r.accept("+ interval"):
			e.n = r.length().Microseconds()
		case r.accept("- interval"):
			e.n = -r.length().Microseconds()
		}
		return e
	}
	if token := r.tokens[0]; strings.HasPrefix(token, t.Name+".") {
		e := PgExpr{base: pgColumn, col: int8(r.column(t))}
		if r.accept("+") {
			e.n = r.constant()
		}
		return e
	}
	return PgValue(r.constant())
}

func (r *pgReader) constant() int64 {
	if r.accept("-") {
		return -r.number(r.next())
	}
	return r.number(r.next())
}

func (r *pgReader) number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	require.NoError(r.t, err, "%s", r.text)
	return n
}

func (r *pgReader) length() time.Duration {
	d, err := time.ParseDuration(strings.Trim(r.next(), "'"))
	require.NoError(r.t, err, "%s", r.text)
	return d
}

// Whatever a generated statement is, its SQL says all of it.
func TestPgStatementsReadBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := drawPgStatement(rt, rapid.SampledFrom(pgMixes).Draw(rt, "mix"))
		require.Equal(rt, q, readSQL(rt, q.String()))
	})
	for _, text := range []string{"SET lock_timeout = '300ms'", "SELECT * FROM t WHERE v <> 3 ORDER BY id DESC LIMIT 1",
		"SELECT pg_terminate_backend(2)", "INSERT INTO s VALUES (nextval(), 4)"} {
		readSQL(t, text)
	}
}
