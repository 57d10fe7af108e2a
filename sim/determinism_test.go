package sim

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fullRun is the story with one fault of every kind, at random latencies.
func fullRun(t rapid.TB, seed uint64) (uint64, []string) {
	l := newLab(t, Config{Seed: seed, LatencyMax: 5 * ms, LateReplies: true})
	defer l.w.Close()
	l.serve("s", &archive{scribe: scribe{lab: l}, lab: l})
	l.serve("peer", &scribe{lab: l})
	for _, name := range []string{"client-1", "client-2", "client-3"} {
		l.client(name, func(task *Task) {
			c := task.Dial(l.server("s"))
			for section := 1; section <= 4; section++ {
				task.Enter(section, PhaseAcquire)
				renewer := task.Spawn("renewer", PhaseRenew, func(task *Task) {
					for {
						task.Sleep(4 * ms)
						task.Call(c, Text("renew"), 8*ms)
					}
				})
				task.Sleep(ms)
				task.Enter(section, PhaseWrite)
				if _, err := task.Call(c, Text("write"), 8*ms); err != nil || !c.Open() {
					c = task.Dial(l.server("s"))
				}
				task.Kill(renewer)
			}
		})
	}
	names := []string{}
	for name := range kinds() {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		f := kinds()[name]
		f.Trigger = at(time.Duration(2+3*i) * ms)
		l.fault(f)
	}
	l.w.Reset(l.cfg)
	for _, build := range l.built {
		build()
	}
	if _, err := l.w.Run(); err != nil {
		t.Fatal(err)
	}
	var trace []string
	for _, e := range l.w.Trace() {
		trace = append(trace, l.w.Describe(e))
	}
	return l.w.TraceHash(), trace
}

// TestDeterminism runs the same world again and again, at several GOMAXPROCS
// and in several goroutines at once. It shows the first line that differs.
func TestDeterminism(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for seed := range uint64(20) {
		runtime.GOMAXPROCS(1)
		hash, trace := fullRun(t, seed)
		runtime.GOMAXPROCS(8)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				again, lines := fullRun(t, seed)
				for i := range min(len(trace), len(lines)) {
					if trace[i] != lines[i] {
						t.Errorf("seed %d, line %d:\n%s\n%s", seed, i, trace[i], lines[i])
						break
					}
				}
				if again != hash || len(lines) != len(trace) {
					t.Errorf("seed %d: hash %016x and %d events, then %016x and %d", seed, hash, len(trace), again, len(lines))
				}
			})
		}
		wg.Wait()
	}
}

// TestGoldenWorld guards everything at once: the choices, the order of events
// and the encoding of the trace. If it changes on purpose, every recorded hash
// changes with it.
func TestGoldenWorld(t *testing.T) {
	hash, trace := fullRun(t, 1)
	if want, n := uint64(0xbcb1bee80586670c), 208; hash != want || len(trace) != n {
		t.Errorf("hash %#x and %d events, want %#x and %d", hash, len(trace), want, n)
	}
}

// TestResetForgets: a world that has been used gives the same run as a new one,
// with the trace off, hashed or recorded.
func TestResetForgets(t *testing.T) {
	build := func(w *World, cfg Config) uint64 {
		cfg.LatencyMax = 5 * ms
		w.Reset(cfg)
		s := w.AddNode("s").AddServer("s", &echo{})
		w.AddNode("client-1").AddClient("client-1", func(task *Task) {
			for range 20 {
				task.Call(task.Dial(s), Text("x"), 3*ms)
			}
		})
		if _, err := w.Run(); err != nil {
			t.Fatal(err)
		}
		return w.TraceHash()
	}
	w := NewWorld(Config{})
	defer w.Close()
	first := build(w, Config{Seed: 5, Trace: TraceHash})
	events, end := w.Events(), w.Now()
	build(w, Config{Seed: 6, Trace: TraceRecord, Plan: Plan{Faults: []Fault{{Kind: Partition, On: []string{"s"}, Trigger: at(5 * ms)}}}, Horizon: 50 * ms})
	if second := build(w, Config{Seed: 5, Trace: TraceRecord}); second != first {
		t.Errorf("%#x, then %#x", first, second)
	}
	if off := build(w, Config{Seed: 5}); off != 0 || w.Events() != events || w.Now() != end {
		t.Errorf("without a trace: %d events to %v, want %d to %v", w.Events(), w.Now(), events, end)
	}
}

// TestTraceMax: a trace that grows beyond the bound is let go, all of it, and
// its hash goes on as if nobody had wanted to keep it.
func TestTraceMax(t *testing.T) {
	full := trace{mode: TraceRecord, events: make([]Event, TraceMax-1)}
	full.keep(Event{})
	if len(full.events) != TraceMax || full.mode != TraceRecord {
		t.Fatalf("%d events, mode %d: want all of them", len(full.events), full.mode)
	}
	full.keep(Event{})
	if full.events != nil || full.mode != TraceHash {
		t.Fatalf("%d events, mode %d: want none, and the hash", len(full.events), full.mode)
	}
}
