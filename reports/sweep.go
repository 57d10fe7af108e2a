package reports

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"locklab/checker"
	"locklab/scenarios"
	"locklab/sim"
)

// sweepColumns are what the table of a sweep shows the rates of. All others
// stand in its list of first seeds, and in its JSON.
func sweepColumns() []string { return []string{"two-writers", "lost-update", "stuck", "broken"} }

// firstSeedsMax is for up to how many cells their first seeds are listed.
const firstSeedsMax = 8

// Sweep writes what a sweep showed: a table of rates and, of a few cells, the
// first seed of everything that was found.
func Sweep(w io.Writer, r *scenarios.SweepResult, style Style) error {
	cells := r.Cells()
	apart, stories := false, len(r.Spec.Scenarios) > 0
	for _, c := range cells {
		apart = apart || c.Operator
	}
	b := &strings.Builder{}
	b.WriteString(strings.Join(wrap(sweepTitle(r), style.width()), "\n") + "\n\n")
	var lines [][]string
	for _, c := range cells {
		lines = append(lines, sweepRow(&c, stories, apart))
	}
	writeColumns(b, sweepHead(stories, apart), lines, style)
	writeMeasures(b, cells, stories, apart, style)
	if len(cells) <= firstSeedsMax {
		b.WriteString("\n" + style.bold("everything that was found, in how many runs, and the first seed") + "\n")
		for _, c := range cells {
			b.WriteString(wrapUnder(firstSeeds(&c), 2, style))
		}
	}
	if missing := r.Missing(); missing > 0 {
		fmt.Fprintf(b, "\nincomplete: %s of %s runs; the rates are those of what is there\n", thousands(r.Runs()), thousands(r.Runs()+missingRuns(r)))
	}
	_, err := io.WriteString(w, style.text(b.String()))
	return err
}

// writeMeasures writes a table for each measure that some run has. It is for
// stories: what an adversary's crash costs depends on what else it did.
func writeMeasures(b *strings.Builder, cells []scenarios.CellResult, stories, apart bool, style Style) {
	if !stories {
		return
	}
	for i, m := range scenarios.SweepMeasures() {
		var lines [][]string
		for _, c := range cells {
			s := &c.Measures[i]
			if s.Runs() == 0 {
				continue
			}
			c.Runs = s.Runs()
			lines = append(lines, append(sweepCell(&c, stories, apart),
				spreadText(s.Percentile(50)), spreadText(s.Percentile(90)), spreadText(s.Longest())))
		}
		if len(lines) == 0 {
			continue
		}
		b.WriteString("\n" + style.bold(strings.TrimSuffix(m.Name, "_ns")+": "+m.About) + "\n")
		writeColumns(b, append(sweepCellHead(stories, apart), "median", "90 %", "longest"), lines, style)
	}
}

// spreadText writes a length with three digits, which is what a spread keeps.
func spreadText(d time.Duration) string {
	if d == scenarios.Endless {
		return "never"
	}
	unit := time.Nanosecond
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// missingRuns is how many runs of the whole sweep are not there.
func missingRuns(r *scenarios.SweepResult) int64 {
	return r.Spec.Runs*int64(len(r.Spec.Cells)) - r.Runs()
}

func sweepTitle(r *scenarios.SweepResult) string {
	s := &r.Spec
	what := "--faults " + s.FaultsText()
	if len(s.Scenarios) > 0 {
		what = strings.Join(s.Scenarios, ", ")
	}
	title := fmt.Sprintf("sweep: %s; seeds %d to %d of each", what, s.Seed, s.Seed+uint64(s.Runs)-1)
	if s.Set != "" {
		title += "; " + s.Set
	}
	if s.Shards > 0 {
		title += fmt.Sprintf("; shard %d of %d", s.Shard, s.Shards)
	}
	return title + ". Rates of runs, with 95 % intervals"
}

// sweepCellHead is the head of the columns that name a cell.
func sweepCellHead(stories, apart bool) []string {
	head := []string{"design", "resource", "runs"}
	if stories {
		head = append([]string{"scenario"}, head...)
	}
	if apart {
		head = append(head, "operator")
	}
	return head
}

func sweepHead(stories, apart bool) []string {
	head := sweepCellHead(stories, apart)
	for _, word := range sweepColumns() {
		if word == "broken" {
			word = "lock broken"
		}
		head = append(head, word)
	}
	return head
}

// sweepCell names a cell.
func sweepCell(c *scenarios.CellResult, stories, apart bool) []string {
	row := []string{c.Design, c.Resource, thousands(c.Runs)}
	if stories {
		row = append([]string{c.Scenario}, row...)
	}
	if apart {
		row = append(row, yesNo(c.Operator))
	}
	return row
}

func sweepRow(c *scenarios.CellResult, stories, apart bool) []string {
	row := sweepCell(c, stories, apart)
	for _, word := range sweepColumns() {
		row = append(row, rateText(c.Showed(word).Runs, c.Runs))
	}
	return row
}

// rateText writes a rate with its interval, or the bound for what was never
// seen.
func rateText(k, n int64) string {
	if k == 0 {
		return "none, < " + percent(scenarios.RuleOfThree(n)) + " %"
	}
	in := scenarios.Wilson(k, n)
	return fmt.Sprintf("%s %% (%s to %s)", percent(float64(k)/float64(n)), percent(in.Low), percent(in.High))
}

// percent writes a rate in percent, with at least two significant digits.
func percent(rate float64) string {
	p := 100 * rate
	digits := 1
	for limit := 1.0; p > 0 && p < limit && digits < 9; limit /= 10 {
		digits++
	}
	return strconv.FormatFloat(p, 'f', digits, 64)
}

// thousands groups a number's digits.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// firstSeeds lists what a cell showed: "two-writers 123 (seed 4), ...".
func firstSeeds(c *scenarios.CellResult) string {
	name := c.CellName.String()
	if c.Operator {
		name += ", with an operator's fault"
	}
	var parts []string
	for _, word := range scenarios.Violations() {
		if n := c.Showed(word); n.Runs > 0 {
			parts = append(parts, fmt.Sprintf("%s %s (seed %d)", word, thousands(n.Runs), n.First))
		}
	}
	for i, n := range c.Ends {
		if end := sim.EndReason(i); n.Runs > 0 && end != sim.EndDone {
			parts = append(parts, fmt.Sprintf("ended by %s %s (seed %d)", end, thousands(n.Runs), n.First))
		}
	}
	if len(parts) == 0 {
		return name + ": nothing was found"
	}
	return name + ": " + strings.Join(parts, ", ")
}

// wrapUnder breaks a text into lines, all but the first indented.
func wrapUnder(text string, indent int, style Style) string {
	lines := wrap(text, style.width()-2*indent)
	pad := strings.Repeat(" ", indent)
	return pad + strings.Join(lines, "\n"+pad+pad) + "\n"
}

// writeColumns writes a table with a bold head.
func writeColumns(b *strings.Builder, head []string, lines [][]string, style Style) {
	all := append([][]string{head}, lines...)
	widths := make([]int, len(head))
	for _, l := range all {
		for i, cell := range l {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, l := range all {
		var line strings.Builder
		for i, cell := range l {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		text := strings.TrimRight(line.String(), " ")
		if n == 0 {
			text = style.bold(text)
		}
		b.WriteString(text + "\n")
	}
}

// sweepJSON is one cell of a sweep for machines.
type sweepJSON struct {
	Schema   int      `json:"schema"`
	Scenario string   `json:"scenario"` // "" under the adversary
	Faults   []string `json:"faults"`   // the adversary's kinds; empty for a scenario
	Design   string   `json:"design"`
	Resource string   `json:"resource"`
	Engine   string   `json:"engine"`
	Operator bool     `json:"operator"` // the runs with an operator's fault
	Seed     uint64   `json:"seed"`     // the first
	Runs     int64    `json:"runs"`     // that are counted here
	Complete bool     `json:"complete"` // nothing is missing of the whole sweep, or of its shard
	Events   int64    `json:"events"`
	Verdicts object   `json:"verdicts"`
	Lock     object   `json:"lock"`
	Findings object   `json:"findings"` // runs with at least one
	Ended    object   `json:"ended"`
	Measures object   `json:"measures"` // those that some run has
}

// spreadJSON is how a measure was distributed, in nanoseconds; null is for what
// had not come to its end when the run did.
type spreadJSON struct {
	Runs    int64  `json:"runs"` // that were measured
	Median  *int64 `json:"median"`
	P90     *int64 `json:"p90"`
	Longest *int64 `json:"longest"`
}

func spreadOf(s *scenarios.Spread) spreadJSON {
	ended := func(d time.Duration) *int64 {
		if d == scenarios.Endless {
			return nil
		}
		return new(int64(d))
	}
	return spreadJSON{s.Runs(), ended(s.Percentile(50)), ended(s.Percentile(90)), ended(s.Longest())}
}

// countJSON is how often something was seen.
type countJSON struct {
	Runs  int64   `json:"runs"`
	First *uint64 `json:"first_seed"` // null where there is none
	Rate  float64 `json:"rate"`
	Low   float64 `json:"low"` // Wilson's 95 % interval
	High  float64 `json:"high"`
	// Below is the rule-of-three bound of what was never seen, else null.
	Below *float64 `json:"below"`
}

func countOf(c scenarios.Count, runs int64) countJSON {
	in := scenarios.Wilson(c.Runs, runs)
	out := countJSON{Runs: c.Runs, Rate: rounded(float64(c.Runs) / float64(runs)), Low: rounded(in.Low), High: rounded(in.High)}
	if c.Runs > 0 {
		out.First = &c.First
	} else {
		below := rounded(scenarios.RuleOfThree(runs))
		out.Below = &below
	}
	return out
}

// rounded keeps nine digits, so that the last bit, in which processors differ,
// does not show.
func rounded(x float64) float64 { return math.Round(x*1e9) / 1e9 }

// SweepJSON writes what a sweep showed for machines, one object a line for
// each cell.
func SweepJSON(w io.Writer, r *scenarios.SweepResult) error {
	enc := json.NewEncoder(w)
	complete := r.Missing() == 0
	for _, c := range r.Cells() {
		out := sweepJSON{Schema: schema, Scenario: c.Scenario, Faults: []string{}, Design: c.Design, Resource: c.Resource,
			Engine: engineNative, Operator: c.Operator, Seed: r.Spec.Seed, Runs: c.Runs, Complete: complete, Events: c.Events,
			Verdicts: object{}, Lock: object{}, Findings: object{}, Ended: object{}, Measures: object{}}
		if c.Scenario == "" {
			out.Faults = r.Spec.Faults
		}
		add := func(o *object, word string, n scenarios.Count) { *o = append(*o, member{word, countOf(n, c.Runs)}) }
		for _, word := range scenarios.Verdicts() {
			v, err := checker.ParseVerdict(word)
			if err != nil {
				return err
			}
			add(&out.Verdicts, word, c.Verdicts[v])
		}
		for _, word := range scenarios.LockAnswers() {
			l, err := checker.ParseLockAnswer(word)
			if err != nil {
				return err
			}
			add(&out.Lock, word, c.Locks[l])
		}
		for k := checker.Overlap; k <= checker.Stuck; k++ {
			add(&out.Findings, k.String(), c.Findings[k])
		}
		for i, n := range c.Ends {
			add(&out.Ended, sim.EndReason(i).String(), n)
		}
		for i, m := range scenarios.SweepMeasures() {
			if s := &c.Measures[i]; s.Runs() > 0 {
				out.Measures = append(out.Measures, member{m.Name, spreadOf(s)})
			}
		}
		if err := enc.Encode(&out); err != nil {
			return err
		}
	}
	return nil
}
