package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// selfless is a server whose work brings about its own crash, by a milestone,
// and which asks for an fsync all the same.
type selfless struct{ client *Process }

func (s *selfless) Start(*Process) {}
func (s *selfless) Request(p *Process, m *Message) {
	p.w.Reach(AcceptedRead, s.client)
	if p.Fsync(0) {
		p.Reply(m, m.Body)
	}
}
func (s *selfless) Timer(*Process, uint64) { panic("a timer of an earlier life") }
func (s *selfless) Closed(*Process, *Conn) {}

// A server that crashes while it handles a request is told nothing of that life
// in its next one. Its coming up again is when the crash has healed.
func TestFsyncOfAServerThatHasJustCrashed(t *testing.T) {
	w := NewWorld(Config{Plan: Plan{Faults: []Fault{
		{Kind: FsyncStall, On: []string{"server"}, For: Exactly(time.Second)},
		{Kind: Crash, On: []string{"server"}, Restart: Exactly(100 * time.Millisecond),
			Trigger: Trigger{When: Milestone{Kind: AcceptedRead, Who: "client", N: 1}}},
	}}})
	defer w.Close()
	h := &selfless{}
	server := w.AddNode("server").AddServer("server", h)
	h.client = w.AddNode("client").AddClient("client", func(task *Task) {
		_, err := task.Call(task.Dial(server), Text("work"), 500*time.Millisecond)
		require.ErrorIs(t, err, ErrUnknown)
		task.Sleep(2 * time.Second)
	})
	reason, err := w.Run()
	require.NoError(t, err)
	require.Equal(t, EndDone, reason, "%v", w.Failure())
	require.EqualValues(t, time.Second, w.LastFaultAt(), "the stall outlasts the restart")
}
