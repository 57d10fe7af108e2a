package example

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"locklab/models"
	"locklab/scenarios"
	"locklab/scenarios/locktest"
)

// fastClocks is what no lease is built against: a server whose clock runs up
// to half again as fast ends it early, whoever wrote it.
var fastClocks = []string{"clock-rate"}

// patient counts a run as stuck only after five TTLs: a crashed store is down
// for up to two, and then a crashed client's lease has to run out.
func patient(p *scenarios.Params) { p.StuckAfter = 5 * p.TTL }

// The five steps.

func step1() locktest.Lock {
	return locktest.Lock{Name: "step-1", Client: newNaive, Server: newStore, Promise: models.SessionPromise, Params: patient}
}

func step2() locktest.Lock {
	return locktest.Lock{Name: "step-2", Client: newExpiring, Server: newStore, Promise: models.LeasePromise,
		Except: fastClocks, Params: patient}
}

func step3() locktest.Lock {
	l := step2()
	l.Name, l.Client = "step-3", newOwned
	return l
}

func step4() locktest.Lock {
	l := step3()
	l.Name, l.Tokens, l.Resource = "step-4", models.OrderedTokens, "fenced"
	return l
}

func step5() locktest.Lock {
	l := step4()
	l.Name, l.Resource = "step-5", "fenced-reads"
	return l
}

// breaks finds how a lock is broken and requires a finding.
func breaks(t *testing.T, l locktest.Lock, finding string) *locktest.Broken {
	t.Helper()
	b, err := locktest.Find(l, 5000)
	require.NoError(t, err)
	require.NotNil(t, b, "%s holds", l.Name)
	t.Logf("%s: %v\n%s", l.Name, b.Found, b.Story)
	require.True(t, strings.Contains(strings.ToLower(b.Story), finding+":"), "the story tells of %s", finding)
	return b
}

// holds requires that some things never happen to a lock; without words, those
// that a lock promises by default. A test of one's own lock calls
// locktest.Check; this one plays against the same adversaries every time.
func holds(t *testing.T, l locktest.Lock, never ...string) {
	t.Helper()
	l.Never = never
	b, err := locktest.Find(l, 2000)
	require.NoError(t, err)
	require.Nil(t, b)
}

func TestStep1StaysLockedAfterACrash(t *testing.T) {
	l := step1()
	l.Faults = []string{"crash"}
	b := breaks(t, l, "stuck")
	require.Equal(t, []string{"stuck"}, b.Found)
	require.Len(t, b.Plan.Plan.Faults, 1)
}

func TestStep2DeletesWhatIsNotItsOwn(t *testing.T) {
	holds(t, step2(), "stuck")
	l := step2()
	l.Never = []string{"foreign-release"}
	b := breaks(t, l, "foreign-release")
	require.Len(t, b.Plan.Plan.Faults, 1)
}

func TestStep3WritesAfterItsLease(t *testing.T) {
	holds(t, step3(), "stuck", "broken")
	l := step3()
	l.Faults = []string{"pause"}
	b := breaks(t, l, "two-writers")
	require.Contains(t, b.Found, "two-writers")
	require.Len(t, b.Plan.Plan.Faults, 1)
}

func TestStep4LosesAnUpdateThatWasReadTooEarly(t *testing.T) {
	holds(t, step4(), "stuck", "broken")
	b := breaks(t, step4(), "lost-update")
	require.Contains(t, b.Found, "lost-update")
}

func TestStep5Holds(t *testing.T) {
	holds(t, step5())
}

func FuzzStep5(f *testing.F) {
	locktest.Fuzz(f, step5())
}
