package sim

import "locklab/clock"

// eventKind says what an event does when its time comes.
type eventKind uint8

const (
	evWake      eventKind = iota + 1 // a task goes on
	evTimeout                        // a call's deadline
	evArrive                         // a message reaches the other machine
	evTimer                          // a server's timer
	evFsync                          // an fsync completes
	evFault                          // a fault strikes
	evFaultEnd                       // a fault's window closes
	evRestart                        // a crashed process comes up
	evKeepalive                      // a connection's side looks whether its peer lives
	evGiveUp                         // TCP stops retransmitting
	evClosed                         // a program learns that a connection is over
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
	gen      uint32 // tasks: which wait is meant; processes: which incarnation
	side     int32  // connections: whose side; faults: which fault
	id       uint64 // server timers: the server's own number
	deadline clock.Reading
	proc     *Process
	task     *Task
	msg      *Message
	call     *Call
	conn     *Conn
}

// entry is an event's place in the queue.
type entry struct {
	at   clock.Time
	seq  uint64
	slot int32
}

func (e entry) before(f entry) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// queue orders events by (time, sequence): a four-way heap of small entries,
// with the events themselves in slots that are used again.
type queue struct {
	heap  []entry
	slots []event
	free  []int32
	seq   uint64
}

func (q *queue) reset() {
	q.heap, q.free, q.seq = q.heap[:0], q.free[:0], 0
	clear(q.slots)
	q.slots = q.slots[:0]
}

// push adds an event at the given time, behind everything already there for
// that time, and returns it for the caller to fill in.
func (q *queue) push(at clock.Time) *event {
	var slot int32
	if n := len(q.free); n > 0 {
		slot = q.free[n-1]
		q.free = q.free[:n-1]
	} else {
		slot = int32(len(q.slots))
		q.slots = append(q.slots, event{})
	}
	q.seq++
	q.heap = append(q.heap, entry{at: at, seq: q.seq, slot: slot})
	q.up(len(q.heap) - 1)
	return &q.slots[slot]
}

// pop removes the first event.
func (q *queue) pop() (clock.Time, event) {
	first := q.heap[0]
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap = q.heap[:last]
	if last > 0 {
		q.down(0)
	}
	e := q.slots[first.slot]
	q.slots[first.slot] = event{}
	q.free = append(q.free, first.slot)
	return first.at, e
}

func (q *queue) up(i int) {
	e := q.heap[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(q.heap[parent]) {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = e
}

func (q *queue) down(i int) {
	e, n := q.heap[i], len(q.heap)
	for {
		child := 4*i + 1
		if child >= n {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, n); c++ {
			if q.heap[c].before(q.heap[least]) {
				least = c
			}
		}
		if !q.heap[least].before(e) {
			break
		}
		q.heap[i] = q.heap[least]
		i = least
	}
	q.heap[i] = e
}

// retime gives every timer on the node's clocks its new true time, after one
// of them changed. Timers keep their sequence numbers.
func (q *queue) retime(n *Node, now clock.Time) {
	for i := range q.heap {
		e := &q.slots[q.heap[i].slot]
		if e.clock == onTrueTime || e.proc.node != n {
			continue
		}
		q.heap[i].at = n.clockOf(e.clock).When(e.deadline, now)
	}
	for i := (len(q.heap) - 2) / 4; i >= 0; i-- {
		q.down(i)
	}
}
