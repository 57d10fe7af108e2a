package scenarios

import (
	"errors"
	"slices"

	"locklab/checker"
	"locklab/clock"
	"locklab/models"
	"locklab/sim"
)

// recorder writes the history of a run. It hears the programs (models.Recorder)
// and watches the universe (sim.Observer); it decides nothing.
type recorder struct {
	w       *sim.World
	history *checker.History
	system  models.System
	clients []int32 // client by process, -1 for servers
	step    int64
	holder  models.Holding
	holders []models.Holding // of a design that may have several
	spare   []models.Holding // memory for the next of them
	fallen  []*sim.Process   // lock servers that have crashed and not started again
	renewed int32            // the renewal by which the present holder took the lock anew; 0 for none
	onPlace func(sim.Place)
	onSend  func(*sim.Message)

	requests []Request
}

// Request is a request that a client sent for one of its operations.
type Request struct {
	At clock.Time
	Op int32 // the operation's ID in the history
}

// begin makes the recorder ready for a run in w, keeping its memory.
func (r *recorder) begin(w *sim.World, h *checker.History) {
	*r = recorder{w: w, history: h, clients: r.clients[:0], fallen: r.fallen[:0], holders: r.holders[:0], spare: r.spare,
		onPlace: r.onPlace, onSend: r.onSend, requests: r.requests[:0]}
}

// addClient says that a process is the next client.
func (r *recorder) addClient(p *sim.Process) {
	for len(r.clients) <= int(p.ID()) {
		r.clients = append(r.clients, -1)
	}
	r.clients[p.ID()] = int32(len(r.history.Clients))
	r.history.Clients = append(r.history.Clients, p.Name())
}

func (r *recorder) clientOf(p *sim.Process) int32 {
	if int(p.ID()) >= len(r.clients) {
		return -1
	}
	return r.clients[p.ID()]
}

func (r *recorder) now() checker.Instant {
	r.step++
	return checker.Instant{At: r.w.Now(), Step: r.step}
}

func (r *recorder) op(id int32) *checker.Op {
	if id < 1 || int(id) > len(r.history.Ops) {
		return nil
	}
	return &r.history.Ops[id-1]
}

// Invoke implements models.Recorder.
func (r *recorder) Invoke(t *sim.Task, kind models.OpKind, tenure int32, value, token int64) int32 {
	id := int32(len(r.history.Ops) + 1)
	if kind == models.OpAcquire {
		tenure = id
	}
	now := r.now()
	r.history.Ops = append(r.history.Ops, checker.Op{
		ID: id, Client: r.clientOf(t.Proc()), Section: int32(t.Section()), Tenure: tenure, Kind: checker.Kind(kind),
		Invoke: now, Return: checker.Never, Effect: checker.Never, Granted: checker.Never, Ended: checker.Never,
		BelievesUntil: checker.Never, SessionLost: checker.Never, Value: value, Token: token,
	})
	t.Op = id
	return id
}

// Try implements models.Recorder: what the last try did no longer counts.
func (r *recorder) Try(_ *sim.Task, op int32) {
	o := r.op(op)
	o.Sent, o.Effect, o.Applied = checker.Instant{}, checker.Never, 0
}

// Sent implements sim.Observer. The first request of a try, renewal or release
// is the moment that counts: a client believes until it has sent its release.
func (r *recorder) Sent(m *sim.Message) {
	if r.onSend != nil {
		r.onSend(m)
	}
	o := r.op(m.Op)
	if o != nil {
		r.requests = append(r.requests, Request{r.w.Now(), m.Op})
	}
	if o == nil || o.Sent != (checker.Instant{}) {
		return
	}
	switch o.Kind {
	case checker.Acquire, checker.Renew:
		o.Sent = r.now()
	case checker.Release:
		o.Sent = r.now()
		r.endBelief(o.Tenure, o.Sent, checker.LossReleased)
	}
}

// Return implements models.Recorder.
func (r *recorder) Return(_ *sim.Task, op int32, err error, seen int64) {
	o := r.op(op)
	if o.Kind == checker.Release { // one that had nothing to send
		r.endBelief(o.Tenure, r.now(), checker.LossReleased)
	}
	switch {
	case err == nil:
		o.Outcome, o.Return = checker.OK, r.now()
		o.Seen = seen
	case errors.Is(err, sim.ErrUnknown): // the client stops waiting and knows nothing
	default:
		o.Outcome, o.Return = checker.Refused, r.now()
	}
}

// Acquired implements models.Recorder.
func (r *recorder) Acquired(t *sim.Task, op int32, token int64) {
	o := r.op(op)
	o.Outcome, o.Return, o.Token = checker.OK, r.now(), token
	if !r.knowsGrants() {
		o.Granted = o.Return
		r.w.Reach(sim.Granted, t.Proc())
	}
	r.w.Reach(sim.Acquired, t.Proc())
}

// LearnsLoss implements models.Recorder.
func (r *recorder) LearnsLoss(_ *sim.Task, tenure int32) {
	r.endBelief(tenure, r.now(), checker.LossLearned)
}

// SessionLost implements models.Recorder.
func (r *recorder) SessionLost(tenure int32) {
	if o := r.tenureOf(models.Holding{Op: tenure}); o != nil && !o.SessionLost.Known() {
		o.SessionLost = r.now()
	}
}

func (r *recorder) endBelief(tenure int32, at checker.Instant, why checker.Loss) {
	if o := r.op(tenure); o != nil && o.Outcome == checker.OK && o.Loss == checker.StillBelieves {
		o.BelievesUntil, o.Loss = at, why
	}
}

// Rests implements models.Recorder.
func (r *recorder) Rests(op, on int32) {
	if o, older := r.op(op), r.op(on); o != nil && older != nil {
		o.Sent = older.Sent
	}
}

// Applied implements models.Recorder.
func (r *recorder) Applied(op int32) { r.look(r.op(op), checker.EndExpired) }

// Decided implements models.Recorder.
func (r *recorder) Decided(op int32, accepted bool, seen int64) {
	o := r.op(op)
	if o == nil {
		return
	}
	o.Applied++
	if o.Applied > 1 { // delivered twice: the first counts
		return
	}
	o.Effect, o.Decision = r.now(), checker.Rejected
	if accepted {
		o.Decision = checker.Accepted
		if o.Kind == checker.Read {
			o.Seen = seen
		}
	}
	if kind, ok := milestoneOf(o); ok {
		r.w.Reach(kind, r.process(o.Client))
	}
}

// milestoneOf names what a decision is for plans that wait for it.
func milestoneOf(o *checker.Op) (sim.MilestoneKind, bool) {
	changes := o.Kind == checker.Write || o.Kind == checker.Append
	switch accepted := o.Decision == checker.Accepted; {
	case changes && accepted:
		return sim.AcceptedWrite, true
	case changes:
		return sim.RefusedWrite, true
	case o.Kind == checker.Read && accepted:
		return sim.AcceptedRead, true
	}
	return 0, false
}

func (r *recorder) process(client int32) *sim.Process {
	for id, c := range r.clients {
		if c == client {
			return r.w.Processes()[id]
		}
	}
	return nil
}

// Place implements sim.Observer.
func (r *recorder) Place(p sim.Place) {
	if r.onPlace != nil {
		r.onPlace(p)
	}
}

// ServerChanged implements sim.Observer: after each thing that a lock server
// did, see whose the lock is now.
func (r *recorder) ServerChanged(p *sim.Process, cause *sim.Message) {
	if r.watches(p) && !r.system.Replicated {
		var by *checker.Op
		if cause != nil {
			by = r.op(cause.Op)
		}
		end := checker.EndExpired
		if r.hasStarted(p) {
			end = checker.EndLost
		}
		r.look(by, end)
	}
}

// hasStarted reports whether what a lock server has just done is to start
// after a crash. A lock that is gone since then has not expired: it is
// forgotten.
func (r *recorder) hasStarted(p *sim.Process) bool {
	i := slices.Index(r.fallen, p)
	if i >= 0 {
		r.fallen = slices.Delete(r.fallen, i, i+1)
	}
	return i >= 0
}

// Crashed implements sim.Observer.
func (r *recorder) Crashed(p *sim.Process) {
	if c := r.clientOf(p); c >= 0 {
		now := r.now()
		for i := range r.history.Ops {
			o := &r.history.Ops[i]
			if o.Kind != checker.Acquire || o.Client != c {
				continue
			}
			r.endBelief(o.ID, now, checker.LossCrashed)
			if o.Outcome == checker.Unknown && o.Loss == checker.StillBelieves { // it waits no longer
				o.BelievesUntil, o.Loss = now, checker.LossCrashed
			}
		}
		return
	}
	if r.watches(p) {
		r.fallen = append(r.fallen, p)
		r.look(nil, checker.EndLost)
	}
}

func (r *recorder) watches(p *sim.Process) bool {
	for _, w := range r.system.Watch {
		if w == p {
			return true
		}
	}
	return false
}

// look derives grants and their ends from the servers' states. by is the
// operation that the server has just carried out, nil if it did something of
// its own; end says what an end without an operation means.
func (r *recorder) look(by *checker.Op, end checker.End) {
	if by != nil && !by.Effect.Known() && (by.Kind == checker.Acquire || by.Kind == checker.Renew || by.Kind == checker.Release) {
		by.Effect = r.now()
		by.Applied = 1
	}
	if r.system.Holders != nil {
		r.lookAll(by, end)
		return
	}
	before, after := r.holder, r.system.Holder()
	if before == after {
		return
	}
	r.holder = after
	was, is := r.tenureOf(before), r.tenureOf(after)
	if by != nil && was != nil && by.Tenure != was.ID && (by.Kind == checker.Release || by.Kind == checker.Renew) {
		by.Victim = was.ID
	}
	if was == is {
		return
	}
	now := r.now()
	if o := r.op(r.renewed); o != nil {
		o.Ended, o.End = now, endOf(was, by, end)
		r.renewed = 0
	}
	if was != nil {
		r.ended(was, now, endOf(was, by, end))
	}
	if is != nil && r.granted(is, now, by) {
		r.renewed = by.ID
	}
}

// lookAll is look for a design that may have several holders.
func (r *recorder) lookAll(by *checker.Op, end checker.End) {
	before, after := r.holders, r.system.Holders(r.spare[:0])
	r.holders, r.spare = after, before
	if slices.Equal(before, after) {
		return
	}
	now := r.now()
	for _, h := range before {
		was := r.tenureOf(h)
		if was == nil || slices.Contains(after, h) {
			continue
		}
		if by != nil && by.Tenure != was.ID && (by.Kind == checker.Release || by.Kind == checker.Renew) {
			by.Victim = was.ID
		}
		if r.among(after, was) {
			continue
		}
		if o := r.op(h.Op); o.Recreated {
			o.Ended, o.End = now, endOf(was, by, end)
		}
		r.ended(was, now, endOf(was, by, end))
	}
	for _, h := range after {
		if is := r.tenureOf(h); is != nil && !r.among(before, is) {
			r.granted(is, now, by)
		}
	}
}

// among reports whether one of the holdings is of the tenure.
func (r *recorder) among(list []models.Holding, tenure *checker.Op) bool {
	for _, h := range list {
		if r.tenureOf(h) == tenure {
			return true
		}
	}
	return false
}

// ended notes the end of a tenure's grant.
func (r *recorder) ended(was *checker.Op, now checker.Instant, how checker.End) {
	if was.Ended.Known() {
		return
	}
	was.Ended, was.End = now, how
	switch how {
	case checker.EndExpired:
		r.w.Reach(sim.Expired, r.process(was.Client))
	case checker.EndReleased:
		r.w.Reach(sim.Released, r.process(was.Client))
	}
}

// granted notes that a tenure has become a holder. It reports whether by, a
// renewal of a tenure that had ended, has taken the lock anew.
func (r *recorder) granted(is *checker.Op, now checker.Instant, by *checker.Op) (anew bool) {
	switch {
	case !is.Granted.Known():
		is.Granted = now
		r.w.Reach(sim.Granted, r.process(is.Client))
	case by != nil && by.Kind == checker.Renew && by.Tenure == is.ID:
		by.Recreated, anew = true, true
	}
	return anew
}

// knowsGrants reports whether the design says whose grants are current.
func (r *recorder) knowsGrants() bool { return r.system.Holder != nil || r.system.Holders != nil }

// endOf says how a tenure ended that by, if anybody, has just ended.
func endOf(was, by *checker.Op, end checker.End) checker.End {
	switch {
	case by == nil:
		return end
	case by.Tenure == was.ID && by.Kind == checker.Release:
		return checker.EndReleased
	case by.Tenure == was.ID:
		return checker.EndLost
	}
	return checker.EndTaken
}

// tenureOf returns the acquire that a holding goes back to. A renewal that
// created the lock anew belongs to the tenure that it renews.
func (r *recorder) tenureOf(h models.Holding) *checker.Op {
	o := r.op(h.Op)
	if o == nil {
		return nil
	}
	return r.op(o.Tenure)
}
