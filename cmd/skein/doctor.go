package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

var checkColumns = within(fieldColumns[service.CheckRow]().moved("name", "status"),
	func(c *inspect.Check) *service.CheckRow { return new(service.CheckOf(c)) })

func (a *app) doctorCommand() *cobra.Command {
	return a.command(
		"doctor",
		"Check the store's servers and settings, with advice; ends with 6 if a check warns or fails",
		"skein doctor",
		cobra.NoArgs,
		func(ctx context.Context, i *inspect.Inspector, _ []string) error {
			checks, err := i.Checks(ctx)
			away := a.unanswered(ctx)
			if away != nil && (err != nil || len(checks) == 0) {
				return away
			}

			rows := slices.Clone(checks)
			if away == nil {
				brief, stop := context.WithTimeout(ctx, a.answerTime())
				rows = append(rows, lookAtIdentity(brief, i))
				stop()
			}

			worstFirst(rows)
			if shown := list(a, checkColumns, all(rows, err)); shown != nil {
				return shown
			}

			wrong := 0
			for _, c := range checks {
				if c.Status >= inspect.CheckWarn {
					wrong++
				}
			}

			switch {
			case wrong > 0 && away != nil && !answered(checks):
				return away
			case wrong > 0:
				return fmt.Errorf("%w: %d of %d checks warn or fail", errFound, wrong, len(checks))
			}
			return nil
		},
	)
}

// worstFirst sorts checks by status, the failed ones first, and otherwise keeps their order.
func worstFirst(checks []inspect.Check) {
	slices.SortStableFunc(checks, func(a, b inspect.Check) int { return cmp.Compare(b.Status, a.Status) })
}

// answered reports whether a server has answered: a row is something other than the report that a
// server does not answer.
func answered(checks []inspect.Check) bool {
	return slices.ContainsFunc(checks, func(c inspect.Check) bool {
		return c.Name != "answers" || c.Status == inspect.CheckOK
	})
}
