package models

import (
	"strconv"
	"time"

	"locklab/clock"
	"locklab/sim"
)

// Redis's own defaults (redis.conf 7.0).
const (
	replicaPriority  = 100
	replicaPing      = 10 * time.Second // repl-ping-replica-period
	replicaTimeout   = 60 * time.Second // repl-timeout
	replicaReconnect = time.Second      // replicationCron
	replicaReport    = time.Second      // replicationCron: REPLCONF ACK
)

// redisReplication is a server's part in a replica group. The stream is
// asynchronous: a primary answers its clients and tells its replicas later, in
// order. Offsets count changes; real Redis counts bytes.
type redisReplication struct {
	group     *redisGroup
	self      int
	following int // whom it replicates; itself: it is a primary. Its configuration file keeps that over a crash
	priority  int

	// history names the sequence of changes that offset counts (Redis: the
	// replication ID). Who was promoted remembers the history that its own
	// continues, and up to where, so that others can go on without a full copy.
	history, offset    int64
	earlier, earlierTo int64
	backlog            []redisEffect // the latest changes
	backlogFrom        int64         // the offset before the first of them

	links   []replicaLink // of a primary: to its replicas, by server
	up      *sim.Conn     // of a replica: to its primary; nil: down
	heard   clock.Reading // when the primary was last heard
	clients []*sim.Conn
}

// replicaLink is what a primary knows of a replica.
type replicaLink struct {
	conn  *sim.Conn // nil: not connected
	sent  int64
	acked int64
	queue []shipment
}

// shipment is a part of the stream that leaves later.
type shipment struct {
	upTo int64
	due  clock.Reading
}

// boot joins the group, at first with the data that all have, later with
// whatever the file had and a history of its own: replicas that come back get
// everything anew, even if it is nothing.
func (r *redisReplication) boot(s *redisServer, first bool) {
	s.db.replica = r.following != r.self
	r.offset, r.earlier, r.earlierTo = 0, 0, 0
	r.backlog, r.backlogFrom = nil, 0
	r.history = 1
	if !first {
		r.history = r.group.newHistory()
	}
	for i := range r.links {
		r.links[i] = replicaLink{}
	}
	r.up, r.clients = nil, nil
	s.db.log = s.db.log[:0]
	r.connect(s)
	r.nextBeat(s)
}

// connect asks the primary for the stream, from where this replica stands.
func (r *redisReplication) connect(s *redisServer) {
	if !s.db.replica || r.up != nil {
		return
	}
	r.up = s.proc.Connect(r.group.servers[r.following].proc)
	r.heard = s.proc.Mono()
	r.push(s, r.up, redisPeer{kind: peerSync, server: r.self, history: r.history, offset: r.offset})
}

func (r *redisReplication) push(s *redisServer, c *sim.Conn, m redisPeer) {
	body := s.env.peers.Get()
	*body = m
	s.proc.Push(c, body)
}

// hear handles a message of another server or of the monitor.
func (r *redisReplication) hear(s *redisServer, c *sim.Conn, m *redisPeer) {
	switch m.kind {
	case peerSync:
		r.admit(s, c, m)
	case peerAck:
		if l := &r.links[m.server]; l.conn == c {
			l.acked = m.offset
			s.heardAcks(s.proc)
		}
	case peerAsk:
		r.push(s, c, r.info(s))
	case peerPromote:
		r.promote(s)
		r.push(s, c, r.info(s))
	case peerFollow:
		r.follow(s, m.server)
	default:
		if c == r.up {
			r.stream(s, m)
		}
	}
}

// admit connects a replica: it goes on from its offset if this server still
// knows what came since, in the same history; else it gets everything.
func (r *redisReplication) admit(s *redisServer, c *sim.Conn, m *redisPeer) {
	if s.db.replica { // NOMASTERLINK: it will try again
		s.proc.Close(c)
		return
	}
	l := &r.links[m.server]
	*l = replicaLink{conn: c, sent: r.offset}
	answer := redisPeer{kind: peerFull, history: r.history, offset: r.offset}
	same := m.history == r.history || m.history == r.earlier && m.offset <= r.earlierTo
	if same && m.offset >= r.backlogFrom && m.offset <= r.offset {
		answer.kind, answer.offset, l.acked = peerContinue, m.offset, m.offset
		answer.effects = r.since(m.offset, r.offset)
	} else {
		answer.effects = s.db.snapshot()
	}
	r.push(s, c, answer)
	if len(s.waits) > 0 {
		r.push(s, c, redisPeer{kind: peerGetAck})
	}
}

// since returns the changes after one offset up to another.
func (r *redisReplication) since(from, to int64) []redisEffect {
	return r.backlog[from-r.backlogFrom : to-r.backlogFrom : to-r.backlogFrom]
}

// stream handles what the primary sends.
func (r *redisReplication) stream(s *redisServer, m *redisPeer) {
	r.heard = s.proc.Mono()
	switch m.kind {
	case peerFull:
		s.db.flush()
		for i := range m.effects {
			s.db.apply(&m.effects[i])
		}
		s.db.log = s.db.log[:0]
		if s.aof != nil {
			s.aof.file.Rewrite(s.db.snapshot())
		}
		r.history, r.offset, r.earlier = m.history, m.offset, 0
		r.backlog, r.backlogFrom = nil, m.offset
	case peerContinue:
		r.history = m.history
		r.applyStream(s, m)
	case peerStream:
		r.applyStream(s, m)
	case peerGetAck:
		r.report(s)
	}
}

// applyStream carries out changes. If some are missing before them (the fault
// drop-request can do that, TCP cannot), the link is of no use any more.
func (r *redisReplication) applyStream(s *redisServer, m *redisPeer) {
	if m.offset != r.offset {
		s.proc.Close(r.up)
		r.closed(s, r.up)
		return
	}
	for i := range m.effects {
		s.db.apply(&m.effects[i])
	}
	s.spread(nil)
}

// feed adds changes to the backlog and, on a primary, to the streams of the
// replicas. replication_lag is how late a change may leave, at most.
func (r *redisReplication) feed(s *redisServer, effects []redisEffect) {
	r.backlog = append(r.backlog, effects...)
	r.offset += int64(len(effects))
	for i := range r.links {
		l := &r.links[i]
		if l.conn == nil {
			continue
		}
		if r.group.env.Options.ReplicationLag == 0 {
			r.send(s, l, r.offset)
			continue
		}
		lag := time.Duration(s.proc.Choose(sim.PointExtra, 0, int64(r.group.env.Options.ReplicationLag)))
		due := s.proc.Mono().Add(lag)
		if n := len(l.queue); n > 0 {
			due = max(due, l.queue[n-1].due)
		}
		l.queue = append(l.queue, shipment{upTo: r.offset, due: due})
		s.proc.TimerIn(time.Duration(due-s.proc.Mono()), redisShip.of(uint64(i)))
	}
}

// ship sends what is due to a replica.
func (r *redisReplication) ship(s *redisServer, i int) {
	l := &r.links[i]
	for len(l.queue) > 0 && l.queue[0].due <= s.proc.Mono() {
		if l.conn != nil {
			r.send(s, l, l.queue[0].upTo)
		}
		l.queue = l.queue[1:]
	}
	if len(s.waits) > 0 && l.conn != nil {
		r.push(s, l.conn, redisPeer{kind: peerGetAck})
	}
}

func (r *redisReplication) send(s *redisServer, l *replicaLink, upTo int64) {
	if upTo <= l.sent {
		return
	}
	r.push(s, l.conn, redisPeer{kind: peerStream, history: r.history, offset: l.sent, effects: r.since(l.sent, upTo)})
	l.sent = upTo
}

// askAcks has the replicas say what they have, behind what was sent to them:
// else a WAIT would end with their next report.
func (r *redisReplication) askAcks(s *redisServer) {
	for i := range r.links {
		if l := &r.links[i]; l.conn != nil {
			r.push(s, l.conn, redisPeer{kind: peerGetAck})
		}
	}
}

// beat keeps links alive, and gives one up that has been silent too long. What
// a replica reports finds out that its primary has restarted without a word.
func (r *redisReplication) beat(s *redisServer) {
	for i := range r.links {
		if l := &r.links[i]; l.conn != nil {
			r.push(s, l.conn, redisPeer{kind: peerPing})
		}
	}
	switch {
	case r.up == nil:
	case s.proc.Mono() > r.heard.Add(replicaTimeout):
		s.proc.Close(r.up)
		r.closed(s, r.up)
	default:
		r.report(s)
	}
	r.nextBeat(s)
}

func (r *redisReplication) nextBeat(s *redisServer) {
	period := replicaPing
	if s.db.replica {
		period = replicaReport
	}
	s.proc.TimerIn(period, redisBeat.of(0))
}

// report tells the primary what the replica has.
func (r *redisReplication) report(s *redisServer) {
	r.push(s, r.up, redisPeer{kind: peerAck, server: r.self, offset: r.offset})
}

// closed notes that a link is over.
func (r *redisReplication) closed(s *redisServer, c *sim.Conn) {
	if c == r.up && s.db.replica {
		r.up = nil
		s.proc.TimerIn(replicaReconnect, redisConnect.of(0))
	}
	for i := range r.links {
		if r.links[i].conn == c {
			r.links[i] = replicaLink{}
		}
	}
	for i, known := range r.clients {
		if known == c {
			r.clients = append(r.clients[:i], r.clients[i+1:]...)
			break
		}
	}
}

// promote makes a replica a primary, with what it has: REPLICAOF NO ONE. From
// now on it removes expired keys itself, by its own clock.
func (r *redisReplication) promote(s *redisServer) {
	if !s.db.replica {
		return
	}
	r.hangUp(s)
	r.following = r.self
	r.earlier, r.earlierTo = r.history, r.offset
	r.history = r.group.newHistory()
	s.db.replica = false
	s.proc.Note(sim.Text("is promoted: it is the primary now"))
	s.expiry = 0
	s.engine.sweep(wallMillis(s.proc.Wall()))
	s.spread(nil)
	s.watchExpiry(s.proc)
}

// follow makes a server a replica of another: REPLICAOF, and CLIENT KILL TYPE
// normal, as Sentinel sends them. What it alone had is lost as soon as the
// primary's copy arrives.
func (r *redisReplication) follow(s *redisServer, whom int) {
	if whom == r.self || s.db.replica && whom == r.following {
		return
	}
	r.hangUp(s)
	r.following = whom
	s.db.replica = true
	s.stopWaits(s.proc)
	for _, c := range r.clients {
		s.proc.Close(c)
		s.engine.close(s.session(c))
	}
	r.clients = nil
	r.connect(s)
}

// hangUp ends the links to the others.
func (r *redisReplication) hangUp(s *redisServer) {
	if r.up != nil {
		s.proc.Close(r.up)
		r.up = nil
	}
	for i := range r.links {
		if c := r.links[i].conn; c != nil {
			s.proc.Close(c)
		}
		r.links[i] = replicaLink{}
	}
}

// info is what the server says of itself.
func (r *redisReplication) info(s *redisServer) redisPeer {
	return redisPeer{kind: peerInfo, server: r.self, primary: !s.db.replica, following: r.following, history: r.history, offset: r.offset}
}

// peerKind is what servers and the monitor say to each other.
type peerKind uint8

const (
	peerSync     peerKind = iota + 1 // replica: I am here, in this history (PSYNC)
	peerFull                         // primary: here is everything (FULLRESYNC)
	peerContinue                     // primary: here is what came since (CONTINUE)
	peerStream                       // primary: here is what changed
	peerGetAck                       // primary: what do you have?
	peerAck                          // replica: this
	peerPing                         // primary: I live
	peerAsk                          // monitor: PING and INFO
	peerInfo                         // server: the answer
	peerPromote                      // monitor: REPLICAOF NO ONE
	peerFollow                       // monitor: REPLICAOF
)

var peerNames = [...]string{"", "PSYNC", "FULLRESYNC", "CONTINUE", "stream", "GETACK", "ACK", "PING", "INFO?", "INFO", "REPLICAOF NO ONE", "REPLICAOF"}

// redisPeer is a message between servers of a group and their monitor.
type redisPeer struct {
	kind      peerKind
	server    int // who speaks; follow: whom to follow
	primary   bool
	following int
	history   int64
	offset    int64 // the offset that the sender has; full, continue, stream: the one before the changes
	effects   []redisEffect
}

// Digest implements sim.Payload.
func (m *redisPeer) Digest(d *sim.Digest) {
	d.Word(uint64(m.kind))
	d.Int(int64(m.server))
	d.Int(count(m.primary))
	d.Int(int64(m.following))
	d.Int(m.history)
	d.Int(m.offset)
	for i := range m.effects {
		m.effects[i].digest(d)
	}
}

// String implements sim.Payload.
func (m *redisPeer) String() string {
	s := peerNames[m.kind]
	switch m.kind {
	case peerSync, peerFull, peerContinue:
		s += " history " + number(m.history) + " offset " + number(m.offset)
	case peerStream:
		s = "offset " + number(m.offset)
	case peerAck:
		s += " " + number(m.offset)
	case peerFollow:
		s += " redis-" + strconv.Itoa(m.server+1)
	case peerInfo:
		s += map[bool]string{true: " primary", false: " replica"}[m.primary] + " offset " + number(m.offset)
	}
	for i := range m.effects {
		s += "; " + m.effects[i].String()
	}
	return s
}
