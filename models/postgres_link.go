package models

import (
	"errors"
	"fmt"

	"locklab/sim"
)

// errSessionGone says that a session, and with it all that it held, has ended.
// Whether the server has noticed yet is not known.
var errSessionGone = fmt.Errorf("the session is gone: %w (%w)", ErrLost, sim.ErrUnknown)

// pgLink is a client's way to PostgreSQL: one session at a time. With several
// hosts it looks for the one that takes writes, as libpq does for
// target_session_attrs=read-write.
type pgLink struct {
	env   *Env
	hosts []*sim.Process
	conn  *sim.Conn
}

func (g *pgGroup) link() pgLink { return pgLink{env: g.env, hosts: g.processes()} }

// live reports whether there is a session that the client may still use.
func (l *pgLink) live() bool { return l.conn != nil && l.conn.Open() }

// connect makes sure that there is a session, a new one if need be.
func (l *pgLink) connect(t *sim.Task) error {
	if l.live() {
		return nil
	}
	anew := l.conn != nil
	if len(l.hosts) == 1 {
		l.opened(t, l.hosts[0], anew)
		return nil
	}
	for _, host := range l.hosts {
		l.opened(t, host, anew)
		r, err := l.call(t, &PgStatement{Verb: PgInRecovery})
		switch {
		case err == nil && !r.True():
			return nil
		case err == nil:
			t.Hangup(l.conn)
		}
	}
	l.conn = nil
	return sim.ErrRefused
}

// opened opens a session, with a remark if it comes after another.
func (l *pgLink) opened(t *sim.Task, host *sim.Process, anew bool) {
	l.conn = t.Dial(host)
	if anew {
		t.Note(sim.Text("opens a new session at " + host.Name()))
	}
}

// do runs a statement on the session, or on a new one: a driver that
// reconnects by itself.
func (l *pgLink) do(t *sim.Task, q *PgStatement) (*PgResult, error) {
	for {
		if err := l.connect(t); err != nil {
			return nil, err
		}
		r, err := l.call(t, q)
		if !errors.Is(err, sim.ErrClosed) { // closed while this client was paused: nothing was sent
			return r, err
		}
	}
}

// in runs a statement on the session that is there, and on no other.
func (l *pgLink) in(t *sim.Task, q *PgStatement) (*PgResult, error) {
	if !l.live() {
		return nil, errSessionGone
	}
	r, err := l.call(t, q)
	if errors.Is(err, sim.ErrClosed) {
		return nil, errSessionGone
	}
	return r, err
}

func (l *pgLink) call(t *sim.Task, q *PgStatement) (*PgResult, error) {
	body := l.env.pgStatements.Get()
	*body = *q
	p, err := t.Call(l.conn, body, l.env.Options.CallTimeout)
	if err != nil {
		return nil, err
	}
	return p.(*PgResult), nil
}

// transaction is an open transaction as its client has it: writes whose
// outcome only the commit decides.
type transaction struct {
	link    *pgLink
	rec     Recorder
	pending []int32
}

// begin opens a transaction on the link's session.
func (x *transaction) begin(t *sim.Task, level PgIsolation) error {
	x.pending = x.pending[:0]
	_, err := x.link.do(t, &PgStatement{Verb: PgBegin, Level: level})
	return err
}

// read runs a SELECT as an operation.
func (x *transaction) read(t *sim.Task, tenure int32, q *PgStatement) (*PgResult, error) {
	op := x.rec.Invoke(t, OpRead, tenure, 0, 0)
	r, err := x.link.in(t, q)
	seen := int64(0)
	if err == nil {
		err = pgError(r)
		seen = r.Row[1]
	}
	x.rec.Return(t, op, err, seen)
	return r, err
}

// write runs a statement that writes as an operation, whose outcome is known
// when the transaction ends.
func (x *transaction) write(t *sim.Task, kind OpKind, tenure int32, value int64, q *PgStatement) (*PgResult, error) {
	op := x.rec.Invoke(t, kind, tenure, value, 0)
	r, err := x.link.in(t, q)
	if err == nil {
		err = pgError(r)
	}
	if err != nil {
		x.rec.Return(t, op, err, 0)
		return r, err
	}
	x.pending = append(x.pending, op)
	return r, nil
}

// end commits or rolls back, and with that the writes learn their outcome.
func (x *transaction) end(t *sim.Task, how PgVerb) error {
	r, err := x.link.in(t, &PgStatement{Verb: how})
	outcome := err
	switch {
	case err != nil:
	case r.Code.failed():
		err = pgError(r)
		outcome = err
	case how == PgRollback || r.RolledBack:
		outcome = ErrRefused
		if how == PgCommit {
			err = ErrRefused
		}
	}
	for _, op := range x.pending {
		x.rec.Return(t, op, outcome, 0)
	}
	x.pending = x.pending[:0]
	return err
}

// abandon leaves a transaction to end with its session.
func (x *transaction) abandon(t *sim.Task) {
	for _, op := range x.pending {
		x.rec.Return(t, op, sim.ErrUnknown, 0)
	}
	x.pending = x.pending[:0]
}

// pgError turns a server's error into what it means to a section.
func pgError(r *PgResult) error {
	switch r.Code {
	case PgSerializationFailure, PgDeadlockDetected, PgUniqueViolation:
		return ErrConflict
	case PgIdleTimeout, PgAdminShutdown:
		return errSessionGone
	}
	if r.Code.failed() {
		return ErrRefused
	}
	return nil
}
