package skein

import (
	"context"
	"errors"
)

// Each works each job of the queue payload by payload: it calls f with the id and one
// payload after another, in order of score, lowest first. A payload for which f
// returns nil is done. So after a failure those before it are not run again, and the
// payload that goes to the morgue after MaxRetries is the one that failed.
//
// Retries are counted for the job, not for each payload, and begin anew when the
// job has ended or a payload of it went to the morgue for its failures. So if a
// payload succeeds on the last retry, the next one to fail in that job goes to the
// morgue at its first failure.
//
// Any error but [Bury] ends the job's execution, and is the outcome of what is left
// of the job, beginning with the payload that f was called with: an error or a panic
// is a failure that is retried with backoff, [RetryIn] one with its own delay,
// [Snooze] puts it back for later. Bury is for its payload alone, which goes to the
// morgue with the reason, and f is called with the next.
//
// The queue's Timeout is for each call of f. When the server stops or the job is
// cancelled no other payload is started, and what is left goes back untouched.
// After a crash f may be called again with payloads that were done in the same
// execution, so it should be able to repeat its effects. [SettleIn], which settles a
// whole job, is refused in f.
//
// The context is as in [Queue.Handler]. Middleware is called once for the job.
func (q *Queue[T]) Each(f func(ctx context.Context, id string, payload T) error) Handler {
	if err := q.refuse("Each", f == nil); err != nil {
		return noHandler(err)
	}
	return q.eachJob(guarded, func(ctx context.Context, c call) error {
		var buried error
		done := false
		for position := range c.batch.Claims[c.job].Payloads {
			if !c.batch.BeginPayload(c.job) {
				return nil // the job's outcome is set
			}
			var bury *BuryError
			switch decoded, err := q.onePayload(ctx, c, position, f); {
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
	defer c.batch.EndPayload()
	claim := &c.batch.Claims[c.job]
	payload, err := q.decode(claim.Payloads[position].Data)
	if err != nil {
		return false, err
	}
	if q.options.Timeout != 0 {
		var cancel context.CancelFunc
		ctx, cancel = c.batch.WithTimeout(ctx, q.options.Timeout, ErrTimeout)
		defer cancel()
	}
	return true, f(ctx, claim.ID, payload)
}
