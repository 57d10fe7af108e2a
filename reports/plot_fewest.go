package reports

import (
	"fmt"
	"strings"

	"gonum.org/v1/plot/vg"

	"locklab/scenarios"
)

const fewestHigh = 15

func fewestFigures(c *scenarios.Comparison) []Figure {
	if len(c.Fewest) == 0 {
		return nil
	}
	rows := c.Fewest
	f := Figure{Name: "fewest", Title: "The fewest faults that let two owners write", Reading: fewestReading(rows),
		Note: "Every placement of one fault at every place of clients, lock requests and storage requests, with a fixed ladder of sizes (locklab exhaust), in a run of two clients with two sections each and nothing left to chance. " +
			"Bar: the share of these placements that let two write, all of them counted, so that there is no interval. Operator: keys evicted or overwritten, snapshots restored."}
	f.width, f.height = 2*margin+760, 22+fewestHigh*vg.Length(len(rows))
	f.body = func(p *pen) {
		for _, h := range []struct {
			x    vg.Length
			text string
		}{{0, "design"}, {170, "resource"}, {250, "faults"}, {300, "placements with two writers"}, {500, "by"}, {700, "operator"}} {
			p.text(margin+h.x, 12, h.text, textSize-0.5, ink, bold)
		}
		for i := range rows {
			drawFewest(p, &rows[i], 20+fewestHigh*vg.Length(i), i > 0 && rows[i-1].Design == rows[i].Design)
		}
	}
	return []Figure{f}
}

func drawFewest(p *pen, r *scenarios.FewestCell, y vg.Length, same bool) {
	if !same {
		p.line(rule, 0.5, nil, vg.Point{X: margin, Y: y}, vg.Point{X: margin + 750, Y: y})
		p.text(margin, y+11, p.cut(r.Design, textSize-0.5, 165), textSize-0.5, ink, 0)
	}
	p.text(margin+170, y+11, r.Resource, smallSize, faint, 0)
	verdict, number := "safe", fmt.Sprintf(">%d", r.MaxFaults)
	if r.TwoWriters >= 0 {
		verdict, number = "two-writers", fmt.Sprint(r.TwoWriters)
	}
	fill, _, on := verdictLook(verdict)
	p.rect(margin+250, y+1.5, 24, fewestHigh-3, fill)
	p.text(margin+262, y+11, number, textSize, on, bold|middle)
	if r.TwoWriters >= 0 {
		all := max(r.Executions, 1)
		w := 110 * vg.Length(float64(r.Placements)/float64(all))
		p.rect(margin+300, y+3, w, fewestHigh-6, vermillion)
		p.text(margin+303+w, y+11, fmt.Sprintf("%d of %d", r.Placements, r.Executions), smallSize, ink, 0)
		p.text(margin+500, y+11, p.cut(fewestKinds(r), smallSize, 195), smallSize, ink, 0)
	} else {
		p.text(margin+300, y+11, fmt.Sprintf("none of %d", r.Executions), smallSize, faint, 0)
	}
	operator := fmt.Sprintf(">%d", r.MaxFaults)
	if r.OperatorTwoWriters >= 0 {
		operator = fmt.Sprint(r.OperatorTwoWriters)
	}
	p.text(margin+720, y+11, operator, smallSize, ink, middle)
}

// fewestKinds lists the kinds of faults that let two write, the most frequent
// first.
func fewestKinds(r *scenarios.FewestCell) string {
	for _, a := range r.Answers {
		if a.Answer != "two-writers" {
			continue
		}
		var kinds []string
		for _, k := range a.Kinds {
			if k.Kinds != "" {
				kinds = append(kinds, k.Kinds)
			}
		}
		return strings.Join(kinds, ", ")
	}
	return ""
}

// fewestReading counts the rows by their number of faults.
func fewestReading(rows []scenarios.FewestCell) string {
	none, one, more, executions := 0, 0, 0, int64(0)
	var safe []string
	for i := range rows {
		executions += rows[i].Executions
		switch rows[i].TwoWriters {
		case 0:
			none++
		case -1:
			more++
			safe = append(safe, rows[i].Design+" on "+rows[i].Resource)
		default:
			one++
		}
	}
	text := fmt.Sprintf("Of %d, %d let two write without any fault and %d with a single one; %d withstood every single fault", len(rows), none, one, more)
	if more > 0 && more <= 5 {
		text += " (" + strings.Join(safe, ", ") + ")"
	}
	return text + fmt.Sprintf(", in %d executions.", executions)
}
