package scenarios

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/models"
	"locklab/sim"
)

func TestPresets(t *testing.T) {
	for _, p := range Presets() {
		require.NotEmpty(t, p.About, p.Name)
		require.Contains(t, p.Source, "https://", p.Name)
		settings, err := ParseSet("preset=" + p.Name)
		require.NoError(t, err)
		require.Equal(t, p.Settings, settings)
		params := DefaultParams()
		require.NoError(t, params.Apply(settings), p.Name)
		for _, s := range p.Settings {
			q := parameter(t, s.Name)
			require.Equal(t, s.Value, q.Get(&params), "%s: %s is spelled as it is printed", p.Name, s.Name)
		}
	}
}

func parameter(t *testing.T, name string) Parameter {
	for _, q := range Parameters() {
		if q.Name == name {
			return q
		}
	}
	t.Fatalf("no parameter is called %q", name)
	return Parameter{}
}

// What is written out has the last word, wherever it stands.
func TestPresetGivesWay(t *testing.T) {
	for _, text := range []string{"ttl=5s,preset=redsync", "preset=redsync,ttl=5s"} {
		settings, err := ParseSet(text)
		require.NoError(t, err)
		params := DefaultParams()
		require.NoError(t, params.Apply(settings))
		require.Equal(t, 5*time.Second, params.TTL)
		require.Equal(t, 32, params.Tries)
		require.Zero(t, params.DriftMargin)
	}
}

func TestPresetMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"preset=redsynk":                     `preset: unknown preset "redsynk"; did you mean "redsync"?`,
		"preset=jedis":                       `preset: unknown preset "jedis"; known are redsync, redlock-net, node-redlock, redlock-py, redisson, client-go`,
		"preset=redsync,preset=redisson":     "preset: is set twice; leave one out",
		"nodes=4":                            "nodes: 4 is even, so that two halves could block each other; allowed is odd, 3 to 99",
		"nodes=1":                            "nodes: 1 is out of range; allowed is 3 to 99",
		"nodes=five":                         `nodes: cannot read "five" as a whole number; allowed is 3 to 99`,
		"drift_factor=1%":                    `drift_factor: cannot read "1%" as a fraction from 0 to 1; write it like 0.01, with at most six digits`,
		"drift_factor=1.000001":              `drift_factor: cannot read "1.000001" as a fraction from 0 to 1; write it like 0.01, with at most six digits`,
		"drift_factor=-0.1":                  `drift_factor: cannot read "-0.1" as a fraction from 0 to 1; write it like 0.01, with at most six digits`,
		"drift_factor=0.00000001":            `drift_factor: cannot read "0.00000001" as a fraction from 0 to 1; write it like 0.01, with at most six digits`,
		"drift_factor=99999999999999999999.": `drift_factor: cannot read "99999999999999999999." as a fraction from 0 to 1; write it like 0.01, with at most six digits`,
	} {
		_, err := ParseSet(text)
		require.EqualError(t, err, want)
	}
}

func TestQuorumMustBeAMajority(t *testing.T) {
	for text, want := range map[string]string{
		"quorum=2":           "quorum: 2 of 5 nodes is out of range; allowed are 3 to 5, or 0 for the least majority",
		"quorum=6":           "quorum: 6 of 5 nodes is out of range; allowed are 3 to 5, or 0 for the least majority",
		"nodes=7,quorum=3":   "quorum: 3 of 7 nodes is out of range; allowed are 4 to 7, or 0 for the least majority",
		"nodes=3,quorum=3":   "",
		"nodes=99,quorum=50": "",
		"quorum=4":           "",
	} {
		settings, err := ParseSet(text)
		require.NoError(t, err)
		params := DefaultParams()
		if err := params.Apply(settings); want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, want)
		}
	}
}

func TestFractionsAreSpelledShort(t *testing.T) {
	for text, want := range map[string]string{"0.010": "0.01", "0": "0", "1": "1", "1.0": "1", "0.000001": "0.000001", "0.123456": "0.123456"} {
		p := DefaultParams()
		require.NoError(t, p.Set("drift_factor", text))
		q := parameter(t, "drift_factor")
		require.Equal(t, want, q.Get(&p))
	}
}

// An acquire that may try so often gives up then, and its client goes on.
func TestTriesAreLimited(t *testing.T) {
	for _, tries := range []int{1, 5} {
		res := runSketch(t, design(t, "redis/lua-release"), resource(t, "plain"), func(p *Params) {
			p.Clients, p.Sections, p.Tries, p.Work = 2, 1, tries, 9*time.Second
			p.RetryJitter, p.LatencyMin, p.LatencyMax = 0, time.Millisecond, time.Millisecond
		}, sim.Plan{})
		var gaveUp checker.Op
		for _, op := range res.History.Ops {
			if op.Client == 1 && op.Kind == checker.Acquire {
				gaveUp = op
			}
		}
		require.Equal(t, checker.Refused, gaveUp.Outcome)
		took := time.Duration(gaveUp.Return.At - gaveUp.Invoke.At)
		require.Equal(t, time.Duration(tries)*2*time.Millisecond+time.Duration(tries-1)*200*time.Millisecond, took)
	}
}

// Renewals that are limited end with the client's knowing it.
func TestRenewalsAreLimited(t *testing.T) {
	for limit, want := range map[int]int{0: 3, 2: 2, 5: 5} {
		res := runSketch(t, design(t, "redlock/extend"), resource(t, "plain"), func(p *Params) {
			p.Clients, p.Sections, p.RenewMax, p.Work = 2, 1, limit, time.Minute
		}, sim.Plan{})
		require.Equal(t, checker.VerdictSafe, res.Verdict)
		writes, renewals := 0, map[int32]int{}
		for _, op := range res.History.Ops {
			switch models.OpKind(op.Kind) {
			case models.OpWrite:
				writes++
			case models.OpRenew:
				renewals[op.Tenure]++
			}
		}
		require.Zero(t, writes, "a minute of work is too long for so many renewals")
		for _, n := range renewals {
			require.Equal(t, want, n)
		}
	}
}
