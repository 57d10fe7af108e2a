package sim

import (
	"strings"
	"testing"
	"time"
)

// visit makes a client that sends one request at the given time.
func (l *lab) visit(name string, at, timeout time.Duration) {
	l.client(name, func(task *Task) {
		task.Sleep(at)
		_, err := task.Call(task.Dial(l.server("s")), Text("work"), timeout)
		l.say("%s: %v", name, err)
	})
}

// TestServiceQueue: a server with a service time works on one request after
// the other, two workers on two at once, and each is answered when its time is
// over: 1 ms there, the wait, 3 ms of work, 1 ms back.
func TestServiceQueue(t *testing.T) {
	for _, c := range []struct {
		workers int
		want    string
	}{
		{1, "5ms client-1: <nil>; 8ms client-2: <nil>; 11ms client-3: <nil>"},
		{2, "5ms client-1: <nil>; 6ms client-2: <nil>; 8ms client-3: <nil>"},
	} {
		l := newLab(t, Config{ServiceTime: 3 * ms, ServiceWorkers: c.workers})
		l.serve("s", &echo{})
		l.visit("client-1", 0, 0)
		l.visit("client-2", ms, 0)
		l.visit("client-3", 2*ms, 0)
		l.run(EndDone)
		if got := strings.Join(l.log, "; "); got != c.want {
			t.Errorf("%d workers: %s, want %s", c.workers, got, c.want)
		}
	}
}

// TestServiceOfAnAbandonedRequest: a client that gives up does not take its
// request out of the server's queue. It takes effect, unheard, and the work on
// it and on the end of its connection delays those behind it.
func TestServiceOfAnAbandonedRequest(t *testing.T) {
	l := newLab(t, Config{ServiceTime: 3 * ms})
	handled := 0
	l.serve("s", orderly{&echo{}, func(*Message) { handled++ }})
	l.visit("client-1", 0, 3*ms)
	l.visit("client-2", 4*ms, 0)
	l.run(EndDone)
	if got, want := strings.Join(l.log, "; "), "3ms client-1: call timed out: outcome unknown; 11ms client-2: <nil>"; got != want || handled != 2 {
		t.Errorf("%s, %d handled; want %s", got, handled, want)
	}
}

// TestServiceAndCrash: what a server had not done when it crashed is not done
// when it is up again.
func TestServiceAndCrash(t *testing.T) {
	l := newLab(t, Config{ServiceTime: 3 * ms})
	handled := 0
	l.serve("s", orderly{&echo{}, func(*Message) { handled++ }})
	l.visit("client-1", 0, 0)
	l.visit("client-2", 0, 0)
	l.visit("client-3", 20*ms, 0)
	l.fault(Fault{Kind: Crash, On: []string{"s"}, Trigger: at(2 * ms), Restart: Exactly(ms)})
	l.run(EndDone)
	want := "3ms client-1: connection reset: outcome unknown; 3ms client-2: connection reset: outcome unknown; 25ms client-3: <nil>"
	if got := strings.Join(l.log, "; "); got != want || handled != 1 {
		t.Errorf("%s, %d handled; want %s", got, handled, want)
	}
}
