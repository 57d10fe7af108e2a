package scenarios

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInParallel(t *testing.T) {
	for _, workers := range []int{1, 3, 50} {
		done := make([]int32, 20)
		require.NoError(t, InParallel(context.Background(), workers, len(done), func(worker, i int) error {
			require.Less(t, worker, workers)
			atomic.AddInt32(&done[i], 1)
			return nil
		}))
		for i, n := range done {
			require.Equal(t, int32(1), n, i)
		}
	}
	require.NoError(t, InParallel(context.Background(), 2, 0, func(int, int) error { panic("there is nothing to do") }))
}

func TestInParallelStops(t *testing.T) {
	bad := errors.New("bad")
	begun := 0
	require.ErrorIs(t, InParallel(context.Background(), 1, 10, func(_, i int) error {
		begun++
		if i == 3 {
			return bad
		}
		return nil
	}), bad)
	require.Equal(t, 4, begun)

	ctx, cancel := context.WithCancel(context.Background())
	begun = 0
	require.ErrorIs(t, InParallel(ctx, 1, 10, func(_, i int) error {
		begun++
		if i == 3 {
			cancel()
		}
		return nil
	}), context.Canceled)
	require.Equal(t, 4, begun)
}
