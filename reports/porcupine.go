package reports

import (
	"errors"
	"io"

	"github.com/anishathalye/porcupine"

	"locklab/checker"
	"locklab/scenarios"
)

// Porcupine writes porcupine's own interactive view of a run's history, with
// what only the simulator knows as annotations: faults, grants, beliefs,
// decisions, findings. Of the views it takes the first that porcupine rejects;
// if it rejects none, the one of the critical sections.
func Porcupine(w io.Writer, res *scenarios.Result) error {
	boxes := checker.Porcupine(res.History, checker.PorcupineTimeout)
	if len(boxes) == 0 {
		return errors.New("the history has nothing that porcupine could check")
	}
	box := &boxes[len(boxes)-1]
	for i := range boxes {
		if boxes[i].Result == porcupine.Illegal {
			box = &boxes[i]
			break
		}
	}
	a := annotator{res: res, rank: box.Rank}
	a.faults()
	a.tenures()
	a.decisions()
	a.findings()
	box.Info.AddAnnotations(a.list)
	return porcupine.Visualize(box.Model, box.Info, w)
}

// annotator collects annotations on a view's time line.
type annotator struct {
	res  *scenarios.Result
	rank func(checker.Instant) int64
	list []porcupine.Annotation
}

func (a *annotator) add(tag string, from, to checker.Instant, text, details, color string) {
	if !to.Known() {
		to = checker.Instant{At: a.res.History.End}
	}
	a.list = append(a.list, porcupine.Annotation{Tag: tag, Start: a.rank(from), End: a.rank(to),
		Description: text, Details: details, BackgroundColor: color, TextColor: "#000000"})
}

// Colours of the annotations (Okabe and Ito's palette, lightened).
const (
	colorFault    = "#f0d0e4"
	colorGrant    = "#cfe8f7"
	colorBelief   = "#d3f0e5"
	colorDecision = "#f5f0b8"
	colorFinding  = "#f7c9a8"
)

func (a *annotator) faults() {
	for _, f := range a.res.Faults {
		if f.Fired {
			fault := &a.res.Plan.Faults[f.Index]
			a.add("faults", checker.Instant{At: f.Struck}, checker.Instant{At: f.Healed}, fault.Kind.String()+" "+fault.On[0], "", colorFault)
		}
	}
}

func (a *annotator) tenures() {
	h := a.res.History
	for i := range h.Ops {
		o := &h.Ops[i]
		if o.Kind != checker.Acquire {
			continue
		}
		client := h.Clients[o.Client]
		if h.KnowsGrants && o.Granted.Known() {
			a.add("lock service", o.Granted, o.Ended, "held by "+client, "ended: "+o.End.String(), colorGrant)
		}
		if o.Outcome == checker.OK {
			a.add(client+" believes", o.Return, o.BelievesUntil, "believes", "ended: "+o.Loss.String(), colorBelief)
		}
	}
}

func (a *annotator) decisions() {
	h := a.res.History
	for i := range h.Ops {
		o := &h.Ops[i]
		if o.Decision == checker.Undecided || !o.Effect.Known() {
			continue
		}
		a.add("resource", o.Effect, o.Effect, o.Kind.String()+" of "+h.Clients[o.Client]+": "+o.Decision.String(), "", colorDecision)
	}
}

func (a *annotator) findings() {
	for i := range a.res.Report.Findings {
		f := &a.res.Report.Findings[i]
		at := checker.Instant{At: f.At}
		a.add("findings", at, at, f.Kind.String(), checker.Explain(a.res.History, f), colorFinding)
	}
}
