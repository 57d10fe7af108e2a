package sim

import (
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"

	"locklab/clock"
)

// model is what the queue is meant to be: a list sorted by (time, sequence).
type model []struct {
	at, deadline clock.Time
	seq          uint64
	timer        bool
}

func (m model) sort() {
	sort.Slice(m, func(i, j int) bool { return m[i].at < m[j].at || m[i].at == m[j].at && m[i].seq < m[j].seq })
}

// TestQueueIsASortedList does anything to a queue and to a sorted list; they
// must agree.
func TestQueueIsASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		q.reset()
		n := &Node{}
		p := &Process{node: n}
		var m model
		now, seq := clock.Time(0), uint64(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case what < 6: // push
				seq++
				at := now.Add(time.Duration(rapid.Int64Range(0, 20).Draw(t, "in")))
				timer := rapid.Bool().Draw(t, "timer")
				deadline := at
				var e *event
				if timer {
					// A timer on the wall clock: the deadline is a reading.
					at = n.wall.When(clock.Reading(deadline), now)
					e = q.push(at)
					e.clock, e.deadline, e.proc = onWall, clock.Reading(deadline), p
				} else {
					e = q.push(at)
				}
				e.id = seq
				m = append(m, struct {
					at, deadline clock.Time
					seq          uint64
					timer        bool
				}{at, deadline, seq, timer})
			case what < 9 && len(m) > 0: // pop
				m.sort()
				if m[0].at == clock.Never {
					break
				}
				got := q.pop()
				if id := q.event(got).id; got.at != m[0].at || id != m[0].seq {
					t.Fatalf("popped %d at %d, want %d at %d", id, got.at, m[0].seq, m[0].at)
				}
				q.release(got)
				now = m[0].at
				m = m[1:]
			case what == 9: // the clock steps or changes its rate
				if rapid.Bool().Draw(t, "step") {
					n.wall.Step(now, time.Duration(rapid.Int64Range(-30, 30).Draw(t, "by")))
				} else {
					n.wall.SetRate(now, rapid.Int64Range(-900_000_000, 5_000_000_000).Draw(t, "rate"))
				}
				q.retime(n, now)
				for i := range m {
					if m[i].timer {
						m[i].at = n.wall.When(clock.Reading(m[i].deadline), now)
					}
				}
			}
		}
		m.sort()
		for _, want := range m {
			got := q.pop()
			if id := q.event(got).id; got.at != want.at || id != want.seq {
				t.Fatalf("at the end popped %d at %d, want %d at %d", id, got.at, want.seq, want.at)
			}
			q.release(got)
		}
		if !q.empty() || q.used != len(q.free) {
			t.Fatalf("%d entries left, %d of %d slots free", len(q.near)+len(q.heap), len(q.free), q.used)
		}
	})
}

// TestQueueBuries: waits that ended early do not clutter the heap, and throwing
// them out disturbs nothing else.
func TestQueueBuries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var live []uint64
		var tasks []*Task
		for i := range rapid.IntRange(1, 300).Draw(t, "events") {
			e := q.push(clock.Time(rapid.IntRange(0, 50).Draw(t, "at")))
			e.id = uint64(i)
			if rapid.Bool().Draw(t, "wait") {
				task := &Task{}
				e.kind, e.task = evWake, task
				tasks = append(tasks, task)
			} else {
				e.kind = evKeepalive
				live = append(live, e.id)
			}
		}
		for _, task := range tasks {
			task.gen++ // it waits for something else now
			q.bury()
		}
		if n := len(q.near) + len(q.heap); n > 2*len(live)+64 {
			t.Fatalf("%d entries for %d live events", n, len(live))
		}
		seen := map[uint64]bool{}
		last := entry{}
		for !q.empty() {
			e := q.pop()
			if e.before(last) {
				t.Fatal("out of order")
			}
			last = e
			if ev := q.event(e); !ev.stale() {
				seen[ev.id] = true
			}
			q.release(e)
		}
		if len(seen) != len(live) {
			t.Fatalf("%d live events came out of %d", len(seen), len(live))
		}
	})
}
