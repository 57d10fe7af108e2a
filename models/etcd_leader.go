package models

import "locklab/sim"

// etcdLeaderSystem adds an etcd cluster for etcd/leader.
func etcdLeaderSystem(env *Env) System {
	c := newEtcd(env)
	return c.system(c.holding, func(client int) Lock { return &etcdLeader{newEtcdLock(env, c, etcdVariant{}, client)} })
}

// etcdLeader is a candidate of client/v3/concurrency's Election. It campaigns
// with a key of its session's, as its Mutex does, and differs in two points. A
// campaign that has waited does not look whether its own key is still there:
// pull request 11408 mended the Mutex alone, and a candidate whose session died
// in the queue learns it from its session, later (issue 19597, pull request
// 22387). And who resigns deletes its key only as long as it is the one of this
// term. Observe, for those who want to know who leads, is left out: nobody here
// acts on it.
// (https://github.com/etcd-io/etcd/blob/main/client/v3/concurrency/election.go)
type etcdLeader struct{ *etcdLock }

// Acquire implements Lock: Election.Campaign.
func (l *etcdLeader) Acquire(t *sim.Task) (Grant, error) { return l.inSession(t, l.campaign) }

// campaign puts the key and waits until it is the oldest. What it proclaims is who it is, which does not
// change.
func (l *etcdLeader) campaign(t *sim.Task) (Grant, error) {
	_, g, err := l.claim(t, kvStep{})
	if err != nil {
		return Grant{}, err
	}
	if err := l.await(t, g.Token); err != nil {
		l.client.until = 0
		_, _ = l.client.once(t, l.resignation(&g))
		return Grant{}, err
	}
	return g, nil
}

func (l *etcdLeader) resignation(g *Grant) kvRequest {
	r := l.deletion()
	r.target, r.key, r.equals = kvCreateRevision, l.session.key(), g.Token
	return r
}

// Release implements Lock: Election.Resign.
func (l *etcdLeader) Release(t *sim.Task, g *Grant) error { return l.letGo(t, l.resignation(g)) }
