package redis

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/ports"
)

// identityField is the field of the hash of queues that has the store's id. declare.lua writes it
// with the format, and forget.lua removes it with the last queue. No queue has a slash in its name.
const identityField = "/id"

// StoreID implements [ports.Identity].
func (s *Store) StoreID(ctx context.Context) (string, error) {
	if err := s.ready(ctx); err != nil {
		return "", err
	}
	return exchange.Ask(ctx, s.link, goredis.NewStringCmd(ctx, "hget", s.queuesKey(), identityField))
}

// SetStoreID implements [ports.Identity].
func (s *Store) SetStoreID(ctx context.Context, id string) error {
	if err := ports.ValidateStoreID(id); err != nil {
		return err
	}
	_, err := s.run(ctx, exchange.Call{Script: identifyScript, Keys: []any{s.queuesKey()}, Args: []any{id}})
	return err
}
