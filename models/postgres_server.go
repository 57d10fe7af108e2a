package models

import (
	"time"

	"locklab/clock"
	"locklab/network"
	"locklab/sim"
)

// pgServer is one PostgreSQL server on one node.
type pgServer struct {
	env    *Env
	proc   *sim.Process
	group  *pgGroup
	engine pgEngine
	conns  []*pgConn // by session, from 1
	ready  []*pgConn // their statement has ended: what comes next is still to be seen to
	pgLog
	pgStreaming
	watched int64 // the moment that a timer is set for; see pgGroup.watch
}

// pgConn is a session's connection.
type pgConn struct {
	session *pgSession
	conn    *sim.Conn
	request *sim.Message   // whose statement runs
	queue   []*sim.Message // sent while it does: the socket is not read
	gone    bool           // the connection is over, and the backend has not noticed
}

// pgGroup is a primary and perhaps its standby, as one design uses them.
type pgGroup struct {
	env     *Env
	servers []*pgServer
	primary *pgServer // whom the operator takes for it
	settled int       // records of the log whose transactions others can see
	latest  int32     // provenance: the operation that changed protected data last
	// watch returns the wall-clock microsecond behind which the design's Holder
	// answers otherwise although nothing happens; 0: never again.
	watch func() int64
}

// newPostgres adds a PostgreSQL server, and its standby if the options ask for
// one, each on a node of its own. The rows are there from the start.
func newPostgres(env *Env, rows ...pgChange) *pgGroup {
	g := &pgGroup{env: env, settled: len(rows)}
	names := []string{"postgres-1", "postgres-2"}
	if env.Options.Standby == NoStandby {
		names = names[:1]
	}
	for i := range rows {
		rows[i].commit = true
	}
	for i, name := range names {
		n := env.World.AddNode(name)
		s := &pgServer{env: env, group: g}
		s.file = sim.NewFile[pgChange](n)
		s.file.Rewrite(rows)
		s.standby = i > 0
		s.proc = n.AddServer(name, s)
		g.servers = append(g.servers, s)
	}
	g.primary = g.servers[0]
	return g
}

// processes lists the group's servers.
func (g *pgGroup) processes() []*sim.Process {
	out := make([]*sim.Process, len(g.servers))
	for i, s := range g.servers {
		out[i] = s.proc
	}
	return out
}

// table returns the contents of a table on the primary, nil while it is down.
func (g *pgGroup) table(def *PgTable) *pgTableData {
	if g.primary.proc.Down() {
		return nil
	}
	return g.primary.engine.table(def)
}

// Start implements sim.Handler: memory is empty, and recovery replays the log.
func (s *pgServer) Start(p *sim.Process) {
	tables := s.engine.tables[:0]
	s.engine = pgEngine{host: s, tables: tables, recovery: s.standby}
	s.engine.defaults[IdleInTransactionTimeout] = int64(s.env.Options.IdleInTransaction)
	s.conns, s.ready, s.watched = nil, s.ready[:0], 0
	s.startLog()
	s.startStreaming()
	s.tidy()
}

// Request implements sim.Handler.
func (s *pgServer) Request(p *sim.Process, m *sim.Message) {
	switch body := m.Body.(type) {
	case *pgRouted: // through a pooler
		m.Op = body.op
		s.statement(m)
	case *PgStatement:
		s.statement(m)
	default:
		s.streamed(m)
	}
	s.tidy()
}

// statement takes a statement from a connection. While the session is busy it
// stays in the socket.
func (s *pgServer) statement(m *sim.Message) {
	c := s.connOf(m.Conn)
	if c.request != nil {
		c.queue = append(c.queue, m)
		return
	}
	s.run(c, m)
}

func (s *pgServer) run(c *pgConn, m *sim.Message) {
	c.request = m
	q, routed := m.Body.(*PgStatement)
	if !routed {
		q = m.Body.(*pgRouted).statement
	}
	s.engine.run(c.session, q, m.Op)
}

// connOf returns the session of a connection; the first request opens it.
func (s *pgServer) connOf(conn *sim.Conn) *pgConn {
	if c, ok := conn.Session.(*pgConn); ok {
		return c
	}
	c := &pgConn{session: s.engine.connect(), conn: conn}
	conn.Session = c
	s.conns = append(s.conns, c)
	s.proc.Watch(conn, pgKeepalive(&s.env.Options))
	return c
}

// pgKeepalive are the settings tcp_keepalives_idle, _interval and _count; by
// default those of the operating system (manual 20.3.2).
func pgKeepalive(o *Options) network.Keepalive {
	if o.Keepalive == 0 {
		return network.LinuxKeepalive
	}
	return network.Keepalive{Idle: o.Keepalive, Interval: o.Keepalive / 3, Probes: 3}
}

// Closed implements sim.Handler. A backend learns that its client is gone when
// it next reads its socket: not while a query runs or waits
// (client_connection_check_interval is off by default).
func (s *pgServer) Closed(p *sim.Process, conn *sim.Conn) {
	if c, ok := conn.Session.(*pgConn); ok {
		c.gone = true
		if c.request == nil {
			s.ready = append(s.ready, c)
		}
	}
	s.streamClosed(conn)
	s.tidy()
}

// tidy does what the handler's work has left to do: sessions whose statement
// has ended read their sockets again.
func (s *pgServer) tidy() {
	for i := 0; i < len(s.ready); i++ { // which grows meanwhile
		c := s.ready[i]
		switch {
		case c.session.over || c.request != nil:
		case len(c.queue) > 0: // what came before the end is read before it
			m := c.queue[0]
			c.queue = c.queue[1:]
			s.run(c, m)
		case c.gone:
			s.sessionLost(c.session)
			s.engine.disconnect(c.session)
		}
	}
	s.ready = s.ready[:0]
	s.watchHolder()
}

// sessionLost notes whose locks end with a session that the network has ended.
func (s *pgServer) sessionLost(b *pgSession) {
	for _, a := range s.engine.advisory {
		if a.owner == b {
			for _, op := range a.grants {
				s.env.Rec.SessionLost(op)
			}
		}
	}
}

// watchHolder sets a timer for the moment at which a lease has run out. In
// PostgreSQL nothing happens then, but whoever watches wants the moment.
func (s *pgServer) watchHolder() {
	if s.group.watch == nil || s.group.primary != s {
		return
	}
	if next := s.group.watch(); next != 0 && next != s.watched {
		s.watched = next
		s.proc.TimerAtWall(clock.Reading((next+1)*int64(time.Microsecond)), timerID(timerWatch, 0, uint32(next)))
	}
}

// The timers of a server, told apart by their numbers: what for, which
// session, which turn. Up to alarmDeadlock they are a session's.
const (
	timerWatch = alarmDeadlock + 1 + iota
	timerFlushed
	timerWriter
	timerReceiver
)

func timerID(what pgAlarm, session int, turn uint32) uint64 {
	return uint64(what)<<56 | uint64(session)<<32 | uint64(turn)
}

// Timer implements sim.Handler.
func (s *pgServer) Timer(p *sim.Process, id uint64) {
	what, session, turn := pgAlarm(id>>56), int(id>>32&0xffffff), uint32(id)
	switch what {
	case timerWatch:
		if turn == uint32(s.watched) {
			s.watched = 0
		}
	case timerFlushed:
		s.flushed(int(turn))
	case timerWriter:
		s.writeBehind()
	case timerReceiver:
		s.startStreaming()
	default:
		if b := s.engine.sessions[session-1]; b != nil {
			s.engine.ring(b, what, turn)
		}
	}
	s.tidy()
}

// wall implements pgHost.
func (s *pgServer) wall() int64 { return int64(s.proc.Wall()) / int64(time.Microsecond) }

// alarm implements pgHost.
func (s *pgServer) alarm(b *pgSession, what pgAlarm, turn uint32, d time.Duration) {
	s.proc.TimerIn(d, timerID(what, b.id, turn))
}

// answer implements pgHost.
func (s *pgServer) answer(b *pgSession, q *PgStatement) {
	c := s.conns[b.id-1]
	s.decide(b, q)
	r := s.env.pgResults.Get()
	*r = b.result
	if routed, ok := c.request.Body.(*pgRouted); ok {
		s.proc.Push(c.conn, routed.answer(s.env, r, b))
	} else {
		s.proc.Reply(c.request, r)
	}
	c.request = nil
	if c.gone || len(c.queue) > 0 {
		s.ready = append(s.ready, c)
	}
}

// disconnected implements pgHost.
func (s *pgServer) disconnected(b *pgSession) { s.proc.Close(s.conns[b.id-1].conn) }

// decide tells the history what a statement that works on protected data has
// come to: a read took effect, or something was refused.
func (s *pgServer) decide(b *pgSession, q *PgStatement) {
	r := &b.result
	switch {
	case q.decides && r.Rows == 0, r.Code.failed() && q.Table != nil && q.Table.data:
		s.env.Rec.Decided(b.op, false, 0)
	case q.Verb == PgSelect && q.Table.data && !q.silent:
		s.env.Rec.Decided(b.op, true, r.Row[1])
	}
}

// settled implements pgHost: at its commit a transaction's writes take effect.
// One that failed has them refused; one whose client went away leaves them
// undecided, for nobody refused anything.
func (s *pgServer) settled(x *pgXact, commit bool) {
	if !commit && (x.session.stmt == nil || !x.session.result.Code.failed()) {
		return
	}
	for _, op := range x.ops {
		s.env.Rec.Decided(op, commit, 0)
	}
	if !commit || s.group.primary != s {
		return
	}
	for _, u := range x.tuples {
		if u.pending {
			s.group.settled++
		}
	}
	if n := len(x.ops); n > 0 {
		s.group.latest = x.ops[n-1]
	}
}
