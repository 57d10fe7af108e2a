package scenarios

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"locklab/models"
)

// Params are the numbers of a run: how many clients do what for how long, and
// how the network treats them. The zero Params is not usable; begin with
// DefaultParams.
type Params struct {
	Clients  int      // clients that want the lock; 1 to 1000
	Sections int      // critical sections of each client; 1 to 10000
	Writes   int      // writes in one section; 1 to 100
	Workload Workload // what a section does to the protected data
	// Stagger makes client n start (n-1)*Stagger after client 1.
	Stagger time.Duration

	TTL         time.Duration // how long a lease lives without renewal
	Work        time.Duration // between a section's read and its first write
	Think       time.Duration // between two sections of a client
	Retry       time.Duration // before a refused acquire is tried again
	RetryJitter time.Duration // at most so much more, drawn anew each time
	Wait        time.Duration // give an acquire up after so long, and the wait for a free client; 0: never
	Renew       time.Duration // between two renewals; 0: TTL/3, where the design renews

	ChecksValidity bool          // the client tests its deadline before each write
	Drift          time.Duration // allowance for clock drift that the design declares; 0: the design's own

	Tries    int // an acquire is given up after so many tries; 0: never
	RenewMax int // renewals of one lease, at most; 0: the design's own limit

	RenewDeadline   time.Duration // k8s/lease: a leader steps down after so long without a renewal; 0: see RenewUntil
	ReleaseOnCancel bool          // k8s/lease: who stops leading releases the lease

	// Of designs that ask several independent nodes.
	Nodes       int           // odd, 3 to 99
	Quorum      int           // how many of them must agree; 0: the least majority
	NodeTimeout time.Duration // after which the answer of one node is not waited for
	DriftFactor int64         // allowance for clock drift, in parts per million of TTL
	DriftMargin time.Duration // and so much more

	LatencyMin  time.Duration // one way
	LatencyMax  time.Duration // one way, at least LatencyMin
	CallTimeout time.Duration // after which a call's outcome is unknown

	TokenStart int64 // the first fencing token handed out

	Persistence    string        // how Redis servers keep their data over a crash
	Replicas       int           // beside the primary, where the design has any
	ReplicationLag time.Duration // the stream to a replica leaves up to so late, drawn anew for each change
	DownAfter      time.Duration // a monitor takes a server for dead that has not answered for so long

	ClientsPerNode int // clients that share a machine

	// Of consensus stores.
	Members     int  // odd, 3 to 7
	StaleLessor bool // etcd as it was before a stalled leader stopped to renew and revoke leases
	PlainCreate bool // a ZooKeeper client that lost its connection repeats a create without looking for its node

	// Of designs on PostgreSQL.
	Standby                  StandbyKind   // whether the primary has one, and waits for it
	SynchronousCommit        CommitKind    // whether a commit waits for the disk
	TCPKeepalive             time.Duration // silence before the first probe, then three a third of it apart; 0: Linux's
	IdleInTransactionTimeout time.Duration // a session that idles in a transaction for so long is ended; 0: never
	PoolSize                 int           // PgBouncer's connections to the server

	// Load that comes from outside.
	Interarrival   time.Duration // mean time between two sections that are asked for; 0: each client asks after Think
	Spacing        Spacing       // how those times vary
	Queue          int           // sections that wait for a client at most; more are refused
	ServiceTime    time.Duration // for which a server is busy with each request of a client
	ServiceWorkers int           // requests that a server works on at once

	Permits int // how many a semaphore or quota lets in; 0: one fewer than clients, at least one

	StuckAfter time.Duration // without a grant for so long, a run is stuck; 0: see StuckBound
	Horizon    time.Duration // virtual time after which a run is ended
}

// Workload is what a critical section does to the protected data.
type Workload string

// The workloads. With an increment a lost update shows in the final value.
const (
	Increment Workload = "increment" // read a counter, write it plus one
	Write     Workload = "write"     // write without reading
	Append    Workload = "append"    // append to a list
)

func workloadNames() []string { return []string{string(Increment), string(Write), string(Append)} }

// StandbyKind says whether PostgreSQL has a standby.
type StandbyKind string

// The kinds of standbys.
const (
	StandbyNone  StandbyKind = "none"
	StandbyAsync StandbyKind = "async" // streams what is committed
	StandbySync  StandbyKind = "sync"  // commits wait for it
)

func standbyOf(k StandbyKind) models.Standby {
	switch k {
	case StandbyAsync:
		return models.AsyncStandby
	case StandbySync:
		return models.SyncStandby
	}
	return models.NoStandby
}

// CommitKind is PostgreSQL's synchronous_commit.
type CommitKind string

// The settings of synchronous_commit that are modelled.
const (
	CommitOn  CommitKind = "on"
	CommitOff CommitKind = "off"
)

// Spacing is how the times between arrivals vary around their mean.
type Spacing string

// The spacings.
const (
	Exponential Spacing = "exponential" // independent of each other: a Poisson process
	Uniform     Spacing = "uniform"     // from 0 to twice the mean
	Even        Spacing = "even"        // all the same
)

// totalSectionsMax bounds the work of one run.
const totalSectionsMax = 100_000

// DefaultParams returns the documented defaults.
func DefaultParams() Params {
	return Params{
		Clients: 3, Sections: 3, Writes: 1, Workload: Increment,
		TTL: 10 * time.Second, Work: time.Second, Think: 500 * time.Millisecond,
		Retry: 200 * time.Millisecond, RetryJitter: 100 * time.Millisecond,
		LatencyMin: 500 * time.Microsecond, LatencyMax: 2 * time.Millisecond, CallTimeout: time.Second,
		Nodes: 5, NodeTimeout: 50 * time.Millisecond, DriftFactor: million / 100, DriftMargin: 2 * time.Millisecond,
		TokenStart: 1, Horizon: 10 * time.Minute, ReleaseOnCancel: true,
		// Five seconds are what Redis's own Sentinel tutorial sets; Sentinel's default is 30 s.
		Persistence: models.PersistNone, Replicas: 2, DownAfter: 5 * time.Second,
		ClientsPerNode: 1, Members: 3, Standby: StandbyNone, SynchronousCommit: CommitOn, PoolSize: 2,
		Spacing: Exponential, Queue: 100, ServiceWorkers: 1,
	}
}

// RenewEvery returns Renew, or TTL/3 where it was left at 0.
func (p *Params) RenewEvery() time.Duration {
	if p.Renew == 0 {
		return p.TTL / 3
	}
	return p.Renew
}

// RenewUntil returns RenewDeadline or, where it was left at 0, one that leaves a
// fifth of ttl to the clocks, as client-go's published numbers do: of 15 s, a
// leader that cannot renew leads for 2 s and 10 s more.
func (p *Params) RenewUntil() time.Duration {
	if p.RenewDeadline == 0 {
		return max(4*p.TTL/5-p.RenewEvery(), p.RenewEvery())
	}
	return p.RenewDeadline
}

// StuckBound returns StuckAfter; where it was left at 0, 3*TTL, and at least
// twice the longest pause between two tries: a client that sleeps that long by its
// own choice is not stuck.
func (p *Params) StuckBound() time.Duration {
	if p.StuckAfter == 0 {
		return max(3*p.TTL, 2*p.pauseMax())
	}
	return p.StuckAfter
}

// pauseMax is the longest pause between two tries.
func (p *Params) pauseMax() time.Duration { return p.Retry + p.RetryJitter }

// PermitCount returns Permits or, where it was left at 0, the largest number
// for which somebody has to wait.
func (p *Params) PermitCount() int {
	if p.Permits == 0 {
		return max(p.Clients-1, 1)
	}
	return p.Permits
}

// Spans finds the duration parameter that a plan names, as sim.Span.Resolve
// asks for it: 1.5*ttl. A renew, renew_deadline or stuck_after of 0 counts
// as what it stands for.
func (p *Params) Spans(name string) (time.Duration, bool) {
	switch name {
	case "renew":
		return p.RenewEvery(), true
	case "renew_deadline":
		return p.RenewUntil(), true
	case "stuck_after":
		return p.StuckBound(), true
	}
	for _, q := range parameters() {
		if q.Name == name && q.length != nil {
			return *q.length(p), true
		}
	}
	return 0, false
}

// Parameter describes one parameter, for --set, for YAML and for help.
type Parameter struct {
	Name    string // as --set and YAML spell it
	Meaning string // one line
	Unit    string // duration, number, yes or no, word
	Range   string // what is allowed, for people

	get    func(*Params) string
	set    func(*Params, string) error
	length func(*Params) *time.Duration // nil where it is no duration
}

// Get returns the parameter's value as --set and YAML would write it.
func (q *Parameter) Get(p *Params) string { return q.get(p) }

// Parameters lists all parameters in their documented order.
func Parameters() []Parameter { return parameters() }

// durationMax bounds every duration, so that sums and small multiples of them
// stay far from the end of int64.
const durationMax = 1000 * time.Hour

func parameters() []Parameter {
	const (
		none  = time.Duration(0)
		least = time.Nanosecond
		// Redis counts leases in milliseconds, and none of the others finer.
		lease = time.Millisecond
	)
	return []Parameter{
		number("clients", "clients that want the lock", 1, 1000, func(p *Params) *int { return &p.Clients }),
		number("sections", "critical sections of each client", 1, 10_000, func(p *Params) *int { return &p.Sections }),
		number("writes", "writes in one section", 1, 100, func(p *Params) *int { return &p.Writes }),
		word("workload", "what a section does to the protected data", workloadNames(), func(p *Params) *Workload { return &p.Workload }),
		duration("stagger", "client n starts (n-1)*stagger after client 1", none, func(p *Params) *time.Duration { return &p.Stagger }),
		duration("ttl", "how long a lease lives without renewal", lease, func(p *Params) *time.Duration { return &p.TTL }),
		duration("work", "between a section's read and its first write", none, func(p *Params) *time.Duration { return &p.Work }),
		duration("think", "between two sections of a client", none, func(p *Params) *time.Duration { return &p.Think }),
		duration("retry", "before a refused acquire is tried again", least, func(p *Params) *time.Duration { return &p.Retry }),
		duration("retry_jitter", "at most so much is added to retry, drawn anew each time", none, func(p *Params) *time.Duration { return &p.RetryJitter }),
		duration("wait", "an acquire is given up after so long, and so is the wait for a free client; 0s: never", none, func(p *Params) *time.Duration { return &p.Wait }),
		number("tries", "an acquire is given up after so many tries; 0: never", 0, 1_000_000, func(p *Params) *int { return &p.Tries }),
		duration("renew", "between two renewals, where the design renews; 0s: ttl/3", none, func(p *Params) *time.Duration { return &p.Renew }),
		number("renew_max", "renewals of one lease at most; 0: as often as the design does", 0, 1_000_000, func(p *Params) *int { return &p.RenewMax }),
		duration("renew_deadline", "k8s/lease: for how long a leader tries to renew before it steps down; 0s: 4/5 of ttl less renew", none,
			func(p *Params) *time.Duration { return &p.RenewDeadline }),
		yesNo("release_on_cancel", "k8s/lease: who stops leading releases the lease", func(p *Params) *bool { return &p.ReleaseOnCancel }),
		yesNo("checks_validity", "the client tests its deadline before each write", func(p *Params) *bool { return &p.ChecksValidity }),
		duration("drift", "the design's allowance for clock drift; 0s: what it declares", none, func(p *Params) *time.Duration { return &p.Drift }),
		odd(number("nodes", "independent nodes that Redlock asks", 3, 99, func(p *Params) *int { return &p.Nodes })),
		number("quorum", "how many of the nodes must agree; 0: the least majority", 0, 99, func(p *Params) *int { return &p.Quorum }),
		duration("node_timeout", "after which one node's answer is not waited for", least, func(p *Params) *time.Duration { return &p.NodeTimeout }),
		fraction("drift_factor", "Redlock's allowance for clock drift, as a fraction of ttl", func(p *Params) *int64 { return &p.DriftFactor }),
		duration("drift_margin", "what Redlock adds to that allowance", none, func(p *Params) *time.Duration { return &p.DriftMargin }),
		duration("latency_min", "shortest latency of a message, one way", none, func(p *Params) *time.Duration { return &p.LatencyMin }),
		duration("latency_max", "longest latency of a message, one way", none, func(p *Params) *time.Duration { return &p.LatencyMax }),
		duration("call_timeout", "after which the outcome of a call is unknown", least, func(p *Params) *time.Duration { return &p.CallTimeout }),
		number("token_start", "the first fencing token handed out", 1, 1_000_000_000, func(p *Params) *int64 { return &p.TokenStart }),
		word("persistence", "how Redis servers keep their data over a crash", models.Persistences(), func(p *Params) *string { return &p.Persistence }),
		number("replicas", "replicas beside the primary, where the design has any", 1, 5, func(p *Params) *int { return &p.Replicas }),
		duration("replication_lag", "a change leaves for a replica up to so late, drawn anew each time", none, func(p *Params) *time.Duration { return &p.ReplicationLag }),
		duration("down_after", "a monitor takes a server for dead that has not answered for so long", lease, func(p *Params) *time.Duration { return &p.DownAfter }),
		number("clients_per_node", "clients that share a machine", 1, 1000, func(p *Params) *int { return &p.ClientsPerNode }),
		odd(number("members", "members of an etcd cluster or ZooKeeper ensemble", 3, 7, func(p *Params) *int { return &p.Members })),
		yesNo("stale_lessor", "etcd before its pull request 16822: a stalled leader still renews and revokes leases", func(p *Params) *bool { return &p.StaleLessor }),
		yesNo("plain_create", "a ZooKeeper client repeats a create without a mark to find its first node by", func(p *Params) *bool { return &p.PlainCreate }),
		word("standby", "whether PostgreSQL has a standby; sync: commits wait for it",
			[]string{string(StandbyNone), string(StandbyAsync), string(StandbySync)}, func(p *Params) *StandbyKind { return &p.Standby }),
		word("synchronous_commit", "whether a commit in PostgreSQL waits for the disk",
			[]string{string(CommitOn), string(CommitOff)}, func(p *Params) *CommitKind { return &p.SynchronousCommit }),
		duration("tcp_keepalive", "silence before PostgreSQL probes a client, then three probes a third of it apart; 0s: Linux's 7200 s and 9 x 75 s", none,
			func(p *Params) *time.Duration { return &p.TCPKeepalive }),
		duration("idle_in_transaction_timeout", "PostgreSQL ends a session that idles in a transaction for so long; 0s: never", none,
			func(p *Params) *time.Duration { return &p.IdleInTransactionTimeout }),
		number("pool_size", "PgBouncer's connections to the server", 1, 1000, func(p *Params) *int { return &p.PoolSize }),
		duration("interarrival", "mean time between two sections that are asked for from outside, clients*sections in all; 0s: each client asks by itself", none,
			func(p *Params) *time.Duration { return &p.Interarrival }),
		word("spacing", "how the times between arrivals vary", []string{string(Exponential), string(Uniform), string(Even)}, func(p *Params) *Spacing { return &p.Spacing }),
		number("queue", "sections that may wait for a client to be free; more are refused", 0, totalSectionsMax, func(p *Params) *int { return &p.Queue }),
		duration("service_time", "for which a server is busy with each request of a client", none, func(p *Params) *time.Duration { return &p.ServiceTime }),
		number("service_workers", "requests that a server works on at once", 1, 1000, func(p *Params) *int { return &p.ServiceWorkers }),
		number("permits", "how many a semaphore or quota lets in; 0: one fewer than clients, at least one", 0, 1000, func(p *Params) *int { return &p.Permits }),
		duration("stuck_after", "without a grant for so long a run is stuck; 0s: 3*ttl, or 2*(retry+retry_jitter) where that is longer", none, func(p *Params) *time.Duration { return &p.StuckAfter }),
		duration("horizon", "virtual time after which a run is ended", least, func(p *Params) *time.Duration { return &p.Horizon }),
	}
}

func duration(name, meaning string, min time.Duration, at func(*Params) *time.Duration) Parameter {
	allowed := fmt.Sprintf("%s to %s", min, plainHours(durationMax))
	return Parameter{
		Name: name, Meaning: meaning, Unit: "duration", Range: allowed, length: at,
		get: func(p *Params) string { return at(p).String() },
		set: func(p *Params, text string) error {
			d, err := time.ParseDuration(text)
			if err != nil {
				return fmt.Errorf("cannot read %q as a duration; write it like 30s or 500ms", text)
			}
			if d < min || d > durationMax {
				return fmt.Errorf("%s is out of range; allowed is %s", d, allowed)
			}
			*at(p) = d
			return nil
		},
	}
}

func plainHours(d time.Duration) string { return strings.TrimSuffix(d.String(), "0m0s") }

func number[N int | int64](name, meaning string, min, max N, at func(*Params) *N) Parameter {
	allowed := fmt.Sprintf("%d to %d", min, max)
	return Parameter{
		Name: name, Meaning: meaning, Unit: "number", Range: allowed,
		get: func(p *Params) string { return strconv.FormatInt(int64(*at(p)), 10) },
		set: func(p *Params, text string) error {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return fmt.Errorf("cannot read %q as a whole number; allowed is %s", text, allowed)
			}
			if n < int64(min) || n > int64(max) {
				return fmt.Errorf("%d is out of range; allowed is %s", n, allowed)
			}
			*at(p) = N(n)
			return nil
		},
	}
}

// odd refuses even numbers.
func odd(q Parameter) Parameter {
	set := q.set
	q.Range = "odd, " + q.Range
	q.set = func(p *Params, text string) error {
		next := *p
		if err := set(&next, text); err != nil {
			return err
		}
		if n, _ := strconv.Atoi(text); n%2 == 0 {
			return fmt.Errorf("%s is even, so that two halves could block each other; allowed is %s", text, q.Range)
		}
		*p = next
		return nil
	}
	return q
}

// million is the unit of fractions.
const million = 1_000_000

// fraction is a number from 0 to 1 with at most six digits, kept in millionths.
func fraction(name, meaning string, at func(*Params) *int64) Parameter {
	return Parameter{
		Name: name, Meaning: meaning, Unit: "fraction", Range: "0 to 1",
		get: func(p *Params) string {
			text := strings.TrimRight(fmt.Sprintf("%d.%06d", *at(p)/million, *at(p)%million), "0")
			return strings.TrimSuffix(text, ".")
		},
		set: func(p *Params, text string) error {
			whole, digits, _ := strings.Cut(text, ".")
			n, err := strconv.ParseUint(whole+digits+strings.Repeat("0", max(6-len(digits), 0)), 10, 32)
			if err != nil || whole == "" || len(digits) > 6 || n > million {
				return fmt.Errorf("cannot read %q as a fraction from 0 to 1; write it like 0.01, with at most six digits", text)
			}
			*at(p) = int64(n)
			return nil
		},
	}
}

func yesNo(name, meaning string, at func(*Params) *bool) Parameter {
	return Parameter{
		Name: name, Meaning: meaning, Unit: "yes or no", Range: "true or false",
		get: func(p *Params) string { return strconv.FormatBool(*at(p)) },
		set: func(p *Params, text string) error {
			if text != "true" && text != "false" {
				return fmt.Errorf("cannot read %q; write true or false", text)
			}
			*at(p) = text == "true"
			return nil
		},
	}
}

func word[T ~string](name, meaning string, known []string, at func(*Params) *T) Parameter {
	return Parameter{
		Name: name, Meaning: meaning, Unit: "word", Range: strings.Join(known, ", "),
		get: func(p *Params) string { return string(*at(p)) },
		set: func(p *Params, text string) error {
			for _, k := range known {
				if k == text {
					*at(p) = T(text)
					return nil
				}
			}
			return errors.New(unknown(name, text, known))
		},
	}
}

// ParamError is a mistake in one parameter.
type ParamError struct {
	Name string // the parameter as it was written
	Err  error
}

// Error names the parameter and says what would be right.
func (e *ParamError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns the mistake itself.
func (e *ParamError) Unwrap() error { return e.Err }

// Set gives the parameter called name the value that text spells. The error is
// one line; p is then unchanged.
func (p *Params) Set(name, text string) error {
	list := parameters()
	for _, q := range list {
		if q.Name == name {
			if err := q.set(p, text); err != nil {
				return &ParamError{Name: name, Err: err}
			}
			return nil
		}
	}
	names := make([]string, len(list))
	for i, q := range list {
		names[i] = q.Name
	}
	return errors.New(unknown("parameter", name, names))
}

// Validate checks every parameter's range and what they must keep among
// themselves. The error is a *ParamError of one line.
func (p *Params) Validate() error {
	scratch := *p
	for _, q := range parameters() {
		if err := q.set(&scratch, q.get(p)); err != nil {
			return &ParamError{Name: q.Name, Err: err}
		}
	}
	if p.TTL%time.Millisecond != 0 {
		return &ParamError{Name: "ttl", Err: fmt.Errorf("%s is not a whole number of milliseconds, which is what servers count", p.TTL)}
	}
	if p.LatencyMin > p.LatencyMax {
		return &ParamError{Name: "latency_min", Err: fmt.Errorf("%s is above latency_max, which is %s", p.LatencyMin, p.LatencyMax)}
	}
	if p.StuckAfter != 0 && p.StuckAfter <= p.pauseMax() {
		return &ParamError{Name: "stuck_after", Err: fmt.Errorf("%s is not above retry and retry_jitter together, which are %s: a client that sleeps between two tries would count as stuck",
			p.StuckAfter, p.pauseMax())}
	}
	if majority := p.Nodes/2 + 1; p.Quorum != 0 && (p.Quorum < majority || p.Quorum > p.Nodes) {
		return &ParamError{Name: "quorum", Err: fmt.Errorf("%d of %d nodes is out of range; allowed are %d to %d, or 0 for the least majority",
			p.Quorum, p.Nodes, majority, p.Nodes)}
	}
	if p.Clients*p.Sections > totalSectionsMax {
		return &ParamError{Name: "sections", Err: fmt.Errorf("%d clients with %d sections each are %d sections; allowed are %d in all",
			p.Clients, p.Sections, p.Clients*p.Sections, totalSectionsMax)}
	}
	return nil
}

// Setting is one name=value of --set.
type Setting struct{ Name, Value string }

// ParseSet reads "ttl=30s,work=2s", puts the numbers of preset=redsync (see
// Presets) in its place, and checks every name and value, though not
// what they must keep among themselves: Apply does, when the others are known.
func ParseSet(text string) ([]Setting, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var out []Setting
	scratch, seen := DefaultParams(), map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("cannot read the setting %q; write it like ttl=30s,work=2s", part)
		}
		if seen[name] {
			return nil, &ParamError{Name: name, Err: errors.New("is set twice; leave one out")}
		}
		seen[name] = true
		if name != presetKey {
			if err := scratch.Set(name, value); err != nil {
				return nil, err
			}
		}
		out = append(out, Setting{name, value})
	}
	return expandPreset(out)
}

// Apply sets what the settings say and validates the whole. After an error p
// is unchanged.
func (p *Params) Apply(settings []Setting) error {
	next := *p
	for _, s := range settings {
		if err := next.Set(s.Name, s.Value); err != nil {
			return err
		}
	}
	if err := next.Validate(); err != nil {
		return err
	}
	*p = next
	return nil
}

// Changed lists the parameters that differ from the defaults, in their
// documented order.
func (p *Params) Changed() []Setting {
	def := DefaultParams()
	return p.Differing(&def)
}

// Differing lists the parameters that differ from those of another set.
func (p *Params) Differing(base *Params) []Setting {
	var out []Setting
	for _, q := range parameters() {
		if v := q.get(p); v != q.get(base) {
			out = append(out, Setting{q.Name, v})
		}
	}
	return out
}
