package scenarios

import (
	"strconv"
	"time"

	"locklab/sim"
)

// Adversary is whom a search plays against: it draws one plan for each seed.
// A plan depends on the seed and on these fields alone, never on a design, so
// that under one seed every design meets the same adversary.
//
// Its plans name roles, which Runner.Cast gives to the processes of a design:
// client-1 to client-N and their tasks, storage, lock-1 to lock-5, and lock
// for all lock servers.
type Adversary struct {
	Kinds    []sim.FaultKind // what it may do; none: it does nothing
	Victims  string          // of faults that may befall clients as well as servers; "" for both
	Clients  int
	Sections int           // of each client
	TTL      time.Duration // what its lengths of time go by
	Length   time.Duration // about how long a run lasts without faults
}

// NewAdversary returns the adversary for runs with such parameters.
func NewAdversary(p *Params, kinds []sim.FaultKind) Adversary {
	perSection := time.Duration(p.Writes)*p.Work + p.Retry
	return Adversary{Kinds: kinds, Clients: p.Clients, Sections: p.Sections, TTL: p.TTL,
		Length: time.Duration(p.Clients*p.Sections) * perSection}
}

// Whom alone an adversary may strike, where a fault may befall either.
const (
	VictimClients = "clients"
	VictimServers = "servers"
)

// NoFaults names the adversary that does nothing, where kinds of faults are
// asked for.
const NoFaults = "none"

// OperatorsFault reports whether a fault is an operator's doing, or an
// intruder's: searches count runs with one apart, since no lock is built
// against them.
func OperatorsFault(k sim.FaultKind) bool {
	return k == sim.RestoreSnapshot || k == sim.Overwrite || k == sim.Evict
}

// hasOperatorsFault reports whether any fault of a plan is the operator's.
func hasOperatorsFault(p *sim.Plan) bool {
	return anyFault(p, func(f sim.Fault) bool { return OperatorsFault(f.Kind) })
}

// PickFaults returns the fault kinds that the names and patterns mean. "all"
// means all but the operator's, which have to be named.
func PickFaults(asked []string) ([]sim.FaultKind, error) {
	var names []string
	for _, name := range asked {
		if name != "all" {
			names = append(names, name)
			continue
		}
		for _, n := range sim.FaultNames() {
			if k, _ := sim.ParseFaultKind(n); !OperatorsFault(k) {
				names = append(names, n)
			}
		}
	}
	names, err := Pick("fault", sim.FaultNames(), func(n string) string { return n }, names)
	kinds := make([]sim.FaultKind, len(names))
	for i, n := range names {
		kinds[i], _ = sim.ParseFaultKind(n)
	}
	return kinds, err
}

// DrawPlan draws the plan of one seed, swarm style (Groce et al., "Swarm
// Testing", ISSTA 2012): each kind of fault is on in half of the runs, since a
// run in which everything may happen rarely does one thing often enough. Of
// those that are on, one to four faults are drawn: one in half of the runs,
// two in a quarter, three and four in an eighth each.
//
// When a fault strikes:
//
//	8 of 16  at a place of a client, in three of four cases its victim's: before its write
//	         (5 of 16), between grant and work (4), around a renewal (3), around a release (2),
//	         before or within an acquire (2)
//	3 of 16  at a grant, expiry, release, accepted read or write, or refused write
//	2 of 16  before the Nth request of a lock server, N up to 64, each octave equally often
//	1 of 16  before the Nth request of the storage
//	2 of 16  at a time, uniform over the run
//
// How long it lasts, how far a clock steps, how late a message comes:
//
//	4 of 16  about the TTL: 0.9 to 1.1 times
//	4 of 16  a fraction of it: 0.01 to 0.9 times
//	4 of 16  a multiple: 1.1 to 3 times
//	2 of 16  a larger multiple: 3 to 6 times
//	2 of 16  1 ms to 1 s, each octave equally often
//
// What lasts ends in one of eight cases when another client was granted the
// lock or had a write accepted, if that comes first. A client that crashes
// comes up again after such a length in three of four cases, a server always,
// and after two TTLs at the latest: without it nobody can have the lock.
func DrawPlan(seed uint64, a Adversary) sim.Plan {
	if len(a.Kinds) == 0 {
		return sim.Plan{}
	}
	d := drawer{Adversary: &a, seed: sim.Seeded(seed)}
	on := d.kinds()
	d.fault = 0
	n := 1
	for n < 4 && d.oneIn(2, "another"+strconv.Itoa(n)) {
		n++
	}
	plan := sim.Plan{Faults: make([]sim.Fault, n)}
	for i := range plan.Faults {
		d.fault = i + 1
		plan.Faults[i] = d.draw(on[d.below(len(on), "kind")])
	}
	return plan
}

// drawer answers the questions of one plan. Every question has a key of its
// own, so that none shifts another.
type drawer struct {
	*Adversary
	seed  sim.Seeded
	fault int // which fault the question is about, counted from 1
}

// between draws a whole number from lo to hi for the question.
func (d *drawer) between(lo, hi int64, question string) int64 {
	const domain = 0xc96c5795d7870f42 // sets these keys apart from those of places
	key := uint64(14695981039346656037) ^ domain
	for i := 0; i < len(question); i++ { // FNV-1a
		key = (key ^ uint64(question[i])) * 1099511628211
	}
	key = (key ^ uint64(d.fault)) * 1099511628211
	return d.seed.Choose(sim.Choice{Key: key, Lo: lo, Hi: hi})
}

func (d *drawer) below(n int, question string) int { return int(d.between(0, int64(n-1), question)) }

func (d *drawer) oneIn(n int, question string) bool { return d.below(n, question) == 0 }

// octaves draws a number from 1 to 2^n-1, each octave equally often.
func (d *drawer) octaves(n int, question string) int64 {
	low := int64(1) << d.below(n, question+" octave")
	return d.between(low, 2*low-1, question)
}

// kinds throws a coin for each kind that was asked for, and draws one if none
// is on.
func (d *drawer) kinds() []sim.FaultKind {
	on := make([]sim.FaultKind, 0, len(d.Kinds))
	for _, k := range d.Kinds {
		d.fault = int(k)
		if d.oneIn(2, "on") {
			on = append(on, k)
		}
	}
	d.fault = 0
	if len(on) == 0 {
		on = append(on, d.Kinds[d.below(len(d.Kinds), "only")])
	}
	return on
}

// draw draws one fault of a kind.
func (d *drawer) draw(kind sim.FaultKind) sim.Fault {
	f := sim.Fault{Kind: kind}
	victim := d.client("victim")
	switch kind {
	case sim.Pause:
		f.On = []string{victim}
		d.lasts(&f, victim)
	case sim.Stall:
		f.On = []string{victim}
		if d.oneIn(2, "task") {
			f.On[0] += ".renewer"
		}
		d.lasts(&f, victim)
	case sim.Freeze:
		victim = d.machine(6, 2, 0)
		f.On = []string{victim}
		f.Monotonic = d.word("monotonic", "runs", "stops")
		f.Wall = d.word("wall", "right", "behind")
		d.lasts(&f, victim)
	case sim.Crash:
		victim = d.machine(3, 4, 1)
		f.On = []string{victim}
		f.Mode = d.word("mode", "process", "node")
		if clientNamed(victim) && d.oneIn(4, "never") {
			break
		}
		f.Restart = d.length("restart")
		if !clientNamed(victim) {
			f.Restart.Fixed = min(f.Restart.Fixed, 2*d.TTL)
		}
	case sim.ClockStep, sim.ClockOffset:
		victim = d.machine(4, 4, 0)
		f.On, f.By = []string{victim}, d.signed(d.length("by"))
		if kind == sim.ClockOffset {
			d.lasts(&f, victim)
		}
	case sim.ClockRate:
		victim = d.machine(4, 4, 0)
		f.On, f.Rate = []string{victim}, d.rate()
		if d.oneIn(2, "bounded") {
			f.For = d.length("for")
		}
	case sim.DropRequest, sim.DropReply:
		f.On = []string{d.link(victim)}
		if d.oneIn(4, "window") {
			d.lasts(&f, victim)
		}
	case sim.Delay:
		f.On = []string{d.link(victim)}
		if d.oneIn(2, "held") {
			d.lasts(&f, victim)
		} else {
			f.By = d.length("by")
		}
	case sim.Duplicate, sim.Reorder: // datagrams: between servers
		victim = d.lockServer("from")
		f.On = []string{victim + "->" + d.lockServer("to")}
		if d.oneIn(2, "window") {
			d.lasts(&f, victim)
		}
	case sim.Partition:
		victim = d.partition(&f)
		d.lasts(&f, victim)
	case sim.Cut:
		f.On, f.Mode = []string{d.link(victim)}, d.word("mode", "reset", "silent")
	case sim.FsyncStall:
		victim = d.machine(0, 6, 2)
		f.On = []string{victim}
		d.lasts(&f, victim)
	case sim.LoseUnsynced:
		victim = d.machine(0, 6, 2)
		f.On = []string{victim}
	case sim.RestoreSnapshot:
		victim = d.machine(0, 6, 2)
		f.On, f.By = []string{victim}, d.length("by")
	case sim.Evict, sim.Overwrite:
		victim = d.lockServer("server")
		f.On, f.Key = []string{victim}, d.word("key", "lock", "lock:token")
		if kind == sim.Overwrite && f.Key == "lock:token" {
			f.Value = "1" // a counter that was set back; anything else is an error to whoever counts
		}
	case sim.Failover:
		victim = d.lockServer("server")
		f.On, f.Mode = []string{victim}, d.word("mode", "isolated", "demoted")
	}
	f.Trigger = d.trigger(victim)
	return f
}

func clientNamed(role string) bool { return len(role) > 7 && role[:7] == "client-" }

func (d *drawer) client(question string) string {
	return "client-" + strconv.Itoa(1+d.below(d.Clients, question))
}

func (d *drawer) lockServer(question string) string {
	return lockRole + "-" + strconv.Itoa(1+d.below(lockRoles, question))
}

// machine draws a client, a lock server or the storage, weighted out of their
// sum. Of those whom the adversary spares none is drawn, unless nobody else is
// left.
func (d *drawer) machine(client, lock, storage int) string {
	switch {
	case d.Victims == VictimClients && client > 0:
		lock, storage = 0, 0
	case d.Victims == VictimServers && lock+storage > 0:
		client = 0
	}
	switch n := d.below(client+lock+storage, "machine"); {
	case n < client:
		return d.client("victim")
	case n < client+lock:
		return d.lockServer("server")
	}
	return storageRole
}

// link draws a way from a client: to a lock server or, one in three, to the
// storage.
func (d *drawer) link(from string) string {
	if d.oneIn(3, "to storage") {
		return from + "->" + storageRole
	}
	return from + "->" + d.lockServer("server")
}

// partition draws who is cut off from whom and returns the one it is about.
func (d *drawer) partition(f *sim.Fault) string {
	victim := d.machine(4, 4, 0)
	f.On = []string{victim}
	switch d.below(4, "from") {
	case 0, 1:
		f.From = []string{lockRole}
	case 2:
		f.From = []string{storageRole}
	case 3: // from everybody
	}
	f.Mode = d.word("mode", "drop", "hold")
	f.OneWay = d.oneIn(4, "one way")
	return victim
}

func (d *drawer) word(question string, words ...string) string {
	return words[d.below(len(words), question)]
}

// lasts gives a fault an end: a length, or what another client achieves.
func (d *drawer) lasts(f *sim.Fault, victim string) {
	length := d.length("for")
	other := d.client("other")
	if other == victim || !d.oneIn(8, "until") {
		f.For = length
		return
	}
	kind := sim.AcceptedWrite
	if d.oneIn(2, "until grant") {
		kind = sim.Granted
	}
	f.Until = sim.Milestone{Kind: kind, Who: other, N: int32(1 + d.below(d.Sections, "until which"))}
	f.AtMost = length
}

// length draws a length of time in whole milliseconds.
func (d *drawer) length(what string) sim.Span {
	permille := func(lo, hi int64) time.Duration {
		return time.Duration(d.between(lo, hi, what+" permille")) * (d.TTL / 1000)
	}
	var length time.Duration
	switch n := d.below(16, what+" class"); {
	case n < 4:
		length = permille(900, 1100)
	case n < 8:
		length = permille(10, 900)
	case n < 12:
		length = permille(1100, 3000)
	case n < 14:
		length = permille(3000, 6000)
	default:
		length = time.Duration(d.octaves(10, what+" ms")) * time.Millisecond
	}
	return sim.Exactly(max(length.Round(time.Millisecond), time.Millisecond))
}

func (d *drawer) signed(s sim.Span) sim.Span {
	if d.oneIn(2, "back") {
		s.Fixed = -s.Fixed
	}
	return s
}

// rate draws how wrong a clock runs: three of four times as a bad crystal or a
// throttled virtual machine may, 10 parts per million to 10 %, each octave
// equally often; else up to half or twice the speed.
func (d *drawer) rate() int64 {
	const ppm = 1000
	rate := 10 * ppm * d.octaves(14, "rate")
	if d.oneIn(4, "wild") {
		rate = d.between(100_000*ppm, 500_000*ppm, "rate")
	}
	if d.oneIn(2, "slow") {
		return -rate
	}
	return rate
}

// trigger draws when a fault strikes.
func (d *drawer) trigger(victim string) sim.Trigger {
	who := victim
	if !clientNamed(victim) || d.oneIn(4, "somebody else") {
		who = d.client("who")
	}
	section := 1 + d.below(d.Sections, "section")
	switch n := d.below(16, "trigger"); {
	case n < 8:
		return d.clientPlace(sim.PlacePattern{Proc: who, Section: int32(section)})
	case n < 11:
		kinds := []sim.MilestoneKind{sim.Granted, sim.Granted, sim.Expired, sim.Released, sim.AcceptedRead, sim.AcceptedWrite,
			sim.AcceptedWrite, sim.RefusedWrite}
		return sim.Trigger{When: sim.Milestone{Kind: kinds[d.below(len(kinds), "milestone")], Who: who, N: int32(section)}}
	case n < 13:
		return sim.Trigger{Before: sim.PlacePattern{Proc: d.lockServer("at"), Phase: sim.PhaseRequest, Op: int32(d.octaves(6, "request"))}}
	case n < 14:
		n := 1 + d.below(2*d.Clients*d.Sections, "storage request")
		return sim.Trigger{Before: sim.PlacePattern{Proc: storageRole, Phase: sim.PhaseRequest, Op: int32(n)}}
	}
	ms := d.between(0, max(int64(d.Length/time.Millisecond), 1), "at ms")
	return sim.Trigger{At: sim.Exactly(time.Duration(ms) * time.Millisecond)}
}

// clientPlace draws a place within a client's section, weighted towards those
// at which a lock can be lost unnoticed.
func (d *drawer) clientPlace(p sim.PlacePattern) sim.Trigger {
	op := int32(d.octaves(4, "op")) // 1 to 15, mostly small
	after := d.oneIn(3, "after")
	switch n := d.below(16, "place"); {
	case n < 5:
		p.Phase, after = sim.PhaseWrite, false
	case n < 7:
		p.Phase, after = sim.PhaseAcquire, true // the whole of it: at once after the grant
	case n < 8:
		p.Phase, after = sim.PhaseRead, false
	case n < 9:
		p.Phase, after = sim.PhaseRead, true
	case n < 12:
		p.Phase, p.Op = sim.PhaseRenew, op
	case n < 14:
		p.Phase = sim.PhaseRelease
	default:
		p.Phase, p.Op = sim.PhaseAcquire, op
	}
	if after {
		return sim.Trigger{After: p}
	}
	return sim.Trigger{Before: p}
}
