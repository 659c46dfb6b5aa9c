package ports_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestHeldErrorIsErrLeaseHeldAndTellsHowLong(t *testing.T) {
	held := &ports.HeldError{Shard: core.Shard{Queue: "orders", Index: 3}, Owner: "web-1", Remaining: 4 * time.Second}
	err := fmt.Errorf("acquire: %w", held)
	if !errors.Is(err, ports.ErrLeaseHeld) || errors.Is(err, ports.ErrLeaseLost) {
		t.Errorf("%v is ErrLeaseHeld and nothing else", err)
	}
	var got *ports.HeldError
	if !errors.As(err, &got) || got != held {
		t.Errorf("errors.As found %v", got)
	}
	if want := "acquire: shard orders/3: lease is held by another owner: web-1, for 4s more"; err.Error() != want {
		t.Errorf("it reads %q, want %q", err, want)
	}
}

func TestPushErrorNamesTheEntriesAndItsCause(t *testing.T) {
	tests := []struct {
		name  string
		cause error
		reads string
	}{
		{"a full store", fmt.Errorf("orders/3: %w", ports.ErrFull), "not stored"},
		{"a queue that was lost", ports.ErrUnknownQueue, "not stored"},
		{"a call that was not begun", fmt.Errorf("%w: %w", ports.ErrNotBegun, context.Canceled), "not stored"},
		{"a store that can't be used", ports.ErrUnusable, "not stored"},
		{"an unknown outcome", context.DeadlineExceeded, "not known to be stored"},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := fmt.Errorf("push: %w", &ports.PushError{Entries: []int{1, 4}, Err: tt.cause})
			if !errors.Is(err, tt.cause) {
				t.Errorf("%v does not match its cause", err)
			}

			var push *ports.PushError
			if !errors.As(err, &push) {
				t.Fatalf("%v is no PushError", err)
			}
			if diff := cmp.Diff([]int{1, 4}, push.Entries); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if want := "push: 2 pushed entries are " + tt.reads + ": " + tt.cause.Error(); err.Error() != want {
				t.Errorf("it reads %q, want %q", err, want)
			}
		})
	}
}

func TestSentinelsAreDistinct(t *testing.T) {
	sentinels := []error{
		ports.ErrUnknownQueue, ports.ErrShardCountMismatch, ports.ErrQueueMismatch, ports.ErrLeaseHeld,
		ports.ErrLeaseLost,
		ports.ErrStaleTurn, ports.ErrStaleAttempt, ports.ErrInvalidRequest, ports.ErrFull,
		ports.ErrNotBegun,
	}
	for i, err := range sentinels {
		for j, other := range sentinels {
			if errors.Is(err, other) != (i == j) {
				t.Errorf("errors.Is(%q, %q) = %v", err, other, i != j)
			}
		}
	}
}

// TestNopObserverWatchesNothing checks that a struct that embeds NopObserver is an Observer, and
// that handlers keep their context.
func TestNopObserverWatchesNothing(t *testing.T) {
	var o ports.Observer = struct{ ports.NopObserver }{}
	ctx := context.WithValue(t.Context(), t, "kept")
	if got := o.BatchStart(ctx, ports.BatchEvent{}); got != ctx {
		t.Errorf("BatchStart gave another context: %v", got)
	}
	o.Pushed(ctx, ports.PushEvent{})
	o.BatchEnd(ctx, ports.BatchEvent{})
	o.TurnEnd(ports.TurnEvent{})
	o.LeaseChanged(ports.LeaseEvent{})
}

func TestConstantsHaveNames(t *testing.T) {
	got := fmt.Sprint(ports.ByTime, ports.ByID, ports.RetryingByTime, ports.RetryingByID, ports.RetryingByCount,
		ports.SortBy(9),
		ports.LeaseAcquired, ports.LeaseReleased, ports.LeaseDropped, ports.LeaseChange(9))
	if want := "ByTime ByID RetryingByTime RetryingByID RetryingByCount SortBy(9) acquired released dropped " +
		"LeaseChange(9)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
