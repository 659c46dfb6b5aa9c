package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Tx pushes and settles in a caller's transaction on the store's database. Its changes take effect
// when the transaction commits, and never if it doesn't. A Tx is a [ports.Producer], for
// Client.Via, and a [ports.Settler], for skein.SettleIn. Make it with [Store.Tx] or [Store.SQLTx].
// Like the transaction, it is for one goroutine at a time.
//
// Servers learn of its pushes at the commit, by a NOTIFY in the transaction. A store adds at most
// one NOTIFY per shard to transactions in 20 ms. It finds the pushes of transactions without a
// NOTIFY by looking at the shard from outside, until 2.5 s after the push.
//
// No shard and no other job waits for the transaction, however long it takes. A push is only
// inserted, and merged when it is visible. A job that the transaction settles stays claimed until
// the commit.
//
// An error of the driver stays wrapped, for a caller that repeats transactions after serialization
// failures. After such an error, roll the transaction back. At REPEATABLE READ and above, the queue
// must have been declared before the transaction began, by a server or by a push outside of the
// transaction.
type Tx struct {
	store *Store
	// row runs a statement that returns one row.
	row   func(ctx context.Context, statement string, args ...any) interface{ Scan(dest ...any) error }
	quiet bool
}

var (
	_ ports.Producer = (*Tx)(nil)
	_ ports.Settler  = (*Tx)(nil)
)

// Tx returns a [Tx] for a pgx transaction on the store's database.
func (s *Store) Tx(tx pgx.Tx) *Tx {
	if tx == nil {
		return s.noTx()
	}
	return &Tx{store: s, row: func(ctx context.Context, statement string, args ...any) interface{ Scan(...any) error } {
		return tx.QueryRow(ctx, statement, args...)
	}}
}

// SQLTx returns a [Tx] for a database/sql transaction on the store's database. The driver must
// number its parameters $1, $2 and so on, as pgx's own and lib/pq do.
func (s *Store) SQLTx(tx *sql.Tx) *Tx {
	if tx == nil {
		return s.noTx()
	}
	return &Tx{store: s, row: func(ctx context.Context, statement string, args ...any) interface{ Scan(...any) error } {
		return tx.QueryRowContext(ctx, statement, args...)
	}}
}

// noTx returns the Tx for a nil transaction: every call on it fails with ErrInvalidRequest.
func (s *Store) noTx() *Tx {
	return &Tx{store: s, row: func(context.Context, string, ...any) interface{ Scan(...any) error } {
		return refusing{}
	}}
}

// refusing is a row whose Scan fails, since the transaction is nil.
type refusing struct{}

// Scan returns an error.
func (refusing) Scan(...any) error {
	return fmt.Errorf("%w: the transaction is nil; begin one and pass it to Tx or SQLTx", ports.ErrInvalidRequest)
}

// NoWakeups returns a [Tx] on the same transaction that sends no wake-ups, so servers find its
// pushes only by their next poll. Use it with PREPARE TRANSACTION, which Postgres refuses after a
// NOTIFY. Use it also if most transactions of a server push, because commits with a NOTIFY wait for
// one another. Options.NoWakeups implies it.
func (t *Tx) NoWakeups() *Tx {
	quiet := *t
	quiet.quiet = true
	return &quiet
}

// declaredSQL returns a queue's record.
//
//	$1 the queue
const declaredSQL = `SELECT q.shards, q.generation, q.index_ids, q.merge_rule, q.same_push
FROM {schema}.queues q WHERE q.name = $1::text`

// Declare implements [ports.Producer]. If the queue does not exist, it is declared outside of the
// transaction, so that no other call waits for the transaction.
func (t *Tx) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	if err := r.Validate(); err != nil {
		return ports.DeclareReply{}, err
	}
	if err := t.ready(ctx); err != nil {
		return ports.DeclareReply{}, err
	}

	var declared ports.Queue
	var rule mergeRule
	err := t.ask(ctx, declaredSQL, r.Queue).
		Scan(&declared.Shards, &declared.Generation, &declared.IndexIDs, &rule.code, &rule.samePush)
	if err == nil {
		declared.Merge, err = rule.rule()
	}

	switch {
	case errors.Is(err, sql.ErrNoRows), errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return ports.DeclareReply{}, translateTx(err)
	case storekit.CheckDeclared(r, declared) == nil:
		return ports.DeclareReply{Generation: declared.Generation}, nil
	}
	return t.store.declareOutside(ctx, r) // which reports what differs, if anything does
}

// declareOutside declares a queue on a connection outside the pool: transactions that hold all of
// the pool's connections may wait for it.
func (s *Store) declareOutside(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	config := s.pool.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = 1, 0, 0
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return ports.DeclareReply{}, translate(ctx, err)
	}
	defer pool.Close()
	return New(pool, s.options).Declare(ctx, r)
}

// ask runs a statement's template.
func (t *Tx) ask(ctx context.Context, template string, args ...any) interface{ Scan(dest ...any) error } {
	return t.row(ctx, t.store.sql(template), args...)
}

// askOne runs a statement's template and reads its row, once the schema has been checked.
func (t *Tx) askOne(ctx context.Context, into []any, template string, args ...any) error {
	if err := t.ready(ctx); err != nil {
		return err
	}
	if err := t.ask(ctx, template, args...).Scan(into...); err != nil {
		return translateTx(err)
	}
	return nil
}

// ready checks the schema's version at the store's first use, in the transaction: its connection
// may be the only one.
func (t *Tx) ready(ctx context.Context) error {
	s := t.store
	if s.schemaCheck.version.Load() {
		return nil
	}
	if err := checkName(s.options.Schema); err != nil {
		return err
	}

	var v schemaVersion
	err := t.ask(ctx, versionSQL).Scan(&v.version, &v.oldest)
	if err != nil {
		err = translateTx(err)
	}

	switch {
	case errors.Is(err, ports.ErrInvalidRequest): // the cause is the transaction, not the schema
		return err
	case err != nil:
		return fmt.Errorf(
			`read the version of schema %s, which "skein migrate up" or postgres.Migrate creates: %w`,
			s.schema, err)
	case !v.fits():
		return s.unfit(v)
	}
	s.schemaCheck.version.Store(true)
	return nil
}

// failedTransaction is the error of a statement in a transaction that an earlier statement has
// failed.
const failedTransaction = "25P02"

// translateTx wraps the error of the caller's driver, and also the port's if the port has one for
// it.
func translateTx(err error) error {
	if errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, sql.ErrTxDone) {
		return fmt.Errorf("postgres: %w: the transaction has ended; "+
			"push and settle in it before it is committed or rolled back: %w",
			ports.ErrInvalidRequest, err)
	}

	var coded interface{ SQLState() string }
	if !errors.As(err, &coded) {
		return fmt.Errorf("postgres: in a transaction: %w", err)
	}

	code := coded.SQLState()
	switch {
	case remedyFor(code) != "":
		return fmt.Errorf("postgres: in a transaction: %w: %w; %s", ports.ErrUnusable, err, remedyFor(code))
	case code == failedTransaction:
		return fmt.Errorf("postgres: %w: %w; a statement before this one has failed, so roll the transaction back",
			ports.ErrInvalidRequest, err)
	case code == queryCanceled:
		return fmt.Errorf("postgres: in a transaction: %w; %s", err, giveTime)
	case code == readOnlyServer:
		return fmt.Errorf("postgres: in a transaction: %w: %w; %s", ports.ErrReadOnly, err, findPrimary)
	case lacksRoom(code, err.Error()):
		return fmt.Errorf("%w: %w; %s", ports.ErrFull, err, giveRoom(code))
	}
	return fmt.Errorf("postgres: in a transaction: %w", err)
}
