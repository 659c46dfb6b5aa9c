package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Only records of schedules are ever set aside. Those of jobs and dead letters have typed columns, a
// list of failures with another form is shown as text, and the server itself refuses pages that it
// can't read.

const quarantinedShardsSQL = `
SELECT i.index FROM {schema}.queues q CROSS JOIN unnest($2::int[]) i (index)
WHERE q.name = $1 AND EXISTS (SELECT FROM {schema}.quarantine x WHERE x.shard = {schema}.first_shard(q.id) + i.index)
ORDER BY i.index`

// QuarantinedShards implements [ports.Quarantine].
func (s *Store) QuarantinedShards(
	ctx context.Context,
	r ports.QuarantinedShardsRequest,
) (ports.QuarantinedShards, error) {
	shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.QuarantinedShards{}, err
	}

	var reply ports.QuarantinedShards
	err = s.query(ctx, idempotent, func(rows pgx.Rows) error {
		reply = ports.QuarantinedShards{}
		return eachRow(rows, func() error {
			shard := core.Shard{Queue: r.Queue}
			err := rows.Scan(&shard.Index)
			reply.Shards = append(reply.Shards, shard)
			return err
		})
	}, quarantinedShardsSQL, r.Queue, shardIndexes(shards))
	return reply, err
}

// quarantineSQL lists records that a shard has set aside.
//
//	$1 the queue, $2 the shard's index, $3 the key that they begin behind, $4 the most records, $5 the most bytes
const quarantineSQL = `
SELECT x.key, x.id, x.since, x.reason, substr(convert_to(x.stored, 'UTF8'), 1, $5), octet_length(x.stored)
FROM {schema}.quarantine x
WHERE x.shard = (SELECT {schema}.first_shard(q.id) + $2::int FROM {schema}.queues q WHERE q.name = $1) AND x.key > $3
ORDER BY x.key LIMIT $4`

// Quarantined implements [ports.Quarantine].
func (s *Store) Quarantined(ctx context.Context, r ports.QuarantineRequest) (ports.QuarantinePage, error) {
	if err := r.Validate(); err != nil {
		return ports.QuarantinePage{}, err
	}
	if err := s.hasShard(ctx, r.Shard); err != nil {
		return ports.QuarantinePage{}, err
	}

	var page ports.QuarantinePage
	err := s.query(ctx, idempotent, func(rows pgx.Rows) error {
		page = ports.QuarantinePage{}
		return eachRow(rows, func() error {
			q := ports.QuarantinedRecord{Place: ports.PlaceSchedule}
			err := rows.Scan(&q.Key, &q.ID, &q.Since, &q.Reason, &q.Stored, &q.Size)
			page.Records = append(page.Records, q)
			return err
		})
	}, quarantineSQL, r.Shard.Queue, index(r.Shard), textOrNone(r.After), r.Size()+1, ports.MaxQuarantinedBytes)

	if size := r.Size(); len(page.Records) > size {
		page.Records = page.Records[:size]
		page.Next = page.Records[size-1].Key
	}
	return page, err
}

const discardSQL = `
DELETE FROM {schema}.quarantine x
WHERE x.shard = (SELECT {schema}.first_shard(q.id) + $2::int FROM {schema}.queues q WHERE q.name = $1)
  AND x.key = ANY ($3)
RETURNING x.key`

// Discard implements [ports.Quarantine]. It is not repeated after an unknown outcome, because a
// repeat would not count the records that the first call has discarded.
func (s *Store) Discard(ctx context.Context, r ports.DiscardRequest) (discarded int, err error) {
	if err := r.Validate(); err != nil {
		return 0, err
	}
	if err := s.hasShard(ctx, r.Shard); err != nil {
		return 0, err
	}

	keys := make([]string, len(r.Keys))
	for i, key := range r.Keys {
		keys[i] = textOrNone(key)
	}

	err = s.query(ctx, ifRolledBack|operated, func(rows pgx.Rows) error {
		discarded = 0
		for rows.Next() {
			discarded++
		}
		return nil
	}, discardSQL, r.Shard.Queue, index(r.Shard), keys)
	return discarded, err
}

// hasShard returns an error for a shard that does not exist.
func (s *Store) hasShard(ctx context.Context, shard core.Shard) error {
	q, err := s.queue(ctx, shard.Queue)
	if err == nil && shard.Index >= q.Shards {
		err = storekit.NoSuchShard(shard)
	}
	return err
}

// storedSchedule is the stored record of a schedule.
type storedSchedule struct {
	shard core.Shard
	key   core.ScheduleKey
	text  string
}

// read returns the schedule, or why it can't be read.
func (r *storedSchedule) read() (core.Schedule, error) { return storekit.DecodeSchedule(r.key, r.text) }

// setAside moves records that can't be read to the quarantine. It returns how many of them it has
// moved: others have been changed meanwhile.
func (s *Store) setAside(ctx context.Context, records []storedSchedule) (moved int, err error) {
	for i := range records {
		r := &records[i]
		_, fault := r.read()
		reason := storekit.UnreadableSchedule(r.key.Name, fault)

		var gone bool
		err := s.queryOne(ctx, ifRolledBack, []any{&gone},
			`SELECT {schema}.set_schedule_aside(p_queue => $1, p_index => $2, p_now => $3, p_id => $4,
  p_name => $5, p_stored => $6, p_reason => $7)`,
			r.shard.Queue, index(r.shard), s.now(), r.key.ID, r.key.Name, r.text, core.ErrorText(reason))
		if err != nil {
			return moved, err
		}

		if gone {
			moved++
			s.logger().Error("a record that can't be read was set aside; "+
				"skein repair ls shows it, and skein repair discard removes it",
				"shard", r.shard, "place", ports.PlaceSchedule, "id", r.key.ID, "error", reason)
		}
	}
	return moved, nil
}
