package sim

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"locklab/clock"
)

// Task is a sequential program inside a process. Its methods are the effects:
// the only places where it gives way, where a pause or crash can strike, and
// where it touches the universe. Between two effects nobody can tell one
// instant from another.
type Task struct {
	w       *World
	proc    *Process
	name    string
	body    func(*Task)
	carrier *carrier

	section int32
	phase   Phase
	last    Place // the latest effect

	// Op is attached to every message the task sends. The kernel only carries
	// it; whoever records a history says with it which operation a message
	// belongs to.
	Op int32

	gen        uint32 // the present wait; wakes of an earlier one are stale
	waiting    *Call
	gate       gate // closed while the task is stalled
	foreground bool
	started    bool
	dying      bool
	done       bool
}

// errKilled unwinds a dying task.
var errKilled = errors.New("sim: task killed")

// carrier is a coroutine that runs one task after another. A coroutine costs
// more to make than a task, so a world keeps its carriers.
type carrier struct {
	task  *Task
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

func newCarrier() *carrier {
	c := &carrier{}
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		for {
			c.run()
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return c
}

// run runs the task to its end, or until it is killed.
func (c *carrier) run() {
	t := c.task
	defer func() {
		t.done = true
		if r := recover(); r != nil && r != any(errKilled) {
			t.w.fail(t.name, r)
		}
	}()
	t.body(t)
	t.leave(true)
}

// newTask makes a task that begins at the present time, behind what is already
// due.
func (w *World) newTask(p *Process, name string, body func(*Task)) *Task {
	t := w.taskSlab.Get()
	t.w, t.proc, t.name, t.body = w, p, name, body
	w.tasks = append(w.tasks, t)
	p.tasks = append(p.tasks, t)
	w.wake(t)
	return t
}

// wake makes a parked task go on, through the queue.
func (w *World) wake(t *Task) {
	*w.queue.push(w.now) = t.wakeUp()
}

// wakeUp is the event that ends the task's present wait.
func (t *Task) wakeUp() event { return event{kind: evWake, task: t, proc: t.proc, gen: t.gen} }

// resume lets a task run until its next effect that waits.
func (w *World) resume(t *Task) {
	if t.carrier == nil {
		t.started = true
		if n := len(w.carriers); n > 0 {
			t.carrier = w.carriers[n-1]
			w.carriers = w.carriers[:n-1]
		} else {
			t.carrier = newCarrier()
		}
		t.carrier.task = t
	}
	t.gen++
	before := w.running
	w.running = t
	t.carrier.next()
	w.running = before
	if t.done {
		w.retire(t)
	}
}

// retire gives a finished task's carrier back.
func (w *World) retire(t *Task) {
	if t.carrier != nil {
		t.carrier.task = nil
		w.carriers = append(w.carriers, t.carrier)
		t.carrier = nil
	}
	if t.foreground {
		t.foreground = false
		w.foreground--
	}
}

// condemn kills a task. The running task unwinds at its next effect; the
// others are unwound by the loop, never from inside another task.
func (w *World) condemn(t *Task) {
	if t.done || t.dying {
		return
	}
	t.dying = true
	w.condemned = append(w.condemned, t)
}

// reap unwinds the condemned. An effect in a dying task panics at once, so a
// deferred retry loop ends as soon as it tries anything.
func (w *World) reap() {
	for i := 0; i < len(w.condemned); i++ { // unwinding may condemn more
		t := w.condemned[i]
		if t.done {
			continue
		}
		if !t.started {
			t.done = true
			w.retire(t)
			continue
		}
		w.resume(t)
	}
	w.condemned = w.condemned[:0]
}

// park gives way until something wakes the task.
func (t *Task) park() {
	t.carrier.yield(struct{}{})
	if t.dying {
		panic(errKilled)
	}
}

// closedGate returns the first closed gate between the universe and the task,
// nil if there is none.
func (t *Task) closedGate() *gate {
	if g := t.proc.closedGate(); g != nil {
		return g
	}
	if t.gate.closed > 0 {
		return &t.gate
	}
	return nil
}

// effect begins every effect: it numbers it, lets faults strike before it, and
// waits while the task is stopped.
func (t *Task) effect() Place {
	if t.dying {
		panic(errKilled)
	}
	t.leave(false)
	t.standStill()
	t.proc.steps++
	p := Place{Proc: t.proc.id, Section: t.section, Phase: t.phase, Op: t.proc.nextOp(t.section, t.phase), Point: PointBefore}
	if t.w.atPlace(t.proc, p) {
		t.standStill()
	}
	t.last = p
	return p
}

// standStill waits while the task is stopped, and unwinds it if it was killed.
func (t *Task) standStill() {
	for !t.dying {
		g := t.closedGate()
		if g == nil {
			return
		}
		e := t.wakeUp()
		g.keep(&e)
		t.park()
	}
	panic(errKilled)
}

// leave lets the faults strike that wait for the end of the latest effect, or
// of its phase.
func (t *Task) leave(phaseEnds bool) {
	if t.last.Op > 0 && len(t.proc.watchers) > 0 && !t.dying {
		t.w.faults.left(t.proc, t.last, phaseEnds)
	}
}

// Proc returns the process that the task runs in.
func (t *Task) Proc() *Process { return t.proc }

// World returns the universe, for whoever watches a run; programs must not
// look at it.
func (t *Task) World() *World { return t.w }

// sectionMax bounds the numbers of sections: places are counted by section.
const sectionMax = 1 << 20

// Enter says what the task does next: its section (from 1, to about a million;
// 0 outside sections) and phase. Operations are numbered within a section's phase, also
// when a section comes back to a phase.
func (t *Task) Enter(section int, phase Phase) {
	if t.section == int32(section) && t.phase == phase {
		return
	}
	if section < 0 || section > sectionMax {
		panic(fmt.Sprintf("sim: section %d is outside 0 to %d", section, sectionMax))
	}
	t.leave(true)
	t.last = Place{}
	t.section, t.phase = int32(section), phase
}

// Section returns the section that the task is in.
func (t *Task) Section() int { return int(t.section) }

// Phase returns the phase that the task is in.
func (t *Task) Phase() Phase { return t.phase }

// Now reads the node's monotonic clock.
func (t *Task) Now() clock.Reading { return t.readClock(onMonotonic) }

// Wall reads the node's wall clock.
func (t *Task) Wall() clock.Reading { return t.readClock(onWall) }

func (t *Task) readClock(kind clockKind) clock.Reading {
	p := t.effect()
	r := t.proc.node.clockOf(kind).Read(t.w.now)
	if t.w.tracing() {
		t.w.emit(Event{Kind: EventEffect, Proc: p.Proc, Peer: -1, Place: p, A: int64(r)})
	}
	return r
}

// Sleep waits for d by the node's monotonic clock. A negative d is 0.
func (t *Task) Sleep(d time.Duration) {
	p := t.effect()
	if t.w.tracing() {
		t.w.emit(Event{Kind: EventEffect, Proc: p.Proc, Peer: -1, Place: p, A: int64(d)})
	}
	t.sleep(max(d, 0))
}

func (t *Task) sleep(d time.Duration) {
	e := t.proc.schedule(evWake, onMonotonic, t.proc.node.mono.Read(t.w.now).Add(d))
	e.task, e.gen = t, t.gen
	t.park()
}

// Choose draws a number from lo to hi at the task's present place.
func (t *Task) Choose(point Point, lo, hi int64) int64 {
	p := t.effect()
	p.Point = point
	v := t.w.choose(p, lo, hi)
	if t.w.tracing() {
		t.w.emit(Event{Kind: EventEffect, Proc: p.Proc, Peer: -1, Place: p, A: v})
	}
	return v
}

// Unique draws a number that no other draw gives, as a random identifier of
// 63 bits does.
func (t *Task) Unique() int64 { return t.Choose(PointValue, 1, 1<<63-1) }

// Spawn starts another task in the same process, in the same section and the
// given phase. Its name is the process's and the given one: client-1.renewer.
func (t *Task) Spawn(name string, phase Phase, body func(*Task)) *Task {
	p := t.effect()
	child := t.w.newTask(t.proc, t.proc.name+"."+name, body)
	child.section, child.phase, child.Op = t.section, phase, t.Op
	if t.w.tracing() {
		t.w.emit(Event{Kind: EventEffect, Proc: p.Proc, Peer: -1, Place: p, Body: Text("spawn " + child.name)})
	}
	return child
}

// Kill ends another task of the same process. Killing a finished task, itself
// or a task of another process does nothing.
func (t *Task) Kill(other *Task) {
	t.effect()
	if other != t && other.proc == t.proc {
		t.w.condemn(other)
	}
}

// Done reports whether the task has ended.
func (t *Task) Done() bool { return t.done || t.dying }

// Note puts a remark into the trace, which a story tells after the process's
// name.
func (t *Task) Note(body Payload) {
	t.w.emit(Event{Kind: EventNote, Proc: t.proc.id, Peer: -1, Body: body})
}
