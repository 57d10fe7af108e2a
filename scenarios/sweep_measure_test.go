package scenarios

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"locklab/checker"
	"locklab/clock"
	"locklab/sim"
)

// term is an acquire that returned at once, and until when its client believed.
func term(id, client int32, from, until time.Duration, why checker.Loss) checker.Op {
	return checker.Op{ID: id, Tenure: id, Client: client, Kind: checker.Acquire, Outcome: checker.OK, Loss: why,
		Return: checker.Instant{At: clock.Time(from)}, BelievesUntil: checker.Instant{At: clock.Time(until)}}
}

func change(id, tenure int32, at time.Duration, d checker.Decision) checker.Op {
	return checker.Op{ID: id, Tenure: tenure, Kind: checker.Append, Decision: d, Effect: checker.Instant{At: clock.Time(at)}}
}

func TestFailover(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name string
		ops  []checker.Op
		want time.Duration
		ok   bool
	}{
		{"nobody crashed", []checker.Op{term(1, 0, 0, 5*s, checker.LossReleased), change(2, 1, s, checker.Accepted)}, 0, false},
		{"who crashed did not lead", []checker.Op{{ID: 1, Tenure: 1, Kind: checker.Acquire, Loss: checker.LossCrashed,
			BelievesUntil: checker.Instant{At: clock.Time(s)}}}, 0, false},
		{"a late write of its own does not end it, nor a refused one", []checker.Op{term(1, 0, 0, 5*s, checker.LossCrashed), term(2, 1, 10*s, 20*s, checker.LossReleased),
			change(3, 1, 6*s, checker.Accepted), change(4, 2, 11*s, checker.Rejected), change(5, 2, 12*s, checker.Accepted)}, 7 * s, true},
		{"the longer of two counts", []checker.Op{term(1, 0, 0, 5*s, checker.LossCrashed), change(2, 3, 6*s, checker.Accepted),
			term(3, 1, 5*s, 8*s, checker.LossCrashed), term(4, 0, 9*s, 20*s, checker.LossReleased), change(5, 4, 12*s, checker.Accepted)}, 4 * s, true},
		{"nobody acts any more", []checker.Op{term(1, 0, 0, 5*s, checker.LossCrashed)}, Endless, true},
	} {
		got, ok := Failover(&checker.History{Ops: c.ops})
		require.Equal(t, c.want, got, c.name)
		require.Equal(t, c.ok, ok, c.name)
	}
}

// The lease that a crashed owner leaves behind is what failover costs, and a
// lock without a lease costs for ever.
func TestFailoverOfRuns(t *testing.T) {
	plan := sim.Plan{Faults: []sim.Fault{{Kind: sim.Crash, On: []string{"client-1"}, Trigger: at(t, "client-1/section#1/write")}}}
	of := func(name string, ttl time.Duration) time.Duration {
		res := runSketch(t, design(t, name), resource(t, "plain"), func(p *Params) { p.TTL = ttl }, plan)
		d, ok := Failover(res.History)
		require.True(t, ok)
		return d
	}
	require.InDelta(t, 10, of("redis/lua-release", 10*time.Second).Seconds(), 0.5)
	require.InDelta(t, 20, of("redis/lua-release", 20*time.Second).Seconds(), 0.5)
	require.Equal(t, Endless, of("redis/setnx-no-ttl", 10*time.Second))
}

// Whatever is cut into parts adds up to the same, through a file too, and no
// percentile is further off than rounding.
func TestSpreadsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Min(0), rapid.Just(int64(Endless))).Draw(t, "length"))
		}), 1, 50).Draw(t, "lengths")
		cut := rapid.IntRange(0, len(lengths)).Draw(t, "cut")
		var whole, first, second, read Spread
		for i, d := range lengths {
			whole.see(d)
			if i < cut {
				first.see(d)
			} else {
				second.see(d)
			}
		}
		text, err := json.Marshal(second)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &read))
		read.add(&first)
		require.True(t, whole.equal(&read), "%v and %v", whole, read)
		require.EqualValues(t, len(lengths), whole.Runs())
		for _, p := range []int64{1, 50, 90, 100} {
			got, atMost, below := whole.Percentile(p), int64(0), int64(0)
			for _, d := range lengths {
				if rounded(d) <= got {
					atMost++
				}
				if rounded(d) < got {
					below++
				}
			}
			require.GreaterOrEqual(t, atMost*100, p*int64(len(lengths)))
			require.Less(t, below*100, p*int64(len(lengths)))
		}
		d := lengths[0]
		require.LessOrEqual(t, rounded(d), d)
		require.LessOrEqual(t, d-rounded(d), d/64)
	})
}

func TestSpreadRefusesWhatIsNone(t *testing.T) {
	for _, text := range []string{`{"longest":5,"lengths":[[5,0]]}`, `{"longest":5,"lengths":[[5,1],[5,1]]}`, `{"longest":5,"lengths":[[6,1],[5,1]]}`,
		`{"longest":301,"lengths":[[301,1]]}` /* 301 is not rounded */, `{"longest":7,"lengths":[[5,1]]}`, `7`} {
		require.Error(t, json.Unmarshal([]byte(text), new(Spread)), text)
	}
}

// Units with measures merge like all others, and a file with one that is
// unknown is refused.
func TestSweepKeepsMeasures(t *testing.T) {
	s := sweepOf(t, func(spec *SweepSpec) {
		*spec = SweepSpec{Scenarios: []string{"lease/owner-crash"}, Designs: []string{"redis/lua-release"}, Resources: []string{"plain"}, Seed: 1, Runs: 40}
	})
	one, two := NewSweepResult(s.Spec), NewSweepResult(s.Spec)
	require.Equal(t, runSweep(t, s, one, 1), runSweep(t, s, two, 2))
	cell := one.Cells()[0]
	require.EqualValues(t, 40, cell.Measures[0].Runs())
	require.InDelta(t, 10, cell.Measures[0].Percentile(50).Seconds(), 0.5)
	require.NoError(t, one.Merge(two))
	var tally Tally
	require.ErrorContains(t, json.Unmarshal([]byte(`{"runs":1,"events":1,"verdicts":{},"lock":{},"findings":{},"ends":{},"measures":{"height_m":{"longest":0,"lengths":[[0,1]]}}}`), &tally),
		"does not know")
	require.ErrorContains(t, json.Unmarshal([]byte(`{"runs":1,"events":1,"verdicts":{},"lock":{},"findings":{},"ends":{},"measures":{"failover_ns":{"longest":0,"lengths":[[0,2]]}}}`), &tally),
		"of 1 runs")
}
