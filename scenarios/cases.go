package scenarios

import (
	"errors"

	"locklab/models"
)

// Cases lists the pairings of the given designs and resources that a scenario
// can be run with. Left out is what cannot be: a design whose tokens the
// resource cannot use, and one without the server that the plan names. If
// nothing is left, the error is the first reason.
func Cases(s *Scenario, designs []*models.Design, resources []*models.ResourceKind) ([]Case, error) {
	var out []Case
	var first error
	for _, d := range designs {
		for _, r := range resources {
			c := Case{Scenario: s, Design: d, Resource: r, Params: s.Params, Plan: s.Plan}
			runner, err := NewRunner(c)
			if err == nil {
				runner.Close()
				out = append(out, c)
				continue
			}
			if first == nil {
				first = s.Locate(err)
			}
		}
	}
	if len(out) == 0 && first == nil {
		first = errors.New("no design and resource to run")
	}
	if len(out) > 0 {
		first = nil
	}
	return out, first
}
