package scenarios

import (
	"testing"
	"time"

	"locklab/checker"
	"locklab/models"
	"locklab/sim"
)

// lock3 is the yardstick: 3 clients with 3 sections each, a TTL lock with
// tokens, a fenced store, one pause past the TTL, about 150 events. Work and TTL
// are short so that little of it is polling.
func lock3(b *testing.B) *Runner {
	b.Helper()
	before, err := sim.ParsePlace("client-1/section#2/write")
	if err != nil {
		b.Fatal(err)
	}
	plan := sim.Plan{Faults: []sim.Fault{{Kind: sim.Pause, On: []string{"client-1"}, For: sim.Exactly(3 * time.Second),
		Trigger: sim.Trigger{Before: before}}}}
	c := Case{Params: DefaultParams(), Plan: plan}
	c.Params.TTL, c.Params.Work = 2*time.Second, 200*time.Millisecond
	for _, d := range models.Designs() {
		if d.Name == "redis/lua-token" {
			c.Design = d
		}
	}
	for _, r := range models.Resources() {
		if r.Name == "fenced" {
			c.Resource = r
		}
	}
	r, err := NewRunner(c)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// BenchmarkLock3 counts complete, checked runs: set-up, simulation, history
// and both answers.
func BenchmarkLock3(b *testing.B) {
	r := lock3(b)
	defer r.Close()
	b.ReportAllocs()
	seed, events, broken := uint64(0), int64(0), 0
	for b.Loop() {
		seed++
		res, err := r.Run(seed, sim.TraceOff)
		if err != nil {
			b.Fatal(err)
		}
		events += res.Events
		if res.Verdict == checker.VerdictTwoWriters {
			broken++
		}
	}
	b.ReportMetric(float64(seed)/b.Elapsed().Seconds(), "runs/s")
	b.ReportMetric(float64(events)/float64(seed), "events/run")
	b.ReportMetric(float64(broken)/float64(seed), "two-writers/run")
}
