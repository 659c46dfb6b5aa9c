package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/internal/specs"
)

// changedSchedules is the result of an action on schedules.
type changedSchedules struct{ count int }

var changedColumns = columns[changedSchedules]{{"changed", false, func(c *changedSchedules) any { return c.count }}}

// actOnSchedules is an action on selected schedules, which returns how many it has changed.
type actOnSchedules func(
	i *inspect.Inspector,
	ctx context.Context,
	queue string,
	sel inspect.ScheduleSelection,
) (int, error)

// scheduleVerb is the name of an action on schedules, with its help. done ends the question, which
// begins with "They will be".
type scheduleVerb struct{ name, short, example, done string }

// onSchedules returns a command that acts on the schedules of a name, or on one of them.
func (a *app) onSchedules(v *scheduleVerb, act actOnSchedules) *cobra.Command {
	id, yes := "", false
	c := a.command(v.name+" QUEUE NAME", v.short, v.example, cobra.ExactArgs(2),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			if id == "" && !yes {
				if err := a.confirmSchedules(ctx, i, args[0], args[1], v); err != nil {
					return err
				}
			}

			sel := inspect.ScheduleSelection{ID: id, Name: args[1]}
			changed, err := act(i, ctx, args[0], sel)
			switch {
			case errors.Is(err, inspect.ErrUnknownSchedule):
				return noSchedule(args[0], sel)
			case err != nil && changed == 0:
				return err
			}
			return firstOf(err, one(a, changedColumns, &changedSchedules{changed}))
		})

	if v.name == "rm" {
		c.SuggestFor = []string{"remove", "delete"}
	}
	oneID(c, &id, "the schedule of this `ID` alone; without it those of all ids with the name")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask before more than one schedule is changed")
	return c
}

// confirmSchedules asks before an action on more than one schedule.
func (a *app) confirmSchedules(ctx context.Context, i *inspect.Inspector, queue, name string, v *scheduleVerb) error {
	began, count, samples, atLeast := time.Now(), 0, []string(nil), ""
	o := inspect.ScheduleOptions{ScheduleSelection: inspect.ScheduleSelection{Name: name}}
	for s, err := range i.Schedules(ctx, queue, o) {
		if isPartial(err) {
			break // the action reports them
		}
		if err != nil {
			return err
		}
		if count++; len(samples) < 5 {
			samples = append(samples, s.ID)
		}
		if time.Since(began) > previewTime {
			atLeast = "at least "
			break
		}
	}

	if count < 2 {
		return nil
	}

	_, _ = fmt.Fprintf(a.stderr, "%s: the schedules %s of %s%s ids",
		v.name, quoted(name), atLeast, figures.Exact(int64(count)))
	a.sayIDs(samples)
	_, _ = fmt.Fprintln(a.stderr, ".")
	return a.ask(ctx, v.done)
}

func (a *app) pauseSchedules() *cobra.Command {
	note := ""
	var c *cobra.Command
	c = a.onSchedules(
		&scheduleVerb{
			"pause", "Pause schedules until they are resumed; what they have pushed runs",
			`skein schedule pause billing invoice --note "the bank is closed"`, "paused",
		},
		func(i *inspect.Inspector, ctx context.Context, queue string, sel inspect.ScheduleSelection) (int, error) {
			if !c.Flags().Changed("note") {
				note = core.CutText(core.Text(a.reason), core.MaxScheduleNoteBytes)
			}
			return i.PauseSchedules(ctx, queue, sel, note)
		})
	c.Flags().StringVar(&note, "note", "",
		"the reason, for people, as `TEXT` of at most 1 KiB; without it the note is the text of --reason")
	return c
}

// scheduleEditFlags are the flags of an edit.
type scheduleEditFlags struct {
	cron, zone, from      string
	every, within, jitter time.Duration
	catchup               int
	skip, noSkip          bool
	payload               bytesFlags
	set                   *pflag.FlagSet
}

func (e *scheduleEditFlags) add(f *pflag.FlagSet) {
	e.set = f
	f.StringVar(&e.cron, "cron", "",
		"another cron `EXPRESSION` of five fields; without --zone each schedule keeps its own zone")
	f.StringVar(&e.zone, "zone", "",
		"another time `ZONE`, such as Europe/Berlin or UTC; without --cron each schedule keeps its own expression")
	f.DurationVar(&e.every, "every", 0, "another interval, at least 1s, instead of --cron and --zone")
	f.StringVar(&e.from, "from", "",
		"with --every: a tick, as a `TIME` such as 2026-01-02T15:04:05Z; without it 1970-01-01T00:00:00Z")
	e.payload.add(f, "payload", "another payload, stored as it is: the codec of the queue's program does not check it")

	f.IntVar(&e.catchup, "catchup", 0,
		"push the newest `N` of the ticks that are due at once, 1 to 1000; "+
			"more than 1 only in a queue that merges by every. The age that --within has set stays")
	f.DurationVar(&e.within, "within", 0, "push only ticks of at most this age; 0 is any age")
	f.DurationVar(&e.jitter, "jitter", 0, "delay each tick by a time below this one, at most 24h")
	f.BoolVar(&e.skip, "skip", false, "drop ticks while the id has a job")
	f.BoolVar(&e.noSkip, "no-skip", false, "don't drop them")
}

// edit returns the change that the flags name.
func (e *scheduleEditFlags) edit(a *app) (edit inspect.ScheduleEdit, err error) {
	if e.set.Changed("cron") {
		edit.Cron = &e.cron
	}
	if e.set.Changed("zone") {
		edit.Zone = &e.zone
	}
	if e.set.Changed("every") {
		edit.Every = &e.every
	}
	if e.from != "" {
		from, err := parseTime("--from", e.from)
		if err != nil {
			return edit, err
		}
		edit.From = &from
	}
	data, given, err := e.payload.bytes(a.stdin)
	if err != nil {
		return edit, err
	}
	if given {
		edit.Payload = &data
	}
	if e.set.Changed("jitter") {
		edit.Jitter = &e.jitter
	}
	if e.set.Changed("catchup") {
		edit.CatchupMost = &e.catchup
	}
	if e.set.Changed("within") {
		edit.CatchupWithin = &e.within
	}
	if e.skip || e.noSkip {
		edit.Skip = &e.skip
	}

	switch {
	case e.skip && e.noSkip:
		return edit, fmt.Errorf("%w: give --skip or --no-skip", errUsage)
	case e.set.Changed("catchup") && (e.catchup < 1 || e.catchup > core.MaxCatchup):
		return edit, fmt.Errorf("%w: --catchup %d; give 1 to %d", errUsage, e.catchup, core.MaxCatchup)
	case e.within < 0:
		return edit, fmt.Errorf("%w: --within %v; give an age such as 1h, 0 is any age", errUsage, e.within)
	case edit == (inspect.ScheduleEdit{}):
		return edit, fmt.Errorf("%w: nothing to change; give a flag such as --cron or --payload", errUsage)
	}
	return edit, edit.Validate()
}

func (a *app) editSchedules() *cobra.Command {
	var e scheduleEditFlags
	var edit inspect.ScheduleEdit
	verb := &scheduleVerb{
		"edit", "Change the times, the payload or the options of schedules; a tick that is due stays due",
		"skein schedule edit billing invoice --cron '0 6 * * mon-fri'", "edited",
	}

	c := a.onSchedules(verb,
		func(i *inspect.Inspector, ctx context.Context, queue string, sel inspect.ScheduleSelection) (int, error) {
			return i.EditSchedules(ctx, queue, sel, edit)
		})

	e.add(c.Flags())
	c.PreRunE = func(*cobra.Command, []string) (err error) {
		edit, err = e.edit(a)
		verb.done = "edited: " + edit.String()
		return err
	}

	c.Long = c.Short + ".\n" +
		"A change stays until the program that declares the schedule raises the version of its set, " +
		"or stores the schedule by itself."
	return c
}

func (a *app) backfillSchedule() *cobra.Command {
	id, from, to, dry, yes := "", "", "", false, false
	c := a.command(
		"backfill QUEUE NAME",
		"Push the payload of a schedule for each past tick of a time range, in order",
		"skein schedule backfill billing invoice --id customer-7 --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z",
		cobra.ExactArgs(2),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			if from == "" || to == "" {
				return fmt.Errorf("%w: give the range, by --from and --to", errUsage)
			}
			s, err := oneSchedule(ctx, i, args[0], args[1], id)
			if err != nil {
				return err
			}

			zone := specs.Zone(s.Spec)
			begin, err := parseTimeOrDate("--from", from, zone)
			if err != nil {
				return err
			}
			end, err := parseTimeOrDate("--to", to, zone)
			if err != nil {
				return err
			}
			ticks, err := i.Backfill(ctx, args[0], s.ID, args[1], begin, end, true)
			if err != nil {
				return err
			}

			if err := a.warnOfMerging(ctx, i, args[0], &s, len(ticks)); err != nil {
				return err
			}
			if !dry {
				if err := a.confirmBackfill(ctx, &s, ticks, yes); err != nil {
					return err
				}
				ticks, err = i.Backfill(ctx, args[0], s.ID, args[1], begin, end, false)
			}

			return firstOf(err, list(a, tickColumns, all(a.ticksOf(&s, ticks), nil)))
		},
	)

	oneID(c, &id, "the `ID` of the schedule; not needed if only one id has the name")
	c.Flags().StringVar(&from, "from", "",
		"the begin of the range, inclusive: a `TIME` such as 2026-01-02T15:04:05Z, an age such as 24h, or a date such as "+
			"2026-01-02, which is its midnight in the schedule's zone")
	c.Flags().StringVar(&to, "to", "", "the end of the range, exclusive, not in the future: a `TIME`, an age or a date")
	c.Flags().BoolVar(&dry, "dry-run", false, "push nothing, and list the ticks")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")

	c.Long = c.Short + ".\n" +
		"The ticks run as if they were due now. In a queue that does not merge by every they become one payload, " +
		"since their\n" +
		"bytes are equal. At most 1,000 ticks are pushed by one call."
	return c
}

// warnOfMerging states how many payloads the ticks of a backfill make, unless they make one each.
func (a *app) warnOfMerging(
	ctx context.Context, i *inspect.Inspector, queue string, s *inspect.Schedule, ticks int,
) error {
	queues, err := i.Queues(ctx)
	if err != nil {
		return err
	}
	for _, q := range queues {
		if q.Name != queue {
			continue
		}
		if text := service.MergedTicks(queue, q.Merge, s.FixedScore, ticks); text != "" {
			_, _ = fmt.Fprintf(a.stderr, "warning: %s\n", text)
		}
	}
	return nil
}

// confirmBackfill shows the ticks of a backfill and asks for confirmation, unless yes is set.
func (a *app) confirmBackfill(ctx context.Context, s *inspect.Schedule, ticks []time.Time, yes bool) error {
	if yes {
		return nil
	}

	const shown = 3
	_, _ = fmt.Fprintf(a.stderr, "backfill: %s ticks of the schedule %s of id %s:\n",
		figures.Exact(int64(len(ticks))), quoted(s.Name), quoted(s.ID))
	for at, tick := range ticks {
		switch {
		case at < shown || at >= len(ticks)-shown:
			_, _ = fmt.Fprintln(a.stderr, "  "+forPeople(zoned{tick}))
		case at == shown:
			_, _ = fmt.Fprintln(a.stderr, "  …")
		}
	}

	return a.ask(ctx, "pushed")
}
