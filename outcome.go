package skein

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// BuryError is the outcome that [Bury] returns.
type BuryError struct{ Err error }

// Error implements error.
func (e *BuryError) Error() string { return "bury: " + orNoReason(e.Err).Error() }

// Unwrap returns the reason.
func (e *BuryError) Unwrap() error { return e.Err }

// SnoozeError is the outcome that [Snooze] returns.
type SnoozeError struct{ Delay time.Duration }

// Error implements error.
func (e *SnoozeError) Error() string { return fmt.Sprintf("snooze for %v", e.Delay) }

// RetryError is the outcome that [RetryIn] returns.
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

// Bury returns the outcome, for a handler to return, of a job that retrying can't
// help: all of its payloads go to the morgue, with the reason. It may be wrapped.
// Where an error wraps several outcomes, Bury comes before [RetryIn], and [RetryIn]
// before [Snooze].
func Bury(reason error) error { return &BuryError{Err: orNoReason(reason)} }

// Snooze returns the outcome, for a handler to return, of a job that is to run again
// after d, which counts as neither success nor failure. What is pushed meanwhile
// merges. A d below 0 counts as 0. It may be wrapped.
func Snooze(d time.Duration) error { return &SnoozeError{Delay: max(0, d)} }

// RetryIn returns a failure, for a handler to return, whose retry comes after d
// instead of the queue's backoff. It counts as a retry like any other. It may be
// wrapped.
func RetryIn(d time.Duration, reason error) error {
	return &RetryError{Delay: max(0, d), Err: orNoReason(reason)}
}

// SettleIn settles the job of a handler in a transaction on the store that the job
// came from, so that what the handler writes in it happens exactly once: both
// commit or neither does. The settler is the transaction, such as
// adapters/postgres makes one of a pgx.Tx; a store that is a [ports.Settler] itself
// settles at once.
//
// ctx is the handler's. The job ends as done, or with the outcomes that it and its
// payloads have: call [Job.Settle], [Payload.Done] and [Payload.Bury] before. An
// outcome that the handler sets or returns later, such as a [Snooze], does not count
// once the transaction has committed, and a warning in the log says so. A
// BatchHandler, and middleware around one, settles all jobs of its batch. The caller
// commits, before the handler returns.
//
// The server finds out what has committed. A handler that returns nil after SettleIn
// although nothing has committed fails its job with [ErrNotCommitted]. One that
// returns an error, such as that of a commit whose outcome is unknown, fails its job
// with it only if nothing has committed; [Payload.Done] does not count then. A handler
// may roll back and call SettleIn again in another transaction.
//
// Errors: [ErrInvalidOptions] for a nil settler; [ErrLeaseLost] if another node has taken the job over or if the handler has
// settled it before, in this transaction or in one that has committed; the cause of a
// context that has ended, or the store's own. Roll back then, and return it.
func SettleIn(ctx context.Context, settler ports.Settler) error {
	if isNil(settler) {
		return fmt.Errorf("%w: SettleIn without a settler; give it the transaction, such as store.Tx(tx)", ErrInvalidOptions)
	}
	return engine.SettleIn(ctx, settler)
}

func orNoReason(err error) error {
	if err == nil {
		return errNoReason
	}
	return err
}

// outcomeOf returns the outcome that a handler's error stands for; text returns what
// is kept of it, and its group. It panics if a method of the error does, such as Unwrap of a nil
// pointer.
func outcomeOf(err error, text func(error) (text, group string)) core.Outcome {
	var bury *BuryError
	var retry *RetryError
	var snooze *SnoozeError
	switch {
	case errors.As(err, &bury):
		o := core.Outcome{Kind: core.Buried}
		o.Error, o.Group = text(reasonOf(err, bury, orNoReason(bury.Err)))
		return o
	case errors.As(err, &retry):
		o := core.Outcome{Kind: core.Failed, Delay: retry.Delay, OwnDelay: true}
		o.Error, o.Group = text(reasonOf(err, retry, orNoReason(retry.Err)))
		return o
	case errors.As(err, &snooze):
		return core.Outcome{Kind: core.Snoozed, Delay: snooze.Delay}
	}
	o := core.Outcome{Kind: core.Failed}
	o.Error, o.Group = text(err)
	return o
}

// reasonOf returns the reason alone where the outcome is not wrapped further: the
// morgue need not say "bury" of what is in it.
func reasonOf(err, outcome, reason error) error {
	if err == outcome {
		return reason
	}
	return err
}

// errorText returns the text of an error, also where making it panics.
func errorText(err error, format func(error) string) (text string) {
	failed := engine.GuardGoroutine(func() error {
		text = format(err)
		return nil
	})
	if failed != nil {
		text = fmt.Sprintf("%T, whose text can't be made: %v", err, failed)
	}
	return text
}
