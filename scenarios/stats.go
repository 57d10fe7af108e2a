package scenarios

import "math"

// The statistics of searches. They are computed from counts when a result is
// shown, never within a run: only here are there floating-point numbers.

// confidence is that of every interval and bound.
const confidence = 0.95

// Interval is a confidence interval of a rate.
type Interval struct{ Low, High float64 }

// Wilson returns the 95 % score interval of the rate of which k of n were
// seen: the rates p whose distance from k/n is at most z standard errors
// sqrt(p(1-p)/n). It needs no special cases at 0 and at n, where the textbook
// interval (Wald's) has no width. All of 0 to 1 for n = 0.
//
// E. B. Wilson, "Probable inference, the law of succession, and statistical
// inference", JASA 22 (1927); recommended by R. G. Newcombe, "Two-sided
// confidence intervals for the single proportion", Statistics in Medicine 17
// (1998), whose method 3 it is, and whose table the test goes by.
func Wilson(k, n int64) Interval {
	if n <= 0 {
		return Interval{0, 1}
	}
	z := math.Sqrt2 * math.Erfinv(confidence)
	p, m := float64(k)/float64(n), float64(n)
	middle := p + z*z/(2*m)
	half := z * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	scale := 1 + z*z/m
	in := Interval{max((middle-half)/scale, 0), min((middle+half)/scale, 1)}
	switch k { // exact there, but for rounding
	case 0:
		in.Low = 0
	case n:
		in.High = 1
	}
	return in
}

// RuleOfThree bounds, with 95 % confidence, the rate of what was never seen in
// n runs: 3/n, slightly above the exact 1-0.05^(1/n).
//
// J. A. Hanley and A. Lippman-Hand, "If nothing goes wrong, is everything all
// right?", JAMA 249 (1983).
func RuleOfThree(n int64) float64 {
	if n <= 3 {
		return 1
	}
	return 3 / float64(n)
}

// QuantileRanks returns the ranks, from 1, of the two values of n sorted ones
// between which the quantile of so many percent lies with about 95 %
// confidence, whatever the distribution: the binomial's limits in the normal
// approximation. At the ends it is the smallest or the largest value, and the
// confidence then less. n is at least 1.
//
// W. J. Conover, "Practical Nonparametric Statistics" (3rd ed., 1999), 3.2.
func QuantileRanks(n, percent int) (low, high int) {
	q := float64(percent) / 100
	z := math.Sqrt2 * math.Erfinv(confidence)
	middle, half := float64(n)*q, z*math.Sqrt(float64(n)*q*(1-q))
	return max(int(math.Floor(middle-half)), 1), min(int(math.Ceil(middle+half))+1, n)
}
