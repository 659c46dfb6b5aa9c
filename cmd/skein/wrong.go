package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/wrong"
)

// wrongColumns are the columns of faults, as seen by the looks of t.
func (t *top) wrongColumns() columns[wrong.Line] {
	return columns[wrong.Line]{
		{"wrong", false, func(l *wrong.Line) any { return l.Kind.String() }},
		{"of", false, func(l *wrong.Line) any { return wrongOf(l) }},
		{"since", false, func(l *wrong.Line) any { return t.since(l) }},
		{"what", false, func(l *wrong.Line) any { return l.Text }},
		{"level", true, func(l *wrong.Line) any { return l.Kind.Level().String() }},
		{"queue", true, func(l *wrong.Line) any { return l.Queue }},
		{"queues", true, func(l *wrong.Line) any { return wrongQueues(l) }},
		{"shard", true, func(l *wrong.Line) any { return known(l.Shard) }},
		{"server", true, func(l *wrong.Line) any { return l.Server }},
		{"id", true, func(l *wrong.Line) any { return l.ID }},
	}
}

// wrongOf names what has a fault: the queue, the server, or the number of queues.
func wrongOf(l *wrong.Line) string {
	if n := len(l.Parts); n > 0 {
		return fmt.Sprintf("%d queues", n)
	}
	return cmp.Or(l.Queue, l.Server)
}

// wrongQueues names the queues that have a fault, separated by spaces.
func wrongQueues(l *wrong.Line) string {
	if len(l.Parts) == 0 {
		return l.Queue
	}
	names := make([]string, len(l.Parts))
	for at := range l.Parts {
		names[at] = l.Parts[at].Queue
	}
	return strings.Join(names, " ")
}

func (a *app) wrongCommand() *cobra.Command {
	return a.command(
		"wrong [QUEUE...]",
		"List what is wrong now, the worst first, as top does; ends with 6 if something is wrong",
		"skein wrong",
		cobra.ArbitraryArgs,
		func(ctx context.Context, i *inspect.Inspector, queues []string) error {
			t := &top{inspector: i, queues: queues, answerTime: a.answerTime()}
			t.look(ctx)
			if t.refused {
				return t.failed
			}

			if err := list(a, t.wrongColumns(), all(t.wrong, nil)); err != nil {
				return err
			}

			switch found := len(t.wrong); {
			case found == 0 || t.failed != nil && !isPartial(t.failed):
				return t.failed
			case t.failed != nil:
				_, _ = fmt.Fprintln(a.stderr, "skein:", multiline(t.failed.Error()))
				fallthrough
			default:
				return fmt.Errorf("%w: skein wrong lists %s; docs/operations/runbooks.md has what to do",
					errFound, problems(found))
			}
		},
	)
}

func problems(n int) string {
	if n == 1 {
		return "1 problem"
	}
	return fmt.Sprintf("%d problems", n)
}
