package models

import (
	"errors"
	"fmt"
	"time"

	"locklab/sim"
)

// Standby says whether a PostgreSQL primary has a standby, and whether commits
// wait for it.
type Standby uint8

// The kinds of standbys.
const (
	NoStandby    Standby = iota
	AsyncStandby         // streams what is committed, a little later
	SyncStandby          // a commit waits until the standby has flushed it (synchronous_standby_names)
)

// pgStreaming is a server's part in streaming replication. Only the log is
// replicated: a standby knows nothing of the primary's sessions and locks, and
// grants advisory locks of its own (manual 27.2.5 and 27.4.3).
type pgStreaming struct {
	standby  bool
	receiver *sim.Conn // a standby's connection to its primary
	sender   *sim.Conn // a primary's connection from its standby
	sent     int       // records that the primary has sent on it
	applied  int       // records that the standby has replayed
}

// pgStart asks a primary for its log from a position on.
type pgStart struct{ from int }

// pgRecords carries a part of the log.
type pgRecords struct {
	from int
	log  []pgChange
}

// pgAck says up to where the standby has flushed.
type pgAck struct{ to int }

// Digest implements sim.Payload.
func (r *pgStart) Digest(d *sim.Digest) { d.Int(int64(r.from)) }

// String implements sim.Payload.
func (r *pgStart) String() string { return fmt.Sprintf("START_REPLICATION %d", r.from) }

// Digest implements sim.Payload.
func (r *pgRecords) Digest(d *sim.Digest) {
	d.Int(int64(r.from))
	for i := range r.log {
		c := &r.log[i]
		d.Text(c.table.Name)
		d.Word(pgBit(c.deleted) | pgBit(c.commit)<<1)
		for _, v := range c.row {
			d.Int(v)
		}
	}
}

// String implements sim.Payload.
func (r *pgRecords) String() string {
	return fmt.Sprintf("WAL %d to %d", r.from, r.from+len(r.log))
}

// Digest implements sim.Payload.
func (r *pgAck) Digest(d *sim.Digest) { d.Int(int64(r.to)) }

// String implements sim.Payload.
func (r *pgAck) String() string { return fmt.Sprintf("flushed %d", r.to) }

// pgReceiverRetry is the default of wal_retrieve_retry_interval.
const pgReceiverRetry = 5 * time.Second

// startStreaming connects a standby to its primary.
func (s *pgServer) startStreaming() {
	s.sender, s.receiver = nil, nil
	if !s.standby || s.group.primary == s {
		return
	}
	s.receiver = s.proc.Connect(s.group.primary.proc)
	s.proc.Push(s.receiver, &pgStart{from: len(s.file.Records())})
}

// streamClosed is the end of a connection between servers. The standby tries
// again.
func (s *pgServer) streamClosed(c *sim.Conn) {
	switch c {
	case s.sender:
		s.sender = nil
	case s.receiver:
		s.receiver = nil
		s.proc.TimerIn(pgReceiverRetry, timerID(timerReceiver, 0, 0))
	}
}

// streamed handles what the other server says.
func (s *pgServer) streamed(m *sim.Message) {
	switch body := m.Body.(type) {
	case *pgStart:
		s.sender, s.sent = m.Conn, body.from
		s.ship()
	case *pgRecords:
		if m.Conn == s.receiver {
			s.receive(body)
		}
	case *pgAck:
		s.acked = max(s.acked, body.to)
		s.release()
	}
}

// waitsForStandby reports whether commits wait for the standby: also while it
// is away, and when it has been promoted and nobody has told this server.
func (s *pgServer) waitsForStandby() bool {
	return s.env.Options.Standby == SyncStandby && s.group.servers[0] == s && !s.standby
}

// ship sends the standby what is flushed.
func (s *pgServer) ship() {
	if s.sender == nil || s.sent >= s.flushedTo {
		return
	}
	log := s.file.Records()[s.sent:s.flushedTo]
	s.proc.Push(s.sender, &pgRecords{from: s.sent, log: append([]pgChange(nil), log...)})
	s.sent = s.flushedTo
}

// receive writes, flushes and replays a part of the log.
func (s *pgServer) receive(r *pgRecords) {
	if r.from != len(s.file.Records()) {
		return // sent twice, across a reconnection
	}
	end := s.write(r.log)
	s.applied += s.engine.replay(s.file.Records()[s.applied:])
	if s.proc.Fsync(timerID(timerFlushed, 0, uint32(end))) {
		s.flushed(end)
	}
}

func (s *pgServer) acknowledge() {
	if s.receiver != nil {
		s.proc.Push(s.receiver, &pgAck{to: s.flushedTo})
	}
}

// Takes implements sim.Operable.
func (s *pgServer) Takes(d *sim.Deed) error {
	switch {
	case d.Kind != sim.Failover:
		return fmt.Errorf("PostgreSQL knows no %s; it does failover", d.Kind)
	case len(s.group.servers) < 2:
		return errors.New("it has no standby to promote; set standby to async or sync")
	}
	return nil
}

// Take implements sim.Operable: the operator promotes the standby as it
// stands. The old primary lives on untold, or is shut out.
func (s *pgServer) Take(_ *sim.Process, d *sim.Deed) bool {
	g := s.group
	next := g.servers[1]
	if g.primary == next || next.proc.Down() {
		return false
	}
	old := g.primary
	next.promote()
	if d.Mode == "demoted" {
		old.stepDown()
	}
	return true
}

// promote ends recovery. Sessions that were connected stay, with the locks
// that they had taken here.
func (s *pgServer) promote() {
	if s.receiver != nil {
		s.proc.Close(s.receiver)
	}
	s.proc.Note(sim.Text("is promoted and takes writes; sessions and advisory locks were never replicated"))
	s.standby, s.engine.recovery, s.receiver = false, false, nil
	s.group.primary = s
	s.settleRest()
	s.tidy()
}

// stepDown ends every session and takes no writes any more: the server waits
// to be rewound.
func (s *pgServer) stepDown() {
	s.standby, s.waiting = true, nil
	if s.proc.Down() {
		return
	}
	s.engine.recovery = true
	for _, c := range s.conns {
		if !c.session.over {
			s.engine.terminate(c.session, PgAdminShutdown)
		}
	}
	s.tidy()
}
