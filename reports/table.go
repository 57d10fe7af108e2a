package reports

import (
	"fmt"
	"io"
	"strings"

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
	return grid(w, lines, func(line, column int) string {
		switch {
		case column == 2:
			return verdictColor(rows[line-1].Verdict)
		case column == 4 && rows[line-1].Differs:
			return "1;31"
		}
		return ""
	}, style)
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
