package sim

// service is a server at work on what clients ask of it, where Config has a
// ServiceTime: as many requests at a time as there are workers, the others in
// the order in which they came.
//
// A request takes effect, and is answered, when its time is over; its place
// (redis-1/request#7) is reached then too. The end of a connection takes its
// turn, and as long, behind the requests that came before it: a program reads
// a socket to its end. What servers say to each other, and their timers, take no
// time.
type service struct {
	busy    int
	waiting []*Message
}

// takesTime reports whether a message is one that a server is busy with.
func (w *World) takesTime(m *Message) bool {
	return w.cfg.ServiceTime > 0 && !m.served && m.To.handler != nil && m.From.handler == nil &&
		(m.kind == request || m.kind == fin || m.kind == reset)
}

// serve begins with a message, or lets it wait until a worker is free.
func (w *World) serve(m *Message) {
	p := m.To
	if p.service.busy >= max(w.cfg.ServiceWorkers, 1) {
		p.service.waiting = append(p.service.waiting, m)
		return
	}
	p.service.busy++
	e := w.queue.push(w.now.Add(w.cfg.ServiceTime))
	e.kind, e.msg, e.proc, e.gen = evServed, m, p, p.incarnation
}

// served ends the work on a message, and begins with the next.
func (w *World) served(m *Message) {
	p, incarnation := m.To, m.To.incarnation
	m.served = true
	if m.kind == request && m.Conn.closed[serverSide] { // meanwhile the server's side was closed
		w.gone(m)
	} else {
		w.deliver(m)
	}
	if p.incarnation != incarnation { // it crashed over it, and begins anew
		return
	}
	p.service.busy--
	if s := &p.service; len(s.waiting) > 0 {
		next := s.waiting[0]
		s.waiting = s.waiting[1:]
		w.serve(next)
	}
}

// loseService loses what a crashed server had not yet served. What it was busy
// with is lost when its time comes.
func (w *World) loseService(p *Process) {
	for _, m := range p.service.waiting {
		w.gone(m)
	}
	p.service = service{}
}
