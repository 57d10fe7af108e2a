package locktest

import (
	"errors"
	"time"

	"locklab/sim"
)

// Link is a client's way to a server: one connection at a time, opened when it
// is needed, and a new one when the last was abandoned or reset. The zero Link
// leads nowhere; set Server.
type Link struct {
	Server *sim.Process
	conn   *sim.Conn
}

// Call sends a request and waits for its reply, at most for timeout (0: for
// ever). Its error is sim.ErrUnknown: the request may have taken effect, may
// yet do so, or never will.
func (l *Link) Call(t *sim.Task, body sim.Payload, timeout time.Duration) (sim.Payload, error) {
	for {
		if l.conn == nil || !l.conn.Open() {
			l.conn = t.Dial(l.Server)
		}
		reply, err := t.Call(l.conn, body, timeout)
		if !errors.Is(err, sim.ErrClosed) { // closed while this client was paused: nothing was sent
			return reply, err
		}
	}
}
