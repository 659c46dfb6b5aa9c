package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// Settings under which the store would be wrong or slow are refused by their name.
func TestPostgresRefusesSettingsThatDoNotFit(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	kit.Exec(t, pool, `CREATE DATABASE ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`)
	for _, isolation := range []string{"repeatable read", "serializable"} {
		strict := kit.PoolLike(t, pool, func(c *pgxpool.Config) {
			c.ConnConfig.RuntimeParams["default_transaction_isolation"] = isolation
		})
		if err := postgres.Migrate(t.Context(), strict, postgres.MigrateOptions{}); err != nil {
			t.Errorf("Migrate at %s, which sets its own: %v", isolation, err)
		}
		store := postgres.New(strict, postgres.Options{NoWakeups: true})
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
		kit.Unusable(t, "Declare", err, "default_transaction_isolation")
		kit.Unusable(t, "Ping", store.Ping(t.Context()), "default_transaction_isolation")
	}
	latin := kit.PoolLike(t, pool, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["client_encoding"] = "latin1" })
	store := postgres.New(latin, postgres.Options{NoWakeups: true})
	_, err := store.Push(t.Context(),
		ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entriesOf("Größe")})
	kit.Unusable(t, "Push", err, "client_encoding")
	kit.Unusable(t, "Ping", store.Ping(t.Context()), "client_encoding")
	well := postgres.New(pool, postgres.Options{NoWakeups: true})
	_, err = well.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	must(t, pgx.BeginFunc(t.Context(), latin, func(tx pgx.Tx) error { // the caller's own pool, and not the store's
		_, err := well.Tx(tx).Push(t.Context(),
			ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entriesOf("Größe")})
		kit.Unusable(t, "Push in a transaction", err, "client_encoding")
		err = well.Tx(tx).Settle(t.Context(), core.Shard{Queue: "orders"},
			[]core.Settlement{{ID: "Größe", Processed: true}})
		kit.Unusable(t, "Settle in a transaction", err, "client_encoding")
		return nil
	}))
	ascii := kit.PoolLike(t, pool, func(c *pgxpool.Config) { c.ConnConfig.Database = "ascii" })
	kit.Unusable(t, "Migrate", postgres.Migrate(t.Context(), ascii, postgres.MigrateOptions{}), "SQL_ASCII")
	_, err = postgres.New(ascii, postgres.Options{NoWakeups: true}).Declare(t.Context(),
		ports.DeclareRequest{Queue: "orders", Shards: 1})
	kit.Unusable(t, "Declare", err, "SQL_ASCII")
}

// A primary that has become a standby keeps its connections, and refuses to write. New ones find
// the new primary: here sessions that began while they could only read never write.
func TestPostgresFindsThePrimaryAgain(t *testing.T) {
	tier.Long(t, "waits for a failover")
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Exec(t, pool, `ALTER ROLE ALL SET default_transaction_read_only = on`)
	stale := kit.PoolLike(t, pool, func(c *pgxpool.Config) { c.MinConns = 4 })
	store := postgres.New(stale, postgres.Options{NoWakeups: true})
	for n := 0; n < 4; n = int(stale.Stat().IdleConns()) { // all begin now
		if _, err := store.Queues(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := store.Declare(short, ports.DeclareRequest{Queue: "orders", Shards: 1})
	if err == nil || errors.Is(err, ports.ErrUnusable) {
		t.Errorf("Declare on a server that only reads: %v; want an error that passes", err)
	}
	kit.Exec(t, pool, `BEGIN READ WRITE; ALTER ROLE ALL RESET default_transaction_read_only; COMMIT`)
	if err := useOnce(t.Context(), stale, postgres.DefaultSchema); err != nil {
		t.Errorf("once there is a server that writes: %v", err)
	}
}

// When a read-only server refuses a call, the store replaces its connections, but not for each such
// call.
func TestPostgresLooksForThePrimaryNowAndThen(t *testing.T) {
	tier.Long(t, "waits for a failover")
	t.Parallel()
	const callers = 8
	pool := testservers.OwnPostgres(t, "fsync=off")
	if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	var made atomic.Int64
	reader := kit.PoolLike(t, pool, func(c *pgxpool.Config) {
		c.MaxConns = callers
		c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
		c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { made.Add(1); return nil }
	})
	store := postgres.New(reader, postgres.Options{NoWakeups: true})
	short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var calling sync.WaitGroup
	for range callers {
		calling.Go(func() {
			for short.Err() == nil {
				_, _ = store.Declare(short, ports.DeclareRequest{Queue: "orders", Shards: 1})
			}
		})
	}
	calling.Wait()
	if n := made.Load(); n > 4*callers { // at first, and after each of at most three resets
		t.Errorf("%d callers had %d connections made within 2 s", callers, n)
	}
}

// While the first call waits for the server, others end with their contexts.
func TestPostgresTheFirstCallHeedsItsContext(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) // or the pool waits for it
	if _, err := tx.Exec(t.Context(), `LOCK TABLE skein.migrations IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	store := postgres.New(pool, postgres.Options{NoWakeups: true})
	first, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := store.Queues(first)
		done <- err
	}()
	for n := 0; n == 0; { // until the first waits
		if err := pool.QueryRow(
			t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`,
		).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	began := time.Now()
	if _, err := store.Queues(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second call: %v, want its deadline", err)
	}
	// A call that ignores its context takes minutes, which even a slow machine does not need.
	if took := time.Since(began); took > testservers.Patience/2 {
		t.Errorf("the second call took %v, with 50ms to go", took)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the first call: %v, want context.Canceled", err)
	}
}

// A push, a declaration or a pause that waits for a lock gives up by itself, so that it does not
// keep a connection as long as its caller waits.
func TestPostgresCallsWaitForLocksOnlySoLong(t *testing.T) {
	tier.Long(t, "waits for locks")
	t.Parallel()
	g := newGuarded(t)
	g.push(g.store, core.When{}, "a")
	g.lockRows("jobs", "a")
	g.lock("SELECT FROM " + g.schema + ".shards FOR UPDATE")
	g.lock("LOCK TABLE " + g.schema + ".queues IN SHARE ROW EXCLUSIVE MODE")
	calls := map[string]func() error{
		"Push": func() error {
			_, err := g.store.Push(t.Context(),
				ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entriesOf("a")})
			return err
		},
		"Pause": func() error { return g.store.Pause(t.Context(), "orders") },
		"Declare": func() error {
			_, err := g.store.Declare(t.Context(), ports.DeclareRequest{Queue: "more", Shards: 1})
			return err
		},
	}
	for name, do := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := do(); err == nil || !strings.Contains(err.Error(), "lock timeout") {
				t.Errorf("got %v, want a lock timeout", err)
			}
		})
	}
}
