package models

// redisMember is one member of a sorted set. Scores of real Redis are
// floating-point numbers; here they are whole numbers, which every use of the
// catalogue has (times in milliseconds, priorities).
type redisMember struct {
	member RedisValue
	score  int64
	// Provenance that no program can see: the operation that added the member,
	// and the rank that it had then.
	op      int32
	entered int32
}

// before is the order of a sorted set: by score, then by member, byte by byte.
func (m *redisMember) before(o *redisMember) bool {
	if m.score != o.score {
		return m.score < o.score
	}
	return m.member.String() < o.member.String()
}

// rank returns where a member stands, -1 if it is not in the set.
func (e *redisEntry) rank(member RedisValue) int {
	for i := range e.members {
		if e.members[i].member == member {
			return i
		}
	}
	return -1
}

// place puts a member where it belongs and returns its rank.
func (e *redisEntry) place(m redisMember) int {
	i := len(e.members)
	e.members = append(e.members, m)
	for ; i > 0 && m.before(&e.members[i-1]); i-- {
		e.members[i] = e.members[i-1]
	}
	e.members[i] = m
	return i
}

func (e *redisEntry) leave(i int) redisMember {
	m := e.members[i]
	e.members = append(e.members[:i], e.members[i+1:]...)
	return m
}

// zadd adds a member or changes its score. It reports whether the member is
// new; nothing changes when it has that score already.
func (db *redisDB) zadd(key string, member RedisValue, score int64) bool {
	e := db.entry(key)
	m := redisMember{member: member, score: score, op: db.op}
	i := e.rank(member)
	if i >= 0 {
		if e.members[i].score == score {
			return false
		}
		old := e.leave(i)
		m.op, m.entered = old.op, old.entered
	}
	rank := e.place(m)
	if i < 0 {
		m.entered = int32(rank)
		e.members[rank].entered = m.entered
	}
	db.changed(redisEffect{kind: effectZAdd, key: key, value: member, n: score, op: m.op, entered: m.entered})
	return i < 0
}

func (db *redisDB) zrem(key string, member RedisValue) bool {
	e := db.find(key)
	if e == nil {
		return false
	}
	i := e.rank(member)
	if i < 0 {
		return false
	}
	db.zdrop(e, i)
	return true
}

// zdrop removes a member. A set without members does not exist.
func (db *redisDB) zdrop(e *redisEntry, i int) {
	key, member := e.key, e.leave(i).member
	if len(e.members) == 0 {
		db.remove(db.at(key))
	}
	db.changed(redisEffect{kind: effectZRem, key: key, value: member})
}

// zremrange removes the members within a range of scores and returns how many
// there were.
func (db *redisDB) zremrange(key string, from, to ScoreBound) int64 {
	n := int64(0)
	for {
		e := db.find(key)
		if e == nil {
			return n
		}
		i := 0
		for i < len(e.members) && !(from.below(e.members[i].score) && to.above(e.members[i].score)) {
			i++
		}
		if i == len(e.members) {
			return n
		}
		db.zdrop(e, i)
		n++
	}
}

// ScoreBound is one end of a range of scores. The zero ScoreBound is the score
// 0, included.
type ScoreBound struct {
	Score int64
	Open  bool // the score itself is not in the range
	Inf   int8 // -1: -inf, 1: +inf; Score and Open do not matter then
}

func (b ScoreBound) below(score int64) bool {
	switch {
	case b.Inf != 0:
		return b.Inf < 0
	case b.Open:
		return b.Score < score
	}
	return b.Score <= score
}

func (b ScoreBound) above(score int64) bool {
	switch {
	case b.Inf != 0:
		return b.Inf > 0
	case b.Open:
		return score < b.Score
	}
	return score <= b.Score
}

// String returns the bound as Redis reads it: 5, (5, -inf.
func (b ScoreBound) String() string {
	switch {
	case b.Inf < 0:
		return "-inf"
	case b.Inf > 0:
		return "+inf"
	case b.Open:
		return "(" + RedisInt(b.Score).String()
	}
	return RedisInt(b.Score).String()
}
