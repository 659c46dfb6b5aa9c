// Quickstart pushes three events for one order, out of order, and handles them in
// one call, in order.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// Event is something that happened to an order.
type Event struct {
	Number int
	What   string
}

// Orders is where events wait, by order.
var Orders = skein.NewQueue[Event]("orders", skein.QueueOptions[Event]{})

func main() {
	ctx, stop := context.WithCancel(context.Background())
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	for _, e := range []Event{{3, "shipped"}, {1, "placed"}, {2, "paid"}} {
		if err := Orders.Push(ctx, client, "order-42", e, skein.Score(float64(e.Number))); err != nil {
			log.Fatal(err)
		}
	}
	handler := Orders.Handler(func(_ context.Context, id string, events []Event) error {
		fmt.Println(id, "in one call:", events)
		stop() // There is nothing more to come: the server shuts down and returns.
		return nil
	})
	if err := skein.NewServer(store, skein.ServerOptions{}, handler).Run(ctx); err != nil {
		log.Fatal(err)
	}
}
