package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"locklab/checker"
	"locklab/clock"
	"locklab/scenarios"
	"locklab/sim"
)

// A page's data is made to be small, since a page may hold a hundred stories:
// rows are arrays of numbers whose trailing zeros are cut off, every text
// stands once for the whole page (text 0 is ""), and every moment once for its
// story. In rows, a moment, a lane or a client that may be missing is written
// plus one, so that 0 means none. page.js reads the same layout.

// pageData is everything that a page draws.
type pageData struct {
	Title     string         `json:"title"`
	Texts     []string       `json:"texts"`
	Scenarios []scenarioData `json:"scenarios"`
	Stories   []*storyData   `json:"stories"`
}

// scenarioData is what the stories of one scenario share. Numbers are texts.
type scenarioData struct {
	Name      int   `json:"name"`
	Title     int   `json:"title"`
	Story     int   `json:"story"`
	Sources   []int `json:"sources"`
	Questions []int `json:"questions"`
}

// storyData is one run.
type storyData struct {
	Scenario int    `json:"scenario"`
	Design   int    `json:"design"`   // text
	Resource int    `json:"resource"` // text
	Seed     string `json:"seed"`     // more digits than a number of JavaScript holds
	Verdict  int    `json:"verdict"`  // text
	Lock     int    `json:"lock"`     // text
	Expected []int  `json:"expected"` // verdict, lock, why: texts; whether it came so: 1 or 0
	Command  int    `json:"command"`  // text
	Hash     string `json:"hash"`

	Times     []int64   `json:"times"`     // the moments, each in ns since the one before
	Lanes     [][]int64 `json:"lanes"`     // name, role, client+1
	Bars      [][]int64 `json:"bars"`      // lane (-1: between them), kind, from, to+1, label, client+1, token
	Messages  [][]int64 `json:"messages"`  // from, to, sent, ended+1, flags, short label, text, client+1, token
	Marks     [][]int64 `json:"marks"`     // lane+1, at, kind, label, client+1
	Folds     [][]int64 `json:"folds"`     // lane, from, to, how many, label, client+1
	Clocks    [][]int64 `json:"clocks"`    // lane, at, wall minus true time, monotonic minus true time (microseconds)
	Lines     [][]int64 `json:"lines"`     // at, mark, text, local time, lane+1
	Findings  [][]int64 `json:"findings"`  // kind, line
	Witnesses [][]int64 `json:"witnesses"` // text, occurred
	Notes     []int     `json:"notes"`     // texts: what is not drawn
}

// The roles of lanes.
const (
	laneClient = iota
	laneLock
	laneServer
	laneGrants // no process: whose the lock is, where several servers decide it
)

// The kinds of bars.
const (
	barBelief = iota
	barGrant
	barStop
	barStall
	barDown
	barFault
)

// The flags of messages.
const (
	flagReply = 1 << iota
	flagLost
	flagHeld
	flagNobody // it found nobody there
	flagTimedOut
	flagRefused // an answer that says no
	flagTwice
)

// The kinds of marks.
const (
	markRead = iota + 1
	markWrite
	markRefused
	markStale
	markEnter
	markFault
	markGaveUp
	markCrash
	markStart
	markClock
	markClosed
	markForeign // an operation on somebody else's lock
	markNote
)

// messagesMax is how many messages of one run are drawn.
const messagesMax = 600

// pageText numbers the texts of a page.
type pageText struct {
	all    []string
	number map[string]int
}

func (p *pageText) of(s string) int {
	if p.number == nil {
		p.all, p.number = []string{""}, map[string]int{"": 0}
	}
	n, ok := p.number[s]
	if !ok {
		n = len(p.all)
		p.all, p.number[s] = append(p.all, s), n
	}
	return n
}

// scene collects what is drawn of one run. Its rows hold true times; pack
// replaces them by the numbers of the moments.
type scene struct {
	*tape
	texts *pageText
	stale map[int32]bool
	lines []Line

	lanes    [][]int64
	laneOf   []int // by process
	grants   int   // lane that shows whose the lock is; -1 for none
	bars     []timedRow
	messages []timedRow
	marks    []timedRow
	folds    []timedRow
	notes    []int
}

// timedRow is a row of numbers of which some are true times.
type timedRow struct {
	cells []int64
	times []int // which cells are times
	open  []int // which of them are written plus one; clock.Never becomes 0
}

func (s *scene) text(t string) int64 { return int64(s.texts.of(t)) }

// storyOf makes the data of one run.
func storyOf(res *scenarios.Result, texts *pageText) *storyData {
	s := &scene{tape: newTape(res), texts: texts, lines: Story(res)}
	s.stale = s.staleWrites()
	s.chooseLanes()
	s.addBeliefs()
	s.addGrants()
	s.addStops()
	s.addFaults()
	s.addMessages()
	s.addDecisions()
	s.addEvents()
	d := s.pack()
	s.describe(d)
	return d
}

// describe fills in what is said about the run as a whole.
func (s *scene) describe(d *storyData) {
	res := s.res
	d.Design, d.Resource = s.texts.of(res.Design.Name), s.texts.of(res.Resource.Name)
	d.Seed, d.Hash = strconv.FormatUint(res.Seed, 10), fmt.Sprintf("%016x", res.Hash)
	d.Verdict, d.Lock = s.texts.of(res.Verdict.String()), s.texts.of(res.Report.Lock.String())
	d.Command = s.texts.of(res.Command())
	if e := res.Expectation(); e != nil {
		met := 0
		if res.AsExpected() {
			met = 1
		}
		d.Expected = []int{s.texts.of(e.Verdict), s.texts.of(e.Lock), s.texts.of(strings.TrimSpace(e.Why)), met}
	}
	for _, w := range res.Witnesses {
		d.Witnesses = append(d.Witnesses, []int64{s.text(w.Text), flag(w.Occurred, 1)})
	}
	d.Notes = s.notes
}

// chooseLanes orders the processes so that arrows cross as little as can be:
// the lock on one side, the resource on the other, the clients between.
func (s *scene) chooseLanes() {
	s.laneOf, s.grants = make([]int, len(s.procs)), -1
	locks := 0
	for _, p := range s.procs {
		if p.Lock {
			locks++
		}
	}
	several := s.h.Capacity > 1 && !s.h.Once && s.knowsGrants()
	switch {
	case several:
		s.grants = 0
		for i := range s.slots() {
			s.lanes = append(s.lanes, []int64{s.text(fmt.Sprintf("%s %d", s.nouns().noun, i+1)), laneGrants, 0})
		}
	case locks > 1 && s.knowsGrants():
		s.grants = 0
		s.lanes = append(s.lanes, []int64{s.text("the lock"), laneGrants, 0})
	}
	for _, role := range []int64{laneLock, laneClient, laneServer} {
		for id, p := range s.procs {
			if roleOf(p) != role {
				continue
			}
			s.laneOf[id] = len(s.lanes)
			if p.Lock && locks == 1 && !several {
				s.grants = len(s.lanes)
			}
			s.lanes = append(s.lanes, []int64{s.text(p.Name), role, int64(s.client(sim.ProcID(id)) + 1)})
		}
	}
}

func roleOf(p scenarios.ProcessInfo) int64 {
	switch {
	case p.Client:
		return laneClient
	case p.Lock:
		return laneLock
	}
	return laneServer
}

// lane is where a process is drawn, plus one; 0 for nobody.
func (s *scene) lane(p sim.ProcID) int64 {
	if p < 0 || int(p) >= len(s.laneOf) {
		return 0
	}
	return int64(s.laneOf[p] + 1)
}

func (s *scene) bar(lane, kind int, from, to clock.Time, label string, client int32, token int64) {
	s.bars = append(s.bars, timedRow{
		cells: []int64{int64(lane), int64(kind), int64(from), int64(to), s.text(label), int64(client + 1), token},
		times: []int{2, 3}, open: []int{3},
	})
}

func (s *scene) mark(p sim.ProcID, at clock.Time, kind int, label string, client int32) {
	s.marks = append(s.marks, timedRow{
		cells: []int64{s.lane(p), int64(at), int64(kind), s.text(label), int64(client + 1)}, times: []int{1},
	})
}

// addBeliefs draws when each client believes that it holds the lock.
func (s *scene) addBeliefs() {
	label := "believes it " + s.nouns().holds
	if s.lockless() {
		label = "at work, without a lock"
	}
	for c, tenures := range s.tenures {
		for _, o := range tenures {
			s.bar(s.laneOf[s.procOf[c]], barBelief, o.Return.At, o.BelievesUntil.At, label, o.Client, o.Token)
		}
	}
}

// addGrants draws whose the lock is at the lock service.
func (s *scene) addGrants() {
	if s.grants < 0 {
		return
	}
	ends := [...]string{checker.NotEnded: "", checker.EndExpired: "expired", checker.EndReleased: "released",
		checker.EndTaken: "taken away", checker.EndLost: "lost"}
	slot := s.slotOf()
	for i, h := range s.holdings {
		end := ends[h.ended.End]
		if h.ended.End == checker.EndExpired {
			end = s.endWord(h.ended)
		}
		s.bar(s.grants+slot[i], barGrant, h.from.At, h.ended.Ended.At, end, h.tenure.Client, h.tenure.Token)
	}
}

// slotOf gives each holding the first place that is free: one lane of those
// that a design with several holders has. Where there is one at a time it is
// the first.
func (s *scene) slotOf() []int {
	out := make([]int, len(s.holdings))
	if s.h.Capacity <= 1 || s.h.Once {
		return out
	}
	var busy []checker.Instant // until when, by slot
	for i, h := range s.holdings {
		n := slices.IndexFunc(busy, func(until checker.Instant) bool { return !h.from.Before(until) })
		if n < 0 {
			n, busy = len(busy), append(busy, checker.Instant{})
		}
		busy[n], out[i] = h.ended.Ended, n
	}
	return out
}

// slots is how many places the holdings take up, at least one.
func (s *scene) slots() int {
	n := 1
	for _, slot := range s.slotOf() {
		n = max(n, slot+1)
	}
	return n
}

// addStops draws when processes could not run.
func (s *scene) addStops() {
	for p := range s.procs {
		for _, stop := range s.stops[p] {
			s.bar(s.laneOf[p], barStop, stop.from, stop.to, s.howStopped(sim.ProcID(p), stop.from), s.clientOf[p], 0)
		}
		for _, down := range s.downs[p] {
			s.bar(s.laneOf[p], barDown, down.from, down.to, "down", s.clientOf[p], 0)
		}
	}
}

func (s *scene) howStopped(p sim.ProcID, at clock.Time) string {
	i := s.at(at, func(e *sim.Event) bool { return e.Kind == sim.EventPaused && e.Proc == p && stopsAll(e) })
	if i >= 0 && s.events[i].Body != nil {
		return "suspended"
	}
	return "paused"
}

// addFaults marks where faults strike and draws how long those last that no
// other bar shows.
func (s *scene) addFaults() {
	over := map[int64]clock.Time{}
	for i := range s.events {
		if e := &s.events[i]; e.Kind == sim.EventFaultOver {
			over[e.A] = e.At
		}
	}
	for i := range s.events {
		e := &s.events[i]
		if e.Kind != sim.EventFault {
			continue
		}
		kind := e.Body.String()
		fault, _ := sim.ParseFaultKind(kind)
		if !marksItself(fault) {
			s.mark(e.Proc, e.At, markFault, fmt.Sprintf("%s (fault %d)", kind, e.A), s.client(e.Proc))
		}
		lane := int(s.lane(e.Proc)) - 1 // -1, between the lanes, for what concerns the network
		end, lasts := over[e.A]
		switch {
		case fault == sim.Pause || fault == sim.Freeze || !lasts:
		case fault == sim.Stall:
			s.bar(lane, barStall, e.At, end, s.stalledTask(i), s.client(e.Proc), 0)
		case end > e.At:
			s.bar(lane, barFault, e.At, end, kind, s.client(e.Proc), 0)
		}
	}
}

// marksItself reports whether the effect of a fault has a mark of its own.
func marksItself(k sim.FaultKind) bool {
	return k == sim.Crash || k == sim.ClockStep || k == sim.ClockRate || k == sim.ClockOffset
}

// stalledTask names the task that a stall stops: its pause follows in the trace.
func (s *scene) stalledTask(fault int) string {
	if fault+1 < len(s.events) {
		if e := &s.events[fault+1]; e.Kind == sim.EventPaused && e.Body != nil {
			return e.Body.String() + " stalled"
		}
	}
	return "a task stalled"
}

// addMessages draws the messages that clients send and receive, but for those
// that repeat others.
func (s *scene) addMessages() {
	folded := s.foldRenewals()
	peers, spared := 0, 0
	room := s.roomFor()
	for id := range s.tape.messages {
		m := &s.tape.messages[id]
		switch {
		case m.text == "" || m.control || folded[uint32(id)] || s.polls(m):
		case s.client(m.from) < 0 && s.client(m.to) < 0:
			peers++
		case !room(m):
			spared++
		default:
			s.addMessage(m)
		}
	}
	s.foldWaits()
	if peers > 0 {
		s.notes = append(s.notes, s.texts.of(fmt.Sprintf("%d messages between servers are not drawn", peers)))
	}
	if spared > 0 {
		s.notes = append(s.notes, s.texts.of(fmt.Sprintf("%d further messages are not drawn", spared)))
	}
}

// roomFor decides which messages are drawn when there are too many: those of
// the clients that findings or faults are about come first.
func (s *scene) roomFor() func(*message) bool {
	concerned := s.concerned()
	about := func(m *message) bool {
		c := max(s.client(m.from), s.client(m.to))
		return c >= 0 && concerned[c]
	}
	others := messagesMax
	for id := range s.tape.messages {
		if about(&s.tape.messages[id]) {
			others--
		}
	}
	drawn := 0
	return func(m *message) bool {
		if !about(m) {
			others--
			return others >= 0
		}
		drawn++
		return drawn <= messagesMax
	}
}

// polls reports whether a message belongs to a try that a fold stands for: a
// refused one after the first.
func (s *scene) polls(m *message) bool {
	o := s.op(m.op)
	if o == nil || o.Kind != checker.Acquire || m.lost || m.held || m.timedOut {
		return false
	}
	w := &s.waits[o.ID]
	return w.refused > 2 && m.sent > w.first && m.sent <= w.last
}

// foldWaits says how often a client asked in vain between the tries that are drawn.
func (s *scene) foldWaits() {
	for i := range s.h.Ops {
		o := &s.h.Ops[i]
		if w := &s.waits[o.ID]; w.refused > 2 {
			s.fold(o.Client, w.first, w.last, w.refused-1, "more tries, "+w.word())
		}
	}
}

func (s *scene) fold(client int32, from, to clock.Time, count int, what string) {
	s.folds = append(s.folds, timedRow{
		cells: []int64{int64(s.laneOf[s.procOf[client]]), int64(from), int64(to), int64(count), s.text(what), int64(client + 1)},
		times: []int{1, 2},
	})
}

// foldRenewals leaves the first and the last of a tenure's acknowledged
// renewals and folds those between.
func (s *scene) foldRenewals() map[uint32]bool {
	runs := map[int32][]*checker.Op{}
	for i := range s.h.Ops {
		if o := &s.h.Ops[i]; o.Kind == checker.Renew && o.Outcome == checker.OK && o.Victim == 0 {
			runs[o.Tenure] = append(runs[o.Tenure], o)
		}
	}
	hidden := map[int32]bool{}
	for i := range s.h.Ops {
		run := runs[s.h.Ops[i].ID]
		if len(run) < 4 {
			continue
		}
		for _, o := range run[1 : len(run)-1] {
			hidden[o.ID] = true
		}
		s.fold(run[0].Client, run[0].Return.At, run[len(run)-1].Invoke.At, len(run)-2, "more renewals, granted")
	}
	folded := map[uint32]bool{}
	for id := range s.tape.messages {
		if m := &s.tape.messages[id]; hidden[m.op] && !m.lost && !m.held {
			folded[uint32(id)] = true
		}
	}
	return folded
}

func (s *scene) addMessage(m *message) {
	o := s.op(m.op)
	client := max(s.client(m.from), s.client(m.to))
	flags := flag(m.reply, flagReply) | flag(m.lost, flagLost) | flag(m.held, flagHeld) | flag(m.nobody, flagNobody) |
		flag(m.timedOut, flagTimedOut) | flag(m.arrivals > 1, flagTwice)
	short, token := "", int64(0)
	if o != nil {
		short, token = s.label(m, o), carriedToken(m, o)
		if m.reply && o.Decision == checker.Rejected && o.Return.At == m.arrived {
			flags |= flagRefused
		}
	}
	ended := m.arrived
	if m.lost {
		ended = s.events[m.endedAt].At
	}
	s.messages = append(s.messages, timedRow{
		cells: []int64{s.lane(m.from) - 1, s.lane(m.to) - 1, int64(m.sent), int64(ended), flags, s.text(short), s.text(m.text), int64(client + 1), token},
		times: []int{2, 3}, open: []int{3},
	})
}

// label is a message in one word: for where there is no room for its text, and
// for answers whose text says little. It is "" where the text says it all.
func (s *scene) label(m *message, o *checker.Op) string {
	changes := o.Kind == checker.Write || o.Kind == checker.Append
	switch {
	case !m.reply && changes:
		return fmt.Sprintf("%s %d", o.Kind, o.Value)
	case !m.reply:
		return o.Kind.String()
	case o.Return.At != m.arrived: // not the answer that decided
		return ""
	}
	done := map[checker.Kind]string{checker.Acquire: "granted", checker.Renew: "renewed", checker.Release: "released"}
	switch {
	case o.Outcome == checker.OK:
		return done[o.Kind]
	case o.Outcome == checker.Refused && o.Kind == checker.Release:
		return "not its own"
	case o.Outcome == checker.Refused && done[o.Kind] != "":
		return "refused"
	}
	return ""
}

// carriedToken is the fencing token that a message carries: the one that its
// text shows, or the one that an acquire brings.
func carriedToken(m *message, o *checker.Op) int64 {
	granted := m.reply && o.Kind == checker.Acquire && o.Outcome == checker.OK && o.Return.At == m.arrived
	if granted || !m.reply && o.Token != 0 && strings.Contains(m.text+" ", fmt.Sprintf("token=%d ", o.Token)) {
		return o.Token
	}
	return 0
}

// addDecisions marks what the resource made of each operation, and operations
// that touched somebody else's lock.
func (s *scene) addDecisions() {
	receiver := map[int32]sim.ProcID{} // by operation: who carried it out
	for id := range s.tape.messages {
		m := &s.tape.messages[id]
		if o := s.op(m.op); o != nil && !m.reply && o.Effect.Known() && m.arrived == o.Effect.At {
			receiver[o.ID] = m.to
		}
	}
	for i := range s.h.Ops {
		o := &s.h.Ops[i]
		at, known := receiver[o.ID]
		if !known || !o.Effect.Known() {
			continue
		}
		if kind, label := s.decision(o); kind != 0 {
			s.mark(at, o.Effect.At, kind, label, o.Client)
		}
	}
}

func (s *scene) decision(o *checker.Op) (kind int, label string) {
	value := strconv.FormatInt(o.Value, 10)
	switch {
	case s.own(o):
		return markForeign, "OWN NEW LOCK"
	case o.Victim != 0:
		return markForeign, "NOT ITS LOCK"
	case o.Decision == checker.Rejected:
		return markRefused, "REFUSED"
	case o.Kind == checker.Read && o.Decision == checker.Accepted:
		return markRead, ""
	case o.Kind == checker.Enter && o.Decision == checker.Accepted:
		return markEnter, "mark"
	case o.Kind != checker.Write && o.Kind != checker.Append:
		return 0, ""
	case s.stale[o.ID]:
		return markStale, value
	}
	return markWrite, value
}

// addEvents marks what else happens to processes.
func (s *scene) addEvents() {
	for i := range s.events {
		e := &s.events[i]
		kind, label := 0, ""
		switch e.Kind {
		case sim.EventTimeout:
			if m := &s.tape.messages[e.Msg]; !m.control {
				kind, label = markGaveUp, "gives up"
			}
		case sim.EventCrashed:
			kind, label = markCrash, "crashes"
		case sim.EventStarted:
			if e.At > 0 {
				kind, label = markStart, "starts again"
			}
		case sim.EventClock:
			kind, label = markClock, withSign(e.Body.String())
		case sim.EventClosed:
			if s.client(e.Proc) >= 0 {
				kind, label = markClosed, "connection gone"
			}
		case sim.EventNote:
			kind, label = markNote, e.Body.String()
		}
		if kind != 0 {
			s.mark(e.Proc, e.At, kind, label, s.client(e.Proc))
		}
	}
}

// withSign gives a clock's step forward its sign: steps by +12s.
func withSign(text string) string {
	head, step, ok := strings.Cut(text, "steps by ")
	if !ok {
		return text
	}
	return head + "steps by " + signed(step)
}

// pack numbers the moments and writes the rows.
func (s *scene) pack() *storyData {
	moments := s.moments()
	number := func(t clock.Time) int64 {
		i, _ := slices.BinarySearch(moments, t)
		return int64(i)
	}
	d := &storyData{Lanes: s.lanes, Times: make([]int64, len(moments))}
	last := clock.Time(0)
	for i, t := range moments {
		d.Times[i], last = int64(t-last), t
	}
	for _, list := range []struct {
		rows []timedRow
		into *[][]int64
	}{{s.bars, &d.Bars}, {s.messages, &d.Messages}, {s.marks, &d.Marks}, {s.folds, &d.Folds}} {
		for _, r := range list.rows {
			*list.into = append(*list.into, r.pack(number))
		}
	}
	for _, l := range s.lines {
		lane := int64(0)
		if l.client >= 0 && int(l.client) < len(s.procOf) {
			lane = s.lane(s.procOf[l.client])
		}
		d.Lines = append(d.Lines, cut([]int64{number(l.At), int64(l.Mark), s.text(l.Text), s.text(l.Local), lane}))
	}
	d.Clocks = s.clocks(moments)
	d.Findings = s.findings()
	return d
}

// moments are the true times of everything that is drawn or told, in order.
func (s *scene) moments() []clock.Time {
	all := []clock.Time{0, s.h.End}
	for _, rows := range [][]timedRow{s.bars, s.messages, s.marks, s.folds} {
		for _, r := range rows {
			for _, i := range r.times {
				if t := clock.Time(r.cells[i]); t != clock.Never {
					all = append(all, t)
				}
			}
		}
	}
	for _, l := range s.lines {
		all = append(all, l.At)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (r *timedRow) pack(number func(clock.Time) int64) []int64 {
	out := slices.Clone(r.cells)
	for _, i := range r.times {
		t := clock.Time(out[i])
		switch {
		case !slices.Contains(r.open, i):
			out[i] = number(t)
		case t == clock.Never:
			out[i] = 0
		default:
			out[i] = number(t) + 1
		}
	}
	return cut(out)
}

// cut removes the zeros at the end.
func cut(row []int64) []int64 {
	for len(row) > 0 && row[len(row)-1] == 0 {
		row = row[:len(row)-1]
	}
	return row
}

// clocks tells how far each node's clocks are from true time: an entry for every
// drawn moment at which the difference has changed by a millisecond.
func (s *scene) clocks(moments []clock.Time) [][]int64 {
	const visible = 1000 // microseconds
	var out [][]int64
	type offset struct{ wall, mono int64 }
	shown := make([]offset, len(s.procs))
	for i := range s.events {
		e := &s.events[i]
		if s.lane(e.Proc) == 0 {
			continue
		}
		if _, drawn := slices.BinarySearch(moments, e.At); !drawn {
			continue
		}
		now := offset{int64(clock.Time(e.Wall-sim.WallStart)-e.At) / 1000, int64(clock.Time(e.Mono)-e.At) / 1000}
		was := &shown[e.Proc]
		if max(now.wall-was.wall, was.wall-now.wall, now.mono-was.mono, was.mono-now.mono) < visible {
			continue
		}
		*was = now
		at, _ := slices.BinarySearch(moments, e.At)
		out = append(out, cut([]int64{int64(s.laneOf[e.Proc]), int64(at), now.wall, now.mono}))
	}
	return out
}

// findings points from each finding to its line in the story.
func (s *scene) findings() [][]int64 {
	var out [][]int64
	from := 0
	for i := range s.res.Report.Findings {
		f := &s.res.Report.Findings[i]
		line := s.lineOf(f, from)
		if line >= from && s.lines[line].Mark == MarkFinding {
			from = line + 1
		}
		out = append(out, []int64{s.text(f.Kind.String()), int64(line)})
	}
	return out
}

// lineOf finds the line that tells a finding, or the last one before it where
// the story left it out.
func (s *scene) lineOf(f *checker.Finding, from int) int {
	for i := from; i < len(s.lines); i++ {
		if l := &s.lines[i]; l.Mark == MarkFinding && l.At == f.At && strings.HasPrefix(l.Text, strings.ToUpper(f.Kind.String())+":") {
			return i
		}
	}
	n, _ := slices.BinarySearchFunc(s.lines, f.At, func(l Line, at clock.Time) int {
		return cmp.Or(cmp.Compare(l.At, at), -1)
	})
	return max(n-1, 0)
}

func flag(set bool, bit int64) int64 {
	if set {
		return bit
	}
	return 0
}
