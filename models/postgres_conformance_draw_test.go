package models

import (
	"slices"
	"time"

	"pgregory.net/rapid"
)

// pgMix is what the statements of a generated transcript are drawn from, each
// as often as it stands there.
type pgMix struct {
	name  string
	verbs []PgVerb
	level PgIsolation // of BEGIN
	ends  bool        // sessions hang up, backends are terminated, the server crashes
}

func (m pgMix) String() string { return m.name }

var (
	pgAdvisoryVerbs = []PgVerb{PgLock, PgLock, PgTryLock, PgXactLock, PgXactLock, PgTryXactLock, PgUnlock, PgUnlock, PgUnlockAll}
	pgRowVerbs      = []PgVerb{PgSelect, PgSelect, PgSelect, PgUpdate, PgUpdate, PgInsert, PgInsert, PgDelete}
	pgXactVerbs     = []PgVerb{PgBegin, PgBegin, PgCommit, PgCommit, PgRollback}
	pgMixes         = []pgMix{
		{name: "advisory locks", verbs: slices.Concat(pgAdvisoryVerbs, pgXactVerbs)},
		{name: "rows", verbs: slices.Concat(pgRowVerbs, pgXactVerbs)},
		{name: "serializable", verbs: slices.Concat(pgRowVerbs, pgXactVerbs), level: Serializable},
		{name: "everything", verbs: slices.Concat(pgRowVerbs, pgXactVerbs, pgAdvisoryVerbs[2:7], []PgVerb{PgNow, PgPing, PgInRecovery, PgTerminate}), ends: true},
	}
)

const (
	pgDrawnSessions = 3
	pgDrawnRows     = 3
	pgHour          = time.Hour // longer than any test: no wait changes a comparison
)

// drawPgStatement draws a statement.
func drawPgStatement(rt *rapid.T, mix pgMix) PgStatement {
	q := PgStatement{Verb: rapid.SampledFrom(mix.verbs).Draw(rt, "verb")}
	chance := func(percent int) bool { return rapid.IntRange(0, 99).Draw(rt, "chance") >= 100-percent }
	switch q.Verb {
	case PgBegin:
		if mix.level == Serializable && !chance(10) || mix.ends && chance(20) {
			q.Level = Serializable
		}
	case PgLock, PgTryLock, PgXactLock, PgTryXactLock, PgUnlock:
		q.Key = rapid.Int64Range(1, 2).Draw(rt, "key")
	case PgTerminate:
		q.Key = rapid.Int64Range(1, pgDrawnSessions).Draw(rt, "whom")
	case PgInsert:
		drawInsert(rt, &q, mix.ends && chance(30))
	case PgSelect, PgUpdate, PgDelete:
		q.Table = pgTestTable
		drawRows(rt, &q)
	}
	return q
}

func drawInsert(rt *rapid.T, q *PgStatement, serial bool) {
	v := rapid.Int64Range(0, 9).Draw(rt, "v")
	if serial {
		q.Table = pgTestSerial
		q.Values = [pgColumns]PgExpr{PgSerial(), PgValue(v)}
		return
	}
	q.Table = pgTestTable
	key := rapid.Int64Range(1, pgDrawnRows+1).Draw(rt, "key")
	q.Values = [pgColumns]PgExpr{PgValue(key), PgValue(v), drawTime(rt)}
	q.OnConflict = rapid.SampledFrom([]PgConflict{ConflictFails, ConflictDoesNothing, ConflictUpdates, ConflictUpdates}).Draw(rt, "on conflict")
	if q.OnConflict == ConflictUpdates {
		drawSet(rt, q)
		drawWhere(rt, q, 0)
	}
}

// drawRows draws which rows a statement is about, what it does to them and how
// it locks them.
func drawRows(rt *rapid.T, q *PgStatement) {
	if q.Verb == PgUpdate {
		drawSet(rt, q)
	}
	if q.Verb == PgSelect {
		q.Lock = rapid.SampledFrom([]PgRowLock{NoRowLock, NoRowLock, ForUpdate, ForUpdateSkipLocked, ForUpdateNoWait}).Draw(rt, "lock")
	}
	switch which := rapid.SampledFrom([]string{"key", "key", "key", "first", "several"}).Draw(rt, "which"); {
	case which == "key":
		q.ByKey, q.Key = true, rapid.Int64Range(1, pgDrawnRows+1).Draw(rt, "key")
		drawWhere(rt, q, 0)
	case which == "first" && q.Verb != PgDelete:
		q.Limit1 = true
		if q.Verb == PgUpdate {
			q.Lock = ForUpdateSkipLocked
		}
		q.Desc = q.Verb == PgSelect && q.Lock == NoRowLock && rapid.Bool().Draw(rt, "desc")
		drawWhere(rt, q, 0)
	case q.Verb == PgSelect && q.Lock == NoRowLock:
		drawWhere(rt, q, 0)
	default: // the real server then visits them in the order of their keys too
		q.Where[0] = PgCond{0, Greater, PgValue(0)}
		drawWhere(rt, q, 1)
	}
}

func drawSet(rt *rapid.T, q *PgStatement) {
	q.Set[0] = PgAssign{1, rapid.SampledFrom([]PgExpr{PgValue(3), PgValue(6), PgColumnPlus(1, 1), PgColumnPlus(1, -2)}).Draw(rt, "v")}
	if rapid.Bool().Draw(rt, "sets at") {
		q.Set[1] = PgAssign{2, drawTime(rt)}
		if q.Verb == PgUpdate && q.Set[1].Value.base == pgClock { // whether it is read before or after a wait is not modelled
			q.Set[1].Value = PgStatementPlus(0)
		}
	}
}

func drawWhere(rt *rapid.T, q *PgStatement, n int) {
	if rapid.Bool().Draw(rt, "all") {
		return
	}
	is := rapid.SampledFrom([]PgCompare{Equal, Differs, Less, LessOrEqual, Greater}).Draw(rt, "is")
	if rapid.Bool().Draw(rt, "by time") {
		q.Where[n] = PgCond{2, is, drawTime(rt)}
		return
	}
	q.Where[n] = PgCond{1, is, PgValue(rapid.Int64Range(0, 9).Draw(rt, "v"))}
}

func drawTime(rt *rapid.T) PgExpr {
	return rapid.SampledFrom([]PgExpr{PgNowPlus(0), PgNowPlus(0), PgNowPlus(pgHour), PgNowPlus(-pgHour), PgStatementPlus(0), PgClockPlus(0)}).Draw(rt, "time")
}

// pgDrawn is a generated transcript with what comes of it in the model.
type pgDrawn struct {
	pgTranscript
	serializable [][]int // before each line: the sessions in a serializable transaction
	// Lines whose statement gives up in a deadlock, at once or later: its search
	// is the only one that is not over when the circle closes.
	victims map[int]bool
	crowded bool // several were waiting: who goes on first is a race on a real server
}

// pgRecorder plays steps on the model and notes what comes of them.
type pgRecorder struct {
	pgDrawn
	side   *pgModelSide
	player *pgPlayer
	given  map[int]int // by session: the line of its statement
}

func newPgRecorder() *pgRecorder {
	side := newPgModelSide(pgMutant{})
	return &pgRecorder{pgDrawn{victims: map[int]bool{}}, side, newPgPlayer(side), map[int]int{}}
}

// add plays a step. While any session waits, it leaves time to search for a
// deadlock. A session that waits or has ended can be given nothing.
func (r *pgRecorder) add(l pgLine) bool {
	if s := l.session; s > r.player.sessions+1 || 0 < s && s <= r.player.sessions && (!r.side.lab.Live(s) || r.side.asked[s] != nil) {
		return false
	}
	if l.q.Verb == PgTerminate && l.q.Key > int64(max(l.session, r.player.sessions)) {
		return false
	}
	r.serializable = append(r.serializable, r.side.serializable())
	r.player.act(&l)
	r.given[l.session] = len(r.lines)
	l.pause = 0
	for again := len(r.side.asked) > 0; again; again = r.side.deadlocked() { // who goes on may close another circle
		l.pause += pgDeadlockTimeout + time.Millisecond
		r.side.advance(pgDeadlockTimeout + time.Millisecond)
	}
	for session, text := range r.side.ended {
		if text == "ERROR "+PgDeadlockDetected.String() {
			r.victims[r.given[session]] = true
		}
	}
	r.crowded = r.crowded || len(r.side.asked) > 1
	l.want = r.player.look(&l)
	r.lines = append(r.lines, l)
	r.times = r.player.times()
	return true
}

// without returns the transcript without one of its lines, nil if that cannot
// be played.
func (d *pgDrawn) without(line int) *pgDrawn {
	r := newPgRecorder()
	for i, l := range d.lines {
		if i != line && (r.side.seesTwice() || !r.add(l)) {
			return nil
		}
	}
	return &r.pgDrawn
}

// drawTranscript plays drawn statements on the model. A session that has ended
// is replaced.
func drawTranscript(rt *rapid.T, mix pgMix) *pgDrawn {
	r := newPgRecorder()
	for key := int64(1); key <= pgDrawnRows; key++ {
		r.add(pgLine{session: 1, q: insert(key, 2*key)})
	}
	crashed := false
	for range rapid.IntRange(1, 40).Draw(rt, "length") {
		if r.side.seesTwice() {
			break
		}
		var live, free []int
		for s := 1; s <= r.player.sessions; s++ {
			if r.side.lab.Live(s) {
				live = append(live, s)
				if r.side.asked[s] == nil {
					free = append(free, s)
				}
			}
		}
		if len(live) < pgDrawnSessions {
			free = append(free, r.player.sessions+1)
		}
		l := pgLine{session: rapid.SampledFrom(free).Draw(rt, "session")}
		what := 0
		if mix.ends {
			what = rapid.IntRange(0, 199).Draw(rt, "what")
		}
		switch {
		case what == 199:
			l, crashed = pgLine{crash: true}, true
		case what >= 193 && l.session <= r.player.sessions: // hangs up
		default:
			l.q = drawPgStatement(rt, mix)
			switch {
			case l.q.Verb == PgTerminate && len(live) > 0:
				l.q.Key = int64(rapid.SampledFrom(live).Draw(rt, "whom"))
			case l.q.Verb == PgTerminate:
				l.q = PgStatement{Verb: PgPing}
			case l.q.Verb == PgBegin && r.side.inXact(l.session): // that the level changes is not modelled
				l.q.Level = ReadCommitted
			case l.q.Verb == PgInsert && l.q.Table == pgTestSerial && crashed: // nor that a crash skips numbers
				l.q = PgStatement{Verb: PgPing}
			}
		}
		r.add(l)
	}
	return &r.pgDrawn
}

// inXact reports whether a session is in a transaction.
func (m *pgModelSide) inXact(session int) bool {
	all := m.lab.engine.sessions
	return session <= len(all) && all[session-1].xact != nil
}

// seesTwice reports whether a serializable transaction has inserted a key in
// place of a row that its snapshot still shows: the real server then shows both
// rows, whose key is unique, and the model the new one.
func (m *pgModelSide) seesTwice() bool {
	for _, s := range m.lab.engine.sessions {
		if s == nil || s.xact == nil || !s.xact.fixed {
			continue
		}
		for _, u := range s.xact.tuples {
			if old := u.visible(nil, s.xact.snapshot); u.pending && u.next.inserted && old != nil {
				return true
			}
		}
	}
	return false
}

// deadlocked reports whether there is a circle of waiting sessions.
func (m *pgModelSide) deadlocked() bool {
	for session := range m.asked {
		if m.lab.engine.deadlocked(m.lab.session(session)) {
			return true
		}
	}
	return false
}

// serializable lists the sessions in a serializable transaction.
func (m *pgModelSide) serializable() []int {
	var out []int
	for _, s := range m.lab.engine.sessions {
		if s != nil && s.xact != nil && s.xact.level == Serializable {
			out = append(out, s.id)
		}
	}
	return out
}
