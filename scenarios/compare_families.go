package scenarios

import (
	"strings"

	"locklab/models"
	"locklab/sim"
)

// FaultFamily is a column of the matrix: what the adversary may do.
type FaultFamily struct {
	Name     string   `json:"name"`
	Title    string   `json:"title"`
	Faults   []string `json:"faults"`   // kinds; none for the family without faults
	Victims  string   `json:"victims"`  // clients, servers or "" for whoever comes
	Operator bool     `json:"operator"` // no lock is built against these
}

// FaultFamilies lists the columns of the matrix in their order. Every kind of
// fault is in one of them.
func FaultFamilies() []FaultFamily {
	family := func(name, title string, kinds ...sim.FaultKind) FaultFamily {
		f := FaultFamily{Name: name, Title: title, Faults: []string{}}
		for _, k := range kinds {
			f.Faults = append(f.Faults, k.String())
		}
		return f
	}
	crashOf := func(victims string) FaultFamily {
		f := family("crash-"+strings.TrimSuffix(victims, "s"), victims+" crash, and mostly come up again", sim.Crash)
		f.Victims = victims
		return f
	}
	operator := family("operator", "keys evicted or overwritten, snapshots restored", sim.RestoreSnapshot, sim.Overwrite, sim.Evict)
	operator.Operator = true
	return []FaultFamily{
		family("none", "no faults"),
		family("pause", "a process is paused", sim.Pause),
		family("stall", "one task is starved: the renewer or the worker", sim.Stall),
		family("freeze", "a machine is suspended", sim.Freeze),
		crashOf(VictimClients), crashOf(VictimServers),
		family("clock-step", "clocks jump, or are off for a while", sim.ClockStep, sim.ClockOffset),
		family("clock-rate", "clocks run too fast or too slow", sim.ClockRate),
		family("messages", "messages are lost, late, doubled or reordered",
			sim.DropRequest, sim.DropReply, sim.Delay, sim.Duplicate, sim.Reorder),
		family("partition", "machines are cut off, connections break", sim.Partition, sim.Cut),
		family("failover", "a replica takes over", sim.Failover),
		family("disk", "disks stall, or lose what was not synced", sim.FsyncStall, sim.LoseUnsynced),
		operator,
	}
}

// kinds are the family's kinds of faults.
func (f *FaultFamily) kinds() []sim.FaultKind {
	out := make([]sim.FaultKind, len(f.Faults))
	for i, name := range f.Faults {
		out[i], _ = sim.ParseFaultKind(name)
	}
	return out
}

// has reports whether a plan's faults are all of the family.
func (f *FaultFamily) has(p *sim.Plan) bool {
	return !anyFault(p, func(fault sim.Fault) bool {
		known := false
		for _, name := range f.Faults {
			known = known || name == fault.Kind.String()
		}
		client := len(fault.On) > 0 && clientNamed(fault.On[0])
		return !known || f.Victims == VictimClients && !client || f.Victims == VictimServers && client
	})
}

// familyOf is the family of a design: its name up to the slash.
func familyOf(design string) string {
	family, _, _ := strings.Cut(design, "/")
	return family
}

// sensible reports whether somebody who uses a design would use a resource
// with it, of those that it can serve: the plain one; the protections that go
// with its tokens; compare and swap; and its own database. The others are there
// to show how a protection is done wrong, and their stories are among the
// scenarios.
func sensible(d *models.Design, r *models.ResourceKind) bool {
	switch r.Name {
	case "fenced-volatile", "fenced-once", "check-then-write":
		return false
	case "marked": // the answer of those who have no order
		return d.Tokens == models.UniqueTokens
	}
	return true
}
