package scenarios

import (
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
// that survives.
type witnessForm struct {
	ending string // what follows the client's name
	holds  func(res *Result, client int32) bool
}

func witnessForms() []witnessForm {
	return []witnessForm{
		{" was paused past its ttl while it held the lock", pausedPastTTL},
		{"'s write arrived after its timeout", writeArrivedLate},
	}
}

// WitnessForms lists the sentences that a scenario may use as witnesses, with
// client-1 for any client.
func WitnessForms() []string {
	var out []string
	for _, f := range witnessForms() {
		out = append(out, "client-1"+f.ending)
	}
	return out
}

// witness is a sentence of a scenario with its client resolved.
type witness struct {
	text   string
	client int32
	holds  func(res *Result, client int32) bool
}

// parseWitnesses reads a scenario's sentences. An unknown one is an error that
// lists the vocabulary.
func parseWitnesses(ws []Witness, clients int) ([]witness, error) {
	var out []witness
	for _, w := range ws {
		form, name := findForm(w.Text)
		if form == nil {
			return nil, w.Pos.Errorf("unknown witness %q; known are: %s", w.Text, strings.Join(WitnessForms(), "; "))
		}
		client, ok := clientNumber(name, clients)
		if !ok {
			return nil, w.Pos.Errorf("witness %q: no client is called %q; this run has client-1 to client-%d", w.Text, name, clients)
		}
		out = append(out, witness{text: w.Text, client: client, holds: form.holds})
	}
	return out, nil
}

func findForm(text string) (*witnessForm, string) {
	for _, f := range witnessForms() {
		if name, ok := strings.CutSuffix(text, f.ending); ok {
			return &f, name
		}
	}
	return nil, ""
}

// observe asks every witness about a run.
func (r *Runner) observe(res *Result) []WitnessResult {
	if len(r.witness) == 0 {
		return nil
	}
	out := make([]WitnessResult, len(r.witness))
	for i, w := range r.witness {
		out[i] = WitnessResult{Text: w.text, Occurred: w.holds(res, w.client)}
	}
	return out
}

// pausedPastTTL: a fault stopped the client while it believed to hold the
// lock, and it was still stopped when TTL had passed since it asked for it.
func pausedPastTTL(res *Result, client int32) bool {
	for _, f := range res.Faults {
		kind := res.Plan.Faults[f.Index].Kind
		stops := kind == sim.Pause || kind == sim.Freeze || kind == sim.Stall
		if !f.Fired || !stops || !strings.HasPrefix(res.Plan.Faults[f.Index].On[0], res.History.Clients[client]) {
			continue
		}
		for i := range res.History.Ops {
			o := &res.History.Ops[i]
			if o.Kind != checker.Acquire || o.Client != client || o.Outcome != checker.OK {
				continue
			}
			stoppedInside := f.Struck >= o.Return.At && f.Struck < o.BelievesUntil.At
			if stoppedInside && f.Healed >= asked(o).Add(res.History.TTL) {
				return true
			}
		}
	}
	return false
}

// asked is when the acquire that succeeded was sent.
func asked(o *checker.Op) clock.Time {
	if o.Sent.At != 0 {
		return o.Sent.At
	}
	return o.Invoke.At
}

// writeArrivedLate: a write of the client reached the resource after the
// client had stopped waiting for it.
func writeArrivedLate(res *Result, client int32) bool {
	for i := range res.History.Ops {
		o := &res.History.Ops[i]
		if o.Client == client && (o.Kind == checker.Write || o.Kind == checker.Append) && o.Effect.Known() &&
			o.Effect.At > o.Invoke.At.Add(res.Params.CallTimeout) {
			return true
		}
	}
	return false
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
