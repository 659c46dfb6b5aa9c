package skein_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
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
	runDue(t, store, skein.ServerOptions{Middleware: []skein.Middleware{panics}},
		q.Handler(func(context.Context, string, []int) error { return nil }))
	equal(t, "a", stateOf(t, store, "q", "a"), "")
	equal(t, "retries of b", queued(t, store, "q", "b").RetryCount, 0)
	equal(t, "c", stateOf(t, store, "q", "c"), "")
}

// A payload that its codec refuses does not change the reason of the handler's own failure.
func TestAHandlersOwnFailureIsNotCalledUndecodable(t *testing.T) {
	store := memory.New(memory.Options{})
	q := skein.NewQueue("q", skein.QueueOptions[string]{
		Codec: bracketed{}, Undecodable: skein.RetryUndecodable, MaxRetries: skein.NoRetries,
	})
	push(t, store, q, "a", "1", skein.Score(1))
	push(t, store, q, "a", "bad", skein.Score(2))
	got := reportedBurials(t, store,
		q.Handler(func(_ context.Context, _ string, payloads []string) error { return errBoom }))
	want := "q a retries [<1>]: boom"
	if len(got) == 0 || got[0] != want {
		t.Errorf("reported %q, want first %q", got, want)
	}
}
