package execution

import (
	"context"
	"errors"
	"fmt"

	"github.com/skeinq/skein/core"
)

var errNoResult = errors.New("a result is that of a job whose handler runs; " +
	"pass the handler's context before it returns, or in a BatchHandler call SetResult of the Job")

// SetResult sets the result of the job that a handler works, whose context is ctx. It refuses the
// context of a whole batch, and that of a job whose handler has returned.
func SetResult(ctx context.Context, result []byte) error {
	b, job, unlock := working(ctx)
	defer unlock()
	if job == wholeBatch {
		return errNoResult
	}
	return b.setResult(job, result)
}

// SetResult sets the result of job i, unless its handler has returned.
func (b *Batch) SetResult(i int, result []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.returned(i) {
		return errNoResult
	}
	return b.setResult(i, result)
}

// setResult sets the result of job i. The Batch is locked.
func (b *Batch) setResult(i int, result []byte) error {
	switch {
	case !b.shard.Queue.Records:
		return fmt.Errorf("%w: queue %q keeps no records, so a result has no place; set its Keep",
			core.ErrInvalidOptions, b.shard.ID.Queue)
	case len(result) > core.MaxResultBytes:
		return fmt.Errorf("%w: the result of job %q has %d bytes, and at most %d are kept; "+
			"store it elsewhere and keep a reference",
			core.ErrInvalidPayload, b.Claims[i].ID, len(result), core.MaxResultBytes)
	}
	put(&b.results, i, result)
	return nil
}
