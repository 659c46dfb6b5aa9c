package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// A store reports an error that waiting does not cure at once, with its cure, also in a caller's
// transaction.
func TestPostgresSaysWhatNoWaitingCures(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Exec(t, pool,
		`CREATE ROLE known LOGIN PASSWORD 'secret'; CREATE ROLE weak LOGIN; GRANT USAGE ON SCHEMA skein TO weak;
		GRANT SELECT ON skein.migrations TO weak; CREATE ROLE shut LOGIN`)
	kit.Exec(t, pool, `CREATE DATABASE bare`)
	letIn(t, pool, "host all known all scram-sha-256", "host all shut all reject", "host all all all trust")
	tests := []struct {
		name    string
		connect func(*pgx.ConnConfig)
		schema  string
		says    string
	}{
		{"wrong password", as("known", "guessed"), "", "correct the role and the password"},
		{"no password", as("known", ""), "", "correct the role and the password"},
		{"no such role", as("unknown", ""), "", "correct the role and the password"},
		{"a role that is not let in", as("shut", ""), "", "pg_hba.conf"},
		{"no rights to the tables", as("weak", ""), "", "grant the role the rights"},
		{"no database", func(c *pgx.ConnConfig) { c.Database = "gone" }, "", "create the database"},
		{"no schema", func(c *pgx.ConnConfig) { c.Database = "bare" }, "", "postgres.Migrate"},
		{"another schema", nil, "other", "postgres.Migrate"},
		{"a schema name that is too long", nil, strings.Repeat("x", 64), "choose another"},
		{"a schema name that is Postgres' own", nil, "pg_skein", "choose another"},
		{"a schema name that is no text", nil, "a\xff", "choose another"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			change := tt.connect
			if change == nil {
				change = func(*pgx.ConnConfig) {}
			}
			tries := &attempts{}
			other := kit.PoolLike(t, pool, func(c *pgxpool.Config) {
				change(c.ConnConfig)
				c.ConnConfig.Tracer = tries
			})
			store := postgres.New(other, postgres.Options{Schema: tt.schema, NoWakeups: true})
			_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
			kit.Unusable(t, "Declare", err, tt.says)
			_, err = store.Heads(t.Context(), []core.Shard{{Queue: "orders"}})
			kit.Unusable(t, "Heads", err, tt.says)
			if n := tries.failed.Load(); n > 2 {
				t.Errorf("two calls failed in %d connects and statements; what no waiting cures is not to be repeated",
					n)
			}
			kit.Unusable(t, "a call in a transaction", pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				if tt.connect != nil {
					return err // the caller's transaction has a connection that works
				}
				_, err := store.Tx(tx).Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
				return err
			}), tt.says)
		})
	}
}

// attempts counts the connects and the statements of a pool that fail.
type attempts struct{ failed atomic.Int64 }

func (a *attempts) note(err error) {
	if err != nil {
		a.failed.Add(1)
	}
}

func (*attempts) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (a *attempts) TraceQueryEnd(_ context.Context, _ *pgx.Conn, d pgx.TraceQueryEndData) {
	a.note(d.Err)
}

func (*attempts) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return ctx
}

func (a *attempts) TraceConnectEnd(_ context.Context, d pgx.TraceConnectEndData) { a.note(d.Err) }

func as(user, password string) func(*pgx.ConnConfig) {
	return func(c *pgx.ConnConfig) { c.User, c.Password = user, password }
}

// letIn has the server let roles in by these lines alone.
func letIn(t *testing.T, pool *pgxpool.Pool, lines ...string) {
	t.Helper()
	var file string
	if err := pool.QueryRow(t.Context(), "SHOW hba_file").Scan(&file); err != nil {
		t.Fatal(err)
	}
	kit.Exec(t, pool, fmt.Sprintf("COPY (SELECT unnest(ARRAY['%s'])) TO '%s'; SELECT pg_reload_conf()",
		strings.Join(lines, "', '"), file))
	for end := time.Now().Add(testservers.Patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		refused, err := pgx.ConnectConfig(t.Context(), shutOut(pool))
		if err != nil {
			return
		}
		_ = refused.Close(t.Context())
	}
	t.Fatal("the server still lets every role in")
}

func shutOut(pool *pgxpool.Pool) *pgx.ConnConfig {
	c := pool.Config().ConnConfig
	c.User = "shut"
	return c
}

// Migrate reports such errors too.
func TestPostgresMigrateSaysWhatNoWaitingCures(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	kit.Exec(t, pool, `CREATE ROLE weak LOGIN`)
	for name, tt := range map[string]struct {
		connect func(*pgx.ConnConfig)
		schema  string
		says    string
	}{
		"no rights":         {as("weak", ""), "", "rights"},
		"no database":       {func(c *pgx.ConnConfig) { c.Database = "gone" }, "", "create the database"},
		"a reserved schema": {func(*pgx.ConnConfig) {}, "pg_skein", "choose another"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := kit.PoolLike(t, pool, func(c *pgxpool.Config) { tt.connect(c.ConnConfig) })
			kit.Unusable(t, "Migrate",
				postgres.Migrate(t.Context(), other, postgres.MigrateOptions{Schema: tt.schema}), tt.says)
		})
	}
}
