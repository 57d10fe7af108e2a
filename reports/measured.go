package reports

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"locklab/scenarios"
)

// Measured is one run as a line of a table of measures.
type Measured struct {
	Title            string // of the table: what was run, but for what varies
	Design, Resource string
	Parameter, Value string // the one that varies
	Verdict          string
	Metrics          []Metric
}

// shownOfWaiting and shownOfLoad are what a table shows unless told otherwise.
const (
	shownOfWaiting = "waiters_max requests_per_release requests_after_release_max retries_in_10ms_max wait_median wait_max overtaken_max acquire_success"
	shownOfLoad    = "arrived sections_per_second not_served queueing_delay_median queueing_delay_p99 requests_per_section"
)

// MeasuredRow returns a run's line. names are the measures to show, with or
// without their unit; nil for those of waiting or, where sections came from
// outside, of load. The error names one that there is not.
func MeasuredRow(res *scenarios.Result, parameter string, names []string) (Measured, error) {
	row := Measured{Design: res.Design.Name, Resource: res.Resource.Name, Parameter: parameter, Verdict: res.Verdict.String()}
	params := res.Params
	for _, q := range scenarios.Parameters() {
		if q.Name == parameter {
			row.Value = q.Get(&params)
			if s := res.Scenario; s != nil { // the title tells of the others
				if err := params.Set(parameter, q.Get(&s.Params)); err != nil {
					return row, err
				}
			}
		}
	}
	same := *res
	same.Params = params
	row.Title = TableTitle(&same)
	m := scenarios.Measure(res)
	if len(names) == 0 {
		names = strings.Fields(shownOfWaiting)
		if m.Arrived > 0 {
			names = strings.Fields(shownOfLoad)
		}
	}
	all := slices.Concat(general(res), waiting(&m), load(&m))
	for _, name := range names {
		i := slices.IndexFunc(all, func(m Metric) bool { return m.Name == name || m.Title() == strings.ReplaceAll(name, "_", " ") })
		if i < 0 {
			known := make([]string, len(all))
			for i := range all {
				known[i] = strings.ReplaceAll(all[i].Title(), " ", "_")
			}
			return row, scenarios.Unknown("measure", name, known)
		}
		row.Metrics = append(row.Metrics, all[i])
	}
	return row, nil
}

// MeasuredTable writes runs as a table of measures. They must show the same
// ones.
func MeasuredTable(w io.Writer, rows []Measured, style Style) error {
	if _, err := fmt.Fprintln(w, style.text(rows[0].Title)); err != nil {
		return err
	}
	head := []string{"design", "resource", rows[0].Parameter, "verdict"}
	for _, m := range rows[0].Metrics {
		head = append(head, m.Title())
	}
	lines := [][]string{head}
	for _, r := range rows {
		line := []string{r.Design, r.Resource, r.Value, r.Verdict}
		for _, m := range r.Metrics {
			line = append(line, m.String())
		}
		lines = append(lines, line)
	}
	return grid(w, lines, func(line, column int) string {
		if column == 3 {
			return verdictColor(rows[line-1].Verdict)
		}
		return ""
	}, style)
}
