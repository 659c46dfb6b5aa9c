package memory

import (
	"bytes"
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Expedite implements [ports.Operator].
func (s *Store) Expedite(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return s.b.step(ctx, r.Shard, r.ValidateWhole(), func(sh *shard, now core.Instant) ports.StepReply {
		return sh.jobStep(&r, func(e *entity, _ int) (changed, finished bool) {
			due, changed := e.Expedited(now)
			sh.restate(e, due)
			return changed, true
		})
	})
}

// Bury implements [ports.Operator].
func (s *Store) Bury(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return s.b.step(ctx, r.Shard, r.ValidateBury(), func(sh *shard, now core.Instant) ports.StepReply {
		return sh.jobStep(&r, sh.taking(r.First, now, func(e *entity, taken []core.Payload) {
			job := core.Job{ID: e.id, Payloads: taken, State: e.State}
			sh.morgue.bury(job.Buried(now))
		}))
	})
}

// Delete implements [ports.Operator].
func (s *Store) Delete(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return s.b.step(ctx, r.Shard, r.Validate(), func(sh *shard, now core.Instant) ports.StepReply {
		if r.Payloads != nil {
			return sh.jobStep(&r, sh.removing(&r, now))
		}
		return sh.jobStep(&r, sh.taking(r.First, now, func(*entity, []core.Payload) {}))
	})
}

// removing returns a function by which a step removes its Payloads from a queued job. A job without
// payloads is dropped.
func (s *shard) removing(r *ports.JobStep, now core.Instant) handleJob {
	return func(e *entity, at int) (changed, finished bool) {
		first := e.payloads.List()[0]
		changed = e.payloads.Remove(r.Payloads[at]) > 0
		switch {
		case e.payloads.Len() == 0:
			s.drop(e)
		case first.Compare(e.payloads.List()[0]) != 0:
			s.restate(e, e.WithoutFirst(now))
		}
		return changed, true
	}
}

// taking returns a function by which a step handles a queued job: it takes the job's payloads, up
// to the bounds of the step, and passes them to use. If first is not nil, it takes the first
// payload if that is the named one. A job without payloads is dropped.
func (s *shard) taking(first [][]byte, now core.Instant, use func(e *entity, taken []core.Payload)) handleJob {
	var bound core.Bound
	return func(e *entity, at int) (changed, finished bool) {
		list := e.payloads.List()
		if first != nil {
			if !bytes.Equal(list[0].Data, first[at]) {
				return false, true
			}
			list = list[:1]
		}

		n := bound.Take(list)
		if n == 0 {
			return false, false
		}

		use(e, e.payloads.TakeFirst(n))
		switch {
		case e.payloads.Len() == 0:
			s.drop(e)
			return true, true
		case first != nil:
			s.restate(e, e.WithoutFirst(now))
			return true, true
		}
		return true, false
	}
}

// Cancel implements [ports.Operator].
func (s *Store) Cancel(ctx context.Context, r ports.CancelRequest) (ports.StepReply, error) {
	return s.b.step(ctx, r.Shard, r.Validate(), func(sh *shard, _ core.Instant) ports.StepReply {
		reply := ports.StepReply{Reached: len(r.IDs)}
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

// Recount implements [ports.Operator]. Stats counts the lists themselves, so Recount corrects
// nothing, and its first step is the last.
func (s *Store) Recount(ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
	sh, err := s.b.shard(ctx, r.Shard)
	if err != nil {
		return ports.RecountReply{}, err
	}
	if r.After != "" {
		return ports.RecountReply{}, storekit.NoSuchStep(&r)
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	counts := sh.counts()
	return ports.RecountReply{Before: counts, After: counts, Counted: counts.Entries()}, nil
}

// step runs one bounded step of an operator on a shard, unless its request is invalid, and wakes
// the shard's subscribers if its head became earlier.
func (b *backend) step(
	ctx context.Context, id core.Shard, invalid error, do func(*shard, core.Instant) ports.StepReply,
) (ports.StepReply, error) {
	if invalid != nil {
		return ports.StepReply{}, invalid
	}
	sh, err := b.shard(ctx, id)
	if err != nil {
		return ports.StepReply{}, err
	}

	sh.mu.Lock()
	defer sh.mu.Unlock()

	now, before := b.now(), sh.head()
	reply := do(sh, now)
	reply.Now = now
	sh.morgue.groups.Tidy()
	sh.wakeIfEarlier(before)
	return reply, nil
}

// handleJob handles one queued job of a step. at is the position of the job's id in the step's IDs.
// The results report whether the job was changed, and whether the step is finished with it. If it
// is not, the step has reached its bounds.
type handleJob func(e *entity, at int) (changed, finished bool)

// jobStep runs a step on the queued jobs that the request selects.
func (s *shard) jobStep(r *ports.JobStep, handle handleJob) (reply ports.StepReply) {
	return namedStep(len(r.IDs), func(at int) (changed, finished bool) {
		if e := s.queued(r.IDs[at]); e != nil && r.About(&e.State) {
			return handle(e, at)
		}
		return false, true
	})
}

// namedStep runs a step on a number of named entries, until one is not finished.
func namedStep(entries int, handle func(at int) (changed, finished bool)) (reply ports.StepReply) {
	for at := range entries {
		changed, finished := handle(at)
		if !finished {
			return reply
		}
		if changed {
			reply.Handled++
		}
		reply.Reached++
	}
	return reply
}
