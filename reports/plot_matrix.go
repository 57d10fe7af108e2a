package reports

import (
	"fmt"
	"strings"

	"gonum.org/v1/plot/vg"

	"locklab/scenarios"
)

// matrixRow is one line of a matrix: a design with a resource, and its cells by
// family.
type matrixRow struct {
	design, resource string
	cells            []*scenarios.MatrixCell // by family; nil where nothing was run
}

// matrixRows orders the cells into rows, in the order of the designs.
func matrixRows(c *scenarios.Comparison) []matrixRow {
	var out []matrixRow
	for _, d := range c.Designs {
		for _, r := range c.Resources {
			row := matrixRow{d.Name, r.Name, make([]*scenarios.MatrixCell, len(c.Families))}
			seen := false
			for i := range c.Matrix {
				m := &c.Matrix[i]
				if m.Design != d.Name || m.Resource != r.Name {
					continue
				}
				for k := range c.Families {
					if c.Families[k].Name == m.Family {
						row.cells[k], seen = m, true
					}
				}
			}
			if seen {
				out = append(out, row)
			}
		}
	}
	return out
}

// unprotected splits the rows: each design on its first resource, and the
// others.
func unprotected(rows []matrixRow) (first, others []matrixRow) {
	for i, r := range rows {
		if i == 0 || rows[i-1].design != r.design {
			first = append(first, r)
		} else {
			others = append(others, r)
		}
	}
	return first, others
}

func matrixFigures(c *scenarios.Comparison) []Figure {
	first, others := unprotected(matrixRows(c))
	var out []Figure
	if len(first) > 0 {
		out = append(out, matrixFigure(c, "matrix", "Designs against families of faults, on the plain resource (or their own)", first))
	}
	if len(others) > 0 {
		out = append(out, matrixFigure(c, "matrix-protected", "The same with a protected resource", others))
	}
	return out
}

// The sizes of a matrix.
const (
	cellWide  = 52
	cellHigh  = 21
	nameWide  = 190
	headHigh  = 36
	familyGap = 6
)

func matrixFigure(c *scenarios.Comparison, name, title string, rows []matrixRow) Figure {
	f := Figure{Name: name, Title: title, Reading: matrixReading(c, rows), Note: matrixNote(c, rows)}
	f.width = 2*margin + nameWide + vg.Length(len(c.Families))*cellWide + 4
	f.height = headHigh + 4
	for i := range rows {
		f.height += cellHigh
		if i > 0 && family(rows[i].design) != family(rows[i-1].design) {
			f.height += familyGap
		}
	}
	f.body = func(p *pen) { drawMatrix(p, c, rows) }
	return f
}

func family(design string) string {
	f, _, _ := strings.Cut(design, "/")
	return f
}

func drawMatrix(p *pen, c *scenarios.Comparison, rows []matrixRow) {
	x0 := vg.Length(margin + nameWide)
	for k := range c.Families {
		x := columnX(c, k, x0)
		for n, line := range p.wrap(strings.ReplaceAll(c.Families[k].Name, "-", " "), textSize-0.5, cellWide-14) {
			p.text(x+cellWide/2, 14+vg.Length(n)*11, line, textSize-0.5, ink, middle|bold)
		}
	}
	y := vg.Length(headHigh - 4)
	for i := range rows {
		r := &rows[i]
		if i > 0 && family(r.design) != family(rows[i-1].design) {
			y += familyGap
		}
		label := r.design
		p.text(margin, y+cellHigh/2, p.cut(label, textSize, nameWide-6), textSize, ink, 0)
		p.text(margin, y+cellHigh/2+8, "on "+r.resource, smallSize-0.5, faint, 0)
		for k, cell := range r.cells {
			drawCell(p, columnX(c, k, x0), y, cell)
			if cell != nil && changed(c, cell) {
				p.corner(columnX(c, k, x0)+0.5, y+0.5, 8)
			}
		}
		y += cellHigh
	}
}

// columnX is where a column begins; the operator's stands apart.
func columnX(c *scenarios.Comparison, k int, x0 vg.Length) vg.Length {
	x := x0 + vg.Length(k)*cellWide
	if c.Families[k].Operator {
		x += 4
	}
	return x
}

// drawCell draws letter, rate and interval on the verdict's colour.
func drawCell(p *pen, x, y vg.Length, m *scenarios.MatrixCell) {
	if m == nil {
		p.text(x+cellWide/2, y+cellHigh/2+3, "not run", smallSize-1, faint, middle)
		return
	}
	if !m.Possible {
		p.text(x+cellWide/2, y+cellHigh/2+3, "cannot be", smallSize-1, faint, middle)
		return
	}
	fill, letter, on := verdictLook(m.Worst)
	p.rect(x+0.5, y+0.5, cellWide-1, cellHigh-1, fill)
	p.text(x+4, y+13.5, letter, 11, on, bold)
	p.text(x+cellWide-4, y+9.5, share100(m.Share.Rate), smallSize, on, right)
	p.text(x+cellWide-4, y+17.5, intervalText(m.Share), smallSize-1.5, on, right)
}

// changed reports whether a cell says something else than in the report that
// this one was compared with.
func changed(c *scenarios.Comparison, m *scenarios.MatrixCell) bool {
	if c.Changes == nil {
		return false
	}
	for _, x := range c.Changes.Cells {
		if x.Part == scenarios.PartMatrix && x.Column == m.Family && x.Design == m.Design && x.Resource == m.Resource {
			return true
		}
	}
	return false
}

// matrixReading says what the rows show.
func matrixReading(c *scenarios.Comparison, rows []matrixRow) string {
	var unharmed []string
	two, worst, share := 0, "", -1.0
	for i := range rows {
		harmed, writes := false, false
		for k, m := range rows[i].cells {
			if m == nil || c.Families[k].Operator {
				continue
			}
			harmed = harmed || m.Harm.Runs > 0
			if m.Worst == "two-writers" {
				writes = true
				if rows[i].cells[0] != nil && rows[i].cells[0].Worst != "two-writers" && m.Share.Rate > share {
					share, worst = m.Share.Rate, m.Design+" on "+m.Resource+" under "+m.Family
				}
			}
		}
		if writes {
			two++
		}
		if !harmed {
			unharmed = append(unharmed, rows[i].design+" on "+rows[i].resource)
		}
	}
	text := fmt.Sprintf("%d of %d let two write under some family of faults", two, len(rows))
	if share > 0 {
		text += fmt.Sprintf(", of those that do not without faults most often %s (%s)", worst, share100(share))
	}
	switch n := len(unharmed); {
	case n == 0:
		text += "; none came through every family unharmed."
	case n <= 6:
		text += "; unharmed by all but the operator's faults: " + strings.Join(unharmed, ", ") + "."
	default:
		text += fmt.Sprintf("; %d came through all but the operator's faults unharmed.", n)
	}
	return text
}

func matrixNote(c *scenarios.Comparison, rows []matrixRow) string {
	low, high := int64(0), int64(0)
	for i := range rows {
		for _, m := range rows[i].cells {
			if m == nil {
				continue
			}
			if low == 0 || m.Runs < low {
				low = m.Runs
			}
			high = max(high, m.Runs)
		}
	}
	marked := ""
	if c.Changes != nil {
		marked = " A black corner: changed since the older report."
	}
	return fmt.Sprintf("Each cell: the worst verdict that was seen, by letter and colour (%s), the rate of the runs that gave it, and beneath its 95 %% interval (Wilson) in percent. "+
		"%s runs a cell, from seed %d; one seed is the same adversary in every row. The operator's faults, against which no lock is built, stand apart; cannot be: the design has nobody whom they could strike.",
		verdictLegend, between(low, high), c.Spec.Seed) + marked
}
