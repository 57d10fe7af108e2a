package models

import (
	"strconv"

	"locklab/sim"
)

// effectKind is what a change does to a key.
type effectKind uint8

const (
	effectPut    effectKind = iota + 1 // a string, with its expiry
	effectExpire                       // another expiry
	effectDel
	effectZAdd
	effectZRem
	effectFlush
)

// redisEffect is one change of the data, as it goes to the append-only file
// and to the replicas. Like real Redis it carries no command but what the
// command did: a time to live has become an absolute time, a script the
// changes it made, an expired key a DEL.
type redisEffect struct {
	kind  effectKind
	more  bool // the next change belongs to the same transaction
	key   string
	value RedisValue
	n     int64 // put, expire: wall-clock millisecond; zadd: score
	op    int32
	// entered is a new member's rank when it was added: provenance, as op is.
	entered int32
}

// apply carries a change out, whatever the clock says: neither a replica nor a
// server that loads its file expires anything.
func (db *redisDB) apply(f *redisEffect) {
	i := db.at(f.key)
	if i < 0 && (f.kind == effectPut || f.kind == effectZAdd) {
		i = len(db.entries)
		db.entries = append(db.entries, redisEntry{key: f.key, op: f.op})
	}
	if i >= 0 {
		db.alter(i, f)
	}
	if f.kind == effectFlush {
		db.flush()
		return
	}
	db.changed(*f)
}

// alter carries a change of an entry out.
func (db *redisDB) alter(i int, f *redisEffect) {
	e := &db.entries[i]
	switch f.kind {
	case effectPut:
		e.value, e.members, e.expires, e.op = f.value, nil, f.n, f.op
	case effectExpire:
		e.expires = f.n
	case effectDel:
		db.remove(i)
	case effectZAdd:
		if r := e.rank(f.value); r >= 0 {
			e.leave(r)
		}
		e.place(redisMember{member: f.value, score: f.n, op: f.op, entered: f.entered})
	case effectZRem:
		if r := e.rank(f.value); r >= 0 {
			e.leave(r)
		}
		if len(e.members) == 0 {
			db.remove(i)
		}
	}
}

// snapshot returns changes that make the present data out of nothing.
func (db *redisDB) snapshot() []redisEffect {
	var out []redisEffect
	for i := range db.entries {
		e := &db.entries[i]
		for _, m := range e.members {
			out = append(out, redisEffect{kind: effectZAdd, key: e.key, value: m.member, n: m.score, op: m.op, entered: m.entered})
		}
		switch {
		case !e.sorted():
			out = append(out, redisEffect{kind: effectPut, key: e.key, value: e.value, n: e.expires, op: e.op})
		case e.expires != 0:
			out = append(out, redisEffect{kind: effectExpire, key: e.key, n: e.expires})
		}
	}
	return out
}

// asTransaction marks changes as one: all of them are loaded, or none.
func asTransaction(effects []redisEffect) {
	for i := range effects {
		effects[i].more = i < len(effects)-1
	}
}

func (f *redisEffect) digest(d *sim.Digest) {
	d.Word(uint64(f.kind))
	d.Text(f.key)
	f.value.digest(d)
	d.Int(f.n)
}

func (f *redisEffect) String() string {
	at := strconv.FormatInt(f.n, 10)
	switch f.kind {
	case effectPut:
		s := "SET " + f.key + " " + short(f.value)
		if f.n != 0 {
			s += " PXAT " + at
		}
		return s
	case effectExpire:
		return "PEXPIREAT " + f.key + " " + at
	case effectDel:
		return "DEL " + f.key
	case effectZAdd:
		return "ZADD " + f.key + " " + at + " " + short(f.value)
	case effectZRem:
		return "ZREM " + f.key + " " + short(f.value)
	}
	return "FLUSHALL"
}
