package sim

import (
	"testing"
	"time"
)

// TestPauseDeliversBeforeTimeouts: what arrived before a deadline is delivered
// before that deadline fires, although both waited for the resume.
func TestPauseDeliversBeforeTimeouts(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		l.ask(task, task.Dial(l.server("s")), "in time", 5*ms)
		l.say("its clock shows %v", time.Duration(task.Now()))
	})
	l.fault(Fault{Kind: Pause, On: []string{"client-1"}, Trigger: at(1 * ms), For: Exactly(99 * ms)})
	l.run(EndDone)
	l.saw(`1ms s handles in time
	       100ms client-1: ok in time
	       100ms its clock shows 100ms`)
}

// TestLateReplies: with the option the reverse order is a choice.
func TestLateReplies(t *testing.T) {
	outcome := func(choice int64) []string {
		l := newLab(t, Config{LateReplies: true})
		l.client("client-1", func(task *Task) { l.ask(task, task.Dial(l.server("s")), "x", 5*ms) })
		l.fault(Fault{Kind: Pause, On: []string{"client-1"}, Trigger: at(1 * ms), For: Exactly(99 * ms)})
		l.cfg.Plan.Choices = []Override{{At: place(t, "client-1/start#1/resume"), Value: choice}}
		l.run(EndDone)
		return l.log
	}
	if got := outcome(0)[1]; got != "100ms client-1: ok x" {
		t.Error(got)
	}
	if got := outcome(1)[1]; got != "100ms client-1: x: call timed out: outcome unknown" {
		t.Error(got)
	}
}

// TestPauseAfterTheDeadline: a reply that came after the deadline comes too
// late, also when both waited.
func TestPauseAfterTheDeadline(t *testing.T) {
	l := newLab(t, Config{LatencyMin: 10 * ms, LatencyMax: 10 * ms})
	l.client("client-1", func(task *Task) {
		l.ask(task, task.Dial(l.server("s")), "x", 15*ms)
	})
	l.fault(Fault{Kind: Pause, On: []string{"client-1"}, Trigger: at(1 * ms), For: Exactly(99 * ms)})
	l.run(EndDone)
	l.saw(`10ms s handles x
	       100ms client-1: x: call timed out: outcome unknown
	       110ms s sees client-1 gone`)
}

// TestPauseOfAServer: its kernel accepts bytes; it handles them in order when
// it goes on, also those of a client that has given up, and then sees it gone.
// Its timers were due meanwhile and come where they belong.
func TestPauseOfAServer(t *testing.T) {
	l := newLab(t, Config{})
	l.serve("s", &ticker{scribe{lab: l}})
	l.client("client-1", func(task *Task) {
		task.Sleep(2 * ms)
		l.ask(task, task.Dial(l.server("s")), "from the first", 10*ms)
	})
	l.client("client-2", func(task *Task) {
		task.Sleep(6 * ms)
		l.ask(task, task.Dial(l.server("s")), "from the second", 0)
	})
	l.fault(Fault{Kind: Pause, On: []string{"s"}, Trigger: at(1 * ms), For: Exactly(49 * ms)})
	l.run(EndDone)
	l.saw(`12ms client-1: from the first: call timed out: outcome unknown
	       50ms s handles from the first
	       50ms s timer 5
	       50ms s handles from the second
	       50ms s sees client-1 gone
	       51ms client-2: ok from the second`)
}

// ticker sets a timer for 5 ms when it starts.
type ticker struct{ scribe }

func (s *ticker) Start(p *Process) { p.TimerIn(5*ms, 5) }

// TestNestedPauses: the process goes on when the last of them is over.
func TestNestedPauses(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		task.Sleep(2 * ms)
		l.say("goes on")
	})
	l.fault(Fault{Kind: Pause, On: []string{"client-1"}, Trigger: at(1 * ms), For: Exactly(10 * ms)})
	l.fault(Fault{Kind: Pause, On: []string{"client-1"}, Trigger: at(5 * ms), For: Exactly(10 * ms)})
	l.run(EndDone)
	l.saw(`15ms goes on`)
}

// TestPauseStrikesAgainOnResume: what was not delivered yet waits on, in order.
func TestPauseStrikesAgainOnResume(t *testing.T) {
	l := newLab(t, Config{})
	for _, name := range []string{"client-1", "client-2", "client-3"} {
		l.client(name, func(task *Task) { l.ask(task, task.Dial(l.server("s")), "by "+name, 0) })
	}
	l.fault(Fault{Kind: Pause, On: []string{"s"}, For: Exactly(10 * ms)})
	l.fault(Fault{Kind: Pause, On: []string{"s"}, Trigger: Trigger{Before: place(t, "s/request#2")}, For: Exactly(10 * ms)})
	l.run(EndDone)
	l.saw(`10ms s handles by client-1
	       11ms client-1: ok by client-1
	       20ms s handles by client-2
	       20ms s handles by client-3
	       21ms client-2: ok by client-2
	       21ms client-3: ok by client-3`)
}

// TestStall stops one task; its siblings go on, and so does the process's
// kernel.
func TestStall(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		c := task.Dial(l.server("s"))
		task.Spawn("renewer", PhaseRenew, func(task *Task) {
			task.Sleep(2 * ms)
			l.say("renewer awake")
			l.ask(task, c, "renew", 0)
		})
		l.ask(task, c, "work", 0)
		task.Sleep(50 * ms)
	})
	l.fault(Fault{Kind: Stall, On: []string{"client-1.renewer"}, Trigger: at(1 * ms), For: Exactly(20 * ms)})
	l.run(EndDone)
	l.saw(`1ms s handles work
	       2ms client-1: ok work
	       21ms renewer awake
	       22ms s handles renew
	       23ms client-1.renewer: ok renew`)
}

// TestStallOfTheWorker: its renewer lives on.
func TestStallOfTheWorker(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		task.Spawn("renewer", PhaseRenew, func(task *Task) {
			for range 3 {
				task.Sleep(5 * ms)
				l.say("renews")
			}
		})
		task.Sleep(2 * ms)
		l.say("works")
	})
	l.fault(Fault{Kind: Stall, On: []string{"client-1"}, Trigger: at(1 * ms), For: Exactly(20 * ms)})
	l.run(EndDone)
	l.saw(`5ms renews
	       10ms renews
	       15ms renews
	       21ms works`)
}

// TestFreezeClocks: what a machine's clocks show after it was suspended from
// 10 ms to 60 ms.
func TestFreezeClocks(t *testing.T) {
	for _, c := range []struct{ monotonic, wall, want string }{
		{"", "", "at 61ms: monotonic 61ms, wall +61ms, slept until 60ms"},
		{"runs", "right", "at 61ms: monotonic 61ms, wall +61ms, slept until 60ms"},
		{"stops", "right", "at 71ms: monotonic 21ms, wall +71ms, slept until 70ms"},
		{"runs", "behind", "at 61ms: monotonic 61ms, wall +11ms, slept until 60ms"},
		{"stops", "behind", "at 71ms: monotonic 21ms, wall +21ms, slept until 70ms"},
	} {
		l := newLab(t, Config{})
		l.client("client-1", func(task *Task) {
			task.Sleep(20 * ms)
			until := time.Duration(l.w.Now())
			task.Sleep(ms)
			mono, wall := task.Now(), task.Wall()
			l.log = append(l.log, "at "+time.Duration(l.w.Now()).String()+": monotonic "+time.Duration(mono).String()+
				", wall +"+wall.Sub(WallStart).String()+", slept until "+until.String())
		})
		l.fault(Fault{Kind: Freeze, On: []string{"client-1"}, Trigger: at(10 * ms), For: Exactly(50 * ms), Monotonic: c.monotonic, Wall: c.wall})
		l.run(EndDone)
		l.saw(c.want)
	}
}

// TestNestedFreezes: the clock stands until the last suspension is over.
func TestNestedFreezes(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		task.Sleep(2 * ms)
		l.say("shows %v", time.Duration(task.Now()))
	})
	l.fault(Fault{Kind: Freeze, On: []string{"client-1"}, Trigger: at(1 * ms), For: Exactly(10 * ms), Monotonic: "stops"})
	l.fault(Fault{Kind: Freeze, On: []string{"client-1"}, Trigger: at(5 * ms), For: Exactly(10 * ms)})
	l.run(EndDone)
	l.saw(`16ms shows 2ms`)
}

// TestFreezeRetransmits: a suspended machine accepts no bytes. First what was
// due on it happens, then come the bytes that are sent again, in order; and
// what is on its way on the same connection does not overtake them.
func TestFreezeRetransmits(t *testing.T) {
	l := newLab(t, Config{})
	l.serve("s", &ticker{scribe{lab: l}})
	l.client("client-1", func(task *Task) {
		c := task.Dial(l.server("s"))
		first := task.Start(c, Text("first"), 0)
		task.Sleep(9*ms + 500*time.Microsecond)
		second := task.Start(c, Text("second"), 0) // reaches s at 10.5 ms, awake again
		task.Await(first)
		task.Await(second)
		l.say("both back")
	})
	l.client("client-2", func(task *Task) {
		task.Sleep(9*ms + 500*time.Microsecond)
		l.ask(task, task.Dial(l.server("s")), "from another", 0)
	})
	l.fault(Fault{Kind: Freeze, On: []string{"s-node"}, For: Exactly(10 * ms)})
	l.run(EndDone)
	l.saw(`10ms s timer 5
	       10.5ms s handles from another
	       11ms s handles first
	       11ms s handles second
	       11.5ms client-2: ok from another
	       12ms both back`)
}

// TestFreezeOfAPausedProcess: what its kernel had accepted before it was
// suspended need not come again.
func TestFreezeOfAPausedProcess(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) { l.ask(task, task.Dial(l.server("s")), "x", 0) })
	l.fault(Fault{Kind: Pause, On: []string{"s"}, For: Exactly(5 * ms)})
	l.fault(Fault{Kind: Freeze, On: []string{"s-node"}, Trigger: at(3 * ms), For: Exactly(7 * ms)})
	l.run(EndDone)
	l.saw(`10ms s handles x
	       11ms client-1: ok x`)
}

// TestRestartWaitsForTheThaw: nothing starts on a suspended machine.
func TestRestartWaitsForTheThaw(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) { task.Sleep(30 * ms) })
	l.fault(Fault{Kind: Crash, On: []string{"s"}, Trigger: at(ms), Restart: Exactly(5 * ms)})
	l.fault(Fault{Kind: Freeze, On: []string{"s-node"}, Trigger: at(2 * ms), For: Exactly(18 * ms)})
	l.run(EndDone)
	l.saw(`20ms s starts`)
}
