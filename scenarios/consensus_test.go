package scenarios

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/models"
	"locklab/sim"
)

// with returns a design whose options are changed.
func with(base *models.Design, change func(*models.Options)) *models.Design {
	d := *base
	d.Build = func(env *models.Env) models.System {
		change(&env.Options)
		return base.Build(env)
	}
	return &d
}

func pauseUntilSuccessor(t *testing.T) sim.Plan {
	return sim.Plan{Faults: []sim.Fault{{Kind: sim.Pause, On: []string{"client-1"}, Trigger: at(t, "client-1/section#1/write"),
		Until: sim.Milestone{Kind: sim.AcceptedWrite, Who: "client-2", N: 1}, AtMost: sim.Exactly(time.Minute)}}}
}

// TestConsensusLocksUnderPause: no lock survives Kleppmann's pause, however
// consistent the store behind it is; a fence does, and so does a store that
// compares the lock's key in the write's own transaction.
func TestConsensusLocksUnderPause(t *testing.T) {
	for _, c := range []struct {
		design, resource string
		nodes            int
		verdict          checker.Verdict
	}{
		{"etcd/lock", "plain", 3, checker.VerdictTwoWriters},
		{"etcd/lock", "fenced", 3, checker.VerdictFenced},
		{"etcd/lock", "fenced", 5, checker.VerdictFenced},
		{"etcd/lock-no-recheck", "fenced", 3, checker.VerdictFenced},
		{"etcd/txn-guard", "same-transaction", 3, checker.VerdictFenced},
		{"zookeeper/lock", "plain", 3, checker.VerdictTwoWriters},
		{"zookeeper/lock", "fenced", 5, checker.VerdictFenced},
		{"zookeeper/lock-herd", "fenced", 3, checker.VerdictFenced},
	} {
		d := with(design(t, c.design), func(o *models.Options) { o.Members = c.nodes })
		res := runSketch(t, d, resource(t, c.resource), func(p *Params) { p.Clients, p.Sections, p.TokenStart = 2, 1, 33 }, pauseUntilSuccessor(t))
		require.Equal(t, c.verdict, res.Verdict, "%s on %s", c.design, c.resource)
		require.Equal(t, checker.LockOverlap, res.Report.Lock, "%s on %s", c.design, c.resource)
		var tokens []int64
		for _, o := range res.History.Ops {
			if o.Kind == checker.Acquire {
				tokens = append(tokens, o.Token)
			}
		}
		require.Equal(t, []int64{33, 34}, tokens)
	}
}

// TestConsensusLocksAtPeace: without faults everybody gets the lock in turn,
// tokens grow and nothing is lost.
func TestConsensusLocksAtPeace(t *testing.T) {
	for _, d := range models.Designs() {
		if !replicated(d) {
			continue
		}
		kind := "fenced-reads"
		if d.Own != "" {
			kind = d.Own
		}
		for _, workload := range []Workload{Increment, Append} {
			res := runSketch(t, d, resource(t, kind), func(p *Params) { p.Workload = workload }, sim.Plan{})
			require.Empty(t, res.Report.Findings, d.Name)
			require.Equal(t, sim.EndDone, res.Ended, d.Name)
			if workload == Increment {
				require.Equal(t, []int64{9}, res.History.Final, d.Name)
			} else {
				require.Len(t, res.History.Final, 9, d.Name)
			}
		}
	}
}

func replicated(d *models.Design) bool {
	return len(d.Name) > 9 && (d.Name[:5] == "etcd/" || d.Name[:10] == "zookeeper/")
}

// TestRecheckMatters: client-2's lease dies while it waits behind client-1, and
// client-3 stands in line behind it. When client-1 goes, the wait of both is
// over; only the check of its own key tells client-2 that it is not next.
func TestRecheckMatters(t *testing.T) {
	starved := sim.Plan{Faults: []sim.Fault{{Kind: sim.Stall, On: []string{"client-2.renewer"}, For: sim.Exactly(time.Minute),
		Trigger: sim.Trigger{At: sim.Exactly(time.Second)}}}}
	change := func(p *Params) { p.Sections, p.Work = 1, 15*time.Second }
	res := runSketch(t, design(t, "etcd/lock-no-recheck"), resource(t, "plain"), change, starved)
	require.True(t, res.Report.Has(checker.Phantom))
	require.Equal(t, checker.VerdictTwoWriters, res.Verdict)
	require.Equal(t, checker.LockBroken, res.Report.Lock)

	for _, name := range []string{"etcd/lock", "zookeeper/lock", "zookeeper/lock-herd"} {
		res := runSketch(t, design(t, name), resource(t, "plain"), change, starved)
		require.Equal(t, checker.VerdictSafe, res.Verdict, name)
		require.Equal(t, checker.LockKept, res.Report.Lock, name)
	}
}

// TestStaleLessor: the leader's disk stalls. Before etcd's pull request 16822
// it went on acknowledging client-1's keepalives, of which the new leader knew
// nothing.
func TestStaleLessor(t *testing.T) {
	stalled := sim.Plan{Faults: []sim.Fault{{Kind: sim.FsyncStall, On: []string{"etcd-1"}, For: sim.Exactly(40 * time.Second),
		Trigger: sim.Trigger{At: sim.Exactly(2 * time.Second)}}}}
	change := func(p *Params) { p.Clients, p.Sections, p.Work, p.Stagger = 2, 1, 25*time.Second, 3*time.Second }
	fixed := design(t, "etcd/lock")
	stale := with(fixed, func(o *models.Options) { o.StaleLessor = true })
	res := runSketch(t, stale, resource(t, "plain"), change, stalled)
	require.True(t, res.Report.Has(checker.LeaseBroken), "%v", res.Report.Findings)
	require.Equal(t, checker.VerdictTwoWriters, res.Verdict)

	res = runSketch(t, fixed, resource(t, "plain"), change, stalled)
	require.Empty(t, res.Report.Findings)
}

// TestLeaderChangeRefillsLeases: a dead holder's lease gets its full TTL again
// from each new leader.
func TestLeaderChangeRefillsLeases(t *testing.T) {
	died := sim.Fault{Kind: sim.Crash, On: []string{"client-1"}, Trigger: at(t, "client-1/section#1/write")}
	change := func(p *Params) { p.Clients, p.Sections = 2, 1 }
	granted := func(plan sim.Plan) time.Duration {
		res := runSketch(t, design(t, "etcd/lock"), resource(t, "plain"), change, plan)
		require.Equal(t, checker.LockKept, res.Report.Lock)
		for _, o := range res.History.Ops {
			if o.Kind == checker.Acquire && o.Client == 1 {
				return time.Duration(o.Granted.At)
			}
		}
		return 0
	}
	calm := granted(sim.Plan{Faults: []sim.Fault{died}})
	require.InDelta(t, 10, calm.Seconds(), 0.5)
	leader := sim.Fault{Kind: sim.Crash, On: []string{"etcd-1"}, Restart: sim.Exactly(time.Second), Trigger: sim.Trigger{At: sim.Exactly(8 * time.Second)}}
	changed := granted(sim.Plan{Faults: []sim.Fault{died, leader}})
	require.InDelta(t, 8+1.5+10+1, changed.Seconds(), 1.5) // crash, election, TTL, and the election timeout that etcd adds
	// Every eight seconds another leader: the whole ensemble but one is paused
	// in turn, and nobody ever counts a lease down to its end.
	plan := sim.Plan{Faults: []sim.Fault{died}}
	for i := range 36 {
		plan.Faults = append(plan.Faults, sim.Fault{Kind: sim.Pause, On: []string{[]string{"etcd-1", "etcd-2", "etcd-3"}[i%3]},
			For: sim.Exactly(2500 * time.Millisecond), Trigger: sim.Trigger{At: sim.Exactly(time.Duration(3+3*i) * time.Second)}})
	}
	require.Greater(t, granted(plan), 100*time.Second)
}

// TestConnectionLossOnCreate: the reply to a create is lost. A mark in the
// node's name finds it again; without one the client queues behind a node of
// its own, for as long as its session lives.
func TestConnectionLossOnCreate(t *testing.T) {
	lost := sim.Plan{Faults: []sim.Fault{{Kind: sim.DropReply, On: []string{"client-1->zookeeper-1"}, Count: 1, Trigger: at(t, "client-1/section#1/acquire/op#5")}}}
	change := func(p *Params) { p.Clients, p.Sections, p.Horizon = 2, 1, 3*time.Minute }
	res := runSketch(t, design(t, "zookeeper/lock"), resource(t, "plain"), change, lost)
	require.Equal(t, checker.VerdictSafe, res.Verdict)
	require.True(t, res.Faults[0].Fired)

	plain := with(design(t, "zookeeper/lock"), func(o *models.Options) { o.PlainCreate = true })
	res = runSketch(t, plain, resource(t, "plain"), change, lost)
	require.Equal(t, checker.VerdictStuck, res.Verdict)
}

// TestTokensSurviveTheService: revisions grow over crashes, restarts and leader
// changes. Only an operator who puts old disks back can take them back.
func TestTokensSurviveTheService(t *testing.T) {
	var crashes sim.Plan
	for i, name := range []string{"etcd-1", "etcd-2", "etcd-3", "etcd-1"} {
		crashes.Faults = append(crashes.Faults, sim.Fault{Kind: sim.Crash, On: []string{name}, Mode: []string{"node", "process"}[i%2],
			Restart: sim.Exactly(1500 * time.Millisecond), Trigger: sim.Trigger{At: sim.Exactly(time.Duration(2+4*i) * time.Second)}})
	}
	all := sim.Plan{}
	rewound := sim.Plan{}
	for _, name := range []string{"etcd-1", "etcd-2", "etcd-3"} {
		when := sim.Trigger{At: sim.Exactly(6 * time.Second)}
		all.Faults = append(all.Faults, sim.Fault{Kind: sim.Crash, On: []string{name}, Mode: "node", Restart: sim.Exactly(time.Second), Trigger: when})
		rewound.Faults = append(rewound.Faults, sim.Fault{Kind: sim.RestoreSnapshot, On: []string{name}, By: sim.Exactly(4 * time.Second), Trigger: when})
	}
	for _, name := range []string{"etcd/lock", "zookeeper/lock"} {
		for _, plan := range []sim.Plan{crashes, all} {
			if name == "zookeeper/lock" {
				plan = renamed(plan)
			}
			res := runSketch(t, design(t, name), resource(t, "fenced-reads"), nil, plan)
			require.False(t, res.Report.Has(checker.TokenOrder), "%v", res.Report.Findings)
			require.Equal(t, checker.LockKept, res.Report.Lock, "%s: %v", name, res.Report.Findings)
		}
	}
	res := runSketch(t, design(t, "etcd/lock"), resource(t, "plain"), func(p *Params) { p.Sections, p.Stagger = 1, 4*time.Second }, rewound)
	require.True(t, res.Report.Has(checker.TokenOrder), "%v", res.Report.Findings)
}

// renamed is a plan against ZooKeeper instead of etcd.
func renamed(p sim.Plan) sim.Plan {
	out := sim.Plan{}
	for _, f := range p.Faults {
		f.On = []string{"zookeeper" + f.On[0][len("etcd"):]}
		out.Faults = append(out.Faults, f)
	}
	return out
}

// TestHerd: where everybody watches the owner, each release wakes all of them.
func TestHerd(t *testing.T) {
	messages := func(name string) int64 {
		res := runSketch(t, design(t, name), resource(t, "plain"), func(p *Params) { p.Clients, p.Sections, p.Work, p.Stagger = 12, 1, 100*time.Millisecond, 0 }, sim.Plan{})
		require.Empty(t, res.Report.Findings)
		return res.Events
	}
	queue, herd := messages("zookeeper/lock"), messages("zookeeper/lock-herd")
	require.Greater(t, herd, queue+queue/5)
}

// TestSingleFaultsAgainstFencedReads enumerates every way to place one fault of
// a ladder at the places of the clients, of the lock requests and of the
// storage: with a fence that reads raise too, none lets two owners write, and
// no lock breaks its promise.
func TestSingleFaultsAgainstFencedReads(t *testing.T) {
	for _, c := range []struct{ design, resource string }{
		{"etcd/lock", "fenced-reads"}, {"zookeeper/lock", "fenced-reads"}, {"etcd/txn-guard", "same-transaction"},
	} {
		t.Run(c.design, func(t *testing.T) {
			require.Zero(t, enumerate(t, c.design, c.resource, ladder))
		})
	}
	t.Run("plain", func(t *testing.T) { // where there is something to find, it is found
		if testing.Short() {
			t.Skip("a sample may miss it")
		}
		pauses := func(p sim.PlacePattern) []sim.Fault { return ladder(p)[:1] }
		require.Positive(t, enumerate(t, "etcd/lock", "plain", pauses))
	})
}

// enumerate places each fault that the ladder has for a place at every place,
// one in a run, and counts the runs in which two owners wrote.
func enumerate(t *testing.T, name, kind string, ladder func(sim.PlacePattern) []sim.Fault) int {
	p := DefaultParams()
	p.Clients, p.Sections, p.LatencyMin, p.LatencyMax, p.RetryJitter = 2, 2, time.Millisecond, time.Millisecond, 0
	p.Stagger, p.Horizon = 100*time.Millisecond, 3*time.Minute
	c := Case{Design: design(t, name), Resource: resource(t, kind), Params: p}
	places := placesOf(t, c)
	runs, fired, twoWriters := 0, 0, 0
	for _, place := range places {
		for _, f := range ladder(place) {
			f.Trigger = sim.Trigger{Before: place}
			if testing.Short() && runs%11 != 0 {
				runs++
				continue
			}
			c.Plan = sim.Plan{Faults: []sim.Fault{f}}
			r, err := NewRunner(c)
			require.NoError(t, err, "%+v", f)
			res, err := r.Run(1, sim.TraceOff)
			require.NoError(t, err)
			if res.Failure != nil {
				t.Fatalf("%s at %s: %v\n%s", f.Kind, place, res.Failure, res.Failure.Stack)
			}
			if res.Report.Has(checker.TwoWriters) {
				twoWriters++
				t.Logf("two writers: %+v: %v", f, res.Report.Findings)
			}
			require.NotEqual(t, checker.LockBroken, res.Report.Lock, "%+v: %v", f, res.Report.Findings)
			runs++
			if res.Faults[0].Fired {
				fired++
			}
			r.Close()
		}
	}
	t.Logf("%d places, %d executions, %d faults struck", len(places), runs, fired)
	require.Greater(t, len(places), 30)
	return twoWriters
}

// placesOf lists the places of the clients, of their requests to the lock
// servers and of the storage in a run without faults.
func placesOf(t *testing.T, c Case) []sim.PlacePattern {
	r, err := NewRunner(c)
	require.NoError(t, err)
	defer r.Close()
	var out []sim.PlacePattern
	r.OnPlace = func(p sim.Place) {
		name := r.world.PlaceName(p)
		if name[:7] == "client-" || name[:7] == "storage" {
			pattern, err := sim.ParsePlace(name)
			require.NoError(t, err)
			out = append(out, pattern)
		}
	}
	res, err := r.Run(1, sim.TraceRecord)
	require.NoError(t, err)
	handled := map[sim.ProcID]int32{} // what arrives at a server is what it numbers its places by
	procs := r.world.Processes()
	for _, e := range res.Trace {
		if e.Kind != sim.EventArrive || !r.rec.watches(procs[e.Proc]) {
			continue
		}
		handled[e.Proc]++
		if r.rec.clientOf(procs[e.Peer]) >= 0 { // not what servers say to each other
			out = append(out, sim.PlacePattern{Proc: procs[e.Proc].Name(), Phase: sim.PhaseRequest, Op: handled[e.Proc]})
		}
	}
	return out
}

// ladder lists the faults that can strike at a place.
func ladder(place sim.PlacePattern) []sim.Fault {
	who := place.Proc
	var out []sim.Fault
	for _, d := range []time.Duration{12 * time.Second, 1500 * time.Millisecond, 25 * time.Second} {
		length := sim.Exactly(d)
		out = append(out,
			sim.Fault{Kind: sim.Pause, On: []string{who}, For: length},
			sim.Fault{Kind: sim.Freeze, On: []string{who}, For: length},
			sim.Fault{Kind: sim.Freeze, On: []string{who}, For: length, Monotonic: "stops", Wall: "behind"},
			sim.Fault{Kind: sim.Partition, On: []string{who}, For: length},
			sim.Fault{Kind: sim.Partition, On: []string{who}, For: length, Mode: "hold"},
			sim.Fault{Kind: sim.Delay, On: []string{who}, By: length},
			sim.Fault{Kind: sim.Crash, On: []string{who}, Restart: length},
			sim.Fault{Kind: sim.ClockStep, On: []string{who}, By: length},
			sim.Fault{Kind: sim.FsyncStall, On: []string{who}, For: length},
		)
	}
	out = append(out,
		sim.Fault{Kind: sim.Crash, On: []string{who}},
		sim.Fault{Kind: sim.Crash, On: []string{who}, Mode: "node", Restart: sim.Exactly(time.Second)},
		sim.Fault{Kind: sim.DropRequest, On: []string{who}},
		sim.Fault{Kind: sim.DropReply, On: []string{who}},
		sim.Fault{Kind: sim.Cut, On: []string{who}},
		sim.Fault{Kind: sim.Cut, On: []string{who}, Mode: "silent"},
		sim.Fault{Kind: sim.ClockRate, On: []string{who}, Rate: -300_000_000, For: sim.Exactly(time.Minute)},
		sim.Fault{Kind: sim.ClockRate, On: []string{who}, Rate: 300_000_000, For: sim.Exactly(time.Minute)},
	)
	if place.Phase < sim.PhaseRequest {
		out = append(out, sim.Fault{Kind: sim.Stall, On: []string{who + ".renewer"}, For: sim.Exactly(25 * time.Second)},
			sim.Fault{Kind: sim.Stall, On: []string{who}, For: sim.Exactly(12 * time.Second)})
	}
	return out
}
