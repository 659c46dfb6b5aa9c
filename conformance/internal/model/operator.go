package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Pause implements ports.Operator.
func (m *Store) Pause(ctx context.Context, queue string) error {
	return m.setPaused(ctx, queue, true)
}

// Resume implements ports.Operator.
func (m *Store) Resume(ctx context.Context, queue string) error {
	return m.setPaused(ctx, queue, false)
}

func (m *Store) setPaused(ctx context.Context, queue string, paused bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	q, err := m.queue(ctx, queue)
	if err != nil {
		return err
	}
	q.record.Paused = paused
	return nil
}

// SetMerge implements ports.Operator.
func (m *Store) SetMerge(ctx context.Context, r ports.SetMergeRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return err
	}

	q, err := m.queue(ctx, r.Queue)
	if err != nil {
		return err
	}
	if r.Merge.Same != q.record.Merge.Same {
		return fmt.Errorf("%w: the merge rule of %q is %v", ports.ErrQueueMismatch, r.Queue, q.record.Merge)
	}

	q.record.Merge = r.Merge
	for _, s := range q.shards {
		s.rule = r.Merge
	}
	return nil
}

// Configure implements ports.Operator.
func (m *Store) Configure(ctx context.Context, r ports.ConfigureRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return err
	}
	q, err := m.queue(ctx, r.Queue)
	if err != nil {
		return err
	}

	present := q.record.Settings
	if present.Version == r.Settings.Version && present.By == r.Settings.By && present.At == r.Settings.At &&
		slices.Equal(present.Set, r.Settings.Set) {
		return nil
	}
	if present.Version+1 != r.Settings.Version {
		return &ports.SettingsConflictError{Queue: r.Queue, Settings: q.view().Settings}
	}
	q.record.Settings = core.Settings{
		Version: r.Settings.Version,
		Set:     slices.Clone(r.Settings.Set),
		By:      r.Settings.By,
		At:      r.Settings.At,
	}
	return nil
}

// jobAction changes a queued job for Expedite, Bury or Delete, as far as the bounds of the step
// allow. at is the position of the job's id in the step. changed reports whether the job has
// changed, and finished whether the step has reached it.
type jobAction func(s *shard, job core.Job, at int, bound *core.Bound, now core.Instant) (changed, finished bool)

// Expedite implements ports.Operator.
func (m *Store) Expedite(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
	return m.stepJobs(ctx, step, step.ValidateWhole(),
		func(s *shard, job core.Job, _ int, _ *core.Bound, now core.Instant) (changed, finished bool) {
			if job.PerformAt <= now {
				return false, true
			}
			if job.PerformAt == core.MaxInstant && job.RetryCount >= 0 {
				job.RetryCount, job.Recoveries = -1, 0
			}
			job.PerformAt, job.Slot = now, ""
			s.queued[job.ID] = job
			return true, true
		})
}

// Bury implements ports.Operator.
func (m *Store) Bury(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
	return m.stepJobs(ctx, step, step.ValidateBury(),
		func(s *shard, job core.Job, at int, bound *core.Bound, now core.Instant) (changed, finished bool) {
			taken, finished := s.takeQueued(job, step.First, at, bound, now)
			if len(taken) == 0 {
				return false, finished
			}

			job.Payloads = taken
			s.bury(job.Buried(now))
			return true, finished
		})
}

// Delete implements ports.Operator.
func (m *Store) Delete(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
	return m.stepJobs(ctx, step, step.Validate(),
		func(s *shard, job core.Job, at int, bound *core.Bound, now core.Instant) (changed, finished bool) {
			if step.Payloads != nil {
				return s.removeQueued(job, step.Payloads[at], now), true
			}
			taken, finished := s.takeQueued(job, step.First, at, bound, now)
			return len(taken) > 0, finished
		})
}

// removeQueued removes payloads from a queued job, and reports whether the job had any of them.
func (s *shard) removeQueued(job core.Job, payloads []core.Payload, now core.Instant) (changed bool) {
	left := slices.DeleteFunc(slices.Clone(job.Payloads), func(p core.Payload) bool {
		return slices.ContainsFunc(payloads, func(q core.Payload) bool { return p.Compare(q) == 0 })
	})
	changed = len(left) < len(job.Payloads)

	if len(left) > 0 && left[0].Compare(job.Payloads[0]) != 0 {
		job.State = withoutFirst(job.State, now)
	}

	if job.Payloads = left; len(left) == 0 {
		delete(s.queued, job.ID)
	} else {
		s.queued[job.ID] = job
	}
	return changed
}

// withoutFirst returns the state of a job that has lost its first payload: no retry and no slot are
// left to wait for.
func withoutFirst(s core.State, now core.Instant) core.State {
	if s.RetryCount >= 0 {
		s.RetryCount, s.Recoveries, s.PerformAt = -1, 0, min(now, s.PerformAt)
	}
	if s.Slot != "" {
		s.PerformAt, s.Slot = min(now, s.PerformAt), ""
	}
	return s
}

// takeQueued removes payloads from a queued job, as far as a bound allows: all payloads, or only
// the first one if the step has First. all reports whether the step is finished with the job.
func (s *shard) takeQueued(
	job core.Job,
	firsts [][]byte,
	at int,
	bound *core.Bound,
	now core.Instant,
) (taken []core.Payload, all bool) {
	if firsts != nil {
		first := job.Payloads[0]
		if string(first.Data) != string(firsts[at]) {
			return nil, true
		}

		if bound.Take([]core.Payload{first}) == 0 {
			return nil, false
		}

		delete(s.queued, job.ID)
		if job.Payloads = job.Payloads[1:]; len(job.Payloads) > 0 {
			job.State = withoutFirst(job.State, now)
			s.queued[job.ID] = job
		}
		return []core.Payload{first}, true
	}

	n := bound.Take(job.Payloads)
	taken, job.Payloads = job.Payloads[:n], job.Payloads[n:]
	delete(s.queued, job.ID)
	if len(job.Payloads) > 0 {
		s.queued[job.ID] = job
	}
	return taken, len(job.Payloads) == 0
}

func (m *Store) stepJobs(
	ctx context.Context,
	step ports.JobStep,
	invalid error,
	act jobAction,
) (ports.StepReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	s, err := m.asked(ctx, step.Shard, invalid)
	if err != nil {
		return ports.StepReply{}, err
	}

	now := m.Now()
	defer s.tidyGroups()
	var bound core.Bound
	at := -1

	return stepNamed(step.IDs, func(id string) (changed, finished bool) {
		at++
		job, ok := s.queued[id]
		switch {
		case !ok, step.Before > 0 && job.FirstPush >= step.Before, step.Failed && job.Fresh(), step.Held && !job.Held():
			return false, true
		}

		return act(s, job, at, &bound, now)
	}, now), nil
}

// stepNamed handles the entries that a step names, until one of them is not finished.
func stepNamed[E any](entries []E, handle func(E) (changed, finished bool), now core.Instant) ports.StepReply {
	reply := ports.StepReply{Now: now}
	for _, entry := range entries {
		changed, finished := handle(entry)
		if !finished {
			break
		}
		reply.Reached++
		if changed {
			reply.Handled++
		}
	}
	return reply
}

// stepAll is like stepNamed, for a step over all dead letters, which handles at most size of them.
func stepAll[E any](all []E, size int, handle func(E) (changed, finished bool), now core.Instant) ports.StepReply {
	reply := stepNamed(all[:min(len(all), size)], handle, now)
	reply.More = reply.Reached < len(all)
	reply.Reached = 0
	return reply
}

// Cancel implements ports.Operator.
func (m *Store) Cancel(ctx context.Context, r ports.CancelRequest) (ports.StepReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	s, err := m.asked(ctx, r.Shard, r.Validate())
	if err != nil {
		return ports.StepReply{}, err
	}

	reply := ports.StepReply{Now: m.Now(), Reached: len(r.IDs)}
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
func (m *Store) Forget(ctx context.Context, queue string) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	q, err := m.queue(ctx, queue)
	if err != nil {
		return err
	}

	for _, s := range q.shards {
		if len(s.queued)+len(s.claimed)+len(s.dead)+len(s.schedules) > 0 {
			return fmt.Errorf("%w: %v", ports.ErrNotEmpty, s.at)
		}
	}

	for _, s := range q.shards {
		if now := m.Now(); s.lease.owner != "" && s.lease.lasts(now) {
			return &ports.HeldError{Shard: s.at, Owner: s.lease.owner, Remaining: s.lease.remaining(now)}
		}
	}

	delete(m.queues, queue)
	return nil
}

// Recount implements ports.Operator. The model stores no counts of entries, so one step is enough.
func (m *Store) Recount(ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.asked(ctx, r.Shard, r.Validate())
	if err != nil {
		return ports.RecountReply{}, err
	}
	if r.After != "" {
		return ports.RecountReply{}, fmt.Errorf("%w: no step of a recount ends at %q", ports.ErrInvalidRequest, r.After)
	}
	counts := s.counts()
	return ports.RecountReply{Before: counts, After: counts, Counted: counts.Entries()}, nil
}
