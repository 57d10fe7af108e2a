package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPlaceRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := PlacePattern{
			Proc:    rapid.StringMatching(`[a-z][a-z0-9.-]{0,8}`).Draw(t, "proc"),
			Section: rapid.Int32Range(0, 99).Draw(t, "section"),
			Phase:   Phase(rapid.IntRange(0, int(phaseCount)-1).Draw(t, "phase")),
			Op:      rapid.Int32Range(0, math.MaxInt32).Draw(t, "op"),
			Point:   Point(rapid.IntRange(0, int(pointCount)-1).Draw(t, "point")),
		}
		if q, err := ParsePlace(p.String()); err != nil || q != p {
			t.Fatalf("%+v is written %s and read %+v (%v)", p, p, q, err)
		}
	})
}

func TestParsePlaceErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                        `place "" does not begin with a process name`,
		"/write":                  `does not begin with a process name`,
		"client-1/wirte":          `unknown part "wirte"; after the process come section#N, a phase (acquire,`,
		"client-1/write#3":        `unknown part "write#3"`,
		"client-1/op#0":           `"op#0" needs a number from 1 after the #`,
		"client-1/op#x":           `"op#x" needs a number`,
		"client-1/op#99999999999": `needs a number`,
		"client-1/op#1/write":     `"write" stands out of order; the order is process/section#N/phase/op#N/point`,
		"client-1/write/write":    `out of order`,
		"redis-1/request#7/op#7":  `"op#7" stands out of order`,
		"client-1//write":         `unknown part ""`,
		"client-1/before/extra#1": `unknown part "extra#1"`,
	} {
		if _, err := ParsePlace(in); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v\nwant ...%s...", in, err, want)
		}
	}
}

func TestPatternsMatch(t *testing.T) {
	at := Place{Section: 2, Phase: PhaseWrite, Op: 3, Point: PointBefore}
	for pattern, want := range map[string]bool{
		"c": true, "c/section#2": true, "c/write": true, "c/op#3": true, "c/section#2/write/op#3": true, "c/section#2/write/op#3/before": true,
		"c/section#1": false, "c/read": false, "c/op#1": false, "c/section#2/write/op#4": false,
	} {
		if got := place(t, pattern).matches(at); got != want {
			t.Errorf("%s matches %s: %v, want %v", pattern, at.name("c"), got, want)
		}
	}
}

// roundTrip checks what must hold for every text: a parser does not panic, and
// what it reads it writes so that it reads the same again.
func roundTrip[T interface {
	comparable
	fmt.Stringer
}](t *testing.T, in string, parse func(string) (T, error)) {
	v, err := parse(in)
	if err != nil {
		if strings.TrimSpace(err.Error()) == "" {
			t.Errorf("%q: an error without words", in)
		}
		return
	}
	again, err := parse(v.String())
	if err != nil || again != v {
		t.Errorf("%q is read as %+v, written %q and read again as %+v (%v)", in, v, v.String(), again, err)
	}
}

func FuzzParsePlace(f *testing.F) {
	for _, s := range []string{"client-1/section#2/write/op#1/before", "redis-1/request#7/apply", "c", "c/request/op#3", "c/+/#", "c/op#+1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) { roundTrip(t, in, ParsePlace) })
}

func FuzzParseMilestone(f *testing.F) {
	for _, s := range []string{"lock grants client-1", "lock expires c", "client-2's first accepted write", "c's 17th grant", "c's 1st grant",
		"'s first grant", "lock's second grant", "lock grants c's", "c's +3th release"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) { roundTrip(t, in, ParseMilestone) })
}

func FuzzParseSpan(f *testing.F) {
	for _, s := range []string{"9.2s", "-3ms", "ttl", "1.5*ttl", "0.0000000001*ttl", "-.5*a", "+2*ttl", "0b11*ttl", "2562047h47m16.854775807s",
		"1*", "*ttl", "999999999999*ttl", "..*ttl", "1_0*ttl", ".00000000001*a", "-0.000000000001*ttl", "00001.50000000000000*ttl", "1..5*ttl"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) { roundTrip(t, in, ParseSpan) })
}

func TestMilestones(t *testing.T) {
	for in, want := range map[string]string{
		"lock grants client-1":             "lock grants client-1",
		"lock expires client-1":            "client-1's first expiry",
		"client-1's first grant":           "lock grants client-1",
		"client-2's 3rd accepted write":    "client-2's third accepted write",
		"client-2's   twelfth accepted":    "",
		"client-2's 12th   refused  write": "client-2's 12th refused write",
		"client-2's 0th grant":             "",
		"lock breaks client-1":             "",
		"client-2 first grant":             "",
		"":                                 "",
	} {
		m, err := ParseMilestone(in)
		if m.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q is read as %q (%v), want %q", in, m, err, want)
		}
	}
}

func TestSpans(t *testing.T) {
	params := func(name string) (time.Duration, bool) {
		d, ok := map[string]time.Duration{"ttl": 10 * time.Second, "odd": 7, "huge": math.MaxInt64}[name]
		return d, ok
	}
	for in, want := range map[string]string{
		"9.2s":             "9.2s",
		"1.5*ttl":          "15s",
		" 1.5 * ttl ":      "15s",
		"ttl":              "10s",
		"0.5*odd":          "3ns",
		"-0.5*odd":         "-3ns", // towards zero
		"0.00000001*ttl":   "100ns",
		"2*huge":           "2*huge is too long",
		"1*huge":           "2562047h47m16.854775807s",
		"2*nothing":        `no duration parameter is called "nothing"`,
		"2*":               "cannot read the duration",
		"2*3":              "cannot read the duration",
		"1/2*ttl":          "cannot read the duration",
		"1e3*ttl":          "cannot read the duration",
		"":                 "an empty duration",
		"9.2":              "cannot read the duration",
		"1.0000000000*ttl": "10s",
	} {
		got := ""
		s, err := ParseSpan(in)
		if err == nil {
			var d time.Duration
			d, err = s.Resolve(params)
			got = d.String()
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestResolve(t *testing.T) {
	span := func(s string) Span {
		v, err := ParseSpan(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	params := func(name string) (time.Duration, bool) { return 10 * time.Second, name == "ttl" }
	plan := Plan{Faults: []Fault{{Kind: Pause, On: []string{"c"}, For: span("1.5*ttl"), Trigger: Trigger{At: span("ttl")}}}}
	got, err := plan.Resolve(params)
	if err != nil || got.Faults[0].For != Exactly(15*time.Second) || got.Faults[0].Trigger.At != Exactly(10*time.Second) {
		t.Errorf("%+v, %v", got, err)
	}
	if plan.Faults[0].For.Param != "ttl" {
		t.Error("the plan itself was changed")
	}
	plan.Faults[0].For = span("0*ttl") // must not become a pause for ever
	if _, err := plan.Resolve(params); err == nil || !strings.HasPrefix(err.Error(), "fault 1: 0*ttl is no time at all") {
		t.Error(err)
	}
	plan.Faults[0].For = span("2*tll")
	if _, err := plan.Resolve(params); err == nil || !strings.HasPrefix(err.Error(), `fault 1: no duration parameter is called "tll"`) {
		t.Error(err)
	}
}

// TestValidate: every mistake is one line that names the field.
func TestValidate(t *testing.T) {
	on := []string{"c"}
	for _, c := range []struct {
		field, want string
		f           Fault
	}{
		{"", "", Fault{Kind: Pause, On: on}},
		{"", "", Fault{Kind: Partition, On: []string{"a", "b"}, From: []string{"c", "d"}, OneWay: true, Mode: "hold"}},
		{"fault", "no kind; known are pause, stall,", Fault{On: on}},
		{"fault", "no kind", Fault{Kind: faultKindCount, On: on}},
		{"on", "pause needs on", Fault{Kind: Pause}},
		{"on", "one at a time", Fault{Kind: Pause, On: []string{"a", "b"}}},
		{"rate", "pause takes no rate; beside on and the trigger it takes: for until at_most", Fault{Kind: Pause, On: on, Rate: 1}},
		{"from", "takes no from", Fault{Kind: Pause, On: on, From: on}},
		{"mode", `mode is reset or silent, got "loud"`, Fault{Kind: Cut, On: on, Mode: "loud"}},
		{"mode", "mode is process or node", Fault{Kind: Crash, On: on, Mode: "machine"}},
		{"mode", "pause takes no mode", Fault{Kind: Pause, On: on, Mode: "node"}},
		{"monotonic", "monotonic is runs or stops", Fault{Kind: Freeze, On: on, For: Exactly(1), Monotonic: "stop"}},
		{"wall", "wall is right or behind", Fault{Kind: Freeze, On: on, For: Exactly(1), Wall: "left"}},
		{"until", "until needs at_most", Fault{Kind: Pause, On: on, Until: Milestone{Kind: Granted, Who: "c", N: 1}}},
		{"until", "counted from 1, got 0", Fault{Kind: Pause, On: on, Until: Milestone{Kind: Granted, Who: "c"}, AtMost: Exactly(1)}},
		{"at_most", "at_most goes with until", Fault{Kind: Pause, On: on, AtMost: Exactly(1)}},
		{"for", "exclude each other", Fault{Kind: Pause, On: on, For: Exactly(1), Until: Milestone{Kind: Granted, Who: "c", N: 1}, AtMost: Exactly(1)}},
		{"for", "for must not be negative, got -1ns", Fault{Kind: Pause, On: on, For: Exactly(-1)}},
		{"at", "at must not be negative", Fault{Kind: Pause, On: on, Trigger: Trigger{At: Exactly(-1)}}},
		{"by", "clock-step needs by", Fault{Kind: ClockStep, On: on}},
		{"by", "restore-snapshot needs by", Fault{Kind: RestoreSnapshot, On: on}},
		{"by", "delay needs by", Fault{Kind: Delay, On: on}},
		{"by", "a delay cannot be negative", Fault{Kind: Delay, On: on, By: Exactly(-1)}},
		{"rate", "from -999999999 to 1000000000000000 and not 0, got 0", Fault{Kind: ClockRate, On: on}},
		{"rate", "got -1000000000", Fault{Kind: ClockRate, On: on, Rate: -1_000_000_000}},
		{"for", "fsync-stall needs for or until", Fault{Kind: FsyncStall, On: on}},
		{"count", "count must be 1 or more, got -1", Fault{Kind: DropReply, On: on, Count: -1}},
		{"before", "a fault has one trigger, not both at and before", Fault{Kind: Pause, On: on, Trigger: Trigger{At: Exactly(1), Before: PlacePattern{Proc: "c"}}}},
		{"after", "a place or a happening, not both", Fault{Kind: Pause, On: on, Trigger: Trigger{After: PlacePattern{Proc: "c"}, When: Milestone{Kind: Granted, Who: "c", N: 1}}}},
		{"after", "counted from 1, got 0", Fault{Kind: Pause, On: on, Trigger: Trigger{When: Milestone{Kind: Granted, Who: "c"}}}},
		{"step", "a number from 1, got c#-1", Fault{Kind: Pause, On: on, Trigger: Trigger{Step: Step{Proc: "c", N: -1}}}},
	} {
		err := c.f.Validate()
		if c.want == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.f, err)
			}
			continue
		}
		fe, ok := err.(*FaultError)
		if !ok || fe.Field != c.field || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want field %s, ...%s...", c.f, err, c.field, c.want)
		}
	}
}

func TestFaultNames(t *testing.T) {
	for _, name := range FaultNames() {
		if k, ok := ParseFaultKind(name); !ok || k.String() != name {
			t.Errorf("%s is not read back", name)
		}
		if f := (faultFields[mustKind(name)]); f == "" && name != "lose-unsynced" {
			t.Errorf("%s has no list of fields", name)
		}
	}
	if _, ok := ParseFaultKind(""); ok {
		t.Error("a nameless fault")
	}
}

func mustKind(name string) FaultKind { k, _ := ParseFaultKind(name); return k }
