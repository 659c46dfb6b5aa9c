package skein_test

import (
	"context"
	"fmt"
	"log"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
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
