package models

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/sim"
)

// redisLab is a client before Redis servers. Every message takes a
// millisecond.
type redisLab struct {
	*testing.T
	env   *Env
	group *redisGroup // nil: one server alone
	alone *redisServer
	task  *sim.Task
	links [9]link
}

// least answers every choice with the least: nothing unsynced survives.
type least struct{}

// Choose implements sim.Chooser.
func (least) Choose(c sim.Choice) int64 { return c.Lo }

func redisOptions() Options {
	return Options{TTL: 10 * time.Second, CallTimeout: time.Second, Replicas: 2, DownAfter: 2 * time.Second}
}

// inRedis runs a client's program before one Redis, or before a group, under a
// plan.
func inRedis(t *testing.T, o Options, group bool, faults []sim.Fault, program func(l *redisLab)) {
	t.Helper()
	w := sim.NewWorld(sim.Config{Chooser: least{}, LatencyMin: time.Millisecond, LatencyMax: time.Millisecond, Plan: sim.Plan{Faults: faults}})
	defer w.Close()
	l := &redisLab{T: t, env: &Env{World: w, Options: o}}
	w.AddNode("client-1").AddClient("client-1", func(task *sim.Task) {
		l.task = task
		task.Sleep(10 * time.Millisecond) // the group gets together
		program(l)
	})
	if group {
		l.group = newRedisGroup(l.env, o.Replicas)
	} else {
		l.alone = newRedis(l.env, "redis-1")
	}
	_, err := w.Run()
	require.NoError(t, err)
	if f := w.Failure(); f != nil {
		t.Fatal(f, f.Stack)
	}
}

func (l *redisLab) server(n int) *redisServer {
	if l.group == nil {
		return l.alone
	}
	return l.group.servers[n-1]
}

// ask sends a command to redis-n and returns the answer as transcripts write
// it.
func (l *redisLab) ask(n int, line string) string {
	l.Helper()
	c := parseRedis(l, line)
	l.links[n].server = l.server(n).proc
	p, err := l.links[n].call(l.task, l.env, &c)
	if err != nil {
		return err.Error()
	}
	return plain(p.(*RedisReply))
}

// expect asks redis-n line after line, "GET k -> (nil)".
func (l *redisLab) expect(n int, lines ...string) {
	l.Helper()
	for _, line := range lines {
		s := parseStep(l, line)
		require.Equal(l, s.want, l.ask(n, s.command), "redis-%d: %s", n, line)
	}
}

func (l *redisLab) sleep(d time.Duration) { l.task.Sleep(d) }

// has tells whether redis-n keeps a key in memory, hidden or not.
func (l *redisLab) has(n int, key string) bool { return l.server(n).db.at(key) >= 0 }

func at(d time.Duration) sim.Trigger { return sim.Trigger{At: sim.Exactly(d)} }

func crashAt(d time.Duration, whom, mode string, restart time.Duration) sim.Fault {
	return sim.Fault{Kind: sim.Crash, On: []string{whom}, Mode: mode, Trigger: at(d), Restart: sim.Exactly(restart)}
}

func stepClock(d time.Duration, whom string, by time.Duration) sim.Fault {
	return sim.Fault{Kind: sim.ClockStep, On: []string{whom}, Trigger: at(d), By: sim.Exactly(by)}
}
