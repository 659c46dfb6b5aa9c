package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// scheduleRows takes the schedules of each shard by name and id, behind a place. The parameters are
// those of placesSQL, with the name of that place in $6, and in $7 the name or the id that the list
// is limited to.
const scheduleRows = `
SELECT e.index, 0::bigint, e.name || '/' || e.id
FROM (SELECT {schema}.first_shard(q.id) AS first FROM {schema}.queues q WHERE q.name = $1) q
CROSS JOIN LATERAL (
  SELECT s.index, e.* FROM unnest($2) s (index) CROSS JOIN LATERAL (
    SELECT t.name, t.id FROM {schema}.schedules t WHERE t.shard = q.first + s.index AND {after} ORDER BY t.name, t.id LIMIT $3
  ) e
) e
ORDER BY e.index, e.name, e.id`

// The conditions of scheduleRows, each of which an index serves: for all schedules, for those of a
// name, and for those of an id.
const (
	afterSchedule = `(t.name, t.id) > ($6, $4)`
	afterOfName   = `t.name = $7 COLLATE "C" AND t.id > $4`
	afterOfID     = `t.id = $7 COLLATE "C" AND t.name >= $6 AND (t.name, t.id) > ($6, $4)`
)

// schedulesSQL reads schedules, in the order asked, and the clock in a row of its own kind if none is
// left.
//
//	$1 now, $2 the queue, $3 the indexes of the shards, $4 the ids, $5 the names
const schedulesSQL = `
SELECT n.now, e.id, e.name, e.record
FROM (SELECT {schema}.clock($1) AS now) n LEFT JOIN (
  SELECT w.place, e.id, e.name, e.record::text
  FROM (SELECT {schema}.first_shard(q.id) AS first FROM {schema}.queues q WHERE q.name = $2) q
  CROSS JOIN unnest($3::int[], $4::text[], $5::text[]) WITH ORDINALITY w (index, id, name, place)
  CROSS JOIN LATERAL (
    SELECT * FROM {schema}.schedules WHERE shard = q.first + w.index AND id = w.id COLLATE "C" AND name = w.name COLLATE "C" OFFSET 0
  ) e
) e ON true
ORDER BY e.place`

// Schedules implements [ports.Calendar]. It finds the places of the schedules first, and then reads
// only these schedules.
func (s *Store) Schedules(ctx context.Context, r ports.SchedulesRequest) (ports.SchedulesPage, error) {
	q, err := s.queue(ctx, r.Queue)
	if err == nil {
		err = r.Validate()
	}
	if err != nil {
		return ports.SchedulesPage{}, err
	}
	shards, err := storekit.ShardsOf(q, r.Shards)
	if err != nil {
		return ports.SchedulesPage{}, err
	}
	if r.ID != "" {
		shards = slices.DeleteFunc(shards, func(at core.Shard) bool { return at.Index != core.ShardOf(r.ID, q.Shards) })
	}

	places, next, err := s.schedulePlaces(ctx, &r, shards)
	if err != nil {
		return ports.SchedulesPage{}, err
	}
	page, err := s.readSchedules(ctx, r.Queue, places)
	page.Next = next
	return page, err
}

// schedulePlaces finds the places of a page, and the key behind which the next page begins.
func (s *Store) schedulePlaces(ctx context.Context, r *ports.SchedulesRequest, shards []core.Shard) ([]storekit.Listed, core.ScheduleKey, error) {
	page := ports.PageRequest{Queue: r.Queue, Limit: r.Size()}
	if r.After != (core.ScheduleKey{}) {
		page.After.ID = storekit.ScheduleByName(r.After)
	}
	after, only := afterSchedule, ""
	if r.Name != "" {
		page.Prefix = storekit.ScheduleByName(core.ScheduleKey{Name: r.Name})
		after, only = afterOfName, r.Name
	}
	if r.ID != "" {
		after, only = afterOfID, r.ID
	}

	p := storekit.NewPager[storekit.Listed](page, true)
	query := s.sql(strings.ReplaceAll(scheduleRows, "{after}", after))
	var lost storekit.Lost
	err := storekit.FindPlaces(ctx, p, shards, &lost, func(ctx context.Context, asks []storekit.Ask) []storekit.Answer {
		behind := storekit.ScheduleOfName(p.Start().At.ID)
		return s.answers(ctx, asks, schedulePlace, query, behind.ID, 0, behind.Name, only)
	})
	if err == nil {
		_, err = lost.Shards(1) // one server has all shards
	}
	if err != nil {
		return nil, core.ScheduleKey{}, err
	}
	places, next := p.Page()
	return places, storekit.ScheduleOfName(next.ID), nil
}

// schedulePlace returns the place of a schedule in its list, by a row of scheduleRows.
func schedulePlace(row ports.Cursor) ports.Cursor {
	name, id, _ := strings.Cut(row.ID, "/") // no name has one
	return ports.Cursor{ID: storekit.ScheduleByName(core.ScheduleKey{ID: id, Name: name})}
}

// readSchedules reads the schedules at places that still exist.
func (s *Store) readSchedules(ctx context.Context, queue string, places []storekit.Listed) (page ports.SchedulesPage, err error) {
	indexes, ids, names := make([]int32, len(places)), make([]string, len(places)), make([]string, len(places))
	for i, p := range places {
		key := storekit.ScheduleOfName(p.At.ID)
		indexes[i], ids[i], names[i] = int32(p.Shard.Index), key.ID, key.Name
	}
	err = s.query(ctx, idempotent, func(rows pgx.Rows) error {
		page = ports.SchedulesPage{}
		return eachRow(rows, func() error {
			var id, name, record *string
			if err := rows.Scan(&page.Now, &id, &name, &record); err != nil || record == nil {
				return err
			}
			schedule, err := storekit.DecodeSchedule(*record)
			if err == nil {
				page.Schedules = append(page.Schedules, schedule)
			}
			return nil
		})
	}, schedulesSQL, s.now(), queue, indexes, ids, names)
	return page, err
}

const scheduleNamesSQL = `
SELECT n.now, e.name, coalesce(e.count, 0), e.record
FROM (SELECT {schema}.clock($1) AS now) n
LEFT JOIN {schema}.list_schedule_names(p_queue => $2, p_indexes => $3, p_after => $4, p_most => $5) e ON true
ORDER BY e.name COLLATE "C"`

// ScheduleNames implements [ports.Calendar].
func (s *Store) ScheduleNames(ctx context.Context, r ports.ScheduleNamesRequest) (ports.ScheduleNamesPage, error) {
	shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.ScheduleNamesPage{}, err
	}
	var (
		page ports.ScheduleNamesPage
		sums storekit.ScheduleNameSums
	)
	err = s.query(ctx, idempotent, func(rows pgx.Rows) error {
		page, sums = ports.ScheduleNamesPage{}, storekit.ScheduleNameSums{}
		return eachRow(rows, func() error {
			var (
				name, record *string
				sum          ports.ScheduleName
			)
			if err := rows.Scan(&page.Now, &name, &sum.Count, &record); err != nil || name == nil {
				return err
			}
			sum.Name = *name
			if sum.First, err = storekit.DecodeSchedule(*record); err != nil {
				return fmt.Errorf("a schedule with the name %q: %w", sum.Name, err)
			}
			sums.Add(sum)
			return nil
		})
	}, scheduleNamesSQL, s.now(), r.Queue, indexesOf(shards), r.After, r.Size()+1)
	if err != nil {
		return ports.ScheduleNamesPage{}, err
	}
	page.Names, page.Next = sums.Page(r.Size())
	return page, nil
}
