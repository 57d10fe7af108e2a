package checker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"locklab/clock"
)

// ErrTruncated is in the error about a last line that was not written to its
// end, as by a recorder that crashed. Other errors may mean more.
var ErrTruncated = errors.New("the file ends within this line; it is left out")

// ReadHistory reads a history that WriteHistory or another program wrote; name
// is the file's, for the errors. Lines that cannot be read are reported and
// left out, one error for each fault, each with line and field; what remains
// can still be judged. The history is nil if there is no usable header.
func ReadHistory(r io.Reader, name string) (*History, []error) {
	d := &decoder{name: name, ids: make(map[int32]bool), clients: make(map[string]int32)}
	in := bufio.NewReader(r)
	for {
		raw, err := in.ReadBytes('\n')
		if err == nil || len(raw) > 0 {
			d.line++
			d.readLine(raw, err != nil)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				d.errs = append(d.errs, fmt.Errorf("%s: %w", name, err))
			}
			break
		}
	}
	if d.h == nil {
		if d.line == 0 || len(d.errs) == 0 {
			d.errs = append(d.errs, fmt.Errorf("%s:1: no header: want a line like {\"history\":1,\"clients\":[...]}", name))
		}
		return nil, d.errs
	}
	d.finish()
	return d.h, d.errs
}

// decoder reads one file.
type decoder struct {
	name    string
	line    int
	h       *History
	errs    []error
	clients map[string]int32
	ids     map[int32]bool
	lines   []int // the line of each operation
	derive  []int32
	stopped bool // the header was of no use: nothing else can be read
	fields  map[string]json.RawMessage
	faults  int // in this line
}

// fail reports a fault in the present line; field may be empty.
func (d *decoder) fail(field, format string, args ...any) {
	d.faults++
	d.failAt(d.line, field, format, args...)
}

func (d *decoder) failAt(line int, field, format string, args ...any) {
	if field != "" {
		field = "field " + field + ": "
	}
	d.errs = append(d.errs, fmt.Errorf("%s:%d: %s%s", d.name, line, field, fmt.Sprintf(format, args...)))
}

func (d *decoder) readLine(raw []byte, last bool) {
	complete := !last // the newline was there
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || d.stopped {
		return
	}
	d.faults, d.fields = 0, nil
	if err := json.Unmarshal(raw, &d.fields); err != nil || d.fields == nil {
		if !complete && err != nil {
			d.faults++
			d.errs = append(d.errs, fmt.Errorf("%s:%d: %w", d.name, d.line, ErrTruncated))
		} else {
			d.fail("", "want a JSON object, got %s", excerpt(raw))
		}
		d.stopped = d.h == nil
		return
	}
	if d.h == nil {
		d.readHeader()
		return
	}
	d.readOp()
}

func (d *decoder) readHeader() {
	if _, ok := d.fields["history"]; !ok {
		d.fail("history", "missing: the first line must be the header")
		d.stopped = true
		return
	}
	h := &History{}
	if v := d.integer("history", 0, 1<<31); v != formatVersion && d.faults == 0 {
		d.fail("history", "version %d is not known, want %d", v, formatVersion)
	}
	d.decode("clients", &h.Clients)
	if h.Clients == nil && d.faults == 0 {
		d.fail("clients", "missing")
	}
	for i, name := range h.Clients {
		if _, twice := d.clients[name]; twice {
			d.fail("clients", "%q stands there twice", name)
		}
		d.clients[name] = int32(i)
	}
	h.Promise = Promise(d.word("promise", promiseWords[:]))
	h.Data = Data(d.word("data", dataWords[:]))
	h.TTL, h.Drift = d.duration("ttl_ns"), d.duration("drift_ns")
	h.StuckAfter = d.duration("stuck_after_ns")
	d.decode("knows_grants", &h.KnowsGrants)
	d.decode("omniscient", &h.Omniscient)
	d.decode("tokens", &h.Tokens)
	d.decode("once", &h.Once)
	h.Capacity = int(d.integer("capacity", 0, 1<<31-1))
	d.decode("quota", &h.Quota)
	h.Parties = int(d.integer("parties", 0, 1<<31-1))
	d.decode("initial", &h.Initial)
	d.decode("final", &h.Final)
	if h.Final != nil && h.Data == Register && len(h.Final) != 1 {
		d.fail("final", "a register has one value, got %d", len(h.Final))
	}
	h.FaultsOver = d.instant("faults_over", Instant{})
	h.End = clock.Time(d.integer("end_ns", -1<<63, 1<<63-1))
	d.refuseRest()
	if d.stopped = d.faults > 0; !d.stopped {
		d.h = h
	}
}

func (d *decoder) readOp() {
	op := Op{
		Kind:    Kind(d.requiredWord("op", kindWords[:])),
		ID:      int32(len(d.h.Ops) + 1),
		Client:  d.client(),
		Section: d.int32("section"),
		Invoke:  d.required("invoke"),
		Return:  d.instant("return", Never),
		Sent:    d.instant("sent", Instant{}),
		Outcome: Outcome(d.word("outcome", outcomeWords[:])),
		Effect:  d.instant("effect", Never), Decision: Decision(d.word("decision", decisionWords[:])),
		Applied: d.int32("applied"),
		Victim:  d.int32("victim"),
	}
	if _, given := d.fields["id"]; given {
		op.ID = int32(d.integer("id", 1, 1<<31-1))
	}
	op.Tenure = d.int32("tenure")
	if op.Kind == Acquire && op.Tenure == 0 {
		op.Tenure = op.ID
	}
	d.decode("token", &op.Token)
	d.decode("value", &op.Value)
	d.decode("seen", &op.Seen)
	derived := d.readTenure(&op)
	d.refuseRest()
	if d.ids[op.ID] {
		d.fail("id", "%d stands on an earlier line too", op.ID)
	}
	if d.faults > 0 {
		return
	}
	d.ids[op.ID] = true
	d.h.Ops = append(d.h.Ops, op)
	d.lines = append(d.lines, d.line)
	if derived {
		d.derive = append(d.derive, op.ID)
	}
}

// readTenure reads the keys about a grant's life: those of an acquire, and of a
// renewal that took the lock anew. It returns true if the
// belief's end is to be taken from the release.
func (d *decoder) readTenure(op *Op) (derived bool) {
	op.Granted, op.Ended, op.BelievesUntil, op.SessionLost = Never, Never, Never, Never
	if op.Kind == Renew {
		if d.decode("recreated", &op.Recreated); op.Recreated {
			op.Ended, op.End = d.instant("ended", Never), End(d.word("end", endWords[:]))
		}
	}
	if op.Kind != Acquire {
		return false
	}
	_, given := d.fields["believes_until"]
	_, why := d.fields["loss"]
	op.Granted, op.Ended = d.instant("granted", Never), d.instant("ended", Never)
	op.End = End(d.word("end", endWords[:]))
	op.BelievesUntil = d.instant("believes_until", Never)
	op.Loss = Loss(d.word("loss", lossWords[:]))
	op.SessionLost = d.instant("session_lost", Never)
	return !given && !why && op.Outcome == OK
}

// finish puts the operations in order and completes and checks what refers to
// other lines.
func (d *decoder) finish() {
	acquires := make(map[int32]int32, len(d.h.Ops)) // ID to position
	for i := range d.h.Ops {
		if d.h.Ops[i].Kind == Acquire {
			acquires[d.h.Ops[i].ID] = int32(i)
		}
	}
	derive := make(map[int32]bool, len(d.derive))
	for _, id := range d.derive {
		derive[id] = true
	}
	for i := range d.h.Ops {
		op := &d.h.Ops[i]
		at, ok := acquires[op.Tenure]
		if !ok && op.Tenure != 0 {
			d.failAt(d.lines[i], "tenure", "there is no acquire with the id %d", op.Tenure)
		}
		if _, known := acquires[op.Victim]; !known && op.Victim != 0 {
			d.failAt(d.lines[i], "victim", "there is no acquire with the id %d", op.Victim)
		}
		if ok && op.Kind == Release && derive[op.Tenure] {
			a := &d.h.Ops[at]
			a.BelievesUntil, a.Loss = earlier(a.BelievesUntil, op.sent()), LossReleased
		}
	}
	slices.SortStableFunc(d.h.Ops, func(a, b Op) int { return compareInstants(a.Invoke, b.Invoke) })
}

// take removes a field from the line and returns it.
func (d *decoder) take(key string) (json.RawMessage, bool) {
	raw, ok := d.fields[key]
	delete(d.fields, key)
	return raw, ok
}

// refuseRest reports the fields that nobody took.
func (d *decoder) refuseRest() {
	for _, key := range slices.Sorted(maps.Keys(d.fields)) {
		d.fail(key, "unknown here")
	}
}

// decode reads a field, if it is there, into v.
func (d *decoder) decode(key string, v any) {
	raw, ok := d.take(key)
	if !ok {
		return
	}
	if err := json.Unmarshal(raw, v); err != nil {
		d.fail(key, "cannot read %s as %s", excerpt(raw), kindName(v))
	}
}

func kindName(v any) string {
	switch v.(type) {
	case *bool:
		return "true or false"
	case *string:
		return "a text"
	case *[]string:
		return "a list of texts"
	case *[]int64:
		return "a list of whole numbers"
	}
	return "a whole number of 64 bits"
}

func (d *decoder) integer(key string, low, high int64) int64 {
	var v int64
	if _, ok := d.fields[key]; !ok {
		return 0
	}
	before := d.faults
	if d.decode(key, &v); d.faults == before && (v < low || v > high) {
		d.fail(key, "%d is out of range, want %d to %d", v, low, high)
	}
	return v
}

func (d *decoder) int32(key string) int32 { return int32(d.integer(key, 0, 1<<31-1)) }

func (d *decoder) duration(key string) time.Duration {
	return time.Duration(d.integer(key, 0, 1<<63-1))
}

func (d *decoder) instant(key string, absent Instant) Instant {
	raw, ok := d.take(key)
	if !ok {
		return absent
	}
	i, err := parseInstant(raw)
	if err != nil {
		d.fail(key, "%v", err)
	}
	return i
}

func (d *decoder) required(key string) Instant {
	if _, ok := d.fields[key]; !ok {
		d.fail(key, "missing")
		return Never
	}
	before := d.faults
	i := d.instant(key, Never)
	if !i.Known() && d.faults == before {
		d.fail(key, "must be known")
	}
	return i
}

// word reads one of the words; absent, the first of them.
func (d *decoder) word(key string, words []string) int {
	var s string
	if _, ok := d.fields[key]; !ok {
		return 0
	}
	before := d.faults
	if d.decode(key, &s); d.faults > before {
		return 0
	}
	n, err := parseWord(words, "word", s)
	if err != nil {
		d.fail(key, "%v", err)
	}
	return n
}

func (d *decoder) requiredWord(key string, words []string) int {
	if _, ok := d.fields[key]; !ok {
		d.fail(key, "missing")
	}
	return d.word(key, words)
}

func (d *decoder) client() int32 {
	var name string
	if _, ok := d.fields["client"]; !ok {
		d.fail("client", "missing")
		return 0
	}
	before := d.faults
	d.decode("client", &name)
	n, ok := d.clients[name]
	if !ok && d.faults == before {
		d.fail("client", "%q is not among the clients of the header", name)
	}
	return n
}

// excerpt shortens what is quoted in an error.
func excerpt(raw []byte) string {
	const most = 60
	if len(raw) > most {
		return fmt.Sprintf("%q...", raw[:most])
	}
	return fmt.Sprintf("%q", raw)
}
