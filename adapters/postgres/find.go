package postgres

import (
	"context"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// findSQL reads all that a shard holds for an id, at one instant.
//
//	$1 the most payloads, $2 the queue, $3 the shard's index, $4 the id, $5 now
var findSQL = strings.ReplaceAll(`
WITH s AS MATERIALIZED (
  SELECT {schema}.first_shard(q.id) + $3::int AS id FROM {schema}.queues q WHERE q.name = $2
)
SELECT`+jobColumns+`
FROM {schema}.jobs e`+jobPayloads+`
WHERE e.shard = (SELECT id FROM s) AND e.id = $4
UNION ALL
SELECT`+claimColumns+`$5`+claimPayloads+`
FROM {schema}.claimed e`+claimLease+`
WHERE e.shard = (SELECT id FROM s) AND e.id = $4
UNION ALL
SELECT`+deadColumns+`
FROM {schema}.dead_letters e`+deadPayloads+`
WHERE e.shard = (SELECT id FROM s) AND e.id = $4`, "{counted}", "NULL::bigint")

// Find implements [ports.Inspector]. Of what transactions have left in the shard's inbox it merges what is for this
// id, and for a job that is due the first rows, some of which may be ahead of it: see [aheadMerges].
func (s *Store) Find(ctx context.Context, queue, id string) (ports.Found, error) {
	if err := core.ValidateID(id); err != nil {
		return ports.Found{}, err
	}
	q, err := s.queue(ctx, queue)
	if err != nil {
		return ports.Found{}, err
	}
	shard := core.Shard{Queue: queue, Index: core.ShardOf(id, q.Shards)}
	if err := s.mergeIDs(ctx, shard, id); err != nil {
		return ports.Found{}, err
	}
	var found ports.Found
	err = s.query(ctx, idempotent, func(rows pgx.Rows) error {
		found = ports.Found{Shard: shard}
		return eachRow(rows, func() error {
			e, err := readEntry(rows, queue)
			found = withEntry(found, e)
			return err
		})
	}, findSQL, math.MaxInt32, queue, shard.Index, id, s.now())
	if err == nil {
		found.Standing, err = s.standing(ctx, shard, id)
	}
	if err == nil && found.Standing.Ahead < ports.MaxAhead && isDue(found) {
		if err = s.mergeSome(ctx, queue, []core.Shard{shard}, aheadMerges); err == nil {
			found.Standing, err = s.standing(ctx, shard, id)
		}
	}
	if err != nil {
		return ports.Found{}, err
	}
	return found, nil
}

// aheadMerges bounds how much of an inbox Find merges to count what is ahead of a job: the least number of calls that
// merge more rows than [ports.MaxAhead], beside a lease of 5 s or more.
const aheadMerges = 2

// isDue reports whether a queued job only waits for its turn.
func isDue(found ports.Found) bool {
	return found.Queued != nil && found.Claim == nil && found.Queued.PerformAt <= found.Standing.Now
}

// withEntry returns what was found with one more entry.
func withEntry(found ports.Found, e entry) ports.Found {
	switch e.kind {
	case jobEntry:
		found.Queued = &e.Job
	case claimEntry:
		found.Claim = &e.ClaimView
	case deadEntry:
		letter := e.deadLetter()
		found.DeadLetter = &letter
	}
	return found
}
