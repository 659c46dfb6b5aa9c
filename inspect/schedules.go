package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/specs"
	"github.com/skeinq/skein/ports"
)

// ErrUnknownSchedule reports a schedule that the store does not have.
var ErrUnknownSchedule = errors.New("unknown schedule: the id has none of this name; the list of schedules has the names")

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
}

// NextTicks returns the next ticks, at most n, in the schedule's time zone and before their jitter.
// An interval's are in UTC. It returns [core.ErrInvalidSchedule] if this process can't read the
// spec.
func (s *Schedule) NextTicks(n int) ([]time.Time, error) {
	spec, err := s.Ticks(new(specs.Specs).Parse)
	if err != nil {
		return nil, err
	}
	var ticks []time.Time
	for tick := s.Next; len(ticks) < n && tick < core.MaxInstant; {
		ticks = append(ticks, spec.Local(tick))
		next, ok := spec.Next(tick)
		if !ok {
			break
		}
		tick = next
	}
	return ticks, nil
}

// ScheduleSelection selects schedules of a queue. At least one field must be set for an action.
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
			yield(Schedule{}, fmt.Errorf("%w: a limit of %d rows; give 0 or more, 0 means no limit", ErrInvalidOptions, o.Limit))
			return
		}
		var unreached []core.Shard
		r := ports.SchedulesRequest{Queue: queue, ID: o.ID, Name: o.Name, After: o.After, Limit: o.Limit}
		for listed := 0; ; {
			page, shards, err := i.schedulesPage(ctx, r)
			if err != nil {
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
			unreached = append(unreached, page.Unreached...)
			r.After = page.Next
			if r.After == (core.ScheduleKey{}) || o.Limit > 0 && listed >= o.Limit {
				break
			}
		}
		if err := partial(slices.Compact(unreached)); err != nil {
			yield(Schedule{}, err)
		}
	}
}

// schedulesPage returns a page of schedules, and the shard count of the queue.
func (i *Inspector) schedulesPage(ctx context.Context, r ports.SchedulesRequest) (page ports.SchedulesPage, shards int, err error) {
	if shards, err = i.shards(ctx, r.Queue); err != nil {
		return page, 0, err
	}
	if r.ID != "" {
		r.Shards = []int{core.ShardOf(r.ID, shards)}
	}
	page, err = ask(i, func(s Store) (ports.SchedulesPage, error) { return s.Schedules(ctx, r) })
	if errors.Is(err, ports.ErrInvalidRequest) {
		err = fmt.Errorf("%w: %w", ErrInvalidOptions, err)
	}
	return page, shards, err
}

func scheduleOf(s *core.Schedule, queue string, shards int, now core.Instant) Schedule {
	view := Schedule{Schedule: *s, Queue: queue, Shard: core.ShardOf(s.ID, shards)}
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
	for s, err := range i.Schedules(ctx, queue, ScheduleOptions{ScheduleSelection: ScheduleSelection{ID: id, Name: name}}) {
		return s, err
	}
	return Schedule{}, fmt.Errorf("%w: %q of id %q in queue %q", ErrUnknownSchedule, name, id, queue)
}

// ScheduleName is the schedules of one name in a queue.
type ScheduleName struct {
	Name string
	// Count is the number of its schedules, one for each of as many ids.
	Count int64
	// First is the one with the smallest id.
	First Schedule
}

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
		return ScheduleNames{}, fmt.Errorf("%w: a limit of %d names; give 0 or more, 0 means 100", ErrInvalidOptions, limit)
	}
	shards, err := i.shards(ctx, queue)
	if err != nil {
		return ScheduleNames{}, err
	}
	page, err := ask(i, func(s Store) (ports.ScheduleNamesPage, error) {
		return s.ScheduleNames(ctx, ports.ScheduleNamesRequest{Queue: queue, After: after, Limit: limit})
	})
	if err != nil {
		return ScheduleNames{}, err
	}
	view := func(n *ports.ScheduleName) ScheduleName {
		return ScheduleName{Name: n.Name, Count: n.Count, First: scheduleOf(&n.First, queue, shards, page.Now)}
	}
	return ScheduleNames{convert(page.Names, view), page.Next, page.Now.Time()}, partial(page.Unreached)
}

// LateTick is the queue's tick that has been due longest.
type LateTick struct {
	// Late is how long the tick has been due, by the store's clock. It is 0 if none is due.
	Late time.Duration
	// Scheduled is true if the queue has a schedule with a next tick.
	Scheduled bool
}

// LateTick returns how late the ticks of a queue are. A queue that is paused has none. If shards
// can't be reached, it returns the value of the others and a *[PartialError].
func (i *Inspector) LateTick(ctx context.Context, queue string) (LateTick, error) {
	shards, err := i.shards(ctx, queue)
	if err != nil {
		return LateTick{}, err
	}
	reply, err := ask(i, func(s Store) (ports.TicksReply, error) {
		return s.Ticks(ctx, ports.TicksRequest{Shards: core.Shards(queue, shards)})
	})
	if err != nil {
		return LateTick{}, err
	}
	var late LateTick
	for at := range reply.Shards {
		t := &reply.Shards[at]
		late.Scheduled = late.Scheduled || t.Head.OK
		late.Late = max(late.Late, t.Head.Lag(t.Now))
	}
	return late, partial(reply.Unreached)
}
