package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/service"
)

// errorColumns are the columns of errors. Which job failed when is in other lists.
var errorColumns = slices.DeleteFunc(
	slices.Concat(fieldColumns[inspect.ErrorGroup](), columns[inspect.ErrorGroup]{{"queues", false, queuesOf}}),
	func(c column[inspect.ErrorGroup]) bool {
		return c.name == "entries" || c.name == "steps" || c.name == "parts"
	},
).moved("retrying", "queues")

// errorPartColumns are the columns of the parts of errors.
var errorPartColumns = fieldColumns[inspect.ErrorPart]()

// queuesOf names the queues of an error.
func queuesOf(g *inspect.ErrorGroup) any { return strings.Join(g.Queues(), ", ") }

func (a *app) errorsCommand() *cobra.Command {
	var o inspect.ErrorsOptions
	var state, since string
	byQueue := false
	c := a.command(
		"errors [QUEUE...]",
		"List the errors of jobs that retry, of held jobs and of dead letters, over all queues, the most frequent first",
		"skein errors --since 24h",
		cobra.ArbitraryArgs,
		func(ctx context.Context, i *inspect.Inspector, queues []string) (err error) {
			if state != "" {
				o.States = []inspect.ErrorState{inspect.ErrorState(state)}
			}
			if len(queues) > 0 {
				o.Queues = queues
			}
			if err := (entryFilter{service.EntryFilter{Tag: o.Tag}}).check(); err != nil {
				return err
			}
			if since != "" {
				if o.Since, err = parseTime("--since", since); err != nil {
					return err
				}
			}

			found, err := i.Errors(ctx, o)
			if err == nil || isPartial(err) {
				a.saySample(&found)
				a.sayLarger(len(found.Groups), found.Total, "errors")
			}
			if byQueue {
				var parts []inspect.ErrorPart
				for _, g := range found.Groups {
					parts = append(parts, g.Parts...)
				}
				return list(a, errorPartColumns, all(parts, err))
			}
			return list(a, errorColumns, all(found.Groups, err))
		},
	)

	addErrorsFlags(c.Flags(), &o, &state, &since)
	c.Flags().BoolVar(&byQueue, "by-queue", false,
		"two rows for each queue of an error, one for its dead letters and one for its jobs, each with the value of "+
			"--group for skein morgue or skein job")
	return c
}

func addErrorsFlags(f *pflag.FlagSet, o *inspect.ErrorsOptions, state, since *string) {
	f.StringVar(state, "state", "", "only `STATE`: retrying, held or dead")
	f.StringVar(since, "since", "",
		"only errors that were last seen since this `TIME`; an age such as 24h is a TIME too")
	f.StringVar(&o.Text, "error", "", "only those whose error contains this `TEXT`")
	f.StringVar(&o.Tag, "tag", "",
		"only jobs and dead letters with this `TAG`; all counts are then of those that were read")
	f.IntVar(&o.Limit, "limit", 100, "the largest number of errors")
}

// saySample notes on standard error that not all entries were read.
func (a *app) saySample(found *inspect.Errors) {
	if found.Read < found.Of {
		_, _ = fmt.Fprintf(a.stderr,
			"%s of %s jobs and dead letters were read; the counts of jobs are those of a sample\n",
			figures.Exact(found.Read), figures.Exact(found.Of))
	}
}
