package storekit

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// MaxTurns implements [ports.TurnLimiter].
func (s *intercepted) MaxTurns() int {
	if limiter, ok := s.store.(ports.TurnLimiter); ok {
		return limiter.MaxTurns()
	}
	return 0
}

// notifier intercepts Wakeups. settler intercepts Settle and SettlePayload.
type (
	notifier struct{ store *intercepted }
	settler  struct{ store *intercepted }
)

func (n notifier) Wakeups(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
	return pass(ctx, n.store, "Wakeups", shards,
		func(store ports.ShardStore, ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
			to, ok := store.(ports.Notifier)
			if !ok {
				return nil, fmt.Errorf("%w: %T does not implement ports.Notifier", ports.ErrInvalidRequest, store)
			}
			return to.Wakeups(ctx, shards)
		})
}

func (n settler) Settle(ctx context.Context, shard core.Shard, settlements []core.Settlement) error {
	return passOnly(ctx, n.store, "Settle", SettleRequest{shard, settlements},
		func(store ports.ShardStore, ctx context.Context, r SettleRequest) error {
			to, ok := store.(ports.Settler)
			if !ok {
				return fmt.Errorf("%w: %T does not implement ports.Settler", ports.ErrInvalidRequest, store)
			}
			return to.Settle(ctx, r.Shard, r.Settlements)
		})
}

func (n settler) SettlePayload(ctx context.Context, shard core.Shard, s core.PayloadSettlement) error {
	return passOnly(ctx, n.store, "SettlePayload", SettlePayloadRequest{shard, s},
		func(store ports.ShardStore, ctx context.Context, r SettlePayloadRequest) error {
			to, ok := store.(ports.Settler)
			if !ok {
				return fmt.Errorf("%w: %T does not implement ports.Settler", ports.ErrInvalidRequest, store)
			}
			return to.SettlePayload(ctx, r.Shard, r.Settlement)
		})
}
