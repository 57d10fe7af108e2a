package models

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The transcripts in testdata/postgres are what a PostgreSQL 15 server
// answered: `LOCKLAB_CONFORMANCE=1 go test ./models -run
// ConformancePostgresTranscripts -update` records them anew, and the plain test
// holds the model to them. A line is a session, its statement and what came of
// it; indented lines are what that brought to other sessions:
//
//	1: COMMIT -> COMMIT
//	    2: (1, 11, @2)
//	    3: waits for 2
//
// "+300ms" lets time pass, and behind a statement, "; +300ms", it passes
// before anyone looks. "2: \q" hangs up, "crash" is an immediate shutdown and
// a new start. A session is there from its first line on; after a crash new
// numbers go on. A moment is @1 if it was the first to be seen, and so on; the
// last line has them in their order. There are two tables, empty at first:
//
//	CREATE TABLE t (id bigint PRIMARY KEY, v bigint, at timestamptz)
//	CREATE TABLE s (id bigserial PRIMARY KEY, v bigint)
type pgTranscript struct {
	lines []pgLine
	times string // the last line; "" if no moment was seen
}

// pgLine is one step of a transcript.
type pgLine struct {
	comment []string      // the lines before it
	session int           // 0: none
	q       PgStatement   // without a verb: the session hangs up,
	pause   time.Duration // or, without a session, time passes, and
	crash   bool          // without that the server crashes
	want    []string      // what came of it: the session's own first
}

// String writes the step without what came of it.
func (l *pgLine) String() string {
	after := ""
	if l.pause > 0 {
		after = "+" + l.pause.String()
	}
	switch {
	case l.crash:
		return "crash"
	case l.session == 0:
		return after
	case l.pause > 0:
		after = "; " + after
	}
	if l.q.Verb == 0 {
		return fmt.Sprintf(`%d: \q%s`, l.session, after)
	}
	return fmt.Sprintf("%d: %s%s", l.session, l.q.String(), after)
}

// text writes a transcript; read reads it.
func (p *pgTranscript) text() string {
	var b strings.Builder
	for i := range p.lines {
		l := &p.lines[i]
		for _, c := range l.comment {
			b.WriteString(c + "\n")
		}
		b.WriteString(l.String())
		news := l.want
		if l.session > 0 && l.q.Verb != 0 && len(news) > 0 {
			b.WriteString(" -> " + news[0])
			news = news[1:]
		}
		b.WriteString("\n")
		for _, n := range news {
			b.WriteString("    " + n + "\n")
		}
	}
	if p.times != "" {
		b.WriteString("times: " + p.times + "\n")
	}
	return b.String()
}

var pgLineForm = regexp.MustCompile(`^(?:(\d+): )?(.*?)(?:(?:; )?\+([0-9a-zµ.]+))?$`)

func readTranscript(t require.TestingT, text string) *pgTranscript {
	p := &pgTranscript{}
	var comment []string
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case line == "" || line[0] == '#':
			comment = append(comment, line)
		case strings.HasPrefix(line, "times: "):
			p.times = line[len("times: "):]
		case line[0] == ' ':
			last := &p.lines[len(p.lines)-1]
			last.want = append(last.want, strings.TrimSpace(line))
		default:
			l := pgLine{comment: comment, crash: line == "crash"}
			comment = nil
			ask, want, found := strings.Cut(line, " -> ")
			if found {
				l.want = []string{want}
			}
			part := pgLineForm.FindStringSubmatch(ask)
			require.NotNil(t, part, line)
			l.session, _ = strconv.Atoi(part[1])
			if l.session > 0 && part[2] != `\q` {
				l.q = readSQL(t, part[2])
			}
			if part[3] != "" {
				var err error
				l.pause, err = time.ParseDuration(part[3])
				require.NoError(t, err, line)
			}
			p.lines = append(p.lines, l)
		}
	}
	return p
}

// pgSide is one of the two that a transcript is played on.
type pgSide interface {
	connect() // the sessions are numbered from 1
	do(session int, q *PgStatement)
	hangup(session int)
	advance(d time.Duration)
	crash()
	// news returns what has come of statements since it was last asked, once
	// nothing moves any more: whose have ended, and for whom others wait. In it
	// a moment is @ and its microseconds.
	news() map[int]string
}

// pgPlayer plays a transcript on a side and notes what comes of it.
type pgPlayer struct {
	side     pgSide
	sessions int
	waits    map[int]string // whom a session was last seen to wait for
	moments  []int64        // in the order in which they were first seen
}

func newPgPlayer(side pgSide) *pgPlayer { return &pgPlayer{side: side, waits: map[int]string{}} }

// step plays one step and returns what comes of it.
func (p *pgPlayer) step(l *pgLine) []string {
	p.act(l)
	if l.pause > 0 {
		p.side.advance(l.pause)
	}
	return p.look(l)
}

// act plays a step without its pause.
func (p *pgPlayer) act(l *pgLine) {
	for ; p.sessions < l.session; p.sessions++ {
		p.side.connect()
	}
	switch {
	case l.crash:
		p.side.crash()
	case l.session > 0 && l.q.Verb == 0:
		p.side.hangup(l.session)
	case l.session > 0:
		p.side.do(l.session, &l.q)
	}
}

// look returns what has come of a step.
func (p *pgPlayer) look(l *pgLine) []string {
	news := p.side.news()
	var order []int
	for session := range news {
		order = append(order, session)
	}
	sort.Slice(order, func(i, j int) bool { // its own first
		a, b := order[i], order[j]
		return a != b && (a == l.session || b != l.session && a < b)
	})
	var out []string
	for _, session := range order {
		text := p.named(news[session])
		switch {
		case session == l.session:
			out = append(out, text)
		case text != p.waits[session]:
			out = append(out, fmt.Sprintf("%d: %s", session, text))
		}
		p.waits[session] = text
	}
	return out
}

var pgMoment = regexp.MustCompile(`@\d+`)

// named gives the moments in a text their names.
func (p *pgPlayer) named(text string) string {
	return pgMoment.ReplaceAllStringFunc(text, func(s string) string {
		at, _ := strconv.ParseInt(s[1:], 10, 64)
		i := slices.Index(p.moments, at)
		if i < 0 {
			i = len(p.moments)
			p.moments = append(p.moments, at)
		}
		return fmt.Sprintf("@%d", i+1)
	})
}

// times returns the moments in their order.
func (p *pgPlayer) times() string {
	sorted := slices.Clone(p.moments)
	slices.Sort(sorted)
	var out []string
	for _, at := range sorted {
		out = append(out, fmt.Sprintf("@%d", slices.Index(p.moments, at)+1))
	}
	return strings.Join(out, " < ")
}

// replay plays a whole transcript on a side and returns what it became there.
func (p *pgTranscript) replay(side pgSide) *pgTranscript {
	player, out := newPgPlayer(side), &pgTranscript{lines: slices.Clone(p.lines)}
	for i := range out.lines {
		out.lines[i].want = player.step(&out.lines[i])
	}
	out.times = player.times()
	return out
}

// pgModelSide plays on the model.
type pgModelSide struct {
	lab   *PgLab
	asked map[int]*PgStatement // by sessions whose statement has not ended
	ended map[int]string
	pgMutant
}

// pgMutant is what is wrong on purpose with a model: what it makes of a
// statement, or of what has come of one.
type pgMutant struct {
	bend func(q *PgStatement)
	lie  func(q *PgStatement, s *PgStep)
}

func newPgModelSide(m pgMutant) *pgModelSide {
	lab := NewPgLab(1_700_000_000_000_000_000)
	lab.tick = 1 // a moment is told from the next
	return &pgModelSide{lab: lab, asked: map[int]*PgStatement{}, ended: map[int]string{}, pgMutant: m}
}

func (m *pgModelSide) connect() { m.lab.Connect() }

func (m *pgModelSide) do(session int, asked *PgStatement) {
	q := *asked
	if m.bend != nil {
		m.bend(&q)
	}
	m.asked[session] = &q
	m.take(m.lab.Do(session, q))
}

func (m *pgModelSide) hangup(session int)      { m.take(m.lab.Hangup(session)) }
func (m *pgModelSide) advance(d time.Duration) { m.take(m.lab.Advance(d)) }

func (m *pgModelSide) crash() {
	m.lab.Crash()
	clear(m.asked)
}

func (m *pgModelSide) take(steps []PgStep) {
	for i := range steps {
		s := &steps[i]
		q := m.asked[s.Session]
		if q == nil {
			q = &PgStatement{} // an idle session's end
		}
		if m.lie != nil {
			m.lie(q, s)
		}
		switch {
		case s.BlockedBy != nil:
			continue
		case s.Closed:
			m.ended[s.Session] = "ERROR " + s.Result.Code.String() + ", closed"
		default:
			m.ended[s.Session] = pgModelAnswer(q, &s.Result)
		}
		delete(m.asked, s.Session)
	}
}

func (m *pgModelSide) news() map[int]string {
	out := m.ended
	m.ended = map[int]string{}
	for session, q := range m.asked {
		s := PgStep{Session: session, BlockedBy: m.lab.BlockedBy(session)}
		if m.lie != nil {
			m.lie(q, &s)
		}
		out[session] = waitsFor(s.BlockedBy)
	}
	return out
}

func waitsFor(sessions []int) string {
	slices.Sort(sessions)
	return "waits for " + strings.Trim(fmt.Sprint(slices.Compact(sessions)), "[]")
}

// pgModelAnswer writes a result as a transcript has it.
func pgModelAnswer(q *PgStatement, r *PgResult) string {
	if r.Code.failed() {
		return "ERROR " + r.Code.String()
	}
	text := ""
	switch q.Verb {
	case PgBegin, PgSet, PgCommit, PgRollback:
		text, _, _ = strings.Cut(q.String(), " ")
		if r.RolledBack {
			text = "ROLLBACK"
		}
	case PgPing:
		text = fmt.Sprint(r.Row[0])
	case PgNow:
		text = fmt.Sprintf("(@%d, @%d, @%d)", r.Row[0], r.Row[1], r.Row[2])
	case PgLock, PgXactLock, PgUnlockAll:
		text = "void"
	case PgSelect, PgInsert, PgUpdate, PgDelete:
		text = pgModelRows(q, r)
	default:
		text = fmt.Sprint(r.True())
	}
	switch {
	case r.Code != PgOK:
		text += ", WARNING " + r.Code.String()
	case (q.Verb == PgUnlock || q.Verb == PgTerminate) && !r.True():
		text += ", WARNING 01000"
	}
	return text
}

func pgModelRows(q *PgStatement, r *PgResult) string {
	var rows []string
	all := r.All
	if all == nil && r.Rows > 0 {
		all = []PgRow{r.Row}
	}
	for i := range all {
		var cells []string
		for col, name := range q.Table.Columns {
			cell := fmt.Sprint(all[i][col])
			if name == "at" {
				cell = "@" + cell
			}
			cells = append(cells, cell)
		}
		rows = append(rows, "("+strings.Join(cells, ", ")+")")
	}
	return pgRows(q, r.Rows, rows)
}

// pgRows writes the rows of a result. Of several that an UPDATE or DELETE has
// changed the model keeps the first.
func pgRows(q *PgStatement, n int, rows []string) string {
	switch {
	case n == 0:
		return "0 rows"
	case n > 1 && q.Verb != PgSelect:
		return fmt.Sprintf("%d rows, first %s", n, rows[0])
	}
	return strings.Join(rows, " ")
}

// pgCorpus reads the transcripts of testdata/postgres, by their files.
func pgCorpus(t *testing.T) map[string]*pgTranscript {
	files, err := filepath.Glob("testdata/postgres/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	corpus := map[string]*pgTranscript{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		p := readTranscript(t, string(text))
		require.True(t, len(p.lines) > 0 && len(p.lines[0].comment) > 0, "%s: what does it show?", file)
		corpus[file] = p
	}
	return corpus
}

// The model answers as the real server has.
func TestPgTranscripts(t *testing.T) {
	for file, p := range pgCorpus(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			require.Equal(t, p.text(), p.replay(newPgModelSide(pgMutant{})).text())
		})
	}
}

// pgMutants are models that the corpus must catch.
var pgMutants = map[string]pgMutant{
	"now() moves on inside a transaction": {bend: func(q *PgStatement) {
		for _, e := range pgExprs(q) {
			if e.base == pgNow {
				e.base = pgStatement
			}
		}
	}},
	"statement_timestamp() is now()": {bend: func(q *PgStatement) {
		for _, e := range pgExprs(q) {
			if e.base == pgStatement {
				e.base = pgNow
			}
		}
	}},
	"clock_timestamp() is statement_timestamp()": {bend: func(q *PgStatement) {
		for _, e := range pgExprs(q) {
			if e.base == pgClock {
				e.base = pgStatement
			}
		}
	}},
	"an advisory lock outlives the transaction":        {bend: bendVerb(PgTryXactLock, PgTryLock)},
	"an advisory lock that waited outlives it too":     {bend: bendVerb(PgXactLock, PgLock)},
	"ROLLBACK gives a session-level lock back":         {bend: bendVerb(PgTryLock, PgTryXactLock)},
	"one unlock gives all back":                        {bend: bendVerb(PgUnlock, PgUnlockAll)},
	"ROLLBACK commits":                                 {bend: bendVerb(PgRollback, PgCommit)},
	"SKIP LOCKED waits":                                {bend: bendLock(ForUpdateSkipLocked, ForUpdate)},
	"NOWAIT skips":                                     {bend: bendLock(ForUpdateNoWait, ForUpdateSkipLocked)},
	"FOR UPDATE locks nothing":                         {bend: bendLock(ForUpdate, NoRowLock)},
	"SERIALIZABLE is READ COMMITTED":                   {bend: func(q *PgStatement) { q.Level = ReadCommitted }},
	"DO UPDATE has no WHERE":                           {bend: func(q *PgStatement) { q.Where = clearWhere(q) }},
	"DO UPDATE does nothing":                           {bend: bendConflict(ConflictUpdates, ConflictDoesNothing)},
	"DO NOTHING fails":                                 {bend: bendConflict(ConflictDoesNothing, ConflictFails)},
	"a duplicate key is no error":                      {bend: bendConflict(ConflictFails, ConflictDoesNothing)},
	"there is no lock_timeout":                         {bend: bendSetting(LockTimeout)},
	"there is no statement_timeout":                    {bend: bendSetting(StatementTimeout)},
	"there is no idle_in_transaction_session_timeout":  {bend: bendSetting(IdleInTransactionTimeout)},
	"an unlock of what one does not hold returns true": {lie: func(q *PgStatement, s *PgStep) { s.Result.Row[0] |= pgIs(q.Verb == PgUnlock) }},
	"a deadlock is a timeout":                          {lie: lieCode(PgDeadlockDetected, PgQueryCanceled)},
	"a serialization failure is a deadlock":            {lie: lieCode(PgSerializationFailure, PgDeadlockDetected)},
	"a failed COMMIT says COMMIT":                      {lie: func(_ *PgStatement, s *PgStep) { s.Result.RolledBack = false }},
	"all in a line wait for its first": {lie: func(_ *PgStatement, s *PgStep) {
		if len(s.BlockedBy) > 1 {
			s.BlockedBy = s.BlockedBy[:1]
		}
	}},
	"the last word is another": {lie: func(_ *PgStatement, s *PgStep) {
		if s.Closed {
			s.Result.Code = PgOK
		}
	}},
}

func pgExprs(q *PgStatement) []*PgExpr {
	var out []*PgExpr
	for i := range q.Values {
		out = append(out, &q.Values[i])
	}
	for i := range q.Set {
		out = append(out, &q.Set[i].Value)
	}
	for i := range q.Where {
		out = append(out, &q.Where[i].Value)
	}
	return out
}

func bendVerb(from, to PgVerb) func(*PgStatement) {
	return func(q *PgStatement) {
		if q.Verb == from {
			q.Verb = to
		}
	}
}

func bendLock(from, to PgRowLock) func(*PgStatement) {
	return func(q *PgStatement) {
		if q.Lock == from {
			q.Lock = to
		}
	}
}

func bendConflict(from, to PgConflict) func(*PgStatement) {
	return func(q *PgStatement) {
		if q.OnConflict == from {
			q.OnConflict = to
		}
	}
}

func bendSetting(s PgSetting) func(*PgStatement) {
	return func(q *PgStatement) {
		if q.Verb == PgSet && q.Setting == s {
			q.Length = 0
		}
	}
}

func clearWhere(q *PgStatement) [3]PgCond {
	if q.OnConflict == ConflictUpdates {
		return [3]PgCond{}
	}
	return q.Where
}

func lieCode(from, to PgCode) func(*PgStatement, *PgStep) {
	return func(_ *PgStatement, s *PgStep) {
		if s.Result.Code == from {
			s.Result.Code = to
		}
	}
}

func pgIs(b bool) int64 { return int64(pgBit(b)) }

// What the suite is worth: a model that is wrong in one thing disagrees with
// what the real server was seen to do.
func TestPgTranscriptsCatchMutants(t *testing.T) {
	corpus := pgCorpus(t)
	for name, m := range pgMutants {
		t.Run(name, func(t *testing.T) {
			caught := 0
			for _, p := range corpus {
				if caughtBy(p, m) {
					caught++
				}
			}
			require.NotZero(t, caught, "no transcript shows it")
			t.Logf("%d transcripts show it", caught)
		})
	}
}

// caughtBy reports whether a mutant disagrees with a transcript.
func caughtBy(p *pgTranscript, m pgMutant) bool {
	player := newPgPlayer(newPgModelSide(m))
	for i := range p.lines {
		if l := p.lines[i]; !slices.Equal(player.step(&l), l.want) {
			return true
		}
	}
	return player.times() != p.times
}
