package reports

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"locklab/scenarios"
)

// ExhaustRow is the search of one design on one resource: with the faults that
// were asked for and, where the default was, with the operator's.
type ExhaustRow struct {
	Search   *scenarios.Exhausted
	Operator *scenarios.Exhausted // nil for none
	Against  []scenarios.Counterfactual
	Files    []string // the plan files that were written
}

// Exhaust tells one search in full.
func Exhaust(w io.Writer, row *ExhaustRow, style Style) error {
	e := row.Search
	fmt.Fprintf(w, "%s on %s: %s\n", style.bold(e.Design.Name), style.bold(e.Resource.Name), e.Headline())
	if e.Stopped {
		fmt.Fprintf(w, "More faults were not placed: that is enough to know (--keep-going places up to %d).\n", e.MaxFaults)
	}
	fmt.Fprintln(w)
	if err := exhaustLevels(w, e, style); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := exhaustFewest(w, e, style); err != nil {
		return err
	}
	if o := row.Operator; o != nil {
		fmt.Fprintf(w, "\nThe operator's faults (%s), a row of their own: %s\n", kindNames(o), o.Headline())
		if err := exhaustFewest(w, o, style); err != nil {
			return err
		}
	}
	if two := e.TwoWriters(); two != nil && two.Faults > 0 {
		fmt.Fprintf(w, "\nThe shortest story with two writers, made as small as it can be:\n\n%s", indent(string(scenarios.MarshalPlanFile(two.Shortest))))
		for _, words := range two.Words {
			fmt.Fprintf(w, "\n%s", words)
		}
		fmt.Fprintln(w)
	}
	for _, name := range row.Files {
		fmt.Fprintf(w, "written: %s\n", name)
	}
	if row.Against == nil {
		return nil
	}
	fmt.Fprintln(w)
	return Against(w, row.Against, style)
}

func indent(s string) string {
	return "    " + strings.TrimSuffix(strings.ReplaceAll(s, "\n", "\n    "), "    ")
}

func kindNames(e *scenarios.Exhausted) string {
	var names []string
	for _, k := range e.Kinds {
		names = append(names, k.String())
	}
	return strings.Join(names, ", ")
}

// exhaustLevels writes how many placements of each number of faults gave what.
func exhaustLevels(w io.Writer, e *scenarios.Exhausted, style Style) error {
	columns := []string{"two-writers", "lost-update", "stuck", "fenced", "safe"}
	locks := []string{"broken", "overlap", "kept"}
	head := append([]string{"faults", "executions"}, columns...)
	for _, l := range locks {
		head = append(head, "lock "+l)
	}
	head = append(head, scenarios.UpdateLost, "")
	lines, colors := [][]string{head}, []string{""}
	for _, l := range e.Levels {
		line := []string{fmt.Sprint(l.Faults), fmt.Sprint(l.Executions)}
		for _, v := range columns {
			line = append(line, fmt.Sprint(l.Verdicts[v]))
		}
		for _, v := range locks {
			line = append(line, fmt.Sprint(l.Locks[v]))
		}
		note := ""
		if !l.Complete {
			note = "(interrupted)"
		}
		if l.Panics > 0 {
			note += fmt.Sprintf(" %d panics", l.Panics)
		}
		lines, colors = append(lines, append(line, fmt.Sprint(l.Lost), note)), append(colors, "")
	}
	return grid(w, lines, inColumn(-1, colors), style)
}

// kindsMax is how many combinations of kinds are told.
const kindsMax = 8

// exhaustFewest writes the fewest faults to each answer and which they are.
func exhaustFewest(w io.Writer, e *scenarios.Exhausted, style Style) error {
	if len(e.Fewest) == 0 {
		return nil
	}
	lines, colors := [][]string{{"answer", "fewest faults", "placements", "which"}}, []string{""}
	for i := range e.Fewest {
		f := &e.Fewest[i]
		lines = append(lines, []string{f.Answer, fmt.Sprint(f.Faults), fmt.Sprint(f.Runs), kindRuns(f)})
		colors = append(colors, verdictColor(f.Answer))
	}
	return grid(w, lines, inColumn(0, colors), style)
}

func kindRuns(f *scenarios.Fewest) string {
	var parts []string
	for i, k := range f.Kinds {
		if i == kindsMax && len(f.Kinds) > kindsMax+1 {
			parts = append(parts, fmt.Sprintf("and %d other combinations", len(f.Kinds)-i))
			break
		}
		if k.Kinds != "" {
			parts = append(parts, fmt.Sprintf("%s (%d)", k.Kinds, k.Runs))
		}
	}
	return strings.Join(parts, ", ")
}

// ExhaustTable writes many searches as a table of the fewest faults.
func ExhaustTable(w io.Writer, rows []ExhaustRow, style Style) error {
	operator := false
	for i := range rows {
		operator = operator || rows[i].Operator != nil
	}
	head := []string{"design", "resource", "two-writers", scenarios.UpdateLost, "lock broken", "stuck", "executions", "two-writers by"}
	if operator {
		head = append(head, "by the operator")
	}
	lines, colors := [][]string{head}, []string{""}
	for i := range rows {
		e := rows[i].Search
		two := e.TwoWriters()
		by, color := "", verdictColor("safe")
		if two != nil {
			by, color = twoWritersBy(two), verdictColor("two-writers")
		}
		line := []string{e.Design.Name, e.Resource.Name, fewestOf(e, "two-writers"), fewestOf(e, scenarios.UpdateLost), fewestOf(e, "lock broken"), fewestOf(e, "stuck"), fmt.Sprint(e.Executions()), by}
		if operator {
			line = append(line, operatorCell(rows[i].Operator))
		}
		lines, colors = append(lines, line), append(colors, color)
	}
	return grid(w, lines, inColumn(2, colors), style)
}

// fewestOf is the number, or how far was looked in vain.
func fewestOf(e *scenarios.Exhausted, answer string) string {
	for i := range e.Fewest {
		if e.Fewest[i].Answer == answer {
			return fmt.Sprint(e.Fewest[i].Faults)
		}
	}
	if last := e.Levels[len(e.Levels)-1]; last.Complete {
		return fmt.Sprintf("none to %d", last.Faults)
	}
	return "unfinished"
}

func twoWritersBy(two *scenarios.Fewest) string {
	var kinds []string
	for i, k := range two.Kinds {
		if i == 5 && len(two.Kinds) > 6 {
			kinds = append(kinds, fmt.Sprintf("%d more", len(two.Kinds)-i))
			break
		}
		kinds = append(kinds, k.Kinds)
	}
	return strings.Join(kinds, ", ")
}

func operatorCell(o *scenarios.Exhausted) string {
	if o == nil {
		return ""
	}
	cell := fewestOf(o, "two-writers")
	if two := o.TwoWriters(); two != nil && two.Faults > 0 {
		cell += " " + twoWritersBy(two)
	}
	return cell
}

type exhaustJSON struct {
	Schema     int                `json:"schema"`
	Design     string             `json:"design"`
	Resource   string             `json:"resource"`
	Faults     []string           `json:"faults"`
	Ladder     []string           `json:"ladder"`
	MaxFaults  int                `json:"max_faults"`
	AllPoints  bool               `json:"all_points"`
	Complete   bool               `json:"complete"`
	Stopped    bool               `json:"stopped"` // fewer faults already let two write
	Executions int64              `json:"executions"`
	Headline   string             `json:"headline"`
	TwoWriters *int               `json:"two_writers"` // the fewest faults; null for none found
	Levels     []exhaustLevelJSON `json:"levels"`
	Fewest     []fewestJSON       `json:"fewest"`
	Operator   *exhaustJSON       `json:"operator,omitempty"`
	Against    []againstJSON      `json:"against,omitempty"`
	Files      []string           `json:"files,omitempty"`
}

type exhaustLevelJSON struct {
	Faults     int              `json:"faults"`
	Executions int64            `json:"executions"`
	Same       int64            `json:"same"`
	Verdicts   map[string]int64 `json:"verdicts"`
	Locks      map[string]int64 `json:"locks"`
	Lost       int64            `json:"update_lost"`
	Panics     int64            `json:"panics"`
	Complete   bool             `json:"complete"`
}

type fewestJSON struct {
	Answer     string        `json:"answer"`
	Faults     int           `json:"faults"`
	Placements int64         `json:"placements"`
	Kinds      []kindRunJSON `json:"kinds"`
	Thresholds []string      `json:"thresholds"`
	Plan       string        `json:"plan"` // a plan file
}

type kindRunJSON struct {
	Kinds      string `json:"kinds"`
	Placements int64  `json:"placements"`
}

// ExhaustJSON returns a search as one object on one line.
func ExhaustJSON(row *ExhaustRow) ([]byte, error) {
	out := exhaustObject(row.Search)
	if row.Operator != nil {
		out.Operator = exhaustObject(row.Operator)
	}
	for i := range row.Against {
		out.Against = append(out.Against, againstRow("exhaust", &row.Against[i]))
	}
	out.Files = row.Files
	return json.Marshal(out)
}

func exhaustObject(e *scenarios.Exhausted) *exhaustJSON {
	out := &exhaustJSON{Schema: schema, Design: e.Design.Name, Resource: e.Resource.Name, Faults: []string{}, Ladder: e.Ladder,
		MaxFaults: e.MaxFaults, AllPoints: e.AllPoints, Complete: e.Complete, Stopped: e.Stopped, Executions: e.Executions(),
		Headline: e.Headline(), Fewest: []fewestJSON{}}
	for _, k := range e.Kinds {
		out.Faults = append(out.Faults, k.String())
	}
	if two := e.TwoWriters(); two != nil {
		out.TwoWriters = &two.Faults
	}
	for _, l := range e.Levels {
		out.Levels = append(out.Levels, exhaustLevelJSON(l))
	}
	for _, f := range e.Fewest {
		j := fewestJSON{Answer: f.Answer, Faults: f.Faults, Placements: f.Runs, Kinds: []kindRunJSON{}, Thresholds: f.Words,
			Plan: string(scenarios.MarshalPlanFile(f.Shortest))}
		for _, k := range f.Kinds {
			j.Kinds = append(j.Kinds, kindRunJSON{k.Kinds, k.Runs})
		}
		out.Fewest = append(out.Fewest, j)
	}
	return out
}
