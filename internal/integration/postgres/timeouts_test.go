package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
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
	hurried := kit.PoolLike(t, pool, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["statement_timeout"] = "500ms" })
	store := postgres.New(hurried, postgres.Options{Schema: schema, NoWakeups: true})
	_, err := postgres.New(pool, postgres.Options{Schema: schema, NoWakeups: true}).Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
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
			if c.Status != ports.CheckUnknown || !strings.Contains(c.Advice, "statement_timeout") || strings.Contains(c.Advice, "grant") {
				t.Errorf("a check that is cancelled: %+v; want advice on statement_timeout", c)
			}
		}
		_, err = holds.Exec(t.Context(), `LOCK TABLE `+schema+`.migrations IN ACCESS EXCLUSIVE MODE`)
		must(t, err)
		checks, err = postgres.New(hurried, postgres.Options{Schema: schema}).Check(t.Context())
		if err != nil || len(checks) != 1 || checks[0].Name != "answers" || !strings.Contains(checks[0].Advice, "statement_timeout") {
			t.Errorf("a store whose first look is cancelled: %+v, %v", checks, err)
		}
		return nil
	}))
}
