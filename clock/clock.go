// Package clock owns the arithmetic of time: true time, and local clocks that
// run at another rate, with another offset, and jump. It knows no event loop,
// no node and no fault; every function is pure or changes only its receiver.
//
// All arithmetic is on integers (128 bits where 64 do not suffice), because a
// fused multiply-add would make floating point differ between processors.
package clock

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Time is true time: nanoseconds since the start of the run. Only the
// simulator and the checker may look at it.
type Time int64

// Never is the true time that does not come.
const Never Time = math.MaxInt64

// Add returns t later by d, saturating at Never.
func (t Time) Add(d time.Duration) Time {
	return Time(saturatingAdd(int64(t), int64(d)))
}

// Reading is what a local clock shows, in nanoseconds. A monotonic clock
// counts from an arbitrary start, a wall clock from the Unix epoch.
type Reading int64

// Add returns r later by d, saturating at the ends of the range.
func (r Reading) Add(d time.Duration) Reading {
	return Reading(saturatingAdd(int64(r), int64(d)))
}

// Sub returns the local time that passed from s to r, saturating.
func (r Reading) Sub(s Reading) time.Duration {
	d := int64(r) - int64(s)
	switch {
	case r >= s && d < 0:
		return math.MaxInt64
	case r < s && d >= 0:
		return math.MinInt64
	}
	return time.Duration(d)
}

// billion is the unit of rates: parts per billion.
const billion = 1_000_000_000

// RateMin is the slowest rate a clock may have: it still advances, by one part
// in a billion. (A clock that stands still is Stopped, not slow.)
const RateMin int64 = -billion + 1

// RateMax is the fastest rate a clock may have: a million times true time.
const RateMax int64 = 1_000_000 * billion

// Clock is a local clock: a straight line through one point (a true time and
// the reading it showed then), whose slope is 1 + rate/10^9. Every change of
// rate and every step starts a new line at the present point. The zero Clock
// shows true time.
type Clock struct {
	since   Time    // where the present line begins
	reading Reading // what the clock showed there
	rate    int64   // parts per billion faster than true time
	stopped bool    // a suspended machine's clock: it shows reading for ever
}

// New returns a clock that shows r at true time zero and runs at the given
// rate in parts per billion, RateMin to RateMax (a rate outside is clamped).
func New(r Reading, rate int64) Clock {
	return Clock{reading: r, rate: clampRate(rate)}
}

// Read returns what the clock shows at true time now, rounded down to whole
// nanoseconds. Reading before the last change shows the reading at the change.
func (c *Clock) Read(now Time) Reading {
	if c.stopped || now <= c.since {
		return c.reading
	}
	elapsed := uint64(now) - uint64(c.since)
	if c.rate == 0 {
		return Reading(saturatingAddUnsigned(int64(c.reading), elapsed))
	}
	hi, lo := bits.Mul64(elapsed, uint64(billion+c.rate))
	if hi >= billion { // the quotient would not fit 64 bits
		return math.MaxInt64
	}
	local, _ := bits.Div64(hi, lo, billion)
	return Reading(saturatingAddUnsigned(int64(c.reading), local))
}

// When returns the first true time, not before now, at which the clock shows
// deadline or later: the moment a timer with that deadline fires. It is Never
// when the clock is stopped short of the deadline, or gets there too late for
// a Time to say.
//
// From floor(x*f/10^9) >= need it follows that x >= ceil(need*10^9/f), so the
// answer is exact and not merely close.
func (c *Clock) When(deadline Reading, now Time) Time {
	if c.Read(now) >= deadline {
		return now
	}
	if c.stopped {
		return Never
	}
	need := uint64(deadline) - uint64(c.reading)
	if c.rate == 0 {
		return Time(saturatingAddUnsigned(int64(c.since), need))
	}
	factor := uint64(billion + c.rate)
	hi, lo := bits.Mul64(need, billion)
	if hi >= factor {
		return Never
	}
	elapsed, rest := bits.Div64(hi, lo, factor)
	if rest > 0 && elapsed < math.MaxUint64 {
		elapsed++
	}
	return Time(saturatingAddUnsigned(int64(c.since), elapsed))
}

// String draws the clock: "1h2m3s at 5s, +200 ppb" shows 1h2m3s at true time 5s
// and gains 200 ns in each second from there on.
func (c *Clock) String() string {
	pace := fmt.Sprintf("%+d ppb", c.rate)
	if c.stopped {
		pace = "stopped"
	}
	return fmt.Sprintf("%v at %v, %s", time.Duration(c.reading), time.Duration(c.since), pace)
}

// Rate returns the clock's rate in parts per billion faster than true time.
func (c *Clock) Rate() int64 { return c.rate }

// SetRate makes the clock run at another rate (parts per billion) from now on.
// The reading does not jump.
func (c *Clock) SetRate(now Time, rate int64) {
	c.rebase(now)
	c.rate = clampRate(rate)
}

// Step makes the clock jump by d, forwards or backwards.
func (c *Clock) Step(now Time, d time.Duration) {
	c.rebase(now)
	c.reading = c.reading.Add(d)
}

// Stop makes the clock stand still, as a suspended machine's may.
func (c *Clock) Stop(now Time) {
	c.rebase(now)
	c.stopped = true
}

// Start makes a stopped clock go on from the reading at which it stopped.
func (c *Clock) Start(now Time) {
	c.rebase(now)
	c.stopped = false
}

// rebase starts a new line at the present point. Up to a nanosecond of local
// time is lost to rounding; a reading never goes back.
func (c *Clock) rebase(now Time) {
	c.reading, c.since = c.Read(now), max(now, c.since)
}

func clampRate(rate int64) int64 { return min(max(rate, RateMin), RateMax) }

func saturatingAdd(a, b int64) int64 {
	s := a + b
	if a > 0 && b > 0 && s < 0 {
		return math.MaxInt64
	}
	if a < 0 && b < 0 && s >= 0 {
		return math.MinInt64
	}
	return s
}

// saturatingAddUnsigned adds an unsigned amount that may exceed an int64.
func saturatingAddUnsigned(a int64, b uint64) int64 {
	if b > uint64(math.MaxInt64)-uint64(a) { // MaxInt64-a as unsigned, right for negative a too
		return math.MaxInt64
	}
	return a + int64(b)
}
