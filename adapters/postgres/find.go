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

// findSQL reads what a shard holds for an id, at one instant: a row for each kind of record, in
// which only the columns of that kind are set, if there is such a record. The function find_payloads
// bounds the payloads that it reads.
//
//	$1 0, the payloads of each record to read beside that, $2 the queue, $3 the shard's index, $4 the id, $5 now,
//	$6 the score and $7 the number of payloads of that to leave out, $8 the most payloads of each place,
//	in order of ports.Place, $9 the most payloads and $10 the most bytes of all, $11 how many payloads to
//	count about
var findSQL = strings.NewReplacer("{failures}", "e.failures", "{counted}", "$11::bigint", "{now}", "$5").Replace(`
WITH s AS MATERIALIZED (
  SELECT {schema}.first_shard(q.id) + $3::int AS id FROM {schema}.queues q WHERE q.name = $2
)
SELECT k.kind, m.mark, j.*, c.*, d.*, t.*, p.scores, p.data, p.meta, p.more
FROM (VALUES ('j'::"char"), ('c'), ('d'), ('p'), ('m')) k (kind)
LEFT JOIN LATERAL (
  SELECT ` + selectList(jobPrefix, new(queuedJob).columns()) + `
  FROM {schema}.jobs e` + queuedPayloads + `
  WHERE k.kind = 'j' AND e.shard = (SELECT id FROM s) AND e.id = $4
) j ON true
LEFT JOIN LATERAL (
  SELECT ` + selectList(claimPrefix, new(claimedJob).columns()) + `
  FROM {schema}.claimed e` + claimLease + `
  WHERE k.kind = 'c' AND e.shard = (SELECT id FROM s) AND e.id = $4
) c ON true
LEFT JOIN LATERAL (
  SELECT ` + selectList(deadPrefix, new(deadLetter).columns()) + `
  FROM {schema}.dead_letters e` + deadPayloads + `
  WHERE k.kind = 'd' AND e.shard = (SELECT id FROM s) AND e.id = $4
) d ON true
LEFT JOIN LATERAL (
  SELECT ` + selectList(pastPrefix, new(pastRecord).found()) + `
  FROM {schema}.past e
  WHERE k.kind = 'p' AND e.shard = (SELECT id FROM s) AND e.id = $4 AND NOT e.mark
) t ON true
LEFT JOIN LATERAL (
  SELECT m.score AS mark FROM {schema}.marks((SELECT id FROM s), ARRAY[$4::text]) m WHERE k.kind = 'm'
) m ON true
LEFT JOIN {schema}.find_payloads((SELECT id FROM s), $4, $6, $7, $8, $9, $10) p ON p.kind = k.kind
WHERE coalesce(j.job_id, c.claim_id, d.dead_id, t.past_id, m.mark::text) IS NOT NULL`)

// The kinds of records, and the prefixes of their columns.
const (
	foundJob, jobPrefix     = 'j', "job_"
	foundClaim, claimPrefix = 'c', "claim_"
	foundDead, deadPrefix   = 'd', "dead_"
	foundPast, pastPrefix   = 'p', "past_"
	foundMark               = 'm'
)

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
		return eachRow(rows, func() error { return addFound(&found, &r, rows) })
	}, findSQL,
		0, r.Queue, shard.Index, r.ID, s.now(), after.Score, after.Skip, most,
		core.MaxTurnPayloads, core.MaxStepBytes, limitOf(r.MaxCount))
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

// addFound scans one row, and adds its record to the result, and the cursor behind its payloads if
// it has more.
func addFound(found *ports.Found, r *ports.FindRequest, rows pgx.Rows) (err error) {
	var (
		place    ports.Place
		payloads []core.Payload
		count    int
		more     *bool
	)

	switch kind := rows.RawValues()[0][0]; kind { // "char" is one byte in either format
	case foundPast:
		var past pastRecord
		if err := rows.Scan(destinations(rows, pastPrefix, past.found())...); err != nil {
			return err
		}
		p := past.view().Past
		found.Past = &p
		return nil

	case foundMark:
		found.Mark.OK = true
		return rows.Scan(destinations(rows, "", []column{{name: "mark", into: &found.Mark.Score}})...)

	case foundJob:
		var job queuedJob
		more, err = scanFound(rows, r.Queue, jobPrefix, &job, &job.payloadLists)
		place, payloads, count = ports.PlaceQueued, job.Payloads, r.Counted(job.count)
		found.Queued = &ports.JobView{Job: job.Job, Count: count}

	case foundClaim:
		var claim claimedJob
		more, err = scanFound(rows, r.Queue, claimPrefix, &claim, &claim.payloadLists)
		place, payloads, count = ports.PlaceClaimed, claim.Payloads, r.Counted(claim.Count)
		claim.Count = count
		found.Claim = &claim.ClaimView

	case foundDead:
		var letter deadLetter
		more, err = scanFound(rows, r.Queue, deadPrefix, &letter, &letter.payloadLists)
		place, payloads, count = ports.PlaceDead, letter.Payloads, r.Counted(letter.count)
		found.DeadLetter = &ports.DeadLetterView{DeadLetter: letter.DeadLetter, Count: count}
	}
	if err != nil {
		return err
	}

	// A place has no row if no payload of it was requested, or if none follows.
	behind := r.Most(place) == 0 && (count > 0 || r.MaxCount < 0)
	if more != nil {
		behind = *more
	}
	found.AddNext(r, place, payloads, behind)
	return nil
}

// scanFound scans the columns of one kind of record, with payloads, which are its lists, from the
// columns of find_payloads. more is nil if find_payloads has no row for the kind.
func scanFound(rows pgx.Rows, queue, prefix string, of record, lists *payloadLists) (more *bool, err error) {
	into := destinations(rows, prefix, of.columns())
	found := destinations(rows, "", append(lists.columns(), column{name: "more", into: &more}))
	for i, d := range found { // they are behind the record's own lists, which are empty here
		if d != nil {
			into[i] = d
		}
	}

	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	return more, of.finish(queue, 0)
}
