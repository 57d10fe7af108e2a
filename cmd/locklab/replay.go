package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"locklab/models"
	"locklab/reports"
	"locklab/scenarios"
	"locklab/sim"
)

func (a *app) replayCommand() *cobra.Command {
	var brief, asJSON bool
	var engine string
	var against againstFlag
	cmd := &cobra.Command{
		Use:   "replay PLAN.yaml",
		Short: "Repeat a run from its plan file, exactly; the trace hash proves it",
		Example: `  locklab run kleppmann/gc-pause --design redis/lua-release --resource plain --plan p.yaml
  locklab replay p.yaml
  locklab replay p.yaml --brief --against all`,
		Args: exactly(1, "one plan file, as locklab run --plan writes it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			designs, err := against.pick()
			if err != nil {
				return err
			}
			return a.replay(cmd.Context(), args[0], designs, engine, brief, asJSON)
		},
	}
	cmd.Flags().BoolVar(&brief, "brief", false, "only compare; do not tell the story")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object, as run --json prints")
	cmd.Flags().StringVar(&engine, "engine", "", "engine of the Redis servers: native or miniredis; default: the file's")
	against.add(cmd.Flags())
	return cmd
}

func (a *app) replay(ctx context.Context, name string, against []*models.Design, engine string, brief, asJSON bool) error {
	if err := scenarios.CheckEngineName(engine); err != nil {
		return err
	}
	file, err := findPlan(name)
	if err != nil {
		return err
	}
	c, err := file.Case()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.Repeat = "locklab replay " + scenarios.ShellWord(name)
	if engine != "" {
		c.Engine = engine
		c.Repeat += " --engine " + engine
	}
	r, err := scenarios.NewRunner(c)
	if err != nil {
		return inFile(name, file.Locate(err))
	}
	defer r.Close()
	r.Pulse = a.watch.Beat
	a.watch.Begin(func() string { return c.Repeat })
	res, err := r.Run(file.Seed, sim.TraceRecord)
	a.watch.End()
	if err != nil {
		return file.Locate(err)
	}
	res.Report.Explain(res.History)
	if err := crossCheck(res); err != nil {
		return err
	}
	if err := a.showReplay(res, brief, asJSON); err != nil {
		return err
	}
	different := a.compare(file, res, asJSON)
	if err := a.showAgainst(ctx, c, file.Seed, against, asJSON); err != nil {
		return err
	}
	if res.Failure != nil {
		return &exitError{exitInternal, res.Failure.Error()}
	}
	return different
}

func (a *app) showReplay(res *scenarios.Result, brief, asJSON bool) error {
	if asJSON {
		line, err := reports.JSON(res)
		if err == nil {
			_, err = fmt.Fprintln(a.out, string(line))
		}
		return err
	}
	if brief {
		return nil
	}
	return reports.Run(a.out, res, a.style())
}

// inFile names the file of a mistake that does not say where it stands.
func inFile(name string, err error) error {
	var located *scenarios.InputError
	if errors.As(err, &located) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// compare says whether the run is the one that the file records. The hash
// decides; a fault that never struck is a difference only where no hash says
// that it never struck before either.
func (a *app) compare(f *scenarios.PlanFile, res *scenarios.Result, asJSON bool) error {
	hash := fmt.Sprintf("%016x", res.Hash)
	var wrong []string
	for _, w := range []struct{ what, want, got string }{
		{"trace hash", f.TraceHash, hash},
		{"verdict", f.Verdict, res.Verdict.String()},
		{"lock", f.Lock, res.Report.Lock.String()},
	} {
		if w.want != "" && w.want != w.got {
			wrong = append(wrong, fmt.Sprintf("%s is %s, the file says %s", w.what, w.got, w.want))
		}
	}
	for _, r := range res.Faults {
		if !r.Fired && f.TraceHash != hash {
			wrong = append(wrong, fmt.Sprintf("the trigger of fault %d (%s) never fired", r.Index+1, res.Plan.Faults[r.Index].Kind))
		}
	}
	if len(wrong) > 0 {
		return &exitError{exitDiffers, "the replay differs: " + strings.Join(wrong, "; ")}
	}
	if asJSON {
		return nil
	}
	said := "replayed exactly: trace hash " + hash
	if f.TraceHash == "" {
		said = "ran; the file has no trace hash to compare with: this one's is " + hash
	}
	_, err := fmt.Fprintf(a.out, "%s, verdict %s, lock %s\n", said, res.Verdict, res.Report.Lock)
	return err
}
