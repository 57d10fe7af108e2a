package models

import (
	"time"

	"locklab/clock"
	"locklab/sim"
)

// pgLocks is the lease table:
//
//	CREATE TABLE locks (resource bigint PRIMARY KEY, locked_by bigint, locked_at timestamptz, expires_at timestamptz, token bigint)
var pgLocks = &PgTable{Name: "locks", Columns: []string{"resource", "locked_by", "locked_at", "expires_at", "token"}}

// The columns of the lease table.
const (
	lockedBy = 1 + iota
	lockedAt
	expiresAt
	leaseToken
)

// leaseVariant tells the designs on a lease table apart.
type leaseVariant struct {
	clientClock bool // expiry is written and compared by the clients' clocks
	token       bool // every grant counts a token up, in the same statement
}

// leaseSystem adds the server with the lease table.
func leaseSystem(v leaseVariant) func(env *Env) System {
	return func(env *Env) System {
		rows := []pgChange{pgDataRow()}
		if start := env.Options.TokenStart; v.token && start > 1 {
			rows = append(rows, pgChange{table: pgLocks, row: PgRow{1, 0, 0, 0, start - 1}})
		}
		g := newPostgres(env, rows...)
		if !v.clientClock {
			g.watch = func() int64 { return int64(g.leaseHolder(v).Until) / int64(time.Microsecond) }
		}
		g.inside(env, func() Resource {
			s := &leaseData{env: env, link: g.link()}
			return resourceFunc(func(_ *sim.Task, grant *Grant) (Section, error) {
				return &leaseSection{leaseData: s, grant: grant}, nil
			})
		})
		return System{
			Watch:  g.processes(),
			Holder: func() Holding { return g.leaseHolder(v) },
			Lock:   func(*sim.Process) Lock { return &leaseLock{leaseVariant: v, env: env, link: g.link()} },
		}
	}
}

// leaseHolder is whose the lease is, as the row says, also while the server is
// down: nothing is known to be lost until it is back. By which client's clock a
// lease has run out no server knows: such a lease lasts until another client
// takes it.
func (g *pgGroup) leaseHolder(v leaseVariant) Holding {
	u := g.primary.engine.table(pgLocks).find(1)
	if u == nil || len(u.versions) == 0 {
		return Holding{}
	}
	row := &u.versions[len(u.versions)-1]
	switch {
	case row.deleted || row.row[lockedBy] == 0:
		return Holding{}
	case v.clientClock:
		return Holding{Op: row.op}
	case row.row[expiresAt] < g.primary.wall():
		return Holding{}
	}
	return Holding{Op: row.op, Until: clock.Reading(row.row[expiresAt] * int64(time.Microsecond))}
}

// leaseLock is a client's handle on
//
//	INSERT INTO locks VALUES (1, $me, now(), now() + $ttl)
//	ON CONFLICT (resource) DO UPDATE SET locked_by = $me, locked_at = now(), expires_at = now() + $ttl
//	WHERE locks.expires_at < now() RETURNING *          -- no row: somebody has it
//	DELETE FROM locks WHERE resource = 1 AND locked_by = $me
//
// With a token, SET also has token = locks.token + 1, and release keeps the
// row: UPDATE locks SET locked_by = 0, expires_at = 0 WHERE ... AND locked_by =
// $me. $me is new for every attempt.
type leaseLock struct {
	leaseVariant
	env  *Env
	link pgLink
}

// Acquire implements Lock. The deadline counts from before the statement was
// sent.
func (l *leaseLock) Acquire(t *sim.Task) (Grant, error) {
	ttl := l.env.Options.TTL
	g := Grant{Mark: t.Unique(), Deadline: t.Now().Add(ttl)}
	now, until := PgNowPlus(0), PgNowPlus(ttl)
	if l.clientClock {
		wall := int64(t.Wall()) / int64(time.Microsecond)
		now, until = PgValue(wall), PgValue(wall+ttl.Microseconds())
	}
	q := &PgStatement{Verb: PgInsert, Table: pgLocks, OnConflict: ConflictUpdates}
	q.Values = [pgColumns]PgExpr{PgValue(1), PgValue(g.Mark), now, until, PgValue(1)}
	q.Set = [4]PgAssign{{lockedBy, PgValue(g.Mark)}, {lockedAt, now}, {expiresAt, until}}
	q.Where[0] = PgCond{expiresAt, Less, now}
	if l.token {
		q.Set[3] = PgAssign{leaseToken, PgColumnPlus(leaseToken, 1)}
	}
	r, err := l.link.do(t, q)
	switch {
	case err != nil:
		return Grant{}, err
	case r.Code.failed() || r.Rows == 0:
		return Grant{}, ErrBusy
	}
	if l.token {
		g.Token = r.Row[leaseToken]
	}
	return g, nil
}

// Renew implements Lock. None of the designs renews.
func (l *leaseLock) Renew(*sim.Task, *Grant) error { return nil }

// Release implements Lock.
func (l *leaseLock) Release(t *sim.Task, g *Grant) error {
	q := &PgStatement{Verb: PgDelete, Table: pgLocks, ByKey: true, Key: 1}
	if l.token {
		q.Verb, q.Set = PgUpdate, [4]PgAssign{{lockedBy, PgValue(0)}, {expiresAt, PgValue(0)}}
	}
	q.Where[0] = PgCond{lockedBy, Equal, PgValue(g.Mark)}
	r, err := l.link.do(t, q)
	if err == nil && (r.Code.failed() || r.Rows == 0) {
		return ErrLost
	}
	return err
}

// leaseData is a client's handle on data in the lease's database.
type leaseData struct {
	env  *Env
	link pgLink
}

// leaseSection writes each time in a transaction of its own that first locks
// the lease's row and looks whose it is:
//
//	BEGIN
//	SELECT * FROM locks WHERE resource = 1 AND locked_by = $me FOR UPDATE   -- no row: ROLLBACK
//	UPDATE data SET value = $value, version = version + 1 WHERE id = 1
//	COMMIT
//
// It does not matter whether the lease has run out meanwhile: as long as
// nobody else has taken it, nobody else has begun.
type leaseSection struct {
	*leaseData
	grant *Grant
}

// Read implements Section.
func (s *leaseSection) Read(t *sim.Task) (int64, error) {
	if err := s.link.connect(t); err != nil {
		return 0, err
	}
	x := transaction{link: &s.link, rec: s.env.Rec}
	q := selectData()
	r, err := x.read(t, s.grant.Op, &q)
	if err != nil {
		return 0, err
	}
	return r.Row[1], nil
}

// Write implements Section.
func (s *leaseSection) Write(t *sim.Task, value int64) error { return s.change(t, OpWrite, value) }

// Append implements Section.
func (s *leaseSection) Append(t *sim.Task, value int64) error { return s.change(t, OpAppend, value) }

func (s *leaseSection) change(t *sim.Task, kind OpKind, value int64) error {
	check := PgStatement{Verb: PgSelect, Table: pgLocks, ByKey: true, Key: 1, Lock: ForUpdate, decides: true}
	check.Where[0] = PgCond{lockedBy, Equal, PgValue(s.grant.Mark)}
	return s.link.guarded(t, kind, s.grant.Op, value, &check, dataStatement(kind, value))
}

// guarded does one write as one operation, in one transaction: only if the
// guard finds a row.
func (l *pgLink) guarded(t *sim.Task, kind OpKind, tenure int32, value int64, guard *PgStatement, write PgStatement) error {
	op := l.env.Rec.Invoke(t, kind, tenure, value, 0)
	err := l.guard(t, guard, write)
	l.env.Rec.Return(t, op, err, 0)
	return err
}

func (l *pgLink) guard(t *sim.Task, guard *PgStatement, write PgStatement) error {
	if _, err := l.do(t, &PgStatement{Verb: PgBegin}); err != nil {
		return err
	}
	r, err := l.in(t, guard)
	if err != nil {
		return err
	}
	if !r.Code.failed() && r.Rows > 0 {
		if r, err = l.in(t, &write); err != nil {
			return err
		}
	}
	if r.Code.failed() || r.Rows == 0 {
		_, _ = l.in(t, &PgStatement{Verb: PgRollback}) // whatever it answers, nothing was written
		return ErrRefused
	}
	r, err = l.in(t, &PgStatement{Verb: PgCommit})
	if err == nil {
		err = pgError(r)
	}
	return err
}

// Lost implements Section.
func (s *leaseSection) Lost(*sim.Task) bool { return false }
