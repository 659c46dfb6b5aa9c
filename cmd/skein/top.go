package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
)

func (a *app) topCommand() *cobra.Command {
	interval := 2 * time.Second
	c := a.command("top [QUEUE...]", "Show queues and servers, live, until Ctrl-C; for programs there is stats --watch", "skein top", cobra.ArbitraryArgs,
		func(ctx context.Context, i *inspect.Inspector, queues []string) error {
			if !a.asTable() {
				return fmt.Errorf("%w: top shows tables; use stats --watch -o %s", errUsage, a.output)
			}
			var before []statLine
			return a.watch(ctx, interval, func() (show func() error) {
				lines, err := statLines(ctx, i, queues, before)
				nodes, unlisted := i.Nodes(ctx)
				before = lines
				return func() error {
					err := list(a, watchColumns, all(lines, err))
					_, _ = fmt.Fprintln(a.stdout)
					return errors.Join(err, list(a, nodeColumns, all(nodes, unlisted)))
				}
			})
		})
	c.Flags().DurationVar(&interval, "interval", interval, "how often; a look that takes long is followed by a rest of 99 times as long, 15s at most")
	return c
}
