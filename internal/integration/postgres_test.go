package integration_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/conformance"
	"github.com/skeinq/skein/internal/testservers"
	"github.com/skeinq/skein/ports"
)

// postgresFactory makes each backend in a schema of its own.
func postgresFactory(pool *pgxpool.Pool) conformance.Factory {
	return func(t testing.TB, clock func() time.Time) func() ports.ShardStore {
		schema := testservers.Schema(t, pool)
		if err := postgres.Migrate(context.Background(), pool, postgres.MigrateOptions{Schema: schema}); err != nil {
			t.Fatal(err)
		}
		return func() ports.ShardStore { return postgres.New(pool, postgres.Options{Schema: schema, Clock: clock}) }
	}
}

func TestPostgresConformance(t *testing.T) {
	conformance.Run(t, postgresFactory(testservers.Postgres(t)))
}
