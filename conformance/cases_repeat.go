package conformance

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleAgain = "Turn: last: a repeat: apply, count and claim nothing, ignore all other fields of the request except TTL, renew, and return the jobs that still have this receipt in their first order"

const ruleResent = "Turn: a Resent turn always uses up its number, so that its first call is a repeat or stale if it arrives late"

// repeatCases are about a turn whose reply was lost.
func repeatCases() []namedCase {
	return []namedCase{
		{"returns the same claims in their first order", ruleAgain, repeatGivesClaims},
		{"reports that it is a repeat", "TurnReply: Repeat reports whether a turn of this number had been carried out before", repeatSaysSo},
		{"of a turn that found nothing uses up its number", ruleResent, repeatUsesNumber},
		{"leaves nothing for a first call that arrives late", ruleResent, repeatBeforeFirst},
		{"is stale after the next turn", "Turn: below last: ErrStaleTurn, nothing is written", repeatStale},
		{"begins nothing", ruleAgain, repeatBeginsNothing},
		{"returns no claims of other turns", ruleAgain, repeatGivesOwn},
		{"returns split claims as they were", ruleAgain, repeatGivesCut},
		{"claims nothing more", ruleAgain, repeatClaimsNothing},
		{"applies nothing twice", ruleAgain, repeatAppliesNothing},
		{"counts nothing twice", ruleAgain, repeatCountsNothing},
		{"ignores the rest of the request", ruleAgain, repeatIgnores},
		{"renews for its TTL", ruleAgain, repeatRenews},
		{"reports nothing skipped", "Turn: a repeat returns no Skipped, Deferred or NotBegun", repeatSkipsNothing},
		{"returns claims while the queue is paused", ruleAgain, repeatWhilePaused},
		{"works after the expiry", "Consumer: a late call works until another owner acquires the shard", repeatLate},
	}
}

func repeatGivesClaims(e *env) {
	e.push(entryAt("c", "p", 1, 5), entryAt("b", "p", 1, 7), entryAt("a", "p", 1, 6), entryAt("d", "p", 1, 7))
	h := e.acquire("n1")
	r := h.request(10)
	first := h.send(r).Claims
	e.same("the claims", ids(first), []string{"c", "a", "b", "d"})
	for range 2 {
		again := h.send(r)
		e.same("the claims again", again.Claims, first)
		e.same("the number", again.Last, r.Number)
	}
}

func repeatSaysSo(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	r := h.request(1)
	e.reported("whether the first call is one", h.send(r).Repeat, false)
	r.Resent = true
	e.same("whether the second is one", h.send(r).Repeat, true)
	next := h.request(1, core.Settlement{ID: "never", Receipt: core.Receipt{Token: h.lease.Token, Number: 1}})
	e.reported("whether the next turn is one", h.send(next).Repeat, false)
	e.same("whether that repeated is one", h.send(next).Repeat, true)
}

func repeatUsesNumber(e *env) {
	h := e.acquire("n1")
	r := h.request(1)
	r.Resent = true
	reply := h.send(r)
	e.same("the number that was used", reply.Last, r.Number)
	e.same("how long the lease lasts", reply.Remaining, ttl)
	e.reported("whether it is a repeat", reply.Repeat, false)
	e.same("whether its repeat is one", h.send(r).Repeat, true)
}

// overtaken returns the first call of a turn, whose repeat has been delivered.
func overtaken(e *env) (h *holder, late ports.TurnRequest) {
	h = e.acquire("n1")
	late = h.request(1)
	again := late
	again.Resent = true
	h.send(again)
	return h, late
}

// repeatBeforeFirst delivers the first call of a turn after its repeat.
func repeatBeforeFirst(e *env) {
	h, late := overtaken(e)
	e.pushIDs("a")
	reply := h.send(late)
	e.same("whether the late call is a repeat", reply.Repeat, true)
	e.same("what the late call claims", reply.Claims, nil)
	e.same("the claimed job", e.claimed("a"), core.Claim{})
	h.settle(done(h.one()))
	e.same("processed", e.counts().Processed, int64(1))
}

func repeatStale(e *env) {
	h, late := overtaken(e)
	e.pushIDs("a", "b")
	c := h.one()
	e.unchanged("the late call", func() { h.refused("the late call", late, ports.ErrStaleTurn) })
	h.settle(done(c))
	e.same("the queued jobs", e.queuedIDs(), []string{"b"})
}

func repeatBeginsNothing(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	claims := h.claim(2)
	r := h.beginRequest(claims[0])
	r.Begin = append(r.Begin, core.ClaimRef{ID: "never", Receipt: claims[0].Receipt})
	e.reported("what has not begun", h.send(r).NotBegun, []int{1})
	r.Begin = []core.ClaimRef{claims[1].Ref()}
	again := h.send(r)
	e.same("what has not begun, of the repeat", again.NotBegun, nil)
	e.same("whether the other has begun", e.claimed("b").Begun, false)
}

func repeatGivesOwn(e *env) {
	e.pushIDs("a", "b", "c")
	e.acquire("n1").one()
	h := e.acquire("n1")
	h.orphans()
	h.one()
	r := h.request(1)
	claims := h.send(r).Claims
	e.same("the claims", ids(claims), []string{"c"})
	e.same("the claims again", h.send(r).Claims, claims)
}

func repeatGivesCut(e *env) {
	e.push(entry("a", "p", 1), entry("a", "q", 2), entry("a", "r", 3))
	h := e.acquire("n1")
	r := h.request(10)
	r.PerJob = 2
	first := h.send(r).Claims
	e.push(entry("a", "p", 0))
	r.PerJob = 1
	e.same("the claims again", h.send(r).Claims, first)
}

func repeatClaimsNothing(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	r := h.request(1)
	h.send(r)
	e.pushIDs("0")
	r.Want = 10
	e.same("the claims again", ids(h.send(r).Claims), []string{"a"})
	e.same("the queued jobs", e.queuedIDs(), []string{"0", "b"})
}

func repeatAppliesNothing(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	r := h.request(1, failed(h.one(), "boom", 0))
	claims := h.send(r).Claims
	e.same("the retries", claims[0].RetryCount, 0)
	e.unchanged("the turn repeated", func() { e.same("the claims again", h.send(r).Claims, claims) })
	e.same("the retries after the repeat", e.claimed("a").RetryCount, 0)
}

func repeatCountsNothing(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	claims := h.claim(2)
	r := h.request(0, done(claims[0]), failed(claims[1], "boom", time.Hour))
	h.send(r)
	h.send(r)
	counts := e.counts()
	e.same("processed and failed", [2]int64{counts.Processed, counts.Failed}, [2]int64{1, 1})
}

func repeatIgnores(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	r := h.request(1)
	claims := h.send(r).Claims
	e.unchanged("a repeat with other work", func() {
		r.Settlements, r.Want = []core.Settlement{done(claims[0])}, 2
		e.same("the claims again", h.send(r).Claims, claims)
	})
}

func repeatRenews(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	r := h.request(1)
	h.send(r)
	e.clock.Advance(20 * time.Second)
	r.TTL = time.Minute
	reply := h.send(r)
	e.same("how long the lease lasts", reply.Remaining, time.Minute)
	e.same("the store's clock", reply.Now, e.now())
	e.same("the lease's expiry", e.stats(orders).Shards[0].ExpiresAt, e.now().Add(time.Minute))
}

func repeatSkipsNothing(e *env) {
	h := e.acquire("n1")
	r := h.request(0, core.Settlement{ID: "never", Receipt: core.Receipt{Token: h.lease.Token, Number: 1}})
	e.reported("the skipped", h.send(r).Skipped, []int{0})
	e.reported("the skipped of the repeat", h.send(r).Skipped, nil)
}

func repeatWhilePaused(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	r := h.request(1)
	first := h.send(r).Claims
	e.must(e.store.Pause(e.ctx, orders), "Pause")
	again := h.send(r)
	e.same("the claims again", again.Claims, first)
	e.same("Paused of the repeat", again.Paused, true)
}

func repeatLate(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	r := h.request(1)
	first := h.send(r).Claims
	e.clock.Advance(10 * ttl)
	e.same("the claims again", h.send(r).Claims, first)
}
