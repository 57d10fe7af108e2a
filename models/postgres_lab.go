package models

import (
	"fmt"
	"time"

	"locklab/clock"
)

// PgLab is the modelled PostgreSQL without a world around it: sessions are
// numbered from 1, statements are given one by one, and time passes when it is
// told to. It is there to compare the model with a real server, step by step.
type PgLab struct {
	engine pgEngine
	now    int64 // microseconds
	tick   int64 // how much of that each look at the clock takes; 0: it stands still
	alarms []pgLabAlarm
	log    []pgChange
	ended  []PgStep
}

// PgStep is what became of a session's statement.
type PgStep struct {
	Session int
	Result  PgResult
	// BlockedBy lists the sessions that the statement waits for, as
	// pg_blocking_pids does; the statement has not ended if it is not empty.
	BlockedBy []int
	// Closed: the server has ended the session.
	Closed bool
}

type pgLabAlarm struct {
	at      int64
	session *pgSession
	what    pgAlarm
	turn    uint32
}

// NewPgLab returns a server without tables; a statement makes the table that
// it names. start is its wall clock.
func NewPgLab(start clock.Reading) *PgLab {
	l := &PgLab{now: int64(start) / int64(time.Microsecond)}
	l.engine.host = l
	return l
}

// Connect opens a session and returns its number.
func (l *PgLab) Connect() int { return l.engine.connect().id }

// Do gives a session a statement and returns what happened: first what became
// of it, then which statements of other sessions have ended because of it. A
// session whose statement waits must not be given another.
func (l *PgLab) Do(session int, q PgStatement) []PgStep {
	s := l.session(session)
	l.engine.run(s, &q, 0)
	return l.steps(s)
}

func (l *PgLab) session(n int) *pgSession {
	if n < 1 || n > len(l.engine.sessions) || l.engine.sessions[n-1] == nil {
		panic(fmt.Sprintf("postgres lab: there is no session %d", n))
	}
	return l.engine.sessions[n-1]
}

// steps returns what has ended, the given session's statement first.
func (l *PgLab) steps(s *pgSession) []PgStep {
	ended := l.ended
	l.ended = nil
	if s == nil {
		return ended
	}
	if s.stmt != nil {
		return append([]PgStep{{Session: s.id, BlockedBy: s.blockedBy()}}, ended...)
	}
	for i := range ended {
		if ended[i].Session == s.id {
			own := ended[i]
			copy(ended[1:i+1], ended[:i])
			ended[0] = own
			break
		}
	}
	return ended
}

// BlockedBy lists whom a session waits for; nil if it does not wait.
func (l *PgLab) BlockedBy(session int) []int { return l.session(session).blockedBy() }

// Live reports whether a session is there.
func (l *PgLab) Live(session int) bool { return l.engine.sessions[session-1] != nil }

// Hangup ends an idle session from the client's side.
func (l *PgLab) Hangup(session int) []PgStep {
	l.engine.disconnect(l.session(session))
	return l.steps(nil)
}

// Advance lets time pass, and what it brings happen: timeouts, deadlocks
// found.
func (l *PgLab) Advance(d time.Duration) []PgStep {
	until := l.now + d.Microseconds()
	for {
		next := -1
		for i, a := range l.alarms {
			if a.at <= until && (next < 0 || a.at < l.alarms[next].at) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		a := l.alarms[next]
		l.alarms = append(l.alarms[:next], l.alarms[next+1:]...)
		l.now = max(l.now, a.at)
		l.engine.ring(a.session, a.what, a.turn)
	}
	l.now = until
	return l.steps(nil)
}

// Crash kills the server (an immediate shutdown) and starts it again: every
// session is gone, and what was committed is there.
func (l *PgLab) Crash() {
	old := l.engine
	l.engine = pgEngine{host: l, defaults: old.defaults, sessions: make([]*pgSession, len(old.sessions))}
	l.alarms, l.ended = nil, nil
	l.engine.replay(l.log)
}

func (l *PgLab) wall() int64 {
	l.now += l.tick
	return l.now
}

func (l *PgLab) alarm(s *pgSession, what pgAlarm, turn uint32, d time.Duration) {
	l.alarms = append(l.alarms, pgLabAlarm{l.now + d.Microseconds(), s, what, turn})
}

func (l *PgLab) answer(s *pgSession, _ *PgStatement) {
	l.ended = append(l.ended, PgStep{Session: s.id, Result: s.result})
}

func (l *PgLab) flush(x *pgXact) bool {
	l.log = x.appendTo(l.log)
	return true
}

func (l *PgLab) settled(*pgXact, bool) {}

func (l *PgLab) disconnected(s *pgSession) {
	l.ended = append(l.ended, PgStep{Session: s.id, Result: s.result, Closed: true})
}
