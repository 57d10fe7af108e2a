package scenarios

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/models"
	"locklab/sim"
)

// The designs in this file are throw-away sketches. They show that the seam
// between runner and design fits what is not a polling lock: a queue, a lock
// whose data is written in its own transaction, an optimistic version, and a
// job queue that picks its own work.

// toyRequest is what the sketches send: a word and two numbers.
type toyRequest struct {
	verb string
	a, b int64
}

func (r toyRequest) Digest(d *sim.Digest) { d.Text(r.verb); d.Int(r.a); d.Int(r.b) }
func (r toyRequest) String() string       { return fmt.Sprintf("%s %d %d", r.verb, r.a, r.b) }

// toyServer is a handler made of one function.
type toyServer struct {
	request func(p *sim.Process, m *sim.Message, r toyRequest)
	closed  func(p *sim.Process, c *sim.Conn)
}

func (s *toyServer) Start(*sim.Process)         {}
func (s *toyServer) Timer(*sim.Process, uint64) {}
func (s *toyServer) Request(p *sim.Process, m *sim.Message) {
	s.request(p, m, m.Body.(toyRequest))
}
func (s *toyServer) Closed(p *sim.Process, c *sim.Conn) {
	if s.closed != nil {
		s.closed(p, c)
	}
}

// toyCall sends one request on a connection and returns the answer's numbers.
func toyCall(t *sim.Task, c *sim.Conn, verb string, a, b int64) (toyRequest, error) {
	p, err := t.Call(c, toyRequest{verb, a, b}, 0)
	if err != nil {
		return toyRequest{}, err
	}
	return p.(toyRequest), nil
}

// queueLock waits in line at the server, which answers when it is its turn.
type queueLock struct {
	server *sim.Process
	conn   *sim.Conn
}

func (l *queueLock) Acquire(t *sim.Task) (models.Grant, error) {
	if l.conn == nil || !l.conn.Open() {
		l.conn = t.Dial(l.server)
	}
	r, err := toyCall(t, l.conn, "enqueue", 0, 0)
	return models.Grant{Token: r.a}, err
}
func (l *queueLock) Renew(*sim.Task, *models.Grant) error { return nil }
func (l *queueLock) Release(t *sim.Task, _ *models.Grant) error {
	_, err := toyCall(t, l.conn, "dequeue", 0, 0)
	return err
}

func queueDesign() *models.Design {
	return &models.Design{Name: "sketch/queue", Tokens: models.OrderedTokens, Promise: models.SessionPromise,
		Build: func(env *models.Env) models.System {
			var line []*sim.Message
			token := int64(0)
			answerFirst := func(p *sim.Process) {
				if len(line) > 0 {
					token++
					p.Reply(line[0], toyRequest{"yours", token, 0})
				}
			}
			s := &toyServer{request: func(p *sim.Process, m *sim.Message, r toyRequest) {
				if r.verb == "enqueue" {
					if line = append(line, m); len(line) == 1 {
						answerFirst(p)
					}
					return
				}
				line = line[1:]
				p.Reply(m, r)
				answerFirst(p)
			}}
			p := env.World.AddNode("queue").AddServer("queue", s)
			return models.System{
				Watch: []*sim.Process{p},
				Holder: func() models.Holding {
					if len(line) == 0 {
						return models.Holding{}
					}
					return models.Holding{Op: line[0].Op}
				},
				Lock: func(*sim.Process) models.Lock { return &queueLock{server: p} },
			}
		}}
}

// transaction is a session's open transaction: the lock, and writes that take
// effect at COMMIT.
type transaction struct {
	conn   *sim.Conn
	writes []*sim.Message
}

// xactServer keeps lock and data together: the data is written in the
// transaction that holds the lock.
type xactServer struct {
	toyServer
	rec     models.Recorder
	process *sim.Process
	value   int64
	holder  *sim.Message // who locked
	open    *transaction
}

func (s *xactServer) Contents(bool) []int64 { return []int64{s.value} }

func (s *xactServer) serve(p *sim.Process, m *sim.Message, r toyRequest) {
	switch r.verb {
	case "begin":
		if s.open != nil {
			p.Reply(m, toyRequest{verb: "busy"})
			return
		}
		s.open, s.holder = &transaction{conn: m.Conn}, m
	case "read":
		r.a = s.value
		s.rec.Decided(m.Op, true, s.value)
	case "write":
		s.open.writes = append(s.open.writes, m)
	case "commit":
		for _, w := range s.open.writes {
			s.value = w.Body.(toyRequest).a
			s.rec.Decided(w.Op, true, 0)
		}
		s.open, s.holder = nil, nil
	}
	p.Reply(m, r)
}

// hungUp rolls back: an abandoned session's transaction never commits.
func (s *xactServer) hungUp(_ *sim.Process, c *sim.Conn) {
	if s.open != nil && s.open.conn == c {
		s.open, s.holder = nil, nil
	}
}

type xactLock struct{ s *xactServer }

func (l *xactLock) Acquire(t *sim.Task) (models.Grant, error) {
	conn := t.Dial(l.s.process)
	r, err := toyCall(t, conn, "begin", 0, 0)
	if err == nil && r.verb == "busy" {
		t.Hangup(conn)
		err = models.ErrBusy
	}
	return models.Grant{State: conn}, err
}
func (l *xactLock) Renew(*sim.Task, *models.Grant) error { return nil }
func (l *xactLock) Release(t *sim.Task, g *models.Grant) error {
	_, err := toyCall(t, g.State.(*sim.Conn), "commit", 0, 0)
	return err
}

// xactSection writes on the connection of the lock's own transaction.
type xactSection struct {
	rec   models.Recorder
	grant *models.Grant
}

func (s xactSection) do(t *sim.Task, kind models.OpKind, verb string, v int64) (int64, error) {
	op := s.rec.Invoke(t, kind, s.grant.Op, v, 0)
	r, err := toyCall(t, s.grant.State.(*sim.Conn), verb, v, 0)
	s.rec.Return(t, op, err, r.a)
	return r.a, err
}
func (s xactSection) Read(t *sim.Task) (int64, error) { return s.do(t, models.OpRead, "read", 0) }
func (s xactSection) Write(t *sim.Task, v int64) error {
	_, err := s.do(t, models.OpWrite, "write", v)
	return err
}
func (s xactSection) Append(*sim.Task, int64) error { return errors.New("no lists here") }
func (s xactSection) Lost(*sim.Task) bool           { return false }

type xactResource struct{ rec models.Recorder }

func (r xactResource) Enter(_ *sim.Task, g *models.Grant) (models.Section, error) {
	return xactSection{r.rec, g}, nil
}

// xactDesign and its resource share one server: the design's Build makes it.
func xactDesign() (*models.Design, *models.ResourceKind) {
	var s *xactServer
	design := &models.Design{Name: "sketch/xact", Promise: models.SessionPromise, Build: func(env *models.Env) models.System {
		s = &xactServer{rec: env.Rec}
		s.request, s.closed = s.serve, s.hungUp
		s.process = env.World.AddNode("db").AddServer("db", s)
		mine := s
		return models.System{
			Watch: []*sim.Process{s.process},
			Holder: func() models.Holding {
				if mine.holder == nil {
					return models.Holding{}
				}
				return models.Holding{Op: mine.holder.Op}
			},
			Lock: func(*sim.Process) models.Lock { return &xactLock{mine} },
		}
	}}
	resource := &models.ResourceKind{Name: "sketch/same-transaction", Build: func(env *models.Env) models.Store {
		return models.Store{Data: s, Handle: func() models.Resource { return xactResource{env.Rec} }}
	}}
	return design, resource
}

// optimistic needs no lock: it repeats the body until its compare-and-swap
// succeeds. Every attempt is a tenure that nobody granted.
type optimistic struct {
	env      *models.Env
	resource models.Resource
}

func (o *optimistic) Do(t *sim.Task, job int, body func(models.Section) error) error {
	for {
		t.Enter(job, sim.PhaseAcquire)
		g := models.Grant{}
		g.Op = o.env.Rec.Invoke(t, models.OpAcquire, 0, 0, 0)
		o.env.Rec.Acquired(t, g.Op, 0)
		s, err := o.resource.Enter(t, &g)
		if err == nil {
			err = body(s)
		}
		o.env.Rec.LearnsLoss(t, g.Op)
		if !errors.Is(err, models.ErrConflict) {
			return err
		}
	}
}

// jobQueue is SKIP LOCKED: the protocol claims some job, not the asked one,
// and finishes it in the same transaction.
type jobQueue struct {
	env      *models.Env
	server   *sim.Process
	resource models.Resource
}

func (q *jobQueue) Do(t *sim.Task, job int, body func(models.Section) error) error {
	t.Enter(job, sim.PhaseAcquire)
	conn := t.Dial(q.server)
	op := q.env.Rec.Invoke(t, models.OpAcquire, 0, 0, 0)
	claim, err := toyCall(t, conn, "claim", 0, 0)
	if err != nil || claim.verb == "none" {
		q.env.Rec.Return(t, op, models.ErrBusy, 0)
		return err
	}
	g := models.Grant{Token: claim.a, Op: op}
	q.env.Rec.Acquired(t, op, g.Token)
	s, err := q.resource.Enter(t, &g)
	if err == nil {
		err = body(s)
	}
	t.Enter(job, sim.PhaseRelease)
	rel := q.env.Rec.Invoke(t, models.OpRelease, g.Op, 0, 0)
	_, done := toyCall(t, conn, "done", claim.a, 0)
	q.env.Rec.Return(t, rel, done, 0)
	return errors.Join(err, done)
}

func runSketch(t *testing.T, d *models.Design, r *models.ResourceKind, change func(*Params), plan sim.Plan) *Result {
	t.Helper()
	p := DefaultParams()
	p.Stagger = 100 * time.Millisecond
	if change != nil {
		change(&p)
	}
	runner, err := NewRunner(Case{Design: d, Resource: r, Params: p, Plan: plan})
	require.NoError(t, err)
	t.Cleanup(runner.Close)
	res, err := runner.Run(1, sim.TraceHash)
	require.NoError(t, err)
	require.Nil(t, res.Failure)
	require.NoError(t, checker.CrossCheck(res.Report, checker.Porcupine(res.History, time.Second)))
	return res
}

func resource(t *testing.T, name string) *models.ResourceKind {
	t.Helper()
	for _, r := range models.Resources() {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("no resource %q", name)
	return nil
}

func design(t *testing.T, name string) *models.Design {
	t.Helper()
	for _, d := range models.Designs() {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("no design %q", name)
	return nil
}

func TestSeamFitsQueueLock(t *testing.T) {
	res := runSketch(t, queueDesign(), resource(t, "fenced"), nil, sim.Plan{})
	require.Empty(t, res.Report.Findings)
	require.Equal(t, []int64{9}, res.History.Final)
	require.Equal(t, checker.VerdictSafe, res.Verdict)
}

func TestSeamFitsTransactionLock(t *testing.T) {
	d, r := xactDesign()
	res := runSketch(t, d, r, nil, sim.Plan{})
	require.Empty(t, res.Report.Findings)
	require.Equal(t, []int64{9}, res.History.Final)

	// Kleppmann's delayed write: the bytes are held, the client gives up, and
	// its FIN follows them. The transaction they belong to never commits.
	before, err := sim.ParsePlace("client-1/section#1/write")
	require.NoError(t, err)
	delayed := sim.Plan{Faults: []sim.Fault{{Kind: sim.Delay, On: []string{"client-1->db"}, For: sim.Exactly(5 * time.Second),
		Trigger: sim.Trigger{Before: before}}}}
	res = runSketch(t, d, r, func(p *Params) { p.Sections = 1 }, delayed)
	require.Equal(t, checker.VerdictSafe, res.Verdict)
}

func TestSeamFitsOptimisticVersion(t *testing.T) {
	d := &models.Design{Name: "sketch/optimistic"}
	d.Build = func(env *models.Env) models.System {
		store := resource(t, "versioned").SetUp(env) // its own storage: the runner's stays unused
		r := &models.ResourceKind{}
		_ = r
		return models.System{Protocol: func(*sim.Process) models.Protocol {
			return &optimistic{env: env, resource: store.Handle()}
		}}
	}
	res := runSketch(t, d, &models.ResourceKind{Name: "none", Build: func(*models.Env) models.Store {
		return models.Store{Data: noData{9}}
	}}, func(p *Params) { p.Stagger = 0 }, sim.Plan{})
	require.False(t, res.Report.Has(checker.LostUpdate))
	require.True(t, res.Report.Has(checker.RefusedLate), "the attempts must have met")
	require.Equal(t, checker.VerdictFenced, res.Verdict)
}

// noData is data that the test knows already.
type noData []int64

func (d noData) Contents(bool) []int64 { return d }

func TestSeamFitsSkipLocked(t *testing.T) {
	taken := map[int64]int{}
	d := &models.Design{Name: "sketch/skip-locked", Tokens: models.UniqueTokens}
	d.Build = func(env *models.Env) models.System {
		next := int64(0)
		s := &toyServer{request: func(p *sim.Process, m *sim.Message, r toyRequest) {
			if r.verb == "claim" {
				next++
				r.a = next
				taken[next]++
			}
			p.Reply(m, r)
		}}
		p := env.World.AddNode("db").AddServer("db", s)
		store := resource(t, "plain").SetUp(env)
		return models.System{Protocol: func(*sim.Process) models.Protocol {
			return &jobQueue{env: env, server: p, resource: store.Handle()}
		}}
	}
	res := runSketch(t, d, &models.ResourceKind{Name: "none", Build: func(*models.Env) models.Store {
		return models.Store{Data: noData(nil)}
	}}, func(p *Params) { p.Workload = Append }, sim.Plan{})
	require.Len(t, taken, 9)
	for _, n := range taken {
		require.Equal(t, 1, n)
	}
	require.Equal(t, sim.EndDone, res.Ended)
}
