package models_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/models"
	"locklab/scenarios"
	"locklab/sim"
)

func find(t *testing.T, name string) *models.Design {
	t.Helper()
	d, err := scenarios.FindDesign(name)
	require.NoError(t, err)
	return d
}

// lead runs a design on plain data, with client-go's numbers and followers that
// look every 100 ms.
func lead(t *testing.T, d *models.Design, seed uint64, change func(*scenarios.Params), faults ...sim.Fault) *scenarios.Result {
	t.Helper()
	p := scenarios.DefaultParams()
	settings, err := scenarios.ParseSet("preset=client-go,retry=100ms,retry_jitter=0s,clients=2,sections=1,writes=100,work=200ms,workload=append,stagger=100ms")
	require.NoError(t, err)
	require.NoError(t, p.Apply(settings))
	if change != nil {
		change(&p)
	}
	plain, err := scenarios.FindResource("plain")
	require.NoError(t, err)
	r, err := scenarios.NewRunner(scenarios.Case{Design: d, Resource: plain, Params: p, Plan: sim.Plan{Faults: faults}})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	res, err := r.Run(seed, sim.TraceHash)
	require.NoError(t, err)
	require.Nil(t, res.Failure)
	require.NoError(t, checker.CrossCheck(res.Report, checker.Porcupine(res.History, time.Second)))
	return res
}

func after(d time.Duration) sim.Trigger { return sim.Trigger{At: sim.Exactly(d)} }

// cutOff parts a client from the lock servers for a minute.
func cutOff(client string, from time.Duration) sim.Fault {
	return sim.Fault{Kind: sim.Partition, On: []string{"lock"}, From: []string{client}, Trigger: after(from), For: sim.Exactly(time.Minute)}
}

// ops lists a client's operations of a kind.
func ops(res *scenarios.Result, client int32, kind checker.Kind) (out []checker.Op) {
	for _, o := range res.History.Ops {
		if o.Client == client && o.Kind == kind {
			out = append(out, o)
		}
	}
	return out
}

// elected is a client's first acquire that succeeded.
func elected(t *testing.T, res *scenarios.Result, client int32) checker.Op {
	t.Helper()
	all := ops(res, client, checker.Acquire)
	i := slices.IndexFunc(all, func(o checker.Op) bool { return o.Outcome == checker.OK })
	require.GreaterOrEqual(t, i, 0, "client-%d was never elected", client+1)
	return all[i]
}

func leaders() []string {
	return []string{"redis/leader", "postgres/leader", "etcd/leader", "k8s/lease"}
}

// Without faults leaders follow each other and nothing is lost, whatever the
// work; a term longer than the lease is one term.
func TestLeadersAtPeace(t *testing.T) {
	for _, name := range leaders() {
		for _, workload := range []scenarios.Workload{scenarios.Increment, scenarios.Append} {
			res := lead(t, find(t, name), 1, func(p *scenarios.Params) {
				p.Clients, p.Sections, p.Writes, p.Work, p.Workload, p.ReleaseOnCancel = 3, 2, 4, 5*time.Second, workload, true
			})
			require.Empty(t, res.Report.Findings, name)
			require.Equal(t, sim.EndDone, res.Ended, name)
			if workload == scenarios.Append {
				require.Len(t, res.History.Final, 3*2*4, name)
			} else {
				require.Equal(t, []int64{3 * 2 * 4}, res.History.Final, name)
			}
		}
	}
}

// The first renewal follows the election at once, each other RetryPeriod after
// the answer to the last (wait.Until waits after its function has returned).
func TestK8sRenewalsFollowTheReply(t *testing.T) {
	res := lead(t, find(t, "k8s/lease"), 1, func(p *scenarios.Params) { p.Writes = 50 })
	renewals := ops(res, 0, checker.Renew)
	require.Equal(t, elected(t, res, 0).Return.At, renewals[0].Sent.At)
	for i, o := range renewals[1:4] {
		require.Equal(t, renewals[i].Return.At.Add(2*time.Second), o.Sent.At)
	}
}

// A leader that cannot renew leads for RetryPeriod + RenewDeadline after the
// last answer, by its own monotonic clock, and not a nanosecond longer. In its
// first round it has not waited for RetryPeriod.
func TestK8sLeaderStepsDown(t *testing.T) {
	for _, c := range []struct {
		cut, want time.Duration
		slow      bool
	}{{3 * time.Second, 12 * time.Second, false}, {9 * time.Second, 12 * time.Second, false}, {3 * time.Second, 15 * time.Second, true},
		{16 * time.Millisecond, 10 * time.Second, false}} {
		faults := []sim.Fault{cutOff("client-1", c.cut)}
		if c.slow { // four fifths: 12 s are 15
			faults = append(faults, sim.Fault{Kind: sim.ClockRate, On: []string{"client-1"}, Rate: -200_000_000})
		}
		res := lead(t, find(t, "k8s/lease"), 1, func(p *scenarios.Params) { p.LatencyMin, p.LatencyMax = time.Millisecond, time.Millisecond }, faults...)
		last := elected(t, res, 0).Return
		for _, o := range ops(res, 0, checker.Renew) {
			if o.Outcome == checker.OK {
				last = o.Return
			}
		}
		require.Equal(t, checker.LossLearned, elected(t, res, 0).Loss)
		require.Equal(t, last.At.Add(c.want), elected(t, res, 0).BelievesUntil.At, "cut off at %s", c.cut)
	}
}

// A follower takes over LeaseDuration after it has seen the record change, not
// after it changed, and looks no more often than it retries.
func TestK8sFollowerCountsFromItsOwnObservation(t *testing.T) {
	for _, retry := range []time.Duration{100 * time.Millisecond, 4 * time.Second} {
		res := lead(t, find(t, "k8s/lease"), 1, func(p *scenarios.Params) {
			p.Retry, p.LatencyMin, p.LatencyMax = retry, time.Millisecond, time.Millisecond
		}, sim.Fault{Kind: sim.Crash, On: []string{"client-1"}, Trigger: after(3 * time.Second)})
		renewed := ops(res, 0, checker.Renew)
		changed := renewed[len(renewed)-1].Effect.At
		took := time.Duration(elected(t, res, 1).Granted.At - changed)
		require.Greater(t, took, 15*time.Second)
		require.LessOrEqual(t, took, 15*time.Second+2*retry+50*time.Millisecond)
		if retry > time.Second { // it looks at 0.1, 4.1, 8.1 ..: sees the change of the second second at 4.1, and comes at 20.1
			require.InDelta(t, 20.1-2, took.Seconds(), 0.1)
		}
	}
}

// Wall clocks may be as wrong as they like: nobody reads another's.
func TestK8sIgnoresTimestamps(t *testing.T) {
	base := find(t, "k8s/lease")
	for _, by := range []time.Duration{-24 * time.Hour, time.Hour} {
		wrong := sim.Fault{Kind: sim.ClockOffset, On: []string{"client-2"}, By: sim.Exactly(by)}
		require.Empty(t, lead(t, base, 1, nil, wrong).Report.Findings)
	}
	mutant := models.MutantByRenewTime(*base)
	require.Empty(t, lead(t, mutant, 1, nil).Report.Findings)
	res := lead(t, mutant, 1, nil, sim.Fault{Kind: sim.ClockOffset, On: []string{"client-2"}, By: sim.Exactly(time.Hour)})
	require.True(t, res.Report.Has(checker.LeaseBroken))
	require.True(t, res.Report.Has(checker.Overlap))
	require.Equal(t, checker.VerdictTwoWriters, res.Verdict)
}

// A leader whose work is not told acts on, though it has learned of its loss.
func TestLeaderMustStepDown(t *testing.T) {
	base := find(t, "k8s/lease")
	cut := cutOff("client-1", 3*time.Second)
	require.Empty(t, lead(t, base, 1, nil, cut).Report.Findings)
	res := lead(t, models.MutantNeverStepsDown(*base), 1, nil, cut)
	require.Equal(t, checker.VerdictTwoWriters, res.Verdict)
	require.Equal(t, checker.LockKept, res.Report.Lock, "the lock did what it had promised")
}

// A leader that was paused finds another in its place when it wakes up, and
// goes on until its deadline all the same: that somebody else leads is one more
// try that failed.
func TestK8sFormerLeaderActsUntilItsDeadline(t *testing.T) {
	res := lead(t, find(t, "k8s/lease"), 1, func(p *scenarios.Params) { p.Work = 500 * time.Millisecond },
		sim.Fault{Kind: sim.Pause, On: []string{"client-1"}, Trigger: after(3 * time.Second), For: sim.Exactly(20 * time.Second)})
	require.Equal(t, checker.VerdictTwoWriters, res.Verdict)
	require.Equal(t, checker.LockOverlap, res.Report.Lock)
	believed := time.Duration(elected(t, res, 0).BelievesUntil.At) - 23*time.Second
	require.InDelta(t, 10, believed.Seconds(), 0.01, "a whole RenewDeadline after it woke up")
	stale := 0
	for _, o := range ops(res, 0, checker.Append) {
		if o.Decision == checker.Accepted && o.Effect.At > elected(t, res, 1).Granted.At {
			stale++
		}
	}
	require.InDelta(t, 20, stale, 1)
}

// Who stops leading in order makes room at once; without ReleaseOnCancel the
// others wait for the lease to run out.
func TestK8sReleases(t *testing.T) {
	for _, c := range []struct {
		release   bool
		least, at time.Duration
	}{{true, 0, 200 * time.Millisecond}, {false, 13 * time.Second, 16 * time.Second}} {
		res := lead(t, find(t, "k8s/lease"), 1, func(p *scenarios.Params) { p.Writes, p.ReleaseOnCancel = 25, c.release })
		require.Empty(t, res.Report.Findings)
		waited := time.Duration(elected(t, res, 1).Granted.At - elected(t, res, 0).BelievesUntil.At)
		require.GreaterOrEqual(t, waited, c.least)
		require.LessOrEqual(t, waited, c.at)
	}
}

// A leader that cannot renew, and is to release its lease, tries that first and
// tells its work afterwards: a call's timeout later.
func TestK8sReleasesBeforeItStopsItsWork(t *testing.T) {
	for release, acts := range map[bool]time.Duration{false: 12 * time.Second, true: 17 * time.Second} {
		res := lead(t, find(t, "k8s/lease"), 1, func(p *scenarios.Params) { p.ReleaseOnCancel = release }, cutOff("client-1", 3*time.Second))
		renewals := ops(res, 0, checker.Renew)
		answered := slices.IndexFunc(renewals, func(o checker.Op) bool { return o.Outcome != checker.OK }) - 1
		appends := ops(res, 0, checker.Append)
		last := time.Duration(appends[len(appends)-1].Invoke.At - renewals[answered].Return.At)
		require.InDelta(t, acts.Seconds(), last.Seconds(), 0.25, "release_on_cancel %t", release)
		require.Equal(t, checker.LockKept, res.Report.Lock)
		require.Equal(t, release, res.Report.Has(checker.TwoWriters))
	}
}

// The clocks' rates may differ by LeaseDuration / (RetryPeriod + RenewDeadline),
// 15 s / 12 s = 1.25, and not by the 1.5 that the package comment approximates.
// The boundary is found by bisection, to 1 %.
func TestK8sBearsAQuarterOfDrift(t *testing.T) {
	base := find(t, "k8s/lease")
	fast := func(seed uint64, percent int64, change func(*scenarios.Params)) *scenarios.Result {
		return lead(t, base, seed, change, cutOff("client-1", 3*time.Second), sim.Fault{Kind: sim.ClockRate, On: []string{"client-2"}, Rate: percent * 10_000_000})
	}
	twoLead := func(percent int64) bool {
		res := fast(1, percent, nil)
		both := res.Report.Has(checker.Overlap)
		require.Equal(t, both, res.Report.Has(checker.LeaseBroken), "what client-go's numbers allow for is what the design declares as its drift")
		return both
	}
	inside, outside := int64(1), int64(100)
	require.False(t, twoLead(inside))
	require.True(t, twoLead(outside))
	for outside-inside > 1 {
		if middle := (inside + outside) / 2; twoLead(middle) {
			outside = middle
		} else {
			inside = middle
		}
	}
	const theory = 1.25
	require.InEpsilon(t, theory, 1+float64(outside)/100, 0.05)
	require.GreaterOrEqual(t, 1+float64(outside)/100, theory, "below it there is one leader, always")

	// The same with client-go's own followers, which look every 2 to 4.4 s: never
	// below the theory, and always once both looks cannot make up for it.
	published := func(p *scenarios.Params) { p.Retry, p.RetryJitter = 2*time.Second, 2400*time.Millisecond }
	for seed := uint64(1); seed <= 20; seed++ {
		require.Empty(t, fast(seed, 24, published).Report.Findings)
		require.True(t, fast(seed, 100, published).Report.Has(checker.Overlap))
	}
}

// An answer that takes longer than LeaseDuration - RetryPeriod - RenewDeadline,
// 3 s, lets two lead: the leader counts from it, the followers from what it
// answers.
func TestK8sSlowAnswers(t *testing.T) {
	for by, both := range map[time.Duration]bool{2900 * time.Millisecond: false, 3300 * time.Millisecond: true} {
		res := lead(t, find(t, "k8s/lease"), 1, nil, cutOff("client-1", 9*time.Second),
			sim.Fault{Kind: sim.Delay, On: []string{"lock-1->client-1"}, Trigger: after(3 * time.Second), By: sim.Exactly(by), Count: 1})
		require.Equal(t, both, res.Report.Has(checker.Overlap), "an answer after %s", by)
		require.False(t, res.Report.Has(checker.LeaseBroken), "the lease was kept: the leader believed too long")
	}
}

// Between the two commands of a heartbeat the key may come to be another's,
// which EXPIRE then extends. A script cannot be interrupted.
func TestRedisLeaderExtendsAnothersKey(t *testing.T) {
	between, err := sim.ParsePlace("client-1/section#1/renew/op#8")
	require.NoError(t, err)
	pause := sim.Fault{Kind: sim.Pause, On: []string{"client-1"}, Trigger: sim.Trigger{Before: between}, For: sim.Exactly(20 * time.Second)}
	res := lead(t, find(t, "redis/leader"), 1, nil, pause)
	require.True(t, res.Report.Has(checker.ForeignRelease), "%v", res.Report.Findings)
	require.Equal(t, checker.LockBroken, res.Report.Lock)

	res = lead(t, find(t, "redis/watchdog"), 1, nil, pause)
	require.False(t, res.Report.Has(checker.ForeignRelease), "%v", res.Report.Findings)
}

// A leader of Redis that gets no answer to its heartbeat steps down, long
// before its lease ends.
func TestRedisLeaderStepsDown(t *testing.T) {
	res := lead(t, find(t, "redis/leader"), 1, func(p *scenarios.Params) { p.CallTimeout = time.Second }, cutOff("client-1", 3*time.Second))
	require.Empty(t, res.Report.Findings)
	require.InDelta(t, 5, time.Duration(elected(t, res, 0).BelievesUntil.At).Seconds(), 0.1)
}

// Each heartbeat of postgres/leader adds a grant; who resigns gives all of them
// back, or nobody follows.
func TestPostgresLeaderResigns(t *testing.T) {
	base := find(t, "postgres/leader")
	term := func(p *scenarios.Params) { p.Writes, p.Horizon = 50, 5*time.Minute }
	res := lead(t, base, 1, term)
	require.Empty(t, res.Report.Findings)
	require.Greater(t, len(ops(res, 0, checker.Renew)), 3)
	waited := time.Duration(elected(t, res, 1).Granted.At - elected(t, res, 0).BelievesUntil.At)
	require.Less(t, waited, 200*time.Millisecond)

	res = lead(t, models.MutantUnlocksOnce(*base), 1, func(p *scenarios.Params) { term(p); p.Sections = 2; p.Think = 4 * time.Minute })
	require.True(t, res.Report.Has(checker.Stuck), "%v", res.Report.Findings)
}

// Election.Campaign does not look again for its own key when it has waited, as
// the mutex does since pull request 11408: a candidate whose lease died in the
// queue counts itself elected.
func TestEtcdCampaignHasNoRecheck(t *testing.T) {
	starved := sim.Fault{Kind: sim.Stall, On: []string{"client-2.renewer"}, For: sim.Exactly(time.Minute), Trigger: after(time.Second)}
	change := func(p *scenarios.Params) { p.Clients, p.Writes, p.Work = 3, 10, 2*time.Second }
	res := lead(t, find(t, "etcd/leader"), 1, change, starved)
	require.True(t, res.Report.Has(checker.Phantom))
	require.Equal(t, checker.VerdictTwoWriters, res.Verdict)
	require.Empty(t, lead(t, find(t, "etcd/lock"), 1, change, starved).Report.Findings)
}

// A session in which a resignation was lost finds no old key by it: the next
// term has a token of its own.
func TestEtcdLeaderTokensGrow(t *testing.T) {
	lost := sim.Fault{Kind: sim.DropReply, On: []string{"client-1->lock-1"}, For: sim.Exactly(2 * time.Second), Trigger: after(1900 * time.Millisecond)}
	res := lead(t, find(t, "etcd/leader"), 1, func(p *scenarios.Params) { p.Sections, p.Writes, p.CallTimeout = 3, 10, time.Second }, lost)
	require.False(t, res.Report.Has(checker.TokenOrder))
	require.Equal(t, checker.VerdictSafe, res.Verdict)
}
