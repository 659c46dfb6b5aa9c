package memory_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// A million updates of one id take no more memory than a few, if the queue keeps only the latest.
func TestUpdatesOfWhichTheLatestStaysTakeNoMemory(t *testing.T) {
	updates := tier.Count(20_000, 1_000_000)
	for name, rule := range map[string]core.PushRule{
		"Keep":     {},
		"Earliest": {Kind: core.Earliest},
		"Debounce": {Kind: core.Debounce},
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.New(memory.Options{})
			_, err := store.Declare(t.Context(), ports.DeclareRequest{
				Queue: "states", Shards: 1, Merge: core.MergeRule{Stays: core.Highest, Keep: 1},
			})
			if err != nil {
				t.Fatal(err)
			}

			push := func(version int) {
				t.Helper()
				r := ports.PushRequest{Queue: "states", Shards: 1, Generation: 1, Rule: rule, Entries: []core.Entry{{
					ID:      "hot",
					Payload: core.Payload{Data: fmt.Appendf(nil, "%0100d", version), Score: float64(version)},
				}}}
				if _, err := store.Push(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}

			push(0)
			before := allocated()
			for version := 1; version < updates; version++ {
				push(version)
			}
			if grown, most := allocated()-before, int64(256<<10); grown > most {
				t.Errorf("%d updates have left %d bytes, at most %d are wanted", updates, grown, most)
			}

			stats, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"states"}})
			if err != nil {
				t.Fatal(err)
			}
			if c := stats[0].Counts; c.Fresh != 1 || c.Superseded != int64(updates)-1 {
				t.Errorf("%d jobs, %d superseded; want 1 and %d", c.Fresh, c.Superseded, updates-1)
			}
		})
	}
}

// allocated returns the bytes of reachable objects.
func allocated() int64 {
	runtime.GC()
	runtime.GC() // the first one may have begun before the last push
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
