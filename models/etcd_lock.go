package models

import "locklab/sim"

// etcdVariant is what tells the etcd designs apart.
type etcdVariant struct {
	// noRecheck trusts that it is the owner when those before it are gone, as
	// client/v3/concurrency did before etcd's pull request 11408.
	noRecheck bool
	// guard: the protected data lives in the same store.
	guard bool
}

// newEtcd adds an etcd cluster to the world.
func newEtcd(env *Env) *raftCluster {
	return newStoreCluster(env, raftOptions{name: "etcd", staleLessor: env.Options.StaleLessor})
}

// etcdSystem adds an etcd cluster and returns the design's system on it.
func etcdSystem(v etcdVariant) func(env *Env) System {
	return func(env *Env) System {
		c := newEtcd(env)
		if v.guard {
			env.inside = guardedStore(env, c)
		}
		return c.system(c.holding, func(client int) Lock { return newEtcdLock(env, c, v, client) })
	}
}

// etcdLock is a client's mutex as client/v3/concurrency builds it: a key of the
// session's under a common prefix; whoever's key was created first owns the
// lock. The fencing token is the key's create revision.
type etcdLock struct {
	etcdVariant
	env     *Env
	nodes   []*sim.Process
	at      int
	client  kvClient // for the program's own requests
	watcher kvClient // for watches: another stream
	session *kvSession
}

// newEtcdLock returns a handle that begins with the given member.
func newEtcdLock(env *Env, c *raftCluster, v etcdVariant, at int) *etcdLock {
	return &etcdLock{etcdVariant: v, env: env, nodes: c.procs, at: at,
		client: newKvClient(env, c.procs, at), watcher: newKvClient(env, c.procs, at)}
}

// Acquire implements Lock: Mutex.Lock.
func (l *etcdLock) Acquire(t *sim.Task) (Grant, error) { return l.inSession(t, l.lock) }

// inSession makes sure that there is a session, a new one if need be, and
// queues up in it.
func (l *etcdLock) inSession(t *sim.Task, queue func(*sim.Task) (Grant, error)) (Grant, error) {
	l.client.until = 0
	if wait := l.env.Options.Wait; wait > 0 {
		l.client.until = t.Now().Add(wait)
	}
	l.watcher.until = l.client.until
	if l.session == nil || l.session.over {
		s, err := openSession(t, l.env, l.nodes, l.at, &l.client, false)
		if err != nil {
			return Grant{}, err
		}
		l.session = s
	}
	l.session.carry(t)
	op, acked := t.Op, l.session.acked
	g, err := queue(t)
	switch {
	case err != nil:
		l.session.release()
	case acked != op: // to take its place in line does not renew a lease
		l.env.Rec.Rests(op, acked)
	}
	return g, err
}

// lock puts the key, waits until it is the oldest, and sees whether it is still
// there.
func (l *etcdLock) lock(t *sim.Task) (Grant, error) {
	reply, g, err := l.claim(t, kvStep{action: kvFirst, key: kvKey{dir: kvLocks}})
	if err != nil || reply.found[1].create == g.Token { // nobody is before it
		return g, err
	}
	if err := l.await(t, g.Token); err != nil {
		l.leave(t)
		return Grant{}, err
	}
	if l.noRecheck {
		return g, nil
	}
	reply, err = l.client.repeat(t, kvRequest{kvCommand: kvCommand{verb: kvRange, key: l.session.key()}, linear: true})
	switch {
	case err != nil:
		l.leave(t)
		return Grant{}, err
	case reply.found[0].create == 0: // ErrSessionExpired
		l.session.over = true
		return Grant{}, ErrLost
	}
	return g, nil
}

// claim puts the session's key, or finds it where an earlier try left it, and
// looks at something else in the same transaction.
func (l *etcdLock) claim(t *sim.Task, also kvStep) (*kvReply, Grant, error) {
	key := l.session.key()
	reply, err := l.client.once(t, kvRequest{kvCommand: kvCommand{verb: kvTxn, target: kvCreateRevision, key: key, claims: true,
		then:   [2]kvStep{{action: kvPut, key: key, lease: l.session.lease}, also},
		orElse: [2]kvStep{{action: kvGet, key: key}, also}}})
	switch {
	case err != nil:
		return nil, Grant{}, err
	case reply.code == kvNoLease:
		l.session.over = true
		return nil, Grant{}, ErrLost
	}
	l.session.token = reply.found[0].create
	return reply, Grant{Token: l.session.token, State: l.session}, nil
}

// await waits until no key is older: it watches the youngest that is, and looks
// again when that one is gone (waitDeletes).
func (l *etcdLock) await(t *sim.Task, mine int64) error {
	for {
		reply, err := l.client.repeat(t, kvRequest{kvCommand: kvCommand{verb: kvRange, key: kvKey{dir: kvLocks}}, linear: true, before: mine})
		if err != nil {
			return err
		}
		older := reply.found[0]
		if older.create == 0 {
			return nil
		}
		if _, err := l.watcher.watch(t, kvRequest{kvCommand: kvCommand{key: older.key, equals: older.create}, least: reply.revision}); err != nil {
			return err
		}
	}
}

// leave takes the key away when the client does not want to wait any longer.
func (l *etcdLock) leave(t *sim.Task) {
	l.client.until = 0
	_, _ = l.client.once(t, l.deletion())
}

func (l *etcdLock) deletion() kvRequest {
	return kvRequest{kvCommand: kvCommand{verb: kvTxn, then: [2]kvStep{{action: kvDelete, key: l.session.key()}}}}
}

// Renew implements Lock. The session's keeper does it.
func (l *etcdLock) Renew(*sim.Task, *Grant) error { return nil }

// Release implements Lock: Mutex.Unlock deletes the key by its name. If nobody
// knows whether it did, the program lets the session go and takes another for
// its next acquire. With the same one it might find its key in place, with the
// create revision that it had, so that two tenures share a token; or have it
// deleted later by the unlock that is still under way (etcd's issue 22082).
func (l *etcdLock) Release(t *sim.Task, _ *Grant) error { return l.letGo(t, l.deletion()) }

// letGo gives the lock back by the given request.
func (l *etcdLock) letGo(t *sim.Task, deletion kvRequest) error {
	l.client.until = 0
	reply, err := l.client.once(t, deletion)
	l.session.release()
	switch {
	case err != nil:
		l.session.over = true
	case reply.found[0].create == 0:
		return ErrLost
	}
	return err
}
