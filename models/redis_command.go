package models

import (
	"strconv"
	"strings"
	"time"

	"locklab/sim"
)

// RedisVerb is a command's name.
type RedisVerb uint8

// The commands that the engines run.
const (
	RedisSet RedisVerb = iota + 1
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
	RedisEvalSHA
	RedisWatch
	RedisUnwatch
	RedisMulti
	RedisExec
	RedisDiscard
	RedisWait
	RedisZAdd
	RedisZRem
	RedisZCard
	RedisZRange
	RedisZRemRangeByScore
	RedisZRank
	RedisRole       // is this the primary?
	RedisGetPrimary // to a monitor: who is?
	redisVerbCount
)

// redisVerbNames says how each command is written.
var redisVerbNames = [redisVerbCount]string{
	RedisSet: "SET", RedisSetNX: "SETNX", RedisGet: "GET", RedisDel: "DEL", RedisExpire: "EXPIRE", RedisPExpire: "PEXPIRE",
	RedisTTL: "TTL", RedisPTTL: "PTTL", RedisIncr: "INCR", RedisExists: "EXISTS", RedisFlushAll: "FLUSHALL", RedisTime: "TIME",
	RedisEval: "EVAL", RedisEvalSHA: "EVALSHA", RedisWatch: "WATCH", RedisUnwatch: "UNWATCH", RedisMulti: "MULTI",
	RedisExec: "EXEC", RedisDiscard: "DISCARD", RedisWait: "WAIT", RedisZAdd: "ZADD", RedisZRem: "ZREM", RedisZCard: "ZCARD",
	RedisZRange: "ZRANGE", RedisZRemRangeByScore: "ZREMRANGEBYSCORE", RedisZRank: "ZRANK",
	RedisRole: "ROLE", RedisGetPrimary: "SENTINEL GET-MASTER-ADDR-BY-NAME",
}

// String returns the command's name.
func (v RedisVerb) String() string { return redisVerbNames[v] }

// writes reports whether the command may change the data, so that a replica
// refuses it. A script counts as one that does.
func (v RedisVerb) writes() bool {
	switch v {
	case RedisSet, RedisSetNX, RedisDel, RedisExpire, RedisPExpire, RedisIncr, RedisFlushAll, RedisEval, RedisEvalSHA,
		RedisZAdd, RedisZRem, RedisZRemRangeByScore:
		return true
	}
	return false
}

// RedisCommand is one command in typed form; Args spells it out. Fields that
// the verb does not use are zero.
type RedisCommand struct {
	Verb  RedisVerb
	Key   string     // the key; EVAL: KEYS[1]
	Key2  string     // DEL, EXISTS, WATCH: a second key; EVAL: KEYS[2]
	Value RedisValue // the value or member; EVAL: ARGV[1]
	// TTL is the time to live of SET (0: none), EXPIRE and PEXPIRE, the
	// timeout of WAIT, and ARGV[2] of EVAL where it is not 0; whole
	// milliseconds, or whole seconds for EXPIRE and with Seconds.
	TTL     time.Duration
	Seconds bool // SET: EX instead of PX
	NX, XX  bool // SET
	Get     bool // SET
	KeepTTL bool // SET
	// N is the number of replicas (WAIT), the score (ZADD), the first rank
	// (ZRANGE), and ARGV[3] of EVAL where it is not 0; M is the last rank.
	N, M     int64
	From, To ScoreBound // ZREMRANGEBYSCORE
	Script   *RedisScript
}

// Digest implements sim.Payload.
func (c *RedisCommand) Digest(d *sim.Digest) {
	flags := uint64(c.Verb)
	for i, f := range [...]bool{c.NX, c.XX, c.Get, c.KeepTTL, c.Seconds, c.From.Open, c.To.Open} {
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
		if c.N != 0 {
			d.Int(c.N)
		}
	}
	if c.Verb >= RedisWait {
		d.Int(c.N)
		d.Int(c.M)
		d.Int(c.From.Score + int64(c.From.Inf))
		d.Int(c.To.Score + int64(c.To.Inf))
	}
}

// Args returns the command as a client sends it: its name and arguments.
func (c *RedisCommand) Args() []string {
	args := strings.Fields(c.Verb.String())
	switch c.Verb {
	case RedisSet:
		return append(append(args, c.Key, c.Value.String()), c.setOptions()...)
	case RedisSetNX, RedisZRem, RedisZRank:
		return append(args, c.Key, c.Value.String())
	case RedisDel, RedisExists, RedisWatch:
		args = append(args, c.Key)
		if c.Key2 != "" {
			args = append(args, c.Key2)
		}
		return args
	case RedisExpire:
		return append(args, c.Key, number(int64(c.TTL/time.Second)))
	case RedisPExpire:
		return append(args, c.Key, number(c.TTL.Milliseconds()))
	case RedisGet, RedisTTL, RedisPTTL, RedisIncr, RedisZCard:
		return append(args, c.Key)
	case RedisEval:
		return append(append(args, c.Script.Text), c.scriptArgs()...)
	case RedisEvalSHA:
		return append(append(args, c.Script.SHA()), c.scriptArgs()...)
	case RedisWait:
		return append(args, number(c.N), number(c.TTL.Milliseconds()))
	case RedisZAdd:
		return append(args, c.Key, number(c.N), c.Value.String())
	case RedisZRange:
		return append(args, c.Key, number(c.N), number(c.M))
	case RedisZRemRangeByScore:
		return append(args, c.Key, c.From.String(), c.To.String())
	}
	return args
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func (c *RedisCommand) setOptions() []string {
	var out []string
	for _, o := range []struct {
		word string
		set  bool
	}{{"NX", c.NX}, {"XX", c.XX}, {"GET", c.Get}, {"KEEPTTL", c.KeepTTL}} {
		if o.set {
			out = append(out, o.word)
		}
	}
	switch {
	case c.TTL == 0:
	case c.Seconds:
		out = append(out, "EX", number(int64(c.TTL/time.Second)))
	default:
		out = append(out, "PX", number(c.TTL.Milliseconds()))
	}
	return out
}

// scriptArgs are the number of keys, the keys and the arguments.
func (c *RedisCommand) scriptArgs() []string {
	var keys []string
	for _, k := range []string{c.Key, c.Key2} {
		if k != "" {
			keys = append(keys, k)
		}
	}
	out := append([]string{number(int64(len(keys)))}, keys...)
	if c.Value != (RedisValue{}) || c.TTL != 0 {
		out = append(out, c.Value.String())
	}
	if c.TTL != 0 {
		out = append(out, number(c.TTL.Milliseconds()))
	}
	if c.N != 0 {
		out = append(out, number(c.N))
	}
	return out
}

// String implements sim.Payload: the command as one would type it, with long
// random values cut short and a script by its name.
func (c *RedisCommand) String() string {
	args := c.Args()
	from := 1
	if c.Script != nil {
		args[1], from = c.Script.name(), 2
		args = append(args[:2], args[3:]...) // the number of keys is for machines
		var limit []string
		if c.N != 0 { // and what the last arguments mean, for people
			limit, args = []string{"LIMIT", number(c.N)}, args[:len(args)-1]
		}
		if c.TTL != 0 {
			args = append(args[:len(args)-1], "PX", args[len(args)-1])
		}
		args = append(args, limit...)
	}
	long := c.Value.String()
	for i := from; i < len(args); i++ {
		if args[i] == long && args[i] != c.Key {
			args[i] = short(c.Value)
		}
	}
	return strings.Join(args, " ")
}
