package inspect

import (
	"cmp"
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// rest moves all schedules of the source and copies its records, shard by shard, after the jobs or from
// the place of the run's checkpoint on. After Limit, Stop or an error the result has the checkpoint to
// continue from. A shard that can't be reached is skipped, and the checkpoint stays before the
// first such shard.
func (m *mover) rest(ctx context.Context) (Result, error) {
	shards, err := m.inspector.shards(ctx, m.queue)
	switch {
	case err != nil:
		return m.stopped(err)
	case shards != m.run.At.Shards:
		return m.stopped(fmt.Errorf("%w: the queue had %d shards and now has %d; start the move again",
			ErrInvalidCheckpoint, m.run.At.Shards, shards))
	}

	at := schedulesPlace{}
	if was := &m.run.At; was.Schedules {
		at, m.different = schedulesPlace{
			was.Shard,
			core.ScheduleKey{ID: was.ID, Name: was.Name},
			was.Different,
		}, was.Different
	} else if m.run.Ends(0) {
		return m.markedAt(at, nil)
	}

	for index := at.shard; index < shards; index++ {
		shard, after := core.Shard{Queue: m.queue, Index: index}, core.ScheduleKey{}
		if len(m.skipped) == 0 {
			if index > at.shard {
				at = schedulesPlace{index, core.ScheduleKey{}, m.different}
			}
			if after = at.key; m.run.Mark(at.shard, at.key, at.different) != nil {
				return m.markedAt(at, nil)
			}
		}

		ended := false
		err := m.try(ctx, shard, func() error {
			if after == (core.ScheduleKey{}) {
				if err := m.allPast(ctx, shard); err != nil {
					return err
				}
			}
			r := ports.SchedulesRequest{Queue: m.queue, Shards: []int{index}, After: after}
			return m.schedules(ctx, shard, r, func(k core.ScheduleKey, moved int) (more bool) {
				m.Total, m.Met = m.Total+moved, m.Met+moved
				m.Pass(moved, moved)
				if len(m.skipped) == 0 {
					at.key, at.different = k, m.different
				}
				ended = m.run.Ends(moved)
				return !ended
			})
		})
		if err != nil || ended {
			return m.markedAt(at, err)
		}
	}
	if err := partial(m.skipped); err != nil {
		return m.markedAt(at, err)
	}

	r, _ := m.end(nil)
	return r, m.errDifferent()
}

// schedulesPlace is a place in the schedules of a queue: the shard, the last schedule before the
// place, and the number of schedules before it that stay.
type schedulesPlace struct {
	shard     int
	key       core.ScheduleKey
	different int
}

// markedAt returns the result of a move that has not finished, with the checkpoint of a place.
func (m *mover) markedAt(at schedulesPlace, err error) (Result, error) {
	err = cmp.Or(err, m.run.Mark(at.shard, at.key, at.different))
	return m.stopped(err)
}

// stopped returns the result of a move that has not finished.
func (m *mover) stopped(err error) (Result, error) { return m.result(Checkpoint(m.run.Last)), err }

// countSchedules returns the number of schedules of a queue.
func (i *Inspector) countSchedules(ctx context.Context, queue string) (count int, err error) {
	for after := ""; ; {
		page, err := i.ScheduleNames(ctx, queue, after, 0)
		for _, n := range page.Names {
			count += int(n.Count)
		}
		if after = page.Next; err != nil || after == "" {
			return count, err
		}
	}
}

// schedules moves the schedules of a shard of the source that a request selects, in their order,
// until more returns false. more is called for each, with the number of schedules that were moved,
// 0 or 1. Those that the target has by the same key, and that differ, stay in both.
func (m *mover) schedules(
	ctx context.Context,
	shard core.Shard,
	r ports.SchedulesRequest,
	more func(k core.ScheduleKey, moved int) bool,
) error {
	for {
		page, err := persist(ctx, m.inspector, func(s Store) (ports.SchedulesPage, error) {
			return s.Schedules(ctx, r)
		})
		if err == nil {
			err = partial(page.Unreached)
		}
		if err != nil {
			return err
		}

		for at := range page.Schedules {
			done, err := m.schedule(ctx, shard, page.Schedules[at])
			if err != nil {
				return err
			}
			moved := 0
			if done {
				moved = 1
			}
			if !more(page.Schedules[at].ScheduleKey, moved) {
				return nil
			}
		}

		if r.After = page.Next; r.After == (core.ScheduleKey{}) {
			return nil
		}
	}
}

// schedule moves one schedule: it copies it, and removes it at the source if it is still as it was
// copied. Otherwise it copies it again. A schedule that is removed at the source meanwhile is
// removed at the target too.
func (m *mover) schedule(ctx context.Context, shard core.Shard, s core.Schedule) (moved bool, err error) {
	source, err := m.inspector.record(ctx, m.queue)
	if err != nil {
		return false, err
	}

	copied := int64(0) // the revision of the copy
	for range scheduleTries {
		if copied, err = m.putSchedule(ctx, &s, copied); err != nil || copied == 0 {
			return false, err
		}
		result, err := m.inspector.replaceSchedule(ctx, &source, s.ScheduleKey, s.Revision, nil)
		if err != nil || result == ports.ScheduleChanged {
			return err == nil, err
		}

		now, err := m.inspector.scheduleAt(ctx, &source, s.ScheduleKey)
		if err != nil {
			return false, err
		}
		if now.Revision == 0 {
			_, err := m.into.replaceSchedule(ctx, &m.to, s.ScheduleKey, copied, nil)
			return false, err
		}
		s = now.Schedule
	}
	return false, fmt.Errorf("%w, %d times, such as %q of id %q; pause the source, and repeat the move",
		ErrScheduleChanged, scheduleTries, s.Name, s.ID)
}

// putSchedule puts a schedule into the target, in place of the copy with a revision, or of none. It
// returns the revision of the copy. It is 0 if the target has another schedule with the key, which
// stays.
func (m *mover) putSchedule(ctx context.Context, s *core.Schedule, former int64) (revision int64, err error) {
	to, err := m.into.record(ctx, m.to.Name)
	switch {
	case err != nil:
		return 0, fmt.Errorf("the target: %w", err)
	case !to.Paused:
		return 0, fmt.Errorf("%w: %q; pause it, and repeat the move", ErrNotPaused, to.Name)
	}
	if err := s.Recurrence.Validate(to.Merge); err != nil {
		return 0, fmt.Errorf("schedule %q of id %q can't be in the target: %w", s.Name, s.ID, err)
	}

	for range scheduleTries {
		there, err := m.into.scheduleAt(ctx, &to, s.ScheduleKey)
		switch {
		case err != nil:
			return 0, fmt.Errorf("the target: %w", err)
		case there.Revision > 0 && samePushes(&there.Schedule, s):
			return there.Revision, nil
		case there.Revision != 0 && there.Revision != former:
			m.different++
			return 0, nil
		}

		next := s.Changed(s.By, there.now)
		next.ChangedAt, next.Revision = s.ChangedAt, max(next.Revision, there.Revision+1)
		result, err := m.into.replaceSchedule(ctx, &to, s.ScheduleKey, there.Revision, &next)
		if err != nil {
			return 0, fmt.Errorf("the target: %w", err)
		}
		if result == ports.ScheduleChanged {
			return next.Revision, nil
		}
	}
	return 0, fmt.Errorf("the target: %w", ErrScheduleChanged)
}

// samePushes reports whether two schedules of one key push the same from now on.
func samePushes(a, b *core.Schedule) bool {
	return a.Recurrence.Equal(&b.Recurrence) && a.Next == b.Next && a.Paused == b.Paused
}

// errDifferent is the error for schedules that stay since the target has others by their keys.
func (m *mover) errDifferent() error {
	if m.different == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d stay in both queues; remove them in the queue where they are not wanted",
		ErrScheduleExists, m.different)
}

// scheduleAt returns the schedule of a key. It has the Revision 0 if there is none.
func (i *Inspector) scheduleAt(ctx context.Context, q *ports.Queue, k core.ScheduleKey) (Schedule, error) {
	shard := core.Shard{Queue: q.Name, Index: core.ShardOf(k.ID, q.Shards)}
	r := ports.SchedulesRequest{Queue: q.Name, Shards: []int{shard.Index}, ID: k.ID, Name: k.Name}
	page, err := persist(ctx, i, func(s Store) (ports.SchedulesPage, error) { return s.Schedules(ctx, r) })
	if err == nil {
		err = partial(page.Unreached)
	}
	if err != nil || len(page.Schedules) == 0 {
		return Schedule{now: page.Now}, err
	}
	return scheduleIn(&page.Schedules[0], shard, page.Now), nil
}

// replaceSchedule makes one change of a schedule; nil removes it.
func (i *Inspector) replaceSchedule(
	ctx context.Context, q *ports.Queue, k core.ScheduleKey, revision int64, next *core.Schedule,
) (ports.ScheduleResult, error) {
	change := []ports.ScheduleChange{{ScheduleKey: k, Revision: revision, Schedule: next}}
	reply, err := i.changeSchedules(ctx, q, core.ShardOf(k.ID, q.Shards), change)
	if err != nil {
		return 0, err
	}
	return reply.Results[0], nil
}
