package reports

import (
	"cmp"
	"slices"
	"strings"

	"locklab/checker"
	"locklab/clock"
	"locklab/scenarios"
	"locklab/sim"
)

// tape is a recorded run, indexed for telling and drawing it.
type tape struct {
	res    *scenarios.Result
	h      *checker.History
	events []sim.Event

	procs    []scenarios.ProcessInfo
	clientOf []int32         // by process; -1 for a server
	procOf   []sim.ProcID    // by client
	messages []message       // by number, counted from 1
	stops    [][]span        // by process: paused, stalled as a whole, or suspended
	downs    [][]span        // by process: crashed
	waits    []wait          // by operation: what a polling acquire went through
	askedOf  []sim.ProcID    // by operation: the one server that it was sent to
	tenures  [][]*checker.Op // by client, in order of invocation
	holdings []holding       // whose the lock was at the service, in order
}

// message is what became of one message.
type message struct {
	from, to        sim.ProcID
	op              int32
	text            string // "": there is no such message
	reply, control  bool
	request         uint32 // of a reply
	answer          uint32 // of a request
	sent            clock.Time
	sentAt, endedAt int // positions in the trace
	arrived         clock.Time
	lost, nobody    bool
	held            bool
	timedOut        bool
	arrivals        int
}

// holding is a stretch in which the lock service had the lock as a tenure's.
type holding struct {
	tenure *checker.Op
	from   checker.Instant
	ended  *checker.Op // whose Ended and End tell its end: the tenure, or the renewal that took the lock anew
}

// span is a stretch of a run, the end not included, in true time and in
// positions of the trace.
type span struct {
	from, to     clock.Time
	first, after int
}

// wait is what a polling acquire went through.
type wait struct {
	refused   int        // tries that failed
	silent    int        // of those, tries whose call failed: nobody said no
	answered  clock.Time // when the first try was over that was answered with no
	first     clock.Time // when the first of them was over
	last      clock.Time // when the last of them was over
	before    clock.Time // when the one before the last was over
	firstSeen int        // position in the trace of the first
	failed    bool       // the last of them ended with a call that failed
}

func newTape(res *scenarios.Result) *tape {
	t := &tape{res: res, h: res.History, events: res.Trace, procs: res.Processes}
	t.clientOf = make([]int32, len(t.procs))
	t.procOf = make([]sim.ProcID, len(t.h.Clients))
	for id, p := range t.procs {
		t.clientOf[id] = -1
		if c := slices.Index(t.h.Clients, p.Name); p.Client && c >= 0 {
			t.clientOf[id], t.procOf[c] = int32(c), sim.ProcID(id)
		}
	}
	t.collectMessages()
	t.collectStops()
	t.collectWaits()
	t.collectTenures()
	return t
}

func (t *tape) collectTenures() {
	t.tenures = make([][]*checker.Op, len(t.h.Clients))
	for i := range t.h.Ops {
		o := &t.h.Ops[i]
		switch {
		case o.Kind == checker.Renew && o.Recreated && t.op(o.Tenure) != nil:
			t.holdings = append(t.holdings, holding{t.op(o.Tenure), o.Effect, o})
		case o.Kind != checker.Acquire:
			continue
		case t.knowsGrants() && o.Granted.Known():
			t.holdings = append(t.holdings, holding{o, o.Granted, o})
		}
		if o.Kind == checker.Acquire && o.Outcome == checker.OK {
			t.tenures[o.Client] = append(t.tenures[o.Client], o)
		}
	}
	slices.SortStableFunc(t.holdings, func(a, b holding) int {
		return cmp.Or(cmp.Compare(a.from.At, b.from.At), cmp.Compare(a.from.Step, b.from.Step))
	})
}

// collectMessages follows every message from its sending to its end.
func (t *tape) collectMessages() {
	requests := map[sim.Place]uint32{}
	t.askedOf = make([]sim.ProcID, len(t.h.Ops)+1)
	for i := range t.askedOf {
		t.askedOf[i] = unasked
	}
	for i := range t.events {
		e := &t.events[i]
		if e.Msg == 0 {
			continue
		}
		for int(e.Msg) >= len(t.messages) {
			t.messages = append(t.messages, message{arrived: clock.Never})
		}
		m := &t.messages[e.Msg]
		switch e.Kind {
		case sim.EventSend:
			*m = message{from: e.Proc, to: e.Peer, op: int32(e.A), sent: e.At, sentAt: i, endedAt: -1, arrived: clock.Never}
			if e.Body != nil {
				m.text = e.Body.String()
			}
			m.control = sim.IsControl(e.Body)
			if m.reply = e.Place.Proc == e.Peer && e.Proc != e.Peer && !m.control; m.reply {
				m.request = requests[e.Place]
				t.messages[m.request].answer = e.Msg
			} else {
				requests[e.Place] = e.Msg
				t.asks(m)
			}
		case sim.EventArrive:
			m.arrivals++
			if m.arrived == clock.Never {
				m.arrived, m.endedAt = e.At, i
			}
		case sim.EventLost:
			if m.arrived == clock.Never {
				m.lost, m.nobody, m.endedAt = true, e.A == 1, i
			}
		case sim.EventHeld:
			m.held = true
		case sim.EventTimeout:
			m.timedOut = true
		}
	}
}

// What askedOf says of an operation that was sent to no server, or to several.
const (
	unasked      = sim.ProcID(-2)
	askedSeveral = sim.ProcID(-1)
)

func (t *tape) asks(m *message) {
	if t.op(m.op) == nil {
		return
	}
	switch asked := &t.askedOf[m.op]; *asked {
	case unasked:
		*asked = m.to
	case m.to:
	default:
		*asked = askedSeveral
	}
}

// collectStops finds out when each process could not run.
func (t *tape) collectStops() {
	t.stops, t.downs = make([][]span, len(t.procs)), make([][]span, len(t.procs))
	depth := make([]int, len(t.procs))
	for i := range t.events {
		e := &t.events[i]
		if e.Proc < 0 || int(e.Proc) >= len(t.procs) {
			continue
		}
		switch p := e.Proc; {
		case e.Kind == sim.EventPaused && stopsAll(e):
			if depth[p]++; depth[p] == 1 {
				t.stops[p] = append(t.stops[p], span{e.At, clock.Never, t.cause(i), len(t.events)})
			}
		case e.Kind == sim.EventResumed && depth[p] > 0:
			if depth[p]--; depth[p] == 0 {
				closeSpan(t.stops[p], e.At, i)
			}
		case e.Kind == sim.EventCrashed:
			t.downs[p] = append(t.downs[p], span{e.At, clock.Never, t.cause(i), len(t.events)})
			if depth[p] > 0 {
				depth[p] = 0
				closeSpan(t.stops[p], e.At, i)
			}
		case e.Kind == sim.EventStarted:
			closeSpan(t.downs[p], e.At, i)
		}
	}
}

// cause is the position of the fault that an event is the effect of, or the
// event's own.
func (t *tape) cause(i int) int {
	if i > 0 && t.events[i-1].Kind == sim.EventFault {
		return i - 1
	}
	return i
}

// stopsAll reports whether a pause stops the whole process, not one task.
func stopsAll(e *sim.Event) bool {
	return e.Body == nil || strings.HasPrefix(e.Body.String(), "node ")
}

func closeSpan(spans []span, at clock.Time, where int) {
	if n := len(spans); n > 0 && spans[n-1].to == clock.Never {
		spans[n-1].to, spans[n-1].after = at, where
	}
}

func inSpans(spans []span, where int) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.first <= where && where < s.after })
}

// anyEvent is true of every event.
func anyEvent(*sim.Event) bool { return true }

// collectWaits counts the failed tries of every acquire: after each, the client
// draws the jitter of its next delay. Of a try that asks several servers, the
// call that failed last does not decide.
func (t *tape) collectWaits() {
	t.waits = make([]wait, len(t.h.Ops)+1)
	current := make([]int32, len(t.h.Clients))     // the latest acquire of each client
	failed := make([]clock.Time, len(t.h.Clients)) // when a call of each client last failed
	next := 0
	for i := range t.events {
		e := &t.events[i]
		for ; next < len(t.h.Ops) && t.h.Ops[next].Invoke.At <= e.At; next++ {
			if o := &t.h.Ops[next]; o.Kind == checker.Acquire {
				current[o.Client] = o.ID
			}
		}
		c := t.client(e.Proc)
		if c >= 0 && (e.Kind == sim.EventTimeout || e.Kind == sim.EventClosed) {
			failed[c] = e.At
		}
		if c < 0 || e.Kind != sim.EventEffect || e.Place.Point != sim.PointJitter || e.Place.Phase != sim.PhaseAcquire || current[c] == 0 {
			continue
		}
		w := &t.waits[current[c]]
		if w.refused++; w.refused == 1 {
			w.first, w.firstSeen = e.At, i
		}
		w.before, w.last, w.failed = w.last, e.At, failed[c] == e.At
		switch {
		case w.failed && t.askedOf[current[c]] != askedSeveral:
			w.silent++
		case w.refused == w.silent+1:
			w.answered = e.At
		}
	}
	for i := range t.h.Ops {
		o, w := &t.h.Ops[i], &t.waits[i+1]
		if o.Outcome == checker.Unknown && w.refused > 0 && (w.failed || t.askedAnew(i)) {
			w.refused, w.last = w.refused-1, w.before // its last try was not refused: nobody knows
			w.silent = min(max(w.silent-1, 0), w.refused)
		}
	}
}

// askedAnew reports whether the client went on from an acquire to another one
// in the same section, as it does after a try whose outcome it cannot tell.
func (t *tape) askedAnew(i int) bool {
	o := &t.h.Ops[i]
	return slices.ContainsFunc(t.h.Ops[i+1:], func(next checker.Op) bool {
		return next.Kind == checker.Acquire && next.Client == o.Client && next.Section == o.Section
	})
}

func (t *tape) client(p sim.ProcID) int32 {
	if p < 0 || int(p) >= len(t.clientOf) {
		return -1
	}
	return t.clientOf[p]
}

func (t *tape) proc(p sim.ProcID) string {
	if p < 0 || int(p) >= len(t.procs) {
		return "somebody"
	}
	return t.procs[p].Name
}

func (t *tape) clientName(c int32) string {
	if c < 0 || int(c) >= len(t.h.Clients) {
		return "somebody"
	}
	return t.h.Clients[c]
}

// op returns an operation by its number, nil for none.
func (t *tape) op(id int32) *checker.Op {
	if id < 1 || int(id) > len(t.h.Ops) {
		return nil
	}
	return &t.h.Ops[id-1]
}

// service names what hands the lock out: the one server, or all of them.
func (t *tape) service() string {
	name := ""
	for _, p := range t.procs {
		if p.Lock && name != "" {
			return "the lock service"
		}
		if p.Lock {
			name = p.Name
		}
	}
	return cmp.Or(name, "the lock service")
}

// server names whom an operation was sent to.
func (t *tape) server(o *checker.Op) string {
	if p := t.askedOf[o.ID]; p >= 0 {
		return t.proc(p)
	}
	return "the resource"
}

// own reports whether the lock that an operation touched is its client's own,
// of a later tenure.
func (t *tape) own(o *checker.Op) bool {
	v := t.op(o.Victim)
	return v != nil && v.Client == o.Client
}

// givesUp reports whether a client that ceases to believe does so although the
// lock service still has the lock as its own.
func (t *tape) givesUp(tenure *checker.Op) bool {
	return t.knowsGrants() && tenure.Granted.Before(tenure.BelievesUntil) && tenure.BelievesUntil.Before(tenure.Ended)
}

// lockless reports whether the design hands out no lock at all.
func (t *tape) lockless() bool {
	return t.h.Lockless() || t.attempts() && t.h.Promise == checker.NoPromise && t.h.Parties == 0
}

// attempts reports whether the design just begins a section and learns at its
// end whether it counts. Its grants are the checker's way to put sections into
// an order; nobody holds anything.
func (t *tape) attempts() bool {
	return t.res.Design.Own != "" && t.h.Promise == checker.NoPromise
}

// knowsGrants reports whether it is known whose the lock was at its service.
func (t *tape) knowsGrants() bool { return t.h.KnowsGrants && !t.attempts() }

// jobs reports whether a section is a job that a queue hands out.
func (t *tape) jobs() bool { return t.res.Design.Jobs && !t.attempts() }

// believes returns the tenure under which a client believes that it holds the lock,
// nil if it does not.
func (t *tape) believes(client int32, at clock.Time) *checker.Op {
	for _, o := range t.tenures[client] {
		if o.Return.At <= at && at < o.BelievesUntil.At {
			return o
		}
	}
	return nil
}

// holder returns the tenure that the lock service has as the current one, nil
// if the lock is free.
func (t *tape) holder(at clock.Time) *checker.Op {
	n, _ := slices.BinarySearchFunc(t.holdings, at, func(h holding, at clock.Time) int {
		if h.from.At <= at {
			return -1
		}
		return 1
	})
	if n > 0 && at < t.holdings[n-1].ended.Ended.At {
		return t.holdings[n-1].tenure
	}
	return nil
}

// holders returns all tenures that the lock service has as current ones, in
// the order of their grants.
func (t *tape) holders(at clock.Time) []*checker.Op {
	if t.h.Capacity <= 1 {
		if h := t.holder(at); h != nil {
			return []*checker.Op{h}
		}
		return nil
	}
	var out []*checker.Op
	for _, h := range t.holdings {
		if h.from.At <= at && at < h.ended.Ended.At {
			out = append(out, h.tenure)
		}
	}
	return out
}

// staleWrites are the writes that the findings call stale, by operation.
func (t *tape) staleWrites() map[int32]bool {
	stale := map[int32]bool{}
	for i := range t.res.Report.Findings {
		if f := &t.res.Report.Findings[i]; f.Kind == checker.StaleWrite && len(f.Ops) > 1 {
			stale[f.Ops[1]] = true
		}
	}
	return stale
}

// at finds the position in the trace of what happened at a moment: the last
// event there for which is holds, or else the last event up to then.
func (t *tape) at(when clock.Time, is func(*sim.Event) bool) int {
	end, _ := slices.BinarySearchFunc(t.events, when, func(e sim.Event, at clock.Time) int {
		if e.At <= at {
			return -1
		}
		return 1
	})
	for i := end - 1; i >= 0 && t.events[i].At == when; i-- {
		if is(&t.events[i]) {
			return i
		}
	}
	return end - 1
}

// deedAt returns what the plan did to a server at a moment beside the
// protocol, nil for nothing.
func (t *tape) deedAt(when clock.Time) *sim.Fault {
	deed := func(e *sim.Event) *sim.Fault {
		if f := t.fault(e.A); e.Kind == sim.EventFault && f != nil && (f.Kind == sim.Failover || f.Kind == sim.Evict || f.Kind == sim.Overwrite) {
			return f
		}
		return nil
	}
	i := t.at(when, func(e *sim.Event) bool { return deed(e) != nil })
	if i < 0 || t.events[i].At != when {
		return nil
	}
	return deed(&t.events[i])
}

// endWord says in one word how a tenure ended at the lock service. The service
// sees only that its lock is no longer there.
func (t *tape) endWord(o *checker.Op) string {
	if o.End == checker.EndExpired && (t.h.Promise != checker.LeasePromise || t.deedAt(o.Ended.At) != nil) {
		return "gone"
	}
	return o.End.String()
}

// concernedMax is how many clients a story or diagram follows when it cannot
// follow all.
const concernedMax = 4

// concerned says of each client whether it is one of those that matter most:
// of the gravest findings, then of the faults.
func (t *tape) concerned() []bool {
	out, n := make([]bool, len(t.h.Clients)), 0
	add := func(c int32) {
		if c >= 0 && int(c) < len(out) && !out[c] && n < concernedMax {
			out[c] = true
			n++
		}
	}
	findings := slices.Clone(t.res.Report.Findings)
	slices.SortStableFunc(findings, func(a, b checker.Finding) int { return cmp.Compare(gravity(a.Kind), gravity(b.Kind)) })
	for _, f := range findings {
		for _, c := range f.Clients {
			add(c)
		}
	}
	for i := range t.events {
		if e := &t.events[i]; e.Kind == sim.EventFault {
			add(t.client(e.Proc))
		}
	}
	return out
}

// gravity orders the findings, the gravest first: harm to the data, then
// broken promises, then what only may lead to harm.
func gravity(k checker.FindingKind) int {
	switch k {
	case checker.TwoWriters:
		return 0
	case checker.LostUpdate, checker.DoubleApply, checker.WriteLost:
		return 1
	case checker.Stuck, checker.SelfRejected, checker.RefusedLate:
		return 2
	case checker.Overlap, checker.StaleWrite:
		return 4
	}
	return 3
}
