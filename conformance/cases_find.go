package conformance

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleFindBound = "FindRequest: at most Payloads of each place, and at most core.MaxTurnPayloads payloads and core.MaxStepBytes of all together; the very first payload is always returned"
	ruleFindNext  = "Found: Next has the cursor of each place with more payloads than were returned"
	ruleFindStays = "PayloadCursor: payloads that stay are returned once, even if payloads of other scores come and go"
)

// findCases are about the payloads that Find returns.
func findCases() []namedCase {
	return []namedCase{
		{"returns payloads in pages of every size", ruleFindNext, findPages},
		{"returns no payload if none is asked for", ruleFindBound, findNone},
		{"returns at most the payloads that one call may return", ruleFindBound, findBounded},
		{"shares its bound among the places", ruleFindBound, findShared},
		{"returns each payload that stays once", ruleFindStays, findStays},
		{"continues after a score that was removed", ruleFindStays, findGone},
		{"counts up to the limit asked for", "FindRequest: MaxCount is the largest number of payloads to count in each place", findCounts},
		{"refuses a cursor that no reply can have", "FindRequest.Validate", findInvalid},
	}
}

// findByteCases are about more bytes than one call may return, and about ids with very many
// payloads.
func findByteCases() []namedCase {
	return []namedCase{
		{"returns at most the bytes that one call may return", ruleFindBound, findBytes},
		{"returns the first payload whatever its size", ruleFindBound, findFirst},
		{"finds an id of 100,000 payloads", ruleFindBound, findMany},
		{"finds an id of 64 MiB", ruleFindBound, findHuge},
	}
}

// foundPages requests the payloads of a place, n at a time, until Find reports no more. It checks
// that each page has the total number of payloads, and no payload of another place.
func (e *env) foundPages(id string, place ports.Place, n, count int) (pages [][]core.Payload) {
	e.tb.Helper()
	after := ports.PayloadCursor{Place: place}
	for range 2 + 2*count {
		found := e.findSome(ports.FindRequest{Queue: orders, ID: id, Payloads: n, After: &after})
		e.same("the count of "+place.String(), countIn(&found, place), count)
		for _, other := range []ports.Place{ports.PlaceQueued, ports.PlaceClaimed, ports.PlaceDead} {
			if payloads := *payloadsIn(&found, other); other != place && len(payloads) > 0 {
				e.errorf("a page of %v has %d payloads of %v", place, len(payloads), other)
			}
		}
		pages = append(pages, *payloadsIn(&found, place))
		if len(found.Next) == 0 {
			return pages
		}
		if len(found.Next) != 1 || found.Next[0].Place != place {
			e.errorf("Next of a page of %v is %+v, want one cursor of it", place, found.Next)
			return pages
		}
		after = found.Next[0]
	}
	e.errorf("the pages of %v don't end", place)
	return pages
}

func countIn(found *ports.Found, place ports.Place) int {
	switch {
	case place == ports.PlaceQueued && found.Queued != nil:
		return found.Queued.Count
	case place == ports.PlaceClaimed && found.Claim != nil:
		return found.Claim.Count
	case place == ports.PlaceDead && found.DeadLetter != nil:
		return found.DeadLetter.Count
	}
	return 0
}

// tied returns n payloads, each with a Meta. Three at a time have the same score.
func tied(n int) []core.Payload {
	all := make([]core.Payload, n)
	for i := range all {
		all[i] = core.Payload{Data: fmt.Appendf(nil, "%06d", i), Score: float64(i/3) + 0.5, Meta: fmt.Appendf(nil, "meta %d", i)}
	}
	return all
}

// inAllPlaces puts the payloads of an id into the queue, a claim and the morgue. end removes them
// from the queue and the claim.
func inAllPlaces(e *env, id string, payloads ...core.Payload) (end func()) {
	e.tb.Helper()
	pushLarge(e, id, payloads...)
	e.byIDs(e.store.Bury, id)
	pushLarge(e, id, payloads...)
	h := e.acquire("n1")
	r := h.request(1)
	r.PerJob = core.MaxTurnPayloads
	c := h.only(r)
	pushLarge(e, id, payloads...)
	return func() {
		e.byIDs(e.store.Delete, id)
		h.settle(dropped(c))
		h.release()
	}
}

func findPages(e *env) {
	for _, n := range []int{1, 5, largeJob} {
		id, all := fmt.Sprintf("of-%d", n), tied(n)
		end := inAllPlaces(e, id, all...)
		for _, place := range []ports.Place{ports.PlaceQueued, ports.PlaceClaimed, ports.PlaceDead} {
			for size := 1; size <= n+1; size++ {
				pages := e.foundPages(id, place, size, n)
				e.same(fmt.Sprintf("%d payloads of %v, %d a page", n, place, size), slices.Concat(pages...), all)
				for i, page := range pages {
					e.same(fmt.Sprintf("the length of page %d of %v", i, place), len(page), min(size, n-i*size))
				}
			}
		}
		end()
	}
}

func findNone(e *env) {
	all := tied(largeJob)
	inAllPlaces(e, "a", all...)
	for _, n := range []int{0, -1} {
		found := e.findSome(ports.FindRequest{Queue: orders, ID: "a", Payloads: n})
		for _, place := range []ports.Place{ports.PlaceQueued, ports.PlaceClaimed, ports.PlaceDead} {
			e.same("the count of "+place.String(), countIn(&found, place), largeJob)
			e.same("how many payloads it has", len(*payloadsIn(&found, place)), 0)
		}
		e.same("where the payloads begin", found.Next, []ports.PayloadCursor{{}, {Place: ports.PlaceClaimed}, {Place: ports.PlaceDead}})
	}
}

func findCounts(e *env) {
	inAllPlaces(e, "a", tied(3)...)
	places := []ports.Place{ports.PlaceQueued, ports.PlaceClaimed, ports.PlaceDead}
	for most, want := range map[int]int{0: 3, -1: 0, 1: 1, 2: 2, 3: 3, 4: 3} {
		r := ports.FindRequest{Queue: orders, ID: "a", Payloads: 2, MaxCount: most}
		found := e.findSome(r)
		for _, place := range places {
			e.same(fmt.Sprintf("the payloads of %v, counted to %d, and how many come", place, most),
				[]int{countIn(&found, place), len(*payloadsIn(&found, place))}, []int{want, 2})
		}
		e.same("how many places have more", len(found.Next), len(places))
		for _, next := range found.Next {
			r.After = &next
			found := e.findSome(r)
			e.same(fmt.Sprintf("the payloads of %v behind a cursor, counted to %d, and how many come", next.Place, most),
				[]int{countIn(&found, next.Place), len(*payloadsIn(&found, next.Place)), len(found.Next)}, []int{want, 1, 0})
		}
		r.After, r.Payloads = nil, 0
		found = e.findSome(r)
		e.same(fmt.Sprintf("where payloads begin that are not asked for, counted to %d", most), found.Next,
			[]ports.PayloadCursor{{}, {Place: ports.PlaceClaimed}, {Place: ports.PlaceDead}})
	}
}

func findBounded(e *env) {
	all := tied(core.MaxTurnPayloads + 500)
	e.pushList("a", all)
	found := e.findSome(ports.FindRequest{Queue: orders, ID: "a", Payloads: allPayloads})
	e.same("the first payloads", brief(found.Queued.Payloads), brief(all[:core.MaxTurnPayloads]))
	e.same("the count", found.Queued.Count, len(all))
	e.same("how many cursors there are", len(found.Next), 1)
	e.same("all payloads", brief(e.queued("a").Payloads), brief(all))
}

func findShared(e *env) {
	all := tied(400)
	inAllPlaces(e, "a", all...)
	found := e.findSome(ports.FindRequest{Queue: orders, ID: "a", Payloads: core.MaxTurnPayloads})
	e.same("the queued payloads", brief(found.Queued.Payloads), brief(all))
	e.same("the claimed payloads", brief(found.Claim.Payloads), brief(all))
	e.same("the dead payloads", brief(found.DeadLetter.Payloads), brief(all[:200]))
	e.same("where the rest begins", found.Next, []ports.PayloadCursor{{Place: ports.PlaceDead, Score: 66.5, Skip: 2}})
	e.same("all dead payloads", brief(e.deadLetter("a").Payloads), brief(all))
	found = e.findSome(ports.FindRequest{Queue: orders, ID: "a", Payloads: 10})
	for _, place := range []ports.Place{ports.PlaceQueued, ports.PlaceClaimed, ports.PlaceDead} {
		e.same("ten of "+place.String(), brief(*payloadsIn(&found, place)), brief(all[:10]))
	}
	e.same("where the rest of each begins", found.Next, []ports.PayloadCursor{
		{Place: ports.PlaceQueued, Score: 3.5, Skip: 1}, {Place: ports.PlaceClaimed, Score: 3.5, Skip: 1}, {Place: ports.PlaceDead, Score: 3.5, Skip: 1},
	})
}

func findStays(e *env) {
	for _, n := range []int{5, largeJob} {
		id, all := fmt.Sprintf("of-%d", n), tied(n)
		pushLarge(e, id, all...)
		e.byIDs(e.store.Bury, id)
		r := ports.FindRequest{Queue: orders, ID: id, Payloads: 4} // three of 0.5, one of 1.5
		first := e.findSome(r)
		if len(first.Next) != 1 {
			e.errorf("Next is %+v, want one cursor", first.Next)
			return
		}
		r.After, r.Payloads = &first.Next[0], core.MaxTurnPayloads
		e.byRefs(e.store.Purge, parts(id, string(all[0].Data), string(all[1].Data)))
		pushLarge(e, id, withScore(core.Payload{Data: []byte("lowest")}, -3, "new"))
		e.byIDs(e.store.Bury, id)
		found := e.findSome(r)
		e.same("the payloads that follow", found.DeadLetter.Payloads, all[4:])
		e.same("the count", found.DeadLetter.Count, n-1)
	}
}

func findGone(e *env) {
	all := tied(largeJob)
	pushLarge(e, "a", all...)
	e.byIDs(e.store.Bury, "a")
	e.byRefs(e.store.Purge, parts("a", string(all[3].Data), string(all[4].Data), string(all[5].Data)))
	after := ports.PayloadCursor{Place: ports.PlaceDead, Score: 1.5, Skip: 3}
	found := e.findSome(ports.FindRequest{Queue: orders, ID: "a", Payloads: core.MaxTurnPayloads, After: &after})
	e.same("the payloads that follow", found.DeadLetter.Payloads, all[6:])
	for _, after.Skip = range []int{100, math.MaxInt32, math.MaxInt} {
		found = e.findSome(ports.FindRequest{Queue: orders, ID: "a", Payloads: core.MaxTurnPayloads, After: &after})
		e.same(fmt.Sprintf("the payloads that follow %d of a score that is gone", after.Skip), found.DeadLetter.Payloads, all[6:])
	}
	after.Score = all[len(all)-1].Score
	found = e.findSome(ports.FindRequest{Queue: orders, ID: "a", Payloads: core.MaxTurnPayloads, After: &after})
	e.same("the payloads that follow a hundred of the last score", len(found.DeadLetter.Payloads), 0)
	e.same("the cursors behind them", len(found.Next), 0)
}

func findInvalid(e *env) {
	pushLarge(e, "a", tied(1)...)
	for _, after := range []ports.PayloadCursor{
		{Place: ports.PlaceDead + 1}, {Skip: -1}, {Score: math.NaN(), Skip: 1}, {Score: math.Inf(1), Skip: 1}, {Score: math.Inf(-1)},
	} {
		_, err := e.store.Find(e.ctx, ports.FindRequest{Queue: orders, ID: "a", Payloads: 1, After: &after})
		e.refused(fmt.Sprintf("Find behind %+v", after), err, ports.ErrInvalidRequest)
	}
}

// weighty returns n payloads of size bytes each.
func weighty(n, size int) []core.Payload { return volume{jobs: 1, payloads: n, size: size}.list() }

func findBytes(e *env) {
	all := weighty(20, 512<<10)
	e.pushList("a", all)
	found := e.findSome(ports.FindRequest{Queue: orders, ID: "a", Payloads: core.MaxTurnPayloads})
	e.same("the first payloads", brief(found.Queued.Payloads), brief(all[:16]))
	e.same("the count", found.Queued.Count, len(all))
	e.same("all payloads", brief(e.queued("a").Payloads), brief(all))
	buryParts(e, "a")
	found = e.findSome(ports.FindRequest{Queue: orders, ID: "a", Payloads: core.MaxTurnPayloads})
	e.same("the first dead payloads", brief(found.DeadLetter.Payloads), brief(all[:16]))
	e.same("all dead payloads", brief(e.deadLetter("a").Payloads), brief(all))
}

// buryParts buries a job that is too large for one step.
func buryParts(e *env, id string) {
	e.tb.Helper()
	for e.findSome(ports.FindRequest{Queue: orders, ID: id}).Queued != nil {
		e.byIDs(e.store.Bury, id)
	}
}

func findFirst(e *env) {
	all := weighty(3, core.MaxStepBytes+1)
	e.pushList("a", all)
	for i, page := range e.foundPages("a", ports.PlaceQueued, 2, len(all)) {
		e.same("a page", brief(page), brief(all[i:i+1]))
	}
}

// long skips the case under -short. effort completes the sentence "this case …".
func (e *env) long(effort string) {
	e.tb.Helper()
	if testing.Short() {
		e.tb.Skip("-short skips this case, which " + effort)
	}
}

func findMany(e *env) {
	e.long("pushes 100,000 payloads")
	all := tied(100_000)
	e.pushList("a", all)
	pages := e.foundPages("a", ports.PlaceQueued, allPayloads, len(all))
	e.same("how many pages there are", len(pages), 100)
	e.same("all payloads", brief(slices.Concat(pages...)), brief(all))
	buryParts(e, "a")
	pages = e.foundPages("a", ports.PlaceDead, allPayloads, len(all))
	e.same("how many pages of dead ones there are", len(pages), 100)
	e.same("all dead payloads", brief(slices.Concat(pages...)), brief(all))
}

func findHuge(e *env) {
	e.long("pushes 64 MiB")
	all := weighty(128, 512<<10)
	e.pushList("a", all)
	pages := e.foundPages("a", ports.PlaceQueued, allPayloads, len(all))
	e.same("how many pages there are", len(pages), 8)
	e.same("all payloads", brief(slices.Concat(pages...)), brief(all))
}

const (
	ruleAhead = "Standing: Ahead is the number of due jobs of the shard that are claimed before the queued one, by (PerformAt, id)"
	ruleFirst = "Standing: Alone is the id of another job that runs alone, and before the queued one"
)

func standingCases() []namedCase {
	return []namedCase{
		{"counts the jobs ahead", ruleAhead, standingAhead},
		{"counts nothing for a job that is claimed, absent or not due", ruleAhead, standingNone},
		{"counts at most MaxAhead", "Standing: Ahead is at most MaxAhead", standingFar},
		{"skips claimed ids", ruleAhead, standingClaimed},
		{"names a claimed job that runs alone", ruleFirst, standingAloneClaimed},
		{"names a job that runs alone and is due first", ruleFirst, standingAloneFirst},
		{"shows the lease", "Standing: Owner, Token and ExpiresAt are those of the shard's lease; all zero if the lease was released", standingLease},
		{"shows a pause", "Standing: Paused reports whether the queue is paused", standingPaused},
	}
}

// stands checks the Standing of an id.
func (e *env) stands(id string, ahead int, alone string) {
	e.tb.Helper()
	st := e.find(id).Standing
	e.same("what is ahead of "+id, st.Ahead, ahead)
	e.same("what runs alone before "+id, st.Alone, alone)
	e.same("the time", st.Now, e.now())
}

func standingAhead(e *env) {
	now := e.now()
	e.push(entryAt("late", "p", 1, now-3), entryAt("b", "p", 1, now-2), entryAt("a", "p", 1, now-2), entryAt("c", "p", 1, now))
	for i, id := range []string{"late", "a", "b", "c"} {
		e.stands(id, i, "")
	}
	e.push(entryAt("last", "p", 1, now+1))
	e.stands("last", 0, "")
	e.clock.Advance(time.Microsecond)
	e.stands("last", 4, "")
}

func standingNone(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	e.same("the jobs claimed", ids(h.claim(1)), []string{"a"})
	e.pushIDs("a")
	e.push(entryAt("c", "p", 1, e.now()+1))
	for _, id := range []string{"a", "c", "nowhere"} {
		e.stands(id, 0, "")
	}
}

func standingFar(e *env) {
	var entries []core.Entry
	for i := range ports.MaxAhead + 2 {
		entries = append(entries, entry(fmt.Sprintf("job-%04d", i), "p", 1))
	}
	for len(entries) > 0 {
		n := min(len(entries), 500)
		e.push(entries[:n]...)
		entries = entries[n:]
	}
	e.stands(fmt.Sprintf("job-%04d", ports.MaxAhead-1), ports.MaxAhead-1, "")
	e.stands(fmt.Sprintf("job-%04d", ports.MaxAhead+1), ports.MaxAhead, "")
}

func standingClaimed(e *env) {
	e.pushIDs("a", "b", "c")
	h := e.acquire("n1")
	h.claim(2)
	e.pushIDs("a", "b")
	e.stands("c", 0, "")
	e.same("the jobs of the shard that are claimed", e.find("c").Standing.Claimed, 2)
}

func standingAloneClaimed(e *env) {
	e.placeAlone("x", 10)
	e.push(entryAt("a", "p", 1, 20), entryAt("x2", "p", 1, 30))
	h := e.acquire("n1")
	e.same("the jobs claimed", ids(h.claim(10)), []string{"x"})
	e.stands("a", 0, "x")
	e.stands("x2", 1, "x")
	e.stands("x", 0, "")
}

func standingAloneFirst(e *env) {
	e.placeAlone("alone", start.Add(time.Hour))
	e.pushIDs("a")
	e.same("the jobs claimed", ids(e.acquire("n1").claim(10)), []string{"a"})
	e.clock.Advance(time.Hour + time.Second)
	e.push(entryAt("b", "p", 1, e.now()))
	e.stands("b", 1, "alone")
	e.stands("alone", 0, "")
}

func standingLease(e *env) {
	e.pushIDs("a")
	lease := func() ports.Standing {
		st := e.find("a").Standing
		return ports.Standing{Owner: st.Owner, Token: st.Token, ExpiresAt: st.ExpiresAt}
	}
	e.same("no lease", lease(), ports.Standing{})
	h := e.acquire("n1")
	e.same("the lease", lease(), ports.Standing{Owner: "n1", Token: h.lease.Token, ExpiresAt: e.stats(orders).Shards[0].ExpiresAt})
	h.release()
	e.same("a released lease", lease(), ports.Standing{})
}

func standingPaused(e *env) {
	e.pushIDs("a")
	e.pause(orders)
	e.same("whether it is paused", e.find("a").Standing.Paused, true)
	e.resume(orders)
	e.same("whether it is paused after it", e.find("a").Standing.Paused, false)
}
