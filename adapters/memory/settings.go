package memory

import (
	"context"
	"sync"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// settings are those of a queue. The zero value was never changed. The slice of a version never
// changes.
type settings struct {
	mu   sync.Mutex
	last core.Settings
}

// copy returns settings for a caller, who owns them.
func (s *settings) copy() core.Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.Clone()
}

// Configure implements [ports.Operator].
func (s *Store) Configure(ctx context.Context, r ports.ConfigureRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	q, err := s.b.queue(ctx, r.Queue)
	if err != nil {
		return err
	}

	l := &q.settings
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.last.Version == r.Settings.Version-1:
		l.last = r.Settings.Clone()
	case !l.last.Equal(r.Settings):
		return &ports.SettingsConflictError{Queue: r.Queue, Settings: l.last.Clone()}
	}
	return nil
}
