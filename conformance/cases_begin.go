package conformance

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleNotBegun = "Turn: a job to begin whose (ID, Receipt) is not claimed after the settlements is reported as not begun"
	ruleOver     = "ClaimView: LeaseOver reports whether the lease of the claim has expired, was released, or passed to another owner"
)

// beginCases are about the evidence that a recovered job has run, and about the visible state of
// claims whose owner is gone.
func beginCases() []namedCase {
	return []namedCase{
		{"is passed to the next owner", ruleBegin, beginPasses},
		{"is passed on however often the shard is acquired", ruleBegin, beginPassesOn},
		{"does not mark jobs that were only claimed", ruleBegin, beginNotByClaim},
		{"ends when the job is settled", ruleBegin, beginEnds},
		{"is done after the settlements of its turn", ruleNotBegun, beginAfterSettle},
		{"reports jobs that are not claimed", ruleNotBegun, beginReports},
		{"works in a turn that settles and claims", ruleBegin, beginWithOthers},
		{"uses up the turn's number", "Turn: last+1: settle, begin, renew, claim; the number is used up", beginUsesNumber},
		{"counts nothing and renews", "Turn: last+1: settle, begin, renew, claim", beginRenews},
		{"needs the lease", "Turn: ErrLeaseLost if the owner or the token is not the shard's", beginNeedsLease},
		{"refuses too many jobs", "TurnRequest.Validate: ErrInvalidRequest for too many jobs to begin", beginInvalid},
		{"shows whether its lease has ended", ruleOver, beginSeen},
		{"counts a recovery only for a job that began", "RULES 4: Recoveries++ only if it had begun", beginRecovered},
	}
}

func beginPasses(e *env) {
	e.placeRecovered(1, "r", 10)
	e.pushIDs("a")
	h := e.acquire("n1")
	claims := h.claim(2)
	e.reported("what has not begun", h.begin(claims[0]).NotBegun, nil)
	claims[0].Begun = true
	e.clock.Advance(ttl + time.Microsecond)
	e.same("the jobs left", e.acquire("n2").orphans(), []core.Claim{claims[1], claims[0]})
}

func beginPassesOn(e *env) {
	e.placeRecovered(2, "r", 10)
	h := e.acquire("n1")
	c := h.one()
	h.begin(c)
	c.Begun = true
	for _, owner := range []string{"n1", "n2", "n3"} {
		e.clock.Advance(ttl + time.Microsecond)
		e.same("the job left", e.acquire(owner).orphans(), []core.Claim{c})
	}
}

func beginNotByClaim(e *env) {
	e.placeRecovered(1, "r", 10)
	c := e.acquire("n1").one()
	e.same("whether it has begun", c.Begun, false)
	e.clock.Advance(ttl + time.Microsecond)
	e.same("the job left", e.acquire("n2").orphans(), []core.Claim{c})
}

func beginEnds(e *env) {
	e.placeRecovered(1, "r", 10)
	h := e.acquire("n1")
	c := h.one()
	h.begin(c)
	e.same("whether it has begun when it is claimed again", h.one(untouched(c)).Begun, false)
}

func beginAfterSettle(e *env) {
	e.placeRecovered(1, "r", 10)
	h := e.acquire("n1")
	c := h.one()
	r := h.beginRequest(c)
	r.Settlements, r.Want = []core.Settlement{untouched(c)}, 1
	reply := h.send(r)
	e.reported("what has not begun", reply.NotBegun, []int{0})
	e.same("whether the new claim has begun", reply.Claims[0].Begun, false)
	e.same("Begun of Find", e.claimed("r").Begun, false)
}

func beginReports(e *env) {
	e.pushIDs("a", "b")
	e.push(entryAt("queued", "p", 1, start.Add(time.Hour)))
	h := e.acquire("n1")
	claims := h.claim(2)
	r := h.beginRequest(claims...)
	other := claims[0].Ref()
	other.Receipt.Number++
	r.Begin = append([]core.ClaimRef{{ID: "never", Receipt: other.Receipt}, other}, r.Begin...)
	r.Begin = append(r.Begin, core.ClaimRef{ID: "queued", Receipt: claims[0].Receipt})
	e.reported("what has not begun", h.send(r).NotBegun, []int{0, 1, 4})
	e.same("whether the claimed ones have begun", [2]bool{e.claimed("a").Begun, e.claimed("b").Begun}, [2]bool{true, true})
}

func beginWithOthers(e *env) {
	e.placeRecovered(1, "r", 10)
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	claims := h.claim(2)
	r := h.beginRequest(claims[0])
	r.Settlements, r.Want = []core.Settlement{done(claims[1])}, 1
	reply := h.send(r)
	e.reported("what has not begun", reply.NotBegun, nil)
	e.same("the claims", ids(reply.Claims), []string{"b"})
	e.same("processed", e.counts().Processed, int64(1))
	e.same("what has begun", [2]bool{e.claimed("r").Begun, e.claimed("b").Begun}, [2]bool{true, false})
}

func beginUsesNumber(e *env) {
	e.placeRecovered(1, "r", 10)
	h := e.acquire("n1")
	r := h.beginRequest(h.one())
	e.same("the number", h.send(r).Last, r.Number)
	r = h.request(0)
	r.Begin = []core.ClaimRef{{ID: "never", Receipt: core.Receipt{Token: h.lease.Token, Number: 1}}}
	e.same("the number of a turn that begins nothing", h.send(r).Last, r.Number)
}

func beginRenews(e *env) {
	e.placeRecovered(1, "r", 10)
	h := e.acquire("n1")
	c := h.one()
	before := e.counts()
	e.clock.Advance(ttl / 2)
	e.same("how long the lease lasts", h.begin(c).Remaining, ttl)
	e.same("the counts", e.counts(), before)
}

func beginNeedsLease(e *env) {
	e.placeRecovered(1, "r", 10)
	h := e.acquire("n1")
	c := h.one()
	e.acquire("n1")
	e.unchanged("a turn of an older lease", func() {
		h.refused("Turn of an older lease", h.beginRequest(c), ports.ErrLeaseLost)
	})
}

func beginInvalid(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	c := h.one()
	r := h.beginRequest()
	for range core.MaxTurnJobs + 1 {
		r.Begin = append(r.Begin, c.Ref())
	}
	e.unchanged("a refused turn", func() { h.refused("Turn with too many jobs to begin", r, ports.ErrInvalidRequest) })
}

func beginSeen(e *env) {
	e.placeRecovered(1, "r", 10)
	e.pushIDs("a")
	h := e.acquire("n1")
	claims := h.claim(2)
	h.begin(claims[0])
	want := func(when string, until core.Instant) {
		e.tb.Helper()
		over := until == 0
		for _, c := range e.snapshot(orders).Claims {
			e.same("whether the lease of "+c.ID+" is over "+when, c.LeaseOver, over)
			e.same("the end of the lease of "+c.ID+" "+when, c.LeaseUntil, until)
			e.same("LeaseUntil of Find for "+c.ID+" "+when, e.find(c.ID).Claim.LeaseUntil, until)
			e.same("whether "+c.ID+" has begun", c.Begun, c.ID == "r")
			e.same("LeaseOver of Find for "+c.ID+" "+when, e.find(c.ID).Claim.LeaseOver, over)
		}
	}
	want("while it lasts", e.now().Add(ttl))
	e.clock.Advance(ttl)
	want("when it has run out", 0)
	h.renew()
	want("after a late renewal", e.now().Add(ttl))
	h.release()
	want("after its release", 0)
	e.acquire("n2")
	want("when another has the shard", 0)
}

func beginRecovered(e *env) {
	e.placeRecovered(1, "begun", 10)
	e.placeRecovered(1, "claimed", 9)
	h := e.acquire("n1")
	h.begin(h.claim(2)[1])
	e.clock.Advance(ttl + time.Microsecond)
	h = e.acquire("n2")
	h.settle(settleAll(h.orphans(), recovered)...)
	e.same("the recoveries of the one that had begun", e.queued("begun").Recoveries, 2)
	e.same("the recoveries of the other", e.queued("claimed").Recoveries, 1)
}
