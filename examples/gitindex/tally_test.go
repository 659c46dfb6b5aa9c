package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTallyCounts(t *testing.T) {
	events := chain("a", "b", "c")
	var result error
	tl := newTally()
	h := tl.wrap(func(context.Context, string, []Event) error {
		if result != nil && result.Error() == "panic" {
			panic(result)
		}
		return result
	})
	for _, call := range []struct {
		events []Event
		result error
	}{
		{events[:1], errors.New("fails")},
		{events[:2], errors.New("panic")},
		{events[:2], nil},
		{events, nil}, // Two of them run again.
	} {
		result = call.result
		_ = guarded(t.Context(), h, call.events)
	}
	want := counts{handled: 3, repeated: 2, calls: 4, jobs: 2, retries: 2}
	if got := tl.snapshot(); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
}

func TestTallySeesOverlap(t *testing.T) {
	tl := newTally()
	var h handler
	depth := 0
	h = tl.wrap(func(ctx context.Context, id string, events []Event) error {
		depth++
		if depth > 1 {
			return nil
		}
		_ = h(ctx, "other", events)
		return h(ctx, id, events)
	})
	_ = h(t.Context(), "path", chain("a"))
	if got := tl.snapshot().overlaps; got != 1 {
		t.Errorf("%d overlaps, want 1", got)
	}
}

func TestAwait(t *testing.T) {
	h := func(tl *tally) handler {
		return tl.wrap(func(context.Context, string, []Event) error { return nil })
	}
	events := chain("a", "b", "c")

	t.Run("returns when few enough wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tl := newTally()
			tl.pushing(3, 1)
			go func() {
				for i := range events {
					time.Sleep((stallChecks - 2) * time.Second)
					_ = h(tl)(t.Context(), "path", events[i:i+1])
				}
			}()
			start := time.Now()
			if err := tl.await(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if got := tl.snapshot().handled; got != 2 {
				t.Errorf("%d events handled after %v, want 2", got, time.Since(start))
			}
			synctest.Wait()
			if err := tl.await(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("says that nothing is done", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tl := newTally()
			tl.pushing(3, 1)
			start := time.Now()
			err := tl.await(t.Context(), 0)
			if err == nil || !strings.Contains(err.Error(), "stalled") {
				t.Errorf("got %v", err)
			}
			if took := time.Since(start); took > (stallChecks+2)*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	})
	t.Run("ends with the context", func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		tl := newTally()
		tl.pushing(1, 1)
		if err := tl.await(ctx, 0); !errors.Is(err, why) {
			t.Errorf("got %v, want %v", err, why)
		}
	})
}
