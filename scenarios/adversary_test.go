package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"locklab/models"
	"locklab/sim"
)

func allKinds(t require.TestingT) []sim.FaultKind {
	kinds, err := PickFaults(append([]string{"all"}, "restore-snapshot", "evict", "overwrite"))
	require.NoError(t, err)
	return kinds
}

// The adversary is fixed for good: whoever cites a seed means this plan.
func TestDrawnPlansStayTheSame(t *testing.T) {
	p := DefaultParams()
	a := NewAdversary(&p, []sim.FaultKind{sim.Pause, sim.ClockStep, sim.Partition})
	require.Equal(t, goldenPlans, string(MarshalPlan(DrawPlan(1, a)))+string(MarshalPlan(DrawPlan(2, a))))
}

// Every plan that can be drawn is valid, is made of the asked kinds, can be
// written and read, and is drawn again from the same seed.
func TestDrawnPlansAreValid(t *testing.T) {
	all := allKinds(t)
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultParams()
		p.Clients, p.Sections = rapid.IntRange(1, 5).Draw(t, "clients"), rapid.IntRange(1, 4).Draw(t, "sections")
		p.TTL = time.Duration(rapid.Int64Range(1, int64(time.Hour/time.Millisecond)).Draw(t, "ttl ms")) * time.Millisecond
		kinds := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, len(all), rapid.ID).Draw(t, "kinds")
		a := NewAdversary(&p, kinds)
		seed := rapid.Uint64().Draw(t, "seed")
		plan := DrawPlan(seed, a)
		require.Equal(t, plan, DrawPlan(seed, a))
		require.LessOrEqual(t, len(plan.Faults), 4)
		require.NotEmpty(t, plan.Faults)
		for _, f := range plan.Faults {
			require.NoError(t, f.Validate())
			require.Contains(t, kinds, f.Kind)
		}
		file := MarshalPlanFile(&PlanFile{Scenario: "s", Design: "d", Resource: "r", Params: p, Plan: plan})
		back, err := LoadPlanFile(file, "p.yaml")
		require.NoError(t, err)
		require.Equal(t, string(MarshalPlan(plan)), string(MarshalPlan(back.Plan)))
	})
}

// What the documentation says of the mixtures, roughly.
func TestDrawnMixture(t *testing.T) {
	p := DefaultParams()
	a := NewAdversary(&p, []sim.FaultKind{sim.Pause, sim.Crash})
	const runs = 4000
	var faults, aboutTTL, lasting, beforeWrite, places, both, pausesAlone int
	for seed := range uint64(runs) {
		kinds := map[sim.FaultKind]bool{}
		for _, f := range DrawPlan(seed, a).Faults {
			faults++
			kinds[f.Kind] = true
			if !f.For.IsZero() {
				lasting++
				if d := f.For.Fixed; d >= 9*time.Second && d <= 11*time.Second {
					aboutTTL++
				}
			}
			if strings.HasPrefix(f.Trigger.Before.Proc+f.Trigger.After.Proc, "client-") {
				places++
				if f.Trigger.Before.Phase == sim.PhaseWrite {
					beforeWrite++
				}
			}
		}
		if len(kinds) == 2 {
			both++
		} else if kinds[sim.Pause] {
			pausesAlone++
		}
	}
	share := func(a, b int) float64 { return float64(a) / float64(b) }
	require.InDelta(t, 1.875, share(faults, runs), 0.05, "1/2*1 + 1/4*2 + 1/8*3 + 1/8*4")
	require.InDelta(t, 0.5, share(places, faults), 0.03)
	require.InDelta(t, 5.0/16, share(beforeWrite, places), 0.03)
	require.InDelta(t, 0.25, share(aboutTTL, lasting), 0.04)
	require.Positive(t, both)
	require.Greater(t, pausesAlone, runs/4, "swarm: in many runs only one kind is on")
}

// Cast gives every role to a process of the design, and what cannot befall a
// design is left out.
func TestCast(t *testing.T) {
	place := func(s string) sim.PlacePattern { p, err := sim.ParsePlace(s); require.NoError(t, err); return p }
	plan := sim.Plan{Faults: []sim.Fault{
		{Kind: sim.Pause, On: []string{"client-2"}, For: sim.Exactly(time.Second), Trigger: sim.Trigger{Before: place("lock-4/request#3")}},
		{Kind: sim.Partition, On: []string{"client-1"}, From: []string{"lock"}, For: sim.Exactly(time.Second)},
		{Kind: sim.Partition, On: []string{"lock-1"}, From: []string{"lock"}, For: sim.Exactly(time.Second)},
		{Kind: sim.DropReply, On: []string{"client-1->lock-2"}},
		{Kind: sim.Stall, On: []string{"client-1.renewer"}, For: sim.Exactly(time.Second)},
		{Kind: sim.Crash, On: []string{"storage"}, Restart: sim.Exactly(time.Second)},
		{Kind: sim.Duplicate, On: []string{"lock-1->lock-2"}},
	}}
	cast := func(design *models.Design, resource *models.ResourceKind) []string {
		r, err := NewRunner(Case{Design: design, Resource: resource, Params: DefaultParams()})
		require.NoError(t, err)
		defer r.Close()
		got := r.Cast(plan)
		r.follow(got)
		_, err = r.Run(1, sim.TraceOff)
		require.NoError(t, err)
		var out []string
		for _, f := range got.Faults {
			out = append(out, strings.TrimSpace(f.Kind.String()+" "+strings.Join(f.On, ",")+" "+strings.Join(f.From, ",")+" "+f.Trigger.Before.String()))
		}
		return out
	}
	require.Equal(t, []string{
		"pause client-2  redis-1/request#3", "partition client-1 redis-1", "drop-reply client-1->redis-1",
		"stall client-1.renewer", "crash storage",
	}, cast(design(t, "redis/lua-token"), resource(t, "plain")), "of one server, lock-4 is the first, and it cannot be cut off from itself")
	require.Equal(t, []string{"stall client-1.renewer", "crash storage"}, cast(design(t, "none"), resource(t, "plain")))
	xact, same := xactDesign()
	require.Equal(t, []string{
		"pause client-2  db/request#3", "partition client-1 db", "drop-reply client-1->db", "stall client-1.renewer", "crash db",
	}, cast(xact, same), "where the data lives in the lock server, that is the storage")
}

// A scenario may name roles too, so that one plan speaks of many designs.
func TestScenariosMayNameRoles(t *testing.T) {
	res := runYAML(t, `
clients: 2
sections: 1
plan:
  - {fault: crash, on: lock-1, at: 12s, restart: 500ms}
`, "redis/lua-release", "plain")
	require.Equal(t, []string{"redis-1"}, res.Plan.Faults[0].On)
	s, err := Load([]byte("plan:\n  - {fault: crash, on: lock-1, at: 1s}\n"), "x.yaml")
	require.NoError(t, err)
	_, err = ChooseCases(s, []string{"none"}, []string{"plain"})
	require.ErrorContains(t, err, `no process is called "lock-1"`)
}

func TestPickFaults(t *testing.T) {
	all, err := PickFaults([]string{"all"})
	require.NoError(t, err)
	require.NotContains(t, all, sim.Evict)
	require.Contains(t, all, sim.Failover)
	some, err := PickFaults([]string{"clock-*", "evict"})
	require.NoError(t, err)
	require.Equal(t, []sim.FaultKind{sim.ClockStep, sim.ClockRate, sim.ClockOffset, sim.Evict}, some)
	_, err = PickFaults([]string{"puase"})
	require.ErrorContains(t, err, `unknown fault "puase"; did you mean "pause"?`)
}

const goldenPlans = `plan:
  - fault: clock-step
    on: client-1
    after: client-1/section#2/acquire
    by: -17.94s
  - fault: clock-step
    on: lock-3
    after: client-2/section#1/acquire
    by: -5.97s
plan:
  - fault: clock-step
    on: lock-2
    at: 9.628s
    by: 10.1s
`
