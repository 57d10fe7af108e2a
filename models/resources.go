package models

import "locklab/sim"

// Resources is the catalogue of protected resources, in its documented order.
func Resources() []*ResourceKind {
	return []*ResourceKind{
		{Name: "plain", Summary: "accepts everything",
			rule: func(*storeState, *storeRequest) bool { return true }},
		{Name: "fenced", Summary: "refuses a write whose token is lower than the highest seen; reads carry none",
			Needs: OrderedTokens, rule: notLower, client: storeClient{tokens: true}},
		{Name: "fenced-volatile", Summary: "the same, but a crash of the resource forgets the highest token",
			Needs: OrderedTokens, rule: notLower, client: storeClient{tokens: true}, forgetful: true},
		{Name: "fenced-once", Summary: "refuses a write unless its token is higher than any seen (a holder's second write is refused too)",
			Needs: OrderedTokens, rule: higher, client: storeClient{tokens: true}},
		{Name: "fenced-reads", Summary: "fenced, and reads carry the token and raise the bar too",
			Needs: OrderedTokens, rule: notLower, client: storeClient{tokens: true, readTokens: true}},
		{Name: "check-then-write", Summary: "compares the token, then writes, in two steps: a race",
			Needs: OrderedTokens, rule: checkOnly, client: storeClient{tokens: true, checksFirst: true}},
		{Name: "marked", Summary: "on entry the client writes its own random mark; a write requires the mark unchanged",
			rule: sameMark, client: storeClient{marks: true}},
		{Name: "versioned", Summary: "a write requires the version that was read (compare and swap)",
			rule: sameVersion, client: storeClient{versions: true}},
		{Name: "same-transaction", Summary: "the data lives in the design's own database and is written in its transaction; under a lease, in one that re-checks the lease's row or key",
			Hosted: true, Build: sameTransaction},
	}
}

// notLower is the rule of fencing as Kleppmann gives it: a token lower than
// the highest seen is refused. A request without a token (a read) passes.
func notLower(s *storeState, r *storeRequest) bool {
	if r.token == 0 {
		return true
	}
	if r.token < s.highest {
		return false
	}
	s.highest = r.token
	return true
}

// higher is the stricter rule of WHERE fencing_token < @token.
func higher(s *storeState, r *storeRequest) bool {
	if r.token == 0 {
		return true
	}
	if r.token <= s.highest {
		return false
	}
	s.highest = r.token
	return true
}

// checkOnly compares tokens in a request of its own and lets the write that
// follows pass unseen.
func checkOnly(s *storeState, r *storeRequest) bool {
	return r.verb != storeCheck || notLower(s, r)
}

// sameMark requires that nobody else has marked the data since this client
// did.
func sameMark(s *storeState, r *storeRequest) bool {
	return r.verb == storeRead || r.verb == storeMark || r.mark == s.mark
}

// sameVersion requires the version that the client read.
func sameVersion(s *storeState, r *storeRequest) bool {
	return r.verb == storeRead || r.version == s.version
}

// storeClient says how clients speak to a storage with a certain rule.
type storeClient struct {
	tokens      bool // writes carry the fencing token
	readTokens  bool // reads too
	checksFirst bool // a check goes before each write, which carries no token
	marks       bool // entering writes a mark, which writes carry
	versions    bool // writes carry the version that was read
}

// SetUp adds the resource's server to the world.
func (k *ResourceKind) SetUp(env *Env) Store {
	if k.Build != nil {
		return k.Build(env)
	}
	s, p := newStorage(env, k.rule)
	s.forgetful = k.forgetful
	return Store{Data: s, Handle: func() Resource {
		return &storeHandle{storeClient: k.client, env: env, link: link{server: p}}
	}}
}

// storeHandle is one client's handle on the storage.
type storeHandle struct {
	storeClient
	env  *Env
	link link
}

// storeSection is a section of a client on the storage.
type storeSection struct {
	*storeHandle
	grant   *Grant
	mark    int64
	version int64
}

// Enter implements Resource.
func (h *storeHandle) Enter(t *sim.Task, g *Grant) (Section, error) {
	s := h.env.sections.Get()
	s.storeHandle, s.grant = h, g
	if !h.marks {
		return s, nil
	}
	s.mark = t.Unique()
	_, err := s.do(t, OpEnter, storeRequest{verb: storeMark, mark: s.mark})
	return s, err
}

// Read implements Section.
func (s *storeSection) Read(t *sim.Task) (int64, error) {
	r := storeRequest{verb: storeRead}
	if s.readTokens {
		r.token = s.grant.Token
	}
	return s.do(t, OpRead, r)
}

// Write implements Section.
func (s *storeSection) Write(t *sim.Task, value int64) error {
	return s.change(t, OpWrite, storeRequest{verb: storeWrite, value: value})
}

// Append implements Section.
func (s *storeSection) Append(t *sim.Task, value int64) error {
	return s.change(t, OpAppend, storeRequest{verb: storeAppend, value: value})
}

// change sends a write or append with what the resource's rule wants.
func (s *storeSection) change(t *sim.Task, kind OpKind, r storeRequest) error {
	if s.tokens {
		r.token = s.grant.Token
	}
	r.mark = s.mark
	if s.versions {
		if s.version == 0 { // a blind write still has to know what it replaces
			if _, err := s.do(t, OpRead, storeRequest{verb: storeRead}); err != nil {
				return err
			}
		}
		r.version = s.version
	}
	_, err := s.do(t, kind, r)
	return err
}

// do performs one operation and records it.
func (s *storeSection) do(t *sim.Task, kind OpKind, r storeRequest) (int64, error) {
	rec := s.env.Rec
	op := rec.Invoke(t, kind, s.grant.Op, r.value, r.token)
	var reply *storeReply
	var err error
	if s.checksFirst && kind != OpRead {
		check := storeRequest{verb: storeCheck, token: r.token}
		r.token = 0
		reply, err = s.send(t, check)
	}
	if err == nil {
		reply, err = s.send(t, r)
	}
	seen := int64(0)
	if err == nil {
		seen, s.version = reply.value, reply.version
	}
	rec.Return(t, op, err, seen)
	return seen, err
}

// send sends one request and turns a no into an error.
func (s *storeSection) send(t *sim.Task, r storeRequest) (*storeReply, error) {
	body := s.env.storeRequests.Get()
	*body = r
	p, err := s.link.call(t, s.env, body)
	if err != nil {
		return nil, err
	}
	reply := p.(*storeReply)
	switch {
	case reply.ok:
		return reply, nil
	case s.versions:
		return nil, ErrConflict
	}
	return nil, ErrRefused
}

// Lost implements Section. The storage knows of no lock.
func (s *storeSection) Lost(*sim.Task) bool { return false }
