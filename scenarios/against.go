package scenarios

import (
	"context"
	"errors"
	"fmt"

	"locklab/checker"
	"locklab/models"
	"locklab/sim"
)

// Counterfactual is what the same plan does to another design and resource.
type Counterfactual struct {
	Design, Resource string
	// NotApplicable says why the plan cannot be run there: it names a server
	// that the design lacks. "" if it was run; else the rest is empty.
	NotApplicable string
	Verdict, Lock string
	// Unfired are the faults, counted from 1, that never struck: the run says
	// nothing about them.
	Unfired []int
	// Saves: the same plan, and no harm to the data.
	Saves bool
	// Same marks the design and resource that the plan was about.
	Same bool
}

// Against runs a case's plan, with its parameters and seed, against other
// designs of its kind and every resource that each of them can serve. done, if not nil, is
// called before each run with its number and how many there are.
func Against(ctx context.Context, c Case, seed uint64, designs []*models.Design, done func(i, of int)) ([]Counterfactual, error) {
	var out []Counterfactual
	var cases []Case
	for _, d := range designs {
		for _, r := range models.Resources() {
			if d.Kind() == c.Design.Kind() && d.Serves(r) == nil {
				other := c
				other.Design, other.Resource = d, r
				cases = append(cases, other)
			}
		}
	}
	if len(cases) == 0 && len(designs) > 0 {
		return nil, fmt.Errorf("nothing to run the plan against: %s is a %s, and %s is a %s", designs[0].Name, designs[0].Kind(), c.Design.Name, c.Design.Kind())
	}
	for i := range cases {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if done != nil {
			done(i, len(cases))
		}
		row, err := counterfactual(cases[i], seed)
		if err != nil {
			return out, err
		}
		row.Same = row.Design == c.Design.Name && row.Resource == c.Resource.Name
		out = append(out, row)
	}
	return out, nil
}

// counterfactual runs one case. A plan that names what the design lacks is
// not a mistake here.
func counterfactual(c Case, seed uint64) (Counterfactual, error) {
	row := Counterfactual{Design: c.Design.Name, Resource: c.Resource.Name}
	r, err := NewRunner(c)
	var fe *sim.FaultError
	var ee *EngineError
	switch {
	case errors.As(err, &ee):
		row.NotApplicable = ee.Error()
		return row, nil
	case errors.As(err, &fe):
		row.NotApplicable = fe.Error()
		return row, nil
	case err != nil:
		return row, err
	}
	defer r.Close()
	res, err := r.Run(seed, sim.TraceOff)
	if err != nil {
		return row, err
	}
	row.Verdict, row.Lock = res.Verdict.String(), res.Report.Lock.String()
	if res.Failure != nil {
		row.Verdict = "panic"
	}
	for _, f := range res.Faults {
		if !f.Fired {
			row.Unfired = append(row.Unfired, f.Index+1)
		}
	}
	row.Saves = harmless(res) && len(row.Unfired) == 0
	return row, nil
}

func harmless(res *Result) bool {
	return res.Failure == nil && (res.Verdict == checker.VerdictSafe || res.Verdict == checker.VerdictFenced)
}
