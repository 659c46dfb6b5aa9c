package memory

import (
	"cmp"
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Expedite implements [ports.Operator].
func (s *Store) Expedite(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	return s.b.step(ctx, r.Shard, func(sh *shard, now core.Instant) ports.StepReply {
		next := func() *entity { return sh.latestAfter(now) }
		return sh.jobStep(&r, next, func(e *entity) bool {
			if e.PerformAt <= now {
				return false
			}
			due := e.State
			due.PerformAt = now
			sh.restate(e, due)
			return true
		})
	})
}

// latestAfter returns the last queued job by time, or nil if it is due by now.
func (s *shard) latestAfter(now core.Instant) *entity {
	latest, ok := s.ready.Last()
	if parked, also := s.parked.Last(); also && (!ok || parked.byTime().compare(latest.byTime()) > 0) {
		latest = parked
	}
	if latest == nil || latest.PerformAt <= now {
		return nil
	}
	return latest
}

// Bury implements [ports.Operator].
func (s *Store) Bury(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	return s.b.step(ctx, r.Shard, func(sh *shard, now core.Instant) ports.StepReply {
		return sh.jobStep(&r, sh.firstRetrying, func(e *entity) bool {
			sh.morgue.bury(core.DeadLetter{
				ID:        e.id,
				Payloads:  e.payloads.List(),
				ChangedAt: now,
				Error:     cmp.Or(e.Error, core.BuriedByHand),
			})
			sh.drop(e)
			return true
		})
	})
}

// Delete implements [ports.Operator].
func (s *Store) Delete(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	return s.b.step(ctx, r.Shard, func(sh *shard, _ core.Instant) ports.StepReply {
		return sh.jobStep(&r, sh.firstRetrying, func(e *entity) bool {
			sh.drop(e)
			return true
		})
	})
}

// firstRetrying returns the first queued job by time that has failed, or nil.
func (s *shard) firstRetrying() *entity {
	e, _ := s.retrying.byTime.First()
	return e
}

// Cancel implements [ports.Operator].
func (s *Store) Cancel(ctx context.Context, r ports.CancelRequest) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	return s.b.step(ctx, r.Shard, func(sh *shard, _ core.Instant) ports.StepReply {
		var reply ports.StepReply
		for _, id := range r.IDs {
			if e := sh.ids[id]; e != nil && e.claim != nil && sh.claimed.cancel(e.claim, r.Drop) {
				reply.Handled++
			}
		}
		if reply.Handled > 0 {
			sh.wake()
		}
		return reply
	})
}

// Recount implements [ports.Operator]. Stats counts the lists themselves, so there is
// nothing to correct.
func (s *Store) Recount(ctx context.Context, id core.Shard) (ports.RecountReply, error) {
	sh, err := s.b.shard(ctx, id)
	if err != nil {
		return ports.RecountReply{}, err
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	counts := sh.counts()
	return ports.RecountReply{Before: counts, After: counts}, nil
}

// step runs one bounded step of an operator on a shard, and wakes its subscribers if
// its head became earlier.
func (b *backend) step(ctx context.Context, id core.Shard, do func(*shard, core.Instant) ports.StepReply) (ports.StepReply, error) {
	sh, err := b.shard(ctx, id)
	if err != nil {
		return ports.StepReply{}, err
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now, before := b.now(), sh.head()
	reply := do(sh, now)
	reply.Now = now
	sh.wakeIfEarlier(before)
	return reply, nil
}

// jobStep runs a step on queued jobs: those that the request names, or else what next
// returns until that is nil. handle reports whether it changed the job; it must change
// those from next in such a way that next does not return them again.
func (s *shard) jobStep(r *ports.JobStep, next func() *entity, handle func(*entity) bool) ports.StepReply {
	var reply ports.StepReply
	if r.IDs != nil {
		for _, id := range r.IDs {
			if e := s.queued(id); e != nil && handle(e) {
				reply.Handled++
			}
		}
		return reply
	}
	for e := next(); e != nil; e = next() {
		if reply.Handled == r.Size() {
			reply.More = true
			return reply
		}
		handle(e)
		reply.Handled++
	}
	return reply
}
