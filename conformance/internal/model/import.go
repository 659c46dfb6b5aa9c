package model

import (
	"context"
	"fmt"
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

	if r.OnlyPaused && !q.record.Paused {
		return ports.StepReply{}, fmt.Errorf("%w: %v", ports.ErrNotPaused, r.Shard)
	}

	s := q.shards[r.Shard.Index]
	if len(r.Jobs) > 0 {
		return stepNamed(r.Jobs, func(j core.Job) (changed, finished bool) {
			s.bringInJob(j, m.Now())
			return true, true
		}, m.Now()), nil
	}

	if len(r.Past)+len(r.Marks) > 0 && s.pastAge == 0 {
		s.pastAge = core.ImportedKeepAge
	}
	if len(r.Past) > 0 {
		return stepNamed(r.Past, func(p core.Past) (changed, finished bool) {
			s.bringInPast(p.Stored(p.ID, p.DoneAt))
			return true, true
		}, m.Now()), nil
	}
	if len(r.Marks) > 0 {
		return stepNamed(r.Marks, func(p core.Past) (changed, finished bool) {
			s.bringInMark(p.ID, p.Score, p.DoneAt)
			return true, true
		}, m.Now()), nil
	}

	defer s.tidyGroups()
	return stepNamed(r.DeadLetters, func(d core.DeadLetter) (changed, finished bool) {
		return s.bringIn(d), true
	}, m.Now()), nil
}

// bringIn adds a dead letter of another store, and reports whether it has changed anything.
func (s *shard) bringIn(d core.DeadLetter) (changed bool) {
	d.Payloads = normal(d.Payloads)

	existing := s.dead[d.ID]
	payloads := s.merge(existing.Payloads, d.Payloads)
	changed = !slices.EqualFunc(existing.Payloads, payloads, func(p, q core.Payload) bool { return p.Compare(q) == 0 })
	tags := existing.Tags.Union(d.Tags)
	changed = changed || tags != existing.Tags

	if existing.ID == "" || d.ChangedAt > existing.ChangedAt {
		group := s.enterGroup(existing.Group, d.Group, d.ChangedAt)
		existing, changed = d, true
		existing.Group = group
	}

	existing.Payloads, existing.Tags = payloads, tags
	s.dead[d.ID] = existing
	return changed
}

// bringInJob adds a job of another queue.
func (s *shard) bringInJob(j core.Job, now core.Instant) {
	j.FirstPush, j.Slot = min(j.FirstPush, now), ""
	existing, ok := s.queued[j.ID]
	j.Payloads = s.merge(existing.Payloads, normal(j.Payloads))
	if ok {
		j.State = core.MergeImport(existing.State, j.State)
	}
	s.queued[j.ID] = j
}

// normal returns a copy of payloads with their scores as they are stored.
func normal(payloads []core.Payload) []core.Payload {
	payloads = slices.Clone(payloads)
	for i := range payloads {
		payloads[i].Score = core.NormalScore(payloads[i].Score)
	}
	return payloads
}
