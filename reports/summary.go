package reports

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"locklab/checker"
	"locklab/scenarios"
	"locklab/sim"
)

// Run prints a run in full: a title, its story, its diagram, its summary. The
// result must have been recorded with sim.TraceRecord. Of a run that was too long
// to be recorded the diagram is left out, and the story is what the history knows.
func Run(w io.Writer, res *scenarios.Result, style Style) error {
	if _, err := fmt.Fprintf(w, "%s\n\n", style.bold(style.text(title(res)))); err != nil {
		return err
	}
	t := newTape(res)
	story := tellStory(t)
	if err := WriteStory(w, story, style); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := diagramOf(w, t, style); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return summary(w, res, style, tellsAll(story, res))
}

// diagramOf draws the diagram, or says why there is none.
func diagramOf(w io.Writer, t *tape, style Style) error {
	if t.events != nil {
		return drawDiagram(w, t, style)
	}
	_, err := fmt.Fprintf(w, "no diagram: the run has %d events, of which no more than %d of the trace are kept\n", t.res.Events, sim.TraceMax)
	return err
}

// tellsAll reports whether a story has a line for every finding.
func tellsAll(story []Line, res *scenarios.Result) bool {
	told := 0
	for i := range story {
		if story[i].Mark == MarkFinding {
			told++
		}
	}
	return told == len(res.Report.Findings)
}

func title(res *scenarios.Result) string {
	t := fmt.Sprintf("%s on %s, seed %d", res.Design.Name, res.Resource.Name, res.Seed)
	switch s := res.Scenario; {
	case s == nil:
		return t
	case s.Title == "":
		return s.Name + ": " + t
	default:
		return s.Name + ": " + s.Title + "\n" + t
	}
}

// TableTitle is the line above a table of runs of one scenario with one seed:
// what was run, and with which parameters if not its own.
func TableTitle(res *scenarios.Result) string {
	t := fmt.Sprintf("seed %d", res.Seed)
	if s := res.Scenario; s != nil {
		for _, c := range res.Params.Differing(&s.Params) {
			t += fmt.Sprintf(", %s=%s", c.Name, c.Value)
		}
		if t = s.Name + ", " + t; s.Title != "" {
			t = s.Name + ": " + s.Title + strings.TrimPrefix(t, s.Name)
		}
	}
	return t
}

// Summary prints what a run showed: findings, both answers with their reasons,
// what was expected, witnesses, idle faults, measures, and how to repeat it.
func Summary(w io.Writer, res *scenarios.Result, style Style) error {
	return summary(w, res, style, false)
}

// summary is Summary; findings that were told already are only named.
func summary(w io.Writer, res *scenarios.Result, style Style, told bool) error {
	b := &block{style: style}
	if kinds := RowOf(res).Findings; told && kinds != "" {
		b.item("findings", MarkFinding, kinds+" (told above)")
	} else {
		b.findings(res)
	}
	b.answers(res)
	b.ending(res)
	b.expectation(res)
	for _, x := range res.Witnesses {
		b.item("witness", MarkNone, fmt.Sprintf("%s: %s", x.Text, yesNo(x.Occurred)))
	}
	for _, f := range idleFaults(res) {
		b.item("fault", MarkUnknown, fmt.Sprintf("fault %d (%s on %s) %s", f.Fault, f.Kind, f.On, f.What))
	}
	m := scenarios.Measure(res)
	b.metrics("measures", general(res))
	if competed(&m) {
		b.metrics("waiting", waiting(&m))
	}
	if m.Arrived > 0 {
		b.metrics("load", load(&m))
	}
	b.item("trace", MarkNone, fmt.Sprintf("%016x, %d events", res.Hash, res.Events))
	b.item("repeat", MarkNone, res.Command())
	_, err := io.WriteString(w, b.String())
	return err
}

// block is a list of labelled items.
type block struct {
	strings.Builder
	style Style
	label string // the latest
}

const labelWidth = 12

// item adds one item. A label stands once before all its items.
func (b *block) item(label string, mark Mark, text string) {
	head := label
	if label == b.label {
		head = ""
	}
	b.label = label
	parts := []string{text}
	if label != "repeat" { // a command stays in one piece
		parts = wrap(b.style.text(text), b.style.width()-labelWidth)
	}
	for i, part := range parts {
		if i > 0 {
			head = ""
		}
		fmt.Fprintf(b, "%s%s\n", b.style.faint(fmt.Sprintf("%-*s", labelWidth, head)), b.style.paint(markColor[mark], part))
	}
}

// findingsAll is up to how many findings a summary lists them all; of more it
// lists the first of each kind.
const findingsAll = 20

func (b *block) findings(res *scenarios.Result) {
	if len(res.Report.Findings) == 0 {
		b.item("findings", MarkNone, "none")
	}
	all := len(res.Report.Findings) <= findingsAll
	var seen [64]int // of each kind
	left := 0
	for i := range res.Report.Findings {
		f := &res.Report.Findings[i]
		k := int(f.Kind) % len(seen)
		if seen[k]++; !all && seen[k] > findingsFirst {
			left++
			continue
		}
		b.item("findings", MarkFinding, fmt.Sprintf("%s  %s: %s", seconds(f.At), f.Kind, findingText(res.History, f)))
	}
	if left > 0 {
		b.item("findings", MarkElided, fmt.Sprintf("... %d more of these kinds", left))
	}
}

func (b *block) answers(res *scenarios.Result) {
	mark := MarkNone
	if v := res.Verdict; v == checker.VerdictTwoWriters || v == checker.VerdictLostUpdate || v == checker.VerdictStuck {
		mark = MarkFinding
	}
	b.item("verdict", mark, fmt.Sprintf("%s: %s", res.Verdict, reasonForVerdict(res)))
	mark = MarkNone
	if res.Report.Lock == checker.LockBroken {
		mark = MarkFinding
	}
	b.item("lock", mark, fmt.Sprintf("%s: %s", res.Report.Lock, reasonForLock(res)))
}

// reasonForVerdict names the first finding that the verdict rests on.
func reasonForVerdict(res *scenarios.Result) string {
	switch res.Verdict {
	case checker.VerdictTwoWriters:
		return because(res, "", checker.TwoWriters)
	case checker.VerdictLostUpdate:
		return because(res, "", checker.LostUpdate, checker.DoubleApply, checker.WriteLost)
	case checker.VerdictStuck:
		return because(res, "", checker.Stuck, checker.SelfRejected)
	case checker.VerdictFenced:
		return because(res, "", checker.RefusedLate)
	case checker.VerdictVacuous:
		for _, w := range res.Witnesses {
			if !w.Occurred {
				return "no harm was done, but what the scenario is about did not happen: \"" + w.Text + "\""
			}
		}
	}
	return because(res, "a stale write was accepted, but did no harm: ", checker.StaleWrite)
}

func reasonForLock(res *scenarios.Result) string {
	if res.Report.Lock == checker.LockBroken {
		return because(res, "", checker.LeaseBroken, checker.Phantom, checker.ForeignRelease, checker.TokenOrder,
			checker.SpuriousLoss, checker.OverCapacity)
	}
	if res.Report.Lock == checker.LockOverlap {
		return because(res, "", checker.Overlap)
	}
	return "nothing was found against it"
}

// because returns the text of the first finding of the given kinds.
func because(res *scenarios.Result, before string, kinds ...checker.FindingKind) string {
	for i := range res.Report.Findings {
		f := &res.Report.Findings[i]
		for _, k := range kinds {
			if f.Kind == k {
				return before + findingText(res.History, f)
			}
		}
	}
	return "no harm was found"
}

// ending says so when a run did not come to its natural end: what was not seen
// may only not have happened yet.
func (b *block) ending(res *scenarios.Result) {
	if text := endingText(res); text != "" {
		b.item("ended", MarkUnknown, text)
	}
}

func endingText(res *scenarios.Result) string {
	switch res.Ended {
	case sim.EndHorizon:
		return fmt.Sprintf("by the horizon of %s; not everybody had finished", res.Params.Horizon)
	case sim.EndBudget:
		return fmt.Sprintf("by its budget of events, at %s; not everybody had finished", seconds(res.History.End))
	case sim.EndDeadlock:
		return fmt.Sprintf("in a deadlock at %s: nothing could happen any more", seconds(res.History.End))
	case sim.EndPanic:
		return res.Failure.Error()
	}
	return ""
}

func (b *block) expectation(res *scenarios.Result) {
	e := res.Expectation()
	if e == nil {
		b.item("expected", MarkNone, nothingExpected(res))
		return
	}
	lock := "any"
	if e.Lock != "" {
		lock = e.Lock
	}
	want := fmt.Sprintf("verdict %s, lock %s", e.Verdict, lock)
	if e.Met(res.Verdict.String(), res.Report.Lock.String()) {
		b.item("expected", MarkNone, "yes: "+want)
	} else {
		b.item("expected", MarkFinding, fmt.Sprintf("NO: %s was expected", want))
	}
	if e.Why != "" {
		b.item("why", MarkNone, e.Why)
	}
}

// nothingExpected says why nothing is expected of a run.
func nothingExpected(res *scenarios.Result) string {
	switch s := res.Scenario; {
	case s == nil || len(s.Expect) == 0:
		return "nothing: there are no expectations"
	case res.Params != s.Params:
		return "nothing: the parameters are not the scenario's"
	}
	return "nothing: no row speaks of this pair"
}

func (b *block) metrics(label string, list []Metric) {
	var parts []string
	for _, m := range list {
		parts = append(parts, m.Title()+" "+m.String())
	}
	b.item(label, MarkNone, strings.Join(parts, ", "))
}

// idleFault is a fault of the plan that changed nothing.
type idleFault struct {
	Fault int    `json:"fault"` // counted from 1
	Kind  string `json:"kind"`
	On    string `json:"on"`
	What  string `json:"what"`
}

// idleFaults lists the faults that never struck, and those that struck
// nothing.
func idleFaults(res *scenarios.Result) []idleFault {
	out := []idleFault{}
	for _, f := range res.Faults {
		what := ""
		switch {
		case !f.Fired:
			what = "never struck"
		case f.Idle:
			what = "struck, but there was nothing to hit"
		default:
			continue
		}
		var plan sim.Fault
		if f.Index < len(res.Plan.Faults) {
			plan = res.Plan.Faults[f.Index]
		}
		out = append(out, idleFault{f.Index + 1, plan.Kind.String(), strings.Join(plan.On, ", "), what})
	}
	return out
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func fmtInt(n int64) string { return strconv.FormatInt(n, 10) }
