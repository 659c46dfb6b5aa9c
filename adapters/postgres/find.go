package postgres

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// findSQL reads what a shard holds for an id, at one instant. The function find_payloads bounds
// the payloads that it reads.
//
//	$1 0, the payloads of each entry to read beside that, $2 the queue, $3 the shard's index, $4 the id, $5 now,
//	$6 the score and $7 the number of payloads of that to leave out, $8 the most payloads of each place,
//	in order of ports.Place, $9 the most payloads and $10 the most bytes of all, $11 how many payloads to
//	count about
var findSQL = strings.ReplaceAll(`
WITH s AS MATERIALIZED (
  SELECT {schema}.first_shard(q.id) + $3::int AS id FROM {schema}.queues q WHERE q.name = $2
), e (kind, shard, id, at, retry_count, recoveries, first_push, error, token,
  number, since, node, owner, cancelled, dropped, begun, lease_until, count, scores, data, meta) AS (
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
  WHERE e.shard = (SELECT id FROM s) AND e.id = $4
)
SELECT e.kind, e.shard, e.id, e.at, e.retry_count, e.recoveries, e.first_push, e.error,
  e.token, e.number, e.since, e.node, e.owner, e.cancelled, e.dropped, e.begun, e.lease_until,
  e.count, p.scores, p.data, p.meta, p.more
FROM e LEFT JOIN {schema}.find_payloads((SELECT id FROM s), $4, $6, $7, $8, $9, $10) p ON p.kind = e.kind`,
	"{counted}", "$11::bigint")

// mostSkipped is the largest number of payloads of one score that a cursor leaves out. An id can't
// have that many. It is small enough for find_payloads to add the returned payloads, and one more,
// in 32 bits. Cursors come from users.
const mostSkipped = math.MaxInt32 - core.MaxTurnPayloads - 1

// Find implements [ports.Inspector]. It merges the rows for this id that transactions have left in
// the shard's inbox. If the job is due, it also merges the first rows of the inbox, because some of
// them may be ahead of the job.
func (s *Store) Find(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
	if err := r.Validate(); err != nil {
		return ports.Found{}, err
	}
	q, err := s.queue(ctx, r.Queue)
	if err != nil {
		return ports.Found{}, err
	}

	shard := core.Shard{Queue: r.Queue, Index: core.ShardOf(r.ID, q.Shards)}
	if err := s.mergeIDs(ctx, shard, r.ID); err != nil {
		return ports.Found{}, err
	}

	var after ports.PayloadCursor
	if r.After != nil {
		after = *r.After
		after.Skip = min(after.Skip, mostSkipped)
	}
	if after.Skip == 0 {
		after.Score = math.Inf(-1)
	}
	most := []int32{int32(r.Most(ports.PlaceQueued)), int32(r.Most(ports.PlaceClaimed)), int32(r.Most(ports.PlaceDead))}

	var found ports.Found
	err = s.query(ctx, idempotent, func(rows pgx.Rows) error {
		found = ports.Found{Shard: shard}
		return eachRow(rows, func() error {
			var more *bool
			e, err := readEntry(rows, r.Queue, &more)
			if err == nil {
				addEntry(&found, &r, e, more)
			}
			return err
		})
	}, findSQL,
		0, r.Queue, shard.Index, r.ID, s.now(), after.Score, after.Skip, most,
		core.MaxTurnPayloads, core.MaxStepBytes, countLimit(r.MaxCount))
	slices.SortFunc(found.Next, func(a, b ports.PayloadCursor) int { return cmp.Compare(a.Place, b.Place) })

	if err == nil {
		found.Standing, err = s.standing(ctx, shard, r.ID)
	}
	if err == nil && found.Standing.Ahead < ports.MaxAhead && isDue(found) {
		if err = s.mergeSome(ctx, r.Queue, []core.Shard{shard}, aheadMerges); err == nil {
			found.Standing, err = s.standing(ctx, shard, r.ID)
		}
	}

	if err != nil {
		return ports.Found{}, err
	}
	return found, nil
}

// aheadMerges is the maximum number of calls by which Find merges rows of an inbox, to count the
// jobs ahead of a job. It is the least number of calls that merge more rows than [ports.MaxAhead],
// beside a lease of 5 s or more.
const aheadMerges = 2

// isDue reports whether a queued job only waits for its turn.
func isDue(found ports.Found) bool {
	return found.Queued != nil && found.Claim == nil && found.Queued.PerformAt <= found.Standing.Now
}

// addEntry adds one entry to the result, and the cursor behind its payloads if it has more.
func addEntry(found *ports.Found, r *ports.FindRequest, e entry, more *bool) {
	e.Count = r.Counted(e.Count)
	var place ports.Place
	switch e.kind {
	case jobEntry:
		place, found.Queued = ports.PlaceQueued, &ports.JobView{Job: e.Job, Count: e.Count}
	case claimEntry:
		place, found.Claim = ports.PlaceClaimed, &e.ClaimView
	case deadEntry:
		place, found.DeadLetter = ports.PlaceDead, &ports.DeadLetterView{DeadLetter: e.deadLetter(), Count: e.Count}
	}

	// A place has no row if no payload of it was requested, or if none follows.
	behind := r.Most(place) == 0 && (e.Count > 0 || r.MaxCount < 0)
	if more != nil {
		behind = *more
	}
	found.AddNext(r, place, e.Payloads, behind)
}
