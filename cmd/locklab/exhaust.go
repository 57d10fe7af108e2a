package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"locklab/models"
	"locklab/reports"
	"locklab/scenarios"
	"locklab/sim"
)

// exhaustFlags are the flags of exhaust.
type exhaustFlags struct {
	designs, resources []string
	faults             []string
	maxFaults, workers int
	allPoints          bool
	keepGoing          bool
	set, planDir       string
	json, brief        bool
	against            againstFlag
}

func (a *app) exhaustCommand() *cobra.Command {
	var f exhaustFlags
	cmd := &cobra.Command{
		Use:   "exhaust",
		Short: "Place up to K faults in every possible way: the fewest faults that let two owners write",
		Long: `Places every fault of a fixed ladder at every place of a run without chance (two clients, two sections
each, fixed latencies), then every second fault in each of these runs, and so on. Says with how few
faults two owners can write, and with which, or that there is no way with so many; and shows the
shortest story, made as small as it can be. What only an operator can do (restore-snapshot, evict,
overwrite) is placed in a search of its own. The search ends at the number of faults with which two
owners wrote, unless --keep-going. Its result does not depend on --workers.`,
		Example: `  locklab exhaust --design redis/lua-release --resource plain --max-faults 1
  locklab exhaust --design redlock --resource plain --faults clock-step,clock-rate,crash --max-faults 2
  locklab exhaust --design redis/lua-token --resource fenced-reads --max-faults 2 --plan-dir plans
  locklab exhaust --design all --max-faults 1 --brief
  locklab exhaust --design redis/lua-release --resource plain --max-faults 1 --against all`,
		Args: exactly(0, "no arguments; designs are named with --design"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.exhaust(cmd.Context(), &f) },
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.designs, "design", nil, "designs, by name or pattern (redis/*, all)")
	fl.StringSliceVar(&f.resources, "resource", nil, "resources, by name or pattern; default: all that the design can serve")
	fl.StringSliceVar(&f.faults, "faults", nil, "kinds of faults (see locklab list faults); default: all but the operator's and clock-offset")
	fl.IntVar(&f.maxFaults, "max-faults", 1, fmt.Sprintf("faults placed at once, at most: 1 to %d", scenarios.ExhaustFaultsMax))
	fl.BoolVar(&f.allPoints, "all-points", false, "also what servers say to each other")
	fl.BoolVar(&f.keepGoing, "keep-going", false, "go on to --max-faults also when fewer let two write")
	fl.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "runs at the same time")
	fl.StringVar(&f.set, "set", "", "parameters to change, like ttl=30s,retry=200ms (see locklab list parameters)")
	fl.StringVar(&f.planDir, "plan-dir", "", "write the plans that were found to this folder, for locklab replay")
	fl.BoolVar(&f.json, "json", false, "one JSON object a line for each design and resource")
	fl.BoolVar(&f.brief, "brief", false, "only the table")
	f.against.add(fl)
	return cmd
}

// exhaustion is exhaust with its flags understood.
type exhaustion struct {
	*app
	*exhaustFlags
	params  scenarios.Params
	kinds   []sim.FaultKind // nil: the default, and the operator's apart
	against []*models.Design
	cases   []scenarios.Case

	panics   int64
	panicked *scenarios.PlanFile // the first
}

func (a *app) exhaust(ctx context.Context, f *exhaustFlags) error {
	x := &exhaustion{app: a, exhaustFlags: f}
	if err := x.understand(); err != nil {
		return err
	}
	var rows []reports.ExhaustRow
	told := !f.json && !f.brief && len(x.cases) == 1
	var stopped error
	for i := range x.cases {
		row, err := x.search(ctx, i)
		if row.Search != nil {
			if err := x.show(&row, told); err != nil {
				return err
			}
			rows = append(rows, row)
		}
		if stopped = err; err != nil {
			break
		}
	}
	if !f.json && !told && len(rows) > 0 {
		if err := reports.ExhaustTable(a.out, rows, a.style()); err != nil {
			return err
		}
	}
	if stopped == nil && x.panics > 0 {
		fmt.Fprintf(a.err, "the first plan with which a program panicked, for locklab replay:\n%s", scenarios.MarshalPlanFile(x.panicked))
		return &exitError{exitInternal, fmt.Sprintf("%d of the runs panicked", x.panics)}
	}
	return stopped
}

// understand checks everything before anything is run.
func (x *exhaustion) understand() (err error) {
	switch {
	case len(x.designs) == 0:
		return errors.New("exhaust wants --design: which ones (see locklab list designs), or all")
	case x.maxFaults < 1 || x.maxFaults > scenarios.ExhaustFaultsMax:
		return fmt.Errorf("--max-faults is %d; allowed are 1 to %d", x.maxFaults, scenarios.ExhaustFaultsMax)
	case x.workers < 1 || x.workers > 1000:
		return fmt.Errorf("--workers is %d; allowed are 1 to 1000", x.workers)
	}
	if len(x.faults) > 0 {
		if x.kinds, err = scenarios.ParseFaultKinds(x.faults); err != nil {
			return fmt.Errorf("--faults: %w", err)
		}
	}
	settings, err := scenarios.ParseSet(x.set)
	if err == nil {
		x.params, err = scenarios.ExhaustParams(settings)
	}
	if err != nil {
		return fmt.Errorf("--set: %w", err)
	}
	if x.against, err = x.exhaustFlags.against.pick(); err != nil {
		return err
	}
	s := &scenarios.Scenario{Name: "exhaust", Params: x.params}
	x.cases, err = scenarios.ChooseCases(s, x.designs, x.resources)
	if err == nil && x.planDir != "" {
		err = os.MkdirAll(x.planDir, 0o755)
	}
	return err
}

// search exhausts one case: with the faults asked for, then the operator's.
func (x *exhaustion) search(ctx context.Context, i int) (row reports.ExhaustRow, err error) {
	row.Search, err = x.run(ctx, i, x.kinds)
	if err == nil && x.kinds == nil {
		row.Operator, err = x.run(ctx, i, scenarios.OperatorFaults())
	}
	if row.Search == nil {
		return row, err
	}
	if two := row.Search.TwoWriters(); err == nil && two != nil && len(x.against) > 0 {
		c, e := two.Shortest.Case()
		if e != nil {
			return row, e
		}
		row.Against, err = x.counterfactuals(ctx, c, two.Shortest.Seed, x.against)
	}
	if e := x.writePlans(&row); e != nil {
		err = e
	}
	return row, err
}

func (x *exhaustion) run(ctx context.Context, i int, kinds []sim.FaultKind) (*scenarios.Exhausted, error) {
	c := x.cases[i]
	name := fmt.Sprintf("%s on %s", c.Design.Name, c.Resource.Name)
	if len(x.cases) > 1 {
		name = fmt.Sprintf("(%d of %d) %s", i+1, len(x.cases), name)
	}
	bar := x.progress(1, name)
	defer func() { _ = bar.Finish() }()
	e, err := scenarios.Exhaust(ctx, scenarios.ExhaustConfig{
		Design: c.Design, Resource: c.Resource, Params: x.params, Kinds: kinds, MaxFaults: x.maxFaults,
		AllPoints: x.allPoints, KeepGoing: x.keepGoing, Workers: x.workers, Watch: x.dog.Worker,
		Progress: func(p scenarios.ExhaustProgress) {
			bar.ChangeMax(p.Parents)
			bar.Describe(fmt.Sprintf("%s: fault %d, %d runs", name, p.Faults, p.Executions))
			_ = bar.Set(p.Done)
		},
	})
	if e != nil {
		for _, l := range e.Levels {
			x.panics += l.Panics
		}
		if x.panicked == nil {
			x.panicked = e.Panicked
		}
	}
	return e, err
}

// show prints a search as soon as it is over, unless it is a line of a table.
func (x *exhaustion) show(row *reports.ExhaustRow, told bool) error {
	switch {
	case x.json:
		line, err := reports.ExhaustJSON(row)
		if err == nil {
			_, err = fmt.Fprintln(x.out, string(line))
		}
		return err
	case told:
		x.ladder(row.Search)
		return reports.Exhaust(x.out, row, x.style())
	}
	return nil
}

// ladder prints what is tried.
func (x *exhaustion) ladder(e *scenarios.Exhausted) {
	fmt.Fprintf(x.out, "baseline: %d clients, %d sections each, ttl %s, retry %s, latency %s, nothing left to chance\nladder:\n",
		x.params.Clients, x.params.Sections, x.params.TTL, x.params.Retry, x.params.LatencyMin)
	for _, line := range e.Ladder {
		fmt.Fprintln(x.out, "  "+line)
	}
	fmt.Fprintln(x.out)
}

// writePlans writes what was found: for each answer the shortest plan, and for
// two writers one for each combination of faults.
func (x *exhaustion) writePlans(row *reports.ExhaustRow) error {
	if x.planDir == "" {
		return nil
	}
	for _, e := range []*scenarios.Exhausted{row.Search, row.Operator} {
		if e == nil {
			continue
		}
		for i := range e.Fewest {
			for _, k := range e.Fewest[i].Kinds {
				if k.Plan == nil {
					continue
				}
				name := foundName(e, &e.Fewest[i], k.Kinds)
				path := filepath.Join(x.planDir, name)
				err := writeFile(path, func(w io.Writer) error { _, err := w.Write(scenarios.MarshalPlanFile(k.Plan)); return err })
				if err != nil {
					return err
				}
				row.Files = append(row.Files, path)
			}
		}
	}
	return nil
}

// foundName says what is in a plan file.
func foundName(e *scenarios.Exhausted, f *scenarios.Fewest, kinds string) string {
	if kinds == "" {
		kinds = "no fault"
	}
	name := strings.Join([]string{e.Design.Name, e.Resource.Name, f.Answer, kinds}, " ")
	return strings.NewReplacer("/", "-", " + ", "+", " ", "_").Replace(name) + ".yaml"
}
