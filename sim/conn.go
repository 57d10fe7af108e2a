package sim

import (
	"errors"
	"fmt"
	"time"

	"locklab/clock"
	"locklab/network"
)

// ErrUnknown is the outcome of a call that did not get its reply: it may have
// taken effect, may still, or never will. It never means "no".
var ErrUnknown = errors.New("outcome unknown")

// The ways in which a call ends without a reply.
var (
	// ErrTimeout: no reply within the timeout. The connection is abandoned.
	ErrTimeout = fmt.Errorf("call timed out: %w", ErrUnknown)
	// ErrReset: the connection was reset while the call was out.
	ErrReset = fmt.Errorf("connection reset: %w", ErrUnknown)
	// ErrRefused: nobody listens there. The request was certainly not handled.
	ErrRefused = errors.New("connection refused")
	// ErrClosed: the connection was already closed. The request was not sent.
	ErrClosed = errors.New("connection closed")
)

const (
	clientSide = 0
	serverSide = 1
)

// Conn is a connection from a client to a server; the client may be a server
// itself. Bytes on it arrive in the order in which they were sent, in each
// direction.
type Conn struct {
	w       *World
	id      int32
	ends    [2]*Process // client, server
	pipes   [2]network.Pipe
	closed  [2]bool  // this side knows that it is over
	heldBy  [2]int32 // the fault (from 1) that holds this direction's bytes in the network
	silent  bool     // half-open: nothing passes any more and nobody is told
	reached bool     // the server's side has seen it
	calls   []*Call  // sent, neither answered nor given up
	// fewCalls is room for calls: most connections have one out at a time.
	fewCalls [2]*Call
	probers  [2]*network.Prober
	// late are the bytes that a suspended machine missed, and what has arrived
	// behind them since: TCP delivers it when the first has been sent again.
	late [2][]*Message

	// Session is the server's to use: what it keeps for this connection.
	Session any
}

// Client returns the process that opened the connection.
func (c *Conn) Client() *Process { return c.ends[clientSide] }

// Open reports whether the client's side still counts the connection as
// usable.
func (c *Conn) Open() bool { return !c.closed[clientSide] }

func (c *Conn) sideOf(p *Process) int {
	if c.ends[clientSide] == p {
		return clientSide
	}
	return serverSide
}

// Dial opens a connection. The handshake is not simulated: it travels with the
// first request.
func (t *Task) Dial(server *Process) *Conn { return t.proc.Connect(server) }

// Connect opens a connection from one server to another. Both speak with Push;
// what they are told of each other comes to Request, with Conn set.
func (p *Process) Connect(server *Process) *Conn {
	w := p.w
	c := w.connSlab.Get()
	c.w, c.id, c.ends = w, int32(len(w.conns)), [2]*Process{p, server}
	c.calls = c.fewCalls[:0]
	w.conns = append(w.conns, c)
	p.conns = append(p.conns, c)
	server.conns = append(server.conns, c)
	return c
}

type messageKind uint8

const (
	request messageKind = iota
	reply
	datagram
	fin   // the other side has closed
	reset // the other side knows of no such connection
)

// Message travels between two processes.
type Message struct {
	ID      uint32
	Op      int32 // the sending task's Op; a reply bears its request's
	handled int32 // the number under which a server began to handle it
	kind    messageKind
	dir     uint8 // on a connection: the sender's side
	served  bool  // the server has spent its time on it; see service
	From    *Process
	To      *Process
	Conn    *Conn // nil for a datagram
	Place   Place // where it was sent; a reply bears its request's place
	Body    Payload
	SentAt  clock.Time
	Request *Message // of a reply
	call    *Call
}

var controlNames = [...]Payload{fin: Text("FIN"), reset: Text("RST")}

// IsControl reports whether a message is a kernel's own: no program sent it.
func IsControl(body Payload) bool { return body == controlNames[fin] || body == controlNames[reset] }

// Call is a request on its way and its reply, once there is one.
type Call struct {
	task    *Task
	conn    *Conn
	request *Message
	reply   Payload
	err     error
	done    bool

	// Of one with a timeout: when, in which order among events of the same
	// time, and whose timeout comes after it (see timeoutLine).
	deadline clock.Reading
	seq      uint64
	behind   *Call
}

// Call sends a request and waits for its reply. Without one within timeout (by
// the node's monotonic clock; 0 waits for ever) it abandons the connection and
// returns ErrTimeout.
func (t *Task) Call(c *Conn, body Payload, timeout time.Duration) (Payload, error) {
	call := t.Start(c, body, timeout)
	return t.await(call)
}

// Start sends a request without waiting, so that several may be out at once.
func (t *Task) Start(c *Conn, body Payload, timeout time.Duration) *Call {
	p := t.effect()
	w := t.w
	call := w.calls.Get()
	call.task, call.conn = t, c
	if c.closed[clientSide] {
		call.done, call.err = true, ErrClosed
		w.emit(Event{Kind: EventEffect, Proc: p.Proc, Peer: -1, Place: p, Body: Text("send on a closed connection")})
		return call
	}
	m := w.newMessage(request, t.proc, c.ends[serverSide], body)
	m.Conn, m.Place, m.Op, m.call, m.dir = c, p, t.Op, call, clientSide
	call.request = m
	c.calls = append(c.calls, call)
	w.transmit(m)
	if w.cfg.Observer != nil {
		w.cfg.Observer.Sent(m)
	}
	if timeout > 0 {
		t.proc.setTimeout(call, timeout)
	}
	return call
}

// Await waits for the end of a call that Start began, in this task or in
// another of the process. One task at a time may wait for a call.
func (t *Task) Await(call *Call) (Payload, error) {
	t.effect()
	return t.await(call)
}

func (t *Task) await(call *Call) (Payload, error) {
	for !call.done {
		t.waiting, call.task = call, t
		t.park()
		t.waiting = nil
	}
	return call.reply, call.err
}

// Hangup closes a connection: a FIN travels behind the bytes already sent.
// Calls that are still out on it end with ErrReset.
func (t *Task) Hangup(c *Conn) {
	t.effect()
	t.w.hangup(c, clientSide)
	t.w.endCalls(c, ErrReset)
}

func (w *World) hangup(c *Conn, side int) {
	if c.closed[side] {
		return
	}
	c.closed[side] = true
	w.sendControl(c, side, fin)
}

// endCalls ends all calls that are out on a connection.
func (w *World) endCalls(c *Conn, err error) {
	for len(c.calls) > 0 {
		w.settle(c.calls[0], nil, err)
	}
}

// settle ends a call and wakes whoever waits for it.
func (w *World) settle(call *Call, body Payload, err error) {
	if call.done {
		return
	}
	call.done, call.reply, call.err = true, body, err
	c := call.conn
	for i, other := range c.calls {
		if other == call {
			c.calls = append(c.calls[:i], c.calls[i+1:]...)
			break
		}
	}
	t := call.task
	if t.done || t.waiting != call {
		return
	}
	if w.running != nil || t.closedGate() != nil {
		w.wake(t)
		return
	}
	w.resume(t)
}

// timeout ends a call whose deadline passed: the client abandons the
// connection, and with it the other calls that are out on it. The requests, if
// still on their way, may yet take effect.
func (w *World) timeout(call *Call) {
	m := call.request
	w.emit(Event{Kind: EventTimeout, Proc: m.From.id, Peer: m.To.id, Place: m.Place, Msg: m.ID})
	w.hangup(call.conn, clientSide)
	w.settle(call, nil, ErrTimeout)
	w.endCalls(call.conn, ErrReset)
}

// closeSide makes one side of a connection learn that it is over.
func (w *World) closeSide(c *Conn, side int) {
	if c.closed[side] {
		return
	}
	c.closed[side] = true
	p := c.ends[side]
	e := w.queue.push(w.now)
	e.kind, e.conn, e.side, e.proc, e.gen = evClosed, c, int8(side), p, p.incarnation
}

// noticeClosed tells the program on one side. A client's calls that are out
// end with err.
func (w *World) noticeClosed(c *Conn, side int, err error) {
	p := c.ends[side]
	if p.down {
		return
	}
	w.emit(Event{Kind: EventClosed, Proc: p.id, Peer: c.ends[1-side].id, A: int64(c.id)})
	if p.handler != nil {
		w.serving = p
		p.handler.Closed(p, c)
		w.changed(p, nil)
		return
	}
	w.endCalls(c, err)
	p.wakeReceiver()
}

// newMessage makes a message that is not yet sent.
func (w *World) newMessage(kind messageKind, from, to *Process, body Payload) *Message {
	m := w.messages.Get()
	m.ID = uint32(w.messages.used)
	m.kind, m.From, m.To, m.Body, m.SentAt = kind, from, to, body, w.now
	return m
}

// sendControl sends a FIN or RST from one side of a connection.
func (w *World) sendControl(c *Conn, side int, kind messageKind) {
	m := w.newMessage(kind, c.ends[side], c.ends[1-side], controlNames[kind])
	m.Conn, m.dir = c, uint8(side)
	m.From.sends++
	m.Place = Place{Proc: m.From.id, Phase: PhaseSend, Op: m.From.sends}
	w.transmit(m)
}

// transmit hands a message to the network. Nobody learns here what becomes of
// it.
func (w *World) transmit(m *Message) {
	w.inFlight++
	if w.tracing() {
		w.emit(Event{Kind: EventSend, Proc: m.From.id, Peer: m.To.id, Place: m.Place, Msg: m.ID, A: int64(m.Op), Body: m.Body})
	}
	if c := m.Conn; c != nil && c.heldBy[m.dir] > 0 {
		w.emit(Event{Kind: EventHeld, Proc: m.From.id, Peer: m.To.id, Place: m.Place, Msg: m.ID})
		w.faults.hold(int(c.heldBy[m.dir])-1, m)
		return
	}
	var extra time.Duration
	if len(w.faults.filters) > 0 {
		var gone bool
		if extra, gone = w.faults.filter(m); gone {
			return
		}
	}
	w.carry(m, m.latencyPoint(), extra)
}

func (m *Message) latencyPoint() Point {
	if m.kind == reply {
		return PointReplyLatency
	}
	return PointRequestLatency
}

// carry sends a message on its way through partitions and pipes, with a
// latency drawn at the given point and an extra one.
func (w *World) carry(m *Message, point Point, extra time.Duration) {
	if c := m.Conn; c != nil && (c.silent || c.pipes[m.dir].Broken()) {
		w.lose(m)
		return
	}
	fate, holder := w.net.Fate(m.From.node.id, m.To.node.id)
	switch fate {
	case network.Lost:
		w.lose(m)
		return
	case network.Held:
		w.emit(Event{Kind: EventHeld, Proc: m.From.id, Peer: m.To.id, Place: m.Place, Msg: m.ID})
		w.faults.hold(holder, m)
		return
	}
	at := w.now.Add(w.latency(m, point)).Add(extra)
	if m.Conn != nil {
		at = m.Conn.pipes[m.dir].Arrival(at)
	}
	e := w.queue.push(at)
	e.kind, e.msg = evArrive, m
}

// latency draws the one-way latency of a message at its place.
func (w *World) latency(m *Message, point Point) time.Duration {
	if m.From.node == m.To.node {
		return 0
	}
	p := m.Place
	p.Point = point
	return time.Duration(w.choose(p, int64(w.cfg.LatencyMin), int64(w.cfg.LatencyMax)))
}

// gone ends a message's way: nobody will handle it.
func (w *World) gone(m *Message) {
	w.inFlight--
	w.emit(Event{Kind: EventLost, Proc: m.From.id, Peer: m.To.id, Place: m.Place, Msg: m.ID})
}

// lose loses a message. On a connection the hole stays: nothing behind it will
// arrive, and after a quarter of an hour TCP gives up.
func (w *World) lose(m *Message) {
	w.gone(m)
	c := m.Conn
	if c == nil {
		return
	}
	if late := c.late[m.dir]; len(late) > 0 && late[0] == m {
		c.late[m.dir] = nil
		for _, behind := range late[1:] {
			w.gone(behind)
		}
	}
	if !c.pipes[m.dir].Broken() {
		c.pipes[m.dir].Break()
		e := w.queue.push(w.now.Add(network.GiveUp))
		e.kind, e.conn, e.side = evGiveUp, c, int8(m.dir)
	}
}

// arrive brings a message to the other machine's kernel and, if it is for the
// program, to the program.
func (w *World) arrive(e *event) {
	m := e.msg
	p, c := m.To, m.Conn
	n := p.node
	if c != nil && len(c.late[m.dir]) > 0 && !e.accepted {
		late := c.late[m.dir]
		if late[0] != m {
			c.late[m.dir] = append(late, m)
			return
		}
		if n.gate.closed == 0 { // the hole is filled
			c.late[m.dir] = nil
			for _, next := range late {
				w.arrive(&event{kind: evArrive, msg: next})
			}
			return
		}
	}
	switch {
	case n.gate.closed > 0:
		w.missed(n, e)
		return
	case n.down:
		w.lose(m)
		return
	case p.down || c != nil && c.closed[1-m.dir] && m.kind != fin && m.kind != reset:
		w.nobodyThere(m)
		return
	}
	if c != nil && !e.accepted {
		if m.dir == clientSide {
			c.reached = true
		}
		if pr := c.probers[1-m.dir]; pr != nil {
			pr.Heard(w.now)
		}
	}
	e.accepted = true
	if !p.gate.ifClosed().keep(e) {
		w.deliver(m)
	}
}

// missed is a message that reaches a suspended machine: its sender will send
// it again, unless the machine had it before it was suspended.
func (w *World) missed(n *Node, e *event) {
	if e.accepted {
		n.gate.keep(e)
		return
	}
	m := e.msg
	n.behind = append(n.behind, m)
	if c := m.Conn; c != nil && len(c.late[m.dir]) == 0 {
		c.late[m.dir] = append(c.late[m.dir], m)
	}
}

// nobodyThere is a kernel's answer to bytes for a connection it does not know:
// a reset. From then on it surely does not know it.
func (w *World) nobodyThere(m *Message) {
	w.inFlight--
	w.emit(Event{Kind: EventLost, Proc: m.From.id, Peer: m.To.id, Place: m.Place, Msg: m.ID, A: 1})
	c := m.Conn
	if c == nil {
		return
	}
	c.closed[1-m.dir] = true
	if m.kind != reset && !c.closed[m.dir] {
		w.sendControl(c, 1-int(m.dir), reset)
	}
}

// deliver hands a message to the program.
func (w *World) deliver(m *Message) {
	if w.takesTime(m) {
		w.serve(m)
		return
	}
	if m.kind == request || m.kind == datagram {
		w.handleMessage(m)
		return
	}
	w.inFlight--
	w.emitArrive(m)
	if m.kind == reply {
		w.settle(m.call, m.Body, nil)
		return
	}
	c, side := m.Conn, 1-int(m.dir)
	if c.closed[side] {
		return
	}
	c.closed[side] = true
	err := ErrReset
	if m.kind == reset && !c.reached { // a kernel without a listener said so
		err = ErrRefused
	}
	w.noticeClosed(c, side, err)
}

func (w *World) emitArrive(m *Message) {
	if w.tracing() {
		w.emit(Event{Kind: EventArrive, Proc: m.To.id, Peer: m.From.id, Place: m.Place, Msg: m.ID, A: int64(m.Op)})
	}
}

// Watch makes a server probe an idle client as the given keepalive settings
// say.
func (p *Process) Watch(c *Conn, k network.Keepalive) {
	side := c.sideOf(p)
	watched := c.probers[side] != nil
	c.probers[side] = &network.Prober{Keepalive: k}
	c.probers[side].Heard(p.w.now)
	if !watched {
		p.w.nextProbe(c, side)
	}
}

func (w *World) nextProbe(c *Conn, side int) {
	e := w.queue.push(c.probers[side].Due())
	e.kind, e.conn, e.side, e.proc = evKeepalive, c, int8(side), c.ends[side]
}

// keepalive looks whether the peer's kernel would still answer.
func (w *World) keepalive(e *event) {
	c, side := e.conn, int(e.side)
	if c.closed[side] || e.proc.node.gate.ifClosed().keep(e) {
		return
	}
	pr := c.probers[side]
	if pr.Due() > w.now { // something was heard meanwhile
		w.nextProbe(c, side)
		return
	}
	here, peer := c.ends[side].node, c.ends[1-side].node
	there, _ := w.net.Fate(here.id, peer.id)
	back, _ := w.net.Fate(peer.id, here.id)
	answered := !c.silent && there == network.Pass && back == network.Pass && !peer.down && peer.gate.closed == 0
	if pr.Probe(w.now, answered) || answered && c.closed[1-side] { // a kernel that knows of no such connection resets it
		w.closeSide(c, side)
		return
	}
	w.nextProbe(c, side)
}
