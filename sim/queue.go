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
	id       uint64 // server timers: the server's own number; faults: which; timeouts: in which line, from 1
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

// queue orders events by (time, sequence). Most events are messages, which
// come before nearly everything that is pending already; so the next few events
// stand in a sorted list, to which they are added at the end and taken from
// there, and only the rest in a four-way heap. Both are of small entries: the
// events themselves are in slots that stay where they are and are used again.
type queue struct {
	near   []entry // the next event last; none of them comes after one of heap
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
	q.near, q.heap, q.free, q.used, q.seq, q.dead = q.near[:0], q.heap[:0], q.free[:0], 0, 0, 0
}

func (q *queue) event(e entry) *event {
	slot := e.key & slotMask
	return &q.chunks[slot>>chunkBits][slot&(1<<chunkBits-1)]
}

// push adds an event at the given time, behind everything already there for
// that time, and returns it for the caller to fill in.
func (q *queue) push(at clock.Time) *event { return q.pushAs(q.number(), at) }

// number takes the next sequence number.
func (q *queue) number() uint64 {
	q.seq++
	return q.seq
}

// pushAs is push with a sequence number that was taken before.
func (q *queue) pushAs(seq uint64, at clock.Time) *event {
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
	entry := entry{at: at, key: seq<<slotBits | uint64(slot)}
	q.add(entry)
	e := q.event(entry)
	*e = event{}
	return e
}

// nearMax is how long the sorted list grows before half of it goes to the heap.
const nearMax = 32

func (q *queue) add(e entry) {
	if len(q.near) == nearMax {
		const half = nearMax / 2
		for _, later := range q.near[:half] {
			q.addToHeap(later)
		}
		q.near = q.near[:copy(q.near, q.near[half:])]
	}
	if len(q.heap) > 0 && q.heap[0].before(e) {
		q.addToHeap(e)
		return
	}
	q.near = append(q.near, e)
	i := len(q.near) - 1
	for i > 0 && q.near[i-1].before(e) {
		q.near[i] = q.near[i-1]
		i--
	}
	q.near[i] = e
}

func (q *queue) addToHeap(e entry) {
	q.heap = append(q.heap, e)
	q.up(len(q.heap) - 1)
}

func (q *queue) empty() bool { return len(q.near) == 0 && len(q.heap) == 0 }

// next is when the first event comes. There must be one.
func (q *queue) next() clock.Time {
	if n := len(q.near); n > 0 {
		return q.near[n-1].at
	}
	return q.heap[0].at
}

// pop removes the first entry. Its event stays until release gives it back.
func (q *queue) pop() entry {
	if n := len(q.near); n > 0 {
		e := q.near[n-1]
		q.near = q.near[:n-1]
		return e
	}
	return q.popHeap()
}

func (q *queue) popHeap() entry {
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
	q.heap, q.near = append(q.heap, q.near...), q.near[:0]
	for i := range q.heap {
		e := q.event(q.heap[i])
		if e.clock != onTrueTime && e.proc.node == n {
			q.heap[i].at = n.clockOf(e.clock).When(e.deadline, now)
		}
	}
	q.order()
}

// bury notes that an event in the queue has become stale: a wait that ended
// before its time. When they are the greater part, all that are stale are thrown
// out, so that the queue stays as small as what is really pending.
func (q *queue) bury() {
	q.dead++
	if q.dead < 16 || q.dead < (len(q.near)+len(q.heap))/2 {
		return
	}
	q.heap, q.near = append(q.heap, q.near...), q.near[:0]
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
