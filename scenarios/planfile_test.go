package scenarios

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"locklab/clock"
	"locklab/sim"
)

const goodPlanFile = `scenario: kleppmann/gc-pause
title: "A pause: outlasting"
design: redis/lua-token
resource: fenced
engine: native
seed: 18446744073709551615
params:
  clients: 2
  ttl: 30s
witnesses:
  - client-1's write arrived after its timeout
plan:
  - fault: pause
    on: client-1
    before: client-1/section#1/write
    until: client-2's first accepted write
    at_most: 1m0s
  - fault: partition
    on: client-1
    from: [redis-4, redis-5]
    at: 0s
    for: 1.5*ttl
    one_way: true
    mode: drop
  - fault: clock-rate
    on: redis-1
    after: lock grants client-1
    rate: -5000000
  - fault: crash
    on: redis-1
    step: client-1#17
    restart: after 2s
  - fault: crash
    on: redis-2
    at: ttl
    restart: never
    mode: node
choices:
  - {at: client-1/section#1/acquire/op#1/request-latency, value: 1500000}
trace_hash: "0123456789abcdef"
verdict: fenced
lock: overlap
`

func TestPlanFileReadsAsItIsWritten(t *testing.T) {
	f, err := LoadPlanFile([]byte(goodPlanFile), "plan.yaml")
	require.NoError(t, err)
	require.Equal(t, uint64(1<<64-1), f.Seed)
	require.Equal(t, 30*time.Second, f.Params.TTL)
	require.Len(t, f.Plan.Faults, 5)
	require.Equal(t, int64(1_500_000), f.Plan.Choices[0].Value)
	require.Equal(t, goodPlanFile, string(MarshalPlanFile(f)))
}

func TestMarshalPlanWithoutFaults(t *testing.T) {
	require.Equal(t, "plan: []\n", string(MarshalPlan(sim.Plan{})))
}

func TestLoadPlanFileAnswersMistakesInOneLine(t *testing.T) {
	const head = "scenario: a\ndesign: none\nresource: plain\n"
	for _, c := range []struct{ yaml, want string }{
		{"scenario: a\n", `1:1: a plan file needs design:; write one with locklab run --plan`},
		{"sceanrio: a\n", `1:1: unknown key in a plan file "sceanrio"; did you mean "scenario"?`},
		{head + "seed: -1\n", `4:7: cannot read the seed "-1"; a seed is a whole number from 0 to 18446744073709551615`},
		{head + "trace_hash: abc\n", `4:13: cannot read "abc"; a trace hash is 16 hexadecimal digits`},
		{head + "params: {ttl: 0s}\n", `4:15: ttl: 0s is out of range; allowed is 1ms to 1000h`},
		{head + "choices: [{at: client-1/work}]\n", `4:11: a choice needs at: and value:, like {at: client-1/section#1/acquire/op#1/jitter, value: 1500000}`},
		{head + "choices: [{at: client-1/work, value: 1.5}]\n", `4:38: cannot read the value "1.5"; it is a whole number in the choice's own unit, nanoseconds for durations`},
		{head + "params: {clients: 2}\nplan: [{fault: pause, on: client-3}]\n", `5:27: no client is called "client-3"; clients: 2 gives client-1 and client-2`},
		{head + "plan: [{fault: pause, on: a, for: 2*work, until: a's first grant, at_most: 1s}]\n", `4:35: for and until exclude each other`},
	} {
		_, err := LoadPlanFile([]byte(c.yaml), "bad.yaml")
		require.EqualError(t, err, "bad.yaml:"+c.want)
	}
}

func TestPlanFilesSurviveARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := &PlanFile{
			Scenario: rapid.SampledFrom([]string{"mine", "kleppmann/gc-pause", "true", "null"}).Draw(t, "scenario"),
			Title:    rapid.StringMatching(`([ -~äß“”😀\n\t]*[!-~])?`).Draw(t, "title"),
			Design:   "redis/lua-token", Resource: "fenced",
			Engine:    rapid.SampledFrom([]string{"", "native"}).Draw(t, "engine"),
			Seed:      rapid.Uint64().Draw(t, "seed"),
			Params:    drawParams(t),
			Plan:      drawPlan(t),
			TraceHash: rapid.SampledFrom([]string{"", "0000000000000000", "1234567890123456", "00000000000001e5"}).Draw(t, "hash"),
			Verdict:   rapid.SampledFrom(append(Verdicts(), "")).Draw(t, "verdict"),
			Lock:      rapid.SampledFrom(append(LockAnswers(), "")).Draw(t, "lock"),
		}
		text := MarshalPlanFile(want)
		got, err := LoadPlanFile(text, "plan.yaml")
		require.NoError(t, err, "%s", text)
		require.Len(t, got.faults, len(want.Plan.Faults))
		got.faults = nil
		require.Equal(t, want, got, "%s", text)
		require.Equal(t, string(text), string(MarshalPlanFile(got)), "the written form must be stable")
	})
}

func TestPlansInScenariosSurviveARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawPlan(t)
		want.Choices = nil // scenarios follow their seed
		text := append([]byte("name: mine\nclients: 12\n"), MarshalPlan(want)...)
		got, err := Load(text, "mine.yaml")
		require.NoError(t, err, "%s", text)
		require.Equal(t, want, got.Plan, "%s", text)
	})
}

func drawParams(t *rapid.T) Params {
	p := DefaultParams()
	p.Clients = rapid.IntRange(12, 1000).Draw(t, "clients")
	p.Sections = rapid.IntRange(1, 100).Draw(t, "sections")
	p.TTL = time.Duration(rapid.Int64Range(1, 3_600_000).Draw(t, "ttl")) * time.Millisecond
	p.ChecksValidity = rapid.Bool().Draw(t, "checks validity")
	p.Workload = rapid.SampledFrom([]Workload{Increment, Write, Append}).Draw(t, "workload")
	return p
}

func drawPlan(t *rapid.T) sim.Plan {
	faults := rapid.SliceOfN(rapid.Custom(drawFault), 0, 6).Draw(t, "faults")
	choices := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sim.Override {
		return sim.Override{At: drawPlace(t), Value: rapid.Int64().Draw(t, "value")}
	}), 0, 3).Draw(t, "choices")
	return normal(sim.Plan{Faults: faults, Choices: choices})
}

// normal makes no difference between a list of nothing and none.
func normal(p sim.Plan) sim.Plan {
	if len(p.Faults) == 0 {
		p.Faults = nil
	}
	if len(p.Choices) == 0 {
		p.Choices = nil
	}
	return p
}

// drawFault draws a valid fault: every field that the kind takes, or not.
func drawFault(t *rapid.T) sim.Fault {
	kind, _ := sim.ParseFaultKind(rapid.SampledFrom(sim.FaultNames()).Draw(t, "kind"))
	f := sim.Fault{Kind: kind, On: []string{drawActor(t, "on")}, Trigger: drawTrigger(t)}
	switch rapid.IntRange(0, 2).Draw(t, "length") {
	case 1:
		f.For = drawSpan(t, "for")
	case 2:
		f.Until, f.AtMost = drawMilestone(t), drawSpan(t, "at most")
	}
	switch kind {
	case sim.Partition:
		f.On = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return drawActor(t, "side") }), 1, 3).Draw(t, "on")
		f.From = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return drawActor(t, "side") }), 1, 3).Draw(t, "from")
		f.OneWay = rapid.Bool().Draw(t, "one way")
		f.Mode = rapid.SampledFrom([]string{"", "drop", "hold"}).Draw(t, "mode")
	case sim.Cut:
		f.Mode = rapid.SampledFrom([]string{"", "reset", "silent"}).Draw(t, "mode")
	case sim.Crash:
		f.Mode = rapid.SampledFrom([]string{"", "process", "node"}).Draw(t, "mode")
		f.Restart = rapid.SampledFrom([]sim.Span{{}, drawSpan(t, "restart")}).Draw(t, "restart or never")
	case sim.Freeze:
		f.Monotonic = rapid.SampledFrom([]string{"", "runs", "stops"}).Draw(t, "monotonic")
		f.Wall = rapid.SampledFrom([]string{"", "right", "behind"}).Draw(t, "wall")
	case sim.ClockRate:
		f.Rate = rapid.Int64Range(clock.RateMin, clock.RateMax).Filter(func(r int64) bool { return r != 0 }).Draw(t, "rate")
	case sim.ClockStep, sim.ClockOffset, sim.Delay, sim.RestoreSnapshot:
		f.By = drawSpan(t, "by")
	case sim.Evict, sim.Overwrite:
		f.Key = rapid.SampledFrom([]string{"lock", "lock:token", "17"}).Draw(t, "key")
		if kind == sim.Overwrite {
			f.Value = rapid.SampledFrom([]string{"", "cached page", "true", "0"}).Draw(t, "value")
		}
	case sim.Failover:
		f.Mode = rapid.SampledFrom([]string{"", "isolated", "demoted"}).Draw(t, "mode")
	case sim.DropRequest, sim.DropReply, sim.Duplicate, sim.Reorder:
		f.Count = rapid.IntRange(0, 9).Draw(t, "count")
	}
	// The plan vocabulary says which kinds last; those that do not take no length.
	if f.Validate() != nil {
		f.For, f.Until, f.AtMost = sim.Span{}, sim.Milestone{}, sim.Span{}
	}
	if f.Validate() != nil { // these do last, and must
		f.For = sim.Exactly(time.Second)
	}
	require.NoError(t, f.Validate())
	return f
}

func drawActor(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"client-1", "redis-4", "client-1.renewer", "client-1->storage", "true", "17", "0x1F", "1e3", "null"}).Draw(t, label)
}

func drawSpan(t *rapid.T, label string) sim.Span {
	if rapid.Bool().Draw(t, label+" fixed") {
		return sim.Exactly(time.Duration(rapid.Int64Range(1, int64(durationMax)).Draw(t, label)))
	}
	text := fmt.Sprintf("%d.%09d*%s", rapid.IntRange(0, 9).Draw(t, label+" factor"), rapid.IntRange(1, 999_999_999).Draw(t, label+" billionths"),
		rapid.SampledFrom([]string{"ttl", "work", "renew", "call_timeout"}).Draw(t, label+" of"))
	s, err := sim.ParseSpan(text)
	require.NoError(t, err)
	return s
}

func drawPlace(t *rapid.T) sim.PlacePattern {
	p := sim.PlacePattern{Proc: rapid.SampledFrom([]string{"client-1", "redis-1", "off"}).Draw(t, "process")}
	p.Phase = sim.Phase(rapid.IntRange(0, int(sim.PhaseStart)).Draw(t, "phase"))
	p.Section = int32(rapid.IntRange(0, 3).Draw(t, "section"))
	p.Op = int32(rapid.IntRange(0, 1000).Draw(t, "op"))
	p.Point = sim.Point(rapid.IntRange(0, int(sim.PointExtra)).Draw(t, "point"))
	return p
}

func drawMilestone(t *rapid.T) sim.Milestone {
	return sim.Milestone{
		Kind: sim.MilestoneKind(rapid.IntRange(int(sim.Granted), int(sim.RefusedWrite)).Draw(t, "milestone")),
		Who:  rapid.SampledFrom([]string{"client-1", "client-12"}).Draw(t, "who"),
		N:    int32(rapid.IntRange(1, 30).Draw(t, "which")),
	}
}

func drawTrigger(t *rapid.T) sim.Trigger {
	switch rapid.IntRange(0, 4).Draw(t, "trigger") {
	case 0:
		return sim.Trigger{Before: drawPlace(t)}
	case 1:
		return sim.Trigger{After: drawPlace(t)}
	case 2:
		return sim.Trigger{When: drawMilestone(t)}
	case 3:
		return sim.Trigger{Step: sim.Step{Proc: "client-1", N: int32(rapid.IntRange(1, 1<<31-1).Draw(t, "step"))}}
	}
	return sim.Trigger{At: drawSpan(t, "at")}
}
