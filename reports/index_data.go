package reports

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"locklab/scenarios"
)

// The data of a comparison's page. As in the data of stories, a number that
// stands for a text is the text's place in the page's list; what may be missing
// is written plus one, so that 0 means none. Nothing is counted here that the
// comparison did not count; index.js reads the same layout.

type indexData struct {
	pageData
	Report reportData `json:"report"`
}

type reportData struct {
	Complete  bool                    `json:"complete"`
	Parts     []scenarios.PartState   `json:"parts"`
	Seed      string                  `json:"seed"`
	Quick     bool                    `json:"quick"`
	Set       string                  `json:"set"`
	Designs   []indexDesign           `json:"designs"`
	Resources []indexName             `json:"resources"`
	Faults    []scenarios.FaultFamily `json:"faults"`
	Pairs     [][2]int                `json:"pairs"` // design, resource: the rows of the matrix
	Cells     []indexCell             `json:"cells"`
	Cannot    [][2]int                `json:"cannot"` // pair, fault: cells that say nothing, as the faults cannot befall the design
	Told      []indexStory            `json:"told"`
	Fewest    []indexFewest           `json:"fewest"`
	Titles    []indexName             `json:"titles"` // of scenarios
	Scenarios []indexScenario         `json:"scenarios"`
	Figures   []indexFigure           `json:"figures"`
	Changes   *scenarios.Changes      `json:"changes"`
	NotDrawn  int                     `json:"not_drawn"` // stories for whose diagrams the page has no room
}

type indexName struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
}

type indexDesign struct {
	Name    string `json:"name"`
	Family  string `json:"family"`
	Summary string `json:"summary"`
	Source  string `json:"source"`
	Tokens  string `json:"tokens"`
}

// indexCell is a cell of the matrix.
type indexCell struct {
	Pair     int      `json:"p"`
	Fault    int      `json:"f"`
	Runs     int64    `json:"n"`
	Worst    int      `json:"w"` // text
	Rate     float64  `json:"r"` // of the worst verdict
	Verdicts [][]int  `json:"v"` // text, runs, text of the rate with its interval
	Locks    [][]int  `json:"l"`
	Below    int      `json:"b"` // text: the bound of what was never seen, in percent
	Command  int      `json:"c"` // text
	First    string   `json:"s"` // seed
	Story    int      `json:"t"` // plus one
	Proven   bool     `json:"x"`
	Saved    [][2]int `json:"y"` // pair, text of its verdict
	Panics   int64    `json:"z,omitempty"`
}

// indexStory is what is said of a story beside its diagram.
type indexStory struct {
	ID       string `json:"id"`
	Design   int    `json:"design"`   // text
	Resource int    `json:"resource"` // text
	Verdict  int    `json:"verdict"`  // text
	Drawn    int    `json:"drawn"`    // plus one: its place among the stories; 0: not drawn
	Faults   int    `json:"faults"`
	Kinds    int    `json:"kinds"` // text
	Shrunk   bool   `json:"shrunk"`
	Words    []int  `json:"words"` // texts
	Plan     string `json:"plan"`
	Command  int    `json:"command"` // text
}

// indexFewest is what every placement of one fault showed.
type indexFewest struct {
	Pair       int           `json:"p"`
	Executions int64         `json:"n"`
	MaxFaults  int           `json:"max"`
	Complete   bool          `json:"complete"`
	TwoWriters int           `json:"two"` // faults; -1: none let two write
	Placements int64         `json:"placements"`
	Operator   int           `json:"operator"` // the same with the operator's faults
	Answers    []indexAnswer `json:"a"`
}

type indexAnswer struct {
	Answer int     `json:"a"` // text
	Faults int     `json:"f"`
	Runs   int64   `json:"n"`
	Kinds  [][]int `json:"k"` // text, runs, story plus one
	Story  int     `json:"t"` // plus one
}

// indexScenario is a design and resource in a scenario.
type indexScenario struct {
	Title      int   `json:"s"` // its place among the titles
	Design     int   `json:"d"` // text
	Resource   int   `json:"r"` // text
	Runs       int64 `json:"n"`
	Worst      int   `json:"w"` // text
	Rate       int   `json:"q"` // text
	Expected   int   `json:"e"` // text
	Why        int   `json:"y"` // text
	AsExpected bool  `json:"o"`
	Command    int   `json:"c"` // text
	Story      int   `json:"t"` // plus one
}

// index builds the data of a page from a comparison.
type index struct {
	c     *scenarios.Comparison
	page  *Page // packs the stories, and numbers the texts of the whole page
	data  indexData
	told  map[string]int // by ID: a story's place in Told
	pairs map[[2]string]int
	size  int // of the diagrams' data, in bytes
}

func newIndex(c *scenarios.Comparison) *index {
	x := &index{c: c, page: NewPage(""), told: map[string]int{}, pairs: map[[2]string]int{}}
	r := &x.data.Report
	*r = reportData{Complete: c.Complete, Parts: c.Parts, Seed: strconv.FormatUint(c.Spec.Seed, 10), Quick: c.Spec.Quick,
		Set: c.Spec.Set, Changes: c.Changes, Faults: c.Families, Designs: []indexDesign{}, Resources: []indexName{},
		Pairs: [][2]int{}, Cells: []indexCell{}, Cannot: [][2]int{}, Told: []indexStory{}, Fewest: []indexFewest{}, Titles: []indexName{},
		Scenarios: []indexScenario{}, Figures: []indexFigure{}}
	for _, d := range c.Designs {
		r.Designs = append(r.Designs, indexDesign{d.Name, d.Family, d.Summary, d.Source, d.Tokens})
	}
	for _, m := range c.Resources {
		r.Resources = append(r.Resources, indexName{m.Name, m.Summary})
	}
	for _, s := range c.Titles {
		r.Titles = append(r.Titles, indexName{s.Name, s.Title})
	}
	x.addPairs()
	for i := range c.Stories {
		x.addTold(&c.Stories[i])
	}
	for i := range c.Matrix {
		x.addCell(&c.Matrix[i])
	}
	for i := range c.Fewest {
		x.addFewest(&c.Fewest[i])
	}
	for i := range c.Scenarios {
		x.addScenario(&c.Scenarios[i])
	}
	return x
}

func (x *index) text(s string) int { return x.page.texts.of(s) }

// addPairs makes the rows of the matrix, in the order in which the comparison
// has them: that of the catalogue.
func (x *index) addPairs() {
	design, resource := map[string]int{}, map[string]int{}
	for i, d := range x.c.Designs {
		design[d.Name] = i
	}
	for i, m := range x.c.Resources {
		resource[m.Name] = i
	}
	add := func(d, m string) {
		if key := [2]string{d, m}; x.pairs[key] == 0 {
			x.data.Report.Pairs = append(x.data.Report.Pairs, [2]int{design[d], resource[m]})
			x.pairs[key] = len(x.data.Report.Pairs)
		}
	}
	for i := range x.c.Matrix {
		add(x.c.Matrix[i].Design, x.c.Matrix[i].Resource)
	}
	for i := range x.c.Fewest {
		add(x.c.Fewest[i].Design, x.c.Fewest[i].Resource)
	}
}

func (x *index) pair(design, resource string) int { return x.pairs[[2]string{design, resource}] - 1 }

// story is a story's place plus one, 0 for none.
func (x *index) story(id string) int {
	if n, ok := x.told[id]; ok {
		return n + 1
	}
	return 0
}

func (x *index) addTold(s *scenarios.Story) {
	out := indexStory{ID: s.ID, Design: x.text(s.Design), Resource: x.text(s.Resource), Verdict: x.text(s.Verdict),
		Faults: s.Faults, Kinds: x.text(s.Kinds), Shrunk: s.Shrunk, Words: []int{}, Plan: s.Plan, Command: x.text(s.Command)}
	for _, w := range s.Words {
		out.Words = append(out.Words, x.text(w))
	}
	x.told[s.ID] = len(x.data.Report.Told)
	x.data.Report.Told = append(x.data.Report.Told, out)
}

// outcomes writes how often each answer was given.
func (x *index) outcomes(list []scenarios.Outcome, of int64) [][]int {
	out := [][]int{}
	for _, o := range list {
		out = append(out, []int{x.text(o.Answer), int(o.Runs), x.text(rateText(o.Runs, of))})
	}
	return out
}

func (x *index) addCell(m *scenarios.MatrixCell) {
	fault := slices.IndexFunc(x.c.Families, func(f scenarios.FaultFamily) bool { return f.Name == m.Family })
	if !m.Possible {
		x.data.Report.Cannot = append(x.data.Report.Cannot, [2]int{x.pair(m.Design, m.Resource), fault})
		return
	}
	out := indexCell{Pair: x.pair(m.Design, m.Resource), Fault: fault, Runs: m.Runs, Worst: x.text(m.Worst), Rate: m.Share.Rate,
		Verdicts: x.outcomes(m.Verdicts, m.Runs), Locks: x.outcomes(m.Locks, m.Runs), Below: x.text(percent(scenarios.RuleOfThree(m.Runs))),
		Command: x.text(m.Command), First: strconv.FormatUint(m.First, 10), Story: x.story(m.Story), Proven: m.Proven,
		Saved: [][2]int{}, Panics: m.Panics}
	for _, s := range m.SavedBy {
		out.Saved = append(out.Saved, [2]int{x.pair(s.Design, s.Resource), x.text(s.Verdict)})
	}
	x.data.Report.Cells = append(x.data.Report.Cells, out)
}

func (x *index) addFewest(f *scenarios.FewestCell) {
	out := indexFewest{Pair: x.pair(f.Design, f.Resource), Executions: f.Executions, MaxFaults: f.MaxFaults, Complete: f.Complete,
		TwoWriters: f.TwoWriters, Placements: f.Placements, Operator: f.OperatorTwoWriters, Answers: []indexAnswer{}}
	for _, a := range f.Answers {
		answer := indexAnswer{Answer: x.text(a.Answer), Faults: a.Faults, Runs: a.Runs, Kinds: [][]int{}, Story: x.story(a.Story)}
		for _, k := range a.Kinds {
			answer.Kinds = append(answer.Kinds, []int{x.text(k.Kinds), int(k.Runs), x.story(k.Story)})
		}
		out.Answers = append(out.Answers, answer)
	}
	x.data.Report.Fewest = append(x.data.Report.Fewest, out)
}

func (x *index) addScenario(s *scenarios.ScenarioCell) {
	title := slices.IndexFunc(x.c.Titles, func(t scenarios.ComparedScenario) bool { return t.Name == s.Scenario })
	x.data.Report.Scenarios = append(x.data.Report.Scenarios, indexScenario{Title: title, Design: x.text(s.Design),
		Resource: x.text(s.Resource), Runs: s.Runs, Worst: x.text(s.Worst), Rate: x.text(rateText(s.Share.Runs, s.Share.Of)),
		Expected: x.text(s.Expected), Why: x.text(strings.TrimSpace(s.Why)), AsExpected: s.AsExpected,
		Command: x.text(s.Command), Story: x.story(s.Story)})
}

// stories lists all stories, those first that must not lack their diagram: the
// matrix's, then what the tables lead with.
func (x *index) stories() []*scenarios.Story {
	var out []*scenarios.Story
	listed := map[string]bool{}
	add := func(id string) {
		if n, ok := x.told[id]; ok && !listed[id] {
			listed[id] = true
			out = append(out, &x.c.Stories[n])
		}
	}
	for i := range x.c.Matrix {
		add(x.c.Matrix[i].Story)
	}
	for i := range x.c.Fewest {
		for _, a := range x.c.Fewest[i].Answers {
			add(a.Story)
		}
	}
	for i := range x.c.Scenarios {
		add(x.c.Scenarios[i].Story)
	}
	for i := range x.c.Stories {
		add(x.c.Stories[i].ID)
	}
	return out
}

// addStory adds a story's diagram, as long as there is room.
func (x *index) addStory(s *scenarios.Story, res *scenarios.Result) error {
	if x.size >= storiesSize {
		x.data.Report.NotDrawn++
		return nil
	}
	texts := len(x.page.texts.all)
	x.page.Add(res)
	row, err := json.Marshal(x.page.data.Stories[x.page.Len()-1])
	if err != nil {
		return err
	}
	x.size += len(row)
	for _, t := range x.page.texts.all[texts:] {
		x.size += len(t) + len(`"",`)
	}
	x.data.Report.Told[x.told[s.ID]].Drawn = x.page.Len()
	return nil
}
