package sim

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"locklab/clock"
)

// story is a small run with everything a fault can strike: a client with two
// sections and a renewer, another client, a server with a file, and a peer that
// gets datagrams.
func story(t *testing.T, faults ...Fault) *lab {
	l := newLab(t, Config{})
	l.serve("s", &archive{scribe: scribe{lab: l}, lab: l})
	l.serve("peer", &scribe{lab: l})
	l.client("client-1", func(task *Task) {
		c := task.Dial(l.server("s"))
		for section := 1; section <= 2; section++ {
			task.Enter(section, PhaseAcquire)
			renewer := task.Spawn("renewer", PhaseRenew, func(task *Task) {
				for {
					task.Sleep(4 * ms)
				}
			})
			task.Sleep(ms)
			task.Enter(section, PhaseWrite)
			if _, err := task.Call(c, Text("write"), 50*ms); err == nil {
				l.w.Reach(AcceptedWrite, l.procs["client-1"])
			} else {
				c = task.Dial(l.server("s"))
			}
			task.Sleep(7 * ms)
			task.Kill(renewer)
		}
	})
	l.client("client-2", func(task *Task) { task.Sleep(300 * ms) })
	for _, f := range faults {
		l.fault(f)
	}
	return l
}

// archive writes what it is asked to, and tells its peer.
type archive struct {
	scribe
	lab  *lab
	file *File[string]
}

func (s *archive) Start(p *Process) {
	if s.file == nil {
		s.file = NewFile[string](p.Node())
	}
}

func (s *archive) Request(p *Process, m *Message) {
	if m.Conn == nil {
		return
	}
	s.file.Append(m.Body.String())
	p.Send(s.lab.procs["peer"], Text("copy"))
	if p.Fsync(1) {
		p.Reply(m, Text("ok"))
	}
}

// struckAt returns when the first fault of the plan struck and ended, by the
// trace; -1 for never.
func (l *lab) struckAt() (from, to time.Duration) {
	from, to = -1, -1
	for _, e := range l.w.Trace() {
		switch {
		case e.Kind == EventFault && e.A == 1:
			from = time.Duration(e.At)
		case e.Kind == EventFaultOver && e.A == 1:
			to = time.Duration(e.At)
		}
	}
	return from, to
}

// kinds is one fault of each kind, with a length where it has one.
func kinds() map[string]Fault {
	for_ := Exactly(20 * ms)
	return map[string]Fault{
		"pause":            {Kind: Pause, On: []string{"client-1"}, For: for_},
		"stall":            {Kind: Stall, On: []string{"client-1"}, For: for_},
		"freeze":           {Kind: Freeze, On: []string{"client-1"}, For: for_},
		"crash":            {Kind: Crash, On: []string{"peer"}, Restart: for_},
		"crash node":       {Kind: Crash, On: []string{"peer-node"}, Mode: "node"},
		"clock-step":       {Kind: ClockStep, On: []string{"client-1"}, By: Exactly(-time.Hour)},
		"clock-rate":       {Kind: ClockRate, On: []string{"client-1"}, Rate: 1000, For: for_},
		"clock-offset":     {Kind: ClockOffset, On: []string{"s-node"}, By: Exactly(time.Second), For: for_},
		"drop-request":     {Kind: DropRequest, On: []string{"client-1->s"}, For: for_},
		"drop-reply":       {Kind: DropReply, On: []string{"client-1->s"}, For: for_},
		"delay":            {Kind: Delay, On: []string{"client-1"}, For: for_},
		"duplicate":        {Kind: Duplicate, On: []string{"s->peer"}, For: for_},
		"reorder":          {Kind: Reorder, On: []string{"s->peer"}, For: for_},
		"partition":        {Kind: Partition, On: []string{"client-1"}, For: for_, Mode: "hold"},
		"cut":              {Kind: Cut, On: []string{"client-1->s"}},
		"fsync-stall":      {Kind: FsyncStall, On: []string{"s-node"}, For: for_},
		"lose-unsynced":    {Kind: LoseUnsynced, On: []string{"s-node"}},
		"restore-snapshot": {Kind: RestoreSnapshot, On: []string{"s-node"}, By: Exactly(5 * ms)},
	}
}

// TestEveryKindByEveryTrigger: each fault strikes when its trigger says and
// ends when it should, and the run comes to an end.
func TestEveryKindByEveryTrigger(t *testing.T) {
	checkGoroutines(t)
	for name, f := range kinds() {
		for _, c := range []struct {
			how     string
			trigger Trigger
			want    time.Duration
		}{
			{"at the start", Trigger{}, 0},
			{"at a time", at(5 * ms), 5 * ms},
			{"before an effect", Trigger{Before: place(t, "client-1/section#1/write/op#2")}, 3 * ms},
			{"before a phase", Trigger{Before: place(t, "client-1/section#1/write")}, ms},
			{"after an effect", Trigger{After: place(t, "client-1/section#1/write/op#1")}, 3 * ms},
			{"after a phase", Trigger{After: place(t, "client-1/section#1/write")}, 10 * ms},
			{"after the last phase", Trigger{After: place(t, "client-1/section#2/write")}, 20 * ms},
			{"before a request is handled", Trigger{Before: place(t, "s/request#1")}, 2 * ms},
			{"after a request was handled", Trigger{After: place(t, "s/request#1")}, 2 * ms},
			{"after any request was handled", Trigger{After: place(t, "s/request")}, 2 * ms},
			{"after a happening", Trigger{When: Milestone{Kind: AcceptedWrite, Who: "client-1", N: 2}}, 13 * ms},
			{"before a step", Trigger{Step: Step{Proc: "client-1", N: 4}}, ms},
		} {
			f := f
			f.Trigger = c.trigger
			l := story(t, f)
			l.run(EndDone)
			from, to := l.struckAt()
			if from != c.want {
				t.Errorf("%s %s struck at %v, want %v", name, c.how, from, c.want)
				l.dump()
			}
			wantEnd := time.Duration(-1)
			idle := l.w.FaultReports()[0].Idle
			if !f.For.IsZero() && !(f.Kind == Stall && idle) {
				wantEnd = c.want + 20*ms
			}
			if to != wantEnd {
				t.Errorf("%s %s ended at %v, want %v", name, c.how, to, wantEnd)
			}
		}
	}
}

// TestUntil: a fault lasts until something happens, or at most so long.
func TestUntil(t *testing.T) {
	write := func(n int32) Milestone { return Milestone{Kind: AcceptedWrite, Who: "client-1", N: n} }
	for _, c := range []struct {
		name     string
		f        Fault
		from, to time.Duration
	}{
		{"it happens", Fault{Trigger: at(2 * ms), Until: write(2), AtMost: Exactly(time.Second)}, 2 * ms, 13 * ms},
		{"it never happens", Fault{Trigger: at(2 * ms), Until: write(9), AtMost: Exactly(30 * ms)}, 2 * ms, 32 * ms},
		{"it has happened already", Fault{Trigger: at(20 * ms), Until: write(1), AtMost: Exactly(30 * ms)}, 20 * ms, 20 * ms},
		{"it began with the same", Fault{Trigger: Trigger{When: write(1)}, Until: write(1), AtMost: Exactly(time.Second)}, 3 * ms, 3 * ms},
	} {
		c.f.Kind, c.f.On = Pause, []string{"client-2"}
		l := story(t, c.f)
		l.run(EndDone)
		if from, to := l.struckAt(); from != c.from || to != c.to {
			t.Errorf("%s: from %v to %v, want %v to %v", c.name, from, to, c.from, c.to)
		}
	}
}

// TestMessageCounts: how many messages a fault hits.
func TestMessageCounts(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault Fault
		want  string
	}{
		{"a bare trigger hits one", Fault{}, "2 3 4 5"},
		{"count", Fault{Count: 2}, "3 4 5"},
		{"a window hits all", Fault{For: Exactly(25 * ms)}, "4 5"},
		{"a window with a count", Fault{For: Exactly(35 * ms), Count: 1}, "2 3 4 5"},
		{"only later ones", Fault{Trigger: at(35 * ms), For: Exactly(time.Hour)}, "1 2 3 4"},
		{"before an effect", Fault{Trigger: Trigger{Before: place(t, "client-1/section#1/write/op#3")}}, "1 3 4 5"}, // call, sleep, call
	} {
		for kind, names := range map[FaultKind][2]string{DropRequest: {"client-1->s", "client-1"}, DropReply: {"client-1->s", "client-1"}} {
			for _, on := range names {
				l := newLab(t, Config{})
				var got []string
				l.client("client-1", func(task *Task) {
					task.Enter(1, PhaseWrite)
					for i := 1; i <= 5; i++ {
						if _, err := task.Call(task.Dial(l.server("s")), Text("x"), 5*ms); err == nil {
							got = append(got, fmt.Sprint(i))
						}
						task.Sleep(10*ms*time.Duration(i) - time.Duration(l.w.Now())) // at 0, 10, 20, 30, 40 ms
					}
				})
				c.fault.Kind, c.fault.On = kind, []string{on}
				l.fault(c.fault)
				l.run(EndDone)
				if s := strings.Join(got, " "); s != c.want {
					t.Errorf("%v on %s, %s: %s came back, want %s", kind, on, c.name, s, c.want)
				}
				handled := strings.Count(strings.Join(l.log, "\n"), "handles")
				if kind == DropReply && handled != 5 || kind == DropRequest && handled != len(got) {
					t.Errorf("%v, %s: %d requests took effect", kind, c.name, handled)
				}
			}
		}
	}
}

// TestDatagrams: what arrives twice and what overtakes.
func TestDatagrams(t *testing.T) {
	for _, c := range []struct {
		kind FaultKind
		want string
	}{
		{Duplicate, `1ms s handles one
		             1ms s handles one
		             1ms s handles two
		             1ms s handles three`},
		{Reorder, `1ms s handles two
		           1ms s handles three
		           2.000001ms s handles one`},
	} {
		l := newLab(t, Config{})
		l.client("client-1", func(task *Task) {
			task.Send(l.server("s"), Text("one"))
			task.Send(l.server("s"), Text("two"))
			task.Send(l.server("s"), Text("three"))
		})
		l.fault(Fault{Kind: c.kind, On: []string{"client-1->s"}})
		l.run(EndDone)
		l.saw(c.want)
	}
}

// TestConnectionsKnowNoDuplicates: TCP hides both.
func TestConnectionsKnowNoDuplicates(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) { l.ask(task, task.Dial(l.server("s")), "x", 0) })
	for _, kind := range []FaultKind{Duplicate, Reorder} {
		l.fault(Fault{Kind: kind, On: []string{"client-1"}, For: Exactly(time.Second)})
		l.fault(Fault{Kind: kind, On: []string{"s"}, For: Exactly(time.Second)})
	}
	l.run(EndDone)
	l.saw(`1ms s handles x
	       2ms client-1: ok x`)
	for i, r := range l.w.FaultReports() {
		if !r.Fired || !r.Idle {
			t.Errorf("fault %d: %+v, want fired and idle", i, r)
		}
	}
}

// TestPartitionModes: what is sent into a partition is gone, or comes when it
// heals. With everybody else, one way, and both ways.
func TestPartitionModes(t *testing.T) {
	run := func(f Fault) *lab {
		l := newLab(t, Config{})
		l.client("client-1", func(task *Task) { l.ask(task, task.Dial(l.server("s")), "x", 50*ms) })
		f.Kind, f.For = Partition, Exactly(20*ms)
		l.fault(f)
		l.run(EndDone)
		return l
	}
	for _, on := range [][2]string{{"client-1", "s"}, {"s", "client-1"}, {"client-1", ""}, {"s", ""}} {
		f := Fault{On: []string{on[0]}}
		if on[1] != "" {
			f.From = []string{on[1]}
		}
		run(f).saw(`50ms client-1: x: call timed out: outcome unknown`)
		f.Mode = "hold"
		run(f).saw(`21ms s handles x
		            22ms client-1: ok x`)
	}
	run(Fault{On: []string{"s"}, From: []string{"client-1"}, OneWay: true}).saw(`1ms s handles x
		50ms client-1: x: call timed out: outcome unknown
		51ms s sees client-1 gone`)
	run(Fault{On: []string{"s"}, From: []string{"client-1"}, OneWay: true, Mode: "hold"}).saw(`1ms s handles x
		21ms client-1: ok x`)
	run(Fault{On: []string{"client-1"}, From: []string{"s"}, OneWay: true, Mode: "hold"}).saw(`21ms s handles x
		22ms client-1: ok x`)
}

// TestClockFaults: what a client's clocks show, and when its timers fire.
func TestClockFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults []Fault
		want   string
	}{
		{"a step moves the wall clock only", []Fault{{Kind: ClockStep, By: Exactly(-time.Minute)}},
			"woke at 100ms: monotonic 100ms, wall -59.9s"},
		{"an offset, over", []Fault{{Kind: ClockOffset, By: Exactly(time.Hour), For: Exactly(50 * ms)}},
			"woke at 100ms: monotonic 100ms, wall 100ms"},
		{"double speed", []Fault{{Kind: ClockRate, Rate: 1_000_000_000}},
			"woke at 55ms: monotonic 100ms, wall 100ms"},
		{"half speed for 40 ms", []Fault{{Kind: ClockRate, Rate: -500_000_000, For: Exactly(40 * ms)}},
			"woke at 120ms: monotonic 100ms, wall 100ms"},
		{"two rates at once, of which one ends", []Fault{
			{Kind: ClockRate, Rate: 1_000_000_000}, {Kind: ClockRate, Rate: 1_000_000_000, For: Exactly(10 * ms)}},
			"woke at 50ms: monotonic 100ms, wall 100ms"},
	} {
		l := newLab(t, Config{})
		l.client("client-1", func(task *Task) {
			task.Sleep(100 * ms)
			woke := time.Duration(l.w.Now())
			l.log = append(l.log, fmt.Sprintf("woke at %v: monotonic %v, wall %v", woke, time.Duration(task.Now()), task.Wall().Sub(WallStart)))
		})
		l.client("client-2", func(task *Task) { task.Sleep(time.Second) })
		for _, f := range c.faults {
			f.On, f.Trigger = []string{"client-1"}, at(10*ms)
			l.fault(f)
		}
		l.run(EndDone)
		if l.log[0] != c.want {
			t.Errorf("%s: %s, want %s", c.name, l.log[0], c.want)
		}
	}
}

// TestWallTimers: a server's timer on the wall clock follows its steps.
func TestWallTimers(t *testing.T) {
	for by, want := range map[time.Duration]string{-30 * ms: "80ms s timer 1", 20 * ms: "30ms s timer 1", time.Hour: "10ms s timer 1"} {
		l := newLab(t, Config{})
		l.serve("s", &walled{scribe{lab: l}})
		l.client("client-1", func(task *Task) { task.Sleep(time.Second) })
		l.fault(Fault{Kind: ClockStep, On: []string{"s-node"}, By: Exactly(by), Trigger: at(10 * ms)})
		l.run(EndDone)
		l.saw(want)
	}
}

type walled struct{ scribe }

func (s *walled) Start(p *Process) { p.TimerAtWall(p.Wall().Add(50*ms), 1) }

// TestReports: a trigger that never came, a fault that found nothing to hit.
func TestReports(t *testing.T) {
	l := story(t,
		Fault{Kind: Pause, On: []string{"client-1"}, For: Exactly(ms), Trigger: Trigger{Before: place(t, "client-1/section#9")}},
		Fault{Kind: Pause, On: []string{"client-1"}, For: Exactly(ms), Trigger: at(ms)},
		Fault{Kind: Stall, On: []string{"client-1.nobody"}},
		Fault{Kind: Stall, On: []string{"client-1.renewer"}, Trigger: at(ms), For: Exactly(ms)},
		Fault{Kind: Cut, On: []string{"client-2->s"}},
		Fault{Kind: Cut, On: []string{"client-1"}, Trigger: at(6 * ms)},
		Fault{Kind: Delay, On: []string{"client-2"}, By: Exactly(ms)},
		Fault{Kind: Crash, On: []string{"client-2"}, Trigger: at(time.Hour)},
	)
	l.run(EndDone)
	const once = clock.Time(ms)
	want := []FaultReport{
		{Healed: clock.Never},
		{Fired: true, Struck: once, Healed: 2 * once},
		{Fired: true, Idle: true},
		{Fired: true, Struck: once, Healed: 2 * once},
		{Fired: true, Idle: true},
		{Fired: true, Struck: 6 * once, Healed: 6 * once},
		{Fired: true, Idle: true, Healed: clock.Never},
		{Healed: clock.Never},
	}
	for i, got := range l.w.FaultReports() {
		want[i].Index = i
		if got != want[i] {
			t.Errorf("fault %d: %+v, want %+v", i+1, got, want[i])
		}
	}
}

// TestNames: a name that the run does not have gives one clear line.
func TestNames(t *testing.T) {
	for want, f := range map[string]Fault{
		`fault 2: no process is called "client-9"; this run has client-1, s`: {Kind: Pause, On: []string{"client-9"}},
		`fault 2: no process is called "nope"; this run has client-1, s`:     {Kind: Freeze, On: []string{"nope"}, For: Exactly(ms)},
		`fault 2: no process is called "x"; this run has client-1, s`:        {Kind: DropReply, On: []string{"client-1->x"}},
		`fault 2: no process is called "y"; this run has client-1, s`:        {Kind: Pause, On: []string{"s"}, Trigger: Trigger{Before: place(t, "y/write")}},
		`fault 2: no process is called "z"; this run has client-1, s`:        {Kind: Pause, On: []string{"s"}, Until: Milestone{Kind: Granted, Who: "z", N: 1}, AtMost: Exactly(ms)},
		`fault 2: no process is called "v"; this run has client-1, s`:        {Kind: Partition, On: []string{"s"}, From: []string{"v"}},
		`fault 2: no process is called "u"; this run has client-1, s`:        {Kind: Pause, On: []string{"s"}, Trigger: Trigger{Step: Step{Proc: "u", N: 1}}},
		`fault 2: freeze needs for or until`:                                 {Kind: Freeze, On: []string{"s"}},
	} {
		w := NewWorld(Config{Plan: Plan{Faults: []Fault{{Kind: LoseUnsynced, On: []string{"s"}}, f}}})
		w.AddNode("client-1").AddClient("client-1", func(*Task) {})
		w.AddNode("s-node").AddServer("s", &echo{})
		_, err := w.Run()
		var fault *FaultError
		if err == nil || err.Error() != want || !errors.As(err, &fault) || fault.Index != 1 || fault.Field == "" {
			t.Errorf("%v\nwant %s", err, want)
		}
		w.Close()
	}
}
