package models

import (
	"fmt"
	"time"

	"locklab/clock"
	"locklab/sim"
)

// Sentinel's own periods (sentinel.c of Redis 7.0).
const (
	monitorPing      = time.Second      // also of INFO, which Sentinel sends every 10 s, and every second once the primary is down
	monitorReconnect = 15 * time.Second // a link that does not answer is not given up sooner
	monitorRole      = 8 * time.Second  // a replica that says it is the primary is left alone for so long
	monitorFailover  = 180 * time.Second
	monitorFresh     = 5 * time.Second // a replica that was not heard for so long is not promoted
)

// MonitorName is the process that watches a replica group.
const MonitorName = "sentinel"

// redisMonitor watches a replica group and fails over, as the Sentinels of a
// group do together. It is one process: its quorum always agrees with itself,
// since all its votes see the network from one place, and no election among
// them takes time. That is the group of Sentinels that stands together on one
// side of every partition.
type redisMonitor struct {
	group     *redisGroup
	proc      *sim.Process
	watched   []watchedRedis
	promoting int // whom it has told to become the primary; -1: nobody
	since     clock.Reading
}

// watchedRedis is what the monitor knows of a server.
type watchedRedis struct {
	conn      *sim.Conn
	connected clock.Reading
	asked     bool          // a question is out
	unheard   clock.Reading // since when it has not answered; 0: it has
	heard     clock.Reading // when it last did; 0: never
	info      redisPeer
	wrong     clock.Reading // since when it has said that it is what it should not be; 0: it is right
}

func newRedisMonitor(g *redisGroup) *redisMonitor {
	m := &redisMonitor{group: g, watched: make([]watchedRedis, len(g.servers))}
	m.proc = g.env.World.AddNode(MonitorName).AddServer(MonitorName, m)
	return m
}

// Start implements sim.Handler. Whom it names as the primary stands in its
// configuration file.
func (m *redisMonitor) Start(p *sim.Process) {
	clear(m.watched)
	m.promoting = -1
	m.look(p)
}

// Timer implements sim.Handler.
func (m *redisMonitor) Timer(p *sim.Process, _ uint64) { m.look(p) }

// look asks everybody how they are and acts on what it knows.
func (m *redisMonitor) look(p *sim.Process) {
	now := p.Mono()
	for i := range m.watched {
		m.ask(p, i, now)
	}
	if m.promoting >= 0 && (m.down(m.promoting, now) || now > m.since.Add(monitorFailover)) {
		m.promoting = -1
	}
	if m.promoting < 0 && m.down(m.group.primary, now) {
		m.failover(p, now)
	}
	p.TimerIn(monitorPing, 0)
}

func (m *redisMonitor) ask(p *sim.Process, i int, now clock.Reading) {
	w := &m.watched[i]
	dead := w.unheard != 0 && now > w.unheard.Add(m.group.env.Options.DownAfter/2) && now > w.connected.Add(monitorReconnect)
	if w.conn != nil && dead {
		p.Close(w.conn)
		w.conn = nil
	}
	if w.conn == nil {
		w.conn, w.connected, w.asked = p.Connect(m.group.servers[i].proc), now, false
	}
	if w.asked {
		return
	}
	w.asked = true
	if w.unheard == 0 {
		w.unheard = now
	}
	m.push(p, i, redisPeer{kind: peerAsk})
}

func (m *redisMonitor) push(p *sim.Process, i int, message redisPeer) {
	if m.watched[i].conn == nil {
		return
	}
	body := m.group.env.peers.Get()
	*body = message
	p.Push(m.watched[i].conn, body)
}

// down reports whether a server has not answered for down_after. The quorum of
// the monitor's votes agrees at once.
func (m *redisMonitor) down(i int, now clock.Reading) bool {
	w := &m.watched[i]
	return w.unheard != 0 && now > w.unheard.Add(m.group.env.Options.DownAfter)
}

// Request implements sim.Handler: a client asks for the primary, or a server
// answers.
func (m *redisMonitor) Request(p *sim.Process, msg *sim.Message) {
	if c, ok := msg.Body.(*RedisCommand); ok {
		r := m.group.env.replies.Get()
		*r = redisFail(fmt.Sprintf("ERR unknown command '%s'", c.Verb))
		if c.Verb == RedisGetPrimary {
			*r = redisBulk(RedisValue{text: m.group.servers[m.group.primary].proc.Name()})
		}
		p.Reply(msg, r)
		return
	}
	info := msg.Body.(*redisPeer)
	w := &m.watched[info.server]
	if w.conn != msg.Conn {
		return
	}
	now := p.Mono()
	w.asked, w.unheard, w.heard, w.info = false, 0, now, *info
	if info.server == m.promoting && info.primary {
		m.promoted(p)
	}
	m.correct(p, info.server, now)
}

// correct tells a server that has been in the wrong role for a while what it
// should be: an old primary that is back, or one that missed a failover.
func (m *redisMonitor) correct(p *sim.Process, i int, now clock.Reading) {
	w := &m.watched[i]
	primary := m.group.primary
	if i == primary || i == m.promoting || !w.info.primary && w.info.following == primary {
		w.wrong = 0
		return
	}
	if w.wrong == 0 {
		w.wrong = now
	}
	patience := monitorFailover
	if w.info.primary {
		patience = monitorRole
	}
	if m.watched[primary].info.primary && !m.down(primary, now) && now > w.wrong.Add(patience) {
		m.push(p, i, redisPeer{kind: peerFollow, server: primary})
	}
}

// failover promotes the best replica that answers.
func (m *redisMonitor) failover(p *sim.Process, now clock.Reading) {
	best := -1
	for i := range m.watched {
		w, r := &m.watched[i], m.group.servers[i].repl
		fresh := w.heard != 0 && now <= w.heard.Add(monitorFresh) && !m.down(i, now)
		if i == m.group.primary || !fresh || w.info.primary || r.priority == 0 {
			continue
		}
		if best < 0 || better(r, m.group.servers[best].repl, w.info.offset, m.watched[best].info.offset) {
			best = i
		}
	}
	if best < 0 {
		return // it tries again in a second
	}
	m.promoting, m.since = best, now
	m.push(p, best, redisPeer{kind: peerPromote})
}

// promoted ends a failover: clients are told the new primary, and so are the
// other replicas. The old primary learns of it when it is back.
func (m *redisMonitor) promoted(p *sim.Process) {
	old, best := m.group.primary, m.promoting
	m.named(best)
	for i := range m.watched {
		if i != old && i != best {
			m.push(p, i, redisPeer{kind: peerFollow, server: best})
		}
	}
}

// named notes who is the primary now.
func (m *redisMonitor) named(i int) {
	m.group.primary, m.promoting = i, -1
	for j := range m.watched {
		m.watched[j].wrong = 0
	}
}

// Closed implements sim.Handler.
func (m *redisMonitor) Closed(p *sim.Process, c *sim.Conn) {
	for i := range m.watched {
		if w := &m.watched[i]; w.conn == c {
			w.conn, w.asked = nil, false
			if w.unheard == 0 {
				w.unheard = p.Mono()
			}
		}
	}
}

// Takes implements sim.Operable.
func (m *redisMonitor) Takes(d *sim.Deed) error {
	if d.Kind != sim.Failover {
		return fmt.Errorf("it keeps no keys, so %s needs one of the servers that it watches", d.Kind)
	}
	return nil
}

// Take implements sim.Operable.
func (m *redisMonitor) Take(_ *sim.Process, d *sim.Deed) bool {
	return m.group.failover(d.Mode == "demoted")
}
