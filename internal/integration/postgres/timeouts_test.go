package postgres_test

import (
	"context"
	"errors"
	"strings"
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

// The error of a statement that a timeout ends names the setting, also in a caller's transaction.
// A check that ran out of time asks for time and not for rights.
func TestPostgresAStatementTimeoutIsNamed(t *testing.T) {
	t.Parallel()
	pool := testservers.Postgres(t)
	schema := testservers.Schema(t, pool)
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}))
	hurried := kit.PoolLike(t, pool, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["statement_timeout"] = "500ms"
	})
	store := postgres.New(hurried, postgres.Options{Schema: schema, NoWakeups: true})
	_, err := postgres.New(pool, postgres.Options{Schema: schema, NoWakeups: true}).Declare(t.Context(),
		ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	must(t, pgx.BeginFunc(t.Context(), pool, func(holds pgx.Tx) error {
		if _, err := holds.Exec(t.Context(), `LOCK TABLE `+schema+`.inbox IN ACCESS EXCLUSIVE MODE`); err != nil {
			return err
		}
		_ = pgx.BeginFunc(t.Context(), hurried, func(tx pgx.Tx) error {
			err := pushOn(t.Context(), store.Tx(tx), "a")
			if err == nil || !strings.Contains(err.Error(), "raise statement_timeout") {
				t.Errorf("a push in a transaction: %v; want an error that names statement_timeout", err)
			}
			return err
		})
		checks, err := store.Check(t.Context())
		must(t, err)
		for _, c := range checks {
			if c.Name != "inbox" {
				continue
			}
			if c.Status != ports.CheckUnknown || !strings.Contains(c.Advice, "statement_timeout") ||
				strings.Contains(c.Advice, "grant") {
				t.Errorf("a check that is cancelled: %+v; want advice on statement_timeout", c)
			}
		}
		_, err = holds.Exec(t.Context(), `LOCK TABLE `+schema+`.migrations IN ACCESS EXCLUSIVE MODE`)
		must(t, err)
		checks, err = postgres.New(hurried, postgres.Options{Schema: schema}).Check(t.Context())
		if err != nil || len(checks) != 1 || checks[0].Name != "answers" ||
			!strings.Contains(checks[0].Advice, "statement_timeout") {
			t.Errorf("a store whose first look is cancelled: %+v, %v", checks, err)
		}
		return nil
	}))
}

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
				traced := kit.PoolLike(t, pool, func(c *pgxpool.Config) {
					c.ConnConfig.Tracer, c.MaxConns = timeouts, 1
				})
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
					t.Errorf("the call gave %v after %d lock timeouts, want nil after the first",
						err, timeouts.count.Load())
				}
			})
		}
	}
}
