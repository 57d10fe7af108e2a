package example

import (
	"fmt"
	"time"

	"locklab/models"
	"locklab/sim"
)

// request is what clients send to the store.
type request struct {
	verb  string        // set, delete, delete-if
	value int64         // to set, or to compare
	ttl   time.Duration // after which what was set goes by itself; 0: never
}

func (r request) Digest(d *sim.Digest) { d.Text(r.verb); d.Int(r.value); d.Int(int64(r.ttl)) }
func (r request) String() string       { return fmt.Sprintf("%s %d ttl %v", r.verb, r.value, r.ttl) }

// answer is the store's.
type answer struct {
	done  bool
	token int64
}

func (a answer) Digest(d *sim.Digest) { d.Text(a.String()) }
func (a answer) String() string       { return fmt.Sprintf("%t %d", a.done, a.token) }

// entry is the store's only key, and a record of its log.
type entry struct {
	value int64 // 0: the key is not set
	ttl   time.Duration
	token int64 // counts how often the key was set
	op    int32 // the operation that set it
}

// store is a small server like Redis with one key. It writes and fsyncs what
// it does before it does it, one thing after the other, and measures a TTL by
// the monotonic clock, anew after a crash: no fault but a clock that runs too
// fast makes a key go early.
type store struct {
	file    *sim.File[entry]
	now     entry
	queue   []job
	syncing bool   // the first of the queue waits for the disk
	length  int    // of the log, with the record that it waits for
	version uint64 // counts what has become of the key, for its timer
}

// job is a request, or the expiry of one version of the key.
type job struct {
	*sim.Message
	expires uint64
}

func newStore(_ models.Options, machine *sim.Node) sim.Handler {
	return &store{file: sim.NewFile[entry](machine)}
}

// synced is the timer that says that the disk is done. Those of expiries count
// from 1.
const synced = 0

// Start implements sim.Handler.
func (s *store) Start(p *sim.Process) {
	*s = store{file: s.file}
	if log := s.file.Records(); len(log) > 0 {
		s.become(p, log[len(log)-1])
	}
}

// Request implements sim.Handler.
func (s *store) Request(p *sim.Process, m *sim.Message) {
	s.queue = append(s.queue, job{Message: m})
	s.work(p)
}

// Timer implements sim.Handler.
func (s *store) Timer(p *sim.Process, id uint64) {
	if id != synced {
		s.queue = append(s.queue, job{expires: id})
	} else {
		s.syncing = false
		if len(s.file.Records()) == s.length { // or the disk lost it, and it is written again
			s.finish(p)
		}
	}
	s.work(p)
}

// Closed implements sim.Handler.
func (s *store) Closed(*sim.Process, *sim.Conn) {}

// Holder tells whose lock it is: that of the operation that set the key.
func (s *store) Holder() models.Holding {
	if s.now.value == 0 {
		return models.Holding{}
	}
	return models.Holding{Op: s.now.op}
}

// work does what is in the queue until it has to wait for the disk.
func (s *store) work(p *sim.Process) {
	for len(s.queue) > 0 && !s.syncing {
		next, changes := s.decide(s.queue[0])
		if !changes {
			s.reply(p, answer{token: s.now.token})
			continue
		}
		s.file.Append(next)
		s.length = len(s.file.Records())
		if s.syncing = !p.Fsync(synced); !s.syncing {
			s.finish(p)
		}
	}
}

// finish does what has come to the disk.
func (s *store) finish(p *sim.Process) {
	log := s.file.Records()
	s.become(p, log[len(log)-1])
	s.reply(p, answer{done: true, token: s.now.token})
}

// reply takes the first of the queue away and answers it.
func (s *store) reply(p *sim.Process, a answer) {
	if m := s.queue[0].Message; m != nil {
		p.Reply(m, a)
	}
	s.queue = s.queue[1:]
}

// decide tells what the store becomes by a job. Since other jobs may have come
// before an expiry, it must be that of the present version.
func (s *store) decide(j job) (next entry, changes bool) {
	next = s.now
	if j.Message == nil {
		next.value = 0
		return next, j.expires == s.version
	}
	switch r := j.Body.(request); {
	case r.verb == "set" && s.now.value == 0:
		return entry{value: r.value, ttl: r.ttl, token: s.now.token + 1, op: j.Op}, true
	case r.verb == "delete" && s.now.value != 0, r.verb == "delete-if" && s.now.value == r.value:
		next.value = 0
		return next, true
	}
	return next, false
}

// become makes the store what the log says.
func (s *store) become(p *sim.Process, e entry) {
	s.now = e
	s.version++
	if e.value != 0 && e.ttl > 0 {
		p.TimerIn(e.ttl, s.version)
	}
}
