package sim

import "locklab/clock"

// eventKind says what an event does when its time comes.
type eventKind uint8

const (
	evWake      eventKind = iota + 1 // a task goes on
	evTimeout                        // a call's deadline
	evArrive                         // a message reaches the other machine
	evTimer                          // a server's timer, or its fsync, completes
	evFault                          // a fault strikes
	evFaultEnd                       // a fault's window closes
	evRestart                        // a crashed process comes up
	evKeepalive                      // a connection's side looks whether its peer lives
	evGiveUp                         // TCP stops retransmitting
	evClosed                         // a program learns that a connection is over
	evDeed                           // a deed of the plan is done to a server
	evServed                         // a server has done what a message asked for
)

// clockKind says which of a node's clocks a timer runs on.
type clockKind uint8

const (
	onTrueTime clockKind = iota
	onMonotonic
	onWall
)

// event is something that will happen. Timers on a local clock keep their
// deadline, so that a change of the clock can move them.
type event struct {
	kind     eventKind
	clock    clockKind
	side     int8   // connections: whose side
	accepted bool   // messages: the receiver's kernel has it already
	gen      uint32 // tasks: which wait is meant; processes: which incarnation
	id       uint64 // server timers: the server's own number; faults: which
	deadline clock.Reading
	proc     *Process
	task     *Task
	msg      *Message
	call     *Call
	conn     *Conn
}

// stale reports whether the event would do nothing, whenever it came.
func (e *event) stale() bool {
	switch e.kind {
	case evWake:
		return e.task.done || e.task.gen != e.gen
	case evTimeout:
		return e.call.done || e.call.task.done
	case evTimer:
		return e.proc.incarnation != e.gen
	}
	return false
}

// carriesMessage reports whether a message that is on its way goes with the event.
func (e *event) carriesMessage() bool { return e.kind == evArrive || e.kind == evServed }

// entry is an event's place in the queue. Its key is the sequence number and,
// in the low bits, the slot of the event: two keys compare as their sequence
// numbers do.
type entry struct {
	at  clock.Time
	key uint64
}

const (
	slotBits  = 24 // sixteen million pending events, and 2^40 in a run
	slotMask  = 1<<slotBits - 1
	chunkBits = 6
)

func (e entry) before(f entry) bool { return e.at < f.at || e.at == f.at && e.key < f.key }

// queue orders events by (time, sequence): a four-way heap of small entries,
// with the events themselves in slots that stay where they are and are used
// again.
type queue struct {
	heap   []entry
	chunks []*[1 << chunkBits]event
	used   int      // slots handed out so far
	free   []uint32 // of those, the ones given back
	seq    uint64
	dead   int // roughly how many events in the heap are stale
}

func (q *queue) reset() {
	const keep = 64
	if len(q.chunks) > keep {
		clear(q.chunks[keep:])
		q.chunks = q.chunks[:keep]
	}
	q.heap, q.free, q.used, q.seq, q.dead = q.heap[:0], q.free[:0], 0, 0, 0
}

func (q *queue) event(e entry) *event {
	slot := e.key & slotMask
	return &q.chunks[slot>>chunkBits][slot&(1<<chunkBits-1)]
}

// push adds an event at the given time, behind everything already there for
// that time, and returns it for the caller to fill in.
func (q *queue) push(at clock.Time) *event {
	var slot uint32
	if n := len(q.free); n > 0 {
		slot = q.free[n-1]
		q.free = q.free[:n-1]
	} else {
		if q.used > slotMask {
			panic("sim: more than sixteen million events are pending")
		}
		slot = uint32(q.used)
		q.used++
		if int(slot>>chunkBits) == len(q.chunks) {
			q.chunks = append(q.chunks, new([1 << chunkBits]event))
		}
	}
	q.seq++
	entry := entry{at: at, key: q.seq<<slotBits | uint64(slot)}
	q.heap = append(q.heap, entry)
	q.up(len(q.heap) - 1)
	e := q.event(entry)
	*e = event{}
	return e
}

// pop removes the first entry. Its event stays until release gives it back.
func (q *queue) pop() entry {
	first := q.heap[0]
	last := len(q.heap) - 1
	e := q.heap[last]
	q.heap = q.heap[:last]
	if last > 0 {
		q.heap[0] = e
		q.down(0)
	}
	return first
}

// release makes an entry's slot free for another event.
func (q *queue) release(e entry) { q.free = append(q.free, uint32(e.key&slotMask)) }

func (q *queue) up(i int) {
	h := q.heap
	e := h[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

func (q *queue) down(i int) {
	h := q.heap
	e := h[i]
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(h)); c++ {
			if h[c].before(h[least]) {
				least = c
			}
		}
		if !h[least].before(e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = e
}

// order makes a heap of whatever is there.
func (q *queue) order() {
	for i := (len(q.heap) - 2) / 4; i >= 0 && len(q.heap) > 1; i-- {
		q.down(i)
	}
}

// retime gives every timer on the node's clocks its new true time, after one
// of them changed. Timers keep their sequence numbers.
func (q *queue) retime(n *Node, now clock.Time) {
	for i := range q.heap {
		e := q.event(q.heap[i])
		if e.clock != onTrueTime && e.proc.node == n {
			q.heap[i].at = n.clockOf(e.clock).When(e.deadline, now)
		}
	}
	q.order()
}

// bury notes that an event in the queue has become stale: most timeouts are
// never needed. When they are the greater part, all that are stale are thrown
// out, so that the heap stays as small as what is really pending.
func (q *queue) bury() {
	q.dead++
	if q.dead < 16 || q.dead < len(q.heap)/2 {
		return
	}
	kept := q.heap[:0]
	for _, e := range q.heap {
		if q.event(e).stale() {
			q.release(e)
		} else {
			kept = append(kept, e)
		}
	}
	q.heap, q.dead = kept, 0
	q.order()
}
