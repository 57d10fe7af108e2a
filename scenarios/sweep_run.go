package scenarios

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"locklab/checker"
	"locklab/sim"
)

// SweepOptions say how a sweep is run. They do not influence what it shows.
type SweepOptions struct {
	Workers  int            // goroutines; 0: GOMAXPROCS
	Progress func(runs int) // called by the workers after so many more runs; nil: nobody asks
	// Done is called with each unit, one at a time and in their order, however
	// many workers there are.
	Done     func(Unit) error
	Watchdog *sim.Watchdog // nil: none
}

// InternalError is a fault of locklab itself, or of a program that it runs, at
// one run of a sweep.
type InternalError struct {
	Err     error
	Command string // repeats the run
}

// Error says what happened, and how to repeat it.
func (e *InternalError) Error() string {
	return fmt.Sprintf("%v; please report it with: %s", e.Err, e.Command)
}

// Unwrap returns the fault.
func (e *InternalError) Unwrap() error { return e.Err }

const (
	// porcupineEvery is of how many seeds one is also checked by porcupine, which takes far longer than
	// the run; porcupineMax how long, on the host's clock, one of its views may then take.
	porcupineEvery = 1_000
	porcupineMax   = time.Second
	// progressEvery is after how many runs a worker tells its progress.
	progressEvery = 50
	// runnersMax is how many worlds a worker keeps, about 100 kB each.
	runnersMax = 64
)

// Run runs the units that are missing in the result and adds them to it. What
// a unit shows depends on its seeds alone. When the context ends, units that
// have been begun are dropped and those that are complete stay: the error is
// then the context's.
func (s *Sweep) Run(ctx context.Context, result *SweepResult, o SweepOptions) error {
	todo := s.todo(result)
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next, done := make(chan int64), make(chan Unit, workers)
	var wg sync.WaitGroup
	for range min(workers, len(todo)) {
		wg.Go(func() {
			w := &sweepWorker{sweep: s, options: &o, runners: map[int]*Runner{}}
			if o.Watchdog != nil {
				w.watch = o.Watchdog.Worker()
			}
			defer w.close()
			for n := range next {
				u, err := w.unit(ctx, n)
				if err != nil {
					cancel(err)
					return
				}
				done <- u
			}
		})
	}
	go func() {
		defer close(done)
		defer wg.Wait()
		defer close(next)
		for _, n := range todo {
			select {
			case next <- n:
			case <-ctx.Done():
				return
			}
		}
	}()
	if err := collect(result, todo, done, o.Done, cancel); err != nil {
		return err
	}
	if len(todo) > 0 && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// todo lists the units of the shard that the result lacks.
func (s *Sweep) todo(result *SweepResult) []int64 {
	var todo []int64
	for n := range s.Spec.units() {
		if _, ok := result.units[n]; !ok && s.Spec.mine(n) {
			todo = append(todo, n)
		}
	}
	return todo
}

// MissingRuns is how many runs of the sweep, or its shard, the result lacks.
func (s *Sweep) MissingRuns(result *SweepResult) int64 {
	runs := int64(0)
	for _, n := range s.todo(result) {
		_, _, k := s.Spec.span(n)
		runs += k
	}
	return runs
}

// collect takes what the workers finish and passes it on in the units' order;
// at an early end, also what stands behind a gap.
func collect(result *SweepResult, todo []int64, done <-chan Unit, pass func(Unit) error, cancel context.CancelCauseFunc) error {
	var failed error
	put := func(u Unit) {
		if failed == nil {
			failed = result.Add(u)
		}
		if failed == nil && pass != nil {
			failed = pass(u)
		}
		if failed != nil {
			cancel(failed)
		}
	}
	waiting := map[int64]Unit{}
	passed := 0
	for u := range done {
		waiting[u.Number] = u
		for ; passed < len(todo); passed++ {
			u, ok := waiting[todo[passed]]
			if !ok {
				break
			}
			delete(waiting, u.Number)
			put(u)
		}
	}
	for ; passed < len(todo); passed++ {
		if u, ok := waiting[todo[passed]]; ok {
			put(u)
		}
	}
	return failed
}

// sweepWorker is one goroutine of a sweep. It keeps a world for each cell.
type sweepWorker struct {
	sweep   *Sweep
	options *SweepOptions
	runners map[int]*Runner
	watch   *sim.Watch
}

func (w *sweepWorker) close() {
	for _, r := range w.runners {
		r.Close()
	}
	clear(w.runners)
}

// runner returns the worker's runner for a cell.
func (w *sweepWorker) runner(cell int) (*Runner, error) {
	if r := w.runners[cell]; r != nil {
		return r, nil
	}
	if len(w.runners) == cmp.Or(w.sweep.worlds, runnersMax) {
		w.close()
	}
	r, err := NewRunner(w.sweep.cells[cell])
	if err == nil {
		w.runners[cell] = r
	}
	return r, err
}

// unit runs one unit.
func (w *sweepWorker) unit(ctx context.Context, number int64) (u Unit, err error) {
	cell, from, runs := w.sweep.Spec.span(number)
	seed := from
	defer func() {
		if r := recover(); r != nil {
			err = &InternalError{fmt.Errorf("panic outside the simulated programs: %v\n%s", r, debug.Stack()), w.sweep.Spec.Command(cell, seed)}
		}
	}()
	u = Unit{Number: number}
	for i := range runs {
		if ctx.Err() != nil {
			return u, context.Cause(ctx)
		}
		seed = from + uint64(i)
		if err := w.run(&u, cell, seed); err != nil {
			return u, err
		}
		if told := (i + 1) % progressEvery; w.options.Progress != nil && (told == 0 || i+1 == runs) {
			if told == 0 {
				told = progressEvery
			}
			w.options.Progress(int(told))
		}
	}
	return u, nil
}

// run runs one seed and counts it.
func (w *sweepWorker) run(u *Unit, cell int, seed uint64) error {
	r, err := w.runner(cell)
	if err != nil {
		return err
	}
	tally := &u.Tally
	if a := w.sweep.adversary; a != nil {
		plan := DrawPlan(seed, *a)
		if hasOperatorsFault(&plan) { // of the drawn plan: the same runs under every design
			if u.Operator == nil {
				u.Operator = &Tally{}
			}
			tally = u.Operator
		}
		r.follow(r.Cast(plan))
	}
	if w.watch != nil {
		w.watch.Begin(func() string { return w.sweep.Spec.Command(cell, seed) })
		defer w.watch.End()
	}
	res, err := r.Run(seed, sim.TraceOff)
	if err != nil {
		return fmt.Errorf("%s, seed %d: %w", w.sweep.Spec.Cells[cell], seed, err)
	}
	tally.see(res)
	if res.Failure != nil { // its world may hold what the panic left behind
		r.Close()
		delete(w.runners, cell)
		return nil
	}
	if seed%porcupineEvery == 1 {
		if err := checker.CrossCheck(res.Report, checker.Porcupine(res.History, porcupineMax)); err != nil {
			return &InternalError{err, w.sweep.Spec.Command(cell, seed)}
		}
	}
	return nil
}
