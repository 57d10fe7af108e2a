package scenarios

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"locklab/checker"
	"locklab/models"
	"locklab/sim"
)

// ExhaustFaultsMax is the largest number of faults that Exhaust places at
// once. Each more multiplies the executions by about a thousand.
const ExhaustFaultsMax = 4

// ExhaustParams are the parameters of the baseline: two clients with two
// sections each, and nothing left to chance. A client polls twenty times in a
// lease, so that a lease that runs out is taken soon and few places are polls.
func ExhaustParams(settings []Setting) (Params, error) {
	p := DefaultParams()
	p.Clients, p.Sections = 2, 2
	p.Stagger, p.RetryJitter = 100*time.Millisecond, 0
	p.LatencyMin, p.LatencyMax = time.Millisecond, time.Millisecond
	p.Retry, p.Horizon = 0, 0
	for _, s := range settings {
		if err := p.Set(s.Name, s.Value); err != nil {
			return p, err
		}
	}
	p.Retry = cmp.Or(p.Retry, p.TTL/20)
	p.Horizon = cmp.Or(p.Horizon, 15*p.TTL) // four faults of 2.5 TTL, and the time after which a run is stuck
	if err := p.Validate(); err != nil {
		return p, err
	}
	if p.LatencyMin != p.LatencyMax || p.RetryJitter != 0 {
		return p, fmt.Errorf("exhaust needs a run without chance: latency_min=latency_max and retry_jitter=0s; for random ones there is sweep")
	}
	return p, nil
}

// ExhaustConfig says what Exhaust searches.
type ExhaustConfig struct {
	Design    *models.Design
	Resource  *models.ResourceKind
	Params    Params          // from ExhaustParams
	Kinds     []sim.FaultKind // nil: ExhaustFaults
	MaxFaults int             // 1 to ExhaustFaultsMax
	// AllPoints adds what servers say to each other: the places at which they
	// handle each other's messages, and these messages.
	AllPoints bool
	// KeepGoing goes on to MaxFaults also when fewer already let two write.
	KeepGoing bool

	Workers int // 0: one. They change how long it takes and nothing else
	// Progress, if set, is called now and then, from one goroutine at a time.
	Progress func(ExhaustProgress)
	// Watch, if set, gives each worker its line to the watchdog.
	Watch func() *sim.Watch
}

// ExhaustProgress is how far a search has come.
type ExhaustProgress struct {
	Faults        int // the number of faults that is being placed
	Parents, Done int // plans with one fault fewer: all, and those that are through
	Executions    int64
}

// Exhausted is what a search found.
type Exhausted struct {
	Case
	Kinds     []sim.FaultKind
	Ladder    []string // what was tried where, a line for each kind and reach
	MaxFaults int
	AllPoints bool
	Levels    []ExhaustLevel // by number of faults, from none
	Fewest    []Fewest       // for each answer that was seen, the worst first
	// Panicked is the plan of the first run in which a program panicked, which
	// is a mistake in locklab or in a design of one's own; nil for none.
	Panicked *PlanFile
	// Complete: every placement of up to MaxFaults faults was run.
	Complete bool
	// Stopped: two writers came about with fewer faults, and that was enough.
	Stopped bool
}

// ExhaustLevel is what all placements of one number of faults gave.
type ExhaustLevel struct {
	Faults     int
	Executions int64
	Same       int64 // of them: the same run as an earlier one, so that no further fault was placed in it
	Verdicts   map[string]int64
	Locks      map[string]int64
	Lost       int64 // runs in which an update was lost, whatever their verdict
	Panics     int64
	Complete   bool
}

// Fewest is the fewest faults that give one answer.
type Fewest struct {
	Answer   string // a verdict, "lock broken", "lock overlap" or UpdateLost
	Faults   int
	Runs     int64     // placements of so many faults that give it
	Kinds    []KindRun // which faults do, the most frequent first
	Shortest *PlanFile // the shortest of their runs, shrunk
	Words    []string  // its thresholds
}

// KindRun counts the placements of one combination of kinds.
type KindRun struct {
	Kinds string // "pause", "crash + pause"
	Runs  int64
	Plan  *PlanFile // the shortest of them, shrunk; nil but for two-writers
}

// TwoWriters returns the entry for two writers, nil if there was none.
func (e *Exhausted) TwoWriters() *Fewest {
	for i := range e.Fewest {
		if e.Fewest[i].Answer == checker.VerdictTwoWriters.String() {
			return &e.Fewest[i]
		}
	}
	return nil
}

// Executions counts all runs.
func (e *Exhausted) Executions() int64 {
	n := int64(0)
	for _, l := range e.Levels {
		n += l.Executions
	}
	return n
}

// Headline is the result in one sentence.
func (e *Exhausted) Headline() string {
	last := e.Levels[len(e.Levels)-1].Faults
	all := "all of them"
	if !e.Complete && !e.Stopped {
		all = "not all of them: it was interrupted"
	}
	runs := thousands(e.Executions())
	two := e.TwoWriters()
	switch {
	case two == nil:
		return fmt.Sprintf("no two writers with up to %s: %s executions, %s", countFaults(last), runs, all)
	case two.Faults == 0:
		return fmt.Sprintf("two writers without any fault (%s executions)", runs)
	}
	level := &e.Levels[two.Faults]
	return fmt.Sprintf("%s %s to two writers: %s of %s placements do it",
		countFaults(two.Faults), plural(two.Faults, "leads", "lead"), thousands(two.Runs), thousands(level.Executions))
}

func countFaults(n int) string { return fmt.Sprintf("%d %s", n, plural(n, "fault", "faults")) }

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// thousands writes a number with commas.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Exhaust places every fault of the ladder at every place of a run without
// chance, then every second fault in each of these runs, and so on up to
// MaxFaults. When ctx ends, what was found so far is returned with its error.
func Exhaust(ctx context.Context, c ExhaustConfig) (*Exhausted, error) {
	if c.MaxFaults < 1 || c.MaxFaults > ExhaustFaultsMax {
		return nil, fmt.Errorf("%d faults; allowed are 1 to %d", c.MaxFaults, ExhaustFaultsMax)
	}
	if c.Kinds == nil {
		c.Kinds = ExhaustFaults()
	}
	x, err := newExplorer(c)
	if err != nil {
		return nil, err
	}
	defer x.close()
	out := &Exhausted{Case: x.workers[0].r.Case, Kinds: c.Kinds, Ladder: x.ladder(), MaxFaults: c.MaxFaults, AllPoints: c.AllPoints}
	for faults := 0; faults <= c.MaxFaults; faults++ {
		t, err := x.level(ctx, faults)
		if t != nil {
			out.Levels = append(out.Levels, t.level(faults, err == nil))
			x.keep(t, faults)
			if t.panicked != nil && out.Panicked == nil {
				out.Panicked = x.planOf(t.panicked)
			}
		}
		if err != nil {
			return out, cmp.Or(x.tell(out), err)
		}
		if x.found[answerOf(checker.VerdictTwoWriters)] != nil && !c.KeepGoing && faults < c.MaxFaults {
			out.Stopped = true
			break
		}
	}
	out.Complete = !out.Stopped
	return out, x.tell(out)
}

// The answers that a run can give are numbered: verdicts, then answers about
// the lock.
const (
	verdictCount = int(checker.VerdictTwoWriters) + 1
	lockCount    = int(checker.LockBroken) + 1
	// updateLost: whatever the verdict, an update was lost, or a write was, or
	// took effect twice. Two writers need not cost an update: a stale owner who
	// begins its section late may find the other's all done.
	updateLost  = verdictCount + lockCount
	answerCount = updateLost + 1
)

func answerOf(v checker.Verdict) int        { return int(v) }
func lockAnswerOf(l checker.LockAnswer) int { return verdictCount + int(l) }

// worstFirst orders the answers for people, without those that say that
// nothing happened.
func worstFirst() []int {
	return []int{
		answerOf(checker.VerdictTwoWriters), updateLost, answerOf(checker.VerdictStuck), answerOf(checker.VerdictFenced),
		lockAnswerOf(checker.LockBroken), lockAnswerOf(checker.LockOverlap),
	}
}

// UpdateLost is the answer that an update was lost.
const UpdateLost = "update lost"

func answerWord(a int) string {
	switch {
	case a < verdictCount:
		return checker.Verdict(a).String()
	case a == updateLost:
		return UpdateLost
	}
	return "lock " + checker.LockAnswer(a-verdictCount).String()
}

// firsts is what was found for one answer, at the level that first gave it.
type firsts struct {
	faults int
	combos map[combo]*best
}

// keep remembers, for each answer not seen before, what this level found.
func (x *explorer) keep(t *tally, faults int) {
	for a := range answerCount {
		if x.found[a] == nil && len(t.answers[a]) > 0 {
			x.found[a] = &firsts{faults: faults, combos: t.answers[a]}
		}
	}
}

// tell turns what was found into the result: the shortest run of each answer,
// for two writers also of each combination of kinds, shrunk.
func (x *explorer) tell(out *Exhausted) error {
	for _, a := range worstFirst() {
		if x.found[a] == nil {
			continue
		}
		f, err := x.fewest(a, x.found[a])
		if err != nil {
			return err
		}
		out.Fewest = append(out.Fewest, f)
	}
	return nil
}

func (x *explorer) fewest(answer int, found *firsts) (Fewest, error) {
	out := Fewest{Answer: answerWord(answer), Faults: found.faults}
	var order []combo
	for c := range found.combos {
		order = append(order, c)
	}
	slices.SortFunc(order, func(a, b combo) int {
		return cmp.Or(cmp.Compare(found.combos[b].runs, found.combos[a].runs), cmp.Compare(a, b))
	})
	var shortest *best
	for _, c := range order {
		b := found.combos[c]
		out.Runs += b.runs
		if shortest == nil || b.shorter(shortest) {
			shortest = b
		}
	}
	for _, c := range order {
		b := found.combos[c]
		k := KindRun{Kinds: c.String(), Runs: b.runs}
		if b == shortest || answer == answerOf(checker.VerdictTwoWriters) {
			shrunk, err := x.shrunk(b)
			if err != nil {
				return out, err
			}
			k.Plan = shrunk.File
			if b == shortest {
				out.Shortest, out.Words = shrunk.File, shrunk.Words()
			}
		}
		out.Kinds = append(out.Kinds, k)
	}
	return out, nil
}

// planOf writes a placement down as it was run.
func (x *explorer) planOf(n *node) *PlanFile {
	c := x.workers[0].r.Case
	return &PlanFile{Scenario: "exhaust", Design: c.Design.Name, Resource: c.Resource.Name, Seed: x.seed, Params: c.Params,
		Plan: sim.Plan{Faults: x.faults(n, false)}}
}

// shrunk turns a placement into a plan file as small as it can be.
func (x *explorer) shrunk(b *best) (*Shrunk, error) {
	c := x.workers[0].r.Case
	c.Plan = sim.Plan{Faults: x.faults(b.at, false)}
	title := "Found by exhaust: " + comboOf(c.Plan.Faults).String()
	c.Scenario = &Scenario{Name: "exhaust", Title: title, Params: c.Params, Plan: c.Plan}
	return Shrink(context.Background(), c, x.seed)
}

// combo is the kinds of a plan's faults, sorted: a byte for each.
type combo uint32

func comboOf(faults []sim.Fault) combo {
	var kinds [ExhaustFaultsMax]sim.FaultKind
	for i := range faults {
		kinds[i] = faults[i].Kind
	}
	slices.SortFunc(kinds[:len(faults)], func(a, b sim.FaultKind) int { return cmp.Compare(a, b) })
	c := combo(0)
	for _, k := range kinds {
		c = c<<8 | combo(k)
	}
	return c
}

// String writes the kinds with a plus between them.
func (c combo) String() string {
	var words []string
	for shift := 24; shift >= 0; shift -= 8 {
		if k := sim.FaultKind(c >> shift & 0xff); k != sim.FaultNone {
			words = append(words, k.String())
		}
	}
	return strings.Join(words, " + ")
}
