package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/skeinq/skein/ports"
)

// errSchema reports a schema that this program can't use.
var errSchema = fmt.Errorf("%w: the schema does not fit", ports.ErrUnusable)

// maxName is the number of bytes of a name that Postgres distinguishes.
const maxName = 63

// checkName returns ErrUnusable for a schema's name that Postgres would change. An empty name is
// the default one.
func checkName(schema string) error {
	fault := ""
	switch {
	case len(schema) > maxName:
		fault = fmt.Sprintf("has %d bytes, and Postgres reads only the first %d", len(schema), maxName)
	case !utf8.ValidString(schema) || strings.ContainsRune(schema, 0):
		fault = "is not UTF-8 or has NUL"
	case strings.HasPrefix(schema, "pg_"):
		fault = "begins with pg_, which Postgres reserves"
	default:
		return nil
	}
	return fmt.Errorf("postgres: %w: the schema name %q %s; choose another", ports.ErrUnusable, schema, fault)
}

// schemaCheck has the findings about the schema and the server.
type schemaCheck struct {
	// version is set if the schema has this version; fits is set if the server is usable as well.
	version, fits atomic.Bool
	// checking has room for the call that checks.
	checking chan struct{}
}

// versionSQL returns the newest version of a schema, and the oldest that a program must support to
// use it.
const versionSQL = `SELECT coalesce(max(version), 0), coalesce(max(oldest), 0) FROM {schema}.migrations`

// schemaVersion is the version that a schema records of itself.
type schemaVersion struct{ version, oldest int }

// fits reports whether this program may use the schema: it supports the version, or the version
// allows programs that support an older one.
func (v schemaVersion) fits() bool {
	known := len(versions())
	return v.version == known || v.version > known && v.oldest <= known
}

// sessionColumns are the settings of a [session]. If search_path does not fit, only names with
// pg_catalog are certain to be the server's own.
const sessionColumns = `pg_catalog.current_setting('server_encoding'), pg_catalog.current_setting('client_encoding'),
  pg_catalog.current_setting('default_transaction_isolation'), pg_catalog.current_schemas(false)::pg_catalog.text[]`

// session is the settings with which the store would be wrong or slow. path is the existing
// schemas that search_path names.
type session struct {
	server, client, isolation string
	path                      []string
}

// columns returns the scan targets of [sessionColumns].
func (s *session) columns() []any { return []any{&s.server, &s.client, &s.isolation, &s.path} }

// checkEncoding returns ErrUnusable for a database whose texts can't hold all ids.
func checkEncoding(encoding string) error {
	if encoding != "UTF8" {
		return fmt.Errorf(
			"postgres: %w: the database's encoding is %s, but ids need UTF8; create a database with ENCODING 'UTF8'",
			ports.ErrUnusable, encoding)
	}
	return nil
}

var errClientEncoding = fmt.Errorf("postgres: %w: client_encoding is not UTF8, so the server would misread ids; "+
	"set it to UTF8 for the role, or in the RuntimeParams of the pool's ConnConfig", ports.ErrUnusable)

var errSearchPath = fmt.Errorf(
	"postgres: %w: search_path has another schema before pg_catalog, whose functions and operators would replace "+
		"the server's own; leave pg_catalog out of search_path: Postgres then searches it first",
	ports.ErrUnusable)

// check returns ErrUnusable for an unsuitable setting.
func (s *session) check() error {
	if err := checkEncoding(s.server); err != nil {
		return err
	}
	if s.client != "UTF8" {
		return errClientEncoding
	}
	if slices.Index(s.path, "pg_catalog") > 0 {
		return errSearchPath
	}
	if s.isolation != "read committed" {
		return fmt.Errorf(
			"postgres: %w: default_transaction_isolation is %q, under which most turns fail to serialize; "+
				"set it to 'read committed' for the role, or in the RuntimeParams of the pool's ConnConfig",
			ports.ErrUnusable, s.isolation)
	}
	return nil
}

// ready checks the schema's version and the server's settings, once, at first use. The error is the
// port's.
func (s *Store) ready(ctx context.Context) error {
	if s.schemaCheck.fits.Load() {
		return nil
	}
	if err := s.configured(); err != nil {
		return err
	}

	select {
	case s.schemaCheck.checking <- struct{}{}:
		defer func() { <-s.schemaCheck.checking }()
	case <-ctx.Done():
		return translate(ctx, ctx.Err())
	}

	// Another call may have ended the check while this one waited.
	if s.schemaCheck.fits.Load() {
		return nil
	}
	err := attempt(ctx, &s.pooled, idempotent, s.look)
	s.schemaCheck.fits.Store(err == nil)
	return err
}

// look reads the server's settings and the schema's version.
func (s *Store) look(ctx context.Context) error {
	var (
		settings session
		v        schemaVersion
	)

	if err := s.current().QueryRow(ctx, `SELECT `+sessionColumns).Scan(settings.columns()...); err != nil {
		return err
	}
	if err := settings.check(); err != nil {
		return err
	}

	switch err := s.current().QueryRow(ctx, s.sql(versionSQL)).Scan(&v.version, &v.oldest); {
	case schemaMissing(err):
		return s.unfit(schemaVersion{})
	case err != nil:
		return err
	case !v.fits():
		return s.unfit(v)
	}
	s.schemaCheck.version.Store(true)
	return nil
}

// schemaMissing reports whether the schema or its table of migrations does not exist.
func schemaMissing(err error) bool {
	code := sqlState(err)
	return code == undefinedTable || code == undefinedSchema
}

// unfit returns the error for a schema that this program may not use. The zero version means no
// schema.
func (s *Store) unfit(v schemaVersion) error {
	switch known := len(versions()); {
	case v.version == 0:
		return fmt.Errorf(`postgres: %w: schema %s is missing or has no tables of Skein; `+
			`run "skein migrate up" or postgres.Migrate, or correct the name`,
			errSchema, s.schema)
	case v.version <= known:
		return fmt.Errorf(
			`postgres: %w: %s has version %d, this program needs %d; run "skein migrate up" or postgres.Migrate`,
			errSchema, s.schema, v.version, known)
	}
	return tooNew(s.schema, v)
}

// tooNew returns the error for a schema that only newer programs may use.
func tooNew(schema string, v schemaVersion) error {
	return fmt.Errorf("postgres: %w: %s has version %d, which needs a program that supports at least %d, "+
		"and this one supports %d; update the program",
		errSchema, schema, v.version, v.oldest, len(versions()))
}

// configured returns ErrUnusable if New got a nil pool or an invalid schema name.
func (s *Store) configured() error {
	if s.pool == nil {
		return fmt.Errorf("postgres: %w: there is no pool of connections; pass one to New", ports.ErrUnusable)
	}
	return checkName(s.options.Schema)
}

// pingSQL returns the schema's version, whether the server is read-only, the tables that the role
// lacks rights to, and the settings of the session.
//
//	$1 the schema's name, $2 the store's tables in it
const pingSQL = `
SELECT v.version, v.oldest, pg_catalog.current_setting('transaction_read_only')::boolean, ARRAY(
  SELECT c.relname::pg_catalog.text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1::pg_catalog.text AND c.relkind = 'r' AND c.relname = ANY ($2::pg_catalog.text[]) AND NOT (
    pg_catalog.has_table_privilege(c.oid, 'SELECT') AND pg_catalog.has_table_privilege(c.oid, 'INSERT')
    AND pg_catalog.has_table_privilege(c.oid, 'UPDATE') AND pg_catalog.has_table_privilege(c.oid, 'DELETE'))
  ORDER BY c.relname), ` + sessionColumns + `
FROM (` + versionSQL + `) v (version, oldest)`

var errReadOnly = errors.New("postgres: the server is read-only, as a standby is; " + findPrimary)

// errReadOnlyHere is errReadOnly for an operator, who should not wait for a failover.
var errReadOnlyHere = fmt.Errorf("postgres: %w: the server is read-only, as a standby is; %s",
	ports.ErrUnusable, findPrimary)

// Ping implements [ports.Registry]. It is one query and is not repeated.
func (s *Store) Ping(ctx context.Context) error {
	schema := s.options.Schema
	if err := s.configured(); err != nil {
		return err
	}
	if schema == "" {
		schema = DefaultSchema
	}

	var (
		v         schemaVersion
		settings  session
		readOnly  bool
		forbidden []string
	)

	err := once(ctx, func() error {
		return s.current().
			QueryRow(ctx, s.sql(pingSQL), schema, slices.Concat(ownTables(backlogTables), ownTables(otherTables))).
			Scan(append([]any{&v.version, &v.oldest, &readOnly, &forbidden}, settings.columns()...)...)
	})

	switch {
	case schemaMissing(err):
		return s.unfit(schemaVersion{})
	case err != nil:
		return translate(ctx, err)
	case settings.check() != nil: // the other findings may follow from it
		return settings.check()
	case !v.fits():
		return s.unfit(v)
	case len(forbidden) > 0:
		return fmt.Errorf("postgres: %w: the role may not use %s in schema %s; "+
			"grant it the rights that docs/operations/postgres.md lists",
			ports.ErrUnusable, strings.Join(forbidden, ", "), s.schema)
	case readOnly:
		return errReadOnly
	}
	return nil
}
