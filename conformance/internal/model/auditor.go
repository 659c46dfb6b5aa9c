package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Audit implements ports.Auditor.
func (m *Store) Audit(ctx context.Context, a ports.Action) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := a.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("audit: %w", err)
	}

	newest := core.Instant(-1)
	for _, known := range m.actions {
		newest = max(newest, known.At)
	}
	a.At = max(m.Now(), newest+1)
	if known, ok := m.actions[a.ID]; ok {
		a.At = known.At
	}

	a.IDs = slices.Clone(a.IDs)
	m.actions[a.ID] = a

	for _, old := range m.newest()[min(len(m.actions), ports.ActionsKept):] {
		delete(m.actions, old.ID)
	}
	return nil
}

// Actions implements ports.Auditor.
func (m *Store) Actions(ctx context.Context, r ports.ActionsRequest) ([]ports.Action, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("actions: %w", err)
	}
	list := slices.DeleteFunc(m.newest(), func(a ports.Action) bool { return r.Before != 0 && a.At >= r.Before })
	return list[:min(len(list), r.Size())], nil
}

// newest lists all actions, the newest first.
func (m *Store) newest() []ports.Action {
	list := sorted(m.actions, func(a, b ports.Action) int { return cmp.Compare(b.At, a.At) })
	for i := range list {
		list[i].IDs = slices.Clone(list[i].IDs)
	}
	return list
}
