package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

var historyColumns = within(fieldColumns[service.HistoryRow](), func(m *inspect.MinuteStats) *service.HistoryRow {
	return new(service.HistoryOf(m))
})

// history returns the command that shows the past of a queue by minute or by day.
func (a *app) history() *cobra.Command {
	from, step := "", "minute"
	c := a.command(
		"history QUEUE",
		"Show by minute how many jobs were done and failed, and how long they waited and ran; "+
			"24 hours are kept by minute, and 30 days by day",
		"skein queue history orders --from 24h --step hour",
		cobra.ExactArgs(1),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			o, err := historyOptions(from, step)
			if err != nil {
				return err
			}
			minutes, err := i.History(ctx, args[0], o)
			return list(a, historyColumns, all(minutes, err))
		},
	)

	c.Flags().StringVar(&from, "from", from,
		"begin at this `TIME`; an age such as 24h or 7d is a TIME too; by default an hour ago, or 30 days ago for days")
	c.Flags().StringVar(&step, "step", step, "the time of a row: `STEP` is "+service.StepForms)
	return c
}

// historyOptions reads the flags of the command history.
func historyOptions(from, step string) (o inspect.HistoryOptions, err error) {
	parsed, ok := service.ParseStep(step)
	if !ok {
		return o, fmt.Errorf("%w: --step %s; give %s", errUsage, step, service.StepForms)
	}
	o.Step = time.Duration(parsed)

	if from == "" && o.Step == inspect.Day {
		return o, nil
	}
	at, err := parseTime("--from", cmp.Or(from, "1h"))
	o.From = at.Truncate(time.Minute)
	return o, err
}
