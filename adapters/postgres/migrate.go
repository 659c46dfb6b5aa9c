package postgres

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/ports"
)

// The files under migrations/000n make version n of the schema, one object in each file. down.sql
// there removes it again. A file begins with a comment on its object, which becomes the object's
// comment in the schema: see commentOn.
//
//go:embed migrations
var migrations embed.FS

// stages are the directories of a version's files, in the order in which they run. Rows are the
// types of rows that functions return, made of the columns of tables. A stage may have folders,
// which only help readers: its files run in order of name, whatever their folder. Bodies of
// functions are not checked when the functions are created, so they may name functions and views
// that come later.
var stages = [...]string{"enums", "types", "tables", "rows", "functions", "views"}

// version is one step of the schema.
type version struct {
	up, down string
	// oldest is the oldest schema version that a program must support to use this version. It lets old
	// programs still start while new ones are rolled out: a version that only adds objects that old
	// programs don't touch names theirs.
	oldest int
}

// oldestOf is the oldest of each version.
var oldestOf = [...]int{1}

var versions = sync.OnceValue(func() []version {
	var all []version
	for n := 1; ; n++ {
		dir := fmt.Sprintf("migrations/%04d", n)
		down, err := migrations.ReadFile(dir + "/down.sql")
		if err != nil {
			return all
		}
		all = append(all, version{up: readUp(dir), down: string(down), oldest: oldestOf[n-1]})
	}
})

// readUp returns the SQL that creates a version.
func readUp(dir string) string {
	var b strings.Builder
	b.WriteString("SET LOCAL check_function_bodies = off;\n")
	for _, stage := range stages {
		// The patterns are valid, and the files are embedded.
		names, _ := fs.Glob(migrations, dir+"/"+stage+"/*.sql")
		inFolders, _ := fs.Glob(migrations, dir+"/"+stage+"/*/*.sql")
		for _, name := range slices.SortedFunc(slices.Values(append(names, inFolders...)), byName) {
			text, _ := migrations.ReadFile(name)
			b.Write(text)
			b.WriteString(commentOn(string(text)))
		}
	}
	return b.String()
}

// byName compares the base names of two paths.
func byName(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) }

// created matches a file that creates one object: its leading comment, and the object.
var created = regexp.MustCompile(`\A((?:--.*\n)+)CREATE (TYPE|TABLE|FUNCTION|VIEW) (\{schema\}\.\w+)`)

// commentOn returns the SQL that makes a file's leading comment its object's comment in the
// schema.
func commentOn(text string) string {
	m := created.FindStringSubmatch(text)
	if m == nil {
		return ""
	}

	var lines []string
	for line := range strings.Lines(m[1]) {
		lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, "--")))
	}
	comment := strings.TrimSpace(strings.Join(lines, "\n"))
	return fmt.Sprintf("COMMENT ON %s %s IS '%s';\n", m[2], m[3], strings.ReplaceAll(comment, "'", "''"))
}

// MigrateOptions are the options of [Migrate]. The zero value migrates the default schema to the
// newest version.
type MigrateOptions struct {
	// Schema is the Options.Schema of the store. It is created if it does not exist. Empty means
	// [DefaultSchema].
	Schema string
	// To is the version to migrate to, upwards or downwards. 0 means [NewestVersion]. To remove
	// everything, use [Unmigrate].
	To int
}

// Migrate brings a schema to a version, in one transaction. Concurrent calls wait for one another.
// A schema that already has the version is not changed. The role must own the schema, or be allowed
// to create it; other roles need only the rights that docs/operations/postgres-dba.md lists. If To
// is 0, a newer version that this program supports is not changed. Migrate returns
// [ports.ErrUnusable] for a version that this program does not support, for one that it can't bring
// to To, and for an unknown To.
func Migrate(ctx context.Context, pool *pgxpool.Pool, o MigrateOptions) error {
	if o.To == 0 {
		return migrate(ctx, pool, o.Schema, len(versions()), true)
	}
	return migrate(ctx, pool, o.Schema, o.To, false)
}

// Unmigrate removes everything that [Migrate] made, with the data. It removes the schema itself if
// it is then empty.
func Unmigrate(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	return migrate(ctx, pool, schema, 0, false)
}

// migrate brings a schema to a version. If newer is set, it does not change a newer version that
// this program can use.
func migrate(ctx context.Context, pool *pgxpool.Pool, schema string, to int, newer bool) error {
	if pool == nil {
		return fmt.Errorf("postgres: %w: there is no pool of connections; pass one to Migrate", ports.ErrUnusable)
	}
	if to < 0 || to > len(versions()) {
		return fmt.Errorf("postgres: %w: there is no version %d; this program supports 1 to %d",
			errSchema, to, len(versions()))
	}
	if err := checkName(schema); err != nil {
		return err
	}

	return attempt(ctx, &pooled{pool: pool}, idempotent|operated, func(ctx context.Context) error {
		return migrateOnce(ctx, pool, schema, to, newer)
	})
}

// migrateOnce may be repeated: it starts from the schema's present version.
func migrateOnce(ctx context.Context, pool *pgxpool.Pool, schema string, to int, newer bool) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL search_path = pg_catalog`); err != nil {
			return err
		}

		var encoding string
		if err := tx.QueryRow(ctx, `SELECT current_setting('server_encoding')`).Scan(&encoding); err != nil {
			return err
		}
		if err := checkEncoding(encoding); err != nil {
			return err
		}

		if _, err := tx.Exec(ctx,
			`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, "skein migrates "+quoted(schema),
		); err != nil {
			return err
		}

		from, err := readVersion(ctx, tx, schema)
		if err != nil {
			return err
		}
		if from.version > len(versions()) {
			if newer && from.fits() {
				return nil
			}
			return tooNew(quoted(schema), from)
		}

		// Many statements without arguments go in one exchange.
		_, err = tx.Conn().PgConn().Exec(ctx, MigrationSQL(schema, from.version, to)).ReadAll()
		return err
	})
}

// readVersion returns the version of a schema: zero if the schema or its tables do not exist.
func readVersion(ctx context.Context, tx pgx.Tx, schema string) (v schemaVersion, err error) {
	var migrated bool
	if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, quoted(schema)+".migrations").
		Scan(&migrated); err != nil || !migrated {
		return v, err
	}
	err = tx.QueryRow(ctx, expand(versionSQL, schema)).Scan(&v.version, &v.oldest)
	return v, err
}

// MigrationSQL returns the SQL that brings a schema from one version to another, upwards or
// downwards, for tools that run migrations themselves. Run it in one transaction, and not
// concurrently with [Migrate]. Version 0 is an empty schema; [NewestVersion] is this program's
// version. For equal or unknown versions the result is empty.
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
		fmt.Fprintf(&b, "%s\nINSERT INTO {schema}.migrations (version, oldest) VALUES (%d, %d);\n",
			all[n].up, n+1, all[n].oldest)
	}
	for n := from; n > to; n-- {
		fmt.Fprintf(&b, "%s\nDELETE FROM {schema}.migrations WHERE version = %d;\n", all[n-1].down, n)
	}
	if from > 0 && to == 0 {
		b.WriteString(dropMigrations)
	}

	return expand(b.String(), schema)
}

// NewestVersion returns the schema version of this program.
func NewestVersion() int { return len(versions()) }

// createMigrations creates the schema only if it does not exist: creating one that exists would
// still need the right to create schemas.
const createMigrations = `DO {$} BEGIN
  IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = {name}) THEN
    CREATE SCHEMA IF NOT EXISTS {schema};
  END IF;
END {$};
CREATE TABLE IF NOT EXISTS {schema}.migrations
  (version int PRIMARY KEY, oldest int NOT NULL, at timestamptz NOT NULL DEFAULT now());
COMMENT ON TABLE {schema}.migrations IS 'The versions that this schema has, one row each, ` +
	`with the oldest version that a program must support to use it.';
`

// dropMigrations drops the schema as well, unless it holds something else.
const dropMigrations = `DROP TABLE {schema}.migrations;
DO {$} BEGIN
  DROP SCHEMA {schema};
EXCEPTION WHEN dependent_objects_still_exist OR insufficient_privilege THEN
  NULL;
END {$};
`

// expand puts a schema's name into SQL: for {name} as a text, for {channel} the name of its channel as
// a text, and for {$} a dollar quote that the name does not contain.
func expand(template, schema string) string {
	name, quote := quoted(schema), "$skein$"
	for strings.Contains(name, quote) {
		quote = quote[:len(quote)-1] + "_$"
	}
	return strings.NewReplacer(
		"{schema}", name,
		"{name}", literal(cmp.Or(schema, DefaultSchema)),
		"{channel}", literal(channelOf(name)),
		"{$}", quote,
	).Replace(template)
}

// literal returns a text as a literal of SQL.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
