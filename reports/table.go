package reports

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"locklab/scenarios"
)

// Row is one run as a line of a table.
type Row struct {
	Design, Resource string
	Verdict, Lock    string
	Expected         string // "yes", "NO: two-writers, lock broken", or "" where nothing was; then faults that never struck
	Differs          bool
	Findings         string
}

// RowOf returns a run's line.
func RowOf(res *scenarios.Result) Row {
	r := Row{Design: res.Design.Name, Resource: res.Resource.Name, Verdict: res.Verdict.String(), Lock: res.Report.Lock.String()}
	if e := res.Expectation(); e != nil {
		r.Expected = "yes"
		if r.Differs = !res.AsExpected(); r.Differs {
			r.Expected = "NO: " + e.Verdict
			if e.Lock != "" {
				r.Expected += ", lock " + e.Lock
			}
		}
	}
	for _, f := range idleFaults(res) {
		if r.Expected != "" {
			r.Expected += "; "
		}
		r.Expected += fmt.Sprintf("fault %d %s", f.Fault, f.What)
	}
	counts := map[string]int{}
	var order []string
	for _, f := range res.Report.Findings {
		k := f.Kind.String()
		if counts[k]++; counts[k] == 1 {
			order = append(order, k)
		}
	}
	for i, k := range order {
		if counts[k] > 1 {
			order[i] = fmt.Sprintf("%s x%d", k, counts[k])
		}
	}
	r.Findings = strings.Join(order, ", ")
	return r
}

// Table writes runs as a table of answers.
func Table(w io.Writer, rows []Row, style Style) error {
	head := []string{"design", "resource", "verdict", "lock", "expected", "findings"}
	lines := [][]string{head}
	for _, r := range rows {
		lines = append(lines, []string{r.Design, r.Resource, r.Verdict, r.Lock, r.Expected, r.Findings})
	}
	widths := make([]int, len(head))
	for _, l := range lines {
		for i, cell := range l {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, l := range lines {
		var b strings.Builder
		for i, cell := range l {
			padded := cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case n == 0:
				padded = style.bold(padded)
			case i == 2:
				padded = style.paint(verdictColor(cell), padded)
			case i == 4 && rows[n-1].Differs:
				padded = style.paint("1;31", padded)
			}
			b.WriteString(padded + "  ")
		}
		if _, err := fmt.Fprintln(w, style.text(strings.TrimRight(b.String(), " "))); err != nil {
			return err
		}
	}
	return nil
}

// verdictColor is the SGR code of a verdict.
func verdictColor(verdict string) string {
	switch verdict {
	case "two-writers", "lost-update":
		return "1;31"
	case "stuck":
		return "33"
	case "safe", "fenced":
		return "32"
	}
	return "2"
}
