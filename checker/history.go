// Package checker judges histories. It turns what happened in a run into
// findings and into the two answers, about the lock and about the data. It
// knows no design, no resource and no scenario: everything it may use stands
// in the history.
package checker

import (
	"time"

	"locklab/clock"
)

// Instant is a moment of a history. Several things may happen in the same
// nanosecond; Step orders them (it grows through the whole run). Histories of
// real systems may leave Step 0 and are then ordered by time and line.
type Instant struct {
	At   clock.Time
	Step int64
}

// Never is the instant of what did not happen, or is not known to have.
var Never = Instant{At: clock.Never}

// Before reports whether i comes before j.
func (i Instant) Before(j Instant) bool {
	return i.At < j.At || i.At == j.At && i.Step < j.Step
}

// Known reports whether the instant happened.
func (i Instant) Known() bool { return i.At != clock.Never }

// Kind is what an operation does.
type Kind uint8

// The kinds of operations. Enter is a client's own preparation at the resource
// (writing its mark); it counts as an accepted operation, reads and writes no data.
const (
	Acquire Kind = iota + 1
	Renew
	Enter
	Read
	Write
	Append
	Release
)

// Outcome is what the client learned of its operation.
type Outcome uint8

// The outcomes. Unknown is a value of its own and never means "no": the
// operation may have taken effect, or may still.
const (
	Unknown Outcome = iota
	OK
	Refused
)

// Decision is what the resource made of a read, write or append, whether or not the client
// learned it.
type Decision uint8

// The decisions. Undecided means that the operation never reached the
// resource, or (in histories of real systems) that nobody knows.
const (
	Undecided Decision = iota
	Accepted
	Rejected
)

// End says how a tenure ended at the lock service.
type End uint8

// The ends of a tenure. Lost is any end without a release, an expiry or a
// successor's grant: a crash of the service, an eviction. Taken is an end by somebody
// else's operation.
const (
	NotEnded End = iota
	EndExpired
	EndReleased
	EndTaken
	EndLost
)

// Loss says how a client's belief that it holds the lock ended.
type Loss uint8

// The ends of a belief.
const (
	StillBelieves Loss = iota
	LossReleased       // it sent its release
	LossCrashed        // it crashed
	LossLearned        // an operation told it (a failed renewal, a refusal, a lost session, a deadline read)
)

// Op is one operation of one client. An Acquire stands for its tenure: its ID
// names the tenure, and it carries the tenure's life.
type Op struct {
	ID      int32 // counted from 1 in order of invocation
	Client  int32 // index into History.Clients
	Section int32 // the critical section it belongs to, counted from 1 for each client; a repeated section keeps its number
	Tenure  int32 // ID of the Acquire under which it was issued; an Acquire's own ID
	Kind    Kind
	Outcome Outcome
	// Invoke is when the client called; Return when it learned the outcome,
	// Never if it did not.
	Invoke, Return Instant
	// Sent is when the request of an operation on the lock was sent: a client
	// may be stopped between calling and sending, and a polling client sends
	// many tries under one Acquire, of which the last counts. Zero means at
	// Invoke.
	Sent Instant
	// Effect is when the resource decided (reads, writes, appends) or the lock
	// service carried the operation out (the others); Never if it did not.
	Effect   Instant
	Decision Decision
	Applied  int32 // how many times it took effect; above 1 for a message delivered twice

	Token int64 // carried by a read or write, obtained by an Acquire; 0 for none
	Value int64 // written or appended
	Seen  int64 // read: the value, or for a list its length

	// Victim is, for a Release or Renew, the tenure of somebody else whose
	// lock it removed, shortened or extended; 0 for none.
	Victim int32
	// Recreated says of a Renew that it found no lock and took one anew, at
	// Effect, which then ended as Ended and End say. The tenure itself had ended
	// before and stays so: a renewal starts none.
	Recreated bool

	// The rest concerns Acquire only: the tenure's life.
	Granted Instant // when the lock service granted it; Never if it did not
	Ended   Instant // when the grant ended; Never if it had not by the end of the run
	End     End
	// BelievesUntil ends the belief that begins at Return with Outcome OK.
	BelievesUntil Instant
	Loss          Loss
	// SessionLost is when the session that carried the grant was lost through
	// the network; Never otherwise.
	SessionLost Instant
}

// Promise is what a grant promises about its length.
type Promise uint8

// The promises.
const (
	NoPromise      Promise = iota
	LeasePromise           // until the last acknowledged acquire or renewal was sent, plus TTL, less Drift
	SessionPromise         // until the client crashes or its session is lost through the network
)

// Data is the kind of data that the sections work on.
type Data uint8

// The kinds of data.
const (
	Register Data = iota // one number: Write replaces it
	List                 // Append adds to its end; a Read sees its length
)

// History is all that a checker may know of a run.
type History struct {
	Clients []string
	Promise Promise
	TTL     time.Duration // the lease's length
	Drift   time.Duration // the design's declared drift allowance
	// KnowsGrants says that Granted and Ended come from the lock service's
	// state. Without it a tenure counts as granted when its Acquire returned.
	KnowsGrants bool
	// Omniscient says that Effect, Decision and Applied are known for every operation.
	Omniscient bool
	Tokens     bool // the design hands out ordered fencing tokens
	Capacity   int  // how many may hold at once; 0 means 1
	// Quota says that a grant is used up and never given back: Capacity is how
	// many may be granted in one window, at whose end all its grants end. Who
	// believes or works at one time does not matter then.
	Quota bool
	// Parties makes the lock a barrier: in a section nobody may obtain it before
	// so many clients have called for it in theirs of the same number. 0: it is none.
	Parties int
	Once    bool  // the workload's writes must each take effect at most once
	Data    Data  //
	Initial int64 // the register's value at the start
	// Final is the data at the end: the register's value, or the list. Nil if
	// nobody looked.
	Final []int64

	// FaultsOver is when the last fault struck or healed, the start of the run
	// if there was none; StuckAfter the bound for `stuck`, 0 to leave it unchecked.
	FaultsOver Instant
	StuckAfter time.Duration
	End        clock.Time // when the run ended

	Ops []Op // in order of invocation
}

// Lockless reports whether there was no lock at all, so that nobody can have
// believed that it held one.
func (h *History) Lockless() bool {
	return !h.KnowsGrants && h.Promise == NoPromise && h.Parties == 0
}

// held reports whether what is granted is held for as long as the work goes on.
// A quota and a barrier say when to begin, and not how many may be at it.
func (h *History) held() bool { return !h.Quota && h.Parties == 0 }

// exclusive reports whether one client at a time was to work. Only then do
// sections owe a sequential order, and is a grant to another the end of one's own.
func (h *History) exclusive() bool { return h.Capacity <= 1 && h.held() }

// Finding is one thing that the check found.
type Finding struct {
	Kind    FindingKind
	At      clock.Time
	Clients []int32 // indexes into History.Clients, the one who did it first
	Ops     []int32 // IDs of the operations concerned
	Text    string  // one sentence; empty unless Explain filled it in
}

// FindingKind is a word of the finding vocabulary.
type FindingKind uint8

// The findings: about the lock, then about the data.
const (
	Overlap FindingKind = iota + 1
	LeaseBroken
	Phantom
	ForeignRelease
	TokenOrder
	SpuriousLoss
	OverCapacity

	RefusedLate // written "refused"
	StaleWrite
	TwoWriters
	LostUpdate
	DoubleApply
	WriteLost
	SelfRejected
	Stuck
)

// LockAnswer is the answer to: did the lock keep its promise?
type LockAnswer uint8

// The answers about the lock.
const (
	LockKept LockAnswer = iota
	LockOverlap
	LockBroken
)

// Verdict is the headline: what happened to the data?
type Verdict uint8

// The verdicts, from best to worst. Vacuous is given by whoever knows the
// witnesses, never by the checker.
const (
	VerdictSafe Verdict = iota
	VerdictFenced
	VerdictVacuous
	VerdictStuck
	VerdictLostUpdate
	VerdictTwoWriters
)

// PorcupineTimeout is how long, on the host's clock, each view of porcupine's
// may take where a person waits. Running into it is no answer, not a wrong one.
const PorcupineTimeout = 5 * time.Second
