package sim

import (
	"testing"
	"time"
)

type echo struct{ n int }

func (e *echo) Start(p *Process)               { e.n = 0 }
func (e *echo) Request(p *Process, m *Message) { e.n++; p.Reply(m, m.Body) }
func (e *echo) Timer(p *Process, id uint64)    {}
func (e *echo) Closed(p *Process, c *Conn)     {}

func BenchmarkEventLoop(b *testing.B) {
	w := NewWorld(Config{})
	defer w.Close()
	b.ReportAllocs()
	const calls = 50
	body := Text("x")
	var pay Payload = body
	events := int64(0)
	for b.Loop() {
		w.Reset(Config{Seed: 1, LatencyMin: 500 * time.Microsecond, LatencyMax: 2 * time.Millisecond})
		s := w.AddNode("server").AddServer("server", &echo{})
		for _, name := range []string{"client-1", "client-2", "client-3"} {
			w.AddNode(name).AddClient(name, func(t *Task) {
				c := t.Dial(s)
				for i := 0; i < calls; i++ {
					t.Call(c, pay, time.Second)
					t.Sleep(time.Millisecond)
				}
			})
		}
		r, err := w.Run()
		if r != EndDone || err != nil {
			b.Fatal(r, err)
		}
		events += w.Events()
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}
