package postgres_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/conformance"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

func TestPostgresConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, newSchemas(t, testservers.Postgres(t)).factory)
}

// schemas gives backends a schema each, and an emptied one again to a later backend. A schema has a
// pool of its own: a session plans the statements of each schema that it meets, which takes longer
// than most cases, so each session meets one schema only. When a table is made, each session
// searches all its plans. So the sessions that make tables are closed after use and have no plans.
type schemas struct {
	t     testing.TB
	pool  *pgxpool.Pool
	maker *pgxpool.Pool

	mu   sync.Mutex
	free []schema
}

// schema is a schema, and a pool for it alone.
type schema struct {
	name string
	pool *pgxpool.Pool
}

func newSchemas(t testing.TB, pool *pgxpool.Pool) *schemas {
	return &schemas{
		t:    t,
		pool: pool,
		maker: kit.PoolLike(t, pool, func(c *pgxpool.Config) {
			c.AfterRelease = func(*pgx.Conn) bool { return false }
		}),
	}
}

// factory is a conformance.Factory.
func (s *schemas) factory(t testing.TB, clock func() time.Time) func() ports.ShardStore {
	own := s.take()
	t.Cleanup(func() { s.giveBack(own) })
	return func() ports.ShardStore {
		return opensTx{postgres.New(own.pool, postgres.Options{Schema: own.name, Clock: clock}), own.pool}
	}
}

func (s *schemas) take() schema {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.free) - 1; last >= 0 {
		own := s.free[last]
		s.free = s.free[:last]
		return own
	}
	own := schema{"suite_" + strings.ToLower(rand.Text()[:13]), kit.PoolLike(s.t, s.pool, func(*pgxpool.Config) {})}
	s.insist(func(ctx context.Context) error {
		return postgres.Migrate(ctx, s.maker, postgres.MigrateOptions{Schema: own.name})
	})
	s.t.Cleanup(func() {
		s.insist(func(ctx context.Context) error {
			_, err := s.maker.Exec(ctx, "DROP SCHEMA IF EXISTS "+own.name+" CASCADE")
			return err
		})
	})
	return own
}

func (s *schemas) giveBack(own schema) {
	s.insist(func(ctx context.Context) error { return empty(ctx, own.pool, own.name) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, own)
}

// insist repeats a function up to 20 times until it succeeds, since its connection may be cut.
func (s *schemas) insist(do func(context.Context) error) {
	var err error
	for range 20 {
		if err = do(context.Background()); err == nil {
			return
		}
	}
	s.t.Error(err)
}

// empty deletes all rows of a backend, except those of Migrate. A TRUNCATE would make the sessions'
// plans invalid.
func empty(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	rows, err := pool.Query(ctx, `SELECT tablename FROM pg_tables WHERE schemaname = $1
		AND tablename NOT IN ('migrations', 'identity') ORDER BY tablename = 'queues'`, schema)
	if err != nil {
		return err
	}
	var (
		text strings.Builder
		name string
	)
	for rows.Next() {
		if err := rows.Scan(&name); err != nil {
			return err
		}
		fmt.Fprintf(&text, "DELETE FROM %s.%s;", schema, name)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	_, err = conn.Conn().PgConn().Exec(ctx, text.String()).ReadAll()
	return err
}

// The suite passes while a random connection is ended ten times a second.
func TestPostgresCutConformance(t *testing.T) {
	tier.Long(t, "runs the suite while connections are cut")
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	testservers.ChaosPostgres(t, pool, 100*time.Millisecond)
	conformance.RunDisturbed(t, newSchemas(t, pool).factory)
}

// opensTx is a store for which the suite opens callers' transactions as well.
type opensTx struct {
	*postgres.Store
	pool *pgxpool.Pool
}

var _ conformance.Transactor = opensTx{}

// Begin implements conformance.Transactor.
func (s opensTx) Begin(ctx context.Context) (conformance.Transaction, error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return callersTx{s.Tx(tx), tx}, nil
}

type callersTx struct {
	*postgres.Tx
	tx pgx.Tx
}

func (t callersTx) Commit(ctx context.Context) error { return t.tx.Commit(ctx) }
