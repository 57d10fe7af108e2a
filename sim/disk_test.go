package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// logger keeps a file, and a copy of everything it ever wrote.
type logger struct {
	lab       *lab
	file      *File[string]
	syncEvery int
	wrote     []string
	synced    int // of wrote, what an fsync said it has
}

func (s *logger) Start(p *Process) {
	if s.file == nil {
		s.file = NewFile[string](p.Node())
	}
}

func (s *logger) Request(p *Process, m *Message) {
	s.file.Append(m.Body.String())
	s.wrote = append(s.wrote, m.Body.String())
	if s.syncEvery > 0 && len(s.wrote)%s.syncEvery == 0 {
		if p.Fsync(uint64(len(s.wrote))) {
			s.synced = len(s.wrote)
		}
	}
	p.Reply(m, Text("ok"))
}
func (s *logger) Timer(p *Process, id uint64) {
	s.synced = max(s.synced, int(id))
	s.lab.say("fsync %d done", id)
}
func (s *logger) Closed(*Process, *Conn) {}

func writers(l *lab, s *logger, n int) {
	s.lab = l
	l.serve("s", s)
	l.client("client-1", func(task *Task) {
		for i := 1; i <= n; i++ {
			task.Call(task.Dial(l.server("s")), Text(fmt.Sprint(i)), 20*ms) // 2 ms each
		}
		task.Sleep(100 * ms)
	})
}

// TestDiskAfterACrash: a process crash keeps all that was written; a node crash
// keeps what was fsynced and a prefix of the rest; lose-unsynced likewise.
func TestDiskAfterACrash(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLab(rt, Config{Seed: rapid.Uint64().Draw(rt, "seed")})
		defer l.w.Close()
		s := &logger{syncEvery: rapid.IntRange(0, 4).Draw(rt, "syncEvery")}
		writers(l, s, 10)
		f := rapid.SampledFrom([]Fault{
			{Kind: Crash, On: []string{"s"}},
			{Kind: Crash, On: []string{"s-node"}, Mode: "node"},
			{Kind: LoseUnsynced, On: []string{"s-node"}},
		}).Draw(rt, "fault")
		// After the last write; before it, later records would follow the lost.
		f.Trigger = at(50 * ms)
		l.fault(f)
		l.run(EndDone)
		left := s.file.Records()
		least := s.synced
		if f.Kind == Crash && f.Mode == "" {
			least = len(s.wrote)
		}
		if len(left) < least || len(left) > len(s.wrote) || !slices.Equal(left, s.wrote[:len(left)]) {
			rt.Fatalf("%v left %v of %v, %d synced", f.Kind, left, s.wrote, s.synced)
		}
	})
}

// TestSurvivorsAreAChoice: every prefix can survive. Only when something is
// gone does the trace say so.
func TestSurvivorsAreAChoice(t *testing.T) {
	for want := range 4 {
		l := newLab(t, Config{Trace: TraceRecord})
		s := &logger{}
		writers(l, s, 3)
		l.fault(Fault{Kind: Crash, On: []string{"s-node"}, Mode: "node", Trigger: at(50 * ms)})
		l.cfg.Plan.Choices = []Override{{At: place(t, "s/start#1/survive"), Value: int64(want)}}
		l.run(EndDone)
		if got := len(s.file.Records()); got != want {
			t.Errorf("%d records survived, want %d", got, want)
		}
		said := slices.ContainsFunc(l.w.Trace(), func(e Event) bool { return e.Kind == EventDisk })
		if said != (want < 3) {
			t.Errorf("with %d of 3 records left the trace says that some are lost: %t", want, said)
		}
	}
}

// TestFsyncStall: no fsync completes in the window; then all do.
func TestFsyncStall(t *testing.T) {
	l := newLab(t, Config{})
	s := &logger{syncEvery: 1}
	writers(l, s, 3)
	l.client("client-2", func(task *Task) {
		task.Sleep(5 * ms)
		task.Fsync()
		l.say("client-2 has its own disk")
	})
	l.fault(Fault{Kind: FsyncStall, On: []string{"s-node"}, Trigger: at(2 * ms), For: Exactly(18 * ms)})
	l.fault(Fault{Kind: FsyncStall, On: []string{"s-node"}, Trigger: at(4 * ms), For: Exactly(26 * ms)})
	l.run(EndDone)
	l.saw(`5ms client-2 has its own disk
	       30ms fsync 2 done
	       30ms fsync 3 done`)
}

// TestFsyncOfATask waits.
func TestFsyncOfATask(t *testing.T) {
	l := newLab(t, Config{})
	l.client("client-1", func(task *Task) {
		task.Fsync()
		l.say("done")
	})
	l.fault(Fault{Kind: FsyncStall, On: []string{"client-1"}, For: Exactly(18 * ms)})
	l.fault(Fault{Kind: LoseUnsynced, On: []string{"client-1"}, Trigger: at(ms)}) // nobody forgets who waits
	l.run(EndDone)
	l.saw(`18ms done`)
}

// TestRestoreSnapshot: the disk is what it was, also if the file was rewritten
// since, and the servers start again.
func TestRestoreSnapshot(t *testing.T) {
	l := newLab(t, Config{})
	s := &compactor{lab: l}
	l.serve("s", s)
	l.client("client-1", func(task *Task) { task.Sleep(100 * ms) })
	l.fault(Fault{Kind: RestoreSnapshot, On: []string{"s-node"}, Trigger: at(55 * ms), By: Exactly(40 * ms)})
	l.run(EndDone)
	l.saw(`0s starts with []
	       10ms has [1]
	       20ms has [1 2]
	       30ms has [1 2 3]
	       40ms has [sum]
	       50ms has [sum 5]
	       55ms starts with [1]
	       65ms has [1 6]
	       75ms has [1 6 7]
	       85ms has [sum]
	       95ms has [sum 9]`)
}

// TestRestoreToTheInstantOfAChange: the snapshot has the change.
func TestRestoreToTheInstantOfAChange(t *testing.T) {
	l := newLab(t, Config{Horizon: 60 * ms})
	s := &compactor{lab: l}
	l.serve("s", s)
	l.client("client-1", func(task *Task) { task.Sleep(time.Second) })
	l.fault(Fault{Kind: RestoreSnapshot, On: []string{"s-node"}, Trigger: at(55 * ms), By: Exactly(15 * ms)})
	l.run(EndHorizon)
	if got, want := l.log[len(l.log)-1], "55ms starts with [sum]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// compactor appends a record every 10 ms, but every fourth time replaces them
// all by one.
type compactor struct {
	echo
	lab  *lab
	file *File[string]
	n    int
}

func (s *compactor) Start(p *Process) {
	if s.file == nil {
		s.file = NewFile[string](p.Node())
	}
	s.lab.say("starts with %v", s.file.Records())
	p.TimerIn(10*ms, 0)
}

func (s *compactor) Timer(p *Process, id uint64) {
	s.n++
	if s.n%4 == 0 {
		s.file.Rewrite([]string{"sum"})
	} else {
		s.file.Append(fmt.Sprint(s.n))
	}
	s.lab.say("has %v", s.file.Records())
	p.TimerIn(10*ms, 0)
}

// TestRewriteIsDurable: it never loses the old without having the new.
func TestRewriteIsDurable(t *testing.T) {
	l := newLab(t, Config{Horizon: 45 * ms})
	s := &compactor{lab: l}
	l.serve("s", s)
	l.client("client-1", func(task *Task) { task.Sleep(time.Second) })
	l.fault(Fault{Kind: Crash, On: []string{"s-node"}, Mode: "node", Trigger: at(42 * ms)})
	l.run(EndHorizon)
	if got := fmt.Sprint(s.file.Records()); got != "[sum]" {
		t.Errorf("left %s", got)
	}
}
