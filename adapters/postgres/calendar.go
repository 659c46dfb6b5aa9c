package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

const changeSchedulesSQL = `SELECT status, now, results,
  coalesce(new, 0), coalesce(merged, 0), coalesce(superseded, 0), earliest, head
FROM {schema}.change_schedules(p_queue => $1, p_index => $2, p_shards => $3, p_generation => $4,
  p_now => $5, p_firing => $6,
  p_ids => $7, p_names => $8, p_revisions => $9, p_records => $10, p_new_revisions => $11, p_ticks => $12,
  p_busy => $13, p_busy_revisions => $14, p_busy_ticks => $15,
  p_changes => $16,
  p_at => $17, p_delay => $18, p_scores => $19, p_data => $20, p_meta => $21, p_urgent => $22, p_tags => $23)`

// ChangeSchedules implements [ports.Calendar]. It handles all changes in one transaction, or the
// first ones that fit into the bounds of a turn. It holds the lock of the shard's row, so turns and
// changes of the shard follow one another, and of two callers that create a schedule one is
// refused.
func (s *Store) ChangeSchedules(
	ctx context.Context,
	r ports.ChangeSchedulesRequest,
) (ports.ChangeSchedulesReply, error) {
	if err := r.Validate(); err != nil {
		return ports.ChangeSchedulesReply{}, err
	}
	if _, err := s.setUnreadableAside(ctx, &r, nil); err != nil {
		return ports.ChangeSchedulesReply{}, err
	}
	if ids := pushedIDs(&r); len(ids) > 0 {
		if err := s.mergeIDs(ctx, r.Shard, ids...); err != nil {
			return ports.ChangeSchedulesReply{}, err
		}
	}
	reply, err := s.changeSchedules(ctx, &r)
	if err != nil {
		return ports.ChangeSchedulesReply{}, err
	}

	// A refusal may be due to a record that can't be read. If that can't be found out, it stays one.
	if moved, err := s.setUnreadableAside(ctx, &r, reply.Results); err == nil && moved > 0 {
		storekit.RepeatRefused(&r, &reply, func(
			again *ports.ChangeSchedulesRequest,
		) (ports.ChangeSchedulesReply, error) {
			return s.changeSchedules(ctx, again)
		})
	}
	return reply, nil
}

// pushedIDs returns the ids that changes push for. What transactions have pushed for them before is
// merged first, as by a turn.
func pushedIDs(r *ports.ChangeSchedulesRequest) (ids []string) {
	for i := range r.Changes {
		if c := &r.Changes[i]; len(c.Entries) > 0 {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// setUnreadableAside sets the records of changes aside that can't be read: those of the changes
// that were refused, or without results those of the changes by any revision, which no refusal
// shows.
func (s *Store) setUnreadableAside(
	ctx context.Context,
	r *ports.ChangeSchedulesRequest,
	results []ports.ScheduleResult,
) (moved int, err error) {
	var places []storekit.Listed
	for i := range r.Changes {
		c := &r.Changes[i]
		if results == nil && c.Revision == ports.AnyRevision ||
			i < len(results) && results[i] == ports.ScheduleRefused {
			places = append(places, storekit.Listed{
				Shard: r.Shard,
				At:    ports.Cursor{ID: storekit.ScheduleByName(c.ScheduleKey)},
			})
		}
	}
	if len(places) == 0 {
		return 0, nil
	}

	_, records, err := s.readSchedules(ctx, r.Shard.Queue, places)
	if err != nil {
		return 0, err
	}
	return s.setAside(ctx, unreadable(records))
}

// changeSchedules changes schedules by one call of the function change_schedules.
func (s *Store) changeSchedules(
	ctx context.Context,
	r *ports.ChangeSchedulesRequest,
) (ports.ChangeSchedulesReply, error) {
	columns, err := newScheduleColumns(r.Changes)
	if err != nil {
		return ports.ChangeSchedulesReply{}, err
	}

	var (
		st             status
		results        []scheduleResult
		earliest, head *int64
		reply          ports.ChangeSchedulesReply
	)

	args := []any{textOrNone(r.Shard.Queue), index(r.Shard), int32(r.Shards), r.Generation, s.now(), r.Firing}
	err = s.queryOne(ctx, ifRolledBack,
		[]any{&st, &reply.Now, &results, &reply.Met.New, &reply.Met.Merged, &reply.Met.Superseded, &earliest, &head},
		changeSchedulesSQL, append(args, columns.args()...)...)
	if err == nil {
		err = st.layoutErr(r.Shard, storekit.Layout{Shards: r.Shards, Generation: r.Generation})
	}
	if err != nil {
		return ports.ChangeSchedulesReply{}, err
	}

	pushed := 0
	for i, result := range results {
		reply.Results = append(reply.Results, result.port())
		if reply.Results[i] == ports.ScheduleChanged {
			pushed += len(r.Changes[i].Entries)
		}
	}

	reply.Met.Now = reply.Now
	reply.Met.Duplicate = pushed - reply.Met.New - reply.Met.Merged - reply.Met.Superseded
	reply.Head = newHead(head)

	if earliest != nil {
		s.wakeAfterPush(r.Shard, core.Instant(*earliest), reply.Now)
	}
	return reply, nil
}

// scheduleResult is what the function change_schedules reports of a change.
type scheduleResult string

// port returns the port's result.
func (r scheduleResult) port() ports.ScheduleResult {
	switch r {
	case "changed":
		return ports.ScheduleChanged
	case "busy":
		return ports.ScheduleBusy
	case "paused":
		return ports.SchedulePaused
	}
	return ports.ScheduleRefused
}

// scheduleColumns are changes of schedules as parameters.
type scheduleColumns struct {
	ids, names []string
	revisions  []int64
	stored     scheduleRecords
	busy       scheduleRecords
	// changes has the place of the change of each entry, from 1.
	changes []int32
	entries pushStatement
	urgent  []bool
	tags    []string
}

// scheduleRecords are records with their revisions and ticks, which are nil for no record, and for
// a schedule without a next tick.
type scheduleRecords struct {
	records   []*string
	revisions []*int64
	ticks     []*int64
}

// add adds a record, or none for nil. It returns the size of the record.
func (r *scheduleRecords) add(s *core.Schedule) (size int, err error) {
	if s == nil {
		r.records, r.revisions, r.ticks = append(r.records, nil), append(r.revisions, nil), append(r.ticks, nil)
		return 0, nil
	}

	text, err := storekit.EncodeSchedule(s)
	if err != nil {
		return 0, err
	}

	var tick *int64
	if head := s.Head(); head.OK {
		due := int64(head.Due)
		tick = &due
	}
	r.records, r.revisions, r.ticks = append(r.records, &text), append(r.revisions, &s.Revision), append(r.ticks, tick)
	return len(text), nil
}

// newScheduleColumns returns the first of the changes as parameters: as many as a turn may move
// payloads and bytes, and at least one.
func newScheduleColumns(changes []ports.ScheduleChange) (*scheduleColumns, error) {
	c := &scheduleColumns{ids: []string{}, names: []string{}, revisions: []int64{}}
	bytes, entries := 0, 0
	for i := range changes {
		entries += len(changes[i].Entries)
		bytes += sizeOfEntries(changes[i].Entries)
		if i > 0 && (entries > core.MaxTurnPayloads || bytes > core.MaxStepBytes) {
			break
		}

		size, err := c.add(&changes[i])
		if err != nil {
			return nil, err
		}
		bytes += size
	}
	return c, nil
}

func sizeOfEntries(entries []core.Entry) (size int) {
	for i := range entries {
		size += len(entries[i].Payload.Data) + len(entries[i].Payload.Meta)
	}
	return size
}

// add adds a change. It returns the size of its records.
func (c *scheduleColumns) add(change *ports.ScheduleChange) (size int, err error) {
	c.ids, c.names = append(c.ids, change.ID), append(c.names, change.Name)
	c.revisions = append(c.revisions, change.Revision)
	if size, err = c.stored.add(change.Schedule); err != nil {
		return 0, err
	}
	busy, err := c.busy.add(change.Busy)
	if err != nil {
		return 0, err
	}

	for i := range change.Entries {
		en := &change.Entries[i]
		c.changes = append(c.changes, int32(len(c.ids)))
		c.urgent = append(c.urgent, en.When.Urgent())
		c.tags = append(c.tags, string(en.Tags))
		c.entries.time(en.When)
		c.entries.add(0, en.ID, en.Payload)
	}
	return size + busy, nil
}

// args returns the parameters of changeSchedulesSQL from $7 on.
func (c *scheduleColumns) args() []any {
	return []any{
		c.ids, c.names, c.revisions, c.stored.records, c.stored.revisions, c.stored.ticks,
		c.busy.records, c.busy.revisions, c.busy.ticks,
		c.changes, c.entries.at, c.entries.delay, c.entries.scores, c.entries.data, c.entries.meta, c.urgent, c.tags,
	}
}

const ticksSQL = `SELECT place, status, now, head, id, name, record
FROM {schema}.ticks(p_queues => $1, p_indexes => $2, p_now => $3, p_limit => $4)`

// mostSetAside is the maximum number of times that Ticks reads again because it has set records
// aside.
const mostSetAside = 1000

// Ticks implements [ports.Calendar]. It writes only to set records aside that it can't read.
func (s *Store) Ticks(ctx context.Context, r ports.TicksRequest) (ports.TicksReply, error) {
	for range mostSetAside {
		reply, due, err := s.ticks(ctx, &r)
		if err != nil {
			return ports.TicksReply{}, err
		}

		faults := unreadable(due)
		if len(faults) == 0 {
			return reply, nil
		}
		if _, err := s.setAside(ctx, faults); err != nil {
			return ports.TicksReply{}, err
		}
	}
	return ports.TicksReply{}, errManyUnreadable
}

var errManyUnreadable = fmt.Errorf(
	"postgres: records of schedules that can't be read came faster than %d calls could set them aside; "+
		"find the program that writes them",
	mostSetAside)

// ticks is Ticks without those of the returned records that can't be read.
func (s *Store) ticks(
	ctx context.Context,
	r *ports.TicksRequest,
) (reply ports.TicksReply, due []storedSchedule, err error) {
	queues, indexes := make([]string, len(r.Shards)), make([]int32, len(r.Shards))
	for i, shard := range r.Shards {
		queues[i], indexes[i] = textOrNone(shard.Queue), index(shard)
	}

	err = s.query(ctx, idempotent, func(rows pgx.Rows) error {
		reply, due = ports.TicksReply{Shards: make([]ports.ShardTicks, len(r.Shards))}, nil
		return eachRow(rows, func() error {
			var (
				place            int
				st               status
				now              core.Instant
				head             *int64
				id, name, record *string
			)
			if err := rows.Scan(&place, &st, &now, &head, &id, &name, &record); err != nil {
				return err
			}
			shard, ticks := r.Shards[place-1], &reply.Shards[place-1]
			if record == nil {
				ticks.Now, ticks.Head = now, newHead(head)
				return st.err(shard)
			}

			stored := storedSchedule{shard: shard, key: core.ScheduleKey{ID: *id, Name: *name}, text: *record}
			due = append(due, stored)
			if schedule, err := stored.read(); err == nil {
				ticks.Due = append(ticks.Due, schedule)
			}
			return nil
		})
	}, ticksSQL, queues, indexes, s.now(), r.Size())
	return reply, due, err
}
