package locktest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"locklab/models"
	"locklab/scenarios"
	"locklab/scenarios/locktest"
	"locklab/sim"
)

// unlocked lets everybody in.
type unlocked struct{}

func (unlocked) Acquire(*sim.Task) (models.Grant, error) { return models.Grant{}, nil }
func (unlocked) Renew(*sim.Task, *models.Grant) error    { return nil }
func (unlocked) Release(*sim.Task, *models.Grant) error  { return nil }
func noLock(models.Options, *sim.Process) models.Lock    { return unlocked{} }
func bad() locktest.Lock                                 { return locktest.Lock{Name: "no-lock", Client: noLock} }

// good is a lock that stands every pause, under the same name.
func good(t *testing.T) locktest.Lock {
	d, err := scenarios.FindDesign("redis/lua-token")
	require.NoError(t, err)
	return locktest.Lock{Name: "no-lock", Build: d.Build, Tokens: d.Tokens, Promise: d.Promise, Resource: "fenced-reads", Faults: []string{"pause"}}
}

// witness is a test that may fail.
type witness struct {
	testing.TB
	failure string
	log     strings.Builder
}

func (w *witness) Logf(format string, args ...any) { fmt.Fprintf(&w.log, format+"\n", args...) }
func (w *witness) Fatal(args ...any)               { w.failure = fmt.Sprint(args...); panic(w) }

// check returns what a check says when it fails, and what it logs.
func check(t *testing.T, l locktest.Lock) (failure, log string) {
	w := &witness{TB: t}
	defer func() {
		if r := recover(); r != nil && r != any(w) {
			panic(r)
		}
		failure, log = w.failure, w.log.String()
	}()
	locktest.Check(w, l)
	return
}

func TestCheckTellsHowALockIsBroken(t *testing.T) {
	t.Chdir(t.TempDir())
	failure, _ := check(t, bad())
	const file = "testdata/locktest/TestCheckTellsHowALockIsBroken.no-lock.yaml"
	for _, part := range []string{
		"no-lock on plain is broken: two-writers, lost-update",
		"! TWO-WRITERS: client-",
		"must never happen: two-writers, lost-update, stuck, broken",
		file + ":\n    scenario: locktest\n",
		"    plan: []\n",
		"go test -run '^TestCheckTellsHowALockIsBroken$' -locktest.plan " + file,
	} {
		require.Contains(t, failure, part)
	}
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	_, err = scenarios.LoadPlanFile(data, file)
	require.NoError(t, err)
	require.NoDirExists(t, "testdata/rapid", "one file for one failure")
}

// Everybody is let in, three at a time: too many for a lock and for two
// permits, and right for three.
func TestCheckKnowsCapacity(t *testing.T) {
	t.Chdir(t.TempDir())
	for permits, broken := range map[int]bool{2: true, 3: false} {
		l := bad()
		l.Capacity = func(models.Options) int { return permits }
		l.Faults = []string{"delay"}
		l.Params = func(p *scenarios.Params) { p.Sections = 1 }
		failure, _ := check(t, l)
		if !broken {
			require.Empty(t, failure)
			continue
		}
		require.Contains(t, failure, "TWO-WRITERS: 3 tenures were at work")
	}
}

func TestCheckTriesFirstWhatBrokeTheLockBefore(t *testing.T) {
	t.Chdir(t.TempDir())
	first, _ := check(t, bad())
	again, _ := check(t, bad())
	require.NotEmpty(t, first)
	// The second time nothing is searched for or made smaller.
	require.Equal(t, withoutThresholds(first), withoutThresholds(again))

	file := "testdata/locktest/TestCheckTriesFirstWhatBrokeTheLockBefore.no-lock.yaml"
	require.NoError(t, os.WriteFile(file, []byte("plan: [\n"), 0o666))
	failure, log := check(t, bad())
	require.Contains(t, log, file+" is passed over: "+file+":")
	require.NotEmpty(t, failure)
}

func withoutThresholds(s string) string {
	return regexp.MustCompile(`(?m)^.* is enough here, .*\n`).ReplaceAllString(s, "")
}

func TestCheckPassesALockThatWasMended(t *testing.T) {
	t.Chdir(t.TempDir())
	failure, _ := check(t, bad())
	require.NotEmpty(t, failure)
	failure, _ = check(t, good(t))
	require.Empty(t, failure)
}

func TestCheckShowsAPanic(t *testing.T) {
	t.Chdir(t.TempDir())
	l := bad()
	l.Client = func(models.Options, *sim.Process) models.Lock { return nil }
	failure, _ := check(t, l)
	require.Contains(t, failure, "is broken: panic")
	require.Contains(t, failure, "a program panics: ")
}

func TestLockIsCheckedBeforeItIsRun(t *testing.T) {
	for _, c := range []struct {
		change func(*locktest.Lock)
		want   string
	}{
		{func(l *locktest.Lock) { l.Name = "No lock" }, "locktest.Lock No lock: Name: "},
		{func(l *locktest.Lock) { l.Client = nil }, "locktest.Lock no-lock: Client is nil; it makes one client's handle on the lock"},
		{func(l *locktest.Lock) { l.Resource = "fence" }, "locktest.Lock no-lock: Resource: "},
		{func(l *locktest.Lock) { l.Resource = "fenced" }, "resource fenced compares ordered tokens, and no-lock hands out none"},
		{func(l *locktest.Lock) { l.Never = []string{"two-writer"} }, "locktest.Lock no-lock: Never: "},
		{func(l *locktest.Lock) { l.Faults = []string{"pauze"} }, "locktest.Lock no-lock: Faults: "},
		{func(l *locktest.Lock) { l.Except = []string{"pauze"} }, "locktest.Lock no-lock: Except: "},
		{func(l *locktest.Lock) { l.Faults, l.Except = []string{"pause"}, []string{"pause"} }, "Except leaves no fault of pause"},
		{func(l *locktest.Lock) { l.Params = func(p *scenarios.Params) { p.Clients = -1 } }, "clients"},
	} {
		l := bad()
		c.change(&l)
		_, err := locktest.Find(l, 10)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestFindRepeatsItself(t *testing.T) {
	d, err := scenarios.FindDesign("redis/lua-release")
	require.NoError(t, err)
	find := func() *locktest.Broken {
		b, err := locktest.Find(locktest.Lock{Build: d.Build, Tokens: d.Tokens, Promise: d.Promise, Faults: []string{"pause"}}, 1000)
		require.NoError(t, err)
		require.NotNil(t, b)
		return b
	}
	first := find()
	require.Equal(t, first, find())
	require.Len(t, first.Enough, 1)
	require.Contains(t, first.Enough[0], "a pause of ")
}

// TestAsAUserDoes builds a module of its own that requires locklab, and runs
// its test: it fails, and the command that it prints repeats the failure.
func TestAsAUserDoes(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	copyFile(t, filepath.Join("testdata", "mylock", "mylock_test.go"), filepath.Join(dir, "mylock_test.go"))
	copyFile(t, filepath.Join(root, "go.sum"), filepath.Join(dir, "go.sum"))
	module := "module example.org/mylock\n\ngo 1.26\n\nrequire locklab v0.0.0\n\nreplace locklab => " + root + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(module), 0o666))

	out := goTest(t, dir, "go test -rapid.seed=1")
	require.Contains(t, out, "mine on plain is broken: ")
	require.Contains(t, out, "client-1 acquires the lock")
	found := regexp.MustCompile(`repeat it here with: (.+)`).FindStringSubmatch(out)
	require.NotNil(t, found, out)

	again := goTest(t, dir, found[1])
	require.NotContains(t, again, "not the run that was recorded")
	story := regexp.MustCompile(`(?s)mine on plain is broken: .*?\n *verdict `)
	require.NotEmpty(t, story.FindString(out))
	require.Equal(t, story.FindString(out), story.FindString(again))
}

// goTest runs a command in a directory and requires that a test fails.
func goTest(t *testing.T, dir, command string) string {
	t.Helper()
	c := exec.Command("sh", "-c", command)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := c.CombinedOutput()
	require.Error(t, err, "%s", out)
	require.Contains(t, string(out), "--- FAIL: TestMine", "%s", out)
	return string(out)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, data, 0o666))
}

// A lock that lets everybody in loses updates without any fault.
func ExampleFind() {
	b, err := locktest.Find(locktest.Lock{Client: noLock}, 0)
	if err != nil {
		panic(err)
	}
	fmt.Println(b.Found, "with", len(b.Plan.Plan.Faults), "faults")
	// Output: [two-writers lost-update] with 0 faults
}
