package skein_test

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// A sender of webhooks delivers an event again if it has not seen the answer, perhaps after the
// event was handled. With OnceIn the second delivery is dropped. asynq's Unique and River's unique
// jobs do so while a lock lasts or a row is there; here it holds for the given time, whatever
// becomes of the job.
func ExampleOnceIn() {
	events := skein.NewQueue("events", skein.QueueOptions[string]{})
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	ctx := context.Background()

	server := skein.NewServer(store, skein.ServerOptions{}, events.Each(
		func(_ context.Context, id, event string) error {
			fmt.Println(id, event)
			return nil
		}))

	for _, event := range []string{"paid", "paid", "shipped", "paid"} {
		var met skein.Met
		err := events.Push(ctx, client, "order-42", event, skein.OnceIn(24*time.Hour), skein.Tell(&met))
		if err != nil {
			fmt.Println(err)
		}
		if met.Repeated > 0 {
			fmt.Println("repeated:", event)
		}
		if _, err := server.RunDue(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// order-42 paid
	// repeated: paid
	// order-42 shipped
	// repeated: paid
}
