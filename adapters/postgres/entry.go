package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// The columns that are read from a row e of jobs, claimed or dead_letters. They are the same for
// each, so that lists and look-ups share them: kind, shard, id, PerformAt, RetryCount, Recoveries,
// FirstPush, error (behind the tags); for claims token, number, since, node, owner (for a dead
// letter its group), whether cancelled, whether begun, whether the lease is over; then the number
// of payloads, and the scores, data and meta of the first ones. $1 is the largest number of
// payloads to return, and {counted} the number to count to, approximately, or NULL for all. The
// parameter for the clock goes between claimColumns and claimPayloads.
const (
	jobColumns = `
  'j'::"char", e.shard, e.id, e.perform_at, e.retry_count, e.recoveries, e.first_push, e.error,
  0::bigint, 0::bigint, 0::bigint, '', '', false, false, false, 0::bigint,
  CASE WHEN e.data IS NULL THEN 0 ELSE 1 END
    + CASE WHEN e.has_more THEN (
      SELECT count(*) FROM (
        SELECT FROM {schema}.payloads p WHERE p.shard = e.shard AND p.id = e.id LIMIT {counted}
      ) p
    ) ELSE 0 END,
  CASE WHEN e.has_more THEN m.scores WHEN $1::int > 0 THEN ARRAY[e.score] END,
  CASE WHEN e.has_more THEN m.data WHEN $1 > 0 THEN ARRAY[e.data] END,
  CASE WHEN e.has_more THEN m.meta WHEN $1 > 0 THEN ARRAY[e.meta] END`
	jobPayloads = `
LEFT JOIN LATERAL (
  SELECT array_agg(p.score) AS scores, array_agg(p.data) AS data, array_agg(p.meta) AS meta
  FROM {schema}.payloads_of(e.shard, e.id, $1) p WHERE e.has_more AND $1 > 0
) m ON true`

	claimColumns = `
  'c'::"char", e.shard, e.id, e.perform_at, e.retry_count, e.recoveries, e.first_push, e.error,
  e.token, e.number, e.since, e.node, e.owner, e.cancel_drop IS NOT NULL, e.cancel_drop IS TRUE, e.begun IS TRUE,
  CASE WHEN l.held AND l.token = e.token AND {schema}.remaining(l.expires, l.ttl, {schema}.clock(`
	claimPayloads = `)) > 0 THEN l.expires ELSE 0 END,
  least(1 + coalesce(cardinality(e.more_data), 0), {counted}),
  (ARRAY[e.score] || e.more_scores)[1:$1::int],
  (ARRAY[e.data] || e.more_data)[1:$1],
  (ARRAY[e.meta] || e.more_meta)[1:$1]`
	claimLease = `
JOIN {schema}.leases l ON l.shard = e.shard`

	deadColumns = `
  'd'::"char", e.shard, e.id, e.changed_at, 0, 0, 0::bigint, e.error,
  0::bigint, 0::bigint, 0::bigint, '', e.grp, false, false, false, 0::bigint,
  (SELECT count(*) FROM (
    SELECT FROM {schema}.dead_letter_payloads p WHERE p.shard = e.shard AND p.id = e.id LIMIT {counted}
  ) p),
  m.scores, m.data, m.meta`
	deadPayloads = `
LEFT JOIN LATERAL (
  SELECT array_agg(p.score) AS scores, array_agg(p.data) AS data, array_agg(p.meta) AS meta
  FROM {schema}.dead_payloads_of(e.shard, e.id, $1::int) p
) m ON true`
)

// The kinds of entries.
const (
	jobEntry   = 'j'
	claimEntry = 'c'
	deadEntry  = 'd'
)

// entry is a row of those columns. PerformAt is a dead letter's ChangedAt, and Owner its Group.
type entry struct {
	kind byte
	ports.ClaimView
}

// readEntry reads an entry of a queue, and then the statement's further columns.
func readEntry(rows pgx.Rows, queue string, others ...any) (e entry, err error) {
	var shard int
	var scores []float64
	var data, meta [][]byte
	err = rows.Scan(append([]any{
		&e.kind, &shard, &e.ID, &e.PerformAt, &e.RetryCount, &e.Recoveries, &e.FirstPush, &e.Error,
		&e.Receipt.Token, &e.Receipt.Number, &e.Since, &e.Node, &e.Owner, &e.Cancelled, &e.Drop, &e.Begun,
		&e.LeaseUntil, &e.Count, &scores, &data, &meta,
	}, others...)...)
	if err != nil {
		return entry{}, err
	}

	e.Tags, e.Error = storekit.CutTags(e.Error)
	e.LeaseOver = e.kind == claimEntry && e.LeaseUntil == 0
	e.Shard = core.Shard{Queue: queue, Index: shard % core.MaxShards}
	e.Payloads, err = newPayloads(scores, data, meta)
	return e, err
}

// newPayloads joins the columns of payloads. meta may be shorter.
func newPayloads(scores []float64, data, meta [][]byte) ([]core.Payload, error) {
	if len(scores) != len(data) {
		return nil, fmt.Errorf("%d scores of %d payloads", len(scores), len(data))
	}
	var payloads []core.Payload
	for i, d := range data {
		p := core.Payload{Data: d, Score: scores[i]}
		if i < len(meta) {
			p.Meta = meta[i]
		}
		payloads = append(payloads, p)
	}
	return payloads, nil
}

// deadLetter returns the entry as a dead letter.
func (e *entry) deadLetter() core.DeadLetter {
	return core.DeadLetter{
		ID:        e.ID,
		Payloads:  e.Payloads,
		ChangedAt: e.PerformAt,
		Error:     e.Error,
		Group:     e.Owner,
		Tags:      e.Tags,
	}
}
