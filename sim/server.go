package sim

import (
	"time"

	"locklab/clock"
)

// Handler is a server's program: it reacts to one thing at a time and never
// waits. A reply may be given later, also while handling something else.
type Handler interface {
	// Start boots the server, at the beginning and after a crash: its memory
	// is to be empty, its disk is as it survived.
	Start(p *Process)
	// Request handles a request (Conn set) or a peer's message (Conn nil).
	Request(p *Process, m *Message)
	// Timer is called for a timer, or for an fsync that did not complete at
	// once, with the number that the server gave it.
	Timer(p *Process, id uint64)
	// Closed tells that a connection is over, as far as this machine's kernel
	// knows.
	Closed(p *Process, c *Conn)
}

// Deed is something that befalls a server from outside its protocol: an
// operator's act, or memory pressure.
type Deed struct {
	Kind       FaultKind // Evict, Overwrite or Failover
	Key, Value string
	Mode       string
}

// Operable is a Handler to which deeds can be done.
type Operable interface {
	// Takes says in one line why the server does not know what such a deed
	// is, nil if it does. It is asked when the plan is checked.
	Takes(d *Deed) error
	// Take does it, and reports whether there was anything to do it to.
	Take(p *Process, d *Deed) bool
}

// handleMessage gives a request or datagram to the program of its receiver.
func (w *World) handleMessage(m *Message) {
	p := m.To
	if p.handler == nil {
		w.inFlight--
		w.emitArrive(m)
		p.receive(m)
		return
	}
	if m.handled == 0 {
		p.steps++
		m.handled = p.nextOp(0, PhaseRequest)
		w.reaching = m
		w.atPlace(p, m.handledAt())
		w.reaching = nil
		if p.down {
			w.gone(m)
			return
		}
		if g := p.closedGate(); g != nil {
			g.keep(&event{kind: evArrive, msg: m, accepted: true})
			return
		}
	}
	w.inFlight--
	w.emitArrive(m)
	w.serving = p
	p.handler.Request(p, m)
	w.changed(p, m)
	if len(p.watchers) > 0 {
		w.faults.left(p, m.handledAt(), true)
	}
}

// handledAt is the place at which a server handles a message.
func (m *Message) handledAt() Place {
	return Place{Proc: m.To.id, Phase: PhaseRequest, Op: m.handled, Point: PointApply}
}

// fireTimer runs a server's timer.
func (w *World) fireTimer(p *Process, id uint64) {
	w.emit(Event{Kind: EventTimer, Proc: p.id, Peer: -1, A: int64(id)})
	w.serving = p
	p.handler.Timer(p, id)
	w.changed(p, nil)
}

// changed follows whatever a handler did.
func (w *World) changed(p *Process, cause *Message) {
	w.serving = nil
	if w.cfg.Observer != nil {
		w.cfg.Observer.ServerChanged(p, cause)
	}
}

// atPlace lets the faults strike that wait for a place, and tells the
// observer. It reports whether anything can have happened.
func (w *World) atPlace(p *Process, at Place) bool {
	watched := len(p.watchers) > 0
	if w.cfg.Observer != nil {
		w.cfg.Observer.Place(at)
	} else if !watched {
		return false
	}
	if watched {
		w.faults.reached(p, at)
	}
	return true
}

// Reply answers a request. It does nothing when the client has hung up.
func (p *Process) Reply(m *Message, body Payload) {
	if p.down || m.Conn.closed[serverSide] {
		return
	}
	r := p.w.newMessage(reply, p, m.From, body)
	r.Conn, r.dir, r.Place, r.Op, r.call, r.Request = m.Conn, serverSide, m.Place, m.Op, m.call, m
	p.w.transmit(r)
}

// Send sends a datagram to another process: it may be lost, and later ones may
// overtake it.
func (p *Process) Send(to *Process, body Payload) {
	if p.down {
		return
	}
	p.sends++
	p.w.sendDatagram(p, to, body, Place{Proc: p.id, Phase: PhaseSend, Op: p.sends}, 0)
}

// Push sends the other end something that it did not ask for, in order with
// the replies on the same connection. A client finds it with Task.Recv, a
// server as a request.
func (p *Process) Push(c *Conn, body Payload) {
	side := c.sideOf(p)
	if p.down || c.closed[side] {
		return
	}
	p.sends++
	m := p.w.newMessage(datagram, p, c.ends[1-side], body)
	m.Conn, m.dir, m.Place = c, uint8(side), Place{Proc: p.id, Phase: PhaseSend, Op: p.sends}
	p.w.transmit(m)
}

// Close ends a connection from the server's own side. Its handler is not told.
func (p *Process) Close(c *Conn) { p.w.hangup(c, c.sideOf(p)) }

// Choose draws a number from lo to hi for a server.
func (p *Process) Choose(point Point, lo, hi int64) int64 {
	at := Place{Proc: p.id, Phase: PhaseTimer, Op: p.nextOp(0, PhaseTimer), Point: point}
	v := p.w.choose(at, lo, hi)
	if p.w.tracing() {
		p.w.emit(Event{Kind: EventEffect, Proc: p.id, Peer: -1, Place: at, A: v})
	}
	return v
}

// Mono reads the server's monotonic clock.
func (p *Process) Mono() clock.Reading { return p.node.mono.Read(p.w.now) }

// Wall reads the server's wall clock.
func (p *Process) Wall() clock.Reading { return p.node.wall.Read(p.w.now) }

// Note puts a remark into the trace, which a story tells after the process's
// name.
func (p *Process) Note(body Payload) {
	p.w.emit(Event{Kind: EventNote, Proc: p.id, Peer: -1, Body: body})
}

// TimerIn calls Timer(id) after d by the monotonic clock. A crash forgets it.
func (p *Process) TimerIn(d time.Duration, id uint64) {
	p.timer(onMonotonic, p.Mono().Add(d), id)
}

// TimerAtWall calls Timer(id) as soon as the wall clock shows at or later. A
// crash forgets it.
func (p *Process) TimerAtWall(at clock.Reading, id uint64) {
	p.timer(onWall, at, id)
}

func (p *Process) timer(on clockKind, deadline clock.Reading, id uint64) {
	if p.down {
		return
	}
	e := p.schedule(evTimer, on, deadline)
	e.id, e.gen = id, p.incarnation
}

// Send sends a datagram to another process.
func (t *Task) Send(to *Process, body Payload) {
	p := t.effect()
	t.w.sendDatagram(t.proc, to, body, p, t.Op)
}

func (w *World) sendDatagram(from, to *Process, body Payload, at Place, op int32) {
	m := w.newMessage(datagram, from, to, body)
	m.Place, m.Op = at, op
	w.transmit(m)
}

// receive puts a message into a client's inbox.
func (p *Process) receive(m *Message) {
	p.inbox = append(p.inbox, m)
	p.wakeReceiver()
}

func (p *Process) wakeReceiver() {
	if t := p.receiver; t != nil {
		p.receiver = nil
		p.w.wake(t)
	}
}

// Recv takes the next message from the process's inbox. It waits at most
// timeout (by the monotonic clock; 0 waits for ever) and then returns nil; also
// when it learns that a connection of the process is over, since what it waits
// for may have been to come on it. One task of a process at a time may wait.
func (t *Task) Recv(timeout time.Duration) *Message {
	t.effect()
	p := t.proc
	if len(p.inbox) == 0 {
		p.receiver = t
		if timeout > 0 {
			t.sleep(timeout)
			if len(p.inbox) > 0 {
				t.w.queue.bury()
			}
		} else {
			t.park()
		}
		p.receiver = nil
		if len(p.inbox) == 0 {
			return nil
		}
	}
	m := p.inbox[0]
	p.inbox = p.inbox[1:]
	return m
}
