package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"locklab/reports"
	"locklab/scenarios"
)

// reportFlags are the flags of report.
type reportFlags struct {
	spec    scenarios.CompareSpec
	out     string
	compare string
	workers int
}

func (a *app) reportCommand() *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Compare all designs, and write a report with plots",
		Long: `Runs the whole comparison and writes it into a directory. The parts, of which --only picks some:

  fewest     every placement of one fault, for each design and resource: how few let two write
  matrix     each design and resource under each family of faults, many seeds: rates with intervals
  stories    the shortest story of each cell of the matrix that shows harm, and what would have saved it
  scenarios  every scenario of the library, with the verdicts that it expects
  curves     the chance of two writers against the size of one fault
  maps       the same against two sizes, with the bound that theory gives
  recovery   how long nobody works after an owner's death
  price      messages, waiting and unavailability while nothing goes wrong
  herd       what waiting clients ask of the servers

The report depends on the seed and the flags alone, byte for byte, not on --workers or the time of day.
When it is interrupted, what was done so far is written, and marked as partial.`,
		Example: `  locklab report --out report
  locklab report --out report --quick
  locklab report --out report --runs 2000 --design 'redis/*,redlock*'
  locklab report --out report --only matrix,fewest
  locklab report --out new --compare old/results.json --design redis/lua-release`,
		Args: exactly(0, "no arguments; the directory is named with --out"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.report(cmd.Context(), &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.out, "out", "", "the directory to write to; it is made if need be")
	fl.BoolVar(&f.spec.Quick, "quick", false, "fewer runs and coarser steps: a look in seconds")
	fl.Int64Var(&f.spec.Runs, "runs", 0, "runs of each cell of the matrix; the other parts follow (default 120, with --quick 6)")
	fl.Uint64Var(&f.spec.Seed, "seed", 1, "the first seed")
	fl.StringSliceVar(&f.spec.Only, "only", nil, "parts, by name or pattern: "+strings.Join(scenarios.PartNames(), ", "))
	fl.StringSliceVar(&f.spec.Designs, "design", nil, "designs, by name or pattern (redis/*); default: all")
	fl.StringSliceVar(&f.spec.Resources, "resource", nil, "resources, by name or pattern; default: the sensible ones of each design")
	fl.StringSliceVar(&f.spec.Scenarios, "scenario", nil, "scenarios, by name or pattern, or YAML files; default: the whole library")
	fl.StringVar(&f.spec.Set, "set", "", "parameters of all parts but the scenarios, like ttl=30s,work=2s")
	fl.StringVar(&f.compare, "compare", "", "the results.json of an older report: mark what changed since")
	fl.IntVar(&f.workers, "workers", 0, "how many run at once; default: GOMAXPROCS")
	return cmd
}

func (a *app) report(ctx context.Context, f *reportFlags) error {
	if f.out == "" {
		return errors.New("report wants --out: the directory to write to")
	}
	if f.workers < 0 || f.workers > 1024 {
		return fmt.Errorf("--workers: %d is out of range; allowed is 1 to 1024, or 0 for GOMAXPROCS", f.workers)
	}
	var err error
	if f.spec.Scenarios, err = pickScenarios(f.spec.Scenarios); err != nil {
		return err
	}
	if _, err := scenarios.NewComparison(f.spec, findScenario); err != nil { // before anything is made or run
		return err
	}
	var old *scenarios.Comparison
	if f.compare != "" {
		data, err := readFile(f.compare)
		if err != nil {
			return err
		}
		if old, err = scenarios.ReadComparison(bytes.NewReader(data), f.compare); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return err
	}
	defer collectRarely()()
	debug.SetMemoryLimit(reportMemory)
	a.saving.Store(true) // what is gathered when Ctrl-C comes will be written
	c, err := a.gather(ctx, f)
	var internal *scenarios.InternalError
	switch {
	case errors.As(err, &internal):
		return &exitError{exitInternal, err.Error()}
	case c == nil || err != nil && !errors.Is(err, context.Canceled):
		return err
	}
	if old != nil {
		c.CompareWith(old)
	}
	if err := a.writeReport(c, f.out); err != nil {
		return err
	}
	if old != nil {
		fmt.Fprintf(a.out, "changed since %s: %d cells; the same: %d (see report.md)\n", f.compare, len(c.Changes.Cells), c.Changes.Same)
	}
	if err != nil {
		return &exitError{exitInterrupted, "interrupted; the report in " + f.out + " holds what was done so far, and says so"}
	}
	if n, command := c.Panics(); n > 0 {
		return &exitError{exitInternal, fmt.Sprintf("a simulated program panicked in %d runs; to see it: %s", n, command)}
	}
	return nil
}

// reportMemory is from how much memory on, in bytes, a report collects garbage
// as always: what was found has to be kept, beside the worlds in which it is
// found.
const reportMemory = 512 << 20

// gather gathers the comparison, with a bar for each part.
func (a *app) gather(ctx context.Context, f *reportFlags) (*scenarios.Comparison, error) {
	bar := a.progress(1, "report")
	defer func() { _ = bar.Finish() }()
	return scenarios.Compare(ctx, f.spec, scenarios.CompareOptions{
		Workers: f.workers, Find: findScenario, Watchdog: a.dog,
		Planned: func(part string, runs int64) {
			bar.Reset()
			bar.ChangeMax64(max(runs, 1))
			bar.Describe(part)
		},
		Progress: func(_ string, runs int) { _ = bar.Add(runs) },
	})
}

// writeReport writes every file of a report.
func (a *app) writeReport(c *scenarios.Comparison, dir string) error {
	files := []reportFile{
		{"results.json", func(w io.Writer) error { return c.WriteJSON(w) }},
		{"results.csv", func(w io.Writer) error { return reports.WriteCSV(w, c) }},
		{"report.md", func(w io.Writer) error { return reports.WriteMarkdown(w, c) }},
		{"index.html", func(w io.Writer) error { return reports.WriteIndex(w, c) }},
	}
	figures := reports.Figures(c)
	for i := range figures {
		f := &figures[i]
		files = append(files, reportFile{f.SVG(), f.WriteSVG}, reportFile{f.PNG(), f.WritePNG})
	}
	files = append(files, storyFiles(c)...)
	for sub, ours := range map[string]string{
		reports.PlotDir:    `^(matrix|fewest|curve|map|recovery|price|herd)[a-z-]*\.(svg|png)$`,
		scenarios.StoryDir: `^[0-9a-f]{12}\.yaml$`,
	} {
		sub = filepath.Join(dir, sub)
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return err
		}
		if err := removeOld(sub, regexp.MustCompile(ours), files); err != nil {
			return err
		}
	}
	if err := writeFiles(files, dir); err != nil {
		return err
	}
	return a.sayReport(c, dir, len(figures))
}

// writeFiles writes files, several at once: pictures take long to draw.
func writeFiles(files []reportFile, dir string) error {
	return scenarios.InParallel(context.Background(), runtime.GOMAXPROCS(0), len(files), func(_, i int) error { return files[i].into(dir) })
}

// into writes the file into a directory; what writes nothing makes no file.
func (f *reportFile) into(dir string) error {
	var b bytes.Buffer
	if err := f.write(&b); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	if b.Len() == 0 {
		return nil
	}
	return replaceFile(filepath.Join(dir, filepath.FromSlash(f.name)), b.Bytes())
}

// sayReport says what was written where.
func (a *app) sayReport(c *scenarios.Comparison, dir string, figures int) error {
	runs := int64(0)
	for _, p := range c.Parts {
		runs += p.Runs
	}
	_, err := fmt.Fprintf(a.out, "designs %d, runs %d; written to %s: index.html, report.md, results.json, results.csv, plots (%d, as SVG and PNG), stories (%d)\n",
		len(c.Designs), runs, dir, figures, len(c.Stories))
	return err
}

// reportFile is one file of a report.
type reportFile struct {
	name  string
	write func(io.Writer) error
}

// storyFiles are the stories of a report as plan files.
func storyFiles(c *scenarios.Comparison) []reportFile {
	var out []reportFile
	for i := range c.Stories {
		s := &c.Stories[i]
		out = append(out, reportFile{s.File(), func(w io.Writer) error { _, err := io.WriteString(w, s.Plan); return err }})
	}
	return out
}

// removeOld removes what an older report left in one of its own directories,
// and nothing else.
func removeOld(dir string, ours *regexp.Regexp, files []reportFile) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	now := map[string]bool{}
	for _, f := range files {
		now[path.Base(f.name)] = true
	}
	for _, e := range entries {
		if ours.MatchString(e.Name()) && !now[e.Name()] {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// replaceFile writes a file beside the old one and puts it in its place, so
// that at no time half a file stands there.
func replaceFile(name string, data []byte) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err := errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return os.Rename(file.Name(), name)
}
