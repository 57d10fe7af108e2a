package scenarios

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"locklab/sim"
)

// witnessCases are, for every sentence of the vocabulary, a run in which it
// comes true and one in which it does not, though it nearly does: two clients
// with a section each, client-2 behind client-1.
var witnessCases = []struct {
	text    string
	design  string
	yes, no string
}{
	{"client-1 was paused past its ttl while it held the lock", "redis/lua-release",
		`plan: [{fault: pause, on: client-1, before: client-1/write, for: ttl}]`,
		`plan: [{fault: pause, on: client-1, before: client-1/write, for: 5s}]`},
	{"client-1 was paused past its ttl while it held the lock", "redis/watchdog",
		`plan: [{fault: freeze, on: client-1, before: client-1/write, for: 11s}]`,
		`plan: [{fault: stall, on: client-1.renewer, at: 100ms, for: 11s}]`},
	{"client-1 was paused past its ttl while it held the lock", "redis/lua-release",
		`plan: [{fault: stall, on: client-1, before: client-1/write, for: 11s}]`,
		`plan: [{fault: pause, on: client-2, before: client-2/write, for: 11s}]`},
	{"client-1 was paused past its ttl while it waited for the lock", "redlock",
		`plan: [{fault: pause, on: client-1, before: client-1/acquire/op#8, for: ttl}]`,
		`plan: [{fault: pause, on: client-1, before: client-1/acquire/op#8, for: 9s}]`},
	{"client-1 was paused past its ttl while it waited for the lock", "redlock/no-validity-check",
		`plan: [{fault: pause, on: client-1, before: client-1/acquire/op#8, for: ttl}]`,
		`plan: [{fault: pause, on: client-1, before: client-1/read, for: 11s}]`}, // it had it
	{"client-1 crashed while it held the lock", "redis/lua-release",
		`plan: [{fault: crash, on: client-1, before: client-1/write}]`,
		`plan: [{fault: crash, on: client-1, at: 1500ms}]`},
	{"client-1 crashed while it held the lock", "redis/lua-release",
		`plan: [{fault: crash, on: client-1, before: client-1/write}]`,
		`plan: [{fault: pause, on: client-1, before: client-1/write, for: 11s}, {fault: crash, on: client-1, at: 12s}]`},
	{"client-1's section lasted longer than its ttl", "redis/watchdog",
		`params: {work: 11s}`, `params: {work: 9s}`},
	{"client-2 crashed while it waited for the lock", "redis/lua-release",
		`plan: [{fault: crash, on: client-2, at: 500ms}]`,
		`plan: [{fault: crash, on: client-1, before: client-1/write}]`},
	{"client-2 was granted the lock while client-1's request for it was delayed", "redis/lua-release",
		`plan: [{fault: delay, on: client-1->redis-1, before: client-1/acquire, by: 900ms}]`,
		`plan: [{fault: delay, on: client-1->redis-1, before: client-1/release, by: 900ms}]`},
	{"client-2's wall clock was wrong when it was granted the lock", "redis/lua-release",
		`plan: [{fault: clock-offset, on: client-2, at: 0s, by: 1s, for: 1m}]`,
		`plan: [{fault: clock-offset, on: client-2, at: 0s, by: 1s, for: 500ms}]`},
	{"client-1 and client-2 asked for the lock before either could have an answer", "redis/lua-release",
		`params: {stagger: 1ms}`, `params: {stagger: 1001us}`},
	{"client-2 and client-1 asked for the lock before either could have an answer", "redis/lua-release",
		`params: {stagger: 1ms}`, `params: {stagger: 2ms}`},
	{"client-2 got and released the lock while client-1 was paused", "redis/lua-release",
		`plan: [{fault: pause, on: client-1, before: client-1/write, until: "client-2's first release", at_most: 60s}]`,
		`plan: [{fault: pause, on: client-1, before: client-1/write, until: "client-2's first accepted write", at_most: 60s}]`},
	{"client-1's write arrived after its timeout", "redis/lua-release",
		`plan: [{fault: delay, on: client-1->storage, before: client-1/write, by: 1s}]`,
		`plan: [{fault: delay, on: client-1->storage, before: client-1/write, by: 900ms}]`},
	{"client-1's renewal arrived after its tenure had ended", "redis/watchdog",
		`{params: {work: 11s}, plan: [{fault: stall, on: client-1.renewer, at: 100ms, for: 10s}]}`,
		`{params: {work: 11s}, plan: [{fault: stall, on: client-1.renewer, at: 100ms, for: 9s}]}`},
	{"client-1's write arrived after its tenure had ended", "redis/lua-release",
		`plan: [{fault: pause, on: client-1, before: client-1/write, for: 10s}]`,
		`plan: [{fault: pause, on: client-1, before: client-1/release, for: 10s}]`},
	{"client-1's release arrived after its tenure had ended", "redis/lua-release",
		`plan: [{fault: pause, on: client-1, before: client-1/release, for: 10s}]`,
		`plan: []`},
	{"client-1's release arrived after its next grant", "redis/lua-release",
		`{sections: 2, plan: [{fault: delay, on: client-1->redis-1, before: client-1/section#1/release, by: 15s}]}`,
		`{sections: 2, plan: [{fault: delay, on: client-1->redis-1, before: client-1/section#1/release, by: 1s}]}`},
	{"client-1 never learned that its acquire took effect", "redis/lua-release",
		`plan: [{fault: drop-reply, on: client-1->redis-1, before: client-1/acquire}]`,
		`plan: [{fault: drop-request, on: client-1->redis-1, before: client-1/acquire}]`},
	{"client-2 never learned that its acquire took effect", "redis/lua-release",
		`{params: {stagger: 2s}, plan: [{fault: drop-reply, on: client-2->redis-1, before: client-2/acquire}]}`,
		`plan: [{fault: drop-reply, on: client-2->redis-1, before: client-2/acquire}]`}, // the lost reply was a no
	{"client-1 never learned that its renewal took effect", "redis/watchdog",
		`{params: {work: 9s}, plan: [{fault: drop-reply, on: client-1->redis-1, before: client-1/renew/op#2}]}`,
		`{params: {work: 9s}, plan: [{fault: drop-request, on: client-1->redis-1, before: client-1/renew/op#2}]}`},
	{"client-1 never learned that its write took effect", "redis/lua-release",
		`plan: [{fault: drop-reply, on: client-1->storage, before: client-1/write}]`,
		`plan: [{fault: drop-request, on: client-1->storage, before: client-1/write}]`},
	{"client-1 never learned that its write took effect", "redis/lua-release",
		`plan: [{fault: drop-reply, on: client-1->storage, before: client-1/write}]`,
		`plan: [{fault: crash, on: client-1, after: "client-1's first accepted write"}]`},
	{"client-1 never learned that its release took effect", "redis/lua-release",
		`{sections: 2, plan: [{fault: drop-reply, on: client-1->redis-1, before: client-1/section#1/release}]}`,
		`{sections: 2, plan: [{fault: drop-request, on: client-1->redis-1, before: client-1/section#1/release}]}`},
	{"redis-1 crashed while client-1 held the lock", "redis/lua-release",
		`plan: [{fault: crash, on: redis-1, at: 500ms, restart: 1s}]`,
		`plan: [{fault: crash, on: redis-1, at: 1500ms, restart: 1s}]`},
	{"redis-1 crashed while nobody held the lock", "redis/lua-release",
		`{params: {stagger: 3s}, plan: [{fault: crash, on: redis-1, at: 2s, restart: 500ms}]}`,
		`plan: [{fault: crash, on: redis-1, at: 500ms, restart: 500ms}]`},
	{"redis-1 crashed while nobody held the lock", "redis/lua-release",
		`{params: {stagger: 3s}, plan: [{fault: crash, on: redis-1, at: 2s, restart: 500ms}]}`,
		`plan: [{fault: drop-reply, on: client-1->redis-1, before: client-1/acquire}, {fault: crash, on: redis-1, at: 50ms, restart: 500ms}]`}, // an orphan held it
	{"redis-3's clock stepped while client-1 held the lock", "redlock",
		`plan: [{fault: clock-step, on: redis-3, at: 500ms, by: 11s}]`,
		`plan: [{fault: clock-step, on: redis-3, at: 1500ms, by: 11s}]`},
	{"client-1 crashed before it learned that it had been granted the lock", "redis/lua-release",
		`plan: [{fault: crash, on: client-1, after: lock grants client-1}]`,
		`plan: [{fault: crash, on: client-1, before: client-1/read}]`},
	{"client-1 crashed before it learned that it had been granted the lock", "redis/setnx-expire",
		`plan: [{fault: crash, on: client-1, before: client-1/acquire/op#4}]`,
		`plan: [{fault: crash, on: client-1, before: client-1/acquire/op#1}]`},
	{"client-1's renewer was stalled past its ttl while it held the lock", "redis/watchdog",
		`{params: {work: 11s}, plan: [{fault: stall, on: client-1.renewer, before: client-1/work, for: 10s}]}`,
		`{params: {work: 11s}, plan: [{fault: stall, on: client-1.renewer, before: client-1/work, for: 9s}]}`},
	{"client-1's renewer was stalled past its ttl while it held the lock", "redis/watchdog",
		`{params: {work: 11s}, plan: [{fault: stall, on: client-1.renewer, before: client-1/work, for: 10s}]}`,
		`{params: {work: 11s}, plan: [{fault: pause, on: client-1, before: client-1/work, for: 10s}]}`},
	{"redis-1 failed over while client-1 held the lock", "redis-replica/lua-release",
		`plan: [{fault: failover, on: redis-1, before: client-1/work}]`,
		`plan: [{fault: failover, on: redis-1, at: 1500ms}]`},
	{"redis-1 failed over before a replica could have client-1's grant", "redis-replica/lua-release",
		`plan: [{fault: failover, on: redis-1, after: lock grants client-1}]`,
		`plan: [{fault: failover, on: redis-1, before: client-1/work}]`},
	{"redis-1 failed over before a replica could have client-1's grant", "redis-replica/lua-release",
		`plan: [{fault: partition, on: redis-1, from: [redis-2, redis-3], before: client-1/acquire}, {fault: failover, on: redis-1, before: client-1/work}]`,
		`plan: [{fault: partition, on: redis-1, from: [redis-2, redis-3], before: client-1/read}, {fault: failover, on: redis-1, before: client-1/work}]`},
	{"redis-1 failed over before a replica could have two of client-1's grants", "redis-replica/lua-release",
		`{sections: 2, plan: [{fault: partition, on: redis-1, from: [redis-2, redis-3], before: client-1/acquire}, {fault: failover, on: redis-1, before: client-1/section#2/work}]}`,
		`{sections: 2, plan: [{fault: partition, on: redis-1, from: [redis-2, redis-3], before: client-1/acquire}, {fault: failover, on: redis-1, before: client-1/section#1/work}]}`},
	{"redis-1 failed over before a replica could have client-1's release", "redis-replica/lua-release",
		`plan: [{fault: failover, on: redis-1, after: "client-1's first release"}]`,
		`plan: [{fault: failover, on: redis-1, before: client-1/release}]`},
	{"redis-1 evicted a key while client-1 held the lock", "redis/lua-release",
		`plan: [{fault: evict, on: redis-1, key: lock, before: client-1/work}]`,
		`plan: [{fault: evict, on: redis-1, key: lock, after: lock grants client-1}]`},
	{"redis-1 had a key overwritten while client-1 held the lock", "redis/lua-release",
		`plan: [{fault: overwrite, on: redis-1, key: lock, before: client-1/work}]`,
		`plan: [{fault: overwrite, on: redis-1, key: lock, at: 1500ms}]`},
	{"client-2's renewer stalled past its ttl while it waited for the lock", "etcd/lock",
		`{params: {work: 15s}, plan: [{fault: stall, on: client-2.renewer, at: 1s, for: ttl}]}`,
		`{params: {work: 15s}, plan: [{fault: stall, on: client-2.renewer, at: 1s, for: 9s}]}`},
	{"client-2's renewer stalled past its ttl while it waited for the lock", "etcd/lock",
		`{params: {work: 15s}, plan: [{fault: stall, on: client-2.renewer, at: 1s, for: 60s}]}`,
		`{params: {work: 15s}, plan: [{fault: stall, on: client-1.renewer, at: 1s, for: 60s}]}`}, // it had it
	{"etcd-1 crashed while client-2 waited for the lock", "etcd/lock",
		`plan: [{fault: crash, on: etcd-1, at: 500ms, restart: 1s}]`,
		`plan: [{fault: crash, on: etcd-1, at: 1500ms, restart: 1s}]`},
	{"redis-1 crashed while client-2 waited for the lock", "redis/lua-release",
		`{params: {stagger: 2s}, plan: [{fault: crash, on: redis-1, after: "lock grants client-2", restart: 1s}]}`,
		`{params: {stagger: 2s}, plan: [{fault: crash, on: redis-1, at: 1900ms, restart: 50ms}]}`}, // it had not asked
	{"etcd-2 was paused while client-2 waited for the lock", "etcd/lock",
		`plan: [{fault: pause, on: etcd-2, at: 500ms, for: 2s}]`,
		`plan: [{fault: pause, on: etcd-2, at: 1500ms, for: 2s}]`},
	{"etcd-1 was cut off while client-1 held the lock", "etcd/lock",
		`plan: [{fault: partition, on: [etcd-1, client-1], from: [etcd-2, etcd-3], at: 500ms, for: 5s}]`,
		`plan: [{fault: partition, on: [etcd-1, client-1], from: [etcd-2, etcd-3], at: 1500ms, for: 5s}]`},
	{"client-1 was cut off while it held the lock", "k8s/lease",
		`plan: [{fault: partition, on: [lock], from: [client-1], at: 500ms, for: 5s}]`,
		`plan: [{fault: partition, on: [lock], from: [client-2], at: 500ms, for: 5s}]`},
	{"etcd-1's disk stalled while client-1 held the lock", "etcd/lock",
		`plan: [{fault: fsync-stall, on: etcd-1, at: 500ms, for: 5s}]`,
		`plan: [{fault: fsync-stall, on: etcd-1, at: 1500ms, for: 5s}]`},
	{"etcd-1's disk was put back to before client-1's grant", "etcd/lock",
		`{params: {stagger: 5s}, plan: [{fault: restore-snapshot, on: etcd-1, at: 3s, by: 3s}]}`,
		`{params: {stagger: 5s}, plan: [{fault: restore-snapshot, on: etcd-1, at: 3s, by: 2s}]}`},
	{"zookeeper-1's reply to client-1 was lost while it asked for the lock", "zookeeper/lock",
		`plan: [{fault: drop-reply, on: client-1->zookeeper-1, before: client-1/section#1/acquire/op#5}]`,
		`plan: [{fault: drop-reply, on: client-1->zookeeper-1, before: client-1/section#1/release}]`},
	// A statement that nobody decided, because its session ended right behind it.
	{"client-1's write arrived after its timeout", "postgres/advisory-xact on same-transaction",
		`plan: [{fault: delay, on: client-1->postgres-1, before: client-1/write, for: 2s}]`,
		`plan: [{fault: delay, on: client-1->postgres-1, before: client-1/write, for: 900ms}]`},
	{"client-1's write arrived after its timeout", "postgres/advisory-xact on same-transaction",
		`plan: [{fault: delay, on: client-1->postgres-1, before: client-1/write, for: 2s}]`,
		`plan: [{fault: delay, on: client-1->postgres-1, before: client-1/read, for: 2s}]`},
	{"client-1's write arrived after its tenure had ended", "postgres/lease-table on same-transaction",
		`plan: [{fault: delay, on: client-1->postgres-1, before: client-1/write, for: 10s}]`,
		`plan: [{fault: delay, on: client-1->postgres-1, before: client-1/write, for: 900ms}]`},
	{"the reply to client-1's write was lost", "redis/lua-release",
		`plan: [{fault: drop-reply, on: client-1->storage, before: client-1/write}]`,
		`plan: [{fault: drop-reply, on: client-1->storage, before: client-1/read}]`},
	{"the reply to client-1's write was lost", "postgres/advisory-xact on same-transaction",
		`plan: [{fault: drop-reply, on: client-1->postgres-1, before: client-1/write}]`,
		`plan: [{fault: drop-request, on: client-1->postgres-1, before: client-1/write}]`},
	{"client-2 asked for the lock while client-1 held it", "redis/lua-release",
		`params: {stagger: 500ms}`, `params: {stagger: 2s}`},
	{"client-2 asked for the lock while client-1 held it", "postgres/advisory-session-pgbouncer",
		`params: {stagger: 500ms}`, `params: {stagger: 2s}`},
	{"client-1's machine was frozen past its ttl while it held the lock", "postgres/advisory-session",
		`plan: [{fault: freeze, on: client-1, before: client-1/write, for: ttl}]`,
		`plan: [{fault: pause, on: client-1, before: client-1/write, for: ttl}]`},
	{"client-1's machine was frozen past its ttl while it held the lock", "postgres/advisory-session",
		`plan: [{fault: freeze, on: client-1, before: client-1/write, for: ttl}]`,
		`plan: [{fault: freeze, on: client-1, before: client-1/write, for: 8s}]`},
	{"client-2's clock was wrong while client-1 held the lock", "postgres/lease-table-client-clock",
		`plan: [{fault: clock-offset, on: client-2, at: 100us, by: 5s, for: 500ms}]`,
		`plan: [{fault: clock-offset, on: client-2, at: 1500ms, by: 5s, for: 500ms}]`},
	{"client-2's clock was wrong while client-1 held the lock", "postgres/lease-table-client-clock",
		`plan: [{fault: clock-step, on: client-2, at: 100us, by: 5s}]`,
		`plan: [{fault: clock-step, on: client-1, at: 100us, by: 5s}]`},
	{"client-1 was cut off from postgres-1 while it held the lock", "postgres/advisory-session",
		`plan: [{fault: partition, on: client-1, from: postgres-1, at: 500ms, for: 1s}]`,
		`plan: [{fault: partition, on: client-1, from: postgres-1, at: 1500ms, for: 1s}]`},
	{"client-1 was cut off from postgres-1 while it held the lock", "postgres/advisory-session",
		`plan: [{fault: partition, on: postgres-1, at: 500ms, for: 1s}]`,
		`plan: [{fault: partition, on: [client-1, postgres-1], at: 500ms, for: 1s}]`}, // on the same side
	{"the connection of client-1 to postgres-1 was cut while client-1 held the lock", "postgres/advisory-session",
		`plan: [{fault: cut, on: client-1->postgres-1, at: 500ms}]`,
		`plan: [{fault: cut, on: client-2->postgres-1, at: 500ms}]`},
	{"postgres-1's disk stalled past the ttl while client-2 waited for the lock", "postgres/lease-table",
		`{params: {stagger: 2s, call_timeout: 60s}, plan: [{fault: fsync-stall, on: postgres-1, before: client-1/release, for: 12s}]}`,
		`{params: {stagger: 2s, call_timeout: 60s}, plan: [{fault: fsync-stall, on: postgres-1, before: client-1/release, for: 9s}]}`},
}

func TestWitnesses(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range witnessCases {
		form, _ := findForm(c.text)
		require.NotNil(t, form, c.text)
		covered[form.text] = true
		require.True(t, witnessIn(t, c.text, c.design, c.yes), "%s: %s", c.text, c.yes)
		require.False(t, witnessIn(t, c.text, c.design, c.no), "%s: %s", c.text, c.no)
	}
	for _, text := range WitnessForms() {
		require.True(t, covered[text], "%s: add a run in which it occurs and one in which it does not", text)
	}
}

// witnessIn runs a scenario and tells whether the sentence came true. The
// faults must have struck, so that a witness cannot be missing for that. A
// design may be given with its resource: a on b.
func witnessIn(t *testing.T, text, designName, yaml string) bool {
	t.Helper()
	designName, on, _ := strings.Cut(designName, " on ")
	if on == "" {
		on = "plain"
	}
	s, err := Load([]byte(yaml), "mine.yaml")
	require.NoError(t, err, yaml)
	s.Witnesses = []Witness{{Text: text}}
	s.Params.Clients = 2
	if !strings.Contains(yaml, "sections") {
		s.Params.Sections = 1
	}
	if s.Params.Stagger == 0 {
		require.NoError(t, s.Params.Set("stagger", "100ms"))
	}
	r, err := NewRunner(Case{Scenario: s, Design: design(t, designName), Resource: resource(t, on), Params: s.Params, Plan: s.Plan})
	require.NoError(t, err, yaml)
	defer r.Close()
	res, err := r.Run(1, sim.TraceOff)
	require.NoError(t, err, yaml)
	for _, f := range res.Faults {
		require.True(t, f.Fired && !f.Idle, "%s: fault %d never struck", yaml, f.Index+1)
	}
	return res.Witnesses[0].Occurred
}

func TestWitnessNamesAreResolved(t *testing.T) {
	got, err := parseWitnesses([]Witness{{Text: "client-3 and client-2 asked for the lock before either could have an answer"},
		{Text: "redis-4 crashed while client-2 held the lock"}}, 3)
	require.NoError(t, err)
	require.Equal(t, cast{client: [2]int32{2, 1}}, got[0].who)
	require.Equal(t, cast{client: [2]int32{1}, server: "redis-4"}, got[1].who)
}

// The name of client-1 is the beginning of another's.
func TestWitnessOfClient1IsNotClient10s(t *testing.T) {
	s, err := Load([]byte("{clients: 10, sections: 1, witnesses: [client-1 was paused past its ttl while it held the lock], "+
		"plan: [{fault: pause, on: client-10, before: client-10/write, for: 11s}]}"), "mine.yaml")
	require.NoError(t, err)
	r, err := NewRunner(Case{Scenario: s, Design: design(t, "redis/lua-release"), Resource: resource(t, "plain"), Params: s.Params, Plan: s.Plan})
	require.NoError(t, err)
	defer r.Close()
	res, err := r.Run(1, sim.TraceOff)
	require.NoError(t, err)
	require.True(t, res.Faults[0].Fired)
	require.False(t, res.Witnesses[0].Occurred)
}
