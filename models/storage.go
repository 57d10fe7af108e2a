package models

import (
	"fmt"

	"locklab/sim"
)

// StorageName is the process that keeps the protected data.
const StorageName = "storage"

// storeVerb is what a request to the storage asks for.
type storeVerb uint8

const (
	storeRead storeVerb = iota + 1
	storeWrite
	storeAppend
	storeCheck // is this token still good?
	storeMark  // write my mark
)

var storeVerbs = [...]string{"", "read", "write", "append", "check", "mark"}

// storeRequest asks the storage for something. A field that the client's
// resource does not use is 0.
type storeRequest struct {
	verb    storeVerb
	value   int64
	token   int64
	mark    int64
	version int64
}

// Digest implements sim.Payload.
func (r *storeRequest) Digest(d *sim.Digest) {
	d.Word(uint64(r.verb))
	d.Int(r.value)
	d.Int(r.token)
	d.Int(r.mark)
	d.Int(r.version)
}

// String implements sim.Payload.
func (r *storeRequest) String() string {
	s := storeVerbs[r.verb]
	if r.verb == storeWrite || r.verb == storeAppend {
		s += fmt.Sprintf(" %d", r.value)
	}
	if r.token != 0 {
		s += fmt.Sprintf(" token=%d", r.token)
	}
	if r.mark != 0 {
		s += fmt.Sprintf(" mark=%04x", r.mark&0xffff)
	}
	if r.version != 0 {
		s += fmt.Sprintf(" version=%d", r.version)
	}
	return s
}

// storeReply is the storage's answer.
type storeReply struct {
	ok      bool
	value   int64 // read: the value, or the length of the list
	version int64
}

// Digest implements sim.Payload.
func (r *storeReply) Digest(d *sim.Digest) {
	ok := int64(0)
	if r.ok {
		ok = 1
	}
	d.Int(ok)
	d.Int(r.value)
	d.Int(r.version)
}

// String implements sim.Payload.
func (r *storeReply) String() string {
	if !r.ok {
		return "REFUSED"
	}
	return fmt.Sprintf("ok %d", r.value)
}

// storeState is what the storage keeps durably: the data, and what its rule
// compares.
type storeState struct {
	value    int64
	appended []int64 // the list; records share its array
	highest  int64   // the highest token seen
	mark     int64
	version  int64 // counted from 1
}

// storeRule decides whether a request is accepted, and updates what the rule
// compares. It must not touch the data.
type storeRule func(s *storeState, r *storeRequest) bool

// storage is the server that keeps the data. Every change is written and
// fsynced before it is answered.
type storage struct {
	env     *Env
	rule    storeRule
	state   storeState
	file    *sim.File[storeState]
	waiting []deferredReply // for a stalled fsync
	// forgetful storage keeps the highest token in memory only.
	forgetful bool
}

type deferredReply struct {
	request *sim.Message
	reply   *storeReply
}

// newStorage adds the storage's node and process to the world.
func newStorage(env *Env, rule storeRule) (*storage, *sim.Process) {
	n := env.World.AddNode(StorageName)
	s := &storage{env: env, rule: rule, file: sim.NewFile[storeState](n)}
	return s, n.AddServer(StorageName, s)
}

// Start implements sim.Handler.
func (s *storage) Start(*sim.Process) {
	s.waiting = nil
	s.state = storeState{version: 1}
	if records := s.file.Records(); len(records) > 0 {
		s.state = records[len(records)-1]
		s.state.appended = s.state.appended[:len(s.state.appended):len(s.state.appended)]
	}
	if s.forgetful {
		s.state.highest = 0
	}
}

// Request implements sim.Handler.
func (s *storage) Request(p *sim.Process, m *sim.Message) {
	r := m.Body.(*storeRequest)
	before := s.state.highest
	reply := s.env.storeReplies.Get()
	reply.ok = s.rule(&s.state, r)
	changed := s.state.highest != before
	if reply.ok {
		changed = s.apply(r) || changed
	}
	reply.version = s.state.version
	reply.value = s.seen()
	// A check that passed decides nothing yet: the write is still to come.
	if r.verb != storeCheck || !reply.ok {
		s.env.Rec.Decided(m.Op, reply.ok, reply.value)
	}
	if changed {
		s.file.Append(s.state)
		if !p.Fsync(uint64(len(s.waiting))) {
			s.waiting = append(s.waiting, deferredReply{m, reply})
			return
		}
	}
	p.Reply(m, reply)
}

// apply carries an accepted request out and reports whether it changed
// anything.
func (s *storage) apply(r *storeRequest) bool {
	switch r.verb {
	case storeWrite:
		s.state.value = r.value
		s.state.version++
	case storeAppend:
		s.state.appended = append(s.state.appended, r.value)
		s.state.version++
	case storeMark:
		s.state.mark = r.mark
	default:
		return false
	}
	return true
}

// seen is what a read finds.
func (s *storage) seen() int64 {
	if n := len(s.state.appended); n > 0 {
		return int64(n)
	}
	return s.state.value
}

// Timer implements sim.Handler: a stalled fsync has completed.
func (s *storage) Timer(p *sim.Process, id uint64) {
	d := s.waiting[id]
	p.Reply(d.request, d.reply)
}

// Closed implements sim.Handler.
func (s *storage) Closed(*sim.Process, *sim.Conn) {}

// Contents implements Data.
func (s *storage) Contents(list bool) []int64 {
	if list {
		return s.state.appended
	}
	return []int64{s.state.value}
}
