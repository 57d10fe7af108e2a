package scenarios

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"locklab/sim"
)

// Limits of a plan.
const (
	faultsMax  = 1_000
	choicesMax = 9_000
)

// PlanFile is one run, complete: run --plan and the searches write it, replay
// and shrink read it. It needs no library, so that a later version of the
// scenario cannot change what it replays.
type PlanFile struct {
	Scenario  string // the scenario's name
	Title     string // "" for none
	Design    string
	Resource  string
	Engine    string // "" for the default
	Seed      uint64
	Params    Params
	Witnesses []Witness
	Plan      sim.Plan

	// What the run showed. Each may be "" where it has not been run.
	TraceHash string // 16 hexadecimal digits
	Verdict   string // one of Verdicts
	Lock      string // one of LockAnswers

	faults faultPositions // where the plan's faults stand, for Locate
}

// Locate turns a mistake in the file's own plan that showed only when the run
// was set up, a *sim.FaultError, into an *InputError at the field that is
// wrong. Any other error comes back unchanged.
func (f *PlanFile) Locate(err error) error { return f.faults.locate(err) }

// Case returns the case that the file describes. Its scenario is only what the
// file says of it: a later library cannot change a replay.
func (f *PlanFile) Case() (Case, error) {
	design, err := FindDesign(f.Design)
	if err != nil {
		return Case{}, err
	}
	resource, err := FindResource(f.Resource)
	if err != nil {
		return Case{}, err
	}
	if err := CheckEngineName(f.Engine); err != nil {
		return Case{}, err
	}
	s := &Scenario{Name: f.Scenario, Title: f.Title, Params: f.Params, Plan: f.Plan, Witnesses: f.Witnesses}
	return Case{Scenario: s, Design: design, Resource: resource, Params: f.Params, Plan: f.Plan, Engine: f.Engine}, nil
}

// LoadPlanFile reads a plan file. Every error is an *InputError of one line.
func LoadPlanFile(data []byte, file string) (*PlanFile, error) {
	root, err := parseFile(data, file)
	if err != nil {
		return nil, err
	}
	f := &PlanFile{Params: DefaultParams()}
	params := paramReader{params: &f.Params}
	var plan planReader
	err = root.mapping("a plan file", []key{
		{"scenario", func(n yamlNode) error { return n.readName(&f.Scenario) }},
		{"title", func(n yamlNode) error { return n.readText(&f.Title) }},
		{"design", func(n yamlNode) error { return n.readName(&f.Design) }},
		{"resource", func(n yamlNode) error { return n.readName(&f.Resource) }},
		{"engine", func(n yamlNode) error { return n.readName(&f.Engine) }},
		{"seed", func(n yamlNode) error { return readSeed(n, &f.Seed) }},
		{"params", params.all},
		{"witnesses", func(n yamlNode) error { return readWitnesses(n, &f.Witnesses) }},
		{"plan", plan.read},
		{"choices", plan.readChoices},
		{"trace_hash", func(n yamlNode) error { return readHash(n, &f.TraceHash) }},
		{"verdict", func(n yamlNode) error { return n.readWord("verdict", Verdicts(), &f.Verdict) }},
		{"lock", func(n yamlNode) error { return n.readWord("lock answer", LockAnswers(), &f.Lock) }},
	})
	if err != nil {
		return nil, err
	}
	for _, need := range []struct{ key, value string }{{"scenario", f.Scenario}, {"design", f.Design}, {"resource", f.Resource}} {
		if need.value == "" {
			return nil, root.pos().Errorf("a plan file needs %s:; write one with locklab run --plan", need.key)
		}
	}
	if err := params.check(root.pos()); err != nil {
		return nil, err
	}
	if f.Plan, err = plan.finish(&f.Params); err != nil {
		return nil, err
	}
	f.faults = plan.faults
	return f, nil
}

func readSeed(n yamlNode, out *uint64) error {
	text, err := n.scalar()
	if err != nil {
		return err
	}
	*out, err = strconv.ParseUint(text, 10, 64)
	if err != nil {
		return n.pos().Errorf("cannot read the seed %q; a seed is a whole number from 0 to 18446744073709551615", text)
	}
	return nil
}

func readHash(n yamlNode, out *string) error {
	isHash := func(s string) bool { return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == "" }
	return n.readMatching(isHash, "a trace hash is 16 hexadecimal digits", out)
}

// planReader reads a plan and remembers where everything stands, for what can
// only be checked when the parameters are known.
type planReader struct {
	plan   sim.Plan
	faults faultPositions
}

// faultPositions tells where the faults of a plan stand, in the plan's order.
type faultPositions []faultPos

// locate finds the field that a *sim.FaultError is about.
func (l faultPositions) locate(err error) error {
	fe := (*sim.FaultError)(nil)
	if !errors.As(err, &fe) || fe.Index < 0 || fe.Index >= len(l) {
		return err
	}
	return l[fe.Index].of(fe.Field).Errorf("%s", fe.Err)
}

type faultPos struct {
	whole  Pos
	fields map[string]Pos
	names  []namePos // the processes that it names, in any field
}

// namePos is a process's name where it stands in a file.
type namePos struct {
	name string
	pos  Pos
}

func (f *faultPos) of(field string) Pos {
	if pos, ok := f.fields[field]; ok {
		return pos
	}
	return f.whole
}

func (r *planReader) read(n yamlNode) error {
	return n.list("a fault", func(item yamlNode) error {
		if len(r.faults) == faultsMax {
			return item.pos().Errorf("a plan has at most %d faults", faultsMax)
		}
		fault, pos, err := readFault(item)
		r.plan.Faults = append(r.plan.Faults, fault)
		r.faults = append(r.faults, pos)
		return err
	})
}

// finish checks the faults, the clients that they name and the parameters that
// their spans name.
func (r *planReader) finish(params *Params) (sim.Plan, error) {
	for i := range r.plan.Faults {
		f, pos := &r.plan.Faults[i], &r.faults[i]
		if err := f.Validate(); err != nil {
			fe := (*sim.FaultError)(nil)
			if errors.As(err, &fe) {
				return sim.Plan{}, pos.of(fe.Field).Errorf("%s", fe.Err)
			}
			return sim.Plan{}, pos.whole.Errorf("%s", err)
		}
		for _, n := range pos.names {
			if err := checkClient(n.name, params.Clients); err != nil {
				return sim.Plan{}, n.pos.Errorf("%s", err)
			}
		}
		for _, s := range faultSpans(f) {
			if err := checkSpan(*s.span, params); err != nil {
				return sim.Plan{}, pos.of(s.field).Errorf("%s: %s", s.field, err)
			}
		}
	}
	return r.plan, nil
}

// checkSections refuses the place of a section that no client comes to: its
// fault would never strike. A plan file is a record of a run, whatever its
// faults did in it, and may hold one.
func (r *planReader) checkSections(sections int) error {
	for i := range r.plan.Faults {
		t, pos := &r.plan.Faults[i].Trigger, &r.faults[i]
		for _, at := range []struct {
			field string
			place sim.PlacePattern
		}{{"before", t.Before}, {"after", t.After}} {
			if int(at.place.Section) > sections {
				return pos.of(at.field).Errorf("no client comes to section#%d; sections: %d", at.place.Section, sections)
			}
		}
	}
	return nil
}

// checkClient refuses the name of a client that there is none of. Other
// processes are known when a run is set up.
func checkClient(name string, clients int) error {
	if _, ok := clientNumber(name, clients); ok || !strings.HasPrefix(name, "client-") {
		return nil
	}
	return fmt.Errorf("no client is called %q; clients: %d gives %s", name, clients, clientNames(clients))
}

// clientNames says for people which clients there are.
func clientNames(clients int) string {
	switch clients {
	case 1:
		return "client-1 alone"
	case 2:
		return "client-1 and client-2"
	}
	return fmt.Sprintf("client-1 to client-%d", clients)
}

type namedSpan struct {
	field string
	span  *sim.Span
}

func faultSpans(f *sim.Fault) []namedSpan {
	return []namedSpan{
		{"at", &f.Trigger.At}, {"for", &f.For}, {"at_most", &f.AtMost}, {"by", &f.By}, {"restart", &f.Restart},
	}
}

func checkSpan(s sim.Span, params *Params) error {
	if _, known := params.Spans(s.Param); s.Param != "" && !known {
		var names []string
		for _, q := range parameters() {
			if q.length != nil {
				names = append(names, q.Name)
			}
		}
		return errors.New(unknown("duration", s.Param, names))
	}
	d, err := s.Resolve(params.Spans)
	if err == nil && (d > durationMax || d < -durationMax) {
		err = fmt.Errorf("%s is too long; at most %s", s, plainHours(durationMax))
	}
	return err
}

func readFault(n yamlNode) (sim.Fault, faultPos, error) {
	var f sim.Fault
	pos := faultPos{whole: n.pos(), fields: map[string]Pos{}}
	trigger := "" // the key that gave it
	span := func(out *sim.Span) func(yamlNode) error {
		return func(n yamlNode) error { return readSpan(n, out) }
	}
	when := func(name string, read func(yamlNode, *sim.Trigger) error) func(yamlNode) error {
		return func(n yamlNode) error {
			if trigger != "" {
				return n.pos().Errorf("a fault strikes once, so %s and %s exclude each other; write two faults", trigger, name)
			}
			trigger = name
			return read(n, &f.Trigger)
		}
	}
	keys := []key{
		{"fault", func(n yamlNode) error { return readKind(n, &f.Kind) }},
		{"on", func(n yamlNode) error { return readActors(n, &f.On, &pos.names) }},
		{"from", func(n yamlNode) error { return readActors(n, &f.From, &pos.names) }},
		{"at", when("at", func(n yamlNode, t *sim.Trigger) error { return readSpan(n, &t.At) })},
		{"before", when("before", func(n yamlNode, t *sim.Trigger) error { return readPlace(n, &t.Before) })},
		{"after", when("after", readAfter)},
		{"step", when("step", func(n yamlNode, t *sim.Trigger) error { return readStep(n, &t.Step) })},
		{"for", span(&f.For)},
		{"until", func(n yamlNode) error { return readMilestone(n, &f.Until) }},
		{"at_most", span(&f.AtMost)},
		{"by", span(&f.By)},
		{"rate", func(n yamlNode) error { return readRate(n, &f.Rate) }},
		{"count", func(n yamlNode) error { return readCount(n, &f.Count) }},
		{"restart", func(n yamlNode) error { return readRestart(n, &f.Restart) }},
		{"one_way", func(n yamlNode) error { return readBool(n, &f.OneWay) }},
		{"mode", func(n yamlNode) error { return readField(n, &f.Mode) }},
		{"monotonic", func(n yamlNode) error { return readField(n, &f.Monotonic) }},
		{"wall", func(n yamlNode) error { return readField(n, &f.Wall) }},
		{"key", func(n yamlNode) error { return readField(n, &f.Key) }},
		{"value", func(n yamlNode) error { return readField(n, &f.Value) }},
	}
	for i, k := range keys {
		keys[i].read = func(n yamlNode) error {
			pos.fields[k.name] = n.pos()
			return k.read(n)
		}
	}
	err := n.mapping("a fault", keys)
	if err == nil && f.Kind == sim.FaultNone {
		err = pos.whole.Errorf("this needs fault: which one, such as fault: pause")
	}
	if err == nil {
		err = checkLengths(&f, &pos)
	}
	t := &f.Trigger
	for _, n := range []struct{ field, name string }{{"before", t.Before.Proc}, {"after", t.After.Proc}, {"after", t.When.Who},
		{"step", t.Step.Proc}, {"until", f.Until.Who}} {
		if n.name != "" {
			pos.names = append(pos.names, namePos{n.name, pos.of(n.field)})
		}
	}
	return f, pos, err
}

// checkLengths refuses a length of nothing that was written out: to the plan it
// would mean that no length was given, so for ever.
func checkLengths(f *sim.Fault, pos *faultPos) error {
	for _, s := range faultSpans(f) {
		at, written := pos.fields[s.field]
		if !written || s.field == "at" || s.field == "restart" {
			continue
		}
		if s.span.IsZero() {
			return at.Errorf("%s is no time at all; write a length such as 2s or 1.5*ttl, or leave it out", s.field)
		}
	}
	return nil
}

func readKind(n yamlNode, out *sim.FaultKind) error {
	var name string
	err := n.readWord("fault", sim.FaultNames(), &name)
	if err == nil {
		*out, _ = sim.ParseFaultKind(name)
	}
	return err
}

func readSpan(n yamlNode, out *sim.Span) error {
	text, err := n.scalar()
	if err != nil {
		return err
	}
	return parseSpan(n.pos(), text, out)
}

func parseSpan(pos Pos, text string, out *sim.Span) error {
	s, err := sim.ParseSpan(text)
	if err != nil {
		return pos.Errorf("%s", err)
	}
	*out = s
	return nil
}

// readActors reads whom a fault strikes: processes, nodes, tasks and links. It
// also notes the processes that these belong to.
func readActors(n yamlNode, out *[]string, names *[]namePos) error {
	return n.oneOrMore("a name", func(item yamlNode) error {
		text, err := item.scalar()
		if err != nil {
			return err
		}
		from, to, link := strings.Cut(text, "->")
		from, to = strings.TrimSpace(from), strings.TrimSpace(to)
		if !isActor(from) || link && !isActor(to) {
			return item.pos().Errorf("cannot read the name %q; write it like client-1, redis-4, client-1.renewer or client-1->storage", text)
		}
		for _, name := range []string{from, to} {
			if process, _, _ := strings.Cut(name, "."); process != "" {
				*names = append(*names, namePos{process, item.pos()})
			}
		}
		if link {
			from += "->" + to
		}
		*out = append(*out, from)
		return nil
	})
}

func readPlace(n yamlNode, out *sim.PlacePattern) error {
	text, err := n.scalar()
	if err != nil {
		return err
	}
	p, err := sim.ParsePlace(text)
	if err == nil && !isActor(p.Proc) {
		err = fmt.Errorf("place %q does not begin with a process name; write it like client-1/section#1/write/op#1", text)
	}
	if err != nil {
		return n.pos().Errorf("%s", err)
	}
	*out = p
	return nil
}

// readAfter reads a place or a milestone: only milestones have an owner or
// speak of the lock.
func readAfter(n yamlNode, t *sim.Trigger) error {
	text, err := n.scalar()
	if err != nil {
		return err
	}
	if strings.HasPrefix(text, "lock ") || strings.Contains(text, "'s ") {
		return readMilestone(n, &t.When)
	}
	return readPlace(n, &t.After)
}

func readMilestone(n yamlNode, out *sim.Milestone) error {
	text, err := n.scalar()
	if err != nil {
		return err
	}
	m, err := sim.ParseMilestone(text)
	if err == nil && !isActor(m.Who) {
		err = fmt.Errorf("cannot read the name %q in the moment %q; write it like client-2's first accepted write", m.Who, text)
	}
	if err != nil {
		return n.pos().Errorf("%s", err)
	}
	*out = m
	return nil
}

func readStep(n yamlNode, out *sim.Step) error {
	text, err := n.scalar()
	if err != nil {
		return err
	}
	proc, number, ok := strings.Cut(text, "#")
	v, err := strconv.ParseInt(number, 10, 32)
	if !ok || err != nil || v < 1 || !isActor(proc) {
		return n.pos().Errorf("cannot read the step %q; write the process and the number of its effect, like client-1#17", text)
	}
	*out = sim.Step{Proc: proc, N: int32(v)}
	return nil
}

// readRate reads parts per billion, or a percentage.
func readRate(n yamlNode, out *int64) error {
	text, err := n.scalar()
	if err != nil {
		return err
	}
	rate, ok := parseRate(text)
	if !ok {
		return n.pos().Errorf("cannot read the rate %q; write parts per billion like 5000000, or a percentage like 0.5%%", text)
	}
	*out = rate
	return nil
}

func parseRate(text string) (rate int64, ok bool) {
	percent, isPercent := strings.CutSuffix(text, "%")
	if !isPercent {
		v, err := strconv.ParseInt(text, 10, 64)
		return v, err == nil
	}
	// No exponents and no endless digits: big numbers would cost their length.
	if len(percent) > 20 || strings.Trim(percent, "0123456789.-+") != "" {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(percent)
	if !ok {
		return 0, false
	}
	r.Mul(r, big.NewRat(10_000_000, 1)) // parts per billion in a percent
	return r.Num().Int64(), r.IsInt() && r.Num().IsInt64()
}

func readCount(n yamlNode, out *int) error {
	text, err := n.scalar()
	if err != nil {
		return err
	}
	v, err := strconv.ParseInt(text, 10, 32)
	if err != nil || v < 1 {
		return n.pos().Errorf("cannot read the count %q; it is a whole number from 1", text)
	}
	*out = int(v)
	return nil
}

// readRestart reads "after 2s", "2s" or "never".
func readRestart(n yamlNode, out *sim.Span) error {
	text, err := n.scalar()
	if err != nil || text == "never" {
		return err
	}
	if err := parseSpan(n.pos(), strings.TrimPrefix(text, "after "), out); err != nil {
		return err
	}
	if out.IsZero() {
		return n.pos().Errorf("restart needs some time, such as after 2s; or write never")
	}
	return nil
}

func readBool(n yamlNode, out *bool) error {
	var text string
	err := n.readWord("answer", []string{"true", "false"}, &text)
	*out = text == "true"
	return err
}

// readField reads a word that Validate knows more about. An empty one would
// look left out to it.
func readField(n yamlNode, out *string) error {
	text, err := n.scalar()
	if err == nil && text == "" {
		err = n.pos().Errorf("want a word, got an empty one; leave the key out instead")
	}
	*out = text
	return err
}

func (r *planReader) readChoices(n yamlNode) error {
	return n.list("a choice", func(item yamlNode) error {
		if len(r.plan.Choices) == choicesMax {
			return item.pos().Errorf("a plan has at most %d choices", choicesMax)
		}
		var c sim.Override
		valued := false
		err := item.mapping("a choice", []key{
			{"at", func(n yamlNode) error { return readPlace(n, &c.At) }},
			{"value", func(n yamlNode) error { valued = true; return readValue(n, &c.Value) }},
		})
		if err == nil && (c.At.IsZero() || !valued) {
			err = item.pos().Errorf("a choice needs at: and value:, like {at: client-1/section#1/acquire/op#1/jitter, value: 1500000}")
		}
		r.plan.Choices = append(r.plan.Choices, c)
		return err
	})
}

func readValue(n yamlNode, out *int64) error {
	text, err := n.scalar()
	if err != nil {
		return err
	}
	if *out, err = strconv.ParseInt(text, 10, 64); err != nil {
		return n.pos().Errorf("cannot read the value %q; it is a whole number in the choice's own unit, nanoseconds for durations", text)
	}
	return nil
}

// MarshalPlanFile writes a plan file, for people to read and LoadPlanFile to
// read back.
func MarshalPlanFile(f *PlanFile) []byte {
	var w yamlWriter
	w.field("", "scenario", quote(f.Scenario))
	w.field("", "title", quote(f.Title))
	w.field("", "design", quote(f.Design))
	w.field("", "resource", quote(f.Resource))
	w.field("", "engine", quote(f.Engine))
	w.line("seed: %d", f.Seed)
	if changed := f.Params.Changed(); len(changed) > 0 {
		w.line("params:")
		for _, s := range changed {
			w.field("  ", s.Name, s.Value)
		}
	}
	if len(f.Witnesses) > 0 {
		w.line("witnesses:")
		for _, witness := range f.Witnesses {
			w.line("  - %s", quote(witness.Text))
		}
	}
	w.plan(f.Plan)
	w.field("", "trace_hash", doubleQuote(f.TraceHash))
	w.field("", "verdict", f.Verdict)
	w.field("", "lock", f.Lock)
	return []byte(w.String())
}

// MarshalPlan writes a plan as scenario files spell it, its choices included.
func MarshalPlan(p sim.Plan) []byte {
	var w yamlWriter
	w.plan(p)
	return []byte(w.String())
}

// yamlWriter writes the little YAML that plans need.
type yamlWriter struct{ strings.Builder }

func (w *yamlWriter) line(format string, args ...any) {
	fmt.Fprintf(w, format+"\n", args...)
}

// field writes a key, unless its value is empty.
func (w *yamlWriter) field(indent, key, value string) {
	if value != "" {
		w.line("%s%s: %s", indent, key, value)
	}
}

func (w *yamlWriter) plan(p sim.Plan) {
	if len(p.Faults) == 0 {
		w.line("plan: []")
	} else {
		w.line("plan:")
	}
	for i := range p.Faults {
		w.fault(&p.Faults[i])
	}
	if len(p.Choices) > 0 {
		w.line("choices:")
	}
	for _, c := range p.Choices {
		w.line("  - {at: %s, value: %d}", quote(c.At.String()), c.Value)
	}
}

func (w *yamlWriter) fault(f *sim.Fault) {
	const in = "    "
	w.line("  - fault: %s", f.Kind)
	w.field(in, "on", actors(f.On))
	w.field(in, "from", actors(f.From))
	w.trigger(in, &f.Trigger)
	w.field(in, "for", span(f.For))
	w.field(in, "until", quote(f.Until.String()))
	w.field(in, "at_most", span(f.AtMost))
	w.field(in, "by", span(f.By))
	if f.Rate != 0 {
		w.line("%srate: %d", in, f.Rate)
	}
	if f.Count != 0 {
		w.line("%scount: %d", in, f.Count)
	}
	switch {
	case !f.Restart.IsZero():
		w.line("%srestart: after %s", in, f.Restart)
	case f.Kind == sim.Crash:
		w.line("%srestart: never", in)
	}
	if f.OneWay {
		w.line("%sone_way: true", in)
	}
	w.field(in, "mode", quote(f.Mode))
	w.field(in, "monotonic", quote(f.Monotonic))
	w.field(in, "wall", quote(f.Wall))
	w.field(in, "key", quote(f.Key))
	w.field(in, "value", quote(f.Value))
}

func (w *yamlWriter) trigger(in string, t *sim.Trigger) {
	switch {
	case !t.Before.IsZero():
		w.field(in, "before", quote(t.Before.String()))
	case !t.After.IsZero():
		w.field(in, "after", quote(t.After.String()))
	case t.When.Kind != sim.MilestoneNone:
		w.field(in, "after", quote(t.When.String()))
	case t.Step.N > 0:
		w.line("%sstep: %s", in, quote(fmt.Sprintf("%s#%d", t.Step.Proc, t.Step.N)))
	default:
		w.line("%sat: %s", in, t.At)
	}
}

func actors(names []string) string {
	if len(names) == 1 {
		return quote(names[0])
	}
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quote(n)
	}
	if len(quoted) == 0 {
		return ""
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// span writes a length that is only written when there is one.
func span(s sim.Span) string {
	if s.IsZero() {
		return ""
	}
	return s.String()
}

// plainChars are the characters that need no quotes in YAML wherever they
// stand, after a first letter.
const plainChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./> '#"

// quote writes a text so that YAML reads it back as that text.
func quote(s string) string {
	plain := s == "" || strings.Trim(s[:1], plainChars[:52]) == "" && strings.Trim(s, plainChars) == "" &&
		!strings.Contains(s, " #") && !strings.HasSuffix(s, " ")
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		plain = false
	}
	if plain {
		return s
	}
	return doubleQuote(s)
}

// doubleQuote writes a text in double quotes. Go's escapes are YAML's, as long
// as the text is valid UTF-8. An empty text stays empty: field leaves it out.
func doubleQuote(s string) string {
	if s == "" {
		return ""
	}
	return strconv.Quote(strings.ToValidUTF8(s, "?"))
}
