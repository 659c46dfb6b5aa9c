package testservers

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ChaosPostgres ends a random connection to the pool's server at that interval,
// whoever it belongs to, until the test ends: so the server must be the test's
// own. It fails the test if nothing was ever ended.
func ChaosPostgres(t testing.TB, pool *pgxpool.Pool, interval time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	killer, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	var ended atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				n, err := terminate(ctx, killer)
				if err != nil && ctx.Err() == nil {
					t.Errorf("end a connection: %v", err)
					return
				}
				ended.Add(n)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = killer.Close(context.Background())
		if ended.Load() == 0 {
			t.Error("ChaosPostgres has not ended a single connection")
		}
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
