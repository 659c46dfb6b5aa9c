package inspect

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/specs"
	"github.com/skeinq/skein/ports"
)

// PauseSchedules pauses the selected schedules until ResumeSchedules, with a note for people, at
// most 1 KiB. A schedule that is paused gets the note.
//
// Each action on schedules returns how many it has changed. It returns [ErrInvalidOptions] for an
// empty selection, and [ErrUnknownSchedule] if it selects no schedule. It is audited. If it fails
// midway, it can be repeated. Schedules of shards that can't be reached are left out, and the error
// is then a *[PartialError].
func (i *Inspector) PauseSchedules(
	ctx context.Context,
	queue string,
	sel ScheduleSelection,
	note string,
) (changed int, err error) {
	if len(note) > core.MaxScheduleNoteBytes || core.Text(note) != note {
		return 0, fmt.Errorf("pause schedule: %w: the note %.40q; give at most %d bytes of UTF-8 without NUL",
			ErrInvalidOptions, note, core.MaxScheduleNoteBytes)
	}

	what := ""
	if note != "" {
		what = fmt.Sprintf("note %q", note) // quoted, so that the audit can be shown without ids that it names
	}

	return i.onSchedules(ctx, "pause schedule", queue, sel, what, func(s *core.Schedule, a *scheduleAct) (bool, error) {
		changed := !s.Paused || s.Note != note
		*s = s.Pause(a.by, note, a.now)
		return changed, nil
	})
}

// ResumeSchedules ends a pause. What became due meanwhile is up to the Catchup of each schedule.
func (i *Inspector) ResumeSchedules(ctx context.Context, queue string, sel ScheduleSelection) (changed int, err error) {
	return i.onSchedules(ctx, "resume schedule", queue, sel, "", func(s *core.Schedule, _ *scheduleAct) (bool, error) {
		changed := s.Paused
		*s = s.Resume()
		return changed, nil
	})
}

// RemoveSchedules removes the selected schedules. What they have pushed stays.
func (i *Inspector) RemoveSchedules(ctx context.Context, queue string, sel ScheduleSelection) (changed int, err error) {
	return i.onSchedules(ctx, "remove schedule", queue, sel, "", func(_ *core.Schedule, a *scheduleAct) (bool, error) {
		a.remove = true
		return true, nil
	})
}

// RunSchedules pushes the payload of each selected schedule once, now, also if the schedule or the
// queue is paused. The next tick stays as it is. A repeated call pushes again.
func (i *Inspector) RunSchedules(ctx context.Context, queue string, sel ScheduleSelection) (changed int, err error) {
	return i.onSchedules(ctx, "run schedule", queue, sel, "", func(s *core.Schedule, a *scheduleAct) (bool, error) {
		f := s.RunNow(a.by, a.now)
		*s, a.entries = f.After, f.Entries
		return true, nil
	})
}

// EditSchedules changes the selected schedules. A tick that has come and was not fired stays due; a
// larger jitter may delay it. A program that declares the schedules in the same version of their
// set leaves the change as it is. One that raises the version, or calls Queue.Schedule, overwrites
// it.
//
// It returns the error of [ScheduleEdit.Validate], and [ErrInvalidSchedule], or another error of
// package core, for a change that some of the schedules can't have, such as another zone for an
// interval. The other schedules are changed.
func (i *Inspector) EditSchedules(
	ctx context.Context,
	queue string,
	sel ScheduleSelection,
	edit ScheduleEdit,
) (changed int, err error) {
	if err := edit.Validate(); err != nil {
		return 0, fmt.Errorf("edit schedule: %w", err)
	}

	var parsed specs.Specs
	return i.onSchedules(ctx, "edit schedule", queue, sel, edit.String(), func(
		s *core.Schedule,
		a *scheduleAct,
	) (bool, error) {
		r := s.Recurrence
		if err := edit.apply(&r); err != nil {
			return false, err
		}
		if r.Equal(&s.Recurrence) {
			return false, nil
		}
		if err := r.Validate(a.queue.Merge); err != nil {
			return false, err
		}

		var spec core.Spec // Recurring reads it only if it is another one
		if r.Spec != s.Spec {
			var err error
			if spec, err = parsed.Parse(r.Spec); err != nil {
				return false, err
			}
			if _, ok := spec.Next(a.now); !ok {
				return false, fmt.Errorf("%w: %s never has a tick; give another expression", ErrInvalidSchedule, r.Spec)
			}
		}
		*s = s.Recurring(&r, spec, a.now)
		s.Edited = true
		return true, nil
	})
}

// MaxBackfill is the maximum number of ticks of one Backfill.
const MaxBackfill = core.MaxCatchup

// Backfill pushes the payload of a schedule for each tick from one time on and before another, in
// order, as if those ticks were due now. It changes neither the next tick nor the counts, and the
// schedule has it as its Backfill. It returns the ticks that it has pushed; with dryRun, those that
// it would push. In a queue that does not merge by every, the payloads of all ticks become one. In
// any queue a tick that is pushed again while its payload is queued is one payload.
//
// It returns [ErrUnknownSchedule]; [ErrInvalidOptions] for a range without begin or end, one
// without ticks, one with more than [MaxBackfill] ticks, or one that ends in the future; and
// [ErrScheduleChanged] if the schedule is edited meanwhile. If the outcome of a step is unknown, up
// to [core.MaxFiringEntries] ticks more may be pushed than it returns.
func (i *Inspector) Backfill(
	ctx context.Context,
	queue, id, name string,
	from, to time.Time,
	dryRun bool,
) (ticks []time.Time, err error) {
	b := backfill{inspector: i}
	if b.schedule, err = i.Schedule(ctx, queue, id, name); err != nil {
		return nil, fmt.Errorf("backfill: %w", err)
	}
	if b.queue, err = i.record(ctx, queue); err != nil {
		return nil, fmt.Errorf("backfill: %w", err)
	}
	if err := b.find(from, to); err != nil {
		return nil, fmt.Errorf("backfill: %w", err)
	}

	b.record = core.Backfill{
		From: core.InstantOf(from),
		To:   core.InstantOf(to),
		By:   actorOf(ctx),
		At:   b.schedule.now,
	}
	if dryRun {
		return b.ticks, nil
	}

	d := i.begin(ctx, "backfill schedule", queue, []string{id})
	d.action.Filter = auditText(fmt.Sprintf("schedule %s from %s to %s",
		name, from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339)))
	d.start(ctx)

	pushed, err := b.push(ctx)
	d.end(ctx, pushed, err)

	if err != nil {
		return b.ticks[:pushed], fmt.Errorf("backfill: %d of %d ticks are pushed: %w", pushed, len(b.ticks), err)
	}
	return b.ticks, nil
}

// backfill is the ticks of a schedule that are to be pushed, with an entry for each.
type backfill struct {
	inspector *Inspector
	queue     ports.Queue
	schedule  Schedule
	ticks     []time.Time
	entries   []core.Entry
	record    core.Backfill
}

// find finds the ticks from one time on and before another.
func (b *backfill) find(from, to time.Time) error {
	if from.IsZero() || to.IsZero() || !from.Before(to) {
		return fmt.Errorf("%w: the range is empty, since it begins at %s and ends at %s; begin it before its end",
			ErrInvalidOptions, from.Format(time.RFC3339Nano), to.Format(time.RFC3339Nano))
	}
	if now := b.schedule.now.Time(); to.After(now) {
		return fmt.Errorf("%w: the range ends at %s, in the future; end it at %s or before",
			ErrInvalidOptions, to.Format(time.RFC3339Nano), now.Format(time.RFC3339Nano))
	}

	spec, err := new(specs.Specs).Parse(b.schedule.Spec)
	if err != nil {
		return err
	}

	end := core.InstantOf(to)
	for tick, ok := spec.Next(core.InstantOf(from) - 1); ok && tick < end; tick, ok = spec.Next(tick) {
		if len(b.entries) == MaxBackfill {
			return fmt.Errorf("%w: the range has more than %d ticks; give a shorter one",
				ErrInvalidOptions, MaxBackfill)
		}
		e := b.schedule.Entry(0, tick)
		e.When, e.Payload = core.When{}, b.queue.Merge.Stored(e.Payload)
		b.entries, b.ticks = append(b.entries, e), append(b.ticks, spec.Local(tick))
	}
	if len(b.entries) == 0 {
		return fmt.Errorf("%w: the schedule has no tick from %s on and before %s; "+
			"its present spec is %s in %s: give a wider range, or edit the schedule",
			ErrInvalidOptions, from.Format(time.RFC3339Nano), to.Format(time.RFC3339Nano),
			specs.Words(b.schedule.Spec), specs.Zone(b.schedule.Spec))
	}
	return nil
}

// push pushes the entries, in steps. Each step replaces the schedule by itself with another
// revision, so it happens once. A step that met another revision, such as one after a firing, is
// tried again.
func (b *backfill) push(ctx context.Context) (pushed int, err error) {
	for refused := 0; pushed < len(b.entries); {
		next := b.schedule.Changed(b.schedule.By, b.schedule.ChangedAt)
		part := b.entries[pushed:min(len(b.entries), pushed+core.MaxFiringEntries)]
		record := b.record
		record.Ticks = pushed + len(part)
		next.Backfill = &record

		reply, err := b.inspector.changeSchedules(ctx, &b.queue, b.schedule.Shard, []ports.ScheduleChange{
			{ScheduleKey: b.schedule.ScheduleKey, Revision: b.schedule.Revision, Schedule: &next, Entries: part},
		})
		if err != nil {
			return pushed, err
		}
		if reply.Results[0] == ports.ScheduleChanged {
			pushed, b.schedule.Schedule = pushed+len(part), next
			continue
		}
		if refused++; refused == scheduleTries {
			return pushed, fmt.Errorf("%w, %d times; repeat the call for the other ticks", ErrScheduleChanged, refused)
		}
		if err := b.reread(ctx); err != nil {
			return pushed, err
		}
	}
	return pushed, nil
}

// reread reads the present state of the schedule, which must push the same at the same times.
func (b *backfill) reread(ctx context.Context) error {
	s, err := b.inspector.Schedule(ctx, b.queue.Name, b.schedule.ID, b.schedule.Name)
	if err != nil {
		return err
	}
	if !s.Recurrence.Equal(&b.schedule.Recurrence) {
		return fmt.Errorf(
			"%w: it pushes something else, or at other times; repeat the call for the other ticks if they are wanted",
			ErrScheduleChanged)
	}
	b.schedule = s
	return nil
}

// scheduleAct is the action on one schedule.
type scheduleAct struct {
	queue *ports.Queue
	now   core.Instant
	by    string
	// remove and entries are results: the schedule is removed, and entries are pushed with the
	// change.
	remove  bool
	entries []core.Entry
}

// scheduleChange changes a schedule, and reports whether it did. An error ends the action.
type scheduleChange func(*core.Schedule, *scheduleAct) (bool, error)

// scheduleTries is how often an action on a schedule is tried because the schedule has changed, for
// example by a tick.
const scheduleTries = 10

// onSchedules changes the selected schedules. what describes the change for the audit, if the verb
// does not.
func (i *Inspector) onSchedules(
	ctx context.Context, verb, queue string, sel ScheduleSelection, what string, change scheduleChange,
) (changed int, err error) {
	if sel == (ScheduleSelection{}) {
		return 0, fmt.Errorf("%s: %w: no schedule is selected; give an id or a name", verb, ErrInvalidOptions)
	}

	var ids []string
	if sel.ID != "" {
		ids = []string{sel.ID}
	}
	d := i.begin(ctx, verb, queue, ids)
	d.action.Filter = auditText(strings.TrimSuffix(sel.filter()+": "+what, ": "))
	d.start(ctx)

	w := scheduleWork{action: newAction(verb, nil), change: change}
	w.inspector = i
	err = w.run(ctx, queue, sel)
	d.end(ctx, w.Handled, err)

	switch {
	case err != nil && w.Handled > 0:
		return w.Handled, fmt.Errorf("%s: %d are changed: %w", verb, w.Handled, err)
	case err != nil:
		return 0, fmt.Errorf("%s: %w", verb, err)
	}
	return w.Handled, nil
}

// filter returns the selection for the audit.
func (sel ScheduleSelection) filter() string {
	if sel.Name == "" {
		return "all schedules of the id"
	}
	return "schedule " + sel.Name
}

// scheduleWork is an action on schedules. Its tally counts those that it has met and changed.
type scheduleWork struct {
	*action
	change scheduleChange
	record ports.Queue
	// unfit is the number of schedules that can't have the change, and unfitErr the first reason.
	unfit    int
	unfitErr error
}

// run changes the selected schedules, shard by shard, so that a call changes as many schedules as
// it may.
func (w *scheduleWork) run(ctx context.Context, queue string, sel ScheduleSelection) (err error) {
	if w.record, err = w.inspector.record(ctx, queue); err != nil {
		return err
	}
	w.queue = queue

	r := sel.request(queue, w.record.Shards)
	shards := r.Shards
	for index := range w.record.Shards {
		if r.ID == "" {
			shards = append(shards, index)
		}
	}
	for _, index := range shards {
		r.Shards, r.After = []int{index}, core.ScheduleKey{}
		if err := w.try(ctx, core.Shard{Queue: queue, Index: index}, func() error {
			return w.shard(ctx, r)
		}); err != nil {
			return err
		}
	}
	if w.unfit > 0 {
		return fmt.Errorf("%d can't have the change, such as %w", w.unfit, w.unfitErr)
	}
	if err := partial(w.skipped); err != nil {
		return err
	}
	if w.Met == 0 {
		return fmt.Errorf("%w: %s in queue %q", ErrUnknownSchedule, sel.unknown(), queue)
	}
	return nil
}

// unknown states that the selection has no schedule.
func (sel ScheduleSelection) unknown() string {
	switch {
	case sel.ID == "":
		return fmt.Sprintf("there is no schedule %q", sel.Name)
	case sel.Name == "":
		return fmt.Sprintf("id %q has no schedule", sel.ID)
	}
	return fmt.Sprintf("id %q has no schedule %q", sel.ID, sel.Name)
}

// shard changes the selected schedules of one shard, page by page.
func (w *scheduleWork) shard(ctx context.Context, r ports.SchedulesRequest) error {
	for {
		page, err := w.page(ctx, r)
		if err != nil {
			return err
		}
		if len(page.Unreached) > 0 {
			w.skipped = append(w.skipped, page.Unreached...)
			return nil
		}

		w.Met += len(page.Schedules)
		if err := w.changePage(ctx, r.Shards[0], page); err != nil {
			return err
		}

		if r.After = page.Next; r.After == (core.ScheduleKey{}) {
			return nil
		}
	}
}

func (w *scheduleWork) page(ctx context.Context, r ports.SchedulesRequest) (ports.SchedulesPage, error) {
	page, err := persist(ctx, w.inspector, func(s Store) (ports.SchedulesPage, error) { return s.Schedules(ctx, r) })
	return page, invalidSelection(err)
}

// changePage changes the schedules of a page. Schedules that have changed meanwhile are read and
// tried again.
func (w *scheduleWork) changePage(ctx context.Context, shard int, page ports.SchedulesPage) error {
	for range scheduleTries {
		changes, err := w.changes(ctx, &page)
		if err != nil {
			return err
		}

		var refused []core.ScheduleKey
		for len(changes) > 0 {
			reply, err := w.inspector.changeSchedules(ctx, &w.record, shard, changes)
			if err != nil {
				return err
			}
			for at, result := range reply.Results {
				if result == ports.ScheduleRefused {
					refused = append(refused, changes[at].ScheduleKey)
				} else {
					w.Handled++
				}
			}
			changes = changes[len(reply.Results):]
		}

		if page, err = w.reread(ctx, refused); err != nil || len(page.Schedules) == 0 {
			return err
		}
	}
	return fmt.Errorf("%w, %d times, such as %q of id %q; repeat the call",
		ErrScheduleChanged, scheduleTries, page.Schedules[0].Name, page.Schedules[0].ID)
}

// actorOf returns the name of the actor, as schedules keep it.
func actorOf(ctx context.Context) string {
	who, _ := ctx.Value(actorKey{}).(Actor)
	return auditText(who.Name)
}

// changes returns the changes of the schedules of a page.
func (w *scheduleWork) changes(
	ctx context.Context,
	page *ports.SchedulesPage,
) (changes []ports.ScheduleChange, err error) {
	by := actorOf(ctx)
	for at := range page.Schedules {
		s, was := page.Schedules[at], page.Schedules[at].Revision
		act := scheduleAct{queue: &w.record, now: page.Now, by: by}
		changed, err := w.change(&s, &act)
		if err != nil {
			w.unfit++
			w.unfitErr = cmp.Or(w.unfitErr, fmt.Errorf("schedule %q of id %q: %w", s.Name, s.ID, err))
		}
		if err != nil || !changed {
			continue
		}

		c := ports.ScheduleChange{ScheduleKey: s.ScheduleKey, Revision: was}
		if !act.remove {
			if s.Revision == was {
				s = s.Changed(act.by, page.Now)
			}
			c.Schedule = &s
		}
		for _, e := range act.entries {
			e.Payload = w.record.Merge.Stored(e.Payload)
			c.Entries = append(c.Entries, e)
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// reread returns the present state of schedules. Those that are gone are left out.
func (w *scheduleWork) reread(ctx context.Context, keys []core.ScheduleKey) (all ports.SchedulesPage, err error) {
	for _, k := range keys {
		s, err := w.inspector.scheduleAt(ctx, &w.record, k)
		if err != nil {
			return all, err
		}
		all.Now = s.now
		if s.Revision > 0 {
			all.Schedules = append(all.Schedules, s.Schedule)
		}
	}
	return all, nil
}

// changeSchedules makes one call. It is not repeated, since a repeat would report as refused what
// the first call has changed.
func (i *Inspector) changeSchedules(
	ctx context.Context, q *ports.Queue, shard int, changes []ports.ScheduleChange,
) (ports.ChangeSchedulesReply, error) {
	r := ports.ChangeSchedulesRequest{
		Shard:      core.Shard{Queue: q.Name, Index: shard},
		Shards:     q.Shards,
		Generation: q.Generation,
		Changes:    changes[:min(len(changes), ports.MaxScheduleChanges)],
	}

	reply, err := ask(i, func(s Store) (ports.ChangeSchedulesReply, error) { return s.ChangeSchedules(ctx, r) })
	if err == nil {
		err = reply.Check(&r)
	}
	if err != nil {
		return reply, fmt.Errorf("shard %v: %w", r.Shard, err)
	}
	return reply, nil
}
