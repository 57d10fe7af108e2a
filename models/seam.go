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

// Session may be a grant's State. It learns by itself that the grant is gone.
type Session interface {
	// Over reports whether the client knows. It may read the clock.
	Over(t *sim.Task) bool
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
	Sections       int // of each client
	Tries          int // of one acquire, at most; 0: no limit
	RenewMax       int // renewals of one lease, at most; 0: no limit
	// Drift is the allowance for clock drift that the design is to work with
	// and declare; 0: its own.
	Drift time.Duration

	// Of k8s/lease.
	RenewDeadline   time.Duration // how long a leader tries to renew before it steps down
	ReleaseOnCancel bool          // who stops leading writes that the lease is free

	// Of designs that ask several independent nodes.
	Nodes       int           // 0: the published number
	Quorum      int           // how many must agree; 0: a majority
	NodeTimeout time.Duration // of one request to one node
	DriftFactor int64         // the allowance for clock drift: parts per million of TTL,
	DriftMargin time.Duration // and so much more

	// Of consensus stores.
	Members     int  // 0: 3
	StaleLessor bool // etcd before its pull request 16822
	PlainCreate bool // ZooKeeper: a create is repeated without a mark to find its node by

	// Persistence is how Redis servers keep their data over a crash, one of
	// Persistences(); empty: they do not.
	Persistence string
	// Replicas is how many there are beside the primary, where a design has
	// any. Their stream leaves the primary up to ReplicationLag late.
	Replicas       int
	ReplicationLag time.Duration
	// DownAfter is after how long without an answer a monitor takes a server
	// for dead.
	DownAfter time.Duration

	// Of designs on PostgreSQL.
	Standby           Standby
	CommitAsync       bool          // synchronous_commit = off
	Keepalive         time.Duration // tcp_keepalives_idle; 0: the operating system's
	IdleInTransaction time.Duration // idle_in_transaction_session_timeout; 0: off
	PoolSize          int           // of PgBouncer

	Permits int // of semaphores and quotas

	Engine string // of Redis servers, one of Engines(); empty: the native one
}

// Env is what designs and resources are built from: the world of one run, and
// memory that the next run uses again.
type Env struct {
	World   *sim.World
	Options Options
	Rec     Recorder
	// inside is the data that the design's own servers keep.
	inside Store
	// Store is the resource, once it is set up.
	Store Store
	payloads
	engines
}

// payloads is the memory for what messages carry, and for whatever else dies
// with the run and is made in each.
type payloads struct {
	tenures       sim.Slab[tenure]
	helds         sim.Slab[held]
	sections      sim.Slab[storeSection]
	redlockNodes  sim.Slab[redlockNode]
	redisServers  sim.Slab[redisServer]
	commands      sim.Slab[RedisCommand]
	replies       sim.Slab[RedisReply]
	peers         sim.Slab[redisPeer]
	sessions      sim.Slab[redisSession]
	storeRequests sim.Slab[storeRequest]
	storeReplies  sim.Slab[storeReply]
	raft          raftMemory
	pgStatements  sim.Slab[PgStatement]
	pgResults     sim.Slab[PgResult]
	pgRouted      sim.Slab[pgRouted]
	pgHandovers   sim.Slab[pgHandover]
}

// Reset makes the environment ready for another run in its world.
func (e *Env) Reset(o Options) {
	e.Options = o
	e.tenures.Reset()
	e.helds.Reset()
	e.sections.Reset()
	e.redlockNodes.Reset()
	e.redisServers.Reset()
	e.commands.Reset()
	e.replies.Reset()
	e.peers.Reset()
	e.sessions.Reset()
	e.storeRequests.Reset()
	e.storeReplies.Reset()
	e.raft.reset()
	e.pgStatements.Reset()
	e.pgResults.Reset()
	e.pgRouted.Reset()
	e.pgHandovers.Reset()
	e.engines.reset()
	e.inside, e.Store = Store{}, Store{}
}

// Design is a lock design of the catalogue.
type Design struct {
	Name    string
	Summary string // one line
	Source  string // where the algorithm is described
	Tokens  Tokens
	Promise Promise
	Renews  bool
	// RenewMax is how often the design renews one lease; 0: without limit.
	RenewMax int
	// Drift is the clock drift that the design declares to allow for; nil: none.
	Drift func(Options) time.Duration
	// Own names the one resource that the design serves, if its data lives in
	// the design's own servers.
	Own string
	// Hosts names the resource that the design's own servers keep beside
	// those that live elsewhere.
	Hosts string
	// Jobs: it hands out jobs, several at a time, and each is to be done once.
	Jobs bool
	// Capacity is how many may hold at once; nil: one.
	Capacity func(Options) int
	// Quota: a grant is used up. Capacity counts the grants of one window.
	Quota bool
	// Barrier: it lets everybody in as soon as everybody has come.
	Barrier bool
	// Build adds the design's servers to the world.
	Build func(env *Env) System
}

// System is a design set up in one world. Exactly one of Lock and Protocol is
// set.
type System struct {
	// Watch are the servers whose state Holder reads.
	Watch []*sim.Process
	// Replicated: an operation takes effect long after its request was
	// handled. The servers say themselves when: Recorder.Applied.
	Replicated bool
	// Holder tells, from the servers' states alone, whose grant is current.
	// Nil means that there is no lock service: a client counts as granted
	// when its acquire returns.
	Holder func() Holding
	// Holders is Holder for a design that may have several: it appends whose
	// grants are current, each acquire at most once.
	Holders  func(into []Holding) []Holding
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

	// Hosted: it lives in the servers of the designs that name it as their own.
	Hosted bool

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
	switch {
	case d.Own != "" && d.Own != r.Name:
		return errors.New(d.Name + " keeps the data itself: it serves the resource " + d.Own + " and not " + r.Name)
	case (d.Jobs || d.several()) && (r.client.marks || r.client.versions):
		return errors.New("resource " + r.Name + " is for one owner at a time, and " + d.Name + " lets several work at once")
	case r.Hosted && d.Own != r.Name && d.Hosts != r.Name:
		return errors.New("resource " + r.Name + " lives in the lock's own servers, and those of " + d.Name + " keep no data")
	}
	if r.Needs > d.Tokens {
		return errors.New("resource " + r.Name + " compares " + r.Needs.String() + " tokens, and " + d.Name + " hands out " + tokenPhrase(d.Tokens))
	}
	return nil
}

// several reports whether it is made to let several work at once.
func (d *Design) several() bool { return d.Capacity != nil || d.Barrier }

// Kind says what it is, in one word: a lock, a semaphore, a quota or a barrier.
// What a story about one kind shows means nothing for another.
func (d *Design) Kind() string {
	switch {
	case d.Barrier:
		return "barrier"
	case d.Quota:
		return "quota"
	case d.Capacity != nil:
		return "semaphore"
	}
	return "lock"
}

func tokenPhrase(k Tokens) string {
	if k == NoTokens {
		return "none"
	}
	return "only " + k.String() + " ones"
}
