package memory

import (
	"context"
	"slices"
	"sync"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// audit is the actions of operators, the oldest first.
type audit struct {
	mu      sync.Mutex
	actions []ports.Action
}

// Audit implements [ports.Auditor].
func (s *Store) Audit(ctx context.Context, a ports.Action) error {
	if err := a.Validate(); err != nil {
		return err
	}
	if err := checkContext(ctx); err != nil {
		return err
	}

	a.IDs = slices.Clone(a.IDs)
	l := &s.b.audit
	l.mu.Lock()
	defer l.mu.Unlock()

	// A repeated call keeps the time of the first one.
	if i := slices.IndexFunc(l.actions, func(known ports.Action) bool { return known.ID == a.ID }); i >= 0 {
		a.At = l.actions[i].At
		l.actions[i] = a
		return nil
	}

	a.At = s.b.now()
	if n := len(l.actions); n > 0 {
		a.At = max(a.At, l.actions[n-1].At+1)
	}
	l.actions = append(l.actions, a)
	if len(l.actions) > ports.ActionsKept {
		l.actions = slices.Delete(l.actions, 0, len(l.actions)-ports.ActionsKept)
	}
	return nil
}

// Actions implements [ports.Auditor].
func (s *Store) Actions(ctx context.Context, r ports.ActionsRequest) ([]ports.Action, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}

	before := r.Before
	if before == 0 {
		before = core.MaxInstant + 1
	}
	l := &s.b.audit
	l.mu.Lock()
	defer l.mu.Unlock()

	var page []ports.Action
	for _, a := range slices.Backward(l.actions) {
		if len(page) == r.Size() {
			break
		}
		if a.At < before {
			a.IDs = slices.Clone(a.IDs)
			page = append(page, a)
		}
	}
	return page, nil
}
