package reports

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"locklab/checker"
	"locklab/clock"
	"locklab/scenarios"
	"locklab/sim"
)

// Mark says what is remarkable about a line.
type Mark uint8

// The marks.
const (
	MarkNone    Mark = iota
	MarkFault        // the adversary acts, or stops acting
	MarkUnknown      // something was lost, or its outcome is not known
	MarkRefused      // the resource refused
	MarkStale        // the resource accepted what came too late
	MarkFinding      // the checker found something
	MarkElided       // stands for lines that were left out
)

// Line is one moment of a story.
type Line struct {
	At    clock.Time // true time
	Local string     // what a clock showed that differs from true time, and whose
	Mark  Mark
	Text  string // one sentence

	where  int // position in the trace, for what happened in the same nanosecond
	client int32
	key    string // lines of the same key repeat each other
	more   bool   // a finding of which the story has enough
}

// storyMax is how many lines a story has at most, but for the lines that
// stand for others.
const storyMax = 80

// findingsFirst is how many findings of a kind a shortened story tells before
// all else.
const findingsFirst = 3

// Story tells a run in plain sentences, in the order of true time. The result
// must have been recorded with sim.TraceRecord. A long story is told in its
// essence: what was left out is counted.
func Story(res *scenarios.Result) []Line {
	return tellStory(newTape(res))
}

func tellStory(t *tape) []Line {
	s := &teller{tape: t}
	s.stale = s.staleWrites()
	s.tellTrace()
	for i := range s.h.Ops {
		s.tellOp(&s.h.Ops[i])
	}
	for i := range s.h.Ops { // after what they learn it from
		if o := &s.h.Ops[i]; o.Kind == checker.Acquire {
			s.tellLoss(o)
		}
	}
	s.tellFindings()
	slices.SortStableFunc(s.lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.where, b.where))
	})
	s.tellEnd()
	return elide(foldRepeats(s.lines), s.concerned(), storyMax)
}

// teller collects the lines of a story.
type teller struct {
	*tape
	stale map[int32]bool
	lines []Line
}

// nobody is the client of lines about no client.
const nobody = int32(-1)

func (s *teller) add(l Line) {
	if l.where >= 0 && l.where < len(s.events) {
		if e := &s.events[l.where]; e.At == l.At && e.Proc >= 0 {
			l.Local = s.localTime(e)
		}
	}
	s.lines = append(s.lines, l)
}

// localTime says what a process's clocks showed, if a person would see that
// they are not true.
func (s *teller) localTime(e *sim.Event) string {
	wall, mono := clock.Time(e.Wall-sim.WallStart), clock.Time(e.Mono)
	off := func(reads clock.Time) bool { return time.Duration(reads-e.At).Abs() >= time.Millisecond }
	name := s.proc(e.Proc)
	switch {
	case off(wall) && off(mono) && signedSeconds(wall) == signedSeconds(mono):
		return fmt.Sprintf("%s's clocks: %s", name, signedSeconds(wall))
	case off(wall) && off(mono):
		return fmt.Sprintf("%s's wall clock: %s, monotonic: %s", name, signedSeconds(wall), signedSeconds(mono))
	case off(wall):
		return fmt.Sprintf("%s's wall clock: %s", name, signedSeconds(wall))
	case off(mono):
		return fmt.Sprintf("%s's monotonic clock: %s", name, signedSeconds(mono))
	}
	return ""
}

func signedSeconds(t clock.Time) string {
	if t < 0 {
		return "-" + seconds(-t)
	}
	return seconds(t)
}

// tellOp tells one operation of a client.
func (s *teller) tellOp(o *checker.Op) {
	switch o.Kind {
	case checker.Acquire:
		if s.attempts() {
			s.tellAttempt(o)
			return
		}
		s.tellWait(o)
		s.tellAcquire(o)
		s.tellEndOfGrant(o)
	case checker.Renew:
		s.tellRenew(o)
		if o.Recreated {
			s.tellEndOfGrant(o)
		}
	case checker.Release:
		s.tellRelease(o)
	default:
		s.tellData(o)
	}
}

// byMessage finds where in the trace a message of an operation arrived, or
// else was sent.
func (s *teller) byMessage(o *checker.Op, at clock.Time) int {
	of := func(kind sim.EventKind) func(*sim.Event) bool {
		return func(e *sim.Event) bool { return e.Kind == kind && int32(e.A) == o.ID }
	}
	if i := s.at(at, of(sim.EventArrive)); i >= 0 && of(sim.EventArrive)(&s.events[i]) {
		return i
	}
	return s.at(at, of(sim.EventSend))
}

// tellWait sums up the tries that failed.
func (s *teller) tellWait(o *checker.Op) {
	w := &s.waits[o.ID]
	if w.refused == 0 {
		return
	}
	if s.h.Parties > 0 && w.silent == 0 {
		text := fmt.Sprintf("%s waits at the barrier, and asks %s until %s whether all have come", s.clientName(o.Client), times(w.refused), seconds(w.last))
		s.add(Line{At: w.first, Text: text, where: w.firstSeen, client: o.Client})
		return
	}
	asks := s.clientName(o.Client) + " asks for " + s.nouns().the
	text := asks + " and gets no answer"
	if w.silent < w.refused {
		text = asks + " and is refused"
		switch holders := s.holders(w.answered); {
		case s.h.Quota || len(holders) == 0:
		case len(holders) == 1:
			text += ": " + s.holds(holders[0], o)
		default:
			text += ": " + s.clientNames(holders) + " have one each"
		}
	}
	if w.refused > 1 {
		text = fmt.Sprintf("%s. %d tries until %s, %s", text, w.refused, seconds(w.last), w.fates())
	}
	s.add(Line{At: w.first, Text: text, where: w.firstSeen, client: o.Client})
}

// fates says what became of several tries.
func (w *wait) fates() string {
	switch w.silent {
	case 0:
		return "all refused"
	case w.refused:
		return "none answered"
	}
	return fmt.Sprintf("%d of them not answered", w.silent)
}

// word says it in one word.
func (w *wait) word() string {
	switch w.silent {
	case 0:
		return "refused"
	case w.refused:
		return "unanswered"
	}
	return "in vain"
}

// holds names the holder of the lock for somebody who wants it.
func (s *teller) holds(h, wants *checker.Op) string {
	if h.Client != wants.Client {
		return s.clientName(h.Client) + " has it"
	}
	if h.Outcome == checker.OK {
		return "its own lock from before is still there"
	}
	return "its own earlier request has it"
}

// clientNames lists the clients of tenures: client-1, client-2 and client-3.
func (s *teller) clientNames(tenures []*checker.Op) string {
	names := make([]string, len(tenures))
	for i, o := range tenures {
		names[i] = s.clientName(o.Client)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// tellAcquire tells a grant and that the client learns of it.
func (s *teller) tellAcquire(o *checker.Op) {
	name := s.clientName(o.Client)
	learned := o.Outcome == checker.OK && o.Return.Known()
	if s.knowsGrants() && o.Granted.Known() && (!learned || o.Return.At > o.Granted.At.Add(s.slow())) {
		text := fmt.Sprintf("%s grants %s %s", s.service(), name, s.nouns().the)
		if !learned {
			text += fmt.Sprintf(", and %s never learns of it", name)
		}
		mark := MarkUnknown
		if learned {
			mark = MarkNone
		}
		s.add(Line{At: o.Granted.At, Mark: mark, Text: text, where: s.byMessage(o, o.Granted.At), client: o.Client})
	}
	if o.Outcome == checker.Refused && o.Return.Known() {
		s.add(Line{At: o.Return.At, Text: name + " gives up waiting for " + s.nouns().the, where: s.byMessage(o, o.Return.At), client: o.Client})
	}
	if !learned {
		return
	}
	section := ""
	if s.res.Params.Sections > 1 {
		section = fmt.Sprintf(" for section %d", o.Section)
	}
	text := fmt.Sprintf("%s %s%s%s%s", name, s.nouns().acquires, section, token(o.Token, " with token %d"), s.promise(o))
	if o.Sent.At != 0 && o.Return.At > o.Sent.At.Add(s.slow()) {
		text += fmt.Sprintf(", for which it had asked at %s", seconds(o.Sent.At))
	}
	switch {
	case s.jobs():
		text = fmt.Sprintf("%s takes a job from the queue, as its section %d", name, o.Section)
	case s.lockless():
		text = fmt.Sprintf("%s begins section %d: no lock service is asked", name, o.Section)
	case s.knowsGrants() && o.Ended.At <= o.Return.At, s.ranOut(o):
		text += ", although it is over already"
	}
	s.add(Line{At: o.Return.At, Text: text, where: s.byMessage(o, o.Return.At), client: o.Client})
}

// ranOut reports whether a lease had run out when its client was told of it.
func (s *teller) ranOut(o *checker.Op) bool {
	end, _ := s.leaseEnd(o)
	return s.h.Promise == checker.LeasePromise && end <= o.Return.At
}

// slow is how long an answer takes that is worth a word.
func (s *teller) slow() time.Duration { return 4*s.res.Params.LatencyMax + 10*time.Millisecond }

// leaseEnd is when the lease of an acquire that returns has run out if it is
// not renewed from then on. Who waits in a queue has a lease that is renewed
// meanwhile.
func (s *teller) leaseEnd(o *checker.Op) (at clock.Time, renewed bool) {
	at = o.Invoke.At
	if o.Sent.At != 0 {
		at = o.Sent.At
	}
	for i := int(o.ID); i < len(s.h.Ops) && s.h.Ops[i].Invoke.At <= o.Return.At; i++ {
		r := &s.h.Ops[i]
		if r.Kind == checker.Renew && r.Tenure == o.ID && r.Outcome == checker.OK && r.Return.At <= o.Return.At {
			at, renewed = r.Sent.At, true
		}
	}
	return at.Add(s.h.TTL), renewed
}

// tellAttempt tells a try of a section that asks nobody beforehand.
func (s *teller) tellAttempt(o *checker.Op) {
	name, again := s.clientName(o.Client), ""
	for i := int(o.ID) - 2; i >= 0; i-- {
		if b := &s.h.Ops[i]; b.Kind == checker.Acquire && b.Client == o.Client {
			if b.Section == o.Section {
				again = " anew"
			}
			break
		}
	}
	s.add(Line{At: o.Invoke.At, client: o.Client, where: s.byMessage(o, o.Invoke.At),
		Text: fmt.Sprintf("%s begins section %d%s", name, o.Section, again)})
	if !o.Return.Known() {
		return
	}
	l := Line{At: o.Return.At, client: o.Client, where: s.byMessage(o, o.Return.At)}
	if l.Text = fmt.Sprintf("%s has done section %d", name, o.Section); o.Outcome == checker.Refused {
		l.Text, l.Mark = fmt.Sprintf("%s learns that another was faster: its section does not count", name), MarkRefused
	}
	s.add(l)
}

// promise says how long a grant is promised to last, as an addition.
func (s *teller) promise(o *checker.Op) string {
	switch s.h.Promise {
	case checker.LeasePromise:
		end, renewed := s.leaseEnd(o)
		until := ", a lease until " + seconds(end)
		if renewed || s.res.Design.Renews {
			return until + " unless it is renewed"
		}
		return until
	case checker.SessionPromise:
		return ", for as long as its session lives"
	}
	return ""
}

// tellEndOfGrant tells how the lock service came to see a tenure as over. A
// plain release is told with the release.
func (s *teller) tellEndOfGrant(o *checker.Op) {
	if !o.Ended.Known() || !s.knowsGrants() || o.End == checker.EndReleased || s.removed(o) {
		return
	}
	if s.h.Quota {
		s.tellWindowEnds(o)
		return
	}
	name, at := s.clientName(o.Client), o.Ended.At
	lock := "the " + s.nouns().noun + " of " + name
	if o.Recreated {
		lock += ", created anew,"
	}
	text, where := s.endOfGrant(o, lock)
	if b := s.believes(o.Client, at); b != nil && b.ID == o.Tenure {
		text += fmt.Sprintf("; %s still believes that it holds it", name)
	}
	s.add(Line{At: at, Text: text, where: where, client: nobody})
}

// endOfGrant says what became of a lock that its owner has not given back, and
// where in the trace that stands. A deed of the plan at that very moment was
// the cause, whatever the lock service makes of it.
func (s *teller) endOfGrant(o *checker.Op, lock string) (text string, where int) {
	service, at := s.service(), o.Ended.At
	gone := fmt.Sprintf("%s no longer has %s", service, strings.TrimSuffix(lock, ","))
	if d := s.deedAt(at); d != nil {
		if d.Kind == sim.Failover {
			gone = fmt.Sprintf("the new primary does not have %s", strings.TrimSuffix(lock, ","))
		}
		return gone, s.at(at, anyEvent)
	}
	where = s.at(at, func(e *sim.Event) bool {
		return e.Kind == sim.EventTimer || e.Kind == sim.EventCrashed || e.Kind == sim.EventArrive
	})
	next := s.holder(at)
	switch {
	case o.SessionLost.Known() && o.SessionLost.At == at:
		return fmt.Sprintf("%s sees the session of %s as over, and its lock with it", service, s.clientName(o.Client)), s.at(at, anyEvent)
	case o.End == checker.EndTaken && next != nil && s.h.Promise == checker.SessionPromise:
		return fmt.Sprintf("%s gives %s the lock that %s has: for the server they are one session",
			service, s.clientName(next.Client), s.clientName(o.Client)), where
	case o.End == checker.EndTaken:
		return fmt.Sprintf("%s is taken away at %s", lock, service), where
	case o.End == checker.EndExpired && s.h.Promise == checker.LeasePromise:
		return fmt.Sprintf("%s expires at %s", lock, service), where
	}
	return gone, where
}

// tellWindowEnds tells the end of a quota's window once, not for each whom it
// had let in.
func (s *teller) tellWindowEnds(o *checker.Op) {
	for i := range s.h.Ops[:o.ID-1] {
		if s.h.Ops[i].Kind == checker.Acquire && s.h.Ops[i].Ended == o.Ended {
			return
		}
	}
	where := s.at(o.Ended.At, func(e *sim.Event) bool { return e.Kind == sim.EventTimer || e.Kind == sim.EventArrive })
	s.add(Line{At: o.Ended.At, Text: "the quota's window ends at " + s.service(), where: where, client: nobody})
}

// tellLoss tells that a client learns that its lock is gone.
func (s *teller) tellLoss(o *checker.Op) {
	if o.Loss != checker.LossLearned || s.lockless() {
		return
	}
	name := s.clientName(o.Client)
	text := name + " learns that it no longer " + s.nouns().holds
	if s.givesUp(o) {
		text = fmt.Sprintf("%s gives its section up, although %s still has the %s as its own", name, s.service(), s.nouns().noun)
	}
	s.add(Line{At: o.BelievesUntil.At, Text: text, where: s.at(o.BelievesUntil.At, anyEvent), client: o.Client})
}

// removed reports whether somebody else's release ended a tenure, which then
// tells so.
func (s *teller) removed(o *checker.Op) bool {
	for i := range s.h.Ops {
		if r := &s.h.Ops[i]; r.Kind == checker.Release && r.Victim == o.Tenure && r.Effect.At == o.Ended.At {
			return true
		}
	}
	return false
}

func (s *teller) tellRenew(o *checker.Op) {
	name := s.clientName(o.Client)
	l := Line{At: o.Return.At, client: o.Client, key: fmt.Sprintf("renew %d", o.Tenure)}
	switch {
	case o.Victim != 0:
		l.At, l.Mark, l.key = o.Effect.At, MarkStale, ""
		l.Text = fmt.Sprintf("%s's renewal reaches a lock that is not its own: it is %s's", name, s.victim(o))
		if s.own(o) {
			l.Text = fmt.Sprintf("%s's late renewal reaches its own newer lock", name)
		}
	case o.Recreated:
		l.At, l.Mark, l.key = o.Effect.At, MarkStale, ""
		l.Text = fmt.Sprintf("%s's renewal finds no lock and creates it anew: %s has %s as its holder again", name, s.service(), name)
	case o.Outcome == checker.OK && s.h.Promise == checker.SessionPromise:
		l.Text = name + " asks whether its session lives, and is answered"
	case o.Outcome == checker.OK:
		l.Text = name + " renews its lease"
	case o.Outcome == checker.Refused && s.h.Promise == checker.SessionPromise:
		l.Text, l.Mark, l.key = name+" asks whether its session lives: it does not", MarkRefused, ""
	case o.Outcome == checker.Refused:
		l.Text, l.Mark, l.key = name+"'s renewal is refused", MarkRefused, ""
	default:
		return // the message's fate says it
	}
	l.where = s.byMessage(o, l.At)
	s.add(l)
}

func (s *teller) victim(o *checker.Op) string {
	if v := s.op(o.Victim); v != nil {
		return s.clientName(v.Client) + token(v.Token, " (token %d)")
	}
	return "somebody"
}

func (s *teller) tellRelease(o *checker.Op) {
	name := s.clientName(o.Client)
	l := Line{At: o.Invoke.At, client: o.Client, Text: name + " " + s.nouns().releases}
	if o.Effect.Known() && o.Outcome != checker.Unknown {
		l.At = o.Effect.At
	}
	switch {
	case s.jobs() && !s.done(o.Tenure):
		l.Text = fmt.Sprintf("%s gives its job up", name)
	case s.lockless(), s.nouns().releases == "":
		l.Text = fmt.Sprintf("%s ends section %d", name, o.Section)
	case o.Victim != 0:
		l.At, l.Mark = o.Effect.At, MarkStale
		l.Text = fmt.Sprintf("%s's release removes a lock that is not its own: it was %s's", name, s.victim(o))
		if s.own(o) {
			l.Text = fmt.Sprintf("%s's late release removes its own newer lock", name)
		}
		if v := s.op(o.Victim); v != nil && v.Ended.At == o.Effect.At && s.believes(v.Client, o.Effect.At) == v {
			l.Text += fmt.Sprintf("; %s still believes that it holds it", s.clientName(v.Client))
		}
	case o.Outcome == checker.Refused && s.h.Promise == checker.SessionPromise:
		l.Text += ", and is told that its session holds none"
	case o.Outcome == checker.Refused:
		l.Text += ", but it was no longer its own"
	case o.Outcome == checker.OK && o.Return.Known() && o.Return.At > o.Effect.At.Add(s.slow()):
		l.Text += fmt.Sprintf(", and has the answer at %s", seconds(o.Return.At))
	case o.Outcome == checker.Unknown && o.Effect.Known() && o.Effect.At > o.Invoke.At.Add(s.res.Params.CallTimeout):
		l.Text += fmt.Sprintf("; the request arrives only at %s", seconds(o.Effect.At))
		l.Mark = MarkUnknown
	case o.Outcome == checker.Unknown:
		l.Text += " and never gets an answer"
		l.Mark = MarkUnknown
	}
	if at := s.commits(o); at > l.At {
		l.At = at
	}
	l.where = s.byMessage(o, l.At)
	s.add(l)
}

// commits is when the last of the writes took effect that a release commits, 0
// for none.
func (s *teller) commits(release *checker.Op) clock.Time {
	at := clock.Time(0)
	for i := int(release.Tenure); i < int(release.ID); i++ {
		if o := &s.h.Ops[i]; o.Tenure == release.Tenure && o.Effect.Known() && s.committing(o) == release {
			at = max(at, o.Effect.At)
		}
	}
	return at
}

// done reports whether a client was told that a write of its tenure was
// accepted, or believes so until its commit.
func (s *teller) done(tenure int32) bool {
	for i := int(tenure); i < len(s.h.Ops); i++ {
		switch o := &s.h.Ops[i]; {
		case o.Tenure != tenure:
		case o.Kind == checker.Release:
			return false
		case changes(o) && o.Outcome == checker.OK:
			return true
		}
	}
	return false
}

// release returns the operation that gave a tenure back, nil for none.
func (s *teller) release(tenure int32) *checker.Op {
	for i := int(tenure); i < len(s.h.Ops); i++ {
		if o := &s.h.Ops[i]; o.Tenure == tenure && o.Kind == checker.Release {
			return o
		}
	}
	return nil
}

// changes reports whether the operation is a write or an append.
func changes(o *checker.Op) bool { return o.Kind == checker.Write || o.Kind == checker.Append }

// tellData tells a read, a write, an append or an entry, at the moment at
// which the resource decided.
func (s *teller) tellData(o *checker.Op) {
	name := s.clientName(o.Client)
	if !o.Effect.Known() {
		if o.Outcome == checker.Refused {
			s.add(Line{At: o.Return.At, Mark: MarkUnknown, client: o.Client, where: s.byMessage(o, o.Return.At),
				Text: fmt.Sprintf("%s: %s is certainly not done", name, s.doing(o))})
		}
		return
	}
	did := fmt.Sprintf("%s %ss %d%s", name, o.Kind, o.Value, token(o.Token, " with token %d"))
	switch o.Kind {
	case checker.Read:
		did = fmt.Sprintf("%s reads %d%s", name, o.Seen, token(o.Token, " with token %d"))
	case checker.Enter:
		did = name + " leaves its mark at the resource"
	}
	if late := !o.Return.Known() && o.Effect.At > o.Invoke.At.Add(s.res.Params.CallTimeout); late {
		did = fmt.Sprintf("%s's %s, sent at %s and given up since, arrives", name, strings.TrimPrefix(s.doing(o), "its "), seconds(o.Invoke.At))
	}
	l := Line{At: o.Effect.At, client: o.Client, where: s.byMessage(o, o.Effect.At)}
	if r := s.committing(o); r != nil {
		l.where = s.byMessage(r, o.Effect.At) - 1 // and then the release
	}
	l.Text, l.Mark = s.decided(o, did)
	if o.Kind == checker.Read && o.Decision == checker.Accepted && !o.Return.Known() {
		l.Mark = MarkUnknown
		l.Text = fmt.Sprintf("%s answers %s's %s with %d, and %s never learns it", s.server(o), name, strings.TrimPrefix(s.doing(o), "its "), o.Seen, name)
	}
	if o.Applied > 1 {
		l.Text += fmt.Sprintf("; it is delivered %s", times(int(o.Applied)))
	}
	s.add(l)
}

// sqlAnswer quotes what a database answered to an operation that it refused,
// as an addition: an error, or that no row matched.
func (s *teller) sqlAnswer(o *checker.Op) string {
	for i := range s.messages {
		m := &s.messages[i]
		if m.op == o.ID && m.reply && (strings.HasPrefix(m.text, "ERROR ") || m.text == "0 rows") {
			return " (" + m.text + ")"
		}
	}
	return ""
}

// committing returns the release that a write took effect with, because both
// are the end of one transaction; nil where there is none.
func (s *teller) committing(o *checker.Op) *checker.Op {
	r := s.release(o.Tenure)
	if r == nil || !changes(o) || o.Effect.At < r.Invoke.At || r.Return.Known() && o.Effect.At > r.Return.At {
		return nil
	}
	return r
}

// decided completes a sentence with what the resource made of the operation.
func (s *teller) decided(o *checker.Op, did string) (string, Mark) {
	switch {
	case o.Decision == checker.Rejected && o.Kind == checker.Read:
		return fmt.Sprintf("%s wants to read%s: REFUSED", s.clientName(o.Client), token(o.Token, " with token %d")), MarkRefused
	case o.Decision == checker.Rejected:
		return did + ": REFUSED" + s.sqlAnswer(o), MarkRefused
	case !changes(o):
		return did, MarkNone
	case s.stale[o.ID]:
		return did + ": ACCEPTED ALTHOUGH STALE" + s.whySince(o), MarkStale
	case s.committing(o) != nil:
		return did + ": accepted, at the commit", MarkNone
	}
	return did + ": accepted" + s.whySince(o), MarkNone
}

// whySince says of a write that its tenure had ended before it arrived.
func (s *teller) whySince(o *checker.Op) string {
	a := s.op(o.Tenure)
	if a == nil || !s.knowsGrants() || s.h.Quota || !a.Ended.Before(o.Effect) {
		return ""
	}
	text := fmt.Sprintf("; its %s ended at %s", s.nouns().noun, seconds(a.Ended.At))
	if s.permits() { // others have others
		return text
	}
	switch h := s.holder(o.Effect.At); {
	case h == nil:
	case h.ID == a.ID:
		text += ", and its renewal has created it anew"
	default:
		text += ", and " + s.clientName(h.Client) + " has it now"
	}
	return text
}

func (s *teller) tellFindings() {
	var seen [64]int // of each kind
	for i := range s.res.Report.Findings {
		f := &s.res.Report.Findings[i]
		seen[int(f.Kind)%len(seen)]++
		client := nobody
		if len(f.Clients) > 0 {
			client = f.Clients[0]
		}
		s.lines = append(s.lines, Line{At: f.At, Mark: MarkFinding, where: s.at(f.At, anyEvent), client: client,
			Text: strings.ToUpper(f.Kind.String()) + ": " + findingText(s.h, f), more: seen[int(f.Kind)%len(seen)] > findingsFirst})
	}
}

// findingText is a finding's sentence.
func findingText(h *checker.History, f *checker.Finding) string {
	if f.Text != "" {
		return f.Text
	}
	return checker.Explain(h, f)
}

// tellEnd tells how the run ended, if not by everybody being done, and who was
// still waiting.
func (s *teller) tellEnd() {
	text := ""
	switch s.res.Ended {
	case sim.EndDone:
		return
	case sim.EndHorizon:
		text = "the run is ended here: its time is over"
	case sim.EndBudget:
		text = "the run is ended here: it takes too many events"
	case sim.EndDeadlock:
		text = "nothing can happen any more, and somebody has not finished"
	case sim.EndPanic:
		text = "a program panics"
		if s.res.Failure != nil {
			text = "a program panics: " + s.res.Failure.Error()
		}
	}
	s.lines = append(s.lines, Line{At: s.h.End, Mark: MarkFault, Text: text, where: len(s.events), client: nobody})
}

// foldRepeats replaces lines that repeat an earlier one by an addition to it.
// A fault or a finding between them begins a new count.
func foldRepeats(lines []Line) []Line {
	type repeat struct {
		line, count int
		last        clock.Time
	}
	open := map[string]int{}
	var repeats []repeat
	out := lines[:0:0]
	for _, l := range lines {
		if l.Mark == MarkFault || l.Mark == MarkFinding {
			clear(open)
		}
		if l.key == "" {
			out = append(out, l)
			continue
		}
		if i, ok := open[l.key]; ok {
			repeats[i].count++
			repeats[i].last = l.At
			continue
		}
		open[l.key] = len(repeats)
		repeats = append(repeats, repeat{line: len(out)})
		out = append(out, l)
	}
	for _, r := range repeats {
		if r.count > 0 {
			out[r.line].Text += fmt.Sprintf(" (and again %s until %s)", times(r.count), seconds(r.last))
		}
	}
	return out
}

// elide keeps at most max lines: first the marked ones, then those about
// clients that are concerned, then the others; of equals the earlier.
func elide(lines []Line, concerned []bool, max int) []Line {
	if len(lines) <= max {
		return lines
	}
	keep := chosen(len(lines), max, func(i int) int { return rankOf(&lines[i], concerned) })
	var out []Line
	for i := 0; i < len(lines); i++ {
		if keep[i] {
			out = append(out, lines[i])
			continue
		}
		from := i
		for i+1 < len(lines) && !keep[i+1] {
			i++
		}
		more := fmt.Sprintf("%d more lines", i-from+1)
		if i == from {
			more = "1 more line"
		}
		text := fmt.Sprintf("... %s, until %s", more, seconds(lines[i].At))
		out = append(out, Line{At: lines[from].At, Mark: MarkElided, Text: text, client: nobody})
	}
	return out
}

// ranks is how many values rankOf has.
const ranks = 3

// chosen says of each of n things whether it is among the max that are kept.
// Beside better ones, those of the last rank have a quarter of the room.
func chosen(n, max int, rank func(int) int) []bool {
	keep, left := make([]bool, n), max
	for r := range ranks {
		if r == ranks-1 && left < max {
			left = min(left, max/4)
		}
		for i := range n {
			if left > 0 && rank(i) == r {
				keep[i] = true
				left--
			}
		}
	}
	return keep
}

func rankOf(l *Line, concerned []bool) int {
	switch {
	case l.more:
		return 2
	case l.Mark != MarkNone:
		return 0
	case l.client >= 0 && int(l.client) < len(concerned) && concerned[l.client]:
		return 1
	}
	return 2
}

// WriteStory prints a story's lines, the true time before each.
func WriteStory(w io.Writer, lines []Line, style Style) error {
	const margin = 14 // time, sign
	for _, l := range lines {
		text := l.Text
		if l.Local != "" {
			text += " [" + l.Local + "]"
		}
		for i, part := range wrap(style.text(text), style.width()-margin) {
			head := fmt.Sprintf("%10s  %s ", seconds(l.At), markSign[l.Mark])
			if i > 0 || l.Mark == MarkElided {
				head = strings.Repeat(" ", margin)
			}
			if _, err := fmt.Fprintf(w, "%s%s\n", style.faint(head[:10])+head[10:], style.paint(markColor[l.Mark], part)); err != nil {
				return err
			}
		}
	}
	return nil
}
