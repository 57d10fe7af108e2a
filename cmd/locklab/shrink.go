package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"locklab/scenarios"
)

func (a *app) shrinkCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "shrink PLAN.yaml",
		Short: "Make a plan as small as it can be with the same answers",
		Long: `Shrinks a plan file as long as its run gives the same verdict and the same answer about the lock: fewer
faults, fewer clients and sections, nothing left to chance that need not be, plainer triggers, and the
smallest magnitudes, each searched by halving and told in words. Prints the plan file, or writes it to
-o FILE; locklab replay repeats it exactly. The result depends on the plan alone.`,
		Example: `  locklab run kleppmann/gc-pause --design redis/lua-release --resource plain --plan p.yaml
  locklab shrink p.yaml
  locklab shrink p.yaml -o small.yaml && locklab replay small.yaml`,
		Args: exactly(1, "one plan file, as locklab run --plan writes it"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.shrink(cmd, args[0], out) },
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the plan to this file")
	return cmd
}

func (a *app) shrink(cmd *cobra.Command, name, out string) error {
	data, err := readFile(name)
	if err != nil {
		return err
	}
	file, err := scenarios.LoadPlanFile(data, name)
	if err != nil {
		return err
	}
	c, err := file.Case()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(c.Plan.Faults) == 0 {
		return fmt.Errorf("%s: the plan has no faults, so there is nothing to shrink", name)
	}
	a.watch.Begin(func() string { return "locklab shrink " + name })
	small, err := scenarios.Shrink(cmd.Context(), c, file.Seed)
	a.watch.End()
	if err != nil {
		return file.Locate(err)
	}
	if file.Verdict != "" && file.Verdict != small.File.Verdict {
		return &exitError{exitDiffers, fmt.Sprintf("%s: the run's verdict is %s, the file says %s; see locklab replay", name, small.File.Verdict, file.Verdict)}
	}
	return a.showShrunk(file, small, out)
}

// showShrunk writes the plan, and says what has become of it. What is said
// goes to standard error where the plan itself goes to standard output.
func (a *app) showShrunk(before *scenarios.PlanFile, small *scenarios.Shrunk, out string) error {
	text, words := scenarios.MarshalPlanFile(small.File), io.Writer(a.err)
	if out != "" {
		words = a.out
		err := writeFile(out, func(w io.Writer) error { _, err := io.Copy(w, bytes.NewReader(text)); return err })
		if err != nil {
			return err
		}
	}
	f := small.File
	fmt.Fprintf(words, "verdict %s, lock %s, as before; %d runs tried\n", f.Verdict, f.Lock, small.Runs)
	for _, n := range []struct {
		what        string
		before, now int
	}{
		{"faults", len(before.Plan.Faults), len(f.Plan.Faults)}, {"clients", before.Params.Clients, f.Params.Clients},
		{"sections", before.Params.Sections, f.Params.Sections}, {"writes", before.Params.Writes, f.Params.Writes},
	} {
		if n.before != n.now {
			fmt.Fprintf(words, "%s: %d instead of %d\n", n.what, n.now, n.before)
		}
	}
	for _, line := range small.Words() {
		fmt.Fprintln(words, line)
	}
	if out == "" {
		_, err := a.out.Write(text)
		return err
	}
	_, err := fmt.Fprintf(words, "written: %s\n", out)
	return err
}
