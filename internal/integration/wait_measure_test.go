package integration_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// The test logs how long a push takes, and a push with the wait for its result, on a server that
// has nothing else to do, and how long a read of a thousand ids takes beside a look at one.
func TestRedisWaits(t *testing.T) {
	tier.Long(t, "measures")
	measureWaits(t, redis.New(testservers.OwnRedis(t), redis.Options{}))
}

// As TestRedisWaits.
func TestPostgresWaits(t *testing.T) {
	tier.Long(t, "measures")
	pool := kit.PoolLike(t, testservers.OwnPostgres(t), func(c *pgxpool.Config) { c.MaxConns = 12 })
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
	measureWaits(t, postgres.New(pool, postgres.Options{}))
}

func measureWaits(t *testing.T, store skein.Store) {
	queue := skein.NewQueue("waits", skein.QueueOptions[int]{Keep: skein.Keep{Age: time.Hour}})
	client := skein.NewClient(store, skein.ClientOptions{})
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	handler := queue.Handler(func(ctx context.Context, _ string, numbers []int) error {
		return skein.SetResult(ctx, numbers[0])
	})
	go func() { stopped <- skein.NewServer(store, skein.ServerOptions{}, handler).Run(ctx) }()

	const rounds = 2000
	var pushes, waits []time.Duration
	for n := range rounds + 100 {
		id, began := fmt.Sprint("id-", n), time.Now()
		must(t, queue.Push(ctx, client, id, n))
		pushed := time.Now()
		past, err := skein.Wait[int](ctx, client, queue, id)
		if err != nil || past.Result != n {
			t.Fatalf("the wait returned %+v, %v", past, err)
		}
		if n >= 100 { // the first are slower
			pushes, waits = append(pushes, pushed.Sub(began)), append(waits, time.Since(began))
		}
	}
	stop()
	must(t, <-stopped)
	t.Logf("push: %s; push, handle and wait: %s", percentiles(pushes), percentiles(waits))

	var ids []string
	var entries []skein.Entry[int]
	for n := range ports.MaxPending {
		ids = append(ids, fmt.Sprint("later-", n))
		entries = append(entries, skein.Entry[int]{ID: ids[n], Payload: n, Options: []skein.PushOption{skein.In(time.Hour)}})
	}
	must(t, queue.PushMany(t.Context(), client, entries))
	var reads, looks []time.Duration
	for range 100 {
		began := time.Now()
		_, err := store.Pending(t.Context(), ports.PendingRequest{Queue: queue.Name(), IDs: ids})
		must(t, err)
		reads, began = append(reads, time.Since(began)), time.Now()
		_, err = store.Find(t.Context(), ports.FindRequest{Queue: queue.Name(), ID: ids[0], MaxCount: -1})
		must(t, err)
		looks = append(looks, time.Since(began))
	}
	t.Logf("Pending of %d ids: %s; Find of one: %s", len(ids), percentiles(reads), percentiles(looks))
}

func percentiles(times []time.Duration) string {
	slices.Sort(times)
	return fmt.Sprintf("least %.2f ms, p50 %.2f ms, p99 %.2f ms", times[0].Seconds()*1000,
		times[len(times)/2].Seconds()*1000, times[len(times)*99/100].Seconds()*1000)
}
