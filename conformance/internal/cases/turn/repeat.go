package turn

import (
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleAgain = "Turn: last: a repeat: apply, count and claim nothing, " +
	"ignore all other fields of the request except TTL, renew, " +
	"and return the jobs that still have this receipt in their first order"

const ruleResent = "Turn: a Resent turn always uses up its number, " +
	"so that its first call is a repeat or stale if it arrives late"

// repeatCases are about a turn whose reply was lost.
func repeatCases() []env.Case {
	return []env.Case{
		{Name: "returns the same claims in their first order", Rule: ruleAgain, Check: repeatGivesClaims},
		{
			Name:  "reports that it is a repeat",
			Rule:  "TurnReply: Repeat reports whether a turn of this number had been carried out before",
			Check: repeatSaysSo,
		},
		{Name: "of a turn that found nothing uses up its number", Rule: ruleResent, Check: repeatUsesNumber},
		{Name: "leaves nothing for a first call that arrives late", Rule: ruleResent, Check: repeatBeforeFirst},
		{
			Name:  "is stale after the next turn",
			Rule:  "Turn: below last: ErrStaleTurn, nothing is written",
			Check: repeatStale,
		},
		{Name: "begins nothing", Rule: ruleAgain, Check: repeatBeginsNothing},
		{Name: "returns no claims of other turns", Rule: ruleAgain, Check: repeatGivesOwn},
		{Name: "returns split claims as they were", Rule: ruleAgain, Check: repeatGivesCut},
		{Name: "claims nothing more", Rule: ruleAgain, Check: repeatClaimsNothing},
		{Name: "applies nothing twice", Rule: ruleAgain, Check: repeatAppliesNothing},
		{Name: "counts nothing twice", Rule: ruleAgain, Check: repeatCountsNothing},
		{Name: "ignores the rest of the request", Rule: ruleAgain, Check: repeatIgnores},
		{Name: "renews for its TTL", Rule: ruleAgain, Check: repeatRenews},
		{
			Name:  "reports nothing skipped",
			Rule:  "Turn: a repeat returns no Skipped, Deferred or NotBegun",
			Check: repeatSkipsNothing,
		},
		{Name: "returns claims while the queue is paused", Rule: ruleAgain, Check: repeatWhilePaused},
		{
			Name:  "works after the expiry",
			Rule:  "Consumer: a late call works until another owner acquires the shard",
			Check: repeatLate,
		},
	}
}

func repeatGivesClaims(e *env.Env) {
	e.Push(env.EntryAt("c", "p", 1, 5), env.EntryAt("b", "p", 1, 7),
		env.EntryAt("a", "p", 1, 6), env.EntryAt("d", "p", 1, 7))
	h := e.Acquire("n1")
	r := h.Request(10)
	first := h.Send(r).Claims
	e.Same("the claims", env.IDs(first), []string{"c", "a", "b", "d"})
	for range 2 {
		again := h.Send(r)
		e.Same("the claims again", again.Claims, first)
		e.Same("the number", again.Last, r.Number)
	}
}

func repeatSaysSo(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	r := h.Request(1)
	e.Reported("whether the first call is one", h.Send(r).Repeat, false)
	r.Resent = true
	e.Same("whether the second is one", h.Send(r).Repeat, true)
	next := h.Request(1, core.Settlement{ID: "never", Receipt: core.Receipt{Token: h.Lease.Token, Number: 1}})
	e.Reported("whether the next turn is one", h.Send(next).Repeat, false)
	e.Same("whether that repeated is one", h.Send(next).Repeat, true)
}

func repeatUsesNumber(e *env.Env) {
	h := e.Acquire("n1")
	r := h.Request(1)
	r.Resent = true
	reply := h.Send(r)
	e.Same("the number that was used", reply.Last, r.Number)
	e.Same("how long the lease lasts", reply.Remaining, env.TTL)
	e.Reported("whether it is a repeat", reply.Repeat, false)
	e.Same("whether its repeat is one", h.Send(r).Repeat, true)
}

// overtaken returns the first call of a turn, whose repeat has been delivered.
func overtaken(e *env.Env) (h *env.Holder, late ports.TurnRequest) {
	h = e.Acquire("n1")
	late = h.Request(1)
	again := late
	again.Resent = true
	h.Send(again)
	return h, late
}

// repeatBeforeFirst delivers the first call of a turn after its repeat.
func repeatBeforeFirst(e *env.Env) {
	h, late := overtaken(e)
	e.PushIDs("a")
	reply := h.Send(late)
	e.Same("whether the late call is a repeat", reply.Repeat, true)
	e.Same("what the late call claims", reply.Claims, nil)
	e.Same("the claimed job", e.Claimed("a"), core.Claim{})
	h.Settle(env.Done(h.One()))
	e.Same("processed", e.Counts().Processed, int64(1))
}

func repeatStale(e *env.Env) {
	h, late := overtaken(e)
	e.PushIDs("a", "b")
	c := h.One()
	e.Unchanged("the late call", func() { h.Refused("the late call", late, ports.ErrStaleTurn) })
	h.Settle(env.Done(c))
	e.Same("the queued jobs", e.QueuedIDs(), []string{"b"})
}

func repeatBeginsNothing(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	r := h.BeginRequest(claims[0])
	r.Begin = append(r.Begin, core.ClaimRef{ID: "never", Receipt: claims[0].Receipt})
	e.Reported("what has not begun", h.Send(r).NotBegun, []int{1})
	r.Begin = []core.ClaimRef{claims[1].Ref()}
	again := h.Send(r)
	e.Same("what has not begun, of the repeat", again.NotBegun, nil)
	e.Same("whether the other has begun", e.Claimed("b").Begun, false)
}

func repeatGivesOwn(e *env.Env) {
	e.PushIDs("a", "b", "c")
	e.Acquire("n1").One()
	h := e.Acquire("n1")
	h.Orphans()
	h.One()
	r := h.Request(1)
	claims := h.Send(r).Claims
	e.Same("the claims", env.IDs(claims), []string{"c"})
	e.Same("the claims again", h.Send(r).Claims, claims)
}

func repeatGivesCut(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2), env.Entry("a", "r", 3))
	h := e.Acquire("n1")
	r := h.Request(10)
	r.PerJob = 2
	first := h.Send(r).Claims
	e.Push(env.Entry("a", "p", 0))
	r.PerJob = 1
	e.Same("the claims again", h.Send(r).Claims, first)
}

func repeatClaimsNothing(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	r := h.Request(1)
	h.Send(r)
	e.PushIDs("0")
	r.Want = 10
	e.Same("the claims again", env.IDs(h.Send(r).Claims), []string{"a"})
	e.Same("the queued jobs", e.QueuedIDs(), []string{"0", "b"})
}

func repeatAppliesNothing(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	r := h.Request(1, env.Failed(h.One(), "boom", 0))
	claims := h.Send(r).Claims
	e.Same("the retries", claims[0].RetryCount, 0)
	e.Unchanged("the turn repeated", func() { e.Same("the claims again", h.Send(r).Claims, claims) })
	e.Same("the retries after the repeat", e.Claimed("a").RetryCount, 0)
}

func repeatCountsNothing(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	r := h.Request(0, env.Done(claims[0]), env.Failed(claims[1], "boom", time.Hour))
	h.Send(r)
	h.Send(r)
	counts := e.Counts()
	e.Same("processed and failed", [2]int64{counts.Processed, counts.Failed}, [2]int64{1, 1})
}

func repeatIgnores(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	r := h.Request(1)
	claims := h.Send(r).Claims
	e.Unchanged("a repeat with other work", func() {
		r.Settlements, r.Want = []core.Settlement{env.Done(claims[0])}, 2
		e.Same("the claims again", h.Send(r).Claims, claims)
	})
}

func repeatRenews(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	r := h.Request(1)
	h.Send(r)
	e.Clock.Advance(20 * time.Second)
	r.TTL = time.Minute
	reply := h.Send(r)
	e.Same("how long the lease lasts", reply.Remaining, time.Minute)
	e.Same("the store's clock", reply.Now, e.Now())
	e.Same("the lease's expiry", e.Stats(env.Orders).Shards[0].ExpiresAt, e.Now().Add(time.Minute))
}

func repeatSkipsNothing(e *env.Env) {
	h := e.Acquire("n1")
	r := h.Request(0, core.Settlement{ID: "never", Receipt: core.Receipt{Token: h.Lease.Token, Number: 1}})
	e.Reported("the skipped", h.Send(r).Skipped, []int{0})
	e.Reported("the skipped of the repeat", h.Send(r).Skipped, nil)
}

func repeatWhilePaused(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	r := h.Request(1)
	first := h.Send(r).Claims
	e.Must(e.Store.Pause(e.Ctx, env.Orders), "Pause")
	again := h.Send(r)
	e.Same("the claims again", again.Claims, first)
	e.Same("Paused of the repeat", again.Paused, true)
}

func repeatLate(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	r := h.Request(1)
	first := h.Send(r).Claims
	e.Clock.Advance(10 * env.TTL)
	e.Same("the claims again", h.Send(r).Claims, first)
}
