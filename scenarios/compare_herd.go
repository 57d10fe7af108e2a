package scenarios

import (
	"context"
	"slices"
	"time"

	"locklab/checker"
	"locklab/clock"
	"locklab/sim"
)

// Herd is what so many waiting clients ask of the lock's servers.
type Herd struct {
	Design   string      `json:"design"`
	Waiting  string      `json:"waiting"` // how a client waits
	Resource string      `json:"resource"`
	Points   []HerdPoint `json:"points"`
}

// HerdPoint is one number of waiting clients.
type HerdPoint struct {
	Waiters  int64 `json:"waiters"` // beside the owner
	Runs     int64 `json:"runs"`
	Requests int64 `json:"requests"` // to lock servers, of clients that acquire or release, in all runs
	Releases int64 `json:"releases"`
	Low      int64 `json:"low"`  // thousandths of a request for each release: the least of the runs
	High     int64 `json:"high"` // and the most
	Peak     int64 `json:"peak"` // the most requests that were sent within Burst, in any run
}

const (
	// herdFor is how long, in simulated time, the clients go on, and herdFrom when counting begins: they
	// all begin at the same instant, which is a herd of its own.
	herdFor, herdFrom = 20 * time.Second, 5 * time.Second
)

// herdKind is a way to wait.
type herdKind struct {
	design, waiting string
	jitter          time.Duration // -1: the comparison's own
}

func herdKinds() []herdKind {
	return []herdKind{
		{"redis/lua-release", "polls, no jitter", 0},
		{"redis/lua-release", "polls, jitter of half the retry delay", -1},
		{"postgres/lease-table", "polls, no jitter", 0},
		{"postgres/lease-table", "polls, jitter of half the retry delay", -1},
		{"etcd/lock", "queue", -1},
		{"zookeeper/lock", "queue", -1},
		{"zookeeper/lock-herd", "queue, everybody watches the owner", -1},
	}
}

// herd measures every way to wait whose design is in the comparison.
func (c *comparer) herd(ctx context.Context) error {
	waiters := []int64{1, 3, 7, 15, 31, 63}
	if c.out.Spec.Quick {
		waiters = []int64{1, 7, 31}
	}
	runs := max(c.out.Spec.Runs/40, 1)
	var jobs []Herd
	var kinds []herdKind
	for _, k := range herdKinds() {
		if p := c.pairOf(k.design); p != nil {
			kinds = append(kinds, k)
			jobs = append(jobs, Herd{Design: k.design, Waiting: k.waiting, Resource: p.resource.Name, Points: make([]HerdPoint, len(waiters))})
		}
	}
	c.plan(runs * int64(len(jobs)*len(waiters)))
	err := c.each(ctx, len(jobs)*len(waiters), func(i int, watch *sim.Watch) error {
		job, at := i/len(waiters), i%len(waiters)
		point := &jobs[job].Points[at]
		point.Waiters = waiters[at]
		return c.herdPoint(ctx, kinds[job], point, runs, watch)
	})
	if err == nil {
		c.out.Herds = jobs
	}
	return err
}

// herdPoint lets an owner and waiters go on for a while: whoever has released
// the lock comes again at once.
func (c *comparer) herdPoint(ctx context.Context, k herdKind, out *HerdPoint, runs int64, watch *sim.Watch) error {
	p := c.pairOf(k.design)
	params := c.params
	params.Clients, params.Sections, params.Think, params.Horizon = int(out.Waiters)+1, 1000, 0, herdFor
	params.RetryJitter = params.Retry / 2
	if k.jitter >= 0 {
		params.RetryJitter = k.jitter
	}
	r, err := NewRunner(Case{Design: p.design, Resource: p.resource, Params: params})
	if err != nil {
		return err
	}
	defer r.Close()
	for i := range runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		res, err := c.watched(r, c.out.Spec.Seed+uint64(i), sim.TraceOff, watch)
		if err != nil {
			return err
		}
		sent, _ := lockRequests(res)
		from, _ := slices.BinarySearch(sent, clock.Time(herdFrom))
		sent = sent[from:]
		out.Runs++
		out.Requests += int64(len(sent))
		releases := int64(0)
		for k := range res.History.Ops {
			if o := &res.History.Ops[k]; o.Kind == checker.Release && o.Outcome == checker.OK && o.Return.At >= clock.Time(herdFrom) {
				releases++
			}
		}
		out.Releases += releases
		each := 1000 * int64(len(sent)) / max(releases, 1)
		if i == 0 {
			out.Low = each
		}
		out.Low, out.High = min(out.Low, each), max(out.High, each)
		out.Peak = max(out.Peak, int64(mostWithin(sent, Burst)))
	}
	return nil
}
