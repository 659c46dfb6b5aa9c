package memory

import (
	"context"

	"github.com/skeinq/skein/ports"
)

// StoreID implements [ports.Identity].
func (s *Store) StoreID(ctx context.Context) (string, error) {
	if err := checkContext(ctx); err != nil {
		return "", err
	}
	s.b.mu.RLock()
	defer s.b.mu.RUnlock()
	return s.b.id, nil
}

// SetStoreID implements [ports.Identity].
func (s *Store) SetStoreID(ctx context.Context, id string) error {
	if err := ports.ValidateStoreID(id); err != nil {
		return err
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.b.id = id
	return nil
}
