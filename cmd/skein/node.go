package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

var nodeColumns = columns[inspect.Node]{
	{"name", false, func(n *inspect.Node) any { return n.Name }},
	{"state", false, func(n *inspect.Node) any { return n.State.String() }},
	{"gone_at", false, func(n *inspect.Node) any {
		if n.State != inspect.NodeGone {
			return nil
		}
		return n.ExpiresAt
	}},
	{"owner", true, func(n *inspect.Node) any { return n.Owner }},
	{"host", false, func(n *inspect.Node) any { return n.Host }},
	{"pid", false, func(n *inspect.Node) any { return n.PID }},
	{"version", false, func(n *inspect.Node) any { return n.Version }},
	{"lanes", false, func(n *inspect.Node) any { return n.Lanes }},
	{"busy", false, func(n *inspect.Node) any { return n.Status.Busy }},
	{"running", false, func(n *inspect.Node) any { return n.Status.Running }},
	{"claimed", true, func(n *inspect.Node) any { return n.Status.Claimed }},
	{"shards", false, func(n *inspect.Node) any { return n.Status.Shards }},
	{"longest_since", false, func(n *inspect.Node) any { return longestSince(n) }},
	{"memory", true, func(n *inspect.Node) any { return n.Status.Memory }},
	{"goroutines", true, func(n *inspect.Node) any { return n.Status.Goroutines }},
	{"started_at", true, func(n *inspect.Node) any { return n.StartedAt }},
	{"expires_at", true, func(n *inspect.Node) any { return n.ExpiresAt }},
	{"queues", false, func(n *inspect.Node) any { return n.Queues }},
	{"merge_rules", true, func(n *inspect.Node) any { return mergeRules(n) }},
	{"clock_ahead_seconds", true, func(n *inspect.Node) any { return n.Status.ClockAhead.Seconds() }},
	{"longest", true, func(n *inspect.Node) any { return longestRows(n) }},
	{"last_chance", true, func(n *inspect.Node) any { return lastChanceOf(n) }},
}

var runningColumns = columns[ports.RunningJob]{
	{"shard", false, func(j *ports.RunningJob) any { return j.Shard.String() }},
	{"id", false, func(j *ports.RunningJob) any { return j.ID }},
	{"since", false, func(j *ports.RunningJob) any { return j.Began.Time() }},
}

// mergeRules returns the merge rule that the server's program has for each of its queues.
func mergeRules(n *inspect.Node) []string {
	rules := []string{}
	for at := range n.Status.Queues {
		q := &n.Status.Queues[at]
		rules = append(rules, q.Queue+" "+q.Merge.String())
	}
	return rules
}

// longestSince returns when the handler began that has run longest on the server, or nil.
func longestSince(n *inspect.Node) any {
	if len(n.Status.Longest) == 0 {
		return nil
	}
	return n.Status.Longest[0].Began.Time()
}

// lastChanceOf returns the shard and the id of the server's job on its last chance, or nil.
func lastChanceOf(n *inspect.Node) any {
	of := n.Status.LastChance
	if of == (ports.LastChance{}) {
		return nil
	}
	return of.Shard.String() + " " + of.ID
}

// lastGoneFirst sorts servers: first those that run, by name, then those that are gone, the last
// one to go first.
func lastGoneFirst(nodes []inspect.Node) {
	slices.SortStableFunc(nodes, func(a, b inspect.Node) int {
		switch aGone, bGone := a.State == inspect.NodeGone, b.State == inspect.NodeGone; {
		case aGone && bGone:
			return cmp.Or(b.ExpiresAt.Compare(a.ExpiresAt), cmp.Compare(a.Name, b.Name))
		case aGone:
			return 1
		case bGone:
			return -1
		}
		return cmp.Compare(a.Name, b.Name)
	})
}

func longestRows(n *inspect.Node) []*object {
	rows := []*object{}
	for at := range n.Status.Longest {
		rows = append(rows, runningColumns.row(&n.Status.Longest[at]))
	}
	return rows
}

func (a *app) nodeCommand() *cobra.Command {
	undo := false
	drain := a.command(
		"drain NODE",
		"Drain a server, by its name or owner id: it gives up its shards and takes no others",
		"skein node drain web-1",
		cobra.ExactArgs(1),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			return i.Drain(ctx, args[0], !undo)
		},
	)

	drain.Flags().BoolVar(&undo, "undo", false, "end the drain: the server takes shards again")

	return group(
		"node",
		"Show servers, and drain them",
		a.command(
			"ls",
			"List the servers, and then those that stopped responding within the last hour, the last one first",
			"skein node ls",
			cobra.NoArgs,
			func(ctx context.Context, i *inspect.Inspector, _ []string) error {
				nodes, err := i.Nodes(ctx)
				lastGoneFirst(nodes)
				return list(a, nodeColumns, all(nodes, err))
			},
		),
		drain,
	)
}
