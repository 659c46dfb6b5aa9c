package inspect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/ports"
)

// Number of tries of a call, and the first pause between them, while the outcome is unknown.
const (
	callTries = 5
	callPause = 50 * time.Millisecond
)

// persist makes a call of the store. While the outcome is unknown, it repeats the call a few times,
// with doubling pauses, except after a panic.
func persist[R any](ctx context.Context, i *Inspector, call func(Store) (R, error)) (reply R, err error) {
	for repeat := range callTries {
		if repeat > 0 {
			if ended := pause(ctx, callPause<<(repeat-1)); ended != nil {
				return reply, fmt.Errorf("%w while repeating after: %w", ended, err)
			}
		}
		if ended := ctx.Err(); ended != nil {
			return reply, ended
		}
		if reply, err = ask(i, call); err == nil || refused(err) || errors.Is(err, errStorePanicked) || ctx.Err() != nil {
			return reply, err
		}
	}
	return reply, fmt.Errorf("tried %d times: %w", callTries, err)
}

// pause waits for d. If ctx ends before that, it returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refused reports whether an error means that the store did nothing, and would do nothing if the
// call were repeated.
func refused(err error) bool {
	return errors.Is(err, ErrInvalidCheckpoint) || ports.FailureOf(err).NoEffect()
}
