package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/internal/specs"
)

// scheduleColumns are the columns of a schedule in a list. Its other fields are only shown for one.
var scheduleColumns = slices.DeleteFunc(scheduleFields(), func(c column[service.ScheduleRow]) bool {
	return slices.Contains(onlyOfOne(), c.name)
})

// onlyOfOne returns the names of the fields that only skein schedule show has.
func onlyOfOne() []string { return []string{"payload", "recent", "backfill"} }

// scheduleFields returns the columns of all fields of a schedule.
func scheduleFields() columns[service.ScheduleRow] {
	return fieldColumns[service.ScheduleRow]().
		with("next", func(s *service.ScheduleRow) any { return nextTime{s.Next, s.Paused, s.Late} })
}

// scheduleRows yields the rows of schedules.
func scheduleRows(items iter.Seq2[inspect.Schedule, error]) iter.Seq2[service.ScheduleRow, error] {
	return func(yield func(service.ScheduleRow, error) bool) {
		for s, err := range items {
			if !yield(service.ScheduleOf(&s), err) {
				return
			}
		}
	}
}

// scheduleObjects returns the shown values of schedules.
func scheduleObjects(list []inspect.Schedule) []*object {
	rows := make([]service.ScheduleRow, len(list))
	for at := range list {
		rows[at] = service.ScheduleOf(&list[at])
	}
	return rowsOf(scheduleColumns, rows)
}

// nextOf returns the time of the next tick, or the zero time if there is none.
func nextOf(s *inspect.Schedule) (next time.Time) {
	if s.Next < core.MaxInstant {
		next = s.Next.Time()
	}
	return next
}

// pausedAt returns when a schedule was paused, or the zero time if it is not paused.
func pausedAt(s *inspect.Schedule) (at time.Time) {
	if s.Paused && s.PausedAt > 0 {
		at = s.PausedAt.Time()
	}
	return at
}

// blocked states why a schedule does not push at its next tick, or is empty.
func blocked(s *inspect.Schedule) (text string) {
	switch {
	case s.Paused:
		text = "paused"
		if s.PausedBy != "" {
			text += " by " + s.PausedBy
		}
		if at := pausedAt(s); !at.IsZero() {
			text += " since " + forPeople(at)
		}
		if s.Note != "" {
			text += ": " + s.Note
		}
	case s.Broken != "":
		text = "a server can't read its spec: " + s.Broken
	}
	return text
}

// scheduleNameColumns are the columns of the schedules of one name. The store counts the schedules
// of a name without reading them, so only those of the first id are known.
var scheduleNameColumns = columns[inspect.ScheduleName]{
	{"name", false, func(n *inspect.ScheduleName) any { return n.Name }},
	{"count", false, func(n *inspect.ScheduleName) any { return n.Count }},
	{"first_id", false, func(n *inspect.ScheduleName) any { return n.First.ID }},
	{"first_words", false, func(n *inspect.ScheduleName) any { return specs.Words(n.First.Spec) }},
	{"first_zone", false, func(n *inspect.ScheduleName) any { return specs.Zone(n.First.Spec) }},
	{"first_late_seconds", false, func(n *inspect.ScheduleName) any { return n.First.Late }},
	{"first_next", true, func(n *inspect.ScheduleName) any {
		return nextTime{nextOf(&n.First), n.First.Paused, n.First.Late}
	}},
	{"first_paused", true, func(n *inspect.ScheduleName) any { return n.First.Paused }},
	{"first_broken", true, func(n *inspect.ScheduleName) any { return n.First.Broken }},
}

// shownSchedule is a schedule with its next ticks, for skein schedule show.
type shownSchedule struct {
	service.ScheduleRow
	ticks      []nextTick
	unreadable string
}

var shownScheduleColumns = append(
	within(scheduleFields().moved("", onlyOfOne()...), func(s *shownSchedule) *service.ScheduleRow {
		return &s.ScheduleRow
	}),
	columns[shownSchedule]{
		{"next_ticks", false, func(s *shownSchedule) any { return rowsOf(tickColumns, s.ticks) }},
		{"unreadable", false, func(s *shownSchedule) any { return s.unreadable }},
	}...,
)

// nextTick is a tick of a schedule to come: in UTC, in the schedule's time zone, and in that of the
// user.
type nextTick struct {
	name, id    string
	local, here time.Time
	blocked     string
}

var nextTickColumns = columns[nextTick]{
	{"name", true, func(t *nextTick) any { return t.name }},
	{"id", false, func(t *nextTick) any { return t.id }},
	{"at", false, func(t *nextTick) any { return t.local }},
	{"local", false, func(t *nextTick) any { return zoned{t.local} }},
	{"here", false, func(t *nextTick) any { return zoned{t.here} }},
	{"blocked", false, func(t *nextTick) any { return t.blocked }},
}

// tickColumns are the columns of a tick alone.
var tickColumns = nextTickColumns[2:5]

// nextTicks returns the next ticks of a schedule.
func (a *app) nextTicks(s *inspect.Schedule, n int) ([]nextTick, error) {
	times, err := s.NextTicks(n)
	return a.ticksOf(s, times), err
}

// ticksOf returns ticks of a schedule, which are in its time zone.
func (a *app) ticksOf(s *inspect.Schedule, times []time.Time) []nextTick {
	zone := time.Local
	if a.zone != nil {
		zone = a.zone
	}
	ticks := make([]nextTick, len(times))
	for at, t := range times {
		ticks[at] = nextTick{name: s.Name, id: s.ID, local: t, here: t.In(zone), blocked: blocked(s)}
	}
	return ticks
}

func (a *app) scheduleCommand() *cobra.Command {
	c := group("schedule", "Show schedules, which push again and again, and act on them",
		a.listSchedules(), a.showSchedule(), a.nextOfSchedules(),
		a.onSchedules(&scheduleVerb{
			"run", "Push the payload of schedules once, now, whether or not they or the queue are paused",
			"skein schedule run billing invoice --id customer-7", "run",
		}, (*inspect.Inspector).RunSchedules),
		a.pauseSchedules(),
		a.onSchedules(&scheduleVerb{
			"resume", "End the pause of schedules", "skein schedule resume billing invoice", "resumed",
		}, (*inspect.Inspector).ResumeSchedules),
		a.editSchedules(), a.backfillSchedule(),
		a.onSchedules(&scheduleVerb{
			"rm", "Remove schedules; what they have pushed stays",
			"skein schedule rm billing invoice --id customer-7", "removed",
		}, (*inspect.Inspector).RemoveSchedules),
	)

	c.Long = c.Short + ".\n\n" +
		"A schedule has a name and an id. Commands act on the schedules of a NAME for all ids, " +
		"and ask before they change more\n" +
		"than one, or on the one of an id with --id."
	return c
}

func (a *app) showSchedule() *cobra.Command {
	id := ""
	c := a.command(
		"show QUEUE NAME",
		"Show a schedule, with its payload, its last ticks and its next ones",
		"skein schedule show billing invoice --id customer-7",
		cobra.ExactArgs(2),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			s, err := oneSchedule(ctx, i, args[0], args[1], id)
			if err != nil {
				return err
			}

			shown := shownSchedule{ScheduleRow: service.ScheduleOf(&s)}
			if shown.ticks, err = a.nextTicks(&s, 5); err != nil {
				shown.unreadable = err.Error()
			}
			if s.Paused && a.tables() { // people would take them for a promise
				shown.ticks = nil
			}
			return one(a, shownScheduleColumns, &shown)
		},
	)

	oneID(c, &id, "the `ID` of the schedule; not needed if only one id has the name")
	return c
}

// oneID adds the flag --id to a command on the schedules of a NAME. It refuses an empty NAME or id:
// the variable of a script may be unset, and the command would then act on more schedules.
func oneID(c *cobra.Command, id *string, usage string) {
	c.Flags().StringVar(id, "id", "", usage)
	check := c.Args
	c.Args = func(cmd *cobra.Command, args []string) error {
		switch err := check(cmd, args); {
		case err != nil:
			return err
		case args[1] == "":
			return fmt.Errorf("%w: NAME is empty; skein schedule ls lists the names", errUsage)
		case cmd.Flags().Changed("id") && *id == "":
			return fmt.Errorf("%w: --id is empty; leave it out for all ids", errUsage)
		}
		return nil
	}
}

// oneSchedule returns the schedule of an id. Without an id it is the one with the name, if there is
// only one.
func oneSchedule(ctx context.Context, i *inspect.Inspector, queue, name, id string) (inspect.Schedule, error) {
	if id != "" {
		found, err := schedulesNamed(ctx, i, queue, inspect.ScheduleSelection{ID: id, Name: name}, 1)
		if err != nil {
			return inspect.Schedule{}, err
		}
		return found[0], nil
	}

	found, err := schedulesNamed(ctx, i, queue, inspect.ScheduleSelection{Name: name}, 2)
	switch {
	case err != nil:
		return inspect.Schedule{}, err
	case len(found) > 1:
		return inspect.Schedule{}, fmt.Errorf("%w: several ids have a schedule %q, such as %q; name one with --id",
			errUsage, name, found[0].ID)
	}
	return found[0], nil
}

// schedulesNamed returns schedules of a name, at most limit; 0 is no limit. If a part of the store
// can't be reached, it returns the others and that error. Without an error there is at least one.
func schedulesNamed(
	ctx context.Context,
	i *inspect.Inspector,
	queue string,
	sel inspect.ScheduleSelection,
	limit int,
) (found []inspect.Schedule, err error) {
	o := inspect.ScheduleOptions{ScheduleSelection: sel, Limit: limit}
	for s, err := range i.Schedules(ctx, queue, o) {
		if err != nil {
			return found, err
		}
		found = append(found, s)
	}

	if len(found) == 0 {
		return nil, noSchedule(queue, sel)
	}
	return found, nil
}

// noSchedule states that a queue has no selected schedule, and which command lists those that it
// has.
func noSchedule(queue string, sel inspect.ScheduleSelection) error {
	of, cure := "", fmt.Sprintf("skein schedule ls %s lists the names", queue)
	if sel.Name != "" {
		of += fmt.Sprintf(" %q", sel.Name)
	}
	if sel.ID != "" {
		of += fmt.Sprintf(" of the id %q", sel.ID)
	}
	if sel.Name != "" && sel.ID != "" {
		cure = fmt.Sprintf("skein schedule ls %s --name %s --limit 0 lists the ids", queue, sel.Name)
	}
	return fmt.Errorf("%w: queue %s has no schedule%s; %s", errNotFound, queue, of, cure)
}

func (a *app) nextOfSchedules() *cobra.Command {
	id, n, limit := "", 5, 20
	c := a.command(
		"next QUEUE NAME",
		"List the next ticks of schedules: in UTC, in the time zone of the schedule, and in that of this machine",
		"skein schedule next billing invoice --id customer-7 -n 10",
		cobra.ExactArgs(2),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			if n < 1 || limit < 0 {
				return fmt.Errorf("%w: -n %d, --limit %d; give at least 1 tick, and 0 or more schedules",
					errUsage, n, limit)
			}

			sel := inspect.ScheduleSelection{ID: id, Name: args[1]}
			found, err := schedulesNamed(ctx, i, args[0], sel, oneMore(limit))
			if len(found) == 0 {
				return err
			}
			if limit > 0 && len(found) > limit {
				found = found[:limit]
				defer func() { _, _ = fmt.Fprintln(a.stderr, moreThan(limit, "schedules")) }()
			}

			return firstOf(list(a, nextTickColumns, func(yield func(nextTick, error) bool) {
				for at := range found {
					ticks, err := a.nextTicks(&found[at], n)
					for _, t := range ticks {
						if !yield(t, nil) {
							return
						}
					}
					if err != nil && !yield(nextTick{}, fmt.Errorf("id %q: %w", found[at].ID, err)) {
						return
					}
				}
			}), err)
		},
	)

	oneID(c, &id, "the schedule of this `ID` alone")
	c.Flags().IntVarP(&n, "number", "n", n, "the number of ticks of each schedule")
	c.Flags().IntVar(&limit, "limit", limit, "the largest number of schedules; 0 is no limit")
	return c
}
