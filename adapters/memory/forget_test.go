package memory_test

import (
	"testing"
	"testing/synctest"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Whoever listens to a queue that is forgotten learns that nothing more comes, and
// listens again, to the queue that may have come in its place.
func TestForgettingAQueueEndsItsReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		for _, name := range []string{"forgotten", "kept"} {
			if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: name, Shards: 2}); err != nil {
				t.Fatal(err)
			}
		}
		listen := func(names ...string) <-chan core.Shard {
			var ids []core.Shard
			for _, name := range names {
				ids = append(ids, core.Shards(name, 2)...)
			}
			wakeups, err := store.Wakeups(t.Context(), ids)
			if err != nil {
				t.Fatal(err)
			}
			return wakeups
		}
		both, kept := listen("forgotten", "kept"), listen("kept")
		if err := store.Forget(t.Context(), "forgotten"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !ended(both) {
			t.Error("a reader of the forgotten queue still waits")
		}
		if ended(kept) {
			t.Error("a reader of another queue was ended too")
		}
	})
}

// ended reports whether a channel that has nothing to give is closed.
func ended(wakeups <-chan core.Shard) bool {
	select {
	case _, ok := <-wakeups:
		return !ok
	default:
		return false
	}
}
