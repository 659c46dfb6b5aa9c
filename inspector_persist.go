package skein

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// How an action's call of unknown outcome is repeated.
const (
	bulkTries = 5
	bulkPause = 50 * time.Millisecond
)

// persist makes a call of the store, and repeats it a few times with doubling
// pauses while its outcome is unknown.
func persist[R any](ctx context.Context, call func() (R, error)) (reply R, err error) {
	for repeat := range bulkTries {
		if repeat > 0 {
			if ended := pause(ctx, bulkPause<<(repeat-1)); ended != nil {
				return reply, fmt.Errorf("%w while repeating after: %w", ended, err)
			}
		}
		if ended := ctx.Err(); ended != nil {
			return reply, ended
		}
		if reply, err = call(); err == nil || refused(err) || ctx.Err() != nil {
			return reply, err
		}
	}
	return reply, fmt.Errorf("tried %d times: %w", bulkTries, err)
}

// pause waits, unless the context ends.
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

// refused reports whether an error says that the store did nothing, and would do
// nothing if it were asked again.
func refused(err error) bool {
	return errors.Is(err, ports.ErrUnknownQueue) || errors.Is(err, ports.ErrInvalidRequest) ||
		errors.Is(err, ports.ErrNotEmpty) || errors.Is(err, ports.ErrLeaseHeld) || errors.Is(err, ports.ErrUnusable) ||
		errors.Is(err, ports.ErrFull) || errors.Is(err, core.ErrInvalidID) || errors.Is(err, core.ErrInvalidQueue)
}
