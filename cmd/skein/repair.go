package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
)

var quarantineColumns = fieldColumns[inspect.QuarantinedRecord]()

var recountColumns = columns[inspect.Recounted]{
	{"shard", false, func(r *inspect.Recounted) any { return r.Shard.String() }},
	{"fresh_was", false, func(r *inspect.Recounted) any { return r.Before.Fresh }},
	{"fresh", false, func(r *inspect.Recounted) any { return r.After.Fresh }},
	{"retrying_was", false, func(r *inspect.Recounted) any { return r.Before.Retrying }},
	{"retrying", false, func(r *inspect.Recounted) any { return r.After.Retrying }},
	{"claimed_was", false, func(r *inspect.Recounted) any { return r.Before.Claimed }},
	{"claimed", false, func(r *inspect.Recounted) any { return r.After.Claimed }},
	{"dead_was", false, func(r *inspect.Recounted) any { return r.Before.Dead }},
	{"dead", false, func(r *inspect.Recounted) any { return r.After.Dead }},
	{"repeated", false, func(r *inspect.Recounted) any { return r.Repeated }},
	{"restored_shards", false, func(r *inspect.Recounted) any { return r.RestoredShards }},
	{"restored_queue", false, func(r *inspect.Recounted) any { return r.RestoredQueue }},
}

// identity is the result of repair identity.
type identity struct{ id string }

var identityColumns = columns[identity]{{"store_id", false, func(d *identity) any { return d.id }}}

// discarded is the result of repair discard.
type discarded struct{ count int }

var discardedColumns = columns[discarded]{{"discarded", false, func(d *discarded) any { return d.count }}}

// repairCommand returns the commands for a store with damaged records, for example because another
// program has written to it by mistake, and for a store that is a copy of another one.
func (a *app) repairCommand() *cobra.Command {
	return group("repair", "Show damaged records, remove them, recount, and draw a new id for a copied store",
		a.command(
			"ls QUEUE",
			"List the records that can't be read and were set aside",
			"skein repair ls orders",
			cobra.ExactArgs(1),
			func(ctx context.Context, i *inspect.Inspector, args []string) error {
				return list(a, quarantineColumns, i.Quarantined(ctx, args[0]))
			},
		),
		a.command(
			"discard QUEUE INDEX KEY...",
			"Remove quarantined records permanently, by the index of their shard and their keys, "+
				"as repair ls shows them",
			"skein repair discard orders 3 1700000000000000q42",
			cobra.MinimumNArgs(3),
			a.discard,
		),
		a.command(
			"recount QUEUE",
			"Recount a queue, restore the records that Redis has lost, and show the shards whose counts were wrong, "+
				"or may have been if a call was repeated, and how many records were restored with them; "+
				"reads the whole queue",
			"skein repair recount orders",
			cobra.ExactArgs(1),
			func(ctx context.Context, i *inspect.Inspector, args []string) error {
				p := newProgress(a, "recount", "shards corrected")
				wrong, err := i.Recount(ctx, args[0], p.progress)
				p.end()
				return list(a, recountColumns, all(wrong, err))
			},
		),
		a.command(
			"identity",
			"Draw a new id for a store whose data was copied from another one, "+
				"so that queues of one name move between the two",
			"skein repair identity --profile restored",
			cobra.NoArgs,
			func(ctx context.Context, i *inspect.Inspector, _ []string) error {
				id, err := i.RenewStoreID(ctx)
				return firstOf(err, one(a, identityColumns, &identity{id}))
			},
		),
	)
}

func (a *app) discard(ctx context.Context, i *inspect.Inspector, args []string) error {
	index, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("%w: %q is not a shard; give its index", errUsage, args[1])
	}

	queues, err := i.Stats(ctx, args[0])
	if len(queues) == 0 {
		return err
	}

	for _, s := range queues[0].Shards {
		if s.Shard.Index != index {
			continue
		}

		n, err := i.Discard(ctx, s.Shard, args[2:]...)
		if err == nil && n == 0 {
			err = fmt.Errorf("%w: shard %s has none of these keys", errNotFound, s.Shard)
		}
		return firstOf(err, one(a, discardedColumns, &discarded{n}))
	}

	if err != nil {
		return err // the shard may be one of those that can't be reached
	}
	return fmt.Errorf("%w: queue %q has no shard %d", errNotFound, args[0], index)
}
