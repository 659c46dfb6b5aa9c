package memory

import (
	"context"

	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// QuarantinedShards implements [ports.Quarantine]: none has set anything aside.
func (s *Store) QuarantinedShards(
	ctx context.Context,
	r ports.QuarantinedShardsRequest,
) (ports.QuarantinedShards, error) {
	q, err := s.b.queue(ctx, r.Queue)
	if err == nil {
		err = r.Validate()
	}
	if err == nil {
		_, err = storekit.ShardsOf(q.record, r.Shards)
	}
	return ports.QuarantinedShards{}, err
}

// Quarantined implements [ports.Quarantine]. It is always empty: the store keeps Go values, which
// can always be read.
func (s *Store) Quarantined(ctx context.Context, r ports.QuarantineRequest) (ports.QuarantinePage, error) {
	if err := r.Validate(); err != nil {
		return ports.QuarantinePage{}, err
	}
	_, err := s.b.shard(ctx, r.Shard)
	return ports.QuarantinePage{}, err
}

// Discard implements [ports.Quarantine].
func (s *Store) Discard(ctx context.Context, r ports.DiscardRequest) (int, error) {
	if err := r.Validate(); err != nil {
		return 0, err
	}
	_, err := s.b.shard(ctx, r.Shard)
	return 0, err
}
