package redis

import (
	"context"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// QuarantinedShards implements [ports.Quarantine]. It costs one plain command per shard.
func (s *Store) QuarantinedShards(
	ctx context.Context,
	r ports.QuarantinedShardsRequest,
) (ports.QuarantinedShards, error) {
	_, shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.QuarantinedShards{}, err
	}

	var (
		reply ports.QuarantinedShards
		lost  storekit.Lost
	)

	if reply.Shards, err = s.having(ctx, "exists", keyAside, shards, &lost); err == nil {
		reply.Unreached, err = lost.Shards(len(shards))
	}
	if err != nil {
		return ports.QuarantinedShards{}, err
	}
	return reply, nil
}

// having returns the shards that reply more than 0 to a plain command on one of their keys.
func (s *Store) having(
	ctx context.Context,
	command string,
	key int,
	shards []core.Shard,
	lost *storekit.Lost,
) ([]core.Shard, error) {
	calls := make([]exchange.Call, len(shards))
	for i, shard := range shards {
		calls[i] = exchange.Call{Command: command, Keys: s.someKeys(shard, key)}
	}

	var some []core.Shard
	err := s.eachReached(ctx, plainApart, shards, calls, lost, func(i int, o *exchange.Outcome) error {
		if n, _ := o.Value.(int64); n > 0 {
			some = append(some, shards[i])
		}
		return nil
	})
	return some, err
}

// Quarantined implements [ports.Quarantine].
func (s *Store) Quarantined(ctx context.Context, r ports.QuarantineRequest) (ports.QuarantinePage, error) {
	if err := r.Validate(); err != nil {
		return ports.QuarantinePage{}, err
	}

	value, err := s.run(ctx, exchange.Call{
		Script: setAsideListScript,
		Keys:   s.someKeys(r.Shard, keyMeta, keyAside),
		Args:   []any{r.After, r.Size(), ports.MaxQuarantinedBytes},
	})
	if err != nil {
		return ports.QuarantinePage{}, err
	}

	reply := record.ReplyOf(value)
	if reply.Text() == "unknown" {
		return ports.QuarantinePage{}, s.absent(ctx, r.Shard)
	}

	var page ports.QuarantinePage
	more := reply.Int() == 1
	for reply.More() {
		record, err := record.ParseQuarantined(reply.Text(), int(reply.Int()), reply.Text())
		if err != nil {
			return ports.QuarantinePage{}, err
		}
		page.Records = append(page.Records, record)
	}

	if more && len(page.Records) > 0 {
		page.Next = page.Records[len(page.Records)-1].Key
	}
	return page, reply.Err()
}

// Discard implements [ports.Quarantine]. The client does not repeat it, because a repeated call
// would not count the records that the first has discarded.
func (s *Store) Discard(ctx context.Context, r ports.DiscardRequest) (int, error) {
	if err := r.Validate(); err != nil {
		return 0, err
	}

	args := make([]any, len(r.Keys))
	for i, key := range r.Keys {
		args[i] = key
	}

	value, err := s.run(ctx, exchange.Call{
		Script:  discardScript,
		Keys:    s.someKeys(r.Shard, keyMeta, keyAside),
		Args:    args,
		NoRetry: true,
	})
	if err != nil {
		return 0, err
	}

	reply := record.ReplyOf(value)
	if reply.Text() == "unknown" {
		return 0, s.absent(ctx, r.Shard)
	}
	return int(reply.Int()), reply.Err()
}
