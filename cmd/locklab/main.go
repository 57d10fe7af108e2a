// The locklab command runs distributed locks in a simulated universe and tells
// what happened. This package owns flags, files, exit codes and progress; what
// is run and judged stands in the packages below it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"locklab/scenarios"
	"locklab/sim"
)

// The exit codes.
const (
	exitOK          = 0
	exitDiffers     = 1   // a verdict or hash is not the expected one
	exitUsage       = 2   // bad input
	exitInternal    = 3   // a panic in a simulated program, or the watchdog
	exitInterrupted = 130 // Ctrl-C
)

// exitError ends the command with a code other than 2. Without a message,
// everything has been said already.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// stuckRunMax is how long, on the host's clock, one simulated run may take.
// Honest runs take milliseconds and are bounded by their event budget.
const stuckRunMax = 60 * time.Second

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the whole command: arguments in, exit code out.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	finished := make(chan struct{})
	defer func() { close(finished); stop() }()
	out := &output{Writer: stdout}
	app := &app{out: out, err: stderr, terminal: stdout}
	go interruptAfterGrace(ctx, stop, finished, &app.saving, stderr)
	dog := sim.NewWatchdog(stuckRunMax, func(label string) {
		fmt.Fprintf(stderr, "locklab: stuck for %s in a simulated program that never gives way; seed and command: %s\n", stuckRunMax, label)
		os.Exit(exitInternal)
	})
	defer dog.Close()
	app.dog, app.watch = dog, dog.Worker()
	root := app.root()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var ended *exitError
	switch {
	case errors.As(err, &ended) && ended.code == exitInterrupted: // it knows how to go on
		fmt.Fprintln(stderr, "locklab: "+ended.text)
		return exitInterrupted
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, interrupted)
		return exitInterrupted
	case out.err != nil:
		fmt.Fprintln(stderr, "locklab: cannot write the output: "+out.err.Error())
		return exitUsage
	case err == nil:
		return exitOK
	case errors.As(err, &ended):
		if ended.text != "" {
			fmt.Fprintln(stderr, "locklab: "+ended.text)
		}
		return ended.code
	}
	fmt.Fprintln(stderr, "locklab: "+firstLine(err.Error()))
	return exitUsage
}

const interrupted = "locklab: interrupted; what was printed or written so far stands"

// interruptGrace is how long a command has to stop cleanly after Ctrl-C.
const interruptGrace = 2 * time.Second

// interruptAfterGrace ends the process when a command is still at work some
// time after Ctrl-C: in the middle of one long run there is nothing to keep. A
// second Ctrl-C ends it at once. A command that is saving what it has done is
// left to it.
func interruptAfterGrace(ctx context.Context, stop func(), finished <-chan struct{}, saving *atomic.Bool, stderr io.Writer) {
	select {
	case <-finished:
		return
	case <-ctx.Done():
	}
	stop()
	select {
	case <-finished:
	case <-time.After(interruptGrace):
		if saving.Load() {
			<-finished
			return
		}
		fmt.Fprintln(stderr, interrupted)
		os.Exit(exitInterrupted)
	}
}

// output remembers the first failure to write, which much of what prints does
// not look at.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// app is what the subcommands share.
type app struct {
	out, err io.Writer
	terminal io.Writer     // what out writes to, perhaps a terminal
	dog      *sim.Watchdog // for those who run many at once
	watch    *sim.Watch    // tells the watchdog when a run begins and ends
	saving   atomic.Bool   // what was done when Ctrl-C came is written, which is not cut short
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "locklab",
		Short: "See which configurations of a distributed lock let two owners write",
		Long: `locklab runs distributed locks in one deterministic simulated universe (virtual clocks, a lossy
network, processes that pause and crash), checks what happened, and shows it as verdicts and stories.

Exit codes: 0 done, and as expected where something was expected; 1 a verdict or hash differs from
the expected one, or something was found that --fail-on names; 2 bad input; 3 a simulated program panicked or got stuck; 130 interrupted.`,
		Example: `  locklab run kleppmann/gc-pause
  locklab list designs
  locklab explain kleppmann/gc-pause`,
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(a.runCommand(), a.listCommand(), a.explainCommand(), a.replayCommand(), a.sweepCommand(), a.mergeCommand(),
		a.exhaustCommand(), a.reportCommand(), a.shrinkCommand(), a.checkCommand(), a.verifyCommand(), a.versionCommand())
	root.Args = cobra.ArbitraryArgs
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return scenarios.Unknown("command", args[0], commandNames(root))
	}
	return root
}

func commandNames(root *cobra.Command) []string {
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// flagError turns a mistake in a flag into one line with a remedy.
func flagError(cmd *cobra.Command, err error) error {
	if bad := (*pflag.InvalidValueError)(nil); errors.As(err, &bad) {
		want := map[string]string{
			"uint64": "a whole number from 0", "int": "a whole number", "int64": "a whole number", "bool": "true or false", "duration": "a duration such as 2s",
		}[bad.GetFlag().Value.Type()]
		if want != "" {
			return fmt.Errorf("cannot read --%s %q; it is %s", bad.GetFlag().Name, bad.GetValue(), want)
		}
	}
	return fmt.Errorf("%s; see %s --help", firstLine(err.Error()), cmd.CommandPath())
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// exactly wants n arguments and says what they are.
func exactly(n int, usage string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("%s wants %s, got %d arguments", cmd.CommandPath(), usage, len(args))
		}
		return nil
	}
}
