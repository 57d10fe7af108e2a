package models

import (
	"fmt"
	"strings"
	"time"

	"locklab/clock"
	"locklab/sim"
)

// redisServer is one Redis process on a node of its own: an engine with the
// data, and around it connections, timers, the append-only file and, in a
// replica group, the other servers.
type redisServer struct {
	env    *Env
	proc   *sim.Process
	engine redisEngine
	db     redisDB      // the native engine
	preset []redisEntry // what it holds at the very first start
	booted bool
	expiry int64 // the wall-clock millisecond that the timer of expiry is set for; 0: none

	aof   *redisFile        // nil: no persistence
	repl  *redisReplication // nil: it stands alone
	waits []redisWait       // sessions that WAIT
	waitN uint64

	// A server has one thread: while it waits for the disk, nothing else
	// happens. behind came meanwhile.
	stalled  bool
	unsent   *sim.Message // whose reply the disk holds
	unsentBy *RedisReply
	behind   []*sim.Message
}

// redisTimer is what a server's timer is for. It stands in the low bits of the
// timer's number.
type redisTimer uint64

const (
	redisExpiry    redisTimer = iota // the rest: for which millisecond
	redisWaitOver                    // the rest: whose WAIT is over
	redisFlush                       // aof-everysec: a second has passed
	redisSynced                      // an fsync has completed that a reply waited for
	redisUnwaited                    // one that nobody waits for
	redisShip                        // the rest: the stream to this replica goes on
	redisBeat                        // replication: pings and time-outs
	redisConnect                     // replication: try to reach the primary
	redisTimerBits = 3
)

func (k redisTimer) of(rest uint64) uint64 { return rest<<redisTimerBits | uint64(k) }

// newRedis adds a Redis that stands alone: a node of the given name with one
// process. preset is what it holds at its first start.
func newRedis(env *Env, name string, preset ...redisEntry) *redisServer {
	return newPersistentRedis(env, name, env.Options.Persistence, preset...)
}

// newPersistentRedis is newRedis with a persistence of its own.
func newPersistentRedis(env *Env, name, persistence string, preset ...redisEntry) *redisServer {
	s := env.redisServers.Get()
	s.env, s.preset = env, preset
	s.useEngine()
	n := env.World.AddNode(name)
	s.persist(n, persistence)
	s.proc = n.AddServer(name, s)
	return s
}

// useEngine gives the server its engine. The native one is part of the server,
// since a run builds many.
func (s *redisServer) useEngine() {
	s.env.hasRedis = true
	if s.env.Options.Engine == EngineMiniredis {
		s.engine = s.env.miniredis()
		return
	}
	s.engine = &s.db
}

// newRedisEngine returns an engine by its name, for use without a server.
func newRedisEngine(name string) (redisEngine, error) {
	switch name {
	case "", EngineNative:
		return &redisDB{}, nil
	case EngineMiniredis:
		return newMiniEngine(), nil
	}
	return nil, fmt.Errorf("no engine is called %q; known are: %s", name, strings.Join(Engines(), ", "))
}

// Start implements sim.Handler: memory is empty, and what the file has comes
// back. A key whose time came while the server was down goes as soon as the
// data is there: its expiry is a time of the wall clock.
func (s *redisServer) Start(p *sim.Process) {
	s.expiry, s.waits = 0, s.waits[:0]
	s.stalled, s.unsent, s.unsentBy, s.behind = false, nil, nil, nil
	first := !s.booted
	s.booted = true
	if first {
		s.engine.start(s.preset)
	} else {
		s.engine.start(nil)
	}
	if s.aof != nil {
		s.aof.boot(s, first)
	}
	if s.repl != nil {
		s.repl.boot(s, first)
	}
	s.watchExpiry(p)
}

// Request implements sim.Handler.
func (s *redisServer) Request(p *sim.Process, m *sim.Message) {
	if s.stalled {
		s.behind = append(s.behind, m)
		return
	}
	s.handle(p, m)
}

func (s *redisServer) handle(p *sim.Process, m *sim.Message) {
	if peer, ok := m.Body.(*redisPeer); ok {
		s.repl.hear(s, m.Conn, peer)
		s.watchExpiry(p)
		return
	}
	c := m.Body.(*RedisCommand)
	session := s.session(m.Conn)
	if c.Verb == RedisWait && !session.multi && s.wait(m, c, session) {
		return
	}
	r := s.env.replies.Get()
	if c.Verb == RedisRole {
		*r = s.role()
	} else {
		*r = s.engine.run(c, session, p.Wall(), m.Op)
	}
	if held := s.spread(session); held {
		s.unsent, s.unsentBy = m, r
	} else {
		p.Reply(m, r)
	}
	s.watchExpiry(p)
}

// session returns what the server keeps for a connection.
func (s *redisServer) session(c *sim.Conn) *redisSession {
	if known, ok := c.Session.(*redisSession); ok {
		return known
	}
	session := s.env.sessions.Get()
	c.Session = session
	if s.repl != nil {
		s.repl.clients = append(s.repl.clients, c)
	}
	return session
}

// spread sends what the last command changed to the file and the replicas. It
// reports whether the disk holds the reply back. session is whose command it
// was, nil if nobody's.
func (s *redisServer) spread(session *redisSession) (held bool) {
	if len(s.db.log) == 0 {
		return false
	}
	if !s.db.replica { // whose changes come as the primary grouped them
		asTransaction(s.db.log)
	}
	if s.repl != nil {
		s.repl.feed(s, s.db.log)
		if session != nil {
			session.written = s.repl.offset
		}
	}
	if s.aof != nil {
		held = s.aof.write(s, s.db.log, session != nil)
		s.stalled = held
	}
	s.db.log = s.db.log[:0]
	return held
}

// goOn ends a stall of the disk: the reply goes out, and what came meanwhile
// is handled.
func (s *redisServer) goOn(p *sim.Process) {
	s.stalled = false
	if s.unsent != nil {
		p.Reply(s.unsent, s.unsentBy)
		s.unsent, s.unsentBy = nil, nil
	}
	for len(s.behind) > 0 && !s.stalled {
		m := s.behind[0]
		s.behind = s.behind[1:]
		s.handle(p, m)
	}
	if !s.stalled {
		s.watchExpiry(p)
	}
}

// watchExpiry sets a timer for the moment at which the next key is gone. Real
// Redis removes a key when somebody asks, or a little later by itself; nobody
// can tell the difference, but whoever watches wants the moment.
func (s *redisServer) watchExpiry(p *sim.Process) {
	if s.db.replica {
		return
	}
	next := s.engine.due()
	if next == 0 || next == s.expiry {
		return
	}
	s.expiry = next
	p.TimerAtWall(clock.Reading((next+1)*int64(time.Millisecond)), redisExpiry.of(uint64(next)))
}

// Timer implements sim.Handler.
func (s *redisServer) Timer(p *sim.Process, id uint64) {
	rest := id >> redisTimerBits
	switch redisTimer(id & (1<<redisTimerBits - 1)) {
	case redisExpiry:
		s.expire(p, int64(rest))
	case redisWaitOver:
		s.endWait(p, rest)
	case redisFlush:
		s.aof.flush(p)
	case redisSynced:
		s.goOn(p)
	case redisShip:
		s.repl.ship(s, int(rest))
	case redisBeat:
		s.repl.beat(s)
	case redisConnect:
		s.repl.connect(s)
	}
}

// expire removes what is due. A replica lets it be. A stalled server comes to
// it later.
func (s *redisServer) expire(p *sim.Process, at int64) {
	if at != s.expiry || s.db.replica {
		return
	}
	s.expiry = 0
	if s.stalled {
		return
	}
	s.engine.sweep(wallMillis(p.Wall()))
	s.spread(nil)
	s.watchExpiry(p)
}

// Closed implements sim.Handler: a session's transaction and what it watched
// go with its connection.
func (s *redisServer) Closed(_ *sim.Process, c *sim.Conn) {
	if session, ok := c.Session.(*redisSession); ok {
		s.engine.close(session)
		s.dropWaits(c)
	}
	if s.repl != nil {
		s.repl.closed(s, c)
	}
}

// role answers ROLE, of which clients read the first word (redis.io, "Redis
// client spec for Sentinel").
func (s *redisServer) role() RedisReply {
	word := "master"
	if s.db.replica {
		word = "slave"
	}
	return redisList([]RedisReply{redisBulk(RedisString(word))})
}

// Takes implements sim.Operable.
func (s *redisServer) Takes(d *sim.Deed) error {
	if d.Kind == sim.Failover && s.repl == nil {
		return fmt.Errorf("it has no replicas, so there is nobody to fail over to; use a redis-replica design")
	}
	return nil
}

// Take implements sim.Operable.
func (s *redisServer) Take(p *sim.Process, d *sim.Deed) bool {
	if d.Kind == sim.Failover {
		return s.repl.group.failover(d.Mode == "demoted")
	}
	now, done := wallMillis(p.Wall()), false
	if d.Kind == sim.Evict {
		done = s.engine.evict(d.Key, now)
	} else {
		value := d.Value
		if value == "" {
			value = "overwritten"
		}
		done = s.engine.overwrite(d.Key, RedisString(value), now)
	}
	s.spread(nil)
	s.watchExpiry(p)
	return done
}

// holding returns whose the lock is, as the key says. A dead server without a
// file has none; with one, nothing is known to be lost until it is back.
func (s *redisServer) holding(key string) Holding {
	if s.proc.Down() && s.aof == nil {
		return Holding{}
	}
	return holdingIn(s.engine, key, wallMillis(s.proc.Wall()))
}
