package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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

// strangeSchema is a name that breaks code which does not quote it.
const strangeSchema = `Skein's "own" $skein$ schema; --`

func TestPostgresMigratesAnySchemaForwardAndBack(t *testing.T) {
	pool := testservers.Postgres(t)
	for _, schema := range []string{"", "plain_schema", strangeSchema} {
		t.Run(schema, func(t *testing.T) {
			o := postgres.MigrateOptions{Schema: schema}
			t.Cleanup(func() { _ = postgres.Unmigrate(context.Background(), pool, schema) })
			steps := []struct {
				name string
				do   func() error
			}{
				{"up", func() error { return postgres.Migrate(t.Context(), pool, o) }},
				{"up again", func() error { return postgres.Migrate(t.Context(), pool, o) }},
				{"use", func() error { return useOnce(t.Context(), pool, schema) }},
				{"back to 1", func() error {
					return postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema, To: 1})
				}},
				{"up from 1", func() error { return postgres.Migrate(t.Context(), pool, o) }},
				{"use again", func() error { return useOnce(t.Context(), pool, schema) }},
				{"down", func() error { return postgres.Unmigrate(t.Context(), pool, schema) }},
			}
			for _, step := range steps {
				if err := step.do(); err != nil {
					t.Fatalf("%s: %v", step.name, err)
				}
			}
			if left := namespaces(t, pool, schema); left != 0 {
				t.Error("the schema is still there after the last step down")
			}
		})
	}
}

// useOnce declares a queue, pushes a job, claims it and settles it, and uses a schedule.
func useOnce(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	store := postgres.New(pool, postgres.Options{Schema: schema, NoWakeups: true})
	if _, err := store.Declare(ctx, ports.DeclareRequest{Queue: "orders", Shards: 1}); err != nil {
		return err
	}
	entries := []core.Entry{{ID: "a", Payload: core.Payload{Data: []byte("x")}}}
	if _, err := store.Push(ctx, ports.PushRequest{
		Queue: "orders", Shards: 1, Generation: 1, Entries: entries,
	}); err != nil {
		return err
	}
	shard := core.Shard{Queue: "orders"}
	owner := fmt.Sprint("owner at ", time.Now().UnixNano())
	a, err := store.Acquire(ctx,
		ports.AcquireRequest{Shard: shard, Shards: 1, Generation: 1, Owner: owner, Attempt: 1, TTL: time.Minute})
	if err != nil {
		return err
	}
	turn := ports.TurnRequest{
		Lease: ports.Lease{Shard: shard, Owner: owner, Token: a.Token}, Number: 1, TTL: time.Minute, Want: 1,
	}
	reply, err := store.Turn(ctx, turn)
	if err != nil {
		return err
	}
	if len(reply.Claims) != 1 {
		return fmt.Errorf("claimed %d jobs, want 1", len(reply.Claims))
	}
	turn.Number++
	turn.Settlements = []core.Settlement{{ID: "a", Receipt: reply.Claims[0].Receipt, Processed: true}}
	if reply, err = store.Turn(ctx, turn); err != nil {
		return err
	}
	if len(reply.Skipped) > 0 {
		return errors.New("the settlement was skipped")
	}
	if err := useSchedule(ctx, store); err != nil {
		return err
	}
	return store.Release(ctx, turn.Lease)
}

// useSchedule creates a schedule, lists it and removes it.
func useSchedule(ctx context.Context, store *postgres.Store) error {
	change := firing("a", "nightly", 0)
	change.Entries = nil // callers count the jobs
	if _, err := store.ChangeSchedules(ctx, changing(change)); err != nil {
		return err
	}
	ticks, err := store.Ticks(ctx, ports.TicksRequest{Shards: core.Shards("orders", 1), Limit: 1})
	if err != nil {
		return err
	}
	page, err := store.Schedules(ctx, ports.SchedulesRequest{Queue: "orders"})
	if err != nil {
		return err
	}
	names, err := store.ScheduleNames(ctx, ports.ScheduleNamesRequest{Queue: "orders"})
	if err != nil {
		return err
	}
	if len(ticks.Shards[0].Due) != 1 || len(page.Schedules) != 1 || len(names.Names) != 1 {
		return fmt.Errorf("of one schedule %d are due, %d are listed, and %d names",
			len(ticks.Shards[0].Due), len(page.Schedules), len(names.Names))
	}
	removal := ports.ScheduleChange{ScheduleKey: page.Schedules[0].ScheduleKey, Revision: ports.AnyRevision}
	reply, err := store.ChangeSchedules(ctx, changing(removal))
	if err == nil && reply.Results[0] != ports.ScheduleChanged {
		err = errors.New("the schedule was not removed")
	}
	return err
}

func namespaces(t *testing.T, pool *pgxpool.Pool, schema string) (n int) {
	t.Helper()
	if schema == "" {
		schema = postgres.DefaultSchema
	}
	if err := pool.QueryRow(
		t.Context(), `SELECT count(*) FROM pg_namespace WHERE nspname = $1`, schema,
	).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPostgresMigratesOnceHoweverManyAsk(t *testing.T) {
	pool := testservers.Postgres(t)
	schema := testservers.Schema(t, pool)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := useOnce(t.Context(), pool, schema); err != nil {
		t.Error(err)
	}
}

func TestPostgresSaysWhatToDoAboutASchema(t *testing.T) {
	pool := testservers.Postgres(t)
	tests := []struct {
		name    string
		prepare string
		want    string
	}{
		{"that is missing", `DROP SCHEMA {schema} CASCADE; CREATE SCHEMA {schema}`, `run "skein migrate up" or postgres.Migrate`},
		{"that is older", `DELETE FROM {schema}.migrations`, `run "skein migrate up" or postgres.Migrate`},
		{"that is too new", `INSERT INTO {schema}.migrations (version, oldest) VALUES (1000, 999)`, "update the program"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			schema := testservers.Schema(t, pool)
			if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}); err != nil {
				t.Fatal(err)
			}
			kit.Exec(t, pool, strings.ReplaceAll(tt.prepare, "{schema}", schema))
			err := useOnce(t.Context(), pool, schema)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), schema) {
				t.Errorf("the first call gave %v; it should name the schema and say: %s", err, tt.want)
			}
		})
	}
	t.Run("that Migrate does not know", func(t *testing.T) {
		schema := testservers.Schema(t, pool)
		if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}); err != nil {
			t.Fatal(err)
		}
		kit.Exec(t, pool, `INSERT INTO `+schema+`.migrations (version, oldest) VALUES (1000, 1000)`)
		if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}); err == nil {
			t.Error("Migrate gave no error")
		}
	})
}

// After a new program has migrated the schema, an old one still starts, migrates and works, if the
// new version allows it.
func TestPostgresOldProgramsUseANewerSchema(t *testing.T) {
	pool := testservers.Postgres(t)
	schema := testservers.Schema(t, pool)
	o := postgres.MigrateOptions{Schema: schema}
	if err := postgres.Migrate(t.Context(), pool, o); err != nil {
		t.Fatal(err)
	}
	kit.Exec(t, pool, fmt.Sprintf(`INSERT INTO %s.migrations (version, oldest) VALUES (%d, %d)`,
		schema, postgres.NewestVersion()+1, postgres.NewestVersion()))
	if err := postgres.Migrate(t.Context(), pool, o); err != nil {
		t.Errorf("Migrate of an old program: %v", err)
	}
	if err := useOnce(t.Context(), pool, schema); err != nil {
		t.Error(err)
	}
	if err := postgres.New(pool, postgres.Options{Schema: schema}).Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	o.To = postgres.NewestVersion()
	kit.Unusable(t, "Migrate down from a version that is not known", postgres.Migrate(t.Context(), pool, o),
		"update the program")
}

// The SQL for other tools creates the same objects as Migrate.
func TestPostgresMigrationSQLIsWhatMigrateRuns(t *testing.T) {
	pool := testservers.Postgres(t)
	schema := testservers.Schema(t, pool)
	for v := range postgres.NewestVersion() {
		kit.Exec(t, pool, "BEGIN;"+postgres.MigrationSQL(schema, v, v+1)+"COMMIT")
	}
	if err := useOnce(t.Context(), pool, schema); err != nil {
		t.Error(err)
	}
	kit.Exec(t, pool, "BEGIN;"+postgres.MigrationSQL(schema, postgres.NewestVersion(), 0)+"COMMIT")
	if namespaces(t, pool, schema) != 0 {
		t.Error("the schema is still there after the last step down")
	}
	kit.Exec(t, pool, "CREATE SCHEMA "+schema) // which the clean-up drops
}

// A role that may create nothing uses the schema that another has migrated, with the rights of
// docs/operations/postgres.md.
func TestPostgresNeedsNoRightToCreate(t *testing.T) {
	pool := testservers.Postgres(t)
	schema := testservers.Schema(t, pool)
	if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	role := "role_of_" + schema
	kit.Exec(t, pool, strings.NewReplacer("{schema}", schema, "{role}", role).Replace(`CREATE ROLE {role} LOGIN;
		GRANT USAGE ON SCHEMA {schema} TO {role};
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}`))
	t.Cleanup(func() {
		_, _ = pool.Exec(context.Background(), "DROP OWNED BY "+role)
		_, _ = pool.Exec(context.Background(), "DROP ROLE "+role)
	})
	config := pool.Config()
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SET ROLE "+role)
		return err
	}
	limited, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer limited.Close()
	if err := useOnce(t.Context(), limited, schema); err != nil {
		t.Error(err)
	}
}

// Behind PgBouncer statements can't stay prepared, and each transaction may have another session.
// Here each has a new one.
func TestPostgresWorksWithoutSessions(t *testing.T) {
	t.Parallel()
	pool := testservers.Postgres(t)
	schema := testservers.Schema(t, pool)
	if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			config := pool.Config()
			config.ConnConfig.DefaultQueryExecMode = mode
			config.AfterRelease = func(*pgx.Conn) bool { return false }
			fresh, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer fresh.Close()
			if err := useOnce(t.Context(), fresh, schema); err != nil {
				t.Error(err)
			}
		})
	}
}
