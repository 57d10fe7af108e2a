package checker_test

import (
	"testing"

	. "locklab/checker"
)

// A leader is the owner of a lock whose section is a term: act after act until
// it learns otherwise. These are terms by client-go's numbers: a lease of 15 s,
// of which 3 s are for the clocks.
func TestLeaders(t *testing.T) {
	for _, c := range []verdictCase{
		{TwoWriters, "steps down before the next is elected", `lease 15 3; list; final 1 2 3
			A acquire 0 taken=15 learned=12
			A append 1 =1
			A append 11 =2
			B acquire 15 until=20
			B append 16 =3`, "| kept safe"},
		{TwoWriters, "leads on beside the next one", `lease 15 3; list; final 1 2 3
			A acquire 0 taken=15 learned=18
			A append 1 =1
			B acquire 15 until=20
			B append 16 =2
			A append 17 =3`, "overlap stale-write two-writers lost-update | overlap two-writers"},
		{TwoWriters, "does not stop when it has learned", `lease 15 3; list; final 1 2 3
			A acquire 0 taken=15 learned=12
			A append 1 =1
			B acquire 15 until=20
			B append 16 =2
			A append 17 =3`, "stale-write two-writers lost-update | kept two-writers"},
		{TwoWriters, "releases, and its work goes on", `lease 15 3; list; final 1 2 3
			A acquire 0
			A append 1 =1
			A release 12
			B acquire 13 until=20
			B append 16 =2
			A append 17 =3`, "stale-write two-writers lost-update | kept two-writers"},
		{TwoWriters, "a last act before the next one's first", `lease 15 3; list; final 1 2 3
			A acquire 0 taken=15 learned=16
			A append 1 =1
			B acquire 15 until=20
			A append 15.5 =2
			B append 17 =3`, "overlap | overlap safe"},
		{LeaseBroken, "taken over within the allowance", `lease 15 3
			A acquire 0 taken=12 learned=12
			B acquire 12 until=20`, "| kept safe"},
		{LeaseBroken, "taken over too early", `lease 15 3
			A acquire 0 taken=11.5 learned=12
			B acquire 11.5 until=20`, "overlap lease-broken | broken safe"},
		{LeaseBroken, "a renewal counts from when it was sent", `lease 15 3
			A acquire 0 taken=19 learned=20
			A renew 4..4..8
			B acquire 19 until=30`, "overlap | overlap safe"},
		{OverCapacity, "two in office", `nothing
			A acquire 0 until=10
			B acquire 5 until=5`, "over-capacity | broken safe"},
		{Phantom, "elected by nobody", `lease 15 3
			A acquire 0 until=14
			A release 14
			B acquire 5 phantom until=5`, "phantom | broken safe"},
		{Stuck, "nobody follows", `lease 15 3; stuck 45; faults 5; end 100
			A acquire 0 crash=5
			B acquire 6..?..?`, "stuck | kept stuck"},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
}
