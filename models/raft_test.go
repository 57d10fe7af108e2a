package models

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"locklab/sim"
)

// deaf is a Recorder that nobody listens to.
type deaf struct{}

func (deaf) Invoke(*sim.Task, OpKind, int32, int64, int64) int32 { return 0 }
func (deaf) Try(*sim.Task, int32)                                {}
func (deaf) Return(*sim.Task, int32, error, int64)               {}
func (deaf) Acquired(*sim.Task, int32, int64)                    {}
func (deaf) LearnsLoss(*sim.Task, int32)                         {}
func (deaf) Rests(int32, int32)                                  {}
func (deaf) SessionLost(int32)                                   {}
func (deaf) Applied(int32)                                       {}
func (deaf) Decided(int32, bool, int64)                          {}

// storeOp is one operation of a client of the bare store, on one of two keys.
type storeOp struct {
	kind    kvAction // kvGet, kvPut
	key     int64
	value   int64 // put
	guard   int64 // put: only if the last write was that of this value; -1: always
	call    int64
	ret     int64 // 0: unknown
	held    bool
	seen    int64 // get: the value
	mod     int64 // the revision of the entry that it saw or wrote
	applied bool  // an unknown put took effect
}

// storeLab is a store with clients that do random things to it.
type storeLab struct {
	env     *Env
	world   *sim.World
	cluster *raftCluster
	ops     []storeOp
	reader  bool // the first client only reads
}

func newStoreLab(seed uint64, o raftOptions, plan sim.Plan, clients, each int) *storeLab {
	w := sim.NewWorld(sim.Config{Seed: seed, Plan: plan, LatencyMin: 500 * time.Microsecond, LatencyMax: 2 * time.Millisecond,
		Horizon: 2 * time.Minute, Trace: sim.TraceHash})
	lab := &storeLab{world: w, env: &Env{World: w, Rec: deaf{}, Options: Options{TTL: 5 * time.Second, CallTimeout: time.Second}}}
	o.name = "etcd"
	for i := range clients {
		name := fmt.Sprintf("client-%d", i+1)
		w.AddNode(name).AddClient(name, func(t *sim.Task) { lab.work(t, i, each) })
	}
	lab.cluster = newRaftCluster(lab.env, o)
	return lab
}

// work reads, writes, and writes what depends on what was read.
func (lab *storeLab) work(t *sim.Task, client, each int) {
	c := newKvClient(lab.env, lab.cluster.procs, client)
	last := [3]kvEntry{}
	for n := range each {
		t.Sleep(time.Duration(t.Choose(sim.PointJitter, 0, int64(600*time.Millisecond))))
		key := t.Choose(sim.PointValue, 1, 2)
		op := storeOp{kind: kvGet, key: key, guard: -1}
		step := kvCommand{verb: kvTxn, key: kvKey{kvData, key}}
		if kind := t.Choose(sim.PointValue, 0, 2); kind > 0 && !(lab.reader && client == 0) {
			op.kind, op.value = kvPut, int64(client+1)*1000+int64(n)
			step.then[0] = kvStep{action: kvPut, key: step.key, value: op.value}
			if kind == 2 {
				step.target, step.equals, op.guard = kvModRevision, last[key].mod, last[key].value
			}
		}
		lab.ops = append(lab.ops, op)
		id := len(lab.ops)
		t.Op = int32(id)
		lab.ops[id-1].call = int64(lab.world.Now())
		request := kvRequest{kvCommand: step}
		if op.kind == kvGet {
			request = kvRequest{kvCommand: kvCommand{verb: kvRange, key: step.key}, linear: true}
		}
		reply, err := c.ask(t, request)
		if err != nil {
			continue
		}
		done := &lab.ops[id-1]
		done.ret, done.held = int64(lab.world.Now()), reply.held
		done.seen, done.mod = reply.found[0].value, reply.found[0].mod
		if op.kind == kvGet || reply.held {
			last[key] = reply.found[0]
		}
	}
}

func (lab *storeLab) run(t *testing.T) {
	t.Helper()
	_, err := lab.world.Run()
	require.NoError(t, err)
	if f := lab.world.Failure(); f != nil {
		t.Fatalf("%v\n%s", f, f.Stack)
	}
	for _, c := range lab.env.raft.numbered {
		if c.op > 0 && c.applied {
			lab.ops[c.op-1].applied = true
		}
	}
}

// storeModel is a key as somebody who knows nothing of Raft expects it.
func storeModel() porcupine.Model {
	type state struct{ value, mod int64 }
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, input, _ any) (bool, any) {
			now, op := s.(state), input.(storeOp)
			known := op.ret != 0
			switch {
			case op.kind == kvGet:
				return op.seen == now.value && (op.mod == now.mod || now.mod == -1), state{now.value, op.mod}
			case op.guard >= 0 && op.guard != now.value:
				return !known || !op.held, now
			case known && !op.held && op.guard >= 0:
				return false, now
			case !known:
				return true, state{op.value, -1}
			}
			return op.mod > now.mod, state{op.value, op.mod}
		},
		Equal: func(a, b any) bool { return a == b },
	}
}

// linearizable asks porcupine about both keys. An unknown outcome is resolved
// from what the simulator knows: what never took effect did not happen, and
// what did has no end.
func (lab *storeLab) linearizable() porcupine.CheckResult {
	result := porcupine.CheckResult(porcupine.Ok)
	for key := int64(1); key <= 2; key++ {
		var ops []porcupine.Operation
		for i, op := range lab.ops {
			if op.key != key || op.ret == 0 && !op.applied {
				continue
			}
			ret := op.ret
			if ret == 0 {
				ret = int64(lab.world.Now()) + 1
			}
			ops = append(ops, porcupine.Operation{ClientId: i, Input: op, Call: op.call, Return: ret})
		}
		if r := porcupine.CheckOperationsTimeout(storeModel(), ops, 20*time.Second); r != porcupine.Ok {
			result = r
		}
	}
	return result
}

// stormPlan is an adversary drawn from a seed: a few faults at members, their
// disks and the links between them.
func stormPlan(seed uint64, nodes int) sim.Plan {
	x := sim.Seeded(seed)
	draws := uint64(0)
	draw := func(n int64) int64 {
		draws++
		return x.Choose(sim.Choice{Key: draws * 7919, Lo: 0, Hi: n - 1})
	}
	member := func() string { return fmt.Sprintf("etcd-%d", draw(int64(nodes))+1) }
	var plan sim.Plan
	for range 2 + draw(5) {
		f := sim.Fault{On: []string{member()}, Trigger: sim.Trigger{At: sim.Exactly(time.Duration(draw(15000)+100) * time.Millisecond)},
			For: sim.Exactly(time.Duration(draw(6000)+50) * time.Millisecond)}
		switch draw(8) {
		case 0:
			f.Kind = sim.Partition
		case 1:
			f.Kind, f.OneWay = sim.Partition, true
		case 2:
			f.Kind, f.Restart, f.For = sim.Crash, sim.Exactly(time.Duration(draw(4000)+1)*time.Millisecond), sim.Span{}
		case 3:
			f.Kind, f.Restart, f.For, f.Mode = sim.Crash, sim.Exactly(time.Duration(draw(4000)+1)*time.Millisecond), sim.Span{}, "node"
		case 4:
			f.Kind = sim.Pause
		case 5:
			f.Kind = sim.FsyncStall
		case 6:
			f.Kind = []sim.FaultKind{sim.Duplicate, sim.Reorder, sim.DropRequest}[draw(3)]
		case 7:
			f.Kind, f.By = sim.Delay, sim.Exactly(time.Duration(draw(3000)+1)*time.Millisecond)
		}
		plan.Faults = append(plan.Faults, f)
	}
	return plan
}

// TestStoreIsLinearizable: whatever becomes of the members, the histories of
// the keys are those of one copy.
func TestStoreIsLinearizable(t *testing.T) {
	runs := uint64(300)
	if testing.Short() {
		runs = 40
	}
	elections, snapshots, unknown := 0, 0, 0
	for seed := uint64(1); seed <= runs; seed++ {
		nodes := 3 + 2*int(seed%2)
		lab := newStoreLab(seed, raftOptions{nodes: nodes}, stormPlan(seed, nodes), 5, 40)
		lab.run(t)
		require.Equal(t, porcupine.CheckResult(porcupine.Ok), lab.linearizable(), "seed %d", seed)
		elections += int(lab.cluster.members[0].term)
		snapshots += len(lab.cluster.snapshots)
		for _, op := range lab.ops {
			if op.ret == 0 && op.applied {
				unknown++
			}
		}
		lab.world.Close()
	}
	t.Logf("%d runs, terms up to %.1f on average, %.1f snapshots, %d writes took effect without their clients knowing", runs,
		float64(elections)/float64(runs), float64(snapshots)/float64(runs), unknown)
	require.Positive(t, unknown)
	require.Greater(t, snapshots, int(runs))
}

// TestStaleReadIsCaught: a member that answers reads from its own state is
// found out, once it has been deposed without knowing.
func TestStaleReadIsCaught(t *testing.T) {
	deposed := sim.Plan{Faults: []sim.Fault{{Kind: sim.Partition, On: []string{"etcd-1"}, From: []string{"etcd-2", "etcd-3"},
		Trigger: sim.Trigger{At: sim.Exactly(2 * time.Second)}, For: sim.Exactly(10 * time.Second)}}}
	caught := 0
	for seed := uint64(1); seed <= 10; seed++ {
		for _, mutant := range []bool{false, true} {
			lab := newStoreLab(seed, raftOptions{nodes: 3, localReads: mutant}, deposed, 3, 30)
			lab.reader = true
			lab.run(t)
			r := lab.linearizable()
			if !mutant {
				require.Equal(t, porcupine.CheckResult(porcupine.Ok), r, "seed %d", seed)
			} else if r == porcupine.Illegal {
				caught++
			}
			lab.world.Close()
		}
	}
	require.Equal(t, 10, caught)
}

// TestStoreIsDeterministic: the same run twice, and on one processor or eight,
// is the same to the last bit.
func TestStoreIsDeterministic(t *testing.T) {
	runs := uint64(200)
	if testing.Short() {
		runs = 30
	}
	hashes := func(procs int) []uint64 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		var out []uint64
		for seed := uint64(1); seed <= runs; seed++ {
			lab := newStoreLab(seed, raftOptions{nodes: 3}, stormPlan(seed, 3), 3, 15)
			lab.run(t)
			out = append(out, lab.world.TraceHash())
			lab.world.Close()
		}
		return out
	}
	one := hashes(1)
	require.Equal(t, one, hashes(1))
	require.Equal(t, one, hashes(8))
}
