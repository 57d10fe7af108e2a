package scenarios

import (
	"slices"
	"strconv"
	"strings"

	"locklab/models"
	"locklab/sim"
)

// The roles that every design has somebody for. A plan may name them instead of
// processes:
//
//	client-1 ..   the clients, which are called so under every design
//	storage       the process called storage; where the data lives in the lock server, that one
//	lock-1 ..     the lock servers, in the order in which the design builds them. One that has fewer
//	              than the plan names counts them round: of three, lock-4 is the first again
//	lock          all lock servers, on a side of a partition; elsewhere the first
//
// Lock servers are those whose state decides who holds the lock or, of a
// design that does not say, all its servers. A design without servers (none)
// has nobody for lock, and a process's own name always goes first.
const (
	lockRole    = "lock"
	storageRole = models.StorageName
	lockRoles   = 5 // how many of them the adversary names: Redlock's published number
)

// Cast gives the roles of a plan to the processes of the runner's design, and
// leaves out the faults that cannot befall it: a lock server's where there is
// none, messages of a process to itself, a failover without replicas. What it
// returns names processes alone and can be replayed by itself.
func (r *Runner) Cast(p sim.Plan) sim.Plan {
	c := r.casting()
	out := sim.Plan{Faults: make([]sim.Fault, 0, len(p.Faults)), Choices: p.Choices}
	for i := range p.Faults {
		f := c.fault(p.Faults[i])
		if possible(&f) && r.world.CheckPlan(sim.Plan{Faults: []sim.Fault{f}}) == nil {
			out.Faults = append(out.Faults, f)
		}
	}
	return out
}

// SetPlan lets the next runs follow another plan, in which roles may stand for
// processes.
func (r *Runner) SetPlan(p sim.Plan) error {
	c := r.casting()
	cast := sim.Plan{Faults: make([]sim.Fault, len(p.Faults)), Choices: p.Choices}
	for i := range p.Faults {
		cast.Faults[i] = c.fault(p.Faults[i])
	}
	resolved, err := cast.Resolve(r.Params.Spans)
	if err != nil {
		return err
	}
	if err := r.world.CheckPlan(resolved); err != nil {
		return err
	}
	r.Case.Plan, r.plan = cast, resolved
	return nil
}

// follow is SetPlan for what Cast has returned, whose lengths are all fixed.
func (r *Runner) follow(cast sim.Plan) { r.Case.Plan, r.plan = cast, cast }

// possible reports whether a fault has both sides that it needs.
func possible(f *sim.Fault) bool {
	if len(f.On) == 0 {
		return false
	}
	from, to, link := strings.Cut(f.On[0], "->")
	return !link || from != to
}

// casting knows a world's processes by their roles.
type casting struct {
	processes []*sim.Process
	locks     []*sim.Process
}

// casting looks at the world as the design has just built it.
func (r *Runner) casting() casting {
	c := casting{processes: r.world.Processes()}
	for _, p := range c.processes { // in their own order, whatever the design's list says
		if r.rec.watches(p) {
			c.locks = append(c.locks, p)
		}
	}
	if len(c.locks) > 0 {
		return c
	}
	for _, p := range c.processes {
		if p.IsServer() && p.Name() != storageRole {
			c.locks = append(c.locks, p)
		}
	}
	return c
}

// fault returns a copy of the fault that names processes.
func (c *casting) fault(f sim.Fault) sim.Fault {
	f.On = c.names(f.On, f.Kind == sim.Partition)
	if len(f.From) > 0 {
		f.From = slices.DeleteFunc(c.names(f.From, true), func(name string) bool { return slices.Contains(f.On, name) })
		if len(f.From) == 0 { // cut off from itself alone; nobody named would mean everybody
			f.On = nil
		}
	}
	f.Trigger.Before.Proc = c.name(f.Trigger.Before.Proc)
	f.Trigger.After.Proc = c.name(f.Trigger.After.Proc)
	f.Trigger.When.Who = c.name(f.Trigger.When.Who)
	f.Trigger.Step.Proc = c.name(f.Trigger.Step.Proc)
	f.Until.Who = c.name(f.Until.Who)
	return f
}

// names casts a list, in which lock may stand for all lock servers.
func (c *casting) names(roles []string, several bool) []string {
	out := make([]string, 0, len(roles))
	for _, role := range roles {
		if several && role == lockRole && len(c.locks) > 0 && c.process(role) == nil {
			for _, p := range c.locks {
				out = append(out, p.Name())
			}
			continue
		}
		if name := c.actor(role); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// actor casts a process, a task of one, or a link.
func (c *casting) actor(role string) string {
	if from, to, link := strings.Cut(role, "->"); link {
		return c.name(strings.TrimSpace(from)) + "->" + c.name(strings.TrimSpace(to))
	}
	process, task, isTask := strings.Cut(role, ".")
	if !isTask {
		return c.name(role)
	}
	return c.name(process) + "." + task
}

// name casts one role. What is none stays as it is.
func (c *casting) name(role string) string {
	if role == "" || clientNamed(role) || c.process(role) != nil {
		return role
	}
	n := 0
	switch number, isLock := strings.CutPrefix(role, lockRole+"-"); {
	case role == storageRole, role == lockRole:
	case isLock:
		v, err := strconv.Atoi(number)
		if err != nil || v < 1 {
			return role
		}
		n = v - 1
	default:
		return role
	}
	if len(c.locks) == 0 {
		return role
	}
	return c.locks[n%len(c.locks)].Name()
}

func (c *casting) process(name string) *sim.Process {
	for _, p := range c.processes {
		if p.Name() == name {
			return p
		}
	}
	return nil
}
