package conformance

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Pause implements ports.Operator.
func (m *model) Pause(ctx context.Context, queue string) error {
	return m.setPaused(ctx, queue, true)
}

// Resume implements ports.Operator.
func (m *model) Resume(ctx context.Context, queue string) error {
	return m.setPaused(ctx, queue, false)
}

func (m *model) setPaused(ctx context.Context, queue string, paused bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	q, err := m.queue(ctx, queue)
	if err != nil {
		return err
	}
	q.record.Paused = paused
	return nil
}

// jobAction is what an operator does to queued jobs.
type jobAction struct {
	// kind and order choose the jobs where no ids are given.
	kind  func(job core.Job, now core.Instant) bool
	order func(a, b core.Job) int
	// do tells whether it changed the job.
	do func(s *modelShard, job core.Job, now core.Instant) bool
}

// Expedite implements ports.Operator.
func (m *model) Expedite(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
	later := func(job core.Job, now core.Instant) bool { return job.PerformAt > now }
	return m.stepJobs(ctx, step, jobAction{
		kind:  later,
		order: func(a, b core.Job) int { return byTime(b, a) },
		do: func(s *modelShard, job core.Job, now core.Instant) bool {
			if !later(job, now) {
				return false
			}
			job.PerformAt = now
			s.queued[job.ID] = job
			return true
		},
	})
}

// Bury implements ports.Operator.
func (m *model) Bury(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
	return m.stepJobs(ctx, step, jobAction{
		kind:  hasFailed,
		order: byTime,
		do: func(s *modelShard, job core.Job, now core.Instant) bool {
			delete(s.queued, job.ID)
			reason := cmp.Or(job.Error, core.BuriedByHand)
			s.bury(core.DeadLetter{ID: job.ID, Payloads: job.Payloads, ChangedAt: now, Error: reason})
			return true
		},
	})
}

// Delete implements ports.Operator.
func (m *model) Delete(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
	return m.stepJobs(ctx, step, jobAction{
		kind:  hasFailed,
		order: byTime,
		do: func(s *modelShard, job core.Job, _ core.Instant) bool {
			delete(s.queued, job.ID)
			return true
		},
	})
}

func hasFailed(job core.Job, _ core.Instant) bool { return !job.Fresh() }

func (m *model) stepJobs(ctx context.Context, step ports.JobStep, action jobAction) (ports.StepReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := step.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	_, s, err := m.shard(ctx, step.Shard)
	if err != nil {
		return ports.StepReply{}, err
	}
	reply := ports.StepReply{Now: m.now()}
	ids := step.IDs
	if ids == nil {
		var all []string
		for _, job := range sorted(s.queued, action.order) {
			if action.kind(job, reply.Now) {
				all = append(all, job.ID)
			}
		}
		ids = all[:min(len(all), step.Size())]
		reply.More = len(ids) < len(all)
	}
	for _, id := range ids {
		if job, ok := s.queued[id]; ok && action.do(s, job, reply.Now) {
			reply.Handled++
		}
	}
	return reply, nil
}

// Cancel implements ports.Operator.
func (m *model) Cancel(ctx context.Context, r ports.CancelRequest) (ports.StepReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	_, s, err := m.shard(ctx, r.Shard)
	if err != nil {
		return ports.StepReply{}, err
	}
	reply := ports.StepReply{Now: m.now()}
	for _, id := range r.IDs {
		c, ok := s.claimed[id]
		if !ok || c.Cancelled && c.drop == r.Drop {
			continue
		}
		c.Cancelled, c.drop = true, r.Drop
		s.claimed[id] = c
		reply.Handled++
	}
	return reply, nil
}

// Forget implements ports.Operator.
func (m *model) Forget(ctx context.Context, queue string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	q, err := m.queue(ctx, queue)
	if err != nil {
		return err
	}
	for _, s := range q.shards {
		if len(s.queued)+len(s.claimed)+len(s.dead) > 0 {
			return fmt.Errorf("%w: %v", ports.ErrNotEmpty, s.shard)
		}
	}
	for _, s := range q.shards {
		if now := m.now(); s.lease.owner != "" && s.lease.lasts(now) {
			return &ports.HeldError{Shard: s.shard, Owner: s.lease.owner, Remaining: s.lease.remaining(now)}
		}
	}
	delete(m.queues, queue)
	return nil
}

// Recount implements ports.Operator. The model never keeps a count.
func (m *model) Recount(ctx context.Context, shard core.Shard) (ports.RecountReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, s, err := m.shard(ctx, shard)
	if err != nil {
		return ports.RecountReply{}, err
	}
	return ports.RecountReply{Before: s.counts(), After: s.counts()}, nil
}

// Revive implements ports.Operator.
func (m *model) Revive(ctx context.Context, step ports.DeadLetterStep) (ports.StepReply, error) {
	return m.stepDead(ctx, step, (*modelShard).revive)
}

// Purge implements ports.Operator.
func (m *model) Purge(ctx context.Context, step ports.DeadLetterStep) (ports.StepReply, error) {
	return m.stepDead(ctx, step, func(*modelShard, string, []core.Payload, core.Instant) {})
}

// stepDead takes the payloads that the step means out of the morgue and hands
// them to the action.
func (m *model) stepDead(
	ctx context.Context, step ports.DeadLetterStep,
	do func(s *modelShard, id string, taken []core.Payload, now core.Instant),
) (ports.StepReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := step.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	_, s, err := m.shard(ctx, step.Shard)
	if err != nil {
		return ports.StepReply{}, err
	}
	reply := ports.StepReply{Now: m.now()}
	refs := step.DeadLetters
	if refs == nil {
		var all []ports.DeadLetterRef
		for _, dead := range sorted(s.dead, byChange) {
			if dead.ChangedAt < step.Before {
				all = append(all, ports.DeadLetterRef{ID: dead.ID})
			}
		}
		refs = all[:min(len(all), step.Size())]
		reply.More = len(refs) < len(all)
	}
	for _, ref := range refs {
		if taken := s.exhume(ref); len(taken) > 0 {
			do(s, ref.ID, taken, reply.Now)
			reply.Handled++
		}
	}
	return reply, nil
}

// exhume removes the payloads that a reference means from the morgue.
func (s *modelShard) exhume(ref ports.DeadLetterRef) []core.Payload {
	dead := s.dead[ref.ID]
	var taken, left []core.Payload
	for _, p := range dead.Payloads {
		if ref.Payloads == nil || slices.ContainsFunc(ref.Payloads, func(data []byte) bool { return bytes.Equal(data, p.Data) }) {
			taken = append(taken, p)
		} else {
			left = append(left, p)
		}
	}
	delete(s.dead, ref.ID)
	if len(left) > 0 {
		dead.Payloads = left
		s.dead[ref.ID] = dead
	}
	return taken
}

// Edit implements ports.Operator.
func (m *model) Edit(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	_, s, err := m.shard(ctx, r.Shard)
	if err != nil {
		return ports.StepReply{}, err
	}
	reply := ports.StepReply{Now: m.now()}
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
	dead.Payloads = core.MergePayloads(others, []core.Payload{edited})
	dead.ChangedAt = reply.Now
	s.dead[r.ID] = dead
	reply.Handled = 1
	return reply, nil
}
