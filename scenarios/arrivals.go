package scenarios

import (
	"math/bits"
	"slices"
	"time"

	"locklab/clock"
	"locklab/sim"
)

// Arrival is a section that was asked for from outside, where the load does
// not wait for the clients (an open loop): with Params.Interarrival.
type Arrival struct {
	At      clock.Time
	Fate    ArrivalFate
	Taken   clock.Time // when a client began with it; Never if none did
	Client  int32      // who took it, or is to
	Section int32      // as this client counts
}

// ArrivalFate is what became of an arrival.
type ArrivalFate uint8

// The fates.
const (
	ArrivalPending ArrivalFate = iota // no client had begun with it by the end
	ArrivalTaken
	ArrivalRefused // the queue was full
	ArrivalLeft    // it had waited for a client as long as Params.Wait
)

// arrivals hands sections that come from outside to the clients, the oldest
// first: a queue of bounded length before as many workers as there are clients.
//
// Nothing has to happen in the world when a section arrives: a client that
// asks is given the oldest that waits, or else the next that will come, for
// which it then sleeps. Clients ask in the order of true time, so this is what a
// queue in the world would do.
type arrivals struct {
	w       *sim.World
	p       *Params
	left    int        // sections still to be drawn
	next    clock.Time // when the next one comes
	all     []Arrival
	waiting []int // into all
}

func (a *arrivals) begin(w *sim.World, p *Params) {
	*a = arrivals{w: w, p: p, all: a.all[:0], waiting: a.waiting[:0]}
	if p.Interarrival > 0 {
		a.left = p.Clients * p.Sections
		a.all = slices.Grow(a.all, a.left) // take returns pointers into it
	}
}

// take returns the section that a client which is free now has to do next, nil
// if there is no more.
func (a *arrivals) take(now clock.Time) *Arrival {
	if len(a.all) == 0 && a.left > 0 {
		a.next = clock.Time(a.gap())
	}
	for a.left > 0 && a.next <= now {
		a.leave(a.next)
		if i := a.arrive(); len(a.waiting) < a.p.Queue {
			a.waiting = append(a.waiting, i)
		} else {
			a.all[i].Fate = ArrivalRefused
		}
	}
	a.leave(now)
	switch {
	case len(a.waiting) > 0:
		first := a.waiting[0]
		a.waiting = a.waiting[1:]
		return &a.all[first]
	case a.left > 0:
		return &a.all[a.arrive()]
	}
	return nil
}

// arrive adds the next section and draws when the one after it comes.
func (a *arrivals) arrive() int {
	a.all = append(a.all, Arrival{At: a.next, Taken: clock.Never})
	a.left--
	a.next = a.next.Add(a.gap())
	return len(a.all) - 1
}

// leave takes those out of the queue that by now have waited too long.
func (a *arrivals) leave(now clock.Time) {
	for a.p.Wait > 0 && len(a.waiting) > 0 && a.all[a.waiting[0]].At.Add(a.p.Wait) <= now {
		a.all[a.waiting[0]].Fate = ArrivalLeft
		a.waiting = a.waiting[1:]
	}
}

// gap draws the time before the next arrival. Its place counts arrivals and
// stands under client-1, whoever asks: a seed has the same arrivals under every
// design.
func (a *arrivals) gap() time.Duration {
	at := sim.Place{Phase: sim.PhaseThink, Op: int32(len(a.all) + 1), Point: sim.PointArrival}
	mean := a.p.Interarrival
	switch a.p.Spacing {
	case Even:
		return mean
	case Uniform:
		return time.Duration(a.w.Draw(at, 0, 2*int64(mean)))
	}
	return exponential(uint64(a.w.Draw(at, 1, 1<<63-1)), mean)
}

// exponential turns u, uniform from 1 to 2^63-1, into an exponentially
// distributed time of the given mean: the inverse of the distribution,
// -ln(u/2^63) * mean, in fixed point with 32 binary digits. No floating point: a
// run must be the same on every processor.
func exponential(u uint64, mean time.Duration) time.Duration {
	const ln2 = 2977044472 // ln 2 * 2^32
	hi, lo := bits.Mul64(63<<32-log2(u), ln2)
	x := hi<<32 | lo>>32
	hi, lo = bits.Mul64(x, uint64(mean))
	return time.Duration(hi<<32 | lo>>32)
}

// log2 is the binary logarithm of u, at least 1, with 32 binary digits behind
// the point: each squaring of the mantissa yields the next one.
func log2(u uint64) uint64 {
	zeros := bits.LeadingZeros64(u)
	whole, m := uint64(63-zeros), u<<zeros // m is from 2^63 on, and stands for 1 to 2
	digits := uint64(0)
	for range 32 {
		m, _ = bits.Mul64(m, m) // from 1 to 4, in units of 2^-62
		digits <<= 1
		if m >= 1<<63 {
			digits |= 1
		} else {
			m <<= 1
		}
	}
	return whole<<32 | digits
}
