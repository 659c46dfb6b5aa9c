package skein

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
)

// RawPush is a push as client middleware sees it, encoded and checked.
type RawPush struct {
	// Queue is the queue's name.
	Queue string
	// Entries are what is pushed. Middleware may change, add and remove some;
	// the result is checked again.
	Entries []RawEntry
}

// RawEntry is one encoded entry: an id, Data, Score, Meta and when the job may run.
type RawEntry = core.Entry

// PushFunc stores a push.
type PushFunc func(ctx context.Context, push *RawPush) error

// RawBatch is a batch as server middleware sees it.
type RawBatch struct {
	// Queue and Shard say where the jobs live.
	Queue string
	Shard int
	// Token is the fencing token that they run under.
	Token int64
	// Jobs are those of the batch.
	Jobs []RawJob
}

// RawJob is a job of a RawBatch.
type RawJob struct {
	// ID is the entity.
	ID string
	// Payloads are in order of score. Read-only.
	Payloads []core.Payload
	// Retries is how often the job has failed before: 0 at first.
	Retries int

	batch *engine.Batch
	index int
}

// Settle gives the job its outcome, in place of any it has: nil is done.
func (j *RawJob) Settle(err error) { j.batch.Settle(j.index, err) }

// RunFunc handles a batch. Its error is the outcome of each job that has none of
// its own; for a Handler or JobHandler it is the error of the one job, or, of
// several, their errors joined, each settled already.
type RunFunc func(ctx context.Context, batch *RawBatch) error

func newRawBatch(b *engine.Batch) *RawBatch {
	shard := b.Shard()
	raw := &RawBatch{Queue: shard.Queue, Shard: shard.Index, Token: b.Token(), Jobs: make([]RawJob, len(b.Claims))}
	for i := range b.Claims {
		c := &b.Claims[i]
		raw.Jobs[i] = RawJob{ID: c.ID, Payloads: c.Payloads, Retries: c.RetryCount + 1, batch: b, index: i}
	}
	return raw
}

// wrapRun puts middleware around a handler, the first outermost. Without any the
// handler stays as it is.
func wrapRun(
	run func(context.Context, *engine.Batch) error, middleware []func(RunFunc) RunFunc,
) func(context.Context, *engine.Batch) error {
	if len(middleware) == 0 {
		return run
	}
	return func(ctx context.Context, b *engine.Batch) error {
		next := RunFunc(func(ctx context.Context, _ *RawBatch) error { return run(ctx, b) })
		for i := len(middleware) - 1; i >= 0; i-- {
			next = middleware[i](next)
		}
		return next(ctx, newRawBatch(b))
	}
}
