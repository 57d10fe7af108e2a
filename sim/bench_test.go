package sim

import (
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"locklab/clock"
)

type echo struct{ n int }

func (e *echo) Start(p *Process)               { e.n = 0 }
func (e *echo) Request(p *Process, m *Message) { e.n++; p.Reply(m, m.Body) }
func (e *echo) Timer(p *Process, id uint64)    {}
func (e *echo) Closed(p *Process, c *Conn)     {}

// The workload of the comparison: three clients call one server and sleep, so
// that two of three events switch to a task.
const (
	benchClients = 3
	benchCalls   = 50
)

var benchBody Payload = Text("x")

func callAndSleep(w *World, calls int) {
	w.Reset(Config{Seed: 1, LatencyMin: 500 * time.Microsecond, LatencyMax: 2 * time.Millisecond, Horizon: time.Hour})
	s := w.AddNode("server").AddServer("server", &echo{})
	for _, name := range []string{"client-1", "client-2", "client-3"} {
		w.AddNode(name).AddClient(name, func(t *Task) {
			c := t.Dial(s)
			for range calls {
				t.Call(c, benchBody, time.Second)
				t.Sleep(time.Millisecond)
			}
		})
	}
}

func runBench(b *testing.B, w *World) int64 {
	if r, err := w.Run(); r != EndDone || err != nil {
		b.Fatal(r, err, w.Failure())
	}
	return w.Events()
}

func reportEvents(b *testing.B, events int64) {
	b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}

// BenchmarkEventLoop: short runs, two of three events switch to a task.
func BenchmarkEventLoop(b *testing.B) {
	w := NewWorld(Config{})
	defer w.Close()
	b.ReportAllocs()
	events := int64(0)
	for b.Loop() {
		callAndSleep(w, benchCalls)
		events += runBench(b, w)
	}
	reportEvents(b, events)
}

// BenchmarkDatagrams: servers that talk to each other; no event switches.
func BenchmarkDatagrams(b *testing.B) {
	w := NewWorld(Config{})
	defer w.Close()
	b.ReportAllocs()
	events := int64(0)
	for b.Loop() {
		w.Reset(Config{Seed: 1, LatencyMin: 500 * time.Microsecond, LatencyMax: 2 * time.Millisecond})
		ring := &ring{left: 500}
		for _, name := range []string{"s-1", "s-2", "s-3"} {
			ring.procs = append(ring.procs, w.AddNode(name).AddServer(name, ring))
		}
		w.AddNode("client").AddClient("client", func(t *Task) {
			for _, p := range ring.procs {
				t.Send(p, benchBody)
			}
		})
		events += runBench(b, w)
	}
	reportEvents(b, events)
}

// ring passes each datagram on.
type ring struct {
	echo
	procs []*Process
	left  int
}

func (r *ring) Request(p *Process, m *Message) {
	if r.left--; r.left >= 0 {
		p.Send(r.procs[(int(p.ID())+1)%len(r.procs)], m.Body)
	}
}

// BenchmarkSwitch: to a coroutine and back.
func BenchmarkSwitch(b *testing.B) {
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		for yield(struct{}{}) {
		}
	})
	defer stop()
	for b.Loop() {
		next()
	}
}

// BenchmarkHeap: one push and one pop among so many pending events.
func BenchmarkHeap(b *testing.B) {
	for _, pending := range []int{8, 64, 512} {
		b.Run(fmt.Sprint(pending), func(b *testing.B) {
			var q queue
			in := func(i int) time.Duration { return time.Duration(mix(uint64(i)) % 1_000_000) }
			for i := range pending {
				q.push(clock.Time(in(i)))
			}
			i := 0
			for b.Loop() {
				e := q.pop()
				q.release(e)
				q.push(e.at.Add(in(i)))
				i++
			}
		})
	}
}

// BenchmarkGoroutines is BenchmarkEventLoop's workload, written with goroutines
// and channels in testing/synctest. It counts the same events: a request
// arrives, a reply arrives, a sleep ends.
func BenchmarkGoroutines(b *testing.B) {
	events := int64(0)
	program := func(t *testing.T) { // synctest wants a T
		for b.Loop() {
			synctest.Test(t, goCallAndSleep)
			events += 3 * benchClients * benchCalls
		}
	}
	testing.RunTests(func(_, _ string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "goroutines", F: program}})
	reportEvents(b, events)
}

func goCallAndSleep(t *testing.T) {
	type call struct {
		body  string
		reply chan string
	}
	latency := func(client, i int) time.Duration {
		return 500*time.Microsecond + time.Duration(mix(uint64(client<<32|i))%1_500_000)
	}
	requests := make(chan call)
	go func() {
		for c := range requests {
			c.reply <- c.body
		}
	}()
	var clients sync.WaitGroup
	for client := range benchClients {
		clients.Go(func() {
			reply := make(chan string, 1)
			for i := range benchCalls {
				timeout := time.NewTimer(time.Second)
				time.AfterFunc(latency(client, 2*i), func() {
					answer := make(chan string)
					requests <- call{"x", answer}
					body := <-answer
					time.AfterFunc(latency(client, 2*i+1), func() { reply <- body })
				})
				select {
				case <-reply:
				case <-timeout.C:
					t.Error("timed out")
				}
				timeout.Stop()
				time.Sleep(time.Millisecond)
			}
		})
	}
	clients.Wait()
	close(requests)
}

// TestSteadyStateDoesNotAllocate: a run ten times as long allocates no more.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	w := NewWorld(Config{})
	defer w.Close()
	cost := func(calls int) float64 {
		return testing.AllocsPerRun(20, func() {
			callAndSleep(w, calls)
			w.Run()
		})
	}
	cost(600)
	if short, long := cost(60), cost(600); long > short+2 {
		t.Errorf("%v allocations with 60 calls, %v with 600", short, long)
	}
}
