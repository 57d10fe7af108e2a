package models

import (
	"strconv"
	"strings"
	"time"

	"locklab/clock"
	"locklab/sim"
)

// RedisValue is a string as Redis keeps it: a canonical decimal integer is
// kept as a number, anything else as text. Equal strings are equal values.
type RedisValue struct {
	text string
	n    int64
	isN  bool
}

// RedisInt returns the value of an integer's decimal form.
func RedisInt(n int64) RedisValue { return RedisValue{n: n, isN: true} }

// RedisString returns the value of a string.
func RedisString(s string) RedisValue {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(n, 10) == s {
		return RedisInt(n)
	}
	return RedisValue{text: s}
}

// String returns the string.
func (v RedisValue) String() string {
	if v.isN {
		return strconv.FormatInt(v.n, 10)
	}
	return v.text
}

func (v RedisValue) digest(d *sim.Digest) {
	if v.isN {
		d.Int(v.n)
		return
	}
	d.Text(v.text)
}

// redisEntry is one key. Op is provenance that no program can see: the
// operation that created the entry.
type redisEntry struct {
	key     string
	value   RedisValue
	expires int64 // wall-clock millisecond after which it is gone; 0: never
	op      int32
}

// redisDB is the data of one Redis server. A lock needs a handful of keys, so
// they stand in a slice.
type redisDB struct {
	entries []redisEntry
	now     int64 // the command's time, in wall-clock milliseconds: frozen while it runs
	op      int32 // the operation that the command belongs to
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
		if e.gone(db.now) {
			db.remove(i)
			return nil
		}
		return e
	}
	return nil
}

func (e *redisEntry) gone(now int64) bool { return e.expires != 0 && now > e.expires }

func (db *redisDB) remove(i int) {
	last := len(db.entries) - 1
	db.entries[i] = db.entries[last]
	db.entries = db.entries[:last]
}

// set writes a key anew and returns its entry, without an expiry.
func (db *redisDB) set(key string, v RedisValue) *redisEntry {
	e := db.find(key)
	if e == nil {
		db.entries = append(db.entries, redisEntry{key: key})
		e = &db.entries[len(db.entries)-1]
	}
	e.value, e.expires, e.op = v, 0, db.op
	return e
}

func (db *redisDB) del(key string) bool {
	if db.find(key) == nil {
		return false
	}
	for i := range db.entries {
		if db.entries[i].key == key {
			db.remove(i)
			break
		}
	}
	return true
}

// incr adds one to a number; a missing key counts as 0. It keeps the expiry.
func (db *redisDB) incr(key string) (int64, bool) {
	e := db.find(key)
	if e == nil {
		db.set(key, RedisInt(1))
		return 1, true
	}
	if !e.value.isN || e.value.n == 1<<63-1 {
		return 0, false
	}
	e.value.n++
	return e.value.n, true
}

// redisVerb is a command's name.
type redisVerb uint8

// The commands that the native engine runs.
const (
	RedisSet redisVerb = iota + 1
	RedisSetNX
	RedisGet
	RedisDel
	RedisExpire
	RedisPExpire
	RedisTTL
	RedisPTTL
	RedisIncr
	RedisExists
	RedisFlushAll
	RedisTime
	RedisEval
)

var redisVerbs = [...]string{"", "SET", "SETNX", "GET", "DEL", "EXPIRE", "PEXPIRE", "TTL", "PTTL", "INCR", "EXISTS", "FLUSHALL", "TIME", "EVAL"}

// RedisScript is a Lua script and what it does. The native engine runs Run,
// which is atomic as the script is: no key expires while it runs.
type RedisScript struct {
	Text string
	Run  func(db *redisDB, c *RedisCommand) RedisReply
}

// RedisCommand is one command. Fields that the verb does not use are zero.
type RedisCommand struct {
	Verb   redisVerb
	Key    string
	Key2   string // EVAL: KEYS[2]
	Value  RedisValue
	TTL    time.Duration // SET: PX; EXPIRE, PEXPIRE: the time to live; EVAL: ARGV[2] in milliseconds
	NX, XX bool
	Get    bool // SET ... GET
	Script *RedisScript
}

// Digest implements sim.Payload.
func (c *RedisCommand) Digest(d *sim.Digest) {
	flags := uint64(c.Verb)
	for i, f := range []bool{c.NX, c.XX, c.Get} {
		if f {
			flags |= 1 << (8 + i)
		}
	}
	d.Word(flags)
	d.Text(c.Key)
	d.Text(c.Key2)
	c.Value.digest(d)
	d.Int(int64(c.TTL))
	if c.Script != nil {
		d.Text(c.Script.Text)
	}
}

// String implements sim.Payload: the command as one would type it, with long
// random values cut short.
func (c *RedisCommand) String() string {
	var b strings.Builder
	b.WriteString(redisVerbs[c.Verb])
	if c.Script != nil {
		b.WriteString(" " + c.Script.name())
	}
	for _, s := range []string{c.Key, c.Key2, short(c.Value)} {
		if s != "" {
			b.WriteString(" " + s)
		}
	}
	if c.NX {
		b.WriteString(" NX")
	}
	if c.XX {
		b.WriteString(" XX")
	}
	if c.TTL != 0 {
		b.WriteString(" PX " + strconv.FormatInt(c.TTL.Milliseconds(), 10))
	}
	return b.String()
}

// name is a script's name for people: its first line, a comment.
func (s *RedisScript) name() string {
	first, _, _ := strings.Cut(s.Text, "\n")
	return "'" + strings.TrimSpace(strings.TrimPrefix(first, "--")) + "'"
}

// short writes a value so that a line stays readable.
func short(v RedisValue) string {
	if v == (RedisValue{}) {
		return ""
	}
	s := v.String()
	if len(s) > 8 {
		return s[:4] + ".."
	}
	return s
}

// replyKind is the type of a reply.
type replyKind uint8

const (
	replyNil replyKind = iota
	replyStatus
	replyInt
	replyBulk
	replyError
)

// RedisReply is a server's answer.
type RedisReply struct {
	kind  replyKind
	value RedisValue
}

// Digest implements sim.Payload.
func (r *RedisReply) Digest(d *sim.Digest) {
	d.Word(uint64(r.kind))
	r.value.digest(d)
}

// String implements sim.Payload.
func (r *RedisReply) String() string {
	switch r.kind {
	case replyNil:
		return "(nil)"
	case replyError:
		return "(error) " + r.value.String()
	}
	return short(r.value)
}

var (
	redisOK  = RedisReply{kind: replyStatus, value: RedisValue{text: "OK"}}
	redisNil = RedisReply{}
)

func redisNumber(n int64) RedisReply { return RedisReply{kind: replyInt, value: RedisInt(n)} }
func redisBulk(v RedisValue) RedisReply {
	return RedisReply{kind: replyBulk, value: v}
}
func redisFail(s string) RedisReply {
	return RedisReply{kind: replyError, value: RedisValue{text: s}}
}
func redisBool(b bool) RedisReply {
	if b {
		return redisNumber(1)
	}
	return redisNumber(0)
}

// run executes one command atomically at the given wall-clock time.
func (db *redisDB) run(c *RedisCommand, wall clock.Reading) RedisReply {
	db.now = int64(wall) / int64(time.Millisecond)
	switch c.Verb {
	case RedisSet:
		return db.setCommand(c)
	case RedisSetNX:
		if db.find(c.Key) != nil {
			return redisNumber(0)
		}
		db.set(c.Key, c.Value)
		return redisNumber(1)
	case RedisGet:
		if e := db.find(c.Key); e != nil {
			return redisBulk(e.value)
		}
		return redisNil
	case RedisDel:
		return redisBool(db.del(c.Key))
	case RedisExpire, RedisPExpire:
		return redisBool(db.expire(c.Key, c.TTL))
	case RedisTTL, RedisPTTL:
		return db.ttl(c)
	case RedisIncr:
		n, ok := db.incr(c.Key)
		if !ok {
			return redisFail("ERR value is not an integer or out of range")
		}
		return redisNumber(n)
	case RedisExists:
		return redisBool(db.find(c.Key) != nil)
	case RedisFlushAll:
		db.entries = db.entries[:0]
		return redisOK
	case RedisTime:
		return redisNumber(int64(wall) / int64(time.Microsecond))
	case RedisEval:
		return c.Script.Run(db, c)
	}
	return redisFail("ERR unknown command")
}

func (db *redisDB) setCommand(c *RedisCommand) RedisReply {
	old := db.find(c.Key)
	answer := redisOK
	if c.Get {
		answer = redisNil
		if old != nil {
			answer = redisBulk(old.value)
		}
	}
	if c.NX && old != nil || c.XX && old == nil {
		if c.Get {
			return answer
		}
		return redisNil
	}
	e := db.set(c.Key, c.Value)
	if c.TTL > 0 {
		e.expires = db.now + c.TTL.Milliseconds()
	}
	return answer
}

// expire gives a key another expiry. A time to live of 0 or less removes it.
func (db *redisDB) expire(key string, ttl time.Duration) bool {
	e := db.find(key)
	if e == nil {
		return false
	}
	if ttl <= 0 {
		return db.del(key)
	}
	e.expires = db.now + ttl.Milliseconds()
	return true
}

// ttl answers TTL (in seconds, rounded) and PTTL: -2 without the key, -1
// without an expiry.
func (db *redisDB) ttl(c *RedisCommand) RedisReply {
	e := db.find(c.Key)
	switch {
	case e == nil:
		return redisNumber(-2)
	case e.expires == 0:
		return redisNumber(-1)
	}
	left := max(e.expires-db.now, 0)
	if c.Verb == RedisTTL {
		left = (left + 500) / 1000
	}
	return redisNumber(left)
}

// redisServer is one Redis on one node, without persistence or replicas: a
// crash takes everything.
type redisServer struct {
	env    *Env
	db     redisDB
	preset []redisEntry // what it holds at the very first start
	booted bool
	timer  int64 // the earliest expiry that a timer is set for; 0: none
}

// newRedis adds a Redis server, on a node of its own with the same name.
func newRedis(env *Env, name string) (*redisServer, *sim.Process) {
	s := &redisServer{env: env}
	return s, env.World.AddNode(name).AddServer(name, s)
}

// Start implements sim.Handler.
func (s *redisServer) Start(p *sim.Process) {
	s.db.entries = s.db.entries[:0]
	s.timer = 0
	if !s.booted {
		s.db.entries = append(s.db.entries, s.preset...)
		s.booted = true
	}
}

// Request implements sim.Handler.
func (s *redisServer) Request(p *sim.Process, m *sim.Message) {
	s.db.op = m.Op
	r := s.env.replies.Get()
	*r = s.db.run(m.Body.(*RedisCommand), p.Wall())
	s.watchExpiry(p)
	p.Reply(m, r)
}

// watchExpiry sets a timer for the moment at which the next key is gone. Real
// Redis removes a key when somebody asks, or a little later by itself; nobody
// can tell the difference, but whoever watches wants the moment.
func (s *redisServer) watchExpiry(p *sim.Process) {
	next := int64(0)
	for i := range s.db.entries {
		if at := s.db.entries[i].expires; at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	if next == 0 || next == s.timer {
		return
	}
	s.timer = next
	p.TimerAtWall(clock.Reading((next+1)*int64(time.Millisecond)), uint64(next))
}

// Timer implements sim.Handler: keys may be due.
func (s *redisServer) Timer(p *sim.Process, id uint64) {
	if int64(id) != s.timer {
		return
	}
	s.timer = 0
	now := int64(p.Wall()) / int64(time.Millisecond)
	for i := 0; i < len(s.db.entries); {
		if s.db.entries[i].gone(now) {
			s.db.remove(i)
			continue
		}
		i++
	}
	s.watchExpiry(p)
}

// Closed implements sim.Handler.
func (s *redisServer) Closed(*sim.Process, *sim.Conn) {}

// holding returns whose the lock is, as the key says.
func (s *redisServer) holding(p *sim.Process, key string) Holding {
	if p.Down() {
		return Holding{}
	}
	now := int64(p.Wall()) / int64(time.Millisecond)
	for i := range s.db.entries {
		if e := &s.db.entries[i]; e.key == key && !e.gone(now) {
			return Holding{Op: e.op, Until: clock.Reading(e.expires)}
		}
	}
	return Holding{}
}
