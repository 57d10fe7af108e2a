package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestGolden guards the generator: every recorded seed depends on it. A change
// here makes every stored plan, seed and hash worthless.
func TestGolden(t *testing.T) {
	for _, c := range []struct{ in, want uint64 }{
		{0, 0xe220a8397b1dcdaf}, // the first output of SplitMix64 seeded with 0
		{0x9e3779b97f4a7c15, 0x6e789e6aa1b965f4},
		{0x3c6ef372fe94f82a, 0x06c45d188009454f},
	} {
		if got := mix(c.in); got != c.want {
			t.Errorf("mix(%#x) = %#x, want %#x", c.in, got, c.want)
		}
	}
	if got := nameKey("a"); got != 0xaf63dc4c8601ec8c { // FNV-1a, 64 bits
		t.Errorf("nameKey(a) = %#x", got)
	}
	at := Place{Section: 1, Phase: PhaseWrite, Op: 2, Point: PointRequestLatency}
	if got, want := at.key(nameKey("client-1")), uint64(0xe24223dc4f7ba5bd); got != want {
		t.Errorf("the key of client-1/%v is %#x, want %#x", at, got, want)
	}
	want := []int64{974280, 857416, 36532, 937221, 833736}
	for seed, v := range want {
		if got := Seeded(seed).Choose(Choice{Key: at.key(nameKey("client-1")), Lo: 0, Hi: 999_999}); got != v {
			t.Errorf("seed %d chooses %d, want %d", seed, got, v)
		}
	}
	var d Digest
	d.Text("fencing token")
	d.Int(-33)
	if got, want := d.Sum(), uint64(0xe9f6fc31af5587df); got != want {
		t.Errorf("the digest is %#x, want %#x", got, want)
	}
}

func TestDigestTellsApart(t *testing.T) {
	sum := func(texts ...string) uint64 {
		var d Digest
		for _, s := range texts {
			d.Text(s)
		}
		return d.Sum()
	}
	seen := map[uint64]int{}
	for i, s := range []uint64{sum(), sum(""), sum("", ""), sum("a"), sum("a", ""), sum("", "a"), sum("ab"), sum("a", "b"),
		sum("a\x00"), sum("12345678"), sum("12345678", ""), sum("123456789"), sum("1", "2345678")} {
		if before, ok := seen[s]; ok {
			t.Errorf("cases %d and %d have the same sum", before, i)
		}
		seen[s] = i
	}
}

// TestSeededStaysInRange also at the ends of what an int64 holds.
func TestSeededStaysInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo, hi := rapid.Int64().Draw(t, "lo"), rapid.Int64().Draw(t, "hi")
		if lo > hi {
			lo, hi = hi, lo
		}
		if v := Seeded(rapid.Uint64().Draw(t, "seed")).Choose(Choice{Key: rapid.Uint64().Draw(t, "key"), Lo: lo, Hi: hi}); v < lo || v > hi {
			t.Fatalf("chose %d outside %d to %d", v, lo, hi)
		}
	})
}

// TestSeededIsEven: neighbouring seeds and places give unrelated values.
func TestSeededIsEven(t *testing.T) {
	const draws, sides = 60_000, 6
	var bySeed, byOp [sides]int
	for i := range draws {
		at := Place{Section: 1, Phase: PhaseWork, Op: 1, Point: PointJitter}
		bySeed[Seeded(i).Choose(Choice{Key: at.key(1), Lo: 0, Hi: sides - 1})]++
		at.Op = int32(i)
		byOp[Seeded(1).Choose(Choice{Key: at.key(1), Lo: 0, Hi: sides - 1})]++
	}
	for side := range sides {
		for _, n := range []int{bySeed[side], byOp[side]} {
			if n < draws/sides-500 || n > draws/sides+500 { // over five standard deviations
				t.Errorf("side %d came %d times of %d", side, n, draws)
			}
		}
	}
}

// TestPlacesHaveTheirOwnKeys over all the places a run is likely to have.
func TestPlacesHaveTheirOwnKeys(t *testing.T) {
	seen := map[uint64]Place{}
	for _, name := range []string{"client-1", "client-2", "redis-1", "storage"} {
		for section := int32(0); section < 12; section++ {
			for phase := Phase(0); phase < phaseCount; phase++ {
				for op := int32(1); op < 40; op++ {
					for point := Point(0); point < pointCount; point++ {
						p := Place{Section: section, Phase: phase, Op: op, Point: point}
						k := p.key(nameKey(name))
						if q, ok := seen[k]; ok {
							t.Fatalf("%s and %s share the key %#x", p.name(name), q.name("?"), k)
						}
						seen[k] = p
					}
				}
			}
		}
	}
}

// recorder remembers every choice by its place.
type recorder struct {
	base  Chooser
	w     *World
	drawn map[string]int64
	again []string // places that were asked twice
}

func (r *recorder) Choose(c Choice) int64 {
	v := r.base.Choose(c)
	name := r.w.PlaceName(c.Place)
	if _, ok := r.drawn[name]; ok {
		r.again = append(r.again, name)
	}
	r.drawn[name] = v
	return v
}

// TestChoicesAreIndependent: one more draw at one place changes no value
// anywhere else, and no place is asked twice.
func TestChoicesAreIndependent(t *testing.T) {
	run := func(extra bool) *recorder {
		w := NewWorld(Config{})
		defer w.Close()
		r := &recorder{base: Seeded(3), w: w, drawn: map[string]int64{}}
		w.Reset(Config{Chooser: r, LatencyMin: time.Millisecond, LatencyMax: 9 * time.Millisecond})
		s := w.AddNode("s").AddServer("s", &echo{})
		for _, name := range []string{"client-1", "client-2"} {
			w.AddNode(name).AddClient(name, func(task *Task) {
				c := task.Dial(s)
				for section := 1; section <= 3; section++ {
					task.Enter(section, PhaseAcquire)
					task.Call(c, Text("acquire"), 0)
					if extra && section == 1 && name == "client-1" {
						task.Choose(PointJitter, 0, 1000)
					}
					task.Enter(section, PhaseWrite)
					task.Call(c, Text("write"), 0)
				}
			})
		}
		if end, err := w.Run(); end != EndDone || err != nil {
			t.Fatal(end, err)
		}
		return r
	}
	with, without := run(true), run(false)
	if len(with.drawn) != len(without.drawn)+1 {
		t.Errorf("%d draws with one more, %d without", len(with.drawn), len(without.drawn))
	}
	for place, v := range without.drawn {
		if with.drawn[place] != v {
			t.Errorf("%s: %d became %d", place, v, with.drawn[place])
		}
	}
	if again := append(with.again, without.again...); len(again) > 0 {
		t.Errorf("asked twice: %v", again)
	}
}

func TestOverrides(t *testing.T) {
	at, err := ParsePlace("client-1/section#1/acquire/op#1/request-latency")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		value int64
		want  time.Duration
	}{{int64(7 * time.Millisecond), 8 * time.Millisecond}, {1 << 60, 10 * time.Millisecond}} { // the second is clamped
		l := newLab(t, Config{LatencyMin: time.Millisecond, LatencyMax: 9 * time.Millisecond})
		l.cfg.Plan.Choices = []Override{{At: at, Value: c.value}, {At: replyOf(at), Value: 0}}
		l.client("client-1", func(task *Task) {
			task.Enter(1, PhaseAcquire)
			task.Call(task.Dial(l.server("s")), Text("x"), 0)
			l.say("back")
		})
		l.run(EndDone)
		if got := time.Duration(l.w.Now()); got != c.want {
			t.Errorf("with %d the round trip took %v, want %v", c.value, got, c.want)
		}
	}
}

func replyOf(at PlacePattern) PlacePattern { at.Point = PointReplyLatency; return at }
