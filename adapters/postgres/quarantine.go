package postgres

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// QuarantinedShards implements [ports.Quarantine]: none has set anything aside.
func (s *Store) QuarantinedShards(ctx context.Context, r ports.QuarantinedShardsRequest) (ports.QuarantinedShards, error) {
	q, err := s.queue(ctx, r.Queue)
	if err == nil {
		err = r.Validate()
	}
	if err == nil {
		_, err = storekit.ShardsOf(q, r.Shards)
	}
	return ports.QuarantinedShards{}, err
}

// Quarantined implements [ports.Quarantine]. It is always empty: a record has typed columns, and
// the server itself refuses pages that it can't read.
func (s *Store) Quarantined(ctx context.Context, r ports.QuarantineRequest) (ports.QuarantinePage, error) {
	if err := r.Validate(); err != nil {
		return ports.QuarantinePage{}, err
	}
	return ports.QuarantinePage{}, s.hasShard(ctx, r.Shard)
}

// Discard implements [ports.Quarantine]: there is nothing to discard.
func (s *Store) Discard(ctx context.Context, r ports.DiscardRequest) (int, error) {
	if err := r.Validate(); err != nil {
		return 0, err
	}
	return 0, s.hasShard(ctx, r.Shard)
}

// hasShard returns an error for a shard that does not exist.
func (s *Store) hasShard(ctx context.Context, shard core.Shard) error {
	q, err := s.queue(ctx, shard.Queue)
	if err == nil && shard.Index >= q.Shards {
		err = storekit.NoSuchShard(shard)
	}
	return err
}
