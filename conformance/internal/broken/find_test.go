package broken

import (
	"context"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// brokenFinds break the promises of Find about payloads.
func brokenFinds() []brokenStore {
	return []brokenStore{
		{"ignores the limit of payloads", "find/returns payloads in pages of every size", wrapped(findsAll)},
		{
			"reads payloads that were not asked for",
			"find/returns no payload if none is asked for",
			wrapped(findsUnasked),
		},
		{
			"finds more payloads than a call may return",
			"find/returns at most the payloads that one call may return",
			wrapped(findsAll),
		},
		{"bounds each place by itself", "find/shares its bound among the places", wrapped(findsEachPlace)},
		{
			"finds more bytes than a call may return",
			"bytes/returns at most the bytes that one call may return",
			wrapped(findsAll),
		},
		{
			"does not return a payload that is too large",
			"bytes/returns the first payload whatever its size",
			wrapped(findsNoLarge),
		},
		{"loses a payload between two pages", "find/returns payloads in pages of every size", wrapped(skipsOneOfNext)},
		{"returns a payload on two pages", "find/returns payloads in pages of every size", wrapped(repeatsOneOfNext)},
		{"reports no more payloads", "find/returns payloads in pages of every size", wrapped(hidesNext)},
		{"counts the payloads that it returns", "find/returns payloads in pages of every size", wrapped(countsFound)},
		{"counts all payloads, beyond the limit", "find/counts up to the limit asked for", wrapped(countsAll)},
		{
			"treats a place that is not counted as empty",
			"find/counts up to the limit asked for",
			wrapped(followsByCount),
		},
		{"continues at a number of payloads", "find/returns each payload that stays once", wrapped(findsByNumber)},
		{"accepts any cursor", "find/refuses a cursor that no reply can have", wrapped(findsBehindAnything)},
	}
}

// changesFound is a store that changes the results of Find.
func changesFound(s full, change func(ports.FindRequest, *ports.Found)) full {
	return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r)
		change(r, &found)
		return found, err
	})
}

// rest returns all payloads of a place from the request's start on.
func rest(ctx context.Context, s full, r ports.FindRequest, place ports.Place) (all []core.Payload) {
	at := r.Start(place)
	for {
		r.After, r.Payloads = &at, core.MaxTurnPayloads
		found, err := s.Find(ctx, r)
		all = append(all, *env.PayloadsIn(&found, place)...)
		if err != nil || len(found.Next) == 0 {
			return all
		}
		at = found.Next[0]
	}
}

func findsAll(s full) full {
	return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r)
		for _, c := range found.Next {
			*env.PayloadsIn(&found, c.Place) = rest(ctx, s, r, c.Place)
		}
		found.Next = nil
		return found, err
	})
}

func findsUnasked(s full) full {
	return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		r.Payloads = max(1, r.Payloads)
		return s.Find(ctx, r)
	})
}

func findsEachPlace(s full) full {
	return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r)
		for i, c := range found.Next {
			all := rest(ctx, s, r, c.Place)
			some := all[:min(r.Most(c.Place), len(all))]
			*env.PayloadsIn(&found, c.Place), found.Next[i] = some, r.Start(c.Place).Next(some)
		}
		return found, err
	})
}

func findsNoLarge(s full) full {
	return changesFound(s, func(_ ports.FindRequest, found *ports.Found) {
		if payloads := env.PayloadsIn(found, ports.PlaceQueued); len(*payloads) == 1 &&
			len((*payloads)[0].Data) > core.MaxStepBytes {
			*payloads = nil
		}
	})
}

func skipsOneOfNext(s full) full {
	return changesFound(s, func(_ ports.FindRequest, found *ports.Found) {
		for i := range found.Next {
			found.Next[i].Skip++
		}
	})
}

func repeatsOneOfNext(s full) full {
	return changesFound(s, func(_ ports.FindRequest, found *ports.Found) {
		for i := range found.Next {
			found.Next[i].Skip = max(1, found.Next[i].Skip-1)
		}
	})
}

// countsTheRest shows the rest of a split job with the RetryCount of the claim.
func countsTheRest(s full) full {
	return changesFound(s, func(_ ports.FindRequest, found *ports.Found) {
		if found.Queued != nil && found.Claim != nil {
			found.Queued.RetryCount = found.Claim.RetryCount
		}
	})
}

func hidesNext(s full) full {
	return changesFound(s, func(_ ports.FindRequest, found *ports.Found) { found.Next = nil })
}

func countsFound(s full) full {
	return changesFound(s, func(_ ports.FindRequest, found *ports.Found) {
		if found.Queued != nil {
			found.Queued.Count = len(found.Queued.Payloads)
		}
	})
}

func countsAll(s full) full {
	return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		r.MaxCount = 0
		return s.Find(ctx, r)
	})
}

// followsByCount treats a place that is not counted as a place without payloads.
func followsByCount(s full) full {
	return changesFound(s, func(r ports.FindRequest, found *ports.Found) {
		if r.Payloads == 0 && r.MaxCount < 0 {
			found.Next = nil
		}
	})
}

// findsByNumber continues after the number of payloads that it has returned for an id.
func findsByNumber(s full) full {
	returned := 0
	return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		if r.After == nil {
			found, err := s.Find(ctx, r)
			returned = 0
			if found.DeadLetter != nil {
				returned = len(found.DeadLetter.Payloads)
			}
			return found, err
		}

		place := r.After.Place
		r.After = nil
		all := rest(ctx, s, r, place)
		found, err := s.Find(ctx, r)
		found.Next = nil
		*env.PayloadsIn(&found, place) = all[min(returned, len(all)):]
		return found, err
	})
}

func findsBehindAnything(s full) full {
	return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		if r.Validate() != nil {
			r.After = nil
		}
		return s.Find(ctx, r)
	})
}

// standsOtherwise is a store whose Find returns another standing of an id.
func standsOtherwise(s full, change func(ports.Found, *ports.Standing)) full {
	return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r)
		change(found, &found.Standing)
		return found, err
	})
}

// countsAllAhead counts jobs ahead of a job that is not due.
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
