package reports

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// upwardAngle turns a text to run upwards.
const upwardAngle = math.Pi / 2

// axes is a frame with two scales, in which a panel draws its lines.
type axes struct {
	*pen
	x, y, w, h vg.Length // of the inner frame
	xs, ys     scale
}

// scale says what part of an axis is shown.
type scale struct {
	label    string
	min, max float64
	log      bool
	percent  bool      // values are rates
	ticks    []float64 // nil: round numbers
}

func (s *scale) at(v float64) float64 {
	if s.log {
		return (math.Log10(v) - math.Log10(s.min)) / (math.Log10(s.max) - math.Log10(s.min))
	}
	return (v - s.min) / (s.max - s.min)
}

// marks lists the values at which the scale has a label.
func (s *scale) marks() []float64 {
	var out []float64
	switch {
	case s.ticks != nil:
		return s.ticks
	case s.log:
		for v := 1.0; v <= s.max; v *= 10 {
			if v >= s.min {
				out = append(out, v)
			}
		}
		return out
	}
	step := 1.0
	for _, round := range []float64{0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 5, 10, 20, 25, 50} {
		if step = round; (s.max-s.min)/step <= 6 {
			break
		}
	}
	for k := math.Ceil(s.min / step); k*step <= s.max*1.0001; k++ {
		out = append(out, k*step+0) // no minus zero
	}
	return out
}

func (s *scale) text(v float64) string {
	if s.percent {
		return fmt.Sprintf("%.0f %%", 100*v)
	}
	return fmt.Sprintf("%.4g", v)
}

// Room around the inner frame for numbers and labels.
const (
	axisLeft   = 46
	axisBottom = 32
)

// frame draws axes into a box whose upper left corner is x, y.
func (p *pen) frame(x, y, w, h vg.Length, xs, ys scale) *axes {
	a := &axes{pen: p, x: x + axisLeft, y: y + 4, w: w - axisLeft - 8, h: h - axisBottom - 4, xs: xs, ys: ys}
	for _, t := range ys.marks() {
		at := a.py(t)
		p.line(rule, 0.5, nil, vg.Point{X: a.x, Y: at}, vg.Point{X: a.x + a.w, Y: at})
		p.text(a.x-4, at+2.5, ys.text(t), smallSize, faint, right)
	}
	for _, t := range xs.marks() {
		at := a.px(t)
		p.line(rule, 0.5, nil, vg.Point{X: at, Y: a.y}, vg.Point{X: at, Y: a.y + a.h})
		p.text(at, a.y+a.h+10, xs.text(t), smallSize, faint, middle)
	}
	p.line(faint, 0.7, nil, vg.Point{X: a.x, Y: a.y}, vg.Point{X: a.x, Y: a.y + a.h}, vg.Point{X: a.x + a.w, Y: a.y + a.h})
	p.text(a.x+a.w/2, a.y+a.h+22, xs.label, textSize-0.5, ink, middle)
	p.text(x+9, a.y+a.h/2, ys.label, textSize-0.5, ink, middle|upward)
	return a
}

func (a *axes) px(v float64) vg.Length { return a.x + a.w*vg.Length(a.xs.at(v)) }
func (a *axes) py(v float64) vg.Length { return a.y + a.h*vg.Length(1-a.ys.at(v)) }

func (a *axes) point(x, y float64) vg.Point { return vg.Point{X: a.px(x), Y: a.py(y)} }

// series is one line of a panel.
type series struct {
	name      string
	x, y      []float64
	low, high []float64 // of the confidence band; nil: none
	steps     bool      // an empirical distribution: it jumps, and has no marks
}

// plot draws a line with its band.
func (a *axes) plot(s *series, look lineLook) {
	var line, band []vg.Point
	for i := range s.x {
		if s.steps && i > 0 {
			line = append(line, a.point(s.x[i], s.y[i-1]))
		}
		line = append(line, a.point(s.x[i], s.y[i]))
	}
	if s.low != nil {
		for i := range s.x {
			band = append(band, a.point(s.x[i], s.high[i]))
		}
		for i := len(s.x) - 1; i >= 0; i-- {
			band = append(band, a.point(s.x[i], s.low[i]))
		}
		a.area(look.color, band...)
	}
	a.line(look.color, 1.4, look.dashes, line...)
	if !s.steps {
		for _, q := range line {
			a.mark(look.color, look.mark, q.X, q.Y)
		}
	}
}

// panel is a frame with lines, their names beneath, and a title.
type panel struct {
	title  string
	xs, ys scale
	series []series
	extra  func(*axes) // drawn last; nil: nothing
}

const panelPlot = 190 // height of a panel's frame with its numbers

// legendLines breaks the names of the lines.
func (p *pen) legendLines(g *panel, w vg.Length) (lines [][]string, height vg.Length) {
	for i := range g.series {
		l := p.wrap(g.series[i].name, smallSize, w-axisLeft-36)
		lines = append(lines, l)
		height += vg.Length(len(l))*smallSize*lineFactor + 1.5
	}
	return lines, height
}

// panelHeight is how high a panel is.
func (p *pen) panelHeight(g *panel, w vg.Length) vg.Length {
	_, legend := p.legendLines(g, w)
	return 16 + panelPlot + legend + 10
}

// panel draws a panel into a box of width w.
func (p *pen) panel(g *panel, x, y, w vg.Length) {
	p.text(x+axisLeft, y+10, g.title, textSize, ink, bold)
	a := p.frame(x, y+16, w, panelPlot, g.xs, g.ys)
	for i := range g.series {
		a.plot(&g.series[i], lookOf(i))
	}
	if g.extra != nil {
		g.extra(a)
	}
	lines, _ := p.legendLines(g, w)
	at := y + 16 + panelPlot + 4
	for i, l := range lines {
		look := lookOf(i)
		mid := at + smallSize*0.75
		p.line(look.color, 1.4, look.dashes, vg.Point{X: x + axisLeft, Y: mid}, vg.Point{X: x + axisLeft + 22, Y: mid})
		if !g.series[i].steps {
			p.mark(look.color, look.mark, x+axisLeft+11, mid)
		}
		for k, text := range l {
			p.text(x+axisLeft+28, at+smallSize+vg.Length(k)*smallSize*lineFactor, text, smallSize, ink, 0)
		}
		at += vg.Length(len(l))*smallSize*lineFactor + 1.5
	}
}

// panels is a figure of several panels, in so many columns. Their rows are as
// high as their highest.
func panels(f Figure, list []panel, columns int) Figure {
	const wide = 340
	columns = min(columns, len(list))
	f.width = vg.Length(columns)*wide + 2*margin
	p := newPen(draw.Canvas{}, 0) // to measure with
	var heights []vg.Length
	for i := 0; i < len(list); i += columns {
		h := vg.Length(0)
		for k := i; k < min(i+columns, len(list)); k++ {
			h = max(h, p.panelHeight(&list[k], wide))
		}
		heights = append(heights, h)
		f.height += h
	}
	f.body = func(p *pen) {
		y := vg.Length(0)
		for i := range list {
			p.panel(&list[i], margin+vg.Length(i%columns)*wide, y, wide-6)
			if i%columns == columns-1 {
				y += heights[i/columns]
			}
		}
	}
	return f
}
