package scenarios

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"locklab/checker"
	"locklab/sim"
)

// redisCase is a plan in YAML with what each pair of design and resource comes
// to.
type redisCase struct {
	name   string
	yaml   string // everything of a scenario but its name, story and expectations
	expect []redisAnswer
}

type redisAnswer struct{ design, resource, verdict, lock string }

// Two clients with two sections each; client-2 comes a second later.
const redisSmall = `
clients: 2
sections: 2
params: {stagger: 1s, work: 3s%s}
plan:
`

func redisCases() []redisCase {
	with := func(params, plan string) string { return fmt.Sprintf(redisSmall, params) + plan }
	return []redisCase{
		{"a crashed holder without a time to live", with("", `
  - {fault: crash, on: client-1, before: client-1/section#1/write, restart: after 1s}`), []redisAnswer{
			{"redis/setnx-no-ttl", "plain", "stuck", "kept"},
			{"redis/setnx-expire", "plain", "safe", "kept"},
			{"redis/lua-release", "plain", "safe", "kept"},
		}},
		{"a crash between SETNX and EXPIRE", with("", `
  - {fault: crash, on: client-1, before: client-1/section#1/acquire/op#4, restart: after 1s}`), []redisAnswer{
			{"redis/setnx-expire", "plain", "stuck", "kept"},
		}},
		{"somebody writes a word where the tokens are counted", with("", `
  - {fault: overwrite, on: redis-1, key: "lock:token", value: banana, before: client-1/section#2/acquire}`), []redisAnswer{
			{"redis/incr-token", "fenced", "stuck", "kept"},
			{"redis/lua-token", "fenced", "stuck", "kept"},
			{"redis-replica/lua-token", "fenced", "stuck", "kept"},
		}},
		{"a pause between GET and DEL", with("", `
  - {fault: pause, on: client-1, before: client-1/section#1/release/op#2, until: client-2's first accepted read, at_most: 60s}`), []redisAnswer{
			{"redis/get-del", "plain", "two-writers", "broken"},
			{"redis/lua-release", "plain", "safe", "kept"}, // there is no second step
		}},
		{"a pause between GET and MULTI", with("", `
  - {fault: pause, on: client-1, before: client-1/section#1/release/op#3, until: client-2's first accepted read, at_most: 60s}`), []redisAnswer{
			{"redis/watch-release", "plain", "safe", "kept"},
		}},
		{"a pause between SET and INCR", with("", `
  - {fault: pause, on: client-1, before: client-1/section#1/acquire/op#4, until: client-2's first accepted read, at_most: 60s}`), []redisAnswer{
			{"redis/incr-token", "fenced", "two-writers", "broken"},
		}},
		{"a failover that loses the grant", with("", `
  - {fault: failover, on: redis-1, mode: demoted, after: lock grants client-1}`), []redisAnswer{
			{"redis-replica/lua-release", "plain", "two-writers", "broken"},
			{"redis-replica/lua-token", "fenced", "two-writers", "broken"}, // both have the same token
			{"redis-replica/wait", "plain", "safe", "kept"},
		}},
		{"a failover that loses the grant, and the old primary lives on", with("", `
  - {fault: failover, on: redis-1, after: lock grants client-1}`), []redisAnswer{
			{"redis-replica/lua-release", "plain", "two-writers", "broken"},
			{"redis-replica/wait", "plain", "safe", "kept"},
		}},
		{"the same with a file", with(", persistence: aof-everysec", `
  - {fault: crash, on: redis-1, at: 1500ms, restart: after 100ms}`), []redisAnswer{
			{"redis/lua-release", "plain", "safe", "kept"},
			{"redis-replica/lua-release", "plain", "safe", "kept"},
		}},
		{"a failover that loses the release", with("", `
  - {fault: failover, on: redis-1, mode: demoted, after: "client-1's first release"}`), []redisAnswer{
			{"redis-replica/lua-release", "plain", "safe", "kept"}, // the ghost blocks until it expires
		}},
		{"another service writes the key", with("", `
  - {fault: overwrite, on: redis-1, key: lock, before: client-1/section#1/write}`), []redisAnswer{
			{"redis/lua-release", "plain", "stuck", "broken"}, // it has no time to live, and is nobody's
			{"redis/blind-del", "plain", "safe", "broken"},    // one bug helps against another
			{"redis-replica/lua-release", "plain", "stuck", "broken"},
		}},
		{"memory pressure takes the key", with("", `
  - {fault: evict, on: redis-1, key: lock, after: client-2/section#1/acquire/op#3}`), []redisAnswer{
			{"redis/lua-release", "plain", "two-writers", "broken"},
			{"redis-replica/lua-release", "plain", "two-writers", "broken"},
		}},
		{"a failover that loses nothing", with("", `
  - {fault: failover, on: redis-1, mode: demoted, before: client-1/section#1/write}`), []redisAnswer{
			{"redis-replica/lua-release", "plain", "safe", "kept"},
			{"redis-replica/wait", "plain", "safe", "kept"},
			{"redis-replica/lua-token", "fenced", "safe", "kept"},
		}},
		{"the primary's machine dies", with("", `
  - {fault: crash, on: redis-1, mode: node, before: client-1/section#1/write, restart: never}`), []redisAnswer{
			{"redis-replica/lua-release", "plain", "safe", "kept"},
			{"redis-replica/lua-token", "fenced", "safe", "kept"},
		}},
		{"an empty primary wipes its replicas", with("", `
  - {fault: crash, on: redis-1, at: 1500ms, restart: after 100ms}`), []redisAnswer{
			{"redis/lua-release", "plain", "two-writers", "broken"},
			{"redis-replica/lua-release", "plain", "two-writers", "broken"},
			{"redis-replica/wait", "plain", "two-writers", "broken"},
		}},
	}
}

func TestRedisDesigns(t *testing.T) {
	for _, c := range redisCases() {
		s, err := Load([]byte("name: redis/case\ntitle: A case\nstory: A story.\nsource: none\n"+c.yaml+"\nexpect:\n  - {verdict: safe, lock: kept, why: unused}\n"), "case.yaml")
		require.NoError(t, err, c.name)
		for _, e := range c.expect {
			s.Expect = nil
			run := Case{Scenario: s, Design: design(t, e.design), Resource: resource(t, e.resource), Params: s.Params, Plan: s.Plan}
			r, err := NewRunner(run)
			require.NoError(t, err)
			for seed := uint64(1); seed <= 20; seed++ {
				res, err := r.Run(seed, sim.TraceHash)
				require.NoError(t, err)
				require.Nil(t, res.Failure, "%v", res.Failure)
				got := redisAnswer{e.design, e.resource, res.Verdict.String(), res.Report.Lock.String()}
				if !assert.Equal(t, e, got, "%s, seed %d: %v", c.name, seed, res.Report.Findings) {
					break
				}
				if seed <= 3 {
					require.NoError(t, checker.CrossCheck(res.Report, checker.Porcupine(res.History, checker.PorcupineTimeout)))
				}
			}
			r.Close()
		}
	}
}
