package models

import (
	"strconv"
	"time"

	"locklab/clock"
	"locklab/sim"
)

// redlockEnsemble is all nodes of a Redlock, for whoever watches: the nodes
// know nothing of each other.
type redlockEnsemble struct {
	nodes  []*redlockNode
	quorum int           // how many make a grant
	votes  []*redisEntry // scratch
}

// newRedlockEnsemble adds the nodes to the world. It also returns how many of
// them a client wants: the quorum, unless somebody tries what comes of fewer.
func newRedlockEnsemble(env *Env, restart redlockRestart) (e *redlockEnsemble, wanted int) {
	n := env.Options.Nodes
	if n == 0 {
		n = redlockNodes
	}
	majority := n/2 + 1
	wanted = majority
	if env.Options.Quorum > 0 {
		wanted = env.Options.Quorum
	}
	e = &redlockEnsemble{quorum: max(majority, wanted), nodes: make([]*redlockNode, n), votes: make([]*redisEntry, 0, n)}
	for i := range e.nodes {
		e.nodes[i] = newRedlockNode(env, "redis-"+strconv.Itoa(i+1), restart)
	}
	return e, wanted
}

// holder tells whose value a quorum of the nodes holds. Until is left out:
// each node ends the lease by a clock of its own.
func (e *redlockEnsemble) holder() Holding {
	e.votes = e.votes[:0]
	for _, n := range e.nodes {
		v := n.vote()
		if v == nil {
			continue
		}
		same := 1
		for _, other := range e.votes {
			if other.op == v.op && other.value == v.value { // the tries of an acquire differ in their value
				same++
			}
		}
		if same == e.quorum {
			return Holding{Op: v.op}
		}
		e.votes = append(e.votes, v)
	}
	return Holding{}
}

// redlockNode is a Redis server and how it treats a restart.
type redlockNode struct {
	*redisServer
	restart redlockRestart

	// Of one that stays away.
	back clock.Reading // by its monotonic clock: from when on it serves
	lost redisEntry    // what the crash took
}

// newRedlockNode adds a node to the world, on a machine of its own.
func newRedlockNode(env *Env, name string, restart redlockRestart) *redlockNode {
	n := env.redlockNodes.Get()
	n.redisServer, n.restart = env.redisServers.Get(), restart
	n.env = env
	n.useEngine()
	machine := env.World.AddNode(name)
	policy := env.Options.Persistence
	if restart == remembers {
		policy = PersistAlways
	}
	n.persist(machine, policy)
	var handler sim.Handler = n.redisServer
	if restart == staysAway {
		handler = n
	}
	n.proc = machine.AddServer(name, handler)
	return n
}

// Start implements sim.Handler for a node that stays away.
func (n *redlockNode) Start(p *sim.Process) {
	if n.booted {
		n.lost = redisEntry{}
		if e := n.memory(); e != nil {
			n.lost = *e
		}
		n.back = p.Mono().Add(n.absence())
	}
	n.redisServer.Start(p)
}

// absence is longer than any lease that the node may have forgotten, also by
// a clock that is as fast as the design allows for.
func (n *redlockNode) absence() time.Duration {
	return n.env.Options.TTL + redlockDrift(n.env.Options) + time.Millisecond
}

// Request implements sim.Handler for a node that stays away: it answers as
// Redis does that has not loaded its data yet.
func (n *redlockNode) Request(p *sim.Process, m *sim.Message) {
	if p.Mono() >= n.back {
		n.redisServer.Request(p, m)
		return
	}
	r := n.env.replies.Get()
	*r = redisFail("LOADING Redis is loading the dataset in memory")
	p.Reply(m, r)
}

// vote is the lock that the node stands for, nil if it is free. A node that is
// down, or stays away, grants nothing to anybody, so what it stood for stands:
// only when it serves again without its memory is its vote free.
func (n *redlockNode) vote() *redisEntry {
	e := n.memory()
	if n.back != 0 && n.proc.Mono() < n.back {
		e = &n.lost
	}
	if e == nil || e.value == (RedisValue{}) || e.gone(wallMillis(n.proc.Wall())) {
		return nil
	}
	return e
}

// memory is the lock as the node has it, or had it when it went down.
func (n *redlockNode) memory() *redisEntry { return n.engine.peek(redisLockKey) }
