// Package mylock is a lock of one's own, from outside locklab, and its test.
package mylock

import (
	"fmt"
	"testing"

	"locklab/clock"
	"locklab/models"
	"locklab/scenarios/locktest"
	"locklab/sim"
)

func mine() locktest.Lock {
	return locktest.Lock{Name: "mine", Client: newClient, Server: newServer, Promise: models.LeasePromise, Resource: "plain"}
}

func TestMine(t *testing.T) { locktest.Check(t, mine()) }

func FuzzMine(f *testing.F) { locktest.Fuzz(f, mine()) }

// message is all that client and server say to each other.
type message struct {
	verb  string
	owner int64
}

func (m message) Digest(d *sim.Digest) { d.Text(m.verb); d.Int(m.owner) }
func (m message) String() string       { return fmt.Sprint(m.verb, " ", m.owner) }

// client is one client's handle on the lock.
type client struct {
	server locktest.Link
	o      models.Options
}

func newClient(o models.Options, server *sim.Process) models.Lock {
	return &client{locktest.Link{Server: server}, o}
}

func (c *client) Acquire(t *sim.Task) (models.Grant, error) {
	me, deadline := t.Unique(), t.Now().Add(c.o.TTL)
	return models.Grant{Mark: me, Deadline: deadline}, c.ask(t, message{"lock", me}, models.ErrBusy)
}

func (c *client) Renew(t *sim.Task, g *models.Grant) error { return nil } // Lock.Renews is false

func (c *client) Release(t *sim.Task, g *models.Grant) error {
	return c.ask(t, message{"unlock", g.Mark}, models.ErrLost)
}

func (c *client) ask(t *sim.Task, m message, no error) error {
	reply, err := c.server.Call(t, m, c.o.CallTimeout)
	if err == nil && reply.(message).verb == "no" {
		err = no
	}
	return err
}

// server grants the lock for a TTL, by its monotonic clock.
type server struct {
	o     models.Options
	owner int64
	until clock.Reading
}

func newServer(o models.Options, _ *sim.Node) sim.Handler { return &server{o: o} }

func (s *server) Start(*sim.Process)             { s.owner = 0 } // after a crash nothing is left
func (s *server) Timer(*sim.Process, uint64)     {}
func (s *server) Closed(*sim.Process, *sim.Conn) {}

func (s *server) Request(p *sim.Process, r *sim.Message) {
	m := r.Body.(message)
	free := s.owner == 0 || p.Mono() >= s.until
	switch {
	case m.verb == "lock" && free:
		s.owner, s.until = m.owner, p.Mono().Add(s.o.TTL)
	case m.verb == "unlock" && s.owner == m.owner:
		s.owner = 0
	default:
		m.verb = "no"
	}
	p.Reply(r, m)
}
