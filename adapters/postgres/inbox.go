package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
)

// mayWrite is a condition for WHERE: the session may write. A hot standby can't, and a read-only
// role may not. If the condition is false, Postgres does not call the function in FROM, and the
// result has no row. Its parameter $2 is [Store.inbox].
const mayWrite = `NOT current_setting('transaction_read_only')::boolean AND has_table_privilege($2::text, 'DELETE')`

// inbox returns the name of the inbox table. A role that may not delete from it counts as
// read-only.
func (s *Store) inbox() string { return s.schema + ".inbox" }

// mergeInboxes merges the whole inboxes of a queue's shards, of the given ones or, for nil, of
// all, so that the next read sees everything.
func (s *Store) mergeInboxes(ctx context.Context, queue string, shards []core.Shard) error {
	return s.mergeSome(ctx, queue, shards, 0)
}

// lookMerges is the maximum number of merging calls before a read of whole shards: some 25,000
// rows, which take about half a second. Turns and later reads merge the other rows.
const lookMerges = 25

// mergeForLook is mergeInboxes for reads of whole shards: it ends after [lookMerges] calls.
func (s *Store) mergeForLook(ctx context.Context, queue string, shards []core.Shard) error {
	return s.mergeSome(ctx, queue, shards, lookMerges)
}

func (s *Store) mergeSome(ctx context.Context, queue string, shards []core.Shard, most int) error {
	return s.merge(ctx, most,
		`SELECT until::text, more FROM {schema}.merge_inboxes($1, $3::text::xid8, $4) WHERE `+mayWrite,
		queue, shardIndexes(shards))
}

// mergeIDs merges the rows of a shard's inbox for some ids, so that the next read of these ids is
// complete.
func (s *Store) mergeIDs(ctx context.Context, shard core.Shard, ids ...string) error {
	return s.merge(ctx, 0,
		`SELECT until::text, more FROM {schema}.merge_ids($1, $4, $5, $3::text::xid8) WHERE `+mayWrite,
		shard.Queue, index(shard), possible(ids))
}

// merge calls a merging function until the function reports that it is done. Unless most is 0, it
// makes at most that number of calls. Each call merges little enough for turns to wait only
// briefly. A read-only role reads without merging.
//
//	$1 the queue, $2 as in mayWrite, $3 the result of the previous call, then the rest
func (s *Store) merge(ctx context.Context, most int, call, queue string, remaining ...any) error {
	var until *string
	more := true
	for calls := 0; more && (most == 0 || calls < most); calls++ {
		err := s.query(ctx, idempotent, func(rows pgx.Rows) error {
			if !rows.Next() {
				more = false
				return nil
			}
			return rows.Scan(&until, &more)
		}, call, append([]any{textOrNone(queue), s.inbox(), until}, remaining...)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// shardIndexes returns the indexes of shards as a parameter, NULL for nil.
func shardIndexes(shards []core.Shard) []int32 {
	if shards == nil {
		return nil
	}
	indexes := make([]int32, len(shards))
	for i, shard := range shards {
		indexes[i] = int32(shard.Index)
	}
	return indexes
}
