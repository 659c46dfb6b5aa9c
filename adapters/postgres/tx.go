package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Tx pushes and settles in a caller's transaction on the store's database: what
// it does is there when that commits, and never if it doesn't. It is a
// ports.Producer, for Client.Via, and a ports.Settler, for skein.SettleIn. Make it
// with Store.Tx or Store.SQLTx. It is safe for as many goroutines as the
// transaction, which is one.
//
// However long the transaction takes, nobody waits for it: not the shards, nor
// other jobs. A push is only inserted, and merged once it is visible; a job that is
// being settled stays claimed until then.
//
// An error of the driver stays wrapped, for a caller that repeats transactions
// after serialization failures. After one the transaction is to be rolled back. At
// REPEATABLE READ and above, a queue must have been declared before the
// transaction began; a server or a push outside of it does so.
type Tx struct {
	store *Store
	// row runs a statement that gives one row.
	row    func(ctx context.Context, statement string, args ...any) interface{ Scan(dest ...any) error }
	waking bool
}

var (
	_ ports.Producer = (*Tx)(nil)
	_ ports.Settler  = (*Tx)(nil)
)

// Tx is a transaction of pgx on the store's database.
func (s *Store) Tx(tx pgx.Tx) *Tx {
	if tx == nil {
		return s.noTx()
	}
	return &Tx{store: s, row: func(ctx context.Context, statement string, args ...any) interface{ Scan(...any) error } {
		return tx.QueryRow(ctx, statement, args...)
	}}
}

// SQLTx is a transaction of database/sql on the store's database, by any driver
// that numbers its parameters $1, $2 and so on, such as pgx's own and lib/pq.
func (s *Store) SQLTx(tx *sql.Tx) *Tx {
	if tx == nil {
		return s.noTx()
	}
	return &Tx{store: s, row: func(ctx context.Context, statement string, args ...any) interface{ Scan(...any) error } {
		return tx.QueryRowContext(ctx, statement, args...)
	}}
}

// noTx is what nil makes: everything in it is refused.
func (s *Store) noTx() *Tx {
	return &Tx{store: s, row: func(context.Context, string, ...any) interface{ Scan(...any) error } { return refusing{} }}
}

// refusing is the row of no transaction.
type refusing struct{}

// Scan fails.
func (refusing) Scan(...any) error {
	return fmt.Errorf("%w: the transaction is nil; begin one and give it to Tx or SQLTx", ports.ErrInvalidRequest)
}

// Waking is the transaction with wake-ups: servers learn of its pushes when it
// commits, and not by their next poll. It costs much: the commits of all
// transactions that notify, in the whole server, wait for one another.
func (t *Tx) Waking() *Tx {
	waking := *t
	waking.waking = true
	return &waking
}

// declaredSQL is a queue's record.
//
//	$1 the queue
const declaredSQL = `SELECT q.shards, q.generation, q.index_ids FROM {schema}.queues q WHERE q.name = $1::text`

// Declare implements ports.Producer. A queue that is not there is declared outside
// of the transaction, so that nobody waits for it.
func (t *Tx) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	if err := r.Validate(); err != nil {
		return ports.DeclareReply{}, err
	}
	if err := t.ready(ctx); err != nil {
		return ports.DeclareReply{}, err
	}
	var there ports.Queue
	err := t.ask(ctx, declaredSQL, r.Queue).Scan(&there.Shards, &there.Generation, &there.IndexIDs)
	switch {
	case errors.Is(err, sql.ErrNoRows), errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return ports.DeclareReply{}, translateTx(err)
	case there.Shards == r.Shards && there.IndexIDs == r.IndexIDs:
		return ports.DeclareReply{Generation: there.Generation}, nil
	}
	return t.store.declareApart(ctx, r) // which says what differs, if something does
}

// declareApart declares on a connection that is not the pool's: transactions that
// hold all of those may wait for it.
func (s *Store) declareApart(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	config := s.pool.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = 1, 0, 0
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return ports.DeclareReply{}, translate(err)
	}
	defer pool.Close()
	return New(pool, s.options).Declare(ctx, r)
}

// Push implements ports.Producer.
func (t *Tx) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	if err := r.Validate(); err != nil {
		return ports.PushReply{}, err
	}
	var reply ports.PushReply
	for from := 0; from < len(r.Entries); from += ports.MaxPush {
		to := min(from+ports.MaxPush, len(r.Entries))
		now, err := t.insert(ctx, &r, r.Entries[from:to])
		if err != nil {
			return ports.PushReply{}, unstoredFrom(from, len(r.Entries), err)
		}
		reply.Now = now
	}
	return reply, nil
}

// unstoredFrom is the error of a push that ended there.
func unstoredFrom(from, to int, err error) error {
	failed := &ports.PushError{Err: err}
	for i := from; i < to; i++ {
		failed.Entries = append(failed.Entries, i)
	}
	return failed
}

// Settle implements ports.Settler.
func (t *Tx) Settle(ctx context.Context, shard core.Shard, settle []core.Settlement) error {
	if err := t.ready(ctx); err != nil {
		return err
	}
	text, err := settlementsJSON(settle)
	if err != nil {
		return err
	}
	var refused status
	var found int
	err = t.ask(ctx, settleTxSQL, shard.Queue, shard.Index, t.store.now(), text).Scan(&refused, &found)
	switch {
	case err != nil:
		return translateTx(err)
	case refused != accepted:
		return refused.err(shard)
	case found != len(settle):
		return fmt.Errorf("%w: %d of %d jobs of %v are claimed as they were; roll back", ports.ErrLeaseLost, found, len(settle), shard)
	}
	return nil
}

// ask runs a statement's template.
func (t *Tx) ask(ctx context.Context, template string, args ...any) interface{ Scan(dest ...any) error } {
	return t.row(ctx, t.store.sql(template), args...)
}

// ready looks at the schema's version at the store's first use, in the transaction:
// its connection may be the only one that there is.
func (t *Tx) ready(ctx context.Context) error {
	s := t.store
	if s.version.done.Load() {
		return nil
	}
	if err := checkName(s.options.Schema); err != nil {
		return err
	}
	var there int
	err := t.ask(ctx, `SELECT coalesce(max(version), 0) FROM {schema}.migrations`).Scan(&there)
	switch {
	case err != nil:
		return fmt.Errorf("look at schema %s, which postgres.Migrate makes: %w", s.schema, translateTx(err))
	case there != len(versions()):
		return s.unfit(there)
	}
	s.version.done.Store(true)
	return nil
}

// translateTx keeps the caller's driver's error, but for what the port names.
func translateTx(err error) error {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) && cureOf(coded.SQLState()) != "" {
		return fmt.Errorf("postgres: in a transaction: %w: %w; %s", ports.ErrUnusable, err, cureOf(coded.SQLState()))
	}
	if errors.As(err, &coded) && coded.SQLState() != tooManyConnections && coded.SQLState()[:min(2, len(coded.SQLState()))] == "53" {
		return fmt.Errorf("%w: %w; let servers drain the queue, or give the database room", ports.ErrFull, err)
	}
	return fmt.Errorf("postgres: in a transaction: %w", err)
}
