package sim

import (
	"testing"
	"time"
)

func TestGuards(t *testing.T) {
	checkGoroutines(t)
	forever := func(l *lab) func(*Task) {
		return func(task *Task) {
			for {
				task.Sleep(ms)
			}
		}
	}
	for _, c := range []struct {
		name   string
		cfg    Config
		main   func(*lab) func(*Task)
		faults []Fault
		end    EndReason
		at     time.Duration
	}{
		{name: "nothing to do", main: func(*lab) func(*Task) { return func(*Task) {} }, end: EndDone},
		{name: "horizon", cfg: Config{Horizon: 50*ms + 1}, main: forever, end: EndHorizon, at: 50*ms + 1},
		{name: "budget", cfg: Config{EventBudget: 20}, main: forever, end: EndBudget, at: 19 * ms}, // the first event starts it
		{name: "deadlock", end: EndDeadlock, at: 2 * ms, main: func(l *lab) func(*Task) {
			return func(task *Task) { task.Call(task.Dial(l.server("s")), Text("silent"), 0) }
		}},
		{name: "stopped for ever by a fault", end: EndHorizon, at: 10 * time.Minute, main: forever,
			faults: []Fault{{Kind: Pause, On: []string{"client-1"}, Trigger: at(5 * ms)}}},
		{name: "stalled for ever by a fault", end: EndHorizon, at: 10 * time.Minute, main: forever,
			faults: []Fault{{Kind: Stall, On: []string{"client-1"}, Trigger: at(5 * ms)}}},
		{name: "all clients crashed", end: EndDone, at: 5 * ms, main: forever,
			faults: []Fault{{Kind: Crash, On: []string{"client-1"}, Trigger: at(5 * ms)}}},
		{name: "crashed and up again", end: EndHorizon, at: time.Second, cfg: Config{Horizon: time.Second}, main: forever,
			faults: []Fault{{Kind: Crash, On: []string{"client-1"}, Trigger: at(5 * ms), Restart: Exactly(ms)}}},
		{name: "a spinning program with effects", cfg: Config{EventBudget: 100}, end: EndBudget, main: func(*lab) func(*Task) {
			return func(task *Task) {
				for {
					task.Sleep(0)
				}
			}
		}},
	} {
		l := newLab(t, c.cfg)
		l.client("client-1", c.main(l))
		for _, f := range c.faults {
			l.fault(f)
		}
		l.run(c.end)
		if now := time.Duration(l.w.Now()); now != c.at && c.name != "deadlock" {
			t.Errorf("%s: ended at %v, want %v", c.name, now, c.at)
		}
	}
}

// TestDoneWaitsForMessages: a delayed write lands after all clients have
// finished.
func TestDoneWaitsForMessages(t *testing.T) {
	for _, f := range []Fault{
		{Kind: Delay, On: []string{"client-1"}, By: Exactly(time.Minute)},
		{Kind: Delay, On: []string{"client-1"}, For: Exactly(time.Minute)},
		{Kind: Partition, On: []string{"s"}, For: Exactly(time.Minute), Mode: "hold"},
		{Kind: Pause, On: []string{"s"}, For: Exactly(time.Minute)},
		{Kind: Freeze, On: []string{"s-node"}, For: Exactly(time.Minute)},
	} {
		l := newLab(t, Config{})
		l.client("client-1", func(task *Task) { l.ask(task, task.Dial(l.server("s")), "late write", 5*ms) })
		l.fault(f)
		l.run(EndDone)
		if len(l.log) != 3 || time.Duration(l.w.Now()) < time.Minute {
			t.Errorf("%v: %q", f.Kind, l.log)
		}
	}
}

// TestDoneDoesNotWaitForEver: what nothing will set free holds nobody up, also
// when servers tick on.
func TestDoneDoesNotWaitForEver(t *testing.T) {
	for _, f := range []Fault{
		{Kind: Partition, On: []string{"s"}, Mode: "hold"},
		{Kind: Pause, On: []string{"s"}},
		{Kind: Crash, On: []string{"s-node"}, Mode: "node"},
		{Kind: Partition, On: []string{"s"}},
	} {
		l := newLab(t, Config{})
		l.serve("beating", &beating{})
		l.client("client-1", func(task *Task) { l.ask(task, task.Dial(l.server("s")), "x", 5*ms) })
		l.fault(f)
		l.run(EndDone)
		if now := time.Duration(l.w.Now()); now > 10*ms {
			t.Errorf("%v: ended at %v", f.Kind, now)
		}
	}
}

type beating struct{ echo }

func (b *beating) Start(p *Process)            { p.TimerIn(ms, 0) }
func (b *beating) Timer(p *Process, id uint64) { p.TimerIn(ms, 0) }

func TestRunTwice(t *testing.T) {
	w := NewWorld(Config{})
	defer w.Close()
	if _, err := w.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(); err == nil {
		t.Error("a second run without a reset went through")
	}
}
