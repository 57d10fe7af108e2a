package checker

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"locklab/clock"
)

func TestTableNumbersValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tab table
		for range 3 { // rounds must not see each other's values
			values := rapid.SliceOfN(rapid.Int64Range(-5, 5), 0, 40).Draw(t, "values")
			tab.reset(len(values))
			want := map[int64]int32{}
			for _, v := range values {
				if _, ok := want[v]; !ok {
					require.Equal(t, none, tab.lookup(v))
					want[v] = int32(len(want))
				}
				require.Equal(t, want[v], tab.number(v))
				require.Equal(t, want[v], tab.lookup(v))
			}
		}
	})
}

func TestInsertionSortIsStable(t *testing.T) {
	type item struct{ key, seq int }
	rapid.Check(t, func(t *rapid.T) {
		var items []item
		for i, k := range rapid.SliceOfN(rapid.IntRange(0, 20), 0, 200).Draw(t, "keys") {
			items = append(items, item{k, i})
		}
		want := slices.Clone(items)
		slices.SortStableFunc(want, func(a, b item) int { return a.key - b.key })
		insertionSort(items, func(a, b item) bool { return a.key < b.key })
		require.Equal(t, want, items)
	})
}

// loneSections makes a history of sections without true times: n sections that
// read, write or both, over very few values, so that values collide.
func loneSections(t *rapid.T) *History {
	h := &History{Omniscient: true, Initial: rapid.Int64Range(0, 2).Draw(t, "initial")}
	if rapid.Bool().Draw(t, "final known") {
		h.Final = []int64{rapid.Int64Range(0, 3).Draw(t, "final")}
	}
	step := int64(0)
	add := func(op Op) {
		step++
		op.ID, op.Outcome, op.Decision = int32(step), OK, Accepted
		op.Invoke = Instant{Step: step}
		op.Return, op.Effect, op.Granted, op.Ended = op.Invoke, op.Invoke, Never, Never
		op.BelievesUntil, op.SessionLost = op.Invoke, Never
		h.Ops = append(h.Ops, op)
	}
	for range rapid.IntRange(0, 6).Draw(t, "sections") {
		add(Op{Kind: Acquire, Tenure: int32(step + 1)})
		tenure := int32(step)
		kind := rapid.IntRange(0, 2).Draw(t, "kind")
		if kind != 1 {
			add(Op{Kind: Read, Tenure: tenure, Seen: rapid.Int64Range(0, 3).Draw(t, "seen")})
		}
		if kind != 0 {
			add(Op{Kind: Write, Tenure: tenure, Value: rapid.Int64Range(0, 3).Draw(t, "value")})
		}
	}
	return h
}

// someOrderExplains tries every order of the sections.
func someOrderExplains(h *History, sections []section, value int64) bool {
	if len(sections) == 0 {
		return h.Final == nil || h.Final[0] == value
	}
	for i, s := range sections {
		if s.reads() && s.read.Seen != value {
			continue
		}
		next := value
		if s.writes() {
			next = s.write.Value
		}
		if someOrderExplains(h, slices.Delete(slices.Clone(sections), i, i+1), next) {
			return true
		}
	}
	return false
}

// The graph's answer must be that of trying every order, whatever the values.
func TestSerialRegisterIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := loneSections(t)
		c := new(Checker)
		c.reset(h)
		c.collectTenures()
		c.collectActs()
		c.collectSections(nil)
		sections := slices.DeleteFunc(slices.Clone(c.sections), func(s section) bool { return !s.reads() && !s.writes() })
		require.Equal(t, someOrderExplains(h, sections, h.Initial), c.serialRegister())
		before := len(c.findings)
		if !c.serialRegister() {
			c.explainRegister()
			require.Greater(t, len(c.findings), before, "no reason given")
		}
	})
}

func TestBetweenSaturates(t *testing.T) {
	require.EqualValues(t, 5, between(5, 10))
	require.EqualValues(t, 0, between(10, 5))
	require.EqualValues(t, int64(math.MaxInt64), between(math.MinInt64, clock.Never))
}

func TestSeconds(t *testing.T) {
	for at, want := range map[clock.Time]string{
		0: "0.000s", 12_004_000_000: "12.004s", 1_000_001: "0.001s", -1_500_000_000: "-1.500s",
		clock.Never: "never", math.MinInt64: "-9223372036.854s",
	} {
		require.Equal(t, want, seconds(at))
	}
}

func TestWordsRoundTrip(t *testing.T) {
	for k := Overlap; k <= Stuck; k++ {
		got, err := ParseFindingKind(k.String())
		require.NoError(t, err)
		require.Equal(t, k, got)
	}
	for a := LockKept; a <= LockBroken; a++ {
		got, err := ParseLockAnswer(a.String())
		require.NoError(t, err)
		require.Equal(t, a, got)
	}
	for v := VerdictSafe; v <= VerdictTwoWriters; v++ {
		got, err := ParseVerdict(v.String())
		require.NoError(t, err)
		require.Equal(t, v, got)
	}
	_, err := ParseVerdict("")
	require.Error(t, err)
	require.Equal(t, "refused", RefusedLate.String())
	require.Equal(t, "unnamed(99)", Verdict(99).String())
}
