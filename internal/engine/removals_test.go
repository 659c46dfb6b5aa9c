package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Two queues are removed at the same time, while their shards still have leases to release and
// heads to show. The pool keeps a shard until its loop has ended, so that a late release finds its
// place.
func TestTwoQueuesAreRemovedAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		rec := w.record()
		n := w.start(nil, spread, roundTrip(20*time.Millisecond),
			serving(rec.queue("red", 2, succeed), rec.queue("green", 2, succeed), rec.queue("blue", 2, succeed)))
		w.sleep(time.Second)

		for _, q := range []string{"green", "blue"} {
			for i := range 20 {
				e := entry(fmt.Sprint("id-", i))
				e.When = core.In(time.Hour)
				if _, err := w.store.Push(w.Context(),
					ports.PushRequest{Queue: q, Shards: 2, Generation: 1, Entries: []core.Entry{e}}); err != nil {
					w.Fatal(err)
				}
			}
		}

		w.sleep(time.Second)
		removed := make(chan error, 2)
		for _, q := range []string{"green", "blue"} {
			go func() { removed <- n.engine.RemoveQueue(w.Context(), q) }()
		}
		w.must(<-removed)
		w.must(<-removed)

		w.sleep(time.Second)
		if _, err := w.store.Push(w.Context(), ports.PushRequest{
			Queue:      "red",
			Shards:     2,
			Generation: 1,
			Entries:    []core.Entry{entry("after")},
		}); err != nil {
			w.Fatal(err)
		}

		w.sleep(time.Second)
		if runs := rec.all(); len(runs) != 1 {
			t.Errorf("the queue that stays ran %d jobs, want 1", len(runs))
		}
	})
}
