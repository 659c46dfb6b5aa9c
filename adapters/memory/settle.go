package memory

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Settle implements ports.Settler. Memory has no transactions, so it applies at
// once.
func (s *Store) Settle(ctx context.Context, id core.Shard, settle []core.Settlement) error {
	sh, err := s.b.shard(ctx, id)
	if err != nil {
		return err
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := sh.allClaimed(settle); err != nil {
		return err
	}
	now, before := s.b.now(), sh.head()
	for i := range settle {
		sh.settle(&settle[i], now)
	}
	sh.wakeIfEarlier(before)
	return nil
}

// allClaimed reports the first settlement that could not be applied.
func (s *shard) allClaimed(settle []core.Settlement) error {
	seen := make(map[string]bool, len(settle))
	for i := range settle {
		x := &settle[i]
		if seen[x.ID] || s.marked(x.ID, x.Receipt) == nil {
			return fmt.Errorf("%w: %q is not claimed by token %d, turn %d; roll back",
				ports.ErrLeaseLost, x.ID, x.Receipt.Token, x.Receipt.Number)
		}
		seen[x.ID] = true
	}
	return nil
}

// marked is the id's entity if it is claimed with this mark, else nil.
func (s *shard) marked(id string, mark core.Receipt) *entity {
	if e := s.ids[id]; e != nil && e.claim != nil && e.claim.Receipt == mark {
		return e
	}
	return nil
}

// settle carries out one settlement; false if its job is not claimed.
func (s *shard) settle(x *core.Settlement, now core.Instant) bool {
	e := s.marked(x.ID, x.Receipt)
	if e == nil {
		return false
	}
	back, dead := x.Apply(e.claim.Job, now)
	s.unclaim(e)
	if len(back.Payloads) > 0 {
		s.putBack(e, back)
	}
	if len(dead.Payloads) > 0 {
		s.morgue.bury(dead)
	}
	s.forget(e)
	if x.Processed {
		s.processed++
	}
	if x.Failed {
		s.failed++
	}
	return true
}

// unclaim ends a claim and frees the id, so that a parked job is ready.
func (s *shard) unclaim(e *entity) {
	s.claimed.remove(e.claim)
	if !e.queued {
		e.claim = nil
		return
	}
	s.unlist(e)
	e.claim = nil
	s.list(e)
}

// putBack merges a returning job into the queue.
func (s *shard) putBack(e *entity, back core.Job) {
	e.payloads.Merge(back.Payloads)
	if e.queued {
		s.restate(e, core.MergeReturn(e.State, back.State))
		return
	}
	s.enqueue(e, back.State)
}
