package postgres_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// lockTimeouts counts the statements that the server ended because they waited too long for a
// lock, and calls after with each.
type lockTimeouts struct {
	count atomic.Int64
	after func()
}

func (l *lockTimeouts) met(err error) {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" {
		l.count.Add(1)
		l.after()
	}
}

func (l *lockTimeouts) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (l *lockTimeouts) TraceQueryEnd(_ context.Context, _ *pgx.Conn, d pgx.TraceQueryEndData) {
	l.met(d.Err)
}

// While another session holds a table, each wait of a call ends by lock_timeout. The call succeeds
// once the table is free. Both hold on a connection that has made the call before and on a new one.
func TestPostgresACallWaitsForATableByLockTimeouts(t *testing.T) {
	t.Parallel()
	pool := testservers.Postgres(t)
	calls := map[string]struct {
		table string
		call  func(context.Context, *postgres.Store) error
	}{
		"push of one entry":              {"jobs", func(ctx context.Context, s *postgres.Store) error { return pushOn(ctx, s, "a") }},
		"push of one entry, queues held": {"queues", func(ctx context.Context, s *postgres.Store) error { return pushOn(ctx, s, "a") }},
		"push of two entries":            {"jobs", func(ctx context.Context, s *postgres.Store) error { return pushOn(ctx, s, "a", "b") }},
		"pause":                          {"shards", func(ctx context.Context, s *postgres.Store) error { return s.Pause(ctx, "orders") }},
	}
	for name, tt := range calls {
		for _, warm := range []bool{false, true} {
			t.Run(name+map[bool]string{false: ", new connection", true: ", used connection"}[warm], func(t *testing.T) {
				t.Parallel()
				schema := testservers.Schema(t, pool)
				must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}))
				holder, err := pool.Begin(t.Context())
				must(t, err)
				defer func() { _ = holder.Rollback(context.WithoutCancel(t.Context())) }()
				timeouts := &lockTimeouts{after: func() { _ = holder.Rollback(context.WithoutCancel(t.Context())) }}
				traced := kit.PoolLike(t, pool, func(c *pgxpool.Config) { c.ConnConfig.Tracer, c.MaxConns = timeouts, 1 })
				store := postgres.New(traced, postgres.Options{Schema: schema, NoWakeups: true})
				_, err = store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
				must(t, err)
				if warm {
					must(t, tt.call(t.Context(), store))
				} else {
					traced.Reset()
				}
				_, err = holder.Exec(t.Context(), `LOCK TABLE `+schema+`.`+tt.table+` IN ACCESS EXCLUSIVE MODE`)
				must(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				if err := tt.call(ctx, store); err != nil || timeouts.count.Load() == 0 {
					t.Errorf("the call gave %v after %d lock timeouts, want nil after the first", err, timeouts.count.Load())
				}
			})
		}
	}
}
