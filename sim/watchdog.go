package sim

import (
	"sync"
	"sync/atomic"
	"time"
)

// Watchdog notices, by the host's clock, a run that does not come to an end:
// a program that spins without an effect, or that blocks on a real channel.
// Go offers no way to stop it, so all that is left is to say which run it was.
// It influences no run. Several workers may use one watchdog.
type Watchdog struct {
	limit   time.Duration
	onStuck func(label string)
	quit    chan struct{}
	once    sync.Once

	mu      sync.Mutex
	watches []*Watch
}

// Watch is one worker's line to the watchdog.
type Watch struct {
	// turns counts beginnings and ends: while it is odd, a run is on.
	turns atomic.Uint64
	label atomic.Pointer[func() string]

	// The rest is the watchdog's: what it saw last, and since when.
	seen  uint64
	since time.Time
}

// NewWatchdog starts a watchdog that calls onStuck, at most once and from a
// goroutine of its own, when a run has gone longer than limit without a beat (noticed at
// most a quarter of it later).
func NewWatchdog(limit time.Duration, onStuck func(label string)) *Watchdog {
	d := &Watchdog{limit: limit, onStuck: onStuck, quit: make(chan struct{})}
	go d.patrol()
	return d
}

// Worker returns a new line for a goroutine that does one run after another.
func (d *Watchdog) Worker() *Watch {
	w := &Watch{}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watches = append(d.watches, w)
	return w
}

// Begin says that a run begins. label is called only when the run is stuck,
// then from another goroutine: it must use nothing that the run changes.
func (w *Watch) Begin(label func() string) {
	w.label.Store(&label)
	w.turns.Add(1)
}

// Beat says that the run makes progress: a long one is not a stuck one.
func (w *Watch) Beat() { w.turns.Add(2) }

// End says that the run has ended.
func (w *Watch) End() { w.turns.Add(1) }

// Close stops the watchdog.
func (d *Watchdog) Close() { d.once.Do(func() { close(d.quit) }) }

func (d *Watchdog) patrol() {
	tick := time.NewTicker(max(d.limit/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-d.quit:
			return
		case now := <-tick.C:
			if w := d.stuck(now); w != nil {
				d.onStuck((*w.label.Load())())
				return
			}
		}
	}
}

// stuck returns a worker whose run has lasted too long, nil if there is none.
func (d *Watchdog) stuck(now time.Time) *Watch {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.watches {
		count := w.turns.Load()
		if count != w.seen {
			w.seen, w.since = count, now
		}
		if count%2 == 1 && now.Sub(w.since) > d.limit {
			return w
		}
	}
	return nil
}
