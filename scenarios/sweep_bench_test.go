package scenarios

import (
	"testing"
	"time"

	"locklab/sim"
)

// BenchmarkSweepPauses is Lock3 as a sweep does it: another plan of pauses for
// every seed, drawn, cast and followed.
func BenchmarkSweepPauses(b *testing.B) {
	r := lock3(b)
	defer r.Close()
	a := NewAdversary(&r.Params, []sim.FaultKind{sim.Pause})
	b.ReportAllocs()
	seed, events := uint64(0), int64(0)
	for b.Loop() {
		seed++
		r.follow(r.Cast(DrawPlan(seed, a)))
		res, err := r.Run(seed, sim.TraceOff)
		if err != nil {
			b.Fatal(err)
		}
		events += res.Events
	}
	b.ReportMetric(float64(seed)/b.Elapsed().Seconds(), "runs/s")
	b.ReportMetric(float64(events)/float64(seed), "events/run")
}

func BenchmarkDrawPlan(b *testing.B) {
	p := DefaultParams()
	p.TTL = 2 * time.Second
	kinds, _ := PickFaults([]string{"all"})
	a := NewAdversary(&p, kinds)
	b.ReportAllocs()
	seed := uint64(0)
	for b.Loop() {
		seed++
		DrawPlan(seed, a)
	}
}
