package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/internal/integration/testservers"
)

// A reader of \d+ or \df+ finds a comment on every table, view, type and function.
func TestPostgresSchemaExplainsItself(t *testing.T) {
	pool := testservers.Postgres(t)
	schema := testservers.Schema(t, pool)
	if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	const commentsSQL = `
SELECT c.relname::text, coalesce(obj_description(c.oid, 'pg_class'), '') FROM pg_class c
WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'v')
UNION ALL
SELECT t.typname::text, coalesce(obj_description(t.oid, 'pg_type'), '') FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
WHERE t.typnamespace = to_regnamespace($1) AND (t.typtype = 'e' OR c.relkind = 'c')
UNION ALL
SELECT p.proname, coalesce(obj_description(p.oid, 'pg_proc'), '') FROM pg_proc p WHERE p.pronamespace = to_regnamespace($1)`
	rows, err := pool.Query(t.Context(), commentsSQL, schema)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	var name, comment string
	_, err = pgx.ForEachRow(rows, []any{&name, &comment}, func() error {
		comments[name] = comment
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"jobs", "leases", "turn", "reply"} {
		if _, ok := comments[name]; !ok {
			t.Errorf("the schema has no %s", name)
		}
	}
	for name, comment := range comments {
		if len(strings.Fields(comment)) < 3 {
			t.Errorf("%s has the comment %q", name, comment)
		}
	}
}

// Functions are created without a check of their bodies, which may name objects that are created
// later. Here the server checks them all.
func TestPostgresFunctionsAreValid(t *testing.T) {
	pool := testservers.Postgres(t)
	schema := testservers.Schema(t, pool)
	if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	rows, err := pool.Query(t.Context(), `
SELECT p.proname::text, l.lanname::text, p.oid FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.pronamespace = to_regnamespace($1)`, schema)
	if err != nil {
		t.Fatal(err)
	}
	type function struct {
		Name, Language string
		OID            uint32
	}
	functions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[function])
	if err != nil || len(functions) == 0 {
		t.Fatal("no functions", err)
	}
	validators := map[string]string{"sql": "fmgr_sql_validator", "plpgsql": "plpgsql_validator"}
	for _, f := range functions {
		if _, err := pool.Exec(t.Context(), `SELECT `+validators[f.Language]+`($1)`, f.OID); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}
