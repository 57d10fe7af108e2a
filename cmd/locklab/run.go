package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"locklab/checker"
	"locklab/models"
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
	vary               string
	measures           []string
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
  locklab run kleppmann/gc-pause --design redis/lua-token --resource fenced --engine miniredis
  locklab run herd/no-jitter --vary clients=5,10,20,40
  locklab run my-scenario.yaml --json`,
		Args: exactly(1, "one scenario (see locklab list) or one YAML file"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runScenario(cmd, args[0], &f) },
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.designs, "design", nil, "designs, by name or pattern (redis/*, all); default: the scenario's")
	fl.StringSliceVar(&f.resources, "resource", nil, "resources, by name or pattern; default: the scenario's")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of every choice")
	fl.StringVar(&f.engine, "engine", models.EngineNative, "engine of the Redis servers: native, or miniredis, which runs the Lua scripts; other designs are left out then")
	fl.StringVar(&f.set, "set", "", "parameters to change, like ttl=30s,work=2s or preset=redsync (see locklab list parameters, presets)")
	fl.BoolVar(&f.json, "json", false, "one JSON object a line for each design and resource")
	fl.BoolVar(&f.brief, "brief", false, "only the table of answers")
	fl.StringVar(&f.history, "history", "", "write the history to this file (JSON Lines); for one design and resource; - prints it and nothing else")
	fl.StringVar(&f.html, "html", "", "write the stories as one HTML page to this file, or -")
	fl.StringVar(&f.porcupine, "porcupine", "", "write porcupine's view of the history to this HTML file, or -; for one design and resource")
	fl.StringVar(&f.plan, "plan", "", "write a plan file for replay, or -; for one design and resource")
	fl.StringVar(&f.vary, "vary", "", "one run for each value of a parameter, like clients=5,10,20, and a table of measures instead of stories")
	fl.StringSliceVar(&f.measures, "measures", nil, "which measures --vary shows, as --json names them; default: those of waiting or, where sections come from outside, of load")
	f.against.add(fl)
	return cmd
}

func (a *app) runScenario(cmd *cobra.Command, name string, f *runFlags) error {
	if err := scenarios.CheckEngineName(f.engine); err != nil {
		return err
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
	if err := f.checkOutputs(); err != nil {
		return err
	}
	cases, left, err := scenarios.ChoosePairs(s, f.designs, f.resources)
	if err != nil {
		return err
	}
	for i := range cases {
		if err := cases[i].Params.Apply(settings); err != nil {
			return fmt.Errorf("--set: %w", err)
		}
	}
	if cases, left, err = scenarios.OnEngine(cases, f.engine, left); err != nil {
		return err
	}
	if cases, err = f.varied(cases); err != nil {
		return err
	}
	if (f.history != "" || f.plan != "" || f.porcupine != "") && len(cases) != 1 {
		return fmt.Errorf("--history, --plan and --porcupine write one run, and this would be %d; choose one with --design and --resource", len(cases))
	}
	out := runOutput{app: a, flags: f, told: !f.json && !f.brief && f.vary == "" && !f.prints() && len(cases) <= storiesMax, left: left}
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
	res, err := r.Run(f.seed, out.traceMode())
	a.watch.End()
	if err != nil {
		return c.Scenario.Locate(err)
	}
	res.Report.Explain(res.History)
	if err := crossCheck(res); err != nil {
		return err
	}
	if err := out.writeFiles(res); err != nil {
		return err
	}
	return out.show(res)
}

// checkOutputs refuses more than one thing on standard output.
func (f *runFlags) checkOutputs() error {
	printed, taken := 0, map[string]bool{}
	for _, name := range []string{f.history, f.html, f.porcupine, f.plan} {
		switch {
		case name == stdoutName:
			printed++
		case name != "" && taken[filepath.Clean(name)]:
			return fmt.Errorf("%s is named for two outputs, and one would overwrite the other; name a file for each", name)
		}
		taken[filepath.Clean(name)] = true
	}
	if f.json {
		printed++
	}
	if f.prints() && printed > 1 {
		return errors.New("only one of --json, --history, --html, --porcupine and --plan can go to standard output; name a file for the others")
	}
	return nil
}

// stdoutName stands for standard output where a file is named.
const stdoutName = "-"

// prints reports whether what would go to a file goes to standard output, on
// which nothing else is printed then.
func (f *runFlags) prints() bool {
	return f.history == stdoutName || f.html == stdoutName || f.porcupine == stdoutName || f.plan == stdoutName
}

// writeFiles writes what was asked for about one run.
func (o *runOutput) writeFiles(res *scenarios.Result) error {
	f := o.flags
	for _, file := range []struct {
		name, what string
		write      func(io.Writer) error
	}{
		{f.history, "the history", func(w io.Writer) error { return checker.WriteHistory(w, res.History) }},
		{f.plan, "a plan file; locklab replay " + scenarios.ShellWord(f.plan) + " repeats the run",
			func(w io.Writer) error { _, err := w.Write(scenarios.MarshalPlanFile(res.PlanFile())); return err }},
		{f.porcupine, "porcupine's view; open it in a browser", func(w io.Writer) error { return reports.Porcupine(w, res) }},
	} {
		if err := o.output(file.name, file.what, file.write); err != nil {
			return err
		}
	}
	return nil
}

// output writes one file that was asked for and remembers to say so.
func (o *runOutput) output(name, what string, write func(io.Writer) error) error {
	switch name {
	case "":
		return nil
	case stdoutName:
		return write(o.app.out)
	}
	o.wrote = append(o.wrote, fmt.Sprintf("wrote %s: %s", name, what))
	return writeFile(name, write)
}

// writeFile creates a file and writes to it.
func writeFile(name string, write func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// crossCheckMax is how many operations a history may have for porcupine to be
// asked about it unbidden: its time and memory grow with the square of those that
// wait at once, and it would run into its timeout.
const crossCheckMax = 2000

// crossCheck lets porcupine check the same history as a black box. Where it
// rejects what the checker lets pass, locklab itself is wrong.
func crossCheck(res *scenarios.Result) error {
	if len(res.History.Ops) > crossCheckMax {
		return nil
	}
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
	measured  []reports.Measured // instead, with --vary
	left      scenarios.LeftOut
	title     string   // of the table
	wrote     []string // one line for each file
	different int
	panicked  *sim.Failure
}

func (o *runOutput) show(res *scenarios.Result) error {
	if o.page != nil {
		if res.Trace == nil {
			return fmt.Errorf("--html: the run of %s on %s has more than %d events in its trace, too many for a picture; take fewer clients or sections, or a shorter horizon",
				res.Design.Name, res.Resource.Name, sim.TraceMax)
		}
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
	if f := o.flags; f.vary != "" {
		name, _, _ := strings.Cut(f.vary, "=")
		row, err := reports.MeasuredRow(res, name, f.measures)
		if err != nil {
			return fmt.Errorf("--measures: %w", err)
		}
		o.measured = append(o.measured, row)
		return nil
	}
	o.title = reports.TableTitle(res)
	o.rows = append(o.rows, reports.RowOf(res))
	return nil
}

// end prints the table and turns what was seen into an exit code.
func (o *runOutput) end() error {
	if o.page != nil {
		write := func(w io.Writer) error { _, err := o.page.WriteTo(w); return err }
		if err := o.output(o.flags.html, "the picture; open it in a browser", write); err != nil {
			return err
		}
	}
	if !o.flags.json && !o.flags.prints() {
		if err := o.printEnd(); err != nil {
			return err
		}
	}
	switch {
	case o.panicked != nil:
		return &exitError{exitInternal, o.panicked.Error()}
	case o.different == 1:
		return &exitError{exitDiffers, "1 of the answers differs from the expected one"}
	case o.different > 1:
		return &exitError{exitDiffers, fmt.Sprintf("%d of the answers differ from the expected ones", o.different)}
	}
	return nil
}

// printEnd prints the table, what is not in it, and which files were written.
func (o *runOutput) printEnd() error {
	w, style := o.app.out, o.app.style()
	if len(o.measured) > 0 {
		if err := reports.MeasuredTable(w, o.measured, style); err != nil {
			return err
		}
	}
	if o.flags.vary == "" && (len(o.rows) > 1 || !o.told) {
		if o.told {
			fmt.Fprintln(w)
		} else {
			fmt.Fprintln(w, o.title)
		}
		if err := reports.Table(w, o.rows, style); err != nil {
			return err
		}
		if o.left.Pairs > 0 {
			fmt.Fprintln(w, o.left)
		}
	}
	if len(o.wrote) > 0 && o.told {
		fmt.Fprintln(w)
	}
	for _, line := range o.wrote {
		fmt.Fprintln(w, line)
	}
	return nil
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
