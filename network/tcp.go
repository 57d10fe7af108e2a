package network

import (
	"time"

	"locklab/clock"
)

// Pipe is one direction of a connection: bytes arrive in the order in which
// they were sent. The zero Pipe is empty and whole.
type Pipe struct {
	last   clock.Time // when the latest of the bytes sent so far arrives
	broken bool
}

// Arrival returns when bytes arrive that would, alone, arrive at the given
// time: not before those sent earlier.
func (p *Pipe) Arrival(at clock.Time) clock.Time {
	p.last = max(p.last, at)
	return p.last
}

// Break notes that bytes were lost for good: nothing behind them arrives.
func (p *Pipe) Break() { p.broken = true }

// Broken reports whether the pipe has a hole.
func (p *Pipe) Broken() bool { return p.broken }

// GiveUp is how long Linux retransmits unacknowledged bytes before it resets
// the connection: 924.6 s with the default net.ipv4.tcp_retries2 = 15 (kernel
// documentation, ip-sysctl).
const GiveUp = 924_600 * time.Millisecond

// Keepalive is TCP's probing of an idle peer.
type Keepalive struct {
	Idle     time.Duration // silence before the first probe
	Interval time.Duration // between probes
	Probes   int           // unanswered probes before the peer counts as dead
}

// LinuxKeepalive are the defaults of Linux (tcp(7)): 7200 s, then 9 probes 75 s
// apart.
var LinuxKeepalive = Keepalive{Idle: 7200 * time.Second, Interval: 75 * time.Second, Probes: 9}

// Prober counts the silence on one side of a connection.
type Prober struct {
	Keepalive
	due    clock.Time
	missed int
}

// Heard notes that the peer was heard.
func (p *Prober) Heard(now clock.Time) { p.due, p.missed = now.Add(p.Idle), 0 }

// Due returns when to look again: when silence has lasted long enough for the
// next probe.
func (p *Prober) Due() clock.Time { return p.due }

// Probe is called when a probe is due, or later where the machine was
// suspended meanwhile; answered says whether the peer's kernel replies. It
// reports whether the peer now counts as dead: when the last probe, too, has
// waited an interval in vain.
func (p *Prober) Probe(now clock.Time, answered bool) (dead bool) {
	if answered {
		p.Heard(now)
		return false
	}
	p.missed++
	p.due = now.Add(p.Interval)
	return p.missed > p.Probes
}
