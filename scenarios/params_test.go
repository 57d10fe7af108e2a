package scenarios

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/sim"
)

func TestDefaultParamsAreValid(t *testing.T) {
	p := DefaultParams()
	require.NoError(t, p.Validate())
	require.Empty(t, p.Changed())
}

func TestParametersAreDocumentedAndReadBack(t *testing.T) {
	seen := map[string]bool{}
	p := DefaultParams()
	for _, q := range Parameters() {
		require.False(t, seen[q.Name], q.Name)
		seen[q.Name] = true
		require.NotEmpty(t, q.Meaning, q.Name)
		require.NotEmpty(t, q.Range, q.Name)
		require.NoError(t, p.Set(q.Name, q.Get(&p)), q.Name)
	}
	require.Equal(t, DefaultParams(), p)
}

func TestSetSaysWhatWouldBeRight(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"tll", "3s", `unknown parameter "tll"; did you mean "ttl"?`},
		{"ttl", "0s", `ttl: 0s is out of range; allowed is 1ms to 1000h`},
		{"ttl", "-3s", `ttl: -3s is out of range; allowed is 1ms to 1000h`},
		{"ttl", "1001h", `ttl: 1001h0m0s is out of range; allowed is 1ms to 1000h`},
		{"work", "5", `work: cannot read "5" as a duration; write it like 30s or 500ms`},
		{"clients", "0", `clients: 0 is out of range; allowed is 1 to 1000`},
		{"clients", "many", `clients: cannot read "many" as a whole number; allowed is 1 to 1000`},
		{"sections", "10001", `sections: 10001 is out of range; allowed is 1 to 10000`},
		{"checks_validity", "yes", `checks_validity: cannot read "yes"; write true or false`},
		{"workload", "incremet", `workload: unknown workload "incremet"; did you mean "increment"?`},
		{"token_start", "0", `token_start: 0 is out of range; allowed is 1 to 1000000000`},
	} {
		p := DefaultParams()
		require.EqualError(t, p.Set(c.name, c.value), c.want)
		require.Equal(t, DefaultParams(), p, "a refused value must change nothing")
	}
}

func TestParseSet(t *testing.T) {
	settings, err := ParseSet("ttl=30s, work=2s,checks_validity=true")
	require.NoError(t, err)
	p := DefaultParams()
	require.NoError(t, p.Apply(settings))
	require.Equal(t, 30*time.Second, p.TTL)
	require.Equal(t, 2*time.Second, p.Work)
	require.Equal(t, []Setting{{"ttl", "30s"}, {"work", "2s"}, {"checks_validity", "true"}}, p.Changed())

	settings, err = ParseSet("")
	require.NoError(t, err)
	require.Empty(t, settings)

	for text, want := range map[string]string{
		"ttl":           `cannot read the setting "ttl"; write it like ttl=30s,work=2s`,
		"ttl=":          `cannot read the setting "ttl="; write it like ttl=30s,work=2s`,
		"ttl=3s,":       `cannot read the setting ""; write it like ttl=30s,work=2s`,
		"ttl=3s,ttl=4s": `ttl: is set twice; leave one out`,
		"retri=1s":      `unknown parameter "retri"; did you mean "retry"?`,
	} {
		_, err := ParseSet(text)
		require.EqualError(t, err, want)
	}
}

func TestApplyChecksTheWhole(t *testing.T) {
	p := DefaultParams()
	require.EqualError(t, p.Apply([]Setting{{"latency_min", "3ms"}}), "latency_min: 3ms is above latency_max, which is 2ms")
	require.EqualError(t, p.Apply([]Setting{{"clients", "1000"}, {"sections", "1000"}}),
		"sections: 1000 clients with 1000 sections each are 1000000 sections; allowed are 100000 in all")
	require.Equal(t, DefaultParams(), p)
	require.NoError(t, p.Apply([]Setting{{"latency_min", "3ms"}, {"latency_max", "3ms"}}))
}

func TestSpansResolveWhatZeroStandsFor(t *testing.T) {
	p := DefaultParams()
	for name, want := range map[string]time.Duration{
		"ttl": 10 * time.Second, "renew": 10 * time.Second / 3, "stuck_after": 30 * time.Second, "wait": 0,
	} {
		got, ok := p.Spans(name)
		require.True(t, ok, name)
		require.Equal(t, want, got, name)
	}
	for _, name := range []string{"clients", "checks_validity", "", "nonsense"} {
		_, ok := p.Spans(name)
		require.False(t, ok, name)
	}
}

// Left alone, a leader's deadline keeps client-go's proportions.
func TestRenewUntil(t *testing.T) {
	for _, c := range []struct{ ttl, renew, deadline, want time.Duration }{
		{15 * time.Second, 2 * time.Second, 0, 10 * time.Second},
		{30 * time.Second, 4 * time.Second, 0, 20 * time.Second},
		{15 * time.Second, 2 * time.Second, 7 * time.Second, 7 * time.Second},
		{10 * time.Second, 9 * time.Second, 0, 9 * time.Second}, // no deadline before there was a try
	} {
		p := DefaultParams()
		p.TTL, p.Renew, p.RenewDeadline = c.ttl, c.renew, c.deadline
		require.Equal(t, c.want, p.RenewUntil())
		span, ok := p.Spans("renew_deadline")
		require.True(t, ok)
		require.Equal(t, c.want, span)
	}
}

// A client that sleeps between two tries is not stuck, however long it sleeps:
// the bound is above any such pause, given or not.
func TestStuckBoundIsAboveRetry(t *testing.T) {
	p := DefaultParams()
	require.Equal(t, 30*time.Second, p.StuckBound())
	p.Retry, p.RetryJitter = 40*time.Second, 0
	require.Equal(t, 80*time.Second, p.StuckBound())
	p.Sections, p.Clients = 2, 2
	require.Equal(t, checker.VerdictSafe, seeded(t, "redis/lua-release", p, 1).Verdict)
	p.StuckAfter = 40 * time.Second
	require.EqualError(t, p.Validate(), "stuck_after: 40s is not above retry and retry_jitter together, which are 40s: a client that sleeps between two tries would count as stuck")
	p.StuckAfter++
	require.NoError(t, p.Validate())
	// What is stuck is still found: a dead holder whose lock never expires.
	p = DefaultParams()
	p.Retry, p.RetryJitter = 40*time.Second, 0
	d, err := FindDesign("redis/setnx-no-ttl")
	require.NoError(t, err)
	kind, err := FindResource("plain")
	require.NoError(t, err)
	crash := sim.Fault{Kind: sim.Crash, On: []string{"client-1"}, Trigger: sim.Trigger{Before: sim.PlacePattern{Proc: "client-1", Section: 1, Phase: sim.PhaseWrite}}}
	p.Stagger = 100 * time.Millisecond
	r, err := NewRunner(Case{Design: d, Resource: kind, Params: p, Plan: sim.Plan{Faults: []sim.Fault{crash}}})
	require.NoError(t, err)
	defer r.Close()
	res, err := r.Run(1, sim.TraceOff)
	require.NoError(t, err)
	require.Equal(t, checker.VerdictStuck, res.Verdict)
}
