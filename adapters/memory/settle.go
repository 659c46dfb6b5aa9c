package memory

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports/storekit"
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
	if claimed := sh.countClaimed(settle); claimed < len(settle) {
		return storekit.NotClaimed(id, claimed, len(settle))
	}
	now, before := s.b.now(), sh.head()
	for i := range settle {
		sh.settle(&settle[i], now)
	}
	sh.wakeIfEarlier(before)
	return nil
}

// countClaimed returns how many of the settlements can be applied: the second of an
// id can't.
func (s *shard) countClaimed(settle []core.Settlement) int {
	claimed := make(map[string]bool, len(settle))
	for i := range settle {
		if x := &settle[i]; s.marked(x.ID, x.Receipt) != nil {
			claimed[x.ID] = true
		}
	}
	return len(claimed)
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
