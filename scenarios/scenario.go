package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"locklab/models"
	"locklab/sim"
)

// Scenario is a named story: an adversary, a workload, and what is expected of
// each design. Its written form is one YAML file.
type Scenario struct {
	Name  string // kleppmann/gc-pause
	File  string // where a user's own scenario stands; "" for one of the library
	Title string // one line
	Story string // a few sentences
	// Source says what the scenario reproduces: articles, papers, issues.
	Source []string

	// Designs and Resources are run when none are asked for; none of them
	// leaves the choice to the caller.
	Designs   []string
	Resources []string

	Params    Params
	Plan      sim.Plan
	Witnesses []Witness
	Expect    []Expectation
	Questions []string // for a class
	// Answers are the scenario's answers to the five questions of answerKeys, in their order; nil for
	// a scenario that gives none.
	Answers []Answer

	faults     faultPositions // where the plan's faults stand, for Locate
	references []reference    // names and patterns of designs and resources, for CheckNames
}

// reference is a name or pattern of a design or resource where it stands.
type reference struct {
	what string // aDesign or aResource
	text string
	pos  Pos
}

// What a reference refers to.
const (
	aDesign   = "design"
	aResource = "resource"
)

// CheckNames refuses a name or pattern in the scenario's file that none of the
// given designs or resources matches: a row of expectations would silently
// never speak. Load knows no design, so that it cannot do this.
func (s *Scenario) CheckNames(designs, resources []string) error {
	for _, r := range s.references {
		known := designs
		if r.what == aResource {
			known = resources
		}
		if !slices.ContainsFunc(known, func(name string) bool { return r.text == "all" || MatchPattern(r.text, name) }) {
			return r.pos.Errorf("%s", unknown(r.what, r.text, known))
		}
	}
	return nil
}

// Ref names the scenario on a command line: one of the library by its name,
// one's own by its file.
func (s *Scenario) Ref() string {
	if s.File != "" {
		return ShellWord(s.File)
	}
	return s.Name
}

// ShellWord quotes a word for a POSIX shell, if it needs that.
func ShellWord(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Locate turns a mistake in the scenario's own plan that showed only when a run
// was set up, a *sim.FaultError, into an *InputError at the field that is
// wrong. Any other error comes back unchanged.
func (s *Scenario) Locate(err error) error { return s.faults.locate(err) }

// Answer is what a scenario says about one of the things that everybody who
// designs a lock must have an answer to.
type Answer struct {
	Question string // Who owns the lock?
	Answer   string // a sentence or two
}

// answerKeys are the YAML keys of a scenario's answers and the questions that
// they answer, in their documented order.
func answerKeys() []struct{ key, question string } {
	return []struct{ key, question string }{
		{"owner", "Who owns the lock?"},
		{"token", "Which token counts?"},
		{"write", "Is the write allowed?"},
		{"repeat", "Is a repeat safe?"},
		{"recovery", "How does the system recover?"},
	}
}

// Witness is a sentence about the adversary that must have come true for the
// run to mean anything. The runner knows the vocabulary.
type Witness struct {
	Text string
	Pos  Pos
}

// Expected returns the first row that speaks about a design under a resource,
// or nil.
func (s *Scenario) Expected(design, resource string) *Expectation {
	for i := range s.Expect {
		if s.Expect[i].Matches(design, resource) {
			return &s.Expect[i]
		}
	}
	return nil
}

// Pos is a point in a YAML file; line and column count from 1, columns in
// characters.
type Pos struct {
	File         string
	Line, Column int
}

// String returns file:line:column.
func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// Errorf returns a user's mistake at this point as one line. The text says
// what is wrong and what would be right.
func (p Pos) Errorf(format string, args ...any) error {
	return &InputError{Pos: p, What: oneLine(fmt.Sprintf(format, args...))}
}

// InputError is a user's mistake in a file.
type InputError struct {
	Pos  Pos
	What string // what is wrong, what would be right
}

// Error returns file:line:column: what.
func (e *InputError) Error() string { return e.Pos.String() + ": " + e.What }

// messageMax keeps a message readable that quotes an endless word, in bytes.
const messageMax = 500

// oneLine makes a message fit for a terminal's line.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
	if len(s) <= messageMax {
		return s
	}
	cut := messageMax
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// suits says why a design has no part in the scenario, in one line: it is of
// another kind than those that the scenario names. Nil if it has one.
func (s *Scenario) suits(d *models.Design) error {
	if s == nil || len(s.Designs) == 0 || matchesAny(s.Designs, d.Name) {
		return nil
	}
	about := ""
	for _, named := range models.Designs() {
		if !matchesAny(s.Designs, named.Name) {
			continue
		}
		if about = named.Kind(); about == d.Kind() {
			return nil
		}
	}
	if about == "" { // a design of somebody's own
		return nil
	}
	return fmt.Errorf("%s is a %s, and %s is about a %s", d.Name, d.Kind(), s.Ref(), about)
}
