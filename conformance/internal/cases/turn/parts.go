package turn

import (
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	rulePart = "Turn: a part ends one payload of a claimed job as done and marks the job as begun; " +
		"its receipt is then NextPart"
	rulePartSkipped = "Turn: a part is skipped and reported if its (ID, Receipt) is not claimed, " +
		"or if the claim has no such payload or no other one"
	rulePartAgain = "Turn: a part that was applied before is not applied again, and is not skipped"
	rulePartState = "RULES 4: once the first payload has ended by itself, " +
		"the others have RetryCount -1 and at most one recovery"
)

// partCases are about payloads that turns end one by one, while the job stays claimed.
func partCases() []env.Case {
	return []env.Case{
		{Name: "ends a payload and begins the next", Rule: rulePart, Check: partEnds},
		{Name: "gives the failures of the first payload to no other", Rule: rulePartState, Check: partRestarts},
		{Name: "passes on a job without the payloads that have ended", Rule: rulePart, Check: partPassesOn},
		{Name: "lets others run beside a job that need not run alone any more", Rule: rulePartState, Check: partBeside},
		{Name: "is skipped without its claim", Rule: rulePartSkipped, Check: partSkipped},
		{Name: "does not end the last payload", Rule: rulePartSkipped, Check: partLast},
		{Name: "is applied once", Rule: rulePartAgain, Check: partOnce},
		{
			Name:  "is applied after the settlements",
			Rule:  "Turn: parts are applied after the settlements",
			Check: partAfterSettle,
		},
		{Name: "is applied in the order of the request", Rule: rulePart, Check: partOrder},
		{
			Name:  "is applied before jobs begin",
			Rule:  "Turn: settle, end parts, begin, renew, claim",
			Check: partBeforeBegin,
		},
		{
			Name:  "uses up the turn's number and renews",
			Rule:  "Turn: last+1: settle, end parts, begin, renew, claim; the number is used up",
			Check: partUsesNumber,
		},
		{Name: "is not applied by a repeated turn", Rule: "Turn: a repeat applies nothing", Check: partRepeated},
		{
			Name:  "needs the lease",
			Rule:  "Turn: ErrLeaseLost if the owner or the token is not the shard's",
			Check: partNeedsLease,
		},
		{
			Name:  "refuses too many",
			Rule:  "TurnRequest.Validate: ErrInvalidRequest for too many parts",
			Check: partInvalid,
		},
		{Name: "reports a cancel with the receipt of the claim", Rule: rulePart, Check: partCancel},
		{Name: "ends payloads of a large job", Rule: rulePart, Check: partLarge},
	}
}

// suspect places a job with three payloads that was recovered the given number of times, and claims
// it.
func suspect(e *env.Env, recoveries int) (*env.Holder, core.Claim) {
	e.TB.Helper()

	state := core.State{
		PerformAt:  env.Start,
		RetryCount: 2,
		Recoveries: recoveries,
		FirstPush:  env.Start,
		Failures:   env.Failures("boom"),
		Tags:       env.Tags("blue red"),
	}
	e.Place("a",
		state, env.WithScore(env.Pay("p", 1), 1, "of p"), env.Pay("q", 2), env.WithScore(env.Pay("r", 3), 3, "of r"))

	h := e.Acquire("n1")
	return h, h.One()
}

// parts returns the holder's next turn, which has parts.
func parts(h *env.Holder, all ...core.PayloadSettlement) ports.TurnRequest {
	r := h.Request(0)
	r.Parts = all
	return r
}

// endPart ends the payload at a position of a claim, and returns the claim that is left.
func endPart(h *env.Holder, c core.Claim, position int) core.Claim {
	h.Env.TB.Helper()
	h.Env.Reported("the skipped parts", h.Send(parts(h, c.SettlePayload(position))).SkippedParts, nil)
	return afterPart(h.Env, c, position)
}

// afterPart returns the claim that a part leaves.
func afterPart(e *env.Env, c core.Claim, position int) core.Claim {
	e.TB.Helper()
	s := c.SettlePayload(position)
	left, ok := s.Apply(c)
	if !ok {
		e.TB.Fatalf("the claim of %q has no payload %d, or no other payload", c.ID, position)
	}
	left.Begun = true
	return left
}

func partEnds(e *env.Env) {
	h, c := suspect(e, 1)
	before := e.Counts()
	left := endPart(h, c, 1)
	e.Same("the claimed job", e.Claimed("a"), left)
	e.Same("the counts", e.Counts(), before)
	left = endPart(h, left, 0)
	e.Same("the claimed job then", e.Claimed("a"), left)
	e.Same("its payloads", left.Payloads, []core.Payload{env.WithScore(env.Pay("r", 3), 3, "of r")})
	h.Settle(env.Done(left))
	e.Same("the claimed job at its end", e.Claimed("a"), core.Claim{})
	e.CountsMatch(env.Orders, 1, 0)
}

func partRestarts(e *env.Env) {
	h, c := suspect(e, 3)
	left := endPart(h, c, 1)
	e.Same("retries and recoveries without a later payload", [2]int{left.RetryCount, left.Recoveries}, [2]int{2, 3})
	left = endPart(h, left, 0)
	e.Same("retries and recoveries without the first payload", [2]int{left.RetryCount, left.Recoveries}, [2]int{-1, 1})
	e.Same("the claimed job", e.Claimed("a"), left)
	h.Settle(env.Untouched(left))
	e.Same("the job put back", e.Queued("a"), left.Job)
}

func partPassesOn(e *env.Env) {
	h, c := suspect(e, 2)
	left := endPart(h, c, 0)
	e.Clock.Advance(env.TTL + time.Microsecond)
	h = e.Acquire("n2")
	orphans := h.Orphans()
	e.Same("the orphans", orphans, []core.Claim{left})
	h.Settle(env.Recovered(orphans[0]))
	e.Same("the recoveries of the payload that had begun", e.Queued("a").Recoveries, 2)
	e.Same("its payloads", e.Queued("a").Payloads, left.Payloads)
}

func partBeside(e *env.Env) {
	e.PlaceAlone("c", env.Start)
	h, c := suspect(e, core.AloneRecoveries)
	e.PushIDs("b")
	e.Same("the claims beside a job that runs alone", h.Claim(1), nil)
	left := endPart(h, c, 1)
	e.Same("the claims while its first payload runs", h.Claim(1), nil)
	r := parts(h, left.SettlePayload(0))
	r.Want = 1
	e.Same("the claims of the turn that ends it", env.IDs(h.Send(r).Claims), []string{"b"})
	h.Settle(env.Done(afterPart(e, left, 0)))
	e.Same("the claims of a job that runs alone, beside b", h.Claim(1), nil)
}

func partSkipped(e *env.Env) {
	h, c := suspect(e, 1)
	e.Push(env.Entry("queued", "p", 1), env.Entry("queued", "q", 2))

	never, wrong, queued := c.SettlePayload(0), c.SettlePayload(0), c.SettlePayload(0)
	never.ID, queued.ID = "never", "queued"
	wrong.Receipt.Number++

	e.Unchanged("a turn whose parts are skipped", func() {
		reply := h.Send(parts(h, never, wrong, queued, c.SettlePayload(-1), c.SettlePayload(3)))
		e.Reported("the skipped parts", reply.SkippedParts, []int{0, 1, 2, 3, 4})
	})

	reply := h.Send(parts(h, never, c.SettlePayload(2), queued))
	e.Reported("the skipped parts beside one that is applied", reply.SkippedParts, []int{0, 2})
	e.Same("the claimed job", e.Claimed("a"), afterPart(e, c, 2))
}

func partLast(e *env.Env) {
	h, c := suspect(e, 1)
	left := endPart(h, endPart(h, c, 0), 0)
	e.Unchanged("a part of the last payload", func() {
		e.Reported("the skipped parts", h.Send(parts(h, left.SettlePayload(0))).SkippedParts, []int{0})
	})
	e.PushIDs("single")
	single := h.One()
	e.Reported("the skipped parts of a job with one payload",
		h.Send(parts(h, single.SettlePayload(0))).SkippedParts, []int{0})
	e.Same("the claim with one payload", e.Claimed("single"), single)
}

func partOnce(e *env.Env) {
	h, c := suspect(e, 2)
	left := endPart(h, c, 0)
	e.Unchanged("a part that was applied before", func() {
		e.Reported("the skipped parts", h.Send(parts(h, c.SettlePayload(0))).SkippedParts, nil)
		e.Reported("the skipped parts of two",
			h.Send(parts(h, c.SettlePayload(0), c.SettlePayload(0))).SkippedParts, nil)
	})

	later := endPart(h, left, 0)
	e.Unchanged("a part before the last", func() {
		e.Reported("the skipped parts", h.Send(parts(h, c.SettlePayload(0))).SkippedParts, []int{0})
	})

	e.Same("the claimed job", e.Claimed("a"), later)
}

func partAfterSettle(e *env.Env) {
	h, c := suspect(e, 1)
	r := parts(h, c.SettlePayload(0))
	r.Settlements, r.Want = []core.Settlement{env.Untouched(c)}, 1
	reply := h.Send(r)
	e.Reported("the skipped parts", reply.SkippedParts, []int{0})
	e.Same("the payloads claimed again", reply.Claims[0].Payloads, c.Payloads)
}

func partOrder(e *env.Env) {
	h, c := suspect(e, 1)
	e.Push(env.Entry("b", "p", 1), env.Entry("b", "q", 2))
	b := h.One()
	once := afterPart(e, c, 0)
	reply := h.Send(parts(h, c.SettlePayload(0), b.SettlePayload(1), once.SettlePayload(0)))
	e.Reported("the skipped parts", reply.SkippedParts, nil)
	e.Same("the job with two parts", e.Claimed("a"), afterPart(e, once, 0))
	e.Same("the job with one", e.Claimed("b"), afterPart(e, b, 1))
}

func partBeforeBegin(e *env.Env) {
	h, c := suspect(e, 1)
	left := afterPart(e, c, 0)
	r := parts(h, c.SettlePayload(0))
	r.Begin = []core.ClaimRef{left.Ref(), c.Ref()}
	reply := h.Send(r)
	e.Reported("the skipped parts", reply.SkippedParts, nil)
	e.Reported("the jobs that did not begin", reply.NotBegun, []int{1})
	e.Same("the claimed job", e.Claimed("a"), left)
}

func partUsesNumber(e *env.Env) {
	h, c := suspect(e, 1)
	e.Clock.Advance(env.TTL / 2)
	r := parts(h, c.SettlePayload(0))
	reply := h.Send(r)
	e.Same("the number", reply.Last, r.Number)
	e.Same("how long the lease lasts", reply.Remaining, env.TTL)
	r = parts(h, c.SettlePayload(7))
	e.Same("the number of a turn that ends nothing", h.Send(r).Last, r.Number)
}

func partRepeated(e *env.Env) {
	h, c := suspect(e, 1)
	r := parts(h, c.SettlePayload(0))
	h.Send(r)
	left := afterPart(e, c, 0)
	e.Unchanged("a repeated turn", func() {
		reply := h.Send(r)
		e.Same("whether it is a repeat, and its skipped parts", reply.Repeat && reply.SkippedParts == nil, true)
		r.Parts = []core.PayloadSettlement{left.SettlePayload(0)}
		e.Same("whether a repeat with other parts is one", h.Send(r).Repeat, true)
	})
	e.Same("the claimed job", e.Claimed("a"), left)
}

func partNeedsLease(e *env.Env) {
	h, c := suspect(e, 1)
	e.Acquire("n1")
	e.Unchanged("a turn of an older lease", func() {
		h.Refused("Turn of an older lease", parts(h, c.SettlePayload(0)), ports.ErrLeaseLost)
	})
}

func partInvalid(e *env.Env) {
	h, c := suspect(e, 1)
	r := parts(h)
	for range core.MaxTurnJobs + 1 {
		r.Parts = append(r.Parts, c.SettlePayload(0))
	}
	e.Unchanged("a refused turn", func() { h.Refused("Turn with too many parts", r, ports.ErrInvalidRequest) })
}

func partCancel(e *env.Env) {
	h, c := suspect(e, 1)
	e.Cancel(true, "a")
	left := afterPart(e, c, 0)
	want := []ports.Cancellation{{ID: "a", Receipt: left.Receipt, Drop: true}}
	e.Same("the cancellations of the turn", h.Send(parts(h, c.SettlePayload(0))).Cancellations, want)
	e.Same("the cancellations of the next turn", h.Turn(0).Cancellations, want)
	e.Same("the cancellations after its end", h.Settle(env.Dropped(left)).Cancellations, nil)
}

func partLarge(e *env.Env) {
	payloads := largePayloads()
	e.Place("a", core.State{PerformAt: env.Start, RetryCount: -1, Recoveries: 2, FirstPush: env.Start}, payloads...)

	h := e.Acquire("n1")
	c := h.One()
	e.Same("the claimed payloads", c.Payloads, payloads)

	for len(c.Payloads) > 1 {
		c = endPart(h, c, min(len(c.Payloads)%3, 1))
		if n := len(c.Payloads); n > len(payloads)-3 || n < 3 {
			e.Same("the claimed job", e.Claimed("a"), c)
		}
	}

	e.Push(env.Entry("a", "next", 1))
	e.Same("the next job of the id", h.One(env.Done(c)).Payloads, []core.Payload{env.Pay("next", 1)})
	e.CountsMatch(env.Orders, 1, 0)
}
