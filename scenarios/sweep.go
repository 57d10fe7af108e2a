package scenarios

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"

	"locklab/sim"
)

// SweepSpec says what a sweep runs: every cell, which is a design with a
// resource under a scenario or under the adversary, with the same seeds. It is
// also the header of a sweep's file.
type SweepSpec struct {
	Format    int      `json:"sweep"` // version of the file's format
	Scenarios []string `json:"scenarios,omitempty"`
	Faults    []string `json:"faults,omitempty"`  // the adversary's kinds, where there are no scenarios; or NoFaults alone
	Victims   string   `json:"victims,omitempty"` // whom alone it may strike, where a fault may befall either
	Designs   []string `json:"designs,omitempty"`
	Resources []string `json:"resources,omitempty"`
	Set       string   `json:"set,omitempty"` // parameters, as --set spells them
	Seed      uint64   `json:"seed"`          // the first
	Runs      int64    `json:"runs"`          // of each cell
	Shard     int      `json:"shard,omitempty"`
	Shards    int      `json:"shards,omitempty"` // 0: all of it

	// NewSweep fills in the rest.
	Block       int64      `json:"block"` // how many runs make a unit
	Cells       []CellName `json:"cells"`
	Fingerprint string     `json:"fingerprint"` // what the cells' first runs were: another version of locklab may differ
}

// CellName names a cell.
type CellName struct {
	Scenario string `json:"scenario,omitempty"` // "" under the adversary
	Design   string `json:"design"`
	Resource string `json:"resource"`
}

// String returns the cell for people.
func (n CellName) String() string {
	if n.Scenario == "" {
		return n.Design + " on " + n.Resource
	}
	return n.Scenario + ": " + n.Design + " on " + n.Resource
}

// Sweep is a sweep that can be run.
type Sweep struct {
	Spec      SweepSpec
	cells     []Case
	adversary *Adversary // nil for scenarios
	worlds    int        // that a worker keeps; 0: runnersMax
}

// sweepFormat is the version in the header.
const sweepFormat = 1

// Limits of a sweep. A unit is small enough to be lost to Ctrl-C and large
// enough that there are few of them.
const (
	sweepRunsMax = 1_000_000_000
	unitRunsMin  = 20
	unitRunsMax  = 5_000
	unitsOfCell  = 100 // about so many, where the limits allow
)

// NewSweep finds the designs, resources, scenarios and faults that a spec names
// and prepares every cell. find looks a scenario up. Errors are one line.
func NewSweep(spec SweepSpec, find func(name string) (*Scenario, error)) (*Sweep, error) {
	if spec.Runs < 1 || spec.Runs > sweepRunsMax {
		return nil, fmt.Errorf("--runs: %d is out of range; allowed is 1 to %d", spec.Runs, int64(sweepRunsMax))
	}
	if spec.Seed > math.MaxUint64-uint64(spec.Runs) {
		return nil, fmt.Errorf("--seed: from %d on there are no %d seeds", spec.Seed, spec.Runs)
	}
	if spec.Shards < 0 || spec.Shards > 0 && (spec.Shard < 1 || spec.Shard > spec.Shards) {
		return nil, fmt.Errorf("--shard: there is no shard %d of %d; write it like 1/4", spec.Shard, spec.Shards)
	}
	settings, err := ParseSet(spec.Set)
	if err != nil {
		return nil, fmt.Errorf("--set: %w", err)
	}
	s := &Sweep{Spec: spec}
	s.Spec.Cells = nil
	if len(spec.Scenarios) > 0 {
		err = s.scenarioCells(settings, find)
	} else {
		err = s.adversaryCells(settings)
	}
	if err != nil {
		return nil, err
	}
	s.Spec.Format = sweepFormat
	s.Spec.Block = min(max(spec.Runs/unitsOfCell, unitRunsMin), unitRunsMax)
	return s, s.identify()
}

func (s *Sweep) scenarioCells(settings []Setting, find func(string) (*Scenario, error)) error {
	if len(s.Spec.Faults) > 0 {
		return fmt.Errorf("a sweep is about scenarios or about faults; leave out --scenario or --faults")
	}
	if s.Spec.Victims != "" {
		return fmt.Errorf("--victims says whom an adversary may strike; leave out --scenario or --victims")
	}
	for _, name := range s.Spec.Scenarios {
		scenario, err := find(name)
		if err != nil {
			return err
		}
		cases, err := ChooseCases(scenario, s.Spec.Designs, s.Spec.Resources)
		if err != nil {
			return err
		}
		for _, c := range cases {
			if err := c.Params.Apply(settings); err != nil {
				return fmt.Errorf("--set: %w", err)
			}
			s.cells = append(s.cells, c)
			s.Spec.Cells = append(s.Spec.Cells, CellName{name, c.Design.Name, c.Resource.Name})
		}
	}
	return nil
}

func (s *Sweep) adversaryCells(settings []Setting) error {
	var kinds []sim.FaultKind
	var err error
	if !slices.Equal(s.Spec.Faults, []string{NoFaults}) {
		kinds, err = PickFaults(orElse(s.Spec.Faults))
	}
	if err != nil {
		return err
	}
	if victims := []string{"", VictimClients, VictimServers}; !slices.Contains(victims, s.Spec.Victims) {
		return fmt.Errorf("--victims: %w", Unknown("group of victims", s.Spec.Victims, victims[1:]))
	}
	p := DefaultParams()
	if err := p.Apply(settings); err != nil {
		return fmt.Errorf("--set: %w", err)
	}
	a := NewAdversary(&p, kinds)
	a.Victims = s.Spec.Victims
	s.adversary = &a
	s.Spec.Faults = nil
	if len(kinds) == 0 {
		s.Spec.Faults = []string{NoFaults}
	}
	for _, k := range kinds {
		s.Spec.Faults = append(s.Spec.Faults, k.String())
	}
	s.cells, err = ChooseCases(&Scenario{Params: p}, s.Spec.Designs, s.Spec.Resources)
	for i := range s.cells {
		c := &s.cells[i]
		c.Scenario = nil
		s.Spec.Cells = append(s.Spec.Cells, CellName{Design: c.Design.Name, Resource: c.Resource.Name})
	}
	return err
}

// identify runs the first seed of each cell, so that a file made by a locklab
// that behaves otherwise is not continued.
func (s *Sweep) identify() error {
	h := sha256.New()
	for i, name := range s.Spec.Cells {
		res, err := s.once(i, s.Spec.Seed, nil, sim.TraceHash)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %016x\n", name, res.Hash)
	}
	s.Spec.Fingerprint = fmt.Sprintf("%x", h.Sum(nil)[:8])
	return nil
}

// once runs one seed of a cell in a world of its own: with a plan, or with the
// one that the sweep gives it. Of the result, what belongs to the world is gone.
func (s *Sweep) once(cell int, seed uint64, plan *sim.Plan, mode sim.TraceMode) (*Result, error) {
	r, err := NewRunner(s.cells[cell])
	if err != nil {
		return nil, err
	}
	defer r.Close()
	switch {
	case plan != nil:
		err = r.SetPlan(*plan)
	case s.adversary != nil:
		err = r.SetPlan(r.Cast(DrawPlan(seed, *s.adversary)))
	}
	if err != nil {
		return nil, err
	}
	return r.Run(seed, mode)
}

// PlanFile runs one seed of a cell again and returns it for replay, without
// the faults whose triggers never fired.
func (s *Sweep) PlanFile(cell int, seed uint64) (*PlanFile, error) {
	res, err := s.once(cell, seed, nil, sim.TraceHash)
	if err != nil {
		return nil, err
	}
	if s.adversary == nil { // the scenario's own plan stays as it is told
		return res.PlanFile(), nil
	}
	fired := sim.Plan{}
	for _, r := range res.Faults {
		if r.Fired {
			fired.Faults = append(fired.Faults, res.Plan.Faults[r.Index])
		}
	}
	again, err := s.once(cell, seed, &fired, sim.TraceHash)
	if err == nil && again.Verdict == res.Verdict && again.Report.Lock == res.Report.Lock {
		res = again
	}
	f := res.PlanFile()
	f.Scenario, f.Title = "sweep", fmt.Sprintf("Seed %d of a sweep with --faults %s", seed, s.Spec.FaultsText())
	return f, err
}

// FaultsText names the adversary's faults as --faults takes them, the usual
// sets by one word.
func (s *SweepSpec) FaultsText() string {
	for _, word := range []string{"all", "*"} {
		kinds, err := PickFaults([]string{word})
		if err == nil && slices.EqualFunc(kinds, s.Faults, func(k sim.FaultKind, name string) bool { return k.String() == name }) {
			return word
		}
	}
	return strings.Join(s.Faults, ",")
}

// Failure runs one seed of a cell again, in which a program panicked.
func (s *Sweep) Failure(cell int, seed uint64) (*sim.Failure, error) {
	res, err := s.once(cell, seed, nil, sim.TraceHash)
	if err == nil && res.Failure == nil {
		err = fmt.Errorf("%s, seed %d panicked, and does not when it is repeated", s.Spec.Cells[cell], seed)
	}
	if err != nil {
		return nil, err
	}
	return res.Failure, nil
}

// Command is the command that repeats one seed of a cell: a run of its
// scenario, or a sweep of one run that writes its plan.
func (s *SweepSpec) Command(cell int, seed uint64) string {
	c := &s.Cells[cell]
	command := "locklab run " + c.Scenario
	if c.Scenario == "" {
		command = "locklab sweep --faults " + strings.ReplaceAll(s.FaultsText(), "*", "'*'")
		if s.Victims != "" {
			command += " --victims " + s.Victims
		}
	}
	command += fmt.Sprintf(" --design %s --resource %s --seed %d", c.Design, c.Resource, seed)
	if s.Set != "" {
		command += " --set " + s.Set
	}
	if c.Scenario == "" {
		command += " --runs 1 --save-plans ."
	}
	return command
}
