package scenarios

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSuggest(t *testing.T) {
	known := []string{"pause", "partition", "clock-step", "kleppmann/gc-pause", "at", "at_most"}
	for word, want := range map[string]string{
		"puase":                  `did you mean "pause"?`,
		"Pause":                  `did you mean "pause"?`,
		"partitoin":              `did you mean "partition"?`,
		"ta":                     `did you mean "at"?`,
		"clock_step":             `did you mean "clock-step"?`,
		"gc-pause":               `did you mean "kleppmann/gc-pause"?`,
		"atmost":                 `did you mean "at_most"?`,
		"zebra":                  "",
		"x":                      "",
		"":                       "",
		strings.Repeat("a", 1e6): "",
	} {
		require.Equal(t, want, Suggest(word, known), word)
	}
	require.Empty(t, Suggest("pause", nil))
}
