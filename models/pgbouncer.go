package models

import (
	"fmt"
	"time"

	"locklab/network"
	"locklab/sim"
)

// pgRouted is a statement on its way between pooler and server, or its
// result. PostgreSQL ends every answer with its transaction status
// (ReadyForQuery), which the pooler reads.
type pgRouted struct {
	op        int32 // provenance: the operation that the client's statement belongs to
	statement *PgStatement
	result    *PgResult
	inXact    bool
}

// Digest implements sim.Payload.
func (r *pgRouted) Digest(d *sim.Digest) {
	if r.result != nil {
		r.result.Digest(d)
		d.Word(pgBit(r.inXact))
		return
	}
	r.statement.Digest(d)
}

// String implements sim.Payload.
func (r *pgRouted) String() string {
	if r.result != nil {
		return r.result.String()
	}
	return r.statement.String()
}

// answer is the result on its way back.
func (r *pgRouted) answer(env *Env, result *PgResult, b *pgSession) *pgRouted {
	a := env.pgRouted.Get()
	*a = pgRouted{op: r.op, result: result, inXact: b.xact != nil}
	return a
}

// pgBouncer is a pooler in transaction mode: a server connection belongs to a
// client from the first statement of a transaction to its end; outside of
// transactions every statement may get another one, and what one client leaves
// on it (a session advisory lock) the next one finds. server_reset_query is
// not run in this mode (pgbouncer.org/config, server_reset_query_always = 0).
type pgBouncer struct {
	env      *Env
	server   *sim.Process
	size     int            // default_pool_size
	backends []*poolBackend // connected
	idle     []*poolBackend // of those, the free ones: the last released is used first (server_round_robin = 0)
	waiting  []*poolClient  // for a backend, first come first served
	serial   int            // backends so far
}

// poolClient is a client's connection.
type poolClient struct {
	conn    *sim.Conn
	request *sim.Message // whose answer it waits for
	queue   []*sim.Message
	backend *poolBackend // that it is using
	before  *poolBackend // that it used last
}

// poolBackend is a connection to the server.
type poolBackend struct {
	conn   *sim.Conn
	client *poolClient
	before *sim.Process // whose statement ran on it last
	number int
	uses   uint32
}

// pgIdleTimeout is the default of server_idle_timeout: a backend that nobody
// has used for so long is closed, and what was left on it is gone.
const pgIdleTimeout = 600 * time.Second

// newPgBouncer adds a pooler before a server, on a node of its own.
func newPgBouncer(env *Env, server *sim.Process) *sim.Process {
	b := &pgBouncer{env: env, server: server, size: max(env.Options.PoolSize, 1)}
	return env.World.AddNode("pgbouncer").AddServer("pgbouncer", b)
}

// Start implements sim.Handler.
func (b *pgBouncer) Start(*sim.Process) {
	b.backends, b.idle, b.waiting = nil, nil, nil
}

// Request implements sim.Handler: a client's statement, or a backend's answer.
func (b *pgBouncer) Request(p *sim.Process, m *sim.Message) {
	if back := b.backendOf(m.Conn); back != nil {
		b.answered(p, back, m.Body.(*pgRouted))
		return
	}
	c, known := m.Conn.Session.(*poolClient)
	if !known {
		c = &poolClient{conn: m.Conn}
		m.Conn.Session = c
		p.Watch(m.Conn, network.LinuxKeepalive)
	}
	if c.request != nil {
		c.queue = append(c.queue, m)
		return
	}
	b.ask(p, c, m)
}

func (b *pgBouncer) backendOf(c *sim.Conn) *poolBackend {
	for _, back := range b.backends {
		if back.conn == c {
			return back
		}
	}
	return nil
}

// ask sends a client's statement on, as soon as there is a backend for it.
func (b *pgBouncer) ask(p *sim.Process, c *poolClient, m *sim.Message) {
	c.request = m
	if c.backend == nil && !b.assign(p, c) {
		b.waiting = append(b.waiting, c)
		return
	}
	b.forward(p, c)
}

// assign gives a client a backend: a free one, or a new one while the pool is
// not full.
func (b *pgBouncer) assign(p *sim.Process, c *poolClient) bool {
	var back *poolBackend
	switch n := len(b.idle); {
	case n > 0:
		back = b.idle[n-1]
		b.idle = b.idle[:n-1]
	case len(b.backends) < b.size:
		b.serial++
		back = &poolBackend{conn: p.Connect(b.server), number: b.serial}
		b.backends = append(b.backends, back)
	default:
		return false
	}
	back.uses++
	back.client, c.backend = c, back
	if user := c.request.From; back.before != user || c.before != back {
		h := b.env.pgHandovers.Get()
		*h = pgHandover{user: user, before: back.before, statement: c.request.Body.(*PgStatement), backend: back.number}
		p.Note(h)
		back.before, c.before = user, back
	}
	return true
}

// pgHandover is the pooler's remark that a client gets a backend that it had
// not before, or that another client has used since.
type pgHandover struct {
	user, before *sim.Process
	statement    *PgStatement
	backend      int
}

// Digest implements sim.Payload.
func (h *pgHandover) Digest(d *sim.Digest) {
	d.Int(int64(h.backend))
	h.statement.Digest(d)
}

// String implements sim.Payload.
func (h *pgHandover) String() string {
	text := fmt.Sprintf("runs %s's %s on its connection %d to the server", h.user.Name(), h.statement, h.backend)
	switch h.before {
	case nil:
		return text + ", a new one"
	case h.user:
		return text
	}
	return text + ", which " + h.before.Name() + " has used before"
}

func (b *pgBouncer) forward(p *sim.Process, c *poolClient) {
	r := b.env.pgRouted.Get()
	*r = pgRouted{op: c.request.Op, statement: c.request.Body.(*PgStatement)}
	p.Push(c.backend.conn, r)
}

// answered passes an answer on. Outside a transaction the backend is free
// again.
func (b *pgBouncer) answered(p *sim.Process, back *poolBackend, r *pgRouted) {
	c := back.client
	if c == nil {
		return
	}
	p.Reply(c.request, r.result)
	c.request = nil
	if !r.inXact {
		b.release(p, back)
	}
	if len(c.queue) > 0 {
		m := c.queue[0]
		c.queue = c.queue[1:]
		b.ask(p, c, m)
	}
}

// release takes a backend from its client, and gives it to the first who
// waits.
func (b *pgBouncer) release(p *sim.Process, back *poolBackend) {
	back.client.backend, back.client = nil, nil
	b.idle = append(b.idle, back)
	p.TimerIn(pgIdleTimeout, uint64(back.number)<<32|uint64(back.uses))
	b.serveWaiting(p)
}

func (b *pgBouncer) serveWaiting(p *sim.Process) {
	for len(b.waiting) > 0 && b.assign(p, b.waiting[0]) {
		c := b.waiting[0]
		b.waiting = b.waiting[1:]
		b.forward(p, c)
	}
}

// Timer implements sim.Handler: a backend may have been idle for too long.
func (b *pgBouncer) Timer(p *sim.Process, id uint64) {
	for _, back := range b.backends {
		if back.number == int(id>>32) && back.uses == uint32(id) && back.client == nil {
			b.drop(p, back)
			return
		}
	}
}

// drop closes a backend.
func (b *pgBouncer) drop(p *sim.Process, back *poolBackend) {
	p.Close(back.conn)
	b.backends = removed(b.backends, back)
	b.idle = removed(b.idle, back)
	b.serveWaiting(p)
}

func removed(list []*poolBackend, back *poolBackend) []*poolBackend {
	for i, other := range list {
		if other == back {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// Closed implements sim.Handler. A client that goes away in the middle of a
// statement or a transaction takes its backend with it; a backend that goes
// away takes its client.
func (b *pgBouncer) Closed(p *sim.Process, conn *sim.Conn) {
	if back := b.backendOf(conn); back != nil {
		if c := back.client; c != nil {
			c.backend, back.client = nil, nil
			p.Close(c.conn)
		}
		b.drop(p, back)
		return
	}
	c, known := conn.Session.(*poolClient)
	if !known {
		return
	}
	for i, w := range b.waiting {
		if w == c {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			break
		}
	}
	if back := c.backend; back != nil {
		c.backend, back.client = nil, nil
		b.drop(p, back)
	}
}
