package models

import (
	"fmt"

	"locklab/sim"
)

// brokerVerb is what a consumer asks its broker for.
type brokerVerb uint8

const (
	brokerPoll   brokerVerb = iota + 1 // the key's next message
	brokerCommit                       // it is done
	brokerLeave                        // the same, and the consumer goes
	brokerRead                         // the broker's own data
	brokerWrite
	brokerAppend
)

var brokerVerbs = [...]string{"", "poll", "commit", "commit and leave", "read", "write", "append"}

// brokerRequest is a consumer's request. Delivery is the number of the
// delivery it works under.
type brokerRequest struct {
	verb     brokerVerb
	delivery int64
	value    int64
}

// Digest implements sim.Payload.
func (r *brokerRequest) Digest(d *sim.Digest) {
	d.Word(uint64(r.verb))
	d.Int(r.delivery)
	d.Int(r.value)
}

// String implements sim.Payload.
func (r *brokerRequest) String() string {
	s := brokerVerbs[r.verb]
	if r.verb >= brokerWrite {
		s += fmt.Sprintf(" %d", r.value)
	}
	if r.delivery != 0 {
		s += fmt.Sprintf(" delivery=%d", r.delivery)
	}
	return s
}

// brokerReply is the broker's answer.
type brokerReply struct {
	ok    bool
	value int64 // poll: the delivery's number; read: the value
}

// Digest implements sim.Payload.
func (r *brokerReply) Digest(d *sim.Digest) {
	d.Word(pgBit(r.ok))
	d.Int(r.value)
}

// String implements sim.Payload.
func (r *brokerReply) String() string {
	if !r.ok {
		return "REFUSED"
	}
	return fmt.Sprintf("ok %d", r.value)
}

// broker is a partitioned queue seen from one key: all messages of the key
// stand in one partition, and one consumer at a time has that. A consumer that
// does not come back within the ttl loses it (Kafka's max.poll.interval.ms),
// and the next delivery goes to another. Deliveries are numbered, so that the
// number says more than Kafka's generation, which counts changes of the
// consumer only. The broker's state is durable.
type broker struct {
	env      *Env
	checks   bool // what comes under an older delivery is refused
	assigned *sim.Process
	delivery int64
	op       int32 // provenance: the poll that the running delivery answered; 0: none runs
	turn     uint64
	file     *sim.File[storeState]
	state    storeState
	waiting  []deferredAnswer // for a stalled fsync
}

type deferredAnswer struct {
	request *sim.Message
	reply   *brokerReply
}

// fsyncTimers are the numbers of timers from which on they are fsyncs'.
const fsyncTimers = 1 << 32

// partitionedSystem adds the broker.
func partitionedSystem(checks bool) func(env *Env) System {
	return func(env *Env) System {
		n := env.World.AddNode("broker")
		b := &broker{env: env, checks: checks, file: sim.NewFile[storeState](n)}
		p := n.AddServer("broker", b)
		env.inside = Store{Data: b, Handle: func() Resource {
			return resourceFunc(func(_ *sim.Task, g *Grant) (Section, error) {
				return &brokerSection{env: env, link: g.State.(*consumer), grant: g}, nil
			})
		}}
		return System{
			Watch: []*sim.Process{p},
			Holder: func() Holding {
				if p.Down() {
					return Holding{}
				}
				return Holding{Op: b.op}
			},
			Lock: func(*sim.Process) Lock { return &consumer{env: env, checks: checks, link: link{server: p}} },
		}
	}
}

// Start implements sim.Handler. Who had the partition is not remembered.
func (b *broker) Start(*sim.Process) {
	b.assigned, b.op, b.state, b.waiting = nil, 0, storeState{}, nil
	if r := b.file.Records(); len(r) > 0 {
		b.state = r[len(r)-1]
		b.state.appended = b.state.appended[:len(b.state.appended):len(b.state.appended)]
	}
	b.delivery = max(b.state.highest, b.env.Options.TokenStart-1)
}

// Request implements sim.Handler.
func (b *broker) Request(p *sim.Process, m *sim.Message) {
	r := m.Body.(*brokerRequest)
	reply := &brokerReply{}
	switch r.verb {
	case brokerPoll:
		b.poll(p, m, reply)
	case brokerCommit, brokerLeave:
		b.commit(p, m, r, reply)
	default:
		b.work(m, r, reply)
	}
	if !p.Fsync(fsyncTimers + uint64(len(b.waiting))) {
		b.waiting = append(b.waiting, deferredAnswer{m, reply})
		return
	}
	p.Reply(m, reply)
}

func (b *broker) poll(p *sim.Process, m *sim.Message, reply *brokerReply) {
	if b.assigned != nil && b.assigned != m.From {
		return
	}
	b.assigned = m.From
	b.delivery++
	b.op = m.Op
	b.state.highest = b.delivery
	b.file.Append(b.state)
	b.expectBack(p)
	reply.ok, reply.value = true, b.delivery
}

// commit ends a delivery. Without a check anybody's commit moves the offset.
func (b *broker) commit(p *sim.Process, m *sim.Message, r *brokerRequest, reply *brokerReply) {
	if r.delivery != b.delivery {
		reply.ok = !b.checks
		return
	}
	reply.ok = true
	b.op = 0
	b.expectBack(p)
	if r.verb == brokerLeave && b.assigned == m.From {
		b.assigned = nil
	}
}

// expectBack gives the consumer another ttl to come back in.
func (b *broker) expectBack(p *sim.Process) {
	b.turn++
	p.TimerIn(b.env.Options.TTL, b.turn)
}

// Timer implements sim.Handler: the consumer has not come back, or a stalled
// fsync has completed.
func (b *broker) Timer(p *sim.Process, id uint64) {
	switch {
	case id >= fsyncTimers:
		w := b.waiting[id-fsyncTimers]
		p.Reply(w.request, w.reply)
	case id == b.turn:
		b.assigned, b.op = nil, 0
	}
}

// Closed implements sim.Handler. A lost connection is no reason to take a
// partition away.
func (b *broker) Closed(*sim.Process, *sim.Conn) {}

// work reads or changes the broker's own data.
func (b *broker) work(m *sim.Message, r *brokerRequest, reply *brokerReply) {
	reply.ok = !b.checks || r.delivery == b.delivery
	switch {
	case !reply.ok:
	case r.verb == brokerWrite:
		b.state.value = r.value
		b.file.Append(b.state)
	case r.verb == brokerAppend:
		b.state.appended = append(b.state.appended, r.value)
		b.file.Append(b.state)
	}
	reply.value = b.state.value
	b.env.Rec.Decided(m.Op, reply.ok, reply.value)
}

// Contents implements Data.
func (b *broker) Contents(list bool) []int64 {
	if list {
		return b.state.appended
	}
	return []int64{b.state.value}
}

// consumer is a client's handle: acquire polls, release commits the offset.
type consumer struct {
	env    *Env
	checks bool
	link   link
}

func (c *consumer) ask(t *sim.Task, r brokerRequest) (*brokerReply, error) {
	p, err := c.link.call(t, c.env, &r)
	if err != nil {
		return nil, err
	}
	return p.(*brokerReply), nil
}

// Acquire implements Lock.
func (c *consumer) Acquire(t *sim.Task) (Grant, error) {
	g := Grant{State: c, Deadline: t.Now().Add(c.env.Options.TTL)}
	r, err := c.ask(t, brokerRequest{verb: brokerPoll})
	switch {
	case err != nil:
		return Grant{}, err
	case !r.ok:
		return Grant{}, ErrBusy
	}
	g.Mark = r.value
	if c.checks {
		g.Token = r.value
	}
	return g, nil
}

// Renew implements Lock. Who works too long loses the partition.
func (c *consumer) Renew(*sim.Task, *Grant) error { return nil }

// Release implements Lock.
func (c *consumer) Release(t *sim.Task, g *Grant) error {
	verb := brokerCommit
	if t.Section() >= c.env.Options.Sections {
		verb = brokerLeave
	}
	r, err := c.ask(t, brokerRequest{verb: verb, delivery: g.Mark})
	if err == nil && !r.ok {
		return ErrLost
	}
	return err
}

// brokerSection works on the broker's own data, under the delivery's number.
type brokerSection struct {
	env   *Env
	link  *consumer
	grant *Grant
}

// Read implements Section.
func (s *brokerSection) Read(t *sim.Task) (int64, error) { return s.do(t, OpRead, brokerRead, 0) }

// Write implements Section.
func (s *brokerSection) Write(t *sim.Task, value int64) error {
	_, err := s.do(t, OpWrite, brokerWrite, value)
	return err
}

// Append implements Section.
func (s *brokerSection) Append(t *sim.Task, value int64) error {
	_, err := s.do(t, OpAppend, brokerAppend, value)
	return err
}

func (s *brokerSection) do(t *sim.Task, kind OpKind, verb brokerVerb, value int64) (int64, error) {
	rec := s.env.Rec
	op := rec.Invoke(t, kind, s.grant.Op, value, 0)
	r, err := s.link.ask(t, brokerRequest{verb: verb, delivery: s.grant.Mark, value: value})
	seen := int64(0)
	if err == nil {
		seen = r.value
		if !r.ok {
			err = ErrRefused
		}
	}
	rec.Return(t, op, err, seen)
	return seen, err
}

// Lost implements Section.
func (s *brokerSection) Lost(*sim.Task) bool { return false }
