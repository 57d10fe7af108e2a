package models

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// naiveRedis is the reference: one map, no cleverness, what the manual says.
type naiveRedis struct {
	now  int64
	keys map[string]*naiveKey
	// version grows with every change of a key, also when it goes.
	version map[string]int
	session [2]struct {
		multi bool
		queue []string
		saw   map[string]int
	}
}

type naiveKey struct {
	text    string
	scores  map[string]int64 // nil: a string
	expires int64
}

func (r *naiveRedis) live(key string) *naiveKey {
	k := r.keys[key]
	if k != nil && k.expires != 0 && r.now > k.expires {
		delete(r.keys, key)
		r.version[key]++
		return nil
	}
	return k
}

func (r *naiveRedis) put(key string, k *naiveKey) { r.keys[key] = k; r.version[key]++ }

// do answers a line as a transcript would have it.
func (r *naiveRedis) do(session int, line string) string {
	s := &r.session[session]
	w := strings.Fields(line)
	for key := range r.keys { // the background removes what has expired
		r.live(key)
	}
	switch {
	case w[0] == "EXEC" && !s.multi:
		return "-" + errExecAlone
	case w[0] == "DISCARD" && !s.multi:
		return "-" + errDiscard
	case w[0] == "MULTI" && s.multi:
		return "-" + errNestedMulti
	case w[0] == "WATCH" && s.multi:
		return "-" + errWatchMulti
	case w[0] == "MULTI":
		s.multi = true
		return "+OK"
	case w[0] == "DISCARD":
		s.multi, s.queue, s.saw = false, nil, nil
		return "+OK"
	case w[0] == "WATCH":
		if s.saw == nil {
			s.saw = map[string]int{}
		}
		if _, already := s.saw[w[1]]; !already {
			s.saw[w[1]] = r.version[w[1]]
		}
		return "+OK"
	case w[0] == "EXEC":
		touched := false
		for key, v := range s.saw {
			touched = touched || r.version[key] != v
		}
		queue := s.queue
		s.multi, s.queue, s.saw = false, nil, nil
		if touched {
			return "(nil array)"
		}
		var out []string
		for _, q := range queue {
			out = append(out, r.plainDo(session, q))
		}
		return "[" + strings.Join(out, " ") + "]"
	case s.multi:
		s.queue = append(s.queue, line)
		return "+QUEUED"
	}
	return r.plainDo(session, line)
}

func (r *naiveRedis) plainDo(session int, line string) string {
	w := strings.Fields(line)
	if w[0] == "UNWATCH" {
		r.session[session].saw = nil
		return "+OK"
	}
	if w[0] == "FLUSHALL" {
		for key := range r.keys {
			delete(r.keys, key)
			r.version[key]++
		}
		return "+OK"
	}
	key := w[1]
	k := r.live(key)
	number := func(i int) int64 { var n int64; _, _ = fmt.Sscan(w[i], &n); return n }
	has := func(word string) bool { return slices.Contains(w[2:], word) }
	zset := w[0][0] == 'Z'
	typed := k != nil && (zset && k.scores == nil || !zset && k.scores != nil && (w[0] == "GET" || w[0] == "INCR" || w[0] == "SET" && has("GET")))
	if typed {
		return "-" + errWrongType
	}
	switch w[0] {
	case "GET":
		if k == nil {
			return "(nil)"
		}
		return fmt.Sprintf("%q", k.text)
	case "SET":
		answer := "+OK"
		if has("GET") {
			answer = "(nil)"
			if k != nil {
				answer = fmt.Sprintf("%q", k.text)
			}
		}
		if has("NX") && k != nil || has("XX") && k == nil {
			if has("GET") {
				return answer
			}
			return "(nil)"
		}
		next := &naiveKey{text: w[2]}
		if i := slices.Index(w, "PX"); i > 0 {
			next.expires = r.now + number(i+1)
		} else if has("KEEPTTL") && k != nil {
			next.expires = k.expires
		}
		r.put(key, next)
		return answer
	case "SETNX":
		if k != nil {
			return ":0"
		}
		r.put(key, &naiveKey{text: w[2]})
		return ":1"
	case "DEL":
		if k == nil {
			return ":0"
		}
		delete(r.keys, key)
		r.version[key]++
		return ":1"
	case "EXISTS":
		if k == nil {
			return ":0"
		}
		return ":1"
	case "PEXPIRE":
		switch {
		case k == nil:
			return ":0"
		case number(2) <= 0:
			delete(r.keys, key)
			r.version[key]++
		default:
			k.expires = r.now + number(2)
			r.version[key]++
		}
		return ":1"
	case "PTTL":
		switch {
		case k == nil:
			return ":-2"
		case k.expires == 0:
			return ":-1"
		}
		return fmt.Sprintf(":%d", k.expires-r.now)
	case "INCR":
		if k == nil {
			k = &naiveKey{text: "0"}
		}
		n, err := strconv.ParseInt(k.text, 10, 64)
		if err != nil || fmt.Sprint(n) != k.text {
			return "-" + errNotInteger
		}
		k.text = fmt.Sprint(n + 1)
		r.put(key, k)
		return ":" + k.text
	}
	return r.sorted(w, key, k)
}

func (r *naiveRedis) sorted(w []string, key string, k *naiveKey) string {
	score := func(i int) int64 { var n int64; _, _ = fmt.Sscan(w[i], &n); return n }
	var order []string
	if k != nil {
		for m := range k.scores {
			order = append(order, m)
		}
		slices.SortFunc(order, func(a, b string) int {
			return cmp.Or(cmp.Compare(k.scores[a], k.scores[b]), strings.Compare(a, b))
		})
	}
	drop := func(m string) {
		delete(k.scores, m)
		r.version[key]++
		if len(k.scores) == 0 {
			delete(r.keys, key)
		}
	}
	switch w[0] {
	case "ZADD":
		if k == nil {
			k = &naiveKey{scores: map[string]int64{}}
			r.keys[key] = k
		}
		old, had := k.scores[w[3]]
		if !had || old != score(2) {
			k.scores[w[3]] = score(2)
			r.version[key]++
		}
		if had {
			return ":0"
		}
		return ":1"
	case "ZREM":
		if k != nil {
			if _, had := k.scores[w[2]]; had {
				drop(w[2])
				return ":1"
			}
		}
		return ":0"
	case "ZCARD":
		return fmt.Sprintf(":%d", len(order))
	case "ZRANK":
		if i := slices.Index(order, w[2]); i >= 0 {
			return fmt.Sprintf(":%d", i)
		}
		return "(nil)"
	case "ZRANGE":
		var out []string
		from, to := int(score(2)), int(score(3))
		for i, m := range order {
			low, high := from, to
			if from < 0 {
				low += len(order)
			}
			if to < 0 {
				high += len(order)
			}
			if i >= low && i <= high {
				out = append(out, fmt.Sprintf("%q", m))
			}
		}
		return "[" + strings.Join(out, " ") + "]"
	}
	n := 0 // ZREMRANGEBYSCORE z a (b
	for _, m := range order {
		var below int64
		_, _ = fmt.Sscan(w[3][1:], &below)
		if s := k.scores[m]; s >= score(2) && s < below {
			drop(m)
			n++
		}
	}
	return fmt.Sprintf(":%d", n)
}

// drawCommand draws a line on a handful of keys.
func drawCommand(t *rapid.T) string {
	key := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
	value := rapid.SampledFrom([]string{"x", "7", "07"}).Draw(t, "value")
	n := rapid.IntRange(-3, 3).Draw(t, "n")
	lines := []string{
		"GET " + key, "DEL " + key, "EXISTS " + key, "PTTL " + key, "INCR " + key, "SETNX " + key + " " + value, "FLUSHALL",
		fmt.Sprintf("PEXPIRE %s %d", key, n*40), "MULTI", "EXEC", "EXEC", "DISCARD", "WATCH " + key, "UNWATCH",
		fmt.Sprintf("ZADD %s %d %s", key, n, value), "ZREM " + key + " " + value, "ZCARD " + key, "ZRANK " + key + " " + value,
		fmt.Sprintf("ZRANGE %s %d %d", key, n, rapid.IntRange(-3, 3).Draw(t, "m")), fmt.Sprintf("ZREMRANGEBYSCORE %s %d (%d", key, n-2, n+1),
	}
	if i := rapid.IntRange(0, len(lines)).Draw(t, "which"); i < len(lines) {
		return lines[i]
	}
	set := "SET " + key + " " + value + rapid.SampledFrom([]string{"", " NX", " XX"}).Draw(t, "if")
	return set + rapid.SampledFrom([]string{"", " GET"}).Draw(t, "get") + rapid.SampledFrom([]string{"", " PX 50", " PX 100", " KEEPTTL"}).Draw(t, "ttl")
}

// Any commands of two sessions, with a clock that jumps both ways, have the
// answers that the manual's words give.
func TestRedisAgainstANaiveModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e, _ := NewRedisEngine("native")
		r := &naiveRedis{keys: map[string]*naiveKey{}, version: map[string]int{}}
		var story []string
		for range rapid.IntRange(1, 40).Draw(rt, "length") {
			r.now += int64(rapid.SampledFrom([]int{0, 0, 0, 1, 49, 50, -20}).Draw(rt, "pass"))
			session, line := rapid.IntRange(0, 1).Draw(rt, "session"), drawCommand(rt)
			e.engine.sweep(wallMillis(wallAt(r.now)))
			reply := e.Do(session, wallAt(r.now), parseRedis(t, line))
			story = append(story, fmt.Sprintf("%d %d: %s", r.now, session, line))
			if want := r.do(session, line); plain(&reply) != want {
				rt.Fatalf("%s\ngot  %s\nwant %s", strings.Join(story, "\n"), plain(&reply), want)
			}
		}
	})
}

// Whatever happens on a server, a server that loads its file, and a replica
// that got the stream or a copy, has the same data.
func TestRedisEffectsRebuildTheData(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		db, streamed, copied := &redisDB{logs: true}, &redisDB{replica: true}, &redisDB{replica: true}
		s, now := &redisSession{}, int64(0)
		for range rapid.IntRange(1, 40).Draw(rt, "length") {
			now += int64(rapid.SampledFrom([]int{0, 0, 1, 49, 50}).Draw(rt, "pass"))
			c := parseRedis(t, drawCommand(rt))
			db.run(&c, s, wallAt(now), int32(now))
			db.sweep(wallMillis(wallAt(now)))
			for i := range db.log {
				streamed.apply(&db.log[i])
			}
			db.log = db.log[:0]
		}
		for _, f := range db.snapshot() {
			copied.apply(&f)
		}
		want := sortedSnapshot(db)
		for name, other := range map[string]*redisDB{"streamed": streamed, "copied": copied} {
			if got := sortedSnapshot(other); !slices.Equal(got, want) {
				rt.Fatalf("%s: %v, want %v", name, got, want)
			}
		}
	})
}

func sortedSnapshot(db *redisDB) []string {
	var out []string
	for _, f := range db.snapshot() {
		out = append(out, fmt.Sprintf("%s by %d", f.String(), f.op))
	}
	slices.Sort(out)
	return out
}
