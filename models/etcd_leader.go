package models

import (
	"cmp"

	"locklab/sim"
)

// etcdLeaderSystem adds an etcd cluster for etcd/leader.
func etcdLeaderSystem(env *Env) System {
	c := newRaftCluster(env, raftOptions{name: "etcd", nodes: cmp.Or(env.Options.Members, 3),
		revision: env.Options.TokenStart - 1, staleLessor: env.Options.StaleLessor})
	clients := 0
	return System{
		Watch: c.procs, Replicated: true, Holder: c.holding,
		Lock: func(*sim.Process) Lock {
			clients++
			return &etcdLeader{newEtcdLock(env, c, etcdVariant{}, clients-1)}
		},
	}
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

// campaign puts the key, or finds it where an earlier campaign left it, and
// waits until it is the oldest. What it proclaims is who it is, which does not
// change.
func (l *etcdLeader) campaign(t *sim.Task) (Grant, error) {
	key := l.session.key()
	reply, err := l.client.once(t, kvRequest{kvCommand: kvCommand{verb: kvTxn, target: kvCreateRevision, key: key, claims: true,
		then: [2]kvStep{{action: kvPut, key: key, lease: l.session.lease}}, orElse: [2]kvStep{{action: kvGet, key: key}}}})
	switch {
	case err != nil:
		return Grant{}, err
	case reply.code == kvNoLease:
		l.session.over = true
		return Grant{}, ErrLost
	}
	g := Grant{Token: reply.found[0].create, State: l.session}
	l.session.token = g.Token
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
