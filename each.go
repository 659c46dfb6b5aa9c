package skein

import (
	"context"
	"errors"
)

// Each returns a handler that calls f for each payload of a job, in order of score, lowest first. A
// payload for which f returns nil is done. So after a failure the payloads before it don't run
// again, and the payload that goes to the morgue after MaxRetries is the one that failed. With
// [Hold] that payload and those behind it wait instead.
//
// Each payload has all MaxRetries to itself: the count of a job belongs to its first payload, and
// begins anew once that payload is done or in the morgue. A push can put another payload first
// while the job waits for a retry. That payload then runs at the job's time and inherits its count.
//
// If f returns an error other than [Bury], the execution ends. The error is the outcome of the
// remaining payloads, beginning with the current one: an error or a panic is a failure that is
// retried with backoff, [RetryIn] is a failure with its own delay, and [Snooze] and [Await] requeue
// the job for later. Bury applies to the current payload alone: it goes to the morgue with the
// reason, and f is called with the next payload.
//
// The queue's Timeout applies to each call of f. When the server stops or the job is cancelled, no
// further payload is started. When the server stops, the remaining payloads are requeued untouched.
// After a crash f may be called again with payloads that were done in the same execution, so f
// should be idempotent, or settle each payload in its own transaction by [SettleIn].
//
// A job that has lost its process runs more carefully: the end of each payload is stored before f
// is called with the next one. So a payload that kills its process again is the one that goes to
// the morgue or is held after MaxRecoveries, payloads before it run at most twice, and those behind
// it run once (docs/rules.md 4). There a payload for which f returned Bury ends the execution: the
// others run in the next one.
//
// The context is as in [Queue.Handler]. Middleware is called once per job.
func (q *Queue[T]) Each(f func(ctx context.Context, id string, payload T) error) Handler {
	if err := q.refuse("Each", f == nil); err != nil {
		return noHandler(err)
	}
	return q.eachJob(guarded, func(ctx context.Context, c call) error {
		var buried error
		done := false
		for position := range c.batch.Claims[c.job].Payloads {
			if !c.batch.BeginPayload(c.job, position) {
				return nil // the job's outcome is set
			}

			var bury *BuryError
			decoded, err := q.onePayload(ctx, c, position, f)
			if failed := q.pushFollowing(ctx, c.batch, c.batch.Detach(), err == nil); failed != nil {
				err = failed
			}

			switch {
			case !decoded && q.options.Undecodable == RetryUndecodable:
				c.batch.FailUndecodable(c.job, position, err, true)
				return err
			case !decoded:
				buried = err
				c.batch.BuryUndecodable(c.job, position, err)
			case err == nil:
				c.batch.MarkDone(c.job, position)
				done = true
			case errors.As(err, &bury):
				buried = err
				c.batch.MarkBuried(c.job, position, reasonOf(err, bury, orNoReason(bury.Err)))
			default:
				return err
			}
		}

		if done {
			return nil
		}
		return buried
	})
}

// onePayload decodes a payload and calls f with it. The error is the codec's or f's.
func (q *Queue[T]) onePayload(
	ctx context.Context, c call, position int, f func(ctx context.Context, id string, payload T) error,
) (decoded bool, err error) {
	returned := false
	defer func() {
		c.batch.EndPayload()
		if !returned { // f has panicked, so nothing follows
			c.batch.Detach()
		}
	}()

	claim := &c.batch.Claims[c.job]
	payload, err := q.decode(claim.Payloads[position])
	if err != nil {
		returned = true
		return false, err
	}

	if q.options.Timeout != 0 {
		var cancel context.CancelFunc
		ctx, cancel = c.batch.WithTimeout(ctx, q.options.Timeout, ErrTimeout)
		defer cancel()
	}

	err = f(ctx, claim.ID, payload)
	returned = true
	return true, err
}
