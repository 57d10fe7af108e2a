package reports_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"locklab/reports"
	"locklab/scenarios"
)

func measured(t *testing.T, name, design string, set []scenarios.Setting, parameter string, names ...string) (reports.Measured, error) {
	t.Helper()
	s := builtIn(t, name)
	copied := *s
	require.NoError(t, copied.Params.Apply(set))
	res := record(t, &copied, design, "plain")
	res.Scenario = s
	return reports.MeasuredRow(res, parameter, names)
}

// One line for each value of a parameter; the title tells what else was changed.
func TestMeasuredTable(t *testing.T) {
	var rows []reports.Measured
	for _, clients := range []string{"3", "6"} {
		row, err := measured(t, "herd/queue", "zookeeper/lock-herd", []scenarios.Setting{{Name: "clients", Value: clients}, {Name: "work", Value: "2s"}},
			"clients", "requests_after_release_max", "overtaken_max", "wait_max_ns", "acquire_success")
		require.NoError(t, err)
		rows = append(rows, row)
	}
	var b bytes.Buffer
	require.NoError(t, reports.MeasuredTable(&b, rows, reports.Style{}))
	require.Equal(t, `herd/queue: A queue wakes one who waits, or everybody, seed 1, work=2s
design               resource  clients  verdict  requests after release max  overtaken max  wait max  acquire success
zookeeper/lock-herd  plain     3        safe     3                           0              4.004s    1
zookeeper/lock-herd  plain     6        safe     9                           0              9.987s    1
`, b.String())
}

// Which measures are shown by default depends on where the sections come from;
// one that there is not is refused.
func TestMeasuredColumns(t *testing.T) {
	titles := func(row reports.Measured, err error) (out []string) {
		require.NoError(t, err)
		for _, m := range row.Metrics {
			out = append(out, m.Title())
		}
		return out
	}
	require.Contains(t, titles(measured(t, "herd/queue", "zookeeper/lock", nil, "clients")), "requests after release max")
	require.Contains(t, titles(measured(t, "load/rps", "redis/lua-release", nil, "interarrival")), "queueing delay p99")
	_, err := measured(t, "herd/queue", "zookeeper/lock", nil, "clients", "requests_per_relase")
	require.ErrorContains(t, err, `unknown measure "requests_per_relase"; did you mean "requests_per_release"`)
}

// A run that was too long to be recorded is told from its history, without a
// diagram and without the number of its messages.
func TestRunWithoutATrace(t *testing.T) {
	res := record(t, builtIn(t, "kleppmann/gc-pause"), "redis/lua-release", "plain")
	res.Trace = nil
	text := printed(t, res, reports.Style{})
	require.Contains(t, text, "client-2 writes 1: accepted")
	require.Contains(t, text, "TWO-WRITERS: client-1 wrote 1")
	require.Contains(t, text, fmt.Sprintf("\nno diagram: the run has %d events, of which no more than 1048576 of the trace are kept\n", res.Events))
	require.Contains(t, text, "\nverdict     two-writers")
	require.NotContains(t, text, "messages sent")
}
