package memory

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Turn implements [ports.Consumer].
func (s *Store) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	if err := r.Validate(); err != nil {
		return ports.TurnReply{}, err
	}
	sh, err := s.b.shard(ctx, r.Lease.Shard)
	if err != nil {
		return ports.TurnReply{}, err
	}

	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := sh.lease.check(r.Lease); err != nil {
		return ports.TurnReply{}, err
	}

	reply := ports.TurnReply{Now: s.b.now(), Paused: sh.queue.paused.Load()}
	switch last := sh.lease.last; {
	case r.Number == last+1:
		sh.turn(&r, &reply)
	case r.Number == last:
		sh.repeat(&r, &reply)
	case r.Number < last:
		return ports.TurnReply{}, storekit.StaleTurn(&r, last)
	default:
		return ports.TurnReply{}, storekit.TurnsLost(&r, last)
	}

	if r.Marks {
		sh.past.addMarks(reply.Claims)
	}
	reply.Last = sh.lease.last
	reply.Remaining = sh.lease.remaining(reply.Now)
	reply.Cancellations = sh.claimed.cancellations()
	reply.Head = sh.ownersHead(reply.Paused, reply.Now)
	return reply, nil
}

// turn settles, ends parts, begins, hands over, claims and renews. A turn that only claims and
// finds nothing to hand over or claim changes nothing, unless it was sent before.
func (s *shard) turn(r *ports.TurnRequest, reply *ports.TurnReply) {
	settlements, parts := r.Recorded()
	s.settleAll(settlements, reply)
	reply.SkippedParts = s.endParts(parts, reply.Now)
	if r.RemovesPast() {
		s.past.prune(r.Keep, reply.Now)
	}
	s.once.prune(reply.Now)

	for i, ref := range r.Begin {
		if e := s.claimedWith(ref.ID, ref.Receipt); e != nil {
			e.claim.Begun = true
		} else {
			reply.NotBegun = append(reply.NotBegun, i)
		}
	}

	before := s.lease.orphans.next
	reply.Orphans = s.handOver(&core.Bound{Bytes: r.Budget().Bytes})
	if !reply.Paused {
		reply.Claims = s.claimDue(r, reply)
	}

	idle := r.OnlyClaims() && len(reply.Claims) == 0 && len(reply.Orphans) == 0
	if idle && !r.Resent {
		return
	}
	s.lease.last, s.lease.orphans.turned = r.Number, before
	s.lease.renew(r.TTL, reply.Now)
}

// repeat renews, and returns again the turn's claims that have not been settled since.
func (s *shard) repeat(r *ports.TurnRequest, reply *ports.TurnReply) {
	reply.Repeat = true
	receipt := core.Receipt{Token: r.Lease.Token, Number: r.Number}
	reply.Claims = s.claimed.matching(func(r core.Receipt) bool { return r == receipt })
	o := &s.lease.orphans
	reply.Orphans, _ = s.orphansAmong(o.refs[o.turned:o.next], &core.Bound{})
	s.lease.renew(r.TTL, reply.Now)
}

// claimDue claims due jobs as far as the request's budget allows beside the jobs that the turn
// hands over.
func (s *shard) claimDue(r *ports.TurnRequest, reply *ports.TurnReply) []core.Claim {
	var (
		claims  []core.Claim
		by      *claimer
		now     = reply.Now
		budget  = r.Budget()
		receipt = core.Receipt{Token: r.Lease.Token, Number: r.Number}
	)

	budget.Carry(reply.Orphans)
	for budget.Open() {
		e, ok := s.ready.First()
		if !ok || e.PerformAt > now || !s.claimed.admits(e) {
			break
		}
		n := budget.Take(e.payloads.List())
		if n == 0 {
			break
		}

		if claims == nil {
			claims = make([]core.Claim, 0, s.ready.CountTo(int64(now), min(r.Want, core.MaxTurnJobs)))
			by = &claimer{owner: r.Lease.Owner, node: r.Node, since: now}
		}
		claims = append(claims, s.claimOne(e, n, receipt, by))
	}
	return claims
}

// claimOne claims the first n payloads of a ready job. The remaining payloads stay queued.
func (s *shard) claimOne(e *entity, n int, receipt core.Receipt, by *claimer) core.Claim {
	c := core.Claim{Job: core.Job{ID: e.id, State: e.State}, Receipt: receipt}
	s.dequeue(e)
	if n == e.payloads.Len() {
		c.Payloads = e.payloads.List()[:n:n]
		e.State, e.payloads = core.State{}, core.PayloadSet{}
		e.claim = s.claimed.add(c, by)
		return c
	}
	c.Payloads = e.payloads.TakeFirst(n)
	e.claim = s.claimed.add(c, by)
	s.enqueue(e, c.State.Rest())
	return c
}
