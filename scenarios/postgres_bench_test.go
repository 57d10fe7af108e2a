package scenarios

import (
	"testing"
	"time"

	"locklab/models"
	"locklab/sim"
)

// BenchmarkLock3Postgres is lock3 on designs of PostgreSQL.
func BenchmarkLock3Postgres(b *testing.B) {
	before, err := sim.ParsePlace("client-1/section#2/write")
	if err != nil {
		b.Fatal(err)
	}
	plan := sim.Plan{Faults: []sim.Fault{{Kind: sim.Pause, On: []string{"client-1"}, For: sim.Exactly(3 * time.Second),
		Trigger: sim.Trigger{Before: before}}}}
	for _, pair := range [][2]string{
		{"postgres/lease-table-token", "fenced"},
		{"postgres/lease-table", "same-transaction"},
		{"postgres/advisory-session", "plain"},
		{"postgres/advisory-xact", "same-transaction"},
		{"postgres/serializable", "same-transaction"},
	} {
		b.Run(pair[0]+"_"+pair[1], func(b *testing.B) {
			c := Case{Params: DefaultParams(), Plan: plan}
			c.Params.TTL, c.Params.Work = 2*time.Second, 200*time.Millisecond
			for _, d := range models.Designs() {
				if d.Name == pair[0] {
					c.Design = d
				}
			}
			for _, r := range models.Resources() {
				if r.Name == pair[1] {
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
		})
	}
}
