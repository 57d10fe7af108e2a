package models

import (
	"errors"

	"locklab/sim"
)

// attempt is one try of a section without a lock.
type attempt interface {
	Section
	// end commits the attempt after a body that succeeded (err nil), or gives
	// it up, and returns the error that counts.
	end(t *sim.Task, err error) error
}

// attempts runs sections that need no lock: the database notices when two
// meet, and the one that it turns away begins anew. There is no grant but the
// commit: an attempt that comes through was its turn, and its client never
// believed to be alone.
type attempts struct {
	env  *Env
	open func(t *sim.Task, tenure int32) (attempt, error)
}

// Do implements Protocol.
func (p *attempts) Do(t *sim.Task, job int, body func(Section) error) error {
	rec := p.env.Rec
	for {
		t.Enter(job, sim.PhaseAcquire)
		op := rec.Invoke(t, OpAcquire, 0, 0, 0)
		rec.Try(t, op)
		a, err := p.open(t, op)
		if err == nil {
			err = body(a)
			t.Enter(job, sim.PhaseRelease)
			err = a.end(t, err)
		}
		if err == nil {
			rec.Acquired(t, op, 0)
			rec.LearnsLoss(t, op)
			return nil
		}
		rec.Return(t, op, err, 0)
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// attemptSystem is the system of such a design, with its data in the given
// tables.
func attemptSystem(register, list *PgTable, open func(env *Env, l *pgLink) func(*sim.Task, int32) (attempt, error), rows ...pgChange) func(env *Env) System {
	return func(env *Env) System {
		g := newPostgres(env, append([]pgChange(nil), rows...)...)
		env.inside = Store{Data: pgContents{g, register, list}}
		return System{
			Watch:  g.processes(),
			Holder: func() Holding { return Holding{Op: g.latest} },
			Protocol: func(*sim.Process) Protocol {
				l := g.link()
				return &attempts{env: env, open: open(env, &l)}
			},
		}
	}
}

// tail are the parts that attempts of single statements share.
type tail struct {
	env    *Env
	link   *pgLink
	tenure int32
	known  bool  // the section has read
	seen   int64 // the version, or the last entry's number, that it goes by
}

func (s *tail) end(_ *sim.Task, err error) error { return err }

// Lost implements Section.
func (s *tail) Lost(*sim.Task) bool { return false }

// look runs the section's SELECT; silent within a write that has read nothing.
func (s *tail) look(t *sim.Task, q PgStatement, col int) (*PgResult, error) {
	r, err := s.link.do(t, &q)
	if err == nil {
		err = pgError(r)
	}
	if err == nil {
		s.known, s.seen = true, r.Row[col]
	}
	return r, err
}

// read is look as an operation.
func (s *tail) read(t *sim.Task, q PgStatement, col int) (int64, error) {
	op := s.env.Rec.Invoke(t, OpRead, s.tenure, 0, 0)
	r, err := s.look(t, q, col)
	value := int64(0)
	if err == nil {
		value = r.Row[1]
	}
	s.env.Rec.Return(t, op, err, value)
	return value, err
}

// optimistic goes by a version column:
//
//	SELECT * FROM data WHERE id = 1
//	UPDATE data SET value = $value, version = version + 1 WHERE id = 1 AND version = $seen   -- 0 rows: begin anew
//
// An append does the same to the version and then inserts, in one transaction.
type optimistic struct{ tail }

func openOptimistic(env *Env, l *pgLink) func(*sim.Task, int32) (attempt, error) {
	return func(_ *sim.Task, tenure int32) (attempt, error) {
		return &optimistic{tail{env: env, link: l, tenure: tenure}}, nil
	}
}

// Read implements Section.
func (s *optimistic) Read(t *sim.Task) (int64, error) { return s.read(t, selectData(), 2) }

// Write implements Section.
func (s *optimistic) Write(t *sim.Task, value int64) error { return s.change(t, OpWrite, value) }

// Append implements Section.
func (s *optimistic) Append(t *sim.Task, value int64) error { return s.change(t, OpAppend, value) }

func (s *optimistic) change(t *sim.Task, kind OpKind, value int64) error {
	op := s.env.Rec.Invoke(t, kind, s.tenure, value, 0)
	err := s.try(t, kind, value)
	s.env.Rec.Return(t, op, err, 0)
	return err
}

func (s *optimistic) try(t *sim.Task, kind OpKind, value int64) error {
	if !s.known {
		q := selectData()
		q.silent = true
		if _, err := s.look(t, q, 2); err != nil {
			return err
		}
	}
	q := updateData(value)
	q.Where[0] = PgCond{2, Equal, PgValue(s.seen)}
	q.decides = true
	if kind == OpAppend {
		err := s.link.guard(t, &q, insertEntry(value))
		if errors.Is(err, ErrRefused) {
			return ErrConflict
		}
		s.seen++
		return err
	}
	r, err := s.link.do(t, &q)
	switch {
	case err != nil:
		return err
	case r.Rows == 0:
		return ErrConflict
	}
	s.seen = r.Row[2]
	return nil
}

// uniqueIndex numbers its writes, and the unique index lets every number
// happen once:
//
//	SELECT * FROM ledger ORDER BY seq DESC LIMIT 1
//	INSERT INTO ledger VALUES ($seen + 1, $value)   -- 23505: begin anew
type uniqueIndex struct{ tail }

func openUniqueIndex(env *Env, l *pgLink) func(*sim.Task, int32) (attempt, error) {
	return func(_ *sim.Task, tenure int32) (attempt, error) {
		return &uniqueIndex{tail{env: env, link: l, tenure: tenure}}, nil
	}
}

func lastEntry() PgStatement {
	return PgStatement{Verb: PgSelect, Table: pgLedger, Limit1: true, Desc: true}
}

// Read implements Section.
func (s *uniqueIndex) Read(t *sim.Task) (int64, error) { return s.read(t, lastEntry(), 0) }

// Write implements Section.
func (s *uniqueIndex) Write(t *sim.Task, value int64) error { return s.change(t, OpWrite, value) }

// Append implements Section.
func (s *uniqueIndex) Append(t *sim.Task, value int64) error { return s.change(t, OpAppend, value) }

func (s *uniqueIndex) change(t *sim.Task, kind OpKind, value int64) error {
	op := s.env.Rec.Invoke(t, kind, s.tenure, value, 0)
	err := s.try(t, value)
	s.env.Rec.Return(t, op, err, 0)
	return err
}

func (s *uniqueIndex) try(t *sim.Task, value int64) error {
	if !s.known {
		q := lastEntry()
		q.silent = true
		if _, err := s.look(t, q, 0); err != nil {
			return err
		}
	}
	r, err := s.link.do(t, &PgStatement{Verb: PgInsert, Table: pgLedger, Values: [pgColumns]PgExpr{PgValue(s.seen + 1), PgValue(value)}})
	if err == nil {
		err = pgError(r)
	}
	if err == nil {
		s.seen++
	}
	return err
}

// serializable runs the section in one transaction:
//
//	BEGIN ISOLATION LEVEL SERIALIZABLE
//	...
//	COMMIT   -- 40001 here or before: ROLLBACK and begin anew
type serializable struct {
	txSection
}

func openSerializable(env *Env, l *pgLink) func(*sim.Task, int32) (attempt, error) {
	x := &transaction{link: l, rec: env.Rec}
	return func(t *sim.Task, tenure int32) (attempt, error) {
		if err := x.begin(t, Serializable); err != nil {
			return nil, err
		}
		return &serializable{txSection{x: x, tenure: tenure}}, nil
	}
}

func (s *serializable) end(t *sim.Task, err error) error {
	if err == nil {
		return s.x.end(t, PgCommit)
	}
	_ = s.x.end(t, PgRollback)
	return err
}
