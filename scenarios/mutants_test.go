package scenarios

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/models"
	"locklab/sim"
)

// The designs in this file are broken on purpose. Each must be caught, by the
// finding that names its fault, and the design that it was made from must not
// be.

// mutateLock returns redis/lua-token with every client's handle wrapped.
func mutateLock(t *testing.T, wrap func(models.Lock) models.Lock) *models.Design {
	return wrapLocks(design(t, "redis/lua-token"), wrap)
}

// wrapLocks returns a design with every client's handle wrapped.
func wrapLocks(base *models.Design, wrap func(models.Lock) models.Lock) *models.Design {
	d := *base
	d.Name = "mutant"
	d.Build = func(env *models.Env) models.System {
		s := base.Build(env)
		lock := s.Lock
		s.Lock = func(p *sim.Process) models.Lock { return wrap(lock(p)) }
		return s
	}
	return &d
}

// optimist takes a busy lock for granted.
type optimist struct{ models.Lock }

func (l optimist) Acquire(t *sim.Task) (models.Grant, error) {
	g, err := l.Lock.Acquire(t)
	if errors.Is(err, models.ErrBusy) {
		return models.Grant{Token: 1}, nil
	}
	return g, err
}

// halver hands out every token twice.
type halver struct{ models.Lock }

func (l halver) Acquire(t *sim.Task) (models.Grant, error) {
	g, err := l.Lock.Acquire(t)
	g.Token = (g.Token + 1) / 2
	return g, err
}

// hoarder never lets go.
type hoarder struct{ models.Lock }

func (hoarder) Release(*sim.Task, *models.Grant) error { return nil }

// shortLease promises a TTL and gives the server half of it.
func shortLease(t *testing.T) *models.Design {
	base := design(t, "redis/lua-token")
	d := *base
	d.Build = func(env *models.Env) models.System {
		half := &models.Env{World: env.World, Options: env.Options, Rec: env.Rec}
		half.Options.TTL /= 2
		return base.Build(half)
	}
	return &d
}

// built returns a design whose servers and handles are built for other options
// than it declares.
func built(name string, change func(*models.Options)) func(*testing.T) *models.Design {
	return func(t *testing.T) *models.Design {
		base := design(t, name)
		d := *base
		d.Build = func(env *models.Env) models.System {
			other := &models.Env{World: env.World, Options: env.Options, Rec: env.Rec}
			change(&other.Options)
			return base.Build(other)
		}
		return &d
	}
}

// thief returns somebody else's permit where it can, and keeps its own.
type thief struct {
	models.Lock
	granted *[]models.Grant
}

func (l thief) Acquire(t *sim.Task) (models.Grant, error) {
	g, err := l.Lock.Acquire(t)
	if err == nil {
		*l.granted = append(*l.granted, g)
	}
	return g, err
}

func (l thief) Release(t *sim.Task, g *models.Grant) error {
	for _, other := range *l.granted {
		if other.Mark != g.Mark {
			return l.Lock.Release(t, &other)
		}
	}
	return l.Lock.Release(t, g)
}

// thieves returns a semaphore whose clients all are thieves.
func thieves(t *testing.T) *models.Design {
	base := design(t, "redis/semaphore-zset-server-time")
	d := *base
	d.Build = func(env *models.Env) models.System {
		s := base.Build(env)
		lock, granted := s.Lock, &[]models.Grant{}
		s.Lock = func(p *sim.Process) models.Lock { return thief{lock(p), granted} }
		return s
	}
	return &d
}

// careless goes on after a write with an unknown outcome.
type careless struct{ models.Section }

func (s careless) Write(t *sim.Task, v int64) error {
	if err := s.Section.Write(t, v); !errors.Is(err, sim.ErrUnknown) {
		return err
	}
	return nil
}

// carelessResource wraps the sections of a resource.
type carelessResource struct{ models.Resource }

func (r carelessResource) Enter(t *sim.Task, g *models.Grant) (models.Section, error) {
	s, err := r.Resource.Enter(t, g)
	return careless{s}, err
}

func wrapResource(base *models.ResourceKind, wrap func(models.Resource) models.Resource) *models.ResourceKind {
	return &models.ResourceKind{Name: "mutant", Needs: base.Needs, Build: func(env *models.Env) models.Store {
		s := base.SetUp(env)
		handle := s.Handle
		s.Handle = func() models.Resource { return wrap(handle()) }
		return s
	}}
}

// toyStore is a storage that keeps its data in memory and may apply an append
// more than once.
type toyStore struct {
	toyServer
	rec     models.Recorder
	process *sim.Process
	repeat  int
	values  []int64
}

func (s *toyStore) Start(*sim.Process) { s.values = nil }

func (s *toyStore) Contents(list bool) []int64 {
	if list {
		return s.values
	}
	return []int64{s.value()}
}

func (s *toyStore) value() int64 {
	if n := len(s.values); n > 0 {
		return s.values[n-1]
	}
	return 0
}

func (s *toyStore) serve(p *sim.Process, m *sim.Message, r toyRequest) {
	if r.verb == "read" {
		r.a = s.value()
		s.rec.Decided(m.Op, true, r.a)
		p.Reply(m, r)
		return
	}
	for range s.repeat {
		s.values = append(s.values, r.a)
		s.rec.Decided(m.Op, true, 0)
	}
	p.Reply(m, r)
}

// toySection speaks to a toyStore.
type toySection struct {
	xactSection
}

func (s toySection) Append(t *sim.Task, v int64) error {
	_, err := s.do(t, models.OpAppend, "append", v)
	return err
}

type toyResource struct{ s *toyStore }

func (r toyResource) Enter(t *sim.Task, g *models.Grant) (models.Section, error) {
	g.State = t.Dial(r.s.process)
	return toySection{xactSection{r.s.rec, g}}, nil
}

func toyStoreKind(repeat int) *models.ResourceKind {
	return &models.ResourceKind{Name: "mutant", Build: func(env *models.Env) models.Store {
		s := &toyStore{rec: env.Rec, repeat: repeat}
		s.request = s.serve
		s.process = env.World.AddNode("storage").AddServer("storage", s)
		return models.Store{Data: s, Handle: func() models.Resource { return toyResource{s} }}
	}}
}

func at(t *testing.T, place string) sim.Trigger {
	t.Helper()
	p, err := sim.ParsePlace(place)
	require.NoError(t, err)
	return sim.Trigger{Before: p}
}

func TestMutantsAreCaught(t *testing.T) {
	luaToken := func(t *testing.T) *models.Design { return design(t, "redis/lua-token") }
	named := func(name string) func(*testing.T) *models.ResourceKind {
		return func(t *testing.T) *models.ResourceKind { return resource(t, name) }
	}
	kind := func(k *models.ResourceKind) func(*testing.T) *models.ResourceKind {
		return func(*testing.T) *models.ResourceKind { return k }
	}
	mutant := func(wrap func(models.Lock) models.Lock) func(*testing.T) *models.Design {
		return func(t *testing.T) *models.Design { return mutateLock(t, wrap) }
	}
	pause := func(t *testing.T) sim.Plan {
		return sim.Plan{Faults: []sim.Fault{{Kind: sim.Pause, On: []string{"client-1"}, For: sim.Exactly(11500 * time.Millisecond),
			Trigger: at(t, "client-1/section#1/write")}}}
	}
	lateWrite := func(t *testing.T) sim.Plan {
		return sim.Plan{Faults: []sim.Fault{{Kind: sim.Delay, On: []string{"client-1->storage"}, For: sim.Exactly(4 * time.Second),
			Trigger: at(t, "client-1/section#1/write/op#1")}}}
	}
	crash := func(t *testing.T) sim.Plan {
		return sim.Plan{Faults: []sim.Fault{{Kind: sim.Crash, On: []string{"storage"}, Restart: sim.Exactly(time.Millisecond),
			Trigger: at(t, "client-2/section#2/work")}}}
	}
	none := func(*testing.T) sim.Plan { return sim.Plan{} }
	sound := func(name string) func(*testing.T) *models.Design {
		return func(t *testing.T) *models.Design { return design(t, name) }
	}

	for _, m := range []struct {
		name           string
		design, mutant func(*testing.T) *models.Design
		good, bad      func(*testing.T) *models.ResourceKind
		change         func(*Params)
		plan           func(*testing.T) sim.Plan
		want           checker.FindingKind
		verdict        checker.Verdict
		lock           checker.LockAnswer
	}{
		{name: "takes a busy lock for granted", mutant: mutant(func(l models.Lock) models.Lock { return optimist{l} }),
			want: checker.Phantom, verdict: checker.VerdictTwoWriters, lock: checker.LockBroken},
		{name: "hands out every token twice", mutant: mutant(func(l models.Lock) models.Lock { return halver{l} }),
			want: checker.TokenOrder, verdict: checker.VerdictSafe, lock: checker.LockBroken},
		{name: "gives half the lease that it promises", mutant: shortLease,
			change: func(p *Params) { p.Work = 6 * time.Second },
			want:   checker.LeaseBroken, verdict: checker.VerdictTwoWriters, lock: checker.LockBroken},
		{name: "never lets go", mutant: mutant(func(l models.Lock) models.Lock { return hoarder{l} }),
			change: func(p *Params) { p.StuckAfter = 5 * time.Second },
			want:   checker.Stuck, verdict: checker.VerdictStuck, lock: checker.LockKept},
		{name: "deletes whatever it finds", plan: pause, mutant: func(t *testing.T) *models.Design { return design(t, "redis/blind-del") },
			want: checker.ForeignRelease, verdict: checker.VerdictTwoWriters, lock: checker.LockBroken},
		{name: "refuses the rightful owner's second write", bad: named("fenced-once"), good: named("fenced"),
			change: func(p *Params) { p.Writes = 2 },
			want:   checker.SelfRejected, verdict: checker.VerdictStuck, lock: checker.LockKept},
		{name: "goes on after a write with an unknown outcome", plan: lateWrite, good: named("plain"),
			bad: func(t *testing.T) *models.ResourceKind {
				return wrapResource(resource(t, "plain"), func(r models.Resource) models.Resource { return carelessResource{r} })
			},
			change: func(p *Params) { p.Clients, p.Sections, p.Writes, p.Work = 1, 1, 2, 100*time.Millisecond },
			want:   checker.LostUpdate, verdict: checker.VerdictLostUpdate, lock: checker.LockKept},
		{name: "forgets acknowledged writes", plan: crash, good: named("fenced"), bad: kind(toyStoreKind(1)),
			want: checker.WriteLost, verdict: checker.VerdictLostUpdate, lock: checker.LockKept},
		{name: "applies an append twice", good: kind(toyStoreKind(1)), bad: kind(toyStoreKind(2)),
			change: func(p *Params) { p.Workload = Append },
			want:   checker.DoubleApply, verdict: checker.VerdictLostUpdate, lock: checker.LockKept},
		{name: "a semaphore with a permit too many", design: sound("redis/semaphore-zset-server-time"),
			mutant: built("redis/semaphore-zset-server-time", func(o *models.Options) { o.Permits++ }),
			want:   checker.OverCapacity, verdict: checker.VerdictTwoWriters, lock: checker.LockBroken},
		{name: "a semaphore whose clients take a refusal for a permit", design: sound("redis/semaphore-zset-server-time"),
			mutant: func(t *testing.T) *models.Design {
				return wrapLocks(design(t, "redis/semaphore-zset-server-time"), func(l models.Lock) models.Lock { return optimist{l} })
			},
			change: func(p *Params) { p.TTL, p.Work = time.Hour, 3*time.Second },
			want:   checker.Overlap, verdict: checker.VerdictTwoWriters, lock: checker.LockBroken},
		{name: "permits that last half as long as they should", design: sound("redis/semaphore-keys"),
			mutant: built("redis/semaphore-keys", func(o *models.Options) { o.TTL /= 2 }),
			change: func(p *Params) { p.Work = 6 * time.Second },
			want:   checker.SpuriousLoss, verdict: checker.VerdictTwoWriters, lock: checker.LockBroken},
		{name: "returns the permits of others", design: sound("redis/semaphore-zset-server-time"), mutant: thieves,
			want: checker.ForeignRelease, verdict: checker.VerdictSafe, lock: checker.LockBroken},
		{name: "a quota that lets in one too many", design: sound("redis/quota-script"),
			mutant: built("redis/quota-script", func(o *models.Options) { o.Permits++ }),
			want:   checker.OverCapacity, verdict: checker.VerdictSafe, lock: checker.LockBroken},
		{name: "a barrier that opens before the last has come", design: sound("redis/barrier"),
			mutant: built("redis/barrier", func(o *models.Options) { o.Clients-- }),
			change: func(p *Params) { p.Stagger = 5 * time.Second },
			want:   checker.OverCapacity, verdict: checker.VerdictStuck, lock: checker.LockBroken},
	} {
		t.Run(m.name, func(t *testing.T) {
			if m.design == nil {
				m.design = luaToken
			}
			if m.mutant == nil {
				m.mutant = m.design
			}
			if m.good == nil {
				m.good = named("plain")
			}
			if m.bad == nil {
				m.bad = m.good
			}
			if m.plan == nil {
				m.plan = none
			}
			change := func(p *Params) {
				if m.change != nil {
					m.change(p)
				}
			}
			res := runSketch(t, m.mutant(t), m.bad(t), change, m.plan(t))
			require.True(t, res.Report.Has(m.want), "findings: %v", res.Report.Findings)
			require.Equal(t, m.verdict, res.Verdict)
			require.Equal(t, m.lock, res.Report.Lock)

			good := runSketch(t, m.design(t), m.good(t), change, m.plan(t))
			require.False(t, good.Report.Has(m.want), "the sound one: %v", good.Report.Findings)
		})
	}
}
