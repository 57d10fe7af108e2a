package scenarios

import (
	"context"
	"slices"
	"time"

	"locklab/checker"
	"locklab/clock"
	"locklab/models"
	"locklab/sim"
)

// Recovery is how long nobody works after an owner has died amid its section.
type Recovery struct {
	Design   string  `json:"design"`
	Resource string  `json:"resource"`
	Death    string  `json:"death"` // process or machine
	TTL      int64   `json:"ttl_ms"`
	Runs     int64   `json:"runs"`
	Times    []int64 `json:"times_ms"` // from the crash to the next owner's first access to the data, the shortest first
	Never    int64   `json:"never"`    // runs in which nobody worked again within recoveryTTLs leases
}

// recoveryTTLs is how many leases a run goes on after its owner's death, about.
const recoveryTTLs = 4

// recovery measures every design on its first resource. One that promises
// nothing is left out: its clients do not wait for each other.
func (c *comparer) recovery(ctx context.Context) error {
	ttls := []time.Duration{c.params.TTL / 5, c.params.TTL, 3 * c.params.TTL}
	if c.out.Spec.Quick {
		ttls = ttls[1:2]
	}
	var jobs []Recovery
	planned := int64(0)
	for k := range c.pairs {
		p := &c.pairs[k]
		if k > 0 && p.design == c.pairs[k-1].design || p.design.Promise == models.NoPromise {
			continue
		}
		for _, death := range []string{"process", "machine"} {
			for _, ttl := range ttls {
				jobs = append(jobs, Recovery{Design: p.design.Name, Resource: p.resource.Name, Death: death,
					TTL: int64(ttl / time.Millisecond), Runs: c.doseRuns(p), Times: []int64{}})
				planned += c.doseRuns(p)
			}
		}
	}
	c.plan(planned)
	done := make([]bool, len(jobs))
	err := c.each(ctx, len(jobs), func(i int, watch *sim.Watch) error {
		err := c.recover(ctx, &jobs[i], watch)
		done[i] = err == nil
		return err
	})
	for i := range jobs {
		if done[i] {
			c.out.Recovery = append(c.out.Recovery, jobs[i])
		}
	}
	return err
}

func (c *comparer) recover(ctx context.Context, out *Recovery, watch *sim.Watch) error {
	p := c.pairOf(out.Design)
	params := c.params
	params.TTL = time.Duration(out.TTL) * time.Millisecond
	params.Work = params.TTL / 10
	params.Clients, params.Writes, params.Stagger = 2, doseWrites, 100*time.Millisecond
	params.Sections = 3 // the survivor, should they have worked at once, is not done when the owner dies
	params.Horizon = (recoveryTTLs + 1) * params.TTL
	r, err := NewRunner(Case{Design: p.design, Resource: p.resource, Params: params})
	if err != nil {
		return err
	}
	defer r.Close()
	mode := map[string]string{"process": "process", "machine": "node"}[out.Death]
	for i := range out.Runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		seed := c.out.Spec.Seed + uint64(i)
		r.follow(sim.Plan{Faults: []sim.Fault{{Kind: sim.Crash, Mode: mode, On: []string{"client-1"}, Trigger: doseAt(seed)}}})
		res, err := c.watched(r, seed, sim.TraceOff, watch)
		if err != nil {
			return err
		}
		if d, ok := workedAgain(res); ok {
			out.Times = append(out.Times, int64(d/time.Millisecond))
		} else {
			out.Never++
		}
	}
	slices.Sort(out.Times)
	return nil
}

// workedAgain is how long after the first fault struck somebody else than
// client-1 first had an access to the data accepted.
func workedAgain(res *Result) (time.Duration, bool) {
	struck := res.Faults[0].Struck
	first := clock.Never
	for i := range res.History.Ops {
		o := &res.History.Ops[i]
		access := o.Kind == checker.Read || o.Kind == checker.Write || o.Kind == checker.Append
		if access && o.Client != 0 && o.Decision == checker.Accepted && o.Effect.At >= struck {
			first = min(first, o.Effect.At)
		}
	}
	if !res.Faults[0].Fired || first == clock.Never {
		return 0, false
	}
	return time.Duration(first - struck), true
}
