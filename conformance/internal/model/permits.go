package model

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// permit is an owner's share of a queue's permits.
type permit struct {
	core.PermitHolder
	attempt int64
	ttl     time.Duration
	expires core.Instant
}

// Permit implements ports.Permitter.
func (m *Store) Permit(ctx context.Context, r ports.PermitRequest) (ports.PermitReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return ports.PermitReply{}, err
	}
	q, err := m.queue(ctx, r.Queue)
	if err != nil {
		return ports.PermitReply{}, err
	}

	now := m.Now()
	lasts := func(p permit) bool { return now < p.expires }
	mine := q.permits[r.Owner]
	if lasts(mine) && r.Attempt < mine.attempt {
		return ports.PermitReply{}, ports.ErrStaleAttempt
	}

	maps.DeleteFunc(q.permits, func(_ string, p permit) bool { return !lasts(p) })
	had, free := q.permits[r.Owner].Held, r.Limit

	for owner, p := range q.permits {
		p.expires = min(p.expires, now.Add(p.ttl))
		q.permits[owner] = p
		if owner != r.Owner {
			free -= p.Held
		}
	}

	q.permits[r.Owner] = permit{
		PermitHolder: core.PermitHolder{Owner: r.Owner, Held: min(r.Hold, max(had, free)), Want: r.Want},
		attempt:      r.Attempt, ttl: r.TTL, expires: now.Add(r.TTL),
	}

	reply := ports.PermitReply{Now: now, Remaining: now.Add(r.TTL).Sub(now), Held: q.permits[r.Owner].Held}
	if r.Want == 0 {
		delete(q.permits, r.Owner)
	}

	for _, p := range sorted(q.permits, func(a, b permit) int { return cmp.Compare(a.Owner, b.Owner) }) {
		reply.Holders = append(reply.Holders, p.PermitHolder)
	}
	return reply, nil
}
