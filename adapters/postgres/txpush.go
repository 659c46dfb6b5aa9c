package postgres

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Push implements [ports.Producer]. After an error the caller rolls the transaction back, and
// nothing is stored.
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

// inboxEntry is a pushed entry as JSON. Its job may run at the time At or, if At is nil, In
// microseconds from now.
type inboxEntry struct {
	Shard int           `json:"shard"`
	ID    string        `json:"id"`
	Data  []byte        `json:"data"`
	Meta  []byte        `json:"meta,omitempty"`
	Score float64       `json:"score"`
	At    *core.Instant `json:"at,omitempty"`
	In    int64         `json:"in,omitempty"`
	// Urgent is true if it merges by core.Earliest.
	Urgent bool      `json:"urgent,omitempty"`
	Tags   core.Tags `json:"tags,omitempty"`
	// Once is for how long it is accepted once, in microseconds, and OnceKey its key.
	Once    int64  `json:"once,omitempty"`
	OnceKey string `json:"once_key,omitempty"`
}

// pushTxSQL puts entries into the inbox, and returns a status and the time. It names the schema of
// types because the session's search_path may not fit, which the function refuses.
//
//	$1 the queue, $2 its shards, $3 its generation, $4 now, $5 the rule, $6 its limit in µs,
//	$7 the entries, $8 the channel, $9 the indexes of the shards to wake through it, as an array's text
const pushTxSQL = `
SELECT status, now
FROM {schema}.push_in_tx(p_queue => $1::pg_catalog.text, p_shards => $2::int, p_generation => $3::bigint,
  p_now => $4::bigint,
  p_rule => $5::smallint, p_limit => $6::bigint, p_entries => $7::pg_catalog.text::pg_catalog.json,
  p_channel => $8::pg_catalog.text, p_wake => $9::pg_catalog.text::int[])`

// insert puts entries into the inbox.
func (t *Tx) insert(ctx context.Context, r *ports.PushRequest, entries []core.Entry) (core.Instant, error) {
	rows := make([]inboxEntry, len(entries))
	for i := range entries {
		rows[i] = newInboxEntry(&entries[i], r)
	}

	notified, others := t.wakes(r.Queue, rows)
	text, err := json.Marshal(rows)
	if err != nil {
		return 0, fmt.Errorf("postgres: %w", err)
	}

	var st status
	var now core.Instant
	err = t.askOne(ctx, []any{&st, &now}, pushTxSQL, textOrNone(r.Queue), r.Shards, r.Generation, t.store.now(),
		int(r.Rule.Kind), r.Rule.MaxDelay().Microseconds(), string(text), t.store.channel(), notified)
	if err != nil {
		return 0, err
	}
	if err := st.layoutErr(core.Shard{Queue: r.Queue}, pushLayout(r)); err != nil {
		return 0, err
	}

	for _, row := range rows {
		if shard := (core.Shard{Queue: r.Queue, Index: row.Shard}); others[shard] {
			t.store.awaitPush(shard, row.due(now))
		}
	}
	return now, nil
}

// wakes returns the indexes of the shards that the transaction notifies, as the text of an array,
// and the other shards of the rows, which the store has to look at: another transaction of the
// store notifies those at about this time.
func (t *Tx) wakes(queue string, rows []inboxEntry) (notified string, others map[core.Shard]bool) {
	if t.quiet || t.store.options.NoWakeups {
		return "{}", nil
	}

	now, seen := time.Now(), make(map[int]bool)
	var indexes []string
	others = make(map[core.Shard]bool)
	for i := range rows {
		index := rows[i].Shard
		if seen[index] {
			continue
		}
		seen[index] = true
		if shard := (core.Shard{Queue: queue, Index: index}); t.store.notifier.rest(shard, now) {
			indexes = append(indexes, strconv.Itoa(index))
		} else {
			others[shard] = true
		}
	}
	return "{" + strings.Join(indexes, ",") + "}", others
}

func newInboxEntry(e *core.Entry, r *ports.PushRequest) inboxEntry {
	row := inboxEntry{
		Shard:  core.ShardOf(e.ID, r.Shards),
		ID:     e.ID,
		Data:   e.Payload.Data,
		Meta:   e.Meta,
		Score:  core.NormalScore(e.Score),
		In:     e.When.Delay().Microseconds(),
		Urgent: e.When.Urgent(),
		Tags:   e.Tags,
	}

	if at, fixed := e.When.Fixed(); fixed {
		row.At, row.In = &at, 0
	}
	if key, once := onceArgs(e, r.Stamped); once != nil {
		row.Once, row.OnceKey = *once, hex.EncodeToString(key)
	}
	if row.Data == nil {
		row.Data = []byte{}
	}
	return row
}

// due is when the row's job may run if it is pushed now.
func (e *inboxEntry) due(now core.Instant) core.Instant {
	if e.At != nil {
		return *e.At
	}
	return now + core.Instant(e.In)
}
