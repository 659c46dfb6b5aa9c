package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Version n of the schema is what the files migrations/000n_*.up.sql make, in order
// of name, and 000n_*.down.sql unmake.
//
//go:embed migrations/*.sql
var migrations embed.FS

// version is one step of the schema.
type version struct{ up, down string }

var versions = sync.OnceValue(func() []version {
	// The files are embedded: they are there, and in order of name.
	names, _ := fs.Glob(migrations, "migrations/*.sql")
	slices.Sort(names)
	var all []version
	for _, name := range names {
		text, _ := migrations.ReadFile(name)
		var n int
		if _, err := fmt.Sscanf(name, "migrations/%04d_", &n); err != nil || n < 1 {
			continue
		}
		for len(all) < n {
			all = append(all, version{})
		}
		if strings.HasSuffix(name, ".down.sql") {
			all[n-1].down += string(text)
		} else {
			all[n-1].up += string(text)
		}
	}
	return all
})

// MigrateOptions say what to migrate. The zero value brings the default schema to
// the newest version.
type MigrateOptions struct {
	// Schema is the store's Options.Schema. It is made if it is not there.
	Schema string
	// To is the version to end at, upwards or downwards. 0 is the newest this
	// program knows; Unmigrate is for going down to nothing.
	To int
}

// Migrate brings a schema to a version, in one transaction. Calls at once wait
// for one another; a schema that has the version already is left alone. The
// role must be allowed to create the schema, or own it; others need only the
// rights of docs/postgres.md to use it.
func Migrate(ctx context.Context, pool *pgxpool.Pool, o MigrateOptions) error {
	to := o.To
	if to == 0 {
		to = len(versions())
	}
	return migrate(ctx, pool, o.Schema, to)
}

// Unmigrate removes all that Migrate made, with the data, and the schema itself if
// nothing else is in it.
func Unmigrate(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	return migrate(ctx, pool, schema, 0)
}

func migrate(ctx context.Context, pool *pgxpool.Pool, schema string, to int) error {
	if to < 0 || to > len(versions()) {
		return fmt.Errorf("postgres: %w: there is no version %d; this program knows 1 to %d", errSchema, to, len(versions()))
	}
	if err := checkName(schema); err != nil {
		return err
	}
	return attempt(ctx, always, func(ctx context.Context) error { return migrateOnce(ctx, pool, schema, to) })
}

// migrateOnce may be repeated: it looks at what is there.
func migrateOnce(ctx context.Context, pool *pgxpool.Pool, schema string, to int) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, "skein migrates "+quoted(schema)); err != nil {
			return err
		}
		from, err := versionOf(ctx, tx, schema)
		if err != nil {
			return err
		}
		if from > len(versions()) {
			return fmt.Errorf("postgres: %w: it has version %d, this program knows %d; update the program", errSchema, from, len(versions()))
		}
		// Many statements without arguments go in one exchange.
		_, err = tx.Conn().PgConn().Exec(ctx, MigrationSQL(schema, from, to)).ReadAll()
		return err
	})
}

// versionOf is the version a schema has; 0 if it or its tables are not there.
func versionOf(ctx context.Context, tx pgx.Tx, schema string) (int, error) {
	var there bool
	if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, quoted(schema)+".migrations").Scan(&there); err != nil || !there {
		return 0, err
	}
	var v int
	err := tx.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM `+quoted(schema)+`.migrations`).Scan(&v)
	return v, err
}

// MigrationSQL is the SQL that brings a schema from one version to another, upwards
// or downwards, for tools that run migrations themselves: in one transaction, and
// not beside Migrate. Version 0 is nothing; NewestVersion is this program's. Equal
// or unknown versions need nothing and give an empty text.
func MigrationSQL(schema string, from, to int) string {
	all := versions()
	if min(from, to) < 0 || max(from, to) > len(all) {
		return ""
	}
	var b strings.Builder
	if from == 0 && to > 0 {
		b.WriteString(createMigrations)
	}
	for n := from; n < to; n++ {
		fmt.Fprintf(&b, "%s\nINSERT INTO {schema}.migrations (version) VALUES (%d);\n", all[n].up, n+1)
	}
	for n := from; n > to; n-- {
		fmt.Fprintf(&b, "%s\nDELETE FROM {schema}.migrations WHERE version = %d;\n", all[n-1].down, n)
	}
	if from > 0 && to == 0 {
		b.WriteString(dropMigrations)
	}
	return expand(b.String(), schema)
}

// NewestVersion is the version of the schema that this program needs.
func NewestVersion() int { return len(versions()) }

const createMigrations = `CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.migrations (version int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
`

// dropMigrations leaves a schema that holds something else.
const dropMigrations = `DROP TABLE {schema}.migrations;
DO {$} BEGIN
  DROP SCHEMA {schema};
EXCEPTION WHEN dependent_objects_still_exist OR insufficient_privilege THEN
  NULL;
END {$};
`

// expand puts a schema's name into SQL, with a dollar quote that it does not have.
func expand(text, schema string) string {
	name, quote := quoted(schema), "$skein$"
	for strings.Contains(name, quote) {
		quote = quote[:len(quote)-1] + "_$"
	}
	return strings.NewReplacer("{schema}", name, "{$}", quote).Replace(text)
}
