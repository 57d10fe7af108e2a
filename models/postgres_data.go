package models

import "locklab/sim"

// The tables of the designs.
var (
	// data(id, value, version): the protected register, one row.
	pgData = &PgTable{Name: "data", Columns: []string{"id", "value", "version"}, data: true}
	// entries(seq, value): the protected list, seq a bigserial.
	pgEntries = &PgTable{Name: "entries", Columns: []string{"seq", "value"}, data: true}
	// ledger(seq, value): register and list in one, the last entry counts.
	pgLedger = &PgTable{Name: "ledger", Columns: []string{"seq", "value"}, data: true}
)

// pgDataRow is the register as it is at the start.
func pgDataRow() pgChange { return pgChange{table: pgData, row: PgRow{1, 0, 1}} }

// The statements that work on them.

// SELECT * FROM data WHERE id = 1
func selectData() PgStatement {
	return PgStatement{Verb: PgSelect, Table: pgData, ByKey: true, Key: 1}
}

// UPDATE data SET value = $1, version = version + 1 WHERE id = 1
func updateData(value int64) PgStatement {
	return PgStatement{Verb: PgUpdate, Table: pgData, ByKey: true, Key: 1,
		Set: [4]PgAssign{{1, PgValue(value)}, {2, PgColumnPlus(2, 1)}}}
}

// INSERT INTO entries (value) VALUES ($1)
func insertEntry(value int64) PgStatement {
	return PgStatement{Verb: PgInsert, Table: pgEntries, Values: [pgColumns]PgExpr{PgSerial(), PgValue(value)}}
}

// dataStatement is the write or append that an operation asks for.
func dataStatement(kind OpKind, value int64) PgStatement {
	if kind == OpAppend {
		return insertEntry(value)
	}
	return updateData(value)
}

// pgContents reads protected data at the end of a run, from the server that
// counts as the primary.
type pgContents struct {
	group          *pgGroup
	register, list *PgTable
}

// Contents implements Data.
func (c pgContents) Contents(list bool) []int64 {
	def := c.register
	if list {
		def = c.list
	}
	t := c.group.durable(def)
	var out []int64
	for _, u := range t.tuples {
		if v := u.latest(nil); v != nil {
			out = append(out, v.row[1])
		}
	}
	switch {
	case list:
		return out
	case len(out) == 0:
		return []int64{0}
	}
	return out[len(out)-1:]
}

// durable returns a table's contents; those that its log will bring back while
// the server is down.
func (g *pgGroup) durable(def *PgTable) *pgTableData {
	if t := g.table(def); t != nil {
		return t
	}
	var e pgEngine
	e.replay(g.primary.file.Records())
	return e.table(def)
}

// inside makes the data in the design's own database what the resource
// same-transaction stands for.
func (g *pgGroup) inside(env *Env, handle func() Resource) {
	env.inside = Store{Data: pgContents{g, pgData, pgEntries}, Handle: handle}
}

// txSection is a section within one transaction, open from its lock's
// acquisition to its release.
type txSection struct {
	x      *transaction
	tenure int32
}

// Read implements Section.
func (s *txSection) Read(t *sim.Task) (int64, error) {
	q := selectData()
	r, err := s.x.read(t, s.tenure, &q)
	if err != nil {
		return 0, err
	}
	return r.Row[1], nil
}

// Write implements Section.
func (s *txSection) Write(t *sim.Task, value int64) error { return s.change(t, OpWrite, value) }

// Append implements Section.
func (s *txSection) Append(t *sim.Task, value int64) error { return s.change(t, OpAppend, value) }

func (s *txSection) change(t *sim.Task, kind OpKind, value int64) error {
	q := dataStatement(kind, value)
	_, err := s.x.write(t, kind, s.tenure, value, &q)
	return err
}

// Lost implements Section.
func (s *txSection) Lost(*sim.Task) bool { return false }

// sameTransaction is the resource whose data lives in the lock's database.
func sameTransaction(env *Env) Store { return env.inside }

// resourceFunc is a Resource made of one function.
type resourceFunc func(t *sim.Task, g *Grant) (Section, error)

// Enter implements Resource.
func (f resourceFunc) Enter(t *sim.Task, g *Grant) (Section, error) { return f(t, g) }
