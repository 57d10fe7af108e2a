package models

import (
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"locklab/clock"
	"locklab/sim"
)

// A follower that hears no heartbeat for a second stands for election, as by
// etcd's default (--election-timeout). Heartbeats come every 200 ms, half as
// often as by etcd's (--heartbeat-interval): they are most of what a run of a
// consensus store costs, and with latencies of milliseconds nothing depends on
// them coming sooner.
const (
	raftTick        = 200 * time.Millisecond
	electionTicks   = 5
	electionTimeout = electionTicks * raftTick
)

// What a member's timers are for. The number of a timer is one of these.
const (
	raftTimerTick uint64 = iota + 1
	raftTimerElection
	raftTimerLessor
	raftTimerFsync
)

// raftNode is one member of the consensus store: Raft, the state machine it
// feeds, and the server that clients speak to. Everything in it runs when a
// message or a timer of the simulation says so; Raft's own random election
// timeout, which would come from the host, is never asked.
type raftNode struct {
	cluster *raftCluster
	env     *Env
	id      uint64
	boots   uint64 // how often it has come up

	// On disk. generation counts the operator's restorations: a restored
	// cluster gets a new identity, so that members of the old one and messages
	// still under way to it are not listened to (etcdutl snapshot restore).
	disk       raftDisk
	generation int32
	// durable is the log's end as it was fsynced last, by which a member that
	// boots tells that an operator has taken its disk back in time.
	durable struct{ term, index uint64 }

	// In memory: gone with a crash.
	raftState
}

// raftState is what a member forgets when it crashes.
type raftState struct {
	p     *sim.Process
	raw   *raft.RawNode
	store kvStore

	// What the server knows of Raft: from the last Ready that it has handled.
	// While an fsync is stalled it may be wrong.
	lead, term, vote uint64
	leads            bool

	ticked       clock.Reading // up to when ticks have been counted
	ticking      bool          // a leader's next tick is scheduled
	electing     bool          // the election timer is running
	campaignAt   clock.Reading // when it is due
	campaignTick time.Duration // what it counts from

	stalled bool // waiting for an fsync, with pending in hand
	pending raft.Ready
	sentTo  map[uint64]int // ticks since a snapshot was sent to a member
	acked   []uint64       // a leader's: up to where each member has the log

	lessor lessor
	serving
}

// Start implements sim.Handler.
func (n *raftNode) Start(p *sim.Process) {
	n.raftState = raftState{p: p}
	n.disk.load()
	n.store.copyFrom(n.cluster.snapshot(n.disk.snap.GetData()))
	n.store.applied = n.disk.snap.GetMetadata().GetIndex()
	n.term, n.vote = n.disk.hard.GetTerm(), n.disk.hard.GetVote()
	n.findRestoration()
	var err error
	n.raw, err = raft.NewRawNode(&raft.Config{
		ID: n.id, ElectionTick: electionTicks, HeartbeatTick: 1, Storage: n.disk, Applied: n.store.applied,
		MaxSizePerMsg: 1 << 30, MaxInflightMsgs: 256, CheckQuorum: true, PreVote: true, Logger: silence{},
	})
	if err != nil {
		panic(err)
	}
	n.ticked = p.Mono()
	n.drawTimeout()
	// The cluster was at work before the run began, and its first member led:
	// rather than have every run begin with an outage, it stands at once.
	if n.boots++; n.boots == 1 && n.id == 1 {
		n.campaignAt = p.Mono()
	}
	n.serials = n.boots << 20 // no number of an earlier life comes back
	n.watchElection()
}

// findRestoration tells whether the disk is older than what was durable.
func (n *raftNode) findRestoration() {
	last, _ := n.disk.LastIndex()
	if n.term < n.durable.term || last < n.durable.index {
		n.generation++
		n.cluster.restored(n)
	}
	n.durable.term, n.durable.index = n.term, last
}

// drawTimeout draws an election timeout, as Raft does with each new term, and
// starts counting it.
func (n *raftNode) drawTimeout() {
	n.campaignTick = electionTimeout + time.Duration(n.p.Choose(sim.PointJitter, 0, int64(electionTimeout)-1))
	n.campaignAt = n.p.Mono().Add(n.campaignTick)
}

// watchElection sets the election timer, unless it is running. Heartbeats only
// move the time at which it is due: a timer that finds itself early goes back
// to sleep, so that a quiet follower costs an event in a second.
func (n *raftNode) watchElection() {
	if !n.electing && !n.leads {
		n.electing = true
		n.p.TimerIn(n.campaignAt.Sub(n.p.Mono()), raftTimerElection)
	}
}

// Timer implements sim.Handler.
func (n *raftNode) Timer(p *sim.Process, id uint64) {
	switch id {
	case raftTimerTick:
		n.tick()
	case raftTimerElection:
		n.electing = false
		if !n.leads && !n.stalled && p.Mono() >= n.campaignAt {
			n.catchUp()
			_ = n.raw.Campaign()
			n.drawTimeout()
		}
		if n.stalled { // the loop that would stand for election is blocked
			n.campaignAt = p.Mono().Add(n.campaignTick)
		}
		n.watchElection()
	case raftTimerLessor:
		n.expireLeases()
	case raftTimerFsync:
		if n.stalled {
			n.stalled = false
			n.synced()
			rd := n.pending
			n.pending = raft.Ready{}
			n.finish(&rd)
		}
	}
	n.work()
}

// tick is a leader's: it sends heartbeats, and every election timeout sees
// whether a quorum still answers. A loop that waits for an fsync does not tick.
func (n *raftNode) tick() {
	n.ticking = false
	if !n.leads {
		return
	}
	n.startTicking()
	if n.stalled {
		return
	}
	n.ticked = n.p.Mono()
	n.raw.Tick()
	n.round()
	for id := uint64(1); id <= uint64(n.cluster.nodes) && len(n.sentTo) > 0; id++ {
		n.checkSnapshot(id)
	}
}

func (n *raftNode) startTicking() {
	if !n.ticking {
		n.ticking = true
		n.p.TimerIn(raftTick, raftTimerTick)
	}
}

// checkSnapshot gives a snapshot up that has been under way for an election
// timeout: Raft sends nothing else to that member until it is told.
func (n *raftNode) checkSnapshot(id uint64) {
	ticks, sent := n.sentTo[id]
	if !sent {
		return
	}
	if ticks < electionTicks {
		n.sentTo[id]++
		return
	}
	delete(n.sentTo, id)
	n.raw.ReportSnapshot(id, raft.SnapshotFailure)
}

// catchUp counts the ticks that have passed on a follower. TickQuiesced only
// counts: for how long a follower has heard nothing decides whether it still
// holds with its leader when somebody asks for its vote (CheckQuorum). Counting
// when a message arrives instead of at every tick makes no difference that
// anybody could see.
func (n *raftNode) catchUp() {
	if n.leads {
		return
	}
	ticks := n.p.Mono().Sub(n.ticked) / raftTick
	n.ticked = n.ticked.Add(ticks * raftTick)
	for range min(ticks, 2*electionTicks) {
		n.raw.TickQuiesced()
	}
}

// receive takes a message from another member.
func (n *raftNode) receive(packet *raftPacket) {
	m := packet.m
	if packet.generation != n.generation || packet.given {
		return
	}
	packet.given = m.GetType() == raftpb.MsgProp
	n.catchUp()
	_ = n.raw.Step(m) // what Raft refuses, it refuses
	if n.idle(m) {
		return
	}
	// There is an answer to a heartbeat at least: no need to ask.
	if m.GetType() != raftpb.MsgHeartbeat || n.stalled || n.round() {
		n.work()
	}
	n.heard(m)
}

// idle tells that nothing can have come of a message: a member that has
// acknowledged the whole log answers a heartbeat. It is what most messages to a
// leader are, and to ask Raft costs more than the rest of their handling.
func (n *raftNode) idle(m *raftpb.Message) bool {
	if !n.leads || n.stalled || m.GetTerm() != n.term {
		return false
	}
	from := m.GetFrom() - 1
	switch m.GetType() {
	case raftpb.MsgAppResp:
		if !m.GetReject() {
			n.acked[from] = max(n.acked[from], m.GetIndex())
		}
	case raftpb.MsgHeartbeatResp:
		return len(m.GetContext()) == 0 && n.acked[from] == n.lastIndex()
	}
	return false
}

// heard starts the election timer anew when the current leader was heard, or a
// vote was granted; nothing else does.
func (n *raftNode) heard(m *raftpb.Message) {
	if n.stalled || m.GetTerm() != n.term {
		return
	}
	switch m.GetType() {
	case raftpb.MsgHeartbeat, raftpb.MsgApp, raftpb.MsgSnap:
		if m.GetFrom() == n.lead {
			n.campaignAt = n.p.Mono().Add(n.campaignTick)
		}
	case raftpb.MsgVote:
		if m.GetFrom() == n.vote {
			n.drawTimeout()
		}
	}
}

// work does what Raft has got ready, in its order: first to the disk, then to
// the others, then to the state machine. An fsync that stalls stops it there,
// as it stops the loop of an etcd member: Raft itself takes messages in, but
// nothing comes out of it, and nobody tells the server of a new leader.
func (n *raftNode) work() {
	for !n.stalled && n.raw.HasReady() && n.round() {
	}
}

// round handles one Ready and reports whether there may be another.
func (n *raftNode) round() bool {
	rd := n.raw.Ready()
	if messagesOnly(&rd) { // heartbeats, mostly
		n.sendAll(rd.Messages)
		n.raw.Advance(rd)
		return false
	}
	n.disk.save(&rd)
	n.durable.index = min(n.durable.index, n.lastIndex()) // a new leader's entries may be fewer
	if rd.MustSync || !raft.IsEmptySnap(rd.Snapshot) {
		if !n.p.Fsync(raftTimerFsync) {
			n.stalled, n.pending = true, rd
			return false
		}
		n.synced()
	}
	n.finish(&rd)
	if n.lead != 0 && len(n.held) > 0 {
		n.leaderKnown()
	}
	return true
}

func messagesOnly(rd *raft.Ready) bool {
	return len(rd.Entries)+len(rd.CommittedEntries)+len(rd.ReadStates) == 0 && rd.SoftState == nil && rd.HardState == nil && rd.Snapshot == nil
}

func (n *raftNode) synced() {
	n.durable.term, n.durable.index = n.disk.hard.GetTerm(), n.lastIndex()
}

func (n *raftNode) lastIndex() uint64 {
	last, _ := n.disk.LastIndex()
	return last
}

// finish does the rest of a Ready whose records are durable.
func (n *raftNode) finish(rd *raft.Ready) {
	if !raft.IsEmptyHardState(rd.HardState) {
		n.term, n.vote = rd.HardState.GetTerm(), rd.HardState.GetVote()
	}
	n.sendAll(rd.Messages)
	if s := rd.SoftState; s != nil {
		n.roleChanged(s)
	}
	if !raft.IsEmptySnap(rd.Snapshot) {
		n.store.copyFrom(n.cluster.snapshot(rd.Snapshot.GetData()))
		n.store.applied = rd.Snapshot.GetMetadata().GetIndex()
		n.cluster.jumped(n)
	}
	for _, e := range rd.CommittedEntries {
		n.apply(e)
	}
	n.readsConfirmed(rd.ReadStates)
	n.raw.Advance(*rd)
	if len(rd.CommittedEntries) > 0 || !raft.IsEmptySnap(rd.Snapshot) {
		n.serveWaiting()
		n.truncate()
	}
}

func (n *raftNode) sendAll(list []*raftpb.Message) {
	for _, m := range list {
		n.send(m)
	}
}

func (n *raftNode) send(m *raftpb.Message) {
	packet := n.env.raft.packets.Get()
	packet.m, packet.cluster, packet.generation = m, n.cluster, n.generation
	if m.GetType() == raftpb.MsgSnap {
		if n.sentTo == nil {
			n.sentTo = map[uint64]int{}
		}
		n.sentTo[m.GetTo()] = 0
	}
	n.p.Send(n.cluster.procs[m.GetTo()-1], packet)
}

// roleChanged tells the server who leads.
func (n *raftNode) roleChanged(s *raft.SoftState) {
	led := n.leads
	n.lead, n.leads = s.Lead, s.RaftState == raft.StateLeader
	switch {
	case n.leads && !led:
		n.sentTo, n.acked = nil, make([]uint64, n.cluster.nodes)
		n.startTicking()
	case led && !n.leads:
		n.ticked = n.p.Mono()
		n.lessor.demote()
		n.drawTimeout()
		n.watchElection()
	}
}

// apply gives a committed entry to the state machine.
func (n *raftNode) apply(e *raftpb.Entry) {
	n.store.applied = e.GetIndex()
	if len(e.GetData()) == 0 { // a new leader's first: it now knows all that was committed before
		n.cluster.took(n, e.GetIndex(), nil)
		if n.leads && e.GetTerm() == n.term {
			n.promoteLessor()
		}
		return
	}
	number := numberOf(e.GetData())
	command := n.env.raft.numbered[number]
	reply := n.store.apply(command)
	n.cluster.took(n, e.GetIndex(), command)
	n.leaseChanged(command)
	n.answer(number, &reply)
}

// truncate makes a snapshot when enough has been applied since the last.
func (n *raftNode) truncate() {
	if n.store.applied-n.disk.snap.GetMetadata().GetIndex() >= snapshotEvery {
		n.disk.truncate(n.store.applied, n.cluster.keep(&n.store))
	}
}

// Closed implements sim.Handler.
func (n *raftNode) Closed(_ *sim.Process, c *sim.Conn) { n.serving.closed(c) }
