package reports

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/clock"
	"locklab/models"
	"locklab/scenarios"
)

func at(d time.Duration) clock.Time { return clock.Time(d) }

func TestFoldRepeats(t *testing.T) {
	lines := []Line{
		{At: at(1 * time.Second), Text: "lost", key: "k"},
		{At: at(2 * time.Second), Text: "other"},
		{At: at(3 * time.Second), Text: "lost", key: "k"},
		{At: at(4 * time.Second), Text: "lost", key: "k"},
		{At: at(5 * time.Second), Text: "pause", Mark: MarkFault},
		{At: at(6 * time.Second), Text: "lost", key: "k"},
	}
	var texts []string
	for _, l := range foldRepeats(lines) {
		texts = append(texts, l.Text)
	}
	require.Equal(t, []string{"lost (and again twice until 4.000s)", "other", "pause", "lost"}, texts)
}

func TestElide(t *testing.T) {
	var lines []Line
	for i := range 20 {
		lines = append(lines, Line{At: at(time.Duration(i) * time.Second), Text: "routine", client: 1})
	}
	lines[10].Mark, lines[15].client = MarkFinding, 0
	out := elide(lines, []bool{true, false}, 4)
	var texts []string
	for _, l := range out {
		texts = append(texts, l.Text)
	}
	require.Equal(t, []string{"routine", "... 9 more lines, until 9.000s", "routine", "... 4 more lines, until 14.000s", "routine",
		"... 4 more lines, until 19.000s"}, texts)
	require.Equal(t, MarkFinding, out[2].Mark)
	require.Len(t, elide(lines, nil, 20), 20)
}

func TestFoldRows(t *testing.T) {
	set := func(key string) row { return row{key: key, label: "SET"} }
	rows := foldRows([]row{set("k"), set("k"), set("x"), set("k"), set("k"), set("")})
	var labels []string
	for _, r := range rows {
		labels = append(labels, r.label)
	}
	require.Equal(t, []string{"SET", "SET", "+3 SET", "SET"}, labels)
}

func TestShorten(t *testing.T) {
	long := "EVAL 'set nx, incr token' lock lock:token"
	require.Equal(t, long, shorten(long, 50))
	require.Equal(t, "EVAL 'set nx, incr token' lock", shorten(long, 40))
	require.Equal(t, "EVAL 'set nx, incr token'", shorten(long, 25))
	require.Equal(t, "EVAL 'set…", shorten(long, 10))
	require.Equal(t, "write…", shorten("write-everything", 6))
	require.Equal(t, "* pause #3", fitRemark("* pause (fault 3)", 12))
	require.Equal(t, "", fit("abc", 0))
}

func TestWrap(t *testing.T) {
	require.Equal(t, []string{"one two", "three", "incomprehensible", "x"}, wrap("one two  three incomprehensible x", 8))
	require.Equal(t, []string{""}, wrap("", 8))
}

func TestTimes(t *testing.T) {
	require.Equal(t, "12.004s", seconds(at(12_004_999_999)))
	require.Equal(t, "never", seconds(clock.Never))
	require.Equal(t, "2.805ms", length(2805223))
	require.Equal(t, "10.155s", length(10_155_314_254))
}

// tiny is a result that was never run: two clients, the second granted while
// the first still believes.
func tiny(ops ...checker.Op) *scenarios.Result {
	return &scenarios.Result{
		Case:    scenarios.Case{Design: &models.Design{Name: "d"}, Resource: &models.ResourceKind{Name: "r"}},
		History: &checker.History{Clients: []string{"client-1", "client-2"}, Ops: ops, End: at(20 * time.Second), Final: []int64{7}},
	}
}

func acquire(id, client int32, invoke, returned, until time.Duration) checker.Op {
	return checker.Op{ID: id, Client: client, Section: 1, Tenure: id, Kind: checker.Acquire, Outcome: checker.OK,
		Invoke: checker.Instant{At: at(invoke)}, Return: checker.Instant{At: at(returned)}, BelievesUntil: checker.Instant{At: at(until)},
		Effect: checker.Never, Granted: checker.Never, Ended: checker.Never, SessionLost: checker.Never}
}

func TestMetrics(t *testing.T) {
	waits := acquire(3, 0, 15*time.Second, 0, 0)
	waits.Outcome, waits.Return, waits.BelievesUntil = checker.Unknown, checker.Never, checker.Never
	res := tiny(acquire(1, 0, 0, time.Second, 8*time.Second), acquire(2, 1, 2*time.Second, 6*time.Second, 10*time.Second), waits)
	got := map[string]int64{}
	var names []string
	for _, m := range Metrics(res) {
		got[m.Name] = m.Value
		names = append(names, m.Name)
	}
	require.Equal(t, []string{"sections_begun", "sections_completed", "acquire_latency_median_ns", "acquire_latency_max_ns",
		"overlap_max_ns", "unavailable_max_ns", "final_value"}, names)
	require.EqualValues(t, 2, got["sections_begun"])
	require.EqualValues(t, 0, got["sections_completed"])
	require.EqualValues(t, time.Second, got["acquire_latency_median_ns"])
	require.EqualValues(t, 4*time.Second, got["acquire_latency_max_ns"])
	require.EqualValues(t, 2*time.Second, got["overlap_max_ns"])
	require.EqualValues(t, 5*time.Second, got["unavailable_max_ns"], "from the request of unknown outcome to the end")
	require.EqualValues(t, 7, got["final_value"])
	crashed := &res.History.Ops[2]
	crashed.Loss, crashed.BelievesUntil = checker.LossCrashed, checker.Instant{At: at(18 * time.Second)}
	require.Equal(t, 3*time.Second, unavailableMax(res), "it wanted the lock until it crashed")
}
