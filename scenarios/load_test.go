package scenarios

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/sim"
)

const goodScenario = `
name: kleppmann/example
title: "An example: all of it"
story: |
  One sentence.
  Another.
source: https://example.org/article
design: redis/lua-release
resource: [plain, fenced]
clients: 2
sections: 1
workload: write
stuck_after: 45s
params:
  ttl: 8s
  checks_validity: true
plan:
  - fault: pause
    on: client-1
    before: client-1/section#1/write
    until: client-2's first accepted write
    at_most: 60s
  - {fault: partition, on: [client-1], from: [redis-4, redis-5], at: 0s, for: 1.5*ttl, mode: drop}
  - fault: clock-rate
    on: redis-1
    after: lock grants client-1
    rate: -0.5%
  - fault: crash
    on: redis-1
    step: client-1#17
    restart: after 2s
  - fault: delay
    on: client-1 -> storage
    after: client-2's first release
    by: ttl
witnesses:
  - client-1 was paused past its ttl while it held the lock
expect:
  - design: redis/*
    verdict: two-writers
    lock: overlap
    why: because
  - resource: [fenced, "*-reads"]
    verdict: fenced
questions: [Why?, Why not?]
answers: {token: b, owner: a, write: c, repeat: d, recovery: e}
`

func TestLoadReadsEverything(t *testing.T) {
	s, err := Load([]byte(goodScenario), "example.yaml")
	require.NoError(t, err)
	require.Len(t, s.faults, 5)
	require.Len(t, s.references, 6)
	s.faults, s.references = nil, nil // TestLocate, TestCheckNames
	params := DefaultParams()
	params.Clients, params.Sections, params.Workload, params.StuckAfter = 2, 1, Write, 45*time.Second
	params.TTL, params.ChecksValidity = 8*time.Second, true
	require.Equal(t, &Scenario{
		Name: "kleppmann/example", Title: "An example: all of it", Story: "One sentence.\nAnother.",
		Source:  []string{"https://example.org/article"},
		Designs: []string{"redis/lua-release"}, Resources: []string{"plain", "fenced"},
		Params: params,
		Plan: sim.Plan{Faults: []sim.Fault{
			{
				Kind: sim.Pause, On: []string{"client-1"},
				Trigger: sim.Trigger{Before: sim.PlacePattern{Proc: "client-1", Section: 1, Phase: sim.PhaseWrite}},
				Until:   sim.Milestone{Kind: sim.AcceptedWrite, Who: "client-2", N: 1}, AtMost: sim.Exactly(time.Minute),
			},
			{
				Kind: sim.Partition, On: []string{"client-1"}, From: []string{"redis-4", "redis-5"},
				For: sim.Span{Num: 3, Den: 2, Param: "ttl"}, Mode: "drop",
			},
			{
				Kind: sim.ClockRate, On: []string{"redis-1"}, Rate: -5_000_000,
				Trigger: sim.Trigger{When: sim.Milestone{Kind: sim.Granted, Who: "client-1", N: 1}},
			},
			{
				Kind: sim.Crash, On: []string{"redis-1"}, Restart: sim.Exactly(2 * time.Second),
				Trigger: sim.Trigger{Step: sim.Step{Proc: "client-1", N: 17}},
			},
			{
				Kind: sim.Delay, On: []string{"client-1->storage"}, By: sim.Span{Num: 1, Den: 1, Param: "ttl"},
				Trigger: sim.Trigger{When: sim.Milestone{Kind: sim.Released, Who: "client-2", N: 1}},
			},
		}},
		Witnesses: []Witness{{"client-1 was paused past its ttl while it held the lock", Pos{"example.yaml", 37, 5}}},
		Expect: []Expectation{
			{Designs: []string{"redis/*"}, Verdict: "two-writers", Lock: "overlap", Why: "because", Pos: Pos{"example.yaml", 39, 5}},
			{Resources: []string{"fenced", "*-reads"}, Verdict: "fenced", Pos: Pos{"example.yaml", 43, 5}},
		},
		Questions: []string{"Why?", "Why not?"},
		Answers: []Answer{{"Who owns the lock?", "a"}, {"Which token counts?", "b"}, {"Is the write allowed?", "c"},
			{"Is a repeat safe?", "d"}, {"How does the system recover?", "e"}},
	}, s)
}

func TestLoadNamesAScenarioAfterItsFile(t *testing.T) {
	s, err := Load([]byte("\ufeffplan: []\r\ntitle: x\r\n"), "/home/me/mine.yaml")
	require.NoError(t, err)
	require.Equal(t, "mine", s.Name)
	require.Equal(t, DefaultParams(), s.Params)
}

// badScenarios are mistakes and the one line that each is answered with. Where
// it ends in ... the rest lists a vocabulary that belongs to sim.
var badScenarios = []struct{ yaml, want string }{
	// Not a scenario at all.
	{"", `1:1: the file is empty; write at least name: and plan:`},
	{"# nothing\n", `1:1: the file is empty; write at least name: and plan:`},
	{"just words\n", `1:1: a scenario is written as key: value lines, got a text`},
	{"- a\n- b\n", `1:1: a scenario is written as key: value lines, got a list`},
	{"name: [a\n", `1:7: this is not YAML that can be read: sequence end token ']' not found; check indentation, quotes and brackets`},
	{"name: a: b\n", `1:7: this is not YAML that can be read: mapping value is not allowed in this context; check indentation, quotes and brackets`},
	{"name: a\n---\nname: b\n", `2:1: a second document begins here; write one a file`},
	{"name: \xff\n", `1:1: the file is not UTF-8 text`},
	{"name: a\ntitle: b\x00c\n", `2:9: a control character; write it as an escape in double quotes`},
	{strings.Repeat("#", fileMax+1), `1:1: the file has 262145 bytes; allowed are 262144`},
	{"story: |\n" + strings.Repeat("\n", 2000), `1:1: the file has 2002 lines, 2001 of them blank; allowed are 10000 and 1000`},

	// YAML that scenarios have no use for.
	{"name: &n a\n", `1:7: anchors, aliases and merge keys (& * <<) are not read; write the value out, or quote a text that begins with &`},
	{"design: *\n", `1:9: anchors, aliases and merge keys (& * <<) are not read; write the value out, or quote a text that begins with *`},
	{"<<: {name: a}\n", `1:1: anchors, aliases and merge keys (& * <<) are not read; write the value out, or quote a text that begins with <<`},
	{"name: !!str a\n", `1:7: tags such as !!str are not read; leave it out`},
	{"? name\n: a\n", `1:1: keys marked with ? are not read; write key: value`},
	{"%YAML 1.2\n---\nname: a\n", `1:1: directives are not read; leave the line out`},
	{"source: " + strings.Repeat("[", 30), `1:29: nested deeper than 20 levels; a scenario needs three`},
	{"source:\n  " + strings.Repeat("- ", 30), `2:43: nested deeper than 20 levels; a scenario needs three`},

	// Keys and types.
	{"name: a\ntitel: b\n", `2:1: unknown key in a scenario "titel"; did you mean "title"?`},
	{"name: a\nname: b\n", `2:1: name stands twice in a scenario; the first is in line 1`},
	{"name: Gc Pause\n", `1:7: cannot read "Gc Pause"; a name is lower-case words with - and /, such as redis/lua-release`},
	{"title: 12\n", `1:8: want a text, got a number; put a text that looks like one in quotes`},
	{"title: [a]\n", `1:8: want a text, got a list; put a text that looks like one in quotes`},
	{"title:\n", `1:8: want a text, got nothing; write one or leave the key out`},
	{"title: ''\n", `1:8: want a text, got an empty one; write one or leave the key out`},
	{"source: {a: b}\n", `1:9: want a text, got a mapping; put a text that looks like one in quotes`},
	{"witnesses: a\n", `1:12: want a list, each item of which is a witness, got a text`},
	{"questions: [a, [b]]\n", `1:16: want a text, got a list; put a text that looks like one in quotes`},

	// Parameters.
	{"clients: 0\n", `1:10: clients: 0 is out of range; allowed is 1 to 1000`},
	{"clients: two\n", `1:10: clients: cannot read "two" as a whole number; allowed is 1 to 1000`},
	{"clients: [2]\n", `1:10: want a single value, got a list; write just one`},
	{"workload: apend\n", `1:11: workload: unknown workload "apend"; did you mean "append"?`},
	{"params:\n  clients: 2\n", `2:12: clients does not belong under params; move it to the top level`},
	{"params:\n  tll: 3s\n", `2:3: unknown key in params "tll"; did you mean "ttl"?`},
	{"params:\n  ttl: 0s\n", `2:8: ttl: 0s is out of range; allowed is 1ms to 1000h`},
	{"params:\n  ttl: 30\n", `2:8: ttl: cannot read "30" as a duration; write it like 30s or 500ms`},
	{"params:\n  latency_min: 1s\n", `2:16: latency_min: 1s is above latency_max, which is 2ms`},
	{"params:\n  latency_max: 1us\n", `1:1: latency_min: 500µs is above latency_max, which is 1µs`},
	{"clients: 1000\nsections: 1000\n", `2:11: sections: 1000 clients with 1000 sections each are 1000000 sections; allowed are 100000 in all`},
	{"params: 3\n", `1:9: params is written as key: value lines, got a number`},

	// Expectations.
	{"expect:\n  - design: none\n", `2:5: an expectation needs a verdict: two-writers, lost-update, stuck, fenced, safe, vacuous`},
	{"expect:\n  - verdict: two-writer\n", `2:14: unknown verdict "two-writer"; did you mean "two-writers"?`},
	{"expect:\n  - {verdict: safe, lock: hold}\n", `2:27: unknown lock answer "hold"; known are broken, overlap, kept`},
	{"expect:\n  - verdict: safe\n    design: redis/[a]\n", `3:13: cannot read "redis/[a]"; a pattern is a name such as redis/lua-release, or redis/* for all of them`},
	{"expect: [safe]\n", `1:10: an expectation is written as key: value lines, got a text`},

	// Witnesses and answers.
	{"witnesses: [client-1 was paused past its tll while it held the lock]\n",
		`1:13: unknown witness "client-1 was paused past its tll while it held the lock"; did you mean "client-1 was paused past its ttl while it held the lock"? the vocabulary is listed by locklab list witnesses`},
	{"witnesses: [it rained]\n", `1:13: unknown witness "it rained"; the vocabulary is listed by locklab list witnesses`},
	{"clients: 2\nwitnesses: [client-3 crashed while it held the lock]\n",
		`2:13: witness "client-3 crashed while it held the lock": no client is called "client-3"; clients: 2 gives client-1 and client-2`},
	{"witnesses: [client-1 got and released the lock while client-1 was paused]\n",
		`1:13: witness "client-1 got and released the lock while client-1 was paused" names client-1 twice; it is about two clients`},
	{"plan: [{fault: crash, on: redis-1}]\nwitnesses: [redis-2 crashed while nobody held the lock]\n",
		`2:13: witness "redis-2 crashed while nobody held the lock": no fault of the plan crashes redis-2; add one or name whom it crashes`},
	{"answers: {owner: a, token: b, write: c, repeat: d}\n", `1:10: answers need recovery: How does the system recover?; they are owner, token, write, repeat, recovery`},
	{"answers: {onwer: a}\n", `1:11: unknown key in answers "onwer"; did you mean "owner"?`},
	{"answers: {owner: [a]}\n", `1:18: want a text, got a list; put a text that looks like one in quotes`},
	{"answers: a\n", `1:10: answers is written as key: value lines, got a text`},

	// Faults.
	{"plan: pause\n", `1:7: want a list, each item of which is a fault, got a text`},
	{"plan:\n  - on: client-1\n", `2:5: this needs fault: which one, such as fault: pause`},
	{"plan:\n  - fualt: pause\n", `2:5: unknown key in a fault "fualt"; did you mean "fault"?`},
	{"plan:\n  - fault: puase\n", `2:12: unknown fault "puase"; did you mean "pause"?`},
	{"plan:\n  - fault: pause\n", `2:5: pause needs on: whom it strikes`},
	{"plan:\n  - fault: pause\n    on: [client-1, client-2]\n", `3:9: pause strikes one at a time; write one fault for each of client-1, client-2`},
	{"plan:\n  - fault: pause\n    on: client 1\n", `3:9: cannot read the name "client 1"; write it like client-1, redis-4, client-1.renewer or client-1->storage`},
	{"plan:\n  - fault: pause\n    on: client-1\n    on: client-2\n", `4:5: on stands twice in a fault; the first is in line 3`},
	{"plan:\n  - fault: pause\n    on: client-1\n    until: client-2's first accepted write\n",
		`4:12: until needs at_most: how long to wait if it never happens`},
	{"plan:\n  - fault: pause\n    on: client-1\n    until: client-2's first writ\n    at_most: 1s\n",
		`4:12: cannot read the moment "client-2's first writ"; write it like "lock grants client-1" or "client-2's first accepted write" (known: ...`},
	{"plan:\n  - fault: pause\n    on: client-1\n    for: 3\n", `4:10: cannot read the duration "3"; write it like 9.2s or 1.5*ttl`},
	{"plan:\n  - fault: pause\n    on: client-1\n    for: 1.5*tll\n", `4:10: for: unknown duration "tll"; did you mean "ttl"?`},
	{"plan:\n  - fault: pause\n    on: client-1\n    for: .1234567890123*ttl\n", `4:10: the factor of ".1234567890123*ttl" is too long; write at most 12 digits`},
	{"plan:\n  - fault: pause\n    on: client-1\n    for: 99999999*ttl\n", `4:10: for: 99999999*ttl is too long; at most 1000h`},
	{"plan:\n  - fault: pause\n    on: client-1\n    for: 0s\n", `4:10: for is no time at all; write a length such as 2s or 1.5*ttl, or leave it out`},
	{"plan:\n  - fault: pause\n    on: client-1\n    for: -1s\n", `4:10: for must not be negative, got -1s`},
	{"plan:\n  - fault: pause\n    on: client-1\n    rate: 5\n", `4:11: pause takes no rate; beside on and the trigger it takes: for until at_most`},
	{"plan:\n  - fault: pause\n    on: client-1\n    before: client-1/section#1/wirte\n",
		`4:13: place "client-1/section#1/wirte": unknown part "wirte"; after the process come section#N, a phase (acquire, ...`},
	{"plan:\n  - fault: pause\n    on: client-1\n    at: 3s\n    before: client-1/work\n",
		`5:13: a fault strikes once, so at and before exclude each other; write two faults`},
	{"plan:\n  - fault: pause\n    on: client-1\n    at: -3s\n", `4:9: at must not be negative, got -3s`},
	{"plan:\n  - fault: pause\n    on: client-1\n    after: lock gives client-1\n",
		`4:12: cannot read the moment "lock gives client-1"; write it like "lock grants client-1" or "client-2's first accepted write" (known: ...`},
	{"plan:\n  - fault: pause\n    on: client-1\n    step: client-1\n",
		`4:11: cannot read the step "client-1"; write the process and the number of its effect, like client-1#17`},
	{"plan:\n  - fault: clock-rate\n    on: redis-1\n    rate: fast\n",
		`4:11: cannot read the rate "fast"; write parts per billion like 5000000, or a percentage like 0.5%`},
	{"plan:\n  - fault: clock-rate\n    on: redis-1\n    rate: -100%\n",
		`4:11: clock-rate needs rate in parts per billion, from ...`},
	{"plan:\n  - fault: clock-step\n    on: redis-1\n", `2:5: clock-step needs by: how far, for example 12s or -3s`},
	{"plan:\n  - fault: crash\n    on: redis-1\n    restart: soon\n", `4:14: restart: unknown duration "soon"; known are ` + durationNames()},
	{"plan:\n  - fault: crash\n    on: redis-1\n    restart: 0s\n", `4:14: restart needs some time, such as after 2s; or write never`},
	{"plan:\n  - fault: partition\n    on: a\n    mode: hodl\n", `4:11: mode is drop or hold, got "hodl"`},
	{"plan:\n  - fault: partition\n    on: a\n    one_way: maybe\n", `4:14: unknown answer "maybe"; known are true, false`},
	{"plan:\n  - fault: delay\n    on: a\n    by: 1s\n    count: 0\n", `5:12: cannot read the count "0"; it is a whole number from 1`},
	{"plan:\n  - fault: pause\n    on: client-4\n", `3:9: no client is called "client-4"; clients: 3 gives client-1 to client-3`},
	{"plan:\n  - fault: pause\n    on: client-0\n", `3:9: no client is called "client-0"; clients: 3 gives client-1 to client-3`},
	{"plan:\n  - fault: pause\n    on: client-1\n    until: client-2's first grant\n    at_most: 1s\nclients: 1\n",
		`4:12: no client is called "client-2"; clients: 1 gives client-1 alone`},
	{"clients: 2\nplan:\n  - fault: stall\n    on: client-3.renewer\n", `4:9: no client is called "client-3"; clients: 2 gives client-1 and client-2`},
	{"clients: 2\nplan:\n  - fault: cut\n    on: redis-1 -> client-3\n", `4:9: no client is called "client-3"; clients: 2 gives client-1 and client-2`},
	{"clients: 2\nplan:\n  - fault: partition\n    on: client-1\n    from: [redis-1, client-3]\n",
		`5:21: no client is called "client-3"; clients: 2 gives client-1 and client-2`},
	{"clients: 2\nplan:\n  - fault: pause\n    on: client-1\n    before: client-3/work\n", `5:13: no client is called "client-3"; clients: 2 gives client-1 and client-2`},
	{"clients: 2\nplan:\n  - fault: pause\n    on: client-1\n    after: client-3/work\n", `5:12: no client is called "client-3"; clients: 2 gives client-1 and client-2`},
	{"clients: 2\nplan:\n  - fault: pause\n    on: client-1\n    after: lock grants client-3\n", `5:12: no client is called "client-3"; clients: 2 gives client-1 and client-2`},
	{"clients: 2\nplan:\n  - fault: pause\n    on: client-1\n    step: client-3#7\n", `5:11: no client is called "client-3"; clients: 2 gives client-1 and client-2`},
	{"sections: 2\nplan:\n  - fault: pause\n    on: client-1\n    before: client-1/section#3/write\n", `5:13: no client comes to section#3; sections: 2`},
	{"plan:\n  - fault: pause\n    on: client-1\n    after: client-2/section#4\n", `4:12: no client comes to section#4; sections: 3`},
	{"plan:\n" + strings.Repeat("  - {fault: pause, on: a}\n", faultsMax+1), `1002:5: a plan has at most 1000 faults`},
}

func TestLoadAnswersMistakesInOneLine(t *testing.T) {
	for _, c := range badScenarios {
		_, err := Load([]byte(c.yaml), "bad.yaml")
		require.Error(t, err, "%.200s", c.yaml)
		got := err.Error()
		if begin, open := strings.CutSuffix(c.want, "..."); open && len(got) > len("bad.yaml:"+begin) {
			got = got[:len("bad.yaml:"+begin)] + "..."
		}
		require.Equal(t, "bad.yaml:"+c.want, got, "%.200s", c.yaml)
		require.ErrorAs(t, err, new(*InputError))
	}
}

// A name that nothing has is refused where it stands; Load itself knows none.
func TestCheckNames(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"design: redis/lua-tokn\n", `1:9: unknown design "redis/lua-tokn"; did you mean "redis/lua-token"?`},
		{"resource: [plain, fence]\n", `1:19: unknown resource "fence"; did you mean "fenced"?`},
		{"expect:\n  - design: [none, redis/lua-tokens]\n    verdict: safe\n", `2:20: unknown design "redis/lua-tokens"; did you mean "redis/lua-token"?`},
		{"expect:\n  - design: redsi/*\n    verdict: safe\n", `2:13: unknown design "redsi/*"; ...`},
		{"expect:\n  - resource: plane\n    verdict: safe\n", `2:15: unknown resource "plane"; did you mean "plain"?`},
	} {
		s, err := Load([]byte(c.yaml), "mine.yaml")
		require.NoError(t, err)
		want, open := strings.CutSuffix("mine.yaml:"+c.want, "...")
		if got := CheckNames(s); open {
			require.ErrorContains(t, got, want)
		} else {
			require.EqualError(t, got, want)
		}
	}
	s, err := Load([]byte("design: [none, redis/lua-token]\nexpect: [{design: redis/*, resource: [fenced, \"*-reads\"], verdict: safe}]\n"), "mine.yaml")
	require.NoError(t, err)
	require.NoError(t, CheckNames(s))
}

func TestLoadIsQuickOnHostileInput(t *testing.T) {
	for name, text := range map[string]string{
		"brackets": strings.Repeat("[", fileMax),
		"braces":   strings.Repeat("{", fileMax),
		"dashes":   strings.Repeat("- ", fileMax/2),
		"colons":   strings.Repeat(": ", fileMax/2),
		"keys":     "params:\n" + strings.Repeat("  ttl: 1s\n", lineMax-2),
		"commas":   "[" + strings.Repeat("a,", fileMax/2-2) + "]",
		"pairs":    "{" + strings.Repeat("a: b,", fileMax/5-2) + "}",
		"stairs":   stairs(),
		"blank":    "story: |\n" + strings.Repeat("\n", blankMax-2),
		"scalar":   "name: " + strings.Repeat("x", fileMax-6),
		"quoted":   `title: "` + strings.Repeat(`\n`, fileMax/2-5) + `"`,
	} {
		start := time.Now()
		_, err := Load([]byte(text), "bad.yaml")
		require.Less(t, time.Since(start), 5*time.Second, name)
		if err != nil {
			requireOneLine(t, err)
		}
	}
}

// stairs is a file of block mappings, each inside the one before.
func stairs() string {
	var b strings.Builder
	for depth := 0; b.Len() < fileMax-2000; depth++ {
		b.WriteString(strings.Repeat(" ", depth) + "a:\n")
	}
	return b.String()
}

func requireOneLine(t *testing.T, err error) {
	t.Helper()
	var input *InputError
	require.True(t, errors.As(err, &input), "%T: %v", err, err)
	require.NotContains(t, err.Error(), "\n")
	require.Positive(t, input.Pos.Line)
	require.Positive(t, input.Pos.Column)
	require.NotEmpty(t, input.What)
	require.Less(t, len(err.Error()), 600)
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(goodScenario))
	for _, c := range badScenarios {
		if len(c.yaml) < 2000 {
			f.Add([]byte(c.yaml))
		}
	}
	// Inputs that have made this YAML parser panic.
	for _, s := range []string{"0::", "{? {? \n", "&{0", "*-0", ">\n>", "10.:\n", "a: |0#\n", "{{},<<}", "\"\\0\\\r\n", "- !\n- &"} {
		f.Add([]byte(s))
		f.Add([]byte(goodScenario + s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Load(data, "fuzz.yaml")
		if err != nil {
			requireOneLine(t, err)
			return
		}
		require.NoError(t, s.Params.Validate())
		_, err = s.Plan.Resolve(s.Params.Spans)
		require.NoError(t, err)
		// Whatever was read can be written and read again as the same.
		again, err := Load(fmt.Appendf(nil, "clients: %d\nsections: %d\n%s", s.Params.Clients, s.Params.Sections, MarshalPlan(s.Plan)), "fuzz.yaml")
		require.NoError(t, err, "%s", MarshalPlan(s.Plan))
		require.Equal(t, normal(s.Plan), normal(again.Plan))
	})
}

// A name that no run has shows only when the run is set up; Locate says where
// it stands.
func TestLocate(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"plan:\n  - fault: pause\n    on: client-1\n  - fault: crash\n    on: redsi-1\n", `5:9: no process is called "redsi-1"; this run has client-1, client-2, client-3, redis-1, storage`},
		{"plan:\n  - fault: pause\n    on: client-1\n    before: redis-2/request#1\n", `4:13: no process is called "redis-2"; this run has client-1, client-2, client-3, redis-1, storage`},
		{"plan:\n  - fault: partition\n    on: client-1\n    from: [storage, redis-2]\n", `4:11: no process is called "redis-2"; this run has client-1, client-2, client-3, redis-1, storage`},
	} {
		s, err := Load([]byte(c.yaml), "mine.yaml")
		require.NoError(t, err)
		_, err = NewRunner(Case{Scenario: s, Design: design(t, "redis/lua-release"), Resource: resource(t, "plain"), Params: s.Params, Plan: s.Plan})
		require.EqualError(t, s.Locate(err), "mine.yaml:"+c.want)
		require.ErrorAs(t, s.Locate(err), new(*InputError))

		f, err := LoadPlanFile([]byte("scenario: mine\ndesign: redis/lua-release\nresource: plain\n"+c.yaml), "plan.yaml")
		require.NoError(t, err)
		_, err = NewRunner(Case{Design: design(t, f.Design), Resource: resource(t, f.Resource), Params: f.Params, Plan: f.Plan})
		line, rest, _ := strings.Cut(c.want, ":")
		n, convErr := strconv.Atoi(line)
		require.NoError(t, convErr)
		require.EqualError(t, f.Locate(err), fmt.Sprintf("plan.yaml:%d:%s", n+3, rest))
	}
}

func TestLocateLeavesOtherErrorsAlone(t *testing.T) {
	s, err := Load([]byte("plan: [{fault: pause, on: client-1}]\n"), "mine.yaml")
	require.NoError(t, err)
	require.NoError(t, s.Locate(nil))
	for _, err := range []error{io.EOF, &sim.FaultError{Index: 1, Err: io.EOF}, &sim.FaultError{Index: -1, Err: io.EOF}} {
		require.Same(t, err, s.Locate(err))
	}
	require.EqualError(t, s.Locate(&sim.FaultError{Err: io.EOF}), "mine.yaml:1:8: EOF", "a fault as a whole")
	require.EqualError(t, new(Scenario).Locate(io.EOF), "EOF")
}

// durationNames lists the parameters that a span may name.
func durationNames() string {
	var names []string
	for _, q := range parameters() {
		if q.length != nil {
			names = append(names, q.Name)
		}
	}
	return strings.Join(names, ", ")
}

// A scenario may fix what is left to chance otherwise, as a plan file does.
func TestLoadChoices(t *testing.T) {
	s, err := Load([]byte("clients: 2\nplan: [{fault: crash, on: redis-1, mode: node, at: 1s, restart: 1s}]\n"+
		"choices: [{at: redis-1/start#1/survive, value: 0}]"), "mine.yaml")
	require.NoError(t, err)
	require.Len(t, s.Plan.Choices, 1)
	require.Equal(t, "redis-1/start#1/survive", s.Plan.Choices[0].At.String())
	_, err = Load([]byte("choices: [{at: redis-1/start}]"), "mine.yaml")
	require.EqualError(t, err, "mine.yaml:1:11: a choice needs at: and value:, like {at: client-1/section#1/acquire/op#1/jitter, value: 1500000}")
}
