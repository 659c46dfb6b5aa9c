package conformance

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// standsOtherwise is a store whose Find says something else of how an id stands.
func standsOtherwise(s full, change func(ports.Found, *ports.Standing)) full {
	return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r)
		change(found, &found.Standing)
		return found, err
	})
}

// countsAllAhead counts for jobs that are not due, too.
func countsAllAhead(s full) full {
	return standsOtherwise(s, func(found ports.Found, st *ports.Standing) {
		if found.Queued != nil && found.Queued.PerformAt > st.Now {
			st.Ahead++
		}
	})
}

// recountsAway claims beside a job that runs alone once its shard has been recounted.
func recountsAway(s full) full {
	recounted := false
	noted := replace(s, "Recount", func(ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
		recounted = true
		return s.Recount(ctx, r)
	})
	return replace(noted, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		if recounted && err == nil && r.Want > 0 && len(reply.Claims) == 0 {
			reply.Claims = []core.Claim{{Job: core.Job{ID: "a"}}}
		}
		return reply, err
	})
}

// hidesAlone never reports that a job runs alone.
func hidesAlone(s full) full {
	return standsOtherwise(s, func(_ ports.Found, st *ports.Standing) { st.Alone = "" })
}

// standsReleased shows the last lease, whether or not it was released.
func standsReleased(s full) full {
	var last ports.Standing
	return standsOtherwise(s, func(_ ports.Found, st *ports.Standing) {
		if st.Owner != "" {
			last = *st
		}
		st.Owner, st.Token, st.ExpiresAt = last.Owner, last.Token, last.ExpiresAt
	})
}
