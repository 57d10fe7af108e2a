package scenarios

import (
	"context"
	"strconv"
	"time"

	"locklab/checker"
	"locklab/sim"
)

// Curve tells how the chance of two writers grows with the size of one fault,
// for each design. Sizes are in thousandths of the TTL; of a clock's rate, in
// thousandths of the true rate.
type Curve struct {
	Name   string        `json:"name"`
	Title  string        `json:"title"`
	Axis   string        `json:"axis"` // what the sizes are, with their unit once they are divided by 1000
	How    string        `json:"how"`  // how it was measured
	Series []CurveSeries `json:"series"`
}

// CurveSeries is one design's line. A design that the fault cannot befall has
// none.
type CurveSeries struct {
	Design   string       `json:"design"`
	Resource string       `json:"resource"`
	Points   []CurvePoint `json:"points"`
}

// CurvePoint is the share of runs with two writers at one size.
type CurvePoint struct {
	Size  int64 `json:"size"`
	Share Share `json:"share"`
}

// In the section in which the faults of curves and maps strike, an owner reads
// and then writes, with a tenth of the TTL of work before each write, and a
// second client wants the lock all the while. What is left of the lease when
// the fault strikes is spread evenly: the seeds take turns.
//
// A fault that stops the owner strikes before the last of one to eight writes:
// what counts is how long it holds that one back. Any other strikes before the
// first to the eighth of eight writes: what counts is the work that is left to
// be done.
const doseWrites = 8

const (
	howLast = "An owner reads, then writes one to eight times in turn, with a tenth of the TTL of work before each write; a second client waits. The fault strikes before the last write."
	howAny  = "An owner reads, then writes eight times, with a tenth of the TTL of work before each write; a second client waits. The fault strikes before the first to the eighth write in turn."
)

// doseWorld runs such sections. It has a runner for each number of writes.
type doseWorld struct {
	last    bool
	runners [doseWrites]*Runner
}

func newDoseWorld(p *pair, params Params, last bool) (*doseWorld, error) {
	d := &doseWorld{last: last}
	params.Clients, params.Sections, params.Stagger = 2, 1, 100*time.Millisecond
	for k := range d.runners {
		params.Writes = doseWrites
		if last {
			params.Writes = k + 1
		} else if k > 0 {
			d.runners[k] = d.runners[0]
			continue
		}
		var err error
		if d.runners[k], err = NewRunner(Case{Design: p.design, Resource: p.resource, Params: params}); err != nil {
			d.close()
			return nil, err
		}
	}
	return d, nil
}

func (d *doseWorld) close() {
	for k, r := range d.runners {
		if r != nil && (d.last || k == 0) {
			r.Close()
		}
	}
}

// runner returns the runner for a seed, and when the fault is to strike.
func (d *doseWorld) runner(seed uint64) (*Runner, sim.Trigger) {
	return d.runners[seed%doseWrites], doseAt(seed)
}

// doseAt is when the fault strikes under a seed.
func doseAt(seed uint64) sim.Trigger {
	return sim.Trigger{After: sim.PlacePattern{Proc: "client-1", Section: 1, Phase: sim.PhaseWork, Op: 1 + int32(seed%doseWrites)}}
}

// dose is a curve to be measured.
type dose struct {
	name, title, axis string
	last              bool // it strikes before the last write
	sizes             []int64
	fault             func(size int64, ttl time.Duration) sim.Fault
	params            func(*Params, int64) // depends on the size too; nil: nothing does
}

func permilleOf(size int64, d time.Duration) sim.Span {
	return sim.Exactly(time.Duration(size) * (d / 1000))
}

// doses lists the curves. Between the TTL and the part of it that is left at
// the first write lies all that is of interest to a lease.
func doses(quick bool) []dose {
	upTo := func(step int64, sizes ...int64) []int64 {
		var out []int64
		for s := int64(0); s <= 1100; s += step {
			out = append(out, s)
		}
		return append(out, sizes...)
	}
	step := int64(100)
	if quick {
		step = 275
	}
	onServer := []string{lockRole + "-1"}
	return []dose{
		{name: "pause", last: true, title: "The owner is paused", axis: "length of the pause / TTL", sizes: upTo(step, 1500, 2000),
			fault: func(size int64, ttl time.Duration) sim.Fault {
				return sim.Fault{Kind: sim.Pause, On: []string{"client-1"}, For: permilleOf(max(size, 1), ttl)}
			}},
		{name: "clock-step", title: "The clock of a lock server jumps ahead", axis: "size of the jump / TTL", sizes: upTo(step, 1500, 2000),
			fault: func(size int64, ttl time.Duration) sim.Fault {
				return sim.Fault{Kind: sim.ClockStep, On: onServer, By: permilleOf(max(size, 1), ttl)}
			}},
		{name: "clock-step-client", title: "The clock of the waiting client jumps ahead", axis: "size of the jump / TTL", sizes: upTo(step, 1500, 2000),
			fault: func(size int64, ttl time.Duration) sim.Fault {
				return sim.Fault{Kind: sim.ClockStep, On: []string{"client-2"}, By: permilleOf(max(size, 1), ttl)}
			}},
		{name: "clock-rate", title: "The clock of a lock server runs fast", axis: "rate of the clock / true rate - 1", sizes: upTo(step, 1500, 2000),
			fault: func(size int64, _ time.Duration) sim.Fault {
				return sim.Fault{Kind: sim.ClockRate, On: onServer, Rate: max(size*1_000_000, 1)}
			}},
		{name: "replication-lag", title: "A failover, while the replica lags", axis: "longest replication lag / TTL", sizes: upTo(step),
			fault: func(int64, time.Duration) sim.Fault {
				return sim.Fault{Kind: sim.Failover, On: onServer, Mode: "demoted"} // clients are sent on to the new primary
			},
			params: func(p *Params, size int64) {
				p.ReplicationLag = max(time.Duration(size)*(p.TTL/1000), time.Millisecond)
			}},
	}
}

// curves measures every curve for every design on its first resource, which is
// the plain one wherever it can serve that.
func (c *comparer) curves(ctx context.Context) error {
	list := doses(c.out.Spec.Quick)
	type job struct {
		curve int
		pair  *pair
	}
	var jobs []job
	planned := int64(0)
	for i := range list {
		for k := range c.pairs {
			if k == 0 || c.pairs[k].design != c.pairs[k-1].design {
				jobs = append(jobs, job{i, &c.pairs[k]})
				planned += int64(len(list[i].sizes)) * c.doseRuns(&c.pairs[k])
			}
		}
	}
	c.plan(planned)
	found := make([]*CurveSeries, len(jobs))
	err := c.each(ctx, len(jobs), func(i int, watch *sim.Watch) (err error) {
		found[i], err = c.series(ctx, &list[jobs[i].curve], jobs[i].pair, watch)
		return err
	})
	for i := range list {
		curve := Curve{Name: list[i].name, Title: list[i].title, Axis: list[i].axis, How: howAny, Series: []CurveSeries{}}
		if list[i].last {
			curve.How = howLast
		}
		for k, s := range found {
			if jobs[k].curve == i && s != nil {
				curve.Series = append(curve.Series, *s)
			}
		}
		c.out.Curves = append(c.out.Curves, curve)
	}
	return err
}

// doseRuns is how many runs a point of a curve has: the same number for each
// write before which the fault strikes.
func (c *comparer) doseRuns(p *pair) int64 {
	return doseWrites * max(halfIf(p.long, c.out.Spec.Runs)/25, 1)
}

// series measures one design's line; nil if the fault cannot befall it.
func (c *comparer) series(ctx context.Context, d *dose, p *pair, watch *sim.Watch) (*CurveSeries, error) {
	out := &CurveSeries{Design: p.design.Name, Resource: p.resource.Name}
	runs := c.doseRuns(p)
	var world *doseWorld
	defer func() {
		if world != nil {
			world.close()
		}
	}()
	for _, size := range d.sizes {
		if world == nil || d.params != nil {
			params := c.params
			params.Work = params.TTL / 10
			if d.params != nil {
				d.params(&params, size)
			}
			if world != nil {
				world.close()
			}
			var err error
			if world, err = newDoseWorld(p, params, d.last); err != nil {
				return nil, err
			}
		}
		fault := d.fault(size, c.params.TTL)
		n, err := c.twoWriters(ctx, world, runs, watch, func(at sim.Trigger) sim.Plan {
			f := fault
			f.Trigger = at
			return sim.Plan{Faults: []sim.Fault{f}}
		})
		if err != nil || n < 0 {
			return nil, err
		}
		out.Points = append(out.Points, CurvePoint{Size: size, Share: NewShare(n, runs)})
	}
	return out, nil
}

// twoWriters counts in how many runs two wrote; -1 if some fault of the plan
// cannot befall the design.
func (c *comparer) twoWriters(ctx context.Context, world *doseWorld, runs int64, watch *sim.Watch, plan func(at sim.Trigger) sim.Plan) (int64, error) {
	n := int64(0)
	for i := range runs {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		seed := c.out.Spec.Seed + uint64(i)
		r, at := world.runner(seed)
		asked := plan(at)
		cast := r.Cast(asked)
		if len(cast.Faults) < len(asked.Faults) {
			return -1, nil
		}
		r.follow(cast)
		res, err := c.watched(r, seed, sim.TraceOff, watch)
		if err != nil {
			return 0, err
		}
		if res.Verdict == checker.VerdictTwoWriters {
			n++
		}
	}
	return n, nil
}

// watched is one run with its line to the watchdog.
func (c *comparer) watched(r *Runner, seed uint64, mode sim.TraceMode, watch *sim.Watch) (*Result, error) {
	if watch != nil {
		watch.Begin(func() string {
			return "locklab report --only " + c.part + " --design " + r.Design.Name + " --seed " + strconv.FormatUint(seed, 10)
		})
		defer watch.End()
	}
	res, err := r.Run(seed, mode)
	c.did(1)
	return res, err
}
