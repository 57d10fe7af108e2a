package scenarios

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"locklab/clock"
	"locklab/sim"
)

// writeLatencies returns how long each write request of a run was under way,
// by its place.
func writeLatencies(t *testing.T, designName string) map[string]time.Duration {
	t.Helper()
	p := DefaultParams()
	r, err := NewRunner(Case{Design: design(t, designName), Resource: resource(t, "plain"), Params: p})
	require.NoError(t, err)
	defer r.Close()
	res, err := r.Run(7, sim.TraceRecord)
	require.NoError(t, err)
	sent, out := map[uint32]clock.Time{}, map[string]time.Duration{}
	for _, e := range res.Trace {
		if e.Place.Phase != sim.PhaseWrite {
			continue
		}
		switch e.Kind {
		case sim.EventSend:
			sent[e.Msg] = e.At
		case sim.EventArrive:
			if _, known := out[res.World.PlaceName(e.Place)]; !known { // the request comes first, then its reply
				out[res.World.PlaceName(e.Place)] = time.Duration(e.At - sent[e.Msg])
			}
		}
	}
	require.Len(t, out, 9)
	return out
}

// Two designs that send different numbers of messages meet the same weather:
// every write's latency is a function of the seed and the write's place.
func TestDesignsMeetTheSameWriteLatencies(t *testing.T) {
	polling := writeLatencies(t, "redis/lua-token")
	require.Equal(t, polling, writeLatencies(t, "redis/watchdog"))
	require.Equal(t, polling, writeLatencies(t, "none"))
}
