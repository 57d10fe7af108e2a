package checker_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	. "locklab/checker"
	"locklab/clock"
)

// story parses a tiny history, one line an operation, in order of invocation:
//
//	lease 10; tokens; final 2
//	A acquire 0 token=33 expired=10 learned=20
//	A read    1 =0
//	A write   2..4..? =1
//	A release 5..6..7
//
// The first line sets the header: lease TTL [DRIFT], session, tokens, blackbox
// (neither omniscient nor knowing the grants), capacity N, quota, parties N, once, list, initial N,
// final N..., faults T, stuck T, end T.
//
// Times are seconds: "1" for call, effect and return one right after the
// other; "2..4" for an effect and return at 4; "2..4..7" for call, effect,
// return. A "?" instead of the return is an unknown outcome, "2..?" one that
// never took effect. Words: no (refused), phantom, sent=T (the try that was answered), granted=T, expired=T, taken=T, lost=T
// (the grant's end), until=T (released belief without a release), crash=T,
// learned=T (the belief's end), sessionlost=T, token=N, section=N, of=N (the
// tenure by its line), victim=N, applied=N, unheld (outside any tenure).
// A release ends its tenure's belief and, unless something else did, its grant.
func story(text string) *History {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	s := storyteller{h: &History{KnowsGrants: true, Omniscient: true, End: at("100").At}, last: map[string]int{}}
	s.header(lines[0])
	for _, line := range lines[1:] {
		line, _, _ = strings.Cut(line, "#")
		if fields := strings.Fields(line); len(fields) > 0 {
			s.op(fields)
		}
	}
	if !s.h.Omniscient {
		fromOutside(s.h)
	}
	return s.h
}

// fromOutside takes away what only the simulator knows.
func fromOutside(h *History) {
	h.Omniscient, h.KnowsGrants = false, false
	for i := range h.Ops {
		op := &h.Ops[i]
		op.Granted, op.Ended, op.End, op.Effect = Never, Never, NotEnded, Never
		op.Decision, op.Applied = Undecided, 0
	}
}

type storyteller struct {
	h    *History
	last map[string]int // each client's last acquire, by position
}

func (s *storyteller) header(line string) {
	for _, part := range strings.Split(line, ";") {
		f := strings.Fields(part)
		if len(f) == 0 {
			continue
		}
		switch f[0] {
		case "lease":
			s.h.Promise, s.h.TTL = LeasePromise, time.Duration(at(f[1]).At)
			if len(f) > 2 {
				s.h.Drift = time.Duration(at(f[2]).At)
			}
		case "session":
			s.h.Promise = SessionPromise
		case "nothing":
		case "tokens":
			s.h.Tokens = true
		case "blackbox":
			s.h.Omniscient, s.h.KnowsGrants = false, false
		case "capacity":
			s.h.Capacity = int(number(f[1]))
		case "quota":
			s.h.Quota = true
		case "parties":
			s.h.Parties = int(number(f[1]))
		case "once":
			s.h.Once = true
		case "list":
			s.h.Data = List
		case "initial":
			s.h.Initial = number(f[1])
		case "final":
			s.h.Final = []int64{}
			for _, v := range f[1:] {
				s.h.Final = append(s.h.Final, number(v))
			}
		case "faults":
			s.h.FaultsOver = at(f[1])
		case "stuck":
			s.h.StuckAfter = time.Duration(at(f[1]).At)
		case "end":
			s.h.End = at(f[1]).At
		default:
			panic("story: " + part)
		}
	}
}

func (s *storyteller) client(name string) int32 {
	for i, known := range s.h.Clients {
		if known == name {
			return int32(i)
		}
	}
	s.h.Clients = append(s.h.Clients, name)
	return int32(len(s.h.Clients) - 1)
}

var kinds = map[string]Kind{
	"acquire": Acquire, "renew": Renew, "enter": Enter, "read": Read,
	"write": Write, "append": Append, "release": Release,
}

func (s *storyteller) op(f []string) {
	op := Op{
		ID: int32(len(s.h.Ops) + 1), Client: s.client(f[0]), Kind: kinds[f[1]], Outcome: OK,
		Granted: Never, Ended: Never, BelievesUntil: Never, SessionLost: Never,
	}
	if op.Kind == 0 {
		panic("story: " + f[1])
	}
	s.times(&op, f[2])
	if op.Kind != Acquire && op.Kind != Renew && op.Kind != Release && op.Effect.Known() {
		op.Decision, op.Applied = Accepted, 1
	}
	s.place(&op, f[0])
	for _, word := range f[3:] {
		s.word(&op, word)
	}
	if op.Kind == Acquire {
		op.Tenure = op.ID
		s.last[f[0]] = len(s.h.Ops)
	}
	s.h.Ops = append(s.h.Ops, op)
	if op.Kind == Release {
		s.release(op)
	}
}

// place gives an operation its tenure and section.
func (s *storyteller) place(op *Op, client string) {
	last, ok := s.last[client]
	switch {
	case op.Kind == Acquire:
		op.Section = 1
		if ok {
			op.Section = s.h.Ops[last].Section + 1
		}
		if op.Outcome != Unknown {
			op.Granted = op.Effect
		}
	case ok:
		a := s.h.Ops[last]
		op.Tenure, op.Section, op.Token = a.ID, a.Section, a.Token
	}
}

// times gives instants in the same second different steps.
func (s *storyteller) times(op *Op, text string) {
	step := int64(op.ID) * 10
	parts := strings.Split(text, "..")
	op.Invoke = Instant{At: at(parts[0]).At, Step: step}
	effect, back := parts[min(1, len(parts)-1)], parts[len(parts)-1]
	op.Effect, op.Return = Never, Never
	if effect != "?" {
		op.Effect = Instant{At: at(effect).At, Step: step + 1}
	}
	if back != "?" {
		op.Return = Instant{At: at(back).At, Step: step + 2}
	} else {
		op.Outcome = Unknown
	}
}

func (s *storyteller) word(op *Op, word string) {
	key, value, _ := strings.Cut(word, "=")
	ends := map[string]End{"expired": EndExpired, "taken": EndTaken, "lost": EndLost}
	losses := map[string]Loss{"until": LossReleased, "crash": LossCrashed, "learned": LossLearned}
	switch key {
	case "":
		op.Value = number(value)
		if op.Kind == Read {
			op.Value, op.Seen = 0, number(value)
		}
	case "no":
		op.Outcome, op.Granted = Refused, Never
		if op.Decision == Accepted {
			op.Decision, op.Applied = Rejected, 0
		}
	case "phantom":
		op.Granted = Never
	case "unheld":
		op.Tenure = 0
	case "sent":
		op.Sent = at(value)
	case "granted":
		op.Granted = at(value)
	case "expired", "taken", "lost":
		op.Ended, op.End = at(value), ends[key]
	case "until", "crash", "learned":
		op.BelievesUntil, op.Loss = at(value), losses[key]
	case "sessionlost":
		op.SessionLost = at(value)
	case "token":
		op.Token = number(value)
	case "section":
		op.Section = int32(number(value))
	case "of":
		a := s.h.Op(int32(number(value)))
		op.Tenure, op.Section, op.Token = a.ID, a.Section, a.Token
	case "victim":
		op.Victim = int32(number(value))
	case "applied":
		op.Applied = int32(number(value))
	default:
		panic("story: " + word)
	}
}

func (s *storyteller) release(op Op) {
	a := s.h.Op(op.Tenure)
	if a.Loss == StillBelieves {
		a.BelievesUntil, a.Loss = op.Invoke, LossReleased
	}
	if a.End == NotEnded && a.Granted.Known() && op.Effect.Known() {
		a.Ended, a.End = op.Effect, EndReleased
	}
}

func at(seconds string) Instant {
	f, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		panic(fmt.Sprintf("story: time %q", seconds))
	}
	return Instant{At: clock.Time(math.Round(f*1000)) * clock.Time(time.Millisecond)}
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("story: number %q", s))
	}
	return n
}
