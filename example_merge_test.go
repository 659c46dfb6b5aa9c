package skein_test

import (
	"context"
	"fmt"
	"log"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
)

// Each payload holds the whole state, so only the highest version is worth a call. A push that
// arrives late, and the versions that were overtaken, are dropped and counted.
func ExampleLatest() {
	type position struct {
		Version int
		At      string
	}

	ctx, store := context.Background(), memory.New(memory.Options{})
	positions := skein.NewQueue("positions", skein.QueueOptions[position]{
		Merge: skein.Latest(1),
		Score: func(p position) float64 { return float64(p.Version) },
	})
	client := skein.NewClient(store, skein.ClientOptions{})

	for _, p := range []position{{1, "depot"}, {3, "customer"}, {2, "road"}} {
		if err := positions.Push(ctx, client, "van-7", p); err != nil {
			log.Fatal(err)
		}
	}

	show(ctx, store, "positions")

	stats, err := inspect.New(store, inspect.Options{}).Stats(ctx, "positions")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("superseded:", stats[0].Counts.Superseded)
	// Output:
	// van-7: {"Version":3,"At":"customer"}
	// superseded: 2
}

// The handler sets each state in turn. By Newest the last push is handled last, also if the same
// state was pushed before. By the default, Union, the lamp would end up off.
func ExampleNewest() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	lamps := skein.NewQueue("lamps", skein.QueueOptions[string]{Merge: skein.Newest()})
	for number, state := range []string{"on", "off", "on"} {
		if err := lamps.Push(ctx, client, "hall", state, skein.Score(float64(number))); err != nil {
			log.Fatal(err)
		}
	}
	show(ctx, store, "lamps")
	// Output:
	// hall: "off" "on"
}

// Each push counts, also one of equal bytes. A push that is repeated with its score is one.
func ExampleEvery() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	points := skein.NewQueue("points", skein.QueueOptions[int]{Merge: skein.Every()})
	for _, event := range []float64{101, 102, 103, 103} {
		if err := points.Push(ctx, client, "player-1", 5, skein.Score(event)); err != nil {
			log.Fatal(err)
		}
	}
	show(ctx, store, "points")
	// Output:
	// player-1: 5 5 5
}

// A push of many entries counts what they met.
func ExampleTell_pushMany() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	reports := skein.NewQueue("reports", skein.QueueOptions[string]{})

	var met skein.Met
	err := reports.PushMany(ctx, client, []skein.Entry[string]{
		{ID: "account-1", Payload: "May"},
		{ID: "account-1", Payload: "June"},
		{ID: "account-2", Payload: "May"},
		{ID: "account-1", Payload: "May"},
	}, skein.Tell(&met))
	if err != nil {
		log.Fatal(err)
	}

	fmt.Printf("%d new, %d merged, %d duplicate\n", met.New, met.Merged, met.Duplicate)
	// Output: 2 new, 1 merged, 1 duplicate
}

// Each push reports what it met in the queue. An API can then answer that a request is already
// waiting.
func ExampleTell() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	reports := skein.NewQueue("reports", skein.QueueOptions[string]{})
	for _, month := range []string{"May", "June", "May"} {
		var met skein.Met
		if err := reports.Push(ctx, client, "account-1", month, skein.Tell(&met)); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: already waiting: %t\n", month, met.Duplicate == 1)
	}
	// Output:
	// May: already waiting: false
	// June: already waiting: false
	// May: already waiting: true
}
