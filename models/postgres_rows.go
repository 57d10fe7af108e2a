package models

// pgVersion is one committed version of a row.
type pgVersion struct {
	row      PgRow
	deleted  bool
	inserted bool    // a new row, although its key may have been there before
	at       int64   // the number of the commit that made it
	writer   *pgXact // if that was serializable; for the history of dependencies
	op       int32   // provenance that no program can see: the operation that wrote it
}

// pgTuple is a row with all that PostgreSQL keeps about it: its versions, who
// has locked it and who waits for that.
type pgTuple struct {
	table    *pgTableData
	key      int64
	versions []pgVersion // committed, the oldest that a snapshot may want first
	next     pgVersion   // the owner's uncommitted version
	pending  bool        // there is one
	owner    *pgXact     // who holds the row lock
	waiters  []*pgSession
}

// pgTableData is a table's contents, in the order of the key.
type pgTableData struct {
	def    *PgTable
	tuples []*pgTuple
	serial int64 // the latest number of its sequence
}

// at returns the position of the first tuple whose key is not below the given
// one.
func (t *pgTableData) at(key int64) int {
	lo, hi := 0, len(t.tuples)
	if hi > 0 && t.tuples[hi-1].key < key { // keys mostly grow
		return hi
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.tuples[mid].key < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// find returns the tuple with a key, nil if there is none.
func (t *pgTableData) find(key int64) *pgTuple {
	if i := t.at(key); i < len(t.tuples) && t.tuples[i].key == key {
		return t.tuples[i]
	}
	return nil
}

// add makes a tuple without any version.
func (t *pgTableData) add(key int64) *pgTuple {
	i := t.at(key)
	tuple := &pgTuple{table: t, key: key}
	t.tuples = append(t.tuples, nil)
	copy(t.tuples[i+1:], t.tuples[i:])
	t.tuples[i] = tuple
	return tuple
}

func (t *pgTableData) remove(tuple *pgTuple) {
	if i := t.at(tuple.key); i < len(t.tuples) && t.tuples[i] == tuple {
		t.tuples = append(t.tuples[:i], t.tuples[i+1:]...)
	}
}

// latest returns the newest version: the transaction's own, or else the newest
// committed one; nil if there is none or it is deleted.
func (u *pgTuple) latest(x *pgXact) *pgVersion {
	v := u.newest(x)
	if v == nil || v.deleted {
		return nil
	}
	return v
}

// newest is latest, but a deletion counts as a version too.
func (u *pgTuple) newest(x *pgXact) *pgVersion {
	if u.pending && u.owner == x {
		return &u.next
	}
	if n := len(u.versions); n > 0 {
		return &u.versions[n-1]
	}
	return nil
}

// visible returns the version that a snapshot shows: the transaction's own, or
// else the newest that was committed before the snapshot (manual 13.2.1).
func (u *pgTuple) visible(x *pgXact, snapshot int64) *pgVersion {
	if u.pending && u.owner == x {
		return u.latest(x)
	}
	for i := len(u.versions) - 1; i >= 0; i-- {
		if v := &u.versions[i]; v.at <= snapshot {
			if v.deleted {
				return nil
			}
			return v
		}
	}
	return nil
}

// replaced reports whether the row that a snapshot shows has been deleted since
// then: one that was inserted afterwards with its key is another row.
func (u *pgTuple) replaced(v *pgVersion) bool {
	for i := len(u.versions) - 1; v != &u.next && &u.versions[i] != v; i-- {
		if u.versions[i].deleted || u.versions[i].inserted {
			return true
		}
	}
	return false
}

// lockedFor reports whether another transaction holds the row.
func (u *pgTuple) lockedFor(x *pgXact) bool { return u.owner != nil && u.owner != x }

// lock gives the transaction the row. It must be free, or its own.
func (u *pgTuple) lock(x *pgXact) {
	if u.owner == x {
		return
	}
	u.owner = x
	x.tuples = append(x.tuples, u)
}

// write gives the row a new version that the others see at commit.
func (u *pgTuple) write(x *pgXact, row PgRow, deleted bool, op int32) {
	u.lock(x)
	u.next = pgVersion{row: row, deleted: deleted, inserted: u.pending && u.next.inserted, op: op}
	u.pending = true
	if n := len(x.ops); u.table.def.data && (n == 0 || x.ops[n-1] != op) { // an operation may write several rows
		x.ops = append(x.ops, op)
	}
}

// settle makes the owner's version a committed one, or drops it, and unlocks
// the row. Old versions are kept only while somebody's snapshot may want them.
func (u *pgTuple) settle(commit bool, at int64, keepOld bool) {
	if u.pending && commit {
		if !keepOld {
			u.versions = u.versions[:0]
		}
		u.next.at = at
		if u.owner.level == Serializable {
			u.next.writer = u.owner
		}
		u.versions = append(u.versions, u.next)
	}
	u.pending, u.owner = false, nil
	if n := len(u.versions); n == 0 || n == 1 && u.versions[0].deleted {
		u.versions = u.versions[:0]
		u.table.remove(u)
	}
}
