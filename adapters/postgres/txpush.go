package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Push implements [ports.Producer]. After an error nothing is stored, once the caller has
// rolled the transaction back.
func (t *Tx) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	if err := r.Validate(); err != nil {
		return ports.PushReply{}, err
	}
	var reply ports.PushReply
	for entries := range slices.Chunk(r.Entries, ports.MaxPush) {
		now, err := t.insert(ctx, &r, entries)
		if err != nil {
			return ports.PushReply{}, storekit.NothingStored(len(r.Entries), err)
		}
		reply.Now = now
	}
	return reply, nil
}

// Lists travel to a caller's transaction as JSON text, which every driver can send.

// inboxEntry is a pushed entry as JSON. It may run At, or In microseconds.
type inboxEntry struct {
	Shard int           `json:"shard"`
	ID    string        `json:"id"`
	Data  []byte        `json:"data"`
	Meta  []byte        `json:"meta,omitempty"`
	Score float64       `json:"score"`
	At    *core.Instant `json:"at,omitempty"`
	In    int64         `json:"in,omitempty"`
}

// pushTxSQL puts entries into the inbox, and returns a status and the time. It names the schema of types for the sake of
// a session whose search_path does not fit, which the function refuses.
//
//	$1 the queue, $2 its shards, $3 its generation, $4 now, $5 the rule, $6 its limit in µs,
//	$7 the entries
const pushTxSQL = `
SELECT status, now
FROM {schema}.push_in_tx(p_queue => $1::pg_catalog.text, p_shards => $2::int, p_generation => $3::bigint, p_now => $4::bigint,
  p_rule => $5::smallint, p_limit => $6::bigint, p_entries => $7::pg_catalog.text::pg_catalog.json)`

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
	var st status
	var now core.Instant
	err = t.ask(ctx, pushTxSQL, textOrNone(r.Queue), r.Shards, r.Generation, t.store.now(),
		int(r.Rule.Kind), r.Rule.MaxDelay().Microseconds(), string(text)).Scan(&st, &now)
	if err != nil {
		return 0, translateTx(err)
	}
	if err := st.layoutErr(core.Shard{Queue: r.Queue}, layoutOf(r)); err != nil {
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

// wakeTxSQL sends a wake-up for each shard when the transaction commits.
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
	var notified int
	if err := t.ask(ctx, wakeTxSQL, t.store.channel(), string(text)).Scan(&notified); err != nil {
		return translateTx(err)
	}
	return nil
}
