package sim

import (
	"fmt"
	"math/bits"

	"locklab/clock"
)

// Payload is what a message, a note or a disk record carries. Digest feeds the
// canonical encoding into the trace hash; String is for people.
type Payload interface {
	Digest(*Digest)
	String() string
}

// Digest is the hash of a trace: a stable 64-bit hash over words and texts in
// their order. The same on every machine; not meant against an adversary.
type Digest struct{ h uint64 }

// Word adds a number.
func (d *Digest) Word(x uint64) {
	hi, lo := bits.Mul64(d.h^x^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	d.h = hi ^ lo ^ bits.RotateLeft64(d.h, 23)
}

// Int adds a signed number.
func (d *Digest) Int(x int64) { d.Word(uint64(x)) }

// Text adds a string, its length first.
func (d *Digest) Text(s string) {
	d.Word(uint64(len(s)))
	for len(s) >= 8 {
		d.Word(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
		s = s[8:]
	}
	var rest uint64
	for i := 0; i < len(s); i++ {
		rest |= uint64(s[i]) << (8 * i)
	}
	d.Word(rest)
}

// Sum returns the hash so far.
func (d *Digest) Sum() uint64 { return mix(d.h) }

// EventKind is a word of the trace.
type EventKind uint8

// The events of a trace.
const (
	EventSend      EventKind = iota + 1 // a message leaves; Peer is the receiver
	EventArrive                         // a message reaches a process; Peer is the sender
	EventLost                           // a message is lost
	EventHeld                           // a message is held in the network
	EventEffect                         // a task does something that only it sees: reads a clock, sleeps
	EventTimeout                        // a call's deadline passed; A is the message
	EventTimer                          // a server's timer fires
	EventClosed                         // a process learns that a connection is gone
	EventPaused                         // a process, task or node stops
	EventResumed                        // it goes on
	EventCrashed                        // a process is gone
	EventStarted                        // a process starts
	EventClock                          // a clock changed
	EventFault                          // a fault strikes; A is its number in the plan
	EventFaultOver                      // a fault's window closes
	EventDisk                           // a record is written (A its number), an fsync completes
	EventNote                           // a remark of whoever watches
	eventKindCount
)

var eventNames = [eventKindCount]string{"", "send", "arrive", "lost", "held", "effect", "timeout", "timer", "closed",
	"paused", "resumed", "crashed", "started", "clock", "fault", "fault-over", "disk", "note"}

// String returns the kind's name.
func (k EventKind) String() string { return eventNames[k] }

// Event is one line of a trace.
type Event struct {
	At    clock.Time
	Kind  EventKind
	Proc  ProcID // whom it concerns; -1 for nobody
	Peer  ProcID // the other process, -1 for none
	Place Place
	Msg   uint32 // number of the message, 0 for none
	A     int64
	Body  Payload // nil for none

	// What the process's clocks showed. Only in recorded traces, and not part
	// of the hash: it follows from the rest.
	Mono, Wall clock.Reading
}

// digest feeds the canonical encoding of the event into d.
func (e *Event) digest(d *Digest) {
	d.Int(int64(e.At))
	d.Word(uint64(e.Kind)<<56 | uint64(e.Place.Phase)<<48 | uint64(e.Place.Point)<<40 | uint64(uint32(e.Place.Op)))
	d.Word(uint64(uint32(e.Proc))<<32 | uint64(uint32(e.Peer)))
	d.Word(uint64(uint32(e.Place.Section))<<32 | uint64(e.Msg))
	d.Int(e.A)
	if e.Body != nil {
		e.Body.Digest(d)
	}
}

// TraceMode says how much of a run is kept.
type TraceMode uint8

// The modes of a trace.
const (
	TraceOff    TraceMode = iota // nothing: bulk runs
	TraceHash                    // only the hash
	TraceRecord                  // the hash and every event, up to TraceMax
)

// TraceMax is how many events of a trace are kept, at some hundred bytes each.
// Of a run with more none are, but for the hash: World.Trace returns nil.
const TraceMax = 1 << 20

// trace collects the events of a run.
type trace struct {
	mode   TraceMode
	digest Digest
	events []Event
}

func (t *trace) reset(mode TraceMode) {
	t.mode, t.digest = mode, Digest{}
	t.events = nil // a recorded trace belongs to whoever asked for it
}

// emit adds an event to the trace. Callers that would have to build something
// first ask tracing() before.
func (w *World) emit(e Event) {
	if w.trace.mode == TraceOff {
		return
	}
	e.At = w.now
	e.digest(&w.trace.digest)
	if w.trace.mode == TraceRecord {
		if e.Proc >= 0 {
			e.Mono, e.Wall = w.procs[e.Proc].node.LocalClocks(w.now)
		}
		w.trace.keep(e)
	}
}

// keep adds an event to those that are kept, unless there are too many.
func (t *trace) keep(e Event) {
	if len(t.events) == TraceMax {
		t.mode, t.events = TraceHash, nil
		return
	}
	t.events = append(t.events, e)
}

func (w *World) tracing() bool { return w.trace.mode != TraceOff }

// Recording reports whether events are kept, so that whoever builds texts for
// notes can save the work.
func (w *World) Recording() bool { return w.trace.mode == TraceRecord }

// TraceHash returns the hash of the trace so far, 0 when tracing is off.
func (w *World) TraceHash() uint64 {
	if w.trace.mode == TraceOff {
		return 0
	}
	return w.trace.digest.Sum()
}

// Trace returns the recorded events, nil if there were more than TraceMax. They
// stay valid after the world is reset.
func (w *World) Trace() []Event { return w.trace.events }

// Describe writes one event as a line.
func (w *World) Describe(e Event) string {
	s := fmt.Sprintf("%13.6fms %-10s %s", float64(e.At)/1e6, e.Kind, w.procName(e.Proc))
	if e.Peer >= 0 {
		s += " / " + w.procName(e.Peer)
	}
	if e.Place != (Place{}) {
		s += " at " + w.PlaceName(e.Place)
	}
	if e.Msg != 0 {
		s += fmt.Sprintf(" msg#%d", e.Msg)
	}
	if e.A != 0 {
		s += fmt.Sprintf(" [%d]", e.A)
	}
	if e.Body != nil {
		s += ": " + e.Body.String()
	}
	return s
}

func (w *World) procName(id ProcID) string {
	if id < 0 || int(id) >= len(w.procs) {
		return "-"
	}
	return w.procs[id].name
}

// Text is a Payload of plain words.
type Text string

// Digest implements Payload.
func (t Text) Digest(d *Digest) { d.Text(string(t)) }

// String implements Payload.
func (t Text) String() string { return string(t) }
