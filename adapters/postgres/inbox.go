package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
)

// mayWrite is where the session may write: a hot standby can't, and a role that only looks may not. Nothing
// after FROM runs where it does not hold. Its parameter $2 is [Store.inbox].
const mayWrite = `NOT current_setting('transaction_read_only')::boolean AND has_table_privilege($2::text, 'DELETE')`

// inbox returns the name of the table that whoever writes must be allowed to delete from.
func (s *Store) inbox() string { return s.schema + ".inbox" }

// mergeInboxes merges what waits in the inboxes of a queue's shards, of those named or for nil of all, so
// that what is read next sees it. Each call of the function merges no more than lets turns wait briefly. Who may
// only read does without.
func (s *Store) mergeInboxes(ctx context.Context, queue string, shards []core.Shard) error {
	var until *string
	for more := true; more; {
		err := s.query(ctx, idempotent, func(rows pgx.Rows) error {
			if !rows.Next() {
				more = false
				return nil
			}
			return rows.Scan(&until, &more)
		}, `SELECT until::text, more FROM {schema}.merge_inboxes($1, $3::text::xid8, $4) WHERE `+mayWrite, queue, s.inbox(), until, indexesOf(shards))
		if err != nil {
			return err
		}
	}
	return nil
}

// indexesOf returns the indexes of shards as a parameter, NULL for nil.
func indexesOf(shards []core.Shard) []int32 {
	if shards == nil {
		return nil
	}
	indexes := make([]int32, len(shards))
	for i, shard := range shards {
		indexes[i] = int32(shard.Index)
	}
	return indexes
}
