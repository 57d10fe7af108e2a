package models

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"locklab/sim"
)

// raftPacket is a message between two members, as a datagram: the network may
// lose it, delay it and let later ones overtake it, which Raft is made for.
type raftPacket struct {
	m          *raftpb.Message
	cluster    *raftCluster
	generation int32 // of the sender's cluster; see raftNode.restored
	// given says that the packet has been handed to its receiver. Only for
	// forwarded proposals: members of etcd speak over TCP, which does not
	// duplicate, and these are the one message that must not be.
	given bool
}

// Digest implements sim.Payload. Fields are hashed, never protobuf's text,
// whose spacing differs from build to build on purpose.
func (p *raftPacket) Digest(d *sim.Digest) {
	m := p.m
	flags := uint64(m.GetType()) | m.GetFrom()<<8 | m.GetTo()<<16
	if m.GetReject() {
		flags |= 1 << 24
	}
	d.Word(flags | uint64(p.generation)<<32)
	d.Word(m.GetTerm())
	d.Word(m.GetLogTerm())
	d.Word(m.GetIndex())
	d.Word(m.GetCommit())
	d.Word(m.GetRejectHint())
	if c := m.GetContext(); len(c) == 8 {
		d.Word(binary.LittleEndian.Uint64(c))
	}
	for _, e := range m.GetEntries() {
		d.Word(e.GetTerm())
		d.Word(e.GetIndex())
		switch {
		case len(e.GetData()) == 0:
		case m.GetType() == raftpb.MsgReadIndex || m.GetType() == raftpb.MsgReadIndexResp:
			d.Word(binary.LittleEndian.Uint64(e.GetData()))
		default:
			p.cluster.command(e.GetData()).digest(d)
		}
	}
	if s := m.GetSnapshot(); s != nil {
		d.Word(s.GetMetadata().GetIndex())
		d.Word(s.GetMetadata().GetTerm())
		d.Int(p.cluster.snapshot(s.GetData()).revision)
	}
}

// String implements sim.Payload.
func (p *raftPacket) String() string {
	m := p.m
	s := fmt.Sprintf("%s term=%d", m.GetType(), m.GetTerm())
	switch m.GetType() {
	case raftpb.MsgApp, raftpb.MsgAppResp:
		s += fmt.Sprintf(" index=%d", m.GetIndex())
	case raftpb.MsgSnap:
		return s + fmt.Sprintf(" snapshot=%d", m.GetSnapshot().GetMetadata().GetIndex())
	case raftpb.MsgReadIndex, raftpb.MsgReadIndexResp:
		return s
	}
	if m.GetType() == raftpb.MsgApp {
		s += fmt.Sprintf(" commit=%d", m.GetCommit())
	}
	if m.GetReject() {
		s += " rejected"
	}
	for _, e := range m.GetEntries() {
		if len(e.GetData()) == 0 {
			s += " [no-op]"
			continue
		}
		s += " [" + p.cluster.command(e.GetData()).String() + "]"
	}
	return s
}

// forwarded is a keepalive that a follower hands to the leader, and the
// leader's answer. Renewals do not go through the log; etcd's followers carry
// them by a request of their own (EtcdServer.LeaseRenew).
type forwarded struct {
	serial uint64
	lease  int64
	op     int32
	answer bool
	code   kvCode
}

// Digest implements sim.Payload.
func (f *forwarded) Digest(d *sim.Digest) {
	d.Word(f.serial)
	d.Int(f.lease)
	answer := uint64(0)
	if f.answer {
		answer = 1
	}
	d.Word(answer | uint64(f.code)<<8)
}

// String implements sim.Payload.
func (f *forwarded) String() string {
	if f.answer {
		return "renewed " + shortHex(f.lease) + ": " + kvCodes[f.code]
	}
	return "renew " + shortHex(f.lease)
}
