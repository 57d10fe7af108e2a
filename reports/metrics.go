package reports

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"locklab/checker"
	"locklab/clock"
	"locklab/scenarios"
	"locklab/sim"
)

// Metric is one measure of a run. Measures are never verdicts.
type Metric struct {
	Name  string // stable; a duration's ends in _ns
	Value int64
	// Unit is "ns" for durations, "" for numbers. A number in thousandths has
	// "milli", and its name ends so.
	Unit string
}

// Title is the name for people: without its unit, in words.
func (m Metric) Title() string {
	name := strings.TrimSuffix(strings.TrimSuffix(m.Name, "_ns"), "_"+milli)
	return strings.ReplaceAll(name, "_", " ")
}

// String writes the value for people.
func (m Metric) String() string {
	switch m.Unit {
	case "ns":
		return length(time.Duration(m.Value))
	case milli:
		return strconv.FormatFloat(float64(m.Value)/1000, 'f', -1, 64)
	}
	return fmtInt(m.Value)
}

// Metrics measures a run, always in the same order. What was not recorded is
// left out: messages need a recorded trace, the final value somebody who
// looked. So is what means nothing: measures of waiting where nobody competed.
func Metrics(res *scenarios.Result) []Metric {
	m := scenarios.Measure(res)
	out := general(res)
	if competed(&m) {
		out = append(out, waiting(&m)...)
	}
	if m.Arrived > 0 {
		out = append(out, load(&m)...)
	}
	return out
}

// competed reports whether at least two waited for the lock at once.
func competed(m *scenarios.Measures) bool { return m.WaitersMax > 1 }

// general measures what every run has.
func general(res *scenarios.Result) []Metric {
	h := res.History
	out := []Metric{number("sections_begun", sectionsBegun(h)), number("sections_completed", scenarios.SectionsCompleted(h))}
	if res.Trace != nil {
		out = append(out, Metric{Name: "messages_sent", Value: messagesSent(res.Trace)})
	}
	if lasted := acquireLatencies(h); len(lasted) > 0 {
		out = append(out, duration("acquire_latency_median_ns", lasted[(len(lasted)-1)/2]),
			duration("acquire_latency_max_ns", lasted[len(lasted)-1]))
	}
	out = append(out, duration("overlap_max_ns", overlapMax(h)), duration("unavailable_max_ns", unavailableMax(res)))
	for _, m := range scenarios.SweepMeasures() {
		if d, ok := m.Of(h); ok && d != scenarios.Endless {
			out = append(out, duration(m.Name, d))
		}
	}
	switch {
	case h.Final == nil:
	case h.Data == checker.List:
		out = append(out, Metric{Name: "final_length", Value: int64(len(h.Final))})
	case len(h.Final) > 0:
		out = append(out, Metric{Name: "final_value", Value: h.Final[0]})
	}
	return out
}

// milli is the unit of thousandths.
const milli = "milli"

// waiting measures how it went for those who waited for the lock.
func waiting(m *scenarios.Measures) []Metric {
	return []Metric{
		number("waiters_max", m.WaitersMax),
		duration("wait_median_ns", m.WaitMedian),
		duration("wait_max_ns", m.WaitMax),
		number("overtaken_max", m.OvertakenMax),
		number("grants_out_of_order", m.OutOfOrder),
		number("gave_up", m.GaveUp),
		number("starved", m.Starved),
		{"acquire_success_milli", m.Success(), milli},
		{"requests_per_section_milli", m.PerSection(), milli},
		{"requests_per_release_milli", m.PerRelease(), milli},
		{"requests_after_release_mean_milli", m.HerdMean, milli},
		number("requests_after_release_max", m.HerdMax),
		number("requests_in_1s_max", m.SecondMax),
		number("requests_in_10ms_max", m.BurstMax),
		number("retries_in_10ms_max", m.RetriesMax),
	}
}

// load measures how sections fared that came from outside.
func load(m *scenarios.Measures) []Metric {
	return []Metric{
		number("arrived", m.Arrived),
		number("refused", m.Refused),
		number("left", m.Left),
		{"not_served_milli", m.NotServed(), milli},
		{"sections_per_second_milli", m.PerSecond(), milli},
		duration("queueing_delay_median_ns", m.DelayMedian),
		duration("queueing_delay_p99_ns", m.Delay99),
	}
}

func number(name string, n int) Metric { return Metric{Name: name, Value: int64(n)} }

func duration(name string, d time.Duration) Metric {
	return Metric{Name: name, Value: int64(d), Unit: "ns"}
}

// sectionsBegun counts the critical sections that began: their client believed
// to hold the lock, or needed none.
func sectionsBegun(h *checker.History) int {
	type section struct{ client, number int32 }
	began := map[section]bool{}
	for i := range h.Ops {
		switch o := &h.Ops[i]; {
		case o.Kind == checker.Acquire && o.Outcome == checker.OK, o.Kind != checker.Acquire && o.Kind != checker.Renew && o.Kind != checker.Release:
			began[section{o.Client, o.Section}] = true
		}
	}
	return len(began)
}

// messagesSent counts what programs sent; the kernels' own FIN and RST are
// left out.
func messagesSent(trace []sim.Event) (n int64) {
	for i := range trace {
		if e := &trace[i]; e.Kind == sim.EventSend && !sim.IsControl(e.Body) {
			n++
		}
	}
	return n
}

// acquireLatencies lists how long the acquires took that succeeded, the
// shortest first.
func acquireLatencies(h *checker.History) (lasted []time.Duration) {
	for i := range h.Ops {
		if o := &h.Ops[i]; o.Kind == checker.Acquire && o.Outcome == checker.OK && o.Return.Known() {
			lasted = append(lasted, time.Duration(o.Return.At-o.Invoke.At))
		}
	}
	slices.Sort(lasted)
	return lasted
}

// edge is where a number changes.
type edge struct {
	at           clock.Time
	wants, holds int
}

// longest walks through time from edge to edge and returns the longest
// unbroken stretch, up to end, in which is holds of how many want and hold.
func longest(edges []edge, end clock.Time, is func(wants, holds int) bool) time.Duration {
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	var best time.Duration
	wants, holds, since := 0, 0, clock.Never
	for i := 0; i < len(edges); {
		at := min(edges[i].at, end)
		for ; i < len(edges) && min(edges[i].at, end) == at; i++ {
			wants, holds = wants+edges[i].wants, holds+edges[i].holds
		}
		switch now := is(wants, holds); {
		case now && since == clock.Never:
			since = at
		case !now && since != clock.Never:
			best, since = max(best, time.Duration(at-since)), clock.Never
		}
	}
	if since != clock.Never {
		best = max(best, time.Duration(end-since))
	}
	return best
}

// beliefs are the edges of how many clients believe that they hold the lock.
func beliefs(h *checker.History) (edges []edge) {
	for i := range h.Ops {
		if o := &h.Ops[i]; o.Kind == checker.Acquire && o.Outcome == checker.OK && o.Return.Known() {
			edges = append(edges, edge{at: o.Return.At, holds: 1}, edge{at: o.BelievesUntil.At, holds: -1})
		}
	}
	return edges
}

// overlapMax is the longest time in which two clients believed at once.
func overlapMax(h *checker.History) time.Duration {
	return longest(beliefs(h), h.End, func(_, holds int) bool { return holds > 1 })
}

// unavailableMax is the longest time in which somebody wanted the lock and no
// client believed that it held it: a grant that nobody knows of serves nobody.
func unavailableMax(res *scenarios.Result) time.Duration {
	h := res.History
	edges := beliefs(h)
	next := make([]clock.Time, len(h.Clients)) // when each client next asked
	for i := range next {
		next[i] = clock.Never
	}
	for i := len(h.Ops) - 1; i >= 0; i-- {
		o := &h.Ops[i]
		if o.Kind != checker.Acquire {
			continue
		}
		until := o.Return.At // of an unknown outcome: until it asked again, or crashed
		if until == clock.Never {
			until = next[o.Client]
			if o.Loss == checker.LossCrashed {
				until = min(until, o.BelievesUntil.At)
			}
		}
		next[o.Client] = o.Invoke.At
		edges = append(edges, edge{at: o.Invoke.At, wants: 1}, edge{at: until, wants: -1})
	}
	return longest(edges, h.End, func(wants, holds int) bool { return wants > 0 && holds == 0 })
}
