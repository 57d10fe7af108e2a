package checker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "locklab/checker"
	"locklab/clock"
)

// Every rejection by porcupine implies a finding.
func TestPorcupineRejectionsImplyFindings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		require.NoError(t, CrossCheck(Check(h), Porcupine(h, time.Second)))
	})
}

// The property above would be empty if porcupine never rejected anything.
func TestRandomHistoriesAreRejectedInEveryView(t *testing.T) {
	rejected, histories := map[string]int{}, rapid.Custom(drawHistory)
	for seed := range 300 {
		for _, b := range Porcupine(histories.Example(seed), time.Second) {
			if b.Result == porcupine.Illegal {
				rejected[b.Name]++
			}
		}
	}
	for _, name := range []string{"lock with expiry", "mutex", "sections"} {
		require.Positive(t, rejected[name], name)
	}
	t.Log(rejected)
}

// A check that was broken on purpose must be noticed: take away the findings
// that a rejection implies, and CrossCheck has to complain.
func TestCrossCheckNoticesAMissingFinding(t *testing.T) {
	h := story(`lease 10; final 1
		A acquire 0 taken=5
		A read 1 =0
		B acquire 5
		B read 6 =0
		A write 7 =1
		B write 8 =1`)
	boxes := Porcupine(h, 0)
	require.Len(t, boxes, 3)
	for _, b := range boxes {
		require.Equal(t, porcupine.CheckResult(porcupine.Illegal), b.Result, b.Name)
		r := Check(h).Clone()
		require.NoError(t, CrossCheck(r, boxes))
		r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return slices.Contains(b.Implies, f.Kind) })
		require.ErrorContains(t, CrossCheck(r, boxes), b.Name)
	}
}

// A Checker gives the same report whatever it judged before, and does not
// change the history.
func TestCheckerForgets(t *testing.T) {
	var used Checker
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		before := *h
		before.Ops = slices.Clone(h.Ops)
		want := Check(h)
		require.Equal(t, want, used.Check(h).Clone())
		require.Equal(t, &before, h)
		require.True(t, slices.IsSortedFunc(want.Findings, func(a, b Finding) int {
			if a.At != b.At {
				return int(a.At - b.At)
			}
			return int(a.Kind) - int(b.Kind)
		}))
	})
}

// Who knows less finds less: from outside, no finding about the data appears
// that is not there with full knowledge.
func TestFromOutsideNoFalseAlarms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		full := Check(h)
		fromOutside(h)
		for _, f := range Check(h).Findings {
			switch f.Kind {
			case WriteLost, LostUpdate, DoubleApply:
				if h.Data == List && f.Kind == LostUpdate {
					continue // an unacknowledged element that vanished makes the full check give up
				}
				require.True(t, full.Has(f.Kind), "%s: %s", f.Kind, Explain(h, &f))
			case TwoWriters, StaleWrite: // from outside, grants are ordered by their acquires' returns
				require.True(t, full.Has(f.Kind) || full.Has(Overlap), "%s: %s", f.Kind, Explain(h, &f))
			case LeaseBroken: // from outside a phantom is a grant like any other
				require.True(t, full.Has(f.Kind) || full.Has(Phantom), "%s: %s", f.Kind, Explain(h, &f))
			}
		}
	})
}

// Nonsense must not make a check panic, nor an explanation.
func TestNonsenseDoesNotPanic(t *testing.T) {
	instant := rapid.Custom(func(t *rapid.T) Instant {
		return Instant{
			At:   rapid.SampledFrom([]clock.Time{0, 1, 2, 3, 5, 8, -1, 1 << 62, clock.Never, -1 << 63}).Draw(t, "at"),
			Step: rapid.Int64Range(0, 3).Draw(t, "step"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		h := rapid.Custom(func(t *rapid.T) *History { return drawNonsense(t, instant) }).Draw(t, "history")
		r := Check(h)
		r.Explain(h)
	})
}

func drawNonsense(t *rapid.T, instant *rapid.Generator[Instant]) *History {
	flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
	small := func(name string) int64 { return rapid.Int64Range(-1, 6).Draw(t, name) }
	h := &History{
		Clients: []string{"A", "B"}, Promise: Promise(small("promise") & 3), TTL: time.Duration(small("ttl")),
		Drift: time.Duration(small("drift")), KnowsGrants: flag("grants"), Omniscient: flag("omniscient"),
		Tokens: flag("tokens"), Capacity: int(small("capacity")), Quota: flag("quota"), Parties: int(small("parties")), Once: flag("once"), Data: Data(small("data") & 1),
		FaultsOver: instant.Draw(t, "over"), StuckAfter: time.Duration(small("stuck")), End: instant.Draw(t, "end").At,
	}
	if flag("final") {
		h.Final = rapid.SliceOfN(rapid.Int64Range(-1, 6), 0, 4).Draw(t, "values")
	}
	for i := range rapid.IntRange(0, 12).Draw(t, "ops") {
		id := int32(i + 1)
		if rapid.IntRange(0, 9).Draw(t, "odd id") == 0 {
			id = int32(small("id"))
		}
		h.Ops = append(h.Ops, Op{
			ID: id, Client: int32(small("client")), Section: int32(small("section")), Tenure: int32(small("tenure")),
			Kind: Kind(small("kind") & 7), Outcome: Outcome(small("outcome") & 3), Decision: Decision(small("decision") & 3),
			Invoke: instant.Draw(t, "invoke"), Return: instant.Draw(t, "return"), Effect: instant.Draw(t, "effect"),
			Applied: int32(small("applied")), Token: small("token"), Value: small("value"), Seen: small("seen"),
			Victim: int32(small("victim")), Granted: instant.Draw(t, "granted"), Ended: instant.Draw(t, "ended"),
			End: End(small("how") & 7), BelievesUntil: instant.Draw(t, "until"), Loss: Loss(small("loss") & 3),
			SessionLost: instant.Draw(t, "lost"),
		})
	}
	return h
}
