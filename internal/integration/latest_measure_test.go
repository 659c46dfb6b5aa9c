package integration_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// The test logs how many pushes a second merge under Latest(1) and under Union, and the ratio.
// There are SKEIN_TEST_LIST_JOBS pushes to a thousand queued ids: one push in each call, from ten
// goroutines, and then a hundred in each call. The two rules take turns.
func TestRedisLatestBesideUnion(t *testing.T) {
	tier.Long(t, "measures")
	client := testservers.OwnRedis(t)
	latestBesideUnion(t, func(round int) skein.Store {
		return redis.New(client, redis.Options{Prefix: fmt.Sprint("r", round, ":")})
	})
}

// As TestRedisLatestBesideUnion.
func TestPostgresLatestBesideUnion(t *testing.T) {
	tier.Long(t, "measures")
	pool := kit.PoolLike(t, testservers.OwnPostgres(t), func(c *pgxpool.Config) { c.MaxConns = 12 })
	latestBesideUnion(t, func(round int) skein.Store {
		schema := fmt.Sprint("r", round)
		must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}))
		return postgres.New(pool, postgres.Options{Schema: schema, NoWakeups: true})
	})
}

func latestBesideUnion(t *testing.T, open func(round int) skein.Store) {
	const rounds, ids = 5, 1000
	pushes := kit.FromVariable(t, "SKEIN_TEST_LIST_JOBS", 20_000)
	for _, size := range []int{1, 100} {
		var rates [2][]float64
		var ratios []float64
		for round := range rounds {
			store := open(2*round + size/100)
			for k := range rates {
				rule := (k + round) % 2 // the other one begins
				merge := []skein.MergeRule{skein.Union(), skein.Latest(1)}[rule]
				queue := skein.NewQueue([]string{"union", "latest"}[rule],
					skein.QueueOptions[[]byte]{Merge: merge, Codec: skein.RawCodec{}})
				rates[rule] = append(rates[rule], mergingRate(t, store, queue, pushes, size, ids))
			}
			ratios = append(ratios, rates[1][round]/rates[0][round])
		}
		t.Logf("%d entries a call: union %.0f, latest(1) %.0f pushes/s in the median; ratio %.2f [%.2f-%.2f]",
			size, middle(rates[0]), middle(rates[1]), middle(ratios), slices.Min(ratios), slices.Max(ratios))
	}
}

// mergingRate returns how many pushes a second merge into queued jobs.
func mergingRate(t *testing.T, store skein.Store, queue *skein.Queue[[]byte], pushes, size, ids int) float64 {
	client := skein.NewClient(store, skein.ClientOptions{})
	var next atomic.Int64
	push := func() {
		entries := make([]skein.Entry[[]byte], size)
		first := int(next.Add(int64(size))) - size
		for i := range entries {
			entries[i] = skein.Entry[[]byte]{ID: fmt.Sprintf("order-%06d", (first+i)%ids), Payload: fmt.Appendf(nil,
				"%0100d", first+i)}
		}
		if err := queue.PushMany(t.Context(), client, entries); err != nil {
			t.Error(err)
		}
	}
	for int(next.Load()) < ids {
		push()
	}
	begin := time.Now()
	var pushers sync.WaitGroup
	for range 10 {
		pushers.Go(func() {
			for int(next.Load()) < ids+pushes && !t.Failed() {
				push()
			}
		})
	}
	pushers.Wait()
	return float64(int(next.Load())-ids) / time.Since(begin).Seconds()
}

// middle returns the median.
func middle(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }
