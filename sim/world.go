// Package sim is the kernel: one event loop, cooperative tasks, processes on
// nodes with clocks and disks, connections between them, a plan of faults, and
// a trace of all that happened. It knows nothing of locks.
//
// A run is a function of its configuration and its chooser: no map iteration,
// host clock, pointer value or global random source influences it.
package sim

import (
	"fmt"
	"runtime/debug"
	"time"

	"locklab/clock"
	"locklab/network"
)

// Config sets up a run. The zero Config has seed 0, no latency and the default
// guards.
type Config struct {
	Seed    uint64
	Chooser Chooser // nil: Seeded(Seed)
	Plan    Plan    // resolved: every span fixed

	LatencyMin, LatencyMax time.Duration // one way, between two nodes

	// ServiceTime is how long (true time) a server is busy with each request of
	// a client; 0: no time at all. It works on ServiceWorkers of them at once;
	// 0: on one.
	ServiceTime    time.Duration
	ServiceWorkers int

	Horizon     time.Duration // true time at which the run ends; 0: ten minutes
	EventBudget int64         // events after which the run ends; 0: ten million
	Trace       TraceMode

	// LateReplies lets a resumed process see a timeout before a reply that
	// arrived in time, as a choice. Off, what arrived before a deadline is
	// always delivered before that deadline fires.
	LateReplies bool

	Observer Observer // nil: nobody watches
	// Pulse, if set, is called now and then, so that the host can tell a long
	// run from a stuck one.
	Pulse func()
}

// pulseEvents is how many events pass between two calls of Pulse.
const pulseEvents = 1 << 16

// WallStart is what every node's wall clock shows at the start of a run:
// 2024-01-01 00:00:00 UTC.
const WallStart clock.Reading = 1_704_067_200_000_000_000

// Observer is told of what only somebody outside the universe can see.
type Observer interface {
	// ServerChanged follows each thing a server did. cause is the message it
	// handled, nil for a timer, a start or a closed connection.
	ServerChanged(p *Process, cause *Message)
	// Sent is called when a task has handed a request to the network.
	Sent(m *Message)
	// Crashed follows the loss of a process's memory.
	Crashed(p *Process)
	// Place is called at every place at which a fault could strike.
	Place(p Place)
}

// EndReason says why a run ended.
type EndReason uint8

// The ends of a run.
const (
	EndDone     EndReason = iota // every client finished and no message is on its way
	EndHorizon                   // the time limit came first
	EndBudget                    // the event budget came first
	EndDeadlock                  // nothing can happen any more and a client has not finished
	EndPanic                     // a program panicked
)

var endNames = []string{"done", "horizon", "budget", "deadlock", "panic"}

// String returns the reason as a word.
func (r EndReason) String() string { return endNames[r] }

// World is one simulated universe. It may be reset and used again; it is not
// safe for use by several goroutines.
type World struct {
	cfg     Config
	chooser Chooser
	now     clock.Time
	queue   queue
	net     network.Net
	nodes   []*Node
	procs   []*Process
	conns   []*Conn
	tasks   []*Task
	trace   trace
	faults  injector

	messages Slab[Message]
	calls    Slab[Call]
	connSlab Slab[Conn]
	taskSlab Slab[Task]
	nodeSlab Slab[Node]
	spare    []*Process // of earlier runs, for their memory

	running    *Task
	serving    *Process // whose handler is at work
	reaching   *Message // what a server is about to handle, at its place
	condemned  []*Task  // killed, not yet unwound
	carriers   []*carrier
	foreground int // clients' main tasks that have not finished
	inFlight   int // messages sent that are neither handled nor lost
	events     int64
	failure    *Failure
	started    bool
}

// Failure is a panic in a simulated program.
type Failure struct {
	Task  string
	Value any
	Stack string
	At    clock.Time
}

// Error describes the panic in one line.
func (f *Failure) Error() string {
	return fmt.Sprintf("panic in %s at %s: %v", f.Task, time.Duration(f.At), f.Value)
}

// NewWorld returns an empty world. Close it when it is no longer needed.
func NewWorld(cfg Config) *World {
	w := &World{}
	w.Reset(cfg)
	return w
}

// Reset empties the world for another run.
func (w *World) Reset(cfg Config) {
	w.killAll()
	if cfg.Horizon == 0 {
		cfg.Horizon = 10 * time.Minute
	}
	if cfg.EventBudget == 0 {
		cfg.EventBudget = 10_000_000
	}
	w.cfg = cfg
	w.chooser = cfg.Chooser
	if w.chooser == nil {
		w.chooser = Seeded(cfg.Seed)
	}
	w.chooser = cfg.Plan.Override(w.chooser)
	w.now, w.events, w.failure, w.started = 0, 0, nil, false
	w.foreground, w.inFlight, w.serving, w.reaching = 0, 0, nil, nil
	w.queue.reset()
	w.net.Reset()
	w.trace.reset(cfg.Trace)
	w.faults.reset()
	w.messages.Reset()
	w.calls.Reset()
	w.connSlab.Reset()
	w.taskSlab.Reset()
	w.nodeSlab.Reset()
	w.spare = append(w.spare, w.procs...)
	w.nodes, w.procs = w.nodes[:0], w.procs[:0]
	w.conns, w.tasks, w.condemned = w.conns[:0], w.tasks[:0], w.condemned[:0]
}

// Close unwinds every task and frees their coroutines.
func (w *World) Close() {
	w.killAll()
	for _, c := range w.carriers {
		c.stop()
	}
	w.carriers = nil
}

func (w *World) killAll() {
	w.running = nil // a task that left by runtime.Goexit took the loop with it
	for _, t := range w.tasks {
		w.condemn(t)
	}
	w.reap()
}

// Now returns true time. Programs must not use it.
func (w *World) Now() clock.Time { return w.now }

// Events returns how many events the loop has handled.
func (w *World) Events() int64 { return w.events }

// Reaching returns the message that a server is about to handle: for an
// Observer whose Place was called with a server's place. Nil otherwise.
func (w *World) Reaching() *Message { return w.reaching }

// Failure returns the panic that ended the run, nil if there was none.
func (w *World) Failure() *Failure { return w.failure }

// Processes lists the processes in the order of their creation.
func (w *World) Processes() []*Process { return w.procs }

// Run starts every process and runs until an end. It may be called once after
// each Reset. The error is a mistake in the plan. A panic in a program ends
// the run and becomes its Failure; runtime.Goexit in a program (t.FailNow) goes
// on through Run and ends its caller.
func (w *World) Run() (reason EndReason, err error) {
	if w.started {
		return 0, fmt.Errorf("sim: Run called twice; Reset the world first")
	}
	w.started = true
	defer func() {
		if r := recover(); r != nil {
			w.fail(w.atWork(), r)
			reason, err = EndPanic, nil
		}
	}()
	if err := w.faults.arm(w, w.cfg.Plan); err != nil {
		return 0, err
	}
	for _, p := range w.procs {
		p.start()
		if w.failure != nil {
			return EndPanic, nil
		}
	}
	return w.loop(), nil
}

// loop handles events until an end.
func (w *World) loop() EndReason {
	horizon := clock.Time(w.cfg.Horizon)
	for {
		if w.failure != nil {
			return EndPanic
		}
		if w.foreground == 0 && (w.inFlight == 0 || w.inFlight == w.stuck()) {
			return EndDone
		}
		if w.queue.empty() {
			return w.idleEnd(horizon)
		}
		if w.queue.next() > horizon {
			w.now = horizon
			return EndHorizon
		}
		if w.events >= w.cfg.EventBudget {
			return EndBudget
		}
		w.events++
		if w.events%pulseEvents == 0 && w.cfg.Pulse != nil {
			w.cfg.Pulse()
		}
		e := w.queue.pop()
		w.now = e.at
		w.handle(w.queue.event(e))
		w.queue.release(e)
	}
}

// stuck counts the messages that nothing will ever set free: those that a
// fault without an end holds.
func (w *World) stuck() int {
	n := w.faults.stuck()
	for _, p := range w.procs {
		if p.gate.endless == 0 {
			continue
		}
		n += len(p.service.waiting)
		for i := range p.gate.held {
			if p.gate.held[i].carriesMessage() {
				n++
			}
		}
	}
	return n
}

// idleEnd tells a deadlock from clients that a fault stopped for ever.
func (w *World) idleEnd(horizon clock.Time) EndReason {
	for _, t := range w.tasks {
		if t.foreground && !t.done && t.closedGate() == nil {
			return EndDeadlock
		}
	}
	w.now = horizon
	return EndHorizon
}

// handle does what an event says. Everything that a program would notice goes
// through the gates of its node, its process and its task: what finds one
// closed waits there, in order.
func (w *World) handle(e *event) {
	switch e.kind {
	case evWake:
		if t := e.task; !t.done && t.gen == e.gen && !t.closedGate().keep(e) {
			w.resume(t)
		}
	case evTimeout:
		e.proc.nextTimeout(e)
		if e.call.live() && !e.proc.closedGate().keep(e) {
			w.timeout(e.call)
		}
	case evArrive:
		w.arrive(e)
	case evTimer:
		if e.proc.incarnation == e.gen && !e.proc.closedGate().keep(e) {
			w.fireTimer(e.proc, e.id)
		}
	case evFault:
		w.faults.strike(int(e.id))
	case evFaultEnd:
		w.faults.end(int(e.id))
	case evRestart:
		if e.proc.down && e.proc.incarnation == e.gen && !e.proc.node.gate.ifClosed().keep(e) {
			w.faults.lastChange = w.now // the crash has healed
			e.proc.start()
		}
	case evKeepalive:
		w.keepalive(e)
	case evGiveUp:
		if c := e.conn; c.pipes[e.side].Broken() && !c.closed[e.side] {
			w.closeSide(c, int(e.side))
		}
	case evClosed:
		if e.proc.incarnation == e.gen && !e.proc.closedGate().keep(e) {
			w.noticeClosed(e.conn, int(e.side), ErrReset)
		}
	case evDeed:
		if e.proc.incarnation == e.gen && !e.proc.closedGate().keep(e) {
			w.faults.deed(int(e.id))
		}
	case evServed:
		switch {
		case e.proc.incarnation != e.gen:
			w.gone(e.msg)
		case !e.proc.closedGate().keep(e):
			w.served(e.msg)
		}
	}
	if len(w.condemned) > 0 {
		w.reap()
	}
}

// fail ends the run with a program's panic.
func (w *World) fail(task string, value any) {
	if w.failure == nil {
		w.failure = &Failure{Task: task, Value: value, Stack: string(debug.Stack()), At: w.now}
	}
}

// atWork names the program that the loop is executing outside any task.
func (w *World) atWork() string {
	if w.serving != nil {
		return w.serving.name
	}
	return "the kernel, the chooser or the observer"
}

// gate stops what wants to reach a program. Several faults may close it.
type gate struct {
	closed  int
	endless int // how many of those that closed it will never open it
	held    []event
}

// ifClosed returns the gate, or nil if it is open.
func (g *gate) ifClosed() *gate {
	if g.closed > 0 {
		return g
	}
	return nil
}

// keep holds the event if there is a closed gate, and reports whether it did.
func (g *gate) keep(e *event) bool {
	if g == nil {
		return false
	}
	g.held = append(g.held, *e)
	return true
}

// open undoes one closing and, when it was the last, delivers what waited, in
// the order in which it came.
func (w *World) open(g *gate) {
	if g.closed--; g.closed > 0 {
		return
	}
	held := g.held
	g.held = nil
	for i := range held {
		if g.closed > 0 { // closed again by what was delivered
			g.held = append(g.held, held[i:]...)
			return
		}
		w.handle(&held[i])
	}
}
