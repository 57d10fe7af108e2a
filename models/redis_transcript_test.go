package models

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/clock"
)

// parseRedis reads a command as people type it, for transcripts. It knows what
// the typed form can say, and nothing of bad syntax.
func parseRedis(t testing.TB, line string) RedisCommand {
	t.Helper()
	words := strings.Fields(line)
	c := RedisCommand{}
	for v := RedisSet; v < redisVerbCount; v++ {
		if v.String() == words[0] {
			c.Verb = v
		}
	}
	require.NotZero(t, c.Verb, line)
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	number := func(i int) int64 {
		n, err := strconv.ParseInt(arg(i), 10, 64)
		require.NoError(t, err, line)
		return n
	}
	c.Key = arg(1)
	switch c.Verb {
	case RedisSet:
		c.Value = RedisString(arg(2))
		for i := 3; i < len(words); i++ {
			switch words[i] {
			case "NX":
				c.NX = true
			case "XX":
				c.XX = true
			case "GET":
				c.Get = true
			case "KEEPTTL":
				c.KeepTTL = true
			case "PX":
				i++
				c.TTL = time.Duration(number(i)) * time.Millisecond
			case "EX":
				i++
				c.TTL, c.Seconds = time.Duration(number(i))*time.Second, true
			}
		}
	case RedisSetNX, RedisZRem, RedisZRank:
		c.Value = RedisString(arg(2))
	case RedisDel, RedisExists, RedisWatch:
		c.Key2 = arg(2)
	case RedisExpire:
		c.TTL = time.Duration(number(2)) * time.Second
	case RedisPExpire:
		c.TTL = time.Duration(number(2)) * time.Millisecond
	case RedisZAdd:
		c.N, c.Value = number(2), RedisString(arg(3))
	case RedisZRange:
		c.N, c.M = number(2), number(3)
	case RedisZRemRangeByScore:
		c.From, c.To = parseBound(arg(2)), parseBound(arg(3))
	case RedisWait:
		c.Key, c.N, c.TTL = "", number(1), time.Duration(number(2))*time.Millisecond
	case RedisEval, RedisEvalSHA: // EVAL script key value ttl key2, or takePermit key value ttl limit
		c.Script = map[string]*RedisScript{"compareAndDelete": &compareAndDelete, "setAndCount": &setAndCount,
			"extendIfMine": &extendIfMine, "extendOrRecreate": &extendOrRecreate, "takePermit": &takePermit, "countIfRoom": &countIfRoom}[arg(1)]
		require.NotNil(t, c.Script, line)
		c.Key, c.Value, c.Key2 = arg(2), RedisString(arg(3)), arg(5)
		if arg(4) != "" {
			c.TTL = time.Duration(number(4)) * time.Millisecond
		}
		if c.Script == &takePermit {
			c.Key2, c.N = "", number(5)
		}
	}
	return c
}

func parseBound(s string) ScoreBound {
	switch s {
	case "-inf":
		return ScoreBound{Inf: -1}
	case "+inf":
		return ScoreBound{Inf: 1}
	}
	text, open := strings.CutPrefix(s, "(")
	n, _ := strconv.ParseInt(text, 10, 64)
	return ScoreBound{Score: n, Open: open}
}

// plain writes a reply as a transcript has it: +OK, :1, "text", -ERR, (nil).
func plain(r *RedisReply) string {
	switch r.kind {
	case replyStatus:
		return "+" + r.value.String()
	case replyInt:
		return ":" + r.value.String()
	case replyBulk:
		return strconv.Quote(r.value.String())
	case replyError:
		return "-" + r.value.String()
	case replyNilArray:
		return "(nil array)"
	case replyArray:
		parts := make([]string, len(r.items))
		for i := range r.items {
			parts[i] = plain(&r.items[i])
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return "(nil)"
}

// step is one line of a transcript, "+5 1: GET k -> (nil)": five milliseconds
// later session 1 asks. Both prefixes may be left out. The clock may go back.
type step struct {
	wait    int64
	session int
	command string
	want    string
}

func parseStep(t testing.TB, line string) step {
	t.Helper()
	ask, want, ok := strings.Cut(line, " -> ")
	require.True(t, ok, line)
	s := step{want: want}
	words := strings.Fields(ask)
	if words[0][0] == '+' || words[0][0] == '-' {
		n, err := strconv.ParseInt(words[0], 10, 64)
		require.NoError(t, err, line)
		s.wait, words = n, words[1:]
	}
	if n, found := strings.CutSuffix(words[0], ":"); found {
		session, err := strconv.Atoi(n)
		require.NoError(t, err, line)
		s.session, words = session, words[1:]
	}
	s.command = strings.Join(words, " ")
	return s
}

// wallAt is a wall clock so many milliseconds after the start.
func wallAt(ms int64) clock.Reading {
	return clock.Reading(1_704_067_200_000+ms) * clock.Reading(time.Millisecond)
}

// play runs a transcript on an engine.
func play(t *testing.T, engine string, lines []string) {
	t.Helper()
	e, err := NewRedisEngine(engine)
	require.NoError(t, err)
	now := int64(0)
	for i, line := range lines {
		s := parseStep(t, line)
		now += s.wait
		r := e.Do(s.session, wallAt(now), parseRedis(t, s.command))
		require.Equal(t, s.want, plain(&r), "line %d: %s", i+1, line)
	}
}

// Every transcript was also played against redis-server 7.0.15 (Debian 12).
var redisTranscripts = []struct {
	name, source string
	lines        []string
}{
	{"a key is gone when the whole millisecond is past", "db.c, keyIsExpired: now > when", []string{
		"SET k v PX 100 -> +OK", "+100 GET k -> \"v\"", "+1 GET k -> (nil)", "TTL k -> :-2"}},
	{"a clock that steps back makes keys live longer, forward kills them", "an expiry is an absolute time", []string{
		"SET k v PX 100 -> +OK", "+90 PTTL k -> :10", "-50 PTTL k -> :60", "+1000 EXISTS k -> :0"}},
	{"SET NX and XX", "redis.io/commands/set", []string{
		"SET k 1 XX -> (nil)", "SET k 1 NX -> +OK", "SET k 2 NX -> (nil)", "GET k -> \"1\"", "SET k 2 XX -> +OK", "SET k 3 NX XX -> -ERR syntax error"}},
	{"SET with GET answers the old value whether it wrote or not", "redis.io/commands/set, since 7.0 with NX", []string{
		"SET k 1 NX GET -> (nil)", "SET k 2 NX GET -> \"1\"", "GET k -> \"1\"", "SET k 2 XX GET -> \"1\"", "GET k -> \"2\"", "SET m 1 XX GET -> (nil)", "EXISTS m -> :0"}},
	{"SET forgets the time to live, KEEPTTL does not", "redis.io/commands/set", []string{
		"SET k 1 PX 5000 -> +OK", "SET k 2 KEEPTTL -> +OK", "PTTL k -> :5000", "SET k 3 -> +OK", "PTTL k -> :-1",
		"SET k 1 KEEPTTL PX 5 -> -ERR syntax error", "SET k 1 PX -5 -> -ERR invalid expire time in 'set' command", "SET k 1 EX 2 -> +OK", "PTTL k -> :2000"}},
	{"SETNX sets no time to live", "redis.io/commands/setnx", []string{
		"SETNX k 1 -> :1", "SETNX k 2 -> :0", "TTL k -> :-1", "EXPIRE k 10 -> :1", "TTL k -> :10", "EXPIRE m 10 -> :0"}},
	{"TTL rounds to the nearest second", "expire.c, ttlGenericCommand: (ttl+500)/1000", []string{
		"SET k v PX 1499 -> +OK", "TTL k -> :1", "SET k v PX 499 -> +OK", "TTL k -> :0", "SET k v PX 1500 -> +OK", "TTL k -> :2"}},
	{"an expiry that has come deletes", "redis.io/commands/expire", []string{
		"SET k v -> +OK", "PEXPIRE k 0 -> :1", "EXISTS k -> :0", "SET k v -> +OK", "EXPIRE k -1 -> :1", "EXISTS k -> :0"}},
	{"DEL and EXISTS count", "redis.io/commands/exists: a key named twice counts twice", []string{
		"SET a 1 -> +OK", "EXISTS a a -> :2", "DEL a b -> :1", "DEL a -> :0", "SET a 1 PX 10 -> +OK", "+11 DEL a -> :0"}},
	{"INCR", "t_string.c, incrDecrCommand", []string{
		"INCR n -> :1", "SET n 9223372036854775807 -> +OK", "INCR n -> -ERR increment or decrement would overflow",
		"SET n x -> +OK", "INCR n -> -ERR value is not an integer or out of range", "SET n 5 PX 100 -> +OK", "INCR n -> :6", "PTTL n -> :100"}},
	{incrTranscript, "util.c, string2ll", []string{
		"SET n 01 -> +OK", "INCR n -> -ERR value is not an integer or out of range", "SET n +1 -> +OK", "INCR n -> -ERR value is not an integer or out of range"}},
	{"sorted sets", "redis.io/commands/zadd and others; members of one score by their bytes", []string{
		"ZADD z 3 c -> :1", "ZADD z 3 ab -> :1", "ZADD z 1 a -> :1", "ZADD z 2 b -> :1", "ZADD z 2 b -> :0",
		"ZRANGE z 0 -1 -> [\"a\" \"b\" \"ab\" \"c\"]", "ZRANGE z -2 -1 -> [\"ab\" \"c\"]", "ZRANGE z 1 100 -> [\"b\" \"ab\" \"c\"]",
		"ZRANGE z 5 9 -> []", "ZRANGE z -100 0 -> [\"a\"]", "ZRANK z c -> :3", "ZRANK z q -> (nil)", "ZCARD z -> :4",
		"ZADD z 9 a -> :0", "ZRANK z a -> :3", "ZREMRANGEBYSCORE z (2 (9 -> :2", "ZRANGE z 0 -1 -> [\"b\" \"a\"]",
		"ZREMRANGEBYSCORE z -inf 2 -> :1", "ZREM z a -> :1", "ZREM z a -> :0", "EXISTS z -> :0", "ZCARD z -> :0", "ZRANGE z 0 -1 -> []"}},
	{"the wrong kind of value", "every command checks the type", []string{
		"SET s v -> +OK", "ZADD z 1 a -> :1", "GET z -> -WRONGTYPE Operation against a key holding the wrong kind of value",
		"INCR z -> -WRONGTYPE Operation against a key holding the wrong kind of value", "ZADD s 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value",
		"ZCARD s -> -WRONGTYPE Operation against a key holding the wrong kind of value", "SET z 1 GET -> -WRONGTYPE Operation against a key holding the wrong kind of value",
		"SETNX z 1 -> :0", "ZRANGE z 0 -1 -> [\"a\"]", "SET z 1 PX 100 -> +OK", "GET z -> \"1\"",
		"SET n x -> +OK", "EVAL setAndCount l v 100 n -> -ERR value is not an integer or out of range script: " + setAndCount.SHA() + ", on @user_script:3.",
		"ZADD y 1 a -> :1", "EVAL compareAndDelete y v -> -WRONGTYPE Operation against a key holding the wrong kind of value script: " + compareAndDelete.SHA() + ", on @user_script:2."}},
	{"a transaction runs at once at EXEC", "redis.io, Transactions", []string{
		"MULTI -> +OK", "MULTI -> -ERR MULTI calls can not be nested", "SET k 1 -> +QUEUED", "WATCH k -> -ERR WATCH inside MULTI is not allowed",
		"1: GET k -> (nil)", "INCR k -> +QUEUED", "EXEC -> [+OK :2]", "EXEC -> -ERR EXEC without MULTI", "DISCARD -> -ERR DISCARD without MULTI"}},
	{"an error inside does not stop the rest", "redis.io, Transactions: no rollbacks", []string{
		"MULTI -> +OK", "SET q v -> +QUEUED", "INCR q -> +QUEUED", "GET q -> +QUEUED", "EXEC -> [+OK -ERR value is not an integer or out of range \"v\"]"}},
	{"no key expires inside a transaction, but before it", "db.c: time is that of the whole", []string{
		"SET k v PX 100 -> +OK", "MULTI -> +OK", "GET k -> +QUEUED", "PEXPIRE k 0 -> +QUEUED", "EXISTS k -> +QUEUED", "+100 EXEC -> [\"v\" :1 :0]",
		"SET k v PX 100 -> +OK", "MULTI -> +OK", "GET k -> +QUEUED", "+101 EXEC -> [(nil)]"}},
	{"DISCARD forgets what is watched", "redis.io, Transactions", []string{
		"WATCH k -> +OK", "1: SET k 1 -> +OK", "MULTI -> +OK", "SET k 2 -> +QUEUED", "DISCARD -> +OK", "MULTI -> +OK", "EXEC -> []", "GET k -> \"1\""}},
	{"WATCH stops a transaction after any change, the session's own and one to the same value", "multi.c, touchWatchedKey", []string{
		"WATCH k -> +OK", "1: SET k 1 -> +OK", "MULTI -> +OK", "SET k 2 -> +QUEUED", "EXEC -> (nil array)", "GET k -> \"1\"",
		"WATCH k -> +OK", "SET k 1 -> +OK", "MULTI -> +OK", "EXEC -> (nil array)",
		"WATCH a k -> +OK", "1: PEXPIRE k 1000 -> :1", "MULTI -> +OK", "EXEC -> (nil array)",
		"WATCH m -> +OK", "1: SET m 1 -> +OK", "1: DEL m -> :1", "MULTI -> +OK", "EXEC -> (nil array)",
		"WATCH k -> +OK", "1: FLUSHALL -> +OK", "MULTI -> +OK", "EXEC -> (nil array)"}},
	{"what changes nothing touches nothing", "multi.c, signalModifiedKey is called on a change", []string{
		"SET k 1 -> +OK", "ZADD z 1 a -> :1", "WATCH k z -> +OK", "1: SETNX k 2 -> :0", "1: SET k 2 NX -> (nil)", "1: ZADD z 1 a -> :0", "1: DEL m -> :0",
		"MULTI -> +OK", "EXEC -> []", "WATCH m -> +OK", "1: FLUSHALL -> +OK", "MULTI -> +OK", "EXEC -> []"}},
	{"UNWATCH", "redis.io/commands/unwatch", []string{
		"WATCH k -> +OK", "1: SET k 1 -> +OK", "UNWATCH -> +OK", "MULTI -> +OK", "EXEC -> []"}},
	{"a watched key that expires stops it", "redis.io, Transactions: since 6.0.9; multi.c, isWatchedKeyExpired", []string{
		"SET k 1 PX 100 -> +OK", "WATCH k -> +OK", "MULTI -> +OK", "+101 EXEC -> (nil array)",
		"SET k 1 PX 100 -> +OK", "WATCH k -> +OK", "+101 1: GET k -> (nil)", "MULTI -> +OK", "EXEC -> (nil array)"}},
	{"one that had expired before counts as missing", "multi.c, the watched key's expired flag", []string{
		"SET k 1 PX 100 -> +OK", "+101 WATCH k -> +OK", "1: GET k -> (nil)", "MULTI -> +OK", "EXEC -> []"}},
	{"scripts", "redis.io, Distributed Locks; EVALSHA knows what EVAL has loaded", []string{
		"EVALSHA compareAndDelete l v -> -NOSCRIPT No matching script. Please use EVAL.", "SET l v -> +OK", "EVAL compareAndDelete l w -> :0",
		"EVALSHA compareAndDelete l v -> :1", "EVALSHA compareAndDelete l v -> :0",
		"EVAL setAndCount l v 100 n -> :1", "EVAL setAndCount l w 100 n -> (nil)", "+101 EVAL setAndCount l w 100 n -> :2", "PTTL l -> :100",
		"EVAL extendIfMine l v 500 -> :0", "EVAL extendIfMine l w 500 -> :1", "PTTL l -> :500", "+501 EVAL extendIfMine l w 500 -> :0",
		"EVAL extendOrRecreate l v 500 -> :1", "GET l -> \"v\"", "EVAL extendOrRecreate l w 500 -> :0", "+10 EVAL extendOrRecreate l v 500 -> :1", "PTTL l -> :500"}},
	{loadTranscript, "eval.c: a script is kept before it runs", []string{
		"ZADD z 1 a -> :1", "MULTI -> +OK", "EVAL compareAndDelete z v -> +QUEUED", "EVALSHA compareAndDelete l v -> +QUEUED",
		"EXEC -> [-WRONGTYPE Operation against a key holding the wrong kind of value script: " + compareAndDelete.SHA() + ", on @user_script:2. :0]"}},
	{"a semaphore in a script", "redis.io/commands/time, zremrangebyscore", []string{
		"EVAL takePermit z a 400 2 -> :1", "+30 EVAL takePermit z b 400 2 -> :1", "+30 EVAL takePermit z c 400 2 -> :0", "ZRANGE z 0 -1 -> [\"a\" \"b\"]", "ZREM z a -> :1",
		"EVAL takePermit z c 400 2 -> :1", "ZRANGE z 0 -1 -> [\"b\" \"c\"]", "+450 EVAL takePermit z d 400 2 -> :1", "ZRANGE z 0 -1 -> [\"d\"]", "SET s v -> +OK",
		"EVAL takePermit s a 400 2 -> -WRONGTYPE Operation against a key holding the wrong kind of value script: " + takePermit.SHA() + ", on @user_script:4."}},
	{"a quota in a script", "redis.io/commands/incr, Rate limiter 2", []string{
		"EVAL countIfRoom n 2 400 -> :1", "+30 EVAL countIfRoom n 2 400 -> :1", "EVAL countIfRoom n 2 400 -> :0", "GET n -> \"3\"", "+450 EVAL countIfRoom n 2 400 -> :1", "GET n -> \"1\"",
		"SET s x -> +OK", "EVAL countIfRoom s 2 400 -> -ERR value is not an integer or out of range script: " + countIfRoom.SHA() + ", on @user_script:2.",
		"INCR m -> :1", "EVAL countIfRoom m 2 400 -> :1", "TTL m -> :-1"}},
	{"WAIT without replicas, or inside a transaction, does not wait", "redis.io/commands/wait", []string{
		"WAIT 0 0 -> :0", "WAIT 0 -1 -> -ERR timeout is negative", "MULTI -> +OK", "WAIT 1 1000 -> +QUEUED", "EXEC -> [:0]"}},
}

func TestRedisTranscripts(t *testing.T) {
	for _, engine := range Engines() {
		for _, c := range redisTranscripts {
			if engine == EngineMiniredis && miniredisDiffers[c.name] != "" {
				continue
			}
			t.Run(engine+"/"+c.name, func(t *testing.T) { play(t, engine, c.lines) })
		}
	}
}

// A command's arguments are what a client would send.
func TestRedisArguments(t *testing.T) {
	for _, line := range []string{
		"SET k v", "SET k v NX PX 100", "SET k v XX GET EX 3", "SET k v KEEPTTL", "SETNX k 1", "GET k", "DEL a b", "EXISTS a", "EXPIRE k 10",
		"PEXPIRE k -5", "INCR n", "WATCH a b", "MULTI", "EXEC", "WAIT 1 500", "ZADD z 5 m", "ZRANGE z 0 -1", "ZREMRANGEBYSCORE z (5 +inf", "FLUSHALL", "TIME",
	} {
		c := parseRedis(t, line)
		require.Equal(t, line, strings.Join(c.Args(), " "))
	}
	c := parseRedis(t, "EVAL setAndCount lock 7 100 lock:token")
	require.Equal(t, []string{"EVAL", setAndCount.Text, "2", "lock", "lock:token", "7", "100"}, c.Args())
	require.Equal(t, "EVAL 'set nx, incr token' lock lock:token 7 PX 100", c.String())
	c = parseRedis(t, "EVAL takePermit lock 7 100 3")
	require.Equal(t, []string{"EVAL", takePermit.Text, "1", "lock", "7", "100", "3"}, c.Args())
	require.Equal(t, "EVAL 'zadd if there is room' lock 7 PX 100 LIMIT 3", c.String())
	c = parseRedis(t, "EVALSHA compareAndDelete lock 7")
	require.Equal(t, []string{"EVALSHA", compareAndDelete.SHA(), "1", "lock", "7"}, c.Args())
	require.Len(t, compareAndDelete.SHA(), 40)
}

func TestRedisRESP(t *testing.T) {
	list := redisList([]RedisReply{redisOK, redisNumber(-1), redisBulk(RedisString("abc")), redisNil, redisFail("ERR x"), {kind: replyNilArray}})
	require.Equal(t, "*6\r\n+OK\r\n:-1\r\n$3\r\nabc\r\n$-1\r\n-ERR x\r\n*-1\r\n", list.RESP())
	_, err := NewRedisEngine("dragonfly")
	require.EqualError(t, err, `no engine is called "dragonfly"; known are: native, miniredis`)
	e, err := NewRedisEngine("")
	require.NoError(t, err)
	now := e.Do(0, wallAt(1), RedisCommand{Verb: RedisTime})
	require.Equal(t, `["1704067200" "1000"]`, plain(&now), "seconds and microseconds")
}
