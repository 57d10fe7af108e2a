package scenarios

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"locklab/checker"
	"locklab/models"
	"locklab/sim"
)

// Case is one thing to run: a design with a resource under a plan.
type Case struct {
	Scenario *Scenario // for its name and expectations; nil for a bare plan
	Design   *models.Design
	Resource *models.ResourceKind
	Params   Params
	Plan     sim.Plan // may name roles (see Runner.Cast); the runner's own names processes
	Engine   string   // of Redis servers, one of models.Engines(); empty: the native one
	// Repeat is the command that repeats the run, where it is not locklab run.
	Repeat string
}

// Runner runs one case with any number of seeds, reusing one world. It is not
// safe for use by several goroutines. Close it at the end.
type Runner struct {
	Case
	plan    sim.Plan // resolved
	world   *sim.World
	env     *models.Env
	rec     recorder
	history checker.History
	check   checker.Checker
	witness []witness
	next    []int // sections that each client has begun
	load    arrivals
	several bool // several may work at once, so that the data are a list
	store   models.Store
	// OnPlace, if set, is called at every place at which a fault could strike.
	OnPlace func(sim.Place)
	// OnSend, if set, is called when a task has sent a request.
	OnSend func(*sim.Message)
	// LateReplies turns the resume rule into a choice; see sim.Config.
	LateReplies bool
	// Pulse, if set, is called now and then during a run; see sim.Config.
	Pulse func()
}

// Result is what one run showed. History, Report, Faults, Arrivals and Requests
// belong to the runner and are valid until its next run; Clone keeps them.
type Result struct {
	Case
	Seed      uint64
	Ended     sim.EndReason
	Failure   *sim.Failure // a program's panic; nil if there was none
	History   *checker.History
	Report    checker.Report
	Verdict   checker.Verdict // the report's, or vacuous
	Faults    []sim.FaultReport
	Witnesses []WitnessResult
	Arrivals  []Arrival // of sections asked for from outside
	Requests  []Request // what the clients sent for their operations
	Events    int64
	Hash      uint64
	Trace     []sim.Event // with sim.TraceRecord only; nil of a run with more than sim.TraceMax
	Processes []ProcessInfo
	World     *sim.World // for drawing the trace; valid until the next run
}

// ProcessInfo is what a drawing needs to know of a process.
type ProcessInfo struct {
	Name   string
	Client bool
	Lock   bool // its state decides who holds the lock
}

// NewRunner checks that the case makes sense and prepares to run it.
func NewRunner(c Case) (*Runner, error) {
	if err := c.Design.Serves(c.Resource); err != nil {
		return nil, err
	}
	if err := c.Scenario.suits(c.Design); err != nil {
		return nil, err
	}
	if err := c.Params.Validate(); err != nil {
		return nil, err
	}
	r := &Runner{Case: c, world: sim.NewWorld(sim.Config{})}
	r.env = &models.Env{World: r.world, Rec: &r.rec}
	if c.Scenario != nil {
		var err error
		if r.witness, err = parseWitnesses(c.Scenario.Witnesses, c.Params.Clients); err != nil {
			return nil, err
		}
	}
	r.next = make([]int, c.Params.Clients)
	r.begin()
	r.build()
	if err := r.env.CheckEngine(c.Design); err != nil {
		return nil, &EngineError{err}
	}
	if err := r.SetPlan(c.Plan); err != nil {
		return nil, err
	}
	return r, nil
}

// Close frees the runner's world.
func (r *Runner) Close() { r.world.Close() }

// Run runs the case with one seed.
func (r *Runner) Run(seed uint64, mode sim.TraceMode) (*Result, error) {
	p := &r.Params
	r.world.Reset(sim.Config{
		Seed: seed, Plan: r.plan, LatencyMin: p.LatencyMin, LatencyMax: p.LatencyMax,
		Horizon: p.Horizon, Trace: mode, LateReplies: r.LateReplies, Observer: &r.rec, Pulse: r.Pulse,
		ServiceTime: p.ServiceTime, ServiceWorkers: p.ServiceWorkers,
	})
	r.begin()
	r.build()
	ended, err := r.world.Run()
	if err != nil {
		return nil, err
	}
	r.finish()
	res := &Result{Case: r.Case, Seed: seed, Ended: ended, Failure: r.world.Failure(), History: &r.history,
		Report: r.check.Check(&r.history), Faults: r.world.FaultReports(), Events: r.world.Events(),
		Hash: r.world.TraceHash(), Trace: r.world.Trace(), World: r.world}
	res.Arrivals, res.Requests = r.load.all, r.rec.requests
	res.Witnesses = r.observe(res)
	res.Verdict = headline(res)
	if mode == sim.TraceRecord {
		res.Processes = r.processInfo()
	}
	return res, nil
}

// begin empties the history for a run.
func (r *Runner) begin() {
	p := &r.Params
	capacity := 0
	if r.Design.Capacity != nil {
		capacity = r.Design.Capacity(r.options())
	}
	r.several = r.Design.Barrier || r.Design.Quota || capacity > 1
	drift := p.Drift
	if drift == 0 && r.Design.Drift != nil {
		drift = r.Design.Drift(r.options())
	}
	data := checker.Register
	if p.Workload == Append || r.Design.Jobs || r.several { // a job's effect is one entry, whatever the workload
		data = checker.List
	}
	r.history = checker.History{
		Clients: r.history.Clients[:0], Ops: r.history.Ops[:0],
		Promise: checker.Promise(r.Design.Promise), TTL: p.TTL, Drift: drift, Omniscient: true,
		Tokens: r.Design.Tokens == models.OrderedTokens, Data: data, StuckAfter: p.StuckBound(),
	}
	switch d := r.Design; {
	case d.Jobs:
		r.history.Once, r.history.Capacity = true, p.Clients
	case d.Barrier:
		r.history.Parties = p.Clients
	case d.Capacity != nil:
		r.history.Capacity, r.history.Quota = capacity, d.Quota
	}
	r.rec.onPlace, r.rec.onSend = r.OnPlace, r.OnSend
	r.rec.begin(r.world, &r.history)
	r.load.begin(r.world, p)
	clear(r.next)
}

// options are the parameters that designs read.
func (r *Runner) options() models.Options {
	p := &r.Params
	return models.Options{TTL: p.TTL, Renew: p.RenewEvery(), Retry: p.Retry, RetryJitter: p.RetryJitter, Wait: p.Wait,
		CallTimeout: p.CallTimeout, ChecksValidity: p.ChecksValidity, TokenStart: p.TokenStart, Clients: p.Clients, Sections: p.Sections,
		Tries: p.Tries, RenewMax: cmp.Or(p.RenewMax, r.Design.RenewMax), Drift: p.Drift,
		RenewDeadline: p.RenewUntil(), ReleaseOnCancel: p.ReleaseOnCancel,
		Nodes: p.Nodes, Quorum: p.Quorum, NodeTimeout: p.NodeTimeout, DriftFactor: p.DriftFactor, DriftMargin: p.DriftMargin,
		Persistence: p.Persistence, Replicas: p.Replicas, ReplicationLag: p.ReplicationLag, DownAfter: p.DownAfter,
		Members: p.Members, StaleLessor: p.StaleLessor, PlainCreate: p.PlainCreate,
		Standby: standbyOf(p.Standby), CommitAsync: p.SynchronousCommit == CommitOff, Keepalive: p.TCPKeepalive,
		IdleInTransaction: p.IdleInTransactionTimeout, PoolSize: p.PoolSize, Permits: p.PermitCount(), Engine: r.Engine}
}

// build puts clients, lock servers and storage into the world, in this order.
func (r *Runner) build() {
	env := r.env
	env.Reset(r.options())
	procs := make([]*sim.Process, r.Params.Clients)
	var system models.System
	for i := range procs {
		name := "client-" + strconv.Itoa(i+1)
		procs[i] = r.machine(i, procs).AddClient(name, func(t *sim.Task) {
			var protocol models.Protocol
			if system.Protocol != nil {
				protocol = system.Protocol(t.Proc())
			} else {
				protocol = models.WithLock(env, r.Design.Renews, system.Lock(t.Proc()), r.store.Handle())
			}
			r.work(t, i, protocol)
		})
		r.rec.addClient(procs[i])
	}
	system = r.Design.Build(env)
	r.rec.system = system
	r.history.KnowsGrants = r.rec.knowsGrants()
	r.store = r.Resource.SetUp(env)
	env.Store = r.store
}

// machine is the node of the client with the given index: its own, which has
// the client's name, or the one that clients_per_node of them share, which has
// the first one's.
func (r *Runner) machine(i int, before []*sim.Process) *sim.Node {
	if first := i - i%r.Params.ClientsPerNode; first < i {
		return before[first].Node()
	}
	return r.world.AddNode("client-" + strconv.Itoa(i+1))
}

// work is a client's program: section after section. A restarted client goes
// on with the section after the one in which it crashed.
func (r *Runner) work(t *sim.Task, client int, protocol models.Protocol) {
	p := &r.Params
	if r.next[client] == 0 && p.Stagger > 0 && client > 0 {
		t.Enter(1, sim.PhaseThink)
		t.Sleep(time.Duration(client) * p.Stagger)
	}
	for r.asked(t, client) {
		section := r.next[client]
		// What went wrong in a section stands in the history; the client
		// goes on with the next, as a worker's loop does.
		_ = protocol.Do(t, section, func(s models.Section) error { return r.body(t, client, section, s) })
		t.Op = 0
	}
}

// asked waits until the client's next section is wanted, and reports whether
// there is one.
func (r *Runner) asked(t *sim.Task, client int) bool {
	p := &r.Params
	if p.Interarrival > 0 {
		return r.fromOutside(t, client)
	}
	if r.next[client] == p.Sections {
		return false
	}
	r.next[client]++
	if section := r.next[client]; section > 1 {
		t.Enter(section, sim.PhaseThink)
		t.Sleep(p.Think)
	}
	return true
}

// fromOutside takes the next section that has arrived or will.
func (r *Runner) fromOutside(t *sim.Task, client int) bool {
	a := r.load.take(r.world.Now())
	if a == nil {
		return false
	}
	r.next[client]++
	t.Enter(r.next[client], sim.PhaseThink)
	a.Client, a.Section = int32(client), int32(r.next[client])
	t.Sleep(time.Duration(a.At - r.world.Now()))
	a.Fate, a.Taken = ArrivalTaken, r.world.Now()
	return true
}

// body is the critical section: read, work, write.
func (r *Runner) body(t *sim.Task, client, section int, s models.Section) error {
	p := &r.Params
	value := int64(0)
	if p.Workload == Increment {
		t.Enter(section, sim.PhaseRead)
		v, err := s.Read(t)
		if err != nil {
			return err
		}
		value = v
	}
	for i := 1; i <= p.Writes; i++ {
		t.Enter(section, sim.PhaseWork)
		t.Sleep(p.Work)
		if s.Lost(t) {
			return models.ErrLost
		}
		t.Enter(section, sim.PhaseWrite)
		if err := r.write(t, s, &value, uniqueValue(client, section, i)); err != nil {
			return err
		}
	}
	return nil
}

// write does one write of the workload. Where several may work at once each
// appends: nobody's number could be the counter's.
func (r *Runner) write(t *sim.Task, s models.Section, value *int64, unique int64) error {
	switch w := r.Params.Workload; {
	case w == Append || r.several:
		return s.Append(t, unique)
	case w == Increment:
		*value++
		return s.Write(t, *value)
	}
	return s.Write(t, unique)
}

// uniqueValue is a value that no other write writes, readable as
// client, section and write: 1002003.
func uniqueValue(client, section, write int) int64 {
	return int64(client+1)*1_000_000_000 + int64(section)*10_000 + int64(write)
}

// finish completes the history at the end of a run.
func (r *Runner) finish() {
	h := &r.history
	h.End = r.world.Now()
	h.FaultsOver = checker.Instant{At: r.world.LastFaultAt()}
	h.Final = r.store.Data.Contents(h.Data == checker.List)
	if h.Final == nil {
		h.Final = []int64{}
	}
}

func (r *Runner) processInfo() []ProcessInfo {
	var out []ProcessInfo
	for _, p := range r.world.Processes() {
		out = append(out, ProcessInfo{Name: p.Name(), Client: r.rec.clientOf(p) >= 0, Lock: r.rec.watches(p)})
	}
	return out
}

// headline is the verdict once it is known what the run is worth: one that was
// cut off, or in which what the scenario is about did not happen, shows nothing
// by being safe.
func headline(res *Result) checker.Verdict {
	v := res.Report.Verdict
	if v != checker.VerdictSafe && v != checker.VerdictFenced {
		return v
	}
	if res.Ended != sim.EndDone {
		return checker.VerdictVacuous
	}
	for _, w := range res.Witnesses {
		if !w.Occurred {
			return checker.VerdictVacuous
		}
	}
	return v
}

// Command is the command that repeats the run.
func (res *Result) Command() string {
	return CommandOf(&res.Case, res.Seed)
}

// CommandOf is the command that repeats a case with a seed.
func CommandOf(c *Case, seed uint64) string {
	if c.Repeat != "" {
		return c.Repeat
	}
	name, base := "FILE.yaml", DefaultParams()
	if c.Scenario != nil {
		name, base = c.Scenario.Ref(), c.Scenario.Params
	}
	command := fmt.Sprintf("locklab run %s --design %s --resource %s --seed %d", name, c.Design.Name, c.Resource.Name, seed)
	if e := c.EngineName(); e != models.EngineNative {
		command += " --engine " + e
	}
	if set := c.Params.Differing(&base); len(set) > 0 {
		parts := make([]string, len(set))
		for i, s := range set {
			parts[i] = s.Name + "=" + s.Value
		}
		command += " --set " + strings.Join(parts, ",")
	}
	return command
}

// Expectation is the row of the scenario that speaks about this run; nil if
// none does, or if the run was given other parameters than the scenario's.
func (res *Result) Expectation() *Expectation {
	if res.Scenario == nil || res.Params != res.Scenario.Params {
		return nil
	}
	return res.Scenario.Expected(res.Design.Name, res.Resource.Name)
}

// AsExpected reports whether both answers are the expected ones, or nothing
// was expected.
func (res *Result) AsExpected() bool {
	e := res.Expectation()
	return e == nil || e.Met(res.Verdict.String(), res.Report.Lock.String())
}

// PlanFile is the run as a file for replay.
func (res *Result) PlanFile() *PlanFile {
	f := &PlanFile{Design: res.Design.Name, Resource: res.Resource.Name, Seed: res.Seed, Params: res.Params, Plan: res.Plan,
		TraceHash: fmt.Sprintf("%016x", res.Hash), Verdict: res.Verdict.String(), Lock: res.Report.Lock.String()}
	if e := res.EngineName(); e != models.EngineNative {
		f.Engine = e
	}
	if s := res.Scenario; s != nil {
		f.Scenario, f.Title, f.Witnesses = s.Name, s.Title, s.Witnesses
	}
	return f
}
