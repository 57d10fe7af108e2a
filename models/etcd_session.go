package models

import (
	"errors"
	"time"

	"locklab/clock"
	"locklab/sim"
)

// kvSession is a lease that its client keeps alive from the moment it has it:
// while it waits, while it holds a lock, and in between. (etcd: the session of
// client/v3/concurrency; ZooKeeper: the connection's.)
//
// What a session promises is a lease: until TTL after the last acknowledged
// keepalive was sent, whatever becomes of the servers. A crash or a failover
// that ends it earlier has broken the promise, and one that the network starved
// has not; so the designs declare LeasePromise, and never SessionPromise, which
// speaks of a grant that lives as long as its connection does.
type kvSession struct {
	env    *Env
	client kvClient // the keeper's own way to the servers
	lease  int64
	over   bool
	// forgiving sessions (ZooKeeper's) are lost only when a server says so.
	// The others reckon for themselves that they have expired, as etcd's
	// client does (deadlineLoop in client/v3/lease.go): TTL after the last
	// acknowledgement came.
	forgiving bool
	deadline  clock.Reading

	// What the keeper records its renewals under: the acquire in progress or
	// in force, 0 between two.
	tenure  int32
	token   int64
	section int
	// acked is the last operation by which a server acknowledged the lease.
	acked int32
}

// keepAliveRetry is how soon a keepalive that failed is tried again
// (retryConnWait in client/v3/lease.go).
const keepAliveRetry = 500 * time.Millisecond

// openSession obtains a lease and starts its keeper, a task called renewer.
func openSession(t *sim.Task, env *Env, nodes []*sim.Process, at int, ask *kvClient, forgiving bool) (*kvSession, error) {
	s := &kvSession{env: env, client: newKvClient(env, nodes, at), forgiving: forgiving, lease: t.Unique()}
	// Repeating it is safe: a lease too many expires, and bears no key.
	if _, err := ask.repeat(t, kvRequest{kvCommand: kvCommand{verb: kvGrant, lease: s.lease, ttl: env.Options.TTL}}); err != nil {
		return nil, err
	}
	s.deadline, s.acked = t.Now().Add(env.Options.TTL), t.Op
	t.Spawn("renewer", sim.PhaseRenew, func(k *sim.Task) { s.keep(k, t) })
	return s, nil
}

// keep renews the lease until it is gone, or the program is at its end.
func (s *kvSession) keep(k, program *sim.Task) {
	wait := s.env.Options.Renew
	for !s.over && !program.Done() {
		k.Sleep(wait)
		wait = s.env.Options.Renew
		if s.section > 0 {
			k.Enter(s.section, sim.PhaseRenew)
		}
		if err := s.renew(k); errors.Is(err, ErrLost) {
			s.lose(k)
		} else if err != nil {
			wait = keepAliveRetry
			if !s.forgiving && k.Now() >= s.deadline {
				s.lose(k)
			}
		}
	}
}

// renew sends one keepalive.
func (s *kvSession) renew(k *sim.Task) error {
	op := s.env.Rec.Invoke(k, OpRenew, s.tenure, 0, s.token)
	reply, err := s.client.ask(k, kvRequest{kvCommand: kvCommand{verb: kvKeepAlive, lease: s.lease}})
	switch {
	case err == nil && reply.code == kvNoLease:
		err = ErrLost
	case err == nil:
		s.deadline, s.acked = k.Now().Add(s.env.Options.TTL), op
	}
	s.env.Rec.Return(k, op, asUnknown(err), 0)
	return err
}

// asUnknown is what a keepalive that was not answered says about the lease:
// nothing. Only ErrLost is a no.
func asUnknown(err error) error {
	if err != nil && !errors.Is(err, ErrLost) {
		return sim.ErrUnknown
	}
	return err
}

func (s *kvSession) lose(k *sim.Task) {
	s.over = true
	if s.tenure != 0 {
		s.env.Rec.LearnsLoss(k, s.tenure)
	}
}

// Over implements Session. A client that tests its deadline looks at the clock.
func (s *kvSession) Over(t *sim.Task) bool {
	return s.over || s.env.Options.ChecksValidity && t.Now() >= s.deadline
}

// carry says which acquire the session is for from now on.
func (s *kvSession) carry(t *sim.Task) {
	s.tenure, s.token, s.section = t.Op, 0, t.Section()
}

// key is the session's key in a lock's queue: a session that asks again finds
// its old place (etcd's pull request 5199).
func (s *kvSession) key() kvKey { return kvKey{kvLocks, s.lease} }

func (s *kvSession) release() { s.tenure, s.token = 0, 0 }
