package memory

import (
	"context"

	"github.com/skeinq/skein/ports"
)

// Quarantined implements [ports.Quarantine]: what is kept as values of Go can always be read.
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
