package scenarios

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Unit is what a stretch of consecutive seeds of one cell showed: the smallest
// part of a sweep that is stored, continued and merged.
type Unit struct {
	Number int64 `json:"unit"` // block * cells + cell, from 0
	// Runs whose plan held a fault of the operator's are counted apart.
	Tally    Tally  `json:"tally"`
	Operator *Tally `json:"operator,omitempty"`
}

// units is how many units the whole sweep has.
func (s *SweepSpec) units() int64 { return s.blocks() * int64(len(s.Cells)) }

func (s *SweepSpec) blocks() int64 { return (s.Runs + s.Block - 1) / s.Block }

// mine reports whether a unit is of the spec's shard. Whole blocks of seeds go
// to one shard, so that within it every cell has met the same adversaries.
func (s *SweepSpec) mine(unit int64) bool {
	return s.Shards == 0 || unit/int64(len(s.Cells))%int64(s.Shards) == int64(s.Shard-1)
}

// span returns a unit's cell, first seed and number of runs.
func (s *SweepSpec) span(unit int64) (cell int, from uint64, runs int64) {
	block := unit / int64(len(s.Cells))
	return int(unit % int64(len(s.Cells))), s.Seed + uint64(block*s.Block), min(s.Block, s.Runs-block*s.Block)
}

// whole is the spec without its shard: what shards of one sweep have in common.
func (s SweepSpec) whole() SweepSpec {
	s.Shard, s.Shards = 0, 0
	return s
}

// SweepResult is a set of units of one sweep. Merging is the union of sets, so
// it does not matter in which order, or how often, results are merged.
type SweepResult struct {
	Spec  SweepSpec
	units map[int64]Unit
}

// NewSweepResult returns the result of a sweep of which nothing has been run.
func NewSweepResult(spec SweepSpec) *SweepResult {
	return &SweepResult{Spec: spec, units: map[int64]Unit{}}
}

// Add adds a unit. The same unit again changes nothing; another one with its
// number is an error.
func (r *SweepResult) Add(u Unit) error {
	if u.Number < 0 || u.Number >= r.Spec.units() {
		return fmt.Errorf("there is no unit %d; the sweep has %d", u.Number, r.Spec.units())
	}
	_, from, want := r.Spec.span(u.Number)
	runs := u.Tally.Runs
	if u.Operator != nil {
		runs += u.Operator.Runs
	}
	if runs != want {
		return fmt.Errorf("unit %d has %d runs, and it should have the %d from seed %d on", u.Number, runs, want, from)
	}
	if old, ok := r.units[u.Number]; ok && !old.equal(&u) {
		return fmt.Errorf("unit %d stands there twice, with different results", u.Number)
	}
	r.units[u.Number] = u
	return nil
}

// Merge adds the units of another result of the same sweep. It belongs to no
// shard any more, unless both are of the same.
func (r *SweepResult) Merge(o *SweepResult) error {
	if field := firstDifference(r.Spec.whole(), o.Spec.whole()); field != "" {
		return fmt.Errorf("they are not parts of one sweep: %s", field)
	}
	if r.Spec.Shard != o.Spec.Shard || r.Spec.Shards != o.Spec.Shards {
		r.Spec = r.Spec.whole()
	}
	for _, u := range o.units {
		if err := r.Add(u); err != nil {
			return err
		}
	}
	return nil
}

// equal reports whether two units say the same.
func (u *Unit) equal(o *Unit) bool {
	if u.Number != o.Number || !u.Tally.equal(&o.Tally) || (u.Operator == nil) != (o.Operator == nil) {
		return false
	}
	return u.Operator == nil || u.Operator.equal(o.Operator)
}

// firstDifference names a key in which two headers differ, "" if there is
// none.
func firstDifference(a, b SweepSpec) string {
	x, y := a.keys(), b.keys()
	for key := range y {
		if _, ok := x[key]; !ok {
			x[key] = nil
		}
	}
	for _, key := range slices.Sorted(maps.Keys(x)) {
		switch {
		case bytes.Equal(x[key], y[key]), key == "fingerprint":
		case key == "cells":
			return "their cells differ"
		default:
			return fmt.Sprintf("%s is %s in one and %s in the other", key, orNothing(x[key]), orNothing(y[key]))
		}
	}
	if a.Fingerprint != b.Fingerprint {
		return "their first runs differ, so they were made by different versions of locklab or of a scenario's file"
	}
	return ""
}

// keys returns the header's keys and values as a file has them.
func (s SweepSpec) keys() map[string]json.RawMessage {
	line, err := json.Marshal(s)
	var out map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(line, &out)
	}
	if err != nil {
		panic(err) // numbers and texts alone: cannot happen
	}
	return out
}

func orNothing(value json.RawMessage) string {
	if value == nil {
		return "nothing"
	}
	return oneLine(string(value))
}

// Missing is how many of the units that the spec asks for are not there.
func (r *SweepResult) Missing() int64 {
	missing := int64(0)
	for n := range r.Spec.units() {
		if _, ok := r.units[n]; !ok && r.Spec.mine(n) {
			missing++
		}
	}
	return missing
}

// Runs is how many runs the units have.
func (r *SweepResult) Runs() int64 {
	runs := int64(0)
	for n := range r.units {
		_, _, k := r.Spec.span(n)
		runs += k
	}
	return runs
}

// CellResult is what one cell showed.
type CellResult struct {
	CellName
	Cell     int  // its number in the sweep
	Operator bool // the runs with a fault of the operator's
	Tally
}

// Cells returns what each cell showed, in the sweep's order: first the runs
// without a fault of the operator's, then those with one, where there are any.
func (r *SweepResult) Cells() []CellResult {
	tallies := make([][2]Tally, len(r.Spec.Cells))
	for n := range r.units {
		u := r.units[n]
		cell, _, _ := r.Spec.span(n)
		tallies[cell][0].Add(&u.Tally)
		if u.Operator != nil {
			tallies[cell][1].Add(u.Operator)
		}
	}
	var out []CellResult
	for i, name := range r.Spec.Cells {
		for by := range tallies[i] {
			if t := tallies[i][by]; t.Runs > 0 {
				out = append(out, CellResult{CellName: name, Cell: i, Operator: by == 1, Tally: t})
			}
		}
	}
	return out
}

// numbers lists the units in order.
func (r *SweepResult) numbers() []int64 {
	out := make([]int64, 0, len(r.units))
	for n := range r.units {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}
