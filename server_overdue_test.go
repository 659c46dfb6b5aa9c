package skein_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// syncedBuffer is a bytes.Buffer for several goroutines.
type syncedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncedBuffer) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.text.String(), text)
}

func TestAHandlerThatIgnoresItsTimeoutIsLoggedEachMinute(t *testing.T) {
	q := skein.NewQueue[string]("orders", skein.QueueOptions[string]{Shards: 1, Timeout: 10 * time.Second})
	for name, h := range map[string]skein.Handler{
		"Handler": q.Handler(func(context.Context, string, []string) error {
			time.Sleep(3 * time.Minute)
			return nil
		}),
		"Each": q.Each(func(context.Context, string, string) error {
			time.Sleep(3 * time.Minute)
			return nil
		}),
		"BatchHandler": q.BatchHandler(func(context.Context, *skein.Batch[string]) error {
			time.Sleep(3 * time.Minute)
			return nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				var log syncedBuffer

				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				server := skein.NewServer(store,
					skein.ServerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}, h)
				done := make(chan error, 1)
				go func() { done <- server.Run(ctx) }()

				synctest.Wait()
				if err := q.Push(
					t.Context(), skein.NewClient(store, skein.ClientOptions{}), "order-1", "x",
				); err != nil {
					t.Fatal(err)
				}
				time.Sleep(4 * time.Minute)

				if got := log.count("still runs long after its context has ended"); got != 2 {
					t.Errorf("%d lines, want 2", got)
				}
				if log.count(`id=order-1 jobs=1 cause="`+skein.ErrTimeout.Error()+`"`) != 2 {
					t.Errorf("the log has not the id and the cause:\n%s", log.text.String())
				}

				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
