package redis

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/ports"
)

// listing is the server of a client that has n queues.
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
		case *goredis.SliceCmd:
			cmd.SetVal([]any{record, nil})
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

// A Cluster's list of queues that answers late is still waited for if no shard knows the queue: it
// can report that the queue does not exist.
func TestASlowListSaysThatAQueueIsUnknown(t *testing.T) {
	client := goredis.NewClusterClient(&goredis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]goredis.ClusterSlot, error) {
			return []goredis.ClusterSlot{{
				Start: 0,
				End:   16383,
				Nodes: []goredis.ClusterNode{{Addr: "10.0.0.1:1"}},
			}}, nil
		},
	})
	defer client.Close()

	client.AddHook(answers(func(ctx context.Context, cmd goredis.Cmder) error {
		if until, ok := ctx.Deadline(); ok && cmd.Name() == "hmget" && time.Until(until) < time.Second {
			<-ctx.Done() // slower than that
			cmd.SetErr(ctx.Err())
			return ctx.Err()
		}
		if fields, ok := cmd.(*goredis.SliceCmd); ok {
			fields.SetVal([]any{nil, nil})
			return nil
		}
		cmd.SetErr(goredis.Nil)
		return goredis.Nil
	}))

	store := New(client, Options{})
	store.server.done.Store(true)
	if _, err := store.knownQueue(t.Context(), "orders"); !errors.Is(err, ports.ErrUnknownQueue) {
		t.Errorf("got %v, want %v", err, ports.ErrUnknownQueue)
	}
}
