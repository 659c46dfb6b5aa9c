package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skeinq/skein/ports"
)

// errSchema is a schema that this version of the code can't use.
var errSchema = fmt.Errorf("%w: the schema does not fit", ports.ErrUnusable)

// maxName is how many bytes of a name Postgres tells apart.
const maxName = 63

// checkName refuses a schema's name that Postgres would not take as it is; empty is the
// default.
func checkName(schema string) error {
	fault := ""
	switch {
	case len(schema) > maxName:
		fault = fmt.Sprintf("has %d bytes, and at most %d are told apart", len(schema), maxName)
	case !utf8.ValidString(schema) || strings.ContainsRune(schema, 0):
		fault = "is no text"
	case strings.HasPrefix(schema, "pg_"):
		fault = "begins with pg_, which Postgres keeps for itself"
	default:
		return nil
	}
	return fmt.Errorf("postgres: %w: the schema name %q %s; choose another", ports.ErrUnusable, schema, fault)
}

// check is whether the schema was found fit for use.
type check struct {
	done atomic.Bool
	mu   sync.Mutex
}

// ready looks at the schema's version once, at first use.
func (s *Store) ready(ctx context.Context) error {
	if s.version.done.Load() {
		return nil
	}
	if err := s.configured(); err != nil {
		return err
	}
	s.version.mu.Lock()
	defer s.version.mu.Unlock()
	if s.version.done.Load() {
		return nil
	}
	var there int
	err := attempt(ctx, always, func(ctx context.Context) error {
		err := s.pool.QueryRow(ctx, s.sql(`SELECT coalesce(max(version), 0) FROM {schema}.migrations`)).Scan(&there)
		if missing(err) {
			return s.unfit(0)
		}
		return err
	})
	if err == nil && there != len(versions()) {
		err = s.unfit(there)
	}
	s.version.done.Store(err == nil)
	return err
}

// missing reports whether the schema or its table of migrations does not exist.
func missing(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == undefinedTable || pg.Code == undefinedSchema)
}

func (s *Store) unfit(there int) error {
	code := len(versions())
	if there > code {
		return fmt.Errorf("postgres: %w: %s has version %d, this program knows %d; update the program", errSchema, s.schema, there, code)
	}
	return fmt.Errorf("postgres: %w: %s has version %d, this program needs %d; run postgres.Migrate", errSchema, s.schema, there, code)
}

// configured returns ErrUnusable for what New was given and no server can cure.
func (s *Store) configured() error {
	if s.pool == nil {
		return fmt.Errorf("postgres: %w: there is no pool of connections; give New one", ports.ErrUnusable)
	}
	return checkName(s.options.Schema)
}
