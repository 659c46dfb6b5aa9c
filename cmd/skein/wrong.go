package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/wrong"
)

// wrongColumns are the columns of faults, as seen by the looks of t.
func (t *top) wrongColumns() columns[wrong.Line] {
	return columns[wrong.Line]{
		{"wrong", false, func(l *wrong.Line) any { return l.Kind.String() }},
		{"of", false, func(l *wrong.Line) any { return cmp.Or(l.Queue, l.Server) }},
		{"since", false, func(l *wrong.Line) any { return t.since(l) }},
		{"what", false, func(l *wrong.Line) any { return l.Text }},
		{"queue", true, func(l *wrong.Line) any { return l.Queue }},
		{"shard", true, func(l *wrong.Line) any { return known(l.Shard) }},
		{"server", true, func(l *wrong.Line) any { return l.Server }},
		{"id", true, func(l *wrong.Line) any { return l.ID }},
	}
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
