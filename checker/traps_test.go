package checker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "locklab/checker"
)

// The traps of the catalogue: histories that a careless checker gets wrong.

func check(t *testing.T, want, text string) Report {
	t.Helper()
	return verdictCase{story: text, want: want}.run(t)
}

// An acquire that timed out but took effect is an orphan, not a tenure that
// the client holds: no overlap, no broken promise. Its cost is unavailability.
func TestTrapOrphanGrant(t *testing.T) {
	check(t, "| kept safe", `lease 10; tokens; final 1
		A acquire 0..0..? granted=0 expired=10
		B acquire 1 no section=1
		B acquire 11 token=34 section=1
		B write 12 =1
		B release 13`)
	check(t, "stuck | kept stuck", `session; stuck 30; end 60
		A acquire 0..0..? granted=0
		B acquire 1..?`)
}

// A job shorter than the clock skew may run twice, one after the other. That
// does not violate exclusion; it is double-apply only where the workload says once.
func TestTrapJobTwiceInARow(t *testing.T) {
	job := `
		A acquire 0 expired=2 until=1
		A append 0.5 =7
		B acquire 3 expired=5 until=4
		B append 3.5 =7`
	check(t, "| kept safe", `nothing; list; final 7 7`+job)
	check(t, "double-apply | kept lost-update", `nothing; list; once; final 7 7`+job)
}

// A renewal re-creates a lapsed key after another owner came and went. At
// every instant there is one holder, yet the sections interleave.
func TestTrapRecreatedKey(t *testing.T) {
	check(t, "overlap stale-write two-writers lost-update | overlap two-writers", `lease 10; final 1
		A acquire 0 expired=10 learned=30
		A read 1 =0
		B acquire 11
		B read 12 =0
		B write 13 =1
		B release 14
		A renew 20
		A write 21 =1`)
}

// Two clients one after the other on the same pooled session are two tenures.
func TestTrapPooledSession(t *testing.T) {
	check(t, "overlap lease-broken over-capacity | broken safe", `session
		A acquire 0 until=4 lost=5 sessionlost=5
		B acquire 2 until=3`)
	check(t, "| kept safe", `session
		A acquire 0
		A release 1
		B acquire 2
		B release 3`)
}

// The same client acquiring again begins a new tenure with a new token.
func TestTrapSameClientAgain(t *testing.T) {
	check(t, "stale-write two-writers | kept two-writers", `lease 10; tokens; final 1
		A acquire 0 token=33 expired=10 learned=10
		A write 1..15..? =1
		A acquire 11 token=34
		A write 12 =2
		A release 16`)
	check(t, "token-order | broken safe", `lease 10; tokens
		A acquire 0 token=33
		A release 1
		A acquire 2 token=33
		A release 3`)
}

// One tenure: write 1 times out, write 2 is acknowledged, then write 1 lands.
// There is a single owner, tokens are equal, and yet an update is lost.
func TestTrapOwnLateWrite(t *testing.T) {
	r := check(t, "lost-update | kept lost-update", `lease 10; tokens; final 1
		A acquire 0 token=33
		A write 1..5..? =1
		A write 2 =2
		A release 6`)
	require.Equal(t, "A (token 33) wrote 1 at 5.000s, over its own later write of 2", r.Findings[0].Text)
	check(t, "| kept safe", `lease 10; tokens; final 2
		A acquire 0 token=33
		A write 1..1.5..? =1
		A write 2 =2
		A release 6`)
}

// The same seen from outside: the final value shows that write 1 was made.
func TestTrapOwnLateWriteFromOutside(t *testing.T) {
	check(t, "lost-update | kept lost-update", `lease 10; blackbox; final 1
		A acquire 0
		A write 1..? =1
		A write 2 =2
		A release 6`)
}

// A stale write before the new owner's first operation is harmless for a blind
// write and harmful for read-modify-write.
func TestTrapStaleBeforeFirstOperation(t *testing.T) {
	check(t, "overlap | overlap safe", `lease 10; final 2
		A acquire 0 expired=10
		B acquire 11
		A write 12 =1
		B write 13 =2
		A release 14
		B release 15`)
	check(t, "overlap stale-write two-writers lost-update | overlap two-writers", `lease 10; final 1
		A acquire 0 expired=10
		A read 1 =0
		B acquire 11
		B read 11.5 =0
		A write 12 =1
		B write 13 =1
		A release 14
		B release 15`)
	// ... and harmless again when the new owner reads what was written.
	check(t, "overlap | overlap safe", `lease 10; final 2
		A acquire 0 expired=10
		A read 1 =0
		B acquire 11
		A write 12 =1
		B read 12.5 =1
		B write 13 =2
		A release 14
		B release 15`)
}

// Redlock nodes half a percent fast grant again inside the declared drift
// allowance (1 % of the TTL plus 2 ms): no promise is broken.
func TestTrapDriftAllowance(t *testing.T) {
	fast := `
		A acquire 0 expired=9.95 until=9.95
		B acquire 9.95 until=12`
	check(t, "| kept safe", `lease 10 0.102`+fast)
	check(t, "lease-broken | broken safe", `lease 10`+fast)
}

// A refused operation of an old tenure is refused; of the newest, self-rejected.
func TestTrapWhoWasRefused(t *testing.T) {
	check(t, "overlap refused | overlap fenced", `lease 10; tokens
		A acquire 0 token=33 expired=10 learned=13
		B acquire 11 token=34
		A write 12 =1 no
		B release 14`)
	check(t, "overlap self-rejected | overlap stuck", `lease 10; tokens
		A acquire 0 token=33 expired=10 learned=13
		B acquire 11 token=34
		B write 12 =1 no
		B release 14`)
}

// Section 3 of the catalogue: fencing alone does not save read-modify-write.
func TestTrapFencedReadModifyWrite(t *testing.T) {
	r := check(t, "overlap stale-write two-writers lost-update | overlap two-writers", `lease 10; tokens; final 1
		client-1 acquire 0 token=33 expired=10
		client-1 read 1 =0
		client-2 acquire 11 token=34
		client-2 read 11.5 =0
		client-1 write 12.004 =1
		client-2 write 13 =1
		client-1 release 14
		client-2 release 15`)
	require.Equal(t, "client-2 (token 34) wrote 1 at 13.000s, computed from what it had read at 11.500s, "+
		"before client-1 (token 33) wrote 1 at 12.004s", r.Findings[2].Text)
}

// A resource that tells a client "done" and did nothing must not be believed,
// also where the history is omniscient and holds no decision.
func TestAcknowledgedButNeverDecided(t *testing.T) {
	h := &History{Clients: []string{"client-1"}, Omniscient: true, Data: List, Final: []int64{}, End: 100, Ops: []Op{{
		ID: 1, Section: 1, Kind: Append, Outcome: OK, Value: 7,
		Invoke: Instant{At: 10, Step: 1}, Return: Instant{At: 20, Step: 2},
		Effect: Never, Granted: Never, Ended: Never, BelievesUntil: Never, SessionLost: Never,
	}}}
	require.True(t, has(Check(h), WriteLost))
	h.Final = []int64{7}
	require.Empty(t, Check(h).Findings)
}

func has(r Report, kind FindingKind) bool { return r.Has(kind) }
