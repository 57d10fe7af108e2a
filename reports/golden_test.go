package reports_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"locklab/models"
	"locklab/reports"
	"locklab/scenarios"
	"locklab/sim"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// record runs a case with seed 1 and a full trace.
func record(t *testing.T, s *scenarios.Scenario, design, resource string) *scenarios.Result {
	t.Helper()
	c := scenarios.Case{Scenario: s, Params: s.Params, Plan: s.Plan}
	for _, d := range models.Designs() {
		if d.Name == design {
			c.Design = d
		}
	}
	for _, r := range models.Resources() {
		if r.Name == resource {
			c.Resource = r
		}
	}
	r, err := scenarios.NewRunner(c)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	res, err := r.Run(1, sim.TraceRecord)
	require.NoError(t, err)
	return res
}

func builtIn(t *testing.T, name string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Find(name)
	require.NoError(t, err)
	return s
}

func load(t *testing.T, yaml string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Load([]byte(yaml), "test.yaml")
	require.NoError(t, err)
	return s
}

func printed(t *testing.T, res *scenarios.Result, style reports.Style) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, reports.Run(&b, res, style))
	return b.String()
}

// The golden files are the drawings as a person sees them; the trace's hash is
// left out, so that a change that moves no visible thing leaves them alone.
func TestGolden(t *testing.T) {
	for _, g := range []struct{ file, scenario, design, resource string }{
		{"gc-pause-plain", "kleppmann/gc-pause", "redis/lua-release", "plain"},
		{"gc-pause-fenced", "kleppmann/gc-pause", "redis/lua-token", "fenced"},
		{"gc-pause-none", "kleppmann/gc-pause", "none", "plain"},
		{"delayed-write-fenced", "kleppmann/delayed-write", "redis/lua-token", "fenced"},
	} {
		t.Run(g.file, func(t *testing.T) {
			res := record(t, builtIn(t, g.scenario), g.design, g.resource)
			got := withoutHash(printed(t, res, reports.Style{}))
			require.Equal(t, got, withoutHash(printed(t, res, reports.Style{})), "twice the same bytes")
			for _, line := range strings.Split(got, "\n") {
				if !strings.HasPrefix(line, "repeat") {
					require.LessOrEqual(t, len([]rune(line)), 100, line)
				}
			}
			file := filepath.Join("testdata", g.file+".txt")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err, "write it with: go test ./reports -run TestGolden -update")
			sameText(t, string(want), got)
		})
	}
}

func withoutHash(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "trace ") {
			lines[i] = "trace       HASH, EVENTS"
		}
	}
	return strings.Join(lines, "\n")
}

func TestASCII(t *testing.T) {
	res := record(t, builtIn(t, "kleppmann/gc-pause"), "redis/lua-token", "fenced")
	plain := printed(t, res, reports.Style{ASCII: true})
	for i, c := range []byte(plain) {
		require.Less(t, c, byte(0x80), "at byte %d", i)
	}
	require.Contains(t, plain, "REFUSED")
	require.Contains(t, plain, ": * paused")
	require.Contains(t, plain, ">H1")
	colored := printed(t, res, reports.Style{Color: true})
	require.Contains(t, colored, "\x1b[")
	require.NotContains(t, plain, "\x1b[")
}

func TestJSON(t *testing.T) {
	res := record(t, builtIn(t, "kleppmann/gc-pause"), "redis/lua-token", "fenced")
	line, err := reports.JSON(res)
	require.NoError(t, err)
	require.NotContains(t, string(line), "\n")
	var got map[string]any
	require.NoError(t, json.Unmarshal(line, &got))
	require.EqualValues(t, 1, got["schema"])
	require.Equal(t, "fenced", got["verdict"])
	require.Equal(t, "overlap", got["lock"])
	require.Equal(t, true, got["expected"].(map[string]any)["met"])
	require.Len(t, got["trace_hash"], 16)
	require.Equal(t, map[string]any{"client-1 was paused past its ttl while it held the lock": true}, got["witnesses"])
	require.EqualValues(t, 1, got["metrics"].(map[string]any)["final_value"])
	require.Equal(t, []any{}, got["unfired"])
}

// A run without findings, scenario or trace still has an object.
func TestJSONOfABareResult(t *testing.T) {
	res := record(t, load(t, "clients: 1\nsections: 1\n"), "redis/lua-release", "plain")
	res.Scenario, res.Trace, res.Processes = nil, nil, nil
	line, err := reports.JSON(res)
	require.NoError(t, err)
	require.Contains(t, string(line), `"expected":null,"ended":"done","findings":[]`)
	require.NotContains(t, string(line), "messages_sent")
}

// mixed has one fault of almost every kind.
const mixed = `
clients: 3
sections: 2
plan:
  - {fault: drop-reply, on: client-1->redis-1, before: client-1/section#1/acquire}
  - {fault: clock-step, on: redis-1, by: 12s, after: lock grants client-3}
  - {fault: crash, on: client-2, before: client-2/section#1/write, restart: 2s}
  - {fault: partition, on: [client-3], at: 20s, for: 5s}
  - {fault: stall, on: client-1.renewer, at: 3s}
  - {fault: drop-request, on: client-1->storage, before: client-1/section#2/write}
  - {fault: pause, on: client-1, at: 599s, for: 1s}
`

func TestStoryOfManyFaults(t *testing.T) {
	res := record(t, load(t, mixed), "redis/lua-token", "fenced")
	var texts []string
	for _, l := range reports.Story(res) {
		texts = append(texts, l.Text)
	}
	story := strings.Join(texts, "\n")
	for _, want := range []string{
		"the wall clock of redis-1 jumps by +12s (fault 2)",
		"the answer of redis-1 to client-1's request for the lock is lost",
		"redis-1 grants client-1 the lock, and client-1 never learns of it",
		"its own earlier request has it",
		"client-2 crashes, holding the lock (token",
		"client-2 starts again",
		"the network splits: nothing passes between client-3 and everybody else (fault 4)",
		"the network is whole again (fault 4)",
		"with token 6 to storage is lost",
		"outcome unknown",
	} {
		require.Contains(t, story, want)
	}
	text := printed(t, res, reports.Style{})
	require.Contains(t, text, "redis-1's wall clock: 12.001s")
	require.Contains(t, text, "fault 7 (pause on client-1) never struck")
	require.Contains(t, text, "fault 5 (stall on client-1.renewer) struck, but there was nothing to hit")
	require.Contains(t, text, "expected    nothing: there are no expectations")
	require.Contains(t, text, "×")
}

// With many clients the story and the diagram tell what matters.
func TestManyClients(t *testing.T) {
	s := builtIn(t, "kleppmann/gc-pause")
	copied := *s
	copied.Params.Clients = 60
	res := record(t, &copied, "redis/lua-release", "plain")
	lines := reports.Story(res)
	elided := 0
	for i, l := range lines {
		if l.Mark == reports.MarkElided {
			elided++
		}
		if i > 0 {
			require.LessOrEqual(t, lines[i-1].At, l.At)
		}
	}
	require.Positive(t, elided)
	require.LessOrEqual(t, len(lines)-elided, 80)
	var b bytes.Buffer
	require.NoError(t, reports.Diagram(&b, res, reports.Style{}))
	require.Contains(t, b.String(), "two-writers")
	require.Contains(t, b.String(), "left out: client-")
	require.Contains(t, b.String(), "processes)")
	require.Less(t, strings.Count(b.String(), "\n"), 200)
}

// Every pair of a design and a resource can be told, also when it is cut off.
func TestEveryPair(t *testing.T) {
	for _, s := range []*scenarios.Scenario{builtIn(t, "kleppmann/fencing-read-modify-write"), load(t, mixed),
		load(t, "clients: 2\nworkload: append\nparams: {horizon: 3s}\n")} {
		cases, err := scenarios.Cases(s, models.Designs(), models.Resources())
		require.NoError(t, err)
		for _, c := range cases {
			text := printed(t, record(t, s, c.Design.Name, c.Resource.Name), reports.Style{Width: 80})
			require.Contains(t, text, "verdict")
			require.NotContains(t, text, "somebody", "%s on %s", c.Design.Name, c.Resource.Name)
		}
	}
}

// told is a run's story as one text.
func told(res *scenarios.Result) string {
	var texts []string
	for _, l := range reports.Story(res) {
		texts = append(texts, l.Text)
	}
	return strings.Join(texts, "\n")
}

// A lock that a renewal has created anew is told and drawn as the client's.
func TestRecreatedLockIsTold(t *testing.T) {
	res := record(t, builtIn(t, "redis/watchdog-recreates"), "redis/watchdog-recreate", "plain")
	require.Contains(t, told(res), "client-1's renewal finds no lock and creates it anew: redis-1 has client-1 as its holder again")
	require.Contains(t, told(res), "its lock ended at 10.002s, and its renewal has created it anew")
	var b bytes.Buffer
	require.NoError(t, reports.Diagram(&b, res, reports.Style{}))
	require.Contains(t, b.String(), "▶┃1 lock again")
}

// A sentence must not say more than happened, and to whom it happened.
func TestStorySentences(t *testing.T) {
	const lostRead = `
clients: 1
sections: 1
plan:
  - {fault: drop-reply, on: client-1->storage, before: client-1/section#1/read}
`
	const frozen = `
clients: 2
sections: 1
plan:
  - {fault: freeze, on: client-1, after: lock grants client-1, for: 2s}
`
	const deadServer = `
clients: 1
sections: 1
params: {wait: 3s}
plan:
  - {fault: crash, on: redis-1, at: 0s, restart: 2s}
`
	for _, c := range []struct {
		scenario         *scenarios.Scenario
		design, resource string
		says             []string
		never            []string
	}{
		{builtIn(t, "lease/service-restart"), "redis/lua-token", "fenced", []string{
			"client-2 gives its section up, although redis-1 still has the lock as its own",
			"client-2 asks for the lock and gets no answer. 2 tries until 0.378s, none answered",
		}, []string{"client-2 learns that it no longer holds the lock", "is refused"}},
		{builtIn(t, "lease/reordered-requests"), "redis/blind-del", "plain", []string{
			"client-1's late release removes its own newer lock; client-1 still believes that it holds it",
			"client-1 asks for the lock and is refused: its own lock from before is still there. 27 tries until 9.974s, all refused",
			"client-1's release removes a lock that is not its own: it was client-2's; client-2 still believes that it holds it",
		}, []string{"it was client-1's", "is taken away"}},
		{builtIn(t, "lease/foreign-release"), "redis/lua-release", "plain", []string{
			"client-1 writes 1: accepted\nclient-1 is paused at its own first accepted write",
		}, nil},
		{builtIn(t, "lease/renew-after-expiry"), "redis/watchdog", "plain", []string{
			"client-1's renewal is refused\nclient-1 learns that it no longer holds the lock",
		}, nil},
		{load(t, lostRead), "redis/lua-release", "plain", []string{
			"storage answers client-1's read with 0, and client-1 never learns it",
			"client-1 gives up waiting for storage's answer to its read: outcome unknown",
		}, []string{"client-1 reads 0"}},
		{load(t, frozen), "redis/lua-release", "plain", []string{
			"client-1's machine is suspended as soon as the lock is granted to it (fault 1)",
		}, []string{"machine of"}},
		{load(t, deadServer), "redis/lua-release", "plain", []string{"none answered"}, []string{"all refused"}},
	} {
		story := told(record(t, c.scenario, c.design, c.resource))
		for _, s := range c.says {
			require.Contains(t, story, s)
		}
		for _, s := range c.never {
			require.NotContains(t, story, s)
		}
	}
}

// The diagram says the same.
func TestDiagramRemarks(t *testing.T) {
	for _, c := range []struct{ scenario, design, resource, says, never string }{
		{"lease/service-restart", "redis/lua-token", "fenced", "gives up", "learns the loss"},
		{"lease/reordered-requests", "redis/blind-del", "plain", "OWN NEW LOCK", "somebody"},
	} {
		var b bytes.Buffer
		require.NoError(t, reports.Diagram(&b, record(t, builtIn(t, c.scenario), c.design, c.resource), reports.Style{}))
		require.Contains(t, b.String(), c.says)
		require.NotContains(t, b.String(), c.never)
	}
}

// The legend explains what occurs in the diagram, and nothing else.
func TestLegend(t *testing.T) {
	legend := func(res *scenarios.Result) string {
		var b bytes.Buffer
		require.NoError(t, reports.Diagram(&b, res, reports.Style{}))
		_, text, _ := strings.Cut(b.String()[strings.LastIndex(b.String(), " ║ "):], " ")
		return strings.Join(strings.Fields(text), " ")
	}
	require.Equal(t, "║ believes it holds the lock ┃1 the lock is client-1's ~ time passes ┼ ╫ ╂ an arrow passes by +40 so many more of the kind",
		legend(record(t, load(t, "clients: 2\nsections: 1\nparams: {stagger: 100ms, ttl: 30s, work: 3s}\n"), "redis/lua-release", "plain")))
	require.Equal(t, "║ believes it holds the lock ┃1 the lock is client-1's ~ time passes ╂ an arrow passes by × is lost",
		strings.Replace(legend(record(t, load(t, "clients: 1\nsections: 1\nplan: [{fault: drop-request, on: client-1->storage, before: client-1/section#1/write}]\n"),
			"redis/lua-release", "plain")), "┼ ╫ ╂", "╂", 1))
	require.Contains(t, legend(record(t, builtIn(t, "kleppmann/delayed-write"), "redis/lua-token", "fenced")), "… on its way")
}

// A summary does not repeat the story: findings that it tells are only named,
// and all of them are listed where the story left some out.
func TestSummaryAfterTheStory(t *testing.T) {
	res := record(t, builtIn(t, "kleppmann/gc-pause"), "redis/lua-release", "plain")
	text := printed(t, res, reports.Style{})
	require.Contains(t, text, "\nfindings    overlap, stale-write, two-writers, lost-update (told above)\n")
	require.Equal(t, 1, strings.Count(text, "both went"))
	var b bytes.Buffer
	require.NoError(t, reports.Summary(&b, res, reports.Style{}))
	require.Contains(t, b.String(), "\nverdict     two-writers: client-1 wrote 1")
	require.Contains(t, b.String(), "findings    10.255s overlap: from 10.255s on")
}

// Where nothing is expected, the reason is said; where something else was, what.
func TestExpectedLine(t *testing.T) {
	res := record(t, builtIn(t, "kleppmann/gc-pause"), "redis/lua-release", "plain")
	said := func() string {
		_, rest, _ := strings.Cut(printed(t, res, reports.Style{}), "\nexpected    ")
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	require.Equal(t, "yes: verdict two-writers, lock overlap", said())
	s := *res.Scenario
	s.Expect = []scenarios.Expectation{{Designs: []string{"none"}, Verdict: "safe"}}
	res.Scenario = &s
	require.Equal(t, "nothing: no row speaks of this pair", said())
	s.Expect[0].Designs = nil
	require.Equal(t, "NO: verdict safe, lock any was expected", said())
	s.Params.TTL *= 2
	require.Equal(t, "nothing: the parameters are not the scenario's", said())
	s.Expect = nil
	require.Equal(t, "nothing: there are no expectations", said())
}
