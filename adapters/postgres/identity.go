package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/ports"
)

// setStoreIDSQL replaces the id of the store, or writes it if somebody has deleted its row.
//
//	$1 the id
const setStoreIDSQL = `INSERT INTO {schema}.identity (id) VALUES ($1)
ON CONFLICT (one_row) DO UPDATE SET id = excluded.id`

// StoreID implements [ports.Identity].
func (s *Store) StoreID(ctx context.Context) (id string, err error) {
	err = s.query(ctx, idempotent, func(rows pgx.Rows) error {
		return eachRow(rows, func() error { return rows.Scan(&id) })
	}, `SELECT id FROM {schema}.identity`)
	return id, err
}

// SetStoreID implements [ports.Identity].
func (s *Store) SetStoreID(ctx context.Context, id string) error {
	if err := ports.ValidateStoreID(id); err != nil {
		return err
	}
	return s.query(ctx, idempotent|operated, noRows, setStoreIDSQL, id)
}
