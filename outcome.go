package skein

import (
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
)

// BuryError is the outcome that Bury makes.
type BuryError struct{ Err error }

// Error implements error.
func (e *BuryError) Error() string { return "bury: " + orNoReason(e.Err).Error() }

// Unwrap is the reason.
func (e *BuryError) Unwrap() error { return e.Err }

// SnoozeError is the outcome that Snooze makes.
type SnoozeError struct{ Delay time.Duration }

// Error implements error.
func (e *SnoozeError) Error() string { return fmt.Sprintf("snooze for %v", e.Delay) }

// RetryError is the outcome that RetryIn makes.
type RetryError struct {
	Delay time.Duration
	Err   error
}

// Error implements error.
func (e *RetryError) Error() string {
	return fmt.Sprintf("retry in %v: %v", e.Delay, orNoReason(e.Err))
}

// Unwrap is the reason.
func (e *RetryError) Unwrap() error { return e.Err }

var errNoReason = errors.New("no reason given")

// Bury is the outcome of a job that retrying can't help: all of its payloads go
// to the morgue, with the reason. It may be wrapped. Where an error holds several
// outcomes, Bury comes before RetryIn, and RetryIn before Snooze.
func Bury(reason error) error { return &BuryError{Err: orNoReason(reason)} }

// Snooze is the outcome of a job that is to run later: it goes back for d, and
// that counts as neither success nor failure. What is pushed meanwhile merges. It
// may be wrapped.
func Snooze(d time.Duration) error { return &SnoozeError{Delay: max(0, d)} }

// RetryIn is a failure whose retry comes after d instead of the queue's backoff.
// It counts as a retry like any other. It may be wrapped.
func RetryIn(d time.Duration, reason error) error {
	return &RetryError{Delay: max(0, d), Err: orNoReason(reason)}
}

func orNoReason(err error) error {
	if err == nil {
		return errNoReason
	}
	return err
}

// outcomeOf is what a handler's error means; text makes what is kept of it. It panics
// where a method of the error does, such as Unwrap of a nil pointer.
func outcomeOf(err error, text func(error) string) core.Outcome {
	var bury *BuryError
	var retry *RetryError
	var snooze *SnoozeError
	switch {
	case errors.As(err, &bury):
		return core.Outcome{Kind: core.Buried, Error: text(withoutMark(err, bury, orNoReason(bury.Err)))}
	case errors.As(err, &retry):
		return core.Outcome{
			Kind: core.Failed, Error: text(withoutMark(err, retry, orNoReason(retry.Err))), Delay: retry.Delay, OwnDelay: true,
		}
	case errors.As(err, &snooze):
		return core.Outcome{Kind: core.Snoozed, Delay: snooze.Delay}
	}
	return core.Outcome{Kind: core.Failed, Error: text(err)}
}

// withoutMark is the reason by itself where the outcome is not wrapped further:
// the morgue need not say "bury" of what is in it.
func withoutMark(err, mark, reason error) error {
	if err == mark {
		return reason
	}
	return err
}

// errorText is the text to keep of an error, also where making it panics.
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
