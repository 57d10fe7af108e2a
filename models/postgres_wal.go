package models

import "slices"

// pgChange is a record of the write-ahead log: a row's new version. The last
// of a transaction's is its commit; records behind which no commit follows
// never happened.
type pgChange struct {
	table   *PgTable
	row     PgRow
	deleted bool
	op      int32
	commit  bool
	ops     []int32 // of a commit, provenance: the operations that wrote protected data
}

// appendTo appends the transaction's changes to a log, the last as commit.
func (x *pgXact) appendTo(log []pgChange) []pgChange {
	for _, u := range x.tuples {
		if u.pending {
			log = append(log, u.change())
		}
	}
	last := &log[len(log)-1]
	last.commit, last.ops = true, slices.Clone(x.ops)
	return log
}

func (u *pgTuple) change() pgChange {
	c := pgChange{table: u.table.def, row: u.next.row, deleted: u.next.deleted, op: u.next.op}
	c.row[0] = u.key
	return c
}

// replay applies a log from its beginning, as recovery and a standby do. It
// returns how many records it took: a transaction that is not all there waits
// for the rest.
func (e *pgEngine) replay(log []pgChange) int {
	start := 0
	for i := range log {
		if !log[i].commit {
			continue
		}
		e.commits++
		for j := start; j <= i; j++ {
			e.redo(&log[j])
		}
		start = i + 1
	}
	return start
}

func (e *pgEngine) redo(c *pgChange) {
	t := e.table(c.table)
	t.serial = max(t.serial, c.row[0])
	u := t.find(c.row[0])
	if u == nil {
		if c.deleted {
			return
		}
		u = t.add(c.row[0])
	}
	if c.deleted && e.snapshots == 0 {
		t.remove(u)
		return
	}
	if e.snapshots == 0 {
		u.versions = u.versions[:0]
	}
	u.versions = append(u.versions, pgVersion{row: c.row, deleted: c.deleted, at: e.commits, op: c.op})
}
