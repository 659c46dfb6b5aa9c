package postgres_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// A role that may only select, and a read-only server such as a hot standby, show everything
// except pushes of transactions that are not merged yet.
func TestPostgresCanBeLookedAtByThoseWhoOnlyRead(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := useOnce(t.Context(), pool, postgres.DefaultSchema); err != nil {
		t.Fatal(err)
	}
	writer := postgres.New(pool, postgres.Options{NoWakeups: true})
	entries := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entriesOf("there")}
	if _, err := writer.Push(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		entries.Entries = entriesOf("waits")
		_, err := writer.Tx(tx).Push(t.Context(), entries)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	kit.Exec(t, pool,
		`CREATE ROLE watcher LOGIN; GRANT USAGE ON SCHEMA skein TO watcher; GRANT SELECT ON ALL TABLES IN SCHEMA skein TO watcher`)
	lookers := map[string]func(*pgxpool.Config){
		"a role that may select": func(c *pgxpool.Config) { c.ConnConfig.User = "watcher" },
		"a server that only reads": func(c *pgxpool.Config) {
			c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
		},
	}
	for name, change := range lookers {
		t.Run(name, func(t *testing.T) {
			looksAround(t, postgres.New(kit.PoolLike(t, pool, change), postgres.Options{NoWakeups: true}), 1)
		})
	}
	looksAround(t, writer, 2)
}

// looksAround makes the read-only calls, and checks the number of queued jobs.
func looksAround(t *testing.T, store *postgres.Store, jobs int64) {
	t.Helper()
	ctx, page := t.Context(), ports.PageRequest{Queue: "orders", Payloads: 1}
	stats, err := store.Stats(ctx, ports.StatsRequest{Queues: []string{"orders"}})
	if err != nil {
		t.Fatal(err)
	}
	if stats[0].Fresh != jobs || stats[0].Processed != 1 {
		t.Errorf("%d fresh and %d processed jobs, want %d and 1", stats[0].Fresh, stats[0].Processed, jobs)
	}
	listed, err := store.Jobs(ctx, ports.JobsRequest{PageRequest: page})
	if err != nil || int64(len(listed.Jobs)) != jobs {
		t.Errorf("%d jobs are listed (%v), want %d", len(listed.Jobs), err, jobs)
	}
	found, err := store.Find(ctx, ports.FindRequest{Queue: "orders", ID: "there", Payloads: 1000})
	if err != nil || found.Queued == nil {
		t.Errorf("Find gave %+v (%v), want the job", found, err)
	}
	settled, _, err := inspect.New(store, inspect.Options{}).Settled(ctx, "orders", "waits", time.Time{})
	if err != nil || settled {
		t.Errorf("an id whose push waits in the inbox is settled: %v (%v), want false", settled, err)
	}
	for call, look := range map[string]func(context.Context) error{
		"Queues":  func(ctx context.Context) error { _, err := store.Queues(ctx); return err },
		"Nodes":   func(ctx context.Context) error { _, err := store.Nodes(ctx); return err },
		"Claimed": func(ctx context.Context) error { _, err := store.Claimed(ctx, page); return err },
		"Morgue": func(ctx context.Context) error {
			_, err := store.Morgue(ctx, ports.MorgueRequest{PageRequest: page})
			return err
		},
		"History": func(ctx context.Context) error {
			_, err := store.History(ctx, ports.HistoryRequest{Queue: "orders"})
			return err
		},
	} {
		if diff := cmp.Diff(nil, look(ctx)); diff != "" {
			t.Errorf("%s: %s", call, diff)
		}
	}
}

// The page for the DBA gives roles rights that hold for tables which a later migration makes, and
// its queries run.
func TestPostgresPageForTheDBA(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/operations/postgres-dba.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```sql\n")[1:]
	if len(blocks) != 4 {
		t.Fatalf("the page has %d blocks of SQL, want 4: roles, present tables, queries and lost rows", len(blocks))
	}
	roles, _, _ := strings.Cut(blocks[0], "```")
	presentTables, _, _ := strings.Cut(blocks[1], "```")
	queries, _, _ := strings.Cut(blocks[2], "```")
	pool := testservers.OwnPostgres(t, "fsync=off")
	as := func(user string) *pgxpool.Pool {
		return kit.PoolLike(t, pool, func(c *pgxpool.Config) { c.ConnConfig.User = user })
	}
	kit.Exec(t, pool, `CREATE ROLE migrator LOGIN; CREATE ROLE app LOGIN; CREATE ROLE watcher LOGIN`)
	kit.Exec(t, pool, roles)
	kit.Exec(t, pool, `CREATE TABLE skein.mine (id int)`) // keeps the schema
	for range 2 {
		if err := postgres.Migrate(t.Context(), as("migrator"), postgres.MigrateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := useOnce(t.Context(), as("app"), postgres.DefaultSchema); err != nil {
			t.Error(err)
		}
		if _, err := postgres.New(as("watcher"), postgres.Options{}).Stats(t.Context(), ports.StatsRequest{
			Queues: []string{"orders"},
		}); err != nil {
			t.Error(err)
		}
		kit.Exec(t, pool, presentTables)
		kit.Exec(t, pool, queries)
		kit.Exec(t, pool, lostRowsStatement(t))
		for row := range strings.Lines(string(page)) {
			if _, query, found := strings.Cut(row, "`SELECT count"); found {
				query, _, _ = strings.Cut(query, "`")
				kit.Exec(t, pool, "SELECT count"+query)
			}
		}
		if err := postgres.Unmigrate(t.Context(), as("migrator"), ""); err != nil {
			t.Fatal(err)
		}
	}
}

func entriesOf(id string) []core.Entry {
	return []core.Entry{{ID: id, Payload: core.Payload{Data: []byte("for " + id)}}}
}
