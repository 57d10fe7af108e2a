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

	Horizon     time.Duration // true time at which the run ends; 0: ten minutes
	EventBudget int64         // events after which the run ends; 0: ten million
	Trace       TraceMode

	// LateReplies lets a resumed process see a timeout before a reply that
	// arrived in time, as a choice. Off, what arrived before a deadline is
	// always delivered before that deadline fires.
	LateReplies bool

	Observer Observer // nil: nobody watches
}

// WallStart is what every node's wall clock shows at the start of a run:
// 2024-01-01 00:00:00 UTC.
const WallStart clock.Reading = 1_704_067_200_000_000_000

// Observer is told of what only somebody outside the universe can see.
type Observer interface {
	// ServerChanged follows each thing a server did. cause is the message it
	// handled, nil for a timer, a start or a closed connection.
	ServerChanged(p *Process, cause *Message)
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

	messages slab[Message]
	calls    slab[Call]

	running    *Task
	condemned  []*Task // killed, not yet unwound
	carriers   []*carrier
	foreground int // clients' main tasks that have not finished
	inFlight   int // messages that will still arrive by themselves
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
	w.foreground, w.inFlight = 0, 0
	w.queue.reset()
	w.net.Reset()
	w.trace.reset(cfg.Trace)
	w.faults.reset()
	w.messages.reset()
	w.calls.reset()
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
	for _, t := range w.tasks {
		w.condemn(t)
	}
	w.reap()
}

// Now returns true time. Programs must not use it.
func (w *World) Now() clock.Time { return w.now }

// Events returns how many events the loop has handled.
func (w *World) Events() int64 { return w.events }

// Failure returns the panic that ended the run, nil if there was none.
func (w *World) Failure() *Failure { return w.failure }

// Processes lists the processes in the order of their creation.
func (w *World) Processes() []*Process { return w.procs }

// Run starts every process and runs until an end. It may be called once after
// each Reset. The error is a mistake in the plan.
func (w *World) Run() (EndReason, error) {
	if w.started {
		return 0, fmt.Errorf("sim: Run called twice; Reset the world first")
	}
	w.started = true
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
		if w.foreground == 0 && w.inFlight == 0 {
			return EndDone
		}
		if len(w.queue.heap) == 0 {
			return w.idleEnd(horizon)
		}
		if w.queue.heap[0].at > horizon {
			w.now = horizon
			return EndHorizon
		}
		if w.events >= w.cfg.EventBudget {
			return EndBudget
		}
		w.events++
		var e event
		w.now, e = w.queue.pop()
		w.handle(e)
	}
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
func (w *World) handle(e event) {
	switch e.kind {
	case evWake:
		if t := e.task; !t.done && t.gen == e.gen && !t.closedGate().keep(e) {
			w.resume(t)
		}
	case evTimeout:
		if !e.call.done && !e.proc.closedGate().keep(e) {
			w.timeout(e.call)
		}
	case evArrive:
		w.arrive(e)
	case evTimer:
		if e.proc.incarnation == e.gen && !e.proc.closedGate().keep(e) {
			w.fireTimer(e.proc, e.id)
		}
	case evFsync:
		if e.proc.incarnation == e.gen && !e.proc.closedGate().keep(e) {
			w.fsyncDone(e)
		}
	case evFault:
		w.faults.strike(int(e.side))
	case evFaultEnd:
		w.faults.end(int(e.side))
	case evRestart:
		if e.proc.down && e.proc.incarnation == e.gen {
			e.proc.start()
		}
	case evKeepalive:
		w.keepalive(e)
	case evGiveUp:
		if c := e.conn; c.pipes[e.side].Broken() && !c.closed[e.side] {
			w.closeSide(c, int(e.side))
		}
	case evClosed:
		if !e.proc.closedGate().keep(e) {
			w.noticeClosed(e.conn, int(e.side))
		}
	}
	w.reap()
}

// fail ends the run with a program's panic.
func (w *World) fail(task string, value any) {
	if w.failure == nil {
		w.failure = &Failure{Task: task, Value: value, Stack: string(debug.Stack()), At: w.now}
	}
}

// gate stops what wants to reach a program. Several faults may close it.
type gate struct {
	closed int
	held   []event
}

// keep holds the event if there is a closed gate, and reports whether it did.
func (g *gate) keep(e event) bool {
	if g == nil {
		return false
	}
	g.held = append(g.held, e)
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
	for i, e := range held {
		if g.closed > 0 { // closed again by what was delivered
			g.held = append(g.held, held[i:]...)
			return
		}
		w.handle(e)
	}
}
