package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// Phase says what a process is busy with. Clients go through acquire, read,
// work, write, renew and release (and think in between); servers handle
// requests, timers and starts, and send messages to each other.
type Phase uint8

// The phases. PhaseNone is a client between two sections.
const (
	PhaseNone Phase = iota
	PhaseAcquire
	PhaseRead
	PhaseWork
	PhaseWrite
	PhaseRenew
	PhaseRelease
	PhaseThink
	PhaseRequest
	PhaseTimer
	PhaseStart
	PhaseSend
	phaseCount
)

var phaseNames = [phaseCount]string{"", "acquire", "read", "work", "write", "renew", "release", "think", "request", "timer", "start", "send"}

// String returns the phase's name as places spell it.
func (p Phase) String() string { return phaseNames[p] }

// Point says where inside an operation something can happen or be chosen.
type Point uint8

// The points. A fault strikes at PointBefore or PointAfter (a task's effect)
// or PointApply (a server about to handle a request); the others are the keys
// of choices. PointNone in a pattern matches any point.
const (
	PointNone Point = iota
	PointBefore
	PointAfter
	PointApply
	PointRequestLatency
	PointReplyLatency
	PointJitter
	PointValue
	PointResume
	PointSurvive
	PointExtra
	PointArrival // when work comes from outside
	pointCount
)

var pointNames = [pointCount]string{"", "before", "after", "apply", "request-latency", "reply-latency", "jitter", "value", "resume", "survive", "extra", "arrival"}

// String returns the point's name as places spell it.
func (p Point) String() string { return pointNames[p] }

// Place names one point of a run: who, in which section, in which phase, at
// which operation of it. It is the key of a choice, the trigger of a fault and
// the unit of enumeration. Because its first parts come from the phase the
// client is in, a place means the same under every design.
//
// The written form is client-1/section#2/write/op#1/before for a client and
// redis-1/request#7/apply for a server.
type Place struct {
	Proc    ProcID
	Section int32 // counted from 1; 0 outside sections
	Op      int32 // counted from 1 in its phase and section
	Phase   Phase
	Point   Point
}

// name renders the place with the process's name.
func (p Place) name(proc string) string {
	return PlacePattern{Proc: proc, Section: p.Section, Phase: p.Phase, Op: p.Op, Point: p.Point}.String()
}

// PlacePattern is a place as a plan writes it: by the process's name, with any
// of the later parts left out. A missing part matches everything, and the
// pattern as a whole means the first place that matches.
type PlacePattern struct {
	Proc    string
	Section int32
	Phase   Phase
	Op      int32
	Point   Point
}

// IsZero reports whether the pattern was never set.
func (p PlacePattern) IsZero() bool { return p.Proc == "" }

// String returns the written form, which ParsePlace reads back.
func (p PlacePattern) String() string {
	var b strings.Builder
	b.WriteString(p.Proc)
	if p.Section > 0 {
		b.WriteString("/section#" + strconv.Itoa(int(p.Section)))
	}
	if p.Phase >= PhaseRequest { // servers number their phases: request#7
		b.WriteString("/" + p.Phase.String())
		if p.Op > 0 {
			b.WriteString("#" + strconv.Itoa(int(p.Op)))
		}
	} else {
		if p.Phase > PhaseNone {
			b.WriteString("/" + p.Phase.String())
		}
		if p.Op > 0 {
			b.WriteString("/op#" + strconv.Itoa(int(p.Op)))
		}
	}
	if p.Point > PointNone {
		b.WriteString("/" + p.Point.String())
	}
	return b.String()
}

// ParsePlace reads the written form of a place. Errors say which part is wrong
// and what would be right.
func ParsePlace(s string) (PlacePattern, error) {
	parts := strings.Split(s, "/")
	p := PlacePattern{Proc: parts[0]}
	if p.Proc == "" || strings.ContainsAny(p.Proc, "# \t") {
		return PlacePattern{}, fmt.Errorf("place %q does not begin with a process name; write it like client-1/section#1/write/op#1", s)
	}
	// Parts may be left out but not change order: section, phase, op, point.
	const (
		atSection = iota + 1
		atPhase
		atOp
		atPoint
	)
	last := 0
	for _, part := range parts[1:] {
		name, number, numbered := strings.Cut(part, "#")
		n := int32(0)
		if numbered {
			v, err := strconv.ParseInt(number, 10, 32)
			if err != nil || v < 1 {
				return PlacePattern{}, fmt.Errorf("place %q: %q needs a number from 1 after the #", s, part)
			}
			n = int32(v)
		}
		kind := 0
		phase, isPhase := parseName(phaseNames[:], name)
		point, isPoint := parseName(pointNames[:], name)
		switch {
		case name == "section" && numbered:
			kind, p.Section = atSection, n
		case name == "op" && numbered:
			kind, p.Op = atOp, n
		case isPhase && (!numbered || Phase(phase) >= PhaseRequest):
			kind, p.Phase = atPhase, Phase(phase)
		case isPoint && !numbered:
			kind, p.Point = atPoint, Point(point)
		default:
			return PlacePattern{}, fmt.Errorf("place %q: unknown part %q; after the process come section#N, a phase (%s), op#N and a point (before, after, apply)",
				s, part, strings.Join(phaseNames[1:], ", "))
		}
		if kind <= last {
			return PlacePattern{}, fmt.Errorf("place %q: %q stands out of order; the order is process/section#N/phase/op#N/point", s, part)
		}
		last = kind
		if kind == atPhase && numbered { // request#7 names its operation too
			last, p.Op = atOp, n
		}
	}
	return p, nil
}

// parseName finds a non-empty name in a table and returns its index.
func parseName(table []string, name string) (int, bool) {
	for i, n := range table {
		if n == name && n != "" {
			return i, true
		}
	}
	return 0, false
}
