package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect/internal/bulk"
	"github.com/skeinq/skein/ports"
)

// ask makes one call of the store. Every call of the store is made by it. So each method of an
// inspector without a store returns ErrInvalidOptions, and each call of a store that panics returns
// an error.
func ask[R any](i *Inspector, call func(Store) (R, error)) (reply R, err error) {
	if i == nil || i.store == nil {
		return reply, fmt.Errorf("%w: the inspector has no store; pass one to inspect.New", ErrInvalidOptions)
	}

	defer func() {
		if v := recover(); v != nil {
			err = i.panicked(v)
		}
	}()
	return call(i.store)
}

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
			if ended := bulk.Wait(ctx, callPause<<(repeat-1)); ended != nil {
				return reply, fmt.Errorf("%w while repeating after: %w", ended, err)
			}
		}

		if ended := ctx.Err(); ended != nil {
			return reply, ended
		}
		if reply, err = ask(i, call); err == nil || refused(err) ||
			errors.Is(err, errStorePanicked) || ctx.Err() != nil {
			return reply, err
		}
	}
	return reply, fmt.Errorf("tried %d times: %w", callTries, err)
}

// refused reports whether an error means that the store did nothing, and would do nothing if the
// call were repeated.
func refused(err error) bool {
	return errors.Is(err, ErrInvalidCheckpoint) || ports.FailureOf(err).NoEffect()
}

// errStorePanicked is the error of a call in which the store panicked.
var errStorePanicked = errors.New("the store panicked; the log has the panic and its stack")

// mostPanics is the maximum number of different panics that are logged in a minute.
const mostPanics = 16

// panicked logs a panic of the store and returns it as an error. It is called by the function that
// recovers.
func (i *Inspector) panicked(v any) error {
	text := fmt.Sprint(v)
	if i.panics.Pass(time.Now(), text) {
		i.log.Error("the store panicked; the outcome of the call is unknown",
			"error", text, "stack", string(debug.Stack()))
	}
	return fmt.Errorf("%w: %s", errStorePanicked, text)
}

// PartialError reports that a result lacks some shards, because the part of the store that has them
// can't be reached now, such as one master of a Redis Cluster. It is returned together with the
// result, which is complete for the other shards. Use [errors.As] to find it.
type PartialError struct {
	// Unreached are the shards that the result lacks, in order of queue and index.
	Unreached []core.Shard
}

// Error implements error.
func (e *PartialError) Error() string {
	if len(e.Unreached) == 1 {
		return fmt.Sprintf("shard %v can't be reached now; the result covers the other shards", e.Unreached[0])
	}
	return fmt.Sprintf("%d shards can't be reached now, the first is %v; the result covers the other shards",
		len(e.Unreached), e.Unreached[0])
}

// partial returns a *PartialError for missing shards, or nil if no shard is missing.
func partial(unreached []core.Shard) error {
	if len(unreached) == 0 {
		return nil
	}
	return &PartialError{Unreached: mergeShards(nil, unreached)}
}

// mergeShards returns the shards of both lists, each once, in order.
func mergeShards(a, b []core.Shard) []core.Shard {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(a, b core.Shard) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Index, b.Index))
	})
	return slices.Compact(all)
}
