package models

import "locklab/clock"

// redisEngine is what executes commands inside one redis process: the native
// model (redisDB) or the real thing. The process around it (redisServer) does
// the rest: connections, timers, WAIT, the file and the replicas. An engine
// has no clock of its own; it is told the node's.
type redisEngine interface {
	// start empties the engine's memory, as a crash does, and puts these
	// entries there.
	start(preset []redisEntry)
	// run executes one command for a session. op is the operation that it
	// belongs to, which a key remembers and no reply shows.
	run(c *RedisCommand, s *redisSession, wall clock.Reading, op int32) RedisReply
	// close ends a session: it watches nothing any more.
	close(s *redisSession)
	// sweep removes what has expired.
	sweep(now int64)
	// due is the wall-clock millisecond after which the next key will be
	// gone; 0: none will.
	due() int64
	// peek returns what it holds under a key, also if that has expired; nil if
	// nothing. It is not to be changed.
	peek(key string) *redisEntry
	// evict and overwrite are done by somebody outside every session. They
	// report whether anything has changed.
	evict(key string, now int64) bool
	overwrite(key string, v RedisValue, now int64) bool
}

// start implements redisEngine.
func (db *redisDB) start(preset []redisEntry) {
	if db.entries == nil {
		db.entries, db.scripts = db.few.entries[:0], db.few.scripts[:0]
	}
	clear(db.entries)
	db.entries = append(db.entries[:0], preset...)
	db.watchers, db.scripts, db.log = db.watchers[:0], db.scripts[:0], db.log[:0]
}

// close implements redisEngine.
func (db *redisDB) close(s *redisSession) { db.end(s) }

// peek implements redisEngine.
func (db *redisDB) peek(key string) *redisEntry { return peekAt(db.entries, key) }

func peekAt(entries []redisEntry, key string) *redisEntry {
	for i := range entries {
		if entries[i].key == key {
			return &entries[i]
		}
	}
	return nil
}

// holdingIn says whose the lock under a key is.
func holdingIn(engine redisEngine, key string, now int64) Holding {
	if e := engine.peek(key); e != nil && !e.gone(now) {
		return Holding{Op: e.op, Until: clock.Reading(e.expires)}
	}
	return Holding{}
}

// evict implements redisEngine: the key goes as if a client had deleted it
// (Redis's evict.c deletes and propagates a DEL).
func (db *redisDB) evict(key string, now int64) bool {
	db.now, db.op = now, 0
	return !db.replica && db.del(key)
}

// overwrite implements redisEngine: a plain SET, without a time to live.
func (db *redisDB) overwrite(key string, v RedisValue, now int64) bool {
	db.now, db.op = now, 0
	if db.replica {
		return false
	}
	db.set(key, v, 0)
	return true
}

// RedisEngine runs commands without a world: for tests that compare engines.
// Each session is one connection; sessions begin with their first command.
type RedisEngine struct {
	engine   redisEngine
	sessions []*redisSession
}

// NewRedisEngine returns the named engine, empty.
func NewRedisEngine(name string) (*RedisEngine, error) {
	e, err := newRedisEngine(name)
	return &RedisEngine{engine: e}, err
}

// Do executes a command in a session, numbered from 0, at a wall-clock time.
// WAIT does not wait: it answers what it would inside a transaction.
func (e *RedisEngine) Do(session int, wall clock.Reading, c RedisCommand) RedisReply {
	return e.do(session, wall, c, 0)
}

// do is Do for an operation.
func (e *RedisEngine) do(session int, wall clock.Reading, c RedisCommand, op int32) RedisReply {
	for len(e.sessions) <= session {
		e.sessions = append(e.sessions, &redisSession{})
	}
	return e.engine.run(&c, e.sessions[session], wall, op)
}
