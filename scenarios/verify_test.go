package scenarios

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/models"
	"locklab/sim"
)

// leaky waits a little longer with every run of the test's process: what a
// simulated program must never do.
type leaky struct {
	models.Lock
	runs *time.Duration
}

func (l leaky) Acquire(t *sim.Task) (models.Grant, error) {
	t.Sleep(*l.runs)
	*l.runs += time.Millisecond
	return l.Lock.Acquire(t)
}

func TestVerifyNamesTheFirstDifferingEvent(t *testing.T) {
	var runs time.Duration
	c := Case{Design: mutateLock(t, func(l models.Lock) models.Lock { return leaky{l, &runs} }),
		Resource: resource(t, "plain"), Params: DefaultParams()}
	c.Params.Clients, c.Params.Sections = 1, 1

	_, err := Verify(context.Background(), []Case{c}, 1, nil)
	var m *Mismatch
	require.ErrorAs(t, err, &m)
	require.NotEqual(t, m.Hashes[0], m.Hashes[1])
	require.Equal(t, 3, m.Event, "three processes start alike; then the task sleeps")
	require.Contains(t, m.First, "client-1/section#1/acquire/op#1")
	require.NotEqual(t, m.First, m.Second)
}

// TestVerifyOfTheLibrary verifies every run of the library where there is time
// for it, as in make expectations, and else a sample.
func TestVerifyOfTheLibrary(t *testing.T) {
	library, err := Library()
	require.NoError(t, err)
	var cases []Case
	for _, s := range library {
		more, err := Cases(s, models.Designs(), models.Resources())
		require.NoError(t, err)
		cases = append(cases, more...)
	}
	every := 7
	switch {
	case seedsToCheck() == expectedSeeds:
		every = 1
	case testing.Short(): // under the race detector
		every = 101
	}
	cases = EachOf(cases, every)
	first, err := Verify(context.Background(), cases, 1, nil)
	require.NoError(t, err)
	second, err := Verify(context.Background(), cases, 2, nil)
	require.NoError(t, err)
	require.NotEqual(t, first, second, "another seed makes other runs")
}

func TestVerifyStopsWhenItIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := Case{Design: design(t, "none"), Resource: resource(t, "plain"), Params: DefaultParams()}
	_, err := Verify(ctx, []Case{c}, 1, nil)
	require.ErrorIs(t, err, context.Canceled)
}
