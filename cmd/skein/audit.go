package main

import (
	"context"
	"fmt"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
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
	queue, limit := "", 50
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
				for action, err := range i.Actions(ctx, inspect.ActionsOptions{Queue: queue}) {
					if left--; !yield(action, err) || left == 0 {
						return
					}
				}
			})
		},
	)

	c.Flags().StringVar(&queue, "queue", "", "list actions on this `QUEUE` alone")
	c.Flags().IntVar(&limit, "limit", limit, "list the newest `N` actions; the store keeps 1,000 of all queues")
	return c
}

// auditColumns are the columns of an action, named like the fields of the HTTP API.
var auditColumns = columns[inspect.Action]{
	{"at", false, func(a *inspect.Action) any { return a.At }},
	{"action", false, func(a *inspect.Action) any { return a.Verb }},
	{"queue", false, func(a *inspect.Action) any { return a.Queue }},
	{"ids", false, func(a *inspect.Action) any { return a.IDs }},
	{"named", true, func(a *inspect.Action) any { return a.Named }},
	{"prefix", true, func(a *inspect.Action) any { return a.Prefix }},
	{"group", true, func(a *inspect.Action) any { return a.Group }},
	{"filter", false, func(a *inspect.Action) any { return a.Filter }},
	{"actor", false, func(a *inspect.Action) any { return a.Actor.Name }},
	{"from", true, func(a *inspect.Action) any { return a.Actor.From }},
	{"reason", false, func(a *inspect.Action) any { return a.Actor.Reason }},
	{"ended", false, func(a *inspect.Action) any { return a.Ended }},
	{"handled", false, func(a *inspect.Action) any { return a.Handled }},
	{"took_seconds", true, func(a *inspect.Action) any { return a.Took }},
	{"error", false, func(a *inspect.Action) any { return a.Error }},
}
