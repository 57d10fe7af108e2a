package models

import "locklab/sim"

// guardedData is protected data that lives in the lock's own store: every read
// and write is a transaction that compares the create revision of the client's
// lock key. A tenure that is over finds its key gone.
type guardedData struct{ store *raftCluster }

// guardedStore is what the resource same-transaction is under etcd/txn-guard.
func guardedStore(env *Env, c *raftCluster) Store {
	clients := 0
	return Store{Data: guardedData{c}, Handle: func() Resource {
		clients++
		return &guardHandle{env: env, client: newKvClient(env, c.procs, clients-1)}
	}}
}

// Contents implements Data.
func (d guardedData) Contents(list bool) []int64 {
	entries := d.store.truth.list(kvData)
	if !list {
		if len(entries) == 0 {
			return []int64{0}
		}
		return []int64{entries[0].value}
	}
	var out []int64
	for _, e := range entries {
		out = append(out, e.value)
	}
	return out
}

// guardHandle is one client's handle on the data.
type guardHandle struct {
	env    *Env
	client kvClient
}

// guardSection is a section of a client on the data.
type guardSection struct {
	*guardHandle
	grant *Grant
}

// Enter implements Resource.
func (h *guardHandle) Enter(_ *sim.Task, g *Grant) (Section, error) {
	return guardSection{h, g}, nil
}

// Read implements Section.
func (s guardSection) Read(t *sim.Task) (int64, error) {
	return s.do(t, OpRead, kvStep{action: kvGet})
}

// Write implements Section.
func (s guardSection) Write(t *sim.Task, value int64) error {
	_, err := s.do(t, OpWrite, kvStep{action: kvPut, value: value})
	return err
}

// Append implements Section.
func (s guardSection) Append(t *sim.Task, value int64) error {
	_, err := s.do(t, OpAppend, kvStep{action: kvAppend, value: value})
	return err
}

// do carries one operation out if the lock key is still the one of the grant.
// Reads go through the log too, so that each has one instant at which it takes
// effect.
func (s guardSection) do(t *sim.Task, kind OpKind, step kvStep) (int64, error) {
	rec := s.env.Rec
	op := rec.Invoke(t, kind, s.grant.Op, step.value, s.grant.Token)
	step.key = kvKey{kvData, 1}
	reply, err := s.client.once(t, kvRequest{kvCommand: kvCommand{verb: kvTxn, target: kvCreateRevision, decides: true,
		key: s.grant.State.(*kvSession).key(), equals: s.grant.Token, then: [2]kvStep{step}}})
	seen := int64(0)
	switch {
	case err != nil:
	case !reply.held:
		err = ErrRefused
	default:
		seen = reply.found[0].value
	}
	rec.Return(t, op, err, seen)
	return seen, err
}

// Lost implements Section. The session knows.
func (s guardSection) Lost(*sim.Task) bool { return false }
