package scenarios

import (
	"encoding/json"
	"fmt"
	"slices"

	"locklab/checker"
	"locklab/sim"
)

// Count is how many runs showed something, and the lowest seed that did.
type Count struct {
	Runs  int64  `json:"runs"`
	First uint64 `json:"first"` // of no meaning when Runs is 0
}

// see counts one run.
func (c *Count) see(seed uint64) { c.add(Count{1, seed}) }

func (c *Count) add(o Count) {
	if o.Runs > 0 && (c.Runs == 0 || o.First < c.First) {
		c.First = o.First
	}
	c.Runs += o.Runs
}

// Tally is what a number of runs showed. Tallies of different runs add up, in
// any order.
type Tally struct {
	Runs     int64
	Events   int64
	Verdicts [checker.VerdictTwoWriters + 1]Count
	Locks    [checker.LockBroken + 1]Count
	Findings [checker.Stuck + 1]Count // runs with at least one finding of the kind
	Ends     [sim.EndPanic + 1]Count  // how runs ended
	// Measures are the spreads of Measures, in their order.
	Measures [measureCount]Spread
}

// Add adds the tally of other runs.
func (t *Tally) Add(o *Tally) {
	t.Runs += o.Runs
	t.Events += o.Events
	for _, p := range t.pairs(o) {
		for i := range p.to {
			p.to[i].add(p.from[i])
		}
	}
	for i := range t.Measures {
		t.Measures[i].add(&o.Measures[i])
	}
}

// equal reports whether two tallies say the same.
func (t *Tally) equal(o *Tally) bool {
	for i := range t.Measures {
		if !t.Measures[i].equal(&o.Measures[i]) {
			return false
		}
	}
	for _, p := range t.pairs(o) {
		if !slices.Equal(p.to, p.from) {
			return false
		}
	}
	return t.Runs == o.Runs && t.Events == o.Events
}

// tallyPair is one group of counts of two tallies.
type tallyPair struct{ to, from []Count }

func (t *Tally) pairs(o *Tally) [4]tallyPair {
	return [4]tallyPair{{t.Verdicts[:], o.Verdicts[:]}, {t.Locks[:], o.Locks[:]}, {t.Findings[:], o.Findings[:]}, {t.Ends[:], o.Ends[:]}}
}

// see counts one run.
func (t *Tally) see(res *Result) {
	t.Runs++
	t.Events += res.Events
	t.Verdicts[res.Verdict].see(res.Seed)
	t.Locks[res.Report.Lock].see(res.Seed)
	t.Ends[res.Ended].see(res.Seed)
	seen := uint64(0)
	for i := range res.Report.Findings {
		if k := res.Report.Findings[i].Kind; seen&(1<<k) == 0 {
			seen |= 1 << k
			t.Findings[k].see(res.Seed)
		}
	}
	for i, m := range SweepMeasures() {
		if d, ok := m.Of(res.History); ok {
			t.Measures[i].see(d)
		}
	}
}

// Showed counts the runs that showed a violation: a finding, a verdict or an
// answer about the lock, by its word. A word that names a finding as well as
// an answer counts the finding: whatever else the run showed.
func (t *Tally) Showed(word string) Count {
	if k, err := checker.ParseFindingKind(word); err == nil {
		return t.Findings[k]
	}
	if v, err := checker.ParseVerdict(word); err == nil {
		return t.Verdicts[v]
	}
	if l, err := checker.ParseLockAnswer(word); err == nil {
		return t.Locks[l]
	}
	return Count{}
}

// Panics counts the runs in which a simulated program panicked.
func (t *Tally) Panics() Count { return t.Ends[sim.EndPanic] }

// Violations lists the words that --fail-on takes, the most severe first:
// every finding, and the answers that stand for several.
func Violations() []string {
	out := []string{"two-writers", "lost-update", "stuck", "broken", "fenced", "vacuous"}
	for k := checker.Overlap; k <= checker.Stuck; k++ {
		if w := k.String(); w != "two-writers" && w != "lost-update" && w != "stuck" {
			out = append(out, w)
		}
	}
	return out
}

// tallyGroup is one group of counts with its key in a file and its words.
type tallyGroup struct {
	key    string
	counts []Count
	word   func(i int) string
}

func (t *Tally) groups() []tallyGroup {
	return []tallyGroup{
		{"verdicts", t.Verdicts[:], func(i int) string { return checker.Verdict(i).String() }},
		{"lock", t.Locks[:], func(i int) string { return checker.LockAnswer(i).String() }},
		{"findings", t.Findings[:], func(i int) string { return checker.FindingKind(i).String() }},
		{"ends", t.Ends[:], func(i int) string { return sim.EndReason(i).String() }},
	}
}

// MarshalJSON writes the counts that are not zero by their words.
func (t Tally) MarshalJSON() ([]byte, error) {
	out := map[string]any{"runs": t.Runs, "events": t.Events}
	for _, g := range t.groups() {
		counts := map[string]Count{}
		for i, c := range g.counts {
			if c.Runs > 0 {
				counts[g.word(i)] = c
			}
		}
		out[g.key] = counts
	}
	measures := map[string]*Spread{}
	for i, m := range SweepMeasures() {
		if s := &t.Measures[i]; s.Runs() > 0 {
			measures[m.Name] = s
		}
	}
	if len(measures) > 0 {
		out[measuresKey] = measures
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Tally) UnmarshalJSON(data []byte) error {
	*t = Tally{}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	for key, to := range map[string]*int64{"runs": &t.Runs, "events": &t.Events} {
		if err := json.Unmarshal(raw[key], to); err != nil || *to < 0 {
			return fmt.Errorf("field %s: want a whole number from 0", key)
		}
	}
	for _, g := range t.groups() {
		var counts map[string]Count
		if err := json.Unmarshal(raw[g.key], &counts); err != nil {
			return fmt.Errorf("field %s: want counts by their words", g.key)
		}
		known := 0
		for i := range g.counts {
			c, ok := counts[g.word(i)]
			if !ok {
				continue
			}
			if c.Runs < 1 || c.Runs > t.Runs {
				return fmt.Errorf("field %s: %s in %d of %d runs", g.key, g.word(i), c.Runs, t.Runs)
			}
			g.counts[i] = c
			known++
		}
		if known < len(counts) {
			return fmt.Errorf("field %s: a word that this version does not know", g.key)
		}
	}
	return t.readMeasures(raw[measuresKey])
}

// measuresKey is the key of the measures in a file; it is left out where there
// are none.
const measuresKey = "measures"

func (t *Tally) readMeasures(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var spreads map[string]Spread
	if err := json.Unmarshal(raw, &spreads); err != nil {
		return fmt.Errorf("field %s: want lengths by the measures' names: %w", measuresKey, err)
	}
	known := 0
	for i, m := range SweepMeasures() {
		s, ok := spreads[m.Name]
		if !ok {
			continue
		}
		if n := s.Runs(); n > t.Runs {
			return fmt.Errorf("field %s: %s of %d of %d runs", measuresKey, m.Name, n, t.Runs)
		}
		t.Measures[i] = s
		known++
	}
	if known < len(spreads) {
		return fmt.Errorf("field %s: a measure that this version does not know", measuresKey)
	}
	return nil
}
