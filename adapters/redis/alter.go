package redis

import (
	"cmp"
	"context"
	"fmt"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Pause implements [ports.Operator].
func (s *Store) Pause(ctx context.Context, name string) error { return s.setPaused(ctx, name, true) }

// Resume implements [ports.Operator].
func (s *Store) Resume(ctx context.Context, name string) error { return s.setPaused(ctx, name, false) }

func (s *Store) setPaused(ctx context.Context, name string, paused bool) error {
	return s.alter(ctx, name, boolArg(paused), "", func(queueRecord) error { return nil })
}

// SetMerge implements [ports.Operator].
func (s *Store) SetMerge(ctx context.Context, r ports.SetMergeRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.alter(ctx, r.Queue, "", cmp.Or(ruleArg(r.Merge), "="), func(q queueRecord) error {
		return storekit.CheckMerge(r.Queue, q.Merge, r.Merge) // alter.lua leaves a rule with another Same
	})
}

// alter changes the queue's record and then those of the shards, unless check refuses the queue's.
// alter.lua orders such calls. If some shards can't be reached, alter changes the others and
// returns an error. A shard that has a later record keeps it. Either a later call has made that
// record, or a failover has lost it for the queue. In the second case alter gives the queue the
// shard's state, and then makes its change again.
func (s *Store) alter(ctx context.Context, name string, paused, rule any, check func(queueRecord) error) error {
	for {
		q, err := s.alterRecord(ctx, name, paused, rule, 0)
		if err == nil {
			err = check(q)
		}
		if err != nil {
			return err
		}

		var calls []exchange.Call
		for _, shard := range core.Shards(q.Name, q.Shards) {
			calls = append(calls, s.alterShard(q, shard))
		}

		var newest queueRecord
		for _, o := range s.runApart(ctx, calls) {
			err = cmp.Or(err, o.Err)
			if r := record.ReplyOf(o.Value); o.Err == nil && r.Text() == "later" {
				if later, unread := parseQueueRecord(name, r.Text()); unread == nil && later.version >= newest.version {
					newest = later
				}
			}
		}
		if newest.text == "" {
			return err
		}

		again, failed := s.queue(ctx, name)
		if failed != nil || again.version > newest.version || again.text == newest.text {
			return cmp.Or(err, failed)
		}
		if _, err := s.adopt(ctx, newest, again); err != nil {
			return err
		}
	}
}

// alterRecord changes the queue's record as alter.lua describes.
func (s *Store) alterRecord(ctx context.Context, name string, paused, rule any, kept int64) (queueRecord, error) {
	if !isQueueField(name) {
		return queueRecord{}, storekit.UnknownQueue(name)
	}

	value, err := s.run(ctx, exchange.Call{
		Script: alterScript,
		Keys:   []any{s.queuesKey()},
		Args:   []any{name, paused, rule, kept},
	})
	if err != nil {
		return queueRecord{}, err
	}
	text, ok := value.(string)
	if !ok {
		return queueRecord{}, storekit.UnknownQueue(name)
	}
	return readQueueRecord(name, text)
}

// adopt gives a queue that has lost its last changes the state that a shard has kept, unless the
// queue has changed since. It returns an error if the shard's record is of another declaration.
func (s *Store) adopt(ctx context.Context, kept, q queueRecord) (queueRecord, error) {
	err := cmp.Or(q.check(kept.layout()), storekit.CheckMerge(q.Name, q.Merge, kept.Merge))
	if err == nil && kept.IndexIDs != q.IndexIDs {
		err = fmt.Errorf("redis: %w: the queue %s and its shards differ in IndexIDs, "+
			"as after a failover that lost a Forget and a Declare",
			ErrTorn, q.Name)
	}
	if err != nil {
		return queueRecord{}, err
	}
	return s.alterRecord(ctx, q.Name, boolArg(kept.Paused), cmp.Or(ruleArg(kept.Merge), "="), kept.version)
}

// alterShard returns the call that stores a queue's changed record in a shard.
func (s *Store) alterShard(q queueRecord, shard core.Shard) exchange.Call {
	return exchange.Call{
		Script: alterShardScript,
		Keys:   s.someKeys(shard, keyMeta, keyReady),
		Args:   []any{q.text, q.version, s.channel(shard)},
	}
}
