package scenarios

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// InParallel calls do for every number below n from so many workers, numbered
// from 0, each of which takes the next number when it is done with its last.
// After an error, or when ctx ends, nothing more is begun; it returns the first
// error.
func InParallel(ctx context.Context, workers, n int, do func(worker, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for worker := range min(workers, n) {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := do(worker, i); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}
