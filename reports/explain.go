package reports

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"locklab/scenarios"
)

// Explain writes what a scenario is about, for somebody who has not run it:
// the story, where it comes from, the plan, what is expected and why.
func Explain(w io.Writer, s *scenarios.Scenario, style Style) error {
	e := &explainer{style: style}
	e.line("%s", style.bold(s.Name+": "+s.Title))
	for _, paragraph := range strings.Split(strings.TrimSpace(s.Story), "\n\n") {
		e.blank()
		e.paragraph("", paragraph)
	}
	e.sources(s)
	e.answers(s)
	e.setting(s)
	e.expectations(s)
	e.list("Questions", s.Questions)
	e.blank()
	e.line("Run it: locklab run %s", s.Ref())
	_, err := io.WriteString(w, style.text(e.String()))
	return err
}

type explainer struct {
	strings.Builder
	style Style
}

func (e *explainer) line(format string, args ...any) { fmt.Fprintf(e, format+"\n", args...) }
func (e *explainer) blank()                          { e.WriteString("\n") }

func (e *explainer) heading(text string) {
	e.blank()
	e.line("%s", e.style.bold(text))
}

// paragraph writes wrapped text with an indent.
func (e *explainer) paragraph(indent, text string) {
	for _, l := range wrap(text, e.style.width()-len(indent)) {
		e.line("%s%s", indent, l)
	}
}

func (e *explainer) list(title string, items []string) {
	if len(items) == 0 {
		return
	}
	e.heading(title)
	for i, item := range items {
		e.item(fmt.Sprintf("%d.", i+1), item)
	}
}

// item writes a wrapped text behind a mark.
func (e *explainer) item(mark, text string) {
	pad := strings.Repeat(" ", len(mark))
	for i, l := range wrap(text, e.style.width()-len(mark)-3) {
		if i > 0 {
			mark = pad
		}
		e.line("  %s %s", mark, l)
	}
}

// answers writes what every lease story answers.
func (e *explainer) answers(s *scenarios.Scenario) {
	if len(s.Answers) == 0 {
		return
	}
	e.heading("Answers")
	for _, a := range s.Answers {
		e.line("  %s", a.Question)
		e.paragraph("    ", a.Answer)
	}
}

func (e *explainer) sources(s *scenarios.Scenario) {
	if len(s.Source) == 0 {
		return
	}
	e.heading("Sources")
	for _, src := range s.Source {
		e.item("-", src)
	}
}

// setting writes the numbers that differ from the defaults, the plan, and what
// must have happened for a run to mean anything.
func (e *explainer) setting(s *scenarios.Scenario) {
	e.heading("Setting")
	if changed := s.Params.Changed(); len(changed) > 0 {
		var parts []string
		for _, c := range changed {
			parts = append(parts, c.Name+"="+c.Value)
		}
		e.item("-", "parameters: "+strings.Join(parts, ", ")+" (the rest are defaults: locklab list parameters)")
	}
	if len(s.Plan.Faults) == 0 {
		e.item("-", "no fault")
	} else {
		for _, l := range strings.Split(strings.TrimRight(string(scenarios.MarshalPlan(s.Plan)), "\n"), "\n") {
			e.line("    %s", l)
		}
	}
	for _, w := range s.Witnesses {
		e.item("-", "the run counts only if "+w.Text)
	}
}

func (e *explainer) expectations(s *scenarios.Scenario) {
	if len(s.Expect) == 0 {
		return
	}
	e.heading("Expected (the first row that matches; for seeds 1 to 100)")
	for _, x := range s.Expect {
		e.blank()
		answer := x.Verdict
		if x.Lock != "" {
			answer += ", lock " + x.Lock
		}
		e.line("  %s on %s: %s", names(x.Designs), names(x.Resources), e.style.paint(verdictColor(x.Verdict), answer))
		e.paragraph("    ", x.Why)
	}
}

func names(patterns []string) string {
	if len(patterns) == 0 {
		return "any"
	}
	return strings.Join(patterns, ", ")
}

type scenarioJSON struct {
	Schema    int             `json:"schema"`
	Name      string          `json:"name"`
	Title     string          `json:"title"`
	Story     string          `json:"story"`
	Sources   []string        `json:"sources"`
	Answers   []answerJSON    `json:"answers"`
	Designs   []string        `json:"designs"` // what runs if nobody says otherwise
	Resources []string        `json:"resources"`
	Params    object          `json:"params"` // that differ from the defaults
	Plan      string          `json:"plan"`   // YAML
	Witnesses []string        `json:"witnesses"`
	Expect    []expectRowJSON `json:"expect"` // the first that matches counts
	Questions []string        `json:"questions"`
}

type answerJSON struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

type expectRowJSON struct {
	Designs   []string `json:"designs"` // names and patterns; none: every one
	Resources []string `json:"resources"`
	Verdict   string   `json:"verdict"`
	Lock      string   `json:"lock"` // "" where the answer depends on the seed
	Why       string   `json:"why"`
}

// ExplainJSON writes what Explain writes as one JSON object.
func ExplainJSON(w io.Writer, s *scenarios.Scenario) error {
	j := scenarioJSON{Schema: schema, Name: s.Name, Title: s.Title, Story: strings.TrimSpace(s.Story), Sources: texts(s.Source),
		Answers: []answerJSON{}, Designs: texts(s.Designs), Resources: texts(s.Resources), Params: object{}, Plan: string(scenarios.MarshalPlan(s.Plan)),
		Witnesses: []string{}, Expect: []expectRowJSON{}, Questions: texts(s.Questions)}
	for _, a := range s.Answers {
		j.Answers = append(j.Answers, answerJSON(a))
	}
	for _, c := range s.Params.Changed() {
		j.Params = append(j.Params, member{c.Name, c.Value})
	}
	for _, wit := range s.Witnesses {
		j.Witnesses = append(j.Witnesses, wit.Text)
	}
	for _, x := range s.Expect {
		j.Expect = append(j.Expect, expectRowJSON{texts(x.Designs), texts(x.Resources), x.Verdict, x.Lock, strings.TrimSpace(x.Why)})
	}
	return json.NewEncoder(w).Encode(j)
}

// texts is a list that JSON writes as [] when it is empty.
func texts(list []string) []string { return append([]string{}, list...) }
