package skein

import (
	"context"
	"errors"
	"fmt"

	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/guard"
)

// RawBatch is one call of a handler, as middleware of a server sees it. It has one job, or all jobs
// of the batch for a BatchHandler.
type RawBatch struct {
	// Queue and Shard name the shard of the jobs.
	Queue string
	Shard int
	// Token is the fencing token of the shard's lease; see [Fence].
	Token int64
	// Jobs are the jobs of the call.
	Jobs []RawJob

	call call
}

// RawJob is a job of a [RawBatch].
type RawJob struct {
	// ID is the id that the payloads were pushed for.
	ID string
	// Payloads are in order of score. Read-only.
	Payloads []RawPayload
	// Retries is the number of failures of the job so far: 0 at first, and again after its first
	// payload was done or buried.
	Retries int
	// Tags are the tags of the job; see [Tags]. nil means no tags.
	Tags []string

	batch *execution.Batch
	index int
}

// Settle sets the job's outcome, as [Job.Settle] does: nil is done. An error of the call takes
// precedence, except for a BatchHandler.
func (j *RawJob) Settle(err error) {
	if j.batch != nil {
		j.batch.SetOutcome(j.index, err)
	}
}

// RunFunc makes one call of a handler. For a BatchHandler that is the whole batch, otherwise one
// job, whatever the BatchSize is.
//
// The result of the outermost RunFunc counts as if the handler had returned it. For one job, an
// error is the outcome; nil keeps the outcome that Settle set, or means done. For a batch, the
// result is the outcome of each job for which Settle was not called. So middleware may replace an
// error by [Snooze], [Bury], [RetryIn], nil or another error. If the handler panics, next returns a
// *[PanicError]. If middleware panics, the jobs of the call fail as if the handler had panicked.
type RunFunc func(ctx context.Context, batch *RawBatch) error

// Middleware wraps the calls of a handler. It returns a [RunFunc] that calls next. That RunFunc may
// pass a context of its own to next, and may change the result of next.
type Middleware func(next RunFunc) RunFunc

// call is the argument of one call of a handler: a batch, and the position of the job in it, or
// wholeBatch.
type call struct {
	batch *execution.Batch
	job   int
}

const wholeBatch = -1

// runCall handles a call. It does not panic.
type runCall func(ctx context.Context, c call) error

// raw returns the call as middleware sees it.
func (c call) raw() *RawBatch {
	first, end := c.job, c.job+1
	if c.job == wholeBatch {
		first, end = 0, len(c.batch.Claims)
	}

	shard := c.batch.Shard()
	raw := &RawBatch{
		Queue: shard.Queue,
		Shard: shard.Index,
		Token: c.batch.Token(),
		Jobs:  make([]RawJob, 0, end-first),
		call:  c,
	}

	for i := first; i < end; i++ {
		claim := &c.batch.Claims[i]
		raw.Jobs = append(raw.Jobs, RawJob{
			ID:       claim.ID,
			Payloads: c.batch.Pushed(i),
			Retries:  claim.RetryCount + 1,
			Tags:     claim.Tags.List(),
			batch:    c.batch,
			index:    i,
		})
	}

	return raw
}

var errForeignBatch = errors.New(
	"middleware called the next RunFunc with a RawBatch of its own; call it with the one that it received",
)

// wrapRun returns run within the middleware, the first outermost.
func wrapRun(run runCall, middleware []Middleware) (runCall, error) {
	if len(middleware) == 0 {
		return run, nil
	}

	next := RunFunc(func(ctx context.Context, raw *RawBatch) error {
		if raw == nil || raw.call.batch == nil {
			return errForeignBatch
		}
		return run(ctx, raw.call)
	})

	for i := len(middleware) - 1; i >= 0; i-- {
		if middleware[i] == nil {
			return run, fmt.Errorf("%w: middleware %d of %d is nil", ErrInvalidOptions, i+1, len(middleware))
		}
		if next = middleware[i](next); next == nil {
			return run, fmt.Errorf("%w: middleware %d of %d returned a nil RunFunc",
				ErrInvalidOptions, i+1, len(middleware))
		}
	}

	return func(ctx context.Context, c call) error {
		return guard.Call(func() error { return next(ctx, c.raw()) })
	}, nil
}
