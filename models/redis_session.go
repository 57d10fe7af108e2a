package models

// redisSession is what a server keeps for one connection: the transaction that
// is being queued, and what is watched.
type redisSession struct {
	multi   bool // between MULTI and EXEC
	aborted bool // a command could not be queued: EXEC will refuse
	queue   []*RedisCommand
	watched []string
	dirty   bool // a watched key was touched: EXEC will do nothing
	// written is the replication offset after the session's last write, which
	// WAIT waits for.
	written int64
	// Peer is an engine's own.
	Peer any
}

// watch makes the next EXEC conditional on the key. A key that has expired
// counts as missing: its removal, later, is no change (Redis's multi.c keeps
// "expired" for a watched key; tried on redis-server 7.0.15).
func (db *redisDB) watch(s *redisSession, key string) {
	db.find(key)
	for _, k := range s.watched {
		if k == key {
			return
		}
	}
	if len(s.watched) == 0 {
		db.watchers = append(db.watchers, s)
	}
	s.watched = append(s.watched, key)
}

func (db *redisDB) unwatch(s *redisSession) {
	s.dirty = false
	if len(s.watched) == 0 {
		return
	}
	s.watched = s.watched[:0]
	for i, other := range db.watchers {
		if other == s {
			db.watchers = append(db.watchers[:i], db.watchers[i+1:]...)
			return
		}
	}
}

// touch tells the sessions that watch a key. Their own commands count too.
func (db *redisDB) touch(key string) {
	for _, s := range db.watchers {
		for _, k := range s.watched {
			if k == key {
				s.dirty = true
			}
		}
	}
}

// end forgets a transaction and what it watched.
func (db *redisDB) end(s *redisSession) {
	s.multi, s.aborted, s.queue = false, false, s.queue[:0]
	db.unwatch(s)
}

// enqueue keeps a command for EXEC.
func (db *redisDB) enqueue(c *RedisCommand, s *redisSession) RedisReply {
	if db.replica && c.Verb.writes() {
		s.aborted = true
		return redisFail(errReadOnly)
	}
	s.queue = append(s.queue, c)
	return redisQueued
}

// exec runs the queued commands at once, or none of them: a watched key was
// touched, which includes that it expired since (Redis 6.0.9 and later;
// redis.io, "Transactions", WATCH). An error of one command does not stop the
// others.
func (db *redisDB) exec(s *redisSession) RedisReply {
	if !s.multi {
		return redisFail(errExecAlone)
	}
	for _, key := range s.watched {
		db.find(key) // one that has expired goes, and is touched by that
	}
	aborted, dirty, queue := s.aborted, s.dirty, s.queue
	db.end(s)
	switch {
	case aborted:
		return redisFail(errExecAbort)
	case dirty:
		return RedisReply{kind: replyNilArray}
	}
	items := make([]RedisReply, len(queue))
	for i, c := range queue {
		items[i] = db.execute(c, s)
	}
	return redisList(items)
}
