// Package models owns the lock designs, the servers they use and the resources
// they protect. A model is an ordinary program of the simulated universe: it
// never learns which scenario it runs in, what faults are planned, or what a
// checker will say.
package models

import (
	"errors"
	"time"

	"locklab/clock"
	"locklab/sim"
)

// The ways in which a lock or a resource says no. An unknown outcome is
// sim.ErrUnknown, and never one of these.
var (
	// ErrBusy: somebody else holds the lock. Trying again may help.
	ErrBusy = errors.New("the lock is held by another")
	// ErrGaveUp: the lock was not obtained within the time to wait.
	ErrGaveUp = errors.New("gave up waiting for the lock")
	// ErrLost: the client learned that it no longer holds the lock.
	ErrLost = errors.New("the lock is lost")
	// ErrRefused: the resource refused the operation.
	ErrRefused = errors.New("the resource refused the operation")
	// ErrConflict: the resource refused because the data has changed since it
	// was read. Repeating the whole section may help.
	ErrConflict = errors.New("the data has changed since it was read")
)

// Grant is what a client gets with the lock.
type Grant struct {
	// Token is the fencing token, 0 if the design has none. A design with
	// ordered tokens gives every grant a higher one.
	Token int64
	// Mark is unique to this attempt, 0 if the design has none.
	Mark int64
	// Deadline is when, by the client's monotonic clock and its own
	// reckoning, the lease ends; 0 if it does not end by itself.
	Deadline clock.Reading
	// State is the design's own.
	State any
	// Op is the acquire's number in the history: whatever is done under this
	// grant, also after it has ended, is recorded under it. Designs leave it alone.
	Op int32
}

// Lock is one client's handle on a lock.
type Lock interface {
	// Acquire tries to get the lock. A polling design tries once and returns
	// ErrBusy; a queueing design waits. Any other error means that the try is
	// over: with sim.ErrUnknown it may yet have taken effect.
	Acquire(t *sim.Task) (Grant, error)
	// Renew extends the lease. ErrLost says that it is gone.
	Renew(t *sim.Task, g *Grant) error
	// Release gives the lock back. ErrLost says that it was not held any more.
	Release(t *sim.Task, g *Grant) error
}

// Section is what the body of a critical section may do.
type Section interface {
	Read(t *sim.Task) (int64, error)
	Write(t *sim.Task, value int64) error
	Append(t *sim.Task, value int64) error
	// Lost reports whether the client has learned that it no longer holds the
	// lock. With checks_validity it reads the clock to find out.
	Lost(t *sim.Task) bool
}

// Resource is one client's handle on the protected data.
type Resource interface {
	// Enter prepares a section under a grant.
	Enter(t *sim.Task, g *Grant) (Section, error)
}

// Protocol runs critical sections: a lock around a resource, or something that
// needs no lock. The body may run more than once; job names what it is about.
type Protocol interface {
	Do(t *sim.Task, job int, body func(Section) error) error
}

// Tokens says what a design's tokens are good for.
type Tokens uint8

// The kinds of tokens.
const (
	NoTokens      Tokens = iota
	UniqueTokens         // no two grants have the same: good for comparing
	OrderedTokens        // later grants have higher ones: good for fencing
)

var tokenNames = []string{"none", "unique", "ordered"}

// String returns the word for it.
func (k Tokens) String() string { return tokenNames[k] }

// Promise says how long a grant is promised to last.
type Promise uint8

// The promises.
const (
	NoPromise      Promise = iota
	LeasePromise           // TTL from when the last acknowledged acquire or renewal was sent
	SessionPromise         // as long as the client lives and its session does
)

// Options are the parameters that designs and resources read.
type Options struct {
	TTL            time.Duration
	Renew          time.Duration // between renewals, where the design renews
	Retry          time.Duration // between tries
	RetryJitter    time.Duration // random addition to Retry, 0 to this
	Wait           time.Duration // how long to try; 0: until acquired
	CallTimeout    time.Duration
	ChecksValidity bool
	TokenStart     int64 // the first fencing token handed out
	Clients        int
}

// Env is what designs and resources are built from: the world of one run, and
// memory that the next run uses again.
type Env struct {
	World   *sim.World
	Options Options
	Rec     Recorder
	payloads
}

// payloads is the memory for what messages carry. It dies with the run, as the
// messages do.
type payloads struct {
	commands      sim.Slab[RedisCommand]
	replies       sim.Slab[RedisReply]
	storeRequests sim.Slab[storeRequest]
	storeReplies  sim.Slab[storeReply]
}

// Reset makes the environment ready for another run in its world.
func (e *Env) Reset(o Options) {
	e.Options = o
	e.commands.Reset()
	e.replies.Reset()
	e.storeRequests.Reset()
	e.storeReplies.Reset()
}

// Design is a lock design of the catalogue.
type Design struct {
	Name    string
	Summary string // one line
	Source  string // where the algorithm is described
	Tokens  Tokens
	Promise Promise
	Renews  bool
	// Drift is the clock drift that the design declares to allow for; nil: none.
	Drift func(Options) time.Duration
	// Build adds the design's servers to the world.
	Build func(env *Env) System
}

// System is a design set up in one world. Exactly one of Lock and Protocol is
// set.
type System struct {
	// Watch are the servers whose state Holder reads.
	Watch []*sim.Process
	// Holder tells, from the servers' states alone, whose grant is current.
	// Nil means that there is no lock service: a client counts as granted
	// when its acquire returns.
	Holder   func() Holding
	Lock     func(client *sim.Process) Lock
	Protocol func(client *sim.Process) Protocol
}

// Holding is the state of a lock as its servers have it.
type Holding struct {
	Op    int32         // the acquire that the current grant goes back to; 0: the lock is free
	Until clock.Reading // when it ends by itself, in the service's own terms; 0: never
}

// ResourceKind is a protected resource of the catalogue.
type ResourceKind struct {
	Name    string
	Summary string
	Needs   Tokens // what its rule compares

	// The storage's rule and how clients speak to it; or, for data that lives
	// elsewhere, Build.
	rule      storeRule
	client    storeClient
	forgetful bool
	Build     func(env *Env) Store
}

// Store is a resource set up in one world.
type Store struct {
	Data   Data
	Handle func() Resource // a new handle, for one client
}

// Data is the protected data as its server has it at the end of a run.
type Data interface {
	// Contents returns the register's value alone, or the list.
	Contents(list bool) []int64
}

// Serves says why a design cannot use a resource, in one line; nil if it can.
func (d *Design) Serves(r *ResourceKind) error {
	if r.Needs > d.Tokens {
		return errors.New("resource " + r.Name + " compares " + r.Needs.String() + " tokens, and " + d.Name + " hands out " + tokenPhrase(d.Tokens))
	}
	return nil
}

func tokenPhrase(k Tokens) string {
	if k == NoTokens {
		return "none"
	}
	return "only " + k.String() + " ones"
}
