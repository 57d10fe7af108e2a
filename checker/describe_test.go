package checker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "locklab/checker"
	"locklab/clock"
)

// What the sentences say, of histories in which one finding of the kind comes
// first.
func TestSentences(t *testing.T) {
	for _, c := range []struct {
		kind       FindingKind
		text, want string
	}{
		{LeaseBroken, `lease 10
			A acquire 0 until=4
			B acquire 9 until=12`,
			"the lock passed from A to B at 9.000s, before the promise to A had run out at 10.000s"},
		{LeaseBroken, `lease 10
			A acquire 0 until=30
			A renew 5
			B acquire 12 until=13`,
			"the lock passed from A to B at 12.000s, before the promise to A had run out at 15.000s"},
		{SpuriousLoss, `lease 10
			A acquire 0 expired=1 until=4`,
			"the lock of A expired at 1.000s, 9.000s early, although A was alive and its lease had not run out"},
		{SpuriousLoss, `lease 10
			A acquire 0 taken=1 until=4`,
			"A lost the lock at 1.000s (taken) although A was alive and its lease had not run out"},
		{ForeignRelease, `lease 10
			A acquire 0 expired=10 until=40
			B acquire 11 until=20
			A renew 12 victim=2`,
			"the renewal by A at 12.000s touched the lock of B"},
		{LostUpdate, `nothing; list; final 1 2 3
			A acquire 0 until=10
			A append 1 =1
			B acquire 2 until=10
			B append 3 =2
			A append 4 =3`,
			"A appended 3 at 4.000s, and what A appended in this section does not stand together: somebody appended between"},
		{OverCapacity, `lease 10; capacity 2
			A acquire 0
			B acquire 1
			C acquire 2`,
			"3 tenures held a permit at once from 2.000s, and 2 may: A, B, C"},
		{OverCapacity, `nothing; capacity 1; quota
			A acquire 0 expired=10
			A release 1
			B acquire 2`,
			"the grant at 2.000s was number 2 of one window, and 1 may be: A, B"},
		{OverCapacity, `nothing; blackbox; capacity 2; parties 2
			A acquire 0
			B acquire 1`,
			"A passed the barrier of section 1 at 0.000s, when 1 of 2 had come to it"},
	} {
		h := story(c.text)
		report := Check(h)
		report.Explain(h)
		found := ""
		for _, f := range report.Findings {
			if f.Kind == c.kind && found == "" {
				found = f.Text
			}
		}
		require.Equal(t, c.want, found, c.text)
	}
}

// Without a lock nobody believes that it holds one.
func TestSentencesWithoutALock(t *testing.T) {
	h := story(`lease 10
		A acquire 0 until=40
		B acquire 11 until=20
		B write 12 =1
		A write 13..13..14 no =2`)
	h.Promise, h.KnowsGrants = NoPromise, false
	h.Ops[3].Decision = Rejected
	report := Check(h)
	report.Explain(h)
	var texts []string
	for _, f := range report.Findings {
		texts = append(texts, f.Text)
	}
	require.Contains(t, texts, "from 11.000s on A and B were both at work")
	require.Contains(t, texts, "the write of 2 by A was refused at 13.000s, after B had begun its section at 11.000s")
}

// What came after what is told in a unit in which the times differ.
func TestSentencesTellCloseTimesApart(t *testing.T) {
	h := story(`lease 10
		A acquire 0 expired=10 until=40
		B acquire 11 until=20
		B write 12 =1
		A write 12 =2`)
	for _, c := range []struct {
		after int64 // nanoseconds
		want  string
	}{
		{250_000, "A wrote 2 at 12.000250s, after B had written 1 at 12.000000s"},
		{250, "A wrote 2 at 12.000000250s, after B had written 1 at 12.000000000s"},
		{2_000_000, "A wrote 2 at 12.002s, after B had written 1 at 12.000s"},
	} {
		h.Ops[3].Effect.At = h.Ops[2].Effect.At + clock.Time(c.after)
		h.Ops[3].Return.At = h.Ops[3].Effect.At
		report := Check(h)
		report.Explain(h)
		texts := map[FindingKind]string{}
		for _, f := range report.Findings {
			texts[f.Kind] = f.Text
		}
		require.Equal(t, c.want, texts[StaleWrite])
	}
}
