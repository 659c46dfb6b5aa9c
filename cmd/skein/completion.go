package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
)

// The time that a completion waits for the store, and the largest number of groups that it offers.
const (
	completionPatience = time.Second
	completionGroups   = 50
)

// complete lets shells complete names that only the store knows: queues, servers and groups of dead
// letters. If the store does not answer soon, nothing is completed. No error is printed, because
// the shell would write it into the line that is being typed.
func (a *app) complete(c *cobra.Command) {
	for _, inner := range c.Commands() {
		a.complete(inner)
	}
	switch _, argument, _ := strings.Cut(c.Use, " "); {
	case strings.HasPrefix(argument, "QUEUE"), strings.HasPrefix(argument, "[QUEUE...]"):
		many := strings.HasPrefix(argument, "[")
		c.ValidArgsFunction = func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 && !many {
				return nil, cobra.ShellCompDirectiveDefault // an id, or a file
			}
			return a.completed(c, args, begun, queueNames)
		}
	case argument == "NODE":
		c.ValidArgsFunction = func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completed(c, args, begun, nodeNames)
		}
	}
	flag := func(name string, names func(context.Context, *inspect.Inspector, []string) ([]string, error)) {
		if c.Flags().Lookup(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
				return a.completed(c, args, begun, names)
			}) // it fails only for an unknown flag
		}
	}
	flag("group", groupNames)
	if !c.HasParent() {
		_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formatList(), cobra.ShellCompDirectiveNoFileComp))
		_ = c.RegisterFlagCompletionFunc("profile", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			list, _ := a.profiles()
			var names []string
			for _, p := range list {
				names = append(names, p.name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// completed reads names from the store. It returns those that begin with the typed text and are not
// among the arguments yet.
func (a *app) completed(
	c *cobra.Command, args []string, begun string, names func(context.Context, *inspect.Inspector, []string) ([]string, error),
) ([]string, cobra.ShellCompDirective) {
	parent := c.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, stop := context.WithTimeout(parent, completionPatience)
	defer stop()
	i, err := a.open(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, _ := names(ctx, i, args) // if a part of the store can't be reached, the names of the rest
	return slices.DeleteFunc(list, func(name string) bool {
		return !strings.HasPrefix(name, begun) || slices.Contains(args, name) || strings.ContainsFunc(name, odd)
	}), cobra.ShellCompDirectiveNoFileComp
}

func queueNames(ctx context.Context, i *inspect.Inspector, _ []string) (names []string, err error) {
	queues, err := i.Queues(ctx)
	for _, q := range queues {
		names = append(names, q.Name)
	}
	return names, err
}

func nodeNames(ctx context.Context, i *inspect.Inspector, _ []string) (names []string, err error) {
	nodes, err := i.Nodes(ctx)
	for at := range nodes {
		if nodes[at].State != inspect.NodeGone && !slices.Contains(names, nodes[at].Name) {
			names = append(names, nodes[at].Name)
		}
	}
	return names, err
}

func groupNames(ctx context.Context, i *inspect.Inspector, args []string) (names []string, err error) {
	if len(args) == 0 {
		return nil, nil
	}
	groups, err := i.Groups(ctx, args[0], completionGroups)
	for _, g := range groups.Groups {
		names = append(names, g.Name)
	}
	return names, err
}
