package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"locklab/models"
	"locklab/scenarios"
)

// findScenario finds a scenario of the library by its name, or reads a file.
func findScenario(name string) (*scenarios.Scenario, error) {
	if !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".yml") {
		return scenarios.Find(name)
	}
	data, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return scenarios.Load(data, name)
}

// fileSizeMax is the largest input file, in bytes, that is read.
const fileSizeMax = 64 << 20

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file", name)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a directory; name a file", name)
	case info.Size() > fileSizeMax:
		return nil, fmt.Errorf("%s: %d bytes; at most %d are read", name, info.Size(), fileSizeMax)
	}
	return os.ReadFile(name)
}

// pick returns the named items of a catalogue, in the catalogue's order. Names
// may be patterns such as redis/*, and "all" means all.
func pick[T any](what string, all []T, name func(T) string, asked []string) ([]T, error) {
	names := make([]string, len(all))
	for i, item := range all {
		names[i] = name(item)
	}
	chosen := make([]bool, len(all))
	for _, pattern := range asked {
		found := false
		for i := range all {
			if pattern == "all" || scenarios.MatchPattern(pattern, names[i]) {
				chosen[i], found = true, true
			}
		}
		if !found {
			return nil, unknownWord(what, pattern, names)
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

func pickDesigns(asked []string) ([]*models.Design, error) {
	return pick("design", models.Designs(), func(d *models.Design) string { return d.Name }, asked)
}

func pickResources(asked []string) ([]*models.ResourceKind, error) {
	return pick("resource", models.Resources(), func(r *models.ResourceKind) string { return r.Name }, asked)
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

// chooseCases pairs the asked designs and resources, or else the scenario's
// own. Pairs that cannot work together are left out, unless nothing is left.
func chooseCases(s *scenarios.Scenario, designs, resources []string) ([]scenarios.Case, error) {
	ds, err := pickDesigns(orElse(designs, s.Designs))
	if err != nil {
		return nil, err
	}
	rs, err := pickResources(orElse(resources, s.Resources))
	if err != nil {
		return nil, err
	}
	return scenarios.Cases(s, ds, rs)
}
