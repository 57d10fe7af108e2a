package scenarios

import (
	"context"
	"slices"

	"locklab/sim"
)

// FewestCell is what the exhaustion of a design with a resource found: every
// placement of one fault at the places of clients, lock requests and storage
// requests.
type FewestCell struct {
	Design     string         `json:"design"`
	Resource   string         `json:"resource"`
	MaxFaults  int            `json:"max_faults"`
	Executions int64          `json:"executions"`
	Complete   bool           `json:"complete"`    // every placement of up to MaxFaults was run, or fewer were enough
	TwoWriters int            `json:"two_writers"` // the fewest faults that let two write; -1: none do
	Placements int64          `json:"placements"`  // of so many faults that let two write
	Panics     int64          `json:"panics"`
	Headline   string         `json:"headline"`
	Answers    []FewestAnswer `json:"answers"`

	OperatorExecutions int64          `json:"operator_executions"`
	OperatorTwoWriters int            `json:"operator_two_writers"` // -1: none
	Operator           []FewestAnswer `json:"operator"`             // with the operator's faults alone
}

// FewestAnswer is the fewest faults that give one answer.
type FewestAnswer struct {
	Answer string       `json:"answer"`
	Faults int          `json:"faults"`
	Runs   int64        `json:"runs"` // placements of so many faults that give it
	Kinds  []FewestKind `json:"kinds"`
	Story  string       `json:"story"` // the ID of the shortest
}

// FewestKind is how often faults of some kinds give an answer.
type FewestKind struct {
	Kinds string `json:"kinds"`
	Runs  int64  `json:"runs"`
	Story string `json:"story"` // "" where only the shortest of all kinds is told
}

// fewest exhausts one fault for every pair; in a quick comparison only for each
// design's first resource, and for no design whose runs are long.
func (c *comparer) fewest(ctx context.Context) error {
	params, err := c.exhaustParams()
	if err != nil {
		return err
	}
	var at []int
	for i := range c.pairs {
		first := i == 0 || c.pairs[i].design != c.pairs[i-1].design
		if !c.out.Spec.Quick || first && !c.pairs[i].long {
			at = append(at, i)
		}
	}
	c.plan(int64(len(at)) * executionsAbout)
	type found struct{ search, operator *Exhausted }
	all := make([]found, len(at))
	err = c.each(ctx, len(at), func(i int, watch *sim.Watch) (err error) {
		p := &c.pairs[at[i]]
		config := ExhaustConfig{Design: p.design, Resource: p.resource, Params: params, MaxFaults: 1}
		if watch != nil {
			config.Watch = func() *sim.Watch { return watch }
		}
		f := found{}
		if f.search, err = Exhaust(ctx, config); err != nil {
			return err
		}
		config.Kinds = OperatorFaults()
		if f.operator, err = Exhaust(ctx, config); err != nil {
			return err
		}
		all[i] = f
		c.did(int(f.search.Executions() + f.operator.Executions()))
		return nil
	})
	for _, f := range all {
		if f.operator != nil {
			c.out.Fewest = append(c.out.Fewest, c.fewestCell(f.search, f.operator))
		}
	}
	return err
}

// exhaustParams are the parameters of the exhaustion: what was asked for, but
// for what makes its baseline, and what leaves something to chance.
func (c *comparer) exhaustParams() (Params, error) {
	settings, err := ParseSet(c.out.Spec.Set)
	if err != nil {
		return Params{}, err
	}
	settings = slices.DeleteFunc(settings, func(s Setting) bool {
		return slices.Contains([]string{"clients", "sections", "stagger", "latency_min", "latency_max", "retry_jitter"}, s.Name)
	})
	return ExhaustParams(settings)
}

// executionsAbout is about how many executions it takes to place one fault
// everywhere, for the progress.
const executionsAbout = 1_200

func (c *comparer) fewestCell(e, operator *Exhausted) FewestCell {
	out := FewestCell{Design: e.Design.Name, Resource: e.Resource.Name, MaxFaults: e.MaxFaults, Executions: e.Executions(),
		Complete: e.Complete || e.Stopped, TwoWriters: -1, Headline: e.Headline(), Answers: c.fewestAnswers(e),
		OperatorExecutions: operator.Executions(), OperatorTwoWriters: -1, Operator: c.fewestAnswers(operator)}
	for _, l := range slices.Concat(e.Levels, operator.Levels) {
		out.Panics += l.Panics
	}
	if two := e.TwoWriters(); two != nil {
		out.TwoWriters, out.Placements = two.Faults, two.Runs
	}
	if two := operator.TwoWriters(); two != nil {
		out.OperatorTwoWriters = two.Faults
	}
	return out
}

func (c *comparer) fewestAnswers(e *Exhausted) []FewestAnswer {
	out := []FewestAnswer{}
	for i := range e.Fewest {
		f := &e.Fewest[i]
		a := FewestAnswer{Answer: f.Answer, Faults: f.Faults, Runs: f.Runs, Kinds: []FewestKind{}}
		if f.Shortest != nil {
			a.Story = c.tell(storyOf(f.Shortest, f.Words, true))
		}
		for _, k := range f.Kinds {
			kind := FewestKind{Kinds: k.Kinds, Runs: k.Runs}
			switch {
			case k.Plan == nil:
			case k.Plan == f.Shortest:
				kind.Story = a.Story
			default:
				kind.Story = c.tell(storyOf(k.Plan, nil, true))
			}
			a.Kinds = append(a.Kinds, kind)
		}
		out = append(out, a)
	}
	return out
}
