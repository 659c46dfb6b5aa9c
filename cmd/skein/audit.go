package main

import (
	"context"
	"fmt"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
)

// actor returns the user who runs the command, for the audit.
func (a *app) actor() inspect.Actor {
	who := inspect.Actor{From: "skein", Reason: a.reason}
	if u, err := user.Current(); err == nil {
		who.Name = u.Username
	}
	if by := a.env("SUDO_USER"); by != "" && by != who.Name {
		who.Name = by + " as " + who.Name
	}
	if host, err := os.Hostname(); err == nil {
		who.From = "skein on " + host
	}
	return who
}

func (a *app) auditCommand() *cobra.Command {
	queue, id, limit := "", "", 50
	c := a.command(
		"audit",
		"List actions of operators: when, who, which queue and ids, and why",
		"skein audit --queue orders",
		cobra.NoArgs,
		func(ctx context.Context, i *inspect.Inspector, _ []string) error {
			if limit < 1 || limit > ports.ActionsKept {
				return fmt.Errorf("%w: --limit %d; use 1 to %d", errUsage, limit, ports.ActionsKept)
			}

			return list(a, auditColumns, func(yield func(inspect.Action, error) bool) {
				left := limit
				for action, err := range i.Actions(ctx, inspect.ActionsOptions{Queue: queue, ID: id}) {
					if left--; !yield(action, err) || left == 0 {
						return
					}
				}
			})
		},
	)

	c.Flags().StringVar(&queue, "queue", "", "list actions on this `QUEUE` alone")
	c.Flags().StringVar(&id, "id", "", "list actions that named this `ID`")
	c.Flags().IntVar(&limit, "limit", limit, "list the newest `N` actions; the store keeps 1,000 of all queues")
	return c
}

// auditColumns are the columns of an action.
var auditColumns = within(
	fieldColumns[service.AuditRow]().moved("ended", "actor", "from", "reason").
		with("filter", func(a *service.AuditRow) any { return chosenBy{a.ChosenBy(), a.Filter} }),
	func(a *inspect.Action) *service.AuditRow { return new(service.AuditOf(a)) },
)
