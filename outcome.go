package skein

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/guard"
	"github.com/skeinq/skein/ports"
)

// BuryError is the error that [Bury] returns.
type BuryError struct{ Err error }

// Error implements error.
func (e *BuryError) Error() string { return "bury: " + orNoReason(e.Err).Error() }

// Unwrap returns the reason.
func (e *BuryError) Unwrap() error { return e.Err }

// SnoozeError is the error that [Snooze] returns.
type SnoozeError struct{ Delay time.Duration }

// Error implements error.
func (e *SnoozeError) Error() string { return fmt.Sprintf("snooze for %v", e.Delay) }

// SlowDownError is the error that [SlowDown] returns.
type SlowDownError struct{ Delay time.Duration }

// Error implements error.
func (e *SlowDownError) Error() string { return fmt.Sprintf("slow down for %v", e.Delay) }

// AwaitError is the error that [Await] returns.
type AwaitError struct{ Delay time.Duration }

// Error implements error.
func (e *AwaitError) Error() string { return fmt.Sprintf("await a push for %v", e.Delay) }

// RetryError is the error that [RetryIn] returns.
type RetryError struct {
	Delay time.Duration
	Err   error
}

// Error implements error.
func (e *RetryError) Error() string {
	return fmt.Sprintf("retry in %v: %v", e.Delay, orNoReason(e.Err))
}

// Unwrap returns the reason.
func (e *RetryError) Unwrap() error { return e.Err }

var errNoReason = errors.New("no reason given")

// Bury returns an error for a handler to return when retrying is pointless. All payloads of the job
// that have no outcome of their own go to the morgue, with the reason. In [Queue.Each] only the
// current payload does. The error may be wrapped. If an error wraps several outcomes, Bury takes
// precedence over [RetryIn], and [RetryIn] over [Await], and [Await] over [Snooze].
func Bury(reason error) error { return &BuryError{Err: orNoReason(reason)} }

// Snooze returns an error for a handler to return when the job should run again after d. A snooze
// counts as neither success nor failure. Payloads that are pushed meanwhile merge into the job. A d
// below 0 counts as 0. The error may be wrapped.
func Snooze(d time.Duration) error { return &SnoozeError{Delay: max(0, d)} }

// SlowDown returns an error for a handler to return when a downstream service asks for a pause, as by
// HTTP's status 429 with a Retry-After of d. The job is snoozed for d, and no other job of the queue
// starts meanwhile, on any server: the limiter of the queue's Rate is stopped. If the job has a key of
// RateBy, only the limiter of that key is stopped, and jobs of other keys go on. Jobs that run are not
// affected. Starts that other servers were granted before may still come: those of the next 50 ms,
// and on each server one that it has kept for a lane. A shorter SlowDown does not shorten a longer
// one. d is cut to 24 hours, and a d below 0 counts as 0. In a queue without a
// Rate, SlowDown is a [Snooze], and a warning is logged. The error may be wrapped. Of several
// outcomes that an error wraps, each other one takes precedence.
func SlowDown(d time.Duration) error {
	return &SlowDownError{Delay: min(max(0, d), core.MaxStop)}
}

// RetryIn returns an error for a handler to return when the job failed and its retry should come
// after d instead of the queue's backoff. It counts as a retry like any other. A d below 0 counts
// as 0. The error may be wrapped.
func RetryIn(d time.Duration, reason error) error {
	return &RetryError{Delay: max(0, d), Err: orNoReason(reason)}
}

// Await returns an error for a handler to return when the job waits for others: it keeps its
// payloads and runs again at the next push for its id, or after d if nothing is pushed. A push that
// arrived while the handler ran counts. Waiting is progress, so an earlier failure and its backoff
// are forgotten. Await counts as neither success nor failure. Payloads that the handler has marked
// as done or buried keep their outcome. A d below 0 counts as 0. The error may be wrapped.
//
// The queue's PushRule must be [Earliest], or the push [Urgent], for a push after the handler's
// return to run the job. Otherwise such a push waits for d too, and a warning is logged once per
// minute. If more payloads wait than one call takes, the job runs again after d only. The same
// holds for a push in the microsecond of the claimed job's first push, which is taken for the rest
// of that job's payloads.
//
// To wait for other ids, ask Inspector.Settled of package inspect; docs/guide/dependencies.md shows
// it.
func Await(d time.Duration) error { return &AwaitError{Delay: max(0, d)} }

// SettleIn settles the job of a handler in a transaction on the store that the job came from. The
// handler's own writes in that transaction then happen exactly once: both commit, or neither does.
// The settler is the transaction, such as the one that adapters/postgres makes of a pgx.Tx. A store
// that implements [ports.Settler] itself settles at once.
//
// ctx is the handler's context. The job ends as done, or with the outcomes that were set for it and
// its payloads: call [Job.Settle], [Payload.Done] and [Payload.Bury] before SettleIn. If the
// handler sets or returns an outcome later, such as a [Snooze], and the transaction has committed,
// that outcome is ignored and a warning is logged. In a BatchHandler, or in middleware around one,
// SettleIn settles all jobs of the batch. The caller commits the transaction before the handler
// returns.
//
// In [Queue.Each] SettleIn settles the payload at hand as done. The job keeps its other payloads,
// and its count of retries begins anew (docs/rules.md 3). Each payload needs a transaction of its
// own, which commits before its call returns. [Payload.SettleIn] does the same in a JobHandler. A
// server that dies leaves the job with the payloads whose transactions have not committed.
//
// The server finds out whether the transaction has committed. If the handler returns nil and it has
// not, the job fails with [ErrNotCommitted]. If the handler returns an error, for example of a
// commit with an unknown outcome, the job fails with that error only if the transaction has not
// committed; [Payload.Done] does not count then. A handler may roll back and call SettleIn again in
// another transaction.
//
// SettleIn returns [ErrInvalidOptions] for a nil settler. It returns an error that has no name if
// ctx is not a handler's context, if the handler has returned, or if the handler has called
// [Queue.Then]. It returns [ErrLeaseLost] if another server has taken the job over, if the handler
// has already settled the job in this transaction or in a committed one, or if the transaction of
// an earlier payload has not committed. It returns the cause of a context that has ended, and
// errors of the store. After an error, roll back the transaction and return the error.
func SettleIn(ctx context.Context, settler ports.Settler) error {
	if isNil(settler) {
		return errNoSettler()
	}
	return execution.SettleIn(ctx, settler)
}

func errNoSettler() error {
	return fmt.Errorf("%w: SettleIn without a settler; pass the transaction, such as store.Tx(tx)", ErrInvalidOptions)
}

func orNoReason(err error) error {
	if err == nil {
		return errNoReason
	}
	return err
}

// outcomeOf returns the outcome that a handler's error stands for. text returns the stored text of
// an error, and its group. outcomeOf panics if a method of the error does, such as Unwrap of a nil
// pointer.
func outcomeOf(err error, text func(error) (text, group string)) core.Outcome {
	var bury *BuryError
	var retry *RetryError
	var await *AwaitError
	var snooze *SnoozeError
	var slow *SlowDownError
	switch {
	case errors.As(err, &bury):
		o := core.Outcome{Kind: core.Buried}
		o.Error, o.Group = text(reasonOf(err, bury, orNoReason(bury.Err)))
		return o
	case errors.As(err, &retry):
		o := core.Outcome{Kind: core.Failed, Delay: retry.Delay, OwnDelay: true}
		o.Error, o.Group = text(reasonOf(err, retry, orNoReason(retry.Err)))
		return o
	case errors.As(err, &await):
		return core.Outcome{Kind: core.Awaiting, Delay: await.Delay}
	case errors.As(err, &snooze):
		return core.Outcome{Kind: core.Snoozed, Delay: snooze.Delay}
	case errors.As(err, &slow):
		return core.Outcome{Kind: core.Snoozed, Delay: slow.Delay, SlowDown: slow.Delay}
	}

	o := core.Outcome{Kind: core.Failed}
	o.Error, o.Group = text(err)
	return o
}

// reasonOf returns only the reason if the outcome is not wrapped further, so the error texts in the
// morgue don't all begin with "bury".
func reasonOf(err, outcome, reason error) error {
	if err == outcome {
		return reason
	}
	return err
}

// errorText returns the text of an error as format makes it. If format panics, the text names the
// error's type and the panic.
func errorText(err error, format func(error) string) (text string) {
	failed := guard.Goroutine(func() error {
		text = format(err)
		return nil
	})
	if failed != nil {
		text = fmt.Sprintf("%T, whose text can't be made: %v", err, failed)
	}
	return text
}
