package reports

import (
	"fmt"
	"time"

	"locklab/checker"
	"locklab/clock"
	"locklab/sim"
)

// tellTrace tells what the adversary and the network did.
func (s *teller) tellTrace() {
	var struck struct { // the latest fault, for the events that are its effect
		at     clock.Time
		number int64
	}
	for i := range s.events {
		e := &s.events[i]
		switch e.Kind {
		case sim.EventFault:
			struck.at, struck.number = e.At, e.A
			s.tellFault(i, e)
		case sim.EventFaultOver:
			if f := s.fault(e.A); f != nil {
				s.addFault(i, e, s.heals(f), e.A)
			}
		case sim.EventResumed:
			s.tellResumed(i, e)
		case sim.EventCrashed:
			number := int64(0)
			if struck.at == e.At {
				number = struck.number
			}
			s.tellCrashed(i, e, number)
		case sim.EventStarted:
			if e.At > 0 {
				s.addFault(i, e, s.proc(e.Proc)+" starts again", 0)
			}
		case sim.EventClosed:
			s.tellClosed(i, e)
		case sim.EventDisk:
			if e.Proc < 0 && e.Body != nil {
				s.addFault(i, e, e.Body.String(), 0)
			}
		case sim.EventNote:
			text := s.proc(e.Proc) + " " + e.Body.String()
			s.add(Line{At: e.At, Text: text, where: i, client: s.client(e.Proc), key: "note " + text})
		case sim.EventLost, sim.EventHeld, sim.EventTimeout, sim.EventArrive:
			s.tellMessage(i, e)
		}
	}
}

// fault returns a fault of the plan by its number, counted from 1.
func (t *tape) fault(n int64) *sim.Fault {
	if n < 1 || int(n) > len(t.res.Plan.Faults) {
		return nil
	}
	return &t.res.Plan.Faults[n-1]
}

func (s *teller) addFault(where int, e *sim.Event, text string, number int64) {
	if text == "" {
		return
	}
	if number > 0 {
		text += fmt.Sprintf(" (fault %d)", number)
	}
	s.add(Line{At: e.At, Mark: MarkFault, Text: text, where: where, client: s.client(e.Proc)})
}

func (s *teller) tellFault(i int, e *sim.Event) {
	f := s.fault(e.A)
	if f == nil {
		return
	}
	crashes := i+1 < len(s.events) && s.events[i+1].Kind == sim.EventCrashed
	if crashes && (f.Kind == sim.Crash || f.Kind == sim.RestoreSnapshot) {
		if f.Kind == sim.Crash {
			return // the crash itself says it
		}
	} else if f.Kind == sim.Crash {
		s.addFault(i, e, s.proc(e.Proc)+" was to crash, but it is down already", e.A)
		return
	}
	text := s.strikes(f)
	if c := s.client(e.Proc); c >= 0 && (f.Kind == sim.Pause || f.Kind == sim.Freeze) {
		if b := s.believes(c, e.At); b != nil && !s.lockless() && s.nouns().holding != "" {
			who := ", and" // the machine believes nothing
			if f.Kind == sim.Freeze {
				who = "; " + s.clientName(c)
			}
			text += fmt.Sprintf("%s believes that it %s%s", who, s.nouns().holds, token(b.Token, " (token %d)"))
		}
	}
	s.addFault(i, e, text, e.A)
}

func (s *teller) tellResumed(i int, e *sim.Event) {
	name := s.proc(e.Proc)
	text := name + " resumes"
	for _, p := range s.stops[e.Proc] {
		if p.to == e.At {
			text += " after " + length(time.Duration(p.to-p.from))
		}
	}
	if c := s.client(e.Proc); c >= 0 && !s.lockless() {
		switch b := s.believes(c, e.At); {
		case b == nil || s.nouns().holding == "":
		case b.Ended.At <= e.At:
			text += ", still believing that it " + s.nouns().holds + token(b.Token, " (token %d)")
		case s.knowsGrants():
			text += ", and its " + s.nouns().noun + " is still its own"
		}
	}
	s.addFault(i, e, text, 0)
}

func (s *teller) tellCrashed(i int, e *sim.Event, number int64) {
	name := s.proc(e.Proc)
	text := name + " crashes: its memory is lost"
	if c := s.client(e.Proc); c >= 0 {
		text = name + " crashes"
		for _, o := range s.tenures[c] {
			if o.Loss == checker.LossCrashed && o.BelievesUntil.At == e.At && !s.lockless() && s.nouns().holding != "" {
				text += ", " + s.nouns().holding + token(o.Token, " (token %d)")
			}
		}
	}
	s.addFault(i, e, text, number)
}

// tellClosed tells that a client finds its connection gone. What servers learn
// of their clients shows in what they do.
func (s *teller) tellClosed(i int, e *sim.Event) {
	c := s.client(e.Proc)
	if c < 0 {
		return
	}
	text := fmt.Sprintf("%s finds its connection to %s gone", s.proc(e.Proc), s.proc(e.Peer))
	s.add(Line{At: e.At, Mark: MarkUnknown, Text: text, where: i, client: c,
		key: fmt.Sprintf("closed %d %d", e.Proc, e.Peer)})
}

// tellMessage tells of messages that did not simply arrive.
func (s *teller) tellMessage(i int, e *sim.Event) {
	m := &s.messages[e.Msg]
	if m.control {
		return
	}
	l := Line{At: e.At, Mark: MarkUnknown, where: i, client: s.client(m.from)}
	if l.client < 0 {
		l.client = s.client(m.to)
	}
	what := s.carrying(m)
	switch e.Kind {
	case sim.EventLost:
		if e.A == 1 && m.reply {
			return // the client has hung up, as its timeout told
		}
		l.Text = what + " is lost"
		if e.A == 1 {
			l.Text = what + " finds nobody there"
		}
	case sim.EventHeld:
		l.Text = what + " is held up in the network"
	case sim.EventTimeout:
		l.Text = s.timedOut(m)
	case sim.EventArrive:
		if l.Text = s.late(i, e, m); l.Text == "" {
			return
		}
	}
	if o := s.op(m.op); o != nil && (o.Kind == checker.Acquire || o.Kind == checker.Renew) || l.client < 0 {
		l.key = fmt.Sprintf("%d %v %d %d", e.Kind, m.reply, m.from, m.to)
	}
	s.add(l)
}

func (s *teller) timedOut(m *message) string {
	who, whom := s.proc(m.from), s.proc(m.to)
	if o := s.op(m.op); o != nil {
		return fmt.Sprintf("%s gives up waiting for %s's answer to %s: outcome unknown", who, whom, s.doing(o))
	}
	return fmt.Sprintf("%s gives up waiting for an answer of %s: outcome unknown", who, whom)
}

// late says that a message took much longer than the network's latency, where
// the line of its operation does not say it.
func (s *teller) late(i int, e *sim.Event, m *message) string {
	took := time.Duration(e.At - m.sent)
	if i != m.endedAt || took <= 4*s.res.Params.LatencyMax+10*time.Millisecond {
		return ""
	}
	o := s.op(m.op)
	if o != nil && !m.reply && o.Effect.At == e.At && o.Outcome == checker.Unknown {
		return "" // told as an operation that was given up
	}
	if m.reply && s.waitedInKernel(m, e.At) {
		return fmt.Sprintf("%s gets %s, which waited in its kernel", s.proc(m.to), s.carrying(m))
	}
	return fmt.Sprintf("%s arrives after %s", s.carrying(m), length(took))
}

// waitedInKernel reports whether the receiver of a message was stopped until
// just then.
func (s *teller) waitedInKernel(m *message, at clock.Time) bool {
	for _, p := range s.stops[m.to] {
		if p.to == at {
			return true
		}
	}
	return false
}
