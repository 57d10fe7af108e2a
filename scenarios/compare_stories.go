package scenarios

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"locklab/sim"
)

// StoryDir is the directory beside a report in which its stories stand as plan
// files.
const StoryDir = "stories"

// storyOf turns a run into a story.
func storyOf(f *PlanFile, words []string, shrunk bool) Story {
	text := MarshalPlanFile(f)
	s := Story{ID: fmt.Sprintf("%x", sha256.Sum256(text))[:12], Design: f.Design, Resource: f.Resource, Verdict: f.Verdict, Lock: f.Lock,
		Seed: f.Seed, Faults: len(f.Plan.Faults), Kinds: kindsOf(&f.Plan), Shrunk: shrunk, Words: names(words), Plan: string(text)}
	s.Command = "locklab replay " + s.File()
	return s
}

// File is the story's plan file, in the report's directory.
func (s *Story) File() string { return StoryDir + "/" + s.ID + ".yaml" }

// kindsOf writes the kinds of a plan's faults like a combo, of any number.
func kindsOf(p *sim.Plan) string {
	kinds := make([]sim.FaultKind, len(p.Faults))
	for i := range kinds {
		kinds[i] = p.Faults[i].Kind
	}
	slices.Sort(kinds)
	text := ""
	for i, k := range kinds {
		if i > 0 {
			text += " + "
		}
		text += k.String()
	}
	return text
}

// tell adds a story, unless it is there, and returns its ID.
func (c *comparer) tell(s Story) string {
	if !c.stories[s.ID] {
		c.stories[s.ID] = true
		c.out.Stories = append(c.out.Stories, s)
	}
	return s.ID
}

// shortStory is what a worker found out about a cell.
type shortStory struct {
	story   Story
	proven  bool
	savedBy []SavedBy
}

// shortest finds the shortest story of each cell of the matrix that shows harm,
// and what the same plan does no harm to. Where every placement of one fault
// was tried and one gives the cell's verdict, that is the story; else it is the
// first seed, shrunk.
func (c *comparer) shortest(ctx context.Context) error {
	var at []int
	for i := range c.out.Matrix {
		if isHarm(c.out.Matrix[i].Worst) {
			at = append(at, i)
		}
	}
	c.plan(int64(len(at)) * shrinkRuns)
	found := make([]*shortStory, len(at))
	err := c.each(ctx, len(at), func(i int, watch *sim.Watch) error {
		cell := &c.out.Matrix[at[i]]
		if watch != nil {
			watch.Begin(func() string { return "shrink the run of: " + cell.Command })
			defer watch.End()
		}
		s, err := c.shortStory(ctx, cell)
		found[i] = s
		c.did(shrinkRuns)
		return err
	})
	for i, s := range found {
		if s == nil {
			continue
		}
		cell := &c.out.Matrix[at[i]]
		cell.Story, cell.Fewest, cell.Proven, cell.SavedBy = c.tell(s.story), s.story.Faults, s.proven, s.savedBy
	}
	return err
}

// shrinkRuns is about how many runs it takes to shrink one, for the progress.
const shrinkRuns = 100

func (c *comparer) shortStory(ctx context.Context, cell *MatrixCell) (*shortStory, error) {
	family := c.out.family(cell.Family)
	out := &shortStory{}
	told, file := c.exhausted(cell, family)
	if told != nil {
		out.story, out.proven = *told, true
	} else {
		small, err := c.shrinkCell(ctx, cell, family)
		if err != nil {
			return nil, err
		}
		file, out.story = small.File, storyOf(small.File, small.Words(), !c.out.Spec.Quick)
		out.proven = out.story.Faults == 0 || out.story.Faults == 1 && c.needsFault(cell)
	}
	var err error
	out.savedBy, err = c.savers(cell, file)
	return out, err
}

// exhausted returns the story of at most one fault of the family that gives the
// cell's verdict, and its plan; nil if the exhaustion found none.
func (c *comparer) exhausted(cell *MatrixCell, family *FaultFamily) (*Story, *PlanFile) {
	f := c.fewestOf(cell)
	if f == nil {
		return nil, nil
	}
	for _, a := range slices.Concat(f.Answers, f.Operator) {
		for _, k := range a.Kinds {
			s := c.out.Story(k.Story)
			if s == nil || s.Verdict != cell.Worst {
				continue
			}
			if file, err := LoadPlanFile([]byte(s.Plan), s.ID); err == nil && family.has(&file.Plan) {
				return s, file
			}
		}
	}
	return nil, nil
}

// fewestOf is what the exhaustion of the cell's pair found; nil if it was not
// exhausted.
func (c *comparer) fewestOf(cell *MatrixCell) *FewestCell {
	for i := range c.out.Fewest {
		if f := &c.out.Fewest[i]; f.Design == cell.Design && f.Resource == cell.Resource {
			return f
		}
	}
	return nil
}

// needsFault reports whether the pair was exhausted, and its run without faults
// did not give the cell's verdict.
func (c *comparer) needsFault(cell *MatrixCell) bool {
	f := c.fewestOf(cell)
	return f != nil && !slices.ContainsFunc(f.Answers, func(a FewestAnswer) bool { return a.Answer == cell.Worst && a.Faults == 0 })
}

// shrinkCell shrinks the first seed with the cell's verdict; in a quick
// comparison it only leaves out the faults that never struck.
func (c *comparer) shrinkCell(ctx context.Context, cell *MatrixCell, family *FaultFamily) (*Shrunk, error) {
	at := slices.IndexFunc(c.pairs, func(p pair) bool { return p.design.Name == cell.Design && p.resource.Name == cell.Resource })
	s := c.familySweep(family, []int{at})
	file, err := s.PlanFile(0, cell.First)
	if err != nil {
		return nil, err
	}
	if c.out.Spec.Quick {
		return &Shrunk{File: file}, nil
	}
	k := s.cells[0]
	k.Plan = file.Plan
	k.Scenario = &Scenario{Name: "sweep", Title: file.Title, Params: k.Params, Plan: k.Plan}
	return Shrink(ctx, k, file.Seed)
}

// How many designs and resources are tried, and told, of what would have saved
// a cell.
const (
	saversTried = 12
	saversMax   = 3
)

// saversTried is fewer in a quick comparison.
func (c *comparer) saversTried() int {
	if c.out.Spec.Quick {
		return saversTried / 4
	}
	return saversTried
}

// savers runs a story's plan with what showed no harm in the cell's column, the
// nearest first: the same design with another resource, the same family, the
// others.
func (c *comparer) savers(cell *MatrixCell, file *PlanFile) ([]SavedBy, error) {
	out := []SavedBy{}
	tried := 0
	for _, o := range c.safeIn(cell) {
		if tried == c.saversTried() || len(out) == saversMax {
			break
		}
		at := slices.IndexFunc(c.pairs, func(p pair) bool { return p.design.Name == o.Design && p.resource.Name == o.Resource })
		row, err := counterfactual(Case{Design: c.pairs[at].design, Resource: c.pairs[at].resource, Params: file.Params, Plan: file.Plan}, file.Seed)
		if err != nil {
			return out, err
		}
		if row.NotApplicable == "" {
			tried++
		}
		if row.Saves {
			out = append(out, SavedBy{o.Design, o.Resource, row.Verdict})
		}
	}
	return out, nil
}

// safeIn lists the cells of a column in which nothing was harmed, nearest
// first.
func (c *comparer) safeIn(cell *MatrixCell) []*MatrixCell {
	var out []*MatrixCell
	for i := range c.out.Matrix {
		if o := &c.out.Matrix[i]; o.Family == cell.Family && !isHarm(o.Worst) && o.Worst != "vacuous" && o.Possible {
			out = append(out, o)
		}
	}
	near := func(o *MatrixCell) int {
		switch {
		case o.Design == cell.Design:
			return 0
		case familyOf(o.Design) == familyOf(cell.Design):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(out, func(a, b *MatrixCell) int { return cmp.Compare(near(a), near(b)) })
	return out
}
