package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
)

func (a *app) nodeCommand() *cobra.Command {
	undo := false
	drain := a.command("drain NODE", "Drain a server, by its name or owner id: it gives up its shards and takes no others", "skein node drain web-1", cobra.ExactArgs(1),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			return i.Drain(ctx, args[0], !undo)
		})
	drain.Flags().BoolVar(&undo, "undo", false, "end the drain: the server takes shards again")
	return group("node", "Show servers, and drain them",
		a.command("ls", "List the servers, and those that ended within the last hour", "skein node ls", cobra.NoArgs,
			func(ctx context.Context, i *inspect.Inspector, _ []string) error {
				nodes, err := i.Nodes(ctx)
				return list(a, nodeColumns, all(nodes, err))
			}),
		drain)
}
