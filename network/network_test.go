package network

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"locklab/clock"
)

// TestPartitions draws who reaches whom: a row for each sender, "." passes,
// "x" is lost, "h" is held.
func TestPartitions(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*Net)
		want string
	}{
		{"the zero net connects everybody", func(n *Net) {},
			"....\n....\n....\n....\n"},
		{"symmetric", func(n *Net) { n.Partition(1, []Node{0}, []Node{2, 3}, Drop, false) },
			"..xx\n....\nx...\nx...\n"},
		{"one way", func(n *Net) { n.Partition(1, []Node{0}, []Node{2, 3}, Drop, true) },
			"..xx\n....\n....\n....\n"},
		{"against everybody else", func(n *Net) { n.Partition(1, []Node{1, 2}, nil, Hold, false) },
			".hh.\nh..h\nh..h\n.hh.\n"},
		{"everybody else, one way", func(n *Net) { n.Partition(1, []Node{1}, nil, Hold, true) },
			"....\nh.hh\n....\n....\n"},
		{"drop beats hold, in either order", func(n *Net) {
			n.Partition(1, []Node{0}, []Node{1, 2}, Hold, false)
			n.Partition(2, []Node{0}, []Node{1}, Drop, true)
		}, ".xh.\nh...\nh...\n....\n"},
		{"healing one leaves the other", func(n *Net) {
			n.Partition(1, []Node{0}, []Node{1}, Drop, false)
			n.Partition(2, []Node{2}, []Node{3}, Hold, false)
			n.Heal(1)
		}, "....\n....\n...h\n..h.\n"},
		{"healing what is not there", func(n *Net) { n.Heal(7) },
			"....\n....\n....\n....\n"},
		{"reset", func(n *Net) { n.Partition(1, []Node{0}, nil, Drop, false); n.Reset() },
			"....\n....\n....\n....\n"},
	} {
		var n Net
		c.do(&n)
		if got := n.Describe(4); got != c.want {
			t.Errorf("%s:\n%swant:\n%s", c.name, got, c.want)
		}
	}
}

// TestHolder: a held message is told the partition that came first.
func TestHolder(t *testing.T) {
	var n Net
	n.Partition(4, []Node{0}, []Node{1}, Hold, false)
	n.Partition(5, []Node{0}, nil, Hold, false)
	if fate, by := n.Fate(0, 1); fate != Held || by != 4 {
		t.Errorf("fate %v by %d, want held by 4", fate, by)
	}
	n.Heal(4)
	if fate, by := n.Fate(0, 1); fate != Held || by != 5 {
		t.Errorf("fate %v by %d, want held by 5", fate, by)
	}
}

// TestNodeSet compares the bit sets with plain maps, beyond 64 nodes too.
func TestNodeSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(rapid.Int32Range(0, 200), 0, 20).Draw(t, "nodes")
		in := map[Node]bool{}
		var list []Node
		for _, n := range nodes {
			in[Node(n)] = true
			list = append(list, Node(n))
		}
		s := setOf(list)
		for n := Node(0); n < 260; n++ {
			if s.has(n) != in[n] || s.complement().has(n) == in[n] {
				t.Fatalf("node %d in %v: %v", n, list, s.has(n))
			}
		}
	})
}

// TestPipe: whatever the latencies, bytes arrive in the order of sending and
// none is early.
func TestPipe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Pipe
		last := clock.Time(0)
		for _, at := range rapid.SliceOf(rapid.Int64Range(0, 1000)).Draw(t, "alone") {
			got := p.Arrival(clock.Time(at))
			if got < last || got < clock.Time(at) {
				t.Fatalf("arrives at %d; alone at %d, the one before at %d", got, at, last)
			}
			last = got
		}
		if p.Broken() {
			t.Fatal("broken by itself")
		}
		p.Break()
		if !p.Broken() {
			t.Fatal("not broken")
		}
	})
}

// TestLinuxKeepalive: a silent peer counts as dead 7200 + 9 x 75 s after it was
// last heard (tcp(7)).
func TestLinuxKeepalive(t *testing.T) {
	p := Prober{Keepalive: LinuxKeepalive}
	p.Heard(clock.Time(time.Second))
	at, probes := p.Due(), 0
	for ; !p.Probe(at, false); at = p.Due() {
		probes++
	}
	if probes != 9 {
		t.Errorf("%d probes, want 9", probes)
	}
	if want := clock.Time(time.Second).Add(7200*time.Second + 9*75*time.Second); at != want {
		t.Errorf("dead at %v, want %v", time.Duration(at), time.Duration(want))
	}
}

func TestProberStartsAnew(t *testing.T) {
	p := Prober{Keepalive: Keepalive{Idle: 10, Interval: 2, Probes: 2}}
	p.Heard(0)
	if p.Probe(10, false) || p.Probe(12, false) {
		t.Fatal("dead too early")
	}
	if p.Probe(14, true) { // an answer to the last probe
		t.Fatal("dead in spite of an answer")
	}
	if p.Due() != 24 {
		t.Fatalf("due at %d, want 24", p.Due())
	}
	// A suspended machine comes to its probe late; the next is an interval on.
	if p.Probe(100, false) || p.Due() != 102 {
		t.Fatalf("due at %d, want 102", p.Due())
	}
}
