package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/skeinq/skein/ports"
)

// pingSQL is the schema's version, the tables that the role may not use in full, and
// whether the server only reads.
//
//	$1 the schema's name
const pingSQL = `
SELECT (SELECT coalesce(max(version), 0) FROM {schema}.migrations), current_setting('transaction_read_only')::boolean, ARRAY(
  SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1::text AND c.relkind = 'r' AND c.relname <> 'migrations' AND NOT (
    has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
    AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))
  ORDER BY c.relname)`

var errReadOnly = errors.New("postgres: the server only reads, as a standby does; connect to the primary")

// Ping implements ports.Registry. It asks once.
func (s *Store) Ping(ctx context.Context) error {
	schema := s.options.Schema
	if err := s.configured(); err != nil {
		return err
	}
	if schema == "" {
		schema = DefaultSchema
	}
	var (
		there     int
		reads     bool
		forbidden []string
	)
	err := s.pool.QueryRow(ctx, s.sql(pingSQL), schema).Scan(&there, &reads, &forbidden)
	switch {
	case missing(err):
		return s.unfit(0)
	case err != nil:
		return translate(err)
	case there != len(versions()):
		return s.unfit(there)
	case len(forbidden) > 0:
		return fmt.Errorf("postgres: %w: the role may not use %s in schema %s; grant it the rights that docs/postgres.md lists",
			ports.ErrUnusable, strings.Join(forbidden, ", "), s.schema)
	case reads:
		return errReadOnly
	}
	return nil
}
