package models

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/clock"
)

// How long a record lives stands in the record: a follower with another
// LeaseDuration waits for its leader's. (Until Kubernetes's pull request 114872
// it waited for its own.)
func TestK8sDurationIsTheRecords(t *testing.T) {
	at := func(d time.Duration) clock.Reading { return clock.Reading(0).Add(d) }
	l := k8sLease{env: &Env{Options: Options{TTL: 10 * time.Second}}, identity: 1,
		observed: leaseSpec{holder: 2, duration: 30 * time.Second}, observedAt: at(5 * time.Second)}
	require.True(t, l.alive(at(34*time.Second)))
	require.False(t, l.alive(at(35*time.Second)))
	require.False(t, l.leads())
}

// A record counts whole seconds, rounded down, and none below one.
func TestK8sRecordsCountSeconds(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{15 * time.Second: 15 * time.Second, 15999 * time.Millisecond: 15 * time.Second, time.Millisecond: time.Second} {
		l := k8sLease{env: &Env{Options: Options{TTL: ttl}}}
		require.Equal(t, want, l.duration())
	}
}

// What the leader does not use of the lease is for the followers' clocks.
func TestK8sDrift(t *testing.T) {
	o := Options{TTL: 15 * time.Second, Renew: 2 * time.Second, RenewDeadline: 10 * time.Second}
	require.Equal(t, 3*time.Second, k8sDrift(o))
	o.RenewDeadline = 20 * time.Second
	require.Zero(t, k8sDrift(o))
}
