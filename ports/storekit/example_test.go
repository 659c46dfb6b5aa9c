package storekit_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// A store that counts its calls and loses the reply of the first push.
func ExampleIntercept() {
	calls := map[string]int{}
	store := storekit.Intercept(memory.New(memory.Options{}),
		func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
			calls[call.Method]++
			if r, ok := call.Request.(*ports.PushRequest); ok {
				fmt.Println("push of", len(r.Entries), "entries")
			}
			if err := next(ctx); err != nil {
				return err
			}
			if call.Method == "Push" && calls["Push"] == 1 {
				return errors.New("the connection broke")
			}
			return nil
		})

	ctx := context.Background()
	declared, _ := store.Declare(ctx, ports.DeclareRequest{Queue: "orders", Shards: 1})
	push := ports.PushRequest{
		Queue:      "orders",
		Shards:     1,
		Generation: declared.Generation,
		Entries:    []core.Entry{{ID: "17"}},
	}
	_, err := store.Push(ctx, push)
	fmt.Println(err)
	_, err = store.Push(ctx, push) // merges with the entries that the first has stored
	fmt.Println(err, calls)
	// Output:
	// push of 1 entries
	// the connection broke
	// push of 1 entries
	// <nil> map[Declare:1 Push:2]
}

// A Notifier keeps a Subscriber for each call of Wakeups.
func ExampleSubscriber() {
	orders := core.Shards("orders", 2)
	subscriber := storekit.NewSubscriber(orders)
	ctx, cancel := context.WithCancel(context.Background())
	wakeups := subscriber.Channel(ctx, nil)

	subscriber.Wake(orders[1], core.Shard{Queue: "mails"}) // mails was not requested
	fmt.Println(<-wakeups)
	cancel()
	_, open := <-wakeups
	fmt.Println(open)
	// Output:
	// orders/1
	// false
}

// A page over two shards, whose entries come in any order.
func ExamplePager() {
	pager := storekit.NewPager[string](ports.PageRequest{Limit: 2}, false)
	for _, shard := range [][]ports.Cursor{{{Key: 10, ID: "a"}, {Key: 30, ID: "c"}}, {{Key: 20, ID: "b"}}} {
		for _, at := range shard {
			pager.Add(at, "job "+at.ID)
		}
	}
	fmt.Println(pager.Page())
	// Output: [job a job b] {20 b}
}
