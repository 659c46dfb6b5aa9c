package look

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleFindNext  = "Found: Next has the cursor of each place with more payloads than were returned"
	ruleFindStays = "PayloadCursor: payloads that stay are returned once, even if payloads of other scores come and go"
)

// findCases are about the payloads that Find returns.
func findCases() []env.Case {
	return []env.Case{
		{Name: "returns payloads in pages of every size", Rule: ruleFindNext, Check: findPages},
		{Name: "returns no payload if none is asked for", Rule: env.RuleFindBound, Check: findNone},
		{Name: "returns at most the payloads that one call may return", Rule: env.RuleFindBound, Check: findBounded},
		{Name: "shares its bound among the places", Rule: env.RuleFindBound, Check: findShared},
		{Name: "returns each payload that stays once", Rule: ruleFindStays, Check: findStays},
		{Name: "continues after a score that was removed", Rule: ruleFindStays, Check: findGone},
		{
			Name:  "counts up to the limit asked for",
			Rule:  "FindRequest: MaxCount is the largest number of payloads to count in each place",
			Check: findCounts,
		},
		{Name: "refuses a cursor that no reply can have", Rule: "FindRequest.Validate", Check: findInvalid},
	}
}

// inAllPlaces puts the payloads of an id into the queue, a claim and the morgue. end removes them
// from the queue and the claim.
func inAllPlaces(e *env.Env, id string, payloads ...core.Payload) (end func()) {
	e.TB.Helper()
	e.PushLarge(id, payloads...)
	e.ByIDs(e.Store.Bury, id)
	e.PushLarge(id, payloads...)

	h := e.Acquire("n1")
	r := h.Request(1)
	r.PerJob = core.MaxTurnPayloads
	c := h.Only(r)

	e.PushLarge(id, payloads...)

	return func() {
		e.ByIDs(e.Store.Delete, id)
		h.Settle(env.Dropped(c))
		h.Release()
	}
}

func findPages(e *env.Env) {
	for _, n := range []int{1, 5, env.LargeJob} {
		id, all := fmt.Sprintf("of-%d", n), env.Tied(n)
		end := inAllPlaces(e, id, all...)

		for _, place := range []ports.Place{ports.PlaceQueued, ports.PlaceClaimed, ports.PlaceDead} {
			for size := 1; size <= n+1; size++ {
				pages := e.FoundPages(id, place, size, n)
				e.Same(fmt.Sprintf("%d payloads of %v, %d a page", n, place, size), slices.Concat(pages...), all)
				for i, page := range pages {
					e.Same(fmt.Sprintf("the length of page %d of %v", i, place), len(page), min(size, n-i*size))
				}
			}
		}

		end()
	}
}

func findNone(e *env.Env) {
	all := env.Tied(env.LargeJob)
	inAllPlaces(e, "a", all...)
	for _, n := range []int{0, -1} {
		found := e.FindSome(ports.FindRequest{Queue: env.Orders, ID: "a", Payloads: n})
		for _, place := range []ports.Place{ports.PlaceQueued, ports.PlaceClaimed, ports.PlaceDead} {
			e.Same("the count of "+place.String(), env.CountIn(&found, place), env.LargeJob)
			e.Same("how many payloads it has", len(*env.PayloadsIn(&found, place)), 0)
		}
		e.Same("where the payloads begin",
			found.Next, []ports.PayloadCursor{{}, {Place: ports.PlaceClaimed}, {Place: ports.PlaceDead}})
	}
}

func findCounts(e *env.Env) {
	inAllPlaces(e, "a", env.Tied(3)...)
	places := []ports.Place{ports.PlaceQueued, ports.PlaceClaimed, ports.PlaceDead}

	for most, want := range map[int]int{0: 3, -1: 0, 1: 1, 2: 2, 3: 3, 4: 3} {
		r := ports.FindRequest{Queue: env.Orders, ID: "a", Payloads: 2, MaxCount: most}
		found := e.FindSome(r)

		for _, place := range places {
			e.Same(fmt.Sprintf("the payloads of %v, counted to %d, and how many come", place, most),
				[]int{env.CountIn(&found, place), len(*env.PayloadsIn(&found, place))}, []int{want, 2})
		}

		e.Same("how many places have more", len(found.Next), len(places))
		for _, next := range found.Next {
			r.After = &next
			found := e.FindSome(r)
			e.Same(
				fmt.Sprintf("the payloads of %v behind a cursor, counted to %d, and how many come", next.Place, most),
				[]int{env.CountIn(&found, next.Place), len(*env.PayloadsIn(&found, next.Place)), len(found.Next)},
				[]int{want, 1, 0},
			)
		}

		r.After, r.Payloads = nil, 0
		found = e.FindSome(r)
		e.Same(fmt.Sprintf("where payloads begin that are not asked for, counted to %d", most), found.Next,
			[]ports.PayloadCursor{{}, {Place: ports.PlaceClaimed}, {Place: ports.PlaceDead}})
	}
}

func findBounded(e *env.Env) {
	all := env.Tied(core.MaxTurnPayloads + 500)
	e.PushList("a", all)
	found := e.FindSome(ports.FindRequest{Queue: env.Orders, ID: "a", Payloads: env.AllPayloads})
	e.Same("the first payloads", env.Brief(found.Queued.Payloads), env.Brief(all[:core.MaxTurnPayloads]))
	e.Same("the count", found.Queued.Count, len(all))
	e.Same("how many cursors there are", len(found.Next), 1)
	e.Same("all payloads", env.Brief(e.Queued("a").Payloads), env.Brief(all))
}

func findShared(e *env.Env) {
	all := env.Tied(400)
	inAllPlaces(e, "a", all...)

	found := e.FindSome(ports.FindRequest{Queue: env.Orders, ID: "a", Payloads: core.MaxTurnPayloads})
	e.Same("the queued payloads", env.Brief(found.Queued.Payloads), env.Brief(all))
	e.Same("the claimed payloads", env.Brief(found.Claim.Payloads), env.Brief(all))
	e.Same("the dead payloads", env.Brief(found.DeadLetter.Payloads), env.Brief(all[:200]))
	e.Same("where the rest begins", found.Next, []ports.PayloadCursor{{Place: ports.PlaceDead, Score: 66.5, Skip: 2}})
	e.Same("all dead payloads", env.Brief(e.DeadLetter("a").Payloads), env.Brief(all))

	found = e.FindSome(ports.FindRequest{Queue: env.Orders, ID: "a", Payloads: 10})
	for _, place := range []ports.Place{ports.PlaceQueued, ports.PlaceClaimed, ports.PlaceDead} {
		e.Same("ten of "+place.String(), env.Brief(*env.PayloadsIn(&found, place)), env.Brief(all[:10]))
	}
	e.Same("where the rest of each begins", found.Next, []ports.PayloadCursor{
		{Place: ports.PlaceQueued, Score: 3.5, Skip: 1}, {Place: ports.PlaceClaimed, Score: 3.5, Skip: 1},
		{Place: ports.PlaceDead, Score: 3.5, Skip: 1},
	})
}

func findStays(e *env.Env) {
	for _, n := range []int{5, env.LargeJob} {
		id, all := fmt.Sprintf("of-%d", n), env.Tied(n)
		e.PushLarge(id, all...)
		e.ByIDs(e.Store.Bury, id)

		r := ports.FindRequest{Queue: env.Orders, ID: id, Payloads: 4} // three of 0.5, one of 1.5
		first := e.FindSome(r)
		if len(first.Next) != 1 {
			e.Errorf("Next is %+v, want one cursor", first.Next)
			return
		}

		r.After, r.Payloads = &first.Next[0], core.MaxTurnPayloads
		e.ByRefs(e.Store.Purge, env.Parts(id, string(all[0].Data), string(all[1].Data)))
		e.PushLarge(id, env.WithScore(core.Payload{Data: []byte("lowest")}, -3, "new"))
		e.ByIDs(e.Store.Bury, id)

		found := e.FindSome(r)
		e.Same("the payloads that follow", found.DeadLetter.Payloads, all[4:])
		e.Same("the count", found.DeadLetter.Count, n-1)
	}
}

func findGone(e *env.Env) {
	all := env.Tied(env.LargeJob)
	e.PushLarge("a", all...)
	e.ByIDs(e.Store.Bury, "a")
	e.ByRefs(e.Store.Purge, env.Parts("a", string(all[3].Data), string(all[4].Data), string(all[5].Data)))

	after := ports.PayloadCursor{Place: ports.PlaceDead, Score: 1.5, Skip: 3}
	found := e.FindSome(ports.FindRequest{Queue: env.Orders, ID: "a", Payloads: core.MaxTurnPayloads, After: &after})
	e.Same("the payloads that follow", found.DeadLetter.Payloads, all[6:])

	for _, after.Skip = range []int{100, math.MaxInt32, math.MaxInt} {
		found = e.FindSome(ports.FindRequest{Queue: env.Orders, ID: "a", Payloads: core.MaxTurnPayloads, After: &after})
		e.Same(fmt.Sprintf("the payloads that follow %d of a score that is gone", after.Skip),
			found.DeadLetter.Payloads, all[6:])
	}

	after.Score = all[len(all)-1].Score
	found = e.FindSome(ports.FindRequest{Queue: env.Orders, ID: "a", Payloads: core.MaxTurnPayloads, After: &after})
	e.Same("the payloads that follow a hundred of the last score", len(found.DeadLetter.Payloads), 0)
	e.Same("the cursors behind them", len(found.Next), 0)
}

func findInvalid(e *env.Env) {
	e.PushLarge("a", env.Tied(1)...)
	for _, after := range []ports.PayloadCursor{
		{Place: ports.PlaceDead + 1}, {Skip: -1}, {Score: math.NaN(), Skip: 1}, {Score: math.Inf(1), Skip: 1},
		{Score: math.Inf(-1)},
	} {
		_, err := e.Store.Find(e.Ctx, ports.FindRequest{Queue: env.Orders, ID: "a", Payloads: 1, After: &after})
		e.Refused(fmt.Sprintf("Find behind %+v", after), err, ports.ErrInvalidRequest)
	}
}

const (
	ruleAhead = "Standing: Ahead is the number of due jobs of the shard " +
		"that are claimed before the queued one, by (PerformAt, id)"
	ruleFirst = "Standing: Alone is the id of another job that runs alone, and before the queued one"
)

func standingCases() []env.Case {
	return []env.Case{
		{Name: "counts the jobs ahead", Rule: ruleAhead, Check: standingAhead},
		{Name: "counts nothing for a job that is claimed, absent or not due", Rule: ruleAhead, Check: standingNone},
		{Name: "counts at most MaxAhead", Rule: "Standing: Ahead is at most MaxAhead", Check: standingFar},
		{Name: "skips claimed ids", Rule: ruleAhead, Check: standingClaimed},
		{Name: "names a claimed job that runs alone", Rule: ruleFirst, Check: standingAloneClaimed},
		{Name: "names a job that runs alone and is due first", Rule: ruleFirst, Check: standingAloneFirst},
		{
			Name: "shows the lease",
			Rule: "Standing: Owner, Token and ExpiresAt are those of the shard's lease; " +
				"all zero if the lease was released",
			Check: standingLease,
		},
		{Name: "shows a pause", Rule: "Standing: Paused reports whether the queue is paused", Check: standingPaused},
	}
}

// stands checks the Standing of an id.
func stands(e *env.Env, id string, ahead int, alone string) {
	e.TB.Helper()
	st := e.Find(id).Standing
	e.Same("what is ahead of "+id, st.Ahead, ahead)
	e.Same("what runs alone before "+id, st.Alone, alone)
	e.Same("the time", st.Now, e.Now())
}

func standingAhead(e *env.Env) {
	now := e.Now()
	e.Push(env.EntryAt("late", "p", 1, now-3), env.EntryAt("b", "p", 1, now-2),
		env.EntryAt("a", "p", 1, now-2), env.EntryAt("c", "p", 1, now))
	for i, id := range []string{"late", "a", "b", "c"} {
		stands(e, id, i, "")
	}
	e.Push(env.EntryAt("last", "p", 1, now+1))
	stands(e, "last", 0, "")
	e.Clock.Advance(time.Microsecond)
	stands(e, "last", 4, "")
}

func standingNone(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	e.Same("the jobs claimed", env.IDs(h.Claim(1)), []string{"a"})
	e.PushIDs("a")
	e.Push(env.EntryAt("c", "p", 1, e.Now()+1))
	for _, id := range []string{"a", "c", "nowhere"} {
		stands(e, id, 0, "")
	}
}

func standingFar(e *env.Env) {
	var entries []core.Entry
	for i := range ports.MaxAhead + 2 {
		entries = append(entries, env.Entry(fmt.Sprintf("job-%04d", i), "p", 1))
	}
	for len(entries) > 0 {
		n := min(len(entries), 500)
		e.Push(entries[:n]...)
		entries = entries[n:]
	}
	stands(e, fmt.Sprintf("job-%04d", ports.MaxAhead-1), ports.MaxAhead-1, "")
	stands(e, fmt.Sprintf("job-%04d", ports.MaxAhead+1), ports.MaxAhead, "")
}

func standingClaimed(e *env.Env) {
	e.PushIDs("a", "b", "c")
	h := e.Acquire("n1")
	h.Claim(2)
	e.PushIDs("a", "b")
	stands(e, "c", 0, "")
	e.Same("the jobs of the shard that are claimed", e.Find("c").Standing.Claimed, 2)
}

func standingAloneClaimed(e *env.Env) {
	e.PlaceAlone("x", 10)
	e.Push(env.EntryAt("a", "p", 1, 20), env.EntryAt("x2", "p", 1, 30))
	h := e.Acquire("n1")
	e.Same("the jobs claimed", env.IDs(h.Claim(10)), []string{"x"})
	stands(e, "a", 0, "x")
	stands(e, "x2", 1, "x")
	stands(e, "x", 0, "")
}

func standingAloneFirst(e *env.Env) {
	e.PlaceAlone("alone", env.Start.Add(time.Hour))
	e.PushIDs("a")
	e.Same("the jobs claimed", env.IDs(e.Acquire("n1").Claim(10)), []string{"a"})
	e.Clock.Advance(time.Hour + time.Second)
	e.Push(env.EntryAt("b", "p", 1, e.Now()))
	stands(e, "b", 1, "alone")
	stands(e, "alone", 0, "")
}

func standingLease(e *env.Env) {
	e.PushIDs("a")
	lease := func() ports.Standing {
		st := e.Find("a").Standing
		return ports.Standing{Owner: st.Owner, Token: st.Token, ExpiresAt: st.ExpiresAt}
	}
	e.Same("no lease", lease(), ports.Standing{})
	h := e.Acquire("n1")
	e.Same("the lease",
		lease(), ports.Standing{Owner: "n1", Token: h.Lease.Token, ExpiresAt: e.Stats(env.Orders).Shards[0].ExpiresAt})
	h.Release()
	e.Same("a released lease", lease(), ports.Standing{})
}

func standingPaused(e *env.Env) {
	e.PushIDs("a")
	e.Pause(env.Orders)
	e.Same("whether it is paused", e.Find("a").Standing.Paused, true)
	e.Resume(env.Orders)
	e.Same("whether it is paused after it", e.Find("a").Standing.Paused, false)
}
