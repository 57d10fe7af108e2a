package models

import (
	"time"

	"locklab/sim"
)

// The ways in which a Redis server keeps its data over a crash.
const (
	PersistNone     = "none"
	PersistEverysec = "aof-everysec" // written at once, fsynced once a second
	PersistAlways   = "aof-always"   // fsynced before the reply
)

// Persistences lists them.
func Persistences() []string { return []string{PersistNone, PersistEverysec, PersistAlways} }

// redisFile is the append-only file. Redis writes it before it sends the
// reply, so what was acknowledged is in the kernel's page cache and survives
// the process; whether it survives the machine is the fsync policy's matter
// (redis.io, "Redis persistence"). Rewriting the file is left out: it changes
// nothing that a client could see.
type redisFile struct {
	file     *sim.File[redisEffect]
	everysec bool
	flushing bool // a flush is due
}

// persist gives the server a file, if the run wants one.
func (s *redisServer) persist(n *sim.Node, policy string) {
	if policy == "" || policy == PersistNone {
		return
	}
	s.env.lacking = "persistence"
	s.aof = &redisFile{file: sim.NewFile[redisEffect](n), everysec: policy == PersistEverysec}
	s.db.logs = true
}

// boot loads the file. A transaction that was cut off is not there at all
// (aof-load-truncated). Nothing expires while loading.
func (f *redisFile) boot(s *redisServer, first bool) {
	f.flushing = false
	if first {
		f.file.Rewrite(s.db.snapshot())
		return
	}
	records := f.file.Records()
	n := len(records)
	for n > 0 && records[n-1].more {
		n--
	}
	for i := range records[:n] {
		s.db.apply(&records[i])
	}
	if n < len(records) {
		f.file.Rewrite(append([]redisEffect(nil), records[:n]...))
	}
	s.db.log = s.db.log[:0]
}

// write appends changes. With aof-always a reply waits for the fsync; it
// reports whether the disk holds it.
func (f *redisFile) write(s *redisServer, effects []redisEffect, replies bool) (held bool) {
	for _, e := range effects {
		f.file.Append(e)
	}
	switch {
	case f.everysec:
		f.flushLater(s.proc)
		return false
	case replies:
		return !s.proc.Fsync(redisSynced.of(0))
	}
	s.proc.Fsync(redisUnwaited.of(0))
	return false
}

// flushLater has the file fsynced a second after the first write that was not.
// Redis may do it sooner; a second is what it promises to lose at most.
func (f *redisFile) flushLater(p *sim.Process) {
	if !f.flushing {
		f.flushing = true
		p.TimerIn(time.Second, redisFlush.of(0))
	}
}

func (f *redisFile) flush(p *sim.Process) {
	f.flushing = false
	p.Fsync(redisUnwaited.of(0))
}
