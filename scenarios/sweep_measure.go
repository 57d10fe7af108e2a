package scenarios

import (
	"time"

	"locklab/checker"
)

// SweepMeasure is a number of a run of which a sweep shows the spread over its
// seeds. Measures are never verdicts.
type SweepMeasure struct {
	Name  string // stable; a duration's ends in _ns
	About string // one line
	// Of measures a run. ok is false for a run that has nothing to measure;
	// Endless stands for what had not come to its end when the run did.
	Of func(h *checker.History) (d time.Duration, ok bool)
}

// Endless is longer than every run.
const Endless time.Duration = 1<<63 - 1

// measureCount is how many measures a tally has room for.
const measureCount = 1

// SweepMeasures lists the measures in their documented order.
func SweepMeasures() [measureCount]SweepMeasure {
	return [...]SweepMeasure{
		{"failover_ns", "from an owner's crash to the next owner's first accepted change", Failover},
	}
}

// Failover is the longest time from the crash of a client that believed to hold
// the lock to the first change that the resource accepted of another tenure.
func Failover(h *checker.History) (longest time.Duration, ok bool) {
	for i := range h.Ops {
		if o := &h.Ops[i]; o.Kind == checker.Acquire && o.Loss == checker.LossCrashed && o.Outcome == checker.OK {
			longest, ok = max(longest, failoverFrom(h, o)), true
		}
	}
	return longest, ok
}

func failoverFrom(h *checker.History, crashed *checker.Op) time.Duration {
	next := Endless
	for i := range h.Ops {
		o := &h.Ops[i]
		changes := o.Kind == checker.Write || o.Kind == checker.Append
		if changes && o.Decision == checker.Accepted && o.Tenure != crashed.Tenure && crashed.BelievesUntil.Before(o.Effect) {
			next = min(next, time.Duration(o.Effect.At-crashed.BelievesUntil.At))
		}
	}
	return next
}
