package sim

import "time"

// Nearly every call is answered long before its timeout, and the timeouts of a
// process mostly come in the order in which its calls began. So they stand in
// lines, of which only the first call's is an event in the queue. What was
// answered while it stood in line never gets there.

// timeoutLines is how many lines a process has: one for each length of timeout
// that its calls are likely to have.
const timeoutLines = 3

// timeoutLine is calls in the order of their deadlines. Its zero value is empty.
type timeoutLine struct {
	last *Call // nil: the line is empty
}

// setTimeout makes a call of one of the process's tasks time out.
func (p *Process) setTimeout(call *Call, timeout time.Duration) {
	call.deadline = p.Mono().Add(timeout)
	call.seq = p.w.queue.number()
	for i := range p.timeouts {
		l := &p.timeouts[i]
		if l.last == nil {
			l.last = call
			p.pushTimeout(call, uint64(i+1))
			return
		}
		if l.last.deadline <= call.deadline {
			l.last.behind = call
			l.last = call
			return
		}
	}
	p.pushTimeout(call, 0)
}

// pushTimeout puts a call's timeout into the event queue, at the place among
// events of the same time that the call had when it began: lines change
// nothing in the order of events.
func (p *Process) pushTimeout(call *Call, line uint64) {
	e := p.w.queue.pushAs(call.seq, p.node.mono.When(call.deadline, p.w.now))
	e.kind, e.clock, e.deadline, e.proc, e.call, e.id = evTimeout, onMonotonic, call.deadline, p, call, line
}

// nextTimeout lets the next call in line follow the one whose timeout has come.
func (p *Process) nextTimeout(e *event) {
	if e.id == 0 {
		return
	}
	l := &p.timeouts[e.id-1]
	next := e.call.behind
	for next != nil && !next.live() {
		next = next.behind
	}
	if next == nil {
		l.last = nil
	} else {
		p.pushTimeout(next, e.id)
	}
	e.id = 0 // so that it does so once, also if a stopped process looks at e later
}

// live reports whether somebody still wants the answer.
func (c *Call) live() bool { return !c.done && !c.task.done }
