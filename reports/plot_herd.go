package reports

import (
	"fmt"

	"locklab/scenarios"
)

func herdFigures(c *scenarios.Comparison) []Figure {
	if len(c.Herds) == 0 {
		return nil
	}
	var each, peak []alike
	runs, most, high := int64(0), 0.0, 0.0
	for _, h := range c.Herds {
		a, b := series{}, series{}
		for _, q := range h.Points {
			x := float64(q.Waiters)
			perRelease := float64(q.Requests) / float64(max(q.Releases, 1))
			a.x, a.y = append(a.x, x), append(a.y, max(perRelease, 1))
			a.low, a.high = append(a.low, max(float64(q.Low)/1000, 1)), append(a.high, max(float64(q.High)/1000, 1))
			b.x, b.y = append(b.x, x), append(b.y, max(float64(q.Peak), 1))
			runs, most, high = q.Runs, max(most, perRelease), max(high, float64(q.Peak))
		}
		name := h.Design + ": " + h.Waiting
		each, peak = join(each, name, a), join(peak, name, b)
	}
	last := c.Herds[0].Points[len(c.Herds[0].Points)-1].Waiters
	xs := scale{label: "waiting clients", min: 1, max: float64(last) * 1.1, log: true}
	for _, q := range c.Herds[0].Points {
		xs.ticks = append(xs.ticks, float64(q.Waiters))
	}
	list := []panel{
		{title: "Requests of clients for each release", series: lines(each, ""), xs: xs, ys: scale{label: "requests / release", min: 1, max: decade(most), log: true}},
		{title: "The herd: most requests within 10 ms", series: lines(peak, ""), xs: xs, ys: scale{label: "requests in 10 ms", min: 1, max: decade(high), log: true}},
	}
	return []Figure{panels(Figure{Name: "herd", Title: "What waiting clients ask of the lock's servers", Reading: herdReading(c),
		Note: fmt.Sprintf("Clients that begin at the same instant, hold the lock for the work's length and come again at once. Requests to lock servers to acquire or release; not those that keep a lease or session alive. "+
			"Counted from 5 s to 20 s of simulated time, %d run(s) a point; bands: from the least to the most of the runs; the peak is the largest of all. Both axes are logarithmic. Ways to wait with the very same counts share a line.", runs)}, list, 2)}
}

// decade is the next power of ten.
func decade(v float64) float64 {
	d := 10.0
	for d < v {
		d *= 10
	}
	return d
}

// herdReading compares the ways to wait at the largest number of clients.
func herdReading(c *scenarios.Comparison) string {
	type end struct {
		name string
		each float64
		peak int64
	}
	var ends []end
	for _, h := range c.Herds {
		q := h.Points[len(h.Points)-1]
		ends = append(ends, end{h.Design + " (" + h.Waiting + ")", float64(q.Requests) / float64(max(q.Releases, 1)), q.Peak})
	}
	most, least, calm := ends[0], ends[0], ends[0]
	for _, e := range ends {
		if e.each > most.each {
			most = e
		}
		if e.each < least.each {
			least = e
		}
		if e.peak < calm.peak {
			calm = e
		}
	}
	n := c.Herds[0].Points[len(c.Herds[0].Points)-1].Waiters
	return fmt.Sprintf("With %d waiting, a release costs %.0f requests under %s and %.0f under %s; the smallest peak is %d in 10 ms, under %s, and the peak of the first is %d.",
		n, most.each, most.name, least.each, least.name, calm.peak, calm.name, most.peak)
}
