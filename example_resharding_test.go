package skein_test

import (
	"context"
	"fmt"
	"log"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
)

// A queue that needs more shards is moved to one with another name, while both are paused. Both are
// described as queues of bytes, whatever is in them.
func Example_anotherShardCount() {
	ctx := context.Background()
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	inspector := inspect.New(store, inspect.Options{})
	few := skein.NewQueue("orders", skein.QueueOptions[[]byte]{Codec: skein.RawCodec{}, Shards: 5})
	many := skein.NewQueue("orders-64", skein.QueueOptions[[]byte]{Codec: skein.RawCodec{}, Shards: 64})
	must := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	must(few.Push(ctx, client, "order-1", []byte("paid"), skein.Score(2)))
	must(few.Push(ctx, client, "order-1", []byte("placed"), skein.Score(1)))

	// A push declares the new queue, and a pause keeps it still.
	must(many.Push(ctx, client, "order-1", []byte("shipped"), skein.Score(3)))
	must(inspector.Pause(ctx, "orders-64"))
	must(inspector.Pause(ctx, "orders"))
	_, err := inspector.Move(ctx, "orders", inspect.Target{Queue: "orders-64"},
		inspect.AllJobs(nil, inspect.BulkOptions{}))
	must(err)
	_, err = inspector.MoveMorgue(ctx, "orders", inspect.Target{Queue: "orders-64"},
		inspect.AllDead(nil, inspect.BulkOptions{}))
	must(err)
	must(inspector.Forget(ctx, "orders"))
	must(inspector.Resume(ctx, "orders-64"))

	for job, err := range inspector.Jobs(ctx, "orders-64", inspect.ListOptions{Payloads: 10}) {
		must(err)
		for _, p := range job.Payloads {
			fmt.Printf("%s %v %s\n", job.ID, p.Score, p.Data)
		}
	}
	queues, err := inspector.Queues(ctx)
	must(err)
	fmt.Println(len(queues), "queue")
	// Output:
	// order-1 1 placed
	// order-1 2 paid
	// order-1 3 shipped
	// 1 queue
}
