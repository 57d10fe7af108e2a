package sim

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// lab builds small worlds for tests and writes down, in words and with true
// times, what their programs see.
type lab struct {
	t     rapid.TB
	w     *World
	cfg   Config
	built []func()
	procs map[string]*Process
	log   []string
}

const ms = time.Millisecond

// newLab starts a laboratory. Where cfg says nothing, messages take 1 ms each
// way.
func newLab(t rapid.TB, cfg Config) *lab {
	if cfg.LatencyMax == 0 {
		cfg.LatencyMin, cfg.LatencyMax = ms, ms
	}
	cfg.Trace = TraceRecord
	l := &lab{t: t, cfg: cfg, w: NewWorld(cfg), procs: map[string]*Process{}}
	if t, ok := t.(interface{ Cleanup(func()) }); ok {
		t.Cleanup(l.w.Close)
	}
	return l
}

func (l *lab) say(format string, args ...any) {
	l.log = append(l.log, fmt.Sprintf("%v ", time.Duration(l.w.Now()))+fmt.Sprintf(format, args...))
}

// client adds a client on a node of its own ("client-1" on node "client-1").
func (l *lab) client(name string, main func(*Task)) {
	l.add(name, name, func(n *Node) *Process { return n.AddClient(name, main) })
}

// serve adds a server on a node "<name>-node".
func (l *lab) serve(name string, h Handler) {
	l.add(name, name+"-node", func(n *Node) *Process { return n.AddServer(name, h) })
}

func (l *lab) add(name, node string, add func(*Node) *Process) {
	l.built = append(l.built, func() { l.procs[name] = add(l.w.AddNode(node)) })
}

// server returns a server, for use inside a program. Without serve it is a
// scribe.
func (l *lab) server(name string) *Process { return l.procs[name] }

// fault adds a fault, written as kind and change.
func (l *lab) fault(f Fault) { l.cfg.Plan.Faults = append(l.cfg.Plan.Faults, f) }

// run runs the world that was described and checks how it ends.
func (l *lab) run(want EndReason) {
	l.t.Helper()
	l.w.Reset(l.cfg)
	l.log = nil
	for _, build := range l.built {
		build()
	}
	if l.procs["s"] == nil {
		l.procs["s"] = l.w.AddNode("s-node").AddServer("s", &scribe{lab: l})
	}
	end, err := l.w.Run()
	if err != nil {
		l.t.Fatal(err)
	}
	if end != want {
		l.t.Errorf("the run ended with %v, want %v (%v)", end, want, l.w.Failure())
		l.dump()
	}
	if want == EndDone && l.w.inFlight != l.w.stuck() {
		l.t.Errorf("done with %d messages on their way", l.w.inFlight)
	}
}

// saw compares what was said with the expected lines.
func (l *lab) saw(want string) {
	l.t.Helper()
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(want)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	if got, want := strings.Join(l.log, "\n"), strings.Join(lines, "\n"); got != want {
		l.t.Errorf("saw:\n%s\n\nwant:\n%s", got, want)
		l.dump()
	}
}

func (l *lab) dump() {
	var b strings.Builder
	for _, e := range l.w.Trace() {
		b.WriteString(l.w.Describe(e) + "\n")
	}
	l.t.Log("trace:\n" + b.String())
}

// scribe is a server that writes down what reaches it, and answers every
// request but one whose text begins with "silent".
type scribe struct {
	lab *lab
	by  *Process
}

func (s *scribe) Start(p *Process) {
	s.by = p
	if p.w.now > 0 {
		s.lab.say("%s starts", p.name)
	}
}

func (s *scribe) Request(p *Process, m *Message) {
	s.lab.say("%s handles %s", p.name, m.Body)
	if m.Conn != nil && !strings.HasPrefix(m.Body.String(), "silent") {
		p.Reply(m, Text("ok "+m.Body.String()))
	}
}

func (s *scribe) Timer(p *Process, id uint64) { s.lab.say("%s timer %d", p.name, id) }
func (s *scribe) Closed(p *Process, c *Conn)  { s.lab.say("%s sees %s gone", p.name, c.Client().Name()) }

// ask makes a call and writes down how it ended.
func (l *lab) ask(t *Task, c *Conn, body string, timeout time.Duration) error {
	reply, err := t.Call(c, Text(body), timeout)
	if err != nil {
		l.say("%s: %s: %v", t.name, body, err)
	} else {
		l.say("%s: %v", t.name, reply)
	}
	return err
}

func place(t rapid.TB, s string) PlacePattern {
	t.Helper()
	p, err := ParsePlace(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func at(d time.Duration) Trigger { return Trigger{At: Exactly(d)} }
