package postgres

import (
	"context"
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
    SELECT t.name, t.id FROM {schema}.schedules t
    WHERE t.shard = q.first + s.index AND {after}
    ORDER BY t.name, t.id LIMIT $3
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

// schedulesSQL reads the records of schedules that exist, with their places in the request, from 1,
// or the clock alone if none exists.
//
//	$1 now, $2 the queue, $3 the indexes of the shards, $4 the ids, $5 the names
const schedulesSQL = `
SELECT n.now, e.place, e.record
FROM (SELECT {schema}.clock($1) AS now) n LEFT JOIN (
  SELECT w.place, e.record::text
  FROM (SELECT {schema}.first_shard(q.id) AS first FROM {schema}.queues q WHERE q.name = $2) q
  CROSS JOIN unnest($3::int[], $4::text[], $5::text[]) WITH ORDINALITY w (index, id, name, place)
  CROSS JOIN LATERAL (
    SELECT * FROM {schema}.schedules
    WHERE shard = q.first + w.index AND id = w.id COLLATE "C" AND name = w.name COLLATE "C"
    OFFSET 0
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
	now, records, err := s.readSchedules(ctx, r.Queue, places)
	if err != nil {
		return ports.SchedulesPage{}, err
	}

	page := ports.SchedulesPage{Now: now, Next: next}
	for i := range records {
		if schedule, err := records[i].read(); err == nil {
			page.Schedules = append(page.Schedules, schedule)
		}
	}
	return page, nil
}

// schedulePlaces finds the places of a page, and the key behind which the next page begins.
func (s *Store) schedulePlaces(
	ctx context.Context,
	r *ports.SchedulesRequest,
	shards []core.Shard,
) ([]storekit.Listed, core.ScheduleKey, error) {
	after, only := afterSchedule, ""
	switch {
	case r.ID != "":
		after, only = afterOfID, r.ID
	case r.Name != "":
		after, only = afterOfName, r.Name
	}

	p := storekit.NewPager[storekit.Listed](storekit.SchedulePageRequest(r), true)
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

// readSchedules reads the records at places of a list that still exist, and the clock.
func (s *Store) readSchedules(
	ctx context.Context,
	queue string,
	places []storekit.Listed,
) (now core.Instant, records []storedSchedule, err error) {
	indexes, ids, names := make([]int32, len(places)), make([]string, len(places)), make([]string, len(places))
	for i, p := range places {
		key := storekit.ScheduleOfName(p.At.ID)
		indexes[i], ids[i], names[i] = index(p.Shard), key.ID, key.Name
	}

	err = s.query(ctx, idempotent, func(rows pgx.Rows) error {
		records = nil
		return eachRow(rows, func() error {
			var place *int
			var text *string
			if err := rows.Scan(&now, &place, &text); err != nil || place == nil {
				return err
			}

			at := places[*place-1]
			records = append(records, storedSchedule{
				shard: at.Shard,
				key:   storekit.ScheduleOfName(at.At.ID),
				text:  *text,
			})
			return nil
		})
	}, schedulesSQL, s.now(), textOrNone(queue), indexes, ids, names)
	return now, records, err
}

// unreadable returns the records that can't be read.
func unreadable(records []storedSchedule) []storedSchedule {
	return slices.DeleteFunc(slices.Clone(records), func(r storedSchedule) bool {
		_, err := r.read()
		return err == nil
	})
}

// scheduleNamesSQL lists names of schedules, or the clock alone if there is none.
//
//	$1 now, $2 the queue, $3 the indexes of the shards, $4 the name that they begin behind, $5 the most names
const scheduleNamesSQL = `
SELECT n.now, e.name, coalesce(e.count, 0), coalesce(e.index, 0), e.id, e.record
FROM (SELECT {schema}.clock($1) AS now) n
LEFT JOIN {schema}.list_schedule_names(p_queue => $2, p_indexes => $3, p_after => $4, p_most => $5) e ON true
ORDER BY e.name COLLATE "C"`

// ScheduleNames implements [ports.Calendar].
func (s *Store) ScheduleNames(ctx context.Context, r ports.ScheduleNamesRequest) (ports.ScheduleNamesPage, error) {
	shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.ScheduleNamesPage{}, err
	}
	page, records, err := s.scheduleNames(ctx, &r, shards)
	if err != nil {
		return ports.ScheduleNamesPage{}, err
	}

	for i := range page.Names {
		first, err := records[i].read()
		if err != nil {
			if first, err = storekit.NextReadable(ctx, s, &r, page.Names[i].Name); err != nil {
				return ports.ScheduleNamesPage{}, err
			}
		}
		page.Names[i].First = first
	}
	return page, nil
}

// scheduleNames returns a page of names without their First, and the records of those.
func (s *Store) scheduleNames(
	ctx context.Context,
	r *ports.ScheduleNamesRequest,
	shards []core.Shard,
) (page ports.ScheduleNamesPage, records []storedSchedule, err error) {
	err = s.query(ctx, idempotent, func(rows pgx.Rows) error {
		page, records = ports.ScheduleNamesPage{}, nil
		return eachRow(rows, func() error {
			var (
				sum            ports.ScheduleName
				first          = storedSchedule{shard: core.Shard{Queue: r.Queue}}
				name, id, text *string
			)
			if err := rows.Scan(&page.Now, &name, &sum.Count, &first.shard.Index, &id, &text); err != nil ||
				name == nil {
				return err
			}

			sum.Name, first.key, first.text = *name, core.ScheduleKey{ID: *id, Name: *name}, *text
			page.Names, records = append(page.Names, sum), append(records, first)
			return nil
		})
	}, scheduleNamesSQL, s.now(), r.Queue, shardIndexes(shards), r.After, r.Size()+1)

	if size := r.Size(); len(page.Names) > size {
		page.Names = page.Names[:size]
		page.Next = page.Names[size-1].Name
	}
	return page, records, err
}
