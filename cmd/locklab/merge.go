package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"locklab/scenarios"
)

func (a *app) mergeCommand() *cobra.Command {
	var out string
	var words []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "merge SHARD...",
		Short: "Combine the files of one sweep's shards into its result",
		Long: `Combines files that locklab sweep --out wrote for parts of one sweep. The result is exactly that of
the whole sweep, in whatever order, grouping or repetition the files come; what is missing is said.
Files of different sweeps, or of versions of locklab that behave differently, are refused.`,
		Example: `  locklab sweep --faults pause --runs 100000 --shard 1/2 --out 1.jsonl
  locklab sweep --faults pause --runs 100000 --shard 2/2 --out 2.jsonl
  locklab merge 1.jsonl 2.jsonl
  locklab merge 1.jsonl 2.jsonl --out all.jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s wants the files of a sweep's shards, as locklab sweep --out writes them", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.merge(args, out, words, asJSON) },
	}
	cmd.Flags().StringVar(&out, "out", "", "write the merged result to this file: it can be merged again, or resumed")
	cmd.Flags().StringSliceVar(&words, "fail-on", []string{noViolation}, "exit with 1 if a run shows one of these")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line for each design and resource")
	return cmd
}

func (a *app) merge(names []string, out string, words []string, asJSON bool) error {
	fails, err := parseFailOn(words)
	if err != nil {
		return err
	}
	var merged *scenarios.SweepResult
	for _, name := range names {
		part, _, err := a.readSweep(name)
		if err != nil {
			return err
		}
		if merged == nil {
			merged = part
		} else if err := merged.Merge(part); err != nil {
			return fmt.Errorf("%s and %s: %w", names[0], name, err)
		}
	}
	if out != "" {
		if err := writeFile(out, func(w io.Writer) error { _, err := merged.WriteTo(w); return err }); err != nil {
			return err
		}
	}
	return a.endSweep(nil, merged, asJSON, "", fails)
}
