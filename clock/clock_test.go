package clock

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const sec = Time(time.Second)

// TestLiteral are cases that can be checked by hand.
func TestLiteral(t *testing.T) {
	for _, c := range []struct {
		name  string
		clock Clock
		at    Time
		want  Reading
	}{
		{"the zero clock shows true time", Clock{}, 5 * sec, 5e9},
		{"10 s late by 100 ppm is 1 ms", New(0, 100_000), 10 * sec, 10_001_000_000},
		{"half speed", New(100, -500_000_000), 10, 105},
		{"half speed rounds down", New(100, -500_000_000), 11, 105},
		{"one part in a billion is left", New(0, RateMin), sec, 1},
		{"and shows nothing before a whole second", New(0, RateMin), sec - 1, 0},
		{"a million times", New(0, RateMax), 3, 3 * Reading(RateMax/billion+1)},
		{"a rate below the slowest is the slowest", New(0, math.MinInt64), sec, 1},
		{"reading before the start", New(7, 0), -3, 7},
		{"saturates at the top", New(math.MaxInt64-5, 0), 6, math.MaxInt64},
		{"saturates however fast", New(math.MinInt64, RateMax), Never, math.MaxInt64},
	} {
		if got := c.clock.Read(c.at); got != c.want {
			t.Errorf("%s: reads %d, want %d", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		name     string
		clock    Clock
		deadline Reading
		now      Time
		want     Time
	}{
		{"true time", Clock{}, 5e9, 0, 5 * sec},
		{"already reached", Clock{}, 5, 9, 9},
		{"half speed takes twice as long", New(0, -500_000_000), 10, 0, 20},
		{"double speed, rounded up", New(0, billion), 3, 0, 2},
		{"one part in a billion", New(0, RateMin), 2, 0, 2 * sec},
		{"too far for a Time", New(0, RateMin), math.MaxInt64, 0, Never},
		{"the whole range nearly at full speed", New(math.MinInt64, -1), math.MaxInt64, 0, Never},
	} {
		if got := c.clock.When(c.deadline, c.now); got != c.want {
			t.Errorf("%s: When says %d, want %d", c.name, got, c.want)
		}
	}
}

func TestStopped(t *testing.T) {
	c := New(0, 0)
	c.Stop(10)
	if got := c.Read(500); got != 10 {
		t.Errorf("a stopped clock reads %d, want 10", got)
	}
	if got := c.When(11, 500); got != Never {
		t.Errorf("a stopped clock reaches 11 at %d, want never", got)
	}
	if got := c.When(10, 500); got != 500 {
		t.Errorf("a deadline already reached fires at %d, want at once (500)", got)
	}
	c.SetRate(550, billion) // a rate set meanwhile counts from the start
	c.Start(600)
	if got := c.Read(605); got != 20 {
		t.Errorf("5 ns after the start at double speed it reads %d, want 20", got)
	}
}

func TestString(t *testing.T) {
	c := New(Reading(time.Hour), 200)
	c.Step(5*sec, -time.Minute)
	if got, want := c.String(), "59m5.000001s at 5s, +200 ppb"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	c.Stop(5 * sec)
	if got, want := c.String(), "59m5.000001s at 5s, stopped"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

// extreme draws numbers of every size, with the ends of the range often.
func extreme() *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64(),
		rapid.Int64Range(-1000, 1000),
		rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}),
	)
}

func rates() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(-1000, 1000), rapid.Int64Range(RateMin, RateMax),
		rapid.SampledFrom([]int64{RateMin, RateMin + 1, 0, RateMax}))
}

func times() *rapid.Generator[Time] {
	return rapid.Custom(func(t *rapid.T) Time {
		return Time(rapid.OneOf(rapid.Int64Range(0, math.MaxInt64), rapid.Int64Range(0, 5e9),
			rapid.SampledFrom([]int64{0, 1, math.MaxInt64 - 1})).Draw(t, "time"))
	})
}

// TestWhenIsExact: a timer fires at the first nanosecond at which the reading
// has reached its deadline, not one earlier or later.
func TestWhenIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(Reading(extreme().Draw(t, "reading")), rates().Draw(t, "rate"))
		if rapid.Bool().Draw(t, "rebased") {
			c.SetRate(times().Draw(t, "since"), rates().Draw(t, "rate2"))
		}
		deadline, now := Reading(extreme().Draw(t, "deadline")), times().Draw(t, "now")
		when := c.When(deadline, now)
		if when < now {
			t.Fatalf("When = %d, before now %d", when, now)
		}
		if when < Never && c.Read(when) < deadline {
			t.Fatalf("%v: at %d it reads %d, short of %d", &c, when, c.Read(when), deadline)
		}
		if when > now && c.Read(when-1) >= deadline {
			t.Fatalf("%v: at %d it already reads %d, %d reached", &c, when-1, c.Read(when-1), deadline)
		}
	})
}

// TestHistory puts a clock through any changes: its reading never goes back
// between steps, never jumps at a change of rate, and stands still while
// stopped.
func TestHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(Reading(extreme().Draw(t, "start")), rates().Draw(t, "rate"))
		now, stopped := Time(0), false
		last := c.Read(now)
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			now = now.Add(time.Duration(times().Draw(t, "pass")))
			r := c.Read(now)
			if r < last {
				t.Fatalf("the reading went back from %d to %d", last, r)
			}
			if stopped && r != last {
				t.Fatalf("a stopped clock moved from %d to %d", last, r)
			}
			want := r
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				c.SetRate(now, rates().Draw(t, "rate"))
			case 1:
				d := time.Duration(extreme().Draw(t, "step"))
				c.Step(now, d)
				want = r.Add(d)
			case 2:
				c.Stop(now)
				stopped = true
			case 3:
				c.Start(now)
				stopped = false
			}
			last = c.Read(now)
			if last != want {
				t.Fatalf("after a change at %d it reads %d, want %d", now, last, want)
			}
		}
	})
}

// TestSaturation compares the saturating sums with numbers that cannot
// overflow.
func TestSaturation(t *testing.T) {
	clamp := func(x *big.Int) int64 {
		switch {
		case x.IsInt64():
			return x.Int64()
		case x.Sign() < 0:
			return math.MinInt64
		}
		return math.MaxInt64
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := extreme().Draw(t, "a"), extreme().Draw(t, "b")
		A, B := big.NewInt(a), big.NewInt(b)
		if got, want := Reading(a).Add(time.Duration(b)), clamp(new(big.Int).Add(A, B)); got != Reading(want) {
			t.Fatalf("%d + %d = %d, want %d", a, b, got, want)
		}
		if got, want := Reading(a).Sub(Reading(b)), clamp(new(big.Int).Sub(A, B)); got != time.Duration(want) {
			t.Fatalf("%d - %d = %d, want %d", a, b, got, want)
		}
	})
	if Never.Add(1) != Never || Never.Add(-1).Add(5) != Never {
		t.Error("adding to Never must stay there")
	}
}

func ExampleClock_When() {
	c := New(0, -500_000_000) // loses half of each second
	fmt.Println(time.Duration(c.When(Reading(10*time.Second), 0)))
	// Output: 20s
}
