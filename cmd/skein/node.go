package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
)

func (a *app) nodeCommand() *cobra.Command {
	undo := false
	drain := a.command("drain NODE", "Ask a server, by its name or owner, to give its shards up and take none", "skein node drain web-1", cobra.ExactArgs(1),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			return i.Drain(ctx, args[0], !undo)
		})
	drain.Flags().BoolVar(&undo, "undo", false, "let it work again")
	return group("node", "Look at servers, and drain them",
		a.command("ls", "List the servers, also those that went within an hour", "skein node ls", cobra.NoArgs,
			func(ctx context.Context, i *inspect.Inspector, _ []string) error {
				nodes, err := i.Nodes(ctx)
				return list(a, nodeColumns, all(nodes, err))
			}),
		drain)
}

// checkPatience is how long check waits unless --timeout says otherwise.
const checkPatience = 2 * time.Second

func (a *app) checkCommand() *cobra.Command {
	return a.command("check", "Ask whether the store answers and can be used, for probes; waits 2s unless --timeout is given", "skein check --timeout 1s", cobra.NoArgs,
		func(ctx context.Context, i *inspect.Inspector, _ []string) error {
			if a.timeout > 0 {
				return i.Ping(ctx)
			}
			ctx, stop := context.WithTimeout(ctx, checkPatience)
			defer stop()
			err := i.Ping(ctx)
			if err != nil && ctx.Err() != nil && context.Cause(ctx) == context.DeadlineExceeded {
				return fmt.Errorf("%w: no answer within %v: %w", errAway, checkPatience, err)
			}
			return err
		})
}
