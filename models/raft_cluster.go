package models

import (
	"cmp"
	"strconv"

	"go.etcd.io/raft/v3/raftpb"

	"locklab/sim"
)

// raftOptions are the ways in which consensus stores differ.
type raftOptions struct {
	name  string // members are called name-1, name-2 and so on
	nodes int
	// revision is what the store's revision stands at when the run begins.
	revision int64
	// staleLessor is etcd before its pull request 16822: a member that was the
	// leader when it last looked goes on to renew and to revoke leases.
	staleLessor bool
	// localReads is a mutant: a read is answered from the member's own state,
	// whoever leads.
	localReads bool
}

// raftCluster is one consensus store: its members, and what whoever watches the
// run knows of it.
type raftCluster struct {
	raftOptions
	env     *Env
	members []*raftNode
	procs   []*sim.Process

	snapshots []*kvStore // by number; an entry's or snapshot's bytes are a number

	// truth is the state up to the last log entry that any member has applied:
	// where the store stands, though no single member may. It never goes back,
	// unless operators restore old disks on a majority.
	truth      kvStore
	generation int32
	quiet      uint64 // entries up to here were announced before a restoration
}

// raftMemory is the memory for what logs and messages carry. It dies with the
// run.
type raftMemory struct {
	commands sim.Slab[kvCommand]
	numbered []*kvCommand
	packets  sim.Slab[raftPacket]
	forwards sim.Slab[forwarded]
	requests sim.Slab[kvRequest]
	answers  sim.Slab[kvReply]
}

func (m *raftMemory) reset() {
	m.commands.Reset()
	m.numbered = m.numbered[:0]
	m.packets.Reset()
	m.forwards.Reset()
	m.requests.Reset()
	m.answers.Reset()
}

// newRaftCluster adds the members to the world, each on a machine of its own.
// The cluster was formed before the run begins: every disk holds the same
// first snapshot.
func newRaftCluster(env *Env, o raftOptions) *raftCluster {
	c := &raftCluster{raftOptions: o, env: env}
	base := &kvStore{revision: o.revision, applied: 1}
	c.truth.copyFrom(base)
	first := c.baseSnapshot(base)
	for i := range o.nodes {
		name := o.name + "-" + strconv.Itoa(i+1)
		machine := env.World.AddNode(name)
		n := &raftNode{cluster: c, env: env, id: uint64(i + 1)}
		n.disk.file = sim.NewFile[raftRecord](machine)
		hard := &raftpb.HardState{Term: new(uint64(1)), Vote: new(uint64(0)), Commit: new(uint64(1))}
		n.disk.file.Rewrite([]raftRecord{{snapshot: first}, {hard: hard}})
		c.members = append(c.members, n)
		c.procs = append(c.procs, machine.AddServer(name, n))
	}
	return c
}

// newStoreCluster adds a cluster for a lock, with as many members and the first
// revision as the options say.
func newStoreCluster(env *Env, o raftOptions) *raftCluster {
	o.nodes, o.revision = cmp.Or(env.Options.Members, 3), env.Options.TokenStart-1
	return newRaftCluster(env, o)
}

// system is a lock's system on the cluster. lock makes a client's handle; the
// number of the client, counted from 0, says with which member it begins.
func (c *raftCluster) system(holder func() Holding, lock func(client int) Lock) System {
	clients := 0
	return System{Watch: c.procs, Replicated: true, Holder: holder, Lock: func(*sim.Process) Lock {
		clients++
		return lock(clients - 1)
	}}
}

func (c *raftCluster) baseSnapshot(s *kvStore) *raftpb.Snapshot {
	voters := make([]uint64, c.nodes)
	for i := range voters {
		voters[i] = uint64(i + 1)
	}
	return &raftpb.Snapshot{Data: c.keep(s), Metadata: &raftpb.SnapshotMetadata{
		Index: new(uint64(1)), Term: new(uint64(1)),
		ConfState: &raftpb.ConfState{Voters: voters, AutoLeave: new(false)}}}
}

// keep puts a state into the table of snapshots and returns its number.
func (c *raftCluster) keep(s *kvStore) []byte {
	kept := &kvStore{}
	kept.copyFrom(s)
	c.snapshots = append(c.snapshots, kept)
	return handleOf(uint64(len(c.snapshots) - 1))
}

func (c *raftCluster) snapshot(handle []byte) *kvStore { return c.snapshots[numberOf(handle)] }

// record puts a command into the table and returns its number, to be proposed.
func (c *raftCluster) record(command *kvCommand) (handle []byte, number uint64) {
	mem := &c.env.raft
	kept := mem.commands.Get()
	*kept = *command
	number = uint64(len(mem.numbered))
	mem.numbered = append(mem.numbered, kept)
	return handleOf(number), number
}

func (c *raftCluster) command(handle []byte) *kvCommand { return c.env.raft.numbered[numberOf(handle)] }

// took notes that a member has applied a log entry (nil: one without a
// command). The first member to do so decides the instant at which the command
// takes effect: from then on somebody may see it.
func (c *raftCluster) took(n *raftNode, index uint64, command *kvCommand) {
	if n.generation != c.generation || index != c.truth.applied+1 {
		return
	}
	c.truth.applied = index
	if command != nil {
		c.announce(command, c.truth.apply(command), index)
	}
	if index == c.quiet {
		c.env.Rec.Applied(0)
	}
}

func (c *raftCluster) announce(command *kvCommand, r kvReply, index uint64) {
	command.applied = true
	switch {
	case index <= c.quiet: // of the time before the restoration: told already
	case !command.decides:
		c.env.Rec.Applied(command.op)
	default:
		c.env.Rec.Decided(command.op, r.held, r.found[0].value)
	}
}

// jumped notes that a member's state was replaced by a snapshot.
func (c *raftCluster) jumped(n *raftNode) {
	if n.generation == c.generation && n.store.applied > c.truth.applied {
		c.truth.copyFrom(&n.store)
		c.env.Rec.Applied(0)
	}
}

// restored notes that an operator has put an old disk into a member. Once a
// majority has one, what they know is the truth.
func (c *raftCluster) restored(n *raftNode) {
	same, quiet := 0, uint64(0)
	latest := n
	for _, m := range c.members {
		if m.generation != n.generation || m.disk.MemoryStorage == nil {
			continue
		}
		same++
		quiet = max(quiet, m.disk.hard.GetCommit())
		if m.store.applied > latest.store.applied {
			latest = m
		}
	}
	if n.generation <= c.generation || same <= c.nodes/2 {
		return
	}
	c.generation, c.quiet = n.generation, quiet
	c.truth.copyFrom(&latest.store)
	if c.truth.applied >= quiet {
		c.env.Rec.Applied(0)
	}
}

// holding is the first in line, as the log has it.
func (c *raftCluster) holding() Holding {
	if c.truth.applied < c.quiet {
		return Holding{}
	}
	if e := c.truth.first(kvLocks); e != nil {
		return Holding{Op: e.op}
	}
	return Holding{}
}
