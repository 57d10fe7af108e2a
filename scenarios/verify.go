package scenarios

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"locklab/sim"
)

// Mismatch is a run that did not repeat: the place where its two traces part.
type Mismatch struct {
	Case   Case
	Seed   uint64
	Hashes [2]uint64
	Event  int // number of the first event that differs, from 0
	First  string
	Second string
}

// Error describes the mismatch and its first differing event.
func (m *Mismatch) Error() string {
	return fmt.Sprintf("%s with %s on %s, seed %d: trace hash %016x, then %016x; they part at event %d: first %q, then %q",
		m.Case.name(), m.Case.Design.Name, m.Case.Resource.Name, m.Seed, m.Hashes[0], m.Hashes[1], m.Event, m.First, m.Second)
}

func (c *Case) name() string {
	if c.Scenario == nil {
		return "the plan"
	}
	return c.Scenario.Name
}

// EachOf takes each nth of the cases, the first included: a sample that is the
// same everywhere.
func EachOf(cases []Case, n int) []Case {
	var out []Case
	for i := 0; i < len(cases); i += n {
		out = append(out, cases[i])
	}
	return out
}

// verifyWorkers is the GOMAXPROCS of the second run.
const verifyWorkers = 8

// Verify runs every case twice with a seed, first one after the other at
// GOMAXPROCS 1, then many at once at GOMAXPROCS 8, and compares the trace
// hashes. It returns the hash of each case; the error is a *Mismatch if a run
// did not repeat, the context's when it ended first. done, if not nil, is called after each run.
func Verify(ctx context.Context, cases []Case, seed uint64, done func()) ([]uint64, error) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	first := make([]uint64, len(cases))
	for i := range cases {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := hashOf(cases[i], seed)
		if err != nil {
			return nil, err
		}
		first[i] = h
		if done != nil {
			done()
		}
	}
	runtime.GOMAXPROCS(verifyWorkers)
	second, err := hashesAtOnce(ctx, cases, seed, done)
	if err != nil {
		return nil, err
	}
	for i := range cases {
		if first[i] != second[i] {
			return nil, part(cases[i], seed, [2]uint64{first[i], second[i]})
		}
	}
	return first, nil
}

// hashOf runs one case in a world of its own.
func hashOf(c Case, seed uint64) (uint64, error) {
	r, err := NewRunner(c)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	res, err := r.Run(seed, sim.TraceHash)
	if err != nil {
		return 0, err
	}
	return res.Hash, nil
}

// hashesAtOnce runs the cases on several workers.
func hashesAtOnce(ctx context.Context, cases []Case, seed uint64, done func()) ([]uint64, error) {
	hashes := make([]uint64, len(cases))
	var mu sync.Mutex
	err := InParallel(ctx, verifyWorkers, len(cases), func(_, i int) (err error) {
		hashes[i], err = hashOf(cases[i], seed)
		if done != nil {
			mu.Lock()
			done()
			mu.Unlock()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return hashes, nil
}

// part runs a case twice more with everything recorded and finds where the
// traces part. They may not part again: then only the hashes are told.
func part(c Case, seed uint64, hashes [2]uint64) *Mismatch {
	m := &Mismatch{Case: c, Seed: seed, Hashes: hashes, Event: -1}
	var lines [2][]string
	for i := range lines {
		r, err := NewRunner(c)
		if err != nil {
			return m
		}
		res, err := r.Run(seed, sim.TraceRecord)
		if err == nil {
			for _, e := range res.Trace {
				lines[i] = append(lines[i], res.World.Describe(e))
			}
		}
		r.Close()
	}
	for i := range max(len(lines[0]), len(lines[1])) {
		a, b := lineAt(lines[0], i), lineAt(lines[1], i)
		if a != b {
			m.Event, m.First, m.Second = i, a, b
			break
		}
	}
	return m
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the trace has ended)"
}
