// A program of somebody else's that embeds Skein with the memory store.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

type event struct{ Kind string }

var orders = skein.NewQueue("orders", skein.QueueOptions[event]{})

func main() {
	ctx, stop := context.WithCancel(context.Background())
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	for _, kind := range []string{"placed", "paid"} {
		if err := orders.Push(ctx, client, "order-42", event{kind}); err != nil {
			log.Fatal(err)
		}
	}
	handler := orders.Handler(func(_ context.Context, id string, events []event) error {
		fmt.Println(id, events)
		stop()
		return nil
	})
	if err := skein.NewServer(store, skein.ServerOptions{}, handler).Run(ctx); err != nil {
		log.Fatal(err)
	}
}
