package testservers

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ChaosPostgres ends a random connection to the pool's server once in each interval, also one of
// another program, until the test ends. So the server must be the test's own. On a busy machine it
// ends fewer. It fails the test if no connection was ended.
func ChaosPostgres(t testing.TB, pool *pgxpool.Pool, interval time.Duration) {
	t.Helper()
	disturb(t, interval, func(ctx context.Context) (int64, error) {
		killer, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
		if err != nil {
			return 0, err
		}
		defer killer.Close(ctx)
		return terminate(ctx, killer)
	})
}

// terminate ends one of the other clients' connections, if there is any.
func terminate(ctx context.Context, killer *pgx.Conn) (ended int64, err error) {
	tag, err := killer.Exec(ctx, `
		SELECT pg_terminate_backend(pid) FROM (
			SELECT pid FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
			ORDER BY random() LIMIT 1
		) victim`)
	return tag.RowsAffected(), err
}
