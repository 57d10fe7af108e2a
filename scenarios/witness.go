package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"locklab/checker"
	"locklab/clock"
	"locklab/sim"
)

// WitnessResult says whether what a scenario is about happened in a run.
type WitnessResult struct {
	Text     string
	Occurred bool
}

// witnessForm is one sentence of the witness vocabulary. A witness is about
// the adversary, never about the outcome, so that it can occur under a design
// that survives. It is told by the history, the plan and what became of its
// faults, which every run has.
type witnessForm struct {
	// text is the sentence with client-1 and client-2 for any two clients and
	// redis-1 for any server.
	text  string
	holds func(res *Result, who cast) bool
}

// cast is whom a sentence is about.
type cast struct {
	client [2]int32
	server string
}

func witnessForms() []witnessForm {
	return []witnessForm{
		{"client-1 was paused past its ttl while it held the lock", pausedPastTTL},
		{"client-1 was paused past its ttl while it waited for the lock", pausedWaiting},
		{"client-1 crashed while it held the lock", crashedHolding},
		{"client-1 was cut off while it held the lock", cutOffHolding},
		{"client-1 crashed before it learned that it had been granted the lock", crashedUnaware},
		{"client-1's renewer was stalled past its ttl while it held the lock", renewerStalled},
		{"client-1's section lasted longer than its ttl", outlastedTTL},
		{"client-1 and client-2 asked for the lock before either could have an answer", askedTogether},
		{"client-2 got and released the lock while client-1 was paused", cameAndWent},
		{"client-1's write arrived after its timeout", writeArrivedLate},
		{"client-1's renewal arrived after its tenure had ended", arrivedAfterEnd(checker.Renew)},
		{"client-1's write arrived after its tenure had ended", arrivedAfterEnd(checker.Write)},
		{"client-1's release arrived after its tenure had ended", arrivedAfterEnd(checker.Release)},
		{"client-1's release arrived after its next grant", releaseOvertaken},
		{"client-1 never learned that its acquire took effect", neverLearned(checker.Acquire)},
		{"client-1 never learned that its renewal took effect", neverLearned(checker.Renew)},
		{"client-1 never learned that its write took effect", neverLearned(checker.Write)},
		{"client-1 never learned that its release took effect", neverLearned(checker.Release)},
		{"redis-1 crashed while client-1 held the lock", serverCrashed(true)},
		{"redis-1 crashed while nobody held the lock", serverCrashed(false)},
		{"redis-1's clock stepped while client-1 held the lock", heldWhile(sim.ClockStep)},
		{"redis-1 failed over while client-1 held the lock", heldWhile(sim.Failover)},
		{"redis-1 failed over before a replica could have client-1's grant", unreplicated(checker.Acquire, 1)},
		{"redis-1 failed over before a replica could have two of client-1's grants", unreplicated(checker.Acquire, 2)},
		{"redis-1 failed over before a replica could have client-1's release", unreplicated(checker.Release, 1)},
		{"redis-1 evicted a key while client-1 held the lock", heldWhile(sim.Evict)},
		{"redis-1 had a key overwritten while client-1 held the lock", heldWhile(sim.Overwrite)},
		{"client-1's renewer stalled past its ttl while it waited for the lock", renewerStalledWaiting},
		{"redis-1 crashed while client-1 waited for the lock", waitedWhile(sim.Crash)},
		{"redis-1 was paused while client-1 waited for the lock", waitedWhile(sim.Pause)},
		{"redis-1 was cut off while client-1 held the lock", heldWhile(sim.Partition)},
		{"redis-1's disk stalled while client-1 held the lock", heldWhile(sim.FsyncStall)},
		{"redis-1's disk was put back to before client-1's grant", putBack},
		{"redis-1's reply to client-1 was lost while it asked for the lock", replyLostAsking},
		{"the reply to client-1's write was lost", replyLostWriting},
		{"client-2 asked for the lock while client-1 held it", askedWhileHeld},
		{"client-1's machine was frozen past its ttl while it held the lock", frozenPastTTL},
		{"client-2's clock was wrong while client-1 held the lock", clockWrong},
		{"client-1 was cut off from redis-1 while it held the lock", cutOffFrom},
		{"the connection of client-1 to redis-1 was cut while client-1 held the lock", connectionCut},
		{"redis-1's disk stalled past the ttl while client-1 waited for the lock", diskStalledWaiting},
		{"client-1 crashed while it waited for the lock", crashedWaiting},
		{"client-2 was granted the lock while client-1's request for it was delayed", grantedMeanwhile},
		{"client-1's wall clock was wrong when it was granted the lock", wrongWhenGranted},
	}
}

// WitnessForms lists the sentences that a scenario may use as witnesses, with
// client-1 and client-2 for any two clients and redis-1 for any server.
func WitnessForms() []string {
	var out []string
	for _, f := range witnessForms() {
		out = append(out, f.text)
	}
	return out
}

// witness is a sentence of a scenario with its cast resolved.
type witness struct {
	text string
	who  cast
	form witnessForm
}

// parseWitnesses reads a scenario's sentences for a run with so many clients.
func parseWitnesses(ws []Witness, clients int) ([]witness, error) {
	var out []witness
	for _, w := range ws {
		form, names := findForm(w.Text)
		if form == nil {
			return nil, w.Pos.Errorf("%s", unknownWitness(w.Text))
		}
		found := witness{text: w.Text, form: *form, who: cast{server: names["redis-1"]}}
		for i, model := range []string{"client-1", "client-2"} {
			name, named := names[model]
			if !named {
				continue
			}
			client, ok := clientNumber(name, clients)
			if !ok {
				return nil, w.Pos.Errorf("witness %q: no client is called %q; clients: %d gives %s", w.Text, name, clients, clientNames(clients))
			}
			found.who.client[i] = client
		}
		if names["client-2"] != "" && names["client-1"] == names["client-2"] {
			return nil, w.Pos.Errorf("witness %q names %s twice; it is about two clients", w.Text, names["client-1"])
		}
		out = append(out, found)
	}
	return out, nil
}

// checkWitnesses refuses witnesses that the scenario can never have: unknown
// sentences, clients that there are none of, faults that its plan lacks.
func checkWitnesses(s *Scenario) error {
	found, err := parseWitnesses(s.Witnesses, s.Params.Clients)
	if err != nil {
		return err
	}
	for i, w := range found {
		if w.who.server == "" {
			continue
		}
		kind, does := faultOnServer(&w)
		if !anyFault(&s.Plan, func(f sim.Fault) bool { return f.Kind == kind && onServer(&f, w.who.server) }) {
			return s.Witnesses[i].Pos.Errorf("witness %q: no fault of the plan %s; add one or name whom it %s", w.text, does, strings.Fields(does)[0])
		}
	}
	return nil
}

// faultOnServer is the fault that a sentence about a server needs, and what a
// plan does that has it.
func faultOnServer(w *witness) (sim.FaultKind, string) {
	for _, k := range []struct {
		says string
		kind sim.FaultKind
		does string
	}{
		{"clock stepped", sim.ClockStep, "steps the clock of "},
		{"was paused", sim.Pause, "pauses "},
		{"was cut off", sim.Partition, "partitions "},
		{"was cut while", sim.Cut, "cuts a connection to "},
		{"disk stalled", sim.FsyncStall, "stalls the disk of "},
		{"was put back", sim.RestoreSnapshot, "restores the disk of "},
		{"was lost", sim.DropReply, "drops a reply of "},
		{"failed over", sim.Failover, "fails over "},
		{"evicted", sim.Evict, "evicts a key of "},
		{"overwritten", sim.Overwrite, "overwrites a key of "},
	} {
		if strings.Contains(w.form.text, k.says) {
			return k.kind, k.does + w.who.server
		}
	}
	return sim.Crash, "crashes " + w.who.server
}

// onServer reports whether a fault is on the server, or on a link to it, or
// splits the network beside it.
func onServer(f *sim.Fault, server string) bool {
	for _, on := range f.On {
		if on == server || strings.HasSuffix(on, "->"+server) {
			return true
		}
	}
	return slices.Contains(f.From, server)
}

func anyFault(p *sim.Plan, is func(sim.Fault) bool) bool {
	for _, f := range p.Faults {
		if is(f) {
			return true
		}
	}
	return false
}

// unknownWitness says what would be right: the sentence that shares most words
// with the unknown one, if it is near, and where to find the others.
func unknownWitness(text string) string {
	words := strings.Fields(text)
	best, most := "", len(words)/2
	for _, f := range WitnessForms() {
		if n := sharedWords(words, strings.Fields(f)); n > most {
			best, most = " "+didYouMean(f), n
		}
	}
	return fmt.Sprintf("unknown witness %q;%s the vocabulary is listed by locklab list witnesses", text, best)
}

// sharedWords counts the words that two sentences have in common.
func sharedWords(a, b []string) int {
	n := 0
	for _, w := range a {
		for _, v := range b {
			if w == v {
				n++
				break
			}
		}
	}
	return n
}

// findForm finds the form of a sentence, and whom it names for each of the
// form's client-1, client-2 and redis-1.
func findForm(text string) (*witnessForm, map[string]string) {
	for _, f := range witnessForms() {
		if names := matchForm(f.text, text); names != nil {
			return &f, names
		}
	}
	return nil, nil
}

func matchForm(form, text string) map[string]string {
	want, got := strings.Fields(form), strings.Fields(text)
	if len(want) != len(got) {
		return nil
	}
	names := map[string]string{}
	for i, w := range want {
		model, possessive := strings.CutSuffix(w, "'s")
		if model != "client-1" && model != "client-2" && model != "redis-1" {
			if w != got[i] {
				return nil
			}
			continue
		}
		name, has := strings.CutSuffix(got[i], "'s")
		client := strings.HasPrefix(name, "client-")
		if first, again := names[model]; has != possessive || client != (model != "redis-1") || !isActor(name) || again && first != name {
			return nil
		}
		names[model] = name
	}
	return names
}

// observe asks every witness about a run.
func (r *Runner) observe(res *Result) []WitnessResult {
	if len(r.witness) == 0 {
		return nil
	}
	out := make([]WitnessResult, len(r.witness))
	for i, w := range r.witness {
		out[i] = WitnessResult{Text: w.text, Occurred: w.form.holds(res, w.who)}
	}
	return out
}

// anyOp reports whether an operation of the client is as asked for.
func anyOp(res *Result, client int32, is func(o *checker.Op) bool) bool {
	for i := range res.History.Ops {
		if o := &res.History.Ops[i]; o.Client == client && is(o) {
			return true
		}
	}
	return false
}

// struck reports whether a fault that struck is as asked for.
func struck(res *Result, is func(f *sim.Fault, r *sim.FaultReport) bool) bool {
	for i := range res.Faults {
		r := &res.Faults[i]
		if r.Fired && !r.Idle && is(&res.Plan.Faults[r.Index], r) {
			return true
		}
	}
	return false
}

// stopped reports whether a fault that stopped the whole client, or its
// worker, is as asked for.
func stopped(res *Result, client int32, is func(r *sim.FaultReport) bool) bool {
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		stops := f.Kind == sim.Pause || f.Kind == sim.Freeze || f.Kind == sim.Stall
		return stops && f.On[0] == res.History.Clients[client] && is(r)
	})
}

// pausedPastTTL: a fault stopped the client while it believed to hold the
// lock, and it was still stopped when TTL had passed since it asked for it.
func pausedPastTTL(res *Result, who cast) bool {
	return stopped(res, who.client[0], func(r *sim.FaultReport) bool { return pastTTL(res, who.client[0], r) })
}

// frozenPastTTL: the same, by a fault that stopped the client's machine.
func frozenPastTTL(res *Result, who cast) bool {
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		return f.Kind == sim.Freeze && f.On[0] == res.History.Clients[who.client[0]] && pastTTL(res, who.client[0], r)
	})
}

// pastTTL reports whether a fault struck while the client believed to hold the
// lock and lasted until TTL had passed since it asked for it.
func pastTTL(res *Result, client int32, r *sim.FaultReport) bool {
	return anyOp(res, client, func(o *checker.Op) bool {
		return acquired(o) && r.Struck >= o.Return.At && r.Struck < o.BelievesUntil.At &&
			min(r.Healed, res.History.End) >= asked(o).Add(res.History.TTL)
	})
}

// pausedWaiting: a fault stopped the client while it waited for the answer to
// an acquire, and it was still stopped when TTL had passed since it asked.
func pausedWaiting(res *Result, who cast) bool {
	client := who.client[0]
	return stopped(res, client, func(r *sim.FaultReport) bool {
		return anyOp(res, client, func(o *checker.Op) bool {
			waits := o.Kind == checker.Acquire && asked(o) <= r.Struck && r.Struck <= o.Return.At
			return waits && r.Healed >= asked(o).Add(res.History.TTL) && !anyOp(res, client, func(next *checker.Op) bool {
				return o.Invoke.Before(next.Invoke) && next.Invoke.At <= r.Struck
			})
		})
	})
}

// renewerStalledWaiting: a fault stopped the task that renews for the client
// for as long as TTL, from a moment at which the client waited for the lock.
func renewerStalledWaiting(res *Result, who cast) bool {
	renewer := res.History.Clients[who.client[0]] + ".renewer"
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		return f.Kind == sim.Stall && f.On[0] == renewer && waitsAt(res, who.client[0], r.Struck) &&
			min(r.Healed, res.History.End) >= r.Struck.Add(res.History.TTL)
	})
}

// waitedWhile: a fault of the kind struck the server while the client waited
// for the answer to an acquire.
func waitedWhile(kind sim.FaultKind) func(*Result, cast) bool {
	return func(res *Result, who cast) bool {
		return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
			return f.Kind == kind && onServer(f, who.server) && waitsAt(res, who.client[0], r.Struck)
		})
	}
}

// waitsAt reports whether the client had called acquire and had no answer.
func waitsAt(res *Result, client int32, at clock.Time) bool {
	return anyOp(res, client, func(o *checker.Op) bool {
		return o.Kind == checker.Acquire && o.Invoke.At <= at && at <= o.Return.At
	})
}

// heldWhile: a fault of the kind struck the server while the client believed
// to hold the lock.
func heldWhile(kind sim.FaultKind) func(*Result, cast) bool {
	return func(res *Result, who cast) bool {
		return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
			return f.Kind == kind && onServer(f, who.server) && believesAt(res, who.client[0], r.Struck)
		})
	}
}

// cutOffHolding: a partition that names the client on one of its sides struck
// while it believed to hold the lock.
func cutOffHolding(res *Result, who cast) bool {
	name := res.History.Clients[who.client[0]]
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		return f.Kind == sim.Partition && (slices.Contains(f.On, name) || slices.Contains(f.From, name)) && believesAt(res, who.client[0], r.Struck)
	})
}

// cutOffFrom: the network split between the client and the server while the client
// believed to hold the lock.
func cutOffFrom(res *Result, who cast) bool {
	client := res.History.Clients[who.client[0]]
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		if f.Kind != sim.Partition || !believesAt(res, who.client[0], r.Struck) {
			return false
		}
		apart := func(side, other []string, a, b string) bool {
			return slices.Contains(side, a) && !slices.Contains(side, b) && (len(other) == 0 || slices.Contains(other, b))
		}
		return apart(f.On, f.From, client, who.server) || apart(f.On, f.From, who.server, client)
	})
}

// connectionCut: the client's connection to the server was cut while the
// client believed to hold the lock.
func connectionCut(res *Result, who cast) bool {
	link := res.History.Clients[who.client[0]] + "->" + who.server
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		return f.Kind == sim.Cut && f.On[0] == link && believesAt(res, who.client[0], r.Struck)
	})
}

// clockWrong: the second client's wall clock was put wrong before the first
// ceased to believe that it held the lock, and was still wrong when it had
// begun to.
func clockWrong(res *Result, who cast) bool {
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		wrong := f.Kind == sim.ClockStep || f.Kind == sim.ClockOffset
		return wrong && f.On[0] == res.History.Clients[who.client[1]] && anyOp(res, who.client[0], func(o *checker.Op) bool {
			return acquired(o) && r.Struck < o.BelievesUntil.At && (f.Kind == sim.ClockStep || r.Healed > o.Return.At)
		})
	})
}

// askedWhileHeld: the second client waited for the lock at a time at which the
// first believed that it held it.
func askedWhileHeld(res *Result, who cast) bool {
	return anyOp(res, who.client[0], func(a *checker.Op) bool {
		return acquired(a) && anyOp(res, who.client[1], func(b *checker.Op) bool {
			return b.Kind == checker.Acquire && b.Invoke.Before(a.BelievesUntil) && a.Return.Before(b.Return)
		})
	})
}

// diskStalledWaiting: the server's disk stalled, and from some moment of that
// on, for TTL at least, the client waited for the answer to one request for
// the lock.
func diskStalledWaiting(res *Result, who cast) bool {
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		return f.Kind == sim.FsyncStall && onServer(f, who.server) && anyOp(res, who.client[0], func(o *checker.Op) bool {
			return o.Kind == checker.Acquire && asked(o) >= r.Struck && min(r.Healed, o.Return.At) >= asked(o).Add(res.History.TTL)
		})
	})
}

// believesAt reports whether the client believed to hold the lock.
func believesAt(res *Result, client int32, at clock.Time) bool {
	return anyOp(res, client, func(o *checker.Op) bool {
		return acquired(o) && o.Return.At <= at && at < o.BelievesUntil.At
	})
}

// putBack: the server's disk was put back to what it held before a grant of
// the client.
func putBack(res *Result, who cast) bool {
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		if f.Kind != sim.RestoreSnapshot || !onServer(f, who.server) {
			return false
		}
		age, err := f.By.Resolve(res.Params.Spans)
		return err == nil && anyOp(res, who.client[0], func(o *checker.Op) bool {
			at := granted(o)
			return o.Kind == checker.Acquire && at.Known() && at.At <= r.Struck && at.At > r.Struck.Add(-age)
		})
	})
}

// replyLostWriting: a reply to the client was dropped while it waited for the
// answer to a write, and it got none.
func replyLostWriting(res *Result, who cast) bool {
	client := who.client[0]
	return anyOp(res, client, func(o *checker.Op) bool {
		return sameKind(o, checker.Write) && struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
			return f.Kind == sim.DropReply && strings.HasPrefix(f.On[0], res.History.Clients[client]+"->") &&
				o.Invoke.At <= r.Struck && r.Struck < o.Return.At && o.Return.At >= r.Struck.Add(res.Params.CallTimeout)
		})
	})
}

// replyLostAsking: a reply of the server to the client was dropped while the
// client waited for the answer to an acquire.
func replyLostAsking(res *Result, who cast) bool {
	link := res.History.Clients[who.client[0]] + "->" + who.server
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		return f.Kind == sim.DropReply && f.On[0] == link && waitsAt(res, who.client[0], r.Struck)
	})
}

// crashedHolding: the client's crash ended its belief to hold the lock, and
// the lock was still its own.
func crashedHolding(res *Result, who cast) bool {
	return anyOp(res, who.client[0], func(o *checker.Op) bool {
		return acquired(o) && o.Loss == checker.LossCrashed && o.BelievesUntil.Before(o.Ended)
	})
}

// crashedUnaware: the client crashed while it waited for the answer to an
// acquire that had been granted.
func crashedUnaware(res *Result, who cast) bool {
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		return f.Kind == sim.Crash && f.On[0] == res.History.Clients[who.client[0]] && anyOp(res, who.client[0], func(o *checker.Op) bool {
			return o.Kind == checker.Acquire && !acquired(o) && o.Granted.Known() && o.Granted.At <= r.Struck && r.Struck <= o.Return.At
		})
	})
}

// crashedWaiting: the client crashed while it waited for the answer to an
// acquire.
func crashedWaiting(res *Result, who cast) bool {
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		return f.Kind == sim.Crash && f.On[0] == res.History.Clients[who.client[0]] && waitsAt(res, who.client[0], r.Struck)
	})
}

// grantedMeanwhile: the second client was granted the lock while a request of
// the first, which waited for it too, was delayed.
func grantedMeanwhile(res *Result, who cast) bool {
	link := res.History.Clients[who.client[0]] + "->"
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		if f.Kind != sim.Delay || !strings.HasPrefix(f.On[0], link) || !waitsAt(res, who.client[0], r.Struck) {
			return false
		}
		by, err := f.By.Resolve(res.Params.Spans)
		return err == nil && anyOp(res, who.client[1], func(o *checker.Op) bool {
			at := granted(o)
			return o.Kind == checker.Acquire && at.Known() && r.Struck <= at.At && at.At < r.Struck.Add(by)
		})
	})
}

// wrongWhenGranted: a fault had set the client's wall clock wrong, and it was
// when the client was granted the lock.
func wrongWhenGranted(res *Result, who cast) bool {
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		wrong := f.Kind == sim.ClockStep || f.Kind == sim.ClockOffset || f.Kind == sim.ClockRate
		return wrong && f.On[0] == res.History.Clients[who.client[0]] && anyOp(res, who.client[0], func(o *checker.Op) bool {
			at := granted(o)
			return o.Kind == checker.Acquire && at.Known() && r.Struck <= at.At && at.At < r.Healed
		})
	})
}

// renewerStalled: a fault stopped the client's renewer, and nothing else of
// it, when the client held the lock, and for TTL at least.
func renewerStalled(res *Result, who cast) bool {
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		return f.Kind == sim.Stall && f.On[0] == res.History.Clients[who.client[0]]+".renewer" &&
			anyOp(res, who.client[0], func(o *checker.Op) bool {
				return acquired(o) && r.Struck >= o.Return.At && r.Struck < o.BelievesUntil.At &&
					min(r.Healed, res.History.End) >= r.Struck.Add(res.History.TTL)
			})
	})
}

// outlastedTTL: the client called something under a tenure when TTL had passed
// since it asked for it.
func outlastedTTL(res *Result, who cast) bool {
	return anyOp(res, who.client[0], func(o *checker.Op) bool {
		a := res.History.Op(o.Tenure)
		return o.Kind != checker.Renew && a != nil && acquired(a) && o.Invoke.At >= asked(a).Add(res.History.TTL)
	})
}

// askedTogether: both clients called acquire within the shortest time in which
// a request can be answered.
func askedTogether(res *Result, who cast) bool {
	round := 2 * res.Params.LatencyMin
	return anyOp(res, who.client[0], func(a *checker.Op) bool {
		return a.Kind == checker.Acquire && anyOp(res, who.client[1], func(b *checker.Op) bool {
			return b.Kind == checker.Acquire && a.Invoke.At <= b.Invoke.At.Add(round) && b.Invoke.At <= a.Invoke.At.Add(round)
		})
	})
}

// cameAndWent: the second client was granted the lock and sent its release
// while the first was stopped.
func cameAndWent(res *Result, who cast) bool {
	return stopped(res, who.client[0], func(r *sim.FaultReport) bool {
		return anyOp(res, who.client[1], func(o *checker.Op) bool {
			a := res.History.Op(o.Tenure)
			return o.Kind == checker.Release && a != nil && granted(a).At >= r.Struck && o.Invoke.At <= r.Healed
		})
	})
}

// writeArrivedLate: a write of the client arrived after the client had stopped
// waiting for it.
func writeArrivedLate(res *Result, who cast) bool {
	return anyOp(res, who.client[0], func(o *checker.Op) bool {
		return sameKind(o, checker.Write) && (o.Effect.Known() && o.Effect.At > o.Invoke.At.Add(res.Params.CallTimeout) ||
			heldUntil(res, o, o.Invoke.At.Add(res.Params.CallTimeout)))
	})
}

// arrivedAfterEnd: an operation of the client arrived after the lock service
// had ended the tenure under which it was issued.
func arrivedAfterEnd(kind checker.Kind) func(*Result, cast) bool {
	return func(res *Result, who cast) bool {
		return anyOp(res, who.client[0], func(o *checker.Op) bool {
			a := res.History.Op(o.Tenure)
			return sameKind(o, kind) && a != nil && (o.Effect.Known() && a.Ended.Before(o.Effect) ||
				a.Ended.Known() && heldUntil(res, o, a.Ended.At))
		})
	}
}

// heldUntil reports whether the message of an operation that nobody decided
// was held up in the network until some moment and then went on. That is how a
// statement of a transaction arrives whose connection is closed behind it.
func heldUntil(res *Result, o *checker.Op, at clock.Time) bool {
	return !o.Effect.Known() && struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		return f.Kind == sim.Delay && f.By.IsZero() && strings.HasPrefix(f.On[0], res.History.Clients[o.Client]+"->") &&
			o.Invoke.At <= r.Struck && r.Struck <= o.Invoke.At.Add(res.Params.CallTimeout) &&
			at <= r.Healed && r.Healed <= res.History.End
	})
}

// releaseOvertaken: a release of the client was carried out after the client
// had been granted the lock anew.
func releaseOvertaken(res *Result, who cast) bool {
	return anyOp(res, who.client[0], func(o *checker.Op) bool {
		return o.Kind == checker.Release && o.Effect.Known() && anyOp(res, who.client[0], func(a *checker.Op) bool {
			return a.Kind == checker.Acquire && o.Invoke.Before(a.Invoke) && granted(a).Before(o.Effect)
		})
	})
}

// neverLearned: an operation of the client took effect, and the client went on
// without its answer. One that crashed while it waited learned nothing either,
// but that is another story.
func neverLearned(kind checker.Kind) func(*Result, cast) bool {
	return func(res *Result, who cast) bool {
		client := who.client[0]
		return anyOp(res, client, func(o *checker.Op) bool {
			if !sameKind(o, kind) || o.Outcome != checker.Unknown || !tookEffect(o) {
				return false
			}
			return anyOp(res, client, func(next *checker.Op) bool { return o.Invoke.Before(next.Invoke) }) &&
				!struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
					return f.Kind == sim.Crash && f.On[0] == res.History.Clients[client] && r.Struck >= o.Invoke.At
				})
		})
	}
}

// tookEffect reports whether the operation did what it is for.
func tookEffect(o *checker.Op) bool {
	switch o.Kind {
	case checker.Acquire:
		return o.Granted.Known()
	case checker.Write, checker.Append:
		return o.Decision == checker.Accepted
	}
	return o.Effect.Known()
}

// sameKind counts an append as a write.
func sameKind(o *checker.Op, kind checker.Kind) bool {
	return o.Kind == kind || kind == checker.Write && o.Kind == checker.Append
}

// serverCrashed: a fault crashed the server while the client held the lock, or
// while nobody did.
func serverCrashed(held bool) func(*Result, cast) bool {
	return func(res *Result, who cast) bool {
		return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
			if f.Kind != sim.Crash || f.On[0] != who.server {
				return false
			}
			holds := func(o *checker.Op) bool {
				return o.Kind == checker.Acquire && granted(o).At <= r.Struck && r.Struck <= o.Ended.At &&
					(!acquired(o) || r.Struck < o.BelievesUntil.At)
			}
			if held {
				return anyOp(res, who.client[0], holds)
			}
			for client := range res.History.Clients {
				if anyOp(res, int32(client), holds) {
					return false
				}
			}
			return true
		})
	}
}

// unreplicated: a failover struck after the server had carried out so many of
// the client's acquires or releases, and before any of them could have reached
// another server: sooner than a message takes, or behind a partition.
func unreplicated(kind checker.Kind, many int) func(*Result, cast) bool {
	return func(res *Result, who cast) bool {
		return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
			if f.Kind != sim.Failover || f.On[0] != who.server {
				return false
			}
			n := 0
			anyOp(res, who.client[0], func(o *checker.Op) bool {
				done := o.Effect
				if kind == checker.Acquire {
					done = granted(o)
				}
				if o.Kind == kind && done.Known() && done.At <= r.Struck &&
					(r.Struck < done.At.Add(res.Params.LatencyMin) || partitioned(res, who.server, done.At, r.Struck)) {
					n++
				}
				return false
			})
			return n >= many
		})
	}
}

// partitioned reports whether a partition stood around the server all the time.
func partitioned(res *Result, server string, from, to clock.Time) bool {
	return struck(res, func(f *sim.Fault, r *sim.FaultReport) bool {
		return f.Kind == sim.Partition && len(f.On) == 1 && f.On[0] == server && r.Struck <= from && to <= r.Healed
	})
}

// acquired reports whether the operation is an acquire that succeeded as far
// as its client knows.
func acquired(o *checker.Op) bool { return o.Kind == checker.Acquire && o.Outcome == checker.OK }

// granted is when the lock was the acquire's: as the lock service has it or,
// where there is none, when the client was told.
func granted(o *checker.Op) checker.Instant {
	if o.Granted.Known() || o.Outcome != checker.OK {
		return o.Granted
	}
	return o.Return
}

// asked is when the acquire that succeeded was sent.
func asked(o *checker.Op) clock.Time {
	if o.Sent.At != 0 {
		return o.Sent.At
	}
	return o.Invoke.At
}

// clientNumber finds a client by its name: client-2 is number 1.
func clientNumber(name string, clients int) (int32, bool) {
	digits, ok := strings.CutPrefix(name, "client-")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 || n > clients || strconv.Itoa(n) != digits {
		return 0, false
	}
	return int32(n - 1), true
}
