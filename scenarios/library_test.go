package scenarios

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"locklab/models"
)

// Every built-in scenario teaches, so it must say where it comes from, what is
// expected and why.
func TestLibraryIsComplete(t *testing.T) {
	all, err := Library()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			require.NotEmpty(t, s.Title)
			require.NotContains(t, s.Title, "\n")
			require.NotEmpty(t, s.Story)
			require.NotEmpty(t, s.Source)
			require.NotEmpty(t, s.Designs)
			require.NotEmpty(t, s.Resources)
			require.NotEmpty(t, s.Expect)
			require.NotEmpty(t, s.Questions)
			require.NoError(t, CheckNames(s))
			for _, e := range s.Expect {
				require.NotEmpty(t, e.Why, "the row at %s gives no reason", e.Pos)
			}
			family, _, ok := strings.Cut(s.Name, "/")
			require.True(t, ok)
			require.Contains(t, families(), family)
			if family == "lease" {
				require.Len(t, s.Answers, len(answerKeys()), "a lease situation answers the five questions")
			}
			for _, d := range models.Designs() {
				for _, r := range models.Resources() {
					shown := slices.Contains(s.Designs, d.Name) && slices.Contains(s.Resources, r.Name)
					if shown && d.Serves(r) == nil {
						require.NotNil(t, s.Expected(d.Name, r.Name), "%s on %s is shown by default but not expected", d.Name, r.Name)
					}
				}
			}
		})
	}
}

func TestLibraryIsInCatalogueOrder(t *testing.T) {
	all, err := Library()
	require.NoError(t, err)
	var names []string
	for _, s := range all {
		if strings.HasPrefix(s.Name, "kleppmann/") {
			names = append(names, s.Name)
		}
	}
	require.IsIncreasing(t, names)
	require.Equal(t, names[0], all[0].Name, "kleppmann comes first")
}

func TestGCPauseExpectations(t *testing.T) {
	s, err := Find("kleppmann/gc-pause")
	require.NoError(t, err)
	require.Equal(t, int64(33), s.Params.TokenStart)
	require.Equal(t, "two-writers", s.Expected("redis/lua-release", "plain").Verdict)
	require.Equal(t, "fenced", s.Expected("redis/lua-token", "fenced").Verdict)
	require.Nil(t, s.Expected("redis/lua-release", "fenced"), "there is no token to compare")
}

func TestFindSuggests(t *testing.T) {
	for name, want := range map[string]string{
		"gc-pause":           `no scenario is called "gc-pause"; did you mean "kleppmann/gc-pause"?`,
		"kleppman/gc-pause":  `no scenario is called "kleppman/gc-pause"; did you mean "kleppmann/gc-pause"?`,
		"nothing-like-it":    `no scenario is called "nothing-like-it"; see locklab list scenarios`,
		"../../../etc/hosts": `no scenario is called "../../../etc/hosts"; see locklab list scenarios`,
	} {
		_, err := Find(name)
		require.EqualError(t, err, want)
	}
}
