package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/specs"
	"github.com/skeinq/skein/ports"
)

// PauseSchedules pauses the selected schedules until ResumeSchedules, with a note for people, at
// most 1 KiB. A schedule that is paused gets the note. Each action on schedules returns how many it
// has changed, returns [ErrInvalidOptions] for an empty selection, and is audited. If it fails
// midway, it can be repeated.
func (i *Inspector) PauseSchedules(ctx context.Context, queue string, sel ScheduleSelection, note string) (changed int, err error) {
	return i.onSchedules(ctx, "pause schedule", queue, sel, func(s *core.Schedule, a *scheduleAct) bool {
		if s.Paused && s.Note == note {
			return false
		}
		s.Paused, s.Note = true, note
		return true
	})
}

// ResumeSchedules ends a pause. What became due meanwhile is up to the Catchup of each schedule.
func (i *Inspector) ResumeSchedules(ctx context.Context, queue string, sel ScheduleSelection) (changed int, err error) {
	return i.onSchedules(ctx, "resume schedule", queue, sel, func(s *core.Schedule, a *scheduleAct) bool {
		was := s.Paused
		s.Paused, s.Note = false, ""
		return was
	})
}

// RemoveSchedules removes the selected schedules. What they have pushed stays.
func (i *Inspector) RemoveSchedules(ctx context.Context, queue string, sel ScheduleSelection) (changed int, err error) {
	return i.onSchedules(ctx, "remove schedule", queue, sel, func(_ *core.Schedule, a *scheduleAct) bool {
		a.remove = true
		return true
	})
}

// RunSchedules pushes the payload of each selected schedule once, now, also if the schedule or the
// queue is paused. The next tick stays as it is.
func (i *Inspector) RunSchedules(ctx context.Context, queue string, sel ScheduleSelection) (changed int, err error) {
	return i.onSchedules(ctx, "run schedule", queue, sel, func(s *core.Schedule, a *scheduleAct) bool {
		f := s.RunNow(a.by, a.now)
		*s, a.entries = f.After, f.Entries
		return true
	})
}

// ScheduleEdit is a change of schedules by an operator. Fields that are nil stay as they are.
type ScheduleEdit struct {
	// Spec is the text of another spec, as [core.CronSpec] or [core.IntervalSpec] returns it.
	Spec *string
	// Payload is another payload.
	Payload *[]byte
	Jitter  *time.Duration
	Catchup *core.Catchup
	Skip    *bool
}

// EditSchedules changes the selected schedules. A program that declares them in the same version of
// their set leaves the change as it is. One that raises the version, or calls Queue.Schedule,
// overwrites it. It returns [core.ErrInvalidSchedule] for a change that a schedule can't have.
func (i *Inspector) EditSchedules(ctx context.Context, queue string, sel ScheduleSelection, edit ScheduleEdit) (changed int, err error) {
	record, err := i.record(ctx, queue)
	if err != nil {
		return 0, fmt.Errorf("edit schedule: %w", err)
	}
	var parsed specs.Specs
	return i.onSchedules(ctx, "edit schedule", queue, sel, func(s *core.Schedule, a *scheduleAct) bool {
		r := s.Recurrence
		edit.apply(&r)
		if r.Equal(&s.Recurrence) {
			return false
		}
		if a.err = r.Validate(record.Merge); a.err != nil {
			return false
		}
		var spec core.Spec
		if spec, a.err = parsed.Parse(r.Spec); a.err != nil {
			return false
		}
		*s = s.Recurring(&r, spec, a.now)
		s.Edited = true
		return true
	})
}

// apply changes a recurrence.
func (e *ScheduleEdit) apply(r *core.Recurrence) {
	if e.Spec != nil {
		r.Spec = *e.Spec
	}
	if e.Payload != nil {
		r.Data = *e.Payload
	}
	if e.Jitter != nil {
		r.Jitter = *e.Jitter
	}
	if e.Catchup != nil {
		r.Catchup = *e.Catchup
	}
	if e.Skip != nil {
		r.Skip = *e.Skip
	}
}

// MaxBackfill is the maximum number of ticks of one Backfill.
const MaxBackfill = core.MaxCatchup

// Backfill pushes the payload of a schedule for each tick from one time on and before another, in
// order, as if those ticks were due now. It changes neither the next tick nor the counts. With
// dryRun it pushes nothing. It returns the ticks. In a queue that does not merge by every, ticks
// with equal payloads become one payload.
//
// It returns [ErrUnknownSchedule], or [ErrInvalidOptions] for a range without ticks, one with more
// than [MaxBackfill] ticks, or one that ends in the future.
func (i *Inspector) Backfill(ctx context.Context, queue, id, name string, from, to time.Time, dryRun bool) (ticks []time.Time, err error) {
	s, err := i.Schedule(ctx, queue, id, name)
	if err != nil {
		return nil, fmt.Errorf("backfill: %w", err)
	}
	spec, err := new(specs.Specs).Parse(s.Spec)
	if err != nil {
		return nil, fmt.Errorf("backfill: %w", err)
	}
	record, err := i.record(ctx, queue)
	if err != nil {
		return nil, fmt.Errorf("backfill: %w", err)
	}

	var entries []core.Entry
	end := core.InstantOf(to)
	for tick, ok := spec.Next(core.InstantOf(from) - 1); ok && tick < end; tick, ok = spec.Next(tick) {
		if len(entries) == MaxBackfill {
			return nil, fmt.Errorf("%w: the range has more than %d ticks; give a shorter one", ErrInvalidOptions, MaxBackfill)
		}
		e := s.Entry(0, tick)
		e.When, e.Payload = core.When{}, record.Merge.Stored(e.Payload)
		entries, ticks = append(entries, e), append(ticks, spec.Local(tick))
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%w: the schedule has no tick from %v on and before %v", ErrInvalidOptions, from, to)
	}
	if dryRun {
		return ticks, nil
	}
	return ticks, i.pushBackfill(ctx, &record, &s, entries)
}

// pushBackfill pushes entries with an unchanged schedule, so that it is pushed once and only if the
// schedule did not change.
func (i *Inspector) pushBackfill(ctx context.Context, q *ports.Queue, s *Schedule, entries []core.Entry) error {
	d := i.begin(ctx, "backfill schedule", q.Name, []string{s.ID}).start(ctx)
	pushed := 0
	var err error
	for pushed < len(entries) && err == nil {
		next := s.Changed(s.By, s.ChangedAt)
		part := entries[pushed:min(len(entries), pushed+core.MaxFiringEntries)]
		var reply ports.ChangeSchedulesReply
		reply, err = i.changeSchedules(ctx, q, s.Shard, []ports.ScheduleChange{
			{ScheduleKey: s.ScheduleKey, Revision: s.Revision, Schedule: &next, Entries: part},
		})
		switch {
		case err != nil:
		case reply.Results[0] != ports.ScheduleChanged:
			err = fmt.Errorf("%w: the schedule has changed meanwhile; look at what is queued, and repeat the call for the ticks that are missing", ErrInvalidOptions)
		default:
			s.Schedule = next
			pushed += len(part)
		}
	}
	d.end(ctx, pushed, err)
	if err != nil {
		return fmt.Errorf("backfill: %d of %d ticks are pushed: %w", pushed, len(entries), err)
	}
	return nil
}

// scheduleAct is the action on one schedule.
type scheduleAct struct {
	now core.Instant
	by  string
	// remove, entries and err are results: the schedule is removed, entries are pushed with it, or
	// the action ends with an error.
	remove  bool
	entries []core.Entry
	err     error
}

// scheduleTries is how often an action on a schedule is tried again because the schedule has
// changed, for example by a tick.
const scheduleTries = 10

// onSchedules changes the selected schedules, page by page. change changes a schedule, and reports
// whether it did.
func (i *Inspector) onSchedules(
	ctx context.Context, verb, queue string, sel ScheduleSelection, change func(*core.Schedule, *scheduleAct) bool,
) (changed int, err error) {
	if sel == (ScheduleSelection{}) {
		return 0, fmt.Errorf("%s: %w: no schedule is selected; give an id or a name", verb, ErrInvalidOptions)
	}
	var ids []string
	if sel.ID != "" {
		ids = []string{sel.ID}
	}
	d := i.begin(ctx, verb, queue, ids)
	d.action.Filter = auditText(sel.filter())
	d.start(ctx)
	changed, err = i.changeSelected(ctx, queue, sel, change)
	d.end(ctx, changed, err)
	if err != nil {
		return changed, fmt.Errorf("%s: %w", verb, err)
	}
	return changed, nil
}

// filter returns the selection for the audit.
func (sel ScheduleSelection) filter() string {
	if sel.Name == "" {
		return "all schedules of the id"
	}
	return "schedule " + sel.Name
}

func (i *Inspector) changeSelected(
	ctx context.Context, queue string, sel ScheduleSelection, change func(*core.Schedule, *scheduleAct) bool,
) (changed int, err error) {
	record, err := i.record(ctx, queue)
	if err != nil {
		return 0, err
	}
	r := ports.SchedulesRequest{Queue: queue, ID: sel.ID, Name: sel.Name}
	for {
		page, _, err := i.schedulesPage(ctx, r)
		if err != nil {
			return changed, err
		}
		n, err := i.changePage(ctx, &record, page, change)
		changed += n
		if err != nil {
			return changed, err
		}
		if err := partial(page.Unreached); err != nil {
			return changed, err
		}
		if r.After = page.Next; r.After == (core.ScheduleKey{}) {
			return changed, nil
		}
	}
}

// changePage changes the schedules of a page, shard by shard. Schedules that have changed meanwhile
// are read and tried again.
func (i *Inspector) changePage(
	ctx context.Context, q *ports.Queue, page ports.SchedulesPage, change func(*core.Schedule, *scheduleAct) bool,
) (changed int, err error) {
	who, _ := ctx.Value(actorKey{}).(Actor)
	for range scheduleTries {
		byShard := make(map[int][]ports.ScheduleChange)
		for at := range page.Schedules {
			s := page.Schedules[at]
			act := scheduleAct{now: page.Now, by: auditText(who.Name)}
			did := change(&s, &act)
			switch {
			case act.err != nil:
				return changed, fmt.Errorf("schedule %q of id %q: %w", s.Name, s.ID, act.err)
			case !did:
				continue
			}
			c := ports.ScheduleChange{ScheduleKey: s.ScheduleKey, Revision: page.Schedules[at].Revision, Entries: act.entries}
			if !act.remove {
				next := s
				if next.Revision == c.Revision {
					next = s.Changed(act.by, page.Now)
				}
				for k := range c.Entries {
					c.Entries[k].Payload = q.Merge.Stored(c.Entries[k].Payload)
				}
				c.Schedule = &next
			}
			shard := core.ShardOf(s.ID, q.Shards)
			byShard[shard] = append(byShard[shard], c)
		}

		var refused []core.ScheduleKey
		for shard, changes := range byShard {
			for len(changes) > 0 {
				reply, err := i.changeSchedules(ctx, q, shard, changes)
				if err != nil {
					return changed, err
				}
				for at, result := range reply.Results {
					if result == ports.ScheduleRefused {
						refused = append(refused, changes[at].ScheduleKey)
					} else {
						changed++
					}
				}
				changes = changes[len(reply.Results):]
			}
		}
		if len(refused) == 0 {
			return changed, nil
		}
		if page, err = i.reread(ctx, q, refused); err != nil {
			return changed, err
		}
	}
	return changed, fmt.Errorf("%d schedules change all the time; repeat the call", len(page.Schedules))
}

// reread returns the present state of schedules. Those that are gone are left out.
func (i *Inspector) reread(ctx context.Context, q *ports.Queue, keys []core.ScheduleKey) (all ports.SchedulesPage, err error) {
	for _, k := range keys {
		page, _, err := i.schedulesPage(ctx, ports.SchedulesRequest{Queue: q.Name, ID: k.ID, Name: k.Name})
		if err != nil {
			return all, err
		}
		all.Now, all.Schedules = page.Now, append(all.Schedules, page.Schedules...)
	}
	return all, nil
}

// changeSchedules makes one call. It is not repeated, since a repeat would report as refused what
// the first call has changed.
func (i *Inspector) changeSchedules(
	ctx context.Context, q *ports.Queue, shard int, changes []ports.ScheduleChange,
) (ports.ChangeSchedulesReply, error) {
	r := ports.ChangeSchedulesRequest{
		Shard: core.Shard{Queue: q.Name, Index: shard}, Shards: q.Shards, Generation: q.Generation,
		Changes: changes[:min(len(changes), ports.MaxScheduleChanges)],
	}
	reply, err := ask(i, func(s Store) (ports.ChangeSchedulesReply, error) { return s.ChangeSchedules(ctx, r) })
	if err == nil && len(reply.Results) == 0 {
		err = fmt.Errorf("shard %v: the store handled no change of a schedule", r.Shard)
	}
	return reply, err
}
