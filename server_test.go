package skein_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// quiet drops what a server logs.
var quiet = slog.New(slog.DiscardHandler)

// run runs a server in the bubble until f returns, and fails the test if it does
// not drain cleanly.
func run(t *testing.T, s *skein.Server, f func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	f()
	stop()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// calls records what a handler was given.
type calls struct {
	mu   sync.Mutex
	list []call
}

type call struct {
	ID       string
	Payloads []string
}

func (c *calls) add(id string, payloads []string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, call{id, payloads})
	return len(c.list)
}

func TestPayloadsOfAnIDAreMergedAndHandledInOrderOfScore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		client := skein.NewClient(store, skein.ClientOptions{})
		queue := skein.NewQueue[string]("orders", skein.QueueOptions[string]{})
		for _, push := range []struct {
			payload string
			score   float64
		}{{"paid", 2}, {"created", 1}, {"shipped", 3}, {"created", 9}} {
			if err := queue.Push(t.Context(), client, "order-1", push.payload, skein.Score(push.score)); err != nil {
				t.Fatal(err)
			}
		}
		var got calls
		h := queue.Handler(func(_ context.Context, id string, payloads []string) error {
			got.add(id, payloads)
			return nil
		})
		run(t, skein.NewServer(store, skein.ServerOptions{Logger: quiet}, h), synctest.Wait)
		want := []call{{"order-1", []string{"created", "paid", "shipped"}}}
		if diff := cmp.Diff(want, got.list); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestAFailedJobIsRetriedUntilTheMorgue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		store := memory.New(memory.Options{})
		client := skein.NewClient(store, skein.ClientOptions{})
		queue := skein.NewQueue[string]("orders", skein.QueueOptions[string]{
			MaxRetries: 2,
			Backoff:    func(retry int) time.Duration { return time.Duration(retry+1) * time.Hour },
		})
		if err := queue.Push(t.Context(), client, "order-1", "a"); err != nil {
			t.Fatal(err)
		}
		var at []time.Duration
		h := queue.Handler(func(context.Context, string, []string) error {
			at = append(at, time.Since(start).Truncate(time.Second))
			return errors.New("boom")
		})
		run(t, skein.NewServer(store, skein.ServerOptions{Logger: quiet}, h), func() {
			time.Sleep(24 * time.Hour)
		})
		want := []time.Duration{0, time.Hour, 3 * time.Hour}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("executions (-want +got):\n%s", diff)
		}
		found, err := store.Find(t.Context(), "orders", "order-1")
		if err != nil || found.Dead == nil || found.Dead.Error != "boom" {
			t.Errorf("Find = %+v, %v; want it in the morgue with its error", found, err)
		}
	})
}
