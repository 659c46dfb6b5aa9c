package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
)

// track returns a command that changes the tracked ids of a queue.
func (a *app) track(
	name, short string,
	change func(*inspect.Inspector, context.Context, string, string) (bool, error),
) *cobra.Command {
	return a.command(name+" QUEUE ID", short, "skein job "+name+" orders 42", cobra.ExactArgs(2),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			_, err := change(i, ctx, args[0], args[1])
			return err
		})
}

var trackedColumns = fieldColumns[service.TrackedRow]()

func (a *app) tracked() *cobra.Command {
	return a.command(
		"tracked QUEUE",
		"List the tracked ids of a queue, each with the reason why its job does not run",
		"skein job tracked orders",
		cobra.ExactArgs(1),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			return list(a, trackedColumns, verdicts(ctx, i, args[0]))
		},
	)
}

// verdicts yields each tracked id with its verdict. An id whose shard can't be reached has the
// reason service.Unreached, and the last pair is then the error errPart.
func verdicts(ctx context.Context, i *inspect.Inspector, queue string) iter.Seq2[service.TrackedRow, error] {
	return func(yield func(service.TrackedRow, error) bool) {
		ids, err := i.Tracked(ctx, queue)
		if err != nil {
			yield(service.TrackedRow{}, err)
			return
		}

		var missing error
		for _, t := range ids {
			row := service.TrackedRow{ID: t.ID, Since: t.Since}
			switch v, err := i.Why(ctx, queue, t.ID); {
			case err == nil:
				row.Reason, row.Text, row.Until = v.Reason.String(), v.Text, v.Until
			case ctx.Err() == nil && ports.FailureOf(err) == ports.FailureUnreachable:
				row.Reason, row.Text = service.Unreached, service.UnreachedText
				missing = fmt.Errorf("%w: tracked id %q: %w", errPart, t.ID, err)
			default:
				yield(row, fmt.Errorf("tracked id %q: %w", t.ID, err))
				return
			}

			if !yield(row, nil) {
				return
			}
		}

		if missing != nil {
			yield(service.TrackedRow{}, missing)
		}
	}
}
