package models

import (
	"errors"

	"locklab/sim"
)

// zooVariant is what tells the ZooKeeper designs apart.
type zooVariant struct {
	herd bool // everybody watches the owner's node instead of the one before its own
}

// zooSystem adds a ZooKeeper ensemble and returns the design's system on it. It
// is the same store: a session is a lease, an ephemeral node a key attached to
// it, a czxid a create revision. (In ZooKeeper opening and closing a session
// takes a transaction number too; here, as in etcd, only what changes nodes
// does. Nothing depends on it but that numbers grow.)
func zooSystem(v zooVariant) func(env *Env) System {
	return func(env *Env) System {
		c := newStoreCluster(env, raftOptions{name: "zookeeper"})
		return c.system(c.holding, func(client int) Lock {
			return &zooLock{zooVariant: v, env: env, nodes: c.procs, at: client,
				client: newKvClient(env, c.procs, client), watcher: newKvClient(env, c.procs, client)}
		})
	}
}

// zooLock is a client's lock by the recipe "Locks" of ZooKeeper's documentation
// (https://zookeeper.apache.org/doc/current/recipes.html): an ephemeral
// sequential node; the lowest owns the lock, each other watches the next lower.
// The fencing token is the node's czxid.
type zooLock struct {
	zooVariant
	env     *Env
	nodes   []*sim.Process
	at      int
	client  kvClient
	watcher kvClient
	session *kvSession
	seen    int64 // the latest revision that the session has seen
	node    kvEntry
	// connection counts the session's: the one it has now is the last.
	connection int64
}

// Acquire implements Lock.
func (l *zooLock) Acquire(t *sim.Task) (Grant, error) {
	l.patience(t)
	if l.session == nil || l.session.over {
		s, err := openSession(t, l.env, l.nodes, l.at, &l.client, true)
		if err != nil {
			return Grant{}, err
		}
		l.session = s
	}
	l.session.carry(t)
	err := l.enqueue(t)
	if err == nil {
		l.session.token = l.node.create
		err = l.await(t)
	}
	switch {
	case errors.Is(err, ErrGaveUp):
		l.client.until = 0
		_ = l.remove(t)
	case errors.Is(err, ErrLost):
		l.session.over = true
	}
	if err != nil {
		l.session.release()
		return Grant{}, err
	}
	return Grant{Token: l.node.create, State: l.session}, nil
}

func (l *zooLock) patience(t *sim.Task) {
	l.client.until = 0
	if wait := l.env.Options.Wait; wait > 0 {
		l.client.until = t.Now().Add(wait)
	}
	l.watcher.until = l.client.until
}

// enqueue creates the client's node. If the connection is lost on the way
// (CONNECTION_LOSS), nobody knows whether the node was made, and the session
// that owns it lives on. The recipe's answer is a GUID in the node's name: the
// client lists the nodes and finds its own. Without it the create is simply
// repeated, and may leave a first node behind that nobody will ever delete.
func (l *zooLock) enqueue(t *sim.Task) error {
	guid := int64(0)
	if !l.env.Options.PlainCreate {
		guid = t.Unique()
	}
	for {
		reply, err := l.client.once(t, kvRequest{kvCommand: kvCommand{verb: kvCreate, key: kvKey{dir: kvLocks}, equals: l.connection, lease: l.session.lease, value: guid}})
		switch {
		case err == nil && reply.code == kvNoLease:
			return ErrLost
		case err == nil:
			l.node = reply.found[0]
			l.seen = max(l.seen, reply.revision)
			return nil
		case !errors.Is(err, sim.ErrUnknown):
			return err
		}
		if err := l.reconnect(t); err != nil {
			return err
		}
		if guid == 0 {
			continue
		}
		found, err := l.look(t, func(e *kvEntry) bool { return e.value == guid })
		if err != nil || found {
			return err
		}
	}
}

// reconnect goes on with the session on another connection. What was under way
// on the old one has come by now or never will.
func (l *zooLock) reconnect(t *sim.Task) error {
	l.connection++
	reply, err := l.client.repeat(t, kvRequest{kvCommand: kvCommand{verb: kvAttach, equals: l.connection, lease: l.session.lease}})
	switch {
	case err != nil:
		return err
	case reply.code == kvNoLease:
		return ErrLost
	}
	l.seen = max(l.seen, reply.revision)
	return nil
}

// look finds the node that is the client's in the queue.
func (l *zooLock) look(t *sim.Task, mine func(*kvEntry) bool) (bool, error) {
	list, err := l.children(t)
	for i := range list {
		if mine(&list[i]) {
			l.node = list[i]
			return true, err
		}
	}
	return false, err
}

// children lists the queue. The member answers from its own state, once that
// is as new as what the session has seen; the session must be alive.
func (l *zooLock) children(t *sim.Task) ([]kvEntry, error) {
	reply, err := l.client.repeat(t, kvRequest{kvCommand: kvCommand{verb: kvRange, key: kvKey{dir: kvLocks}}, least: l.seen, session: l.session.lease})
	if err != nil {
		return nil, err
	}
	if reply.code == kvNoLease {
		return nil, ErrLost
	}
	l.seen = max(l.seen, reply.revision)
	return reply.list, nil
}

// await waits until the client's node is the lowest. It lists the nodes anew
// each time, and so sees whether its own is still there.
func (l *zooLock) await(t *sim.Task) error {
	for {
		list, err := l.children(t)
		if err != nil {
			return err
		}
		at := -1
		for i := range list {
			if list[i].key == l.node.key && list[i].lease == l.session.lease {
				at = i
			}
		}
		switch at {
		case -1:
			return ErrLost
		case 0:
			return nil
		}
		watched := list[at-1]
		if l.herd {
			watched = list[0]
		}
		reply, err := l.watcher.watch(t, kvRequest{kvCommand: kvCommand{key: watched.key, equals: watched.create}, least: l.seen, session: l.session.lease})
		if err != nil {
			return err
		}
		if reply.code == kvNoLease {
			return ErrLost
		}
		l.seen = max(l.seen, reply.revision)
	}
}

// remove deletes the client's node, and again until it is told: no other node
// will ever have that name.
func (l *zooLock) remove(t *sim.Task) error {
	for try := 1; ; try++ {
		reply, err := l.client.ask(t, kvRequest{kvCommand: kvCommand{verb: kvTxn, then: [2]kvStep{{action: kvDelete, key: l.node.key}}}})
		switch {
		case err != nil:
			t.Sleep(clientBackoff)
		case reply.found[0].create == 0 && try == 1:
			return ErrLost
		default:
			return nil
		}
	}
}

// Renew implements Lock. The session's keeper does it.
func (l *zooLock) Renew(*sim.Task, *Grant) error { return nil }

// Release implements Lock.
func (l *zooLock) Release(t *sim.Task, _ *Grant) error {
	l.client.until = 0
	err := l.remove(t)
	l.session.release()
	return err
}
