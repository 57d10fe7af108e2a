package models

import "locklab/sim"

// redisWait is a session that waits for replicas to acknowledge what it wrote.
type redisWait struct {
	id      uint64
	request *sim.Message
	offset  int64
	n       int64
}

// wait begins a WAIT that cannot be answered at once and reports whether it
// did. It ends when enough replicas have acknowledged or when its timeout has
// passed (0: never), and answers with how many had by then, either way.
func (s *redisServer) wait(m *sim.Message, c *RedisCommand, session *redisSession) bool {
	if s.db.replica || c.TTL < 0 || s.acked(session.written) >= c.N {
		return false
	}
	s.waitN++
	s.waits = append(s.waits, redisWait{id: s.waitN, request: m, offset: session.written, n: c.N})
	if c.TTL > 0 {
		s.proc.TimerIn(c.TTL, redisWaitOver.of(s.waitN))
	}
	if s.repl != nil {
		s.repl.askAcks(s)
	}
	return true
}

// acked counts the replicas that have everything up to an offset.
func (s *redisServer) acked(offset int64) int64 {
	n := int64(0)
	if s.repl != nil {
		for i := range s.repl.links {
			if l := &s.repl.links[i]; l.conn != nil && l.acked >= offset {
				n++
			}
		}
	}
	return n
}

// heardAcks answers the WAITs that have enough now.
func (s *redisServer) heardAcks(p *sim.Process) {
	for i := 0; i < len(s.waits); {
		if w := &s.waits[i]; s.acked(w.offset) >= w.n {
			s.answerWait(p, i, redisNumber(s.acked(w.offset)))
			continue
		}
		i++
	}
}

// endWait answers a WAIT whose timeout has passed.
func (s *redisServer) endWait(p *sim.Process, id uint64) {
	for i := range s.waits {
		if s.waits[i].id == id {
			s.answerWait(p, i, redisNumber(s.acked(s.waits[i].offset)))
			return
		}
	}
}

// stopWaits ends all WAITs: a replica cannot wait for replicas.
func (s *redisServer) stopWaits(p *sim.Process) {
	for len(s.waits) > 0 {
		s.answerWait(p, 0, redisFail(errUnblocked))
	}
}

func (s *redisServer) answerWait(p *sim.Process, i int, reply RedisReply) {
	w := s.waits[i]
	s.waits = append(s.waits[:i], s.waits[i+1:]...)
	r := s.env.replies.Get()
	*r = reply
	p.Reply(w.request, r)
}

func (s *redisServer) dropWaits(c *sim.Conn) {
	for i := 0; i < len(s.waits); {
		if s.waits[i].request.Conn == c {
			s.waits = append(s.waits[:i], s.waits[i+1:]...)
			continue
		}
		i++
	}
}
