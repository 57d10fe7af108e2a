package models

import (
	"slices"

	"go.etcd.io/raft/v3"

	"locklab/sim"
)

// kvRequest is what a client asks a member for.
type kvRequest struct {
	kvCommand
	// linear: a range is to see all that was committed before it was asked
	// for (etcd's default). Otherwise the member answers from its own state,
	// once that has come as far as least (ZooKeeper: a session never goes back
	// behind what it has seen).
	linear bool
	least  int64
	// session: answered with kvNoLease if it is gone.
	session int64
	before  int64 // range: only the youngest entry created before this revision
}

// Digest implements sim.Payload.
func (r *kvRequest) Digest(d *sim.Digest) {
	r.digest(d)
	linear := uint64(0)
	if r.linear {
		linear = 1
	}
	d.Word(linear)
	d.Int(r.least)
	d.Int(r.session)
	d.Int(r.before)
}

// String implements sim.Payload.
func (r *kvRequest) String() string {
	switch r.verb {
	case kvRange, kvWatch:
		if r.key.id == 0 {
			return kvVerbs[r.verb] + " " + r.key.dir
		}
		return kvVerbs[r.verb] + " " + r.key.String()
	}
	return r.kvCommand.String()
}

// serving is the part of a member that speaks with clients.
type serving struct {
	serials  uint64
	held     []*sim.Message // until there is a leader
	proposed []kvProposed
	reads    []kvRead
	watches  []*sim.Message
	handed   []renewal // to the leader
}

// kvProposed is a request whose command is on its way through the log.
type kvProposed struct {
	number  uint64
	request *sim.Message
}

// kvRead is a range that waits until it may be answered.
type kvRead struct {
	request   *sim.Message
	serial    uint64
	confirmed bool
	index     uint64
}

// Request implements sim.Handler.
func (n *raftNode) Request(_ *sim.Process, m *sim.Message) {
	switch body := m.Body.(type) {
	case *raftPacket:
		n.receive(body)
	case *forwarded:
		n.handedOver(m.From, body)
	case *kvRequest:
		n.serve(m, body)
	}
}

// serve takes a client's request in. What needs a leader waits for one; the
// client may get tired of it.
func (n *raftNode) serve(m *sim.Message, r *kvRequest) {
	if n.lead == 0 && (r.linear && !n.cluster.localReads || r.verb <= kvCreate || r.verb == kvKeepAlive) {
		n.held = append(n.held, m)
		return
	}
	switch r.verb {
	case kvRange:
		n.read(m, r)
	case kvWatch:
		n.watches = append(n.watches, m)
		n.serveWatches()
	case kvKeepAlive:
		n.renew(renewal{request: m, lease: r.lease, op: m.Op})
	default:
		n.propose(m, r)
	}
}

// leaderKnown serves what has waited for a leader.
func (n *raftNode) leaderKnown() {
	held := n.held
	n.held = nil
	for _, m := range held {
		n.serve(m, m.Body.(*kvRequest))
	}
}

// propose puts a command into the log. What Raft drops was not done; otherwise
// the answer comes when the command is applied here, and if it
// never comes, the client cannot know whether it was.
func (n *raftNode) propose(m *sim.Message, r *kvRequest) {
	r.op = m.Op
	handle, number := n.cluster.record(&r.kvCommand)
	n.catchUp()
	if err := n.raw.Propose(handle); err != nil {
		n.reply(m, &kvReply{code: kvUnavailable})
		return
	}
	n.proposed = append(n.proposed, kvProposed{number, m})
	n.work()
}

// answer tells the client, if it asked here, what its command did.
func (n *raftNode) answer(number uint64, r *kvReply) {
	for i, w := range n.proposed {
		if w.number == number {
			n.proposed = append(n.proposed[:i], n.proposed[i+1:]...)
			n.reply(w.request, r)
			return
		}
	}
}

func (n *raftNode) reply(m *sim.Message, r *kvReply) {
	kept := n.env.raft.answers.Get()
	*kept = *r
	n.p.Reply(m, kept)
}

// read answers a range when the time has come.
func (n *raftNode) read(m *sim.Message, r *kvRequest) {
	w := kvRead{request: m, confirmed: true}
	if r.linear && !n.cluster.localReads {
		n.serials++
		w.serial, w.confirmed = n.serials, false
		n.catchUp()
		n.raw.ReadIndex(handleOf(n.id<<32 | n.serials))
	}
	n.reads = append(n.reads, w)
	n.work()
	n.serveReads()
}

// readsConfirmed notes up to which log entry reads must see: a quorum has
// confirmed that nobody else leads.
func (n *raftNode) readsConfirmed(states []raft.ReadState) {
	for _, s := range states {
		for i := range n.reads {
			if w := &n.reads[i]; n.id<<32|w.serial == numberOf(s.RequestCtx) {
				w.confirmed, w.index = true, s.Index
			}
		}
	}
	if len(states) > 0 {
		n.serveReads()
	}
}

// serveWaiting answers whatever waited for the state machine to get on.
func (n *raftNode) serveWaiting() {
	n.serveReads()
	n.serveWatches()
}

func (n *raftNode) serveReads() {
	kept := n.reads[:0]
	for _, w := range n.reads {
		r := w.request.Body.(*kvRequest)
		if !w.confirmed || n.store.applied < w.index || n.store.revision < r.least {
			kept = append(kept, w)
			continue
		}
		n.reply(w.request, n.rangeOf(r))
	}
	n.reads = kept
}

// rangeOf reads the member's state.
func (n *raftNode) rangeOf(r *kvRequest) *kvReply {
	s := &n.store
	reply := &kvReply{revision: s.revision}
	switch {
	case r.session != 0 && s.leaseAt(r.session) < 0:
		reply.code = kvNoLease
	case r.before != 0:
		reply.found[0] = s.lastBefore(r.key.dir, r.before)
	case r.key.id != 0:
		if e := s.find(r.key); e != nil {
			reply.found[0] = *e
		}
	default:
		reply.list = s.list(r.key.dir)
	}
	return reply
}

// serveWatches answers the watches whose key is gone. A member that is behind
// the revision at which the client saw the key cannot tell yet.
func (n *raftNode) serveWatches() {
	kept := n.watches[:0]
	for _, m := range n.watches {
		r := m.Body.(*kvRequest)
		e := n.store.find(r.key)
		switch {
		case n.store.revision < r.least || e != nil && e.create == r.equals && !n.sessionGone(r):
			kept = append(kept, m)
		case n.sessionGone(r):
			n.reply(m, &kvReply{code: kvNoLease, revision: n.store.revision})
		default:
			n.reply(m, &kvReply{revision: n.store.revision})
		}
	}
	n.watches = kept
}

func (n *raftNode) sessionGone(r *kvRequest) bool {
	return r.session != 0 && n.store.leaseAt(r.session) < 0
}

// forward hands a renewal to the leader.
func (n *raftNode) forward(r renewal) {
	n.serials++
	r.serial = n.serials
	n.handed = append(n.handed, r)
	f := n.env.raft.forwards.Get()
	*f = forwarded{serial: r.serial, lease: r.lease, op: r.op}
	n.p.Send(n.cluster.procs[n.lead-1], f)
}

// handedOver is a renewal from a follower, or the leader's answer to one.
func (n *raftNode) handedOver(from *sim.Process, f *forwarded) {
	if !f.answer {
		n.renew(renewal{from: from, serial: f.serial, lease: f.lease, op: f.op})
		return
	}
	for i, r := range n.handed {
		if r.serial == f.serial {
			n.handed = append(n.handed[:i], n.handed[i+1:]...)
			n.reply(r.request, &kvReply{code: f.code, revision: n.store.revision})
			return
		}
	}
}

// closed forgets what a client that has hung up was waiting for. Its commands
// go on through the log.
func (s *serving) closed(c *sim.Conn) {
	s.held = slices.DeleteFunc(s.held, func(m *sim.Message) bool { return m.Conn == c })
	s.watches = slices.DeleteFunc(s.watches, func(m *sim.Message) bool { return m.Conn == c })
	s.reads = slices.DeleteFunc(s.reads, func(w kvRead) bool { return w.request.Conn == c })
	s.proposed = slices.DeleteFunc(s.proposed, func(w kvProposed) bool { return w.request.Conn == c })
	s.handed = slices.DeleteFunc(s.handed, func(r renewal) bool { return r.request.Conn == c })
}
