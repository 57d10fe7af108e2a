package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the outputs in README.md")

// TestReadme runs every `$ locklab ...` of the README, in a folder that has
// the README's own scenario as my-pause.yaml (and with a slip in it as
// my-mistake.yaml), and compares what it prints.
func TestReadme(t *testing.T) {
	readme, err := filepath.Abs("../../README.md")
	require.NoError(t, err)
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	t.Setenv("LC_ALL", "C.UTF-8")
	yaml := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, yaml, "the README's sample scenario")
	require.NoError(t, os.WriteFile("my-pause.yaml", yaml[1], 0o644))
	mistake := bytes.Replace(yaml[1], []byte("    for:"), []byte("    fro:"), 1)
	require.NoError(t, os.WriteFile("my-mistake.yaml", mistake, 0o644))

	got, commands := rerun(string(text))
	require.Greater(t, commands, 5)
	if *update {
		require.NoError(t, os.WriteFile(readme, []byte(got), 0o644))
		return
	}
	require.Equal(t, string(text), got, "go test ./cmd/locklab -run Readme -update")
}

// rerun replaces what stands below each `$ locklab ...` line, up to the next
// command or the end of its block, by what the command prints now.
func rerun(text string) (string, int) {
	var out strings.Builder
	commands, skipping := 0, false
	for line := range strings.SplitAfterSeq(text, "\n") {
		command, isLocklab := strings.CutPrefix(line, "$ locklab ")
		if strings.HasPrefix(line, "$ ") || strings.HasPrefix(line, "```") {
			skipping = false
		}
		if !skipping {
			out.WriteString(line)
		}
		if isLocklab {
			commands++
			skipping = true
			var printed bytes.Buffer
			run(strings.Fields(command), &printed, &printed)
			out.Write(printed.Bytes())
		}
	}
	return out.String(), commands
}
