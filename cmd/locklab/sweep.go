package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"locklab/reports"
	"locklab/scenarios"
)

// sweepFlags are the flags of sweep.
type sweepFlags struct {
	spec    scenarios.SweepSpec
	workers int
	shard   string
	out     string
	resume  string
	plans   string
	failOn  []string
	json    bool
}

func (a *app) sweepCommand() *cobra.Command {
	var f sweepFlags
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Run many seeds, and count what they show, with confidence intervals",
		Long: `Runs many seeds with every design and resource that you ask for, on all cores, and counts what they
show: rates with Wilson's 95 % interval, for what was never seen the bound of the rule of three, and
the first seed of everything that was found.

Without --scenario, each seed draws an adversary: which kinds of faults are on (of those that --faults
names; all but the operator's by default), what strikes whom, where and for how long, weighted towards
what hurts: between grant and write, around renewals and releases, about the TTL. The same seed is the
same adversary for every design, so that rates can be compared. Runs with an operator's fault
(restore-snapshot, overwrite, evict: only where --faults names them) are counted apart.

With --scenario, the seeds vary latencies and jitter under the scenario's own plan.

The result does not depend on --workers. With --out it is written as it comes, and --resume goes on
where a run stopped; what was asked for stands in the file. Shards of one sweep, run anywhere, are
combined by locklab merge, exactly.

Exit codes: 0 done; 1 a run showed what --fail-on names; 2 bad input; 3 a simulated program
panicked or got stuck, or locklab contradicts itself; 130 interrupted.`,
		Example: `  locklab sweep --faults pause --design redis/lua-release,redis/lua-token --resource plain,fenced --runs 10000
  locklab sweep --faults pause,clock-step --design 'redlock*' --resource plain --runs 100000 --out s.jsonl
  locklab sweep --resume s.jsonl
  locklab sweep --faults all --design redis/lua-token --resource fenced --runs 1000 --fail-on two-writers --save-plans plans
  locklab sweep --scenario 'kleppmann/*' --runs 100
  locklab sweep --faults pause --runs 100000 --shard 1/2 --out 1.jsonl   # and 2/2 elsewhere; then: locklab merge 1.jsonl 2.jsonl`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.sweep(cmd, &f) },
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.spec.Designs, "design", nil, "designs, by name or pattern (redis/*, all); default: all, or the scenario's")
	fl.StringSliceVar(&f.spec.Resources, "resource", nil, "resources, by name or pattern; default: all, or the scenario's")
	fl.StringSliceVar(&f.spec.Scenarios, "scenario", nil, "scenarios of the library, by name or pattern, or YAML files")
	fl.StringSliceVar(&f.spec.Faults, "faults", nil, "kinds of faults that the adversary draws from, or none; default: all but the operator's")
	fl.StringVar(&f.spec.Victims, "victims", "", "clients or servers: only these crash, freeze, have wrong clocks or are cut off; default: both")
	fl.StringVar(&f.spec.Set, "set", "", "parameters to change, like ttl=30s,work=2s")
	fl.Int64Var(&f.spec.Runs, "runs", 1000, "runs of each design and resource")
	fl.Uint64Var(&f.spec.Seed, "seed", 1, "the first seed")
	fl.StringVar(&f.shard, "shard", "", "only this part of the sweep, like 1/4")
	fl.IntVar(&f.workers, "workers", 0, "how many run at once; default: GOMAXPROCS")
	fl.StringVar(&f.out, "out", "", "write results to this file as they come (JSON Lines)")
	fl.StringVar(&f.resume, "resume", "", "continue the sweep in this file")
	fl.StringVar(&f.plans, "save-plans", "", "write a plan file, for locklab replay, for the first seed of each kind of harm into this directory")
	fl.StringSliceVar(&f.failOn, "fail-on", []string{noViolation}, "exit with 1 if a run shows one of these, such as two-writers,broken")
	fl.BoolVar(&f.json, "json", false, "one JSON object a line for each design and resource")
	return cmd
}

// collectRarely lets the heap grow to five times what lives in it before it is
// collected. Little lives, about 100 kB for each design and worker, and each run
// allocates a little and forgets it: collecting at twice of that costs a tenth
// of the time and saves nothing that anybody would notice. Above the limit,
// far below the 100 MB that a sweep may take, it is collected as always.
func collectRarely() (restore func()) {
	percent, limit := debug.SetGCPercent(400), debug.SetMemoryLimit(64<<20)
	return func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) }
}

func (a *app) sweep(cmd *cobra.Command, f *sweepFlags) error {
	fails, err := parseFailOn(f.failOn)
	if err != nil {
		return err
	}
	if f.workers < 0 || f.workers > 1024 {
		return fmt.Errorf("--workers: %d is out of range; allowed is 1 to 1024, or 0 for GOMAXPROCS", f.workers)
	}
	defer collectRarely()()
	s, result, out, err := a.beginSweep(cmd, f)
	if err != nil {
		return err
	}
	err = a.runSweep(cmd.Context(), s, result, f, out)
	if out != nil {
		err = errors.Join(err, out.Close())
	}
	var internal *scenarios.InternalError
	switch {
	case errors.As(err, &internal):
		return &exitError{exitInternal, err.Error()}
	case errors.Is(err, context.Canceled):
		return a.interrupted(result, f)
	case err != nil:
		return err
	}
	return a.endSweep(s, result, f.json, f.plans, fails)
}

// beginSweep prepares a new sweep, or one that a file has the beginning of.
func (a *app) beginSweep(cmd *cobra.Command, f *sweepFlags) (*scenarios.Sweep, *scenarios.SweepResult, *os.File, error) {
	if f.resume != "" {
		for _, name := range []string{"design", "resource", "scenario", "faults", "victims", "set", "runs", "seed", "shard", "out"} {
			if cmd.Flags().Changed(name) {
				return nil, nil, nil, fmt.Errorf("--resume continues what stands in %s; leave --%s out", f.resume, name)
			}
		}
		return a.resumeSweep(f.resume)
	}
	var err error
	if f.spec.Shard, f.spec.Shards, err = parseShard(f.shard); err != nil {
		return nil, nil, nil, err
	}
	if f.spec.Scenarios, err = pickScenarios(f.spec.Scenarios); err != nil {
		return nil, nil, nil, err
	}
	s, err := scenarios.NewSweep(f.spec, findScenario)
	if err != nil {
		return nil, nil, nil, err
	}
	result := scenarios.NewSweepResult(s.Spec)
	if f.out == "" {
		return s, result, nil, nil
	}
	out, err := os.OpenFile(f.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, nil, nil, fmt.Errorf("%s is there already; continue it with --resume %s, or remove it", f.out, f.out)
	}
	if err == nil {
		_, err = result.WriteTo(out) // the header
	}
	return s, result, out, err
}

// resumeSweep reads what there is and opens the file behind its last complete
// line.
func (a *app) resumeSweep(name string) (*scenarios.Sweep, *scenarios.SweepResult, *os.File, error) {
	result, complete, err := a.readSweep(name)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := scenarios.NewSweep(result.Spec, findScenario)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := scenarios.NewSweepResult(s.Spec).Merge(result); err != nil {
		return nil, nil, nil, fmt.Errorf("%s cannot be continued by this locklab: %w", name, err)
	}
	out, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err == nil {
		err = out.Truncate(complete)
	}
	if err == nil {
		_, err = out.Seek(complete, io.SeekStart)
	}
	return s, result, out, err
}

// readSweep reads a sweep's file. A last line that is not complete is told and
// left out.
func (a *app) readSweep(name string) (*scenarios.SweepResult, int64, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, plainFileError(name, err)
	}
	defer file.Close()
	result, complete, err := scenarios.ReadSweep(file, name)
	if errors.Is(err, scenarios.ErrTruncated) {
		fmt.Fprintln(a.err, "locklab: "+err.Error())
		err = nil
	}
	return result, complete, err
}

// plainFileError says in one line why a file cannot be opened.
func plainFileError(name string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: no such file", name)
	}
	return err
}

// runSweep runs what is missing, with a bar on a terminal.
func (a *app) runSweep(ctx context.Context, s *scenarios.Sweep, result *scenarios.SweepResult, f *sweepFlags, out *os.File) error {
	todo := s.MissingRuns(result)
	bar := a.progress(int(todo), "sweep")
	begin := time.Now()
	o := scenarios.SweepOptions{Workers: f.workers, Watchdog: a.dog, Progress: func(runs int) { _ = bar.Add(runs) }}
	if out != nil {
		o.Done = func(u scenarios.Unit) error {
			line, err := scenarios.SweepLine(&s.Spec, u)
			if err == nil {
				_, err = out.Write(line)
			}
			return err
		}
	}
	err := s.Run(ctx, result, o)
	_ = bar.Finish()
	if took := time.Since(begin); err == nil && a.onTerminal() && took > time.Second {
		fmt.Fprintf(a.err, "%d runs in %.1f s, %.0f a second\n", todo, took.Seconds(), float64(todo)/took.Seconds())
	}
	return err
}

// interrupted shows what there is and says how to go on.
func (a *app) interrupted(result *scenarios.SweepResult, f *sweepFlags) error {
	if err := a.showSweep(result, f.json); err != nil {
		return err
	}
	how := "without --out nothing is kept; give one next time"
	for _, name := range []string{f.resume, f.out} {
		if name != "" {
			how = "go on with: locklab sweep --resume " + name
		}
	}
	return &exitError{exitInterrupted, fmt.Sprintf("interrupted after %d runs; %s", result.Runs(), how)}
}

func (a *app) showSweep(result *scenarios.SweepResult, asJSON bool) error {
	if asJSON {
		return reports.SweepJSON(a.out, result)
	}
	return reports.Sweep(a.out, result, a.style())
}

// endSweep shows the result, and writes plans if a directory for them is given.
// Only for these it needs the sweep itself.
func (a *app) endSweep(s *scenarios.Sweep, result *scenarios.SweepResult, asJSON bool, plans string, fails failOn) error {
	if err := a.showSweep(result, asJSON); err != nil {
		return err
	}
	cells := result.Cells()
	if !asJSON {
		a.sayHowToRepeat(&result.Spec, cells)
	}
	if plans != "" {
		if err := a.savePlans(s, cells, plans, fails, asJSON); err != nil {
			return err
		}
	}
	if err := a.panicked(s, &result.Spec, cells); err != nil {
		return err
	}
	return fails.of(func(word string) int64 {
		n := int64(0)
		for i := range cells {
			n += cells[i].Showed(word).Runs
		}
		return n
	})
}

// panicked tells of the first run in which a simulated program panicked.
func (a *app) panicked(s *scenarios.Sweep, spec *scenarios.SweepSpec, cells []scenarios.CellResult) error {
	runs, at := int64(0), -1
	for i := range cells {
		if n := cells[i].Panics().Runs; n > 0 {
			if runs += n; at < 0 {
				at = i
			}
		}
	}
	if at < 0 {
		return nil
	}
	c := &cells[at]
	what := ""
	if s != nil {
		failure, err := s.Failure(c.Cell, c.Panics().First)
		if err != nil {
			return err
		}
		what = "; " + firstLine(failure.Error())
	}
	return &exitError{exitInternal, fmt.Sprintf("a simulated program panicked in %d runs%s; the first: %s", runs, what, spec.Command(c.Cell, c.Panics().First))}
}

// harm lists what plans are saved of.
func harm() []string { return []string{"two-writers", "lost-update", "stuck", "broken"} }

// sayHowToRepeat prints a command for the worst that was found, where it is
// rarest.
func (a *app) sayHowToRepeat(spec *scenarios.SweepSpec, cells []scenarios.CellResult) {
	for _, word := range harm() {
		rarest := -1
		for i := range cells {
			n := cells[i].Showed(word).Runs
			if n > 0 && (rarest < 0 || n < cells[rarest].Showed(word).Runs) {
				rarest = i
			}
		}
		if rarest >= 0 {
			c := &cells[rarest]
			fmt.Fprintf(a.out, "\nto see %s: %s\n", word, spec.Command(c.Cell, c.Showed(word).First))
			return
		}
	}
}

// savePlans writes the first seed of each kind of harm of each cell, and of
// what --fail-on names.
func (a *app) savePlans(s *scenarios.Sweep, cells []scenarios.CellResult, dir string, fails failOn, asJSON bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	words := harm()
	for _, w := range fails {
		if !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	for i := range cells {
		c := &cells[i]
		for _, word := range append(slices.Clone(words), "panic") {
			n := c.Showed(word)
			if word == "panic" {
				n = c.Panics()
			}
			if n.Runs == 0 {
				continue
			}
			plan, err := s.PlanFile(c.Cell, n.First)
			if err != nil {
				return err
			}
			name := filepath.Join(dir, planName(c, word, n.First))
			if err := writeFile(name, func(w io.Writer) error { _, err := w.Write(scenarios.MarshalPlanFile(plan)); return err }); err != nil {
				return err
			}
			if !asJSON {
				fmt.Fprintf(a.out, "plan: locklab replay %s\n", name)
			}
		}
	}
	return nil
}

func planName(c *scenarios.CellResult, word string, seed uint64) string {
	parts := []string{c.Design, c.Resource, word, "seed" + strconv.FormatUint(seed, 10)}
	if c.Scenario != "" {
		parts = append([]string{strings.TrimSuffix(c.Scenario, ".yaml")}, parts...)
	}
	return strings.ReplaceAll(strings.Join(parts, "-"), "/", "-") + ".yaml"
}

// parseShard reads "2/4".
func parseShard(text string) (shard, shards int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	i, n, ok := strings.Cut(text, "/")
	shard, err1 := strconv.Atoi(i)
	shards, err2 := strconv.Atoi(n)
	if !ok || err1 != nil || err2 != nil || shard < 1 || shards < shard {
		return 0, 0, fmt.Errorf("cannot read the shard %q; write it like 1/4, which is the first of four", text)
	}
	return shard, shards, nil
}

// pickScenarios returns the library's scenarios that the names and patterns
// mean, and YAML files as they are.
func pickScenarios(asked []string) ([]string, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	library, err := scenarios.Library()
	if err != nil {
		return nil, err
	}
	var names, files []string
	for _, name := range asked {
		if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
			files = append(files, name)
		} else {
			names = append(names, name)
		}
	}
	picked, err := scenarios.Pick("scenario", library, func(s *scenarios.Scenario) string { return s.Name }, names)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, s := range picked {
		out = append(out, s.Name)
	}
	return append(out, files...), nil
}
