package scenarios

import (
	"context"
	"testing"

	"locklab/sim"
)

// BenchmarkExhaust counts executions of two faults on one Redis design, with
// one worker.
func BenchmarkExhaust(b *testing.B) {
	p, err := ExhaustParams(nil)
	if err != nil {
		b.Fatal(err)
	}
	ds, _ := PickDesigns([]string{"redis/lua-release"})
	rs, _ := PickResources([]string{"plain"})
	runs := int64(0)
	for b.Loop() {
		e, err := Exhaust(context.Background(), ExhaustConfig{Design: ds[0], Resource: rs[0], Params: p, Kinds: []sim.FaultKind{sim.DropReply, sim.ClockStep},
			MaxFaults: 2, KeepGoing: true})
		if err != nil {
			b.Fatal(err)
		}
		runs += e.Executions()
	}
	b.ReportMetric(float64(runs)/b.Elapsed().Seconds(), "executions/s")
	b.ReportMetric(float64(runs)/float64(b.N), "executions")
}
