package integration_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
)

// A setting of a DBA's that changes how functions are read changes nothing of what they do.
func TestPostgresTurnsUnderADBAsSettings(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"standard_conforming_strings": "off", "plpgsql.extra_errors": "all"} {
		t.Run(name, func(t *testing.T) {
			w := newWorkbench(t, time.Minute)
			pool := poolLike(t, w.pool, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams[name] = value })
			w.store = postgres.New(pool, postgres.Options{Schema: w.schema, NoWakeups: true})
			must(t, w.store.Ping(t.Context()))
			must(t, w.push(w.store, "a", "b"))
			w.acquire("o")
			claims := w.next(1).Claims
			r := w.turn
			r.Number, r.Want = 1, 1
			if _, err := w.store.Turn(t.Context(), r); err != nil {
				t.Errorf("a repeat of a turn whose reply was lost: %v", err)
			}
			r.Number, r.Settlements = 2, []core.Settlement{failed(claims[0])}
			if _, err := w.store.Turn(t.Context(), r); err != nil {
				t.Errorf("a turn that puts a failed job back: %v", err)
			}
			found, err := w.store.Find(t.Context(), "orders", claims[0].ID)
			if err != nil || found.Queued == nil {
				t.Errorf("Find = %+v, %v; want the job queued again", found, err)
			}
		})
	}
}

// A table that somebody else has made in the schema is none of the store's, and needs no rights.
func TestPostgresPingAsksForItsOwnTablesOnly(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
	execAll(t, pool, `CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA skein TO app; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA skein TO app;
		CREATE TABLE skein.users_own (x int)`)
	app := postgres.New(poolLike(t, pool, func(c *pgxpool.Config) { c.ConnConfig.User = "app" }), postgres.Options{NoWakeups: true})
	must(t, app.Ping(t.Context()))
	execAll(t, pool, `REVOKE DELETE ON skein.dead_groups FROM app`)
	if err := app.Ping(t.Context()); err == nil {
		t.Error("Ping is content without a right on a table of the store's")
	}
}
