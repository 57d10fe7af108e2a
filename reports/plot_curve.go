package reports

import (
	"fmt"
	"slices"
	"strings"

	"locklab/scenarios"
)

// groupOf is the panel in which a design's line stands.
func groupOf(design string) string {
	switch f := family(design); f {
	case "redis", "redis-replica", "redlock", "postgres":
		return f
	case "etcd", "zookeeper", "k8s":
		return "consensus stores"
	}
	return "others"
}

func groups() []string {
	return []string{"redis", "redis-replica", "redlock", "postgres", "consensus stores", "others"}
}

// alike joins designs with the very same line under one name.
type alike struct {
	names []string
	line  series
}

// join adds a line, to an equal one if there is one.
func join(list []alike, name string, s series) []alike {
	for i := range list {
		l := &list[i].line
		if slices.Equal(l.x, s.x) && slices.Equal(l.y, s.y) && slices.Equal(l.low, s.low) {
			list[i].names = append(list[i].names, name)
			return list
		}
	}
	return append(list, alike{[]string{name}, s})
}

// lines gives joined lines their names, without the group's own.
func lines(list []alike, group string) []series {
	var out []series
	for _, a := range list {
		var short []string
		for _, n := range a.names {
			short = append(short, strings.TrimPrefix(n, group+"/"))
		}
		a.line.name = strings.Join(short, ", ")
		out = append(out, a.line)
	}
	return out
}

func curveFigures(c *scenarios.Comparison) []Figure {
	var out []Figure
	for i := range c.Curves {
		if len(c.Curves[i].Series) > 0 {
			out = append(out, curveFigure(&c.Curves[i]))
		}
	}
	return out
}

func curveFigure(c *scenarios.Curve) Figure {
	var list []panel
	low, high := int64(0), int64(0)
	for _, g := range groups() {
		var joined []alike
		top := 0.0
		for _, s := range c.Series {
			if groupOf(s.Design) != g {
				continue
			}
			line := series{}
			for _, q := range s.Points {
				line.x, line.y = append(line.x, float64(q.Size)/1000), append(line.y, q.Share.Rate)
				line.low, line.high = append(line.low, q.Share.Low), append(line.high, q.Share.High)
				top = max(top, float64(q.Size)/1000)
				if low == 0 || q.Share.Of < low {
					low = q.Share.Of
				}
				high = max(high, q.Share.Of)
			}
			joined = join(joined, s.Design, line)
		}
		if len(joined) > 0 {
			list = append(list, panel{title: g, series: lines(joined, g),
				xs: scale{label: c.Axis, max: top}, ys: scale{label: "runs with two writers", max: 1, percent: true}})
		}
	}
	return panels(Figure{Name: "curve-" + c.Name, Title: c.Title + ": how often two write", Reading: curveReading(c),
		Note: fmt.Sprintf("%s Lines: rates; bands: 95 %% intervals (Wilson). %s runs a point. Designs with the very same counts share a line.", c.How, between(low, high))}, list, 3)
}

// curveReading says from which size on half of the runs have two writers.
func curveReading(c *scenarios.Curve) string {
	never, always, first, last := 0, 0, int64(-1), int64(-1)
	var earliest []string
	top := int64(0)
	for _, s := range c.Series {
		half, any := int64(-1), false
		for _, q := range s.Points {
			top = max(top, q.Size)
			any = any || q.Share.Runs > 0
			if half < 0 && q.Share.Rate >= 0.5 {
				half = q.Size
			}
		}
		switch {
		case !any:
			never++
		case half == s.Points[0].Size:
			always++
		case half >= 0:
			if first < 0 || half < first {
				first, earliest = half, nil
			}
			if half == first {
				earliest = append(earliest, s.Design)
			}
			last = max(last, half)
		}
	}
	text := fmt.Sprintf("%d of %d designs never let two write (%s up to %s)", never, len(c.Series), c.Axis, thousandths(top))
	if always > 0 {
		text += fmt.Sprintf("; %d do even without the fault", always)
	}
	if first >= 0 {
		who := fmt.Sprintf("%d designs", len(earliest))
		if len(earliest) <= 3 {
			who = strings.Join(earliest, ", ")
		}
		text += fmt.Sprintf("; half of the runs have two writers first at %s (%s)", thousandths(first), who)
		if last > first {
			text += fmt.Sprintf(" and last at %s", thousandths(last))
		}
	}
	return text + "."
}

func thousandths(n int64) string { return fmt.Sprintf("%g", float64(n)/1000) }
