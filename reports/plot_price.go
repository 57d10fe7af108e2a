package reports

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"

	"locklab/scenarios"
)

// priceRow is one design or pair with its price and its worst verdict.
type priceRow struct {
	*scenarios.Price
	verdict string // over all families but the operator's; "" where the matrix has nothing
}

func priceRows(c *scenarios.Comparison) []priceRow {
	var out []priceRow
	for i := range c.Prices {
		r := priceRow{Price: &c.Prices[i]}
		rank := -1
		for k := range c.Matrix {
			m := &c.Matrix[k]
			if m.Design == r.Design && m.Resource == r.Resource && !operatorFamily(c, m.Family) && severity(m.Worst) > rank {
				rank, r.verdict = severity(m.Worst), m.Worst
			}
		}
		out = append(out, r)
	}
	return out
}

func operatorFamily(c *scenarios.Comparison, name string) bool {
	for _, f := range c.Families {
		if f.Name == name {
			return f.Operator
		}
	}
	return false
}

// severity orders verdicts, the worst last.
func severity(verdict string) int {
	for i, v := range []string{"vacuous", "safe", "fenced", "stuck", "lost-update", "two-writers"} {
		if v == verdict {
			return i
		}
	}
	return -1
}

// priceBar is one column of the picture.
type priceBar struct {
	title, unit string
	log         bool
	value       func(*priceRow) (float64, string)  // negative: nothing to show, the text says why
	interval    func(*priceRow) scenarios.Quantile // nil: counted, so that there is none
}

func priceBars() []priceBar {
	section := func(r *priceRow) float64 { return float64(max(r.Sections, 1)) }
	wait := func(q scenarios.Quantile, r *priceRow) (float64, string) {
		if r.Acquires == 0 {
			return -1, "waits for nobody"
		}
		return max(float64(q.Us)/1000, 1), fmt.Sprintf("%.0f ms", float64(q.Us)/1000)
	}
	median := func(r *priceRow) scenarios.Quantile { return r.AcquireP50 }
	slowest := func(r *priceRow) scenarios.Quantile { return r.AcquireP99 }
	return []priceBar{
		{"messages", "per section, log scale", true, func(r *priceRow) (float64, string) {
			return float64(r.Messages) / section(r), fmt.Sprintf("%.0f", float64(r.Messages)/section(r))
		}, nil},
		{"acquire, median", "log scale", true, func(r *priceRow) (float64, string) { return wait(r.AcquireP50, r) }, median},
		{"acquire, 99 %", "log scale", true, func(r *priceRow) (float64, string) { return wait(r.AcquireP99, r) }, slowest},
		{"unavailable", "of the time in which somebody wants the lock", false, func(r *priceRow) (float64, string) {
			if r.Acquires == 0 || r.WantedUs == 0 {
				return -1, "–"
			}
			v := float64(r.UnavailableUs) / float64(r.WantedUs)
			return v, share100(v)
		}, nil},
	}
}

const (
	priceHigh = 15
	priceWide = 130
)

func priceFigures(c *scenarios.Comparison) []Figure {
	rows := priceRows(c)
	if len(rows) == 0 {
		return nil
	}
	f := Figure{Name: "price", Title: "The price of safety: what each design costs while nothing goes wrong", Reading: priceReading(rows),
		Note: fmt.Sprintf("%d runs a line without faults, by default of three clients with three sections each and 1 s of work. Messages count what programs and servers send, also to each other. An acquire's time includes the wait for others; black lines: 95 %% intervals of its quantiles, from %s acquires. "+
			"Unavailable: somebody wanted the lock and nobody believed to hold it. Letter and colour: the worst verdict under any family of faults but the operator's: %s.", rows[0].Runs, acquiresText(rows), verdictLegend)}
	bars := priceBars()
	f.width = 2*margin + 270 + vg.Length(len(bars))*priceWide
	f.height = 34 + priceHigh*vg.Length(len(rows))
	tops := make([]float64, len(bars))
	for i := range rows {
		for k := range bars {
			v, _ := bars[k].value(&rows[i])
			tops[k] = max(tops[k], v)
			if bars[k].interval != nil {
				tops[k] = max(tops[k], float64(bars[k].interval(&rows[i]).High)/1000)
			}
		}
	}
	f.body = func(p *pen) {
		for k, b := range bars {
			x := margin + 270 + vg.Length(k)*priceWide
			p.text(x, 10, b.title, textSize, ink, bold)
			for n, line := range p.wrap(b.unit, smallSize-1, priceWide-8) {
				p.text(x, 19+8*vg.Length(n), line, smallSize-1, faint, 0)
			}
		}
		for i := range rows {
			drawPrice(p, &rows[i], bars, tops, 34+priceHigh*vg.Length(i), i > 0 && rows[i-1].Design == rows[i].Design)
		}
	}
	return []Figure{f}
}

// acquiresText says how many acquires the quantiles are of.
func acquiresText(rows []priceRow) string {
	low, high := int64(0), int64(0)
	for i := range rows {
		if n := rows[i].Acquires; n > 0 {
			if low == 0 || n < low {
				low = n
			}
			high = max(high, n)
		}
	}
	return between(low, high)
}

func drawPrice(p *pen, r *priceRow, bars []priceBar, tops []float64, y vg.Length, same bool) {
	if !same {
		p.line(rule, 0.5, nil, vg.Point{X: margin, Y: y}, vg.Point{X: margin + 270 + vg.Length(len(bars))*priceWide, Y: y})
		p.text(margin, y+11, p.cut(r.Design, textSize-0.5, 160), textSize-0.5, ink, 0)
	}
	p.text(margin+165, y+11, r.Resource, smallSize, faint, 0)
	if r.verdict != "" {
		fill, letter, on := verdictLook(r.verdict)
		p.rect(margin+242, y+1.5, 18, priceHigh-3, fill)
		p.text(margin+251, y+11, letter, textSize, on, bold|middle)
	}
	for k, b := range bars {
		x := margin + 270 + vg.Length(k)*priceWide
		v, label := b.value(r)
		if v < 0 {
			p.text(x, y+11, label, smallSize, faint, 0)
			continue
		}
		long := func(v float64) vg.Length {
			part := v / max(tops[k], 1e-9)
			if b.log {
				part = math.Log10(max(v, 1)) / math.Log10(max(tops[k], 10))
			}
			return vg.Length(part) * (priceWide - 50)
		}
		w := long(v)
		p.rect(x, y+3, w, priceHigh-6, skyBlue)
		if b.interval != nil {
			q := b.interval(r)
			low, high := x+long(float64(q.Low)/1000), x+long(float64(q.High)/1000)
			p.line(ink, 1, nil, vg.Point{X: low, Y: y + priceHigh/2}, vg.Point{X: high, Y: y + priceHigh/2})
			w = max(w, high-x)
		}
		p.text(x+w+3, y+11, label, smallSize, ink, 0)
	}
}

// priceReading compares the cheapest pair without two writers with the
// cheapest of all.
func priceReading(rows []priceRow) string {
	cost := func(r *priceRow) float64 { return float64(r.Messages) / float64(max(r.Sections, 1)) }
	var all, safe *priceRow
	known := false
	for i := range rows {
		r := &rows[i]
		known = known || r.verdict != ""
		if all == nil || cost(r) < cost(all) {
			all = r
		}
		if (r.verdict == "safe" || r.verdict == "fenced") && (safe == nil || cost(r) < cost(safe)) {
			safe = r
		}
	}
	text := fmt.Sprintf("The fewest messages, %.0f a section, are those of %s on %s", cost(all), all.Design, all.Resource)
	switch {
	case !known:
		return text + "; without the matrix there is no verdict beside it."
	case safe == nil:
		return text + "; nothing here was unharmed by every family of faults."
	}
	return text + fmt.Sprintf("; of what no family of faults but the operator's harmed, %s on %s is the cheapest: %.0f.", safe.Design, safe.Resource, cost(safe))
}
