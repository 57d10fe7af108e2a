package sim_test

import (
	"fmt"
	"time"

	"locklab/sim"
)

// counter is a server that counts the requests it handles.
type counter struct{ n int }

func (c *counter) Start(*sim.Process)             { c.n = 0 }
func (c *counter) Timer(*sim.Process, uint64)     {}
func (c *counter) Closed(*sim.Process, *sim.Conn) {}
func (c *counter) Request(p *sim.Process, m *sim.Message) {
	c.n++
	p.Reply(m, sim.Text(fmt.Sprintf("%v is number %d", m.Body, c.n)))
}

// A client calls a server twice. A fault loses the first reply: the client
// cannot know that its call took effect.
func Example() {
	w := sim.NewWorld(sim.Config{
		LatencyMin: time.Millisecond, LatencyMax: time.Millisecond,
		Plan: sim.Plan{Faults: []sim.Fault{{Kind: sim.DropReply, On: []string{"client-1->server"}}}},
	})
	defer w.Close()
	server := w.AddNode("machine").AddServer("server", &counter{})
	w.AddNode("laptop").AddClient("client-1", func(t *sim.Task) {
		for _, name := range []string{"the first", "the second"} {
			reply, err := t.Call(t.Dial(server), sim.Text(name), 50*time.Millisecond)
			fmt.Println(time.Duration(w.Now()), reply, err)
		}
	})
	end, err := w.Run()
	fmt.Println(end, err)
	// Output:
	// 50ms <nil> call timed out: outcome unknown
	// 52ms the second is number 2 <nil>
	// done <nil>
}

// A pause strikes a client between its check and its act. Its clock runs on,
// which it could only know by looking again.
func ExampleFault() {
	before, _ := sim.ParsePlace("client-1/section#1/write")
	w := sim.NewWorld(sim.Config{Plan: sim.Plan{Faults: []sim.Fault{{
		Kind: sim.Pause, On: []string{"client-1"}, For: sim.Exactly(15 * time.Second),
		Trigger: sim.Trigger{Before: before},
	}}}})
	defer w.Close()
	server := w.AddNode("machine").AddServer("server", &counter{})
	w.AddNode("laptop").AddClient("client-1", func(t *sim.Task) {
		conn, deadline := t.Dial(server), t.Now().Add(10*time.Second)
		if t.Now() < deadline { // the lease is still ours
			t.Enter(1, sim.PhaseWrite)
			t.Call(conn, sim.Text("write"), 0)
			fmt.Println("wrote", t.Now().Sub(deadline), "after the deadline")
		}
	})
	w.Run()
	// Output: wrote 5s after the deadline
}
