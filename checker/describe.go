package checker

import (
	"fmt"
	"strings"
	"time"

	"locklab/clock"
)

// Explain fills in the Text of every finding.
func (r *Report) Explain(h *History) {
	for i := range r.Findings {
		r.Findings[i].Text = Explain(h, &r.Findings[i])
	}
}

// Explain returns one English sentence that says what was found, who did it
// and when. It is for humans only; the checks build no strings.
func Explain(h *History, f *Finding) string {
	e := explainer{h: h, f: f}
	if text := e.text(); text != "" {
		return text
	}
	return fmt.Sprintf("%s at %s: %s", f.Kind, seconds(f.At), e.everybody())
}

// explainer tells one finding. Its operations are in the order in which the
// check named them.
type explainer struct {
	h    *History
	f    *Finding
	unit time.Duration // in which times are told; zero: milliseconds
}

// op returns the n-th operation of the finding, counted from 0, or nil.
func (e explainer) op(n int) *Op {
	if n >= len(e.f.Ops) {
		return nil
	}
	return e.h.Op(e.f.Ops[n])
}

func (e explainer) text() string {
	a, b := e.op(0), e.op(1)
	switch {
	case a == nil:
		return e.without()
	case e.f.Kind == OverCapacity && e.h.Parties > 0:
		return e.early(a)
	case e.f.Kind == OverCapacity || e.f.Kind == Overlap && len(e.f.Ops) > 2 || e.f.Kind == TwoWriters && a.Kind == Acquire:
		return e.crowd()
	case b == nil:
		return e.about(a)
	}
	e.distinguish(a, b)
	return e.aboutBoth(a, b)
}

// distinguish chooses a unit in which the times of a sentence differ that says
// what came after what.
func (e *explainer) distinguish(a, b *Op) {
	var times []clock.Time
	switch e.f.Kind {
	case RefusedLate:
		times = []clock.Time{e.f.At, e.grant(b)}
	case StaleWrite, TwoWriters, LostUpdate, DoubleApply, WriteLost:
		times = []clock.Time{e.effect(a), e.effect(b)}
		if read := e.op(2); read != nil {
			times = append(times, e.effect(read))
		}
	}
	for _, e.unit = range []time.Duration{time.Millisecond, time.Microsecond, time.Nanosecond} {
		same := false
		for i, t := range times {
			for _, u := range times[:i] {
				same = same || t != u && int64(t)/int64(e.unit) == int64(u)/int64(e.unit)
			}
		}
		if !same {
			return
		}
	}
}

// either chooses the words for a run with a lock, or without one.
func (e explainer) either(locked, lockless string) string {
	if e.h.Lockless() {
		return lockless
	}
	return locked
}

// loss tells that a live holder lost the lock too early.
func (e explainer) loss(a *Op) string {
	alive := fmt.Sprintf("although %s was alive and %s", e.name(a.Client), e.stillPromised())
	if end, ok := e.promised(a, a.Ended); ok && a.End == EndExpired {
		return fmt.Sprintf("the %s of %s expired at %s, %s early, %s", e.noun(), e.who(a), e.seconds(e.f.At), e.seconds(end-a.Ended.At), alive)
	}
	return fmt.Sprintf("%s lost the %s at %s (%s) %s", e.who(a), e.noun(), e.seconds(e.f.At), a.End, alive)
}

// noun is the word for what is held.
func (e explainer) noun() string {
	if e.h.Capacity > 1 {
		return "permit"
	}
	return "lock"
}

func (e explainer) stillPromised() string {
	if e.h.Promise == SessionPromise {
		return "its session lived"
	}
	return "its lease had not run out"
}

// promised is until when a tenure's lease was promised, going by what had been
// acknowledged of what was sent before a moment.
func (e explainer) promised(acquire *Op, before Instant) (clock.Time, bool) {
	if e.h.Promise != LeasePromise {
		return 0, false
	}
	last := acquire.sent().At
	for i := range e.h.Ops {
		op := &e.h.Ops[i]
		if op.Kind == Renew && op.Tenure == acquire.ID && op.Outcome == OK && op.sent().Before(before) {
			last = op.sent().At
		}
	}
	return e.h.leaseEnd(last), true
}

// broken tells that the lock passed on within a promise.
func (e explainer) broken(a, b *Op) string {
	text := fmt.Sprintf("the lock passed from %s to %s at %s, before the promise to %s had run out", e.who(a), e.who(b), e.seconds(e.f.At), e.name(a.Client))
	passed := b.Return
	if e.h.KnowsGrants {
		passed = b.Granted
	}
	if end, ok := e.promised(a, passed); ok {
		text += " at " + e.seconds(end)
	}
	return text
}

// without tells a finding that no operation explains.
func (e explainer) without() string {
	if e.f.Kind == LostUpdate {
		return "the data at the end holds what nobody wrote"
	}
	return ""
}

func (e explainer) crowd() string {
	held := "the lock"
	if e.h.Capacity > 1 {
		held = "a permit"
	}
	what := map[FindingKind]string{
		OverCapacity: "held " + held, Overlap: "believed that they held " + held, TwoWriters: "worked",
	}[e.f.Kind]
	switch {
	case e.h.Lockless():
		what = "were at work"
	case e.f.Kind == OverCapacity && e.h.Quota:
		return fmt.Sprintf("the grant at %s was number %d of one window, and %d may be: %s",
			e.seconds(e.f.At), len(e.f.Ops), max(e.h.Capacity, 1), e.everybody())
	}
	return fmt.Sprintf("%d tenures %s at once from %s, and %d may: %s",
		len(e.f.Ops), what, e.seconds(e.f.At), max(e.h.Capacity, 1), e.everybody())
}

// early tells that somebody passed a barrier before all had come to it.
func (e explainer) early(a *Op) string {
	return fmt.Sprintf("%s passed the barrier of section %d at %s, when %d of %d had come to it",
		e.who(a), a.Section, e.seconds(e.f.At), e.h.comeTo(a.Section, a.Return), e.h.Parties)
}

// obtained says what a stuck client could not do.
func (e explainer) obtained() string {
	switch {
	case e.h.Parties > 0:
		return "passed the barrier"
	case e.h.Quota:
		return "was let in"
	case e.h.Capacity > 1 && !e.h.Once:
		return "obtained a permit"
	}
	return "obtained the lock"
}

// about tells a finding about one operation.
func (e explainer) about(a *Op) string {
	at := e.seconds(e.f.At)
	switch e.f.Kind {
	case Phantom:
		return fmt.Sprintf("%s was told at %s that it holds the lock, which the lock service never granted", e.who(a), at)
	case ForeignRelease:
		return fmt.Sprintf("%s at %s touched somebody else's lock", e.deed(a), at)
	case SpuriousLoss:
		return e.loss(a)
	case LostUpdate:
		return fmt.Sprintf("%s at %s fits no sequential order of the sections", e.deed(a), e.seconds(e.effect(a)))
	case DoubleApply:
		return fmt.Sprintf("%s took effect more than once", e.deed(a))
	case WriteLost:
		return fmt.Sprintf("%s at %s was acknowledged, and at the end it is gone", e.deed(a), e.seconds(e.effect(a)))
	case SelfRejected:
		return fmt.Sprintf("%s was refused at %s although no later %s, and its section was never completed", e.deed(a), at, e.either("tenure had been granted", "section had begun"))
	case Stuck:
		return fmt.Sprintf("nobody %s for at least %s from %s, although %s was willing and no live holder was working", e.obtained(), e.h.StuckAfter, at, e.name(a.Client))
	}
	return ""
}

// aboutBoth tells a finding about two operations.
func (e explainer) aboutBoth(a, b *Op) string {
	at := e.seconds(e.f.At)
	switch e.f.Kind {
	case Overlap:
		return fmt.Sprintf("from %s on %s and %s %s", at, e.who(a), e.who(b), e.either("both believed that they held the lock", "were both at work"))
	case LeaseBroken:
		return e.broken(a, b)
	case ForeignRelease:
		if a.Client == b.Client {
			return fmt.Sprintf("%s at %s was meant for an earlier tenure and touched its own newer lock", e.deed(a), at)
		}
		return fmt.Sprintf("%s at %s touched the lock of %s", e.deed(a), at, e.who(b))
	case TokenOrder:
		return fmt.Sprintf("%s was granted the lock at %s with a token that is not above that of %s", e.who(b), at, e.who(a))
	case SpuriousLoss:
		return fmt.Sprintf("the renewal by %s was refused at %s although %s", e.who(a), at, e.stillPromised())
	case RefusedLate:
		return fmt.Sprintf("%s was refused at %s, after %s had %s at %s", e.deed(a), at, e.who(b), e.either("been granted the lock", "begun its section"), e.seconds(e.grant(b)))
	case StaleWrite:
		return fmt.Sprintf("%s, after %s", e.did(b), e.had(a))
	case TwoWriters:
		if read := e.op(2); read != nil {
			return fmt.Sprintf("%s, computed from what it had read at %s, before %s", e.did(b), e.seconds(e.effect(read)), e.did(a))
		}
		return fmt.Sprintf("%s, after %s", e.did(b), e.had(a))
	case LostUpdate:
		return e.lostUpdate(a, b)
	case DoubleApply:
		return fmt.Sprintf("%s, which %s already", e.did(b), e.had(a))
	case WriteLost:
		return fmt.Sprintf("%s, and the write was acknowledged, but %s did not find it", e.did(a), e.did(b))
	}
	return ""
}

func (e explainer) lostUpdate(a, b *Op) string {
	switch {
	case a.Kind == Append && b.Kind == Append && a.Tenure == b.Tenure:
		return fmt.Sprintf("%s, and what %s appended in this section does not stand together: somebody appended between", e.did(b), e.who(b))
	case a.Kind.changesData() && b.Kind.changesData() && a.Tenure == b.Tenure:
		return fmt.Sprintf("%s, over its own later write of %d", e.did(b), a.Value)
	case a.Kind.changesData() && b.Kind.changesData():
		return fmt.Sprintf("%s, and %s: both went on from the same value, so one update is lost", e.did(a), e.did(b))
	case a.Kind == Read && b.Kind.changesData():
		return fmt.Sprintf("%s, from a read of %d that no sequential order explains", e.did(b), a.Seen)
	}
	return fmt.Sprintf("%s, which does not follow from its own %s: somebody wrote into its section", e.did(b), a.Kind)
}

// deed names an operation: "the write of 1 by client-1 (token 33)".
func (e explainer) deed(op *Op) string {
	if op.Kind.changesData() {
		return fmt.Sprintf("the %s of %d by %s", op.Kind, op.Value, e.who(op))
	}
	noun := op.Kind.String()
	if op.Kind == Renew {
		noun = "renewal"
	}
	return fmt.Sprintf("the %s by %s", noun, e.who(op))
}

// did tells an operation as "client-1 (token 33) wrote 1 at 12.004s".
func (e explainer) did(op *Op) string {
	return fmt.Sprintf("%s %s%s at %s", e.who(op), pastWords[op.Kind], e.data(op), e.seconds(e.effect(op)))
}

// had is did in the past perfect: "client-2 (token 34) had written 1 at 11.203s".
func (e explainer) had(op *Op) string {
	return fmt.Sprintf("%s had %s%s at %s", e.who(op), perfectWords[op.Kind], e.data(op), e.seconds(e.effect(op)))
}

var (
	pastWords = [...]string{
		Acquire: "acquired", Renew: "renewed", Enter: "entered", Read: "read",
		Write: "wrote", Append: "appended", Release: "released",
	}
	perfectWords = [...]string{
		Acquire: "acquired", Renew: "renewed", Enter: "entered", Read: "read",
		Write: "written", Append: "appended", Release: "released",
	}
)

// data is the value that an operation wrote or saw, after a space.
func (e explainer) data(op *Op) string {
	switch {
	case op.Kind.changesData():
		return fmt.Sprintf(" %d", op.Value)
	case op.Kind == Read:
		return fmt.Sprintf(" %d", op.Seen)
	}
	return ""
}

// who is the client's name with the token of the operation or its tenure.
func (e explainer) who(op *Op) string {
	token := op.Token
	if token == 0 {
		if t := e.h.Op(op.Tenure); t != nil {
			token = t.Token
		}
	}
	if token == 0 {
		return e.name(op.Client)
	}
	return fmt.Sprintf("%s (token %d)", e.name(op.Client), token)
}

func (e explainer) name(client int32) string {
	if client < 0 || int(client) >= len(e.h.Clients) {
		return fmt.Sprintf("client#%d", client)
	}
	return e.h.Clients[client]
}

// everybody lists those concerned.
func (e explainer) everybody() string {
	var names []string
	for n := range e.f.Ops {
		if op := e.op(n); op != nil {
			names = append(names, e.who(op))
		}
	}
	return strings.Join(names, ", ")
}

func (e explainer) effect(op *Op) clock.Time {
	if at := decided(op); at.Known() {
		return at.At
	}
	return op.Invoke.At
}

func (e explainer) grant(acquire *Op) clock.Time {
	if acquire.Granted.Known() && e.h.KnowsGrants {
		return acquire.Granted.At
	}
	return acquire.Return.At
}

// seconds writes a true time in the sentence's unit.
func (e explainer) seconds(t clock.Time) string {
	digits := map[time.Duration]int{time.Microsecond: 6, time.Nanosecond: 9}[e.unit]
	if digits == 0 || t == clock.Never || t < 0 {
		return seconds(t)
	}
	text := fmt.Sprintf("%d.%09d", t/1e9, t%1e9)
	return text[:len(text)-9+digits] + "s"
}

// seconds writes a true time in seconds, cut to milliseconds.
func seconds(t clock.Time) string {
	if t == clock.Never {
		return "never"
	}
	sign, n := "", uint64(t)
	if t < 0 {
		sign, n = "-", -n
	}
	n /= 1_000_000
	return fmt.Sprintf("%s%d.%03ds", sign, n/1000, n%1000)
}
