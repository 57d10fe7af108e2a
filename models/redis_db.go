package models

// redisEntry is one key. Op and last are provenance that no program can see: the
// operations that created the entry and that wrote its value last.
type redisEntry struct {
	key     string
	value   RedisValue
	members []redisMember // of a sorted set; none: a string. An empty set does not exist
	expires int64         // wall-clock millisecond after which it is gone; 0: never
	op      int32
	last    int32
}

func (e *redisEntry) gone(now int64) bool { return e.expires != 0 && now > e.expires }

func (e *redisEntry) sorted() bool { return len(e.members) > 0 }

// redisDB is the data of one Redis server. A lock needs a handful of keys, so
// they stand in a slice.
//
// It is the native engine: redis_run.go executes commands on it.
type redisDB struct {
	entries []redisEntry
	now     int64 // the command's time, in wall-clock milliseconds: frozen while it runs
	micros  int64 // and in microseconds, which TIME tells
	op      int32 // the operation that the command belongs to

	// replica makes expired keys stay: they are hidden from whoever asks, by
	// this server's clock, and go when the primary says so.
	replica bool

	// log are the changes since it was last emptied, for the append-only file
	// and the replicas; nobody keeps it where there are neither.
	log  []redisEffect
	logs bool

	watchers []*redisSession // those that WATCH something
	scripts  []*RedisScript  // what EVAL has loaded for EVALSHA
	// acked tells how many replicas have acknowledged what a session wrote;
	// nil: there are none.
	acked func(s *redisSession) int64

	// Room for what a lock needs, so that a run allocates less.
	few struct {
		entries [2]redisEntry
		scripts [2]*RedisScript
	}
}

// find returns the entry of a key, nil if there is none. A key is gone as soon
// as the whole millisecond is past its expiry (keyIsExpired in Redis's db.c:
// now > when).
func (db *redisDB) find(key string) *redisEntry {
	for i := range db.entries {
		e := &db.entries[i]
		if e.key != key {
			continue
		}
		if !e.gone(db.now) {
			return e
		}
		if !db.replica {
			db.drop(i)
		}
		return nil
	}
	return nil
}

// at returns where a key stands, also an expired one; -1 if there is none.
func (db *redisDB) at(key string) int {
	for i := range db.entries {
		if db.entries[i].key == key {
			return i
		}
	}
	return -1
}

// drop removes an entry and tells the replicas: also of an expired key they
// learn by a DEL.
func (db *redisDB) drop(i int) {
	db.changed(redisEffect{kind: effectDel, key: db.entries[i].key})
	db.remove(i)
}

func (db *redisDB) remove(i int) {
	last := len(db.entries) - 1
	db.entries[i] = db.entries[last]
	db.entries[last] = redisEntry{}
	db.entries = db.entries[:last]
}

// entry returns the entry of a key, a new empty one if there is none.
func (db *redisDB) entry(key string) *redisEntry {
	if e := db.find(key); e != nil {
		return e
	}
	db.entries = append(db.entries, redisEntry{key: key, op: db.op})
	return &db.entries[len(db.entries)-1]
}

// set writes a key anew as a string that is gone after a wall-clock
// millisecond (0: never).
func (db *redisDB) set(key string, v RedisValue, expires int64) {
	e := db.entry(key)
	e.value, e.members, e.expires, e.op, e.last = v, nil, expires, db.op, db.op
	db.put(e)
}

// put reports an entry that is a string.
func (db *redisDB) put(e *redisEntry) {
	db.changed(redisEffect{kind: effectPut, key: e.key, value: e.value, n: e.expires, op: e.op})
}

func (db *redisDB) del(key string) bool {
	if db.find(key) == nil {
		return false
	}
	db.drop(db.at(key))
	return true
}

// incr adds one to a number; a missing key counts as 0. It keeps the expiry.
func (db *redisDB) incr(key string) RedisReply {
	e := db.find(key)
	switch {
	case e == nil:
		db.set(key, RedisInt(1), 0)
		return redisNumber(1)
	case e.sorted():
		return redisFail(errWrongType)
	case !e.value.isN:
		return redisFail(errNotInteger)
	case e.value.n == 1<<63-1:
		return redisFail(errOverflow)
	}
	e.value.n++
	e.last = db.op
	db.put(e)
	return redisNumber(e.value.n)
}

// expireAt makes a key be gone after a wall-clock millisecond. A time that has
// come removes it at once.
func (db *redisDB) expireAt(key string, when int64) bool {
	e := db.find(key)
	switch {
	case e == nil:
		return false
	case when <= db.now:
		return db.del(key)
	}
	e.expires = when
	db.changed(redisEffect{kind: effectExpire, key: key, n: when})
	return true
}

// flush removes everything. A watched key that does not exist is not touched
// by that.
func (db *redisDB) flush() {
	for i := range db.entries {
		db.touch(db.entries[i].key)
	}
	clear(db.entries)
	db.entries = db.entries[:0]
	if db.logs {
		db.log = append(db.log, redisEffect{kind: effectFlush})
	}
}

// changed reports a change of a key to those who watch it, to the file and to
// the replicas.
func (db *redisDB) changed(e redisEffect) {
	db.touch(e.key)
	if db.logs {
		db.log = append(db.log, e)
	}
}

// sweep removes what has expired, as Redis does in the background.
func (db *redisDB) sweep(now int64) {
	if db.replica {
		return
	}
	for i := 0; i < len(db.entries); {
		if db.entries[i].gone(now) {
			db.drop(i)
			continue
		}
		i++
	}
}

// due returns the first wall-clock millisecond after which a key will be gone;
// 0: none will.
func (db *redisDB) due() int64 { return firstExpiry(db.entries) }

func firstExpiry(entries []redisEntry) int64 {
	next := int64(0)
	for i := range entries {
		if at := entries[i].expires; at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	return next
}
