package models

import (
	"errors"
	"time"

	"locklab/sim"
)

// pgJobs is a job queue: CREATE TABLE jobs (id bigint PRIMARY KEY, status
// bigint, claimed_by bigint, claimed_at timestamptz).
var pgJobs = &PgTable{Name: "jobs", Columns: []string{"id", "status", "claimed_by", "claimed_at"}}

// The columns of jobs, and what status says.
const (
	jobStatus = 1 + iota
	jobClaimedBy
	jobClaimedAt

	jobNew     = 0
	jobRunning = 1
	jobDone    = 2
)

// queueSystem is a queue with as many jobs as the clients have sections.
func queueSystem(reaper bool) func(env *Env) System {
	return func(env *Env) System {
		var rows []pgChange
		for i := range env.Options.Clients * env.Options.Sections {
			rows = append(rows, pgChange{table: pgJobs, row: PgRow{int64(i + 1)}})
		}
		g := newPostgres(env, rows...)
		g.inside(env, nil)
		env.inside.Handle = func() Resource { return resourceFunc(enterJob) }
		return System{Protocol: func(*sim.Process) Protocol {
			q := &jobQueue{env: env, link: g.link(), reaper: reaper, resource: env.Store.Handle()}
			q.x = transaction{link: &q.link, rec: env.Rec}
			return q
		}}
	}
}

// jobQueue is a worker's handle on the queue. It takes the next job, whichever
// that is, and does it while others do others (SELECT, "The Locking Clause").
// The claim is held in a transaction:
//
//	BEGIN
//	SELECT * FROM jobs WHERE status = 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
//	...
//	UPDATE jobs SET status = 2 WHERE id = $id
//	COMMIT
//
// or stands in the table, and a reaper gives jobs back whose claim is older
// than the ttl:
//
//	UPDATE jobs SET status = 0, claimed_by = 0 WHERE status = 1 AND claimed_at < now() - $ttl
//	UPDATE jobs SET status = 1, claimed_by = $me, claimed_at = now()
//	  WHERE id = (SELECT id FROM jobs WHERE status = 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING *
//	...
//	UPDATE jobs SET status = 2 WHERE id = $id AND claimed_by = $me
type jobQueue struct {
	env      *Env
	link     pgLink
	x        transaction
	reaper   bool
	resource Resource
}

// claim is a job in the hands of a worker: its grant's State.
type claim struct {
	queue *jobQueue
	job   int64
}

// errNoJobs: every job is done.
var errNoJobs = errors.New("every job is done")

// Do implements Protocol: one job. The caller's own number for it means
// nothing here.
func (q *jobQueue) Do(t *sim.Task, job int, body func(Section) error) error {
	t.Enter(job, sim.PhaseAcquire)
	g, err := q.next(t)
	if err != nil {
		return err
	}
	s, err := q.resource.Enter(t, &g)
	if err == nil {
		err = body(&jobSection{s, g.State.(*claim).job})
	}
	t.Enter(job, sim.PhaseRelease)
	op := q.env.Rec.Invoke(t, OpRelease, g.Op, 0, 0)
	done := q.finish(t, &g, err == nil)
	q.env.Rec.Return(t, op, done, 0)
	return errors.Join(err, done)
}

// next waits for a job.
func (q *jobQueue) next(t *sim.Task) (Grant, error) {
	rec, opts := q.env.Rec, &q.env.Options
	op := rec.Invoke(t, OpAcquire, 0, 0, 0)
	start := t.Now()
	for {
		rec.Try(t, op)
		g, err := q.claim(t)
		switch {
		case err == nil:
			rec.Acquired(t, op, 0)
			g.Op = op
			return g, nil
		case errors.Is(err, errNoJobs), opts.Wait > 0 && t.Now().Sub(start) >= opts.Wait:
			rec.Return(t, op, ErrGaveUp, 0)
			return Grant{}, err
		case errors.Is(err, sim.ErrUnknown):
			rec.Return(t, op, err, 0)
			op = rec.Invoke(t, OpAcquire, 0, 0, 0)
		}
		t.Sleep(opts.Retry + time.Duration(t.Choose(sim.PointJitter, 0, int64(opts.RetryJitter))))
	}
}

// claim tries once.
func (q *jobQueue) claim(t *sim.Task) (Grant, error) {
	g := Grant{}
	take := &PgStatement{Verb: PgSelect, Table: pgJobs, Limit1: true, Lock: ForUpdateSkipLocked}
	var err error
	if q.reaper {
		g.Mark = t.Unique()
		err = q.reap(t)
		take.Verb = PgUpdate
		take.Set = [4]PgAssign{{jobStatus, PgValue(jobRunning)}, {jobClaimedBy, PgValue(g.Mark)}, {jobClaimedAt, PgNowPlus(0)}}
	} else {
		err = q.x.begin(t, ReadCommitted)
	}
	if err != nil {
		return g, err
	}
	take.Where[0] = PgCond{jobStatus, Equal, PgValue(jobNew)}
	r, err := q.link.in(t, take)
	switch {
	case err != nil:
		return g, err
	case r.Code.failed() || r.Rows == 0:
		return g, q.nothing(t)
	}
	g.State = &claim{q, r.Row[0]}
	return g, nil
}

// reap gives back what was claimed too long ago.
func (q *jobQueue) reap(t *sim.Task) error {
	old := &PgStatement{Verb: PgUpdate, Table: pgJobs, Set: [4]PgAssign{{jobStatus, PgValue(jobNew)}, {jobClaimedBy, PgValue(0)}}}
	old.Where[0] = PgCond{jobStatus, Equal, PgValue(jobRunning)}
	old.Where[1] = PgCond{jobClaimedAt, Less, PgNowPlus(-q.env.Options.TTL)}
	_, err := q.link.do(t, old)
	return err
}

// nothing is a try that found no job: all are done, or others have the rest.
func (q *jobQueue) nothing(t *sim.Task) error {
	left := &PgStatement{Verb: PgSelect, Table: pgJobs, Limit1: true}
	left.Where[0] = PgCond{jobStatus, Differs, PgValue(jobDone)}
	r, err := q.link.in(t, left)
	if err != nil {
		return err
	}
	if !q.reaper {
		if err := q.x.end(t, PgRollback); err != nil {
			return err
		}
	}
	if r.Rows == 0 {
		return errNoJobs
	}
	return ErrBusy
}

// finish marks the job as done, or gives it up: then its transaction is rolled
// back, or the reaper will find it.
func (q *jobQueue) finish(t *sim.Task, g *Grant, done bool) error {
	mark := &PgStatement{Verb: PgUpdate, Table: pgJobs, ByKey: true, Key: g.State.(*claim).job,
		Set: [4]PgAssign{{jobStatus, PgValue(jobDone)}}}
	switch {
	case q.reaper && !done:
		return nil
	case q.reaper:
		mark.Where[0] = PgCond{jobClaimedBy, Equal, PgValue(g.Mark)}
		r, err := q.link.do(t, mark)
		if err == nil && r.Rows == 0 {
			return ErrLost
		}
		return err
	case !done:
		return q.x.end(t, PgRollback)
	}
	if _, err := q.link.in(t, mark); err != nil {
		q.x.abandon(t)
		return err
	}
	return q.x.end(t, PgCommit)
}

// enterJob is same-transaction for a queue: what a job does is written in the
// transaction that holds its claim, or in the one that marks it as done if the
// claim is still this worker's.
func enterJob(_ *sim.Task, g *Grant) (Section, error) {
	c := g.State.(*claim)
	if c.queue.reaper {
		return &claimSection{c, g}, nil
	}
	return &txSection{x: &c.queue.x, tenure: g.Op}, nil
}

// claimSection writes in a transaction that marks the job as done first:
//
//	BEGIN
//	UPDATE jobs SET status = 2 WHERE id = $id AND claimed_by = $me   -- 0 rows: ROLLBACK
//	INSERT INTO entries (value) VALUES ($value)
//	COMMIT
type claimSection struct {
	*claim
	grant *Grant
}

// Read implements Section. A job reads nothing.
func (s *claimSection) Read(*sim.Task) (int64, error) { return 0, nil }

// Write implements Section.
func (s *claimSection) Write(t *sim.Task, value int64) error { return s.Append(t, value) }

// Append implements Section.
func (s *claimSection) Append(t *sim.Task, value int64) error {
	guard := &PgStatement{Verb: PgUpdate, Table: pgJobs, ByKey: true, Key: s.job,
		Set: [4]PgAssign{{jobStatus, PgValue(jobDone)}}, decides: true}
	guard.Where[0] = PgCond{jobClaimedBy, Equal, PgValue(s.grant.Mark)}
	return s.queue.link.guarded(t, OpAppend, s.grant.Op, value, guard, insertEntry(value))
}

// Lost implements Section.
func (s *claimSection) Lost(*sim.Task) bool { return false }

// jobSection is a section of a job: whatever the workload, its effect is one
// entry with the job's own name.
type jobSection struct {
	Section
	job int64
}

// Read implements Section. A job reads nothing.
func (s *jobSection) Read(*sim.Task) (int64, error) { return 0, nil }

// Write implements Section.
func (s *jobSection) Write(t *sim.Task, _ int64) error { return s.Section.Append(t, s.job) }

// Append implements Section.
func (s *jobSection) Append(t *sim.Task, _ int64) error { return s.Section.Append(t, s.job) }

// pgKeys are the idempotency keys: CREATE TABLE keys (key bigint PRIMARY KEY).
var pgKeys = &PgTable{Name: "keys", Columns: []string{"key"}}

// idempotencySystem needs neither lock nor queue: every request has a key.
func idempotencySystem(env *Env) System {
	g := newPostgres(env)
	g.inside(env, nil)
	return System{Protocol: func(client *sim.Process) Protocol {
		l := g.link()
		return &attempts{env: env, open: func(t *sim.Task, tenure int32) (attempt, error) {
			key := int64(client.ID()+1)*1_000_000 + int64(t.Section())
			return &keySection{tail{env: env, link: &l, tenure: tenure}, key}, nil
		}}
	}}
}

// keySection does what it does once, however often it must be asked for:
//
//	BEGIN
//	INSERT INTO keys VALUES ($key) ON CONFLICT DO NOTHING RETURNING *   -- no row: it is done already
//	INSERT INTO entries (value) VALUES ($key)
//	COMMIT                                                             -- unknown: all of it again
type keySection struct {
	tail
	key int64
}

// Read implements Section. A request reads nothing.
func (s *keySection) Read(*sim.Task) (int64, error) { return 0, nil }

// Write implements Section.
func (s *keySection) Write(t *sim.Task, value int64) error { return s.Append(t, value) }

// Append implements Section.
func (s *keySection) Append(t *sim.Task, _ int64) error {
	opts := &s.env.Options
	op := s.env.Rec.Invoke(t, OpAppend, s.tenure, s.key, 0)
	for {
		err := s.once(t)
		if !errors.Is(err, sim.ErrUnknown) && !errors.Is(err, sim.ErrRefused) {
			s.env.Rec.Return(t, op, err, 0)
			return err
		}
		t.Sleep(opts.Retry + time.Duration(t.Choose(sim.PointJitter, 0, int64(opts.RetryJitter))))
	}
}

func (s *keySection) once(t *sim.Task) error {
	insert := &PgStatement{Verb: PgInsert, Table: pgKeys, Values: [pgColumns]PgExpr{PgValue(s.key)}, OnConflict: ConflictDoesNothing}
	if err := s.link.guard(t, insert, insertEntry(s.key)); !errors.Is(err, ErrRefused) {
		return err
	}
	return nil // the key is there, and so is its effect
}
