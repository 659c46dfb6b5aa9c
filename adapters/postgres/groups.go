package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// groupsSQL returns a row for each of the largest groups of some shards of a queue, with the
// number of groups and of their dead letters. Without groups it returns one row with only a clock.
// An array selects the rows, by their key: a join would take all groups of all queues into a hash
// table, and onto disk if they are many.
//
//	$1 now, $2 the queue, $3 the indexes of the shards, $4 the most groups
const groupsSQL = `
SELECT n.now, coalesce(s.total, 0), coalesce(s.dead, 0), s.grp,
  coalesce(s.count, 0), coalesce(s.first_at, 0), coalesce(s.last_at, 0)
FROM (SELECT {schema}.clock($1) AS now) n LEFT JOIN (
  SELECT count(*) OVER () AS total, (sum(g.count) OVER ())::bigint AS dead, g.* FROM (
    SELECT g.grp, sum(g.count)::bigint AS count, min(g.first_at) AS first_at, max(g.last_at) AS last_at
    FROM {schema}.dead_groups g
    WHERE g.count > 0 AND g.shard = ANY (ARRAY(
      SELECT {schema}.first_shard(q.id) + i.index
      FROM {schema}.queues q, unnest($3::int[]) i (index)
      WHERE q.name = $2))
    GROUP BY g.grp
  ) g ORDER BY g.count DESC, g.grp LIMIT $4
) s ON true
ORDER BY s.count DESC, s.grp`

// Groups implements [ports.Inspector].
func (s *Store) Groups(ctx context.Context, r ports.GroupsRequest) (ports.GroupsReply, error) {
	shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.GroupsReply{}, err
	}
	if err := s.mergeForLook(ctx, r.Queue, shards); err != nil {
		return ports.GroupsReply{}, err
	}

	var reply ports.GroupsReply
	err = s.query(ctx, idempotent, func(rows pgx.Rows) error {
		reply = ports.GroupsReply{}
		return eachRow(rows, func() error {
			var g core.Group
			var name *string
			err := rows.Scan(&reply.Now, &reply.Total, &reply.Dead, &name, &g.Count, &g.First, &g.Last)
			if name != nil {
				g.Name = *name
				reply.Groups = append(reply.Groups, g)
			}
			return err
		})
	}, groupsSQL, s.now(), r.Queue, shardIndexes(shards), r.Size())
	if err != nil {
		return ports.GroupsReply{}, err
	}
	return reply, nil
}
