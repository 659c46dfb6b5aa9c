package skein_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestAFailureThatIsNotRetriedAsksNoBackoff(t *testing.T) {
	store := memory.New(memory.Options{})
	asked := 0
	q := skein.NewQueue("q", skein.QueueOptions[int]{MaxRetries: skein.NoRetries, Backoff: func(int) time.Duration {
		asked++
		return 0
	}})
	push(t, store, q, "a", 1)
	runDue(t, store, skein.ServerOptions{}, q.Handler(func(context.Context, string, []int) error { return errBoom }))
	equal(t, "calls of Backoff", asked, 0)
}

func TestADrawAfterAPanicOfJitterIsInRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			store := memory.New(memory.Options{})
			q := skein.NewQueue("q", skein.QueueOptions[int]{})
			push(t, store, q, "a", 1)
			runDue(t, store, skein.ServerOptions{Jitter: func() int { panic("boom") }},
				q.Handler(func(context.Context, string, []int) error { return errBoom }))
			wait := queued(t, store, "q", "a").PerformAt.Sub(core.InstantOf(time.Now()))
			if wait < 15*time.Second || wait > 44*time.Second {
				t.Errorf("it waits %v, want the default backoff with a jitter of 0 … 29", wait)
			}
		}
	})
}

func TestMiddlewareThatPanicsFailsItsJobAlone(t *testing.T) {
	store := memory.New(memory.Options{})
	q := skein.NewQueue("q", skein.QueueOptions[int]{Shards: 1, BatchSize: 10})
	for _, id := range []string{"a", "b", "c"} {
		push(t, store, q, id, 1)
	}
	panics := func(next skein.RunFunc) skein.RunFunc {
		return func(ctx context.Context, b *skein.RawBatch) error {
			if b.Jobs[0].ID == "b" {
				panic("boom")
			}
			return next(ctx, b)
		}
	}
	runDue(t, store, skein.ServerOptions{Middleware: []func(skein.RunFunc) skein.RunFunc{panics}},
		q.Handler(func(context.Context, string, []int) error { return nil }))
	equal(t, "a", fate(t, store, "q", "a"), "")
	equal(t, "retries of b", queued(t, store, "q", "b").RetryCount, 0)
	equal(t, "c", fate(t, store, "q", "c"), "")
}

// A payload that its codec refuses is no reason for what the handler itself failed at.
func TestAHandlersOwnFailureIsNotCalledUndecodable(t *testing.T) {
	store := memory.New(memory.Options{})
	q := skein.NewQueue("q", skein.QueueOptions[string]{
		Codec: bracketed{}, Undecodable: skein.RetryUndecodable, MaxRetries: skein.NoRetries,
	})
	push(t, store, q, "a", "1", skein.Score(1))
	push(t, store, q, "a", "bad", skein.Score(2))
	got := told(t, store, q.Handler(func(_ context.Context, _ string, payloads []string) error { return errBoom }))
	want := "q a exhausted [<1>]: boom"
	if len(got) == 0 || got[0] != want {
		t.Errorf("told %q, want first %q", got, want)
	}
}

// refusing is a store that refuses to forget, and counts how often it is asked.
type refusing struct {
	*memory.Store
	err   error
	asked *int
}

func (r refusing) Forget(context.Context, string) error {
	*r.asked++
	return r.err
}

func TestARefusalToForgetIsNotAskedForAgain(t *testing.T) {
	for _, err := range []error{ports.ErrNotEmpty, &ports.HeldError{Owner: "other"}, ports.ErrUnusable, ports.ErrUnknownQueue} {
		t.Run(err.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, began := 0, time.Now()
				inspector := skein.NewInspector(refusing{memory.New(memory.Options{}), err, &asked}, skein.InspectorOptions{})
				if got := inspector.Forget(t.Context(), "orders"); !errors.Is(got, err) {
					t.Errorf("Forget = %v, want %v", got, err)
				}
				if diff := cmp.Diff([]any{1, time.Duration(0)}, []any{asked, time.Since(began)}); diff != "" {
					t.Errorf("calls and time (-want +got):\n%s", diff)
				}
			})
		})
	}
}
