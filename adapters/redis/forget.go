package redis

import (
	"context"
	"crypto/rand"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Forget implements [ports.Operator]. It removes the shards, the permits, the limiters and then the
// queue's record. If the queue was declared meanwhile, the record stays and the shards are created again.
func (s *Store) Forget(ctx context.Context, name string) error {
	q, err := s.queue(ctx, name)
	if err != nil {
		return err
	}
	if err := s.forgetShards(ctx, q, false); err != nil {
		return err
	}

	// The nonce shows at the end whether the queue was declared meanwhile.
	nonce := rand.Text()
	if _, err := s.forget(ctx, name, nonce, false); err != nil {
		return err
	}
	if err := s.forgetShards(ctx, q, true); err != nil {
		return err
	}
	if err := s.forgetPermits(ctx, name); err != nil {
		return err
	}

	declared, err := s.forget(ctx, name, nonce, true)
	if err != nil || declared == "" {
		return err
	}
	if q, err = parseQueueRecord(name, declared); err != nil {
		return err
	}
	q.whole = false // removed shards are declared anew
	_, err = s.declareShards(ctx, q)
	return err
}

// forget adds the nonce to the queue's record, or removes the record. If the record has lost the
// nonce, forget returns the record instead.
func (s *Store) forget(ctx context.Context, name, nonce string, remove bool) (declared string, err error) {
	value, err := s.run(ctx, exchange.Call{
		Script: forgetScript,
		Keys:   []any{s.queuesKey()},
		Args:   []any{name, nonce, boolArg(remove)},
	})
	declared, _ = value.(string)
	return declared, err
}

// forgetShards returns nil if all shards are empty and free. If remove is set, it removes the
// shards that are empty and free. ErrNotEmpty comes before ErrLeaseHeld.
func (s *Store) forgetShards(ctx context.Context, q queueRecord, remove bool) error {
	var held error
	err := s.eachShard(ctx, q, func(shard core.Shard) exchange.Call {
		keys := s.firstKeys(shard, allKeys)
		if shard.Index == 0 {
			keys = append(append(keys, s.historyKeys(shard.Queue)...), s.daysKey(shard.Queue), s.trackedKey(shard.Queue))
		}
		return exchange.Call{Script: forgetShardScript, Keys: keys, Args: []any{s.now(), boolArg(remove)}}
	}, func(shard core.Shard, value any) error {
		r := record.ReplyOf(value)
		switch r.Text() {
		case "ok", "unknown": // an earlier Forget has removed it
			return nil
		case "jobs":
			return storekit.NotEmpty(shard)
		case "held":
			if held == nil {
				held = &ports.HeldError{Shard: shard, Owner: r.Text(), Remaining: micros(r.Int())}
			}
			return r.Err()
		}
		return record.ErrReply
	})
	if err != nil {
		return err
	}
	return held
}
