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

// Limits of a diagram.
const (
	columnsMax = 8
	rowsMax    = 80
	silence    = 500 * time.Millisecond // a longer one is drawn as a break
)

// Diagram draws a run in space and time as plain text: time runs downward, a
// column stands for a process, an arrow for a message. The result must have
// been recorded with sim.TraceRecord.
func Diagram(w io.Writer, res *scenarios.Result, style Style) error {
	return drawDiagram(w, newTape(res), style)
}

func drawDiagram(w io.Writer, t *tape, style Style) error {
	d := &diagram{tape: t, stale: t.staleWrites(), style: style}
	d.chooseColumns()
	d.collectArrows()
	d.collectNotes()
	slices.SortStableFunc(d.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.where, b.where))
	})
	d.rows = elideRows(foldRows(d.rows), d.concerned(), rowsMax)
	return d.draw(w)
}

// diagram is a drawing in the making.
type diagram struct {
	*tape
	stale   map[int32]bool
	style   Style
	columns []column
	left    []string // processes without a column
	peers   int      // messages between servers, which are not drawn
	rows    []row
	spacing int           // from column to column
	signs   map[rune]bool // that occur, for the legend
}

// column is a process's lifeline; noProcess for the lock as a whole.
type column struct {
	name string
	proc sim.ProcID
	lock bool // shows whose the lock is
}

const noProcess = sim.ProcID(-1)

// ending says how an arrow ends.
type ending uint8

const (
	arrives ending = iota
	isLost         // ends in a cross
	departs        // leaves, and arrives in a later row or never
	isLate         // the other half of departs
	folded         // stands for several exchanges
)

// row is one line of the drawing: an arrow with a remark, or a remark alone.
type row struct {
	at       clock.Time
	where    int
	from, to sim.ProcID // equal: no arrow
	ends     ending
	label    string
	on       sim.ProcID // column of the remark
	remark   string
	mark     Mark
	client   int32
	key      string // rows of the same key repeat each other
	elided   int    // stands for so many rows
}

// chooseColumns decides who is drawn: everybody, or those who matter for the
// findings and faults, in the order of the run.
func (d *diagram) chooseColumns() {
	locks := 0
	for _, p := range d.procs {
		if p.Lock {
			locks++
		}
	}
	last := 4
	if len(d.procs) > columnsMax && len(d.res.Report.Findings) > 0 {
		last = 3 // only those who matter
	}
	concerned, chosen, room := d.concerned(), make([]bool, len(d.procs)), columnsMax
	if locks > 1 {
		room-- // the lock as a whole
	}
	for rank := range last {
		for id, p := range d.procs {
			if room > 0 && !chosen[id] && d.rankOf(sim.ProcID(id), p, concerned) == rank {
				chosen[id] = true
				room--
			}
		}
	}
	for id, p := range d.procs {
		if p.Lock && locks > 1 && !slices.ContainsFunc(d.columns, func(c column) bool { return c.lock }) {
			d.columns = append(d.columns, column{name: "lock", proc: noProcess, lock: true})
		}
		if !chosen[id] {
			d.left = append(d.left, p.Name)
			continue
		}
		d.columns = append(d.columns, column{name: p.Name, proc: sim.ProcID(id), lock: p.Lock && locks == 1})
	}
}

// rankOf orders the processes by how much they matter: the resource, the
// clients that are concerned, the lock servers, whoever else. Where there is
// no room for everybody, clients that are not concerned wait till the end.
func (d *diagram) rankOf(id sim.ProcID, p scenarios.ProcessInfo, concerned []bool) int {
	c := d.client(id)
	switch {
	case c < 0 && !p.Lock:
		return 0
	case c >= 0 && concerned[c]:
		return 1
	case p.Lock:
		return 2
	}
	return 3
}

func (d *diagram) drawn(p sim.ProcID) bool {
	return slices.ContainsFunc(d.columns, func(c column) bool { return c.proc == p && p != noProcess })
}

// collectArrows makes rows of the messages.
func (d *diagram) collectArrows() {
	slow := clock.Time(4*d.res.Params.LatencyMax + 10*time.Millisecond)
	for id := range d.messages {
		m := &d.messages[id]
		if m.text == "" || m.control || !d.drawn(m.from) || !d.drawn(m.to) {
			continue
		}
		if d.client(m.from) < 0 && d.client(m.to) < 0 {
			d.peers++
			continue
		}
		if d.polls(m) {
			continue
		}
		r := d.arrow(m)
		switch {
		case m.lost:
			r.ends, r.at, r.where, r.mark = isLost, m.sent, m.sentAt, MarkUnknown
			if m.nobody && m.reply {
				continue // the client has hung up, and the row of its timeout says so
			}
		case m.arrived == clock.Never || m.arrived-m.sent > slow:
			gone := r
			gone.ends, gone.at, gone.where, gone.mark, gone.remark = departs, m.sent, m.sentAt, MarkUnknown, ""
			d.rows = append(d.rows, gone)
			if m.arrived == clock.Never {
				continue
			}
			r.ends = isLate
			r.mark = max(r.mark, MarkUnknown)
		}
		d.rows = append(d.rows, r)
	}
}

// polls reports whether a message belongs to a try that a fold stands for: all
// refused ones but the first.
func (d *diagram) polls(m *message) bool {
	o := d.op(m.op)
	if o == nil || o.Kind != checker.Acquire {
		return false
	}
	w := &d.waits[o.ID]
	return w.refused > 2 && m.sent > w.first && m.sent <= w.last
}

// arrow is the row of a message that arrives.
func (d *diagram) arrow(m *message) row {
	r := row{at: m.arrived, where: m.endedAt, from: m.from, to: m.to, label: m.text, on: m.to, client: d.client(m.from)}
	if r.client < 0 {
		r.client = d.client(m.to)
	}
	o := d.op(m.op)
	if o == nil {
		return r
	}
	if o.Kind == checker.Acquire || o.Kind == checker.Renew {
		r.key = fmt.Sprintf("%d %d %d %v", o.Kind, m.from, m.to, m.lost)
	}
	if m.arrived == clock.Never {
		return r
	}
	last := o.Return.At == m.arrived
	switch {
	case m.reply && last && o.Kind == checker.Acquire && o.Outcome == checker.OK:
		r.key = ""
		if o.Token != 0 && o.Token != m.seen() {
			r.label += fmt.Sprintf(", token=%d", o.Token)
		} else if o.Token != 0 {
			r.label = fmt.Sprintf("token=%d", o.Token)
		}
	case m.reply && last && o.Outcome == checker.Refused && (o.Kind == checker.Release || o.Kind == checker.Renew):
		r.label += " (lost)"
	case !m.reply && o.Effect.At == m.arrived:
		r.remark, r.mark = d.decision(o)
	}
	if o.Kind == checker.Acquire && !m.reply && o.Granted.At == m.arrived || o.Recreated {
		r.key = ""
	}
	return r
}

// seen is the number that a reply is, 0 if it is none.
func (m *message) seen() int64 {
	n := int64(0)
	if _, err := fmt.Sscanf(m.text, "%d", &n); err != nil || fmt.Sprint(n) != m.text {
		return 0
	}
	return n
}

// decision is what the resource makes of a change, as a remark.
func (d *diagram) decision(o *checker.Op) (string, Mark) {
	switch {
	case o.Decision == checker.Rejected:
		return "REFUSED", MarkRefused
	case d.own(o):
		return "OWN NEW LOCK", MarkStale
	case o.Victim != 0:
		return "FOREIGN LOCK", MarkStale
	case o.Recreated:
		return "lock again", MarkStale
	case o.Kind != checker.Write && o.Kind != checker.Append:
		return "", MarkNone
	case d.stale[o.ID]:
		return "accepted: STALE", MarkStale
	}
	return "accepted", MarkNone
}

// collectNotes makes rows of what happens without a message.
func (d *diagram) collectNotes() {
	for i := range d.events {
		e := &d.events[i]
		if text := d.eventNote(i, e); text != "" && d.drawn(e.Proc) {
			d.rows = append(d.rows, row{at: e.At, where: i, on: e.Proc, remark: text, mark: MarkFault, client: d.client(e.Proc)})
		}
	}
	for i := range d.h.Ops {
		if o := &d.h.Ops[i]; o.Kind == checker.Acquire {
			d.tenureNotes(o)
		}
	}
	for i := range d.res.Report.Findings {
		f := &d.res.Report.Findings[i]
		r := row{at: f.At, where: d.at(f.At, anyEvent), on: noProcess, remark: "! " + f.Kind.String(), mark: MarkFinding, client: nobody}
		if o := d.culprit(f); o != nil {
			if r.on, r.client = d.procOf[o.Client], o.Client; !d.drawn(r.on) {
				continue
			}
		}
		d.rows = append(d.rows, r)
	}
}

// culprit is the operation in whose column a finding is noted.
func (d *diagram) culprit(f *checker.Finding) *checker.Op {
	second := f.Kind == checker.StaleWrite || f.Kind == checker.TwoWriters || f.Kind == checker.Overlap ||
		f.Kind == checker.LostUpdate || f.Kind == checker.TokenOrder
	switch {
	case len(f.Ops) == 0:
		return nil
	case second && len(f.Ops) > 1:
		return d.op(f.Ops[1])
	}
	return d.op(f.Ops[0])
}

// eventNote is the remark on an event, "" for none.
func (d *diagram) eventNote(i int, e *sim.Event) string {
	switch e.Kind {
	case sim.EventFault:
		switch kind := e.Body.String(); kind {
		case sim.Pause.String():
			return fmt.Sprintf("* paused (fault %d)", e.A)
		case sim.Freeze.String():
			return fmt.Sprintf("* frozen (fault %d)", e.A)
		case sim.Crash.String():
			return ""
		default:
			return fmt.Sprintf("* %s (fault %d)", kind, e.A)
		}
	case sim.EventFaultOver:
		if kind := e.Body.String(); kind != sim.Pause.String() && kind != sim.Freeze.String() {
			return fmt.Sprintf("* fault %d is over", e.A)
		}
	case sim.EventResumed:
		return "* resumes"
	case sim.EventCrashed:
		return "* crashes"
	case sim.EventStarted:
		if e.At > 0 {
			return "* starts again"
		}
	case sim.EventTimeout:
		if m := &d.messages[e.Msg]; !d.polls(m) {
			return "? gives up"
		}
	}
	return ""
}

// tenureNotes are the remarks on a tenure: a folded wait, the end of a grant
// and of a belief that nobody sent a message for.
func (d *diagram) tenureNotes(o *checker.Op) {
	proc := d.procOf[o.Client]
	if w := &d.waits[o.ID]; w.refused > 2 && d.drawn(proc) {
		r := row{at: w.last, where: d.at(w.last, func(e *sim.Event) bool { return e.Proc == proc }), client: o.Client,
			from: proc, to: d.askedOf[o.ID], ends: folded, label: fmt.Sprintf("+%d %s", w.refused-1, d.wordOf(w))}
		if !d.drawn(r.to) {
			r.to, r.on, r.remark = proc, proc, fmt.Sprintf("%d more tries", w.refused-1)
		}
		d.rows = append(d.rows, r)
	}
	if on := d.lockColumn(); d.knowsGrants() && o.Ended.Known() && o.End != checker.EndReleased && on >= 0 && !d.h.Quota {
		where := d.at(o.Ended.At, func(e *sim.Event) bool { return e.Kind == sim.EventTimer || e.Kind == sim.EventArrive })
		text := fmt.Sprintf("%s's %s %s", shortName(d.clientName(o.Client)), d.nouns().noun, d.endWord(o))
		d.rows = append(d.rows, row{at: o.Ended.At, where: where, on: d.columns[on].proc, remark: text, client: o.Client})
	}
	if o.Loss == checker.LossLearned && d.drawn(proc) && !d.lockless() {
		where := d.at(o.BelievesUntil.At, func(e *sim.Event) bool { return e.Proc == proc })
		r := row{at: o.BelievesUntil.At, where: where, on: proc, remark: "learns the loss", client: o.Client}
		if d.givesUp(o) {
			r.remark = "gives up"
		}
		d.rows = append(d.rows, r)
	}
}

// wordOf says in a word what became of the tries of a wait. At a barrier nobody
// is refused.
func (d *diagram) wordOf(w *wait) string {
	if d.h.Parties > 0 && w.silent == 0 {
		return "not yet"
	}
	return w.word()
}

func (d *diagram) lockColumn() int {
	return slices.IndexFunc(d.columns, func(c column) bool { return c.lock })
}

// shortName is a client's number: client-12 is 12.
func shortName(client string) string {
	return strings.TrimPrefix(client, "client-")
}

// foldRows lets one row stand for those that repeat an earlier one, from the
// second repetition on. What is marked begins a new count.
func foldRows(rows []row) []row {
	type repeat struct{ count, last int }
	open := map[string]*repeat{}
	fold := make([]bool, len(rows)) // dropped, unless it is a repeat's last
	for i := range rows {
		r := &rows[i]
		if r.mark == MarkFault || r.mark == MarkFinding {
			clear(open)
		}
		if r.key == "" {
			continue
		}
		if o := open[r.key]; o != nil {
			if o.count++; o.count > 1 {
				fold[o.last] = true
			}
			o.last = i
			r.elided = o.count
			continue
		}
		open[r.key] = &repeat{last: i}
	}
	out := rows[:0:0]
	for i, r := range rows {
		if fold[i] {
			continue
		}
		if n := r.elided; n > 1 {
			r.label = fmt.Sprintf("+%d %s", n, r.label)
		}
		r.elided = 0
		out = append(out, r)
	}
	return out
}

// elideRows keeps at most max rows, as elide does for a story's lines.
func elideRows(rows []row, concerned []bool, max int) []row {
	if len(rows) <= max {
		return rows
	}
	keep := chosen(len(rows), max, func(i int) int {
		return rankOf(&Line{Mark: rows[i].mark, client: rows[i].client}, concerned)
	})
	var out []row
	for i := 0; i < len(rows); i++ {
		if keep[i] {
			out = append(out, rows[i])
			continue
		}
		from := i
		for i+1 < len(rows) && !keep[i+1] {
			i++
		}
		out = append(out, row{at: rows[i].at, where: rows[i].where, on: noProcess, elided: i - from + 1, client: nobody})
	}
	return out
}
