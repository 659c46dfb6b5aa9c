package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Lists travel to a caller's transaction as JSON text, which every driver can send.

// inboxEntry is a pushed entry. It may run At, or In microseconds.
type inboxEntry struct {
	Shard int           `json:"shard"`
	ID    string        `json:"id"`
	Data  []byte        `json:"data"`
	Meta  []byte        `json:"meta,omitempty"`
	Score float64       `json:"score"`
	At    *core.Instant `json:"at,omitempty"`
	In    int64         `json:"in,omitempty"`
}

// pushTxSQL puts entries into the inbox, and gives a status and the time.
//
//	$1 the queue, $2 its shards, $3 its generation, $4 now, $5 the rule, $6 its limit in µs,
//	$7 the entries
const pushTxSQL = `
SELECT status, now FROM {schema}.push_inbox($1::text, $2::int, $3::bigint, $4::bigint, $5::smallint, $6::bigint, $7::text::json)`

// insert puts entries into the inbox.
func (t *Tx) insert(ctx context.Context, r *ports.PushRequest, entries []core.Entry) (core.Instant, error) {
	if err := t.ready(ctx); err != nil {
		return 0, err
	}
	rows := make([]inboxEntry, len(entries))
	woken := make(map[int]bool)
	for i := range entries {
		rows[i] = inboxEntryOf(&entries[i], r.Shards)
		woken[rows[i].Shard] = true
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return 0, fmt.Errorf("postgres: %w", err)
	}
	var refused status
	var now core.Instant
	err = t.ask(ctx, pushTxSQL, r.Queue, r.Shards, r.Generation, t.store.now(),
		int(r.Rule.Kind), r.Rule.MaxDelay().Microseconds(), string(text)).Scan(&refused, &now)
	if err != nil {
		return 0, translateTx(err)
	}
	if err := refused.err(core.Shard{Queue: r.Queue}); err != nil {
		return 0, err
	}
	return now, t.wake(ctx, r.Queue, woken)
}

func inboxEntryOf(e *core.Entry, shards int) inboxEntry {
	row := inboxEntry{
		Shard: core.ShardOf(e.ID, shards), ID: e.ID, Data: e.Payload.Data, Meta: e.Meta,
		Score: core.NormalScore(e.Score), In: e.When.Delay().Microseconds(),
	}
	if at, fixed := e.When.Fixed(); fixed {
		row.At, row.In = &at, 0
	}
	if row.Data == nil {
		row.Data = []byte{}
	}
	return row
}

// wakeTxSQL has those who listen told of shards at the commit.
//
//	$1 the channel, $2 the shards' names
const wakeTxSQL = `
SELECT count(pg_notify($1::text, w.shard)) FROM json_array_elements_text($2::text::json) AS w (shard)`

func (t *Tx) wake(ctx context.Context, queue string, shards map[int]bool) error {
	if !t.waking || t.store.options.NoWakeups {
		return nil
	}
	names := make([]string, 0, len(shards))
	for index := range shards {
		names = append(names, core.Shard{Queue: queue, Index: index}.String())
	}
	text, err := json.Marshal(names)
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	var told int
	if err := t.ask(ctx, wakeTxSQL, t.store.channel(), string(text)).Scan(&told); err != nil {
		return translateTx(err)
	}
	return nil
}

// settlementRow is a settlement. Instead of those of its Rest, Except gives
// dispositions by position.
type settlementRow struct {
	ID         string         `json:"id"`
	Token      int64          `json:"token"`
	Number     int64          `json:"number"`
	Rest       int            `json:"rest"`
	Except     map[string]int `json:"except,omitempty"`
	SameTime   bool           `json:"same_time"`
	Delay      int64          `json:"delay"`
	RetryCount int            `json:"retry_count"`
	Recoveries int            `json:"recoveries"`
	Error      string         `json:"error"`
	BuryError  string         `json:"bury_error"`
	Processed  bool           `json:"processed"`
	Failed     bool           `json:"failed"`
}

func settlementsJSON(settle []core.Settlement) (string, error) {
	rows := make([]settlementRow, len(settle))
	for i := range settle {
		s := &settle[i]
		rows[i] = settlementRow{
			ID: s.ID, Token: s.Receipt.Token, Number: s.Receipt.Number, Rest: int(s.Rest), SameTime: s.PutBack.SameTime,
			Delay: s.PutBack.Delay.Microseconds(), RetryCount: s.PutBack.RetryCount, Recoveries: s.PutBack.Recoveries,
			Error: s.PutBack.Error, BuryError: s.BuryError, Processed: s.Processed, Failed: s.Failed,
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

// settleTxSQL settles claimed jobs of a shard, all or none, and gives a status and how
// many are claimed as they were.
//
//	$1 the queue, $2 the shard's index, $3 now, $4 the settlements
const settleTxSQL = `
SELECT status, coalesce(settled, 0) FROM {schema}.settle_transacted($1::text, $2::int, $3::bigint, $4::text::jsonb)`
