package models

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"locklab/sim"
)

// raftRecord is one record of a member's write-ahead log. Exactly one field is
// set. Read from the front, the records give the log as it stood: an entry
// replaces what was at its index and behind it.
type raftRecord struct {
	snapshot *raftpb.Snapshot
	entry    *raftpb.Entry
	hard     *raftpb.HardState
}

// snapshotEvery is how many applied entries lie between two snapshots, and
// keepBehind how many entries stay in the log behind one, so that a member
// that is a little late need not be sent a snapshot. etcd's are 10,000 and
// 5,000 (--snapshot-count); these are small so that the runs of a testbed,
// which are short, come to truncate their logs.
const (
	snapshotEvery = 40
	keepBehind    = 10
)

// raftDisk is a member's log: on disk, and in memory as raft wants to read it.
type raftDisk struct {
	*raft.MemoryStorage
	file *sim.File[raftRecord]
	hard *raftpb.HardState // as written last
	snap *raftpb.Snapshot  // as written last
}

// load reads the disk, as a member does when it boots.
func (d *raftDisk) load() {
	d.MemoryStorage = raft.NewMemoryStorage()
	d.hard, d.snap = nil, nil
	for _, r := range d.file.Records() {
		switch {
		case r.snapshot != nil:
			d.snap = r.snapshot
			_ = d.ApplySnapshot(r.snapshot) // never older: the file begins with it
		case r.entry != nil:
			_ = d.Append([]*raftpb.Entry{r.entry})
		default:
			d.hard = r.hard
			_ = d.SetHardState(r.hard)
		}
	}
}

// save writes what a Ready wants to be durable. The fsync is the caller's.
func (d *raftDisk) save(rd *raft.Ready) {
	if !raft.IsEmptySnap(rd.Snapshot) {
		d.snap = rd.Snapshot
		_ = d.ApplySnapshot(rd.Snapshot)
		d.file.Append(raftRecord{snapshot: rd.Snapshot})
	}
	for _, e := range rd.Entries {
		d.file.Append(raftRecord{entry: e})
	}
	_ = d.Append(rd.Entries)
	if !raft.IsEmptyHardState(rd.HardState) {
		d.hard = rd.HardState
		_ = d.SetHardState(rd.HardState)
		d.file.Append(raftRecord{hard: rd.HardState})
	}
}

// truncate makes a snapshot of the state at the given index the beginning of
// the log. The new file replaces the old one at once: it is written beside it,
// fsynced and renamed.
func (d *raftDisk) truncate(index uint64, state []byte) {
	snap, err := d.CreateSnapshot(index, nil, state)
	if err != nil {
		panic(err)
	}
	d.snap = snap
	if index > keepBehind {
		_ = d.Compact(index - keepBehind) // refused if that much is gone already
	}
	first, _ := d.FirstIndex()
	last, _ := d.LastIndex()
	records := []raftRecord{{snapshot: snap}}
	if first <= last {
		entries, err := d.Entries(first, last+1, 1<<62)
		if err != nil {
			panic(err)
		}
		for _, e := range entries {
			if e.GetIndex() > index { // the rest serves late members, from memory
				records = append(records, raftRecord{entry: e})
			}
		}
	}
	d.file.Rewrite(append(records, raftRecord{hard: d.hard}))
}

// An entry's bytes are the number of its command in the run's table: commands
// never change, so that nothing is gained by encoding them. The same holds for
// a snapshot's.
func handleOf(number uint64) []byte {
	return binary.LittleEndian.AppendUint64(nil, number)
}

func numberOf(handle []byte) uint64 { return binary.LittleEndian.Uint64(handle) }

// silence is a raft.Logger that says nothing, but still panics.
type silence struct{}

// Debug implements raft.Logger, as do the others.
func (silence) Debug(...any)              {}
func (silence) Debugf(string, ...any)     {}
func (silence) Error(...any)              {}
func (silence) Errorf(string, ...any)     {}
func (silence) Info(...any)               {}
func (silence) Infof(string, ...any)      {}
func (silence) Warning(...any)            {}
func (silence) Warningf(string, ...any)   {}
func (silence) Fatal(v ...any)            { panic(fmt.Sprint(v...)) }
func (silence) Fatalf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
func (silence) Panic(v ...any)            { panic(fmt.Sprint(v...)) }
func (silence) Panicf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
