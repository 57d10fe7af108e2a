package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"locklab/clock"
	"locklab/network"
)

// injector carries out a plan.
type injector struct {
	w      *World
	armed  []armedFault
	counts [milestoneCount][]int32 // happenings so far, by kind and process
	// filters are the message faults in force, in the order in which they
	// struck.
	filters    []int32
	lastChange clock.Time // when the last fault struck or healed
}

// faultState is where a fault stands.
type faultState uint8

const (
	waiting faultState = iota
	active
	over
)

// armedFault is a fault of the plan with its names resolved.
type armedFault struct {
	Fault
	state faultState
	proc  *Process // victim, or sender of a link; nil for a node that has several
	peer  *Process // receiver of a link, nil for any
	node  *Node
	from  []network.Node // partition: both sides
	to    []network.Node

	place   PlacePattern // Before or After, and whose
	placeOf *Process
	waitFor *Process // Trigger.When.Who or Trigger.Step.Proc
	until   *Process

	struck, healed clock.Time

	left        int    // message faults: how many more; -1 for all of the window
	hits        int    // messages and connections
	idle        bool   // it struck, but its victim was not there
	since       uint32 // messages with a higher number were sent under it
	incarnation uint32
	task        *Task // stall: whom it stopped
	held        []*Message
}

func (in *injector) reset() {
	*in = injector{armed: in.armed[:0], counts: in.counts, filters: in.filters[:0]}
}

// arm resolves the plan's names and sets its triggers.
func (in *injector) arm(w *World, plan Plan) error {
	in.w = w
	if len(plan.Faults) == 0 {
		return nil
	}
	for k := range in.counts {
		in.counts[k] = slices.Grow(in.counts[k][:0], len(w.procs))[:len(w.procs)]
		clear(in.counts[k])
	}
	for i := range plan.Faults {
		a, err := w.resolveAt(plan, i)
		if err != nil {
			return err
		}
		in.armed = append(in.armed, a)
		in.watch(int32(i))
	}
	return nil
}

// CheckPlan reports the first mistake in a plan for the processes that the
// world has now: a *FaultError.
func (w *World) CheckPlan(plan Plan) error {
	for i := range plan.Faults {
		if _, err := w.resolveAt(plan, i); err != nil {
			return err
		}
	}
	return nil
}

// resolveAt checks fault i of a plan and finds whom it names.
func (w *World) resolveAt(plan Plan, i int) (armedFault, error) {
	f := &plan.Faults[i]
	if err := f.Validate(); err != nil {
		err.(*FaultError).Index = i
		return armedFault{}, err
	}
	a, err := w.resolve(f)
	if err != nil {
		err.Index = i
		return armedFault{}, err
	}
	return a, nil
}

// watch puts a fault where its trigger will find it.
func (in *injector) watch(i int32) {
	a := &in.armed[i]
	switch {
	case a.placeOf != nil:
		a.placeOf.watchers = append(a.placeOf.watchers, i)
	case a.Trigger.Step.N > 0:
		a.waitFor.watchers = append(a.waitFor.watchers, i)
	case a.Trigger.When.Kind != MilestoneNone: // Reach finds it
	default:
		e := in.w.queue.push(clock.Time(a.Trigger.At.Fixed))
		e.kind, e.id = evFault, uint64(i)
	}
}

// resolve finds the processes and nodes that a fault names.
func (w *World) resolve(f *Fault) (armedFault, *FaultError) {
	a := armedFault{Fault: *f}
	var err *FaultError
	proc := func(field, name string) *Process {
		for _, p := range w.procs {
			if p.name == name {
				return p
			}
		}
		if err == nil {
			err = &FaultError{Field: field, Err: fmt.Errorf("no process is called %q; this run has %s", name, w.names())}
		}
		return nil
	}
	node := func(field, name string) *Node {
		for _, n := range w.nodes {
			if n.name == name {
				return n
			}
		}
		if p := proc(field, name); p != nil {
			return p.node
		}
		return nil
	}
	nodes := func(field string, names []string) (out []network.Node) {
		for _, name := range names {
			if n := node(field, name); n != nil {
				out = append(out, n.id)
			}
		}
		return out
	}
	on := f.On[0]
	switch f.Kind {
	case Pause:
		a.proc = proc("on", on)
	case Evict, Overwrite, Failover:
		if a.proc = proc("on", on); a.proc != nil && err == nil {
			err = a.takes()
		}
	case Stall:
		name, _, _ := strings.Cut(on, ".")
		a.proc = proc("on", name)
	case Crash:
		if f.Mode == "node" {
			a.node = node("on", on)
		} else {
			a.proc = proc("on", on)
		}
	case Freeze, ClockStep, ClockRate, ClockOffset, FsyncStall, LoseUnsynced, RestoreSnapshot:
		a.node = node("on", on)
	case Partition:
		a.from, a.to = nodes("on", f.On), nodes("from", f.From)
	default: // messages and cut: a link, or all of a sender
		from, to, link := strings.Cut(on, "->")
		a.proc = proc("on", strings.TrimSpace(from))
		if link {
			a.peer = proc("on", strings.TrimSpace(to))
		}
	}
	t := &f.Trigger
	switch {
	case !t.Before.IsZero():
		a.place, a.placeOf = t.Before, proc("before", t.Before.Proc)
	case !t.After.IsZero():
		a.place, a.placeOf = t.After, proc("after", t.After.Proc)
	case t.When.Kind != MilestoneNone:
		a.waitFor = proc("after", t.When.Who)
	case t.Step.N > 0:
		a.waitFor = proc("step", t.Step.Proc)
	}
	if f.Until.Kind != MilestoneNone {
		a.until = proc("until", f.Until.Who)
	}
	return a, err
}

func (w *World) names() string {
	var names []string
	for _, p := range w.procs {
		names = append(names, p.name)
	}
	if len(names) > 12 {
		names = append(names[:12], "...")
	}
	return strings.Join(names, ", ")
}

// matches reports whether the place is one that the pattern means.
func (p PlacePattern) matches(at Place) bool {
	return (p.Section == 0 || p.Section == at.Section) && (p.Phase == PhaseNone || p.Phase == at.Phase) &&
		(p.Op == 0 || p.Op == at.Op)
}

// reached lets the faults strike that wait for a place before its effect.
func (in *injector) reached(p *Process, at Place) {
	for _, i := range p.watchers {
		a := &in.armed[i]
		if a.state != waiting {
			continue
		}
		byPlace := a.placeOf == p && !a.Trigger.Before.IsZero() && a.place.matches(at)
		byStep := a.waitFor == p && a.Trigger.Step.N > 0 && a.Trigger.Step.N == p.steps
		if byPlace || byStep {
			in.strike(int(i))
		}
	}
}

// left lets the faults strike that wait for an effect to be over, or for its
// phase to be.
func (in *injector) left(p *Process, at Place, phaseEnds bool) {
	for _, i := range p.watchers {
		a := &in.armed[i]
		if a.state != waiting || a.placeOf != p || a.Trigger.After.IsZero() || !a.place.matches(at) {
			continue
		}
		if a.place.Op > 0 || phaseEnds {
			in.strike(int(i))
		}
	}
}

// Reach counts a happening for the faults that wait for it, to begin or to
// end. Ends go through the queue: they may let other tasks run.
func (w *World) Reach(kind MilestoneKind, p *Process) {
	in := &w.faults
	if len(in.armed) == 0 {
		return
	}
	in.counts[kind][p.id]++
	for i := range in.armed {
		a := &in.armed[i]
		when := a.Trigger.When
		if a.state == waiting && when.Kind == kind && a.waitFor == p && in.happened(when, p) {
			in.strike(i)
		}
		if a.state == active && a.Until.Kind == kind && a.until == p && in.happened(a.Until, p) {
			in.endAt(i, w.now)
		}
	}
}

func (in *injector) happened(m Milestone, p *Process) bool {
	return in.counts[m.Kind][p.id] >= m.N
}

func (in *injector) endAt(i int, at clock.Time) {
	e := in.w.queue.push(at)
	e.kind, e.id = evFaultEnd, uint64(i)
}

// strike begins a fault.
func (in *injector) strike(i int) {
	a, w := &in.armed[i], in.w
	if a.state != waiting {
		return
	}
	a.state = active
	a.struck, a.healed = w.now, w.now
	in.lastChange = w.now
	w.emit(Event{Kind: EventFault, Proc: a.victim(), Peer: -1, A: int64(i + 1), Body: Text(a.Kind.String())})
	if !in.begin(i, a) { // nothing lasts
		a.state = over
		return
	}
	switch {
	case !a.For.IsZero():
		in.endAt(i, w.now.Add(a.For.Fixed))
	case a.until != nil && in.happened(a.Until, a.until):
		in.endAt(i, w.now)
	case a.until != nil:
		in.endAt(i, w.now.Add(a.AtMost.Fixed))
	}
}

func (a *armedFault) victim() ProcID {
	switch {
	case a.proc != nil:
		return a.proc.id
	case a.node != nil && len(a.node.procs) > 0:
		return a.node.procs[0].id
	}
	return -1
}

// begin does what a fault does first, and reports whether anything of it
// lasts.
func (in *injector) begin(i int, a *armedFault) bool {
	w := in.w
	switch a.Kind {
	case Pause:
		if a.idle = a.proc.down; a.idle {
			return false
		}
		a.incarnation = a.proc.incarnation
		a.proc.gate.closed++
		if a.endless() {
			a.proc.gate.endless++
		}
		w.emit(Event{Kind: EventPaused, Proc: a.proc.id, Peer: -1})
	case Stall:
		return in.stall(a)
	case Freeze:
		in.freeze(a)
	case Crash:
		in.crash(a)
		return false
	case ClockStep:
		a.node.stepWall(a.By.Fixed)
		return false
	case ClockOffset:
		a.node.stepWall(a.By.Fixed)
	case ClockRate:
		a.node.changeRate(a.Rate)
	case DropRequest, DropReply, Delay, Duplicate, Reorder:
		in.filters = append(in.filters, int32(i))
		a.since = uint32(w.messages.used)
		a.left = a.Count
		holds := a.Kind == Delay && a.By.IsZero()
		if bounded := !a.For.IsZero() || a.until != nil; a.left == 0 && bounded && !holds {
			a.left = -1
		} else if a.left == 0 {
			a.left = 1
		}
	case Partition:
		mode := network.Drop
		if a.Mode == "hold" {
			mode = network.Hold
		}
		w.net.Partition(i, a.from, a.to, mode, a.OneWay)
	case Cut:
		in.cut(a)
		return false
	case FsyncStall:
		a.node.disk.stalled++
	case LoseUnsynced:
		a.node.disk.loseUnsynced()
		return false
	case RestoreSnapshot:
		in.restore(a)
		return false
	case Evict, Overwrite, Failover:
		// Through the queue: the fault may strike while the server is at work.
		if a.idle = a.proc.down; !a.idle {
			e := w.queue.push(w.now)
			e.kind, e.proc, e.gen, e.id = evDeed, a.proc, a.proc.incarnation, uint64(i)
		}
		return false
	}
	return true
}

// asDeed is what the fault does to a server from outside its protocol.
func (f *Fault) asDeed() Deed { return Deed{Kind: f.Kind, Key: f.Key, Value: f.Value, Mode: f.Mode} }

// takes refuses a deed that its victim does not understand.
func (a *armedFault) takes() *FaultError {
	d := a.asDeed()
	h, ok := a.proc.handler.(Operable)
	if !ok {
		return &FaultError{Field: "on", Err: fmt.Errorf("%s knows no %s; %s needs a server that keeps keys or replicas", a.proc.name, d.Kind, d.Kind)}
	}
	if err := h.Takes(&d); err != nil {
		return &FaultError{Field: "on", Err: fmt.Errorf("%s: %w", a.proc.name, err)}
	}
	return nil
}

// deed does what the plan wants done to a server.
func (in *injector) deed(i int) {
	a, w := &in.armed[i], in.w
	d := a.asDeed()
	w.serving = a.proc
	a.idle = !a.proc.handler.(Operable).Take(a.proc, &d)
	w.changed(a.proc, nil)
}

// end heals a fault.
func (in *injector) end(i int) {
	a, w := &in.armed[i], in.w
	if a.state != active {
		return
	}
	a.state = over
	a.healed = w.now
	in.lastChange = w.now
	w.emit(Event{Kind: EventFaultOver, Proc: a.victim(), Peer: -1, A: int64(i + 1), Body: Text(a.Kind.String())})
	switch a.Kind {
	case Pause:
		if a.proc.incarnation == a.incarnation && !a.proc.down {
			w.emit(Event{Kind: EventResumed, Proc: a.proc.id, Peer: -1})
			w.lateReplies(a.proc)
			w.open(&a.proc.gate)
		}
	case Stall:
		if !a.task.done {
			w.emit(Event{Kind: EventResumed, Proc: a.proc.id, Peer: -1, Body: Text(a.task.name)})
			w.open(&a.task.gate)
		}
	case Freeze:
		in.thaw(a)
	case ClockOffset:
		a.node.stepWall(-a.By.Fixed)
	case ClockRate:
		a.node.changeRate(-a.Rate)
	case DropRequest, DropReply, Delay, Duplicate, Reorder:
		in.unfilter(int32(i))
		in.release(a)
	case Partition:
		w.net.Heal(i)
		in.release(a)
	case FsyncStall:
		a.node.disk.endStall()
	}
}

// release sends the held messages on their way, in order.
func (in *injector) release(a *armedFault) {
	held := a.held
	a.held = nil
	for _, m := range held {
		if c := m.Conn; c != nil {
			c.heldBy[m.dir] = 0
		}
	}
	for _, m := range held {
		in.w.carry(m, m.latencyPoint(), 0)
	}
}

// hold keeps a message until the fault that holds it ends. What follows on the
// same connection waits behind it.
func (in *injector) hold(i int, m *Message) {
	if c := m.Conn; c != nil {
		c.heldBy[m.dir] = int32(i + 1)
	}
	in.armed[i].held = append(in.armed[i].held, m)
}

// endless reports whether nothing will end the fault once it has struck.
func (a *armedFault) endless() bool { return a.For.IsZero() && a.until == nil }

// stuck counts the messages that are held for ever.
func (in *injector) stuck() int {
	n := 0
	for i := range in.armed {
		if a := &in.armed[i]; a.state == active && a.endless() {
			n += len(a.held)
		}
	}
	return n
}

// stall stops one task: the first living one with the given name.
func (in *injector) stall(a *armedFault) bool {
	for _, t := range a.proc.tasks {
		if t.name == a.On[0] && !t.done && !t.dying {
			a.task = t
			t.gate.closed++
			in.w.emit(Event{Kind: EventPaused, Proc: a.proc.id, Peer: -1, Body: Text(t.name)})
			return true
		}
	}
	a.idle = true
	return false
}

func (in *injector) freeze(a *armedFault) {
	n, w := a.node, in.w
	n.gate.closed++
	if a.Monotonic == "stops" {
		n.mono.Stop(w.now)
	}
	if a.Wall == "behind" {
		n.wall.Stop(w.now)
	}
	w.emit(Event{Kind: EventPaused, Proc: a.victim(), Peer: -1, Body: Text("node " + n.name)})
	w.queue.retime(n, w.now)
}

func (in *injector) thaw(a *armedFault) {
	n, w := a.node, in.w
	if n.gate.closed == 1 { // the last of several suspensions
		n.mono.Start(w.now)
		n.wall.Start(w.now)
		w.queue.retime(n, w.now)
	}
	w.emit(Event{Kind: EventResumed, Proc: a.victim(), Peer: -1, Body: Text("node " + n.name)})
	n.thaw()
}

// crash takes a process, or a node with all its processes and whatever its
// disk had not yet made durable.
func (in *injector) crash(a *armedFault) {
	if a.node == nil {
		if a.idle = a.proc.down; !a.idle {
			a.proc.crash(false)
			in.restart(a, a.proc)
		}
		return
	}
	n, w := a.node, in.w
	n.down = true
	for _, p := range n.procs {
		p.crash(true)
		p.stayDown() // also one that a process crash had left to come up
		in.restart(a, p)
	}
	w.discard(n.gate.held)
	n.gate.held = n.gate.held[:0]
	behind := n.behind
	n.behind = nil
	for _, m := range behind {
		w.lose(m)
	}
	n.disk.loseUnsynced()
}

func (in *injector) restart(a *armedFault, p *Process) {
	if !a.Restart.IsZero() {
		p.restartAfter(a.Restart.Fixed)
	}
}

// restore is an operator's work: stop the node's servers, put an older disk
// in, start them again at once.
func (in *injector) restore(a *armedFault) {
	for _, p := range a.node.procs {
		p.crash(false)
	}
	// None is older than the run: before it, the design was being set up.
	a.node.disk.restore(max(in.w.now.Add(-a.By.Fixed), 0))
	for _, p := range a.node.procs {
		p.restartAfter(0)
	}
}

// cut ends the connections of a link: with a reset, of which both sides learn,
// or silently.
func (in *injector) cut(a *armedFault) {
	for _, c := range a.proc.conns {
		if a.peer != nil && c.ends[clientSide] != a.peer && c.ends[serverSide] != a.peer {
			continue
		}
		if c.closed[clientSide] && c.closed[serverSide] {
			continue
		}
		a.hits++
		if a.Mode == "silent" {
			c.silent = true
			continue
		}
		for side := range c.ends {
			c.pipes[side].Break()
			in.w.closeSide(c, side)
		}
	}
}

func (n *Node) stepWall(by time.Duration) {
	n.wall.Step(n.w.now, by)
	n.clockChanged("wall clock steps by " + by.String())
}

// changeRate adds to the rate of the node's clocks: several faults may work on
// them at once.
func (n *Node) changeRate(by int64) {
	n.rate += by
	n.wall.SetRate(n.w.now, n.rate)
	n.mono.SetRate(n.w.now, n.rate)
	n.clockChanged(fmt.Sprintf("clocks run %d parts per billion fast", n.rate))
}

func (n *Node) clockChanged(how string) {
	var id ProcID = -1
	if len(n.procs) > 0 {
		id = n.procs[0].id
	}
	n.w.emit(Event{Kind: EventClock, Proc: id, Peer: -1, Body: Text(how)})
	n.w.queue.retime(n, n.w.now)
}

// filter applies the message faults in force. It returns an extra delay, and
// whether the message is gone (lost, or held by a fault).
func (in *injector) filter(m *Message) (extra time.Duration, gone bool) {
	for k := 0; k < len(in.filters); k++ {
		i := in.filters[k]
		a := &in.armed[i]
		if !a.hitsMessage(m) {
			continue
		}
		a.hits++
		if a.left > 0 {
			if a.left--; a.left == 0 {
				in.unfilter(i)
				k--
			}
		}
		in.lastChange = in.w.now
		switch a.Kind {
		case DropRequest, DropReply:
			in.drop(m)
			return 0, true
		case Delay:
			if a.By.IsZero() {
				in.w.emit(Event{Kind: EventHeld, Proc: m.From.id, Peer: m.To.id, Place: m.Place, Msg: m.ID})
				in.hold(int(i), m)
				return 0, true
			}
			extra = plus(extra, a.By.Fixed)
		case Duplicate:
			second := in.w.messages.Get()
			*second = *m
			in.w.inFlight++
			in.w.carry(second, PointExtra, extra)
		case Reorder: // slow enough that the next overtakes it
			c := &in.w.cfg
			extra = plus(extra, plus(c.LatencyMax, c.LatencyMax-c.LatencyMin+time.Nanosecond))
		}
	}
	return extra, false
}

// drop loses one message as a proxy between two machines would: the
// connection itself lives, and a FIN still travels.
func (in *injector) drop(m *Message) { in.w.gone(m) }

// plus adds lengths of time that are not negative, saturating.
func plus(a, b time.Duration) time.Duration { return time.Duration(clock.Time(a).Add(b)) }

// hitsMessage reports whether a message fault applies to a message.
func (a *armedFault) hitsMessage(m *Message) bool {
	if a.left == 0 || m.ID <= a.since || m.kind == fin || m.kind == reset {
		return false
	}
	from, to := m.From, m.To
	switch a.Kind {
	case DropReply: // named by the request's direction
		if m.kind != reply || m.Request.ID <= a.since {
			return false
		}
		from, to = to, from
	case DropRequest:
		if m.kind == reply {
			return false
		}
	case Duplicate, Reorder:
		if m.Conn != nil {
			return false
		}
	}
	return from == a.proc && (a.peer == nil || to == a.peer)
}

func (in *injector) unfilter(i int32) {
	for k, j := range in.filters {
		if i == j {
			in.filters = append(in.filters[:k], in.filters[k+1:]...)
			return
		}
	}
}

// lateReplies is the reverse of the resume rule, as a choice: timeouts that
// are due fire before replies that had arrived.
func (w *World) lateReplies(p *Process) {
	if !w.cfg.LateReplies {
		return
	}
	at := Place{Proc: p.id, Phase: PhaseStart, Op: p.nextOp(0, PhaseStart), Point: PointResume}
	if w.choose(at, 0, 1) == 0 {
		return
	}
	var first, rest []event
	for _, e := range p.gate.held {
		if e.kind == evTimeout {
			first = append(first, e)
		} else {
			rest = append(rest, e)
		}
	}
	p.gate.held = append(first, rest...)
}

// LastFaultAt returns when the last fault struck or healed; zero if none did.
func (w *World) LastFaultAt() clock.Time { return w.faults.lastChange }

// FaultReport says what became of one fault of the plan.
type FaultReport struct {
	Index int  // in the plan, from 0
	Fired bool // its trigger came
	Idle  bool // it struck, but there was nothing to hit: no message, no connection, no task, no process that was up

	// Struck and Healed bound the time in which it was in force; Healed is
	// clock.Never for a fault that had not ended by the end of the run.
	Struck, Healed clock.Time
}

// FaultReports tells for each fault of the plan what became of it.
func (w *World) FaultReports() []FaultReport {
	var out []FaultReport
	for i := range w.faults.armed {
		a := &w.faults.armed[i]
		r := FaultReport{Index: i, Fired: a.state != waiting, Idle: a.idle, Struck: a.struck, Healed: clock.Never}
		if a.state == over {
			r.Healed = a.healed
		}
		switch a.Kind {
		case DropRequest, DropReply, Delay, Duplicate, Reorder, Cut:
			r.Idle = r.Fired && a.hits == 0
		}
		out = append(out, r)
	}
	return out
}
