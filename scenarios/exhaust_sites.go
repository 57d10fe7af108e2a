package scenarios

import (
	"locklab/clock"
	"locklab/models"
	"locklab/sim"
)

// site is one place that a run reached, with what its victims can notice of a
// fault there.
type site struct {
	place  sim.Place
	server bool
	peers  []sim.ProcID // to whom a message leaves here
	peer   bool         // a server about to handle another server's message
	draws  bool         // a client draws a number: nothing that anybody could notice
	looks  bool         // a client looks at its wall clock
	events int          // of the trace, before
}

// placement is one fault at one place: a blow of the ladder and its trigger.
type placement struct {
	place sim.Place
	blow  int32
}

// surveyor watches one run and says where in it faults could be placed.
type surveyor struct {
	r       *Runner
	sites   []site
	at      map[sim.Place]int
	spawned []bool // by process: it has had more than one task
}

// survey runs the runner's plan and returns the sites in the order in which
// they were reached.
func (s *surveyor) survey(seed uint64) (*Result, error) {
	s.sites = s.sites[:0]
	s.at = map[sim.Place]int{}
	s.r.OnPlace, s.r.OnSend = s.reached, s.sent
	defer func() { s.r.OnPlace, s.r.OnSend = nil, nil }()
	res, err := s.r.Run(seed, sim.TraceRecord)
	if err != nil {
		return nil, err
	}
	s.spawned = make([]bool, len(res.World.Processes()))
	s.readTrace(res.Trace)
	return res, nil
}

func (s *surveyor) reached(p sim.Place) {
	w := s.r.world
	here := site{place: p, server: w.Processes()[p.Proc].IsServer(), events: len(w.Trace())}
	if m := w.Reaching(); m != nil {
		here.peer = m.From.IsServer()
	}
	s.at[p] = len(s.sites)
	s.sites = append(s.sites, here)
}

func (s *surveyor) sent(m *sim.Message) {
	if i, ok := s.at[m.Place]; ok {
		s.sites[i].peers = append(s.sites[i].peers, m.To.ID())
	}
}

// readTrace learns from the trace what the effects were.
func (s *surveyor) readTrace(trace []sim.Event) {
	last := make([]int, len(s.spawned)) // by process: its latest site
	for i := range last {
		last[i] = -1
	}
	next := 0
	for n := range trace {
		for next < len(s.sites) && s.sites[next].events <= n {
			last[s.sites[next].place.Proc] = next
			next++
		}
		e := &trace[n]
		switch {
		case e.Kind == sim.EventSend && e.Place.Phase == sim.PhaseSend && e.Place.Proc == e.Proc && last[e.Proc] >= 0:
			if here := &s.sites[last[e.Proc]]; here.server && s.r.world.Processes()[e.Peer].IsServer() {
				here.peers = append(here.peers, e.Peer)
			}
		case e.Kind == sim.EventEffect:
			s.readEffect(e)
		}
	}
}

func (s *surveyor) readEffect(e *sim.Event) {
	place := e.Place
	place.Point = sim.PointBefore
	i, ok := s.at[place]
	if !ok {
		return
	}
	switch {
	case e.Body != nil:
		// Nothing else that has words makes a second task.
		s.spawned[e.Proc] = s.spawned[e.Proc] || len(e.Body.String()) > 6 && e.Body.String()[:6] == "spawn "
	case e.Place.Point == sim.PointJitter || e.Place.Point == sim.PointValue:
		s.sites[i].draws = true
	case clock.Reading(e.A) >= sim.WallStart/2: // no sleep is as long, no monotonic clock has run for so long
		s.sites[i].looks = true
	}
}

// placements lists every way to place one more fault in the run that was
// surveyed, from site `from` on, in the order of the run and of the ladder.
//
// Every place of the run and every rung of the ladder counts, but for
// placements that give the same run as another one of the list:
//
//   - A message fault strikes the next message on its link, and nothing but
//     that message. So it is placed where a message leaves; placed anywhere
//     between two messages of a link it would hit the later one.
//   - A drawn number (a jitter, a lock's random value) depends on its place
//     alone, takes no time and is seen by nobody. A client that is stopped or
//     crashes before a draw is in the same state as one to which it happens
//     before its next effect, which follows in the same instant. This holds for
//     the last fault only: after a pause before a draw the client goes on to a
//     place, at which a further fault can find it before it has done anything.
//   - A server's clock is seen only when the server looks at it, so a step of
//     it is placed before what the server handles next. A client's likewise,
//     before the client looks; a client that never does cannot tell.
//   - The only task of a process, stalled, is a paused process, where pauses are
//     among the faults.
//
// Two faults are placed in the order in which they strike: the second at places
// that the run reaches when the first has struck, which includes all that only
// the first brings about. Of one place both orders are tried.
func (x *explorer) placements(s *surveyor, from int, last bool) []placement {
	var out []placement
	for i := from; i < len(s.sites); i++ {
		here := &s.sites[i]
		if here.peer && !x.AllPoints {
			continue
		}
		for b := range x.blows {
			if x.strikesAt(s, &x.blows[b], here, last) {
				out = append(out, placement{here.place, int32(b)})
			}
		}
	}
	return out
}

func (x *explorer) strikesAt(s *surveyor, b *blow, here *site, last bool) bool {
	own := b.proc == here.place.Proc
	phase := here.place.Phase
	brute := x.brute && own && !here.server // everywhere, for the test of the pruning
	draws := here.draws && last && !brute
	switch b.at {
	case ownClient:
		return own && !draws
	case renewer:
		return own && phase == sim.PhaseRenew
	case worker:
		return own && phase != sim.PhaseRenew && !draws && (s.spawned[b.proc] || !x.pauses)
	case clientClock:
		return own && (here.looks || brute)
	case ownServer, group:
		return own
	case lockServers:
		return x.names[here.place.Proc] == models.StorageName
	case requestLink, replyLink:
		return own && (sends(here, b.peer) || brute)
	case peerLink:
		return own && sends(here, b.peer)
	case everyClock:
		return !here.server && here.place.Op == 1 && (own || x.servers[b.proc])
	}
	return false
}

func sends(here *site, to sim.ProcID) bool {
	for _, p := range here.peers {
		if p == to {
			return true
		}
	}
	return false
}

// siteOf finds where in the surveyed run a place was reached; the end if it
// was not.
func (s *surveyor) siteOf(p sim.Place) int {
	if i, ok := s.at[p]; ok {
		return i
	}
	return len(s.sites)
}
