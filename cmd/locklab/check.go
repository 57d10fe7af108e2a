package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"locklab/checker"
	"locklab/reports"
)

func (a *app) checkCommand() *cobra.Command {
	var words []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check HISTORY.jsonl",
		Short: "Judge a recorded history, also one from a real system",
		Long: `Reads a history (JSON Lines: a header, then one operation a line; locklab run --history writes one, and
checker/jsonl.go documents every key) and judges it as locklab judges its own runs: findings, and both
answers. Porcupine is asked as well. Of a real system's history most keys may be left out: op, client,
invoke, return, outcome, tenure and value go far.

A line that cannot be read is named with its field and left out, and the rest is judged. Since an
operation that is missing can both hide harm and feign it, the exit code is then 2, whatever was
found; but for a last line without its end, as a recorder leaves it that crashed.

Exit codes: 0 no harm; 1 something was found that --fail-on names: by default a broken lock and every
harm to the data, not that two clients believed at once (overlap), or that something was rightly
refused (fenced); 2 the history cannot be read, or not all of it.`,
		Example: `  locklab run kleppmann/gc-pause --design redis/lua-token --resource plain --history h.jsonl
  locklab check h.jsonl
  locklab check h.jsonl --fail-on two-writers,overlap
  locklab check h.jsonl --fail-on none --json`,
		Args: exactly(1, "one history, as locklab run --history writes it"),
		RunE: func(_ *cobra.Command, args []string) error { return a.check(args[0], words, asJSON) },
	}
	cmd.Flags().StringSliceVar(&words, "fail-on", harmInHistory(), "exit with 1 if one of these was found; none: never")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

// harmInHistory is what somebody who checks a history wants to be told of by
// the exit code.
func harmInHistory() []string {
	return []string{"broken", "two-writers", "lost-update", "double-apply", "write-lost", "self-rejected", "stuck"}
}

func (a *app) check(name string, words []string, asJSON bool) error {
	fails, err := parseFailOn(words)
	if err != nil {
		return err
	}
	file, err := os.Open(name)
	if err != nil {
		return plainFileError(name, err)
	}
	defer file.Close()
	h, problems := checker.ReadHistory(file, name)
	if h == nil {
		return problems[0]
	}
	left := 0
	for _, p := range problems {
		if !errors.Is(p, checker.ErrTruncated) {
			left++
		}
		fmt.Fprintln(a.err, "locklab: "+firstLine(p.Error()))
	}
	report := checker.Check(h)
	report.Explain(h)
	boxes := checker.Porcupine(h, checker.PorcupineTimeout)
	if asJSON {
		err = reports.HistoryJSON(a.out, h, report, boxes, problems)
	} else {
		err = reports.History(a.out, h, report, boxes, a.style())
	}
	if err != nil {
		return err
	}
	if left > 0 {
		return fmt.Errorf("%s: %d mistakes, so that what was left out may be missing from the answers", name, left)
	}
	if err := checker.CrossCheck(report, boxes); err != nil && h.Omniscient {
		return &exitError{exitInternal, fmt.Sprintf("%v; please report it with %s", err, name)}
	}
	return fails.of(func(word string) int64 { return shown(&report, word) })
}

// shown is 1 if a report shows what a word of --fail-on names.
func shown(r *checker.Report, word string) int64 {
	if k, err := checker.ParseFindingKind(word); err == nil && r.Has(k) || word == r.Verdict.String() || word == r.Lock.String() {
		return 1
	}
	return 0
}
