package model

import (
	"context"

	"github.com/skeinq/skein/ports"
)

// QuarantinedShards implements ports.Quarantine.
func (m *Store) QuarantinedShards(
	ctx context.Context,
	r ports.QuarantinedShardsRequest,
) (ports.QuarantinedShards, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q, err := m.queue(ctx, r.Queue)
	if err == nil {
		err = r.Validate()
	}
	if err == nil {
		_, err = q.chosen(r.Shards)
	}
	return ports.QuarantinedShards{}, err
}

// Quarantined implements ports.Quarantine. The model can read all its records.
func (m *Store) Quarantined(ctx context.Context, r ports.QuarantineRequest) (ports.QuarantinePage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.asked(ctx, r.Shard, r.Validate())
	return ports.QuarantinePage{}, err
}

// Discard implements ports.Quarantine.
func (m *Store) Discard(ctx context.Context, r ports.DiscardRequest) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.asked(ctx, r.Shard, r.Validate())
	return 0, err
}
