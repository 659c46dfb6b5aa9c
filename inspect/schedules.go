package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/specs"
	"github.com/skeinq/skein/ports"
)

// Errors of schedules, each returned wrapped.
var (
	// ErrUnknownSchedule reports a schedule that the store does not have, or a selection without a
	// schedule.
	ErrUnknownSchedule = errors.New("unknown schedule; the list of schedules has their names and ids")
	// ErrScheduleChanged reports a schedule that others have changed while an action was under way.
	ErrScheduleChanged = errors.New("the schedule was changed meanwhile")
	// ErrScheduleExists reports schedules that were not moved because the target has others with
	// their ids and names.
	ErrScheduleExists = errors.New("the target has other schedules with the same ids and names")
	// ErrInvalidSchedule reports a change that no schedule can have, or a spec that this process
	// can't read.
	ErrInvalidSchedule = core.ErrInvalidSchedule
)

// Schedule is a schedule of a queue (docs/rules.md 10), as the store has it.
type Schedule struct {
	core.Schedule
	// Queue is its queue, and Shard the index of its shard.
	Queue string
	Shard int
	// Due is when the next tick is due: Next with its jitter, or later while the spec can't be read.
	// It is zero if the schedule is paused or has no next tick. A paused queue does not change it.
	Due time.Time
	// Late is how long the next tick has been due, by the store's clock.
	Late time.Duration

	// now is the store's clock when the schedule was read.
	now core.Instant
}

// NextTicks returns the next ticks, at most n, in the schedule's time zone and before their jitter.
// An interval's are in UTC. Of several overdue ticks only the first is among them. NextTicks
// returns [ErrInvalidSchedule] if this process can't read the spec.
func (s *Schedule) NextTicks(n int) ([]time.Time, error) {
	spec, err := s.Ticks(new(specs.Specs).Parse)
	if err != nil {
		return nil, err
	}

	var ticks []time.Time
	after := max(s.SpecSince, s.now.Add(-s.Jitter)) // ticks up to then are due by now
	for tick, ok := s.Next, s.Next < core.MaxInstant; ok && len(ticks) < n; tick, ok = spec.Next(max(tick, after)) {
		ticks = append(ticks, spec.Local(tick))
	}
	return ticks, nil
}

// ScheduleSelection selects schedules of a queue. An action needs at least one of the fields.
type ScheduleSelection struct {
	// ID selects the schedules of an id, and Name those of a name. Both together select one.
	ID, Name string
}

// ScheduleOptions select the schedules to list. The zero value lists all, in order of name and id.
type ScheduleOptions struct {
	ScheduleSelection
	// After starts the list behind this schedule. The zero value is the start.
	After core.ScheduleKey
	// Limit is the maximum number of schedules. 0 means no limit.
	Limit int
}

// Schedules lists schedules of a queue, in order of name and id.
func (i *Inspector) Schedules(ctx context.Context, queue string, o ScheduleOptions) iter.Seq2[Schedule, error] {
	return func(yield func(Schedule, error) bool) {
		if o.Limit < 0 {
			yield(Schedule{}, fmt.Errorf("%w: a limit of %d rows; give 0 or more, 0 means no limit",
				ErrInvalidOptions, o.Limit))
			return
		}
		shards, err := i.shards(ctx, queue)
		if err != nil {
			yield(Schedule{}, err)
			return
		}

		var unreached []core.Shard
		r := o.request(queue, shards)
		r.After, r.Limit = o.After, o.Limit
		for listed := 0; ; {
			page, err := ask(i, func(s Store) (ports.SchedulesPage, error) { return s.Schedules(ctx, r) })
			if err != nil {
				err = invalidSelection(err)
				yield(Schedule{}, err)
				return
			}

			for at := range page.Schedules {
				if o.Limit > 0 && listed == o.Limit {
					break
				}
				if listed++; !yield(scheduleOf(&page.Schedules[at], queue, shards, page.Now), nil) {
					return
				}
			}

			unreached = mergeShards(unreached, page.Unreached)
			r.After = page.Next
			if r.After == (core.ScheduleKey{}) || o.Limit > 0 && listed >= o.Limit {
				break
			}
		}

		if err := partial(unreached); err != nil {
			yield(Schedule{}, err)
		}
	}
}

// request returns the request for the selected schedules of a queue.
func (sel ScheduleSelection) request(queue string, shards int) ports.SchedulesRequest {
	r := ports.SchedulesRequest{Queue: queue, ID: sel.ID, Name: sel.Name}
	if r.ID != "" {
		r.Shards = []int{core.ShardOf(r.ID, shards)}
	}
	return r
}

// invalidSelection adds ErrInvalidOptions to the error for an id or a name that nothing can have.
func invalidSelection(err error) error {
	if errors.Is(err, ports.ErrInvalidRequest) {
		return fmt.Errorf("%w: %w", ErrInvalidOptions, err)
	}
	return err
}

// schedulesOf returns the first schedules of an id, whose shard is known.
func (i *Inspector) schedulesOf(ctx context.Context, shard core.Shard, id string) (list []Schedule, err error) {
	r := ports.SchedulesRequest{Queue: shard.Queue, Shards: []int{shard.Index}, ID: id}
	page, err := ask(i, func(s Store) (ports.SchedulesPage, error) { return s.Schedules(ctx, r) })
	if err == nil {
		err = partial(page.Unreached)
	}

	for at := range page.Schedules {
		list = append(list, scheduleIn(&page.Schedules[at], shard, page.Now))
	}
	return list, err
}

func scheduleOf(s *core.Schedule, queue string, shards int, now core.Instant) Schedule {
	return scheduleIn(s, core.Shard{Queue: queue, Index: core.ShardOf(s.ID, shards)}, now)
}

func scheduleIn(s *core.Schedule, shard core.Shard, now core.Instant) Schedule {
	view := Schedule{Schedule: *s, Queue: shard.Queue, Shard: shard.Index, now: now}
	if head := s.Head(); head.OK {
		view.Due, view.Late = head.Due.Time(), head.Lag(now)
	}
	return view
}

// Schedule returns the schedule of an id by its name, or [ErrUnknownSchedule].
func (i *Inspector) Schedule(ctx context.Context, queue, id, name string) (Schedule, error) {
	key := core.ScheduleKey{ID: id, Name: name}
	if err := key.Validate(); err != nil {
		return Schedule{}, err
	}
	for s, err := range i.Schedules(ctx, queue, ScheduleOptions{
		ScheduleSelection: ScheduleSelection{ID: id, Name: name},
	}) {
		return s, err
	}
	return Schedule{}, fmt.Errorf("%w: %s in queue %q",
		ErrUnknownSchedule, ScheduleSelection{ID: id, Name: name}.unknown(), queue)
}

// ScheduleName is the schedules of one name in a queue.
type ScheduleName struct {
	Name string
	// Count is the number of its schedules, one for each of as many ids.
	Count int64
	// First is the one with the smallest id that can be read. If none of the first schedules of the
	// name can be read, First has no ID and no tick, and its Broken is the reason.
	First Schedule
}

// noneReadable is the Broken of the First of a name if no schedule could be read.
const noneReadable = "no record of the schedules of this name could be read; " +
	"run skein repair recount with the queue's name, which sets such records aside"

// ScheduleNames is a page of the names of a queue's schedules.
type ScheduleNames struct {
	Names []ScheduleName
	// Next is the after of the next page. It is empty if no page follows.
	Next string
	// Now is the store's clock.
	Now time.Time
}

// ScheduleNames counts the schedules of a queue by name, in order of name. It returns at most limit
// names behind after: 0 means 100, which is also the maximum. The cost depends on the number of
// names, not on the number of schedules. If shards can't be reached, it returns the counts of the
// others and a *[PartialError].
func (i *Inspector) ScheduleNames(ctx context.Context, queue, after string, limit int) (ScheduleNames, error) {
	if limit < 0 {
		return ScheduleNames{}, fmt.Errorf("%w: a limit of %d names; give 0 or more, 0 means 100",
			ErrInvalidOptions, limit)
	}

	shards, err := i.shards(ctx, queue)
	if err != nil {
		return ScheduleNames{}, err
	}

	page, err := ask(i, func(s Store) (ports.ScheduleNamesPage, error) {
		return s.ScheduleNames(ctx, ports.ScheduleNamesRequest{Queue: queue, After: after, Limit: limit})
	})
	if err != nil {
		return ScheduleNames{}, invalidSelection(err)
	}

	view := func(n *ports.ScheduleName) ScheduleName {
		if n.First.Revision == 0 {
			n.First = core.Schedule{Next: core.MaxInstant, Broken: noneReadable}
			n.First.Name = n.Name
		}
		return ScheduleName{Name: n.Name, Count: n.Count, First: scheduleOf(&n.First, queue, shards, page.Now)}
	}
	return ScheduleNames{convert(page.Names, view), page.Next, page.Now.Time()}, partial(page.Unreached)
}
