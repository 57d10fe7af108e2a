// Package network owns the policy of the simulated network: who can reach
// whom, and what TCP does with bytes that cannot travel. It has no event loop
// and moves no message; every answer is a pure function of what it was told.
package network

import "strings"

// Node numbers a machine, counted from 0.
type Node int32

// Mode says what a partition does to the messages it stops.
type Mode uint8

// The modes of a partition.
const (
	// Drop loses what is sent. A connection that lost bytes is dead in that
	// direction: TCP never delivers past a hole, and nobody fills this one.
	Drop Mode = iota
	// Hold keeps what is sent until the partition heals, as TCP's
	// retransmissions do.
	Hold
)

// Fate is what the network does with a message at the moment it is sent.
type Fate uint8

// The fates of a message.
const (
	Pass Fate = iota
	Lost
	Held
)

// Net knows the partitions in force. The zero Net connects everybody.
type Net struct {
	partitions []partition
}

// partition separates the nodes of one side from those of the other.
type partition struct {
	id     int
	from   nodeSet
	to     nodeSet
	mode   Mode
	oneWay bool
}

// Partition separates the nodes in from and the nodes in to until Heal(id).
// An empty to means every other node. With oneWay only messages from `from` to
// `to` are stopped.
func (n *Net) Partition(id int, from, to []Node, mode Mode, oneWay bool) {
	p := partition{id: id, from: setOf(from), to: setOf(to), mode: mode, oneWay: oneWay}
	if len(to) == 0 {
		p.to = p.from.complement()
	}
	n.partitions = append(n.partitions, p)
}

// Heal ends the partition with the given id.
func (n *Net) Heal(id int) {
	kept := n.partitions[:0]
	for _, p := range n.partitions {
		if p.id != id {
			kept = append(kept, p)
		}
	}
	n.partitions = kept
}

// Reset ends all partitions.
func (n *Net) Reset() { n.partitions = n.partitions[:0] }

// Fate tells what becomes of a message sent now, and for a held one the id of
// the partition that holds it. A partition that drops beats one that holds.
func (n *Net) Fate(from, to Node) (Fate, int) {
	if len(n.partitions) == 0 || from == to {
		return Pass, 0
	}
	fate, holder := Pass, 0
	for i := range n.partitions {
		p := &n.partitions[i]
		if !p.stops(from, to) {
			continue
		}
		if p.mode == Drop {
			return Lost, p.id
		}
		if fate == Pass {
			fate, holder = Held, p.id
		}
	}
	return fate, holder
}

// Describe draws who reaches whom among the first nodes of the net, a row for
// each sender: "." passes, "x" is lost, "h" is held.
func (n *Net) Describe(nodes int) string {
	var b strings.Builder
	for from := range nodes {
		for to := range nodes {
			fate, _ := n.Fate(Node(from), Node(to))
			b.WriteByte(".xh"[fate])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (p *partition) stops(from, to Node) bool {
	return p.from.has(from) && p.to.has(to) || !p.oneWay && p.to.has(from) && p.from.has(to)
}

// nodeSet is a set of nodes, or the complement of one.
type nodeSet struct {
	words    []uint64
	inverted bool
}

func setOf(nodes []Node) nodeSet {
	var s nodeSet
	for _, n := range nodes {
		for len(s.words) <= int(n)/64 {
			s.words = append(s.words, 0)
		}
		s.words[n/64] |= 1 << (n % 64)
	}
	return s
}

func (s nodeSet) complement() nodeSet { return nodeSet{words: s.words, inverted: !s.inverted} }

func (s nodeSet) has(n Node) bool {
	w := int(n) / 64
	in := w < len(s.words) && s.words[w]&(1<<(n%64)) != 0
	return in != s.inverted
}
