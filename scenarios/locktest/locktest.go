// Package locktest breaks anyone's own lock in go test. The lock is three
// methods (models.Lock) and, where it has one, a server (sim.Handler); one call
// runs it under all faults:
//
//	func TestMyLock(t *testing.T) {
//		locktest.Check(t, locktest.Lock{Name: "mine", Client: newClient, Server: newServer})
//	}
//
// A lock that breaks its promise fails the test with the story of the shortest
// run that shows it, the plan of faults, and the command that repeats it.
// Package example goes from a naive lock to a right one.
//
// The package owns the way from a test to a search and back. Like the command
// it stands above all layers, although it lies in scenarios: no package of
// locklab imports it, and it tells stories, which reports draws.
package locktest

import (
	"fmt"
	"strings"
	"time"

	"locklab/models"
	"locklab/scenarios"
	"locklab/sim"
)

// Lock is a lock design to be checked. Client is all that it needs; whatever
// else is left out has the documented default.
type Lock struct {
	Name string // in stories and plan files: lower-case words with - and /; "": my-lock

	// Client makes one client's handle on the lock. server is what Server
	// made, nil without one. A handle keeps nothing in package variables: a
	// test runs thousands of universes.
	Client func(o models.Options, server *sim.Process) models.Lock
	// Server makes the lock service, a process called lock-1 on the given
	// machine, whose disk outlives its crashes; nil: there is none. One that
	// also has a method Holder() models.Holding is judged by whom it says it
	// has granted the lock to; otherwise a client counts as granted when
	// Acquire returns. A semaphore's may have Holders, as models.System has it.
	Server func(o models.Options, machine *sim.Node) sim.Handler
	// Build sets up several servers; it replaces Client and Server.
	Build func(env *models.Env) models.System

	Tokens  models.Tokens                      // what Grant.Token is good for
	Promise models.Promise                     // how long a grant is promised to last
	Drift   func(models.Options) time.Duration // how far before its TTL a lease may end; nil: not at all
	Renews  bool                               // Renew is called every TTL/3 while the client works
	// Capacity is how many may hold at once; nil: one. Above one the clients
	// append to a list, and more of them at work at once count as two-writers.
	Capacity func(models.Options) int

	// Resource is what the lock protects, a name of locklab list resources;
	// "": plain, which accepts every write.
	Resource string
	// Never lists what must not happen, in the words of locklab sweep
	// --fail-on; nil: two-writers, lost-update, stuck and broken. No lease can
	// keep overlap from happening: clients that are paused still believe.
	Never []string
	// Faults are the kinds of faults that may strike, names of locklab list
	// faults; nil: all but the operator's. Except are taken from them: what
	// the lock is not built against.
	Faults, Except []string
	// Params changes the parameters of the runs: clients, sections, TTL and so
	// on. nil: the defaults.
	Params func(*scenarios.Params)
}

// neverDefault is what no lock may let happen to the data, and no promise that
// it may break.
var neverDefault = [...]string{"two-writers", "lost-update", "stuck", "broken"}

// subject is a lock ready to be run.
type subject struct {
	scenarios.Case
	adversary scenarios.Adversary
	never     []string
}

// newSubject checks what the user wrote. Errors name the field.
func newSubject(l Lock) (*subject, error) {
	if l.Name == "" {
		l.Name = "my-lock"
	}
	if l.Resource == "" {
		l.Resource = "plain"
	}
	if !isName(l.Name) {
		return nil, fmt.Errorf("locktest.Lock %s: Name: a name is lower-case words with - and /, such as redis/lua-release", l.Name)
	}
	if l.Client == nil && l.Build == nil {
		return nil, fmt.Errorf("locktest.Lock %s: Client is nil; it makes one client's handle on the lock", l.Name)
	}
	resource, err := scenarios.FindResource(l.Resource)
	if err != nil {
		return nil, fmt.Errorf("locktest.Lock %s: Resource: %w", l.Name, err)
	}
	s := &subject{Case: scenarios.Case{Design: l.design(), Resource: resource, Params: scenarios.DefaultParams()}}
	if l.Params != nil {
		l.Params(&s.Params)
	}
	if l.Never == nil {
		l.Never = neverDefault[:]
	}
	if s.never, err = scenarios.Pick("violation", scenarios.Violations(), func(w string) string { return w }, l.Never); err != nil {
		return nil, fmt.Errorf("locktest.Lock %s: Never: %w", l.Name, err)
	}
	kinds, err := l.faults()
	if err != nil {
		return nil, err
	}
	s.adversary = scenarios.NewAdversary(&s.Params, kinds)
	return s, nil
}

// isName reports whether a plan file can bear the name.
func isName(name string) bool {
	f := scenarios.PlanFile{Scenario: "locktest", Design: name, Resource: "plain", Params: scenarios.DefaultParams()}
	_, err := scenarios.LoadPlanFile(scenarios.MarshalPlanFile(&f), name)
	return err == nil
}

// faults are the kinds that may strike.
func (l *Lock) faults() ([]sim.FaultKind, error) {
	if l.Faults == nil {
		l.Faults = []string{"all"}
	}
	kinds, err := scenarios.PickFaults(l.Faults)
	if err != nil {
		return nil, fmt.Errorf("locktest.Lock %s: Faults: %w", l.Name, err)
	}
	if len(l.Except) > 0 {
		except, err := scenarios.PickFaults(l.Except)
		if err != nil {
			return nil, fmt.Errorf("locktest.Lock %s: Except: %w", l.Name, err)
		}
		spared := map[sim.FaultKind]bool{}
		for _, k := range except {
			spared[k] = true
		}
		var left []sim.FaultKind
		for _, k := range kinds {
			if !spared[k] {
				left = append(left, k)
			}
		}
		kinds = left
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("locktest.Lock %s: Except leaves no fault of %s", l.Name, strings.Join(l.Faults, ", "))
	}
	return kinds, nil
}

// design is the lock as the runner has it.
func (l Lock) design() *models.Design {
	d := &models.Design{Name: l.Name, Tokens: l.Tokens, Promise: l.Promise, Drift: l.Drift, Renews: l.Renews, Capacity: l.Capacity, Build: l.Build}
	if d.Build == nil {
		d.Build = l.build
	}
	return d
}

func (l Lock) build(env *models.Env) models.System {
	options := env.Options
	var s models.System
	var server *sim.Process
	if l.Server != nil {
		machine := env.World.AddNode("lock-1")
		handler := l.Server(options, machine)
		server = machine.AddServer("lock-1", handler)
		if h, ok := handler.(interface{ Holder() models.Holding }); ok {
			s.Watch, s.Holder = []*sim.Process{server}, h.Holder
		}
		if h, ok := handler.(interface {
			Holders(into []models.Holding) []models.Holding
		}); ok {
			s.Watch, s.Holders = []*sim.Process{server}, h.Holders
		}
	}
	s.Lock = func(*sim.Process) models.Lock { return l.Client(options, server) }
	return s
}
