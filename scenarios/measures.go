package scenarios

import (
	"cmp"
	"slices"
	"time"

	"locklab/checker"
	"locklab/clock"
	"locklab/sim"
)

// Measures say how a run went for those who waited for the lock, and how much
// they asked. They are no verdicts. They need no recorded trace.
type Measures struct {
	// A wait begins when a section asks for the lock. An acquire that is
	// repeated because nobody knows its outcome goes on with the same wait.
	Waits   int
	Served  int // ended with the lock
	GaveUp  int // ended without
	Starved int // had not ended when the run was cut off
	Crashed int // ended by a crash of the client

	WaitersMax int           // most that waited at the same time
	WaitMedian time.Duration // of the waits that were served
	Wait99     time.Duration
	WaitMax    time.Duration // of all, those in vain included

	// Overtaken is how often others who had asked later were served during one
	// wait, at most. OutOfOrder counts the grants that went to somebody although
	// another had asked earlier and still waited.
	OvertakenMax int
	OutOfOrder   int

	// Requests are all that clients sent for their operations; LockRequests
	// are those of acquires and releases (renewals cost the same however many
	// wait).
	Requests     int
	LockRequests int
	Releases     int
	// HerdMax is the most lock requests that were sent within Burst after a
	// release took effect, HerdMean their mean in thousandths: what one release
	// sets off.
	HerdMax  int
	HerdMean int64
	// The most lock requests within any second, and within any Burst; and the
	// most within any Burst of those that only waiting causes: the requests of
	// acquires but for the first of each.
	SecondMax  int
	BurstMax   int
	RetriesMax int

	Sections int           // with an accepted change
	Lasted   time.Duration // the whole run

	// Sections that came from outside. A delay lasts from when a section was
	// asked for until its client has the lock.
	Arrived     int
	Refused     int // the queue for a client was full
	Left        int // they had waited too long for a client
	DelayMedian time.Duration
	Delay99     time.Duration
}

// Burst is the shorter of the two spans in which requests are counted: a few
// round trips.
const Burst = 10 * time.Millisecond

// PerRelease is how many lock requests there were for each release, in
// thousandths; 0 without a release.
func (m *Measures) PerRelease() int64 { return thousandths(m.LockRequests, m.Releases) }

// PerSection is how many requests there were for each completed section, in
// thousandths; 0 without a section.
func (m *Measures) PerSection() int64 { return thousandths(m.Requests, m.Sections) }

// PerSecond is how many sections were completed a second, in thousandths.
func (m *Measures) PerSecond() int64 {
	if m.Lasted == 0 {
		return 0
	}
	return int64(m.Sections) * 1000 * int64(time.Second) / int64(m.Lasted)
}

// Success is the share of the waits that ended with the lock, in thousandths.
// Those that a crash ended do not count.
func (m *Measures) Success() int64 { return thousandths(m.Served, m.Waits-m.Crashed) }

// NotServed is the share of the arrivals that never got the lock: no client
// took them up, or it gave the lock up. In thousandths.
func (m *Measures) NotServed() int64 {
	return thousandths(m.Refused+m.Left+m.GaveUp, m.Arrived)
}

func thousandths(n, of int) int64 {
	if of == 0 {
		return 0
	}
	return (int64(n)*2000/int64(of) + 1) / 2
}

// Measure measures a run.
func Measure(res *Result) Measures {
	var m Measures
	waits := collectWaits(res)
	m.countWaits(waits)
	m.countOvertaking(waits)
	m.countRequests(res)
	m.countArrivals(res)
	return m
}

// lockWait is one section's wait for the lock.
type lockWait struct {
	client, section int32
	from, to        clock.Time
	end             waitEnd
}

type waitEnd uint8

const (
	waitServed waitEnd = iota
	waitGaveUp
	waitStarved
	waitCrashed
)

// collectWaits lists the waits of a run by their beginnings.
func collectWaits(res *Result) []lockWait {
	h := res.History
	var waits []lockWait
	open := make([]int, len(h.Clients)) // each client's wait that is not over, counted from 1
	for i := range h.Ops {
		o := &h.Ops[i]
		if o.Kind != checker.Acquire {
			continue
		}
		w := open[o.Client]
		if w == 0 || waits[w-1].section != o.Section {
			if w > 0 { // it had given up without knowing
				waits[w-1].to, waits[w-1].end = o.Invoke.At, waitGaveUp
			}
			waits = append(waits, lockWait{client: o.Client, section: o.Section, from: o.Invoke.At, to: h.End, end: waitStarved})
			w = len(waits)
		}
		open[o.Client] = w
		switch x := &waits[w-1]; {
		case o.Outcome == checker.OK:
			x.to, x.end, open[o.Client] = o.Return.At, waitServed, 0
		case o.Outcome == checker.Refused:
			x.to, x.end, open[o.Client] = o.Return.At, waitGaveUp, 0
		case o.Loss == checker.LossCrashed:
			x.to, x.end, open[o.Client] = o.BelievesUntil.At, waitCrashed, 0
		}
	}
	if res.Ended == sim.EndDone { // nobody waits any more
		for _, w := range open {
			if w > 0 {
				waits[w-1].end = waitGaveUp
			}
		}
	}
	return waits
}

func (m *Measures) countWaits(waits []lockWait) {
	var served []time.Duration
	edges := make([]edge, 0, 2*len(waits))
	for i := range waits {
		w := &waits[i]
		lasted := time.Duration(w.to - w.from)
		m.WaitMax = max(m.WaitMax, lasted)
		edges = append(edges, edge{w.from, 1}, edge{w.to, -1})
		switch w.end {
		case waitServed:
			m.Served++
			served = append(served, lasted)
		case waitGaveUp:
			m.GaveUp++
		case waitStarved:
			m.Starved++
		case waitCrashed:
			m.Crashed++
		}
	}
	m.Waits = len(waits)
	m.WaitersMax = highest(edges)
	slices.Sort(served)
	m.WaitMedian, m.Wait99 = percentile(served, 50), percentile(served, 99)
}

// edge is where a number changes.
type edge struct {
	at clock.Time
	by int
}

// highest is the highest that the number gets. What ends at a moment has ended
// before what begins then.
func highest(edges []edge) int {
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now, top := 0, 0
	for _, e := range edges {
		now += e.by
		top = max(top, now)
	}
	return top
}

// percentile is the least of the sorted values that at least p percent of them
// do not exceed (the nearest rank); 0 of none.
func percentile[T any](sorted []T, p int) (zero T) {
	if len(sorted) == 0 {
		return zero
	}
	return sorted[(len(sorted)*p+99)/100-1]
}

// countOvertaking compares the order of asking with the order of being served.
func (m *Measures) countOvertaking(waits []lockWait) {
	byEnd := make([]int, len(waits))
	for i := range byEnd {
		byEnd[i] = i
	}
	slices.SortStableFunc(byEnd, func(a, b int) int { return cmp.Compare(waits[a].to, waits[b].to) })
	later := make(counts, len(waits)+1)
	served := 0
	for _, i := range byEnd {
		m.OvertakenMax = max(m.OvertakenMax, served-later.upTo(i))
		if waits[i].end == waitServed {
			later.add(i)
			served++
		}
	}
	first := len(waits) // who asked first of those whose wait ends later
	for k := len(byEnd) - 1; k >= 0; k-- {
		i := byEnd[k]
		if waits[i].end == waitServed && first < i {
			m.OutOfOrder++
		}
		first = min(first, i)
	}
}

// counts is a Fenwick tree: it counts how many of the added numbers are at most
// a given one.
type counts []int

func (c counts) add(i int) {
	for i++; i < len(c); i += i & -i {
		c[i]++
	}
}

func (c counts) upTo(i int) (n int) {
	for i++; i > 0; i -= i & -i {
		n += c[i]
	}
	return n
}

// countRequests counts what was sent, and when.
func (m *Measures) countRequests(res *Result) {
	h := res.History
	sent, again := lockRequests(res)
	m.Requests, m.LockRequests = len(res.Requests), len(sent)
	m.SecondMax, m.BurstMax = mostWithin(sent, time.Second), mostWithin(sent, Burst)
	m.RetriesMax = mostWithin(again, Burst)
	herds := 0
	for i := range h.Ops {
		o := &h.Ops[i]
		if o.Kind != checker.Release {
			continue
		}
		m.Releases++
		if o.Effect.Known() {
			after := sentAfter(sent, o.Effect.At)
			herds += after
			m.HerdMax = max(m.HerdMax, after)
		}
	}
	m.HerdMean = thousandths(herds, m.Releases)
	m.Sections, m.Lasted = SectionsCompleted(h), time.Duration(h.End)
}

// lockRequests lists when clients sent requests of acquires and releases, and
// which of them only waiting caused: those of acquires but for the first of each.
func lockRequests(res *Result) (sent, again []clock.Time) {
	ops := res.History.Ops
	asked := make([]bool, len(ops))
	for _, r := range res.Requests {
		switch ops[r.Op-1].Kind {
		case checker.Acquire:
			if asked[r.Op-1] {
				again = append(again, r.At)
			}
			asked[r.Op-1] = true
			sent = append(sent, r.At)
		case checker.Release:
			sent = append(sent, r.At)
		}
	}
	return sent, again
}

// SectionsCompleted counts the critical sections of which a change was accepted.
func SectionsCompleted(h *checker.History) int {
	type section struct{ client, number int32 }
	done := map[section]bool{}
	for i := range h.Ops {
		if o := &h.Ops[i]; (o.Kind == checker.Write || o.Kind == checker.Append) && o.Decision == checker.Accepted {
			done[section{o.Client, o.Section}] = true
		}
	}
	return len(done)
}

// mostWithin is the most of the sorted times that lie within a span.
func mostWithin(times []clock.Time, span time.Duration) int {
	most, from := 0, 0
	for i, t := range times {
		for times[from].Add(span) <= t {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// sentAfter counts the sorted times within Burst after a moment.
func sentAfter(times []clock.Time, at clock.Time) int {
	from, _ := slices.BinarySearch(times, at+1)
	to, _ := slices.BinarySearch(times, at.Add(Burst)+1)
	return to - from
}

// countArrivals measures how sections fared that came from outside.
func (m *Measures) countArrivals(res *Result) {
	if len(res.Arrivals) == 0 {
		return
	}
	type section struct{ client, number int32 }
	asked := make(map[section]clock.Time, len(res.Arrivals))
	for i := range res.Arrivals {
		switch a := &res.Arrivals[i]; a.Fate {
		case ArrivalTaken:
			asked[section{a.Client, a.Section}] = a.At
		case ArrivalRefused:
			m.Refused++
		case ArrivalLeft:
			m.Left++
		}
	}
	m.Arrived = len(res.Arrivals)
	var delays []time.Duration
	for i := range res.History.Ops {
		o := &res.History.Ops[i]
		s := section{o.Client, o.Section}
		if at, ok := asked[s]; ok && o.Kind == checker.Acquire && o.Outcome == checker.OK {
			delays = append(delays, time.Duration(o.Return.At-at))
			delete(asked, s) // a repeated section counts once
		}
	}
	slices.Sort(delays)
	m.DelayMedian, m.Delay99 = percentile(delays, 50), percentile(delays, 99)
}
