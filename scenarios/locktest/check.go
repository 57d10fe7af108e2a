package locktest

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"locklab/scenarios"
	"locklab/sim"
)

// planFlag is package state because a flag of go test has to be.
var planFlag = flag.String("locktest.plan", "", "locktest: repeat the run in this plan `file` instead of searching")

// burst is how many adversaries one of rapid's checks stands for: a run takes
// a fraction of a millisecond, and rapid's default of 100 checks is meant for
// slower things.
const burst = 50

// The fuzzer begins with fuzzSeeds inputs. They are fuzzLength bytes long since
// rapid asks for many bytes to draw one, and passes over an input that ends
// too early.
const (
	fuzzSeeds  = 8
	fuzzLength = 2048
)

// Check fails the test if an adversary breaks the lock: a plan of faults that
// is drawn together with the seed of all latencies. Plans that a failed check
// left in testdata/locktest are tried first, so they stay as regression tests;
// then a run without any fault; then 50 adversaries for each of rapid's checks
// (-rapid.checks, by default 100; -short: a fifth).
//
// The same adversaries come again with -rapid.seed; the very run that broke the
// lock with -locktest.plan, as the failure says.
func Check(t testing.TB, l Lock) {
	t.Helper()
	c := begin(t, l)
	defer c.close()
	c.search()
	c.report()
}

// Fuzz is Check for go test -fuzz: the fuzzer's bytes choose the adversary.
// Without -fuzz, a few adversaries play.
func Fuzz(f *testing.F, l Lock) {
	f.Helper()
	seeds := rand.New(rand.NewPCG(1, 2))
	for range fuzzSeeds {
		input := make([]byte, fuzzLength)
		for i := range input {
			input[i] = byte(seeds.Uint32())
		}
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		t.Helper()
		c := begin(t, l)
		defer c.close()
		if *planFlag != "" {
			c.repeat(*planFlag)
		} else {
			rapid.MakeFuzz(c.drawn(1))(t, input)
		}
		c.report()
	})
}

// number draws 64 bits, all equally welcome: rapid likes small numbers, and
// they would be the same few adversaries over and over.
func number(r *rapid.T, label string) uint64 {
	b := rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(r, label)
	return binary.LittleEndian.Uint64(b)
}

// quiet keeps to itself what rapid says of a search that the failure tells
// better.
type quiet struct{ testing.TB }

func (quiet) Log(...any)          {}
func (quiet) Logf(string, ...any) {}

// check is one call of Check.
type check struct {
	testing.TB
	game
	failure string // why the test fails; nothing more is played then
}

func begin(t testing.TB, l Lock) *check {
	t.Helper()
	s, err := newSubject(l)
	if err != nil {
		t.Fatal(err)
	}
	return &check{TB: t, game: game{subject: s}}
}

// report fails the test if there is a reason.
func (c *check) report() {
	c.Helper()
	if c.failure != "" {
		c.Fatal(c.failure)
	}
}

// search plays until the lock is broken or has stood its test.
func (c *check) search() {
	if *planFlag != "" {
		c.repeat(*planFlag)
		return
	}
	c.regression()
	if c.failure == "" { // without any fault
		c.judge(c.play(sim.Plan{}, 1))
	}
	if c.failure == "" {
		rapid.Check(quiet{c.TB}, c.drawn(burst))
	}
}

// drawn plays with so many adversaries for a draw of rapid's. It draws before
// the run begins, since the simulated programs run as coroutines. A property
// that has failed passes from then on, so that rapid does not shrink: an
// adversary is a number, which has no smaller version, and its plan has been
// made small.
func (c *check) drawn(adversaries uint64) func(*rapid.T) {
	return func(r *rapid.T) {
		adversary, seed := number(r, "adversary"), number(r, "seed")
		for i := uint64(0); i < adversaries && c.failure == ""; i++ {
			c.judge(c.play(scenarios.DrawPlan(adversary+i, c.adversary), seed+i))
		}
	}
}

// judge notes the failure if the lock is broken, and keeps its plan.
func (c *check) judge(b *Broken, err error) {
	switch {
	case err != nil:
		c.failure = "locktest: " + err.Error()
	case b != nil:
		file, err := save(c.Name(), b)
		c.failure = c.describe(b, file)
		if err != nil {
			c.failure += "\nbut the plan could not be written: " + err.Error()
		}
	}
}

// planDir is where go test keeps what a package's tests need.
var planDir = filepath.Join("testdata", "locktest")

// planName is the file of a test's plan for one design.
func planName(test, design string) string {
	safe := regexp.MustCompile(`[^A-Za-z0-9_.-]+`)
	return filepath.Join(planDir, safe.ReplaceAllString(test, "-")+"."+safe.ReplaceAllString(design, "-")+".yaml")
}

func save(test string, b *Broken) (string, error) {
	name := planName(test, b.Plan.Design)
	if err := os.MkdirAll(planDir, 0o777); err != nil {
		return name, err
	}
	return name, os.WriteFile(name, scenarios.MarshalPlanFile(b.Plan), 0o666)
}

// describe is the failure's text.
func (c *check) describe(b *Broken, file string) string {
	var w strings.Builder
	fmt.Fprintf(&w, "%s on %s is broken: %s \n\n", b.Plan.Design, b.Plan.Resource, strings.Join(b.Found, ", "))
	fmt.Fprintf(&w, "%s\nverdict %s, lock %s; must never happen: %s\n", b.Story, b.Plan.Verdict, b.Plan.Lock, strings.Join(c.never, ", "))
	for _, enough := range b.Enough {
		fmt.Fprintf(&w, "%s\n", enough)
	}
	fmt.Fprintf(&w, "\n%s:\n%s", file, indent(string(scenarios.MarshalPlanFile(b.Plan))))
	fmt.Fprintf(&w, "\nrepeat it here with: %s", command(c.Name(), file))
	return w.String()
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ") + "\n"
}

// command repeats a plan. Each level of a test's name is a pattern of its own.
func command(test, file string) string {
	levels := strings.Split(test, "/")
	for i, l := range levels {
		levels[i] = "^" + regexp.QuoteMeta(l) + "$"
	}
	return fmt.Sprintf("go test -run %s -locktest.plan %s", scenarios.ShellWord(strings.Join(levels, "/")), scenarios.ShellWord(file))
}

// repeat runs the plan in a file. A plan for another design than this call's
// is another call's.
func (c *check) repeat(file string) {
	b, was, err := c.replay(file)
	switch {
	case err != nil:
		c.failure = "locktest: " + err.Error()
	case was.Design != c.Design.Name:
		c.Logf("%s is about %s and not about %s: left out", file, was.Design, c.Design.Name)
	case b == nil:
		c.Logf("%s no longer breaks %s", file, was.Design)
	default:
		c.failure = c.describe(b, file)
		if b.Plan.TraceHash != was.TraceHash {
			c.failure += "\nthis is not the run that was recorded: the lock, or locklab, has changed since"
		}
	}
}

// regression tries the plan that broke the lock in this test before, if any.
// One that no longer applies, to a process that is no more, say, is passed over.
func (c *check) regression() {
	file := planName(c.Name(), c.Design.Name)
	b, _, err := c.replay(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		c.Logf("%s is passed over: %v", file, err)
	case b != nil:
		c.failure = c.describe(b, file)
	}
}

// replay runs a plan file against the lock. What it returns of the lock is nil
// if the plan no longer breaks it, or is about another.
func (c *check) replay(file string) (*Broken, *scenarios.PlanFile, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	p, err := scenarios.LoadPlanFile(data, file)
	if err != nil || p.Design != c.Design.Name {
		return nil, p, err
	}
	again := c.Case
	again.Plan, again.Params = p.Plan, p.Params
	b, err := tell(again, p.Seed, c.never)
	return b, p, p.Locate(err)
}
