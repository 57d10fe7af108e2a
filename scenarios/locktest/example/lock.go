// Package example goes from a naive lock to a right one in five steps. Each
// step is what somebody wrote after the last one had failed, and fails for the
// next reason, but for the fifth. Run the tests with -v to read the stories.
package example

import (
	"locklab/models"
	"locklab/scenarios/locktest"
	"locklab/sim"
)

// naive sets a key if it is not set, and deletes it: step 1.
type naive struct {
	store   locktest.Link
	options models.Options
}

func newNaive(o models.Options, server *sim.Process) models.Lock {
	return &naive{locktest.Link{Server: server}, o}
}

// do sends a request; busy is what a refusal means.
func (l *naive) do(t *sim.Task, r request, refused error) (answer, error) {
	reply, err := l.store.Call(t, r, l.options.CallTimeout)
	if err != nil {
		return answer{}, err
	}
	if a := reply.(answer); a.done {
		return a, nil
	}
	return answer{}, refused
}

func (l *naive) Acquire(t *sim.Task) (models.Grant, error) {
	_, err := l.do(t, request{verb: "set", value: 1}, models.ErrBusy)
	return models.Grant{}, err
}

func (l *naive) Renew(*sim.Task, *models.Grant) error { return nil }

func (l *naive) Release(t *sim.Task, _ *models.Grant) error {
	_, err := l.do(t, request{verb: "delete"}, models.ErrLost)
	return err
}

// expiring gives the key a TTL, so that a crashed client's lock goes by
// itself: step 2.
type expiring struct{ naive }

func newExpiring(o models.Options, server *sim.Process) models.Lock {
	return &expiring{naive{locktest.Link{Server: server}, o}}
}

func (l *expiring) Acquire(t *sim.Task) (models.Grant, error) {
	return l.set(t, 1)
}

func (l *expiring) set(t *sim.Task, value int64) (models.Grant, error) {
	deadline := t.Now().Add(l.options.TTL) // from before the request
	a, err := l.do(t, request{verb: "set", value: value, ttl: l.options.TTL}, models.ErrBusy)
	return models.Grant{Mark: value, Deadline: deadline, Token: a.token}, err
}

// owned sets a value of its own and deletes no other: steps 3 to 5. What
// these differ in is the resource, and whether it looks at the token.
type owned struct{ expiring }

func newOwned(o models.Options, server *sim.Process) models.Lock {
	return &owned{expiring{naive{locktest.Link{Server: server}, o}}}
}

func (l *owned) Acquire(t *sim.Task) (models.Grant, error) {
	return l.set(t, t.Unique())
}

func (l *owned) Release(t *sim.Task, g *models.Grant) error {
	_, err := l.do(t, request{verb: "delete-if", value: g.Mark}, models.ErrLost)
	return err
}
