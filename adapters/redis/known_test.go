package redis

import (
	"context"
	"fmt"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// listing is the server of a client that has so many queues.
func listing(queues int) answers {
	return func(_ context.Context, cmd goredis.Cmder) error {
		const record = "0 0 1 1 1 +"
		switch cmd := cmd.(type) {
		case *goredis.MapStringStringCmd:
			all := make(map[string]string, queues)
			for i := range queues {
				all[fmt.Sprint("orders-", i)] = record
			}
			cmd.SetVal(all)
		case *goredis.StringCmd:
			cmd.SetVal(record)
		}
		return nil
	}
}

// Many goroutines of a process may list queues, and look at one, at once.
func TestQueuesAreListedWhileOneIsLookedAt(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{Addr: "10.0.0.1:1"})
	defer client.Close()
	client.AddHook(listing(100))
	store := New(client, Options{})
	store.server.done.Store(true)
	listed := make(chan error)
	go func() {
		defer close(listed)
		for range 100 {
			if _, err := store.Queues(t.Context()); err != nil {
				listed <- err
			}
		}
	}()
	for {
		select {
		case err, more := <-listed:
			if !more {
				return
			}
			t.Error(err)
		default:
		}
		if _, err := store.knownQueue(t.Context(), "orders-1"); err != nil {
			t.Error(err)
		}
	}
}
