package scenarios

import (
	"testing"

	"locklab/models"
	"locklab/sim"
)

// BenchmarkRedlockLock3 is lock3 with five nodes: 3 clients with 3 sections
// each, a plain store, one pause past the TTL. The aim is 4,000 runs a second
// on one core.
func BenchmarkRedlockLock3(b *testing.B) {
	base := lock3(b)
	c := base.Case
	base.Close()
	for _, d := range models.Designs() {
		if d.Name == "redlock" {
			c.Design = d
		}
	}
	for _, r := range models.Resources() {
		if r.Name == "plain" {
			c.Resource = r
		}
	}
	r, err := NewRunner(c)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.ReportAllocs()
	seed, events := uint64(0), int64(0)
	for b.Loop() {
		seed++
		res, err := r.Run(seed, sim.TraceOff)
		if err != nil {
			b.Fatal(err)
		}
		events += res.Events
	}
	b.ReportMetric(float64(seed)/b.Elapsed().Seconds(), "runs/s")
	b.ReportMetric(float64(events)/float64(seed), "events/run")
}
