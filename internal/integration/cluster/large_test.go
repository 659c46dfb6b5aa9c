package cluster_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// A master of a Cluster that hangs delays no large push to the others, however many wait for it.
func TestRedisLargePushesPassAHungMaster(t *testing.T) {
	t.Parallel()
	const pool, large = 4, 8
	o := newOutage(t)
	options := *o.cluster.Options()
	options.PoolSize, options.ReadTimeout = pool, time.Hour // the client never gives up on a server
	client := goredis.NewClusterClient(&options)
	t.Cleanup(func() { client.Close() })
	store := redis.New(client, redis.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "outages", Shards: outageShards})
	must(t, err)
	failing, lost, healthy := o.divide()
	// push pushes a large payload to each of the shards.
	push := func(ctx context.Context, name string, shards ...int) error {
		r := ports.PushRequest{Queue: "outages", Shards: outageShards, Generation: 1}
		for _, shard := range shards {
			id := name
			for core.ShardOf(id, outageShards) != shard {
				id += "-"
			}
			r.Entries = append(r.Entries, core.Entry{ID: id, Payload: core.Payload{Data: make([]byte, 32<<10)}})
		}
		_, err := store.Push(ctx, r)
		return err
	}
	for _, shard := range healthy {
		must(t, push(t.Context(), "before", shard))
	}
	thaw := testservers.Freeze(t, failing)
	held, release := context.WithCancel(t.Context())
	var pushing sync.WaitGroup
	t.Cleanup(func() {
		release()
		pushing.Wait()
		thaw()
	})
	for i := range large {
		shards := lost[:1]
		if i%2 > 0 {
			shards = append(healthy[:1:1], lost[0]) // to the hung master and another
		}
		pushing.Go(func() { _ = push(held, fmt.Sprint("held-", i), shards...) })
	}
	ctx, cancel := context.WithTimeout(t.Context(), testservers.Patience)
	defer cancel()
	for i := range 20 {
		for _, shard := range healthy {
			if err := push(ctx, fmt.Sprint("after-", i), shard); err != nil {
				t.Fatalf("a large push to a master that answers: %v", err)
			}
		}
	}
}
