package scenarios

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/sim"
)

// shrinkCase is a case of the default parameters with a plan as YAML spells it.
func shrinkCase(t *testing.T, resource, plan string) Case {
	t.Helper()
	f, err := LoadPlanFile([]byte("scenario: t\ndesign: redis/lua-token\nresource: "+resource+"\nseed: 1\nplan:\n"+plan), "t.yaml")
	require.NoError(t, err)
	ds, err := PickDesigns([]string{f.Design})
	require.NoError(t, err)
	rs, err := PickResources([]string{f.Resource})
	require.NoError(t, err)
	return Case{Design: ds[0], Resource: rs[0], Params: f.Params, Plan: f.Plan}
}

const twoPauses = `
  - {fault: pause, on: client-1, before: client-1/section#1/write/op#1/before, for: 3*ttl}
  - {fault: pause, on: client-3, at: 50s, for: 1s}
`

func TestShrinkFindsTheThreshold(t *testing.T) {
	c := shrinkCase(t, "plain", twoPauses)
	s, err := Shrink(context.Background(), c, 1)
	require.NoError(t, err)
	require.Equal(t, "two-writers", s.File.Verdict)
	require.Len(t, s.File.Plan.Faults, 1)
	require.Equal(t, 2, s.File.Params.Clients)
	require.Equal(t, 1, s.File.Params.Sections)
	require.Equal(t, sim.PlacePattern{Proc: "client-1", Phase: sim.PhaseWrite}, s.File.Plan.Faults[0].Trigger.Before)

	require.Len(t, s.Thresholds, 1)
	th := s.Thresholds[0]
	require.Equal(t, "for", th.Field)
	require.Equal(t, int64(10*time.Millisecond), th.Enough-th.NotEnough, "told to a hundredth of a second")
	for v, want := range map[int64]string{th.Enough: "two-writers", th.NotEnough: "safe"} {
		small := Case{Design: c.Design, Resource: c.Resource, Params: s.File.Params, Plan: s.File.Plan}
		small.Plan.Faults = append([]sim.Fault(nil), small.Plan.Faults...)
		small.Plan.Faults[0].For = sim.Exactly(time.Duration(v))
		r, err := NewRunner(small)
		require.NoError(t, err)
		res, err := r.Run(1, sim.TraceOff)
		require.NoError(t, err)
		require.Equal(t, want, res.Verdict.String(), time.Duration(v))
		r.Close()
	}
}

func TestShrinkIsDeterministicAndAtItsEnd(t *testing.T) {
	for _, resource := range []string{"plain", "fenced", "fenced-reads", "versioned"} {
		c := shrinkCase(t, resource, twoPauses)
		first, err := Shrink(context.Background(), c, 1)
		require.NoError(t, err)
		again, err := Shrink(context.Background(), c, 1)
		require.NoError(t, err)
		require.Equal(t, MarshalPlanFile(first.File), MarshalPlanFile(again.File))
		require.Equal(t, first.Words(), again.Words())

		small := Case{Design: c.Design, Resource: c.Resource, Params: first.File.Params, Plan: first.File.Plan}
		twice, err := Shrink(context.Background(), small, 1)
		require.NoError(t, err)
		require.Equal(t, string(MarshalPlan(first.File.Plan)), string(MarshalPlan(twice.File.Plan)))
	}
}

// A fault that lasts until something happens gets a length, which can be
// searched.
func TestShrinkTurnsAnEndIntoALength(t *testing.T) {
	c := shrinkCase(t, "plain", "  - {fault: pause, on: client-1, before: client-1/section#1/write, until: client-2's first accepted write, at_most: 60s}\n")
	c.Params.Stagger = 100 * time.Millisecond // client-1 comes first
	s, err := Shrink(context.Background(), c, 1)
	require.NoError(t, err)
	require.Zero(t, s.File.Plan.Faults[0].Until)
	require.Positive(t, s.File.Plan.Faults[0].For.Fixed)
}

func TestShrinkStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Shrink(ctx, shrinkCase(t, "plain", twoPauses), 1)
	require.ErrorIs(t, err, context.Canceled)
}

func TestThresholdWords(t *testing.T) {
	for _, c := range []struct {
		want string
		t    Threshold
		f    sim.Fault
	}{
		{"a pause of 9.21s on client-1 is enough here, 9.2s is not", Threshold{Field: "for", Enough: 9.21e9, NotEnough: 9.2e9}, sim.Fault{Kind: sim.Pause, On: []string{"client-1"}}},
		{"a clock-step of -2s on redis-1 is enough here, -1.9s is not", Threshold{Field: "by", Enough: -2e9, NotEnough: -1.9e9}, sim.Fault{Kind: sim.ClockStep, On: []string{"redis-1"}}},
		{"a clock-rate of 5% on redis-1 is enough here, 4.99% is not", Threshold{Field: "rate", Enough: 50_000_000, NotEnough: 49_900_000}, sim.Fault{Kind: sim.ClockRate, On: []string{"redis-1"}}},
		{"a crash of redis-1 for 1ms is enough here, and nothing smaller was tried", Threshold{Field: "restart", Enough: 1e6}, sim.Fault{Kind: sim.Crash, On: []string{"redis-1"}}},
	} {
		require.Equal(t, c.want, c.t.words(&c.f))
	}
}

func TestAgainst(t *testing.T) {
	c := shrinkCase(t, "plain", "  - {fault: pause, on: client-1, before: client-1/section#1/write, for: 3*ttl}\n")
	ds, err := PickDesigns([]string{"redis/lua-token"})
	require.NoError(t, err)
	rows, err := Against(context.Background(), c, 1, ds, nil)
	require.NoError(t, err)
	saves := map[string]bool{}
	for _, r := range rows {
		saves[r.Resource] = r.Saves
		require.Equal(t, r.Resource == "plain", r.Same)
		require.Empty(t, r.NotApplicable)
	}
	require.False(t, saves["plain"])
	require.True(t, saves["fenced-reads"])

	c.Plan.Faults = append(c.Plan.Faults, sim.Fault{Kind: sim.Crash, On: []string{"redis-1"}, Restart: sim.Exactly(time.Second)})
	ds, err = PickDesigns([]string{"none"})
	require.NoError(t, err)
	rows, err = Against(context.Background(), c, 1, ds, nil)
	require.NoError(t, err)
	require.Contains(t, rows[0].NotApplicable, `no process is called "redis-1"`)

	c.Plan.Faults = c.Plan.Faults[:1]
	c.Plan.Faults[0].Trigger.Before.Section = 77
	rows, err = Against(context.Background(), c, 1, ds, nil)
	require.NoError(t, err)
	require.Equal(t, []int{1}, rows[0].Unfired)
	require.False(t, rows[0].Saves)
}
