package model

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Track implements ports.Tracker.
func (m *Store) Track(ctx context.Context, r ports.TrackRequest) (changed bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return false, err
	}
	q, err := m.queue(ctx, r.Queue)
	if err != nil {
		return false, err
	}

	_, known := q.tracked[r.ID]
	switch {
	case known == !r.Untrack:
		return false, nil
	case r.Untrack:
		delete(q.tracked, r.ID)
	case len(q.tracked) == ports.MaxTracked:
		return false, fmt.Errorf("%w", ports.ErrTooManyTracked)
	default:
		if q.tracked == nil {
			q.tracked = map[string]core.Instant{}
		}
		q.tracked[r.ID] = m.Now()
	}

	return true, nil
}

// Tracked implements ports.Tracker.
func (m *Store) Tracked(ctx context.Context, queue string) ([]ports.TrackedID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q, err := m.queue(ctx, queue)
	if err != nil {
		return nil, err
	}
	var all []ports.TrackedID
	for _, id := range slices.Sorted(maps.Keys(q.tracked)) {
		all = append(all, ports.TrackedID{ID: id, Since: q.tracked[id]})
	}
	return all, nil
}
