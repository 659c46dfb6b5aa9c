package kit

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/internal/integration/testservers"
)

// Exec executes statements, which may be several.
func Exec(t testing.TB, pool *pgxpool.Pool, statements string) {
	t.Helper()
	err := pool.AcquireFunc(t.Context(), func(c *pgxpool.Conn) error {
		_, err := c.Conn().PgConn().Exec(t.Context(), statements).ReadAll()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// PoolLike is another pool on a pool's server.
func PoolLike(t testing.TB, pool *pgxpool.Pool, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config := pool.Config()
	change(config)
	other, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	return other
}

// PoolOf is a pool on the servers of a URL.
func PoolOf(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), url)
	Must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// NewPostgres returns a store in a schema of its own.
func NewPostgres(t testing.TB, pool *pgxpool.Pool) *postgres.Store {
	t.Helper()
	schema := testservers.Schema(t, pool)
	if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	return postgres.New(pool, postgres.Options{Schema: schema})
}
