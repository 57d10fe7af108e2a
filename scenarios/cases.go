package scenarios

import (
	"errors"
	"fmt"

	"locklab/models"
)

// ChooseCases pairs the designs and resources that somebody asked for by name
// or pattern; with none asked for, those that the scenario names, or else all.
// Pairs that cannot be run are left out: a design whose tokens the resource
// cannot use, and one without the server that the plan names. If nothing is
// left, the error is the first reason.
func ChooseCases(s *Scenario, designs, resources []string) ([]Case, error) {
	cases, _, err := ChoosePairs(s, designs, resources)
	return cases, err
}

// ChoosePairs is ChooseCases that also tells what it left out.
func ChoosePairs(s *Scenario, designs, resources []string) ([]Case, LeftOut, error) {
	ds, err := PickDesigns(orElse(designs, s.Designs))
	if err != nil {
		return nil, LeftOut{}, err
	}
	rs, err := PickResources(orElse(resources, s.Resources))
	if err != nil {
		return nil, LeftOut{}, err
	}
	return pairs(s, ds, rs)
}

// LeftOut says which pairs of a design and a resource cannot be run.
type LeftOut struct {
	Pairs            int
	Design, Resource string // the first of them
	Why              error  // of the first; nil for none
}

// String says it in one line, "" for none.
func (l LeftOut) String() string {
	switch l.Pairs {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("left out: %s on %s: %v", l.Design, l.Resource, l.Why)
	}
	return fmt.Sprintf("left out: %d pairs, such as %s on %s: %v", l.Pairs, l.Design, l.Resource, l.Why)
}

// Cases is ChooseCases for designs and resources at hand.
func Cases(s *Scenario, designs []*models.Design, resources []*models.ResourceKind) ([]Case, error) {
	cases, _, err := pairs(s, designs, resources)
	return cases, err
}

func pairs(s *Scenario, designs []*models.Design, resources []*models.ResourceKind) ([]Case, LeftOut, error) {
	var out []Case
	var left LeftOut
	for _, d := range designs {
		for _, r := range resources {
			c := Case{Scenario: s, Design: d, Resource: r, Params: s.Params, Plan: s.Plan}
			runner, err := NewRunner(c)
			if err == nil {
				runner.Close()
				out = append(out, c)
				continue
			}
			if left.Pairs++; left.Pairs == 1 {
				left.Design, left.Resource, left.Why = d.Name, r.Name, s.Locate(err)
			}
		}
	}
	switch {
	case len(out) > 0:
		return out, left, nil
	case left.Why == nil:
		return nil, left, errors.New("no design and resource to run")
	}
	return nil, left, left.Why
}

// CheckNames checks a scenario's names and patterns against the catalogues.
func CheckNames(s *Scenario) error {
	var designs, resources []string
	for _, d := range models.Designs() {
		designs = append(designs, d.Name)
	}
	for _, r := range models.Resources() {
		resources = append(resources, r.Name)
	}
	return s.CheckNames(designs, resources)
}

// PickDesigns returns the designs that the names and patterns mean, in the
// catalogue's order.
func PickDesigns(asked []string) ([]*models.Design, error) {
	return Pick("design", models.Designs(), func(d *models.Design) string { return d.Name }, asked)
}

// PickResources returns the resources that the names and patterns mean, in the
// catalogue's order.
func PickResources(asked []string) ([]*models.ResourceKind, error) {
	return Pick("resource", models.Resources(), func(r *models.ResourceKind) string { return r.Name }, asked)
}

// FindDesign returns the design of exactly that name.
func FindDesign(name string) (*models.Design, error) {
	return find("design", models.Designs(), func(d *models.Design) string { return d.Name }, name)
}

// FindResource returns the resource of exactly that name.
func FindResource(name string) (*models.ResourceKind, error) {
	return find("resource", models.Resources(), func(r *models.ResourceKind) string { return r.Name }, name)
}

func find[T any](what string, all []*T, name func(*T) string, asked string) (*T, error) {
	names := make([]string, len(all))
	for i, item := range all {
		if names[i] = name(item); names[i] == asked {
			return item, nil
		}
	}
	return nil, errors.New(unknown(what, asked, names))
}

// Pick returns the items of a catalogue that the names and patterns mean, in
// the catalogue's order; "all" means all. The error proposes the nearest name.
func Pick[T any](what string, all []T, name func(T) string, asked []string) ([]T, error) {
	names := make([]string, len(all))
	for i, item := range all {
		names[i] = name(item)
	}
	chosen := make([]bool, len(all))
	for _, pattern := range asked {
		found := false
		for i := range all {
			if pattern == "all" || MatchPattern(pattern, names[i]) {
				chosen[i], found = true, true
			}
		}
		if !found {
			return nil, errors.New(unknown(what, pattern, names))
		}
	}
	var out []T
	for i, item := range all {
		if chosen[i] {
			out = append(out, item)
		}
	}
	return out, nil
}

// orElse is the first list that is not empty; all if none is.
func orElse(lists ...[]string) []string {
	for _, l := range lists {
		if len(l) > 0 {
			return l
		}
	}
	return []string{"all"}
}

// Unknown is the error for a word that is not among the known ones: it says
// what would be right.
func Unknown(what, word string, known []string) error { return errors.New(unknown(what, word, known)) }
