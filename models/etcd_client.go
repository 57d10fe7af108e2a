package models

import (
	"errors"
	"time"

	"locklab/clock"
	"locklab/sim"
)

// errUnavailable: the member did nothing. Another may.
var errUnavailable = errors.New("unavailable")

// clientBackoff is how long a client waits before it asks again.
const clientBackoff = 50 * time.Millisecond

// kvClient is a client of the consensus store: it speaks with one member at a
// time, and with the next when that one does not answer.
type kvClient struct {
	env   *Env
	nodes []*sim.Process
	at    int
	link  link
	until clock.Reading // give up then; 0: never
	// deadline is that of every single request, where it comes before the
	// call's own timeout; 0: there is none.
	deadline clock.Reading
}

// newKvClient returns a client that begins with the given member.
func newKvClient(env *Env, nodes []*sim.Process, at int) kvClient {
	at %= len(nodes)
	return kvClient{env: env, nodes: nodes, at: at, link: link{server: nodes[at]}}
}

// ask sends one request to the present member.
func (c *kvClient) ask(t *sim.Task, r kvRequest) (*kvReply, error) {
	timeout := c.env.Options.CallTimeout
	if c.deadline != 0 {
		if timeout = min(timeout, c.deadline.Sub(t.Now())); timeout <= 0 {
			return nil, errUnavailable
		}
	}
	body := c.env.raft.requests.Get()
	*body = r
	p, err := c.link.callFor(t, body, timeout)
	if err == nil {
		if reply := p.(*kvReply); reply.code != kvUnavailable {
			return reply, nil
		}
		err = errUnavailable
	}
	c.turn(t)
	return nil, err
}

// turn goes on to the next member.
func (c *kvClient) turn(t *sim.Task) {
	if c.link.conn != nil && c.link.conn.Open() {
		t.Hangup(c.link.conn)
	}
	c.at = (c.at + 1) % len(c.nodes)
	c.link = link{server: c.nodes[c.at]}
}

// once sends a request that changes something. It is sent again only if it
// surely did nothing: etcd's client does not repeat a write that may have been
// carried out (at most once), and nothing on the server's side would notice
// that it was the same.
func (c *kvClient) once(t *sim.Task, r kvRequest) (*kvReply, error) {
	for {
		reply, err := c.ask(t, r)
		if err == nil || errors.Is(err, sim.ErrUnknown) {
			return reply, err
		}
		if err := c.pause(t); err != nil {
			return nil, err
		}
	}
}

// repeat sends a request that may be carried out any number of times, until it
// is answered.
func (c *kvClient) repeat(t *sim.Task, r kvRequest) (*kvReply, error) {
	for {
		reply, err := c.ask(t, r)
		if err == nil {
			return reply, nil
		}
		if err := c.pause(t); err != nil {
			return nil, err
		}
	}
}

func (c *kvClient) pause(t *sim.Task) error {
	if c.until != 0 && t.Now() >= c.until {
		return ErrGaveUp
	}
	t.Sleep(clientBackoff)
	return nil
}

// watch waits until a key that was seen with a create revision is gone. A
// client that hears nothing for a TTL asks elsewhere: the member may have been
// cut off, and nothing else would tell.
func (c *kvClient) watch(t *sim.Task, r kvRequest) (*kvReply, error) {
	r.verb = kvWatch
	for {
		if c.link.conn == nil || !c.link.conn.Open() {
			c.link.conn = t.Dial(c.link.server)
		}
		patience := c.env.Options.TTL
		if c.until != 0 {
			patience = min(patience, max(c.until.Sub(t.Now()), 1))
		}
		body := c.env.raft.requests.Get()
		*body = r
		p, err := t.Call(c.link.conn, body, patience)
		if err == nil {
			return p.(*kvReply), nil
		}
		c.turn(t)
		if err := c.pause(t); err != nil {
			return nil, err
		}
	}
}
