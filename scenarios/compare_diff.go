package scenarios

import "fmt"

// Change is a cell that says something else than in an older report.
type Change struct {
	Part     string `json:"part"`   // matrix, scenarios or fewest
	Column   string `json:"column"` // the family of faults or the scenario; "" for fewest
	Design   string `json:"design"`
	Resource string `json:"resource"`
	What     string `json:"what"` // verdict, rate, faults, new or gone
	Old      string `json:"old"`
	New      string `json:"new"`
}

// Changes say what became of an older report.
type Changes struct {
	Same  int64    `json:"same"`  // cells that say the same
	Note  string   `json:"note"`  // what else differs, so that cells could; "" for nothing
	Cells []Change `json:"cells"` // in the order of this report, then what is gone
}

// cellText is what one cell says, for a comparison of reports.
type cellText struct {
	key     Change // without what it says
	verdict string // or the number of faults
	harm    Share
}

// CompareWith notes what changed since an older report. A rate counts as
// changed where the two 95 % intervals of the harm have nothing in common. Only
// parts that both have are compared.
func (c *Comparison) CompareWith(old *Comparison) {
	out := &Changes{Cells: []Change{}, Note: specNote(&old.Spec, &c.Spec)}
	before, now := old.cellTexts(c), c.cellTexts(old)
	at := map[Change]int{}
	for i := range before {
		at[before[i].key] = i
	}
	seen := make([]bool, len(before))
	for i := range now {
		n := &now[i]
		change := n.key
		k, ok := at[n.key]
		switch {
		case !ok:
			change.What, change.New = "new", n.verdict
		case before[k].verdict != n.verdict:
			change.What, change.Old, change.New = "verdict", before[k].verdict, n.verdict
			if n.key.Part == PartFewest {
				change.What = "faults"
			}
		case before[k].harm.apart(&n.harm):
			change.What, change.Old, change.New = "rate", before[k].harm.percent(), n.harm.percent()
		default:
			out.Same++
		}
		if ok {
			seen[k] = true
		}
		if change.What != "" {
			out.Cells = append(out.Cells, change)
		}
	}
	for k := range before {
		if part := before[k].key.Part; !seen[k] && c.State(part) == PartComplete { // else it may only not have been reached
			change := before[k].key
			change.What, change.Old = "gone", before[k].verdict
			out.Cells = append(out.Cells, change)
		}
	}
	c.Changes = out
}

// apart reports whether two intervals have nothing in common.
func (s *Share) apart(o *Share) bool {
	return s.Of > 0 && o.Of > 0 && (s.High < o.Low || o.High < s.Low)
}

func (s *Share) percent() string { return fmt.Sprintf("%.1f %% harmed", 100*s.Rate) }

// cellTexts lists the cells of the parts that another report has as well.
func (c *Comparison) cellTexts(other *Comparison) []cellText {
	both := func(part string) bool { return c.State(part) != PartLeftOut && other.State(part) != PartLeftOut }
	var out []cellText
	if both(PartMatrix) {
		for i := range c.Matrix {
			m := &c.Matrix[i]
			out = append(out, cellText{Change{Part: PartMatrix, Column: m.Family, Design: m.Design, Resource: m.Resource}, m.Worst, m.Harm})
		}
	}
	if both(PartScenarios) {
		for i := range c.Scenarios {
			s := &c.Scenarios[i]
			out = append(out, cellText{Change{Part: PartScenarios, Column: s.Scenario, Design: s.Design, Resource: s.Resource}, s.Worst, Share{}})
		}
	}
	if both(PartFewest) {
		for i := range c.Fewest {
			f := &c.Fewest[i]
			faults := fmt.Sprint(f.TwoWriters)
			if f.TwoWriters < 0 {
				faults = fmt.Sprintf("more than %d", f.MaxFaults)
			}
			out = append(out, cellText{Change{Part: PartFewest, Design: f.Design, Resource: f.Resource}, faults, Share{}})
		}
	}
	return out
}

// specNote says in what the two reports were asked for different things.
func specNote(old, now *CompareSpec) string {
	switch {
	case old.Seed != now.Seed:
		return fmt.Sprintf("the older report began with seed %d, this one with %d", old.Seed, now.Seed)
	case old.Runs != now.Runs:
		return fmt.Sprintf("the older report had %d runs a cell, this one %d: the more runs, the rarer the worst that is seen", old.Runs, now.Runs)
	case old.Set != now.Set:
		return fmt.Sprintf("the older report was made with --set %q, this one with %q", old.Set, now.Set)
	}
	return ""
}
