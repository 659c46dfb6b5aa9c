package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// Pushers push the same payloads with OnceIn in different orders, by the store and in transactions,
// while a server works on them. Each payload runs once, and no two transactions wait for each other.
func TestPostgresAcceptsOnceBesideTransactions(t *testing.T) {
	t.Parallel()
	for name, merge := range map[string]skein.MergeRule{"union": skein.Union(), "newest": skein.Newest()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			acceptOnce(t, merge)
		})
	}
}

func acceptOnce(t *testing.T, merge skein.MergeRule) {
	const pushers, ids, payloads = 6, 8, 6
	w := &workbench{t: t, pool: testservers.OwnPostgres(t, "fsync=off")}
	w.must(postgres.Migrate(t.Context(), w.pool, postgres.MigrateOptions{}))
	store := postgres.New(w.pool, postgres.Options{})
	queue := skein.NewQueue("orders", skein.QueueOptions[int]{Shards: 2, Merge: merge, MaxPayloads: 2})
	client := skein.NewClient(store, skein.ClientOptions{})

	var mu sync.Mutex
	runs := map[string]int{}
	server := skein.NewServer(store, skein.ServerOptions{LeaseTTL: time.Minute, Lanes: 2}, queue.Handler(
		func(_ context.Context, id string, list []int) error {
			mu.Lock()
			defer mu.Unlock()
			for _, n := range list {
				runs[fmt.Sprint(id, "/", n)]++
			}
			return nil
		}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()

	rounds := tier.Count(3, 60)
	var all sync.WaitGroup
	for pusher := range pushers {
		all.Go(func() {
			for round := range rounds {
				entries := make([]skein.Entry[int], 0, ids*payloads)
				for _, i := range rand.Perm(ids * payloads) {
					entries = append(entries, skein.Entry[int]{
						ID: fmt.Sprint("order-", i%ids), Payload: round*payloads + i/ids,
						Options: []skein.PushOption{skein.OnceIn(time.Hour)},
					})
				}
				if err := pushOnce(t.Context(), queue, client, w, store, entries, pusher%2 > 0); err != nil {
					t.Errorf("pusher %d, round %d: %v", pusher, round, err)
					return
				}
			}
		})
	}
	all.Wait()

	inspector := inspect.New(store, inspect.Options{})
	for {
		queues, err := inspector.Stats(t.Context(), "orders")
		w.must(err)
		if q := queues[0]; q.Length() == 0 && q.Claimed == 0 {
			want := int64((pushers - 1) * rounds * ids * payloads)
			w.same("repeats", q.Repeated, want)
			break
		}
		time.Sleep(10 * time.Millisecond) // a slow machine only looks again
	}
	stop()
	w.must(<-ended)

	w.same("how many payloads have run", len(runs), rounds*ids*payloads)
	for payload, n := range runs {
		if n != 1 {
			t.Errorf("%s has run %d times", payload, n)
		}
	}
	w.same("deadlocks", w.deadlocks(), int64(0))
}

// pushOnce pushes entries one after another in transactions of some of them, or by the store.
func pushOnce(
	ctx context.Context, queue *skein.Queue[int], client *skein.Client, w *workbench, store *postgres.Store,
	entries []skein.Entry[int], inTx bool,
) error {
	for len(entries) > 0 {
		some := entries[:min(len(entries), 1+rand.IntN(20))]
		entries = entries[len(some):]
		if !inTx {
			if err := queue.PushMany(ctx, client, some); err != nil {
				return err
			}
			continue
		}

		tx, err := w.pool.Begin(ctx)
		if err != nil {
			return err
		}
		if err := queue.PushMany(ctx, client.Via(store.Tx(tx)), some); err != nil {
			_ = tx.Rollback(ctx)
			return err
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
	}
	return nil
}
