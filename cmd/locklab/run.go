package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"locklab/checker"
	"locklab/reports"
	"locklab/scenarios"
	"locklab/sim"
)

// storiesMax is how many runs are told in full; more are a table.
const storiesMax = 4

// runFlags are the flags of run.
type runFlags struct {
	designs, resources []string
	seed               uint64
	engine             string
	set                string
	json, brief        bool
	history, plan      string
	html, porcupine    string
	against            againstFlag
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run SCENARIO|FILE.yaml",
		Short: "Run a scenario with one seed and tell what happened",
		Long: `Run a scenario of the library, or one of your own from a YAML file, with one seed. Prints the story,
a space-time diagram, the findings and both answers for each design and resource: those that the
scenario names, or those that you ask for. More than four runs are shown as a table.`,
		Example: `  locklab run kleppmann/gc-pause
  locklab run kleppmann/gc-pause --design redis/lua-token --resource fenced --seed 7
  locklab run kleppmann/gc-pause --design all --resource all
  locklab run kleppmann/gc-pause --design redis/lua-release --resource plain --set ttl=30s,work=2s
  locklab run kleppmann/gc-pause --design redis/lua-release --resource plain --history h.jsonl --plan p.yaml
  locklab run kleppmann/gc-pause --html pause.html
  locklab run kleppmann/gc-pause --design redis/lua-release --resource plain --against all
  locklab run my-scenario.yaml --json`,
		Args: exactly(1, "one scenario (see locklab list) or one YAML file"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runScenario(cmd, args[0], &f) },
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.designs, "design", nil, "designs, by name or pattern (redis/*, all); default: the scenario's")
	fl.StringSliceVar(&f.resources, "resource", nil, "resources, by name or pattern; default: the scenario's")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of every choice")
	fl.StringVar(&f.engine, "engine", "native", "engine of the servers: native")
	fl.StringVar(&f.set, "set", "", "parameters to change, like ttl=30s,work=2s or preset=redsync (see locklab list parameters, presets)")
	fl.BoolVar(&f.json, "json", false, "one JSON object a line for each design and resource")
	fl.BoolVar(&f.brief, "brief", false, "only the table of answers")
	fl.StringVar(&f.history, "history", "", "write the history to this file (JSON Lines); for one design and resource")
	fl.StringVar(&f.html, "html", "", "write the stories as one HTML page to this file")
	fl.StringVar(&f.porcupine, "porcupine", "", "write porcupine's view of the history to this HTML file; for one design and resource")
	fl.StringVar(&f.plan, "plan", "", "write a plan file for replay; for one design and resource")
	f.against.add(fl)
	return cmd
}

func (a *app) runScenario(cmd *cobra.Command, name string, f *runFlags) error {
	if f.engine != "native" {
		return scenarios.Unknown("engine", f.engine, []string{"native"})
	}
	s, err := findScenario(name)
	if err != nil {
		return err
	}
	against, err := f.against.pick()
	if err != nil {
		return err
	}
	settings, err := scenarios.ParseSet(f.set)
	if err != nil {
		return fmt.Errorf("--set: %w", err)
	}
	cases, err := scenarios.ChooseCases(s, f.designs, f.resources)
	if err != nil {
		return err
	}
	if (f.history != "" || f.plan != "" || f.porcupine != "") && len(cases) != 1 {
		return fmt.Errorf("--history, --plan and --porcupine write one run, and this would be %d; choose one with --design and --resource", len(cases))
	}
	for i := range cases {
		if err := cases[i].Params.Apply(settings); err != nil {
			return fmt.Errorf("--set: %w", err)
		}
	}
	out := runOutput{app: a, flags: f, told: !f.json && !f.brief && len(cases) <= storiesMax}
	if f.html != "" {
		out.page = reports.NewPage("")
	}
	for i := range cases {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		if err := a.runCase(cases[i], f, &out); err != nil {
			return err
		}
	}
	different := out.end()
	if err := a.showAgainst(cmd.Context(), cases[0], f.seed, against, f.json); err != nil {
		return err
	}
	return different
}

// runCase runs one case, cross-checks the answers, and shows it.
func (a *app) runCase(c scenarios.Case, f *runFlags, out *runOutput) error {
	r, err := scenarios.NewRunner(c)
	if err != nil {
		return c.Scenario.Locate(err)
	}
	defer r.Close()
	r.Pulse = a.watch.Beat
	a.watch.Begin(func() string { return scenarios.CommandOf(&c, f.seed) })
	res, err := r.Run(f.seed, sim.TraceRecord)
	a.watch.End()
	if err != nil {
		return c.Scenario.Locate(err)
	}
	res.Report.Explain(res.History)
	if err := crossCheck(res); err != nil {
		return err
	}
	if err := f.writeFiles(res); err != nil {
		return err
	}
	return out.show(res)
}

// writeFiles writes what was asked for about one run.
func (f *runFlags) writeFiles(res *scenarios.Result) error {
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{f.history, func(w io.Writer) error { return checker.WriteHistory(w, res.History) }},
		{f.plan, func(w io.Writer) error { _, err := w.Write(scenarios.MarshalPlanFile(res.PlanFile())); return err }},
		{f.porcupine, func(w io.Writer) error { return reports.Porcupine(w, res) }},
	} {
		if file.name == "" {
			continue
		}
		if err := writeFile(file.name, file.write); err != nil {
			return err
		}
	}
	return nil
}

// writeFile creates a file and writes to it.
func writeFile(name string, write func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// crossCheck lets porcupine check the same history as a black box. Where it
// rejects what the checker lets pass, locklab itself is wrong.
func crossCheck(res *scenarios.Result) error {
	if err := checker.CrossCheck(res.Report, checker.Porcupine(res.History, checker.PorcupineTimeout)); err != nil {
		return &exitError{exitInternal, fmt.Sprintf("%v; please report it with: %s", err, res.Command())}
	}
	return nil
}

// runOutput shows runs one after the other.
type runOutput struct {
	app       *app
	flags     *runFlags
	told      bool          // tell each run in full
	page      *reports.Page // nil unless asked for
	rows      []reports.Row
	different int
	panicked  *sim.Failure
}

func (o *runOutput) show(res *scenarios.Result) error {
	if o.page != nil {
		o.page.Add(res)
	}
	if !res.AsExpected() {
		o.different++
	}
	if res.Failure != nil {
		o.panicked = res.Failure
	}
	if o.flags.json {
		line, err := reports.JSON(res)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(o.app.out, string(line))
		return err
	}
	if o.told {
		if len(o.rows) > 0 {
			fmt.Fprintln(o.app.out)
		}
		if err := reports.Run(o.app.out, res, o.app.style()); err != nil {
			return err
		}
	}
	o.rows = append(o.rows, reports.RowOf(res))
	return nil
}

// end prints the table and turns what was seen into an exit code.
func (o *runOutput) end() error {
	if !o.flags.json && (len(o.rows) > 1 || !o.told) {
		if o.told {
			fmt.Fprintln(o.app.out)
		}
		reports.Table(o.app.out, o.rows, o.app.style())
	}
	if o.page != nil {
		if err := o.writePage(); err != nil {
			return err
		}
	}
	switch {
	case o.panicked != nil:
		return &exitError{exitInternal, o.panicked.Error()}
	case o.different > 0:
		return &exitError{exitDiffers, fmt.Sprintf("%d of the answers differ from the expected ones", o.different)}
	}
	return nil
}

func (o *runOutput) writePage() error {
	err := writeFile(o.flags.html, func(w io.Writer) error { _, err := o.page.WriteTo(w); return err })
	if err == nil && !o.flags.json {
		_, err = fmt.Fprintf(o.app.out, "\nThe picture: %s (open it in a browser)\n", o.flags.html)
	}
	return err
}

// style says how to print: colour on a terminal unless NO_COLOR is set.
func (a *app) style() reports.Style {
	s := reports.Style{Width: 100, ASCII: asciiOnly()}
	file, ok := a.terminal.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return s
	}
	s.Color = os.Getenv("NO_COLOR") == ""
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 60 {
		s.Width = width
	}
	return s
}

// asciiOnly reports whether the locale cannot show more: LC_ALL, LC_CTYPE and
// LANG in this order, as POSIX has it. Nothing set counts as UTF-8.
func asciiOnly() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(name); v != "" {
			return v == "C" || v == "POSIX"
		}
	}
	return false
}
