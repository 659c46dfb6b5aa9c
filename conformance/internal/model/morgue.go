package model

import (
	"bytes"
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Revive implements ports.Operator.
func (m *Store) Revive(ctx context.Context, step ports.DeadLetterStep) (ports.StepReply, error) {
	return m.stepDeadLetters(ctx, step,
		func(s *shard, dead core.DeadLetter, taken []core.Payload, now core.Instant) {
			if step.Unmark && s.mark(dead.ID).Covers(taken[0].Score) {
				delete(s.past, dead.ID)
				delete(s.past, dead.ID+"\x00")
			}
			s.revive(dead, taken, now)
		})
}

// Purge implements ports.Operator.
func (m *Store) Purge(ctx context.Context, step ports.DeadLetterStep) (ports.StepReply, error) {
	return m.stepDeadLetters(ctx, step, func(*shard, core.DeadLetter, []core.Payload, core.Instant) {})
}

// stepDeadLetters removes the payloads that the step names from the morgue and passes them to do.
func (m *Store) stepDeadLetters(
	ctx context.Context, step ports.DeadLetterStep,
	do func(s *shard, dead core.DeadLetter, taken []core.Payload, now core.Instant),
) (ports.StepReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	s, err := m.asked(ctx, step.Shard, step.Validate())
	if err != nil {
		return ports.StepReply{}, err
	}

	now := m.Now()
	defer s.tidyGroups()
	var bound core.Bound
	stale := 0

	handle := func(ref ports.DeadLetterRef) (changed, finished bool) {
		if step.Before > 0 && s.dead[ref.ID].ChangedAt >= step.Before {
			return false, true
		}
		dead := s.dead[ref.ID]
		if step.Fresh && slices.ContainsFunc(dead.Payloads, func(p core.Payload) bool {
			named := func(data []byte) bool { return string(data) == string(p.Data) }
			return s.mark(ref.ID).Covers(p.Score) && (ref.Payloads == nil || slices.ContainsFunc(ref.Payloads, named))
		}) {
			stale++
			return false, true
		}
		taken, finished := s.takeOut(ref, &bound)
		if len(taken) > 0 {
			do(s, dead, taken, now)
		}
		return len(taken) > 0, finished
	}

	if step.DeadLetters != nil {
		reply := stepNamed(step.DeadLetters, handle, now)
		reply.Stale = stale
		return reply, nil
	}

	var all []ports.DeadLetterRef
	for _, dead := range sorted(s.dead, byChange) {
		if dead.ChangedAt < step.Before && (step.Group == "" || dead.Group == step.Group) {
			all = append(all, ports.DeadLetterRef{ID: dead.ID})
		}
	}

	all = all[:min(len(all), max(0, len(s.dead)-int(step.Keep)))]
	return stepAll(all, step.Size(), handle, now), nil
}

// takeOut removes the payloads that a reference names from the morgue, as far as a bound allows. It
// reports whether it has removed all of them.
func (s *shard) takeOut(ref ports.DeadLetterRef, bound *core.Bound) (taken []core.Payload, all bool) {
	dead := s.dead[ref.ID]

	var named, left []core.Payload
	for _, p := range dead.Payloads {
		if ref.Payloads == nil ||
			slices.ContainsFunc(ref.Payloads, func(data []byte) bool { return bytes.Equal(data, p.Data) }) {
			named = append(named, p)
		} else {
			left = append(left, p)
		}
	}

	n := bound.Take(named)
	left = core.MergePayloads(left, named[n:])

	if len(left) > 0 {
		dead.Payloads = left
		s.dead[ref.ID] = dead
	} else if dead.ID != "" {
		delete(s.dead, ref.ID)
		s.leaveGroup(dead.Group)
	}

	return named[:n], n == len(named)
}

// Edit implements ports.Operator.
func (m *Store) Edit(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	s, err := m.asked(ctx, r.Shard, r.Validate())
	if err != nil {
		return ports.StepReply{}, err
	}

	reply := ports.StepReply{Now: m.Now()}
	if r.Queued {
		reply.Handled = s.editQueued(&r)
		return reply, nil
	}
	dead, ok := s.dead[r.ID]
	if !ok {
		return reply, nil
	}
	at := slices.IndexFunc(dead.Payloads, func(p core.Payload) bool { return bytes.Equal(p.Data, r.Old) })
	if at < 0 {
		return reply, nil
	}

	edited := dead.Payloads[at]
	edited.Data = r.New
	others := slices.Delete(slices.Clone(dead.Payloads), at, at+1)
	dead.Payloads = s.merge(others, []core.Payload{edited})
	dead.ChangedAt = reply.Now
	s.dead[r.ID] = dead

	reply.Handled = 1
	return reply, nil
}

// editQueued replaces a payload of a queued job, and returns the number of replaced ones.
func (s *shard) editQueued(r *ports.EditRequest) int {
	job, ok := s.queued[r.ID]
	at := slices.IndexFunc(job.Payloads, func(p core.Payload) bool { return bytes.Equal(p.Data, r.Old) })
	if !ok || at < 0 {
		return 0
	}

	edited := job.Payloads[at]
	edited.Data = r.New
	others := slices.Delete(slices.Clone(job.Payloads), at, at+1)
	job.Payloads = s.merge(others, []core.Payload{edited})
	s.queued[r.ID] = job
	return 1
}
