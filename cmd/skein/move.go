package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
)

// moveFlags name the queue to which a command moves entries.
type moveFlags struct{ to, profile string }

func (m *moveFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&m.to, "to", "", "the `QUEUE` to move to; it must be paused")
	c.Flags().StringVar(&m.profile, "to-profile", "",
		"move to the store with this `NAME` in the file of profiles (default the same store)")
}

// target returns the target of a move. Unless look is true, the queue must be paused, so that no
// question is asked before a move that would fail.
func (a *app) target(ctx context.Context, m *moveFlags, look bool) (inspect.Target, error) {
	t := inspect.Target{Queue: m.to, Inspector: a.inspector}
	if m.to == "" {
		return t, fmt.Errorf("%w: give the queue to move to, by --to", errUsage)
	}

	if m.profile != "" {
		url, err := a.profileURL(m.profile)
		if err != nil {
			return t, err
		}
		if a.other == nil {
			if a.other, err = a.connect(ctx, url); err != nil {
				return t, fmt.Errorf("%w: %w", errUsage, err)
			}
		}
		t.Inspector, t.Store, t.FromStore = a.inspectorOf(a.other), m.profile, cmp.Or(a.profile, a.title())
	}

	if look {
		return t, nil
	}
	stats, err := t.Inspector.Stats(ctx, m.to)
	if err == nil && !stats[0].Queue.Paused {
		err = fmt.Errorf("%w: %s; run skein queue pause %s before, and skein queue resume %s afterwards",
			inspect.ErrNotPaused, m.to, m.to, m.to)
	}
	return t, err
}

// movedPayloads is the number of payloads of each entry that a page of a move has. Most entries
// then come whole, which saves a call for each.
const movedPayloads = 16

// moving returns an action that moves entries. The dry run before the question also checks that the
// target is paused; the dry run of --dry-run does not.
func (a *app) moving(
	b *bulkFlags,
	m *moveFlags,
	move func(context.Context, *inspect.Inspector, string, inspect.Target, *chosen) (inspect.Result, error),
) act {
	return func(ctx context.Context, i *inspect.Inspector, queue string, c *chosen) (inspect.Result, error) {
		to, err := a.target(ctx, m, b.o.DryRun)
		if err != nil {
			return inspect.Result{}, err
		}
		c.options.Payloads = movedPayloads
		return move(ctx, i, queue, to, c)
	}
}

func (a *app) moveJobs() *cobra.Command {
	var m moveFlags
	b := &bulkFlags{verb: "move", done: "moved", has: hasAny, schedules: true, prefixNeeds: needsIndex}
	c := a.bulk(
		b,
		"move QUEUE --to QUEUE [ID...]",
		"Move queued jobs to a paused queue: ids with their dead letters and schedules, "+
			"or --all queued jobs that match, without a filter with all schedules; "+
			"records of what became of the ids are copied",
		"skein job move orders --to orders-2 --all",
		a.moving(b, &m, func(
			ctx context.Context,
			i *inspect.Inspector,
			queue string,
			to inspect.Target,
			c *chosen,
		) (inspect.Result, error) {
			return i.Move(ctx, queue, to, c.jobs(inspect.AllJobs))
		}),
	)

	m.add(c)
	return c
}

func (a *app) moveMorgue() *cobra.Command {
	var m moveFlags
	b := &bulkFlags{verb: "move", done: "moved", has: hasDead, all: true}
	c := a.bulk(
		b,
		"move QUEUE --to QUEUE",
		"Move all dead letters that match to the morgue of a paused queue",
		"skein morgue move orders --to orders-2",
		a.moving(b, &m, func(
			ctx context.Context,
			i *inspect.Inspector,
			queue string,
			to inspect.Target,
			c *chosen,
		) (inspect.Result, error) {
			return i.MoveMorgue(ctx, queue, to, c.dead())
		}),
	)

	c.Args = arguments(cobra.ExactArgs(1))
	c.Flags().StringVar(&b.o.Group, "group", "", "only those of this group of errors; skein morgue groups lists them")
	m.add(c)
	return c
}
