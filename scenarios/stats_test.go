package scenarios

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Newcombe (1998), table I: method 3 for the four examples of that paper.
func TestWilsonAsPublished(t *testing.T) {
	for _, c := range []struct {
		k, n      int64
		low, high float64
	}{
		{81, 263, 0.2553, 0.3662},
		{15, 148, 0.0624, 0.1605},
		{0, 20, 0, 0.1611},
		{1, 29, 0.0061, 0.1718},
	} {
		in := Wilson(c.k, c.n)
		require.InDelta(t, c.low, in.Low, 0.00005, "%d of %d", c.k, c.n)
		require.InDelta(t, c.high, in.High, 0.00005, "%d of %d", c.k, c.n)
	}
	require.Equal(t, Interval{0, 1}, Wilson(0, 0))
}

// The interval's ends are the rates from which k/n lies z standard errors away:
// its definition.
func TestWilsonInvertsTheScoreTest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 10_000_000).Draw(t, "n")
		k := rapid.Int64Range(0, n).Draw(t, "k")
		in := Wilson(k, n)
		rate := float64(k) / float64(n)
		require.True(t, 0 <= in.Low && in.Low <= rate && rate <= in.High && in.High <= 1)
		for _, p := range []float64{in.Low, in.High} {
			if p == 0 || p == 1 {
				continue
			}
			z := math.Abs(rate-p) / math.Sqrt(p*(1-p)/float64(n))
			require.InDelta(t, 1.959964, z, 1e-4)
		}
		mirror := Wilson(n-k, n)
		require.InDelta(t, 1-in.High, mirror.Low, 1e-9)
	})
}

// Hanley and Lippman-Hand (1983): above the exact bound, and near it from 30 on.
func TestRuleOfThree(t *testing.T) {
	require.Equal(t, 1.0, RuleOfThree(0))
	require.Equal(t, 1.0, RuleOfThree(3))
	require.InDelta(t, 0.03, RuleOfThree(100), 1e-12)
	for _, n := range []int64{4, 10, 30, 100, 1000, 1_000_000} {
		exact := 1 - math.Pow(0.05, 1/float64(n))
		require.Greater(t, RuleOfThree(n), exact)
		if n >= 30 {
			require.InEpsilon(t, exact, RuleOfThree(n), 0.06)
		}
	}
}

// The median of a hundred values lies between the 40th and the 61st with 96.5 %
// (the binomial's own). Of few, the approximation is on the safe side.
func TestQuantileRanks(t *testing.T) {
	for _, c := range []struct{ n, percent, low, high int }{{1, 50, 1, 1}, {10, 50, 1, 10}, {100, 50, 40, 61}, {1000, 99, 983, 998}, {50, 99, 48, 50}} {
		low, high := QuantileRanks(c.n, c.percent)
		require.Equal(t, [2]int{c.low, c.high}, [2]int{low, high}, "%d values, %d %%", c.n, c.percent)
	}
}
