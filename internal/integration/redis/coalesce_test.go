package redis_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// TestRedisCoalescesPushes checks that pushes from many goroutines are all stored, except those
// whose callers have given up. That they share exchanges is tested in package redis.
func TestRedisCoalescesPushes(t *testing.T) {
	t.Parallel()
	const goroutines, each = 32, 200
	client := testservers.OwnRedis(t)
	store := redis.New(client, redis.Options{})
	if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 5}); err != nil {
		t.Fatal(err)
	}
	gaveUp, giveUp := context.WithCancel(t.Context())
	giveUp()
	var pushing sync.WaitGroup
	for g := range goroutines {
		pushing.Go(func() {
			for i := range each {
				push := ports.PushRequest{Queue: "orders", Shards: 5, Generation: 1, Entries: []core.Entry{
					{ID: fmt.Sprintf("order-%d-%d", g, i), Payload: core.Payload{Data: []byte("paid")}},
				}}
				if _, err := store.Push(t.Context(), push); err != nil {
					t.Errorf("push: %v", err)
				}
				push.Entries[0].ID += "-given-up"
				if _, err := store.Push(gaveUp, push); err == nil {
					t.Error("a push whose context had ended was stored")
				}
			}
		})
	}
	pushing.Wait()

	stats, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := stats[0].Fresh; got != goroutines*each {
		t.Errorf("%d jobs are stored, want %d", got, goroutines*each)
	}
}

// A push that breaks its connection fails alone: others that come at the same time are stored.
func TestRedisPushThatBreaksItsConnectionFailsAlone(t *testing.T) {
	t.Parallel()
	const goroutines, each = 16, 100
	client := testservers.OwnRedis(t, "--client-query-buffer-limit", "1mb") // a longer command ends its connection
	store := redis.New(client, redis.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	push := func(id string, size int) error {
		_, err := store.Push(t.Context(), ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{
			{ID: id, Payload: core.Payload{Data: make([]byte, size)}},
		}})
		return err
	}
	small, large := new(sync.WaitGroup), new(sync.WaitGroup)
	ended := make(chan struct{})
	for g := range goroutines {
		small.Go(func() {
			for i := range each {
				if err := push(fmt.Sprint(g, "-", i), 100); err != nil {
					t.Errorf("a small push beside one that is too large: %v", err)
				}
			}
		})
	}
	broken := 0
	large.Go(func() {
		for {
			if err := push("large", 2<<20); err == nil {
				t.Error("a payload of 2 MiB was stored")
			}
			broken++
			select {
			case <-ended:
				return
			default:
			}
		}
	})
	small.Wait()
	close(ended)
	large.Wait()
	t.Logf("%d pushes broke their connections", broken)
}
