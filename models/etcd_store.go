package models

import (
	"slices"
	"strconv"
	"time"

	"locklab/sim"
)

// kvKey names a key of the consensus store: a directory and a number in it.
// Real keys are strings; these are compared and ordered without making any.
type kvKey struct {
	dir string
	id  int64
}

// The directories of the designs.
const (
	kvLocks = "lock/"
	kvData  = "data/"
)

// String returns the key as etcd would spell it.
func (k kvKey) String() string { return k.dir + shortHex(k.id) }

// shortHex writes a number so that a line stays readable.
func shortHex(id int64) string {
	s := strconv.FormatInt(id, 16)
	return s[max(0, len(s)-4):]
}

// kvEntry is one key with its value. Revisions are those of etcd: create is
// the revision at which the key came into being, mod the one of its last write.
type kvEntry struct {
	key         kvKey
	value       int64
	create, mod int64
	lease       int64 // 0: none
	// op is provenance that no program can see: the operation whose request
	// put the key there.
	op int32
	// spec is the value of a Lease object (see leaseSpec).
	spec leaseSpec
}

// kvLease is a lease as the log knows it. How much of it is left is known to
// the leader alone (see lessor).
type kvLease struct {
	id  int64
	ttl time.Duration
	// connection is the session's latest (ZooKeeper): what is still under way
	// on an earlier one comes too late.
	connection int64
}

// kvStore is the replicated state machine: keys with revisions, and leases.
// Equal logs make equal stores. The entries stand in the order of their
// creation, so that a queue is read from front to back.
type kvStore struct {
	revision int64
	sequence int64 // of the last sequential node
	entries  []kvEntry
	leases   []kvLease
	applied  uint64 // index of the last log entry that was applied
}

// kvVerb is what a command or request asks for.
type kvVerb uint8

// The verbs. Those up to kvCreate are commands and go through the log.
const (
	kvTxn    kvVerb = iota + 1 // compare, then, else
	kvGrant                    // a lease
	kvRevoke                   // a lease and every key attached to it
	kvAttach                   // ZooKeeper: a session goes on on another connection
	kvCreate                   // ZooKeeper's create of an ephemeral sequential node
	kvRange                    // a read
	kvKeepAlive
	kvWatch // answered once the key is gone
)

var kvVerbs = [...]string{"", "txn", "lease grant", "lease revoke", "attach", "create -e -s", "range", "keepalive", "watch"}

// kvTarget is what a transaction compares.
type kvTarget uint8

const (
	kvAlways kvTarget = iota // no comparison
	kvCreateRevision
	kvModRevision
)

// kvAction is one step of a transaction.
type kvAction uint8

const (
	kvNothing kvAction = iota
	kvPut
	kvAppend // to a list: a put under the directory's next free number
	kvDelete
	kvGet
	kvFirst // the entry of the directory that was created first
	kvPutSpec
)

var kvActions = [...]string{"", "put", "append", "delete", "get", "first", "put"}

// kvStep is one step and what it is done to.
type kvStep struct {
	action kvAction
	key    kvKey
	value  int64
	lease  int64
	spec   leaseSpec // kvPutSpec
}

// kvCommand is an entry of the log.
type kvCommand struct {
	verb   kvVerb
	target kvTarget // txn
	key    kvKey    // txn: what is compared; create: the directory
	equals int64    // txn: to this; attach, create: the session's connection
	then   [2]kvStep
	orElse [2]kvStep
	lease  int64
	ttl    time.Duration
	value  int64 // create: the node's data

	// What follows is for whoever watches the run.
	op      int32 // the operation that the command belongs to
	claims  bool  // a key that its compare finds in place is from now on op's
	decides bool  // it reads or writes protected data
	applied bool  // it has taken effect
}

// kvCode says how a request ended.
type kvCode uint8

const (
	kvOK          kvCode = iota
	kvNoLease            // there is no such lease
	kvMoved              // the session goes on on another connection
	kvUnavailable        // nothing was done and nothing will be
)

var kvCodes = [...]string{"ok", "lease not found", "session moved", "unavailable"}

// kvReply is the store's answer.
type kvReply struct {
	code     kvCode
	held     bool  // txn: the comparison held
	revision int64 // of the store when it answered
	found    [2]kvEntry
	list     []kvEntry
}

// apply carries a command out.
func (s *kvStore) apply(c *kvCommand) kvReply {
	r := kvReply{}
	switch c.verb {
	case kvTxn:
		r = s.transact(c)
	case kvGrant:
		// A lease keeps its identity when a repeated request grants it again.
		if s.leaseAt(c.lease) < 0 {
			s.leases = append(s.leases, kvLease{id: c.lease, ttl: c.ttl})
		}
	case kvRevoke:
		r.code = s.revoke(c.lease)
	case kvAttach:
		r.code = s.attach(c)
	case kvCreate:
		r = s.createNode(c)
	}
	r.revision = s.revision
	return r
}

// transact carries out a transaction. All that it writes bears one revision.
func (s *kvStore) transact(c *kvCommand) kvReply {
	r := kvReply{held: s.compare(c)}
	steps := &c.then
	if !r.held {
		steps = &c.orElse
	}
	next := s.revision + 1
	for i := range steps {
		if steps[i].lease != 0 && s.leaseAt(steps[i].lease) < 0 {
			return kvReply{code: kvNoLease}
		}
	}
	for i := range steps {
		r.found[i] = s.step(c, &steps[i], next)
	}
	return r
}

func (s *kvStore) compare(c *kvCommand) bool {
	e := s.find(c.key)
	switch c.target {
	case kvCreateRevision:
		return e == nil && c.equals == 0 || e != nil && e.create == c.equals
	case kvModRevision:
		return e == nil && c.equals == 0 || e != nil && e.mod == c.equals
	}
	return true
}

// step does one step at the given revision and returns the entry that it is
// about: as it found it, or as it left it.
func (s *kvStore) step(c *kvCommand, p *kvStep, revision int64) kvEntry {
	switch p.action {
	case kvPut:
		s.revision = revision
		return s.put(p.key, p.value, p.lease, c.op)
	case kvAppend:
		s.revision = revision
		return s.put(kvKey{p.key.dir, s.count(p.key.dir) + 1}, p.value, 0, c.op)
	case kvPutSpec:
		s.revision = revision
		s.put(p.key, 0, 0, c.op)
		e := s.find(p.key)
		e.spec, e.op = p.spec, c.op // it is whose who wrote it last
		return *e
	case kvDelete:
		if e := s.find(p.key); e != nil {
			gone := *e
			s.revision = revision
			s.entries = slices.DeleteFunc(s.entries, func(e kvEntry) bool { return e.key == p.key })
			return gone
		}
	case kvGet:
		if e := s.find(p.key); e != nil {
			if c.claims && c.op > e.op {
				e.op = c.op
			}
			return *e
		}
	case kvFirst:
		if e := s.first(p.key.dir); e != nil {
			return *e
		}
	}
	return kvEntry{}
}

func (s *kvStore) put(key kvKey, value, lease int64, op int32) kvEntry {
	e := s.find(key)
	if e == nil {
		s.entries = append(s.entries, kvEntry{key: key, create: s.revision, op: op})
		e = &s.entries[len(s.entries)-1]
	}
	e.value, e.mod, e.lease = value, s.revision, lease
	return *e
}

// attach takes note of a session's connection. A request that was delayed on
// an earlier one is refused (SessionMovedException, ZooKeeper Programmer's
// Guide, Sessions).
func (s *kvStore) attach(c *kvCommand) kvCode {
	i := s.leaseAt(c.lease)
	switch {
	case i < 0:
		return kvNoLease
	case c.equals < s.leases[i].connection:
		return kvMoved
	}
	s.leases[i].connection = c.equals
	return kvOK
}

// createNode makes an ephemeral node whose name ends in the next number.
func (s *kvStore) createNode(c *kvCommand) kvReply {
	if code := s.attach(c); code != kvOK {
		return kvReply{code: code}
	}
	s.revision++
	s.sequence++
	return kvReply{found: [2]kvEntry{s.put(kvKey{c.key.dir, s.sequence}, c.value, c.lease, c.op)}}
}

// revoke ends a lease and deletes the keys attached to it, in one revision.
func (s *kvStore) revoke(lease int64) kvCode {
	i := s.leaseAt(lease)
	if i < 0 {
		return kvNoLease
	}
	s.leases = slices.Delete(s.leases, i, i+1)
	before := len(s.entries)
	s.entries = slices.DeleteFunc(s.entries, func(e kvEntry) bool { return e.lease == lease })
	if len(s.entries) < before {
		s.revision++
	}
	return kvOK
}

func (s *kvStore) find(key kvKey) *kvEntry {
	for i := range s.entries {
		if s.entries[i].key == key {
			return &s.entries[i]
		}
	}
	return nil
}

// first returns the directory's entry with the lowest create revision.
func (s *kvStore) first(dir string) *kvEntry {
	for i := range s.entries {
		if s.entries[i].key.dir == dir {
			return &s.entries[i]
		}
	}
	return nil
}

func (s *kvStore) count(dir string) int64 {
	n := int64(0)
	for i := range s.entries {
		if s.entries[i].key.dir == dir {
			n++
		}
	}
	return n
}

func (s *kvStore) leaseAt(id int64) int {
	return slices.IndexFunc(s.leases, func(l kvLease) bool { return l.id == id })
}

// list returns the directory's entries in the order of their creation.
func (s *kvStore) list(dir string) []kvEntry {
	var out []kvEntry
	for i := range s.entries {
		if s.entries[i].key.dir == dir {
			out = append(out, s.entries[i])
		}
	}
	return out
}

// lastBefore returns the directory's youngest entry that was created before a
// revision: the one that a waiter with that create revision waits for.
func (s *kvStore) lastBefore(dir string, create int64) kvEntry {
	last := kvEntry{}
	for i := range s.entries {
		if e := &s.entries[i]; e.key.dir == dir && e.create < create {
			last = *e
		}
	}
	return last
}

// copyFrom makes the store equal to another, in its own memory.
func (s *kvStore) copyFrom(from *kvStore) {
	entries, leases := append(s.entries[:0], from.entries...), append(s.leases[:0], from.leases...)
	*s = *from
	s.entries, s.leases = entries, leases
}

// digest feeds a command into a trace hash.
func (c *kvCommand) digest(d *sim.Digest) {
	d.Word(uint64(c.verb) | uint64(c.target)<<8)
	c.key.digest(d)
	d.Int(c.equals)
	d.Int(c.lease)
	d.Int(int64(c.ttl))
	d.Int(c.value)
	for _, steps := range [...]*[2]kvStep{&c.then, &c.orElse} {
		for i := range steps {
			p := &steps[i]
			d.Word(uint64(p.action))
			p.key.digest(d)
			d.Int(p.value)
			d.Int(p.lease)
			p.spec.digest(d)
		}
	}
}

func (k kvKey) digest(d *sim.Digest) {
	d.Text(k.dir)
	d.Int(k.id)
}

func (e *kvEntry) digest(d *sim.Digest) {
	e.key.digest(d)
	d.Int(e.value)
	d.Int(e.create)
	d.Int(e.mod)
	e.spec.digest(d)
}

// String writes a command for people.
func (c *kvCommand) String() string {
	switch c.verb {
	case kvTxn:
		s := ""
		switch c.target {
		case kvCreateRevision:
			s = "if create(" + c.key.String() + ") = " + strconv.FormatInt(c.equals, 10) + " "
		case kvModRevision:
			s = "if mod(" + c.key.String() + ") = " + strconv.FormatInt(c.equals, 10) + " "
		}
		s += stepsText(&c.then)
		if other := stepsText(&c.orElse); other != "" {
			s += " else " + other
		}
		return s
	case kvCreate:
		return kvVerbs[c.verb] + " " + c.key.dir
	}
	return kvVerbs[c.verb] + " " + shortHex(c.lease)
}

func stepsText(steps *[2]kvStep) string {
	s := ""
	for _, p := range steps {
		if p.action == kvNothing {
			continue
		}
		if s != "" {
			s += ", "
		}
		s += kvActions[p.action] + " " + p.key.String()
		switch p.action {
		case kvPut, kvAppend:
			s += " " + strconv.FormatInt(p.value, 10)
		case kvPutSpec:
			s += " " + p.spec.String()
		}
	}
	return s
}

// Digest implements sim.Payload.
func (r *kvReply) Digest(d *sim.Digest) {
	held := uint64(0)
	if r.held {
		held = 1
	}
	d.Word(uint64(r.code) | held<<8)
	d.Int(r.revision)
	r.found[0].digest(d)
	r.found[1].digest(d)
	d.Word(uint64(len(r.list)))
	for i := range r.list {
		r.list[i].digest(d)
	}
}

// String implements sim.Payload.
func (r *kvReply) String() string {
	if r.code != kvOK {
		return kvCodes[r.code]
	}
	s := "ok rev=" + strconv.FormatInt(r.revision, 10)
	for _, e := range append(r.found[:len(r.found):len(r.found)], r.list...) {
		if e.create != 0 {
			s += " " + e.key.String() + "@" + strconv.FormatInt(e.create, 10)
		}
		if e.spec != (leaseSpec{}) {
			s += " " + e.spec.String()
		}
	}
	return s
}
