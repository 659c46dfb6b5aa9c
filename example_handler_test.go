package skein_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
)

func ExampleQueue_Handler() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{})
	client := skein.NewClient(store, skein.ClientOptions{})
	for _, event := range []string{"placed", "paid", "shipped"} {
		if err := orders.Push(ctx, client, "order-42", event); err != nil {
			log.Fatal(err)
		}
	}

	handler := orders.Handler(func(_ context.Context, id string, events []string) error {
		fmt.Println(id, events)
		return nil
	})
	if _, err := skein.NewServer(store, skein.ServerOptions{}, handler).RunDue(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// order-42 [placed paid shipped]
}

// Each takes payload by payload: finished payloads are not run again, and a payload that fails too
// often goes to the morgue, without the others.
func ExampleQueue_Each() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{
		MaxRetries: 1, Backoff: func(int) time.Duration { return 0 },
	})
	client := skein.NewClient(store, skein.ClientOptions{})
	for _, event := range []string{"placed", "nonsense", "paid"} {
		if err := orders.Push(ctx, client, "order-42", event); err != nil {
			log.Fatal(err)
		}
	}

	handler := orders.Each(func(_ context.Context, id, event string) error {
		fmt.Println(id, event)
		if event == "nonsense" {
			return errors.New("not an event")
		}
		return nil
	})
	if _, err := skein.NewServer(
		store, skein.ServerOptions{Logger: slog.New(slog.DiscardHandler)}, handler,
	).RunDue(ctx); err != nil {
		log.Fatal(err)
	}
	for dead, err := range inspect.New(store, inspect.Options{}).Morgue(
		ctx, "orders", inspect.ListOptions{Payloads: 1},
	) {
		fmt.Printf("in the morgue: %s, %s, %v\n", dead.Payloads[0].Data, dead.LastError, err)
	}
	// Output:
	// order-42 placed
	// order-42 nonsense
	// order-42 nonsense
	// order-42 paid
	// in the morgue: "nonsense", not an event, <nil>
}

// Payloads can be settled by themselves: those that remain when the handler returns have the
// outcome of their job.
func ExampleQueue_JobHandler() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{Backoff: func(int) time.Duration { return 0 }})
	client := skein.NewClient(store, skein.ClientOptions{})
	for _, event := range []string{"placed", "nonsense", "paid"} {
		if err := orders.Push(ctx, client, "order-42", event); err != nil {
			log.Fatal(err)
		}
	}

	handler := orders.JobHandler(func(_ context.Context, job *skein.Job[string]) error {
		fmt.Printf("%v, failed %d times: %q\n", job.Values(), job.Retries, job.LastError)
		for i := range job.Payloads {
			switch p := &job.Payloads[i]; p.Value {
			case "placed":
				p.Done()
			case "nonsense":
				p.Bury(errors.New("not an event"))
			case "paid":
				if job.Retries == 0 {
					return errors.New("the bank is closed")
				}
			}
		}
		return nil
	})

	if _, err := skein.NewServer(store, skein.ServerOptions{}, handler).RunDue(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// [placed nonsense paid], failed 0 times: ""
	// [paid], failed 1 times: "the bank is closed"
}

// One request for many ids; each id has its own outcome.
func ExampleQueue_BatchHandler() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	pages := skein.NewQueue("pages", skein.QueueOptions[string]{
		Shards: 1, BatchSize: 100, Backoff: func(int) time.Duration { return 0 },
	})
	client := skein.NewClient(store, skein.ClientOptions{})
	for _, id := range []string{"about", "home", "news"} {
		if err := pages.Push(ctx, client, id, "changed"); err != nil {
			log.Fatal(err)
		}
	}

	refused := map[string]error{"home": errors.New("try again")}
	handler := pages.BatchHandler(func(_ context.Context, batch *skein.Batch[string]) error {
		fmt.Print("indexing")
		for _, job := range batch.Jobs() {
			fmt.Print(" ", job.ID)
			job.Settle(refused[job.ID])
			delete(refused, job.ID)
		}
		fmt.Println()
		return nil
	})
	if _, err := skein.NewServer(store, skein.ServerOptions{}, handler).RunDue(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// indexing about home news
	// indexing home
}

// Where retrying can't help, the payloads go to the morgue at once.
func ExampleBury() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{})
	client := skein.NewClient(store, skein.ClientOptions{})
	if err := orders.Push(ctx, client, "order-42", "placed"); err != nil {
		log.Fatal(err)
	}

	handler := orders.Handler(func(context.Context, string, []string) error {
		return skein.Bury(errors.New("no such customer"))
	})
	if _, err := skein.NewServer(store, skein.ServerOptions{}, handler).RunDue(ctx); err != nil {
		log.Fatal(err)
	}
	for dead, err := range inspect.New(store, inspect.Options{}).Morgue(ctx, "orders", inspect.ListOptions{}) {
		fmt.Println(dead.ID, dead.LastError, err)
	}
	// Output:
	// order-42 no such customer <nil>
}

// A job that is too early is put back, and counts as neither success nor failure.
func ExampleSnooze() {
	ctx, now := context.Background(), time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC)
	store := memory.New(memory.Options{Clock: func() time.Time { return now }})
	mails := skein.NewQueue("mails", skein.QueueOptions[string]{})
	if err := mails.Push(ctx, skein.NewClient(store, skein.ClientOptions{}), "ann", "hello"); err != nil {
		log.Fatal(err)
	}

	handler := mails.JobHandler(func(_ context.Context, job *skein.Job[string]) error {
		if now.Hour() < 10 {
			fmt.Println(now.Format(time.Kitchen), "she sleeps until ten")
			return skein.Snooze(time.Hour)
		}
		fmt.Println(now.Format(time.Kitchen), job.Values(), "after", job.Retries, "retries")
		return nil
	})

	server := skein.NewServer(store, skein.ServerOptions{}, handler)
	for range 3 {
		if _, err := server.RunDue(ctx); err != nil {
			log.Fatal(err)
		}
		now = now.Add(30 * time.Minute)
	}
	// Output:
	// 9:00AM she sleeps until ten
	// 10:00AM [hello] after 0 retries
}

// A failure that knows when to try again, such as an API's rate limit.
func ExampleRetryIn() {
	ctx, now := context.Background(), time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC)
	store := memory.New(memory.Options{Clock: func() time.Time { return now }})
	mails := skein.NewQueue("mails", skein.QueueOptions[string]{})
	if err := mails.Push(ctx, skein.NewClient(store, skein.ClientOptions{}), "ann", "hello"); err != nil {
		log.Fatal(err)
	}

	handler := mails.JobHandler(func(_ context.Context, job *skein.Job[string]) error {
		if job.Retries == 0 {
			fmt.Println(now.Format(time.Kitchen), "too many requests")
			return skein.RetryIn(20*time.Minute, errors.New("too many requests"))
		}
		fmt.Println(now.Format(time.Kitchen), job.Values(), "after:", job.LastError)
		return nil
	})

	server := skein.NewServer(store, skein.ServerOptions{}, handler)
	for range 3 {
		if _, err := server.RunDue(ctx); err != nil {
			log.Fatal(err)
		}
		now = now.Add(10 * time.Minute)
	}
	// Output:
	// 9:00AM too many requests
	// 9:20AM [hello] after: too many requests
}

// Timeout ends the context of a handler; the failure is retried like any other.
func ExampleQueueOptions_timeout() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	reports := skein.NewQueue("reports", skein.QueueOptions[string]{Timeout: time.Millisecond})
	if err := reports.Push(ctx, skein.NewClient(store, skein.ClientOptions{}), "2029", "make"); err != nil {
		log.Fatal(err)
	}

	handler := reports.Handler(func(ctx context.Context, _ string, _ []string) error {
		<-ctx.Done() // as a query or a request would
		fmt.Println(context.Cause(ctx), errors.Is(context.Cause(ctx), skein.ErrTimeout))
		return ctx.Err()
	})
	if _, err := skein.NewServer(store, skein.ServerOptions{}, handler).RunDue(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// handler timeout true
}

// A resource that remembers the highest token it has seen refuses the write of a
// process that was paused while another took over.
func ExampleFence() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{})
	client := skein.NewClient(store, skein.ClientOptions{})

	var highest int64
	write := func(token int64) error {
		if token < highest {
			return errors.New("somebody else works this shard now")
		}
		highest = token
		return nil
	}

	handler := orders.Handler(func(ctx context.Context, _ string, _ []string) error {
		token, _ := skein.Fence(ctx)
		return write(token)
	})

	var tokens []int64
	for range 2 { // each RunDue is another lease
		if err := orders.Push(ctx, client, "order-42", "paid"); err != nil {
			log.Fatal(err)
		}
		if _, err := skein.NewServer(store, skein.ServerOptions{}, handler).RunDue(ctx); err != nil {
			log.Fatal(err)
		}
		tokens = append(tokens, highest)
	}

	fmt.Println("the token has risen:", tokens[1] > tokens[0])
	fmt.Println("a late write:", write(tokens[0]))
	// Output:
	// the token has risen: true
	// a late write: somebody else works this shard now
}
