package main

import (
	"context"
	"fmt"
	"iter"
	"time"

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

// trackedRow is a tracked id, and the reason why its job does not run.
type trackedRow struct {
	inspect.TrackedID
	reason, text string
	until        time.Time
}

var trackedColumns = columns[trackedRow]{
	{"id", false, func(t *trackedRow) any { return t.ID }},
	{"since", true, func(t *trackedRow) any { return t.Since }},
	{"reason", false, func(t *trackedRow) any { return t.reason }},
	{"text", false, func(t *trackedRow) any { return t.text }},
	{"until", true, func(t *trackedRow) any { return t.until }},
}

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
func verdicts(ctx context.Context, i *inspect.Inspector, queue string) iter.Seq2[trackedRow, error] {
	return func(yield func(trackedRow, error) bool) {
		ids, err := i.Tracked(ctx, queue)
		if err != nil {
			yield(trackedRow{}, err)
			return
		}

		var missing error
		for _, t := range ids {
			row := trackedRow{TrackedID: t}
			switch v, err := i.Why(ctx, queue, t.ID); {
			case err == nil:
				row.reason, row.text, row.until = v.Reason.String(), v.Text, v.Until
			case ctx.Err() == nil && ports.FailureOf(err) == ports.FailureUnreachable:
				row.reason, row.text = service.Unreached, service.UnreachedText
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
			yield(trackedRow{}, missing)
		}
	}
}
