package turn

import (
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func turnCases() []env.Case {
	return []env.Case{
		{
			Name:  "uses up its number when it claims",
			Rule:  "Turn: last+1: settle, renew, claim; the number is used up",
			Check: turnNumbers,
		},
		{
			Name:  "renews the lease",
			Rule:  "Turn: settles finished jobs, renews the lease and claims, in this order",
			Check: turnRenews,
		},
		{Name: "refuses an older number", Rule: "Turn: below last: ErrStaleTurn, nothing is written", Check: turnStale},
		{
			Name:  "refuses a number ahead",
			Rule:  "Turn: above last+1: ErrLeaseLost, nothing is written: the store has lost turns",
			Check: turnAhead,
		},
		{
			Name:  "starts again at 1 with a new lease",
			Rule:  "Turn: the last number carried out under this lease, 0 after Acquire",
			Check: turnNewLease,
		},
		{Name: "uses no number when there is nothing to do", Rule: ruleEmpty, Check: turnEmpty},
		{Name: "does not renew when there is nothing to do", Rule: ruleEmpty, Check: turnEmptyRenewsNot},
		{Name: "uses its number even if all its settlements are skipped", Rule: ruleEmpty, Check: turnSkippedOnly},
		{
			Name:  "settles before it claims",
			Rule:  "Turn: due jobs in order of (PerformAt, id), put-backs of this turn included",
			Check: turnSettlesFirst,
		},
		{
			Name:  "works after the expiry",
			Rule:  "Consumer: a late call works until another owner acquires the shard",
			Check: turnLate,
		},
		{
			Name:  "is refused after another owner acquired the shard",
			Rule:  "Turn: ErrLeaseLost if the owner or the token is not the shard's",
			Check: turnTakenOver,
		},
		{
			Name: "refuses a bad request",
			Rule: "TurnRequest.Validate: ErrInvalidRequest for a number below 1, " +
				"a TTL below 1 ms, or too many settlements",
			Check: turnInvalid,
		},
		{
			Name:  "settles 256 jobs",
			Rule:  "TurnRequest: Settlements are applied in order, at most core.MaxTurnJobs",
			Check: turnSettlesMany,
		},
		{
			Name:  "gives each claimed job a receipt",
			Rule:  "Turn: a claimed job gets the receipt (token, number)",
			Check: turnReceipts,
		},
	}
}

func turnNumbers(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	for range 2 {
		number := h.Number + 1
		reply := h.Turn(1)
		e.Same("the number carried out", reply.Last, number)
		e.Same("the number of claims", len(reply.Claims), 1)
	}
}

func turnRenews(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	e.Clock.Advance(20 * time.Second)
	r := h.Request(1)
	r.TTL = time.Minute
	reply := h.Send(r)
	e.Same("the store's clock", reply.Now, e.Now())
	e.Same("how long the lease lasts", reply.Remaining, time.Minute)
	e.Clock.Advance(time.Minute - time.Microsecond)
	_, err := e.Store.Acquire(e.Ctx, e.AcquireRequest(e.Shard, "n2"))
	e.Refused("Acquire of the renewed lease", err, ports.ErrLeaseHeld)
}

func turnStale(e *env.Env) {
	e.PushIDs("a", "b", "c")
	h := e.Acquire("n1")
	first := h.Request(1)
	claims := h.Send(first).Claims
	h.One()
	e.Clock.Advance(time.Second)
	e.Unchanged("a stale turn", func() {
		h.Refused("an older turn", first, ports.ErrStaleTurn)
		first.Settlements, first.Want = []core.Settlement{env.Done(claims[0])}, 2
		h.Refused("an older turn with other work", first, ports.ErrStaleTurn)
	})
}

func turnAhead(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	c := h.One()
	e.Clock.Advance(time.Second)
	r := h.Request(1, env.Done(c))
	r.Number++
	e.Unchanged("a turn ahead", func() { h.Refused("a turn ahead", r, ports.ErrLeaseLost) })
	e.Same("the next turn in order", env.IDs(h.Claim(1)), []string{"b"})
}

func turnNewLease(e *env.Env) {
	e.PushIDs("a", "b", "c")
	h := e.Acquire("n1")
	h.One()
	h.One()
	next := e.Acquire("n1")
	next.Orphans()
	e.Same("the claims of the new lease", env.IDs(next.Claim(1)), []string{"c"})
}

func turnEmpty(e *env.Env) {
	e.Push(env.EntryAt("later", "p", 1, env.Start.Add(time.Hour)))
	h := e.Acquire("n1")
	last := h.Number

	for _, want := range []int{0, 1, 100} {
		reply := h.Turn(want)
		e.GiveUpIfRepeated(0)
		e.Same("the number carried out", reply.Last, last)
	}

	e.PushIDs("a")
	e.Same("the first turn with work", h.One().Receipt.Number, last+1)

	empty := h.Turn(1).Last
	e.GiveUpIfRepeated(0)
	e.Same("an empty turn after it", empty, last+1)
}

func turnEmptyRenewsNot(e *env.Env) {
	h := e.Acquire("n1")
	e.Clock.Advance(10 * time.Second)
	e.Unchanged("an empty turn", func() {
		reply := h.Turn(1)
		e.GiveUpIfRepeated(0)
		e.Same("how long the lease lasts", reply.Remaining, env.TTL-10*time.Second)
		e.Same("the store's clock", reply.Now, e.Now())
	})
	e.Clock.Advance(20*time.Second + time.Microsecond)
	e.Acquire("n2")
}

func turnSkippedOnly(e *env.Env) {
	h := e.Acquire("n1")
	number := h.Number + 1
	reply := h.Settle(core.Settlement{ID: "never", Receipt: core.Receipt{Token: h.Lease.Token, Number: 1}})
	e.Reported("the skipped", reply.Skipped, []int{0})
	e.Same("the number carried out", reply.Last, number)
}

func turnSettlesFirst(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	c := h.One()
	claims := h.Turn(2, env.Untouched(c)).Claims
	e.Same("the claims", env.IDs(claims), []string{"a", "b"})
	e.Same("the new receipt", claims[0].Receipt, core.Receipt{Token: h.Lease.Token, Number: c.Receipt.Number + 1})
	e.Same("a turn that fails it at once", env.IDs(h.Turn(2, env.Failed(claims[0], "boom", 0)).Claims), []string{"a"})
}

func turnLate(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	c := h.One()
	e.Clock.Advance(10 * env.TTL)
	reply := h.Turn(1, env.Done(c))
	e.Same("the claims", env.IDs(reply.Claims), []string{"b"})
	e.Same("how long the lease lasts", reply.Remaining, env.TTL)
	e.Same("what was processed", e.Counts().Processed, int64(1))
}

func turnTakenOver(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	c := h.One()
	repeat := h.Request(1)
	repeat.Number = h.Number

	e.Clock.Advance(2 * env.TTL)
	e.Acquire("n2")
	e.Unchanged("a turn after the take-over", func() {
		h.Refused("the next turn", h.Request(1, env.Done(c)), ports.ErrLeaseLost)
		h.Refused("the last turn again", repeat, ports.ErrLeaseLost)
		checkLost(h)
	})
}

func turnInvalid(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	for _, change := range []func(*ports.TurnRequest){
		func(r *ports.TurnRequest) { r.Number = 0 },
		func(r *ports.TurnRequest) { r.Number = -1 },
		func(r *ports.TurnRequest) { r.TTL = 0 },
		func(r *ports.TurnRequest) { r.TTL = time.Millisecond - 1 },
		func(r *ports.TurnRequest) { r.Settlements = make([]core.Settlement, core.MaxTurnJobs+1) },
	} {
		r := h.Request(1)
		change(&r)
		e.Unchanged("a refused turn", func() { h.Refused("a bad turn", r, ports.ErrInvalidRequest) })
	}
}

func turnSettlesMany(e *env.Env) {
	e.PushMany(core.MaxTurnJobs)
	h := e.Acquire("n1")
	reply := h.Turn(1, env.SettleAll(h.Claim(core.MaxTurnJobs), env.Done)...)
	e.Reported("the skipped", reply.Skipped, nil)
	e.Same("the claims after it", reply.Claims, nil)
	e.Same("what was processed", e.Counts().Processed, int64(core.MaxTurnJobs))
}

func turnReceipts(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	for range 2 {
		number := h.Number + 1
		c := h.One()
		e.Same("the receipt", c.Receipt, core.Receipt{Token: h.Lease.Token, Number: number})
		e.Same("the claimed job", e.Claimed(c.ID), c)
	}
}

const ruleLimiter = "MaxTurns is never negative, does not change and calls no server"

func limiterCases() []env.Case {
	return []env.Case{
		{Name: "is at least 0 and does not change", Rule: ruleLimiter, Check: limiterStays},
	}
}

func limiterStays(e *env.Env) {
	limiter := e.Store.(ports.TurnLimiter)
	before := limiter.MaxTurns()
	if before < 0 {
		e.TB.Errorf("MaxTurns = %d\nthe rule: %s", before, e.Rule)
	}
	e.PushIDs("a", "b")
	e.Acquire("n1").Claim(2)
	e.Same("MaxTurns after a turn", limiter.MaxTurns(), before)
}
