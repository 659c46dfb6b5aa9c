package conformance

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func turnCases() []namedCase {
	return []namedCase{
		{"uses up its number when it claims", "Turn: last+1: settle, renew, claim; the number is used up", turnNumbers},
		{"renews the lease", "Turn: settles finished jobs, renews the lease and claims, in this order", turnRenews},
		{"refuses an older number", "Turn: below last: ErrStaleTurn, nothing is written", turnStale},
		{"refuses a number ahead", "Turn: above last+1: ErrLeaseLost, nothing is written: the store has lost turns", turnAhead},
		{"starts again at 1 with a new lease", "Turn: the last number carried out under this lease, 0 after Acquire", turnNewLease},
		{"uses no number when there is nothing to do", ruleEmpty, turnEmpty},
		{"does not renew when there is nothing to do", ruleEmpty, turnEmptyRenewsNot},
		{"uses its number even if all its settlements are skipped", ruleEmpty, turnSkippedOnly},
		{"settles before it claims", "Turn: due jobs in order of (PerformAt, id), put-backs of this turn included", turnSettlesFirst},
		{"works after the expiry", "Consumer: a late call works until another owner acquires the shard", turnLate},
		{"is refused after another owner acquired the shard", "Turn: ErrLeaseLost if the owner or the token is not the shard's", turnTakenOver},
		{"refuses a bad request", "TurnRequest.Validate: ErrInvalidRequest for a number below 1, a TTL below 1 ms, or too many settlements", turnInvalid},
		{"settles 256 jobs", "TurnRequest: Settlements are applied in order, at most core.MaxTurnJobs", turnSettlesMany},
		{"gives each claimed job a receipt", "Turn: a claimed job gets the receipt (token, number)", turnReceipts},
	}
}

func turnNumbers(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	for range 2 {
		number := h.number + 1
		reply := h.turn(1)
		e.same("the number carried out", reply.Last, number)
		e.same("the number of claims", len(reply.Claims), 1)
	}
}

func turnRenews(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	e.clock.Advance(20 * time.Second)
	r := h.request(1)
	r.TTL = time.Minute
	reply := h.send(r)
	e.same("the store's clock", reply.Now, e.now())
	e.same("how long the lease lasts", reply.Remaining, time.Minute)
	e.clock.Advance(time.Minute - time.Microsecond)
	_, err := e.store.Acquire(e.ctx, e.acquireRequest(e.shard, "n2"))
	e.refused("Acquire of the renewed lease", err, ports.ErrLeaseHeld)
}

func turnStale(e *env) {
	e.pushIDs("a", "b", "c")
	h := e.acquire("n1")
	first := h.request(1)
	claims := h.send(first).Claims
	h.one()
	e.clock.Advance(time.Second)
	e.unchanged("a stale turn", func() {
		h.refused("an older turn", first, ports.ErrStaleTurn)
		first.Settlements, first.Want = []core.Settlement{done(claims[0])}, 2
		h.refused("an older turn with other work", first, ports.ErrStaleTurn)
	})
}

func turnAhead(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	c := h.one()
	e.clock.Advance(time.Second)
	r := h.request(1, done(c))
	r.Number++
	e.unchanged("a turn ahead", func() { h.refused("a turn ahead", r, ports.ErrLeaseLost) })
	e.same("the next turn in order", ids(h.claim(1)), []string{"b"})
}

func turnNewLease(e *env) {
	e.pushIDs("a", "b", "c")
	h := e.acquire("n1")
	h.one()
	h.one()
	next := e.acquire("n1")
	next.orphans()
	e.same("the claims of the new lease", ids(next.claim(1)), []string{"c"})
}

func turnEmpty(e *env) {
	e.push(entryAt("later", "p", 1, start.Add(time.Hour)))
	h := e.acquire("n1")
	last := h.number
	for _, want := range []int{0, 1, 100} {
		reply := h.turn(want)
		e.giveUpIfRepeated(0)
		e.same("the number carried out", reply.Last, last)
	}
	e.pushIDs("a")
	e.same("the first turn with work", h.one().Receipt.Number, last+1)
	empty := h.turn(1).Last
	e.giveUpIfRepeated(0)
	e.same("an empty turn after it", empty, last+1)
}

func turnEmptyRenewsNot(e *env) {
	h := e.acquire("n1")
	e.clock.Advance(10 * time.Second)
	e.unchanged("an empty turn", func() {
		reply := h.turn(1)
		e.giveUpIfRepeated(0)
		e.same("how long the lease lasts", reply.Remaining, ttl-10*time.Second)
		e.same("the store's clock", reply.Now, e.now())
	})
	e.clock.Advance(20*time.Second + time.Microsecond)
	e.acquire("n2")
}

func turnSkippedOnly(e *env) {
	h := e.acquire("n1")
	number := h.number + 1
	reply := h.settle(core.Settlement{ID: "never", Receipt: core.Receipt{Token: h.lease.Token, Number: 1}})
	e.reported("the skipped", reply.Skipped, []int{0})
	e.same("the number carried out", reply.Last, number)
}

func turnSettlesFirst(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	c := h.one()
	claims := h.turn(2, untouched(c)).Claims
	e.same("the claims", ids(claims), []string{"a", "b"})
	e.same("the new receipt", claims[0].Receipt, core.Receipt{Token: h.lease.Token, Number: c.Receipt.Number + 1})
	e.same("a turn that fails it at once", ids(h.turn(2, failed(claims[0], "boom", 0)).Claims), []string{"a"})
}

func turnLate(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	c := h.one()
	e.clock.Advance(10 * ttl)
	reply := h.turn(1, done(c))
	e.same("the claims", ids(reply.Claims), []string{"b"})
	e.same("how long the lease lasts", reply.Remaining, ttl)
	e.same("what was processed", e.counts().Processed, int64(1))
}

func turnTakenOver(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	c := h.one()
	repeat := h.request(1)
	repeat.Number = h.number
	e.clock.Advance(2 * ttl)
	e.acquire("n2")
	e.unchanged("a turn after the take-over", func() {
		h.refused("the next turn", h.request(1, done(c)), ports.ErrLeaseLost)
		h.refused("the last turn again", repeat, ports.ErrLeaseLost)
		h.checkLost()
	})
}

func turnInvalid(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	for _, change := range []func(*ports.TurnRequest){
		func(r *ports.TurnRequest) { r.Number = 0 },
		func(r *ports.TurnRequest) { r.Number = -1 },
		func(r *ports.TurnRequest) { r.TTL = 0 },
		func(r *ports.TurnRequest) { r.TTL = time.Millisecond - 1 },
		func(r *ports.TurnRequest) { r.Settlements = make([]core.Settlement, core.MaxTurnJobs+1) },
	} {
		r := h.request(1)
		change(&r)
		e.unchanged("a refused turn", func() { h.refused("a bad turn", r, ports.ErrInvalidRequest) })
	}
}

func turnSettlesMany(e *env) {
	pushMany(e, core.MaxTurnJobs)
	h := e.acquire("n1")
	reply := h.turn(1, settleAll(h.claim(core.MaxTurnJobs), done)...)
	e.reported("the skipped", reply.Skipped, nil)
	e.same("the claims after it", reply.Claims, nil)
	e.same("what was processed", e.counts().Processed, int64(core.MaxTurnJobs))
}

func turnReceipts(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	for range 2 {
		number := h.number + 1
		c := h.one()
		e.same("the receipt", c.Receipt, core.Receipt{Token: h.lease.Token, Number: number})
		e.same("the claimed job", e.claimed(c.ID), c)
	}
}

const ruleLimiter = "MaxTurns is never negative, does not change and calls no server"

func limiterCases() []namedCase {
	return []namedCase{
		{"is at least 0 and does not change", ruleLimiter, limiterStays},
	}
}

func limiterStays(e *env) {
	limiter := e.store.(ports.TurnLimiter)
	before := limiter.MaxTurns()
	if before < 0 {
		e.tb.Errorf("MaxTurns = %d\nthe rule: %s", before, e.rule)
	}
	e.pushIDs("a", "b")
	e.acquire("n1").claim(2)
	e.same("MaxTurns after a turn", limiter.MaxTurns(), before)
}
