package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
)

// pastColumns are the columns of the record of an id.
var pastColumns = fieldColumns[inspect.Past]()

// pastListColumns are the columns of a list of records, which has no results.
var pastListColumns = slices.DeleteFunc(slices.Clone(pastColumns), func(c column[inspect.Past]) bool {
	return c.name == "result" || c.name == "result_base64"
})

func (a *app) listPast() *cobra.Command {
	var o inspect.PastOptions
	after, from := "", ""
	c := a.command(
		"past QUEUE",
		"List the records of what became of ids: the last run of each that was done, newest first. "+
			"skein job get shows the result of one",
		"skein job past orders --from 2h --oldest-first",
		cobra.ExactArgs(1),
		func(ctx context.Context, i *inspect.Inspector, args []string) (err error) {
			if o.After, err = inspect.ParseCursor(after); err != nil {
				return err
			}
			if from != "" {
				if o.FromTime, err = parseTime("--from", from); err != nil {
					return err
				}
			}

			limit := o.Limit
			o.Limit = oneMore(limit)
			return listLimited(a, pastListColumns, i.Past(ctx, args[0], o), limit, "records")
		},
	)

	f := c.Flags()
	f.StringVar(&after, "after", "",
		"begin after the row with this `CURSOR`, which -o wide and json show; --from is then ignored")
	f.StringVar(&from, "from", "",
		"begin at runs that were done at this `TIME`, inclusive, in the direction of the list; an age such as 30m is a TIME too")
	f.BoolVar(&o.OldestFirst, "oldest-first", false, "list backwards")
	f.IntVar(&o.Limit, "limit", 100, "the largest number of rows; 0 is no limit")
	f.IntSliceVar(&o.Shards, "shard", nil, "the index of a shard to list; may be repeated; all without it")
	return c
}
