package memory

import (
	"cmp"
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Settle implements [ports.Settler]. Memory has no transactions: it settles at once.
func (s *Store) Settle(ctx context.Context, id core.Shard, settlements []core.Settlement) error {
	sh, err := s.b.shard(ctx, id)
	if err = cmp.Or(err, ports.ValidateSettlements(settlements)); err != nil {
		return err
	}

	sh.mu.Lock()
	defer sh.mu.Unlock()
	if claimed := sh.countClaimed(settlements); claimed < len(settlements) {
		return storekit.NotClaimed(id, claimed, len(settlements))
	}

	now, before := s.b.now(), sh.head()
	for i := range settlements {
		x := &settlements[i]
		e := sh.ids[x.ID]
		back, dead := x.Apply(e.claim.Job, now)
		sh.settle(e, x, back, dead, now)
	}

	sh.morgue.groups.Tidy()
	sh.wakeIfEarlier(before)
	return nil
}

// SettlePayload implements [ports.Settler].
func (s *Store) SettlePayload(ctx context.Context, id core.Shard, p core.PayloadSettlement) error {
	sh, err := s.b.shard(ctx, id)
	if err != nil {
		return err
	}

	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := sh.claimedWith(p.ID, p.Receipt)
	if e == nil || e.claim.handed {
		return storekit.NotClaimed(id, 0, 1)
	}

	before := sh.head()
	if !sh.claimed.endPayload(e.claim, &p) {
		return storekit.NoOtherPayload(id, &p)
	}
	sh.past.raise(p.ID, p.Mark, s.b.now())
	sh.wakeIfEarlier(before)
	return nil
}

// endParts ends the payloads that a turn names, begins the next payload of each job, and returns
// the positions of the parts that it has skipped.
func (s *shard) endParts(parts []core.PayloadSettlement, now core.Instant) (skipped []int) {
	for i := range parts {
		p := &parts[i]
		e := s.claimedWith(p.ID, p.Receipt)
		switch {
		case e != nil && s.claimed.endPayload(e.claim, p):
			e.claim.Begun = true
			s.past.raise(p.ID, p.Mark, now)
		case s.claimedWith(p.ID, p.Receipt.NextPart()) != nil: // it was applied before
			s.ids[p.ID].claim.Begun = true
		default:
			skipped = append(skipped, i)
		}
	}
	return skipped
}

// countClaimed returns the number of settlements that can be applied. The second settlement of an
// id can't be.
func (s *shard) countClaimed(settlements []core.Settlement) int {
	claimed := make(map[string]bool, len(settlements))
	for i := range settlements {
		if x := &settlements[i]; s.claimedWith(x.ID, x.Receipt) != nil {
			claimed[x.ID] = true
		}
	}
	return len(claimed)
}

// settleAll applies a turn's settlements up to the bounds, and adds to the reply which it skipped
// or deferred.
func (s *shard) settleAll(settlements []core.Settlement, reply *ports.TurnReply) {
	var bound core.Bound
	for i := range settlements {
		x := &settlements[i]
		e := s.claimedWith(x.ID, x.Receipt)
		if e == nil {
			reply.Skipped = append(reply.Skipped, i)
			continue
		}
		back, dead := x.Apply(e.claim.Job, reply.Now)
		if !bound.TakeSettlement(x, back, dead) {
			reply.Deferred = append(reply.Deferred, i)
			continue
		}
		s.settle(e, x, back, dead, reply.Now)
	}

	s.morgue.groups.Tidy()
}

// settle ends a claim by its settlement. back and dead are the result of the settlement's Apply
// at now.
func (s *shard) settle(e *entity, x *core.Settlement, back core.Job, dead core.DeadLetter, now core.Instant) {
	s.unclaim(e)
	if len(back.Payloads) > 0 {
		s.putBack(e, x.PutBack, back)
	}
	if len(dead.Payloads) > 0 {
		s.morgue.bury(dead)
	}
	if x.Past != nil {
		s.past.keep(x.Past.Stored(e.id, now))
	}
	s.forget(e)

	s.past.raise(e.id, x.Mark, now)
	s.stale += int64(x.Stale)
	if x.Processed {
		s.processed++
	}
	if x.Failed {
		s.failed++
	}
}

// unclaim ends a claim; a parked job of the id becomes ready.
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

// putBack merges the payloads of a claimed job that return into the queue.
func (s *shard) putBack(e *entity, by core.PutBack, back core.Job) {
	s.superseded += int64(e.payloads.MergeBy(s.rule(), back.Payloads))
	if e.queued {
		s.restate(e, by.Merge(e.State, back.State))
		return
	}
	s.enqueue(e, back.State)
}

// claimedWith returns the id's entity if it is claimed with this receipt, else nil.
func (s *shard) claimedWith(id string, receipt core.Receipt) *entity {
	if e := s.ids[id]; e != nil && e.claim != nil && e.claim.Receipt == receipt {
		return e
	}
	return nil
}
