package models

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"locklab/clock"
)

// miniEngine is the second engine: miniredis, in this process, with the Lua
// scripts themselves. Nothing of it runs on its own: a command is a function
// call, and its clock is moved by hand before each.
//
// It is miniredis as it is, but for where Redis is known to answer otherwise:
//   - a key goes when its last whole millisecond is past (see beyond);
//   - commands that mended sends in other words, and errors that reword does;
//   - EVAL keeps also a script that fails, for EVALSHA.
//
// What it does otherwise still is in TestMiniredisDiffers, with the reasons.
// On 32-bit processors its numbers have 32 bits: a counter ends at 2^31.
type miniEngine struct {
	mini *miniredis.Miniredis
	db   *miniredis.RedisDB
	srv  *server.Server
	now  int64        // the wall-clock millisecond that it has been told
	keys []redisEntry // what it holds, with the provenance that it does not know
	self redisSession // of whoever is outside every session
}

// miniPeer is a connection to miniredis that leads into memory.
type miniPeer struct {
	peer *server.Peer
	out  bytes.Buffer
}

// newMiniEngine starts a miniredis without a port. Dial is the one way to do
// that; the connection is not needed.
func newMiniEngine() *miniEngine {
	e := &miniEngine{mini: miniredis.NewMiniRedis()}
	conn, err := e.mini.Dial()
	if err != nil {
		panic("miniredis: " + err.Error())
	}
	_ = conn.Close()
	e.mini.SetTime(time.Unix(0, 0))
	e.srv, e.db = e.mini.Server(), e.mini.DB(0)
	return e
}

// start implements redisEngine.
func (e *miniEngine) start(preset []redisEntry) {
	e.self = redisSession{}
	e.keys = e.keys[:0]
	e.send(&e.self, "FLUSHALL")
	e.send(&e.self, "SCRIPT", "FLUSH")
	for i := range preset {
		e.send(&e.self, "SET", preset[i].key, preset[i].value.String())
	}
	e.look(0)
}

// run implements redisEngine.
func (e *miniEngine) run(c *RedisCommand, s *redisSession, wall clock.Reading, op int32) RedisReply {
	e.advance(wallMillis(wall))
	e.mini.SetTime(e.clock(c, wall))
	args := mended(c, s)
	if args == nil { // WATCH of what is watched already
		return redisOK
	}
	r := e.send(s, args...)
	reword(&r, c, s.queue)
	e.follow(c, s, &r, op)
	return r
}

// clock is the time that TIME tells. Within a transaction it stands still, and
// was read in milliseconds.
func (e *miniEngine) clock(c *RedisCommand, wall clock.Reading) time.Time {
	if c.Verb == RedisExec {
		return time.UnixMilli(e.now)
	}
	return time.Unix(0, int64(wall))
}

// advance moves the clock, back too: miniredis counts what is left of each
// time to live, and a negative step adds to it.
func (e *miniEngine) advance(now int64) {
	by := time.Duration(now-e.now) * time.Millisecond
	e.now = now
	if by == 0 || e.due() == 0 {
		return
	}
	e.mini.FastForward(by)
	e.look(0)
}

// beyond is what is added to each time to live. miniredis deletes a key when
// nothing is left of its time, Redis only when the whole millisecond is past:
// with half a millisecond more, and a clock that moves in whole ones, they do
// it at the same time. PTTL leaves fractions out.
const beyond = time.Millisecond / 2

// look reads what miniredis holds. Keys that are new belong to op.
func (e *miniEngine) look(op int32) {
	old := e.keys
	e.keys = make([]redisEntry, 0, len(old)+1)
	for _, key := range e.db.Keys() {
		k := redisEntry{key: key, op: op}
		if text, err := e.db.Get(key); err == nil {
			k.value = RedisString(text)
		}
		was := peekAt(old, key)
		if k.last = op; was != nil && !was.sorted() && was.value == k.value {
			k.last = was.last
		}
		k.members = e.membersOf(key, was, op)
		if was != nil && (k.sorted() || !was.sorted()) { // a set does not become a string
			k.op = was.op
		}
		if left := e.db.TTL(key); left > 0 {
			if left%time.Millisecond == 0 {
				e.db.SetTTL(key, left+beyond)
			}
			k.expires = e.now + left.Milliseconds()
		}
		e.keys = append(e.keys, k)
	}
}

// membersOf reads a sorted set. Members that are new since it was looked at last
// belong to op.
func (e *miniEngine) membersOf(key string, was *redisEntry, op int32) []redisMember {
	scores, err := e.db.SortedSet(key)
	if err != nil {
		return nil
	}
	names, _ := e.db.ZMembers(key)
	out := make([]redisMember, len(names))
	for i, name := range names {
		m := redisMember{member: RedisString(name), score: int64(scores[name]), op: op, entered: int32(i)}
		if was != nil {
			if r := was.rank(m.member); r >= 0 {
				m.op, m.entered = was.members[r].op, was.members[r].entered
			}
		}
		out[i] = m
	}
	return out
}

// follow keeps up with what a command has done.
func (e *miniEngine) follow(c *RedisCommand, s *redisSession, r *RedisReply, op int32) {
	failed := r.kind == replyError
	switch {
	case c.Verb == RedisMulti:
		s.multi = true
	case c.Verb == RedisWatch && !failed:
		s.watched = append(s.watched, c.Key)
		if c.Key2 != "" {
			s.watched = append(s.watched, c.Key2)
		}
	case c.Verb == RedisExec || c.Verb == RedisDiscard:
		queue := s.queue
		s.multi, s.queue, s.watched = false, s.queue[:0], s.watched[:0]
		for i := range r.items { // none unless EXEC has run them
			e.done(queue[i], &r.items[i], op)
		}
		if len(r.items) > 0 {
			e.look(op)
		}
	case s.multi:
		if !failed {
			s.queue = append(s.queue, c)
		}
	case c.Verb == RedisUnwatch:
		s.watched = s.watched[:0]
	case c.Verb.writes():
		e.done(c, r, op)
		e.look(op)
	}
}

// done notes what a command did to the provenance of keys: SET makes a key
// anew, and what has been removed may come again.
func (e *miniEngine) done(c *RedisCommand, r *RedisReply, op int32) {
	switch c.Verb {
	case RedisSet:
		had := r.kind == replyBulk
		if r.kind == replyStatus || c.Get && r.kind != replyError && had != c.NX && (had || !c.XX) {
			e.forget(c.Key)
		}
	case RedisDel:
		e.forget(c.Key)
		e.forget(c.Key2)
	case RedisExpire, RedisPExpire:
		if c.TTL <= 0 {
			e.forget(c.Key)
		}
	case RedisFlushAll:
		e.keys = e.keys[:0]
	case RedisEval, RedisEvalSHA:
		if c.Script == &compareAndDelete && r.kind == replyInt && r.value.n == 1 {
			e.forget(c.Key)
		}
		if c.Verb == RedisEval && r.kind == replyError { // Redis keeps a script that fails, miniredis does not
			e.send(&e.self, "SCRIPT", "LOAD", c.Script.Text)
		}
	}
}

func (e *miniEngine) forget(key string) {
	for i := range e.keys {
		if e.keys[i].key == key {
			e.keys = append(e.keys[:i], e.keys[i+1:]...)
			return
		}
	}
}

// close implements redisEngine.
func (e *miniEngine) close(s *redisSession) { *s = redisSession{} }

// sweep implements redisEngine.
func (e *miniEngine) sweep(now int64) { e.advance(now) }

// due implements redisEngine.
func (e *miniEngine) due() int64 { return firstExpiry(e.keys) }

// peek implements redisEngine.
func (e *miniEngine) peek(key string) *redisEntry { return peekAt(e.keys, key) }

// evict implements redisEngine.
func (e *miniEngine) evict(key string, now int64) bool {
	r := e.run(&RedisCommand{Verb: RedisDel, Key: key}, &e.self, wallOf(now), 0)
	return r.value.n > 0
}

// overwrite implements redisEngine.
func (e *miniEngine) overwrite(key string, v RedisValue, now int64) bool {
	r := e.run(&RedisCommand{Verb: RedisSet, Key: key, Value: v}, &e.self, wallOf(now), 0)
	return r.kind == replyStatus
}

func wallOf(ms int64) clock.Reading { return clock.Reading(ms * int64(time.Millisecond)) }

// send has miniredis execute a command of a session and reads the reply.
func (e *miniEngine) send(s *redisSession, args ...string) RedisReply {
	p, ok := s.Peer.(*miniPeer)
	if !ok {
		p = &miniPeer{}
		p.peer = server.NewPeer(bufio.NewWriter(&p.out))
		s.Peer = p
	}
	p.out.Reset()
	e.srv.Dispatch(p.peer, args)
	p.peer.Flush()
	r, err := ReadRedisReply(bufio.NewReader(&p.out))
	if err != nil {
		panic(fmt.Sprintf("miniredis: %v in its reply to %q", err, args))
	}
	return r
}

// ReadRedisReply reads a reply as RESP2 has it on the wire.
func ReadRedisReply(in *bufio.Reader) (RedisReply, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return RedisReply{}, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return RedisReply{}, fmt.Errorf("an empty line")
	}
	kind, rest := line[0], line[1:]
	if kind == '+' || kind == '-' {
		return RedisReply{kind: map[byte]replyKind{'+': replyStatus, '-': replyError}[kind], value: RedisValue{text: rest}}, nil
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil:
		return RedisReply{}, err
	case kind == ':':
		return redisNumber(n), nil
	case kind == '$' && n < 0:
		return redisNil, nil
	case kind == '*' && n < 0:
		return RedisReply{kind: replyNilArray}, nil
	case kind == '$':
		text := make([]byte, n+2)
		_, err := io.ReadFull(in, text)
		return redisBulk(RedisString(string(text[:n]))), err
	case kind != '*':
		return RedisReply{}, fmt.Errorf("a reply that begins with %q", kind)
	}
	items := make([]RedisReply, n)
	for i := range items {
		if items[i], err = ReadRedisReply(in); err != nil {
			return RedisReply{}, err
		}
	}
	return redisList(items), nil
}

// Scripts that do on miniredis what Redis's own command does.
const (
	// TTL rounds to the nearest second; miniredis cuts off.
	miniTTL = "local t = redis.call('pttl', KEYS[1]) if t < 0 then return t end return math.floor((t + 500) / 1000)"
	// FLUSHALL touches the keys that are watched.
	miniFlushAll = "for _, k in ipairs(redis.call('keys', '*')) do redis.call('del', k) end return redis.status_reply('OK')"
	// UNWATCH in a transaction does nothing; miniredis does it at once.
	miniUnwatch = "return redis.status_reply('OK')"
	// ZADD that changes nothing does not touch the key.
	miniZAdd = "local s = redis.pcall('zscore', KEYS[1], ARGV[2]) if type(s) == 'table' then return s end " +
		"if s and tonumber(s) == tonumber(ARGV[1]) then return 0 end return redis.call('zadd', KEYS[1], ARGV[1], ARGV[2])"
	// ZREM and ZREMRANGEBYSCORE touch the key, whether it is empty then or not.
	miniZRem = "local n = redis.pcall(ARGV[1], KEYS[1], unpack(ARGV, 2)) if type(n) == 'table' or n == 0 then return n end " +
		"local m = redis.call('zrange', KEYS[1], 0, 0)[1] if m then redis.call('zincrby', KEYS[1], 0, m) end return n"
	// Options that exclude each other are refused when the command runs.
	miniRefuse = "return redis.error_reply(ARGV[1])"
)

// mended is a command's arguments for miniredis; nil if there is nothing to
// do.
func mended(c *RedisCommand, s *redisSession) []string {
	args := c.Args()
	switch c.Verb {
	case RedisSet:
		if why := c.badSet(); why != "" {
			return []string{"EVAL", miniRefuse, "0", why}
		}
	case RedisTTL:
		return []string{"EVAL", miniTTL, "1", c.Key}
	case RedisFlushAll:
		return []string{"EVAL", miniFlushAll, "0"}
	case RedisZAdd:
		return append([]string{"EVAL", miniZAdd, "1", c.Key}, args[2:]...)
	case RedisZRem, RedisZRemRangeByScore:
		return append([]string{"EVAL", miniZRem, "1", c.Key, args[0]}, args[2:]...)
	case RedisWait:
		if s.multi { // miniredis would answer at once
			return miniWait(c)
		}
	case RedisUnwatch:
		if s.multi {
			return []string{"EVAL", miniUnwatch, "0"}
		}
	case RedisWatch:
		if !s.multi { // miniredis would forget what has happened to the key since the first WATCH
			return unwatched(args, s)
		}
	}
	return args
}

// miniWait is a WAIT that is queued: nobody acknowledges anything.
func miniWait(c *RedisCommand) []string {
	if c.TTL < 0 {
		return []string{"EVAL", miniRefuse, "0", errTimeout}
	}
	return []string{"EVAL", "return 0", "0"}
}

// unwatched leaves out of a WATCH what the session watches already.
func unwatched(args []string, s *redisSession) []string {
	out := args[:1]
	for _, key := range args[1:] {
		if !watches(s, key) {
			out = append(out, key)
		}
	}
	if len(out) == 1 {
		return nil
	}
	return out
}

func watches(s *redisSession, key string) bool {
	for _, k := range s.watched {
		if k == key {
			return true
		}
	}
	return false
}

// scriptError is how miniredis tells that a command has failed in a script: in
// which line, and the command's own error.
var scriptError = regexp.MustCompile(`^ERR Error compiling script \(new function\): :(\d+): (.*?) stack traceback:`)

// reword gives an error the words of Redis.
func reword(r *RedisReply, c *RedisCommand, queue []*RedisCommand) {
	for i := range r.items {
		if c.Verb == RedisExec {
			reword(&r.items[i], queue[i], nil)
		}
	}
	if r.kind != replyError {
		return
	}
	if r.value.text == "ERR WATCH in MULTI" {
		r.value.text = errWatchMulti
	}
	if m := scriptError.FindStringSubmatch(r.value.text); m != nil && c.Script != nil {
		line, _ := strconv.Atoi(m[1])
		*r = c.Script.fails(redisFail(m[2]), line)
	}
}

// miniredis returns an engine that no other server of this run has. Engines
// are kept for the next run: to start one takes longer than to empty it.
func (e *Env) miniredis() *miniEngine {
	if e.minisUsed == len(e.minis) {
		e.minis = append(e.minis, newMiniEngine())
	}
	e.minisUsed++
	return e.minis[e.minisUsed-1]
}
