package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Turn implements ports.Consumer.
func (m *Store) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return ports.TurnReply{}, err
	}

	q, s, err := m.shard(ctx, r.Lease.Shard)
	if err != nil {
		return ports.TurnReply{}, err
	}
	if err := s.lease.check(r.Lease); err != nil {
		return ports.TurnReply{}, err
	}

	now := m.Now()
	var reply ports.TurnReply

	switch last := s.lease.last; {
	case r.Number < last:
		return ports.TurnReply{}, fmt.Errorf("%w: %d, after %d", ports.ErrStaleTurn, r.Number, last)
	case r.Number > last+1:
		return ports.TurnReply{}, fmt.Errorf("%w: turn %d, after %d", ports.ErrLeaseLost, r.Number, last)
	case r.Number == last:
		reply = s.repeat(r, now)
	default:
		reply = m.carryOut(q, s, r, now)
	}

	for i := range reply.Claims {
		if r.Marks {
			reply.Claims[i].Mark = s.mark(reply.Claims[i].ID)
		}
	}
	reply.Last = s.lease.last
	reply.Now, reply.Remaining = now, s.lease.remaining(now)
	reply.Head, reply.Paused = s.ownersHead(q.record.Paused, now), q.record.Paused
	reply.Cancellations = s.cancellations()
	return reply, nil
}

// repeat renews the lease and returns the claims of its last turn again.
func (s *shard) repeat(r ports.TurnRequest, now core.Instant) ports.TurnReply {
	s.lease.renew(now, r.TTL)
	reply := ports.TurnReply{Repeat: true}

	for _, c := range s.claimed {
		if c.Receipt == (core.Receipt{Token: r.Lease.Token, Number: r.Number}) {
			reply.Claims = append(reply.Claims, copyClaim(c.Claim))
		}
	}
	slices.SortFunc(reply.Claims, func(a, b core.Claim) int { return byTime(a.Job, b.Job) })

	for _, id := range s.lease.orphans {
		if c, ok := s.claimed[id]; ok {
			reply.Orphans = append(reply.Orphans, copyClaim(c.Claim))
		}
	}

	return reply
}

// carryOut applies a turn with the next number. A turn that has nothing to do writes nothing,
// unless it is resent.
func (m *Store) carryOut(q *queue, s *shard, r ports.TurnRequest, now core.Instant) ports.TurnReply {
	var reply ports.TurnReply
	settlements, parts := r.Recorded()
	reply.Skipped, reply.Deferred = s.settle(settlements, now)
	reply.SkippedParts = s.endParts(parts, now)
	if r.RemovesPast() {
		s.prunePast(r.Keep, now)
	}

	reply.NotBegun = s.begin(r.Begin)
	reply.Orphans = m.handOver(s, r.Number, core.Bound{Bytes: cmp.Or(r.Bytes, core.DefaultTurnBytes)})

	if !q.record.Paused {
		reply.Claims = s.claim(r, reply.Orphans, now)
	}

	idle := r.OnlyClaims() && len(reply.Claims) == 0 && len(reply.Orphans) == 0
	if idle && !r.Resent {
		return reply
	}

	s.lease.last = r.Number
	s.lease.orphans = nil
	for _, c := range reply.Orphans {
		s.lease.orphans = append(s.lease.orphans, c.ID)
	}

	s.lease.renew(now, r.TTL)
	return reply
}

// settle applies settlements. skipped are the positions of settlements whose job is not claimed,
// and deferred the positions of those that don't fit the bounds.
func (s *shard) settle(settlements []core.Settlement, now core.Instant) (skipped, deferred []int) {
	defer s.tidyGroups()
	var bound core.Bound
	for i, settlement := range settlements {
		c, ok := s.claimed[settlement.ID]
		if !ok || c.Receipt != settlement.Receipt {
			skipped = append(skipped, i)
			continue
		}

		back, dead := settlement.Apply(c.Job, now)
		if !bound.TakeSettlement(&settlement, back, dead) {
			deferred = append(deferred, i)
			continue
		}

		delete(s.claimed, settlement.ID)
		s.putBack(back, settlement.PutBack)
		s.bury(dead)
		s.record(&settlement, now)
		s.raise(settlement.ID, settlement.Mark, now)
		s.stale += int64(settlement.Stale)

		if settlement.Processed {
			s.processed++
		}
		if settlement.Failed {
			s.failed++
		}
	}
	return skipped, deferred
}

// endParts ends single payloads, begins the next ones and returns the positions of skipped parts. A
// part that was applied before only begins.
func (s *shard) endParts(parts []core.PayloadSettlement, now core.Instant) (skipped []int) {
	for i, part := range parts {
		c, claimed := s.claimed[part.ID]
		left, ok := part.Apply(c.Claim)
		switch {
		case claimed && ok && c.Receipt == part.Receipt:
			c.Claim, c.Count = left, len(left.Payloads)
			s.raise(part.ID, part.Mark, now)
		case !claimed || c.Receipt != part.Receipt.NextPart():
			skipped = append(skipped, i)
			continue
		}

		c.Begun = true
		s.claimed[part.ID] = c
	}
	return skipped
}

// begin marks jobs as begun and returns the positions of those that are not claimed.
func (s *shard) begin(refs []core.ClaimRef) (notBegun []int) {
	for i, ref := range refs {
		c, ok := s.claimed[ref.ID]
		if !ok || c.Receipt != ref.Receipt {
			notBegun = append(notBegun, i)
			continue
		}
		c.Begun = true
		s.claimed[ref.ID] = c
	}
	return notBegun
}

// handOver returns the orphans that were not handed over under this lease and can be reached, as
// far as the bound allows. Number 0 is Acquire.
func (m *Store) handOver(s *shard, turn int64, bound core.Bound) []core.Claim {
	var claims []core.Claim
	for _, c := range s.orphans() {
		if s.lease.handedOver[c.ID] || m.Reach != nil && !m.Reach(turn, c.ID) {
			continue
		}
		if !bound.TakeWhole(c.Payloads) {
			break
		}
		s.lease.handedOver[c.ID] = true
		claims = append(claims, c)
	}
	return claims
}

func (s *shard) claim(r ports.TurnRequest, handedOver []core.Claim, now core.Instant) []core.Claim {
	var claims []core.Claim
	budget := r.Budget()
	budget.Carry(handedOver)

	for _, job := range s.claimable() {
		if job.PerformAt > now || !budget.Open() || !s.mayClaim(job) {
			break
		}

		n := budget.Take(job.Payloads)
		if n == 0 {
			break
		}
		claims = append(claims, s.take(job, n, r, now))
	}
	return claims
}

// take claims the first n payloads of a queued job; the others stay queued.
func (s *shard) take(job core.Job, n int, r ports.TurnRequest, now core.Instant) core.Claim {
	taken, remaining := job, job
	remaining.State = job.State.Rest()
	taken.Payloads, remaining.Payloads = job.Payloads[:n], job.Payloads[n:]
	delete(s.queued, job.ID)
	if len(remaining.Payloads) > 0 {
		s.queued[job.ID] = remaining
	}

	claim := core.Claim{Job: taken, Receipt: core.Receipt{Token: r.Lease.Token, Number: r.Number}}
	s.claimed[job.ID] = claimedJob{ClaimView: ports.ClaimView{
		Claim: claim,
		Count: n,
		Shard: s.at,
		Owner: r.Lease.Owner,
		Node:  r.Node,
		Since: now,
	}}

	return copyClaim(claim)
}

// copyClaim returns the claim with a list of payloads that belongs to the caller.
func copyClaim(c core.Claim) core.Claim {
	c.Payloads = slices.Clone(c.Payloads)
	return c
}
