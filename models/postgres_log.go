package models

import (
	"time"

	"locklab/sim"
)

// pgLog is a server's write-ahead log on its disk, and the commits that wait
// for it. With synchronous_commit = on a commit is answered, and seen by
// others, when it is flushed; with off at once, and the log is written by the
// WAL writer within three times wal_writer_delay: until then a crash loses it
// (manual 30.4).
type pgLog struct {
	file    *sim.File[pgChange]
	behind  []pgChange // synchronous_commit = off: not yet written
	writing bool       // the WAL writer has a timer

	flushedTo, acked int // records: on this disk, and on the standby's
	waiting          []pgFlush
	scratch          []pgChange
}

// pgFlush is a commit that waits until its records are durable.
type pgFlush struct {
	xact *pgXact
	end  int
}

// pgWriterDelay is the default of wal_writer_delay.
const pgWriterDelay = 200 * time.Millisecond

// startLog recovers: what the log holds is there again, also commits that
// nobody was told of.
func (s *pgServer) startLog() {
	s.behind, s.writing, s.waiting, s.acked = nil, false, nil, 0
	log := s.file.Records()
	s.applied = s.engine.replay(log)
	if s.applied < len(log) { // a commit that the crash cut off
		s.file.Rewrite(log[:s.applied])
	}
	s.flushedTo = s.applied
	if s.group.primary == s {
		s.settleRest()
	}
}

// settleRest tells the history of commits that only recovery or a promotion
// has made visible.
func (s *pgServer) settleRest() {
	log := s.file.Records()[:s.applied]
	for i := s.group.settled; i < len(log); i++ {
		for _, op := range log[i].ops {
			s.env.Rec.Decided(op, true, 0)
			s.group.latest = op
		}
	}
	s.group.settled = len(log)
}

// flush implements pgHost.
func (s *pgServer) flush(x *pgXact) bool {
	s.scratch = x.appendTo(s.scratch[:0])
	if s.env.Options.CommitAsync {
		s.behind = append(s.behind, s.scratch...)
		if !s.writing {
			s.writing = true
			s.proc.TimerIn(pgWriterDelay, timerID(timerWriter, 0, 0))
		}
		return true
	}
	end := s.write(s.scratch)
	if s.proc.Fsync(timerID(timerFlushed, 0, uint32(end))) {
		s.flushedTo = end
		s.ship()
	}
	if s.durable(end) {
		return true
	}
	s.waiting = append(s.waiting, pgFlush{x, end})
	return false
}

func (s *pgServer) write(records []pgChange) (end int) {
	for i := range records {
		s.file.Append(records[i])
	}
	return len(s.file.Records())
}

// writeBehind is the WAL writer.
func (s *pgServer) writeBehind() {
	s.writing = false
	end := s.write(s.behind)
	s.behind = s.behind[:0]
	if s.proc.Fsync(timerID(timerFlushed, 0, uint32(end))) {
		s.flushed(end)
	}
}

// durable reports whether records are where the options want them.
func (s *pgServer) durable(end int) bool {
	return end <= s.flushedTo && (end <= s.acked || !s.waitsForStandby())
}

// flushed goes on when the disk has records up to the given one.
func (s *pgServer) flushed(end int) {
	s.flushedTo = max(s.flushedTo, end)
	if s.standby {
		s.acknowledge()
		return
	}
	s.ship()
	s.release()
}

// release completes the commits that are durable now, in their order.
func (s *pgServer) release() {
	for len(s.waiting) > 0 && s.durable(s.waiting[0].end) {
		x := s.waiting[0].xact
		s.waiting = s.waiting[1:]
		s.engine.durable(x)
	}
}
