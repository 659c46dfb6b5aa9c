package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
)

// track is a command that changes the tracked ids of a queue.
func (a *app) track(name, short string, change func(*inspect.Inspector, context.Context, string, string) (bool, error)) *cobra.Command {
	return a.command(name+" QUEUE ID", short, "skein job "+name+" orders 42", cobra.ExactArgs(2),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			_, err := change(i, ctx, args[0], args[1])
			return err
		})
}

// trackedRow is a tracked id with its verdict.
type trackedRow struct {
	inspect.TrackedID
	verdict inspect.Verdict
}

var trackedColumns = columns[trackedRow]{
	{"id", false, func(t *trackedRow) any { return t.ID }},
	{"since", true, func(t *trackedRow) any { return t.Since }},
	{"reason", false, func(t *trackedRow) any { return t.verdict.Reason.String() }},
	{"text", false, func(t *trackedRow) any { return t.verdict.Text }},
	{"until", true, func(t *trackedRow) any { return t.verdict.Until }},
}

func (a *app) tracked() *cobra.Command {
	return a.command("tracked QUEUE", "List the tracked ids of a queue, each with the reason why its job does not run", "skein job tracked orders", cobra.ExactArgs(1),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			return list(a, trackedColumns, verdicts(ctx, i, args[0]))
		})
}

// verdicts asks for the verdict of each tracked id.
func verdicts(ctx context.Context, i *inspect.Inspector, queue string) iter.Seq2[trackedRow, error] {
	return func(yield func(trackedRow, error) bool) {
		ids, err := i.Tracked(ctx, queue)
		if err != nil {
			yield(trackedRow{}, err)
			return
		}
		for _, t := range ids {
			v, err := i.Why(ctx, queue, t.ID)
			if err != nil {
				err = fmt.Errorf("tracked id %q: %w", t.ID, err)
			}
			if !yield(trackedRow{t, v}, err) || err != nil {
				return
			}
		}
	}
}
