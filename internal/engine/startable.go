package engine

import (
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// startable are the claims of a turn, as their rates allow.
type startable struct {
	// now are those that may start, and later are those that may soon. off are the settlements that put
	// the others back until their slots come, and stale are those of claims with stale payloads.
	now   []core.Claim
	later held
	off   []core.Settlement
	stale []core.Settlement
}

// startable drops the stale payloads of the jobs that a turn has claimed (docs/rules.md 16). For the
// other jobs it asks for their starts, if the queue has rates by key (docs/rules.md 12).
func (s *shard) startable(r *ports.TurnReply) startable {
	fresh, stale := s.queue.dropStale(r.Claims)
	if s.queue.KeyOf == nil || len(fresh) == 0 {
		return startable{now: fresh, stale: stale}
	}

	claims := slices.Clone(fresh)
	starts := make([]keyedStart, len(claims))
	if asks := s.askKeys(claims, starts, r.Now); len(asks) > 0 {
		s.takeKeys(asks, claims, starts)
	}

	c := startable{stale: stale}
	for i, start := range starts {
		switch {
		case start.off:
			c.off = append(c.off, claims[i].PutOff(start.in, start.slot))
		case start.in > 0:
			claims[i].Slot = start.slot
			c.later = append(c.later, heldClaim{claims[i], s.node.clock.Local().Add(start.in)})
		default:
			claims[i].Slot = start.slot
			c.now = append(c.now, claims[i])
		}
	}
	return c
}

// dropStale returns the claims without a stale payload, and the settlements of the others.
func (q *Queue) dropStale(claims []core.Claim) (fresh []core.Claim, settled []core.Settlement) {
	stale := func(c core.Claim) bool { return c.Stale() > 0 }
	if !q.DropStale || !slices.ContainsFunc(claims, stale) {
		return claims, nil
	}

	for i := range claims {
		if n := claims[i].Stale(); n > 0 {
			settled = append(settled, claims[i].DropStale(n))
		} else {
			fresh = append(fresh, claims[i])
		}
	}
	return fresh, settled
}
