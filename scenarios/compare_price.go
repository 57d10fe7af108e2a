package scenarios

import (
	"cmp"
	"context"
	"slices"
	"time"

	"locklab/checker"
	"locklab/clock"
	"locklab/models"
	"locklab/sim"
)

// Price is what a design costs while nothing goes wrong.
type Price struct {
	Design   string `json:"design"`
	Resource string `json:"resource"`
	Runs     int64  `json:"runs"`
	Sections int64  `json:"sections"` // that were completed
	Messages int64  `json:"messages"` // of programs and servers, also among servers
	Requests int64  `json:"requests"` // of clients, of these

	// How long acquires took that succeeded, which includes the time in which others held the lock.
	// What promises nothing has none: its clients do not wait for each other.
	Acquires   int64    `json:"acquires"`
	AcquireP50 Quantile `json:"acquire_median"`
	AcquireP99 Quantile `json:"acquire_p99"`

	// How long somebody wanted the lock and nobody believed to hold it, of all the time in which
	// somebody wanted it.
	WantedUs      int64 `json:"wanted_us"`
	UnavailableUs int64 `json:"unavailable_us"`
}

// Quantile is a quantile of times with its 95 % interval, in microseconds.
type Quantile struct {
	Us   int64 `json:"us"`
	Low  int64 `json:"low_us"`
	High int64 `json:"high_us"`
}

// price measures every pair of the comparison.
func (c *comparer) price(ctx context.Context) error {
	runs := max(c.out.Spec.Runs/10, 4)
	out := make([]Price, len(c.pairs))
	done := make([]bool, len(c.pairs))
	c.plan(runs * int64(len(c.pairs)))
	err := c.each(ctx, len(c.pairs), func(i int, watch *sim.Watch) error {
		p := &c.pairs[i]
		out[i] = Price{Design: p.design.Name, Resource: p.resource.Name, Runs: runs}
		err := c.priceOf(ctx, p, &out[i], watch)
		done[i] = err == nil
		return err
	})
	for i := range out {
		if done[i] {
			c.out.Prices = append(c.out.Prices, out[i])
		}
	}
	return err
}

func (c *comparer) priceOf(ctx context.Context, p *pair, out *Price, watch *sim.Watch) error {
	r, err := NewRunner(Case{Design: p.design, Resource: p.resource, Params: c.params})
	if err != nil {
		return err
	}
	defer r.Close()
	var lasted []time.Duration
	for i := range out.Runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		res, err := c.watched(r, c.out.Spec.Seed+uint64(i), sim.TraceRecord, watch)
		if err != nil {
			return err
		}
		for k := range res.Trace {
			if e := &res.Trace[k]; e.Kind == sim.EventSend && !sim.IsControl(e.Body) {
				out.Messages++
				if res.Processes[e.Proc].Client {
					out.Requests++
				}
			}
		}
		out.Sections += int64(SectionsCompleted(res.History))
		if p.design.Promise == models.NoPromise {
			continue
		}
		for k := range res.History.Ops {
			if o := &res.History.Ops[k]; o.Kind == checker.Acquire && o.Outcome == checker.OK {
				lasted = append(lasted, time.Duration(o.Return.At-o.Invoke.At))
			}
		}
		wanted, unavailable := waits(res.History)
		out.WantedUs, out.UnavailableUs = out.WantedUs+int64(wanted/time.Microsecond), out.UnavailableUs+int64(unavailable/time.Microsecond)
	}
	slices.Sort(lasted)
	if n := len(lasted); n > 0 {
		out.Acquires = int64(n)
		out.AcquireP50, out.AcquireP99 = quantileOf(lasted, 50), quantileOf(lasted, 99)
	}
	return nil
}

// quantileOf is a quantile of sorted times, of which there is at least one.
func quantileOf(sorted []time.Duration, percent int) Quantile {
	low, high := QuantileRanks(len(sorted), percent)
	us := func(d time.Duration) int64 { return int64(d / time.Microsecond) }
	return Quantile{Us: us(percentile(sorted, percent)), Low: us(sorted[low-1]), High: us(sorted[high-1])}
}

// waits adds up for how long somebody wanted the lock, and for how long of that
// nobody believed to hold it.
func waits(h *checker.History) (wanted, unavailable time.Duration) {
	type edge struct {
		at           clock.Time
		wants, holds int
	}
	var edges []edge
	for i := range h.Ops {
		o := &h.Ops[i]
		if o.Kind != checker.Acquire {
			continue
		}
		edges = append(edges, edge{o.Invoke.At, 1, 0}, edge{min(o.Return.At, h.End), -1, 0})
		if o.Outcome == checker.OK && o.Return.Known() {
			edges = append(edges, edge{o.Return.At, 0, 1}, edge{min(o.BelievesUntil.At, h.End), 0, -1})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	wants, holds, since := 0, 0, clock.Time(0)
	for _, e := range edges {
		if wants > 0 {
			wanted += time.Duration(e.at - since)
			if holds == 0 {
				unavailable += time.Duration(e.at - since)
			}
		}
		wants, holds, since = wants+e.wants, holds+e.holds, e.at
	}
	return wanted, unavailable
}
