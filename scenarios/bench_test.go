package scenarios

import (
	"testing"
	"time"

	"locklab/sim"
)

// benchRunner runs a design on a resource: 3 clients have 3 sections each, and
// client-1 is paused for so long in the middle of its second.
func benchRunner(b *testing.B, designName, resourceName string, pause time.Duration, change func(*Params)) *Runner {
	b.Helper()
	d, err := FindDesign(designName)
	if err != nil {
		b.Fatal(err)
	}
	res, err := FindResource(resourceName)
	if err != nil {
		b.Fatal(err)
	}
	before, err := sim.ParsePlace("client-1/section#2/write")
	if err != nil {
		b.Fatal(err)
	}
	c := Case{Design: d, Resource: res, Params: DefaultParams(), Plan: sim.Plan{Faults: []sim.Fault{
		{Kind: sim.Pause, On: []string{"client-1"}, For: sim.Exactly(pause), Trigger: sim.Trigger{Before: before}}}}}
	change(&c.Params)
	r, err := NewRunner(c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(r.Close)
	return r
}

// benchRuns counts complete, checked runs: set-up, simulation, history and both
// answers. prepare, if not nil, comes before each.
func benchRuns(b *testing.B, r *Runner, prepare func(seed uint64)) {
	b.Helper()
	b.ReportAllocs()
	seed, events, simulated := uint64(0), int64(0), time.Duration(0)
	for b.Loop() {
		seed++
		if prepare != nil {
			prepare(seed)
		}
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

// short makes work and TTL short, so that little of a run is polling.
func short(p *Params) { p.TTL, p.Work = 2*time.Second, 200*time.Millisecond }

// lock3 is the yardstick: a TTL lock with tokens, a fenced store, one pause past
// the TTL, about 150 events.
func lock3(b *testing.B) *Runner {
	return benchRunner(b, "redis/lua-token", "fenced", 3*time.Second, short)
}

// BenchmarkLock3 runs the yardstick.
func BenchmarkLock3(b *testing.B) {
	benchRuns(b, lock3(b), nil)
}

// BenchmarkRedlockLock3 is lock3 with five nodes.
func BenchmarkRedlockLock3(b *testing.B) {
	benchRuns(b, benchRunner(b, "redlock", "plain", 3*time.Second, short), nil)
}

// BenchmarkPostgresLock3 is lock3 on designs of PostgreSQL.
func BenchmarkPostgresLock3(b *testing.B) {
	for _, pair := range [][2]string{
		{"postgres/lease-table-token", "fenced"},
		{"postgres/lease-table", "same-transaction"},
		{"postgres/advisory-session", "plain"},
		{"postgres/advisory-xact", "same-transaction"},
		{"postgres/serializable", "same-transaction"},
	} {
		b.Run(pair[0]+"_"+pair[1], func(b *testing.B) { benchRuns(b, benchRunner(b, pair[0], pair[1], 3*time.Second, short), nil) })
	}
}

// BenchmarkConsensus is etcd/lock on three members, about 30 s of simulated
// time.
func BenchmarkConsensus(b *testing.B) {
	benchRuns(b, benchRunner(b, "etcd/lock", "fenced", 12*time.Second, func(p *Params) { p.Work = 2 * time.Second }), nil)
}
