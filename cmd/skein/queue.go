package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

var queueColumns = fieldColumns[inspect.Queue]()

var shardColumns = append(
	append(columns[inspect.ShardStats]{
		{"shard", false, func(s *inspect.ShardStats) any { return s.Shard.String() }},
		{"index", true, func(s *inspect.ShardStats) any { return s.Shard.Index }},
	}, within(countColumns, func(s *inspect.ShardStats) *inspect.Counts { return &s.Counts })...),
	columns[inspect.ShardStats]{
		{"owner", false, func(s *inspect.ShardStats) any { return s.Owner }},
		{"token", true, func(s *inspect.ShardStats) any { return s.Token }},
		{"expires_at", false, func(s *inspect.ShardStats) any { return s.ExpiresAt }},
	}...,
)

// command returns a command that reads the store, or acts on it.
func (a *app) command(
	use, short, example string, args cobra.PositionalArgs,
	do func(ctx context.Context, i *inspect.Inspector, args []string) error,
) *cobra.Command {
	return &cobra.Command{
		Use:     use,
		Short:   short,
		Example: "  " + example,
		Args:    arguments(args),
		RunE: func(cmd *cobra.Command, args []string) error {
			i, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			return do(cmd.Context(), i, args)
		},
	}
}

func (a *app) queueCommand() *cobra.Command {
	return group("queue", "Show queues, pause and forget them",
		a.command("ls", "List the queues", "skein queue ls", cobra.NoArgs,
			func(ctx context.Context, i *inspect.Inspector, _ []string) error {
				queues, err := i.Queues(ctx)
				return list(a, queueColumns, all(queues, err))
			}),
		a.command("show QUEUE", "Show the sizes of a queue", "skein queue show orders", cobra.ExactArgs(1),
			func(ctx context.Context, i *inspect.Inspector, args []string) error {
				lines, err := a.statLines(ctx, i, args, nil)
				if len(lines) == 0 {
					return err
				}
				return firstOf(one(a, statColumns, &lines[0]), err)
			}),
		a.onQueue("pause", "Stop claims from a queue; running jobs finish, and pushes are accepted",
			(*inspect.Inspector).Pause),
		a.onQueue("resume", "End a pause", (*inspect.Inspector).Resume),
		a.setMerge(), a.showSettings(), a.setSettings(), a.unsetSettings(), a.history(), a.purge(),
		a.rate(),
		a.onQueue("forget", "Remove an empty queue that no server runs", (*inspect.Inspector).Forget),
	)
}

func (a *app) onQueue(name, short string, do func(*inspect.Inspector, context.Context, string) error) *cobra.Command {
	return a.command(name+" QUEUE", short, "skein queue "+name+" orders", cobra.ExactArgs(1),
		func(ctx context.Context, i *inspect.Inspector, args []string) error { return do(i, ctx, args[0]) })
}

func (a *app) setMerge() *cobra.Command {
	cmd := a.command(
		"merge QUEUE RULE",
		"Change the merge rule of a queue, for its next merges",
		"skein queue merge orders 'latest(1)'",
		cobra.ExactArgs(2),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			rule, err := core.ParseMergeRule(args[1])
			if err != nil {
				return err
			}
			return i.SetMerge(ctx, args[0], rule)
		},
	)

	cmd.Long = cmd.Short + ".\n" +
		"RULE is union, newest or latest(n), if the queue has one of these; it is every or every.last(n), " +
		"if the queue has one\n" +
		"of those. Other changes end with 2, since payloads are stored in another way: " +
		"move the jobs to a queue with the new rule.\n" +
		"Nothing is removed at once. Change the rule first, then deploy it: " +
		"a server that declares another rule than the queue's\n" +
		"fails when it starts, and continues if it runs."
	return cmd
}

// firstOf returns the first error that is not nil.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) shardCommand() *cobra.Command {
	return group("shard", "Show the shards of a queue",
		a.command(
			"ls QUEUE",
			"List the shards of a queue, with their owners",
			"skein shard ls orders",
			cobra.ExactArgs(1),
			func(ctx context.Context, i *inspect.Inspector, args []string) error {
				queues, err := i.Stats(ctx, args[0])
				var shards []inspect.ShardStats
				for _, q := range queues {
					shards = append(shards, q.Shards...)
				}
				return list(a, shardColumns, all(shards, err))
			},
		))
}
