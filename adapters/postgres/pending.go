package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// pendingSQL reads what is not settled yet of some ids, in their order, all at one instant. So it
// merges nothing: payloads that transactions have left count where they are.
//
//	$1 the queue, $2 the indexes of the shards of the ids, $3 the ids, $4 now
const pendingSQL = `
SELECT {schema}.clock($4), j.first_push, i.first_push, c.first_push,
  coalesce(j.retry_count >= 0 AND j.perform_at = 9007199254740992, false),
  d.id IS NOT NULL OR EXISTS (
    SELECT FROM {schema}.inbox e
    WHERE e.shard + 0 = q.first + w.index AND e.id = w.id COLLATE "C" AND e.kind = 'buried')
FROM (SELECT {schema}.first_shard(q.id) AS first FROM {schema}.queues q WHERE q.name = $1) q
CROSS JOIN unnest($2::int[], $3::text[]) WITH ORDINALITY w (index, id, place)
LEFT JOIN LATERAL (
  SELECT e.first_push, e.retry_count, e.perform_at FROM {schema}.jobs e
  WHERE e.shard = q.first + w.index AND e.id = w.id COLLATE "C" OFFSET 0
) j ON true
LEFT JOIN LATERAL (
  SELECT min(e.first_push) AS first_push FROM {schema}.inbox e
  WHERE e.shard + 0 = q.first + w.index AND e.id = w.id COLLATE "C" AND e.kind IN ('push', 'put_back') OFFSET 0
) i ON true
LEFT JOIN LATERAL (
  SELECT e.first_push FROM {schema}.claimed e
  WHERE e.shard = q.first + w.index AND e.id = w.id COLLATE "C" OFFSET 0
) c ON true
LEFT JOIN LATERAL (
  SELECT e.id FROM {schema}.dead_letters e
  WHERE e.shard = q.first + w.index AND e.id = w.id COLLATE "C" OFFSET 0
) d ON true
ORDER BY w.place`

// Pending implements [ports.Inspector].
func (s *Store) Pending(ctx context.Context, r ports.PendingRequest) (ports.PendingReply, error) {
	if err := r.Validate(); err != nil {
		return ports.PendingReply{}, err
	}
	q, err := s.queue(ctx, r.Queue)
	if err != nil {
		return ports.PendingReply{}, err
	}

	indexes := make([]int32, len(r.IDs))
	for i, id := range r.IDs {
		indexes[i] = int32(core.ShardOf(id, q.Shards))
	}

	var reply ports.PendingReply
	err = s.query(ctx, idempotent, func(rows pgx.Rows) error {
		reply.IDs = make([]ports.Pending, 0, len(r.IDs))
		return eachRow(rows, func() error {
			p := ports.Pending{Shard: core.Shard{Queue: r.Queue, Index: int(indexes[len(reply.IDs)])}}
			var queued, arrived, claimed *core.Instant
			if err := rows.Scan(&p.Now, &queued, &arrived, &claimed, &p.Held, &p.Dead); err != nil {
				return err
			}

			for _, first := range [...]*core.Instant{queued, arrived} {
				if first != nil {
					p.AddQueued(*first)
				}
			}
			if claimed != nil {
				p.AddClaimed(*claimed)
			}
			reply.IDs = append(reply.IDs, p)
			return nil
		})
	}, pendingSQL, r.Queue, indexes, r.IDs, s.now())
	if err == nil && len(reply.IDs) < len(r.IDs) {
		err = storekit.UnknownQueue(r.Queue) // it was forgotten meanwhile
	}
	if err != nil {
		return ports.PendingReply{}, err
	}
	return reply, nil
}
