package models

// pgDependencies is what SERIALIZABLE remembers of a transaction: what it has
// read, and the rw-dependencies to and from others. The rules are those of
// PostgreSQL's predicate.c (Ports and Grittner, "Serializable Snapshot
// Isolation in PostgreSQL", VLDB 2012): a transaction is given up when it is, or
// would make another, the pivot of T0 -> T1 -> T2 with T2 the first to commit.
//
// Reads are remembered by key or by table. The real server also locks index
// pages, so it may give up transactions that this model lets pass, never the
// other way round.
type pgDependencies struct {
	reads     []pgRead
	in, out   []*pgXact // who read what this one wrote; whose writes this one did not see
	wrote     bool
	doomed    bool  // to be given up at its next step, or rolled back
	committed int64 // the number of its commit; 0: not committed
	ended     bool
}

// pgRead is something that was read, found or not: a key, or a whole table.
type pgRead struct {
	table *pgTableData
	key   int64
	all   bool
}

// serializable returns the session's transaction if dependencies matter to it.
func (s *pgSession) serializable() *pgXact {
	if s.xact.level == Serializable {
		return s.xact
	}
	return nil
}

// noteRead remembers what a statement reads.
func (x *pgXact) noteRead(r pgRead) {
	for _, known := range x.reads {
		if known == r || known.all && known.table == r.table {
			return
		}
	}
	x.reads = append(x.reads, r)
}

// readConflicts notes whose versions the reader does not see; of deletions,
// those of what it does (HeapCheckForSerializableConflictOut). It reports
// whether the reader must be given up.
func (e *pgEngine) readConflicts(x *pgXact, u *pgTuple) bool {
	if x.doomed {
		return true
	}
	seen := false // the version before
	for i := range u.versions {
		v := &u.versions[i]
		if v.at > x.snapshot && v.writer != nil && v.writer != x && (seen || !v.deleted) && e.depends(x, v.writer, x) {
			return true
		}
		seen = v.at <= x.snapshot && !v.deleted
	}
	return u.pending && u.owner != x && u.owner.level == Serializable && (seen || !u.next.deleted) && e.depends(x, u.owner, x)
}

// writeConflicts notes who has read what is now written: a new row's place, or
// the row that is changed, if the reader could see it. It reports whether the
// writer must be given up.
func (e *pgEngine) writeConflicts(x *pgXact, t *pgTableData, key int64, changed *pgTuple) bool {
	if x.doomed {
		return true
	}
	x.wrote = true
	for _, r := range e.serial {
		if r == x || r.doomed || r.committed != 0 && r.committed <= x.snapshot || !r.hasRead(t, key) {
			continue
		}
		if changed != nil && changed.visible(r, r.snapshot) == nil {
			continue // it has locked its place, which an update leaves alone
		}
		if e.depends(r, x, x) {
			return true
		}
	}
	return false
}

func (x *pgXact) hasRead(t *pgTableData, key int64) bool {
	for _, r := range x.reads {
		if r.table == t && (r.all || r.key == key) {
			return true
		}
	}
	return false
}

// depends notes that reader did not see what writer wrote; me is whoever of
// the two is at work. It reports whether me must be given up
// (OnConflict_CheckForSerializationFailure).
func (e *pgEngine) depends(reader, writer, me *pgXact) bool {
	for _, known := range reader.out {
		if known == writer {
			return false
		}
	}
	if dangerous(reader, writer) {
		if me == writer || writer.committed != 0 {
			return true
		}
		writer.doomed = true
	}
	reader.out, writer.in = append(reader.out, writer), append(writer.in, reader)
	return false
}

// dangerous reports whether reader -> writer completes a dangerous structure.
func dangerous(reader, writer *pgXact) bool {
	for _, t2 := range writer.out { // the writer as pivot
		if t2.committed != 0 && (reader.committed == 0 || t2.committed <= reader.committed) &&
			(writer.committed == 0 || t2.committed <= writer.committed) &&
			(!reader.readOnly() || t2.committed <= reader.snapshot) {
			return true
		}
	}
	if writer.committed == 0 || reader.readOnly() {
		return false
	}
	for _, t0 := range reader.in { // the reader as pivot
		if !t0.doomed && (t0.committed == 0 || t0.committed >= writer.committed) &&
			(!t0.readOnly() || t0.snapshot >= writer.committed) {
			return true
		}
	}
	return false
}

// readOnly: it has committed and had written nothing.
func (x *pgXact) readOnly() bool { return x.committed != 0 && !x.wrote }

// mayCommit is the last check: whether the transaction has been given up, and
// which others must be because it commits before them
// (PreCommit_CheckForSerializationFailure). From then on it counts as
// committed where dependencies are concerned, also while its flush takes time.
func (e *pgEngine) mayCommit(x *pgXact) bool {
	if x.level != Serializable {
		return true
	}
	if x.doomed {
		return false
	}
	for _, near := range x.in {
		if near.committed != 0 || near.doomed {
			continue
		}
		for _, far := range near.in {
			if far == x || far.committed == 0 && !far.doomed {
				near.doomed = true
				break
			}
		}
	}
	e.commits++
	x.committed = e.commits
	return true
}

// forgetDependencies drops all that has ended once no serializable transaction
// is left that ran beside it.
func (e *pgEngine) forgetDependencies() {
	if len(e.serial) == 0 {
		return
	}
	for _, x := range e.serial {
		if !x.ended {
			return
		}
	}
	e.serial = e.serial[:0]
}
