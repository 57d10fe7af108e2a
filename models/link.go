package models

import (
	"errors"
	"time"

	"locklab/sim"
)

// link is a client's way to a server: one connection at a time, opened when it
// is needed, and a new one when the last was abandoned or reset.
type link struct {
	server *sim.Process
	conn   *sim.Conn
}

// call sends a request and waits for its reply.
func (l *link) call(t *sim.Task, env *Env, body sim.Payload) (sim.Payload, error) {
	return l.callFor(t, body, env.Options.CallTimeout)
}

// callFor does the same with a timeout of its own.
func (l *link) callFor(t *sim.Task, body sim.Payload, timeout time.Duration) (sim.Payload, error) {
	for {
		if l.conn == nil || !l.conn.Open() {
			l.conn = t.Dial(l.server)
		}
		reply, err := t.Call(l.conn, body, timeout)
		if !errors.Is(err, sim.ErrClosed) { // closed while this client was paused: nothing was sent
			return reply, err
		}
	}
}
