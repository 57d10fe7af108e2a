package sim

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

// checkGoroutines fails the test if it leaves coroutines behind. It must be
// called before the first world of the test.
func checkGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for range 100 { // coroutines end a little after their last switch
			if runtime.NumGoroutine() <= before {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
	})
}

// TestNoLeaks runs worlds in which tasks die in every way there is, ended,
// reset or closed in the middle.
func TestNoLeaks(t *testing.T) {
	checkGoroutines(t)
	worlds := 10_000
	if testing.Short() {
		worlds = 500
	}
	w := NewWorld(Config{})
	for i := range worlds {
		w.Reset(Config{Seed: uint64(i), LatencyMax: ms, Horizon: time.Duration(1+i%50) * ms, Plan: Plan{Faults: []Fault{
			{Kind: Crash, On: []string{"client-2"}, Trigger: at(time.Duration(i%7) * ms), Restart: Exactly(2 * ms)},
			{Kind: Pause, On: []string{"client-3"}, Trigger: at(3 * ms)},
		}}})
		s := w.AddNode("s").AddServer("s", &echo{})
		for _, name := range []string{"client-1", "client-2", "client-3"} {
			w.AddNode(name).AddClient(name, func(task *Task) {
				c := task.Dial(s)
				renewer := task.Spawn("renewer", PhaseRenew, func(task *Task) {
					defer func() { // a deferred retry loop
						for range 1000 {
							if _, err := task.Call(c, Text("bye"), 5*ms); err == nil {
								return
							}
						}
					}()
					for {
						task.Sleep(2 * ms)
					}
				})
				for range 5 {
					task.Call(c, Text("x"), 5*ms)
				}
				task.Kill(renewer)
			})
		}
		if i%3 == 0 {
			w.Reset(Config{}) // before it ran
			continue
		}
		if _, err := w.Run(); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			w.Close()
		}
	}
	w.Close()
}

// TestDying: an effect in a dying task unwinds again at once, so that neither
// a deferred retry loop nor a program that recovers everything lives on.
func TestDying(t *testing.T) {
	checkGoroutines(t)
	l := newLab(t, Config{})
	tries := 0
	l.client("client-1", func(task *Task) {
		defer l.say("client-1 unwinds")
		defer func() {
			if r := recover(); r != nil { // swallows its own death
				l.say("recovered")
				tries++
				task.Sleep(ms)
				tries++
			}
		}()
		defer func() {
			for {
				tries++
				task.Sleep(ms)
			}
		}()
		task.Sleep(time.Hour)
	})
	l.fault(Fault{Kind: Crash, On: []string{"client-1"}, Trigger: at(5 * ms)})
	l.run(EndDone)
	l.saw(`5ms recovered
	       5ms client-1 unwinds`)
	if tries != 2 {
		t.Errorf("%d tries, want one in each deferred function", tries)
	}
}

// TestDeathCompletesNothing: a program that recovers from its own death and
// returns has not done what a fault waits for it to have done.
func TestDeathCompletesNothing(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		defer func() { recover() }()
		task.Enter(1, PhaseWrite)
		task.Sleep(time.Hour)
	})
	l.fault(Fault{Kind: Crash, On: []string{"client-1"}, Trigger: at(5 * ms)})
	l.fault(Fault{Kind: Cut, On: []string{"s"}, Trigger: Trigger{After: place(t, "client-1/section#1/write")}})
	l.run(EndDone)
	if l.w.FaultReports()[1].Fired {
		t.Error("the write counts as over")
	}
}

// TestKillOfASibling, before it started, while it waits, and when it is done.
func TestKillOfASibling(t *testing.T) {
	checkGoroutines(t)
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		child := func(name string) *Task {
			return task.Spawn(name, PhaseRenew, func(task *Task) {
				defer l.say("%s ends", name)
				l.say("%s begins", name)
				task.Sleep(10 * ms)
			})
		}
		early := child("early")
		task.Kill(early)
		task.Sleep(ms)
		waits := child("waits")
		task.Sleep(ms)
		task.Kill(waits)
		task.Kill(waits)
		task.Sleep(ms)
		done := child("done")
		task.Sleep(20 * ms)
		task.Kill(done)
		task.Kill(task)
		if !early.Done() || !waits.Done() || !done.Done() || task.Done() {
			t.Error("Done is wrong")
		}
		l.say("client-1 lives")
	})
	l.run(EndDone)
	l.saw(`1ms waits begins
	       2ms waits ends
	       3ms done begins
	       13ms done ends
	       23ms client-1 lives`)
}

// TestKilledTaskLeavesItsCall: nothing happens any more when its timeout or its
// reply comes; the connection lives on for its siblings.
func TestKilledTaskLeavesItsCall(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		c := task.Dial(l.server("s"))
		caller := task.Spawn("caller", PhaseRenew, func(task *Task) { task.Call(c, Text("silent"), 5*ms) })
		task.Sleep(2 * ms)
		task.Kill(caller)
		task.Sleep(10 * ms)
		l.ask(task, c, "later", 5*ms)
	})
	l.run(EndDone)
	l.saw(`1ms s handles silent
	       13ms s handles later
	       14ms client-1: ok later`)
}

// TestKillInAnFsync: a task that was killed while it waited for a stalled disk
// must not come back when the disk does.
func TestKillInAnFsync(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		syncer := task.Spawn("syncer", PhaseWork, func(task *Task) {
			l.say("syncer begins")
			task.Fsync()
			l.say("syncer goes on")
		})
		task.Sleep(2 * ms)
		task.Kill(syncer)
		task.Sleep(20 * ms)
	})
	l.fault(Fault{Kind: FsyncStall, On: []string{"client-1"}, For: Exactly(10 * ms)})
	l.run(EndDone)
	l.saw(`0s syncer begins`)
}

// panicky is a server that panics where it is told to.
type panicky struct {
	in string
}

func (h *panicky) Start(p *Process) {
	if h.in == "start" {
		panic("boom in start")
	}
}
func (h *panicky) Request(p *Process, m *Message) {
	if h.in == "request" {
		panic("boom in request")
	}
	p.TimerIn(ms, 1)
}
func (h *panicky) Timer(*Process, uint64) {
	if h.in == "timer" {
		panic("boom in timer")
	}
}
func (h *panicky) Closed(*Process, *Conn) {
	if h.in == "closed" {
		panic("boom in closed")
	}
}

// TestPanics: no panic leaves Run, wherever it happens; it names the program.
func TestPanics(t *testing.T) {
	checkGoroutines(t)
	for _, c := range []struct {
		where, task, stack string
		main               func(*Task)
	}{
		{"task", "client-1", "task_test.go", func(*Task) { panic("boom in task") }},
		{"spawned", "client-1.child", "task_test.go", func(task *Task) {
			task.Spawn("child", PhaseRenew, func(*Task) { panic("boom in spawned") })
			task.Sleep(time.Second)
		}},
		{"deferred", "client-1", "task_test.go", func(task *Task) {
			defer func() { panic("boom in deferred") }()
			task.Sleep(ms)
		}},
		{"dying", "client-1", "task_test.go", func(task *Task) {
			defer func() { panic("boom in dying") }()
			task.Sleep(time.Hour) // until the crash
		}},
		{"chooser", "client-1", "choice.go", func(task *Task) { task.Choose(PointJitter, 0, 13) }},
		{"start", "s", "panicky", nil},
		{"request", "s", "panicky", nil},
		{"timer", "s", "panicky", nil},
		{"closed", "s", "panicky", nil},
	} {
		l := newLab(t, Config{})
		main := c.main
		if main == nil {
			main = func(task *Task) { task.Call(task.Dial(l.server("s")), Text("x"), 10*ms) }
		}
		if c.where == "chooser" {
			l.cfg.Chooser = Overridden{Base: tooHigh{}}
		}
		l.serve("s", &panicky{in: c.where})
		l.client("client-1", main)
		l.fault(Fault{Kind: Crash, On: []string{"client-1"}, Trigger: at(time.Second)})
		l.run(EndPanic)
		f := l.w.Failure()
		if f == nil {
			t.Errorf("%s: no failure", c.where)
			continue
		}
		want := "boom in " + c.where
		if c.where == "chooser" {
			want = "outside 0 to 13"
		}
		if f.Task != c.task || !strings.Contains(f.Error(), want) || !strings.Contains(f.Stack, c.stack) {
			t.Errorf("%s: %v\n%s", c.where, f, f.Stack)
		}
	}
}

type tooHigh struct{}

func (tooHigh) Choose(c Choice) int64 { return c.Hi + 1 }

// TestGoexit: t.FailNow inside a simulated program calls runtime.Goexit. It
// ends the goroutine that called Run, as it would without a simulation, and
// the world can be closed or used again.
func TestGoexit(t *testing.T) {
	checkGoroutines(t)
	w := NewWorld(Config{})
	build := func(main func(*Task)) {
		w.Reset(Config{})
		for _, name := range []string{"client-1", "client-2"} {
			w.AddNode(name).AddClient(name, func(task *Task) { task.Sleep(ms); main(task); task.Sleep(ms) })
		}
	}
	returned, ended := false, make(chan bool)
	build(func(*Task) { runtime.Goexit() })
	go func() {
		defer close(ended)
		w.Run()
		returned = true
	}()
	<-ended
	if returned {
		t.Error("Run returned")
	}
	build(func(*Task) {})
	if end, err := w.Run(); end != EndDone || err != nil {
		t.Errorf("the next run: %v, %v", end, err)
	}
	w.Close()
}

// TestCarriersAreReused: a world makes no more coroutines than tasks live at
// once.
func TestCarriersAreReused(t *testing.T) {
	w := NewWorld(Config{})
	defer w.Close()
	for range 3 {
		w.Reset(Config{})
		w.AddNode("client-1").AddClient("client-1", func(task *Task) {
			for range 50 {
				task.Spawn("child", PhaseRenew, func(task *Task) { task.Sleep(ms) })
				task.Sleep(2 * ms)
			}
		})
		w.Run()
	}
	if n := len(w.carriers); n != 2 {
		t.Errorf("%d carriers, want 2", n)
	}
}

// TestRecv: messages in order, a timeout, and one that comes in time.
func TestRecv(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		if m := task.Recv(5 * ms); m != nil {
			t.Errorf("received %v out of nothing", m.Body)
		}
		l.say("nothing came")
		for range 2 {
			l.say("client-1 receives %v", task.Recv(time.Second).Body)
		}
	})
	l.client("client-2", func(task *Task) {
		task.Sleep(7 * ms)
		task.Send(l.procs["client-1"], Text("one"))
		task.Send(l.procs["client-1"], Text("two"))
	})
	l.run(EndDone)
	l.saw(`5ms nothing came
	       8ms client-1 receives one
	       8ms client-1 receives two`)
}

// TestRecvLearnsOfTheEnd of a connection on which something was to come.
func TestRecvLearnsOfTheEnd(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		c := task.Dial(l.server("s"))
		task.Call(c, Text("x"), 0)
		if m := task.Recv(0); m != nil || c.Open() {
			t.Errorf("received %v, open %v", m, c.Open())
		}
		l.say("client-1 learns")
	})
	l.fault(Fault{Kind: Crash, On: []string{"s"}, Trigger: at(5 * ms)})
	l.run(EndDone)
	l.saw(`1ms s handles x
	       6ms client-1 learns`)
}

// TestSections: a number that nobody means is a program's mistake.
func TestSections(t *testing.T) {
	for _, section := range []int{-1, 1 << 30} {
		l := newLab(t, Config{})
		l.client("client-1", func(task *Task) { task.Enter(section, PhaseWork) })
		l.run(EndPanic)
	}
}

// TestPush: what a server sends by itself comes in order with its replies.
func TestPush(t *testing.T) {
	l := newLab(t, Config{LatencyMin: 1 * ms, LatencyMax: 5 * ms})
	l.serve("s", &pusher{})
	l.client("client-1", func(task *Task) {
		c := task.Dial(l.server("s"))
		task.Call(c, Text("x"), 0)
		if m := task.Recv(time.Nanosecond); m == nil || m.Body.String() != "pushed" || m.Conn != c {
			t.Error("the push, sent before the reply, was not there when it came")
		}
	})
	l.run(EndDone)
}

type pusher struct{ echo }

func (pusher) Request(p *Process, m *Message) { p.Push(m.Conn, Text("pushed")); p.Reply(m, m.Body) }

// TestPlacesNeverRepeat, not when sections overlap or come back, and not after a
// restart.
func TestPlacesNeverRepeat(t *testing.T) {
	seen := map[Place]bool{}
	l := newLab(t, Config{Observer: placeWatcher(func(p Place) {
		if seen[p] {
			t.Errorf("%s came twice", (&World{procs: []*Process{{name: "client-1"}}}).PlaceName(p))
		}
		seen[p] = true
	})})
	l.client("client-1", func(task *Task) {
		for section := 1; section <= 2; section++ {
			task.Enter(section, PhaseRenew)
			task.Spawn("renewer", PhaseRenew, func(task *Task) { // outlives its section
				for range 5 {
					task.Sleep(ms)
				}
			})
			task.Sleep(2 * ms)
		}
		task.Enter(1, PhaseRenew)
		task.Sleep(20 * ms)
	})
	l.fault(Fault{Kind: Crash, On: []string{"client-1"}, Trigger: at(9 * ms), Restart: Exactly(ms)})
	l.run(EndDone)
	if len(seen) < 20 {
		t.Errorf("only %d places", len(seen))
	}
}

type placeWatcher func(Place)

func (placeWatcher) ServerChanged(*Process, *Message) {}
func (placeWatcher) Sent(*Message)                    {}
func (placeWatcher) Crashed(*Process)                 {}
func (f placeWatcher) Place(p Place)                  { f(p) }

func TestErrorsAreKinds(t *testing.T) {
	for err, unknown := range map[error]bool{ErrTimeout: true, ErrReset: true, ErrRefused: false, ErrClosed: false} {
		if errors.Is(err, ErrUnknown) != unknown {
			t.Errorf("%v: unknown outcome %v, want %v", err, !unknown, unknown)
		}
	}
}
