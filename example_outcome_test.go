package skein_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
)

// On Postgres the settler is a transaction, store.Tx(tx), in which the handler writes
// as well. The memory store has none: there the job is settled at once.
func ExampleSettleIn() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{})
	if err := orders.Push(ctx, skein.NewClient(store, skein.ClientOptions{}), "order-42", "paid"); err != nil {
		log.Fatal(err)
	}

	handler := orders.Handler(func(ctx context.Context, id string, events []string) error {
		if err := skein.SettleIn(ctx, store); err != nil {
			return err
		}
		fmt.Println(id, events)
		return fmt.Errorf("this comes too late: the job is settled")
	})
	for range 2 {
		ran, err := skein.NewServer(store, skein.ServerOptions{}, handler).RunDue(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("ran", ran)
	}
	// Output:
	// order-42 [paid]
	// ran 1
	// ran 0
}

// A queue that holds skips no payload: the account waits until somebody has corrected the cause and
// releases it.
func ExampleHold() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	entries := skein.NewQueue("entries", skein.QueueOptions[string]{MaxRetries: skein.NoRetries, Exhausted: skein.Hold})
	client := skein.NewClient(store, skein.ClientOptions{})
	for _, entry := range []string{"17 +10", "18 -70", "19 +20"} {
		if err := entries.Push(ctx, client, "account-7", entry); err != nil {
			log.Fatal(err)
		}
	}

	credit := false
	handler := entries.Each(func(_ context.Context, account, entry string) error {
		if entry == "18 -70" && !credit {
			return fmt.Errorf("no money")
		}
		fmt.Println(account, entry)
		return nil
	})

	run := func() {
		if _, err := skein.NewServer(
			store, skein.ServerOptions{Logger: slog.New(slog.DiscardHandler)}, handler,
		).RunDue(ctx); err != nil {
			log.Fatal(err)
		}
	}
	run()

	inspector := inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)})
	for job, err := range inspector.Jobs(ctx, "entries", inspect.ListOptions{Held: true, Payloads: 1}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("held: %s at %s: %s\n", job.ID, job.Payloads[0].Data, job.LastError)
	}

	credit = true
	if _, err := inspector.Release(ctx, "entries", inspect.JobIDs("account-7")); err != nil {
		log.Fatal(err)
	}
	run()
	// Output:
	// account-7 17 +10
	// held: account-7 at "18 -70": no money
	// account-7 18 -70
	// account-7 19 +20
}

// In Each, SettleIn settles the payload at hand: a ledger books each entry exactly once, also if a
// later one fails.
func ExampleSettleIn_each() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	entries := skein.NewQueue("entries", skein.QueueOptions[string]{MaxRetries: skein.NoRetries})
	client := skein.NewClient(store, skein.ClientOptions{})
	for _, entry := range []string{"17 +10", "18 -70", "19 +20"} {
		if err := entries.Push(ctx, client, "account-7", entry); err != nil {
			log.Fatal(err)
		}
	}

	handler := entries.Each(func(ctx context.Context, account, entry string) error {
		if entry == "18 -70" {
			return fmt.Errorf("no money")
		}
		// On Postgres: pgx.BeginFunc, SettleIn with store.Tx(tx), and the writes in tx.
		if err := skein.SettleIn(ctx, store); err != nil {
			return err
		}
		fmt.Println(account, entry)
		return nil
	})
	if _, err := skein.NewServer(
		store, skein.ServerOptions{Logger: slog.New(slog.DiscardHandler)}, handler,
	).RunDue(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// account-7 17 +10
	// account-7 19 +20
}
