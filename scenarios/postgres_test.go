package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/models"
	"locklab/sim"
)

// database lists the designs of the PostgreSQL family.
func database() []*models.Design {
	var out []*models.Design
	for _, d := range models.Designs() {
		if strings.HasPrefix(d.Name, "postgres/") || strings.HasPrefix(d.Name, "queue/") || d.Name == "local-mutex" {
			out = append(out, d)
		}
	}
	return out
}

// runPairs runs every pair of the family that makes sense.
func runPairs(t *testing.T, change func(*Params), seed uint64, see func(t *testing.T, res *Result)) {
	for _, d := range database() {
		for _, r := range models.Resources() {
			if d.Serves(r) != nil {
				continue
			}
			t.Run(d.Name+" on "+r.Name, func(t *testing.T) {
				p := DefaultParams()
				change(&p)
				runner, err := NewRunner(Case{Design: d, Resource: r, Params: p})
				require.NoError(t, err)
				defer runner.Close()
				res, err := runner.Run(seed, sim.TraceHash)
				require.NoError(t, err)
				require.Nil(t, res.Failure, "%+v", res.Failure)
				see(t, res)
			})
		}
	}
}

func TestPostgresWithoutFaults(t *testing.T) {
	for _, w := range []Workload{Increment, Write, Append} {
		t.Run(string(w), func(t *testing.T) {
			runPairs(t, func(p *Params) { p.Workload, p.ClientsPerNode = w, p.Clients }, 1, func(t *testing.T, res *Result) {
				if res.Design.Name == "postgres/advisory-session-pgbouncer" {
					return
				}
				require.Equal(t, sim.EndDone, res.Ended)
				require.NoError(t, checker.CrossCheck(res.Report, checker.Porcupine(res.History, time.Second)))
				require.Equal(t, checker.LockKept, res.Report.Lock, "%v", res.Report.Findings)
				require.Equal(t, checker.VerdictSafe, res.Verdict, "%v", res.Report.Findings)
				switch {
				case res.Design.Jobs || w == Append:
					require.Len(t, res.History.Final, 9)
				case w == Increment:
					require.Equal(t, []int64{9}, res.History.Final)
				}
			})
		})
	}
}

// faultOf returns one fault before a place.
func faultOf(t *testing.T, before string, f sim.Fault) sim.Plan {
	f.Trigger = at(t, before)
	return sim.Plan{Faults: []sim.Fault{f}}
}

func runPostgres(t *testing.T, d, r string, change func(*Params), plan sim.Plan) *Result {
	t.Helper()
	return runSketch(t, design(t, d), resource(t, r), change, plan)
}

func pause(t *testing.T) sim.Plan {
	return faultOf(t, "client-1/section#1/write", sim.Fault{Kind: sim.Pause, On: []string{"client-1"}, For: sim.Exactly(20 * time.Second)})
}

func TestLocalMutexIsRightForOneMachineOnly(t *testing.T) {
	res := runPostgres(t, "local-mutex", "plain", func(p *Params) { p.ClientsPerNode = 3; p.Stagger = 0 }, sim.Plan{})
	require.Equal(t, checker.VerdictSafe, res.Verdict)
	res = runPostgres(t, "local-mutex", "plain", func(p *Params) { p.ClientsPerNode = 2; p.Stagger = 0 }, sim.Plan{})
	require.Equal(t, checker.VerdictTwoWriters, res.Verdict)
	// A process that dies leaves no mutex behind.
	crash := faultOf(t, "client-1/section#1/write", sim.Fault{Kind: sim.Crash, On: []string{"client-1"}})
	res = runPostgres(t, "local-mutex", "plain", func(p *Params) { p.ClientsPerNode = 3 }, crash)
	require.Equal(t, checker.VerdictSafe, res.Verdict)
	require.Equal(t, []int64{6}, res.History.Final)
}

// (*) Through a pooler in transaction mode two clients get the lock at once,
// with no fault at all.
func TestPgBouncerGrantsTwice(t *testing.T) {
	res := runPostgres(t, "postgres/advisory-session-pgbouncer", "plain", nil, sim.Plan{})
	require.Equal(t, checker.VerdictTwoWriters, res.Verdict)
	require.Equal(t, checker.LockBroken, res.Report.Lock)
}

func TestPauseAcrossPostgresDesigns(t *testing.T) {
	for _, c := range []struct {
		design, resource string
		verdict          checker.Verdict
		lock             checker.LockAnswer
	}{
		{"postgres/advisory-session", "plain", checker.VerdictSafe, checker.LockKept},
		{"postgres/advisory-session-monitored", "plain", checker.VerdictSafe, checker.LockKept},
		{"postgres/advisory-xact", "plain", checker.VerdictSafe, checker.LockKept},
		{"postgres/advisory-xact", "same-transaction", checker.VerdictSafe, checker.LockKept},
		{"postgres/lease-table", "plain", checker.VerdictTwoWriters, checker.LockOverlap},
		{"postgres/lease-table", "same-transaction", checker.VerdictFenced, checker.LockOverlap},
		{"postgres/lease-table-client-clock", "plain", checker.VerdictTwoWriters, checker.LockOverlap},
		{"postgres/lease-table-token", "fenced", checker.VerdictFenced, checker.LockOverlap},
		{"postgres/lease-table-token", "same-transaction", checker.VerdictFenced, checker.LockOverlap},
		{"postgres/optimistic", "same-transaction", checker.VerdictSafe, checker.LockKept},
		{"postgres/unique-index", "same-transaction", checker.VerdictSafe, checker.LockKept},
		{"postgres/serializable", "same-transaction", checker.VerdictSafe, checker.LockKept},
		{"postgres/skip-locked", "plain", checker.VerdictSafe, checker.LockKept},
		{"postgres/skip-locked", "same-transaction", checker.VerdictSafe, checker.LockKept},
		{"postgres/skip-locked-reaper", "plain", checker.VerdictLostUpdate, checker.LockKept},
		{"postgres/skip-locked-reaper", "same-transaction", checker.VerdictFenced, checker.LockKept},
		{"postgres/idempotency-key", "same-transaction", checker.VerdictSafe, checker.LockKept},
		{"queue/partitioned", "plain", checker.VerdictTwoWriters, checker.LockOverlap},
		{"queue/partitioned", "same-transaction", checker.VerdictTwoWriters, checker.LockOverlap},
		{"queue/partitioned-generation", "plain", checker.VerdictTwoWriters, checker.LockOverlap},
		{"queue/partitioned-generation", "fenced", checker.VerdictFenced, checker.LockOverlap},
		{"queue/partitioned-generation", "same-transaction", checker.VerdictFenced, checker.LockOverlap},
	} {
		t.Run(c.design+" on "+c.resource, func(t *testing.T) {
			more := func(p *Params) {
				if design(t, c.design).Jobs { // somebody must still look for jobs when the lease has run out
					p.Sections = 12
				}
			}
			res := runPostgres(t, c.design, c.resource, more, pause(t))
			require.Equal(t, c.verdict.String(), res.Verdict.String(), "%v", explain(res))
			require.Equal(t, c.lock, res.Report.Lock, "%v", explain(res))
		})
	}
}

// explain writes the findings of a run.
func explain(res *Result) string {
	s := ""
	for _, f := range res.Report.Findings {
		s += fmt.Sprintf("%v at %v by %v, operations %v\n", f.Kind, f.At, f.Clients, f.Ops)
	}
	return s
}

// holdWrite holds client-1's messages to a server from its first write on.
func holdWrite(t *testing.T, to string) sim.Plan {
	return faultOf(t, "client-1/section#1/write", sim.Fault{Kind: sim.Delay, On: []string{"client-1->" + to}, For: sim.Exactly(5 * time.Second)})
}

// The abandoned session's FIN follows the delayed bytes, so nothing of its
// transaction commits; a write on another connection arrives all the same.
func TestDelayedWriteAcrossPostgresDesigns(t *testing.T) {
	single := func(p *Params) { p.Sections = 1 }
	res := runPostgres(t, "postgres/advisory-session", "plain", single, holdWrite(t, "storage"))
	require.Equal(t, checker.VerdictTwoWriters, res.Verdict, "%v", explain(res))
	res = runPostgres(t, "postgres/advisory-xact", "same-transaction", single, holdWrite(t, "postgres-1"))
	require.Equal(t, checker.VerdictSafe, res.Verdict, "%v", explain(res))
	require.Equal(t, []int64{2}, res.History.Final)
	res = runPostgres(t, "postgres/lease-table", "same-transaction", single, holdWrite(t, "postgres-1"))
	require.NotEqual(t, checker.VerdictTwoWriters, res.Verdict, "%v", explain(res))
	for _, d := range []string{"postgres/idempotency-key", "postgres/skip-locked", "postgres/optimistic", "postgres/unique-index", "postgres/serializable"} {
		res = runPostgres(t, d, "same-transaction", single, holdWrite(t, "postgres-1"))
		require.Equal(t, checker.VerdictSafe, res.Verdict, "%s: %v", d, explain(res))
	}
}

// (*) Advisory locks are gone after a crash: the lock did not keep its promise.
func TestAdvisoryLockDiesWithItsServer(t *testing.T) {
	crash := faultOf(t, "client-1/section#1/write", sim.Fault{Kind: sim.Crash, On: []string{"postgres-1"}, Restart: sim.Exactly(100 * time.Millisecond)})
	slow := func(p *Params) { p.Writes = 5 }
	res := runPostgres(t, "postgres/advisory-session", "plain", slow, crash)
	require.Equal(t, checker.VerdictTwoWriters, res.Verdict)
	require.Equal(t, checker.LockBroken, res.Report.Lock)
	// The monitor notices before it can do much harm; the reconnecting driver never does.
	quick := func(p *Params) { p.Writes = 5; p.Renew = 200 * time.Millisecond }
	res = runPostgres(t, "postgres/advisory-session-monitored", "plain", quick, crash)
	require.Equal(t, checker.VerdictSafe, res.Verdict, "%v", explain(res))
	res = runPostgres(t, "postgres/advisory-session-reconnect", "plain", quick, crash)
	require.Equal(t, checker.VerdictTwoWriters, res.Verdict)
	// The transaction dies with the server, and all that was written in it.
	res = runPostgres(t, "postgres/advisory-xact", "same-transaction", slow, crash)
	require.Equal(t, checker.VerdictSafe, res.Verdict, "%v", explain(res))
	// A lease is a row.
	res = runPostgres(t, "postgres/lease-table", "plain", slow, crash)
	require.Equal(t, checker.VerdictSafe, res.Verdict, "%v", explain(res))
	require.Equal(t, checker.LockKept, res.Report.Lock, "%v", explain(res))
}

// A primary that lives on untold while its standby is promoted goes on taking
// writes, and they are lost; with a synchronous standby it waits for it in vain.
func TestTwoPrimaries(t *testing.T) {
	failover := faultOf(t, "client-1/section#1/write", sim.Fault{Kind: sim.Failover, On: []string{"postgres-1"}})
	res := runPostgres(t, "postgres/lease-table", "same-transaction", func(p *Params) { p.Standby = StandbyAsync }, failover)
	require.True(t, res.Report.Has(checker.WriteLost), "%v", explain(res))
	res = runPostgres(t, "postgres/lease-table", "same-transaction", func(p *Params) { p.Standby = StandbySync }, failover)
	require.False(t, res.Report.Has(checker.WriteLost), "%v", explain(res))
}

// (*) A failover takes every advisory lock along, and the leases that were not
// replicated.
func TestAdvisoryLockIsNotReplicated(t *testing.T) {
	failover := faultOf(t, "client-1/section#1/write", sim.Fault{Kind: sim.Failover, On: []string{"postgres-1"}, Mode: "demoted"})
	for _, standby := range []StandbyKind{StandbyAsync, StandbySync} {
		with := func(p *Params) { p.Standby = standby; p.Writes = 5 }
		res := runPostgres(t, "postgres/advisory-session", "plain", with, failover)
		require.Equal(t, checker.VerdictTwoWriters, res.Verdict, "%v", explain(res))
		require.Equal(t, checker.LockBroken, res.Report.Lock)
		res = runPostgres(t, "postgres/lease-table", "plain", with, failover)
		require.Equal(t, checker.VerdictSafe, res.Verdict, "%v", explain(res))
		res = runPostgres(t, "postgres/advisory-xact", "same-transaction", with, failover)
		require.Equal(t, checker.VerdictSafe, res.Verdict, "%v", explain(res))
	}
	without, err := NewRunner(Case{Design: design(t, "postgres/lease-table"), Resource: resource(t, "plain"), Params: DefaultParams(), Plan: failover})
	require.ErrorContains(t, err, "standby")
	require.Nil(t, without)
}

// A promise ends with the session when the network has ended it: an overlap,
// and no broken promise.
func TestAdvisoryLockAndTheNetwork(t *testing.T) {
	reset := faultOf(t, "client-1/section#1/write", sim.Fault{Kind: sim.Cut, On: []string{"client-1->postgres-1"}})
	slow := func(p *Params) { p.Writes = 5 }
	res := runPostgres(t, "postgres/advisory-session", "plain", slow, reset)
	require.Equal(t, checker.LockOverlap, res.Report.Lock, "%v", explain(res))
	require.Equal(t, checker.VerdictTwoWriters, res.Verdict)
	res = runPostgres(t, "postgres/advisory-session-monitored", "plain", func(p *Params) { p.Writes = 5; p.Renew = 100 * time.Millisecond }, reset)
	require.Equal(t, checker.VerdictSafe, res.Verdict, "%v", explain(res))

	// Behind a silent cut the server waits for its keepalive: 7200 s and 9 probes 75 s apart.
	silent := faultOf(t, "client-1/section#1/write", sim.Fault{Kind: sim.Cut, On: []string{"client-1->postgres-1"}, Mode: "silent"})
	long := func(p *Params) { p.Horizon, p.Retry = 3*time.Hour, time.Minute }
	res = runPostgres(t, "postgres/advisory-session", "plain", long, silent)
	require.Equal(t, checker.VerdictStuck, res.Verdict, "%v", explain(res))
	require.Equal(t, []int64{9}, res.History.Final)
	lost := res.History.Ops[0].SessionLost
	require.True(t, lost.Known())
	require.InDelta(t, 7200+9*75, time.Duration(lost.At).Seconds(), 80)

	res = runPostgres(t, "postgres/advisory-session", "plain", func(p *Params) { p.TCPKeepalive = 3 * time.Second }, silent)
	require.Equal(t, checker.VerdictSafe, res.Verdict, "%v", explain(res))

	// A frozen machine answers no probe, and what it believes goes on.
	freeze := faultOf(t, "client-1/section#1/write", sim.Fault{Kind: sim.Freeze, On: []string{"client-1"}, For: sim.Exactly(time.Minute)})
	res = runPostgres(t, "postgres/advisory-session", "plain", func(p *Params) { p.TCPKeepalive = 3 * time.Second }, freeze)
	require.Equal(t, checker.VerdictTwoWriters, res.Verdict, "%v", explain(res))
	require.Equal(t, checker.LockOverlap, res.Report.Lock)
}

// A paused client's transaction is ended by the server where it is told to: a
// promise that the server breaks.
func TestIdleInTransactionTimeoutBreaksTheLock(t *testing.T) {
	idle := func(p *Params) { p.IdleInTransactionTimeout = 5 * time.Second }
	res := runPostgres(t, "postgres/advisory-xact", "plain", idle, pause(t))
	require.Equal(t, checker.VerdictTwoWriters, res.Verdict, "%v", explain(res))
	require.Equal(t, checker.LockBroken, res.Report.Lock)
	res = runPostgres(t, "postgres/advisory-xact", "same-transaction", idle, pause(t))
	require.Equal(t, checker.VerdictSafe, res.Verdict, "%v", explain(res))
}

// With synchronous_commit = off the last moments before a crash are lost; with
// a synchronous standby nothing is, even when the primary never comes back.
func TestSynchronousCommit(t *testing.T) {
	crash := faultOf(t, "client-1/section#2/read", sim.Fault{Kind: sim.Crash, On: []string{"postgres-1"}, Restart: sim.Exactly(time.Millisecond)})
	brief := func(p *Params) { p.Clients, p.Think, p.Work = 1, 10*time.Millisecond, 10*time.Millisecond }
	res := runPostgres(t, "postgres/advisory-xact", "same-transaction", brief, crash)
	require.Equal(t, checker.VerdictSafe, res.Verdict, "%v", explain(res))
	res = runPostgres(t, "postgres/advisory-xact", "same-transaction", func(p *Params) { brief(p); p.SynchronousCommit = CommitOff }, crash)
	require.True(t, res.Report.Has(checker.WriteLost), "%v", explain(res))
}

// Chaos: whatever happens, the model neither panics nor hangs, the two ways of
// judging agree, and a run repeats.
func TestPostgresChaos(t *testing.T) {
	places := []string{"client-1/section#1/write", "client-2/section#1/acquire", "client-1/section#2/release", "client-3/section#1/work"}
	for _, place := range places {
		for i, f := range []sim.Fault{
			{Kind: sim.Crash, On: []string{"postgres-1"}, Restart: sim.Exactly(2 * time.Second)},
			{Kind: sim.Crash, On: []string{"postgres-1"}, Mode: "node", Restart: sim.Exactly(2 * time.Second)},
			{Kind: sim.Pause, On: []string{"postgres-1"}, For: sim.Exactly(5 * time.Second)},
			{Kind: sim.FsyncStall, On: []string{"postgres-1"}, For: sim.Exactly(5 * time.Second)},
			{Kind: sim.Partition, On: []string{"postgres-1"}, For: sim.Exactly(20 * time.Second)},
			{Kind: sim.DropReply, On: []string{"client-1->postgres-1"}},
			{Kind: sim.Crash, On: []string{"client-1"}, Restart: sim.Exactly(time.Second)},
			{Kind: sim.ClockStep, On: []string{"postgres-1"}, By: sim.Exactly(8 * time.Second)},
			{Kind: sim.Failover, On: []string{"postgres-1"}},
		} {
			for _, d := range database() {
				if !strings.HasPrefix(d.Name, "postgres/") {
					continue
				}
				for _, r := range models.Resources() {
					if d.Serves(r) != nil || r.Name != "plain" && r.Name != "same-transaction" {
						continue
					}
					p := DefaultParams()
					if f.Kind == sim.Failover || i%2 == 0 {
						p.Standby = []StandbyKind{StandbyAsync, StandbySync}[i/2%2]
					}
					runner, err := NewRunner(Case{Design: d, Resource: r, Params: p, Plan: faultOf(t, place, f)})
					require.NoError(t, err)
					hashes := [2]uint64{}
					for k := range hashes {
						res, err := runner.Run(7, sim.TraceHash)
						require.NoError(t, err)
						require.Nil(t, res.Failure, "%s on %s, %v before %s: %+v", d.Name, r.Name, f.Kind, place, res.Failure)
						hashes[k] = res.Hash
						require.NoError(t, checker.CrossCheck(res.Report, checker.Porcupine(res.History, time.Second)),
							"%s on %s, %v before %s", d.Name, r.Name, f.Kind, place)
						if d.Own == "same-transaction" || r.Name == "same-transaction" && d.Name == "postgres/advisory-xact" {
							require.NotEqual(t, checker.VerdictTwoWriters, res.Verdict, "%s, %v before %s: %s", d.Name, f.Kind, place, explain(res))
							if f.Kind != sim.Failover { // which may lose what was acknowledged
								require.NotEqual(t, checker.VerdictLostUpdate, res.Verdict, "%s, %v before %s: %s", d.Name, f.Kind, place, explain(res))
							}
						}
					}
					require.Equal(t, hashes[0], hashes[1])
					runner.Close()
				}
			}
		}
	}
}
