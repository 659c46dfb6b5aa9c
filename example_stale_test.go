package skein_test

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// With DropStale a version that comes late, or twice, is not handled after a newer one, whether that
// waits, runs or is done. Users of qless and of Oban compare the version with a column of their own
// table for that. Here it needs no table, as long as Keep has a record of the id.
func ExampleStale() {
	type Price struct {
		Version int64
		Cents   int
	}
	prices := skein.NewQueue("prices", skein.QueueOptions[Price]{
		Merge: skein.Latest(1),
		Score: func(p Price) float64 { return float64(p.Version) },
		Keep:  skein.Keep{Age: 7 * 24 * time.Hour},
		Stale: skein.DropStale,
	})

	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	ctx := context.Background()
	push := func(p Price) (met skein.Met) {
		if err := prices.Push(ctx, client, "sku-1", p, skein.Tell(&met)); err != nil {
			fmt.Println(err)
		}
		return met
	}
	server := skein.NewServer(store, skein.ServerOptions{}, prices.Each(
		func(_ context.Context, id string, p Price) error {
			fmt.Println(id, "version", p.Version)
			if p.Version == 2 {
				push(Price{Version: 1, Cents: 90}) // another feed is late: version 2 runs
			}
			return nil
		}))

	for _, version := range []int64{2, 2, 3} {
		met := push(Price{Version: version, Cents: 100})
		fmt.Println("stale at once:", met.Stale)
		if _, err := server.RunDue(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// stale at once: 0
	// sku-1 version 2
	// stale at once: 1
	// stale at once: 0
	// sku-1 version 3
}
