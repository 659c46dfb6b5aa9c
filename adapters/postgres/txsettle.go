package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports/storekit"
)

// Settle implements [ports.Settler] in the caller's transaction.
func (t *Tx) Settle(ctx context.Context, shard core.Shard, settlements []core.Settlement) error {
	if err := t.ready(ctx); err != nil {
		return err
	}
	text, err := settlementsJSON(settlements)
	if err != nil {
		return err
	}
	var (
		st    status
		found int
	)
	err = t.ask(ctx, settleTxSQL, textOrNone(shard.Queue), shard.Index, t.store.now(), text).Scan(&st, &found)
	if err != nil {
		return translateTx(err)
	}
	return settleError(st, shard, found, len(settlements))
}

// Settle implements [ports.Settler] in a transaction of its own. It is not repeated
// after a lost connection: it may have been carried out.
func (s *Store) Settle(ctx context.Context, shard core.Shard, settlements []core.Settlement) error {
	text, err := settlementsJSON(settlements)
	if err != nil {
		return err
	}
	var (
		st    status
		found int
	)
	err = s.query(ctx, ifRolledBack, func(rows pgx.Rows) error {
		return readOne(rows, &st, &found)
	}, settleTxSQL, textOrNone(shard.Queue), int(index(shard)), s.now(), text)
	if err == nil {
		err = settleError(st, shard, found, len(settlements))
	}
	if err != nil {
		return err
	}
	s.wake(shard, wakeAlways) // ids have become free, and some jobs may be back
	return nil
}

// settleTxSQL settles claimed jobs of a shard, all or none, and returns a status and how many are
// claimed with the given receipts. Its types are written as in pushTxSQL.
//
//	$1 the queue, $2 the shard's index, $3 now, $4 the settlements
const settleTxSQL = `
SELECT status, coalesce(settled, 0)
FROM {schema}.settle_in_tx(p_queue => $1::pg_catalog.text, p_index => $2::int, p_now => $3::bigint,
  p_settlements => $4::pg_catalog.text::pg_catalog.jsonb)`

// SettlePayload implements [ports.Settler] in the caller's transaction.
func (t *Tx) SettlePayload(ctx context.Context, shard core.Shard, s core.PayloadSettlement) error {
	if err := t.ready(ctx); err != nil {
		return err
	}
	var (
		st      status
		settled *int
	)
	if err := t.ask(ctx, settlePayloadTxSQL, settlePayloadArgs(shard, &s)...).Scan(&st, &settled); err != nil {
		return translateTx(err)
	}
	return settlePayloadError(st, shard, &s, settled)
}

// SettlePayload implements [ports.Settler] in a transaction of its own. It is not repeated after a
// lost connection: it may have been carried out.
func (s *Store) SettlePayload(ctx context.Context, shard core.Shard, p core.PayloadSettlement) error {
	var (
		st      status
		settled *int
	)
	err := s.query(ctx, ifRolledBack, func(rows pgx.Rows) error {
		return readOne(rows, &st, &settled)
	}, settlePayloadTxSQL, settlePayloadArgs(shard, &p)...)
	if err != nil {
		return err
	}
	return settlePayloadError(st, shard, &p, settled)
}

// settlePayloadTxSQL settles one payload of a claimed job, and returns a status and how many
// payloads were settled. Its types are written as in pushTxSQL.
//
//	$1 the queue, $2 the shard's index, $3 the id, $4 and $5 the receipt's token and number, $6 the
//	payload's position, $7 the claim's RetryCount afterwards
const settlePayloadTxSQL = `
SELECT status, settled
FROM {schema}.settle_payload_in_tx(p_queue => $1::pg_catalog.text, p_index => $2::int, p_id => $3::pg_catalog.text,
  p_token => $4::bigint, p_number => $5::bigint, p_position => $6::int, p_retry_count => $7::int)`

func settlePayloadArgs(shard core.Shard, s *core.PayloadSettlement) []any {
	return []any{textOrNone(shard.Queue), int(index(shard)), orNone(s.ID), s.Receipt.Token, s.Receipt.Number, s.Position, s.RetryCount}
}

// settlePayloadError returns the port's error for a payload that was not settled, or nil. settled
// is nil if the claim has no such payload or no other one.
func settlePayloadError(st status, shard core.Shard, s *core.PayloadSettlement, settled *int) error {
	switch {
	case st != statusOK:
		return st.err(shard)
	case settled == nil:
		return storekit.NoOtherPayload(shard, s)
	case *settled == 0:
		return storekit.NotClaimed(shard, 0, 1)
	}
	return nil
}

// settleError returns the port's error for settlements that were refused, or nil.
func settleError(st status, shard core.Shard, found, settlements int) error {
	if st == statusOK && found != settlements {
		return storekit.NotClaimed(shard, found, settlements)
	}
	return st.err(shard)
}

// settlementRow is a settlement as JSON. Except has, by position, the dispositions that differ
// from Rest.
type settlementRow struct {
	ID         string         `json:"id"`
	Token      int64          `json:"token"`
	Number     int64          `json:"number"`
	Rest       int            `json:"rest"`
	Except     map[string]int `json:"except,omitempty"`
	TimeRule   int16          `json:"time_rule"`
	Delay      int64          `json:"delay"`
	RetryCount int            `json:"retry_count"`
	Recoveries int            `json:"recoveries"`
	Error      string         `json:"error"`
	BuryError  string         `json:"bury_error"`
	Group      string         `json:"grp,omitempty"`
	Processed  bool           `json:"processed"`
	Failed     bool           `json:"failed"`
}

func settlementsJSON(settlements []core.Settlement) (string, error) {
	rows := make([]settlementRow, len(settlements))
	for i := range settlements {
		s := &settlements[i]
		rows[i] = settlementRow{
			ID: orNone(s.ID), Token: s.Receipt.Token, Number: s.Receipt.Number, Rest: int(s.Rest), TimeRule: int16(storekit.PutBackTime(&s.PutBack)),
			Delay: s.PutBack.Delay.Microseconds(), RetryCount: s.PutBack.RetryCount, Recoveries: s.PutBack.Recoveries,
			Error: storekit.WithTags("", core.ErrorText(s.PutBack.Error)), BuryError: storekit.WithTags("", core.ErrorText(s.BuryError)), Processed: s.Processed, Failed: s.Failed,
		}
		if s.Buries() {
			rows[i].Group = core.GroupName(s.Group)
		}
		for _, e := range s.Except {
			if rows[i].Except == nil {
				rows[i].Except = make(map[string]int, len(s.Except))
			}
			rows[i].Except[fmt.Sprint(e.Position)] = int(e.Disposition)
		}
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return "", fmt.Errorf("postgres: %w", err)
	}
	return string(text), nil
}
