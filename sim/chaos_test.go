package sim

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyFault draws a fault of any kind but deeds, which not every server knows,
// on anybody, at any time.
func anyFault(t *rapid.T, procs []string) Fault {
	f := Fault{Kind: FaultKind(rapid.IntRange(1, int(RestoreSnapshot)).Draw(t, "kind"))}
	proc := rapid.SampledFrom(procs)
	span := func(name string) Span { return Exactly(time.Duration(rapid.IntRange(1, 40).Draw(t, name)) * ms / 2) }
	victim := proc.Draw(t, "on")
	f.On = []string{victim}
	switch f.Kind {
	case Crash:
		f.Mode = rapid.SampledFrom([]string{"process", "node"}).Draw(t, "mode")
		if rapid.IntRange(0, 3).Draw(t, "restarts") > 0 {
			f.Restart = span("restart")
		}
	case ClockStep, ClockOffset:
		f.By = Exactly(time.Duration(rapid.IntRange(-50, 50).Draw(t, "by"))*ms + 1)
	case ClockRate:
		f.Rate = rapid.Int64Range(-900_000_000, 3_000_000_000).Draw(t, "rate") | 1
	case Freeze:
		f.Monotonic = rapid.SampledFrom([]string{"runs", "stops"}).Draw(t, "monotonic")
		f.Wall = rapid.SampledFrom([]string{"right", "behind"}).Draw(t, "wall")
	case Partition:
		f.Mode = rapid.SampledFrom([]string{"drop", "hold"}).Draw(t, "mode")
		f.OneWay = rapid.Bool().Draw(t, "one-way")
	case Cut:
		f.Mode = rapid.SampledFrom([]string{"reset", "silent"}).Draw(t, "mode")
	case RestoreSnapshot:
		f.By = span("by")
	case Stall:
		f.On[0] += rapid.SampledFrom([]string{"", ".renewer"}).Draw(t, "task")
	}
	endless := f.Kind == Pause || f.Kind == Stall || f.Kind == Partition || f.Kind == ClockRate
	switch takes := f.Validate() == nil && !endless; {
	case f.Kind == Crash || f.Kind == ClockStep || f.Kind == Cut || f.Kind == LoseUnsynced || f.Kind == RestoreSnapshot:
	case takes && rapid.Bool().Draw(t, "at once over"):
	default:
		f.For = span("for")
	}
	switch rapid.IntRange(0, 3).Draw(t, "trigger") {
	case 0, 1:
		f.Trigger.At = span("at")
	case 2:
		who := proc.Draw(t, "whose place")
		f.Trigger.Before = PlacePattern{Proc: who, Op: rapid.Int32Range(1, 8).Draw(t, "op")}
	case 3:
		f.Trigger.When = Milestone{Kind: AcceptedWrite, Who: "client-1", N: rapid.Int32Range(1, 3).Draw(t, "n")}
	}
	return f
}

// TestChaos throws any faults at a world in which everything goes on at once,
// and checks what must hold of every run: it ends, nothing panics, time does
// not go back, every message has at most one fate, the kernel's count of
// messages under way is right, and a second run is the same.
func TestChaos(t *testing.T) {
	procs := []string{"client-1", "client-2", "s", "peer"}
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{Seed: rapid.Uint64().Draw(rt, "seed"), LatencyMax: 6 * ms, Horizon: 20 * time.Minute,
			LateReplies: rapid.Bool().Draw(rt, "late"),
			ServiceTime: time.Duration(rapid.IntRange(0, 2).Draw(rt, "service")) * ms, ServiceWorkers: rapid.IntRange(0, 2).Draw(rt, "workers")}
		for range rapid.IntRange(0, 6).Draw(rt, "faults") {
			cfg.Plan.Faults = append(cfg.Plan.Faults, anyFault(rt, procs))
		}
		run := func() uint64 {
			l := newLab(rt, cfg)
			defer l.w.Close()
			for _, name := range procs[2:] {
				l.add(name, name, func(n *Node) *Process {
					return n.AddServer(name, &archive{scribe: scribe{lab: l}, lab: l})
				})
			}
			for _, name := range procs[:2] {
				l.client(name, func(task *Task) { busy(l, task) })
			}
			l.w.Reset(l.cfg)
			for _, build := range l.built {
				build()
			}
			end, err := l.w.Run()
			if err != nil {
				rt.Fatal(err)
			}
			if end == EndPanic || end == EndBudget {
				l.dump()
				rt.Fatal(end, l.w.Failure(), l.w.Failure().Stack)
			}
			if problem := audit(l.w); problem != "" {
				l.dump()
				rt.Fatal(problem)
			}
			return l.w.TraceHash()
		}
		if first, second := run(), run(); first != second {
			rt.Fatalf("%016x, then %016x", first, second)
		}
	})
}

// busy does a little of everything that a client can do.
func busy(l *lab, task *Task) {
	c := task.Dial(l.server("s"))
	for section := 1; section <= 3; section++ {
		task.Enter(section, PhaseAcquire)
		renewer := task.Spawn("renewer", PhaseRenew, func(task *Task) {
			for {
				task.Sleep(3 * ms)
				task.Call(c, Text("renew"), 8*ms)
				task.Send(l.server("peer"), Text("hello"))
			}
		})
		if !c.Open() {
			c = task.Dial(l.server("s"))
		}
		other := task.Start(task.Dial(l.server("peer")), Text("read"), 10*ms)
		task.Enter(section, PhaseWrite)
		if _, err := task.Call(c, Text("write"), 10*ms); err == nil {
			l.w.Reach(AcceptedWrite, task.Proc())
		}
		task.Await(other)
		task.Fsync()
		task.Recv(ms)
		task.Kill(renewer)
	}
	task.Hangup(c)
}

// audit checks a world after its run; it returns what is wrong.
func audit(w *World) string {
	onTheWay := map[*Message]bool{}
	add := func(m *Message) { onTheWay[m] = true }
	arrivals := func(held []event) {
		for i := range held {
			if held[i].carriesMessage() {
				add(held[i].msg)
			}
		}
	}
	for _, e := range append(w.queue.near, w.queue.heap...) {
		arrivals([]event{*w.queue.event(e)})
	}
	for _, p := range w.procs {
		arrivals(p.gate.held)
		for _, m := range p.service.waiting {
			add(m)
		}
	}
	for _, n := range w.nodes {
		arrivals(n.gate.held)
		for _, m := range n.behind {
			add(m)
		}
	}
	for _, c := range w.conns {
		for _, late := range c.late {
			for _, m := range late {
				add(m)
			}
		}
	}
	for i := range w.faults.armed {
		for _, m := range w.faults.armed[i].held {
			add(m)
		}
	}
	if len(onTheWay) != w.inFlight {
		return fmt.Sprintf("%d messages are on their way, the kernel counts %d", len(onTheWay), w.inFlight)
	}
	living := 0
	for _, t := range w.tasks {
		if t.foreground && !t.done {
			living++
		}
	}
	for _, p := range w.procs {
		if p.restarting {
			living++
		}
	}
	if living != w.foreground {
		return fmt.Sprintf("%d clients live, the kernel counts %d", living, w.foreground)
	}
	fates, sent := map[uint32]int{}, map[uint32]int{}
	last := w.now * 0
	for _, e := range w.Trace() {
		if e.At < last {
			return "time went back: " + w.Describe(e)
		}
		last = e.At
		switch e.Kind {
		case EventSend:
			sent[e.Msg]++
		case EventArrive, EventLost:
			fates[e.Msg]++
		}
	}
	twice := false
	for i := range w.faults.armed {
		twice = twice || w.faults.armed[i].Kind == Duplicate
	}
	for msg, n := range fates {
		if sent[msg] != 1 || n > 1 && !twice {
			return fmt.Sprintf("message %d was sent %d times and had %d fates", msg, sent[msg], n)
		}
	}
	return ""
}
