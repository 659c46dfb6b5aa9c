package integration_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// daysNoon is the clock of the tests of days.
var daysNoon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// eachStoreOfDays calls check with a store of its own and the queue orders, on Redis and on Postgres.
func eachStoreOfDays(t *testing.T, check func(t *testing.T, store ports.ShardStore)) {
	t.Helper()
	clock := func() time.Time { return daysNoon }
	declared := func(t *testing.T, store ports.ShardStore) ports.ShardStore {
		t.Helper()
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
		must(t, err)
		return store
	}

	t.Run("redis", func(t *testing.T) {
		client := testservers.Redis(t)
		check(t, declared(t, redis.New(client, redis.Options{Prefix: testservers.Prefix(t, client), Clock: clock})))
	})
	t.Run("postgres", func(t *testing.T) {
		pool := testservers.OwnPostgres(t, "fsync=off")
		must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
		check(t, declared(t, postgres.New(pool, postgres.Options{NoWakeups: true, Clock: clock})))
	})
}

// anyStats returns more statistics than before, with counts of every size in any bucket.
func anyStats(dice *rand.Rand, before core.Stats) core.Stats {
	count := func() uint64 { return dice.Uint64N(1 << dice.UintN(40)) }
	s := before
	s.Processed += 1 + count()
	s.Failed += count()
	s.WaitSum, s.RunSum = s.WaitSum+count(), s.RunSum+count()
	s.WaitSquares, s.RunSquares = s.WaitSquares+float64(count()), s.RunSquares+dice.Float64()
	for range dice.IntN(20) {
		s.Wait[dice.IntN(core.HistogramBuckets)] += count()
		s.Run[dice.IntN(core.HistogramBuckets)] += count()
	}
	return s
}

// Whatever servers count, the stores add it up by day as package core does, although they add it in
// languages of their own.
func TestDaysAddUpLikeMinutes(t *testing.T) {
	t.Parallel()
	eachStoreOfDays(t, func(t *testing.T, store ports.ShardStore) {
		dice := rand.New(rand.NewPCG(7, 7))
		type key struct {
			owner  string
			minute core.Instant
		}
		known := map[key]core.Stats{}

		for range 200 {
			owner := fmt.Sprintf("n%d", dice.IntN(3))
			var records []ports.Record
			for range 1 + dice.IntN(4) {
				minute := core.InstantOf(daysNoon).Add(-time.Duration(dice.IntN(50)) * 29 * time.Minute)
				k := key{owner, minute}
				known[k] = anyStats(dice, known[k])
				records = append(records, ports.Record{Queue: "orders", Minute: minute.Minute(), Stats: known[k]})
			}
			must(t, store.Record(t.Context(), ports.RecordRequest{Owner: owner, Records: records}))
		}

		sums := map[core.Instant]*core.Stats{}
		for k, stats := range known {
			day := k.minute.Day()
			if sums[day] == nil {
				sums[day] = &core.Stats{}
			}
			sums[day].Add(&stats)
		}
		var want []ports.MinuteStats
		for day, stats := range sums {
			want = append(want, ports.MinuteStats{At: day, Stats: *stats})
		}
		slices.SortFunc(want, func(a, b ports.MinuteStats) int { return cmp.Compare(a.At, b.At) })

		got, err := store.History(t.Context(), ports.HistoryRequest{Queue: "orders", Step: ports.Day})
		must(t, err)
		if diff := gocmp.Diff(want, got.Minutes, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Counts that no queue has neither fail nor hide the day.
func TestHugeCountsHideNoDay(t *testing.T) {
	t.Parallel()
	eachStoreOfDays(t, func(t *testing.T, store ports.ShardStore) {
		huge := core.Stats{Processed: 1, WaitSum: math.MaxUint64, RunSum: math.MaxUint64, WaitSquares: 1e300}
		huge.Wait[core.HistogramBuckets-1], huge.Run[0] = math.MaxUint64/4, math.MaxUint64/4
		for owner := range 3 {
			must(t, store.Record(t.Context(), ports.RecordRequest{Owner: fmt.Sprint("n", owner), Records: []ports.Record{
				{Queue: "orders", Minute: core.InstantOf(daysNoon), Stats: huge},
			}}))
		}
		got, err := store.History(t.Context(), ports.HistoryRequest{Queue: "orders", Step: ports.Day})
		must(t, err)
		if len(got.Minutes) != 1 || got.Minutes[0].Processed != 3 || got.Minutes[0].WaitSum < 1<<62 {
			t.Errorf("got %+v, want a day with 3 jobs", got.Minutes)
		}
	})
}

// Many servers record at once, each call is sent twice at the same time, and no count is lost or
// counted twice.
func TestDaysOfManyServersAtOnce(t *testing.T) {
	t.Parallel()
	eachStoreOfDays(t, func(t *testing.T, store ports.ShardStore) {
		const servers, rounds = 8, 20
		record := func(ctx context.Context, server int, counted uint64) error {
			var records []ports.Record
			for _, ago := range []time.Duration{0, 12*time.Hour + time.Minute, 12*time.Hour + 2*time.Minute} {
				records = append(records, ports.Record{
					Queue:  "orders",
					Minute: core.InstantOf(daysNoon).Add(-ago),
					Stats:  core.Stats{Processed: counted},
				})
			}
			return store.Record(ctx, ports.RecordRequest{Owner: fmt.Sprint("n", server), Records: records})
		}

		var wg sync.WaitGroup
		for server := range servers {
			wg.Go(func() {
				for round := range uint64(rounds) {
					var calls sync.WaitGroup
					for range 2 {
						calls.Go(func() {
							if err := record(t.Context(), server, round+1); err != nil {
								t.Errorf("a record: %v", err)
							}
						})
					}
					calls.Wait()
				}
			})
		}
		wg.Wait()

		got, err := store.History(t.Context(), ports.HistoryRequest{Queue: "orders", Step: ports.Day})
		must(t, err)
		var total uint64
		for _, day := range got.Minutes {
			total += day.Processed
		}
		if total != 3*servers*rounds {
			t.Errorf("%d jobs are counted, want %d: %+v", total, 3*servers*rounds, got.Minutes)
		}
	})
}
