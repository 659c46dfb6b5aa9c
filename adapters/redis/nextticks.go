package redis

import (
	"context"
	"slices"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// lookAtTicks returns for each shard the outcome of its call of the ticks script. Each server looks
// at the ticks of all its shards once per poll interval, and asks only when the next ones are due. So
// on a server without a Cluster one script then looks at many shards.
func (s *Store) lookAtTicks(
	ctx context.Context,
	shards []core.Shard,
	calls []exchange.Call,
	limit int,
) []exchange.Outcome {
	if limit > 0 || len(shards) < 2 || s.link.OnCluster() || s.apartBySlot.Load() {
		return s.runApart(ctx, calls)
	}

	groups := slices.Collect(slices.Chunk(shards, shardsPerExchange))
	joined := make([]exchange.Call, len(groups))
	for i, group := range groups {
		joined[i] = s.nextTicksCall(group)
	}

	outcomes := make([]exchange.Outcome, 0, len(shards))
	for i, o := range s.runApart(ctx, joined) {
		of := nextTicks(o, len(groups[i]))
		if o.Err != nil && reached(ctx, o.Err) {
			if exchange.OtherSlot(o.Err) { // a Cluster behind a proxy
				s.apartBySlot.Store(true)
			}
			of = s.runApart(ctx, calls[len(outcomes):len(outcomes)+len(groups[i])])
		}
		outcomes = append(outcomes, of...)
	}
	return outcomes
}

// nextTicksCall is the call that returns when the next schedules of shards are due.
func (s *Store) nextTicksCall(shards []core.Shard) exchange.Call {
	c := exchange.Call{
		Script: nextTicksScript,
		Keys:   make([]any, 2*len(shards)),
		Args:   []any{s.now()},
	}
	for i, shard := range shards {
		all := s.keys(shard)
		c.Keys[i], c.Keys[len(shards)+i] = all[keyMeta], all[keyTicks]
	}
	return c
}

// nextTicks returns the outcomes that calls of the ticks script for each shard would have, by the
// outcome of the one call for all.
func nextTicks(o exchange.Outcome, shards int) []exchange.Outcome {
	if o.Err != nil {
		return exchange.Failed(shards, o.Err)
	}

	const noRecord = -2
	r := record.ReplyOf(o.Value)
	now := r.Int()
	outcomes := make([]exchange.Outcome, shards)
	for i := range outcomes {
		if head := r.Int(); head == noRecord {
			outcomes[i].Value = []any{"unknown"}
		} else {
			outcomes[i].Value = []any{"ok", now, head}
		}
	}
	if err := r.Err(); err != nil {
		return exchange.Failed(shards, err)
	}
	return outcomes
}

// reached reports whether an error may concern one of the shards of a call alone, or the call's keys
// together: the server can be reached, and there is time.
func reached(ctx context.Context, err error) bool {
	return ctx.Err() == nil && ports.FailureOf(err) != ports.FailureUnreachable
}
