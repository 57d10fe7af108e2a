package reports_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/reports"
	"locklab/scenarios"
	"locklab/sim"
)

// TestLibraryTranscripts holds what `locklab run` prints for every scenario of
// the library with seed 1, so that a change of behaviour shows as a diff that
// can be read. The hash is left out. Rewrite them with -update.
func TestLibraryTranscripts(t *testing.T) {
	library, err := scenarios.Library()
	require.NoError(t, err)
	want := map[string]bool{}
	for _, s := range library {
		file := filepath.Join("testdata", "library", strings.ReplaceAll(s.Name, "/", "-")+".txt")
		want[file] = true
		t.Run(s.Name, func(t *testing.T) { transcript(t, s, file) })
	}
	files, err := filepath.Glob("testdata/library/*.txt")
	require.NoError(t, err)
	for _, f := range files {
		require.True(t, want[f], "%s belongs to no scenario; remove it", f)
	}
}

// storiesTold is how many of a scenario's runs are told in full; the table
// has them all.
const storiesTold = 2

func transcript(t *testing.T, s *scenarios.Scenario, file string) {
	cases, err := scenarios.ChooseCases(s, nil, nil)
	require.NoError(t, err)
	var b bytes.Buffer
	var rows []reports.Row
	for i, c := range cases {
		r, err := scenarios.NewRunner(c)
		require.NoError(t, err)
		res, err := r.Run(1, sim.TraceRecord)
		require.NoError(t, err)
		res.Report.Explain(res.History)
		require.NoError(t, checker.CrossCheck(res.Report, checker.Porcupine(res.History, checker.PorcupineTimeout)))
		if i < storiesTold {
			b.WriteString(withoutHash(printed(t, res, reports.Style{})) + "\n")
		}
		rows = append(rows, reports.RowOf(res))
		r.Close()
	}
	require.NoError(t, reports.Table(&b, rows, reports.Style{}))
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
	}
	golden, err := os.ReadFile(file)
	require.NoError(t, err, "write it with: go test ./reports -run TestLibraryTranscripts -update")
	sameText(t, string(golden), b.String())
}

// sameText fails with the first line that differs, not with both texts.
func sameText(t *testing.T, want, got string) {
	t.Helper()
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		a, b := "(the end)", "(the end)"
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			t.Fatalf("line %d differs\nwant %s\n got %s\nif this is right: go test ./reports -update, then read the diff", i+1, a, b)
		}
	}
}
