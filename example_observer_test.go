package skein_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"sync/atomic"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/ports"
)

// tally counts its events, and nothing else: it runs in the path of the work.
type tally struct {
	skein.NopObserver            // does nothing of what is not below
	merged, done, failed, buried atomic.Int64
}

func (t *tally) Pushed(_ context.Context, e skein.PushEvent) {
	t.merged.Add(int64(e.Merged + e.Duplicate))
}

// JobsEnded is called when the store has kept how the jobs ended.
func (t *tally) JobsEnded(e skein.EndEvent) {
	for _, j := range e.Jobs {
		switch j.End {
		case ports.EndDone:
			t.done.Add(1)
		case ports.EndFailed, ports.EndHeld:
			t.failed.Add(1)
		case ports.EndBuried:
			t.buried.Add(1)
		}
	}
}

// An Observer has a method for each kind of event. The possible values of an event's field, such
// as the End of a job, are constants of package ports. Package adapters/prometheus is one,
// adapters/otel another.
func ExampleObserver() {
	ctx := context.Background()
	store, seen := memory.New(memory.Options{}), &tally{}
	client := skein.NewClient(store, skein.ClientOptions{Observer: seen})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{})

	for _, id := range []string{"order-1", "order-2", "order-2", "order-3"} {
		if err := orders.Push(ctx, client, id, "paid"); err != nil {
			log.Fatal(err)
		}
	}

	handler := orders.Each(func(_ context.Context, id, _ string) error {
		switch id {
		case "order-1":
			return errors.New("not now")
		case "order-2":
			return skein.Bury(errors.New("never"))
		}
		return nil
	})

	options := skein.ServerOptions{Observer: seen, Logger: slog.New(slog.DiscardHandler)}
	if _, err := skein.NewServer(store, options, handler).RunDue(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("merged", seen.merged.Load(), "done", seen.done.Load(),
		"failed", seen.failed.Load(), "buried", seen.buried.Load())
	// Output:
	// merged 1 done 1 failed 1 buried 1
}
