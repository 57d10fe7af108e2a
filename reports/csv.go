package reports

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"locklab/scenarios"
)

// csvColumn is a column of results.csv. Names stay as they are; new columns
// come at the end.
type csvColumn struct{ name, meaning string }

func csvColumns() []csvColumn {
	return []csvColumn{
		{"part", "matrix (a design under a family of faults) or scenarios (a design in a scenario)"},
		{"family", "the family of faults; empty for a scenario"},
		{"scenario", "the scenario; empty in the matrix"},
		{"title", "the family's or the scenario's title"},
		{"design", "the lock's design"},
		{"resource", "the protected resource"},
		{"possible", "no: none of the faults can befall this design, so that the row says nothing"},
		{"verdict", "the worst verdict that was seen: two-writers, lost-update, stuck, fenced, safe or vacuous"},
		{"verdict_runs", "runs with that verdict"},
		{"runs", "runs in all"},
		{"rate", "verdict_runs / runs"},
		{"rate_low", "lower end of its 95 % interval (Wilson)"},
		{"rate_high", "upper end"},
		{"two_writers", "runs with each verdict"},
		{"lost_update", ""}, {"stuck", ""}, {"fenced", ""}, {"safe", ""}, {"vacuous", ""},
		{"lock_broken", "runs with each answer about the lock's promise"},
		{"lock_overlap", ""}, {"lock_kept", ""},
		{"first_seed", "the lowest seed with the verdict"},
		{"expected", "the verdict that the scenario expects; empty in the matrix"},
		{"as_expected", "yes or no: whether every run gave it"},
		{"fewest_faults", "faults in the shortest story that was found; empty where nothing was harmed"},
		{"proven", "yes: no placement of fewer faults does it"},
		{"story", "the story's plan file, for locklab replay"},
		{"command", "repeats the first seed"},
	}
}

// WriteCSV writes results.csv: one row for each cell of the matrix and of the
// scenarios.
func WriteCSV(w io.Writer, c *scenarios.Comparison) error {
	out := csv.NewWriter(w)
	columns := csvColumns()
	head := make([]string, len(columns))
	for i := range columns {
		head[i] = columns[i].name
	}
	if err := out.Write(head); err != nil {
		return err
	}
	row := func(values map[string]string) error {
		cells := make([]string, len(columns))
		for i, col := range columns {
			cells[i] = csvText(values[col.name])
		}
		return out.Write(cells)
	}
	for i := range c.Matrix {
		m := &c.Matrix[i]
		v := csvCounts(m.Verdicts, m.Locks, m.Worst, m.Share)
		v["part"], v["family"], v["title"], v["design"], v["resource"] = scenarios.PartMatrix, m.Family, familyTitle(c, m.Family), m.Design, m.Resource
		v["possible"], v["first_seed"], v["command"] = yesNo(m.Possible), strconv.FormatUint(m.First, 10), m.Command
		if story := c.Story(m.Story); story != nil {
			v["fewest_faults"], v["proven"], v["story"] = strconv.Itoa(m.Fewest), yesNo(m.Proven), story.File()
		}
		if err := row(v); err != nil {
			return err
		}
	}
	for i := range c.Scenarios {
		s := &c.Scenarios[i]
		v := csvCounts(s.Verdicts, s.Locks, s.Worst, s.Share)
		v["part"], v["scenario"], v["title"], v["design"], v["resource"] = scenarios.PartScenarios, s.Scenario, scenarioTitle(c, s.Scenario), s.Design, s.Resource
		v["possible"], v["first_seed"], v["command"] = "yes", strconv.FormatUint(s.First, 10), s.Command
		if s.Expected != "" {
			v["expected"], v["as_expected"] = s.Expected, yesNo(s.AsExpected)
		}
		if story := c.Story(s.Story); story != nil {
			v["story"] = story.File()
		}
		if err := row(v); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func csvCounts(verdicts, locks []scenarios.Outcome, worst string, s scenarios.Share) map[string]string {
	v := map[string]string{"verdict": worst, "verdict_runs": strconv.FormatInt(s.Runs, 10), "runs": strconv.FormatInt(s.Of, 10),
		"rate": sixDigits(s.Rate), "rate_low": sixDigits(s.Low), "rate_high": sixDigits(s.High)}
	for _, word := range scenarios.Verdicts() {
		v[strings.ReplaceAll(word, "-", "_")] = "0"
	}
	for _, word := range scenarios.LockAnswers() {
		v["lock_"+word] = "0"
	}
	for _, o := range verdicts {
		v[strings.ReplaceAll(o.Answer, "-", "_")] = strconv.FormatInt(o.Runs, 10)
	}
	for _, o := range locks {
		v["lock_"+o.Answer] = strconv.FormatInt(o.Runs, 10)
	}
	return v
}

func sixDigits(x float64) string { return strconv.FormatFloat(x, 'f', 6, 64) }

func familyTitle(c *scenarios.Comparison, name string) string {
	for _, f := range c.Families {
		if f.Name == name {
			return f.Title
		}
	}
	return ""
}

func scenarioTitle(c *scenarios.Comparison, name string) string {
	for _, s := range c.Titles {
		if s.Name == name {
			return s.Title
		}
	}
	return ""
}

// csvText makes a text harmless in a spreadsheet: it stays on one line, and
// what would begin a formula (OWASP, "CSV Injection") gets an apostrophe before
// it, which spreadsheets take for "this is text".
func csvText(s string) string {
	s = plainLine(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

// plainLine is a text on one line, without control characters.
func plainLine(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s))
}
