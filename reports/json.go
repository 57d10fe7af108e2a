package reports

import (
	"bytes"
	"encoding/json"
	"fmt"

	"locklab/checker"
	"locklab/scenarios"
)

// schema is the version of the objects below. It grows when a field changes
// its meaning or goes, not when one is added.
const schema = 1

// engineNative is the engine of the fast models.
const engineNative = "native"

type runJSON struct {
	Schema    int           `json:"schema"`
	Scenario  string        `json:"scenario"` // "" for a run without one
	Design    string        `json:"design"`
	Resource  string        `json:"resource"`
	Engine    string        `json:"engine"`
	Seed      uint64        `json:"seed"`
	Set       object        `json:"set,omitempty"` // the parameters that are not the scenario's
	Verdict   string        `json:"verdict"`
	Lock      string        `json:"lock"`
	Expected  *expectedJSON `json:"expected"`
	Ended     string        `json:"ended"` // done, horizon, budget, deadlock or panic
	Findings  []findingJSON `json:"findings"`
	Metrics   object        `json:"metrics"`
	Witnesses object        `json:"witnesses"`
	Unfired   []idleFault   `json:"unfired"`
	TraceHash string        `json:"trace_hash"`
	Events    int64         `json:"events"`
}

type expectedJSON struct {
	Verdict string `json:"verdict"`
	Lock    string `json:"lock"` // "" where the answer depends on the seed
	Met     bool   `json:"met"`
	Why     string `json:"why"`
}

type findingJSON struct {
	Kind    string   `json:"kind"`
	At      int64    `json:"at"` // nanoseconds of true time
	Clients []string `json:"clients"`
	Text    string   `json:"text"`
}

func findingOf(h *checker.History, f *checker.Finding) findingJSON {
	j := findingJSON{Kind: f.Kind.String(), At: int64(f.At), Clients: []string{}, Text: findingText(h, f)}
	for _, c := range f.Clients {
		if c >= 0 && int(c) < len(h.Clients) {
			j.Clients = append(j.Clients, h.Clients[c])
		}
	}
	return j
}

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// JSON returns a run for machines, as one object on one line without its end.
func JSON(res *scenarios.Result) ([]byte, error) {
	out := runJSON{
		Schema: schema, Design: res.Design.Name, Resource: res.Resource.Name, Engine: res.EngineName(), Seed: res.Seed,
		Verdict: res.Verdict.String(), Lock: res.Report.Lock.String(), Ended: res.Ended.String(), Findings: []findingJSON{}, Metrics: object{},
		Witnesses: object{}, Unfired: idleFaults(res), TraceHash: fmt.Sprintf("%016x", res.Hash), Events: res.Events,
	}
	if res.Scenario != nil {
		out.Scenario = res.Scenario.Name
		for _, s := range res.Params.Differing(&res.Scenario.Params) {
			out.Set = append(out.Set, member{s.Name, s.Value})
		}
	}
	if e := res.Expectation(); e != nil {
		out.Expected = &expectedJSON{e.Verdict, e.Lock, e.Met(out.Verdict, out.Lock), e.Why}
	}
	for i := range res.Report.Findings {
		out.Findings = append(out.Findings, findingOf(res.History, &res.Report.Findings[i]))
	}
	for _, m := range Metrics(res) {
		out.Metrics = append(out.Metrics, member{m.Name, m.Value})
	}
	for _, x := range res.Witnesses {
		out.Witnesses = append(out.Witnesses, member{x.Text, x.Occurred})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&out); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
