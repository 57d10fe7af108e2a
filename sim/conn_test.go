package sim

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"locklab/network"
)

// TestOrderOnAConnection: whatever latencies and delays, each direction of a
// connection keeps its order.
func TestOrderOnAConnection(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLab(rt, Config{Seed: rapid.Uint64().Draw(rt, "seed"), LatencyMax: 20 * ms,
			ServiceTime: time.Duration(rapid.IntRange(0, 3).Draw(rt, "service")) * ms, ServiceWorkers: rapid.IntRange(1, 2).Draw(rt, "workers")})
		defer l.w.Close()
		gaps := rapid.SliceOfN(rapid.IntRange(0, 5), 12, 12).Draw(rt, "gaps")
		var handled, answered []string
		h := &echo{}
		l.serve("s", orderly{h, func(m *Message) { handled = append(handled, m.Body.String()) }})
		var want []string
		l.client("client-1", func(task *Task) {
			c := task.Dial(l.server("s"))
			for i, gap := range gaps {
				body := fmt.Sprint(i)
				want = append(want, body)
				call := task.Start(c, Text(body), 0)
				task.Spawn("reader", PhaseWork, func(task *Task) {
					if reply, err := task.Await(call); err == nil {
						answered = append(answered, reply.String())
					}
				})
				task.Sleep(time.Duration(gap) * ms)
			}
			task.Sleep(time.Second)
		})
		for range rapid.IntRange(0, 3).Draw(rt, "faults") {
			link := rapid.SampledFrom([]string{"client-1->s", "s->client-1"}).Draw(rt, "link")
			start := at(time.Duration(rapid.IntRange(0, 60).Draw(rt, "at")) * ms)
			long := Exactly(time.Duration(rapid.IntRange(1, 60).Draw(rt, "for")) * ms)
			switch rapid.IntRange(0, 3).Draw(rt, "kind") {
			case 0:
				l.fault(Fault{Kind: Delay, On: []string{link}, Trigger: start, By: long})
			case 1:
				l.fault(Fault{Kind: Delay, On: []string{link}, Trigger: start, For: long})
			case 2:
				l.fault(Fault{Kind: Partition, On: []string{"s"}, Trigger: start, For: long, Mode: "hold"})
			case 3:
				l.fault(Fault{Kind: Freeze, On: []string{"s-node"}, Trigger: start, For: long})
			}
		}
		l.run(EndDone)
		if !slices.Equal(handled, want) || !slices.Equal(answered, want) {
			l.dump()
			rt.Fatalf("sent %v, handled %v, answered %v", want, handled, answered)
		}
	})
}

type orderly struct {
	*echo
	saw func(*Message)
}

func (o orderly) Request(p *Process, m *Message) { o.saw(m); p.Reply(m, m.Body) }

// TestAbandonedRequestTakesEffectLater is the delayed write: the client gives
// up, its FIN waits behind the bytes, a newer request overtakes on another
// connection, and in the end the old one is handled and the server sees the
// client gone.
func TestAbandonedRequestTakesEffectLater(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		c := task.Dial(l.server("s"))
		err := l.ask(task, c, "old write", 10*ms)
		if !errors.Is(err, ErrUnknown) || c.Open() {
			t.Errorf("%v, open %v: want an unknown outcome and an abandoned connection", err, c.Open())
		}
		l.ask(task, c, "on the abandoned one", 10*ms)
	})
	l.client("client-2", func(task *Task) {
		task.Sleep(20 * ms)
		l.ask(task, task.Dial(l.server("s")), "new write", 0)
	})
	l.fault(Fault{Kind: Delay, On: []string{"client-1->s"}, For: Exactly(50 * ms)})
	l.run(EndDone)
	l.saw(`10ms client-1: old write: call timed out: outcome unknown
	       10ms client-1: on the abandoned one: connection closed
	       21ms s handles new write
	       22ms client-2: ok new write
	       51ms s handles old write
	       51ms s sees client-1 gone`)
}

// TestHoldKeepsTheOthersMoving: a held connection does not hold another.
func TestDelayBy(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		a, b := task.Dial(l.server("s")), task.Dial(l.server("s"))
		first := task.Start(a, Text("delayed"), 0)
		second := task.Start(a, Text("behind it"), 0)
		third := task.Start(b, Text("on another"), 0)
		task.Await(first)
		task.Await(second)
		task.Await(third)
	})
	l.fault(Fault{Kind: Delay, On: []string{"client-1->s"}, By: Exactly(30 * ms)})
	l.run(EndDone)
	l.saw(`1ms s handles on another
	       31ms s handles delayed
	       31ms s handles behind it`)
}

// TestEndlessDelay: near the end of time nothing overflows.
func TestEndlessDelay(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) { l.ask(task, task.Dial(l.server("s")), "x", 5*ms) })
	for range 2 {
		l.fault(Fault{Kind: Delay, On: []string{"client-1->s"}, By: Exactly(1<<63 - 1)})
	}
	l.run(EndHorizon)
	l.saw(`5ms client-1: x: call timed out: outcome unknown`)
}

// TestRefused: nobody listens. That is a "no", not an unknown outcome.
func TestRefused(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		task.Sleep(2 * ms)
		c := task.Dial(l.server("s"))
		if err := l.ask(task, c, "x", 0); errors.Is(err, ErrUnknown) {
			t.Error("a refused call has a known outcome")
		}
		task.Sleep(10 * ms)
		l.ask(task, task.Dial(l.server("s")), "again", 0)
	})
	l.fault(Fault{Kind: Crash, On: []string{"s"}, Trigger: at(ms), Restart: Exactly(10 * ms)})
	l.run(EndDone)
	l.saw(`4ms client-1: x: connection refused
	       11ms s starts
	       15ms s handles again
	       16ms client-1: ok again`)
}

// TestRefusedStaysRefused: two requests on one connection, of which the first
// finds nobody and the second would find a server that has just come up. What
// is called refused must not be handled.
func TestRefusedStaysRefused(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		task.Sleep(2 * ms)
		c := task.Dial(l.server("s"))
		first := task.Start(c, Text("first"), 0)
		task.Sleep(900 * time.Microsecond)
		second := task.Start(c, Text("second"), 0)
		for _, call := range []*Call{first, second} {
			_, err := task.Await(call)
			l.say("%v", err)
		}
	})
	l.fault(Fault{Kind: Crash, On: []string{"s"}, Trigger: at(ms), Restart: Exactly(2500 * time.Microsecond)})
	l.run(EndDone)
	l.saw(`3.5ms s starts
	       4ms connection refused
	       4ms connection refused`)
}

// TestCrashOfAProcess: its kernel resets the connections at once.
func TestCrashOfAProcess(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		c := task.Dial(l.server("s"))
		if err := l.ask(task, c, "silent", 0); !errors.Is(err, ErrReset) || !errors.Is(err, ErrUnknown) {
			t.Errorf("%v, want a reset", err)
		}
		l.ask(task, c, "again", 0)
	})
	l.fault(Fault{Kind: Crash, On: []string{"s"}, Trigger: at(5 * ms)})
	l.run(EndDone)
	l.saw(`1ms s handles silent
	       6ms client-1: silent: connection reset: outcome unknown
	       6ms client-1: again: connection closed`)
}

// TestCrashOfANode: silence. Only the client's own timeout helps; after the
// restart the new kernel knows of no old connection.
func TestCrashOfANode(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		a, b := task.Dial(l.server("s")), task.Dial(l.server("s"))
		l.ask(task, a, "silent", 20*ms)
		l.ask(task, b, "to the dead", 20*ms)
		task.Sleep(20 * ms)
		l.ask(task, task.Dial(l.server("s")), "to the new one", 20*ms)
	})
	l.client("client-2", func(task *Task) {
		c := task.Dial(l.server("s"))
		l.ask(task, c, "early", 0)
		task.Sleep(60 * ms)
		l.ask(task, c, "on the old connection", 0)
	})
	l.fault(Fault{Kind: Crash, On: []string{"s-node"}, Mode: "node", Trigger: at(5 * ms), Restart: Exactly(45 * ms)})
	l.run(EndDone)
	l.saw(`1ms s handles silent
	       1ms s handles early
	       2ms client-2: ok early
	       20ms client-1: silent: call timed out: outcome unknown
	       40ms client-1: to the dead: call timed out: outcome unknown
	       50ms s starts
	       61ms s handles to the new one
	       62ms client-1: ok to the new one
	       64ms client-2: on the old connection: connection reset: outcome unknown`)
}

// TestCrashWhileBytesWait: a paused process dies with what its kernel had kept
// for it.
func TestCrashWhileBytesWait(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		l.ask(task, task.Dial(l.server("s")), "x", 0)
		task.Sleep(5 * ms)
	})
	l.fault(Fault{Kind: Pause, On: []string{"s"}})
	l.fault(Fault{Kind: Crash, On: []string{"s"}, Trigger: at(5 * ms), Restart: Exactly(ms)})
	l.run(EndDone)
	l.saw(`6ms client-1: x: connection reset: outcome unknown
	       6ms s starts`)
}

// TestNodeCrashSupersedesARestart: a process that was about to come up on a
// machine that then dies comes up when the machine does, or never.
func TestNodeCrashSupersedesARestart(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) { task.Sleep(50 * ms); l.say("client-1 ends") })
	l.client("client-2", func(task *Task) { l.say("client-2 begins"); task.Sleep(ms) })
	l.fault(Fault{Kind: Crash, On: []string{"s"}, Trigger: at(ms), Restart: Exactly(5 * ms)})
	l.fault(Fault{Kind: Crash, On: []string{"s-node"}, Mode: "node", Trigger: at(2 * ms), Restart: Exactly(20 * ms)})
	l.fault(Fault{Kind: Crash, On: []string{"client-2"}, Restart: Exactly(5 * ms)})
	l.fault(Fault{Kind: Crash, On: []string{"client-2"}, Mode: "node", Trigger: at(2 * ms)})
	l.run(EndDone)
	l.saw(`22ms s starts
	       50ms client-1 ends`)
}

// TestClientRestarts: main runs again, the server hears of the crash, and the
// run waits for the restart.
func TestClientRestarts(t *testing.T) {
	l := newLab(t, Config{})
	lives := 0
	l.client("client-1", func(task *Task) {
		lives++
		task.Enter(1, PhaseWrite)
		l.ask(task, task.Dial(l.server("s")), fmt.Sprintf("life %d", lives), 0)
		task.Sleep(10 * ms)
		l.say("life %d ends", lives)
	})
	l.fault(Fault{Kind: Crash, On: []string{"client-1"}, Trigger: at(5 * ms), Restart: Exactly(15 * ms)})
	l.run(EndDone)
	l.saw(`1ms s handles life 1
	       2ms client-1: ok life 1
	       6ms s sees client-1 gone
	       21ms s handles life 2
	       22ms client-1: ok life 2
	       32ms life 2 ends`)
	for _, e := range l.w.Trace() {
		if e.Kind == EventSend && e.Body.String() == "life 2" && e.Place.Op != 3 {
			t.Errorf("the second life's write is %s, want op#3", l.w.PlaceName(e.Place))
		}
	}
}

// TestCrashAtItsOwnEffect: the process dies before the effect happens.
func TestCrashAtItsOwnEffect(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		defer l.say("client-1 unwinds")
		task.Enter(1, PhaseWrite)
		l.ask(task, task.Dial(l.server("s")), "never sent", 0)
	})
	l.client("client-2", func(task *Task) { task.Sleep(10 * ms) })
	l.fault(Fault{Kind: Crash, On: []string{"client-1"}, Trigger: Trigger{Before: place(t, "client-1/section#1/write")}})
	l.run(EndDone)
	l.saw(`0s client-1 unwinds
	       1ms s sees client-1 gone`)
}

// TestCutReset: both sides learn at once.
func TestCutReset(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		c := task.Dial(l.server("s"))
		l.ask(task, c, "silent", 0)
		l.ask(task, c, "later", 0)
		task.Sleep(ms)
	})
	l.fault(Fault{Kind: Cut, On: []string{"client-1->s"}, Trigger: at(5 * ms)})
	l.run(EndDone)
	l.saw(`1ms s handles silent
	       5ms client-1: silent: connection reset: outcome unknown
	       5ms client-1: later: connection closed
	       5ms s sees client-1 gone`)
}

// TestSilentCut: nobody is told. The client that sends finds out when TCP gives
// up; the server that only listens, by its keepalive.
func TestSilentCut(t *testing.T) {
	l := newLab(t, Config{Horizon: 3 * time.Hour})
	l.serve("s", &watching{scribe{lab: l}})
	l.client("client-1", func(task *Task) {
		c := task.Dial(l.server("s"))
		l.ask(task, c, "first", 0)
		task.Sleep(8 * ms)
		l.ask(task, c, "into the void", 0)
		task.Sleep(2*time.Hour + time.Minute) // its keepalive would go unanswered too
	})
	l.fault(Fault{Kind: Cut, On: []string{"client-1->s"}, Mode: "silent", Trigger: at(5 * ms)})
	l.client("client-2", func(task *Task) { task.Sleep(2*time.Hour + 20*time.Minute) })
	l.run(EndDone)
	l.saw(`1ms s handles first
	       2ms client-1: ok first
	       15m24.61s client-1: into the void: connection reset: outcome unknown
	       2h11m15.001s s sees client-1 gone`) // 1 ms + 7200 s + 9 x 75 s
}

// watching probes every client that speaks to it.
type watching struct{ scribe }

func (s *watching) Request(p *Process, m *Message) {
	p.Watch(m.Conn, network.LinuxKeepalive)
	s.scribe.Request(p, m)
}

// TestKeepalive: a paused client's kernel answers, a frozen machine does not;
// one that has crashed and come up again answers with a reset.
func TestKeepalive(t *testing.T) {
	k := network.Keepalive{Idle: 100 * ms, Interval: 10 * ms, Probes: 3}
	for _, c := range []struct {
		name  string
		fault Fault
		want  string
	}{
		{"paused", Fault{Kind: Pause, On: []string{"client-1"}, For: Exactly(time.Second)}, ``},
		{"frozen", Fault{Kind: Freeze, On: []string{"client-1"}, For: Exactly(time.Second)}, `131ms s sees client-1 gone`},
		{"frozen for a while", Fault{Kind: Freeze, On: []string{"client-1"}, For: Exactly(110 * ms)}, ``},
		{"node down", Fault{Kind: Crash, On: []string{"client-1"}, Mode: "node"}, `131ms s sees client-1 gone`},
		{"node up again", Fault{Kind: Crash, On: []string{"client-1"}, Mode: "node", Restart: Exactly(60 * ms)}, `101ms s sees client-1 gone`},
		{"partition", Fault{Kind: Partition, On: []string{"client-1"}, OneWay: true}, `131ms s sees client-1 gone`},
	} {
		l := newLab(t, Config{})
		l.serve("s", &keeper{k: k, scribe: scribe{lab: l}})
		lives := 0
		l.client("client-1", func(task *Task) {
			if lives++; lives == 1 {
				task.Call(task.Dial(l.server("s")), Text("x"), 0)
			}
			task.Sleep(300 * ms)
		})
		l.client("client-2", func(task *Task) { task.Sleep(300 * ms) })
		c.fault.Trigger = at(5 * ms)
		l.fault(c.fault)
		l.run(EndDone)
		if t.Run(c.name, func(t *testing.T) { l.t = t; l.saw(c.want) }); t.Failed() {
			return
		}
	}
}

type keeper struct {
	scribe
	k network.Keepalive
}

func (s *keeper) Request(p *Process, m *Message) { p.Watch(m.Conn, s.k); p.Reply(m, m.Body) }

// TestFrozenWatcher: a server that was suspended itself sends its probes an
// interval apart when it is back, not all at once.
func TestFrozenWatcher(t *testing.T) {
	l := newLab(t, Config{})
	l.serve("s", &keeper{k: network.Keepalive{Idle: 100 * ms, Interval: 10 * ms, Probes: 3}, scribe: scribe{lab: l}})
	l.client("client-1", func(task *Task) { task.Call(task.Dial(l.server("s")), Text("x"), 0); task.Sleep(time.Second) })
	l.client("client-2", func(task *Task) { task.Sleep(time.Second) })
	l.fault(Fault{Kind: Freeze, On: []string{"s-node"}, Trigger: at(50 * ms), For: Exactly(450 * ms)})
	l.fault(Fault{Kind: Crash, On: []string{"client-1"}, Mode: "node", Trigger: at(60 * ms)})
	l.run(EndDone)
	l.saw(`530ms s sees client-1 gone`)
}

// TestHangup: the FIN travels behind the bytes; calls still out end at once.
func TestHangup(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		c := task.Dial(l.server("s"))
		call := task.Start(c, Text("x"), 0)
		task.Hangup(c)
		task.Hangup(c)
		_, err := task.Await(call)
		l.say("%v", err)
	})
	l.run(EndDone)
	l.saw(`0s connection reset: outcome unknown
	       1ms s handles x
	       1ms s sees client-1 gone`)
}

// TestAServerCloses: the client's call ends, and a late reply goes nowhere.
func TestAServerCloses(t *testing.T) {
	l := newLab(t, Config{})
	l.serve("s", &closer{scribe{lab: l}})
	l.client("client-1", func(task *Task) { l.ask(task, task.Dial(l.server("s")), "x", 0) })
	l.run(EndDone)
	l.saw(`2ms client-1: x: connection reset: outcome unknown`)
}

type closer struct{ scribe }

func (s *closer) Request(p *Process, m *Message) { p.Close(m.Conn); p.Reply(m, m.Body) }

// TestPipelinedTimeout: one call's timeout takes the connection from the
// others that are out on it, and at once.
func TestPipelinedTimeout(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		c := task.Dial(l.server("s"))
		waits := task.Start(c, Text("silent, no timeout"), 0)
		l.ask(task, c, "silent", 10*ms)
		_, err := task.Await(waits)
		l.say("the other: %v", err)
	})
	l.run(EndDone)
	l.saw(`1ms s handles silent, no timeout
	       1ms s handles silent
	       10ms client-1: silent: call timed out: outcome unknown
	       10ms the other: connection reset: outcome unknown
	       11ms s sees client-1 gone`)
}

// TestGivingUpIsNotARefusal: TCP gives up on a connection whose first request is
// still under way, very late. Its outcome is unknown, and indeed it is handled.
func TestGivingUpIsNotARefusal(t *testing.T) {
	l := newLab(t, Config{Horizon: time.Hour})
	l.client("client-1", func(task *Task) {
		c := task.Dial(l.server("s"))
		late := task.Start(c, Text("late"), 0)
		task.Sleep(5 * ms)
		l.ask(task, c, "lost", 0)
		_, err := task.Await(late)
		l.say("late: %v", err)
	})
	l.fault(Fault{Kind: Delay, On: []string{"client-1->s"}, By: Exactly(20 * time.Minute)})
	l.fault(Fault{Kind: Partition, On: []string{"s"}, Trigger: at(ms), For: Exactly(10 * ms)})
	l.run(EndDone)
	l.saw(`15m24.605s client-1: lost: connection reset: outcome unknown
	       15m24.605s late: connection reset: outcome unknown
	       20m0.001s s handles late`)
}
