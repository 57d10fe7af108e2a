package scenarios

import (
	"testing"
	"time"

	"locklab/models"
	"locklab/sim"
)

// BenchmarkConsensus counts complete, checked runs of etcd/lock: 3 members, 3
// clients with 3 sections each, one pause past the TTL, about 30 s of simulated
// time.
func BenchmarkConsensus(b *testing.B) {
	c := Case{Params: DefaultParams()}
	c.Params.Work = 2 * time.Second
	before, err := sim.ParsePlace("client-1/section#2/write")
	if err != nil {
		b.Fatal(err)
	}
	c.Plan = sim.Plan{Faults: []sim.Fault{{Kind: sim.Pause, On: []string{"client-1"}, For: sim.Exactly(12 * time.Second),
		Trigger: sim.Trigger{Before: before}}}}
	for _, d := range models.Designs() {
		if d.Name == "etcd/lock" {
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
	defer r.Close()
	b.ReportAllocs()
	seed, events, simulated := uint64(0), int64(0), time.Duration(0)
	for b.Loop() {
		seed++
		res, err := r.Run(seed, sim.TraceOff)
		if err != nil {
			b.Fatal(err)
		}
		if res.Failure != nil {
			b.Fatal(res.Failure)
		}
		events += res.Events
		simulated += time.Duration(res.History.End)
	}
	b.ReportMetric(float64(seed)/b.Elapsed().Seconds(), "runs/s")
	b.ReportMetric(float64(events)/float64(seed), "events/run")
	b.ReportMetric(simulated.Seconds()/float64(seed), "simulated-s/run")
}
