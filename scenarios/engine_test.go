package scenarios

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"locklab/models"
	"locklab/sim"
)

// conformance asks for all resources, and more seeds: a Lua script takes a
// thousand times as long as the model of it.
var conformance = os.Getenv("LOCKLAB_CONFORMANCE") == "1"

// engineSeeds is for how many seeds the engines are compared.
func engineSeeds() uint64 {
	if conformance {
		return 2
	}
	return 1
}

// TestEnginesAgree runs every pair on Redis that the library expects something
// of, on one server and on Redlock's five, on both engines. Not only the answers are the same: so is
// every message, and with them the trace hash.
func TestEnginesAgree(t *testing.T) {
	library, err := Library()
	require.NoError(t, err)
	compared := 0
	for _, s := range library {
		cases, err := Cases(s, models.Designs(), models.Resources())
		require.NoError(t, err)
		for _, c := range cases {
			redis := strings.HasPrefix(c.Design.Name, "redis/") || strings.HasPrefix(c.Design.Name, "redlock")
			quick := c.Resource.Name == "plain" && s.Name != "redis/majority-down" || c.Resource.Name == "fenced"
			if !redis || s.Expected(c.Design.Name, c.Resource.Name) == nil || !conformance && !quick {
				continue
			}
			on, _, err := OnEngine([]Case{c}, models.EngineMiniredis, LeftOut{})
			if err != nil { // needs persistence
				require.ErrorContains(t, err, "has no persistence")
				continue
			}
			compared++
			t.Run(fmt.Sprintf("%s/%s/%s", s.Name, c.Design.Name, c.Resource.Name), func(t *testing.T) {
				t.Parallel()
				enginesAgree(t, c, on[0])
			})
		}
	}
	require.Greater(t, compared, 30)
}

func enginesAgree(t *testing.T, native, mini Case) {
	a, err := NewRunner(native)
	require.NoError(t, err)
	defer a.Close()
	b, err := NewRunner(mini)
	require.NoError(t, err)
	defer b.Close()
	for seed := uint64(1); seed <= engineSeeds(); seed++ {
		want, err := a.Run(seed, sim.TraceHash)
		require.NoError(t, err)
		got, err := b.Run(seed, sim.TraceHash)
		require.NoError(t, err)
		require.Nil(t, got.Failure, "%v", got.Failure)
		require.Equal(t, want.Verdict.String()+" "+want.Report.Lock.String(), got.Verdict.String()+" "+got.Report.Lock.String(), got.Command())
		require.Equal(t, want.Hash, got.Hash, got.Command())
	}
}

func TestEngineRefusals(t *testing.T) {
	s, err := Find("kleppmann/gc-pause")
	require.NoError(t, err)
	for design, want := range map[string]string{
		"none":                      "engine miniredis is for Redis, and none has no Redis server; leave --engine out",
		"redis-replica/lua-release": "engine miniredis has no replication, and redis-replica/lua-release is to run with it; leave --engine out",
		"redlock/fsync-always":      "engine miniredis has no persistence, and redlock/fsync-always is to run with it; leave --engine out",
	} {
		cases, err := ChooseCases(s, []string{design}, []string{"plain"})
		require.NoError(t, err)
		_, left, err := OnEngine(cases, models.EngineMiniredis, LeftOut{})
		require.EqualError(t, err, want)
		require.Equal(t, 1, left.Pairs)
		var refused *EngineError
		require.True(t, errors.As(err, &refused))
	}
	require.EqualError(t, CheckEngineName("dragonfly"), `unknown engine "dragonfly"; known are native, miniredis`)
}

// The command and the plan file of a run name its engine.
func TestEngineIsNamed(t *testing.T) {
	s, err := Find("kleppmann/gc-pause")
	require.NoError(t, err)
	cases, err := ChooseCases(s, []string{"redis/lua-token"}, []string{"fenced"})
	require.NoError(t, err)
	cases, _, err = OnEngine(cases, models.EngineMiniredis, LeftOut{})
	require.NoError(t, err)
	r, err := NewRunner(cases[0])
	require.NoError(t, err)
	defer r.Close()
	res, err := r.Run(1, sim.TraceHash)
	require.NoError(t, err)
	require.Equal(t, "locklab run kleppmann/gc-pause --design redis/lua-token --resource fenced --seed 1 --engine miniredis", res.Command())
	require.Equal(t, models.EngineMiniredis, res.PlanFile().Engine)
}
