package reports

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"locklab/scenarios"
)

// Against writes what the same plan does to other designs and resources.
func Against(w io.Writer, rows []scenarios.Counterfactual, style Style) error {
	if _, err := fmt.Fprintf(w, "%s\n\n", style.text(againstTitle(rows))); err != nil {
		return err
	}
	lines := [][]string{{"design", "resource", "verdict", "lock", ""}}
	colors := []string{""}
	for i := range rows {
		r := &rows[i]
		lines = append(lines, []string{r.Design, r.Resource, r.Verdict, r.Lock, againstNote(r)})
		colors = append(colors, verdictColor(r.Verdict))
	}
	return grid(w, lines, inColumn(2, colors), style)
}

func againstTitle(rows []scenarios.Counterfactual) string {
	saves, applied := 0, 0
	for i := range rows {
		if rows[i].NotApplicable == "" {
			applied++
		}
		if rows[i].Saves {
			saves++
		}
	}
	return fmt.Sprintf("The same plan against others: no harm with %d of %d configurations to which it applies.", saves, applied)
}

func againstNote(r *scenarios.Counterfactual) string {
	switch {
	case r.NotApplicable != "":
		return "not applicable: " + r.NotApplicable
	case len(r.Unfired) > 0:
		return fmt.Sprintf("shows nothing: fault %s never struck", numbers(r.Unfired))
	case r.Same:
		return "this plan's own"
	case r.Saves:
		return "saves you"
	}
	return ""
}

func numbers(ns []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ns), " ", ", "), "[]")
}

// AgainstJSON returns one counterfactual as one object on one line.
func AgainstJSON(scenario string, r *scenarios.Counterfactual) ([]byte, error) {
	return json.Marshal(againstRow(scenario, r))
}

type againstJSON struct {
	Schema        int    `json:"schema"`
	Against       bool   `json:"against"` // tells it from a run
	Scenario      string `json:"scenario"`
	Design        string `json:"design"`
	Resource      string `json:"resource"`
	Verdict       string `json:"verdict"`
	Lock          string `json:"lock"`
	Saves         bool   `json:"saves"`
	Same          bool   `json:"same"`
	Unfired       []int  `json:"unfired"`
	NotApplicable string `json:"not_applicable"`
}

func againstRow(scenario string, r *scenarios.Counterfactual) againstJSON {
	unfired := r.Unfired
	if unfired == nil {
		unfired = []int{}
	}
	return againstJSON{schema, true, scenario, r.Design, r.Resource, r.Verdict, r.Lock, r.Saves, r.Same, unfired, r.NotApplicable}
}
