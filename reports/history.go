package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/anishathalye/porcupine"

	"locklab/checker"
)

// History prints the judgement of a recorded history.
func History(w io.Writer, h *checker.History, r checker.Report, boxes []checker.BlackBox, style Style) error {
	b := &block{style: style}
	b.item("history", MarkNone, fmt.Sprintf("%d operations of %d clients", len(h.Ops), len(h.Clients)))
	if len(r.Findings) == 0 {
		b.item("findings", MarkNone, "none")
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		b.item("findings", MarkFinding, fmt.Sprintf("%s  %s: %s", seconds(f.At), f.Kind, f.Text))
	}
	mark := func(bad bool) Mark {
		if bad {
			return MarkFinding
		}
		return MarkNone
	}
	b.item("verdict", mark(r.Verdict >= checker.VerdictStuck), r.Verdict.String())
	b.item("lock", mark(r.Lock == checker.LockBroken), r.Lock.String())
	for i := range boxes {
		b.item("porcupine", MarkNone, boxes[i].Name+": "+opinion(boxes[i].Result))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// opinion is porcupine's answer in a word.
func opinion(r porcupine.CheckResult) string {
	switch r {
	case porcupine.Ok:
		return "linearizable"
	case porcupine.Illegal:
		return "not linearizable"
	}
	return "no answer in time"
}

// historyJSON is the judgement of a history for machines.
type historyJSON struct {
	Schema     int           `json:"schema"`
	Clients    []string      `json:"clients"`
	Operations int           `json:"operations"`
	Verdict    string        `json:"verdict"`
	Lock       string        `json:"lock"`
	Findings   []findingJSON `json:"findings"`
	Porcupine  object        `json:"porcupine"`
	Problems   []string      `json:"problems"` // lines that could not be read
}

// HistoryJSON writes the judgement of a recorded history as one object.
func HistoryJSON(w io.Writer, h *checker.History, r checker.Report, boxes []checker.BlackBox, problems []error) error {
	out := historyJSON{Schema: schema, Clients: h.Clients, Operations: len(h.Ops), Verdict: r.Verdict.String(), Lock: r.Lock.String(),
		Findings: []findingJSON{}, Porcupine: object{}, Problems: []string{}}
	for i := range r.Findings {
		out.Findings = append(out.Findings, findingOf(h, &r.Findings[i]))
	}
	for i := range boxes {
		out.Porcupine = append(out.Porcupine, member{boxes[i].Name, opinion(boxes[i].Result)})
	}
	for _, p := range problems {
		out.Problems = append(out.Problems, p.Error())
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&out); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}
