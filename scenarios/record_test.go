package scenarios

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/sim"
)

// runYAML runs a scenario text with seed 1.
func runYAML(t *testing.T, yaml, designName, resourceName string) *Result {
	t.Helper()
	s, err := Load([]byte(yaml), "test.yaml")
	require.NoError(t, err)
	r, err := NewRunner(Case{Scenario: s, Design: design(t, designName), Resource: resource(t, resourceName), Params: s.Params, Plan: s.Plan})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	res, err := r.Run(1, sim.TraceHash)
	require.NoError(t, err)
	require.NoError(t, checker.CrossCheck(res.Report, checker.Porcupine(res.History, checker.PorcupineTimeout)))
	return res
}

// A client that is stopped between deciding to release and sending its release
// still believes.
func TestBeliefEndsWithTheReleaseThatWasSent(t *testing.T) {
	res := runYAML(t, `
clients: 2
sections: 1
params: {stagger: 100ms}
plan:
  - {fault: pause, on: client-1, before: client-1/section#1/release, until: client-2's first accepted write, at_most: 60s}
`, "redis/lua-release", "plain")
	require.True(t, res.Report.Has(checker.Overlap))
	require.Equal(t, checker.LockOverlap, res.Report.Lock)
	require.Equal(t, checker.VerdictSafe, res.Verdict, "client-1 had written before client-2 began")
}

// A lease counts from when its request was sent, not from when the client
// first wanted it.
func TestPromiseCountsFromTheRequestThatWasSent(t *testing.T) {
	res := runYAML(t, `
clients: 2
sections: 1
params: {stagger: 6s, work: 20s}
plan:
  - {fault: pause, on: client-1, before: client-1/section#1/acquire/op#3, for: 5s}
  - {fault: crash, on: redis-1, at: 12s, restart: 500ms}
`, "redis/lua-release", "plain")
	require.True(t, res.Report.Has(checker.LeaseBroken), "sent at 5s, promised until 15s, passed on at 12.7s")
}

// Of a client that waits, the history holds the try that was granted.
func TestAcquireTakesEffectWithItsLastTry(t *testing.T) {
	res := runYAML(t, `
clients: 2
sections: 1
params: {stagger: 100ms}
`, "redis/lua-release", "plain")
	for _, o := range res.History.Ops {
		if o.Kind == checker.Acquire {
			require.Equal(t, o.Granted.At, o.Effect.At)
			require.True(t, o.Sent.Before(o.Effect) && o.Invoke.Before(o.Sent))
		}
	}
}

// A pause that had not passed the TTL when the run was cut off is no witness.
func TestWitnessNeedsThePauseToHaveLasted(t *testing.T) {
	const yaml = `
clients: 2
sections: 1
params: {stagger: 100ms, horizon: %s}
plan:
  - {fault: pause, on: client-1, before: client-1/section#1/write}
witnesses: [client-1 was paused past its ttl while it held the lock]
`
	res := runYAML(t, fmt.Sprintf(yaml, "5s"), "redis/lua-release", "plain")
	require.Equal(t, sim.EndHorizon, res.Ended)
	require.Equal(t, checker.VerdictVacuous, res.Verdict)
	res = runYAML(t, fmt.Sprintf(yaml, "1m"), "redis/lua-release", "plain")
	require.True(t, res.Witnesses[0].Occurred)
}

// A renewal that takes the lock anew starts no tenure, but the history says
// how long the server had the lock again.
func TestRecreatedLock(t *testing.T) {
	s, err := Find("redis/watchdog-recreates")
	require.NoError(t, err)
	r, err := NewRunner(Case{Scenario: s, Design: design(t, "redis/watchdog-recreate"), Resource: resource(t, "plain"), Params: s.Params, Plan: s.Plan})
	require.NoError(t, err)
	defer r.Close()
	res, err := r.Run(1, sim.TraceOff)
	require.NoError(t, err)
	var recreated []checker.Op
	for _, o := range res.History.Ops {
		if o.Recreated {
			recreated = append(recreated, o)
		}
	}
	require.Len(t, recreated, 1)
	o := recreated[0]
	tenure := res.History.Op(o.Tenure)
	require.Equal(t, checker.Renew, o.Kind)
	require.Equal(t, checker.EndExpired, tenure.End)
	require.True(t, tenure.Ended.Before(o.Effect) && o.Effect.Before(o.Ended))
	require.Equal(t, checker.EndReleased, o.End)
}
