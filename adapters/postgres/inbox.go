package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// mergeInboxes merges what waits in the inboxes of a queue's shards, so that what is read
// next sees it. Each call of the function merges no more than lets turns wait briefly.
func (s *Store) mergeInboxes(ctx context.Context, queue string) error {
	var until *string
	for more := true; more; {
		err := s.query(ctx, idempotent, func(rows pgx.Rows) error { return readOne(rows, &until, &more) },
			`SELECT until::text, more FROM {schema}.merge_inboxes($1, $2::text::xid8)`, queue, until)
		if err != nil {
			return err
		}
	}
	return nil
}
