package main

import (
	"fmt"
	"strings"

	"locklab/scenarios"
)

// noViolation is the word of --fail-on for: whatever is found, exit with 0.
const noViolation = "none"

// failOn are the words that --fail-on names.
type failOn []string

// parseFailOn reads the words: findings, and the answers that stand for
// several.
func parseFailOn(words []string) (failOn, error) {
	if len(words) == 1 && words[0] == noViolation {
		return nil, nil
	}
	out, err := scenarios.Pick("violation", scenarios.Violations(), func(w string) string { return w }, words)
	if err != nil {
		return nil, fmt.Errorf("--fail-on: %w; known are %s", err, strings.Join(append(scenarios.Violations(), noViolation), ", "))
	}
	return out, nil
}

// of turns what was found into an error, nil if nothing was that counts.
func (f failOn) of(tally func(word string) int64) error {
	var found []string
	for _, w := range f {
		if n := tally(w); n > 0 {
			found = append(found, w)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &exitError{exitDiffers, "found what --fail-on names: " + strings.Join(found, ", ")}
}
