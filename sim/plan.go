package sim

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"locklab/clock"
)

// Plan is a list of faults and of choices that do not follow the seed. The
// same plan runs against every design.
type Plan struct {
	Faults  []Fault
	Choices []Override
}

// Override fixes the answer of the choice at one place, in the choice's own
// unit (nanoseconds for durations).
type Override struct {
	At    PlacePattern // complete: every part that the place has
	Value int64
}

// FaultKind is one word of the plan vocabulary.
type FaultKind uint8

// The faults of the kernel, the network, the clocks and the disks, and the
// deeds done to servers.
const (
	FaultNone       FaultKind = iota
	Pause                     // process: nothing in it runs, its kernel lives
	Stall                     // task: only this task stops
	Freeze                    // node: the virtual machine is suspended, kernel and all
	Crash                     // process or node: memory is lost
	ClockStep                 // node: the wall clock jumps By
	ClockRate                 // node: both clocks run Rate parts per billion fast
	ClockOffset               // node: the wall clock is By ahead for the window
	DropRequest               // message: lost on its way to the server
	DropReply                 // message: took effect, the caller never learns
	Delay                     // message: By later, or held to the window's end
	Duplicate                 // message: arrives twice (datagrams only)
	Reorder                   // message: overtaken by the next (datagrams only)
	Partition                 // two sets of nodes: symmetric or OneWay, drop or hold
	Cut                       // connection: reset or silent
	FsyncStall                // disk: no fsync completes in the window
	LoseUnsynced              // disk: what was not fsynced is gone
	RestoreSnapshot           // disk: back to what it held By ago
	Evict                     // server: a key is gone, as under memory pressure
	Overwrite                 // server: another service writes a key, without a time to live
	Failover                  // replica group: a replica is promoted as it stands
	faultKindCount
)

var faultNames = [faultKindCount]string{"", "pause", "stall", "freeze", "crash", "clock-step", "clock-rate", "clock-offset",
	"drop-request", "drop-reply", "delay", "duplicate", "reorder", "partition", "cut", "fsync-stall", "lose-unsynced", "restore-snapshot",
	"evict", "overwrite", "failover"}

// String returns the fault's name in the plan vocabulary.
func (k FaultKind) String() string { return faultNames[k] }

// FaultNames lists the plan vocabulary in its documented order.
func FaultNames() []string { return faultNames[1:] }

// ParseFaultKind finds a fault by its name.
func ParseFaultKind(s string) (FaultKind, bool) {
	i, ok := parseName(faultNames[:], s)
	return FaultKind(i), ok
}

// Fault is one fault of a plan: what strikes whom, when, and for how long.
// Fields that a kind does not use must be zero; Validate says which it uses.
type Fault struct {
	Kind FaultKind
	// On names the victim: a process (pause, crash), a task such as
	// client-1.renewer (stall), a node (freeze, crash, clocks, disks), a link
	// client-1->storage or a sender client-1 (messages), a connection's link
	// (cut), a server (evict, overwrite, failover), or one side of a partition.
	// Only a partition takes several.
	On []string
	// From is the other side of a partition; empty means everybody else.
	From    []string
	Trigger Trigger

	For    Span      // how long the fault lasts; zero: at once over, or for ever (pause, partition)
	Until  Milestone // or: until this happened,
	AtMost Span      // but at most so long (needed with Until)

	By      Span  // clock-step, clock-offset, delay: how much; restore-snapshot: how long ago
	Rate    int64 // clock-rate: parts per billion, above -10^9
	Count   int   // message faults: how many messages; 0: one with a bare trigger, all of the window with For or Until
	Restart Span  // crash: up again after so long; zero: never
	OneWay  bool  // partition: only messages from On to From are hit
	// Mode: partition "drop" (default) or "hold"; cut "reset" (default) or
	// "silent"; crash "process" (default) or "node"; failover "isolated"
	// (default: the old primary lives on, untold) or "demoted".
	Mode string
	// Key: evict and overwrite. Value: overwrite; empty: any other value.
	Key, Value string
	// Monotonic: freeze "runs" (default) or "stops". Wall: freeze "right"
	// (default) or "behind".
	Monotonic, Wall string
}

// Trigger says when a fault strikes. Exactly one of the forms is set; the zero
// Trigger is the start of the run.
type Trigger struct {
	At     Span         // this true time
	Before PlacePattern // when a task is about to do this
	After  PlacePattern // when a task has done this
	When   Milestone    // as soon as this has happened (written as after: lock grants client-1)
	Step   Step         // before the Nth effect of a process (written client-1#17)
}

// Step is the Nth effect of a process, whatever it is: a fallback trigger that
// other designs may not have.
type Step struct {
	Proc string
	N    int32
}

// MilestoneKind is a happening that plans may wait for.
type MilestoneKind uint8

// The milestones. The kernel only counts them; whoever judges the run reports
// them through World.Reach.
const (
	MilestoneNone MilestoneKind = iota
	Granted
	Expired
	Released
	Acquired
	AcceptedRead
	AcceptedWrite
	RefusedWrite
	milestoneCount
)

var milestoneNames = [milestoneCount]string{"", "grant", "expiry", "release", "acquire", "accepted read", "accepted write", "refused write"}

// String returns the milestone's name in plans.
func (k MilestoneKind) String() string { return milestoneNames[k] }

// Milestone is the Nth happening of a kind that concerns one client.
type Milestone struct {
	Kind MilestoneKind
	Who  string
	N    int32 // counted from 1
}

var ordinals = []string{"", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"}

// String returns the written form, which ParseMilestone reads back.
func (m Milestone) String() string {
	switch {
	case m.Kind == MilestoneNone:
		return ""
	case m.Kind == Granted && m.N == 1:
		return "lock grants " + m.Who
	case int(m.N) < len(ordinals):
		return fmt.Sprintf("%s's %s %s", m.Who, ordinals[m.N], m.Kind)
	}
	return fmt.Sprintf("%s's %dth %s", m.Who, m.N, m.Kind)
}

// ParseMilestone reads "lock grants client-1" (also "lock expires", "lock
// releases") or "client-2's first accepted write".
func ParseMilestone(s string) (Milestone, error) {
	fail := func() (Milestone, error) {
		return Milestone{}, fmt.Errorf("cannot read the moment %q; write it like \"lock grants client-1\" or \"client-2's first accepted write\" (known: %s)",
			s, strings.Join(milestoneNames[1:], ", "))
	}
	words := strings.Fields(s)
	if len(words) == 3 && words[0] == "lock" {
		kind, ok := parseName([]string{Granted: "grants", Expired: "expires", Released: "releases"}, words[1])
		if !ok {
			return fail()
		}
		return Milestone{Kind: MilestoneKind(kind), Who: words[2], N: 1}, nil
	}
	if len(words) < 3 || !strings.HasSuffix(words[0], "'s") || words[0] == "'s" {
		return fail()
	}
	n, ok := parseName(ordinals, words[1])
	if !ok {
		digits := strings.TrimRight(words[1], "stndrh")
		v, err := strconv.ParseInt(digits, 10, 32)
		if err != nil || v < 1 {
			return fail()
		}
		n = int(v)
	}
	kind, ok := parseName(milestoneNames[:], strings.Join(words[2:], " "))
	if !ok {
		return fail()
	}
	return Milestone{Kind: MilestoneKind(kind), Who: strings.TrimSuffix(words[0], "'s"), N: int32(n)}, nil
}

// Span is a length of time in a plan: fixed ("9.2s") or a multiple of a
// parameter ("1.5*ttl", "ttl"), resolved when the run is set up. The zero Span
// is no time at all.
type Span struct {
	Fixed    time.Duration
	Num, Den int64  // factor of Param
	Param    string // "" for a fixed span
}

// Exactly returns a fixed span.
func Exactly(d time.Duration) Span { return Span{Fixed: d} }

// IsZero reports whether the span was left out.
func (s Span) IsZero() bool { return s == Span{} }

// String returns the written form, which ParseSpan reads back.
func (s Span) String() string {
	if s.Param == "" {
		return s.Fixed.String()
	}
	if s.Num == s.Den {
		return s.Param
	}
	f := new(big.Rat).SetFrac64(s.Num, s.Den).FloatString(factorMax)
	return strings.TrimSuffix(strings.TrimRight(f, "0"), ".") + "*" + s.Param
}

// factorMax is how many digits that matter a factor may have, so that its parts
// fit an int64 and String can write it out exactly.
const factorMax = 12

// digits counts the digits of a decimal number that matter: zeros around it do not.
func digits(decimal string) int {
	whole, fraction, _ := strings.Cut(strings.TrimLeft(decimal, "+-"), ".")
	return len(strings.TrimLeft(whole, "0")) + len(strings.TrimRight(fraction, "0"))
}

// ParseSpan reads "9.2s", "-3ms", "ttl" or "1.5*ttl". It does not check that
// the parameter exists; Resolve does.
func ParseSpan(s string) (Span, error) {
	text := strings.TrimSpace(s)
	if text == "" {
		return Span{}, fmt.Errorf("an empty duration; write it like 9.2s or 1.5*ttl")
	}
	if d, err := time.ParseDuration(text); err == nil {
		return Span{Fixed: d}, nil
	}
	factor, param, multiplied := strings.Cut(text, "*")
	if !multiplied {
		factor, param = "1", text
	}
	factor, param = strings.TrimSpace(factor), strings.TrimSpace(param)
	bad := fmt.Errorf("cannot read the duration %q; write it like 9.2s or 1.5*ttl", s)
	if param == "" || strings.Trim(param, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return Span{}, bad
	}
	if strings.Trim(factor, "+-.0123456789") != "" {
		return Span{}, bad
	}
	if digits(factor) > factorMax {
		return Span{}, fmt.Errorf("the factor of %q is too long; write at most %d digits", s, factorMax)
	}
	r, ok := new(big.Rat).SetString(factor)
	if !ok {
		return Span{}, bad
	}
	return Span{Num: r.Num().Int64(), Den: r.Denom().Int64(), Param: param}, nil
}

// Resolve returns the span as a duration. params maps a parameter to its
// value; an unknown parameter is an error.
func (s Span) Resolve(params func(string) (time.Duration, bool)) (time.Duration, error) {
	if s.Param == "" {
		return s.Fixed, nil
	}
	v, ok := params(s.Param)
	if !ok {
		return 0, fmt.Errorf("no duration parameter is called %q; use ttl, work, think, retry or call_timeout", s.Param)
	}
	r := new(big.Int).Mul(big.NewInt(int64(v)), big.NewInt(s.Num))
	r.Quo(r, big.NewInt(s.Den))
	if !r.IsInt64() {
		return 0, fmt.Errorf("%s is too long", s)
	}
	return time.Duration(r.Int64()), nil
}

// Resolve returns the plan with every span fixed, given the run's parameters.
// Errors begin with the number of the fault, counted from 1.
func (p Plan) Resolve(params func(string) (time.Duration, bool)) (Plan, error) {
	out := Plan{Faults: make([]Fault, len(p.Faults)), Choices: p.Choices}
	for i, f := range p.Faults {
		for _, s := range []*Span{&f.For, &f.AtMost, &f.By, &f.Restart, &f.Trigger.At} {
			d, err := s.Resolve(params)
			if err != nil {
				return Plan{}, &FaultError{Index: i, Err: err}
			}
			if d == 0 && s.Param != "" { // it would count as left out: for ever, or never
				return Plan{}, &FaultError{Index: i, Err: fmt.Errorf("%s is no time at all here; the shortest is 1ns", s)}
			}
			*s = Span{Fixed: d}
		}
		out.Faults[i] = f
	}
	return out, nil
}

// FaultError is a mistake in one fault of a plan.
type FaultError struct {
	Index int    // which fault, counted from 0
	Field string // the YAML field at fault; "" for the fault as a whole
	Err   error
}

// Error names the fault, counted from 1 as a reader would.
func (e *FaultError) Error() string { return fmt.Sprintf("fault %d: %v", e.Index+1, e.Err) }

// Unwrap returns the mistake itself.
func (e *FaultError) Unwrap() error { return e.Err }

// faultFields says which optional fields each kind takes beside the trigger.
var faultFields = [faultKindCount]string{
	Pause:           "for until at_most",
	Stall:           "for until at_most",
	Freeze:          "for until at_most monotonic wall",
	Crash:           "restart mode",
	ClockStep:       "by",
	ClockRate:       "rate for until at_most",
	ClockOffset:     "by for until at_most",
	DropRequest:     "for until at_most count",
	DropReply:       "for until at_most count",
	Delay:           "by for until at_most count",
	Duplicate:       "for until at_most count",
	Reorder:         "for until at_most count",
	Partition:       "from for until at_most mode one_way",
	Cut:             "mode",
	FsyncStall:      "for until at_most",
	LoseUnsynced:    "",
	RestoreSnapshot: "by",
	Evict:           "key",
	Overwrite:       "key value",
	Failover:        "mode",
}

// Validate checks everything about a fault that can be checked without a
// world: fields that its kind does not take, missing and negative values.
func (f *Fault) Validate() error {
	bad := func(field, format string, args ...any) error {
		return &FaultError{Field: field, Err: fmt.Errorf(format, args...)}
	}
	if f.Kind == FaultNone || f.Kind >= faultKindCount {
		return bad("fault", "no kind; known are %s", strings.Join(FaultNames(), ", "))
	}
	for _, has := range []struct {
		field string
		set   bool
	}{
		{"from", len(f.From) > 0}, {"for", !f.For.IsZero()}, {"until", f.Until.Kind != MilestoneNone},
		{"at_most", !f.AtMost.IsZero()}, {"by", !f.By.IsZero()}, {"rate", f.Rate != 0}, {"count", f.Count != 0},
		{"restart", !f.Restart.IsZero()}, {"one_way", f.OneWay}, {"mode", f.Mode != ""},
		{"monotonic", f.Monotonic != ""}, {"wall", f.Wall != ""}, {"key", f.Key != ""}, {"value", f.Value != ""},
	} {
		if has.set && !strings.Contains(" "+faultFields[f.Kind]+" ", " "+has.field+" ") {
			return bad(has.field, "%s takes no %s; beside on and the trigger it takes: %s", f.Kind, has.field, faultFields[f.Kind])
		}
	}
	if len(f.On) == 0 {
		return bad("on", "%s needs on: whom it strikes", f.Kind)
	}
	if len(f.On) > 1 && f.Kind != Partition {
		return bad("on", "%s strikes one at a time; write one fault for each of %s", f.Kind, strings.Join(f.On, ", "))
	}
	if f.Until.Kind != MilestoneNone && f.AtMost.IsZero() {
		return bad("until", "until needs at_most: how long to wait if it never happens")
	}
	if f.Until.Kind == MilestoneNone && !f.AtMost.IsZero() {
		return bad("at_most", "at_most goes with until; for a fixed length write for")
	}
	if f.Until.Kind != MilestoneNone && !f.For.IsZero() {
		return bad("for", "for and until exclude each other")
	}
	for _, s := range []struct {
		field string
		span  Span
	}{{"for", f.For}, {"at_most", f.AtMost}, {"restart", f.Restart}, {"at", f.Trigger.At}} {
		if s.span.Fixed < 0 || s.span.Num < 0 {
			return bad(s.field, "%s must not be negative, got %s", s.field, s.span)
		}
	}
	if err := f.Trigger.validate(); err != nil {
		return err
	}
	if f.Until.Kind != MilestoneNone && f.Until.N < 1 {
		return bad("until", "a happening is counted from 1, got %d", f.Until.N)
	}
	bounded := !f.For.IsZero() || f.Until.Kind != MilestoneNone
	switch f.Kind {
	case ClockStep, ClockOffset:
		if f.By.IsZero() {
			return bad("by", "%s needs by: how far, for example 12s or -3s", f.Kind)
		}
	case ClockRate:
		if f.Rate < clock.RateMin || f.Rate > clock.RateMax || f.Rate == 0 {
			return bad("rate", "clock-rate needs rate in parts per billion, from %d to %d and not 0, got %d", clock.RateMin, clock.RateMax, f.Rate)
		}
	case RestoreSnapshot:
		if f.By.Fixed < 0 || f.By.Num < 0 || f.By.IsZero() {
			return bad("by", "restore-snapshot needs by: how old the snapshot is, for example 5s")
		}
	case Evict, Overwrite:
		if f.Key == "" {
			return bad("key", "%s needs key: which one, for example lock", f.Kind)
		}
	case Freeze, FsyncStall:
		if !bounded {
			return bad("for", "%s needs for or until", f.Kind)
		}
	case Delay:
		if f.By.IsZero() && !bounded {
			return bad("by", "delay needs by: how much later; or for or until: how long messages are held")
		}
		if f.By.Fixed < 0 || f.By.Num < 0 {
			return bad("by", "a delay cannot be negative, got %s", f.By)
		}
	}
	if f.Count < 0 {
		return bad("count", "count must be 1 or more, got %d", f.Count)
	}
	for _, w := range []struct{ field, value, allowed string }{
		{"mode", f.Mode, map[FaultKind]string{Partition: "drop hold", Cut: "reset silent", Crash: "process node", Failover: "isolated demoted"}[f.Kind]},
		{"monotonic", f.Monotonic, "runs stops"}, {"wall", f.Wall, "right behind"},
	} {
		if w.value != "" && !strings.Contains(" "+w.allowed+" ", " "+w.value+" ") {
			return bad(w.field, "%s is %s, got %q", w.field, strings.ReplaceAll(w.allowed, " ", " or "), w.value)
		}
	}
	return nil
}

// FaultSummary describes one word of the plan vocabulary.
type FaultSummary struct {
	Name    string
	On      string // what it strikes
	Summary string // one line
}

// FaultSummaries lists the plan vocabulary in its documented order.
func FaultSummaries() []FaultSummary {
	about := [faultKindCount]struct{ on, summary string }{
		Pause:           {"a process", "nothing in it runs; its kernel accepts bytes, and its clocks run on"},
		Stall:           {"a task", "only this task stops, like a starved renewer: client-1.renewer"},
		Freeze:          {"a node", "the machine is suspended, kernel and all; monotonic: runs|stops, wall: right|behind"},
		Crash:           {"a process or node", "memory is lost; mode: process|node, restart: after so long"},
		ClockStep:       {"a node", "its wall clock jumps by so much"},
		ClockRate:       {"a node", "its clocks run fast or slow by rate, in parts per billion"},
		ClockOffset:     {"a node", "its wall clock is wrong by so much, for a while or from the start"},
		DropRequest:     {"a link", "a message is lost on its way: client-1->storage"},
		DropReply:       {"a link", "the reply is lost: it took effect, and the caller never learns"},
		Delay:           {"a link", "a message comes by so much later, or is held for so long or until something happens"},
		Duplicate:       {"a link", "a datagram arrives twice"},
		Reorder:         {"a link", "a datagram is overtaken by later ones"},
		Partition:       {"nodes", "messages between on and from are stopped; mode: drop|hold, one_way"},
		Cut:             {"a link", "its connections end; mode: reset (both sides learn) or silent (nobody does)"},
		FsyncStall:      {"a node", "no fsync on its disk completes"},
		LoseUnsynced:    {"a node", "what its disk had not fsynced is gone, but perhaps for a part of it"},
		RestoreSnapshot: {"a node", "an operator puts back the disk of so long ago and restarts the servers"},
		Evict:           {"a server", "memory pressure takes a key: key"},
		Overwrite:       {"a server", "another service or an operator writes a key without a time to live: key, value"},
		Failover:        {"a replica group", "the best replica is promoted as it stands, named by any server of the group; mode: isolated (the old primary lives on, untold)|demoted"},
	}
	var out []FaultSummary
	for k := Pause; k < faultKindCount; k++ {
		out = append(out, FaultSummary{Name: k.String(), On: about[k].on, Summary: about[k].summary})
	}
	return out
}

// validate checks that at most one form is used, and used rightly.
func (t *Trigger) validate() error {
	bad := func(field, format string, args ...any) error {
		return &FaultError{Field: field, Err: fmt.Errorf(format, args...)}
	}
	var forms []string
	for _, form := range []struct {
		field string
		set   bool
	}{
		{"at", !t.At.IsZero()}, {"before", !t.Before.IsZero()}, {"after", !t.After.IsZero() || t.When.Kind != MilestoneNone},
		{"step", t.Step != Step{}},
	} {
		if form.set {
			forms = append(forms, form.field)
		}
	}
	switch {
	case len(forms) > 1:
		return bad(forms[1], "a fault has one trigger, not both %s", strings.Join(forms, " and "))
	case !t.After.IsZero() && t.When.Kind != MilestoneNone:
		return bad("after", "a fault has one trigger: a place or a happening, not both")
	case t.When.Kind >= milestoneCount || t.When.Kind != MilestoneNone && t.When.N < 1:
		return bad("after", "a happening is counted from 1, got %d", t.When.N)
	case t.Step != Step{} && (t.Step.N < 1 || t.Step.Proc == ""):
		return bad("step", "a step is a process and a number from 1, got %s#%d", t.Step.Proc, t.Step.N)
	}
	return nil
}
