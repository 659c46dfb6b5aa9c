package memory

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// tracked is the tracked ids of a queue. The zero value has none.
type tracked struct {
	mu    sync.Mutex
	since map[string]core.Instant
}

// Track implements [ports.Tracker].
func (s *Store) Track(ctx context.Context, r ports.TrackRequest) (changed bool, err error) {
	if err := r.Validate(); err != nil {
		return false, err
	}
	q, err := s.b.queue(ctx, r.Queue)
	if err != nil {
		return false, err
	}

	l := &q.tracked
	l.mu.Lock()
	defer l.mu.Unlock()

	switch _, known := l.since[r.ID]; {
	case known == !r.Untrack:
		return false, nil
	case r.Untrack:
		delete(l.since, r.ID)
	case len(l.since) >= ports.MaxTracked:
		return false, storekit.TooManyTracked(r.Queue)
	case l.since == nil:
		l.since = map[string]core.Instant{r.ID: s.b.now()}
	default:
		l.since[r.ID] = s.b.now()
	}
	return true, nil
}

// Tracked implements [ports.Tracker].
func (s *Store) Tracked(ctx context.Context, queue string) ([]ports.TrackedID, error) {
	q, err := s.b.queue(ctx, queue)
	if err != nil {
		return nil, err
	}
	l := &q.tracked
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []ports.TrackedID
	for id, since := range l.since {
		all = append(all, ports.TrackedID{ID: id, Since: since})
	}
	slices.SortFunc(all, func(a, b ports.TrackedID) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}
