package model

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/ports"
)

// StoreID implements ports.Identity.
func (m *Store) StoreID(ctx context.Context) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("store id: %w", err)
	}
	return m.id, nil
}

// SetStoreID implements ports.Identity.
func (m *Store) SetStoreID(ctx context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ports.ValidateStoreID(id); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("set store id: %w", err)
	}
	m.id = id
	return nil
}
