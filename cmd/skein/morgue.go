package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
)

var deadColumns = fieldColumns[inspect.DeadLetter]().moved("last_error", "payload_count").moved("group", "tags")

var groupColumns = append(
	columns[inspect.Group]{{"group", true, func(g *inspect.Group) any { return g.Name }}},
	fieldColumns[inspect.Group]()...,
)

func (a *app) morgueCommand() *cobra.Command {
	return group("morgue", "Show dead letters, revive them, and move them between stores",
		a.listMorgue(), a.listGroups(),
		a.onDead(
			"revive",
			"Queue dead letters again, due now, as if they had never failed",
			"skein morgue revive orders --all --error timeout --rate 100",
			"revived",
			(*inspect.Inspector).Revive,
		),
		a.moveMorgue(),
		a.edit(
			"Replace a payload of a dead letter; the dead letter stays in the morgue",
			"skein morgue edit orders 42 --payload-file corrected.json",
			deadEdit(),
		),
		a.onDead(
			"rm",
			"Remove dead letters permanently",
			"skein morgue rm orders --all --before 720h --dry-run",
			"removed",
			(*inspect.Inspector).Purge,
		),
		a.export(), a.importLetters(),
	)
}

func (a *app) listMorgue() *cobra.Command {
	var l listFlags
	c := a.command("ls QUEUE", "List the dead letters", "skein morgue ls orders --desc --limit 20", cobra.ExactArgs(1),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			o, err := l.options()
			if err != nil {
				return err
			}
			before, err := l.filter(&o)
			if err != nil {
				return err
			}

			return listEntries(a, deadColumns, &l, i.Morgue(ctx, args[0], o), func(d *inspect.DeadLetter) bool {
				return l.Holds(d.LastError, d.Tags) && (before.IsZero() || d.ChangedAt.Before(before))
			}, "dead letters")
		})

	l.add(c.Flags())
	c.Flags().StringVar(&l.sort, "sort", "", "time, when they last changed, or id (default time, with --prefix id)")
	c.Flags().StringVar(&l.o.Prefix, "prefix", "", "only ids with this prefix, sorted by id")
	c.Flags().StringVar(&l.o.Group, "group", "",
		"only those of this group of errors, sorted by time; skein morgue groups lists them")
	return c
}

func (a *app) listGroups() *cobra.Command {
	limit := 0
	c := a.command(
		"groups QUEUE",
		"Count the dead letters by error, the most frequent first",
		"skein morgue groups orders",
		cobra.ExactArgs(1),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			groups, err := i.Groups(ctx, args[0], limit)
			a.sayLarger(len(groups.Groups), groups.Total, "groups")
			return list(a, groupColumns, all(groups.Groups, err))
		},
	)

	c.Flags().IntVar(&limit, "limit", 100, "the largest number of groups")
	return c
}

// onDead returns a command that acts on dead letters: on those of named ids, or on all that match.
func (a *app) onDead(name, short, example, done string, on onDead) *cobra.Command {
	b, force := &bulkFlags{verb: name, done: done, has: hasDead}, false
	c := a.bulk(b, name+" QUEUE [ID...]", short, example,
		func(ctx context.Context, i *inspect.Inspector, queue string, c *chosen) (inspect.Result, error) {
			dead := c.dead()
			if force {
				dead = dead.Force()
			}
			return on(i, ctx, queue, dead)
		})
	if name == "rm" {
		c.SuggestFor = []string{"purge", "delete"} // purge is its name in the HTTP API
	} else {
		c.Flags().BoolVar(&force, "force", false,
			"revive payloads too that are not newer than what was done of their ids, and forget what was done of these")
	}
	c.Flags().StringVar(&b.o.Group, "group", "",
		"with --all: only those of this group of errors; skein morgue groups lists them")
	return c
}

func (a *app) export() *cobra.Command {
	var o inspect.ListOptions
	c := a.command(
		"export QUEUE",
		"Write whole dead letters as lines of JSON, which import reads; the dead letters stay",
		"skein morgue export orders > dead.jsonl",
		cobra.ExactArgs(1),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			n, err := inspect.WriteDeadLetters(a.stdout, i.Export(ctx, args[0], o))
			_, _ = fmt.Fprintf(a.stderr, "%d exported\n", n)
			return err
		},
	)

	c.Flags().StringVar(&o.Prefix, "prefix", "", "only ids with this prefix")
	c.Flags().StringVar(&o.Group, "group", "", "only those of this group of errors")
	return c
}

func (a *app) importLetters() *cobra.Command {
	var layout layoutFlags
	c := a.command(
		"import QUEUE [FILE]",
		"Import exported dead letters into the morgue, as they were; a repeated import changes nothing",
		"skein morgue import orders dead.jsonl",
		cobra.RangeArgs(1, 2),
		nil,
	)
	layout.add(c.Flags())

	c.RunE = func(cmd *cobra.Command, args []string) error {
		in := a.stdin
		if len(args) == 2 && args[1] != "-" {
			file, err := os.Open(args[1])
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			defer func() { _ = file.Close() }()
			in = file
		}
		return a.importFrom(cmd.Context(), args[0], &layout, in)
	}
	return c
}

func (a *app) importFrom(ctx context.Context, queue string, layout *layoutFlags, in io.Reader) error {
	i, err := a.open(ctx)
	if err != nil {
		return err
	}
	if _, err := a.declared(ctx, layout, queue); err != nil {
		return err
	}

	p, file := newProgress(a, "import", "imported"), inputOf(in)
	p.of = file.share
	r, err := i.Import(ctx, queue, inspect.ReadDeadLetters(file), p.progress)
	p.end()
	if err != nil {
		return fmt.Errorf("%w; %d were imported; run the import again from the beginning to continue", err, r.Handled)
	}
	return one(a, resultColumns, &r)
}
