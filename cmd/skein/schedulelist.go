package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/wrong"
)

// stateReads is the largest number of schedules that are read to find those in a state, unless the
// list has no limit.
const stateReads = 10_000

// scheduleStateNames returns the values of --state, worst first. They are names that the dashboard
// has too.
func scheduleStateNames() (names []string) {
	for _, state := range []wrong.ScheduleState{
		wrong.ScheduleBroken, wrong.ScheduleLate, wrong.ScheduleMissed, wrong.SchedulePaused,
	} {
		names = append(names, state.String())
	}
	return names
}

// stateOf returns the state of a schedule.
func stateOf(s *inspect.Schedule, queuePaused bool) wrong.ScheduleState {
	n := len(s.Recent)
	return wrong.ScheduleFacts{
		Broken:      s.Broken != "",
		Missed:      n > 0 && s.Recent[n-1].Outcome == core.TickMissed,
		Paused:      s.Paused,
		QueuePaused: queuePaused,
		Late:        s.Late,
	}.State()
}

func (a *app) listSchedules() *cobra.Command {
	var o inspect.ScheduleOptions
	state := ""
	c := a.command(
		"ls QUEUE",
		"List the names of a queue's schedules, or with --name, --id or --state the schedules",
		"skein schedule ls billing --name invoice",
		cobra.ExactArgs(1),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			switch {
			case state != "" && !slices.Contains(scheduleStateNames(), state):
				return fmt.Errorf("%w: --state %s; give %s", errUsage, state, either(scheduleStateNames()))
			case state != "":
				return a.listSchedulesInState(ctx, i, args[0], o, state)
			case o.ScheduleSelection == (inspect.ScheduleSelection{}):
				return a.listScheduleNames(ctx, i, args[0], o.Limit)
			}

			limit, none := o.Limit, noSchedule(args[0], o.ScheduleSelection)
			o.Limit = oneMore(limit)
			found := scheduleRows(orElse(i.Schedules(ctx, args[0], o), none))
			return listLimited(a, scheduleColumns, found, limit, "schedules")
		},
	)

	c.Flags().StringVar(&o.Name, "name", "", "the schedules with this `NAME`, a row for each id")
	c.Flags().StringVar(&o.ID, "id", "", "the schedules of this `ID`")
	c.Flags().StringVar(&state, "state", "",
		"the schedules in this `STATE`: "+either(scheduleStateNames())+"; one in several has the first of them. "+
			"late is due for a minute or more, and missed means that the last tick was dropped by the catch-up. "+
			"With a limit at most "+figures.Exact(stateReads)+" schedules are read")
	_ = c.RegisterFlagCompletionFunc("state",
		cobra.FixedCompletions(scheduleStateNames(), cobra.ShellCompDirectiveNoFileComp)) // it fails only for an unknown flag
	c.Flags().IntVar(&o.Limit, "limit", 100, "the largest number of rows; 0 is no limit")

	c.Long = c.Short + ".\n" +
		"The times in a row of a name are those of its first id only. " +
		"--state late finds the late schedules of all ids."
	return c
}

// listSchedulesInState lists the selected schedules in a state. Stores can't filter by it, so the
// schedules are read until the list is full, or stateReads of them are read.
func (a *app) listSchedulesInState(
	ctx context.Context,
	i *inspect.Inspector,
	queue string,
	o inspect.ScheduleOptions,
	state string,
) error {
	paused, err := queuePaused(ctx, i, queue)
	if err != nil {
		return err
	}
	limit := o.Limit
	if limit > 0 {
		o.Limit = stateReads + 1
	}

	read, cut := 0, ""
	err = list(a, scheduleColumns, scheduleRows(func(yield func(inspect.Schedule, error) bool) {
		shown := 0
		for s, err := range i.Schedules(ctx, queue, o) {
			if err == nil {
				if read++; limit > 0 && read > stateReads {
					cut = fmt.Sprintf("only the first %s schedules were read; --limit 0 reads all",
						figures.Exact(stateReads))
					return
				}
				if stateOf(&s, paused).String() != state {
					continue
				}
				if shown++; limit > 0 && shown > limit {
					cut = moreThan(limit, "schedules in the state "+state)
					return
				}
			}
			if !yield(s, err) {
				return
			}
		}
		if read == 0 && o.ScheduleSelection != (inspect.ScheduleSelection{}) {
			yield(inspect.Schedule{}, noSchedule(queue, o.ScheduleSelection))
		}
	}))

	if cut != "" {
		_, _ = fmt.Fprintln(a.stderr, cut)
	}
	return err
}

// queuePaused reports whether a queue is paused. Its due ticks are then not late.
func queuePaused(ctx context.Context, i *inspect.Inspector, queue string) (bool, error) {
	queues, err := i.Queues(ctx)
	for at := range queues {
		if queues[at].Name == queue {
			return queues[at].Paused, err
		}
	}
	return false, err
}

// listScheduleNames lists names, page by page, up to a limit; 0 is no limit.
func (a *app) listScheduleNames(ctx context.Context, i *inspect.Inspector, queue string, limit int) error {
	if limit < 0 {
		return fmt.Errorf("%w: --limit %d; give 0 or more, 0 is no limit", errUsage, limit)
	}

	several := false
	names := func(yield func(inspect.ScheduleName, error) bool) {
		for after, read := "", 0; ; {
			page, err := i.ScheduleNames(ctx, queue, after, 0)
			for _, n := range page.Names {
				several = several || n.Count > 1
				if !yield(n, nil) {
					return
				}
			}
			if err != nil {
				yield(inspect.ScheduleName{}, err)
				return
			}

			read += len(page.Names)
			if after = page.Next; after == "" || limit > 0 && read > limit {
				return
			}
		}
	}

	err := listLimited(a, scheduleNameColumns, names, limit, "names")
	if several && a.tables() {
		_, _ = fmt.Fprintf(a.stderr, "the columns that begin with FIRST are those of a name's first id; "+
			"its other ids may be late: skein schedule ls %s --state late\n", queue)
	}
	return err
}
