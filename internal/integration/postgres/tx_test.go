package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/conformance"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// doer is a transaction of whatever kind.
type doer struct {
	*postgres.Tx
	exec func(statement string, args ...any) error
}

// transactor runs f in a transaction, which commits unless f fails.
type transactor func(ctx context.Context, s *postgres.Store, f func(doer) error) error

// transactors are the kinds of transactions on a pool's database. A driver that
// sends all values as text, as lib/pq does, is pgx's with its simple protocol.
func transactors(t testing.TB, pool *pgxpool.Pool) map[string]transactor {
	t.Helper()
	config := pool.Config().ConnConfig
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	plain, textual := stdlib.OpenDBFromPool(pool), stdlib.OpenDB(*config)
	t.Cleanup(func() {
		plain.Close()
		textual.Close()
	})
	return map[string]transactor{
		"pgx":         pgxTransactor(pool),
		"sql":         sqlTransactor(plain),
		"sql as text": sqlTransactor(textual),
	}
}

func pgxTransactor(pool *pgxpool.Pool) transactor {
	return func(ctx context.Context, s *postgres.Store, f func(doer) error) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			return f(doer{s.Tx(tx), func(statement string, args ...any) error {
				_, err := tx.Exec(ctx, statement, args...)
				return err
			}})
		})
	}
}

func sqlTransactor(db *sql.DB) transactor {
	return func(ctx context.Context, s *postgres.Store, f func(doer) error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		err = f(doer{s.SQLTx(tx), func(statement string, args ...any) error {
			_, err := tx.ExecContext(ctx, statement, args...)
			return err
		}})
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	}
}

// throughTx is a store that pushes and settles in transactions, each of which
// commits at once.
type throughTx struct {
	*postgres.Store
	within transactor
}

var _ ports.Settler = throughTx{}

func (s throughTx) Push(ctx context.Context, r ports.PushRequest) (reply ports.PushReply, err error) {
	err = s.within(ctx, s.Store, func(tx doer) (err error) {
		reply, err = tx.Push(ctx, r)
		return err
	})
	return reply, err
}

func (s throughTx) Declare(ctx context.Context, r ports.DeclareRequest) (reply ports.DeclareReply, err error) {
	err = s.within(ctx, s.Store, func(tx doer) (err error) {
		reply, err = tx.Declare(ctx, r)
		return err
	})
	return reply, err
}

func (s throughTx) Settle(ctx context.Context, shard core.Shard, settle []core.Settlement) error {
	return s.within(ctx, s.Store, func(tx doer) error { return tx.Settle(ctx, shard, settle) })
}

func (s throughTx) SettlePayload(ctx context.Context, shard core.Shard, p core.PayloadSettlement) error {
	return s.within(ctx, s.Store, func(tx doer) error { return tx.SettlePayload(ctx, shard, p) })
}

// Pushes and settlements in transactions follow the rules.
func TestPostgresTransactionsConformance(t *testing.T) {
	tier.Long(t, "runs the suite through transactions")
	t.Parallel()
	pool := testservers.Postgres(t)
	backends, within := newSchemas(t, pool), pgxTransactor(pool)
	conformance.Run(t, func(t testing.TB, clock func() time.Time) func() ports.ShardStore {
		open := backends.factory(t, clock)
		return func() ports.ShardStore { return throughTx{open().(opensTx).Store, within} }
	})
}

var errRollBack = errors.New("roll back")

// A push in a transaction is visible once the transaction has committed, and never if it rolls
// back.
func TestPostgresPushIsVisibleWhenItsTransactionCommits(t *testing.T) {
	pool := testservers.Postgres(t)
	store := kit.NewPostgres(t, pool)
	inspector := inspect.New(store, inspect.Options{})
	queue := skein.NewQueue("orders", skein.QueueOptions[string]{})
	client := skein.NewClient(store, skein.ClientOptions{})
	queued := func() int64 {
		stats, err := inspector.Stats(t.Context(), "orders")
		if err != nil && !errors.Is(err, inspect.ErrUnknownQueue) {
			t.Fatal(err)
		}
		if err != nil {
			return 0
		}
		return stats[0].Fresh
	}
	want := int64(0)
	for name, within := range transactors(t, pool) {
		for _, end := range []error{errRollBack, nil} {
			err := within(t.Context(), store, func(tx doer) error {
				if err := queue.Push(t.Context(), client.Via(tx), "order of "+name, "x"); err != nil {
					return err
				}
				if n := queued(); n != want {
					t.Errorf("%s: %d jobs are seen while the transaction is open, want %d", name, n, want)
				}
				return end
			})
			if !errors.Is(err, end) {
				t.Fatal(err)
			}
			if end == nil {
				want++
			}
			if n := queued(); n != want {
				t.Errorf("%s, ended with %v: %d jobs, want %d", name, end, n, want)
			}
		}
	}
}

// A handler's effect and its settlement commit together or not at all.
func TestPostgresHandlerSettlesInItsTransaction(t *testing.T) {
	t.Parallel()
	pool := testservers.Postgres(t)
	store := kit.NewPostgres(t, pool)
	schema := testservers.Schema(t, pool)
	if _, err := pool.Exec(t.Context(), "CREATE TABLE "+schema+".effects (id text)"); err != nil {
		t.Fatal(err)
	}
	queue := skein.NewQueue("orders", skein.QueueOptions[string]{MaxRetries: 3, Backoff: func(int) time.Duration {
		return 0
	}})
	client := skein.NewClient(store, skein.ClientOptions{})
	for name, within := range transactors(t, pool) {
		for _, end := range []error{nil, errRollBack} {
			id, tries := name, 0
			if end != nil {
				id += ", rolled back first"
			}
			if err := queue.Push(t.Context(), client, id, "x"); err != nil {
				t.Fatal(err)
			}
			h := queue.Handler(func(ctx context.Context, id string, _ []string) error {
				tries++
				err := within(ctx, store, func(tx doer) error {
					err := errors.Join(skein.SettleIn(ctx, tx),
						tx.exec("INSERT INTO "+schema+".effects VALUES ($1)", id))
					if tries == 1 && err == nil {
						err = end
					}
					return err
				})
				if errors.Is(err, errRollBack) {
					return nil // as if the handler ignored the error
				}
				return err
			})
			if _, err := skein.NewServer(store, skein.ServerOptions{}, h).RunDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			var effects int
			if err := pool.QueryRow(
				t.Context(), "SELECT count(*) FROM "+schema+".effects WHERE id = $1", id,
			).Scan(&effects); err != nil {
				t.Fatal(err)
			}
			wantTries := 1
			if end != nil {
				wantTries = 2
			}
			if effects != 1 || tries != wantTries {
				t.Errorf("%s: %d effects of %d tries, want 1 of %d", id, effects, tries, wantTries)
			}
		}
	}
	stats, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	if err != nil {
		t.Fatal(err)
	}
	if c := stats[0].Counts; c.Processed != 6 || c.Failed != 3 || c.Fresh+c.Retrying+c.Claimed != 0 {
		t.Errorf("counts %+v; want 6 processed and 3 failed", c)
	}
}

// A caller can find the driver's error in the returned one, for example to repeat a transaction
// after a serialization failure.
func TestPostgresTransactionKeepsTheDriversError(t *testing.T) {
	pool := testservers.Postgres(t)
	store := kit.NewPostgres(t, pool)
	for name, within := range transactors(t, pool) {
		err := within(t.Context(), store, func(tx doer) error {
			_ = tx.exec("SELECT 1/0")
			_, err := tx.Push(t.Context(),
				ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{{ID: "a"}}})
			return err
		})
		var coded interface{ SQLState() string }
		var failed *ports.PushError
		if !errors.As(err, &coded) || coded.SQLState() != "25P02" || !errors.As(err, &failed) ||
			len(failed.Entries) != 1 {
			t.Errorf("%s: %v; want a *PushError around SQLSTATE 25P02, an aborted transaction", name, err)
		}
	}
}

// pushes records the events of a client's Observer.
type pushes struct {
	ports.NopObserver
	events []ports.PushEvent
}

func (p *pushes) Pushed(_ context.Context, e ports.PushEvent) { p.events = append(p.events, e) }

// For a push in a transaction that rolls back, the Observer gets no counts of what it met, so that
// it does not count as stored.
func TestAPushInATransactionIsNotToldAsStored(t *testing.T) {
	t.Parallel()
	pool := testservers.Postgres(t)
	store, seen := kit.NewPostgres(t, pool), &pushes{}
	client := skein.NewClient(store, skein.ClientOptions{Observer: seen})
	q := skein.NewQueue("orders", skein.QueueOptions[string]{})
	rolledBack := errors.New("rolled back")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		must(t, q.Push(t.Context(), client.Via(store.Tx(tx)), "a", "x"))
		return rolledBack
	})
	if !errors.Is(err, rolledBack) || len(seen.events) != 1 {
		t.Fatalf("%v, %d events", err, len(seen.events))
	}
	if e := seen.events[0]; e.Err != nil || e.Entries != 1 || e.New+e.Merged+e.Duplicate != 0 {
		t.Errorf("the Observer is told %+v", e)
	}
}

// A push in a transaction that has ended, or that has a failed statement, is refused with the
// reason, whether or not the store has been used before: it is known that nothing is stored.
func TestAPushInATransactionThatHasEndedIsRefused(t *testing.T) {
	t.Parallel()
	pool := testservers.Postgres(t)
	q := skein.NewQueue("orders", skein.QueueOptions[string]{})
	for _, used := range []bool{false, true} {
		for name, transact := range transactors(t, pool) {
			store := kit.NewPostgres(t, pool)
			client := skein.NewClient(store, skein.ClientOptions{})
			if used {
				must(t, q.Push(t.Context(), client, "a", "x"))
			}
			var late doer
			must(t, transact(t.Context(), store, func(d doer) error { late = d; return nil }))
			refusedInTx(t, name, q.Push(t.Context(), client.Via(late.Tx), "a", "x"),
				"the transaction has ended; push and settle in it before")
			failed := errors.New("rolled back")
			err := transact(t.Context(), store, func(d doer) error {
				if d.exec("SELECT 1/0") == nil {
					t.Error("it can be divided by 0")
				}
				refusedInTx(t, name, q.Push(t.Context(), client.Via(d.Tx), "a", "x"),
					"a statement before this one has failed")
				return failed
			})
			if !errors.Is(err, failed) {
				t.Error(err)
			}
		}
	}
}

// refusedInTx checks that an error is of a push that is known to have stored nothing, and contains
// the reason.
func refusedInTx(t *testing.T, name string, err error, why string) {
	t.Helper()
	if !errors.Is(err, ports.ErrInvalidRequest) || !strings.Contains(err.Error(), why) ||
		strings.Contains(err.Error(), "not known") ||
		strings.Contains(err.Error(), "migrate") {
		t.Errorf("%s: Push = %v, want ErrInvalidRequest with %q", name, err, why)
	}
}
