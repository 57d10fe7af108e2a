package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"locklab/checker"
	"locklab/models"
	"locklab/sim"
)

// comparisonSchema is the version of results.json. Fields are added without a
// new one; one that changes its meaning or goes gives a new number.
const comparisonSchema = 1

// Comparison is everything that a report shows: what was asked for, what was
// run, and what it showed. It depends on the spec alone, not on the number of
// workers or the host's clock. Lists stand in the order of the catalogues.
type Comparison struct {
	Schema   int         `json:"schema"`
	Spec     CompareSpec `json:"spec"`
	Complete bool        `json:"complete"` // every part that was asked for is complete
	Parts    []PartState `json:"parts"`    // all parts, also those that were left out
	Changes  *Changes    `json:"changes"`  // since an older report; null without one

	Designs   []ComparedDesign   `json:"designs"`
	Resources []ComparedResource `json:"resources"`
	Families  []FaultFamily      `json:"fault_families"`
	Stories   []Story            `json:"stories"` // shared by all parts, by the order in which they are first referred to

	Matrix    []MatrixCell       `json:"matrix"`    // part matrix
	Titles    []ComparedScenario `json:"scenarios"` // part scenarios
	Scenarios []ScenarioCell     `json:"scenario_cells"`
	Fewest    []FewestCell       `json:"fewest"`   // part fewest
	Curves    []Curve            `json:"curves"`   // part curves
	Maps      []SafetyMap        `json:"maps"`     // part maps
	Recovery  []Recovery         `json:"recovery"` // part recovery
	Prices    []Price            `json:"prices"`   // part price
	Herds     []Herd             `json:"herds"`    // part herd
}

// CompareSpec says what a comparison runs.
type CompareSpec struct {
	Seed      uint64   `json:"seed"`  // the first of every cell
	Runs      int64    `json:"runs"`  // of each cell of the matrix; designs whose runs are long get half of it
	Quick     bool     `json:"quick"` // fewer runs, coarser steps, and no exhaustion of designs whose runs are long
	Only      []string `json:"only"`  // parts, of PartNames; none means all
	Designs   []string `json:"designs"`
	Resources []string `json:"resources"` // none: the sensible ones of each design
	Scenarios []string `json:"scenarios"`
	Set       string   `json:"set"` // parameters of all parts but the scenarios, as --set spells them
}

// The parts of a comparison, in the order in which they are gathered.
const (
	PartFewest    = "fewest"    // every placement of one fault
	PartMatrix    = "matrix"    // every design and resource under every family of faults
	PartStories   = "stories"   // the shortest story of each of its cells that shows harm
	PartScenarios = "scenarios" // every scenario
	PartCurves    = "curves"    // the chance of two writers against the size of one fault
	PartMaps      = "maps"      // the same against two sizes
	PartRecovery  = "recovery"  // how long nobody works after an owner's death
	PartPrice     = "price"     // what a design costs while nothing goes wrong
	PartHerd      = "herd"      // what waiting clients ask of the servers
)

// PartNames lists the parts of a comparison in their order.
func PartNames() []string {
	return []string{PartFewest, PartMatrix, PartStories, PartScenarios, PartCurves, PartMaps, PartRecovery, PartPrice, PartHerd}
}

// The states of a part.
const (
	PartComplete    = "complete"
	PartInterrupted = "interrupted" // what was done until then is there
	PartLeftOut     = "left out"    // not asked for
)

// PartState says how far a part has come.
type PartState struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Runs  int64  `json:"runs"` // that it took
}

// ComparedDesign is a design of the comparison.
type ComparedDesign struct {
	Name    string `json:"name"`
	Family  string `json:"family"` // the name up to its slash
	Summary string `json:"summary"`
	Source  string `json:"source"`
	Tokens  string `json:"tokens"` // none, unique or ordered
	Events  int64  `json:"events"` // in a run without faults, as a measure of what it costs to simulate
	Long    bool   `json:"long"`   // its runs are long, so that it gets half as many
}

// ComparedResource is a protected resource of the comparison.
type ComparedResource struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
}

// Story is one run, complete: its plan is a plan file, for locklab replay.
type Story struct {
	ID       string   `json:"id"` // of the plan's content: the same plan has the same everywhere
	Design   string   `json:"design"`
	Resource string   `json:"resource"`
	Verdict  string   `json:"verdict"`
	Lock     string   `json:"lock"`
	Seed     uint64   `json:"seed"`
	Faults   int      `json:"faults"`
	Kinds    string   `json:"kinds"`      // of the faults, sorted, with a plus between them; "" for none
	Shrunk   bool     `json:"shrunk"`     // nothing of it can be left out
	Words    []string `json:"thresholds"` // how long or large its faults have to be
	Plan     string   `json:"plan"`       // a plan file's text
	Command  string   `json:"command"`    // repeats it, in the report's directory
}

// Outcome is how many runs gave one answer.
type Outcome struct {
	Answer string `json:"answer"`
	Runs   int64  `json:"runs"`
	First  uint64 `json:"first_seed"`
}

// Share is how many of some runs showed something, as a rate with Wilson's
// 95 % interval, rounded to six digits.
type Share struct {
	Runs int64   `json:"runs"`
	Of   int64   `json:"of"`
	Rate float64 `json:"rate"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// NewShare returns the share of k in n runs.
func NewShare(k, n int64) Share {
	in := Wilson(k, n)
	s := Share{Runs: k, Of: n, Low: sixDigits(in.Low), High: sixDigits(in.High)}
	if n > 0 {
		s.Rate = sixDigits(float64(k) / float64(n))
	}
	return s
}

// sixDigits rounds, so that the last bits, in which processors differ, do not
// show.
func sixDigits(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// CompareOptions say how a comparison is gathered. They do not influence what
// it shows.
type CompareOptions struct {
	Workers  int                             // goroutines; 0: GOMAXPROCS
	Progress func(part string, runs int)     // called by the workers after so many more runs of a part; nil: nobody asks
	Planned  func(part string, runs int64)   // called when it is known how many runs a part will have, about
	Find     func(string) (*Scenario, error) // looks a scenario up; nil: Find
	Watchdog *sim.Watchdog                   // nil: none
}

// comparer gathers a comparison.
type comparer struct {
	CompareOptions
	out       *Comparison
	params    Params
	pairs     []pair
	scenarios []*Scenario
	stories   map[string]bool // the IDs of those in out
	mu        sync.Mutex
	runs      int64 // of the part at work
	part      string
}

// pair is a design with a resource.
type pair struct {
	design   *models.Design
	resource *models.ResourceKind
	long     bool
}

// NewComparison checks a spec and returns the comparison of which nothing has
// been run. Errors are one line.
func NewComparison(spec CompareSpec, find func(string) (*Scenario, error)) (*Comparison, error) {
	c, err := newComparer(spec, CompareOptions{Find: find})
	if err != nil {
		return nil, err
	}
	return c.out, nil
}

// Compare gathers a comparison. When ctx ends, what was gathered so far is
// returned with its error; interrupted parts say so.
func Compare(ctx context.Context, spec CompareSpec, o CompareOptions) (*Comparison, error) {
	c, err := newComparer(spec, o)
	if err != nil {
		return nil, err
	}
	for i := range c.out.Parts {
		p := &c.out.Parts[i]
		if p.State == PartLeftOut {
			continue
		}
		c.part, c.runs = p.Name, 0
		err := c.gather(ctx, p.Name)
		p.Runs = c.runs
		if err != nil {
			return c.out, err
		}
		p.State = PartComplete
	}
	c.out.Complete = true
	return c.out, nil
}

// gather gathers one part.
func (c *comparer) gather(ctx context.Context, part string) error {
	switch part {
	case PartMatrix:
		return c.matrix(ctx)
	case PartFewest:
		return c.fewest(ctx)
	case PartStories:
		return c.shortest(ctx)
	case PartScenarios:
		return c.stage(ctx)
	case PartCurves:
		return c.curves(ctx)
	case PartMaps:
		return c.maps(ctx)
	case PartRecovery:
		return c.recovery(ctx)
	case PartPrice:
		return c.price(ctx)
	case PartHerd:
		return c.herd(ctx)
	}
	return fmt.Errorf("there is no part %q", part)
}

// newComparer looks everything up and prepares a comparison in which every
// part that was asked for is marked as interrupted, until it is complete.
func newComparer(spec CompareSpec, o CompareOptions) (*comparer, error) {
	if spec.Runs < 0 || spec.Runs > compareRunsMax {
		return nil, fmt.Errorf("--runs: %d is out of range; allowed is 1 to %d", spec.Runs, int64(compareRunsMax))
	}
	if spec.Seed > math.MaxUint64-compareRunsMax {
		return nil, fmt.Errorf("--seed: %d leaves too few seeds after it", spec.Seed)
	}
	if spec.Runs == 0 {
		spec.Runs = 120
		if spec.Quick {
			spec.Runs = 6
		}
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Find == nil {
		o.Find = Find
	}
	c := &comparer{CompareOptions: o, params: DefaultParams(), stories: map[string]bool{}}
	settings, err := ParseSet(spec.Set)
	if err == nil {
		err = c.params.Apply(settings)
	}
	if err != nil {
		return nil, fmt.Errorf("--set: %w", err)
	}
	parts, err := Pick("part", PartNames(), func(s string) string { return s }, orElse(spec.Only))
	if err != nil {
		return nil, err
	}
	if slices.Contains(parts, PartStories) && !slices.Contains(parts, PartMatrix) {
		return nil, errors.New("--only: the stories are those of the matrix; ask for matrix as well")
	}
	spec.Only = parts
	c.out = &Comparison{Schema: comparisonSchema, Families: FaultFamilies(), Stories: []Story{}, Matrix: []MatrixCell{},
		Titles: []ComparedScenario{}, Scenarios: []ScenarioCell{}, Fewest: []FewestCell{},
		Curves: []Curve{}, Maps: []SafetyMap{}, Recovery: []Recovery{}, Prices: []Price{}, Herds: []Herd{}}
	for _, name := range PartNames() {
		state := PartState{Name: name, State: PartLeftOut}
		if slices.Contains(parts, name) {
			state.State = PartInterrupted
		}
		c.out.Parts = append(c.out.Parts, state)
	}
	if err := c.findPairs(&spec); err != nil {
		return nil, err
	}
	if err := c.findScenarios(&spec); err != nil {
		return nil, err
	}
	c.out.Spec = spec
	return c, nil
}

// compareRunsMax is the largest number of runs of a cell.
const compareRunsMax = 10_000_000

// findPairs pairs the designs with the resources asked for, or else with their
// sensible ones, and measures how long a run of each design is.
func (c *comparer) findPairs(spec *CompareSpec) error {
	designs, err := PickDesigns(orElse(spec.Designs))
	if err != nil {
		return err
	}
	resources, err := PickResources(orElse(spec.Resources))
	if err != nil {
		return err
	}
	spec.Designs, spec.Resources = names(spec.Designs), names(spec.Resources)
	for _, r := range resources {
		c.out.Resources = append(c.out.Resources, ComparedResource{Name: r.Name, Summary: r.Summary})
	}
	for _, d := range designs {
		first := len(c.pairs)
		for _, r := range resources {
			if d.Serves(r) == nil && (len(spec.Resources) > 0 || sensible(d, r)) {
				c.pairs = append(c.pairs, pair{design: d, resource: r})
			}
		}
		if first == len(c.pairs) {
			continue
		}
		p := &c.pairs[first]
		events, err := eventsOf(Case{Design: p.design, Resource: p.resource, Params: c.params}, spec.Seed)
		if err != nil {
			return err
		}
		long := events > longRun
		for i := first; i < len(c.pairs); i++ {
			c.pairs[i].long = long
		}
		c.out.Designs = append(c.out.Designs, ComparedDesign{Name: d.Name, Family: familyOf(d.Name), Summary: d.Summary,
			Source: d.Source, Tokens: d.Tokens.String(), Events: events, Long: long})
	}
	if len(c.pairs) == 0 {
		return errors.New("none of these designs can serve one of these resources")
	}
	return nil
}

// longRun is from how many events on a run counts as long.
const longRun = 600

func eventsOf(c Case, seed uint64) (int64, error) {
	r, err := NewRunner(c)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	res, err := r.Run(seed, sim.TraceOff)
	if err != nil {
		return 0, err
	}
	return res.Events, nil
}

// names is a list that is written [] and not null when it is empty.
func names(list []string) []string { return append([]string{}, list...) }

func (c *comparer) findScenarios(spec *CompareSpec) error {
	if len(spec.Scenarios) == 0 {
		library, err := Library()
		if err != nil {
			return err
		}
		for _, s := range library {
			spec.Scenarios = append(spec.Scenarios, s.Name)
		}
	}
	for _, name := range spec.Scenarios {
		s, err := c.Find(name)
		if err != nil {
			return err
		}
		c.scenarios = append(c.scenarios, s)
	}
	return nil
}

// runsOf is how many runs a pair gets in a cell.
func (c *comparer) runsOf(p *pair) int64 { return halfIf(p.long, c.out.Spec.Runs) }

func halfIf(long bool, runs int64) int64 {
	if long {
		return max(runs/2, 1)
	}
	return runs
}

// did counts runs for the progress.
func (c *comparer) did(runs int) {
	c.mu.Lock()
	c.runs += int64(runs)
	c.mu.Unlock()
	if c.Progress != nil {
		c.Progress(c.part, runs)
	}
}

func (c *comparer) plan(runs int64) {
	if c.Planned != nil {
		c.Planned(c.part, runs)
	}
}

// each calls do for every number below n, from all workers, each with a watch
// of its own.
func (c *comparer) each(ctx context.Context, n int, do func(i int, watch *sim.Watch) error) error {
	watches := make([]*sim.Watch, min(c.Workers, n))
	for i := range watches {
		if c.Watchdog != nil {
			watches[i] = c.Watchdog.Worker()
		}
	}
	return InParallel(ctx, c.Workers, n, func(worker, i int) error { return do(i, watches[worker]) })
}

// outcomes lists the answers that were seen, the most severe first.
func outcomes(words []string, count func(word string) Count) []Outcome {
	out := []Outcome{}
	for _, w := range words {
		if n := count(w); n.Runs > 0 {
			out = append(out, Outcome{Answer: w, Runs: n.Runs, First: n.First})
		}
	}
	return out
}

func (t *Tally) verdictOutcomes() []Outcome {
	return outcomes(Verdicts(), func(word string) Count {
		v, _ := checker.ParseVerdict(word)
		return t.Verdicts[v]
	})
}

func (t *Tally) lockOutcomes() []Outcome {
	return outcomes(LockAnswers(), func(word string) Count {
		l, _ := checker.ParseLockAnswer(word)
		return t.Locks[l]
	})
}

// WriteJSON writes the comparison as results.json.
func (c *Comparison) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(c)
}

// ReadComparison reads what WriteJSON wrote. Errors are one line.
func ReadComparison(r io.Reader, name string) (*Comparison, error) {
	var c Comparison
	if err := json.NewDecoder(r).Decode(&c); err != nil {
		return nil, fmt.Errorf("%s: not the results.json of a report: %w", name, err)
	}
	if c.Schema != comparisonSchema {
		return nil, fmt.Errorf("%s: its schema is %d, and this locklab reads schema %d", name, c.Schema, comparisonSchema)
	}
	return &c, nil
}

// State returns the state of a part.
func (c *Comparison) State(part string) string {
	for _, p := range c.Parts {
		if p.Name == part {
			return p.State
		}
	}
	return PartLeftOut
}

// Panics counts the runs in which a simulated program panicked, and returns a
// command that repeats one.
func (c *Comparison) Panics() (runs int64, command string) {
	for i := range c.Matrix {
		if m := &c.Matrix[i]; m.Panics > 0 {
			if runs += m.Panics; command == "" {
				f := c.family(m.Family)
				command = fmt.Sprintf("locklab sweep --faults %s --design %s --resource %s --runs %d --seed %d",
					cmp.Or(strings.Join(f.Faults, ","), NoFaults), m.Design, m.Resource, m.Runs, c.Spec.Seed)
				if f.Victims != "" {
					command += " --victims " + f.Victims
				}
				if c.Spec.Set != "" {
					command += " --set " + c.Spec.Set
				}
			}
		}
	}
	for i := range c.Fewest {
		if f := &c.Fewest[i]; f.Panics > 0 {
			if runs += f.Panics; command == "" {
				command = fmt.Sprintf("locklab exhaust --design %s --resource %s --max-faults 1", f.Design, f.Resource)
			}
		}
	}
	return runs, command
}

// family returns a family of faults, nil for none of that name.
func (c *Comparison) family(name string) *FaultFamily {
	for i := range c.Families {
		if c.Families[i].Name == name {
			return &c.Families[i]
		}
	}
	return nil
}

// Story returns the story with an ID, nil if there is none.
func (c *Comparison) Story(id string) *Story {
	for i := range c.Stories {
		if c.Stories[i].ID == id {
			return &c.Stories[i]
		}
	}
	return nil
}
