package scenarios

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/models"
	"locklab/sim"
)

// expectedSeeds is for how many seeds every expectation holds.
const expectedSeeds = 100

// TestExpectationsHold runs every scenario with every pair that it expects
// something of, with seeds 1 to 100 (or the first of
// them: see seedsToCheck). The first seeds are cross-checked by
// porcupine.
func TestExpectationsHold(t *testing.T) {
	library, err := Library()
	require.NoError(t, err)
	for _, s := range library {
		cases, err := Cases(s, models.Designs(), models.Resources())
		require.NoError(t, err)
		for _, c := range cases {
			if s.Expected(c.Design.Name, c.Resource.Name) == nil {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%s", s.Name, c.Design.Name, c.Resource.Name), func(t *testing.T) {
				t.Parallel()
				expectHolds(t, c)
			})
		}
	}
}

// seedsToCheck is how many of the expectedSeeds are run: all of them only where
// there is time for it, as in make expectations.
func seedsToCheck() uint64 {
	switch {
	case os.Getenv("LOCKLAB_SEEDS") == "all":
		return expectedSeeds
	case testing.Short(): // under the race detector
		return 2
	}
	return 15
}

func expectHolds(t *testing.T, c Case) {
	r, err := NewRunner(c)
	require.NoError(t, err)
	defer r.Close()
	for seed := uint64(1); seed <= seedsToCheck(); seed++ {
		res, err := r.Run(seed, sim.TraceOff)
		require.NoError(t, err)
		require.Nil(t, res.Failure, "%v", res.Failure)
		require.True(t, res.AsExpected(), "%s: verdict %s, lock %s; expected %+v",
			res.Command(), res.Verdict, res.Report.Lock, *res.Expectation())
		for _, w := range res.Witnesses {
			// Where nothing is promised nobody waits, so that the adversary may come
			// too late; and a row may say that the story cannot happen to its design.
			require.True(t, w.Occurred || c.Design.Promise == models.NoPromise || res.Verdict == checker.VerdictVacuous, "%s: it did not happen that %s", res.Command(), w.Text)
		}
		for _, f := range res.Faults {
			require.True(t, f.Fired && !f.Idle, "%s: fault %d never struck", res.Command(), f.Index+1)
		}
		if seed <= 3 {
			require.NoError(t, checker.CrossCheck(res.Report, checker.Porcupine(res.History, checker.PorcupineTimeout)), res.Command())
		}
	}
}
