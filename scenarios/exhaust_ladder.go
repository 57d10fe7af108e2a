package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"locklab/models"
	"locklab/sim"
)

// reach says at which places a rung of the ladder strikes, and whom.
type reach uint8

const (
	ownClient   reach = iota // a client, before each of its effects
	ownServer                // a server, before each request that it handles
	lockServers              // every other server, before each request that the storage handles
	requestLink              // client->server, at each send: the request
	replyLink                // server->client, at each send: the reply
	renewer                  // a client's renewer, before each of its effects
	worker                   // the main task of a client, before each of its effects
	clientClock              // a client's node, before each reading of its wall clock
	everyClock               // the client's node and every server's, where a phase of a section begins
	peerLink                 // server->server, at each request whose handling sends something there
	group                    // a server, before each request: any server stands for its replica group
)

var reachWords = [...]string{
	ownClient:   "clients, before each effect",
	ownServer:   "servers, before each request",
	lockServers: "lock servers, before each request to the storage",
	requestLink: "each request on its way",
	replyLink:   "each reply on its way",
	renewer:     "the renewer, before each of its effects",
	worker:      "a client's main task, before each of its effects",
	clientClock: "clients, before each look at the wall clock",
	everyClock:  "clients and servers, where a phase of a section begins",
	peerLink:    "each message between servers",
	group:       "replica groups, before each request to one of their servers",
}

// rung is one fault of the ladder: its kind, one magnitude, and where it
// strikes.
type rung struct {
	fault sim.Fault // without on and trigger
	at    []reach
}

// ttls is a magnitude in hundredths of the time to live.
func ttls(hundredths int64) sim.Span { return partOfTTL(hundredths, 100) }

func partOfTTL(n, d int64) sim.Span {
	for _, prime := range []int64{2, 5} {
		for n%prime == 0 && d%prime == 0 {
			n, d = n/prime, d/prime
		}
	}
	return sim.Span{Num: n, Den: d, Param: "ttl"}
}

// The rates of clocks. Two slow ones on the same clock add up, and must not stop it.
const (
	fastRate = 500_000_000
	slowRate = -400_000_000
)

// rungs is the fixed ladder, small magnitudes first. What stands in it is what
// "every way to place a fault" means: every place, and these magnitudes. Half
// a TTL is harmless to a lease; a whole one, added to what went before it, is
// just too long, so that the other client is found amid its section; 2.5 lets
// it come and go; and 0.05 is shorter than a call's timeout.
func rungs() []rung {
	var out []rung
	add := func(at []reach, faults ...sim.Fault) {
		for _, f := range faults {
			out = append(out, rung{fault: f, at: at})
		}
	}
	on := func(at ...reach) []reach { return at }
	lasting := func(f sim.Fault, hundredths ...int64) (fs []sim.Fault) {
		for _, h := range hundredths {
			f.For = ttls(h)
			fs = append(fs, f)
		}
		return fs
	}
	by := func(f sim.Fault, hundredths ...int64) (fs []sim.Fault) {
		for _, h := range hundredths {
			f.By = ttls(h)
			fs = append(fs, f)
		}
		return fs
	}
	// A server that is up again before the other client asks for the lock.
	soon := partOfTTL(5, 1000)
	restarting := func(mode string, after sim.Span) sim.Fault {
		return sim.Fault{Kind: sim.Crash, Mode: mode, Restart: after}
	}
	add(on(ownClient, ownServer), lasting(sim.Fault{Kind: sim.Pause}, 50, 100, 250)...)
	add(on(renewer, worker), lasting(sim.Fault{Kind: sim.Stall}, 100, 250)...)
	add(on(ownClient), lasting(sim.Fault{Kind: sim.Freeze, Monotonic: "stops"}, 100)...)
	add(on(ownServer, lockServers), restarting("", soon), restarting("node", soon), restarting("", ttls(50)))
	add(on(ownClient), restarting("", ttls(10)), sim.Fault{Kind: sim.Crash})
	add(on(ownServer, clientClock), by(sim.Fault{Kind: sim.ClockStep}, 50, 110, -110)...)
	add(on(everyClock), sim.Fault{Kind: sim.ClockRate, Rate: fastRate}, sim.Fault{Kind: sim.ClockRate, Rate: slowRate})
	add(on(ownServer, clientClock), by(lasting(sim.Fault{Kind: sim.ClockOffset}, 110)[0], 110, -110)...)
	add(on(requestLink, peerLink), sim.Fault{Kind: sim.DropRequest})
	add(on(requestLink), sim.Fault{Kind: sim.DropReply})
	add(on(requestLink, peerLink), by(sim.Fault{Kind: sim.Delay}, 5, 50, 100, 250)...)
	add(on(replyLink), by(sim.Fault{Kind: sim.Delay}, 5)...)
	add(on(peerLink), sim.Fault{Kind: sim.Duplicate}, sim.Fault{Kind: sim.Reorder})
	add(on(requestLink, peerLink), lasting(sim.Fault{Kind: sim.Partition}, 110)...)
	add(on(requestLink, peerLink), lasting(sim.Fault{Kind: sim.Partition, Mode: "hold"}, 110)...)
	add(on(requestLink), sim.Fault{Kind: sim.Cut}, sim.Fault{Kind: sim.Cut, Mode: "silent"})
	add(on(ownServer), lasting(sim.Fault{Kind: sim.FsyncStall}, 110)...)
	add(on(ownServer), sim.Fault{Kind: sim.LoseUnsynced})
	add(on(group), sim.Fault{Kind: sim.Failover}, sim.Fault{Kind: sim.Failover, Mode: "demoted"})
	add(on(ownServer), by(sim.Fault{Kind: sim.RestoreSnapshot}, 50, 110)...)
	add(on(ownServer), sim.Fault{Kind: sim.Evict, Key: "lock"}, sim.Fault{Kind: sim.Overwrite, Key: "lock"})
	return out
}

// OperatorFaults are the kinds that need somebody with access to the servers.
// Searches count them apart.
func OperatorFaults() []sim.FaultKind {
	return []sim.FaultKind{sim.RestoreSnapshot, sim.Evict, sim.Overwrite}
}

// ExhaustFaults are the kinds that exhaust places unless it is told others:
// all but the operator's, and but the clock-offset, which is two clock steps.
func ExhaustFaults() []sim.FaultKind {
	var out []sim.FaultKind
	for _, name := range sim.FaultNames() {
		k, _ := sim.ParseFaultKind(name)
		if k != sim.ClockOffset && !slices.Contains(OperatorFaults(), k) {
			out = append(out, k)
		}
	}
	return out
}

// ParseFaultKinds reads names of faults; the error proposes what would be
// right. Kinds come back in the vocabulary's order, each once.
func ParseFaultKinds(names []string) ([]sim.FaultKind, error) {
	var out []sim.FaultKind
	for _, name := range names {
		k, ok := sim.ParseFaultKind(strings.TrimSpace(name))
		if !ok {
			return nil, Unknown("fault", name, sim.FaultNames())
		}
		out = append(out, k)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// ladder tells, a line for each kind and reach, which magnitudes are tried
// where: as far as the design has whom they could strike.
func (x *explorer) ladder() []string {
	var lines []string
	for _, k := range x.Kinds {
		for at := range reach(len(reachWords)) {
			var sizes []string
			for i := range x.blows {
				b := &x.blows[i]
				if b.fault.Kind == k && b.at == at && !slices.Contains(sizes, size(&b.fault)) {
					sizes = append(sizes, size(&b.fault))
				}
			}
			if len(sizes) > 0 {
				lines = append(lines, fmt.Sprintf("%s %s: %s", k, strings.Join(sizes, ", "), reachWords[at]))
			}
		}
	}
	return lines
}

// size writes what tells a rung from the others of its kind.
func size(f *sim.Fault) string {
	var parts []string
	switch {
	case f.Rate != 0:
		parts = append(parts, fmt.Sprintf("%+d%%", f.Rate/10_000_000))
	case !f.By.IsZero():
		parts = append(parts, f.By.String())
	case !f.For.IsZero():
		parts = append(parts, f.For.String())
	case !f.Restart.IsZero():
		parts = append(parts, "restart after "+f.Restart.String())
	case f.Kind == sim.Crash:
		parts = append(parts, "for good")
	}
	for _, word := range []string{f.Mode, f.Key} {
		if word != "" {
			parts = append(parts, word)
		}
	}
	if f.Monotonic != "" {
		parts = append(parts, "monotonic "+f.Monotonic)
	}
	if len(parts) == 0 {
		return "once"
	}
	return strings.Join(parts, " ")
}

// blow is a rung with its victim: all of a fault but its trigger.
type blow struct {
	fault    sim.Fault // as a plan file shall have it
	resolved sim.Fault // with every span fixed
	at       reach
	proc     sim.ProcID // the victim, or a link's client
	peer     sim.ProcID // a link's server; -1 elsewhere
}

// blowsFor is a ladder for one case: every rung with every victim that it has
// there, in the ladder's order.
func blowsFor(r *Runner, kinds []sim.FaultKind, allPoints bool) ([]blow, error) {
	var out []blow
	for _, g := range rungs() {
		if !slices.Contains(kinds, g.fault.Kind) {
			continue
		}
		for _, at := range g.at {
			if at == peerLink && !allPoints {
				continue
			}
			for _, p := range r.world.Processes() {
				for _, b := range g.against(at, p, r.world.Processes()) {
					kept, err := r.takes(&b)
					if err != nil {
						return nil, err
					}
					if kept {
						out = append(out, b)
					}
				}
			}
		}
	}
	return out, nil
}

// against gives a rung its victims: one process, or one link for each peer.
func (g *rung) against(at reach, p *sim.Process, all []*sim.Process) []blow {
	b := blow{fault: g.fault, at: at, proc: p.ID(), peer: -1}
	b.fault.On = []string{p.Name()}
	client := !p.IsServer()
	switch at {
	case ownClient, clientClock, worker:
		if !client {
			return nil
		}
	case renewer:
		if !client {
			return nil
		}
		b.fault.On = []string{p.Name() + ".renewer"}
	case ownServer, group:
		if client {
			return nil
		}
	case lockServers:
		if client || p.Name() == models.StorageName {
			return nil
		}
	case requestLink, replyLink, peerLink:
		return g.links(b, p, all)
	}
	return []blow{b}
}

// links gives a rung the links of a client, or between servers.
func (g *rung) links(b blow, p *sim.Process, all []*sim.Process) []blow {
	if p.IsServer() != (b.at == peerLink) {
		return nil
	}
	var out []blow
	for _, q := range all {
		if !q.IsServer() || q == p {
			continue
		}
		b.peer = q.ID()
		from, to := p.Name(), q.Name()
		switch {
		case b.at == replyLink:
			b.fault.On = []string{to + "->" + from}
		case g.fault.Kind == sim.Partition:
			b.fault.On, b.fault.From = []string{from}, []string{to}
		default:
			b.fault.On = []string{from + "->" + to}
		}
		out = append(out, b)
	}
	return out
}

// takes fixes a blow's spans and reports whether its victim understands it: a
// server without keys, say, takes no evict.
func (r *Runner) takes(b *blow) (bool, error) {
	plan, err := sim.Plan{Faults: []sim.Fault{b.fault}}.Resolve(r.Params.Spans)
	if err != nil {
		return false, err
	}
	b.resolved = plan.Faults[0]
	err = r.world.CheckPlan(plan)
	var fe *sim.FaultError
	if errors.As(err, &fe) && fe.Field == "on" {
		return false, nil
	}
	return err == nil, err
}
