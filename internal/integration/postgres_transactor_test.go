package integration_test

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/conformance"
)

// opensTx is a store for which the suite opens callers' transactions as well.
type opensTx struct {
	*postgres.Store
	pool *pgxpool.Pool
}

var _ conformance.Transactor = opensTx{}

// Begin implements conformance.Transactor.
func (s opensTx) Begin(ctx context.Context) (conformance.Transaction, error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return callersTx{s.Tx(tx), tx}, nil
}

type callersTx struct {
	*postgres.Tx
	tx pgx.Tx
}

func (t callersTx) Commit(ctx context.Context) error { return t.tx.Commit(ctx) }
