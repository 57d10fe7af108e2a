package scenarios

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/models"
	"locklab/sim"
)

// mutateRedlock returns a Redlock that is built with other options than it
// declares.
func mutateRedlock(t *testing.T, change func(o *models.Options)) *models.Design {
	base := design(t, "redlock")
	d := *base
	d.Name = "mutant"
	d.Build = func(env *models.Env) models.System {
		other := &models.Env{World: env.World, Options: env.Options, Rec: env.Rec}
		change(&other.Options)
		return base.Build(other)
	}
	return &d
}

// cutOff drops what a client sends to some nodes for a while.
func cutOff(client string, d time.Duration, nodes ...string) []sim.Fault {
	var out []sim.Fault
	for _, n := range nodes {
		out = append(out, sim.Fault{Kind: sim.DropRequest, On: []string{client + "->" + n}, For: sim.Exactly(d)})
	}
	return out
}

func TestRedlockMutantsAreCaught(t *testing.T) {
	for _, m := range []struct {
		name   string
		mutant *models.Design
		change func(*Params)
		faults []sim.Fault
		want   checker.FindingKind
	}{
		{"is content with two of five", mutateRedlock(t, func(o *models.Options) { o.Quorum = 2 }), nil,
			cutOff("client-1", 5*time.Second, "redis-3", "redis-4", "redis-5"), checker.Phantom},
		{"gives half the lease that it promises", mutateRedlock(t, func(o *models.Options) { o.TTL /= 2 }),
			func(p *Params) { p.Work = 6 * time.Second }, nil, checker.LeaseBroken},
	} {
		t.Run(m.name, func(t *testing.T) {
			plan := sim.Plan{Faults: m.faults}
			res := runSketch(t, m.mutant, resource(t, "plain"), m.change, plan)
			require.True(t, res.Report.Has(m.want), "findings: %v", res.Report.Findings)
			require.Equal(t, checker.LockBroken, res.Report.Lock)
			require.Equal(t, checker.VerdictTwoWriters, res.Verdict)

			good := runSketch(t, design(t, "redlock"), resource(t, "plain"), m.change, plan)
			require.Equal(t, checker.LockKept, good.Report.Lock, "the sound one: %v", good.Report.Findings)
			require.Equal(t, checker.VerdictSafe, good.Verdict)
		})
	}
}

// Nodes half a percent fast end a lease early. Within the allowance for drift
// that is no broken promise: the client's own deadline is earlier still.
func TestRedlockDriftWithinTheAllowance(t *testing.T) {
	var fast []sim.Fault
	for i := 1; i <= 5; i++ {
		fast = append(fast, sim.Fault{Kind: sim.ClockRate, On: []string{"redis-" + strconv.Itoa(i)}, Rate: 5_000_000})
	}
	longWork := func(p *Params) { p.Clients, p.Sections, p.Work = 2, 1, 11*time.Second }
	res := runSketch(t, design(t, "redlock"), resource(t, "plain"), longWork, sim.Plan{Faults: fast})
	require.Equal(t, checker.LockOverlap, res.Report.Lock, "findings: %v", res.Report.Findings)
	require.Less(t, time.Duration(res.History.Ops[0].Ended.At), 10*time.Second)

	res = runSketch(t, design(t, "redlock"), resource(t, "plain"), func(p *Params) {
		longWork(p)
		p.DriftFactor, p.DriftMargin = 0, 0
	}, sim.Plan{Faults: fast})
	require.True(t, res.Report.Has(checker.SpuriousLoss), "it lost the lock 48 ms too early: %v", res.Report.Findings)
}

// What comes after redis/majority-down: nodes that are back after the ttl let
// the work go on, also empty; back within it and empty, they grant the lock to
// somebody else.
func TestRedlockMajorityComesBack(t *testing.T) {
	crash := func(restart time.Duration) (out []sim.Fault) {
		for _, n := range []string{"redis-3", "redis-4", "redis-5"} {
			out = append(out, sim.Fault{Kind: sim.Crash, On: []string{n}, Restart: sim.Exactly(restart), Trigger: at(t, "client-1/section#1/work")})
		}
		return out
	}
	for _, c := range []struct {
		design  string
		restart time.Duration
		verdict checker.Verdict
		lock    checker.LockAnswer
	}{
		{"redlock", 20 * time.Second, checker.VerdictSafe, checker.LockKept},
		{"redlock", 100 * time.Millisecond, checker.VerdictTwoWriters, checker.LockBroken},
		{"redlock/delayed-restart", 100 * time.Millisecond, checker.VerdictSafe, checker.LockKept},
	} {
		res := runSketch(t, design(t, c.design), resource(t, "plain"), nil, sim.Plan{Faults: crash(c.restart)})
		require.Equal(t, c.verdict, res.Verdict, "%s back after %s: %v", c.design, c.restart, res.Report.Findings)
		require.Equal(t, c.lock, res.Report.Lock)
		if c.verdict == checker.VerdictSafe {
			require.Equal(t, []int64{9}, res.History.Final)
		}
	}
}

// Without stepped clocks and lost memory Redlock keeps its promise, whatever
// the network and the clients do. This is as much about locklab: a grant or an
// end that its observer got wrong would show here.
func TestRedlockKeepsItsPromise(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 40
	}
	for _, name := range []string{"redlock", "redlock/extend", "redlock/delayed-restart"} {
		for round := range rounds {
			rng := rand.New(rand.NewPCG(uint64(round), 1))
			plan := sim.Plan{Faults: randomTrouble(rng, name == "redlock/delayed-restart")}
			p := DefaultParams()
			p.Work, p.Stagger = time.Duration(rng.IntN(12_000))*time.Millisecond, time.Duration(rng.IntN(200))*time.Millisecond
			p.NodeTimeout = []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, time.Second}[rng.IntN(3)]
			r, err := NewRunner(Case{Design: design(t, name), Resource: resource(t, "plain"), Params: p, Plan: plan})
			require.NoError(t, err)
			res, err := r.Run(uint64(round), sim.TraceOff)
			require.NoError(t, err)
			require.Nil(t, res.Failure)
			require.NotEqual(t, checker.LockBroken, res.Report.Lock, "%s, round %d: %v\n%s", name, round, res.Report.Findings, MarshalPlan(plan))
			if round < 40 {
				require.NoError(t, checker.CrossCheck(res.Report, checker.Porcupine(res.History, time.Second)), "%s, round %d", name, round)
			}
			r.Close()
		}
	}
}

// randomTrouble is a handful of faults, of which none steps a clock. crashes
// are only for nodes that may restart.
func randomTrouble(rng *rand.Rand, crashes bool) []sim.Fault {
	some := func(most time.Duration) sim.Span { return sim.Exactly(1 + time.Duration(rng.Int64N(int64(most)))) }
	client := func() string { return "client-" + strconv.Itoa(1+rng.IntN(3)) }
	node := func() string { return "redis-" + strconv.Itoa(1+rng.IntN(5)) }
	var out []sim.Fault
	for range 1 + rng.IntN(8) {
		f := sim.Fault{Trigger: sim.Trigger{At: some(40 * time.Second)}}
		switch rng.IntN(7) {
		case 0:
			f.Kind, f.On, f.For = sim.Pause, []string{client()}, some(15*time.Second)
		case 1:
			f.Kind, f.On, f.By, f.Count = sim.Delay, []string{client() + "->" + node()}, some(12*time.Second), 1+rng.IntN(3)
		case 2:
			f.Kind, f.On, f.For = sim.DropRequest, []string{client() + "->" + node()}, some(10*time.Second)
		case 3:
			f.Kind, f.On, f.For = sim.DropReply, []string{client() + "->" + node()}, some(10*time.Second)
		case 4:
			f.Kind, f.On, f.For, f.Mode = sim.Partition, []string{node(), node()}, some(10*time.Second), []string{"drop", "hold"}[rng.IntN(2)]
		case 5:
			f.Kind, f.On, f.Restart = sim.Crash, []string{client()}, some(5*time.Second)
		case 6:
			f.Kind, f.On = sim.Pause, []string{node()}
			f.For = some(5 * time.Second)
			if crashes {
				f.Kind, f.For, f.Restart = sim.Crash, sim.Span{}, some(5*time.Second)
			}
		}
		out = append(out, f)
	}
	return out
}
