package conformance

import (
	"context"

	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// standsOtherwise is a store whose Find says something else of how an id stands.
func standsOtherwise(s full, change func(ports.Found, *ports.Standing)) full {
	return replace(s, "Find", func(ctx context.Context, r storekit.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r.Queue, r.ID)
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

// hidesAlone never says that a job runs alone.
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
