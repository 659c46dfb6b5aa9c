package postgres_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
)

// orderRow is a row of the table of docs/guide/sql-pushes.md.
type orderRow struct {
	ID      int64  `json:"id"`
	State   string `json:"state"`
	Version int64  `json:"version"`
}

// sqlOfThePage returns the blocks of SQL of docs/guide/sql-pushes.md: the grants, a push, and the table
// with its trigger.
func sqlOfThePage(t testing.TB) (grants, push, trigger string) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/guide/sql-pushes.md")
	must(t, err)
	blocks := regexp.MustCompile("(?ms)^```sql\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 3 {
		t.Fatalf("the page has %d blocks of SQL, want 3", len(blocks))
	}
	return blocks[0][1], blocks[1][1], blocks[2][1]
}

// The SQL of the page pushes each change of a row with its version. Sessions change the same rows, and
// some roll back. A handler that gets the latest version sees no older one after it, and one that gets
// all sees each committed version once.
func TestPostgresSQLTriggerOfTheGuide(t *testing.T) {
	t.Parallel()
	for _, merge := range []skein.MergeRule{skein.Latest(1), skein.Union()} {
		t.Run(merge.String(), func(t *testing.T) {
			t.Parallel()
			v := newViewed(t, 3)
			_, push, trigger := sqlOfThePage(t)
			store := v.open(postgres.Options{})
			changes := skein.NewQueue("order-changes", skein.QueueOptions[orderRow]{
				Shards: 3, Merge: merge, Codec: skein.JSONCodec[orderRow]{Canonical: true},
				Score: func(o orderRow) float64 { return float64(o.Version) },
			})

			var mu sync.Mutex
			seen := map[string][]orderRow{}
			stop := kit.Serve(t, skein.NewServer(store, skein.ServerOptions{Lanes: 4},
				changes.Handler(func(_ context.Context, id string, versions []orderRow) error {
					mu.Lock()
					defer mu.Unlock()
					seen[id] = append(seen[id], versions...)
					return nil
				})))
			defer stop()
			await(t, func() bool {
				queues, err := store.Queues(t.Context())
				return err == nil && len(queues) == 2
			})

			pool := v.ownTables(v.in(strings.ReplaceAll(trigger, "skein.", "%s.")))
			_, err := pool.Exec(t.Context(), v.in(strings.ReplaceAll(push, "skein.", "%s.")))
			must(t, err)
			const ids, sessions, rounds = 4, 4, 25
			_, err = pool.Exec(t.Context(), `INSERT INTO orders SELECT n, 'new' FROM generate_series(1, $1) n`, ids)
			must(t, err)
			var all sync.WaitGroup
			for s := range sessions {
				all.Go(func() {
					for round := range rounds {
						tx, err := pool.Begin(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						_, err = tx.Exec(t.Context(), `UPDATE orders SET state = $1 WHERE id = $2`,
							fmt.Sprint(s, round), 1+(s+round)%ids)
						if err != nil {
							t.Error(err)
						}
						if end := tx.Commit; round%5 != 4 {
							err = end(t.Context())
						} else {
							err = tx.Rollback(t.Context())
						}
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()

			rows, err := pool.Query(t.Context(), `SELECT id, state, version FROM orders`)
			must(t, err)
			orders, err := pgx.CollectRows(rows, pgx.RowToStructByPos[orderRow])
			must(t, err)
			for _, o := range orders {
				await(t, func() bool {
					mu.Lock()
					defer mu.Unlock()
					list := seen[fmt.Sprint(o.ID)]
					return len(list) > 0 && list[len(list)-1] == o
				})
				mu.Lock()
				list := seen[fmt.Sprint(o.ID)]
				for i := 1; i < len(list); i++ {
					if next := list[i].Version - list[i-1].Version; next < 1 || merge == skein.Union() && next != 1 {
						t.Errorf("order %d: version %d came after %d", o.ID, list[i].Version, list[i-1].Version)
					}
				}
				mu.Unlock()
			}
		})
	}
}

// The grants of the page are enough for its push.
func TestPostgresSQLGrantsOfTheGuide(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
	must(t, useOnce(t.Context(), pool, postgres.DefaultSchema))
	grants, push, _ := sqlOfThePage(t)
	kit.Exec(t, pool, `CREATE ROLE shop LOGIN; `+grants)
	shop := kit.PoolLike(t, pool, func(c *pgxpool.Config) { c.ConnConfig.User = "shop" })
	_, err := shop.Exec(t.Context(), push)
	must(t, err)
}

// await waits for a condition.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	// On a slow machine this takes longer.
	for deadline := time.Now().Add(testservers.Patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it has not happened after %v", testservers.Patience)
		}
	}
}

// ownTables returns a pool whose unqualified names are in a schema of its own, and runs statements
// there.
func (v *viewed) ownTables(statements string) *pgxpool.Pool {
	v.t.Helper()
	schema := testservers.Schema(v.t, v.pool)
	pool := kit.PoolLike(v.t, v.pool, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize()
	})
	kit.Exec(v.t, pool, statements)
	return pool
}

// BenchmarkPostgresSQLPushes changes a row in each transaction, ten at a time: without a trigger, with
// the trigger of the guide, with one that writes an outbox table, and with a push of Go instead of a
// trigger. An outbox table has still to be read and emptied.
func BenchmarkPostgresSQLPushes(b *testing.B) {
	pool := testservers.OwnPostgres(b)
	must(b, postgres.Migrate(b.Context(), pool, postgres.MigrateOptions{}))
	store := postgres.New(pool, postgres.Options{})
	changes := skein.NewQueue("order-changes", skein.QueueOptions[orderRow]{
		Codec: skein.JSONCodec[orderRow]{Canonical: true},
	})
	must(b, changes.Push(b.Context(), skein.NewClient(store, skein.ClientOptions{}), "0", orderRow{}))

	_, _, trigger := sqlOfThePage(b)
	const outbox = `CREATE TABLE outbox (
  place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text, payload jsonb, version bigint
);
CREATE TABLE orders (id bigint PRIMARY KEY, state text NOT NULL, version bigint NOT NULL DEFAULT 1);
CREATE FUNCTION keep_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO outbox (id, payload, version) VALUES (NEW.id::text, to_jsonb(NEW), NEW.version);
  RETURN NEW;
END $$;
CREATE TRIGGER keep_order BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION keep_order()`
	const plain = `CREATE TABLE orders (id bigint PRIMARY KEY, state text NOT NULL, version bigint NOT NULL DEFAULT 1)`

	for _, way := range []struct {
		name, tables string
		push         bool
	}{{"plain", plain, false}, {"trigger", trigger, false}, {"outbox", outbox, false}, {"go", plain, true}} {
		b.Run(way.name, func(b *testing.B) {
			kit.Exec(b, pool, `DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop`)
			own := kit.PoolLike(b, pool, func(c *pgxpool.Config) {
				c.ConnConfig.RuntimeParams["search_path"] = "shop"
				c.MaxConns = 10
			})
			kit.Exec(b, own, `TRUNCATE skein.inbox; `+way.tables)
			kit.Exec(b, own, `INSERT INTO orders SELECT n, 'new' FROM generate_series(1, 10000) n`)

			var turn atomic.Int64
			b.SetParallelism(10 / runtime.GOMAXPROCS(0))
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					n := turn.Add(1)
					row := orderRow{ID: 1 + n%10000, State: fmt.Sprint(n)}
					err := pgx.BeginFunc(b.Context(), own, func(tx pgx.Tx) error {
						_, err := tx.Exec(b.Context(), `UPDATE orders SET state = $1 WHERE id = $2`, row.State, row.ID)
						if err != nil || !way.push {
							return err
						}
						client := skein.NewClient(store.Tx(tx), skein.ClientOptions{})
						return changes.Push(b.Context(), client, fmt.Sprint(row.ID), row)
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
