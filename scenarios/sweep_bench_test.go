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
	a := NewAdversary(&r.Params, []sim.FaultKind{sim.Pause})
	benchRuns(b, r, func(seed uint64) { r.follow(r.Cast(DrawPlan(seed, a))) })
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
