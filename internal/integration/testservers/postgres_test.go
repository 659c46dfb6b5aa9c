package testservers_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

func TestPostgresKeepsSchemasApart(t *testing.T) {
	t.Parallel()
	for name, pool := range map[string]*pgxpool.Pool{
		"shared": testservers.Postgres(t), "own": testservers.OwnPostgres(t),
	} {
		t.Run(name, func(t *testing.T) {
			exists := func(schema string) (yes bool) {
				if err := pool.QueryRow(
					t.Context(),
					"SELECT to_regclass($1) IS NOT NULL",
					schema+".things",
				).Scan(&yes); err != nil {
					t.Fatal(err)
				}
				return yes
			}
			fill := func(schema string) {
				if _, err := pool.Exec(t.Context(), "CREATE TABLE "+schema+".things (id int)"); err != nil {
					t.Fatal(err)
				}
			}

			var theirs string
			ours := testservers.Schema(t, pool)
			fill(ours)

			t.Run("another test", func(t *testing.T) {
				theirs = testservers.Schema(t, pool)
				if exists(theirs) {
					t.Error("a fresh schema has a table")
				}
				fill(theirs)
			})

			if exists(theirs) || !exists(ours) {
				t.Errorf("a test that has ended has tables: %t; one that runs: %t", exists(theirs), exists(ours))
			}
		})
	}
}

func TestOwnPostgresIsConfiguredAsItComes(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t, "max_connections=17")

	for name, want := range map[string]string{
		"fsync":              "on",
		"synchronous_commit": "on",
		"full_page_writes":   "on",
		"shared_buffers":     "128MB",
		"max_connections":    "17",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestChaosPostgresEndsConnections(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	testservers.ChaosPostgres(t, pool, 20*time.Millisecond)
	until(t, "an idle connection is ended", func(ctx context.Context) bool { return conn.Ping(ctx) != nil })
}

// A standby has and shows what its primary has acknowledged, refuses to write, and writes once it
// is promoted.
func TestPostgresStandbyTakesThePrimarysPlace(t *testing.T) {
	tier.Long(t, "waits for a failover")
	t.Parallel()
	pair := testservers.PostgresWithStandby(t)
	count := func(pool *pgxpool.Pool) (n int) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM things`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}

	both, err := pgxpool.New(t.Context(), pair.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	if _, err := both.Exec(t.Context(), `CREATE TABLE things AS SELECT generate_series(1, 10)`); err != nil {
		t.Fatal(err)
	}

	if n := count(pair.Standby); n != 10 {
		t.Errorf("the standby shows %d rows, want 10", n)
	}
	if _, err := pair.Standby.Exec(t.Context(), `DELETE FROM things`); err == nil {
		t.Error("the standby writes")
	}

	pair.KillPrimary()
	pair.Promote(t)
	until(t, "a write after the promotion", func(ctx context.Context) bool {
		_, err := both.Exec(ctx, `INSERT INTO things VALUES (11)`)
		return err == nil
	})

	if n := count(pair.Standby); n != 11 {
		t.Errorf("the promoted standby has %d rows, want 11", n)
	}
}
