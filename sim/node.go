package sim

import (
	"time"

	"locklab/clock"
	"locklab/network"
)

// Node is a machine: two clocks, a disk, processes.
type Node struct {
	w     *World
	id    network.Node
	name  string
	mono  clock.Clock
	wall  clock.Clock
	rate  int64 // of both, parts per billion
	gate  gate  // closed while the machine is suspended
	down  bool
	disk  Disk
	procs []*Process
	// fewProcs is room for procs: most machines run one.
	fewProcs [1]*Process
	// behind are the messages that reached a suspended machine: their senders
	// retransmit them when it is back.
	behind []*Message
}

// AddNode adds a machine. Its clocks are right; the plan may change them.
func (w *World) AddNode(name string) *Node {
	n := w.nodeSlab.Get()
	n.w, n.id, n.name, n.wall = w, network.Node(len(w.nodes)), name, clock.New(WallStart, 0)
	n.procs = n.fewProcs[:0]
	n.disk.node = n
	w.nodes = append(w.nodes, n)
	return n
}

// Name returns the node's name.
func (n *Node) Name() string { return n.name }

// Disk returns the node's disk.
func (n *Node) Disk() *Disk { return &n.disk }

// LocalClocks returns what the node's clocks show now: for whoever watches.
func (n *Node) LocalClocks(at clock.Time) (mono, wall clock.Reading) {
	return n.mono.Read(at), n.wall.Read(at)
}

func (n *Node) clockOf(kind clockKind) *clock.Clock {
	if kind == onWall {
		return &n.wall
	}
	return &n.mono
}

// Process is a program on a node: a client with tasks or a server with a
// handler. It keeps its identity when it crashes and starts again; only its
// memory is lost.
type Process struct {
	w       *World
	id      ProcID
	key     uint64
	name    string
	node    *Node
	main    func(*Task) // clients
	handler Handler     // servers
	tasks   []*Task
	conns   []*Conn
	gate    gate // closed while the process is paused
	down    bool
	// restarting: down, and the run waits for it to come up.
	restarting bool

	incarnation uint32
	steps       int32
	ops         [][phaseCount]int32 // by section: operations of each phase so far
	sends       int32
	watchers    []int32 // faults that wait for a place here
	inbox       []*Message
	receiver    *Task
	timeouts    [timeoutLines]timeoutLine
	service     service
}

// ProcID numbers the processes of a world in the order of their creation.
type ProcID int32

// nextOp numbers the operations of each phase of each section. The numbers go
// on when tasks of several sections take turns, when a section comes back and
// when the process starts again, so that no place happens twice.
func (p *Process) nextOp(section int32, phase Phase) int32 {
	for int(section) >= len(p.ops) {
		p.ops = append(p.ops, [phaseCount]int32{})
	}
	p.ops[section][phase]++
	return p.ops[section][phase]
}

// AddClient adds a process whose program is main. The run lasts until every
// client's main has returned. After a crash with restart, main runs again.
func (n *Node) AddClient(name string, main func(*Task)) *Process {
	p := n.addProcess(name)
	p.main = main
	return p
}

// AddServer adds a process that reacts to messages and timers.
func (n *Node) AddServer(name string, h Handler) *Process {
	p := n.addProcess(name)
	p.handler = h
	return p
}

func (n *Node) addProcess(name string) *Process {
	p := n.w.newProcess()
	p.w, p.id, p.key, p.name, p.node = n.w, ProcID(len(n.w.procs)), nameKey(name), name, n
	n.w.procs = append(n.w.procs, p)
	n.procs = append(n.procs, p)
	return p
}

// newProcess returns an empty process, with the memory of one of an earlier
// run if there is one.
func (w *World) newProcess() *Process {
	last := len(w.spare) - 1
	if last < 0 {
		return &Process{}
	}
	p := w.spare[last]
	w.spare = w.spare[:last]
	clear(p.tasks)
	clear(p.conns)
	*p = Process{ops: p.ops[:0], tasks: p.tasks[:0], conns: p.conns[:0], watchers: p.watchers[:0]}
	return p
}

// Name returns the process's name.
func (p *Process) Name() string { return p.name }

// ID returns the process's number in its world.
func (p *Process) ID() ProcID { return p.id }

// Node returns the machine that the process runs on.
func (p *Process) Node() *Node { return p.node }

// World returns the universe, for whoever watches a run.
func (p *Process) World() *World { return p.w }

// IsServer reports whether the process has a handler.
func (p *Process) IsServer() bool { return p.handler != nil }

// Down reports whether the process has crashed and not started again.
func (p *Process) Down() bool { return p.down }

// closedGate returns the first closed gate between the universe and the
// process, nil if there is none.
func (p *Process) closedGate() *gate {
	if p.node.gate.closed > 0 {
		return &p.node.gate
	}
	if p.gate.closed > 0 {
		return &p.gate
	}
	return nil
}

// start brings the process up, with empty memory.
func (p *Process) start() {
	p.down, p.node.down = false, false
	p.w.emit(Event{Kind: EventStarted, Proc: p.id, Peer: -1})
	if p.handler != nil {
		p.w.serving = p
		p.handler.Start(p)
		p.w.changed(p, nil)
		return
	}
	t := p.w.newTask(p, p.name, p.main)
	t.foreground = true
	if p.restarting {
		p.restarting = false
		return
	}
	p.w.foreground++
}

// crash takes the process's memory. With the node (vanish) the kernel is gone
// too: nobody hears of it. Otherwise the kernel resets the connections at once.
func (p *Process) crash(vanish bool) {
	if p.down {
		return
	}
	w := p.w
	p.down = true
	p.incarnation++
	w.discard(p.gate.held)
	w.loseService(p)
	p.gate = gate{}
	p.inbox, p.receiver = nil, nil
	for _, t := range p.tasks {
		w.condemn(t)
		if t.foreground { // it will not finish; a restart brings another
			t.foreground = false
			w.foreground--
		}
	}
	p.tasks = p.tasks[:0]
	w.emit(Event{Kind: EventCrashed, Proc: p.id, Peer: -1})
	for _, c := range p.conns {
		side := c.sideOf(p)
		if !c.closed[side] && !vanish {
			w.sendControl(c, side, reset)
		}
		c.closed[side] = true
	}
	p.conns = p.conns[:0]
	if w.cfg.Observer != nil {
		w.cfg.Observer.Crashed(p)
	}
}

// discard loses the messages among events that will not be handled.
func (w *World) discard(held []event) {
	for i := range held {
		if held[i].carriesMessage() {
			w.gone(held[i].msg)
		}
	}
}

// stayDown takes back a restart that was on its way.
func (p *Process) stayDown() {
	p.incarnation++
	if p.restarting {
		p.restarting = false
		p.w.foreground--
	}
}

// restartAfter brings the process up again after d of true time.
func (p *Process) restartAfter(d time.Duration) {
	e := p.w.queue.push(p.w.now.Add(d))
	e.kind, e.proc, e.gen = evRestart, p, p.incarnation
	if p.main != nil && !p.restarting { // the run waits for it
		p.restarting = true
		p.w.foreground++
	}
}

// schedule pushes an event for when a clock of the process's node shows the
// deadline, and returns it for the caller to fill in.
func (p *Process) schedule(kind eventKind, on clockKind, deadline clock.Reading) *event {
	at := p.node.clockOf(on).When(deadline, p.w.now)
	e := p.w.queue.push(at)
	e.kind, e.clock, e.deadline, e.proc = kind, on, deadline, p
	return e
}

// thaw brings a suspended node back: first what was due on it happens, then
// come the messages that its peers retransmit.
func (n *Node) thaw() {
	n.w.open(&n.gate)
	if n.gate.closed > 0 {
		return
	}
	behind := n.behind
	n.behind = nil
	for _, m := range behind { // what a suspended machine missed is sent again
		n.w.carry(m, PointExtra, 0)
	}
}
