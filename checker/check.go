package checker

import (
	"cmp"
	"slices"

	"locklab/clock"
)

// Report is the judgement of one history.
type Report struct {
	Findings []Finding // ordered by At, then by kind
	Lock     LockAnswer
	Verdict  Verdict
}

// Has reports whether the report contains a finding of the given kind.
func (r *Report) Has(kind FindingKind) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind == kind })
}

// Check judges a history. It takes linear time but for sorting, never fails,
// and never changes the history: operations that make no sense (a tenure that
// does not exist, say) take part only in the checks to which they mean something.
func Check(h *History) Report {
	return new(Checker).Check(h)
}

// Checker judges one history after another and keeps its buffers between
// them, so that it does not allocate in the steady state. The zero Checker is
// ready to use. It must not be used by two goroutines at once.
type Checker struct {
	h         *History
	capacity  int
	exclusive bool // one client at a time was to work

	positions map[int32]int32 // in h.Ops, by ID; nil where operations are counted from 1

	// About tenures. A tenure is named by its index in tenures.
	tenures   []tenure
	tenureOf  []int32 // by position in h.Ops; none for an operation without one
	order     []int32 // the granted tenures and the phantoms, in order of grant
	beliefs   []int32 // the acknowledged tenures, by the beginning of their belief
	lateGrant bool    // some tenure's acquire returned after a later tenure had released
	active    []int32 // a sweep's scratch space

	// About the data.
	accepted []act // by effect
	rejected []act // in order of invocation
	stale    []staleWrite
	gone     []bool // by position in h.Ops: a write that vanished, which no section need explain
	anyGone  bool
	states   []state
	sections []section
	values   table
	nodes    []node
	position []int32 // by position in h.Ops: where in the list an append stands
	owner    []int32 // by position in the list: the section that appended it
	repeats  map[sectionKey]*repeat
	once     map[sectionKey]int32
	spans    []span
	unknown  []uint8 // by position in h.Ops: what became of an unknown write

	findings []Finding
	ids      []int32 // where the findings' Clients and Ops live
}

// none stands for an index that does not exist.
const none = int32(-1)

// Check judges h as the function Check does. The report is valid until the
// next call; Clone it to keep it longer.
func (c *Checker) Check(h *History) Report {
	c.reset(h)
	c.collectTenures()
	c.orderGrants()
	c.checkGrants()
	c.checkBeliefs()
	if h.Parties > 0 {
		c.checkBarrier()
	}
	c.checkStuck()

	c.collectActs()
	c.checkWriters()
	c.checkRefusals()
	c.checkRepeats()
	c.replay()
	c.checkSerial()
	return c.conclude()
}

// Clone returns a copy that shares nothing with a Checker's buffers.
func (r Report) Clone() Report {
	r.Findings = slices.Clone(r.Findings)
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Clients, f.Ops = slices.Clone(f.Clients), slices.Clone(f.Ops)
	}
	return r
}

func (c *Checker) reset(h *History) {
	c.h, c.capacity, c.exclusive = h, max(h.Capacity, 1), h.exclusive()
	c.tenures, c.order, c.beliefs = c.tenures[:0], c.order[:0], c.beliefs[:0]
	c.accepted, c.rejected, c.stale = c.accepted[:0], c.rejected[:0], c.stale[:0]
	c.findings, c.ids = c.findings[:0], c.ids[:0]
	c.lateGrant, c.anyGone = false, false
	c.gone = resized(c.gone, len(h.Ops))
}

// resized returns n zero values, in s's memory where they fit.
func resized[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// add records a finding. The operations' clients are the finding's clients, in
// the same order and each once.
func (c *Checker) add(kind FindingKind, at clock.Time, ops ...*Op) {
	start := len(c.ids)
	for _, op := range ops {
		c.ids = append(c.ids, op.ID)
	}
	middle := len(c.ids)
	for _, op := range ops {
		if !slices.Contains(c.ids[middle:], op.Client) {
			c.ids = append(c.ids, op.Client)
		}
	}
	end := len(c.ids)
	c.findings = append(c.findings, Finding{
		Kind: kind, At: at,
		Ops: c.ids[start:middle:middle], Clients: c.ids[middle:end:end],
	})
}

// found reports whether a finding of the given kind has been added.
func (c *Checker) found(kind FindingKind) bool {
	for i := range c.findings {
		if c.findings[i].Kind == kind {
			return true
		}
	}
	return false
}

// conclude orders the findings and derives the two answers from them.
func (c *Checker) conclude() Report {
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Kind, b.Kind))
	})
	r := Report{}
	if len(c.findings) > 0 {
		r.Findings = c.findings
	}
	for i := range c.findings {
		kind := c.findings[i].Kind
		r.Lock = max(r.Lock, kind.lockAnswer())
		r.Verdict = max(r.Verdict, kind.verdict())
	}
	return r
}

// lockAnswer is the least answer about the lock that the finding allows.
func (k FindingKind) lockAnswer() LockAnswer {
	switch k {
	case Overlap:
		return LockOverlap
	case LeaseBroken, Phantom, ForeignRelease, TokenOrder, SpuriousLoss, OverCapacity:
		return LockBroken
	}
	return LockKept
}

// verdict is the least verdict that the finding allows. A stale write is not
// yet harm, and findings about the lock are no findings about the data.
func (k FindingKind) verdict() Verdict {
	switch k {
	case TwoWriters:
		return VerdictTwoWriters
	case LostUpdate, DoubleApply, WriteLost:
		return VerdictLostUpdate
	case Stuck, SelfRejected:
		return VerdictStuck
	case RefusedLate:
		return VerdictFenced
	}
	return VerdictSafe
}
