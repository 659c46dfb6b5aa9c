package turn

import (
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleNotBegun = "Turn: a job to begin whose (ID, Receipt) is not claimed after the settlements " +
		"is reported as not begun"
	ruleOver = "ClaimView: LeaseOver reports whether the lease of the claim has expired, " +
		"was released, or passed to another owner"
)

// beginCases are about the evidence that a recovered job has run, and about the visible state of
// claims whose owner is gone.
func beginCases() []env.Case {
	return []env.Case{
		{Name: "is passed to the next owner", Rule: ruleBegin, Check: beginPasses},
		{Name: "is passed on however often the shard is acquired", Rule: ruleBegin, Check: beginPassesOn},
		{Name: "does not mark jobs that were only claimed", Rule: ruleBegin, Check: beginNotByClaim},
		{Name: "ends when the job is settled", Rule: ruleBegin, Check: beginEnds},
		{Name: "is done after the settlements of its turn", Rule: ruleNotBegun, Check: beginAfterSettle},
		{Name: "reports jobs that are not claimed", Rule: ruleNotBegun, Check: beginReports},
		{Name: "works in a turn that settles and claims", Rule: ruleBegin, Check: beginWithOthers},
		{
			Name:  "uses up the turn's number",
			Rule:  "Turn: last+1: settle, begin, renew, claim; the number is used up",
			Check: beginUsesNumber,
		},
		{Name: "counts nothing and renews", Rule: "Turn: last+1: settle, begin, renew, claim", Check: beginRenews},
		{
			Name:  "needs the lease",
			Rule:  "Turn: ErrLeaseLost if the owner or the token is not the shard's",
			Check: beginNeedsLease,
		},
		{
			Name:  "refuses too many jobs",
			Rule:  "TurnRequest.Validate: ErrInvalidRequest for too many jobs to begin",
			Check: beginInvalid,
		},
		{Name: "shows whether its lease has ended", Rule: ruleOver, Check: beginSeen},
		{
			Name:  "counts a recovery only for a job that began",
			Rule:  "RULES 4: Recoveries++ only if it had begun",
			Check: beginRecovered,
		},
	}
}

func beginPasses(e *env.Env) {
	e.PlaceRecovered(1, "r", 10)
	e.PushIDs("a")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	e.Reported("what has not begun", h.Begin(claims[0]).NotBegun, nil)
	claims[0].Begun = true
	e.Clock.Advance(env.TTL + time.Microsecond)
	e.Same("the jobs left", e.Acquire("n2").Orphans(), []core.Claim{claims[1], claims[0]})
}

func beginPassesOn(e *env.Env) {
	e.PlaceRecovered(2, "r", 10)
	h := e.Acquire("n1")
	c := h.One()
	h.Begin(c)
	c.Begun = true
	for _, owner := range []string{"n1", "n2", "n3"} {
		e.Clock.Advance(env.TTL + time.Microsecond)
		e.Same("the job left", e.Acquire(owner).Orphans(), []core.Claim{c})
	}
}

func beginNotByClaim(e *env.Env) {
	e.PlaceRecovered(1, "r", 10)
	c := e.Acquire("n1").One()
	e.Same("whether it has begun", c.Begun, false)
	e.Clock.Advance(env.TTL + time.Microsecond)
	e.Same("the job left", e.Acquire("n2").Orphans(), []core.Claim{c})
}

func beginEnds(e *env.Env) {
	e.PlaceRecovered(1, "r", 10)
	h := e.Acquire("n1")
	c := h.One()
	h.Begin(c)
	e.Same("whether it has begun when it is claimed again", h.One(env.Untouched(c)).Begun, false)
}

func beginAfterSettle(e *env.Env) {
	e.PlaceRecovered(1, "r", 10)
	h := e.Acquire("n1")
	c := h.One()
	r := h.BeginRequest(c)
	r.Settlements, r.Want = []core.Settlement{env.Untouched(c)}, 1
	reply := h.Send(r)
	e.Reported("what has not begun", reply.NotBegun, []int{0})
	e.Same("whether the new claim has begun", reply.Claims[0].Begun, false)
	e.Same("Begun of Find", e.Claimed("r").Begun, false)
}

func beginReports(e *env.Env) {
	e.PushIDs("a", "b")
	e.Push(env.EntryAt("queued", "p", 1, env.Start.Add(time.Hour)))
	h := e.Acquire("n1")
	claims := h.Claim(2)

	r := h.BeginRequest(claims...)
	other := claims[0].Ref()
	other.Receipt.Number++
	r.Begin = append([]core.ClaimRef{{ID: "never", Receipt: other.Receipt}, other}, r.Begin...)
	r.Begin = append(r.Begin, core.ClaimRef{ID: "queued", Receipt: claims[0].Receipt})

	e.Reported("what has not begun", h.Send(r).NotBegun, []int{0, 1, 4})
	e.Same("whether the claimed ones have begun",
		[2]bool{e.Claimed("a").Begun, e.Claimed("b").Begun}, [2]bool{true, true})
}

func beginWithOthers(e *env.Env) {
	e.PlaceRecovered(1, "r", 10)
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	r := h.BeginRequest(claims[0])
	r.Settlements, r.Want = []core.Settlement{env.Done(claims[1])}, 1
	reply := h.Send(r)
	e.Reported("what has not begun", reply.NotBegun, nil)
	e.Same("the claims", env.IDs(reply.Claims), []string{"b"})
	e.Same("processed", e.Counts().Processed, int64(1))
	e.Same("what has begun", [2]bool{e.Claimed("r").Begun, e.Claimed("b").Begun}, [2]bool{true, false})
}

func beginUsesNumber(e *env.Env) {
	e.PlaceRecovered(1, "r", 10)
	h := e.Acquire("n1")
	r := h.BeginRequest(h.One())
	e.Same("the number", h.Send(r).Last, r.Number)
	r = h.Request(0)
	r.Begin = []core.ClaimRef{{ID: "never", Receipt: core.Receipt{Token: h.Lease.Token, Number: 1}}}
	e.Same("the number of a turn that begins nothing", h.Send(r).Last, r.Number)
}

func beginRenews(e *env.Env) {
	e.PlaceRecovered(1, "r", 10)
	h := e.Acquire("n1")
	c := h.One()
	before := e.Counts()
	e.Clock.Advance(env.TTL / 2)
	e.Same("how long the lease lasts", h.Begin(c).Remaining, env.TTL)
	e.Same("the counts", e.Counts(), before)
}

func beginNeedsLease(e *env.Env) {
	e.PlaceRecovered(1, "r", 10)
	h := e.Acquire("n1")
	c := h.One()
	e.Acquire("n1")
	e.Unchanged("a turn of an older lease", func() {
		h.Refused("Turn of an older lease", h.BeginRequest(c), ports.ErrLeaseLost)
	})
}

func beginInvalid(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	c := h.One()
	r := h.BeginRequest()
	for range core.MaxTurnJobs + 1 {
		r.Begin = append(r.Begin, c.Ref())
	}
	e.Unchanged("a refused turn", func() { h.Refused("Turn with too many jobs to begin", r, ports.ErrInvalidRequest) })
}

func beginSeen(e *env.Env) {
	e.PlaceRecovered(1, "r", 10)
	e.PushIDs("a")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	h.Begin(claims[0])

	want := func(when string, until core.Instant) {
		e.TB.Helper()
		over := until == 0
		for _, c := range e.Snapshot(env.Orders).Claims {
			e.Same("whether the lease of "+c.ID+" is over "+when, c.LeaseOver, over)
			e.Same("the end of the lease of "+c.ID+" "+when, c.LeaseUntil, until)
			e.Same("LeaseUntil of Find for "+c.ID+" "+when, e.Find(c.ID).Claim.LeaseUntil, until)
			e.Same("whether "+c.ID+" has begun", c.Begun, c.ID == "r")
			e.Same("LeaseOver of Find for "+c.ID+" "+when, e.Find(c.ID).Claim.LeaseOver, over)
		}
	}

	want("while it lasts", e.Now().Add(env.TTL))
	e.Clock.Advance(env.TTL)
	want("when it has run out", 0)

	h.Renew()
	want("after a late renewal", e.Now().Add(env.TTL))

	h.Release()
	want("after its release", 0)

	e.Acquire("n2")
	want("when another has the shard", 0)
}

func beginRecovered(e *env.Env) {
	e.PlaceRecovered(1, "begun", 10)
	e.PlaceRecovered(1, "claimed", 9)
	h := e.Acquire("n1")
	h.Begin(h.Claim(2)[1])
	e.Clock.Advance(env.TTL + time.Microsecond)
	h = e.Acquire("n2")
	h.Settle(env.SettleAll(h.Orphans(), env.Recovered)...)
	e.Same("the recoveries of the one that had begun", e.Queued("begun").Recoveries, 2)
	e.Same("the recoveries of the other", e.Queued("claimed").Recoveries, 1)
}
