package checker

// Recorded histories are JSON Lines: a header, then one operation a line, in
// order of invocation. Histories of real systems may be written by hand or by
// a script in the same format; most keys have a sensible meaning when absent.
//
// An instant is [ns, step], or a plain number of nanoseconds (step 0), since
// the start of the run. Absent means never, or not known; null says never explicitly.
//
// Keys of the header:
//
//	history         1, the version of the format; required
//	clients         the clients' names, all different; required
//	promise         "lease", "session" or "none": what a grant promises; default "none"
//	ttl_ns          a lease's length
//	drift_ns        the clock drift that the design allows for
//	knows_grants    granted and ended come from the lock service's state
//	omniscient      effect, decision and applied are known for every operation
//	tokens          the design hands out ordered fencing tokens
//	capacity        how many may hold at once; default 1
//	quota           what is granted is used up: capacity is of one window, which ends with its grants
//	parties         of a barrier: how many must call for a section before one may obtain it; default 0, none
//	once            each write must take effect at most once
//	data            "register" or "list"; default "register"
//	initial         the register's value at the start; default 0
//	final           the data at the end: [value], or the list; absent if nobody looked
//	faults_over     when the last fault struck or healed; default 0, the start
//	stuck_after_ns  the bound for the finding "stuck"; default 0: not checked
//	end_ns          when the run ended
//
// Keys of an operation:
//
//	op        "acquire", "renew", "enter", "read", "write", "append" or "release"; required
//	id        a number of its own; default: operations are counted from 1
//	client    a name from the header; required
//	section   the critical section, counted from 1 for each client; a repeated one keeps its number
//	tenure    the id of the acquire under which it was issued; an acquire's own id may be left out
//	invoke    when the client called; required
//	sent      operations on the lock: when the request (of an acquire, the last try) was sent; default
//	          invoke
//	return    when it learned the outcome
//	outcome   "ok", "refused" or "unknown"; default "unknown"
//	effect    when the resource or the lock service decided
//	decision  "accepted" or "rejected": what the resource made of it; default "undecided".
//	          Where the history is not omniscient, an undecided operation goes by its outcome
//	applied   how many times it took effect
//	token     the fencing token that it carried, or an acquire obtained; default 0, none
//	value     what was written or appended
//	seen      what a read saw: the value, or the list's length
//	victim    a release or renewal: the tenure of somebody else whose lock it changed
//
//	recreated a renewal: it found no lock and took one anew, at effect. Then ended and end say how
//	          that lock ended; the tenure's own grant had ended before
//
// Further keys of an acquire, about its tenure:
//
//	granted         when the lock service granted it
//	ended           when the grant ended
//	end             "expired", "released", "taken" or "lost"; default "not-ended"
//	believes_until  when its client ceased to believe that it holds the lock. Absent, with
//	                outcome "ok": when it sent the tenure's release, or never without one
//	loss            why: "released", "crashed" or "learned"; default "believes", or "released" where
//	                believes_until was taken from the release
//	session_lost    when the session was lost through the network

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"locklab/clock"
)

// formatVersion is the number in the header.
const formatVersion = 1

// WriteHistory writes a history as JSON Lines. It fails if the writer does, or
// if clients cannot be told apart by their names.
func WriteHistory(w io.Writer, h *History) error {
	seen := make(map[string]bool, len(h.Clients))
	for _, name := range h.Clients {
		if seen[name] {
			return fmt.Errorf("write history: two clients are called %q", name)
		}
		seen[name] = true
	}
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(headerOf(h)); err != nil {
		return fmt.Errorf("write history: header: %w", err)
	}
	for i := range h.Ops {
		line, err := lineOf(h, &h.Ops[i])
		if err == nil {
			err = enc.Encode(line)
		}
		if err != nil {
			return fmt.Errorf("write history: operation %d: %w", h.Ops[i].ID, err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// headerLine is the header as it is written.
type headerLine struct {
	History    int      `json:"history"`
	Clients    []string `json:"clients"`
	Promise    string   `json:"promise"`
	TTL        int64    `json:"ttl_ns,omitempty"`
	Drift      int64    `json:"drift_ns,omitempty"`
	Grants     bool     `json:"knows_grants,omitempty"`
	Omniscient bool     `json:"omniscient,omitempty"`
	Tokens     bool     `json:"tokens,omitempty"`
	Capacity   int      `json:"capacity,omitempty"`
	Quota      bool     `json:"quota,omitempty"`
	Parties    int      `json:"parties,omitempty"`
	Once       bool     `json:"once,omitempty"`
	Data       string   `json:"data"`
	Initial    int64    `json:"initial,omitempty"`
	Final      *[]int64 `json:"final,omitempty"`
	FaultsOver moment   `json:"faults_over"`
	StuckAfter int64    `json:"stuck_after_ns,omitempty"`
	End        int64    `json:"end_ns"`
}

func headerOf(h *History) headerLine {
	line := headerLine{
		History: formatVersion, Clients: h.Clients, Promise: h.Promise.String(),
		TTL: int64(h.TTL), Drift: int64(h.Drift), Grants: h.KnowsGrants, Omniscient: h.Omniscient,
		Tokens: h.Tokens, Capacity: h.Capacity, Quota: h.Quota, Parties: h.Parties, Once: h.Once, Data: h.Data.String(),
		Initial: h.Initial, FaultsOver: moment(h.FaultsOver), StuckAfter: int64(h.StuckAfter),
		End: int64(h.End),
	}
	if line.Clients == nil {
		line.Clients = []string{}
	}
	if h.Final != nil {
		line.Final = &h.Final
	}
	return line
}

// opLine is an operation as it is written. Pointers are nil where the key is
// left out.
type opLine struct {
	Op          string  `json:"op"`
	ID          int32   `json:"id"`
	Client      string  `json:"client"`
	Section     int32   `json:"section,omitempty"`
	Tenure      int32   `json:"tenure,omitempty"`
	Invoke      moment  `json:"invoke"`
	Sent        *moment `json:"sent,omitempty"`
	Return      *moment `json:"return,omitempty"`
	Outcome     string  `json:"outcome"`
	Effect      *moment `json:"effect,omitempty"`
	Decision    string  `json:"decision,omitempty"`
	Applied     int32   `json:"applied,omitempty"`
	Token       int64   `json:"token,omitempty"`
	Value       int64   `json:"value,omitempty"`
	Seen        int64   `json:"seen,omitempty"`
	Victim      int32   `json:"victim,omitempty"`
	Recreated   bool    `json:"recreated,omitempty"`
	Granted     *moment `json:"granted,omitempty"`
	Ended       *moment `json:"ended,omitempty"`
	End         string  `json:"end,omitempty"`
	Believes    *moment `json:"believes_until,omitempty"`
	Loss        string  `json:"loss,omitempty"`
	SessionLost *moment `json:"session_lost,omitempty"`
}

func lineOf(h *History, op *Op) (opLine, error) {
	if op.Client < 0 || int(op.Client) >= len(h.Clients) {
		return opLine{}, fmt.Errorf("client %d does not exist", op.Client)
	}
	line := opLine{
		Op: op.Kind.String(), ID: op.ID, Client: h.Clients[op.Client], Section: op.Section,
		Tenure: op.Tenure, Invoke: moment(op.Invoke), Return: momentOf(op.Return),
		Outcome: op.Outcome.String(), Effect: momentOf(op.Effect), Applied: op.Applied,
		Token: op.Token, Value: op.Value, Seen: op.Seen, Victim: op.Victim,
	}
	if op.Sent != (Instant{}) {
		line.Sent = momentOf(op.Sent)
	}
	if op.Decision != Undecided {
		line.Decision = op.Decision.String()
	}
	if line.Recreated = op.Kind == Renew && op.Recreated; op.Kind == Acquire || line.Recreated {
		line.Ended = momentOf(op.Ended)
		if op.End != NotEnded {
			line.End = op.End.String()
		}
	}
	if op.Kind != Acquire {
		return line, nil
	}
	line.Granted, line.SessionLost = momentOf(op.Granted), momentOf(op.SessionLost)
	believes := moment(op.BelievesUntil)
	if op.Outcome == OK || op.BelievesUntil.Known() {
		line.Believes = &believes // null for one that believes to the end
	}
	if op.Loss != StillBelieves {
		line.Loss = op.Loss.String()
	}
	return line, nil
}

// moment is an Instant as JSON: null, ns or [ns, step].
type moment Instant

func momentOf(i Instant) *moment {
	if !i.Known() {
		return nil
	}
	m := moment(i)
	return &m
}

// MarshalJSON writes the shortest form.
func (m moment) MarshalJSON() ([]byte, error) {
	switch {
	case m.At == clock.Never:
		return []byte("null"), nil
	case m.Step == 0:
		return fmt.Appendf(nil, "%d", m.At), nil
	}
	return fmt.Appendf(nil, "[%d,%d]", m.At, m.Step), nil
}

// parseInstant reads any of the three forms.
func parseInstant(raw json.RawMessage) (Instant, error) {
	if string(raw) == "null" {
		return Never, nil
	}
	var at int64
	if err := json.Unmarshal(raw, &at); err == nil {
		return Instant{At: clock.Time(at)}, nil
	}
	var pair []int64
	if err := json.Unmarshal(raw, &pair); err != nil || len(pair) != 2 {
		return Never, fmt.Errorf("want ns, [ns, step] or null, got %s", excerpt(raw))
	}
	return Instant{At: clock.Time(pair[0]), Step: pair[1]}, nil
}
