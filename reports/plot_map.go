package reports

import (
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot/vg"

	"locklab/scenarios"
)

func mapFigures(c *scenarios.Comparison) []Figure {
	var pauses []*scenarios.SafetyMap
	var out []Figure
	for i := range c.Maps {
		if m := &c.Maps[i]; strings.HasPrefix(m.Name, "pause-ttl-") {
			pauses = append(pauses, m)
		} else {
			out = append(out, mapFigure(m.Name, m.Title, []*scenarios.SafetyMap{m}))
		}
	}
	if len(pauses) > 0 {
		out = append([]Figure{mapFigure("map-pause-ttl", "Where a pause is safe: its length against the TTL", pauses)}, out...)
	}
	return out
}

// The sizes of a map.
const (
	mapWide = 330
	mapHigh = 290
)

func mapFigure(name, title string, list []*scenarios.SafetyMap) Figure {
	columns := min(len(list), 2)
	rows := (len(list) + columns - 1) / columns
	if !strings.HasPrefix(name, "map-") {
		name = "map-" + name
	}
	f := Figure{Name: name, Title: title, width: max(2*margin+vg.Length(columns)*mapWide, 460), height: vg.Length(rows) * mapHigh}
	var readings []string
	for _, m := range list {
		readings = append(readings, mapReading(m, len(list) > 1))
	}
	f.Reading = strings.Join(readings, "; ") + "."
	of := int64(0)
	if len(list[0].Cells) > 0 {
		of = list[0].Cells[0].Of
	}
	f.Note = fmt.Sprintf("%s Each cell was measured: the rate of runs with two writers, white 0 %%, dark 100 %%, the number where it is neither. %d runs a cell (of designs whose runs are long perhaps fewer); "+
		"95 %% interval of 0 of %d: up to %s. Lines: where two writers become possible, and certain, by the design's own reckoning.", list[0].How, of, of, share100(scenarios.Wilson(0, of).High))
	f.body = func(p *pen) {
		for i, m := range list {
			drawMap(p, m, margin+vg.Length(i%columns)*mapWide, vg.Length(i/columns)*mapHigh, len(list) > 1)
		}
	}
	return f
}

func drawMap(p *pen, m *scenarios.SafetyMap, x, y vg.Length, caption bool) {
	if caption {
		p.text(x+axisLeft, y+10, m.Title+" ("+m.Design+")", textSize, ink, bold)
	}
	// Each cell reaches half a step around its own sizes.
	dx, dy := float64(m.X[1]-m.X[0])/1000, float64(m.Y[1]-m.Y[0])/1000
	xs := scale{label: m.XAxis + ", s", min: float64(m.X[0])/1000 - dx/2, max: float64(m.X[len(m.X)-1])/1000 + dx/2}
	ys := scale{label: m.YAxis + ", s", min: float64(m.Y[0])/1000 - dy/2, max: float64(m.Y[len(m.Y)-1])/1000 + dy/2}
	legend := vg.Length(len(m.Bounds)) * 11
	a := p.frame(x, y+16, mapWide-10, mapHigh-30-legend, xs, ys)
	for r := range m.Y {
		for k := range m.X {
			s := m.Cells[r*len(m.X)+k]
			left, upper := a.px(float64(m.X[k])/1000-dx/2), a.py(float64(m.Y[r])/1000+dy/2)
			w, h := a.px(float64(m.X[k])/1000+dx/2)-left, a.py(float64(m.Y[r])/1000-dy/2)-upper
			fill := shade(s.Rate)
			p.rect(left+0.3, upper+0.3, w-0.6, h-0.6, fill)
			if s.Rate > 0 && s.Rate < 1 {
				on := ink
				if s.Rate > 0.6 {
					on = color.RGBA{0xff, 0xff, 0xff, 0xff}
				}
				p.text(left+w/2, upper+h/2+2.2, fmt.Sprintf("%.0f", 100*s.Rate), 6, on, middle)
			}
		}
	}
	looks := []lineLook{{color: blue}, {color: ink, dashes: []vg.Length{5, 3}}}
	for i, b := range m.Bounds {
		look := looks[i%len(looks)]
		var line []vg.Point
		for _, q := range b.Points {
			line = append(line, a.point(clamp(float64(q[0])/1000, xs), clamp(float64(q[1])/1000, ys)))
		}
		p.line(look.color, 2, look.dashes, line...)
		at := y + mapHigh - 10 - legend + vg.Length(i)*11
		p.line(look.color, 2, look.dashes, vg.Point{X: x + axisLeft, Y: at + 2}, vg.Point{X: x + axisLeft + 22, Y: at + 2})
		p.text(x+axisLeft+28, at+5, b.Text, smallSize, ink, 0)
	}
}

func clamp(v float64, s scale) float64 { return min(max(v, s.min), s.max) }

// shade runs from white to vermillion and gets darker on its way.
func shade(rate float64) color.RGBA {
	mix := func(to uint8) uint8 { return uint8(0xf7 - rate*float64(0xf7-int(to)) + 0.5) }
	return color.RGBA{mix(vermillion.R - 0x20), mix(vermillion.G - 0x18), mix(vermillion.B), 0xff}
}

// mapReading compares what was measured with the first bound.
func mapReading(m *scenarios.SafetyMap, named bool) string {
	seen, beneath, harmed := 0, 0, 0
	for r := range m.Y {
		for k := range m.X {
			s := m.Cells[r*len(m.X)+k]
			if s.Runs > 0 {
				seen++
			}
			if below(m.Bounds[0].Points, m.X[k], m.Y[r]) {
				beneath++
				if s.Runs > 0 {
					harmed++
				}
			}
		}
	}
	text := fmt.Sprintf("two wrote in %d of %d cells, and in %d of the %d below the line from which theory has it possible", seen, len(m.Cells), harmed, beneath)
	if named {
		text = m.Design + ": " + text
	}
	return text
}

// below reports whether a point lies below a line of two points.
func below(line [][2]int64, x, y int64) bool {
	a, b := line[0], line[1]
	return (y-a[1])*(b[0]-a[0]) < (x-a[0])*(b[1]-a[1])
}
