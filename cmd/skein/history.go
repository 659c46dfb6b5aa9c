package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

var historyColumns = within(fieldColumns[service.HistoryRow](), func(m *inspect.MinuteStats) *service.HistoryRow {
	return new(service.HistoryOf(m))
})

// history returns the command that shows the past of a queue by minute.
func (a *app) history() *cobra.Command {
	from, step := "1h", time.Minute
	c := a.command(
		"history QUEUE",
		"Show by minute how many jobs were done and failed, and how long they waited and ran; 24 hours are kept",
		"skein queue history orders --from 24h --step 1h",
		cobra.ExactArgs(1),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			at, err := parseTime("--from", from)
			if err != nil {
				return err
			}
			minutes, err := i.History(ctx, args[0], inspect.HistoryOptions{From: at.Truncate(time.Minute), Step: step})
			return list(a, historyColumns, all(minutes, err))
		},
	)

	c.Flags().StringVar(&from, "from", from, "begin at this `TIME`; an age such as 24h is a TIME too")
	c.Flags().DurationVar(&step, "step", step, "the time of a row, in whole minutes")
	return c
}
