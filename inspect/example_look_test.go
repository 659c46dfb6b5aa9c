package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// Why a job does not run is one question, whatever the reason is.
func ExampleInspector_Why() {
	ctx := context.Background()
	inspector := inspect.New(stocked(ctx), inspect.Options{})
	for _, id := range []string{"ada", "ben", "dan"} {
		why, err := inspector.Why(ctx, "mails", id)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s (%v): %s\n", id, why.Reason, why.Text)
	}
	// Output:
	// ada (nobody serves): no server serves the queue
	// ben (not due): not due yet, runs in 50m0s; it was pushed for later, its handler returned Snooze or Await, or the rate of its key has no slot yet
	// dan (nothing queued): nothing is queued, claimed or dead for this id
}

// A queue with Keep has a record of each id that was done, the newest first. Find has that of one
// id, with its result.
func ExampleInspector_Past() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{Keep: skein.Keep{Age: 24 * time.Hour}})
	handler := orders.Handler(func(ctx context.Context, id string, events []string) error {
		return skein.SetResult(ctx, len(events))
	})
	server := skein.NewServer(store, skein.ServerOptions{Name: "blue", Logger: slogNothing()}, handler)

	inspector := inspect.New(store, inspect.Options{})
	for id, events := range map[string][]string{"41": {"placed"}, "42": {"placed", "paid"}} {
		for _, event := range events {
			if err := orders.Push(ctx, client, id, event); err != nil {
				log.Fatal(err)
			}
		}
	}
	if _, err := server.RunDue(ctx); err != nil {
		log.Fatal(err)
	}

	for past, err := range inspector.Past(ctx, "orders", inspect.PastOptions{OldestFirst: true}) {
		if err != nil {
			log.Fatal(err)
		}
		found, err := inspector.Find(ctx, "orders", past.ID)
		if err != nil {
			log.Fatal(err)
		}
		events, err := inspect.ResultOf[int](found.Past)
		fmt.Println(past.ID, "done by", past.Node, "with", past.PayloadCount, "payloads, result", events, err)
	}
	// Unordered output:
	// 41 done by blue with 1 payloads, result 1 <nil>
	// 42 done by blue with 2 payloads, result 2 <nil>
}

// died returns a store in which the given number of mails have died, each of one of two errors.
func died(ctx context.Context, mails int) *memory.Store {
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	queue := skein.NewQueue[int]("mails", skein.QueueOptions[int]{MaxRetries: skein.NoRetries})

	for n := range mails {
		if err := queue.Push(ctx, client, fmt.Sprintf("mail-%02d", n), n); err != nil {
			log.Fatal(err)
		}
	}

	quiet := slogNothing()
	handler := queue.Each(func(_ context.Context, id string, n int) error {
		if n%3 == 0 {
			return fmt.Errorf("no such user: %q", id)
		}
		return fmt.Errorf("dial tcp 10.0.0.%d:25: connection refused", n)
	})

	if _, err := skein.NewServer(store, skein.ServerOptions{Logger: quiet}, handler).RunDue(ctx); err != nil {
		log.Fatal(err)
	}
	return store
}

// Dead letters are counted in groups of similar errors. A group can then be listed, or acted on.
func ExampleInspector_Groups() {
	ctx := context.Background()
	inspector := inspect.New(died(ctx, 10), inspect.Options{Logger: slogNothing()})

	groups, err := inspector.Groups(ctx, "mails", 10)
	if err != nil {
		log.Fatal(err)
	}

	for _, g := range groups.Groups {
		fmt.Printf("%d × %s\n", g.Count, g.Name)
	}

	refused := groups.Groups[0].Name
	listed := 0
	for _, err := range inspector.Morgue(ctx, "mails", inspect.ListOptions{Group: refused}) {
		if err != nil {
			log.Fatal(err)
		}
		listed++
	}

	revived, err := inspector.Revive(ctx, "mails", inspect.AllDead(nil, inspect.BulkOptions{Group: refused}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listed, "listed,", revived.Handled, "revived")

	// Output:
	// 6 × dial tcp #: connection refused
	// 4 × no such user: #
	// 6 listed, 6 revived
}

// oneAway is a store with a shard that can't be reached.
type oneAway struct{ inspect.Store }

func (s oneAway) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	stats, err := s.Store.Stats(ctx, r)
	for i := range stats {
		q := &stats[i]
		q.Unreached = []core.Shard{q.Shards[0].Shard}
		q.Shards = q.Shards[1:]
	}
	return stats, err
}

// While a part of the store can't be reached, a result has the other parts, and the error names the
// missing shards.
func ExamplePartialError() {
	ctx := context.Background()
	inspector := inspect.New(oneAway{stocked(ctx)}, inspect.Options{})
	stats, err := inspector.Stats(ctx, "mails")
	if missing := (*inspect.PartialError)(nil); errors.As(err, &missing) {
		fmt.Println("without", missing.Unreached)
	} else if err != nil {
		log.Fatal(err)
	}
	fmt.Println("shards that answer:", len(stats[0].Shards))
	// Output:
	// without [mails/0]
	// shards that answer: 4
}

// checked is a store whose server has something to say.
type checked struct{ inspect.Store }

func (checked) Check(context.Context) ([]ports.Check, error) {
	return []ports.Check{
		{Name: "answers", Value: "in 0.2 ms"},
		{
			Name:   "maxmemory_policy",
			Status: ports.CheckFail,
			Value:  "allkeys-lru",
			Advice: "set it to noeviction, or jobs are lost",
		},
	}, nil
}

// Checks are the first thing to look at when work stands still: settings and state of the store's
// servers.
func ExampleInspector_Checks() {
	ctx := context.Background()
	checks, err := inspect.New(checked{stocked(ctx)}, inspect.Options{}).Checks(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range checks {
		if c.Status == inspect.CheckFail {
			fmt.Printf("%v: %s is %s: %s\n", c.Status, c.Name, c.Value, c.Advice)
		}
	}
	// Output:
	// fail: maxmemory_policy is allkeys-lru: set it to noeviction, or jobs are lost
}

// History returns what became of a queue's jobs, minute by minute or in steps, as the servers have
// reported it.
func ExampleInspector_History() {
	ctx := context.Background()
	inspector := inspect.New(died(ctx, 10), inspect.Options{})
	day, err := inspector.History(ctx, "mails", inspect.HistoryOptions{
		From: time.Now().Add(-24 * time.Hour),
		Step: 24 * time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	failed := uint64(0)
	for _, step := range day { // two at midnight
		failed += step.Failed
	}
	fmt.Println(failed, "failed")
	// Output:
	// 10 failed
}
