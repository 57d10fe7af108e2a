package models

import (
	"strconv"

	"locklab/sim"
)

// redisGroup is a primary with its replicas and the monitor that watches them.
type redisGroup struct {
	env       *Env
	servers   []*redisServer
	monitor   *redisMonitor
	histories int64 // replication histories begun so far
	// primary is the server that the monitor names to whoever asks. Its
	// configuration file keeps that over a crash.
	primary int
}

// newRedisGroup adds a primary redis-1, replicas redis-2 and so on, each on a
// node of its own, and the monitor.
func newRedisGroup(env *Env, replicas int, preset ...redisEntry) *redisGroup {
	env.lacking = "replication"
	g := &redisGroup{env: env, histories: 1}
	for i := range replicas + 1 {
		s := newRedis(env, "redis-"+strconv.Itoa(i+1), preset...)
		s.repl = &redisReplication{group: g, self: i, priority: replicaPriority, links: make([]replicaLink, replicas+1)}
		s.db.logs = true
		s.db.acked = func(session *redisSession) int64 { return s.acked(session.written) }
		g.servers = append(g.servers, s)
	}
	g.monitor = newRedisMonitor(g)
	return g
}

func (g *redisGroup) newHistory() int64 {
	g.histories++
	return g.histories
}

// watch are the processes whose state holding reads, in the order in which
// they were built: the monitor last.
func (g *redisGroup) watch() []*sim.Process {
	var out []*sim.Process
	for _, s := range g.servers {
		out = append(out, s.proc)
	}
	return append(out, g.monitor.proc)
}

// holding tells whose the lock is: what the key says on the server that the
// monitor names as the primary.
//
// After a failover there may be two primaries for a while: the old one goes on
// serving the clients that are still connected to it, until it is told. There
// is one lock all the same, and its state is what a client that asks now will
// find. What the old primary grants from then on is nobody's grant: to its
// client it looks like one, and the checker calls it a phantom. While the
// primary is down, nobody can be granted anything and nothing is known to be
// lost: what it last had counts until it is back without it, or another one is
// named.
func (g *redisGroup) holding(key string) Holding {
	s := g.servers[g.primary]
	return holdingIn(s.engine, key, wallMillis(s.proc.Wall()))
}

// better reports whether a replica is to be promoted rather than another:
// lower priority number, then more of the stream, then the smaller ID
// (redis.io, "High availability with Redis Sentinel", replica selection).
func better(a, b *redisReplication, offsetA, offsetB int64) bool {
	switch {
	case a.priority != b.priority:
		return a.priority < b.priority
	case offsetA != offsetB:
		return offsetA > offsetB
	}
	return a.self < b.self
}

// failover is the operator's: at once, with whatever the best replica has.
// The old primary is told (demoted) or lives on until the monitor finds it in
// its wrong role. It reports whether there was a replica to promote.
func (g *redisGroup) failover(demoted bool) bool {
	old, best := g.primary, -1
	for i, s := range g.servers {
		r := s.repl
		if i == old || s.proc.Down() || r.priority == 0 {
			continue
		}
		if best < 0 || better(r, g.servers[best].repl, r.offset, g.servers[best].repl.offset) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	g.servers[best].repl.promote(g.servers[best])
	g.monitor.named(best)
	for i, s := range g.servers {
		if i != best && (i != old || demoted) && !s.proc.Down() {
			s.repl.follow(s, best)
		}
	}
	return true
}
