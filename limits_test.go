package skein_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// A failed job makes room for the next one of a queue with a limit over all servers.
func TestAFailedJobMakesRoomUnderMaxRunning(t *testing.T) {
	for name, err := range map[string]error{"retried": errBoom, "buried": skein.Bury(errBoom)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				queue := skein.NewQueue("q", skein.QueueOptions[string]{
					Shards: 1, MaxRunning: 1, Backoff: func(int) time.Duration { return 24 * time.Hour },
				})

				var mu sync.Mutex
				var events []string
				note := func(event string) {
					mu.Lock()
					defer mu.Unlock()
					events = append(events, event)
				}

				handler := queue.Handler(func(_ context.Context, id string, _ []string) error {
					note(id + " begins")
					time.Sleep(time.Second) // virtual time
					note(id + " ends")
					if id == "a" {
						return err
					}
					return nil
				})

				push(t, store, queue, "a", "x")
				push(t, store, queue, "b", "x")
				run(t, skein.NewServer(store, skein.ServerOptions{Lanes: 2, Logger: quiet}, handler),
					func() { time.Sleep(time.Hour) })
				equal(t, "events", events, []string{"a begins", "a ends", "b begins", "b ends"})
			})
		})
	}
}
