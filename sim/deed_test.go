package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// operable is a server that knows one deed, and counts what was done to it.
type operable struct {
	done []Deed
	at   []time.Duration
	w    *World
}

func (*operable) Start(*Process)             {}
func (*operable) Request(*Process, *Message) {}
func (*operable) Timer(*Process, uint64)     {}
func (*operable) Closed(*Process, *Conn)     {}

func (*operable) Takes(d *Deed) error {
	if d.Kind != Evict {
		return errors.New("it has no replicas")
	}
	return nil
}

func (o *operable) Take(_ *Process, d *Deed) bool {
	o.done, o.at = append(o.done, *d), append(o.at, time.Duration(o.w.Now()))
	return d.Key == "there"
}

func operate(t *testing.T, faults ...Fault) (*operable, []FaultReport, error) {
	t.Helper()
	w := NewWorld(Config{Plan: Plan{Faults: faults}})
	t.Cleanup(w.Close)
	o := &operable{w: w}
	w.AddNode("n").AddServer("s", o)
	w.AddNode("m").AddClient("c", func(t *Task) { t.Sleep(time.Second) })
	_, err := w.Run()
	return o, w.FaultReports(), err
}

func evictAt(at time.Duration, key string) Fault {
	return Fault{Kind: Evict, On: []string{"s"}, Key: key, Trigger: Trigger{At: Exactly(at)}}
}

// A deed that finds nothing to be done to is idle, as every fault that hits
// nothing.
func TestDeedsReachTheServer(t *testing.T) {
	o, reports, err := operate(t, evictAt(ms, "there"), evictAt(2*ms, "gone"))
	require.NoError(t, err)
	require.Equal(t, []Deed{{Kind: Evict, Key: "there"}, {Kind: Evict, Key: "gone"}}, o.done)
	require.Equal(t, []bool{false, true}, []bool{reports[0].Idle, reports[1].Idle})
}

// A paused server can do nothing, so it is done to it when it goes on; a dead
// one has no keys.
func TestDeedsWaitForAPausedServer(t *testing.T) {
	o, _, err := operate(t, Fault{Kind: Pause, On: []string{"s"}, For: Exactly(10 * ms)}, evictAt(ms, "there"))
	require.NoError(t, err)
	require.Equal(t, []time.Duration{10 * ms}, o.at)
	o, reports, err := operate(t, Fault{Kind: Crash, On: []string{"s"}}, evictAt(ms, "there"))
	require.NoError(t, err)
	require.Empty(t, o.done)
	require.True(t, reports[1].Idle)
}

func TestDeedsThatAServerDoesNotKnow(t *testing.T) {
	for _, c := range []struct {
		fault Fault
		want  string
	}{
		{Fault{Kind: Failover, On: []string{"s"}}, "fault 1: s: it has no replicas"},
		{Fault{Kind: Evict, On: []string{"c"}, Key: "k"}, "fault 1: c knows no evict; evict needs a server that keeps keys or replicas"},
		{Fault{Kind: Evict, On: []string{"s"}}, "fault 1: evict needs key: which one, for example lock"},
		{Fault{Kind: Failover, On: []string{"s"}, Mode: "gentle"}, `fault 1: mode is isolated or demoted, got "gentle"`},
	} {
		_, _, err := operate(t, c.fault)
		require.EqualError(t, err, c.want)
	}
}

// caller is a server that speaks to another one and keeps what it hears.
type caller struct {
	to     *Process
	conn   *Conn
	heard  []string
	closed int
}

func (c *caller) Start(p *Process) {
	c.conn = p.Connect(c.to)
	p.Push(c.conn, Text("hello"))
	p.TimerIn(5*ms, 0)
}
func (c *caller) Request(_ *Process, m *Message) { c.heard = append(c.heard, m.Body.String()) }
func (c *caller) Timer(p *Process, _ uint64)     { p.Push(c.conn, Text("bye")) }
func (c *caller) Closed(*Process, *Conn)         { c.closed++ }

// answerer echoes, and hangs up at bye.
type answerer struct{ heard []string }

func (*answerer) Start(*Process)         {}
func (*answerer) Timer(*Process, uint64) {}
func (*answerer) Closed(*Process, *Conn) {}
func (a *answerer) Request(p *Process, m *Message) {
	a.heard = append(a.heard, m.Body.String())
	if m.Body == Text("bye") {
		p.Close(m.Conn)
		return
	}
	p.Push(m.Conn, Text("one"))
	p.Push(m.Conn, Text("two"))
}

// Servers speak to each other on connections as clients do: in order, and both
// ends learn of the end.
func TestServersConnectToServers(t *testing.T) {
	for _, latency := range []time.Duration{0, 3 * ms} {
		w := NewWorld(Config{LatencyMax: latency, Seed: 7})
		a := &answerer{}
		s := w.AddNode("a").AddServer("a", a)
		c := &caller{to: s}
		w.AddNode("b").AddServer("b", c)
		w.AddNode("m").AddClient("c", func(t *Task) { t.Sleep(time.Second) })
		_, err := w.Run()
		require.NoError(t, err)
		require.Equal(t, []string{"hello", "bye"}, a.heard)
		require.Equal(t, []string{"one", "two"}, c.heard)
		require.Equal(t, 1, c.closed)
		w.Close()
	}
}

// A server that crashes resets the connections that it opened, too.
func TestACrashedServersConnectionsAreReset(t *testing.T) {
	w := NewWorld(Config{Plan: Plan{Faults: []Fault{{Kind: Crash, On: []string{"a"}, Trigger: Trigger{At: Exactly(ms)}}}}})
	defer w.Close()
	s := w.AddNode("a").AddServer("a", &answerer{})
	c := &caller{to: s}
	w.AddNode("b").AddServer("b", c)
	w.AddNode("m").AddClient("c", func(t *Task) { t.Sleep(time.Second) })
	_, err := w.Run()
	require.NoError(t, err)
	require.Equal(t, 1, c.closed)
}
