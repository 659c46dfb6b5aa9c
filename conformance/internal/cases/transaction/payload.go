package transaction

import (
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const rulePayload = "SettlePayload: the payload is done, " +
	"and the job stays claimed with its others and the receipt NextPart"

// payloadCases are about payloads that are settled one by one, without the rest of their job.
func payloadCases() []env.Case {
	return []env.Case{
		{Name: "settles one payload of a claimed job", Rule: rulePayload, Check: payloadSettles},
		{
			Name:  "restarts the count of retries with the first payload",
			Rule:  "RULES 3: RetryCount is -1 once the first payload is settled",
			Check: payloadRestarts,
		},
		{
			Name:  "takes the slot with the first payload",
			Rule:  "RULES 1: the slot belongs to the first payload",
			Check: payloadSlot,
		},
		{Name: "hands over a job without the payloads that were settled", Rule: rulePayload, Check: payloadOrphan},
		{Name: "applies the settlement of the claimed receipt", Rule: env.RuleReceipts, Check: payloadReceipts},
		{
			Name:  "settles a payload once",
			Rule:  "SettlePayload: a repeated call after success returns ErrLeaseLost",
			Check: payloadOnce,
		},
		{
			Name:  "takes jobs with settled payloads out of a repeated turn",
			Rule:  "Turn: a repeat returns the jobs that still carry this receipt",
			Check: payloadRepeat,
		},
		{
			Name:  "refuses the last payload of a job",
			Rule:  "SettlePayload: ErrInvalidRequest if the claim has no other payload",
			Check: payloadLast,
		},
		{
			Name:  "refuses a payload of a job that was handed over",
			Rule:  "SettlePayload: the job must not have been handed over to a later lease",
			Check: payloadHandedOver,
		},
		{
			Name:  "settles a payload of a job that is not handed over yet",
			Rule:  "SettlePayload: the claimed job is the fence until it is handed over to a later lease",
			Check: payloadNotHandedOver,
		},
		{Name: "reports a cancel with the receipt of the claim", Rule: rulePayload, Check: payloadCancel},
		{
			Name:  "keeps an earlier cancel of the claim, for the next owner too",
			Rule:  rulePayload,
			Check: payloadCancelledBefore,
		},
	}
}

// settlePayload settles the payload at a position outside a turn, and returns the claim that is
// left.
func settlePayload(e *env.Env, c core.Claim, position int) core.Claim {
	e.TB.Helper()
	s := c.SettlePayload(position)
	left, ok := s.Apply(c)
	if !ok {
		e.TB.Fatalf("the claim of %q has no payload %d, or no other payload", c.ID, position)
	}
	e.Must(tryPayload(e, s), "SettlePayload")
	return left
}

func tryPayload(e *env.Env, s core.PayloadSettlement) error {
	since := e.Repeats.Lossy.Load()
	err := e.Store.(ports.Settler).SettlePayload(e.Ctx, e.Shard, s)
	e.GiveUpIfRepeated(since)
	return err
}

// pushThree pushes a job with three payloads and claims it.
func pushThree(e *env.Env, h *env.Holder) core.Claim {
	e.TB.Helper()
	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2), env.Entry("a", "r", 3))
	return h.One()
}

func payloadSettles(e *env.Env) {
	h := e.Acquire("n1")
	c := pushThree(e, h)

	before := e.Counts()
	left := settlePayload(e, c, 1)
	e.Same("the claimed job", e.Claimed("a"), left)
	e.Same("the counts", e.Counts(), before)

	left = settlePayload(e, left, 1)
	e.Same("the claimed job then", e.Claimed("a"), left)
	e.Same("its payloads", left.Payloads, []core.Payload{env.Pay("p", 1)})

	h.Settle(env.Failed(left, "boom", time.Minute))
	e.Same("the payloads put back", e.Queued("a").Payloads, []core.Payload{env.Pay("p", 1)})
	e.CountsMatch(env.Orders, 0, 1)
}

func payloadRestarts(e *env.Env) {
	state := core.State{PerformAt: env.Start, RetryCount: 3, FirstPush: env.Start, Failures: env.Failures("boom")}
	e.Place("a", state, env.Pay("p", 1), env.Pay("q", 2), env.Pay("r", 3))
	h := e.Acquire("n1")
	left := settlePayload(e, h.One(), 1)
	e.Same("the RetryCount without a later payload", e.Claimed("a").RetryCount, 3)
	left = settlePayload(e, left, 0)
	e.Same("the claimed job without its first payload", e.Claimed("a"), left)
	e.Same("its RetryCount", left.RetryCount, -1)
	h.Settle(env.Untouched(left))
	state.RetryCount = -1
	e.Same("the job put back", e.Queued("a"), env.Job("a", state, env.Pay("r", 3)))
}

func payloadSlot(e *env.Env) {
	state := env.Fresh(env.Start)
	state.Slot = "tenant"
	e.Place("a", state, env.Pay("p", 1), env.Pay("q", 2), env.Pay("r", 3))
	h := e.Acquire("n1")
	left := settlePayload(e, h.One(), 1)
	e.Same("the slot without a later payload", e.Claimed("a").Slot, "tenant")
	left = settlePayload(e, left, 0)
	e.Same("the claimed job without its first payload", e.Claimed("a"), left)
	h.Settle(env.Untouched(left))
	e.Same("the job put back", e.Queued("a"), env.Job("a", env.Fresh(env.Start), env.Pay("r", 3)))
}

func payloadOrphan(e *env.Env) {
	state := core.State{PerformAt: env.Start, RetryCount: 3, FirstPush: env.Start, Failures: env.Failures("boom")}
	e.Place("a", state, env.Pay("p", 1), env.Pay("q", 2))
	left := settlePayload(e, e.Acquire("n1").One(), 0)
	e.Clock.Advance(env.TTL + time.Microsecond)
	h := e.Acquire("n2")
	orphans := h.Orphans()
	e.Same("the orphans", orphans, []core.Claim{left})
	h.Settle(env.Recovered(orphans[0]))
	state.RetryCount, state.Recoveries = -1, 1
	e.Same("the recovered job", e.Queued("a"), env.Job("a", state, env.Pay("q", 2)))
}

func payloadReceipts(e *env.Env) {
	h := e.Acquire("n1")
	c := pushThree(e, h)

	once := settlePayload(e, c, 0)
	twice := settlePayload(e, once, 0)
	e.Refused("Settle with the receipt before", settleOutside(e, env.Done(c)), ports.ErrLeaseLost)

	reply := h.Settle(env.Done(c), env.Failed(twice, "boom", time.Minute), env.Failed(once, "bang", 0))
	e.Reported("the skipped settlements", reply.Skipped, []int{0, 2})
	e.Same("the job put back", e.Queued("a"), core.Job{
		ID:       "a",
		State:    core.State{PerformAt: e.Now().Add(time.Minute), FirstPush: env.Start, Failures: env.Failures("boom")},
		Payloads: []core.Payload{env.Pay("r", 3)},
	})
	e.CountsMatch(env.Orders, 0, 1)
}

func payloadOnce(e *env.Env) {
	c := pushThree(e, e.Acquire("n1"))
	settlePayload(e, c, 0)
	other := c
	other.ID = "b"
	e.Unchanged("a refused SettlePayload", func() {
		e.Refused("SettlePayload again", tryPayload(e, c.SettlePayload(0)), ports.ErrLeaseLost)
		e.Refused("SettlePayload of a job that is not claimed",
			tryPayload(e, other.SettlePayload(0)), ports.ErrLeaseLost)
	})
}

func payloadRepeat(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2), env.Entry("b", "p", 1), env.Entry("b", "q", 2))
	h := e.Acquire("n1")
	r := h.Request(2)
	claims := h.Send(r).Claims
	settlePayload(e, claims[0], 0)
	e.Same("the claims again", h.Send(r).Claims, claims[1:])
}

func payloadLast(e *env.Env) {
	h := e.Acquire("n1")
	c := pushThree(e, h)

	e.Unchanged("a refused SettlePayload", func() {
		e.Refused("SettlePayload behind the last", tryPayload(e, c.SettlePayload(3)), ports.ErrInvalidRequest)
		e.Refused("SettlePayload before the first", tryPayload(e, c.SettlePayload(-1)), ports.ErrInvalidRequest)
	})

	left := settlePayload(e, settlePayload(e, c, 2), 0)
	e.Unchanged("a SettlePayload of the last one", func() {
		e.Refused("SettlePayload", tryPayload(e, left.SettlePayload(0)), ports.ErrInvalidRequest)
	})

	e.Must(settleOutside(e, env.Done(left)), "Settle of the last one")
	e.CountsMatch(env.Orders, 1, 0)
}

func payloadHandedOver(e *env.Env) {
	c := pushThree(e, e.Acquire("n1"))
	e.Clock.Advance(env.TTL + time.Microsecond)
	h := e.Acquire("n2")
	e.Same("the orphans", h.Orphans(), []core.Claim{c})
	e.Unchanged("a refused SettlePayload", func() {
		e.Refused("SettlePayload", tryPayload(e, c.SettlePayload(0)), ports.ErrLeaseLost)
	})
	e.Reported("what the new lease can't settle", h.Settle(env.Recovered(c)).Skipped, nil)
}

// payloadNotHandedOver settles a payload of a job that the later lease does not have yet. That
// lease gets the job without the payload. There are more jobs than an acquire and a turn may hand
// over.
func payloadNotHandedOver(e *env.Env) {
	left := e.LeaveVolume(env.Volume{Jobs: 12, Payloads: 250, Size: 4})
	h := e.Acquire("n2")
	last := len(left) - 1
	if len(h.Inherited) > last {
		e.TB.Fatalf("the lease has handed over all %d jobs, more than the bounds allow", len(h.Inherited))
	}

	left[last] = settlePayload(e, left[last], 0)
	h.HandedOver(len(left))
	e.Same("the jobs handed over", env.Briefly(h.Inherited), env.Briefly(left))

	handed := h.Inherited[last]
	e.Same("the receipt of the last one", handed.Receipt, left[last].Receipt)
	e.Refused("SettlePayload once it was handed over", tryPayload(e, handed.SettlePayload(0)), ports.ErrLeaseLost)
}

func payloadCancel(e *env.Env) {
	h := e.Acquire("n1")
	left := settlePayload(e, pushThree(e, h), 0)
	e.Cancel(true, "a")
	want := []ports.Cancellation{{ID: "a", Receipt: left.Receipt, Drop: true}}
	e.Same("the cancellations", h.Turn(0).Cancellations, want)
}

func payloadCancelledBefore(e *env.Env) {
	h := e.Acquire("n1")
	c := pushThree(e, h)
	e.Cancel(true, "a")
	left := settlePayload(e, c, 0)
	want := []ports.Cancellation{{ID: "a", Receipt: left.Receipt, Drop: true}}
	e.Same("the cancellations", h.Turn(0).Cancellations, want)
	e.Clock.Advance(2 * env.TTL)
	next := e.AcquireBy(e.AcquireRequest(e.Shard, "n2")).Reply
	e.Same("the jobs handed over", env.Briefly(next.Claims), env.Briefly([]core.Claim{left}))
	e.Same("the cancellations handed over", next.Cancellations, want)
}

// beginPayload settles the first of a job's payloads in a transaction, and returns the claim and
// what the transaction leaves of it.
func beginPayload(e *env.Env) (h *env.Holder, tx env.Transaction, c, left core.Claim) {
	h = e.Acquire("n1")
	c = pushThree(e, h)
	s := c.SettlePayload(0)
	left, _ = s.Apply(c)
	tx = begin(e)
	e.Must(tx.SettlePayload(e.Ctx, e.Shard, s), "SettlePayload in a transaction")
	return h, tx, c, left
}

// transactionPart sends a part of a job while a transaction has settled a payload of it, and again
// after the transaction has committed.
func transactionPart(e *env.Env) {
	h, tx, c, left := beginPayload(e)
	for _, s := range []core.PayloadSettlement{c.SettlePayload(0), left.SettlePayload(0)} {
		r := h.Request(0)
		r.Parts = []core.PayloadSettlement{s}
		e.Reported("the skipped parts", h.Send(r).SkippedParts, []int{0})
	}
	e.Must(tx.Commit(e.Ctx), "Commit")
	r := h.Request(0)
	r.Parts = []core.PayloadSettlement{left.SettlePayload(0)}
	e.Reported("the skipped parts after the commit", h.Send(r).SkippedParts, nil)
	e.Same("the payloads", e.Claimed("a").Payloads, left.Payloads[1:])
}

// transactionPayload settles a payload in a transaction. The payload is removed when the
// transaction commits. Until then no other call can change the job.
func transactionPayload(e *env.Env) {
	h, tx, c, left := beginPayload(e)
	reply := h.Settle(env.Done(left), env.Done(c))
	e.Reported("the skipped settlements", reply.Skipped, []int{0})
	e.Reported("the deferred settlements", reply.Deferred, []int{1})
	e.Must(tx.Commit(e.Ctx), "Commit")
	e.Same("the claimed job", e.Claimed("a"), left)
	reply = h.Settle(env.Done(c), env.Done(left))
	e.Reported("the skipped settlements once it has committed", reply.Skipped, []int{0})
	e.CountsMatch(env.Orders, 1, 0)
}

func transactionTwoPayloads(e *env.Env) {
	_, tx, _, left := beginPayload(e)
	e.Refused("SettlePayload of the next", tx.SettlePayload(e.Ctx, e.Shard, left.SettlePayload(0)), ports.ErrLeaseLost)
	e.Refused("Settle of the rest", tx.Settle(e.Ctx, e.Shard, []core.Settlement{env.Done(left)}), ports.ErrLeaseLost)
	e.Must(tx.Commit(e.Ctx), "Commit")
	e.Same("the claimed job", e.Claimed("a"), left)
}
