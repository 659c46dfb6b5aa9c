package skein

import (
	"context"
	"errors"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/guard"
)

// Handler is a queue together with the function that handles its jobs, for [NewServer]. Make it
// with [Queue.Each], [Queue.Handler], [Queue.JobHandler] or [Queue.BatchHandler].
type Handler struct {
	name  string
	err   error
	serve func() *engine.Queue
	// bind puts middleware around each call of the function, once.
	bind func(middleware []Middleware) (runBatch, error)
}

// runBatch is a handler as the engine calls it.
type runBatch func(ctx context.Context, b *execution.Batch) error

// Handler returns a handler that calls f once per job, with its id and its payloads in order of
// score, lowest first. The jobs of a batch run one after another.
//
// The error that f returns is the job's outcome. If it is nil, the job is done. Any other error, or
// a panic, fails the job. The job is then retried with backoff. After MaxRetries its first payload
// goes to the morgue, whichever payload f failed on, or with [Hold] the job is held. If f would be
// a loop over the payloads, use [Queue.Each] instead. [Bury], [Snooze], [Await] and [RetryIn] are
// errors that choose other outcomes. Payloads that are pushed for the id during the call wait until
// f has returned. After a crash f may be called again with the same payloads, so f should be
// idempotent.
//
// The context ends when f should stop. [context.Cause] then returns the reason: [ErrTimeout],
// [ErrLeaseLost], [ErrShutdown] or [ErrCancelled]. f should return when the context ends, because
// this server keeps the shard until f returns. [Fence] returns the token that lets other systems
// refuse late writes.
func (q *Queue[T]) Handler(f func(ctx context.Context, id string, payloads []T) error) Handler {
	if err := q.refuse("Handler", f == nil); err != nil {
		return noHandler(err)
	}
	return q.eachJob(q.timed, func(ctx context.Context, c call) error {
		payloads, err := q.payloads(c.batch, c.job)
		if len(payloads) == 0 {
			return err
		}
		return f(ctx, c.batch.Claims[c.job].ID, payloads)
	})
}

// JobHandler is [Queue.Handler] for a function that needs more details of the job, such as its
// retries, or that sets outcomes of single payloads.
//
// If f returns an error or panics, that is the job's outcome, whatever [Job.Settle] was called
// with. If f returns nil, the outcome is that of the last call of [Job.Settle], or done without
// such a call. This holds for any BatchSize.
func (q *Queue[T]) JobHandler(f func(ctx context.Context, job *Job[T]) error) Handler {
	if err := q.refuse("JobHandler", f == nil); err != nil {
		return noHandler(err)
	}
	return q.eachJob(q.timed, func(ctx context.Context, c call) error {
		job, err := q.job(c.batch, c.job)
		if len(job.Payloads) == 0 {
			return err
		}
		return f(ctx, job)
	})
}

// BatchHandler returns a handler that calls f with up to BatchSize jobs, for example to send one
// bulk request for many ids. The error that f returns, nil, or its panic is the outcome of each job
// for which f has not called [Job.Settle]. The other jobs keep the outcome that f set. The queue's
// Timeout applies to the whole call. If one job is cancelled, the context of the call ends. If f
// then returns the context's error, the jobs that were not cancelled are requeued untouched.
func (q *Queue[T]) BatchHandler(f func(ctx context.Context, batch *Batch[T]) error) Handler {
	if err := q.refuse("BatchHandler", f == nil); err != nil {
		return noHandler(err)
	}

	run := q.timed(func(ctx context.Context, c call) error {
		b := c.batch
		batch := &Batch[T]{batch: b, jobs: make([]*Job[T], 0, len(b.Claims))}
		for i := range b.Claims {
			job, err := q.job(b, i)
			if len(job.Payloads) == 0 {
				b.SetOutcome(i, err)
				continue
			}
			batch.jobs = append(batch.jobs, job)
		}

		if len(batch.jobs) == 0 {
			return nil
		}
		return f(ctx, batch)
	})

	return q.handler(run, func(run runCall) runBatch {
		return func(ctx context.Context, b *execution.Batch) error { return run(ctx, call{b, wholeBatch}) }
	})
}

// eachJob returns a handler that runs the jobs of a batch one after another. Each job has a call of
// its own, which protect wraps.
func (q *Queue[T]) eachJob(protect func(runCall) runCall, run runCall) Handler {
	return q.handler(protect(run), func(run runCall) runBatch {
		return func(ctx context.Context, b *execution.Batch) error {
			defer b.End()
			for i := range b.Claims {
				if job, ok := b.Begin(ctx, i); ok {
					c := call{b, i}
					b.Return(i, q.followed(job, c, run(job, c)))
				}
			}
			return nil
		}
	})
}

// handler makes a Handler from the function that it calls and from the way in which a batch
// becomes calls.
func (q *Queue[T]) handler(run runCall, batch func(runCall) runBatch) Handler {
	return Handler{
		name: q.name, serve: q.serve,
		bind: func(middleware []Middleware) (runBatch, error) {
			wrapped, err := wrapRun(run, middleware)
			return batch(wrapped), err
		},
	}
}

// refuse returns the error of a handler that can't be made, or nil. kind is the method that makes
// it, and missing is true if its function is nil.
func (q *Queue[T]) refuse(kind string, missing bool) error {
	err := q.check()
	if missing {
		err = errors.Join(err, fmt.Errorf("%w: queue %q: %s(nil); pass a function", ErrInvalidOptions, q.Name(), kind))
	}
	return err
}

// noHandler returns a Handler that could not be made: Run returns err.
func noHandler(err error) Handler { return Handler{err: err} }

// guarded calls run and returns a panic as an error.
func guarded(run runCall) runCall {
	return func(ctx context.Context, c call) error {
		return guard.Call(func() error { return run(ctx, c) })
	}
}

// timed is guarded with the queue's Timeout.
func (q *Queue[T]) timed(run runCall) runCall {
	run = guarded(run)
	if q.options.Timeout == 0 {
		return run
	}
	return func(ctx context.Context, c call) error {
		ctx, cancel := c.batch.WithTimeout(ctx, q.options.Timeout, ErrTimeout)
		defer cancel()
		return run(ctx, c)
	}
}

// payloads decodes the payloads of a job. It returns the codec's last error.
func (q *Queue[T]) payloads(b *execution.Batch, i int) ([]T, error) {
	payloads := make([]T, 0, len(b.Claims[i].Payloads))
	err := q.decodeAll(b, i, func(_ int, value T) { payloads = append(payloads, value) })
	return payloads, err
}

// decodeAll decodes the payloads of a job and calls f with those that the handler gets, in order.
// It returns the codec's last error.
func (q *Queue[T]) decodeAll(b *execution.Batch, i int, f func(position int, value T)) (refused error) {
	stored := b.Claims[i].Payloads
	for position := range stored {
		value, err := q.decode(stored[position])
		switch {
		case err == nil:
			f(position, value)
		case q.options.Undecodable == RetryUndecodable:
			b.FailUndecodable(i, position, err, position == 0)
			return err
		default:
			b.BuryUndecodable(i, position, err)
			refused = err
		}
	}
	return refused
}

// decode decodes a stored payload. A panic of the codec is an error.
func (q *Queue[T]) decode(stored core.Payload) (payload T, err error) {
	err = guard.Call(func() error {
		var err error
		payload, err = q.options.Codec.Decode(q.options.Merge.Pushed(stored).Data)
		return err
	})
	if err != nil {
		err = fmt.Errorf("decode payload: %w", err)
	}
	return payload, err
}

// Fence returns the fencing token of the lease that a handler runs under: a number that rises each
// time the shard changes its owner. A resource that remembers the highest token it has seen can
// refuse a write with a lower one. ok is false if ctx is not a handler's context.
func Fence(ctx context.Context) (token int64, ok bool) { return execution.Fence(ctx) }

// Metas returns the [Meta] of each payload that a function of [Queue.Handler] was called with, in
// the same order, nil for a payload without one. If equal payloads merged, the Meta is that of the
// push whose score is kept. A function of [Queue.JobHandler] has them in
// [Payload].Meta as well. In a function of [Queue.Each] it returns the Meta of the payload at hand
// only. Metas returns nil if ctx is not the context of a handler of one job, as in a BatchHandler,
// or if that job has ended. The bytes are read-only.
func Metas(ctx context.Context) [][]byte { return execution.Metas(ctx) }
