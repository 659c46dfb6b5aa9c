package skein_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// The numbers in README and in the docs of ServerOptions: how long the shards of a killed server
// wait, and how long its handlers have after a stop.
func TestServerDefaultsAreThoseOfTheDocs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue[string]("orders", skein.QueueOptions[string]{Shards: 1})
		var stopped time.Time
		var had time.Duration

		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		h := q.Handler(func(ctx context.Context, _ string, _ []string) error {
			<-ctx.Done()
			had = time.Since(stopped)
			return nil
		})

		done := make(chan error)
		go func() {
			done <- skein.NewServer(store, skein.ServerOptions{Logger: quiet}, h).Run(ctx)
		}()

		synctest.Wait()
		if err := q.Push(t.Context(), skein.NewClient(store, skein.ClientOptions{}), "order-1", "x"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()

		stats, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
		if err != nil {
			t.Fatal(err)
		}
		if lasts := stats[0].Shards[0].ExpiresAt.Sub(core.InstantOf(time.Now())); lasts != 10*time.Second {
			t.Errorf("a lease lasts %v, want 10 s", lasts)
		}

		stopped = time.Now()
		stop()
		select {
		case err = <-done:
		case <-time.After(time.Hour):
			t.Fatal("Run has not returned an hour after the stop")
		}

		if err != nil || had != 20*time.Second {
			t.Errorf("after the stop the handler had %v (Run: %v), want 20 s", had, err)
		}
	})
}
