package model

import (
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Import implements ports.Operator.
func (m *Store) Import(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	q, err := m.queue(ctx, r.Shard.Queue)
	if err == nil {
		err = q.agrees(r.Shards, r.Generation)
	}
	if err != nil {
		return ports.StepReply{}, err
	}
	s := q.shards[r.Shard.Index]
	defer s.tidyGroups()
	return stepNamed(r.DeadLetters, func(d core.DeadLetter) (changed, finished bool) {
		return s.bringIn(d), true
	}, m.Now()), nil
}

// bringIn adds a dead letter that another store had, and reports whether anything is new.
func (s *shard) bringIn(d core.DeadLetter) (changed bool) {
	d.Payloads = slices.Clone(d.Payloads)
	for i := range d.Payloads {
		d.Payloads[i].Score = core.NormalScore(d.Payloads[i].Score)
	}
	there := s.dead[d.ID]
	payloads := s.merge(there.Payloads, d.Payloads)
	changed = !slices.EqualFunc(there.Payloads, payloads, func(p, q core.Payload) bool { return p.Compare(q) == 0 })
	if there.ID == "" || d.ChangedAt > there.ChangedAt {
		group := s.enterGroup(there.Group, d.Group, d.ChangedAt)
		there, changed = core.DeadLetter{ID: d.ID, ChangedAt: d.ChangedAt, Error: d.Error, Group: group}, true
	}
	there.Payloads = payloads
	s.dead[d.ID] = there
	return changed
}
