package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"locklab/models"
	"locklab/scenarios"
)

func (a *app) verifyCommand() *cobra.Command {
	var seed uint64
	var hashes, asJSON bool
	every := 1
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Run everything twice, at GOMAXPROCS 1 and 8; the trace hashes must match",
		Long: `Runs every scenario with every design and every resource that it can serve, first one after the other
at GOMAXPROCS 1, then many at once at GOMAXPROCS 8, and compares the trace hashes. When two differ it
names the run and the first event at which the two traces part, and exits with 1.`,
		Example: `  locklab verify
  locklab verify --seed 7
  locklab verify --every 10    # a sample
  locklab verify --hashes      # to compare two machines`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.verify(cmd, seed, every, hashes, asJSON) },
	}
	cmd.Flags().Uint64Var(&seed, "seed", 1, "seed of every choice")
	cmd.Flags().IntVar(&every, "every", 1, "verify each Nth run only, a sample; at least 1")
	cmd.Flags().BoolVar(&hashes, "hashes", false, "print the hash of every run")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line for each run: scenario, design, resource, seed, trace_hash")
	return cmd
}

func (a *app) verify(cmd *cobra.Command, seed uint64, every int, hashes, asJSON bool) error {
	if every < 1 {
		return fmt.Errorf("--every: %d is out of range; allowed is 1 or more", every)
	}
	library, err := scenarios.Library()
	if err != nil {
		return err
	}
	var cases []scenarios.Case
	for _, s := range library {
		more, err := scenarios.Cases(s, models.Designs(), models.Resources())
		if err != nil {
			return err
		}
		cases = append(cases, more...)
	}
	cases = scenarios.EachOf(cases, every)
	bar := a.progress(2*len(cases), "verify")
	got, err := scenarios.Verify(cmd.Context(), cases, seed, func() { _ = bar.Add(1) })
	_ = bar.Finish()
	var mismatch *scenarios.Mismatch
	switch {
	case errors.As(err, &mismatch):
		return &exitError{exitDiffers, mismatch.Error()}
	case err != nil:
		return err
	}
	if asJSON {
		lines := json.NewEncoder(a.out)
		for i, c := range cases {
			if err := lines.Encode(verifiedJSON{c.Scenario.Name, c.Design.Name, c.Resource.Name, seed, fmt.Sprintf("%016x", got[i])}); err != nil {
				return err
			}
		}
		return nil
	}
	if hashes {
		for i, c := range cases {
			fmt.Fprintf(a.out, "%016x %s %s %s\n", got[i], c.Scenario.Name, c.Design.Name, c.Resource.Name)
		}
	}
	fmt.Fprintf(a.out, "%d runs, each twice: every trace hash matched\n", len(cases))
	return nil
}

// verifiedJSON is a run whose hash was the same twice.
type verifiedJSON struct {
	Scenario  string `json:"scenario"`
	Design    string `json:"design"`
	Resource  string `json:"resource"`
	Seed      uint64 `json:"seed"`
	TraceHash string `json:"trace_hash"`
}

// progress is a bar on a terminal, and nothing elsewhere.
func (a *app) progress(steps int, what string) *progressbar.ProgressBar {
	w := io.Discard
	if a.onTerminal() {
		w = a.err
	}
	return progressbar.NewOptions(steps, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish())
}

// onTerminal reports whether a person watches what goes wrong.
func (a *app) onTerminal() bool {
	file, ok := a.err.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
