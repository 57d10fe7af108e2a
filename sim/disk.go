package sim

import "locklab/clock"

// Disk is a node's disk: append-only files of records. A process crash keeps
// what was written, because the kernel has it; a node crash keeps what was
// fsynced and, by choice, a prefix of the rest.
type Disk struct {
	node    *Node
	files   []file
	stalled int
	waiting []event // fsyncs that a stall holds
}

// file is a File of whatever record type.
type file interface {
	sync()
	written() int
	cut(length int)
	unsynced() int
	restore(t clock.Time)
}

// File is a log of records of one type.
type File[T any] struct {
	disk    *Disk
	records []T
	times   []clock.Time // when each was written
	synced  int
	older   []version[T] // what Rewrite replaced, if the plan may restore it
}

// version is what a file held until it was replaced.
type version[T any] struct {
	until   clock.Time
	records []T
	times   []clock.Time
}

// NewFile makes an empty file on the node's disk.
func NewFile[T any](n *Node) *File[T] {
	const few = 16 // records of an ordinary run
	f := &File[T]{disk: &n.disk, records: make([]T, 0, few), times: make([]clock.Time, 0, few)}
	n.disk.files = append(n.disk.files, f)
	return f
}

// Append writes a record. It is in the page cache until an fsync.
func (f *File[T]) Append(record T) {
	f.records = append(f.records, record)
	f.times = append(f.times, f.disk.node.w.now)
}

// Records returns what the file holds. The caller must not change it.
func (f *File[T]) Records() []T { return f.records }

// Rewrite replaces the whole file by one that is already fsynced: write to a
// temporary file, fsync, rename.
func (f *File[T]) Rewrite(records []T) {
	w := f.disk.node.w
	if w.restores() {
		f.older = append(f.older, version[T]{until: w.now, records: f.records, times: f.times})
		f.records, f.times = nil, nil
	}
	f.records, f.times = f.records[:0], f.times[:0]
	for _, r := range records {
		f.Append(r)
	}
	f.synced = len(f.records)
}

func (f *File[T]) sync()         { f.synced = len(f.records) }
func (f *File[T]) written() int  { return len(f.records) }
func (f *File[T]) unsynced() int { return len(f.records) - f.synced }

func (f *File[T]) cut(length int) {
	f.records, f.times = f.records[:length], f.times[:length]
	f.synced = min(f.synced, length)
}

// restore takes the file back to what it held after true time t, as a
// snapshot does: all of that is on the disk.
func (f *File[T]) restore(t clock.Time) {
	for i, v := range f.older {
		if v.until > t {
			f.records, f.times, f.older = v.records, v.times, f.older[:i]
			break
		}
	}
	n := len(f.times)
	for n > 0 && f.times[n-1] > t {
		n--
	}
	f.cut(n)
	f.synced = n
}

// restores reports whether the run's plan may take a disk back in time.
func (w *World) restores() bool {
	for i := range w.cfg.Plan.Faults {
		if w.cfg.Plan.Faults[i].Kind == RestoreSnapshot {
			return true
		}
	}
	return false
}

// Fsync makes everything written so far durable. It reports whether that is
// done already; if not (the disk is stalled), Timer(id) follows when it is.
func (p *Process) Fsync(id uint64) bool {
	if p.down { // it crashed while it handled this: nothing of it is left to be told
		return false
	}
	d := &p.node.disk
	if d.stalled == 0 {
		d.flush()
		return true
	}
	d.waiting = append(d.waiting, event{kind: evTimer, proc: p, gen: p.incarnation, id: id})
	return false
}

// Fsync makes everything that the node wrote so far durable, and waits for it.
func (t *Task) Fsync() {
	t.effect()
	d := &t.proc.node.disk
	if d.stalled == 0 {
		d.flush()
		return
	}
	d.waiting = append(d.waiting, t.wakeUp())
	t.park()
}

func (d *Disk) flush() {
	for _, f := range d.files {
		f.sync()
	}
}

// endStall lets the waiting fsyncs complete.
func (d *Disk) endStall() {
	if d.stalled--; d.stalled > 0 {
		return
	}
	d.flush()
	w := d.node.w
	for _, e := range d.waiting {
		*w.queue.push(w.now) = e
	}
	d.waiting = d.waiting[:0]
}

// loseUnsynced drops what was not fsynced, but for a prefix that the chooser
// grants: the disk may have got to it by itself.
func (d *Disk) loseUnsynced() {
	n, lost := d.node, false
	for _, f := range d.files {
		rest := f.unsynced()
		if rest == 0 || len(n.procs) == 0 {
			continue
		}
		p := n.procs[0]
		at := Place{Proc: p.id, Phase: PhaseStart, Op: p.nextOp(0, PhaseStart), Point: PointSurvive}
		kept := int(n.w.choose(at, 0, int64(rest)))
		f.cut(f.written() - rest + kept)
		lost = lost || kept < rest
	}
	if lost {
		n.w.emit(Event{Kind: EventDisk, Proc: -1, Peer: -1, A: int64(n.id), Body: Text("unsynced records lost on " + n.name)})
	}
}

// restore takes the disk back to what it held at an earlier time.
func (d *Disk) restore(t clock.Time) {
	for _, f := range d.files {
		f.restore(t)
	}
	d.node.w.emit(Event{Kind: EventDisk, Proc: -1, Peer: -1, A: int64(d.node.id), Body: Text("snapshot restored on " + d.node.name)})
}
