package scenarios

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMatchPattern(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"redis/*", "redis/lua-release", true},
		{"redis/*", "redis-replica/wait", false},
		{"*", "a/b/c", true},
		{"none", "none", true},
		{"none", "nonesuch", false},
		{"*/lua-*", "redis/lua-token", true},
		{"*/lua-*", "redis/blind-del", false},
		{"a*a", "a", false},
		{"a*b*c", "axbxc", true},
		{"a*b*c", "axcxb", false},
		{"**", "", true},
	} {
		require.Equal(t, c.want, MatchPattern(c.pattern, c.name), "%s on %s", c.pattern, c.name)
	}
}

func TestFirstRowThatMatchesWins(t *testing.T) {
	s := Scenario{Expect: []Expectation{
		{Designs: []string{"redis/lua-token"}, Resources: []string{"fenced"}, Verdict: "fenced", Lock: "overlap"},
		{Designs: []string{"redis/*"}, Verdict: "two-writers"},
	}}
	require.Equal(t, "fenced", s.Expected("redis/lua-token", "fenced").Verdict)
	row := s.Expected("redis/lua-token", "plain")
	require.Equal(t, "two-writers", row.Verdict)
	require.True(t, row.Met("two-writers", "broken"), "a row without a lock answer leaves it open")
	require.False(t, row.Met("safe", "broken"))
	require.False(t, s.Expect[0].Met("fenced", "kept"))
	require.Nil(t, s.Expected("etcd/lock", "plain"))
}
