package postgres

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Settle implements [ports.Settler] in the caller's transaction.
func (t *Tx) Settle(ctx context.Context, shard core.Shard, settlements []core.Settlement) error {
	return t.store.settle(ctx, t.askOne, shard, settlements)
}

// Settle implements [ports.Settler] in a transaction of its own.
func (s *Store) Settle(ctx context.Context, shard core.Shard, settlements []core.Settlement) error {
	err := s.settle(ctx, s.settleOnce, shard, settlements)
	if err == nil {
		s.wake(shard, wakeAlways) // ids have become free, and some jobs may be back
	}
	return err
}

// settleOnce runs a statement's template and reads its row. It is not repeated after a lost
// connection: it may have been carried out.
func (s *Store) settleOnce(ctx context.Context, into []any, template string, args ...any) error {
	return s.queryOne(ctx, ifRolledBack, into, template, args...)
}

// oneRow runs a statement's template, and reads the row that it returns.
type oneRow func(ctx context.Context, into []any, template string, args ...any) error

func (s *Store) settle(ctx context.Context, ask oneRow, shard core.Shard, settlements []core.Settlement) error {
	if err := ports.ValidateSettlements(settlements); err != nil {
		return err
	}
	rows := make([]settlement, len(settlements))
	for i := range settlements {
		rows[i] = newSettlement(&settlements[i])
	}
	text, err := asJSON(rows)
	if err != nil {
		return err
	}

	var (
		st    status
		found int
	)

	err = ask(ctx, []any{&st, &found}, settleTxSQL, textOrNone(shard.Queue), int(index(shard)), s.now(), text)
	switch {
	case err != nil:
		return err
	case st == statusOK && found != len(settlements):
		return storekit.NotClaimed(shard, found, len(settlements))
	}
	return st.err(shard)
}

// settleTxSQL settles claimed jobs of a shard, all or none, and returns a status and how many are
// claimed with the given receipts. Its types are written as in pushTxSQL.
//
//	$1 the queue, $2 the shard's index, $3 now, $4 the settlements
const settleTxSQL = `
SELECT status, coalesce(settled, 0)
FROM {schema}.settle_in_tx(p_queue => $1::pg_catalog.text, p_index => $2::int, p_now => $3::bigint,
  p_settlements => $4::pg_catalog.text::pg_catalog.json)`

// SettlePayload implements [ports.Settler] in the caller's transaction.
func (t *Tx) SettlePayload(ctx context.Context, shard core.Shard, p core.PayloadSettlement) error {
	return t.store.settlePayload(ctx, t.askOne, shard, &p)
}

// SettlePayload implements [ports.Settler] in a transaction of its own.
func (s *Store) SettlePayload(ctx context.Context, shard core.Shard, p core.PayloadSettlement) error {
	return s.settlePayload(ctx, s.settleOnce, shard, &p)
}

// settlePayloadTxSQL settles one payload of a claimed job, and returns a status and how many
// payloads were settled. Its types are written as in pushTxSQL.
//
//	$1 the queue, $2 the shard's index, $3 the id, $4 and $5 the receipt's token and number, $6 the
//	payload's position, $7 and $8 the claim's RetryCount and Recoveries afterwards, $9 now,
//	$10 the score to which the mark of the id is raised, NULL for none
const settlePayloadTxSQL = `
SELECT status, settled
FROM {schema}.settle_payload_in_tx(p_queue => $1::pg_catalog.text, p_index => $2::int, p_id => $3::pg_catalog.text,
  p_token => $4::bigint, p_number => $5::bigint, p_position => $6::int,
  p_retry_count => $7::int, p_recoveries => $8::int, p_now => $9::bigint, p_mark => $10::float8)`

func (s *Store) settlePayload(ctx context.Context, ask oneRow, shard core.Shard, p *core.PayloadSettlement) error {
	var (
		st      status
		settled *int // nil if the claim has no such payload or no other one
	)

	err := ask(ctx, []any{&st, &settled}, settlePayloadTxSQL, textOrNone(shard.Queue), int(index(shard)), orNone(p.ID),
		p.Receipt.Token, p.Receipt.Number, p.Position, p.RetryCount, p.Recoveries, s.now(), markArg(p.Mark))

	switch {
	case err != nil:
		return err
	case st != statusOK:
		return st.err(shard)
	case settled == nil:
		return storekit.NoOtherPayload(shard, p)
	case *settled == 0:
		return storekit.NotClaimed(shard, 0, 1)
	}
	return nil
}
