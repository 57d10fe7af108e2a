package checker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "locklab/checker"
)

// verdictCase is a tiny history and all that must be found in it, and nothing
// else: "two-writers stale-write | broken two-writers" stands for the findings,
// in order of time and kind, and the two answers.
type verdictCase struct {
	about FindingKind // the check that the history tries
	name  string
	story string
	want  string
}

func (c verdictCase) run(t *testing.T) Report {
	t.Helper()
	h := story(c.story)
	r := Check(h)
	r.Explain(h)
	require.Equal(t, c.want, summary(r), "%v", r.Findings)
	for _, f := range r.Findings {
		require.NotEmpty(t, f.Text)
	}
	if h.Omniscient {
		require.NoError(t, CrossCheck(r, Porcupine(h, time.Second)))
	}
	return r
}

func summary(r Report) string {
	var words []string
	for _, f := range r.Findings {
		words = append(words, f.Kind.String())
	}
	return strings.TrimSpace(strings.Join(words, " ") + " | " + r.Lock.String() + " " + r.Verdict.String())
}

// findingCases has, for every finding, histories that must produce it and near misses
// that must not: a check that is broken either way fails some of them.
var findingCases = []verdictCase{
	{Overlap, "two believe at once", `lease 10
		A acquire 0 expired=10 until=12
		B acquire 11 until=13`, "overlap | overlap safe"},
	{Overlap, "one ends as the other begins", `lease 10
		A acquire 0 expired=10 until=11
		B acquire 11 until=13`, "| kept safe"},
	{Overlap, "a paused client still believes", `lease 10
		A acquire 0 expired=10
		B acquire 11 until=13`, "overlap | overlap safe"},
	{Overlap, "a crash ends the belief", `lease 10
		A acquire 0 expired=10 crash=5
		B acquire 11 until=13`, "| kept safe"},
	{Overlap, "a client never overlaps itself", `lease 10
		A acquire 0 expired=10 until=20
		A acquire 11 until=13`, "| kept safe"},
	{Overlap, "each who joins overlaps once", `lease 10
		A acquire 0 expired=10
		B acquire 11 expired=21
		C acquire 22`, "overlap overlap | overlap safe"},
	{Overlap, "two of two permits", `lease 10; capacity 2
		A acquire 0
		B acquire 1`, "| kept safe"},
	{Overlap, "three believe in two permits", `lease 10; capacity 2
		A acquire 0 expired=10
		B acquire 1 expired=11
		C acquire 12`, "overlap | overlap safe"},

	{LeaseBroken, "passed on after nine of ten seconds", `lease 10
		A acquire 0 taken=9 until=9
		B acquire 9 until=12`, "lease-broken | broken safe"},
	{LeaseBroken, "passed on after ten", `lease 10
		A acquire 0..1..1 expired=10 until=10
		B acquire 10 until=12`, "| kept safe"},
	{LeaseBroken, "the lease counts from the try that was answered yes", `lease 10
		A acquire 0..4.1..4.2 sent=4 taken=13 until=13
		B acquire 13 until=15`, "lease-broken | broken safe"},
	{LeaseBroken, "the try that was answered yes was the first", `lease 10
		A acquire 0..4.1..4.2 expired=13 until=13
		B acquire 13 until=15`, "| kept safe"},
	{LeaseBroken, "within the declared drift", `lease 10 1
		A acquire 0 taken=9 until=9
		B acquire 9 until=12`, "| kept safe"},
	{LeaseBroken, "a release had been sent", `lease 10
		A acquire 0
		A release 2..3..4
		B acquire 3.5 until=5`, "| kept safe"},
	{LeaseBroken, "the release was sent too late", `lease 10
		A acquire 0 taken=3
		B acquire 3 until=5
		A release 4`, "overlap lease-broken | broken safe"},
	{LeaseBroken, "a renewal prolongs the promise", `lease 10
		A acquire 0 taken=12 until=12
		A renew 5
		B acquire 12 until=13`, "lease-broken | broken safe"},
	{LeaseBroken, "a renewal of unknown outcome promises nothing", `lease 10
		A acquire 0 expired=12 until=12
		A renew 5..?
		B acquire 12 until=13`, "| kept safe"},
	{LeaseBroken, "a crash does not end a lease", `lease 10
		A acquire 0 crash=2 taken=3
		B acquire 3 until=4`, "lease-broken | broken safe"},
	{LeaseBroken, "an orphan was promised nothing", `lease 10
		A acquire 0..0..? granted=0 taken=3
		B acquire 3 until=4`, "| kept safe"},
	{LeaseBroken, "a session ends with its client", `session
		A acquire 0 crash=2 lost=3
		B acquire 3 until=4`, "| kept safe"},
	{LeaseBroken, "a session lost in the network", `session
		A acquire 0 sessionlost=2 lost=2.5 learned=2.5
		B acquire 3 until=4`, "| kept safe"},
	{LeaseBroken, "a session lost by the server", `session
		A acquire 0 lost=2 learned=2.5
		B acquire 3 until=4`, "lease-broken | broken safe"},
	{LeaseBroken, "seen from outside", `lease 10; blackbox
		A acquire 0 until=9
		B acquire 9 until=12`, "lease-broken | broken safe"},
	{LeaseBroken, "from outside, two acquires in flight may have been granted in either order", `lease 10; blackbox
		B acquire 12..12..16 until=17
		A acquire 13..13..15 until=15.5`, "| kept safe"},

	{Phantom, "told of a grant that never was", `lease 10
		A acquire 0 phantom until=1`, "phantom | broken safe"},
	{Phantom, "refused, not told", `lease 10
		A acquire 0 no`, "| kept safe"},
	{Phantom, "from outside every success is a grant", `lease 10; blackbox
		A acquire 0 phantom until=1`, "| kept safe"},

	{ForeignRelease, "A deletes B's lock", `lease 10
		A acquire 0 expired=10 until=10
		B acquire 11 taken=12 until=30 expired=12
		A release 12 of=1 victim=2`, "foreign-release spurious-loss | broken safe"},
	{ForeignRelease, "A finds B's lock and leaves it", `lease 10
		A acquire 0 expired=10 until=10
		B acquire 11 until=13
		A release 12 of=1`, "| kept safe"},
	{ForeignRelease, "a blind renewal", `lease 10
		A acquire 0 expired=10 until=10
		B acquire 11 until=13
		A renew 12 of=1 victim=2`, "foreign-release | broken safe"},

	{ForeignRelease, "its own tenure is nobody else's", `lease 10
		A acquire 0
		A release 2 victim=1`, "| kept safe"},
	{TokenOrder, "a token goes back", `lease 10; tokens
		A acquire 0 token=34
		A release 1
		B acquire 2 token=33
		B release 3`, "token-order | broken safe"},
	{TokenOrder, "a token is given twice", `lease 10; tokens
		A acquire 0 token=33
		A release 1
		B acquire 2 token=33
		B release 3`, "token-order | broken safe"},
	{TokenOrder, "tokens grow, with gaps", `lease 10; tokens
		A acquire 0 token=33
		A release 1
		B acquire 2 token=40
		B release 3`, "| kept safe"},
	{TokenOrder, "tokens that are only unique owe no order", `lease 10
		A acquire 0 token=34
		A release 1
		B acquire 2 token=33
		B release 3`, "| kept safe"},
	{TokenOrder, "an orphan has no token", `lease 10; tokens
		A acquire 0 token=33
		A release 1
		B acquire 2..2..? granted=2 expired=12
		A acquire 13 token=35
		A release 14`, "| kept safe"},
	{TokenOrder, "from outside a late reply is not out of order", `lease 10; tokens; blackbox
		A acquire 0..0..15 token=33 learned=15
		B acquire 12..12..13 token=34
		B release 14`, "| kept safe"},
	{TokenOrder, "from outside, going back", `lease 10; tokens; blackbox
		A acquire 0 token=34
		A release 1
		B acquire 2 token=33
		B release 3`, "token-order | broken safe"},

	{SpuriousLoss, "the lock vanishes early", `lease 10
		A acquire 0 lost=5 until=8`, "spurious-loss | broken safe"},
	{SpuriousLoss, "it expires in time", `lease 10
		A acquire 0..1..1 expired=10 until=20`, "| kept safe"},
	{SpuriousLoss, "its client was dead", `lease 10
		A acquire 0 crash=3 lost=5`, "| kept safe"},
	{SpuriousLoss, "its client had released", `lease 10
		A acquire 0
		A release 3..4..5`, "| kept safe"},
	{SpuriousLoss, "a renewal is refused for nothing", `lease 10
		A acquire 0 expired=11 learned=5
		A renew 5 no`, "spurious-loss | broken safe"},
	{SpuriousLoss, "a renewal that came too late is rightly refused", `lease 10
		A acquire 0 expired=10 learned=11
		A renew 9..10.5..11 no`, "| kept safe"},
	{SpuriousLoss, "what a blind renewal got after the end is no promise", `lease 10
		A acquire 0 expired=10 learned=12
		A renew 11
		A renew 12 no`, "| kept safe"},
	{SpuriousLoss, "once for each tenure", `lease 10
		A acquire 0 lost=3 learned=5
		A renew 4 no
		A renew 4.5 no`, "spurious-loss | broken safe"},
	{SpuriousLoss, "a session that the server forgets", `session
		A acquire 0 lost=5 learned=8`, "spurious-loss | broken safe"},
	{SpuriousLoss, "a session cut by the network", `session
		A acquire 0 sessionlost=4 lost=5 learned=8`, "| kept safe"},

	{OverCapacity, "two grants of one lock", `nothing
		A acquire 0 until=1
		B acquire 2 until=3`, "over-capacity | broken safe"},
	{OverCapacity, "one after the other", `nothing
		A acquire 0
		A release 1
		B acquire 2 until=3`, "| kept safe"},
	{OverCapacity, "a third permit of two", `nothing; capacity 2
		A acquire 0
		B acquire 1
		A release 2
		C acquire 3
		D acquire 4 until=4`, "over-capacity | broken safe"},
	{OverCapacity, "a permit returned", `nothing; capacity 2
		A acquire 0
		B acquire 1
		A release 2
		C acquire 3`, "| kept safe"},

	{OverCapacity, "a permit that expired leaves room", `lease 10; capacity 2
		A acquire 0 expired=10 crash=1
		B acquire 1
		C acquire 11`, "| kept safe"},
	{OverCapacity, "a quota's grant counts to the end of its window, also when its client is done", `nothing; capacity 2; quota
		A acquire 0 expired=10
		A release 1
		B acquire 2 expired=10
		B release 3
		C acquire 4 until=5`, "over-capacity | broken safe"},
	{OverCapacity, "the next window of a quota, with work left from the last", `nothing; capacity 1; quota; list; final 1 2
		A acquire 0 expired=10
		B acquire 11
		A append 12 =1
		B append 13 =2
		A release 14`, "| kept safe"},
	{OverCapacity, "all have come to the barrier", `nothing; blackbox; capacity 3; parties 3
		A acquire 0..2..3
		B acquire 1..2..3
		C acquire 2`, "| kept safe"},
	{OverCapacity, "a late write crosses a barrier, which is not about that", `nothing; capacity 2; parties 2; list; final 1 2
		A acquire 0..2..2 granted=2
		B acquire 1..2..2 granted=2
		A append 3..9..? =1
		B append 4 =2
		A release 5
		B release 6
		A acquire 7..8..8
		B acquire 7.5..8..8
		A enter 8.2
		B enter 8.5
		A enter 10
		B enter 10
		A release 11
		B release 11`, "| kept safe"},
	{OverCapacity, "a barrier opens early", `nothing; blackbox; capacity 3; parties 3
		A acquire 0..2..3
		B acquire 1
		C acquire 4`, "over-capacity over-capacity | broken safe"},
	{OverCapacity, "who comes to a barrier twice is one party", `nothing; blackbox; capacity 2; parties 2
		A acquire 0..0..?
		A acquire 1 section=1
		B acquire 2`, "over-capacity | broken safe"},
	{OverCapacity, "a barrier's rounds are its sections", `nothing; blackbox; capacity 2; parties 2
		A acquire 0..2..2
		B acquire 1..2..2
		A acquire 3
		B acquire 4`, "over-capacity | broken safe"},

	{RefusedLate, "the old token is refused", `lease 10; tokens; final 1
		A acquire 0 token=33 expired=10 learned=13
		B acquire 11 token=34
		B write 12 =1
		A write 13 =1 no
		B release 14`, "overlap refused | overlap fenced"},
	{RefusedLate, "the newest is refused and repeats", `lease 10; final 1
		A acquire 0
		A write 1 =1 no
		A write 2 =1
		A release 3`, "| kept safe"},
	{RefusedLate, "the newest permits of a semaphore are not late", `lease 10; capacity 2
		A acquire 0
		B acquire 1
		A write 2 =1 no
		A write 3 =1`, "| kept safe"},

	{StaleWrite, "accepted after the new owner entered", `lease 10
		A acquire 0 expired=10 learned=13
		B acquire 11
		B enter 12
		A write 13 =1
		B release 14`, "overlap stale-write | overlap safe"},
	{StaleWrite, "before the new owner's first operation", `lease 10
		A acquire 0 expired=10 learned=12
		B acquire 11
		A write 12 =1
		B enter 13
		B release 14`, "overlap | overlap safe"},
	{StaleWrite, "a late grant, serial the other way round", `lease 10; final 2
		A acquire 0..0..20 expired=10
		B acquire 11
		B write 12 =1
		B release 13
		A write 21 =2
		A release 22`, "| kept safe"},
	{StaleWrite, "a late grant, but the new owner's write lands after the late one's work", `lease 10; final 1
		A acquire 0..0..20 expired=10
		B acquire 11
		B write 12..24..? =1
		B release 13
		A enter 21
		A release 22`, "stale-write | kept safe"},

	{TwoWriters, "both write", `lease 10; tokens; final 1
		A acquire 0 token=33 expired=10
		B acquire 11 token=34
		B write 12 =2
		A write 13 =1
		B release 14
		A release 15`, "overlap stale-write two-writers | overlap two-writers"},
	{TwoWriters, "the later one had only read, and writes afterwards", `lease 10; final 1
		A acquire 0 expired=10
		A read 1 =0
		B acquire 11
		B read 12 =0
		A write 13 =1
		B write 14 =1
		A release 15
		B release 16`, "overlap stale-write two-writers lost-update | overlap two-writers"},
	{TwoWriters, "the later one reads again before it writes", `lease 10; final 2
		A acquire 0 expired=10
		A read 1 =0
		B acquire 11
		B read 12 =0
		A write 13 =1
		B write 14 =1 no
		B read 15 =1
		B write 16 =2
		A release 17
		B release 18`, "overlap stale-write | overlap safe"},
	{TwoWriters, "the later one writes blindly, and later", `lease 10; final 2
		A acquire 0 expired=10
		B acquire 11
		B enter 12
		A write 13 =1
		B write 14 =2
		A release 15
		B release 16`, "overlap stale-write | overlap safe"},
	{TwoWriters, "more than the permits at work", `nothing; capacity 2
		A acquire 0 until=9 lost=1
		A write 0.5 =1
		B acquire 2
		C acquire 3
		B write 4 =2
		C write 5 =3
		A write 6 =4
		B write 7 =5`, "overlap two-writers | overlap two-writers"},
	{TwoWriters, "a quota says when to begin, not how many may be at it", `nothing; capacity 2; quota
		A acquire 0 expired=10
		B acquire 1 expired=10
		A enter 2
		B enter 3
		C acquire 11
		C enter 12
		A append 13 =1
		B append 14 =2
		A release 15
		B release 16`, "| kept safe"},
	{TwoWriters, "as many as the permits", `nothing; capacity 2
		A acquire 0
		B acquire 1
		A write 2 =1
		B write 3 =2
		A write 4 =3`, "| kept safe"},
	{TwoWriters, "from outside, a pause", `lease 10; blackbox; final 1
		A acquire 0
		B acquire 11
		B write 12 =2
		A write 13 =1
		B release 14
		A release 15`, "overlap stale-write two-writers | overlap two-writers"},
	{TwoWriters, "from outside, writes in flight together prove nothing", `lease 10; blackbox; final 2
		A acquire 0
		A write 9..9..13 =1
		B acquire 11 until=14
		B write 11.5..11.5..12 =2
		A release 15`, "overlap | overlap safe"},

	{TwoWriters, "from outside, a stale write in flight during the read", `lease 10; blackbox
		A acquire 0 until=15
		B acquire 11 until=15
		B enter 11.2
		A write 11.5..13 =1
		B read 12 =0
		B write 14 =2`, "overlap stale-write | overlap safe"},

	{LostUpdate, "two go on from the same value", `lease 10; final 1
		A acquire 0
		A read 1 =0
		A write 2 =1
		A release 3
		B acquire 4
		B read 5 =0
		B write 6 =1
		B release 7`, "write-lost lost-update | kept lost-update"},
	{LostUpdate, "one after the other", `lease 10; final 2
		A acquire 0
		A read 1 =0
		A write 2 =1
		A release 3
		B acquire 4
		B read 5 =1
		B write 6 =2
		B release 7`, "| kept safe"},
	{LostUpdate, "a blind stale write that lands last has an order", `lease 10; final 1
		A acquire 0 expired=10
		B acquire 11
		B read 12 =0
		B write 13 =5
		A write 14 =1
		A release 15
		B release 16`, "overlap stale-write two-writers | overlap two-writers"},
	{LostUpdate, "a blind write between a read and its write", `lease 10; final 5
		A acquire 0 expired=10
		B acquire 11
		B read 12 =0
		A write 13 =1
		B write 14 =5
		A release 15
		B release 16`, "overlap stale-write two-writers lost-update | overlap two-writers"},
	{LostUpdate, "a read in the middle of a section", `lease 10; final 2
		A acquire 0
		A write 1 =1
		B acquire 2 phantom until=4
		B read 3 =1
		A write 5 =2
		A release 6`, "overlap phantom lost-update stale-write | broken lost-update"},
	{LostUpdate, "a read between sections", `lease 10; final 2
		A acquire 0
		A write 1 =1
		A write 2 =2
		A release 3
		B acquire 4
		B read 5 =2
		B release 6`, "| kept safe"},
	{LostUpdate, "somebody wrote into the section", `lease 10
		A acquire 0
		A read 1 =0
		B write 2 =7 unheld
		A read 3 =7
		A release 4`, "lost-update | kept lost-update"},
	{LostUpdate, "a circle that nobody enters", `lease 10
		A acquire 0
		A read 1 =5
		A write 2 =6
		A release 3
		B acquire 4
		B read 5 =6
		B write 6 =5
		B release 7`, "lost-update | kept lost-update"},
	{LostUpdate, "the same circle, entered", `lease 10; initial 5
		A acquire 0
		A read 1 =5
		A write 2 =6
		A release 3
		B acquire 4
		B read 5 =6
		B write 6 =5
		B release 7`, "| kept safe"},
	{LostUpdate, "from outside, one of two unknown writes was made", `nothing; blackbox
		A acquire 0 until=3
		A read 1 =0
		A write 2..? =1
		B acquire 4
		B read 5 =0
		B write 6..? =1
		B release 8
		C acquire 9
		C read 10 =1
		C release 11`, "| kept safe"},
	{LostUpdate, "from outside, the unknown write was not made and then repeated", `nothing; blackbox
		A acquire 0 until=3
		A read 1 =0
		A write 2..? =1
		B acquire 4
		B read 5 =0
		B write 6 =1
		B release 8
		C acquire 9
		C read 10 =1
		C release 11`, "| kept safe"},
	{LostUpdate, "a list read in the middle of a section", `nothing; list; final 1 2
		A acquire 0
		A append 1 =1
		B read 2 =1 unheld
		A append 3 =2
		A release 4`, "lost-update | kept lost-update"},
	{LostUpdate, "a list torn", `nothing; list; final 1 2 3
		A acquire 0
		A append 1 =1
		A release 2..4..5
		B acquire 2.5 unheld phantom until=2.5
		B append 3 =2
		A append 3.5 =3`, "phantom stale-write two-writers lost-update | broken two-writers"},
	{LostUpdate, "a list of whole sections", `nothing; list; final 1 2 3
		A acquire 0
		A read 0.5 =0
		A append 1 =1
		A append 2 =2
		A read 2.5 =2
		A release 3
		B acquire 4
		B read 5 =2
		B append 6 =3
		B release 7`, "| kept safe"},
	{LostUpdate, "a list read before another's append", `lease 10; list; final 1 2
		A acquire 0 expired=10
		A read 1 =0
		B acquire 11
		B append 12 =1
		B release 13
		A append 14 =2
		A release 15`, "overlap stale-write two-writers lost-update | overlap two-writers"},

	{DoubleApply, "an append delivered twice", `nothing; list; final 1 1
		A acquire 0
		A append 1 =1 applied=2
		A release 2`, "double-apply | kept lost-update"},
	{DoubleApply, "a write delivered twice does no harm of itself", `nothing; final 1
		A acquire 0
		A write 1 =1 applied=2
		A release 2`, "| kept safe"},
	{DoubleApply, "but it does where the workload says once", `nothing; once; final 1
		A acquire 0
		A write 1 =1 applied=2
		A release 2`, "double-apply | kept lost-update"},
	{DoubleApply, "a section repeated although its write had been made", `nothing; once; list; final 1 2
		A acquire 0 section=1 until=2 lost=2
		A append 1..1..? =1
		A acquire 3 section=1
		A append 4 =2
		A release 5`, "double-apply | kept lost-update"},
	{DoubleApply, "a section repeated because its write had not", `nothing; once; list; final 2
		A acquire 0 section=1 until=2 lost=2
		A append 1..? =1
		A acquire 3 section=1
		A append 4 =2
		A release 5`, "| kept safe"},

	{DoubleApply, "two writes of one section are two writes", `nothing; once; list; final 1 2
		A acquire 0
		A append 1 =1
		A append 2 =2
		A release 5`, "| kept safe"},

	{WriteLost, "an acknowledged write is gone", `nothing; final 0
		A acquire 0
		A read 0.5 =0
		A write 1 =1
		A release 2`, "lost-update write-lost | kept lost-update"},
	{WriteLost, "nobody was promised an unacknowledged one", `nothing; final 0
		A acquire 0
		A read 0.5 =0
		A write 1..1..? =1
		A release 2`, "| kept safe"},
	{WriteLost, "a reader misses it", `nothing
		A acquire 0
		A write 1 =1
		A release 2
		B acquire 3
		B read 4 =0
		B release 5`, "write-lost | kept lost-update"},
	{WriteLost, "overwritten is not gone", `nothing; final 2
		A acquire 0
		A write 1 =1
		A release 2
		B acquire 3
		B write 4 =2
		B release 5`, "| kept safe"},
	{WriteLost, "what a duplicate overwrote is not gone", `nothing; final 1
		A acquire 0
		A write 1 =1 applied=2
		A release 2
		B acquire 3
		B write 4 =2
		B release 5`, "double-apply | kept lost-update"},
	{WriteLost, "an element of a list is gone", `nothing; list; final 2
		A acquire 0
		A append 1 =1
		A append 2 =2
		A release 3`, "write-lost | kept lost-update"},
	{WriteLost, "a list is too short for its reader", `nothing; list
		A acquire 0
		A append 1 =1
		A release 3
		B acquire 4
		B read 5 =0
		B release 6`, "write-lost | kept lost-update"},
	{WriteLost, "from outside, surely gone", `nothing; blackbox
		A acquire 0
		A write 1 =1
		A release 2
		B acquire 3
		B read 4 =0
		B release 5`, "write-lost | kept lost-update"},
	{WriteLost, "from outside, in flight together", `nothing; blackbox
		A acquire 0
		A write 1..1..5 =1
		B read 4 =0 unheld
		A release 6`, "| kept safe"},

	{RefusedLate, "a phantom is refused, though nobody came after it", `lease 10
		A acquire 0
		A write 1 =1
		B acquire 2 phantom until=4
		B write 3 =2 no
		A release 5`, "overlap phantom refused | broken fenced"},
	{SelfRejected, "a phantom is refused, and nobody was ever granted the lock", `lease 10
		B acquire 2 phantom until=4
		B write 3 =2 no`, "phantom self-rejected | broken stuck"},
	{SelfRejected, "the newest owner is refused for good", `lease 10
		A acquire 0
		A write 1 =1 no
		A release 2`, "self-rejected | kept stuck"},
	{SelfRejected, "it repeats under another tenure", `lease 10; final 1
		A acquire 0 section=1
		A write 1 =1 no
		A release 2
		A acquire 3 section=1
		A write 4 =1
		A release 5`, "| kept safe"},
	{SelfRejected, "it crashed before it could repeat", `lease 10
		A acquire 0 crash=2
		A write 1 =1 no`, "| kept safe"},
	{SelfRejected, "reported once for each section", `lease 10
		A acquire 0
		A write 1 =1 no
		A write 2 =1 no
		A release 3`, "self-rejected | kept stuck"},

	{Stuck, "willing and nobody working", `nothing; stuck 30; end 60
		A acquire 0 crash=1
		B acquire 2..?`, "stuck | kept stuck"},
	{Stuck, "not for so long", `nothing; stuck 30; end 31
		A acquire 0 crash=1
		B acquire 2..?`, "| kept safe"},
	{Stuck, "a live holder works long", `nothing; stuck 30; end 60
		A acquire 0
		B acquire 2..?`, "| kept safe"},
	{Stuck, "many tries are one wish", `nothing; stuck 3; end 9
		A acquire 0 crash=1
		B acquire 2 no section=1
		B acquire 3 no section=1
		B acquire 4 no section=1
		B acquire 5 no section=1`, "stuck | kept stuck"},
	{Stuck, "it gave up", `nothing; stuck 3; end 99
		A acquire 0 crash=1
		B acquire 2 no section=1
		B acquire 4 no section=1`, "| kept safe"},
	{Stuck, "a success in between", `nothing; stuck 3; end 9
		A acquire 0 expired=1 crash=1
		B acquire 2..4..4
		B release 5.1
		B acquire 6..?`, "stuck | kept stuck"},
	{Stuck, "successes in time", `nothing; stuck 3; end 8
		A acquire 0 expired=1 crash=1
		B acquire 2..4.5..4.5
		B release 5.1
		B acquire 6..?`, "| kept safe"},
	{Stuck, "a success for no time at all", `nothing; stuck 3; end 6.5
		A acquire 0 expired=1 crash=1
		B acquire 2..4..4 crash=4 expired=4.1
		C acquire 2..?`, "| kept safe"},
	{Stuck, "only after the last fault", `nothing; stuck 30; faults 40; end 60
		A acquire 0 crash=1
		B acquire 2..?`, "| kept safe"},
	{Stuck, "the waiter is dead too", `nothing; stuck 30; end 60
		A acquire 0 crash=1
		B acquire 2..? crash=10`, "| kept safe"},
	{Stuck, "unchecked", `nothing; end 99
		A acquire 0 crash=1
		B acquire 2..?`, "| kept safe"},
}

func TestFindings(t *testing.T) {
	for _, c := range findingCases {
		t.Run(c.about.String()+"/"+c.name, func(t *testing.T) { c.run(t) })
	}
}

// A belief is half open, to the step.
func TestBeliefsMayTouch(t *testing.T) {
	h := story(`lease 10
		A acquire 0 expired=10 until=11
		B acquire 11 until=13`)
	h.Ops[0].BelievesUntil = h.Ops[1].Return
	require.Empty(t, Check(h).Findings)
	require.NoError(t, CrossCheck(Check(h), Porcupine(h, 0)))
	h.Ops[0].BelievesUntil.Step++
	require.Equal(t, "overlap | overlap safe", summary(Check(h)))
}

// Every check must have a history that trips it and a near miss that does not,
// or breaking it might go unnoticed.
func TestEveryFindingHasBothSides(t *testing.T) {
	for kind := Overlap; kind <= Stuck; kind++ {
		found, missed := 0, 0
		for _, c := range findingCases {
			switch {
			case c.about != kind:
			case strings.Contains(" "+c.want, " "+kind.String()+" ") || strings.HasPrefix(c.want, kind.String()+" "):
				found++
			default:
				missed++
			}
		}
		require.Positive(t, found, "no history shows %s", kind)
		require.Positive(t, missed, "no near miss of %s", kind)
	}
}
