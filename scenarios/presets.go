package scenarios

import (
	"errors"
	"strings"
)

// Preset is what a library of the field, for Redlock or for leader election,
// does when nobody configures it, as parameters: --set preset=redsync.
type Preset struct {
	Name string
	// About says what the library is like where no parameter can, and which
	// design comes nearest to it.
	About    string
	Source   string // where the numbers stand
	Settings []Setting
}

// Presets lists the presets in their documented order. A number that a library
// leaves to its user (a ttl, mostly) is the one of its documentation's first
// example. Durations that a library draws at random are written as their least
// value (retry) and what may come on top (retry_jitter).
func Presets() []Preset {
	return []Preset{
		{
			Name: "redsync",
			About: "Go, v4.18.1; nearest design: redlock. Nodes are asked in parallel. A request may take 5 % of the expiry; " +
				"there are no 2 ms on top of the drift. Extending is left to the program",
			Source: "https://github.com/go-redsync/redsync/blob/v4.18.1/redsync.go (NewMutex: expiry 8s, tries 32, delay 50 to 250 ms, " +
				"driftFactor 0.01, timeoutFactor 0.05) and mutex.go (lockContext: now.Before(until))",
			Settings: []Setting{{"ttl", "8s"}, {"tries", "32"}, {"retry", "50ms"}, {"retry_jitter", "199ms"},
				{"drift_factor", "0.01"}, {"drift_margin", "0s"}, {"node_timeout", "400ms"}},
		},
		{
			Name: "redlock-net",
			About: "C#; nearest design: redlock/extend. Asks in parallel, tries three times at intervals of up to 400 ms, then extends every half " +
				"expiry, without a limit. A failed extension changes the status and stops nothing: the program has to look",
			Source: "https://github.com/samcook/RedLock.net/blob/master/RedLockNet.SERedis/RedLock.cs (DefaultQuorumRetryCount 3, DefaultQuorumRetryDelayMs 400, " +
				"ClockDriftFactor 0.01, 2 ms padding, keepalive at expiry/2), InternallyManagedRedLockConnectionProvider.cs (DefaultSyncTimeout 1000) and the README (expiry 30 s)",
			Settings: []Setting{{"ttl", "30s"}, {"tries", "3"}, {"retry", "1ms"}, {"retry_jitter", "398ms"}, {"renew", "15s"}, {"renew_max", "1000000"},
				{"drift_factor", "0.01"}, {"drift_margin", "2ms"}, {"node_timeout", "1s"}},
		},
		{
			Name: "node-redlock",
			About: "JavaScript, 4.2.0; nearest design: redlock/wall-clock, for it measures with Date.now(). Its nodes' clients decide how long a request may take, " +
				"so node_timeout stays as it is. The beta of version 5 no longer compares the clock after the answers: redlock/no-validity-check",
			Source: "https://github.com/mike-marcacci/node-redlock/blob/v4.2.0/redlock.js (defaults: driftFactor 0.01, retryCount 10, retryDelay 200, retryJitter 100, " +
				"plus or minus; drift plus 2 ms) and the README (ttl 1000)",
			Settings: []Setting{{"ttl", "1s"}, {"tries", "11"}, {"retry", "100ms"}, {"retry_jitter", "200ms"},
				{"drift_factor", "0.01"}, {"drift_margin", "2ms"}},
		},
		{
			Name: "redlock-py",
			About: "Python; nearest design: redlock/wall-clock, for it measures with time.time(). It asks one node after the other and sets no timeout, " +
				"so node_timeout stays as it is; its retry delay is not random",
			Source:   "https://github.com/SPSCommerce/redlock-py/blob/master/redlock/__init__.py (default_retry_count 3, default_retry_delay 0.2, clock_drift_factor 0.01, plus 2 ms) and the README (ttl 1000)",
			Settings: []Setting{{"ttl", "1s"}, {"tries", "3"}, {"retry", "200ms"}, {"retry_jitter", "0s"}, {"drift_factor", "0.01"}, {"drift_margin", "2ms"}},
		},
		{
			Name: "redisson",
			About: "Java, RedissonRedLock (deprecated); nearest design: redlock/extend, though it measures no validity at all. Its watchdog lease of 30 s is renewed every 10 s without a limit; " +
				"lock() waits 1.5 s for each node and starts over for as long as it takes",
			Source: "https://github.com/redisson/redisson/blob/master/redisson/src/main/java/org/redisson/config/Config.java (lockWatchdogTimeout 30000), " +
				"RedissonMultiLock.java (baseWaitTime: 1500 ms a lock) and RedissonRedLock.java (calcLockWaitTime, minLocksAmount)",
			Settings: []Setting{{"ttl", "30s"}, {"tries", "0"}, {"wait", "0s"}, {"renew", "10s"}, {"renew_max", "1000000"},
				{"drift_factor", "0"}, {"drift_margin", "0s"}, {"node_timeout", "1.5s"}},
		},
		{
			Name: "client-go",
			About: "Go, leader election in Kubernetes as its core components are configured; design: k8s/lease. RetryPeriod is renew and retry, " +
				"RetryPeriod*JitterFactor retry_jitter. The API client's timeout is half of RenewDeadline",
			Source: "https://github.com/kubernetes/client-go/blob/master/tools/leaderelection/leaderelection.go (core clients: LeaseDuration 15 s, RenewDeadline 10 s, " +
				"RetryPeriod 2 s; JitterFactor 1.2; ReleaseOnCancel false) and resourcelock/interface.go (NewFromKubeconfig: config.Timeout)",
			Settings: []Setting{{"ttl", "15s"}, {"retry", "2s"}, {"retry_jitter", "2.4s"}, {"renew", "2s"}, {"renew_deadline", "10s"}, {"release_on_cancel", "false"},
				{"call_timeout", "5s"}},
		},
	}
}

// presetKey is how --set asks for a preset.
const presetKey = "preset"

// findPreset returns the preset of that name.
func findPreset(name string) (*Preset, error) {
	all := Presets()
	names := make([]string, len(all))
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
		names[i] = all[i].Name
	}
	return nil, errors.New(unknown(presetKey, name, names))
}

// expandPreset puts a preset's settings in front of those that were written
// out, which so have the last word.
func expandPreset(settings []Setting) ([]Setting, error) {
	var out []Setting
	for _, s := range settings {
		if s.Name != presetKey {
			continue
		}
		p, err := findPreset(s.Value)
		if err != nil {
			return nil, &ParamError{Name: presetKey, Err: err}
		}
		out = append(out, p.Settings...)
	}
	if out == nil {
		return settings, nil
	}
	for _, s := range settings {
		if s.Name != presetKey {
			out = append(out, s)
		}
	}
	return out, nil
}

// Numbers is what the preset stands for, as --set would spell it.
func (p *Preset) Numbers() string {
	parts := make([]string, len(p.Settings))
	for i, s := range p.Settings {
		parts[i] = s.Name + "=" + s.Value
	}
	return strings.Join(parts, ",")
}
