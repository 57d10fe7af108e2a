package models

import "locklab/sim"

// localMutexes is one mutex for each machine, as flock(2) on a local file is:
// it keeps out the other processes of its machine, and nobody else.
type localMutexes struct {
	env     *Env
	holders []*sim.Task // by machine, in the order of nodes
	nodes   []*sim.Node
}

func localMutexSystem(env *Env) System {
	m := &localMutexes{env: env}
	return System{Lock: func(client *sim.Process) Lock { return localMutex{m, m.machine(client.Node())} }}
}

func (m *localMutexes) machine(n *sim.Node) int {
	for i, known := range m.nodes {
		if known == n {
			return i
		}
	}
	m.nodes, m.holders = append(m.nodes, n), append(m.holders, nil)
	return len(m.nodes) - 1
}

// localMutex is a process's handle.
type localMutex struct {
	*localMutexes
	machine int
}

// Acquire implements Lock. The kernel frees the mutex of a process that died.
func (l localMutex) Acquire(t *sim.Task) (Grant, error) {
	t.Now() // the system call, before which a fault may strike
	if h := l.holders[l.machine]; h != nil && !h.Done() {
		return Grant{}, ErrBusy
	}
	l.holders[l.machine] = t
	return Grant{}, nil
}

// Renew implements Lock. A mutex needs no renewal.
func (l localMutex) Renew(*sim.Task, *Grant) error { return nil }

// Release implements Lock.
func (l localMutex) Release(t *sim.Task, _ *Grant) error {
	t.Now()
	if l.holders[l.machine] == t {
		l.holders[l.machine] = nil
	}
	return nil
}
