package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// dbasSettings are a role's settings, and the name in the error if they don't fit.
type dbasSettings struct {
	name    string
	set     []string
	refused string
	// late is set if the setting is refused only when a call needs what it forbids.
	late bool
}

var dbasTable = []dbasSettings{
	{name: "what values look like", set: []string{
		"bytea_output = escape", "DateStyle = 'German, DMY'", "IntervalStyle = sql_standard",
		"TimeZone = 'Asia/Kathmandu'", "extra_float_digits = -15",
		"array_nulls = off", "transform_null_equals = on", "standard_conforming_strings = off", "backslash_quote = off",
		"escape_string_warning = off",
		"quote_all_identifiers = on"}},
	{name: "how it is planned", set: []string{
		"plan_cache_mode = force_generic_plan", "work_mem = '64kB'", "join_collapse_limit = 1",
		"from_collapse_limit = 1", "jit = on", "cursor_tuple_fraction = 1"}},
	{name: "how rows and functions are guarded", set: []string{
		"row_security = off", "session_replication_role = replica", "synchronous_commit = off",
		"default_transaction_deferrable = on",
		"check_function_bodies = on", "plpgsql.variable_conflict = use_variable", "plpgsql.extra_errors = 'all'"}},
	{name: "how long it may take", set: []string{
		"statement_timeout = '10min'", "lock_timeout = '1ms'", "idle_in_transaction_session_timeout = '10min'"}},
	{name: "another schema before ours", set: []string{"search_path = trap, public"}},
	{name: "the server's own before another schema", set: []string{"search_path = pg_catalog, trap"}},
	{name: "no schema", set: []string{"search_path = nowhere", "temp_file_limit = 0"}},
	{name: "another schema before the server's", set: []string{"search_path = trap, pg_catalog"}, refused: "search_path"},
	{
		name:    "another schema before the server's, which is last of many",
		set:     []string{"search_path = public, trap, pg_catalog"},
		refused: "search_path",
	},
	{name: "a stricter isolation", set: []string{"default_transaction_isolation = serializable"}, refused: "default_transaction_isolation"},
	{name: "no writing", set: []string{"default_transaction_read_only = on"}, refused: "default_transaction_read_only"},
	{name: "another encoding", set: []string{"client_encoding = latin1"}, refused: "client_encoding"},
	{name: "too little time", set: []string{"statement_timeout = '1ms'"}, refused: "statement_timeout", late: true},
	{name: "too little room for sorts", set: []string{"work_mem = '64kB'", "temp_file_limit = 0"}, refused: "temp_file_limit", late: true},
}

// trap makes a schema with objects that have names of the store's or of the server's objects, but
// do something else.
const trap = `
CREATE SCHEMA trap;
CREATE TABLE trap.jobs (x int); CREATE TABLE trap.queues (x int); CREATE TABLE trap.inbox (x int); CREATE TABLE trap.pg_class (x int);
CREATE TYPE trap.leases AS (x int); CREATE DOMAIN trap.text AS pg_catalog.int4;
CREATE FUNCTION trap.clock(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 7::bigint';
CREATE FUNCTION trap.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT pg_catalog.to_timestamp(7)';
CREATE FUNCTION trap.current_setting(pg_catalog.text) RETURNS pg_catalog.text LANGUAGE sql AS $$SELECT 'UTF8'::pg_catalog.text$$;
CREATE FUNCTION trap.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT NULL::bytea';
CREATE FUNCTION trap.never(pg_catalog.text, pg_catalog.text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR trap.= (LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text, FUNCTION = trap.never);
CREATE OPERATOR trap.<> (LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text, FUNCTION = trap.never);
GRANT USAGE ON SCHEMA trap TO PUBLIC`

// A setting that a DBA gives a role or a database either changes no stored and shown data, or is
// refused by its name, and, unless it forbids only some calls, before anything is stored.
func TestPostgresUnderADBAsSettings(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	kit.Exec(t, pool, trap)
	want, err := tellStory(t.Context(), pool, "plain")
	must(t, err)
	for i, tt := range dbasTable {
		role := fmt.Sprint("role_", i)
		// Not in parallel: of two grants on one database at once the server refuses one, as "tuple
		// concurrently updated".
		kit.Exec(t, pool, fmt.Sprintf(
			`CREATE ROLE %[1]s LOGIN; GRANT CREATE ON DATABASE postgres TO %[1]s; GRANT pg_monitor TO %[1]s`, role,
		))
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			as := func(c *pgxpool.Config) { c.ConnConfig.User = role }
			if tt.refused != "" {
				must(t, postgres.Migrate(t.Context(), kit.PoolLike(t, pool, as), postgres.MigrateOptions{Schema: role}))
			}
			for _, set := range tt.set {
				kit.Exec(t, pool, fmt.Sprintf(`ALTER ROLE %s SET %s`, role, set))
			}
			seen, err := tellStory(t.Context(), kit.PoolLike(t, pool, as), role)
			if tt.refused == "" {
				must(t, err)
				if diff := cmp.Diff(want, seen); diff != "" {
					t.Errorf("it differs (-without +with):\n%s", diff)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.refused) || errors.Is(err, ports.ErrFull) {
				t.Errorf("got %v, want an error that names %s", err, tt.refused)
			}
			var stored int
			must(t,
				pool.QueryRow(t.Context(),
					fmt.Sprintf(`SELECT (SELECT count(*) FROM %[1]s.jobs) + (SELECT count(*) FROM %[1]s.inbox) + (SELECT count(*) FROM %[1]s.queues)`,
						role)).Scan(&stored))
			if stored > 0 && !tt.late {
				t.Errorf("%d rows are stored", stored)
			}
		})
	}
	t.Run("another schema before the server's, in the caller's transaction", func(t *testing.T) {
		t.Parallel()
		store := postgres.New(pool, postgres.Options{Schema: "plain", NoWakeups: true})
		must(t, store.Ping(t.Context()))
		trapped := kit.PoolLike(t, pool, func(c *pgxpool.Config) {
			c.ConnConfig.RuntimeParams["search_path"] = "trap, pg_catalog"
		})
		must(t, pgx.BeginFunc(t.Context(), trapped, func(tx pgx.Tx) error {
			kit.Unusable(t, "Push", pushOn(t.Context(), store.Tx(tx), "a"), "search_path")
			kit.Unusable(t, "Settle", store.Tx(tx).Settle(t.Context(), core.Shard{Queue: "orders"},
				[]core.Settlement{{ID: "a", Processed: true}}),
				"search_path")
			return nil
		}))
		for _, path := range []string{"pg_catalog", "pg_catalog, trap", "trap", "pg_catalog, pg_temp, trap"} {
			fitting := kit.PoolLike(t, pool, func(c *pgxpool.Config) {
				c.ConnConfig.RuntimeParams["search_path"] = path
			})
			must(t, pgx.BeginFunc(t.Context(), fitting, func(tx pgx.Tx) error {
				return pushOn(t.Context(), store.Tx(tx), "a")
			}))
		}
		must(t, postgres.Migrate(t.Context(), trapped, postgres.MigrateOptions{Schema: "made_trapped"}))
		must(t, useOnce(t.Context(), pool, "made_trapped"))
		kit.Unusable(t, "Ping", postgres.New(trapped, postgres.Options{Schema: "plain"}).Ping(t.Context()),
			"search_path")
	})
}

// Ping requires rights to the store's own tables, and not to another table in the schema.
func TestPostgresPingAsksForItsOwnTablesOnly(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
	kit.Exec(t, pool,
		`CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA skein TO app; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA skein TO app;
		CREATE TABLE skein.users_own (x int)`)
	app := postgres.New(kit.PoolLike(t, pool, func(c *pgxpool.Config) { c.ConnConfig.User = "app" }),
		postgres.Options{NoWakeups: true})
	must(t, app.Ping(t.Context()))
	kit.Exec(t, pool, `REVOKE DELETE ON skein.dead_groups FROM app`)
	if err := app.Ping(t.Context()); err == nil {
		t.Error("Ping returned no error without a right to a table of the store")
	}
}
