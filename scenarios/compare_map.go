package scenarios

import (
	"context"
	"slices"
	"time"

	"locklab/sim"
)

// SafetyMap tells for every pair of two sizes how often two wrote, and where
// by the design's own reckoning they could.
type SafetyMap struct {
	Name     string  `json:"name"`
	Title    string  `json:"title"`
	Design   string  `json:"design"`
	Resource string  `json:"resource"`
	How      string  `json:"how"` // how it was measured
	XAxis    string  `json:"x_axis"`
	YAxis    string  `json:"y_axis"`
	X        []int64 `json:"x"`     // milliseconds
	Y        []int64 `json:"y"`     // milliseconds
	Cells    []Share `json:"cells"` // row by row, the lowest y first
	Bounds   []Bound `json:"bounds"`
}

// Bound is a line that theory draws into a map.
type Bound struct {
	Text   string     `json:"text"`
	Points [][2]int64 `json:"points"` // x and y, milliseconds
}

// mapping is a map to be measured.
type mapping struct {
	name, title, design string
	xAxis, yAxis        string
	last                bool // the fault strikes before the last write
	x, y                []int64
	params              func(p *Params, x, y time.Duration)
	plan                func(x, y time.Duration, at sim.Trigger) sim.Plan
	bounds              []Bound
}

// mappings lists the maps: pauses against TTLs for a lease that is not renewed,
// for one that is, for Redlock and for a kept-alive lease; and a jump of the clock of
// one Redlock server against the delay of the messages to two others.
func mappings(ttl time.Duration, quick bool) []mapping {
	steps := 12
	if quick {
		steps = 6
	}
	ramp := func(from, to int64) []int64 {
		out := make([]int64, steps)
		for i := range out {
			out[i] = from + (to-from)*int64(i)/int64(steps-1)
		}
		return out
	}
	work := ttl / 10 // before each write, whatever the TTL on the map
	shortest := int64(work / time.Millisecond)
	longest := int64(2 * ttl / time.Millisecond)
	pauses := func(design, title string, bounds ...Bound) mapping {
		return mapping{name: "pause-ttl-" + design, title: title, design: design, last: true,
			xAxis: "TTL", yAxis: "length of the owner's pause", x: ramp(longest/12, longest), y: ramp(0, longest), bounds: bounds,
			params: func(p *Params, x, _ time.Duration) { p.TTL, p.Work = x, work },
			plan: func(_, y time.Duration, at sim.Trigger) sim.Plan {
				return sim.Plan{Faults: []sim.Fault{{Kind: sim.Pause, On: []string{"client-1"}, For: sim.Exactly(max(y, time.Millisecond)), Trigger: at}}}
			}}
	}
	line := func(text string, slopeNum, slopeDen, minus int64) Bound {
		b := Bound{Text: text}
		for _, x := range []int64{min(minus*slopeDen/slopeNum, longest), longest} { // from where it leaves the x axis
			b.Points = append(b.Points, [2]int64{x, x*slopeNum/slopeDen - minus})
		}
		return b
	}
	unrenewed := []Bound{line("pause = TTL - longest section: from here on possible", 1, 1, doseWrites*shortest),
		line("pause = TTL - shortest section: from here on certain", 1, 1, shortest)}
	renewed := []Bound{line("pause = 2/3 TTL: from here on possible", 2, 3, 0), line("pause = TTL: from here on certain", 1, 1, 0)}
	sizes := int64(ttl / time.Millisecond)
	return []mapping{
		pauses("redis/lua-release", "A lease that is not renewed", unrenewed...),
		pauses("redis/watchdog", "A lease that is renewed every TTL/3", renewed...),
		pauses("redlock", "Redlock", unrenewed...),
		pauses("etcd/lock", "A lease that is kept alive every TTL/3", renewed...),
		{name: "step-delay-redlock", title: "Redlock: one clock jumps, two servers are slow to hear", design: "redlock",
			xAxis: "delay of the requests to two of five servers", yAxis: "jump of a third server's clock",
			x: ramp(0, sizes*12/10), y: ramp(0, sizes*12/10),
			params: func(p *Params, _, _ time.Duration) { p.Work = work },
			plan: func(x, y time.Duration, at sim.Trigger) sim.Plan {
				late := func(server string) sim.Fault {
					return sim.Fault{Kind: sim.Delay, On: []string{"client-1->" + server}, By: sim.Exactly(max(x, time.Millisecond))}
				}
				return sim.Plan{Faults: []sim.Fault{late(lockRole + "-4"), late(lockRole + "-5"),
					{Kind: sim.ClockStep, On: []string{lockRole + "-3"}, By: sim.Exactly(max(y, time.Millisecond)), Trigger: at}}}
			},
			bounds: []Bound{{Text: "delay + jump = TTL: from here on possible", Points: [][2]int64{{0, sizes}, {sizes, 0}}}}},
	}
}

// maps measures every map whose design is in the comparison.
func (c *comparer) maps(ctx context.Context) error {
	type job struct{ m, row int }
	list := mappings(c.params.TTL, c.out.Spec.Quick)
	list = slices.DeleteFunc(list, func(m mapping) bool { return c.pairOf(m.design) == nil })
	var jobs []job
	planned := int64(0)
	for i := range list {
		for row := range list[i].y {
			jobs = append(jobs, job{i, row})
		}
		planned += int64(len(list[i].x)*len(list[i].y)) * c.mapRuns(c.pairOf(list[i].design))
	}
	c.plan(planned)
	rows := make([][]Share, len(jobs))
	err := c.each(ctx, len(jobs), func(i int, watch *sim.Watch) (err error) {
		m := &list[jobs[i].m]
		rows[i], err = c.mapRow(ctx, m, m.y[jobs[i].row], watch)
		return err
	})
	if err != nil {
		return err
	}
	for i := range list {
		m := &list[i]
		p := c.pairOf(m.design)
		out := SafetyMap{Name: m.name, Title: m.title, Design: p.design.Name, Resource: p.resource.Name,
			How: howAny, XAxis: m.xAxis, YAxis: m.yAxis, X: m.x, Y: m.y, Cells: []Share{}, Bounds: m.bounds}
		if m.last {
			out.How = howLast
		}
		for k := range jobs {
			if jobs[k].m == i {
				out.Cells = append(out.Cells, rows[k]...)
			}
		}
		c.out.Maps = append(c.out.Maps, out)
	}
	return nil
}

// mapRuns is how many runs a cell of a map has.
func (c *comparer) mapRuns(p *pair) int64 {
	return doseWrites * max(halfIf(p.long, c.out.Spec.Runs)/100, 1)
}

// pairOf returns a design's first pair, nil if it is not in the comparison.
func (c *comparer) pairOf(design string) *pair {
	for i := range c.pairs {
		if c.pairs[i].design.Name == design {
			return &c.pairs[i]
		}
	}
	return nil
}

func (c *comparer) mapRow(ctx context.Context, m *mapping, y int64, watch *sim.Watch) ([]Share, error) {
	p := c.pairOf(m.design)
	runs := c.mapRuns(p)
	var out []Share
	for _, x := range m.x {
		params := c.params
		dx, dy := time.Duration(x)*time.Millisecond, time.Duration(y)*time.Millisecond
		m.params(&params, dx, dy)
		world, err := newDoseWorld(p, params, m.last)
		if err != nil {
			return nil, err
		}
		n, err := c.twoWriters(ctx, world, runs, watch, func(at sim.Trigger) sim.Plan { return m.plan(dx, dy, at) })
		world.close()
		if err != nil {
			return nil, err
		}
		out = append(out, NewShare(max(n, 0), runs))
	}
	return out, nil
}
