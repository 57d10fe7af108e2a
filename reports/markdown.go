package reports

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"locklab/scenarios"
)

// WriteMarkdown writes report.md, which reads well on its own on a code host:
// every picture with its reading, and the numbers behind it in tables.
func WriteMarkdown(w io.Writer, c *scenarios.Comparison) error {
	b := bufio.NewWriter(w)
	m := &markdown{b, c}
	m.head()
	m.changes()
	figures := Figures(c)
	m.chapter(figures, "matrix", "Which configurations let two owners write?", m.matrix)
	m.chapter(figures, "fewest", "How few faults does it take?", m.fewest)
	m.chapter(figures, "curve-", "How much of a fault does it take?", nil)
	m.chapter(figures, "map-", "Where is it safe?", nil)
	m.chapter(figures, "recovery-", "When does somebody work again?", nil)
	m.chapter(figures, "price", "What does safety cost?", nil)
	m.chapter(figures, "herd", "What do waiting clients cost?", nil)
	m.stories()
	m.scenarios()
	m.about()
	return b.Flush()
}

// markdown writes one report.
type markdown struct {
	*bufio.Writer
	c *scenarios.Comparison
}

func (m *markdown) say(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

// row writes one row of a table. The cells are Markdown.
func (m *markdown) row(cells ...string) { m.say("| %s |", strings.Join(cells, " | ")) }

func (m *markdown) tableHead(cells ...string) {
	m.row(cells...)
	for i := range cells {
		cells[i] = "---"
	}
	m.row(cells...)
}

func (m *markdown) head() {
	c := m.c
	m.say("# locklab: which locks let two owners write?\n")
	if !c.Complete {
		var gaps []string
		for _, p := range c.Parts {
			if p.State == scenarios.PartInterrupted {
				gaps = append(gaps, p.Name)
			}
		}
		m.say("> **This report is partial.** It was interrupted; not complete: %s. What is here was run, and its sample sizes are right.\n", strings.Join(gaps, ", "))
	}
	left := ""
	for _, p := range c.Parts {
		if p.State == scenarios.PartLeftOut {
			left += " " + p.Name
		}
	}
	kind := ""
	if c.Spec.Quick {
		kind = ", quick: few runs and coarse steps"
	}
	m.say("%d designs, %d runs a cell (half of that where runs are long), from seed %d%s. The same seed gives the same report, byte for byte.\n",
		len(c.Designs), c.Spec.Runs, c.Spec.Seed, kind)
	if left != "" {
		m.say("Left out on request:%s.\n", left)
	}
	m.say("Verdicts: %s. A rate comes with its 95 %% interval (Wilson).\n", verdictLegend)
}

// changes tells what differs from an older report.
func (m *markdown) changes() {
	x := m.c.Changes
	if x == nil {
		return
	}
	m.say("## What changed\n")
	m.say("%s, %d say the same.%s\n", count(len(x.Cells), "cell says", "cells say")+" something else than in the older report", x.Same, note(x.Note))
	if len(x.Cells) == 0 {
		return
	}
	m.tableHead("part", "column", "design", "resource", "what", "before", "now")
	for _, k := range x.Cells {
		m.row(mdText(k.Part), mdText(k.Column), mdText(k.Design), mdText(k.Resource), mdText(k.What), mdText(k.Old), "**"+mdText(k.New)+"**")
	}
	m.say("")
}

func note(s string) string {
	if s == "" {
		return ""
	}
	return " Mind: " + mdText(s) + "."
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// chapter writes the pictures whose names begin with a prefix, then a table.
func (m *markdown) chapter(figures []Figure, prefix, title string, table func()) {
	begun := false
	for i := range figures {
		f := &figures[i]
		if !strings.HasPrefix(f.Name, prefix) {
			continue
		}
		if !begun {
			m.say("## %s\n", title)
			begun = true
		}
		m.say("![%s](%s)\n\n%s\n\n<sub>%s [SVG](%s)</sub>\n", mdText(f.Title), f.PNG(), mdText(f.Reading), mdText(f.Note), f.SVG())
	}
	if begun && table != nil {
		table()
	}
}

func (m *markdown) matrix() {
	m.say("<details><summary>The same as a table</summary>\n")
	head := []string{"design", "resource"}
	for _, f := range m.c.Families {
		head = append(head, mdText(f.Name))
	}
	m.tableHead(head...)
	for _, r := range matrixRows(m.c) {
		cells := []string{mdText(r.design), mdText(r.resource)}
		for _, k := range r.cells {
			switch {
			case k == nil:
				cells = append(cells, "")
			case !k.Possible:
				cells = append(cells, "–")
			default:
				_, letter, _ := verdictLook(k.Worst)
				cells = append(cells, letter+" "+share100(k.Share.Rate))
			}
		}
		m.row(cells...)
	}
	m.say("\n| family | what the adversary may do |\n| --- | --- |")
	for _, f := range m.c.Families {
		m.row(mdText(f.Name), mdText(f.Title)+" ("+mdText(orNone(f.Faults))+")")
	}
	m.say("\n</details>\n")
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

func (m *markdown) fewest() {
	m.say("<details><summary>The same as a table</summary>\n")
	m.tableHead("design", "resource", "fewest faults to two writers", "placements", "by", "with the operator's", "shortest")
	for i := range m.c.Fewest {
		f := &m.c.Fewest[i]
		faults, placements, story := fmt.Sprintf("more than %d", f.MaxFaults), fmt.Sprintf("none of %d", f.Executions), ""
		if f.TwoWriters >= 0 {
			faults, placements = fmt.Sprint(f.TwoWriters), fmt.Sprintf("%d of %d", f.Placements, f.Executions)
			for _, a := range f.Answers {
				if a.Answer == "two-writers" {
					story = m.link(a.Story)
				}
			}
		}
		operator := fmt.Sprintf("more than %d", f.MaxFaults)
		if f.OperatorTwoWriters >= 0 {
			operator = fmt.Sprint(f.OperatorTwoWriters)
		}
		m.row(mdText(f.Design), mdText(f.Resource), faults, placements, mdText(fewestKinds(f)), operator, story)
	}
	m.say("\n</details>\n")
}

// link is a link to a story's plan file.
func (m *markdown) link(id string) string {
	s := m.c.Story(id)
	if s == nil {
		return ""
	}
	return "[" + s.ID[:6] + "](" + s.File() + ")"
}

// stories lists the shortest story of each cell that shows harm.
func (m *markdown) stories() {
	told := 0
	for i := range m.c.Matrix {
		if m.c.Matrix[i].Story != "" {
			told++
		}
	}
	if told == 0 {
		return
	}
	m.say("## The shortest stories\n")
	m.say("For each cell of the matrix that shows harm: the fewest faults that were found to do it (with a star: no placement of fewer does), a plan file that locklab replay runs, and what the same plan does no harm to.\n")
	m.say("<details><summary>%d stories</summary>\n", told)
	m.tableHead("faults", "design", "resource", "verdict", "rate", "fewest", "story", "would have saved it", "repeat")
	for i := range m.c.Matrix {
		k := &m.c.Matrix[i]
		s := m.c.Story(k.Story)
		if s == nil {
			continue
		}
		star := ""
		if k.Proven {
			star = "*"
		}
		var saved []string
		for _, s := range k.SavedBy {
			saved = append(saved, s.Design+" on "+s.Resource)
		}
		m.row(mdText(k.Family), mdText(k.Design), mdText(k.Resource), k.Worst, share100(k.Share.Rate)+" ("+intervalText(k.Share)+")",
			fmt.Sprint(k.Fewest)+mdText(star)+" "+mdText(s.Kinds), m.link(k.Story), mdText(few(saved)), mdCode(k.Command))
	}
	m.say("\n</details>\n")
}

func (m *markdown) scenarios() {
	c := m.c
	if len(c.Scenarios) == 0 {
		return
	}
	asExpected, expected := 0, 0
	for i := range c.Scenarios {
		if s := &c.Scenarios[i]; s.Expected != "" {
			expected++
			if s.AsExpected {
				asExpected++
			}
		}
	}
	m.say("## The scenarios\n")
	m.say("%d of the %d that say what they expect gave that in every run.\n", asExpected, expected)
	m.say("<details><summary>%s</summary>\n", count(len(c.Titles), "scenario", "scenarios"))
	for _, t := range c.Titles {
		m.say("### %s\n\n%s\n", mdText(t.Title), mdText(t.Story))
		m.tableHead("design", "resource", "verdict", "runs", "expected", "story", "repeat")
		for i := range c.Scenarios {
			s := &c.Scenarios[i]
			if s.Scenario != t.Name {
				continue
			}
			expect := mdText(s.Expected)
			if !s.AsExpected {
				expect = "**" + expect + "**"
			}
			m.row(mdText(s.Design), mdText(s.Resource), s.Worst, fmt.Sprintf("%d of %d", s.Share.Runs, s.Runs), expect, m.link(s.Story), mdCode(s.Command))
		}
		m.say("")
	}
	m.say("</details>\n")
}

// about tells what else is in the directory.
func (m *markdown) about() {
	m.say("## The files\n")
	m.say("- `results.json`: everything in this report, for machines; `locklab report --compare results.json --out NEW` marks what changed since.")
	m.say("- `results.csv`: one row for each cell of the matrix and of the scenarios. A text that begins with =, +, - or @ has an apostrophe before it.")
	m.say("- `%s/`: the pictures. `%s/`: plan files; `locklab replay FILE` repeats one exactly and tells it.\n", PlotDir, scenarios.StoryDir)
	m.say("<details><summary>The columns of results.csv</summary>\n")
	m.tableHead("column", "meaning")
	for _, col := range csvColumns() {
		m.row("`"+col.name+"`", mdText(col.meaning))
	}
	m.say("\n</details>")
}

// mdText makes a text harmless in Markdown, in a table and in the HTML that a
// code host makes of it.
func mdText(s string) string {
	var b strings.Builder
	for _, r := range plainLine(s) {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case strings.ContainsRune("\\`*_[]|~#!", r):
			b.WriteRune('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// mdCode is a text as code in a table. A code span ends at as many backticks as
// it began with; a vertical bar still has to be escaped there.
func mdCode(s string) string {
	s = strings.ReplaceAll(plainLine(s), "|", "\\|")
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		s = " " + s + " "
	}
	return fence + s + fence
}
