package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
)

// errSchema is a schema that this version of the code can't use.
var errSchema = errors.New("the schema does not fit")

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
	return errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "3F000")
}

func (s *Store) unfit(there int) error {
	code := len(versions())
	if there > code {
		return fmt.Errorf("postgres: %w: %s has version %d, this program knows %d; update the program", errSchema, s.schema, there, code)
	}
	return fmt.Errorf("postgres: %w: %s has version %d, this program needs %d; run postgres.Migrate", errSchema, s.schema, there, code)
}
