package skein_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
)

// Run works until its context ends, then drains.
func ExampleServer_Run() {
	ctx, stop := context.WithCancel(context.Background()) // or signal.NotifyContext
	store := memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{})
	handler := orders.Handler(func(_ context.Context, id string, events []string) error {
		stop()
		fmt.Println("still handles", id, events)
		return nil
	})
	if err := orders.Push(ctx, skein.NewClient(store, skein.ClientOptions{}), "order-42", "paid"); err != nil {
		log.Fatal(err)
	}
	err := skein.NewServer(store, skein.ServerOptions{}, handler).Run(ctx)
	fmt.Println("drained:", err)
	// Output:
	// still handles order-42 [paid]
	// drained: <nil>
}

// RunDue is for programs that a timer starts: it works the due jobs, and those that become due
// meanwhile, and returns.
func ExampleServer_RunDue() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	steps := skein.NewQueue("steps", skein.QueueOptions[string]{})
	client := skein.NewClient(store, skein.ClientOptions{})

	handler := steps.Handler(func(ctx context.Context, id string, names []string) error {
		fmt.Println(id, names)
		if names[0] == "first" {
			return steps.Push(ctx, client, id, "second")
		}
		return steps.Push(ctx, client, id, "tomorrow's", skein.In(24*time.Hour))
	})

	if err := steps.Push(ctx, client, "cake", "first"); err != nil {
		log.Fatal(err)
	}

	jobs, err := skein.NewServer(store, skein.ServerOptions{}, handler).RunDue(ctx)
	fmt.Println(jobs, "jobs", err)
	// Output:
	// cake [first]
	// cake [second]
	// 2 jobs <nil>
}

// Server middleware wraps each call of a handler, the first outermost.
func ExampleServerOptions_middleware() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{MaxRetries: skein.NoRetries})
	client := skein.NewClient(store, skein.ClientOptions{})

	trace := func(next skein.RunFunc) skein.RunFunc {
		return func(ctx context.Context, batch *skein.RawBatch) error {
			job := &batch.Jobs[0]
			fmt.Printf("start %s %s %s\n", batch.Queue, job.ID, job.Payloads[0].Data)
			err := next(ctx, batch)
			fmt.Println("end:", err)
			return err
		}
	}

	// The outcome of an error can be decided for all queues at once.
	forgive := func(next skein.RunFunc) skein.RunFunc {
		return func(ctx context.Context, batch *skein.RawBatch) error {
			err := next(ctx, batch)
			if errors.Is(err, context.DeadlineExceeded) {
				return skein.RetryIn(time.Minute, err)
			}
			return err
		}
	}

	options := skein.ServerOptions{Middleware: []skein.Middleware{trace, forgive}}
	handler := orders.Handler(func(context.Context, string, []string) error { return context.DeadlineExceeded })

	if err := orders.Push(ctx, client, "order-42", "paid"); err != nil {
		log.Fatal(err)
	}
	if _, err := skein.NewServer(store, options, handler).RunDue(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// start orders order-42 "paid"
	// end: retry in 1m0s: context deadline exceeded
}

// OnStart comes before any job, and OnBuried when payloads went to the morgue, such as
// one whose job's retries were used up.
func ExampleServerOptions_onBuried() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{
		MaxRetries: 2, Backoff: func(int) time.Duration { return 0 },
	})
	client := skein.NewClient(store, skein.ClientOptions{})

	options := skein.ServerOptions{
		OnStart: func(context.Context) error {
			fmt.Println("the store is there")
			return nil
		},
		OnBuried: func(_ context.Context, b skein.Buried) error {
			fmt.Printf("%v: gave up on %s of %s: %s\n", b.Reason, b.Payloads[0].Data, b.ID, b.Error)
			return nil
		},
	}

	handler := orders.JobHandler(func(_ context.Context, job *skein.Job[string]) error {
		fmt.Println("execution", job.Retries+1)
		return errors.New("the bank is closed")
	})

	if err := orders.Push(ctx, client, "order-42", "paid"); err != nil {
		log.Fatal(err)
	}
	if _, err := skein.NewServer(store, options, handler).RunDue(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// the store is there
	// execution 1
	// execution 2
	// execution 3
	// retries: gave up on "paid" of order-42: the bank is closed
}

// OnFatal is called with the error that a server ends with, such as all that is wrong
// with its options.
func ExampleServerOptions_onFatal() {
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{BatchSize: 1000})
	handler := orders.Handler(func(context.Context, string, []string) error { return nil })
	server := skein.NewServer(memory.New(memory.Options{}), skein.ServerOptions{
		Lanes:   -5,
		OnFatal: func(err error) { fmt.Println(err) },
	}, handler)
	err := server.Run(context.Background())
	fmt.Println(errors.Is(err, skein.ErrInvalidOptions), errors.Is(err, skein.ErrInvalidQueue))
	// Output:
	// invalid options: -5 Lanes; give at least one
	// invalid queue: "orders": BatchSize 1000; give 1 to 256
	// true true
}

// With Parallel 1 the batches of a shard run one after another, however many lanes there are. So
// data that the ids of a shard share need no lock.
func ExampleQueueOptions_parallel() {
	store := memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{Shards: 1, Parallel: 1})
	client := skein.NewClient(store, skein.ClientOptions{})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	for n := range 100 {
		if err := orders.Push(ctx, client, fmt.Sprint("order-", n), "paid"); err != nil {
			log.Fatal(err)
		}
	}

	paid := 0
	handler := orders.Handler(func(context.Context, string, []string) error {
		if paid++; paid == 100 {
			stop()
		}
		return nil
	})

	if err := skein.NewServer(store, skein.ServerOptions{Lanes: 10}, handler).Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(paid)
	// Output:
	// 100
}

// A scheduler chooses the shard of the next batch: with StrictBy one of the first queue that has
// work, with WeightedBy in proportion.
func ExampleServerOptions_scheduler() {
	strict := skein.ServerOptions{Scheduler: skein.StrictBy("urgent", "bulk")}
	weighted := skein.ServerOptions{Scheduler: skein.WeightedBy(map[string]int{"urgent": 3, "bulk": 1})}

	// The lanes' choices as long as both queues have work.
	pool := skein.SchedulerConfig{Shards: []core.Shard{{Queue: "bulk"}, {Queue: "urgent"}}}
	due := []core.Head{{OK: true}, {OK: true}}
	for _, options := range []skein.ServerOptions{strict, weighted} {
		scheduler := options.Scheduler(pool)
		var worked []string
		for range 8 {
			next := scheduler.Next(0, due).Index
			scheduler.Ran(next, true)
			worked = append(worked, pool.Shards[next].Queue)
		}
		fmt.Println(worked)
	}
	// Output:
	// [urgent urgent urgent urgent urgent urgent urgent urgent]
	// [urgent urgent bulk urgent urgent urgent bulk urgent]
}
