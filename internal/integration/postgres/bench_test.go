package postgres_test

import (
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// load is a queue on a Postgres as it comes, for benchmarks: ids of 12
// bytes, each with one payload of 100 bytes of its own.
type load struct {
	b      *testing.B
	store  *postgres.Store
	pushed int
}

func newLoad(b *testing.B, pool *pgxpool.Pool) *load {
	b.Helper()
	schema := testservers.Schema(b, pool)
	if err := postgres.Migrate(b.Context(), pool, postgres.MigrateOptions{Schema: schema}); err != nil {
		b.Fatal(err)
	}
	l := &load{b: b, store: postgres.New(pool, postgres.Options{Schema: schema})}
	if _, err := l.store.Declare(b.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1}); err != nil {
		b.Fatal(err)
	}
	return l
}

// push pushes n new jobs in one call.
func (l *load) push(n int) {
	entries := make([]core.Entry, n)
	for i := range entries {
		id := fmt.Sprintf("order-%06d", l.pushed%1_000_000)
		score := float64(time.Now().UnixMicro()) / 1e6
		entries[i] = core.Entry{
			ID: id, Payload: core.Payload{Data: fmt.Appendf(nil, "%088d%s", l.pushed, id), Score: score},
		}
		l.pushed++
	}
	_, err := l.store.Push(l.b.Context(),
		ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entries})
	if err != nil {
		l.b.Fatal(err)
	}
}

func BenchmarkPostgresPush(b *testing.B) {
	pool := testservers.OwnPostgres(b)
	for _, size := range []int{1, 100, 500} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			l := newLoad(b, pool)
			for b.Loop() {
				l.push(size)
			}
			kit.PerJob(b, size)
		})
	}
}

// BenchmarkPostgresPushInTransactions pushes one entry in each transaction. Ten transactions are
// open at a time.
func BenchmarkPostgresPushInTransactions(b *testing.B) {
	pool := testservers.OwnPostgres(b)
	for name, tx := range map[string]func(*postgres.Tx) *postgres.Tx{
		"wakeups":    func(tx *postgres.Tx) *postgres.Tx { return tx },
		"no-wakeups": (*postgres.Tx).NoWakeups,
	} {
		b.Run(name, func(b *testing.B) {
			l := newLoad(b, pool)
			var pushed atomic.Int64
			b.SetParallelism(10 / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					err := pgx.BeginFunc(b.Context(), pool, func(t pgx.Tx) error {
						return pushOn(b.Context(), tx(l.store.Tx(t)), fmt.Sprint("order-", pushed.Add(1)))
					})
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

func BenchmarkPostgresTurn(b *testing.B) {
	pool := testservers.OwnPostgres(b)
	for _, of := range []struct {
		name string
		size int
		past *core.Past
	}{{"1", 1, nil}, {"64", 64, nil}, {"256", 256, nil}, {"64-recorded", 64, &core.Past{Node: "bench"}}} {
		size := of.size
		b.Run(of.name, func(b *testing.B) {
			l := newLoad(b, pool)
			a, err := l.store.Acquire(b.Context(), ports.AcquireRequest{
				Shard:      core.Shard{Queue: "orders"},
				Shards:     1,
				Generation: 1,
				Owner:      "bench",
				Attempt:    1,
				TTL:        30 * time.Second})
			if err != nil {
				b.Fatal(err)
			}
			turn := ports.TurnRequest{
				Lease: ports.Lease{Shard: core.Shard{Queue: "orders"}, Owner: "bench", Token: a.Token},
				TTL:   30 * time.Second, Want: size, Node: "bench",
			}
			if of.past != nil {
				turn.Keep = core.KeepPast{Age: time.Hour, Count: 20_000}
			}
			for queued := 0; b.Loop(); queued -= size {
				if queued < size {
					b.StopTimer()
					for ; queued < 20_000; queued += 1000 {
						l.push(1000)
					}
					b.StartTimer()
				}
				turn.Number++
				reply, err := l.store.Turn(b.Context(), turn)
				if err != nil || len(reply.Claims) != size {
					b.Fatalf("%d claims: %v", len(reply.Claims), err)
				}
				turn.Settlements = turn.Settlements[:0]
				for _, c := range reply.Claims {
					turn.Settlements = append(turn.Settlements,
						core.Settlement{ID: c.ID, Receipt: c.Receipt, Processed: true, Past: of.past})
				}
			}
			kit.PerJob(b, size)
		})
	}
}
