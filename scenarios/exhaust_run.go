package scenarios

import (
	"context"
	"slices"

	"locklab/checker"
	"locklab/sim"
)

// explorer walks through the placements level by level: the plans with one
// fault are the parents of those with two.
type explorer struct {
	ExhaustConfig
	seed    uint64
	blows   []blow
	names   []string // of the processes, by number
	servers []bool
	pauses  bool // pauses are among the faults
	workers []*explorerWorker
	parents []*node // the plans of the last level in which a further fault is placed
	found   [answerCount]*firsts
	runs    int64 // in all, for the progress

	// For the test of the pruning: place faults also where they cannot tell,
	// and look at every run.
	brute bool
	onRun func(*Result, []sim.Fault)
}

// node is a plan as a list that ends in the plan without faults, nil.
type node struct {
	parent *node
	placement
}

// explorerWorker is what one goroutine needs for its runs.
type explorerWorker struct {
	r     *Runner
	s     surveyor
	watch *sim.Watch
}

// batch is how many parents are in work at once, and chunk how many of their
// children a worker takes at a time. Neither shows in the result.
const (
	batch = 64
	chunk = 128
)

func newExplorer(c ExhaustConfig) (*explorer, error) {
	x := &explorer{ExhaustConfig: c, seed: 1, pauses: slices.Contains(c.Kinds, sim.Pause)}
	for range max(c.Workers, 1) {
		r, err := NewRunner(Case{Design: c.Design, Resource: c.Resource, Params: c.Params})
		if err != nil {
			x.close()
			return nil, err
		}
		w := &explorerWorker{r: r, s: surveyor{r: r}}
		if c.Watch != nil {
			w.watch = c.Watch()
		}
		x.workers = append(x.workers, w)
	}
	r := x.workers[0].r
	for _, p := range r.world.Processes() {
		x.names, x.servers = append(x.names, p.Name()), append(x.servers, p.IsServer())
	}
	var err error
	if x.blows, err = blowsFor(r, c.Kinds, c.AllPoints); err != nil {
		x.close()
	}
	return x, err
}

func (x *explorer) close() {
	for _, w := range x.workers {
		w.r.Close()
	}
}

// level runs every plan of so many faults. With an error the tally holds what
// was run until then.
func (x *explorer) level(ctx context.Context, faults int) (*tally, error) {
	total := &tally{}
	if faults == 0 {
		x.parents = []*node{nil}
		_, err := x.children(x.workers[0], nil, []placement{{blow: -1}}, total, false)
		x.runs++
		return total, err
	}
	deeper := faults < x.MaxFaults
	seen := map[fingerprint]bool{}
	var next []*node
	for from := 0; from < len(x.parents); from += batch {
		parents := x.parents[from:min(from+batch, len(x.parents))]
		jobs, err := x.jobs(ctx, parents, deeper)
		if err == nil {
			err = x.work(ctx, len(jobs), func(w *explorerWorker, i int) (err error) {
				j := &jobs[i]
				j.after, err = x.children(w, j.parent, j.places, &j.tally, deeper)
				return err
			})
		}
		if err != nil {
			x.count(jobs, total)
			return total, err
		}
		x.count(jobs, total)
		for i := range jobs {
			next = jobs[i].fresh(next, seen, total, x.brute)
		}
		x.report(ExhaustProgress{Faults: faults, Parents: len(x.parents), Done: from + len(parents), Executions: x.runs})
	}
	x.parents = next
	return total, nil
}

func (x *explorer) count(jobs []job, total *tally) {
	for i := range jobs {
		total.merge(&jobs[i].tally)
		x.runs += jobs[i].tally.runs
	}
}

func (x *explorer) report(p ExhaustProgress) {
	if x.Progress != nil {
		x.Progress(p)
	}
}

// job is some of the plans that one parent leads to.
type job struct {
	parent *node
	places []placement
	tally  tally
	after  []aftermath // of each, where further faults are to be placed
}

// aftermath is what decides whether a further fault need be placed in a run.
type aftermath struct {
	hash uint64
	idle bool
}

// fingerprint names a run with its blows. Two plans with the same blows and
// the same trace struck in the same instants, and so went through the same
// states: a further fault has the same effect in both.
type fingerprint struct {
	hash  uint64
	blows [ExhaustFaultsMax]int32
}

// fresh appends the job's plans in which a further fault is to be placed. Two
// kinds are left out. A plan whose last fault found nothing to strike is the
// plan without it; only a message fault may yet be waiting, for a message that
// a further fault brings about, and then stands at that message in another
// plan. And of plans that give the same run the first is enough.
func (j *job) fresh(next []*node, seen map[fingerprint]bool, total *tally, brute bool) []*node {
	for i, a := range j.after {
		n := &node{j.parent, j.places[i]}
		f := fingerprint{hash: a.hash}
		for k, at := 0, n; at != nil; k, at = k+1, at.parent {
			f.blows[k] = at.blow
		}
		if (a.idle || seen[f]) && !brute {
			total.same++
			continue
		}
		seen[f] = true
		next = append(next, n)
	}
	return next
}

// jobs surveys the parents' runs and cuts the placements of a further fault
// into chunks, in the order of the parents.
func (x *explorer) jobs(ctx context.Context, parents []*node, deeper bool) ([]job, error) {
	places := make([][]placement, len(parents))
	err := x.work(ctx, len(parents), func(w *explorerWorker, i int) error {
		w.r.plan.Faults = x.faults(parents[i], true)
		w.begin(x)
		defer w.end()
		res, err := w.s.survey(x.seed)
		if err != nil || res.Failure != nil {
			return err
		}
		from := 0
		if p := parents[i]; p != nil {
			from = w.s.siteOf(p.place)
		}
		places[i] = x.placements(&w.s, from, !deeper)
		return nil
	})
	var jobs []job
	for i, p := range parents {
		for rest := places[i]; len(rest) > 0; {
			n := min(chunk, len(rest))
			jobs = append(jobs, job{parent: p, places: rest[:n]})
			rest = rest[n:]
		}
	}
	return jobs, err
}

// work calls do for every number below n, from all workers.
func (x *explorer) work(ctx context.Context, n int, do func(w *explorerWorker, i int) error) error {
	return InParallel(ctx, len(x.workers), n, func(worker, i int) error { return do(x.workers[worker], i) })
}

// children runs the parent's plan with each of the placements as its last
// fault.
func (x *explorer) children(w *explorerWorker, parent *node, places []placement, t *tally, deeper bool) ([]aftermath, error) {
	faults := x.faults(parent, true)
	if places[0].blow >= 0 {
		faults = append(faults, sim.Fault{})
	}
	w.r.plan.Faults = faults
	var after []aftermath
	mode := sim.TraceOff
	if deeper { // only who is to have children needs a name
		after, mode = make([]aftermath, 0, len(places)), sim.TraceHash
	}
	for _, p := range places {
		if p.blow >= 0 {
			faults[len(faults)-1] = x.fault(p, true)
		}
		w.begin(x)
		res, err := w.r.Run(x.seed, mode)
		w.end()
		if err != nil {
			return after, err
		}
		if deeper {
			last := res.Faults[len(res.Faults)-1]
			after = append(after, aftermath{res.Hash, !last.Fired || last.Idle || res.Failure != nil})
		}
		if x.onRun != nil {
			x.onRun(res, faults)
		}
		t.add(res, faults, parent, p)
	}
	return after, nil
}

// begin and end tell the watchdog of a run.
func (w *explorerWorker) begin(x *explorer) {
	if w.watch != nil {
		c := w.r.Case
		w.watch.Begin(func() string {
			return "locklab exhaust --design " + c.Design.Name + " --resource " + c.Resource.Name
		})
	}
}

func (w *explorerWorker) end() {
	if w.watch != nil {
		w.watch.End()
	}
}

// faults writes a plan out, the first fault first.
func (x *explorer) faults(n *node, resolved bool) []sim.Fault {
	if n == nil || n.blow < 0 {
		return nil
	}
	return append(x.faults(n.parent, resolved), x.fault(n.placement, resolved))
}

func (x *explorer) fault(p placement, resolved bool) sim.Fault {
	f := x.blows[p.blow].fault
	if resolved {
		f = x.blows[p.blow].resolved
	}
	f.Trigger.Before = sim.PlacePattern{Proc: x.names[p.place.Proc], Section: p.place.Section, Phase: p.place.Phase, Op: p.place.Op}
	return f
}

// tally counts what runs showed.
type tally struct {
	runs, same, panics int64
	panicked           *node // the first that did
	counts             [answerCount]int64
	answers            [answerCount]map[combo]*best
}

// best is the shortest run among those of one answer and one combination.
type best struct {
	at     *node
	events int64
	runs   int64
}

// shorter prefers fewer events and, among equals, what was found first.
func (b *best) shorter(than *best) bool { return b.events < than.events }

// add counts one run.
func (t *tally) add(res *Result, faults []sim.Fault, parent *node, p placement) {
	t.runs++
	if res.Failure != nil {
		if t.panics++; t.panics == 1 {
			t.panicked = &node{parent, p}
		}
		return
	}
	answers := [3]int{answerOf(res.Verdict), lockAnswerOf(res.Report.Lock), answerOf(checker.VerdictSafe)}
	if losesUpdate(res) {
		answers[2] = updateLost
	}
	for i, a := range answers {
		if i < 2 || a == updateLost {
			t.counts[a]++
		}
		if a == answerOf(checker.VerdictSafe) || a == lockAnswerOf(checker.LockKept) {
			continue
		}
		c := comboOf(faults)
		b := t.best(a, c)
		b.runs++
		if b.at == nil || res.Events < b.events {
			b.at, b.events = &node{parent, p}, res.Events
		}
	}
}

// losesUpdate reports whether the run cost an update.
func losesUpdate(res *Result) bool {
	for i := range res.Report.Findings {
		switch res.Report.Findings[i].Kind {
		case checker.LostUpdate, checker.DoubleApply, checker.WriteLost:
			return true
		}
	}
	return false
}

func (t *tally) best(answer int, c combo) *best {
	if t.answers[answer] == nil {
		t.answers[answer] = map[combo]*best{}
	}
	b := t.answers[answer][c]
	if b == nil {
		b = &best{}
		t.answers[answer][c] = b
	}
	return b
}

// merge adds what a later job counted.
func (t *tally) merge(later *tally) {
	t.runs += later.runs
	t.same += later.same
	t.panics += later.panics
	if t.panicked == nil {
		t.panicked = later.panicked
	}
	for a := range answerCount {
		t.counts[a] += later.counts[a]
		for c, b := range later.answers[a] {
			mine := t.best(a, c)
			mine.runs += b.runs
			if mine.at == nil || b.shorter(mine) {
				mine.at, mine.events = b.at, b.events
			}
		}
	}
}

// level is the tally as it is told.
func (t *tally) level(faults int, complete bool) ExhaustLevel {
	l := ExhaustLevel{Faults: faults, Executions: t.runs, Same: t.same, Lost: t.counts[updateLost], Panics: t.panics, Complete: complete,
		Verdicts: map[string]int64{}, Locks: map[string]int64{}}
	for v := range verdictCount {
		if n := t.counts[v]; n > 0 {
			l.Verdicts[checker.Verdict(v).String()] = n
		}
	}
	for k := range lockCount {
		if n := t.counts[verdictCount+k]; n > 0 {
			l.Locks[checker.LockAnswer(k).String()] = n
		}
	}
	return l
}
