package reports

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"locklab/scenarios"
)

// recoveryFigures draws, for each way to die, how long it took until somebody
// worked again: an empirical distribution for each design, and how it goes with
// the TTL.
func recoveryFigures(c *scenarios.Comparison) []Figure {
	var out []Figure
	for _, death := range []string{"process", "machine"} {
		if f, ok := recoveryFigure(c, death); ok {
			out = append(out, f)
		}
		if f, ok := recoveryByTTL(c, death); ok {
			out = append(out, f)
		}
	}
	return out
}

// recoveryPanels makes a panel of each group from the lines of its designs.
func recoveryPanels(c *scenarios.Comparison, death string, xs, ys scale, line func(design string) (series, bool)) []panel {
	var list []panel
	for _, g := range groups() {
		var joined []alike
		done := ""
		for i := range c.Recovery {
			r := &c.Recovery[i]
			if r.Death != death || groupOf(r.Design) != g || r.Design == done {
				continue
			}
			done = r.Design
			if s, ok := line(r.Design); ok {
				joined = join(joined, r.Design, s)
			}
		}
		if len(joined) > 0 {
			list = append(list, panel{title: g, series: lines(joined, g), xs: xs, ys: ys})
		}
	}
	return list
}

// recoveryOf finds a measurement, nil if there is none.
func recoveryOf(c *scenarios.Comparison, design, death string, ttl int64) *scenarios.Recovery {
	for i := range c.Recovery {
		if r := &c.Recovery[i]; r.Design == design && r.Death == death && r.TTL == ttl {
			return r
		}
	}
	return nil
}

func recoveryFigure(c *scenarios.Comparison, death string) (Figure, bool) {
	ttls := recoveryTTLs(c)
	if len(ttls) == 0 {
		return Figure{}, false
	}
	ttl, low, high := commonTTL(ttls), int64(0), int64(0)
	list := recoveryPanels(c, death, scale{label: "time until somebody works again / TTL", max: 2}, scale{label: "runs in which somebody does", max: 1, percent: true},
		func(design string) (series, bool) {
			r := recoveryOf(c, design, death, ttl)
			if r == nil {
				return series{}, false
			}
			if low == 0 || r.Runs < low {
				low = r.Runs
			}
			high = max(high, r.Runs)
			return distribution(r), true
		})
	if len(list) == 0 {
		return Figure{}, false
	}
	return panels(Figure{Name: "recovery-" + death, Title: "The owner's " + death + " dies: when does somebody work again?",
		Reading: recoveryReading(c, death, ttl),
		Note: fmt.Sprintf("Empirical distributions of the time from the crash to the next owner's first access to the data, with a TTL of %gs. The owner dies before the first to the eighth of its writes in turn, a tenth of the TTL apart; bands: 95 %% intervals (Wilson). "+
			"%s runs a line; a line that stays below 100 %% has runs in which nobody worked again within 4 TTL. Lines are drawn in steps of a fiftieth of the TTL; those that are the same then are one.", float64(ttl)/1000, between(low, high))}, list, 3), true
}

// distribution is the share of runs by time over TTL, at steps of a fiftieth:
// lines of designs that differ only by a message's latency are one.
func distribution(r *scenarios.Recovery) series {
	s := series{steps: true}
	for k := 0; k <= 100; k++ {
		at := float64(k) / 50
		n := int64(0)
		for _, ms := range r.Times {
			if float64(ms)/float64(r.TTL) <= at {
				n++
			}
		}
		share := scenarios.NewShare(n, r.Runs)
		s.x, s.y = append(s.x, at), append(s.y, share.Rate)
		s.low, s.high = append(s.low, share.Low), append(s.high, share.High)
	}
	return s
}

// recoveryByTTL draws the median over the TTL, with the range that nine of ten
// runs are in.
func recoveryByTTL(c *scenarios.Comparison, death string) (Figure, bool) {
	ttls := recoveryTTLs(c)
	if len(ttls) < 2 {
		return Figure{}, false
	}
	longest := float64(ttls[len(ttls)-1]) / 1000
	low, high := int64(0), int64(0)
	var silent []string
	list := recoveryPanels(c, death, scale{label: "TTL, s", max: longest * 1.02}, scale{label: "time until somebody works again, s", max: longest * 1.1},
		func(design string) (series, bool) {
			s := series{}
			for _, ttl := range ttls {
				r := recoveryOf(c, design, death, ttl)
				if r == nil || r.Never*20 > r.Runs { // one in twenty: the band has no upper end
					continue
				}
				if low == 0 || r.Runs < low {
					low = r.Runs
				}
				high = max(high, r.Runs)
				at := func(percent int64) float64 {
					ms := float64(r.Times[min((r.Runs*percent+99)/100, int64(len(r.Times)))-1])
					return math.Round(ms/float64(ttl)*50) * float64(ttl) / 50 / 1000
				}
				s.x, s.y = append(s.x, float64(ttl)/1000), append(s.y, at(50))
				s.low, s.high = append(s.low, at(5)), append(s.high, at(95))
			}
			if len(s.x) == 0 {
				silent = append(silent, design)
			}
			return s, len(s.x) > 0
		})
	if len(list) == 0 {
		return Figure{}, false
	}
	reading := fmt.Sprintf("Left out: %s, under which more than one in twenty runs had nobody at work again within 4 TTL.", count(len(silent), "design", "designs")+" ("+few(silent)+")")
	if len(silent) == 0 {
		reading = "Under every design somebody worked again within 4 TTL in nineteen of twenty runs."
	}
	return panels(Figure{Name: "recovery-" + death + "-ttl", Title: "The owner's " + death + " dies: the time until somebody works again against the TTL", Reading: reading,
		Note: fmt.Sprintf("Lines: medians; bands: from the 5th to the 95th percentile of the runs. %s runs a point, rounded to a fiftieth of the TTL; designs that are the same then share a line.", between(low, high))}, list, 3), true
}

// recoveryReading names the fastest and slowest designs, by the median at the
// TTL that most runs have in common.
func recoveryReading(c *scenarios.Comparison, death string, ttl int64) string {
	var fast, slow, never []string
	quick, late := -1.0, -1.0
	designs := 0
	for i := range c.Recovery {
		r := &c.Recovery[i]
		if r.Death != death || r.TTL != ttl {
			continue
		}
		designs++
		if int64(len(r.Times))*2 <= r.Runs {
			never = append(never, r.Design)
			continue
		}
		m := float64(r.Times[(r.Runs-1)/2]) / 1000
		if quick < 0 || m < quick {
			quick, fast = m, nil
		}
		if m == quick {
			fast = append(fast, r.Design)
		}
		if m > late {
			late, slow = m, nil
		}
		if m == late {
			slow = append(slow, r.Design)
		}
	}
	text := fmt.Sprintf("With a TTL of %gs the median is between %.2f s (%s) and %.2f s (%s)", float64(ttl)/1000, quick, few(fast), late, few(slow))
	if quick < 0 {
		text = fmt.Sprintf("With a TTL of %gs no design works again in half of the runs", float64(ttl)/1000)
	}
	if len(never) > 0 {
		text += fmt.Sprintf("; %d of %d designs do not work again within 4 TTL in half of the runs: %s", len(never), designs, few(never))
	}
	return text + "."
}

// recoveryTTLs lists the TTLs that were measured, the shortest first.
func recoveryTTLs(c *scenarios.Comparison) []int64 {
	var ttls []int64
	for i := range c.Recovery {
		if ttl := c.Recovery[i].TTL; !slices.Contains(ttls, ttl) {
			ttls = append(ttls, ttl)
		}
	}
	slices.Sort(ttls)
	return ttls
}

// commonTTL is the one in the middle.
func commonTTL(ttls []int64) int64 { return ttls[len(ttls)/2] }

// few names at most four.
func few(names []string) string {
	if len(names) > 4 {
		return strings.Join(names[:3], ", ") + fmt.Sprintf(" and %d more", len(names)-3)
	}
	return strings.Join(names, ", ")
}
