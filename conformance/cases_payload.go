package conformance

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	rulePayload  = "SettlePayload: the payload is done, and the job stays claimed with its others and the receipt NextPart"
	ruleReceipts = "Turn: of settlements of one id with different receipts, the claimed one is applied, whatever its place"
)

// payloadCases are about payloads that are settled one by one, without the rest of their job.
func payloadCases() []namedCase {
	return []namedCase{
		{"settles one payload of a claimed job", rulePayload, payloadSettles},
		{"restarts the count of retries with the first payload", "RULES 3: RetryCount is -1 once the first payload is settled", payloadRestarts},
		{"hands over a job without the payloads that were settled", rulePayload, payloadOrphan},
		{"applies the settlement of the claimed receipt", ruleReceipts, payloadReceipts},
		{"settles a payload once", "SettlePayload: a repeated call after success returns ErrLeaseLost", payloadOnce},
		{"takes jobs with settled payloads out of a repeated turn", "Turn: a repeat returns the jobs that still carry this receipt", payloadRepeat},
		{"refuses the last payload of a job", "SettlePayload: ErrInvalidRequest if the claim has no other payload", payloadLast},
		{"refuses a payload of a job that was handed over", "SettlePayload: the job must not have been handed over to a later lease", payloadHandedOver},
		{"settles a payload of a job that is not handed over yet", "SettlePayload: the claimed job is the fence until it is handed over to a later lease", payloadNotHandedOver},
		{"reports a cancel with the receipt of the claim", rulePayload, payloadCancel},
	}
}

// settlePayload settles the payload at a position outside a turn, and returns the claim that is
// left.
func (e *env) settlePayload(c core.Claim, position int) core.Claim {
	e.tb.Helper()
	s := c.SettlePayload(position)
	left, ok := s.Apply(c)
	if !ok {
		e.tb.Fatalf("the claim of %q has no payload %d, or no other payload", c.ID, position)
	}
	e.must(e.tryPayload(s), "SettlePayload")
	return left
}

func (e *env) tryPayload(s core.PayloadSettlement) error {
	since := e.repeats.Lossy.Load()
	err := e.store.(ports.Settler).SettlePayload(e.ctx, e.shard, s)
	e.giveUpIfRepeated(since)
	return err
}

// pushThree pushes a job with three payloads and claims it.
func (e *env) pushThree(h *holder) core.Claim {
	e.tb.Helper()
	e.push(entry("a", "p", 1), entry("a", "q", 2), entry("a", "r", 3))
	return h.one()
}

func payloadSettles(e *env) {
	h := e.acquire("n1")
	c := e.pushThree(h)
	before := e.counts()
	left := e.settlePayload(c, 1)
	e.same("the claimed job", e.claimed("a"), left)
	e.same("the counts", e.counts(), before)
	left = e.settlePayload(left, 1)
	e.same("the claimed job then", e.claimed("a"), left)
	e.same("its payloads", left.Payloads, []core.Payload{pay("p", 1)})
	h.settle(failed(left, "boom", time.Minute))
	e.same("the payloads put back", e.queued("a").Payloads, []core.Payload{pay("p", 1)})
	e.countsMatch(orders, 0, 1)
}

func payloadRestarts(e *env) {
	state := core.State{PerformAt: start, RetryCount: 3, FirstPush: start, Error: "boom"}
	e.place("a", state, pay("p", 1), pay("q", 2), pay("r", 3))
	h := e.acquire("n1")
	left := e.settlePayload(h.one(), 1)
	e.same("the RetryCount without a later payload", e.claimed("a").RetryCount, 3)
	left = e.settlePayload(left, 0)
	e.same("the claimed job without its first payload", e.claimed("a"), left)
	e.same("its RetryCount", left.RetryCount, -1)
	h.settle(untouched(left))
	state.RetryCount = -1
	e.same("the job put back", e.queued("a"), job("a", state, pay("r", 3)))
}

func payloadOrphan(e *env) {
	state := core.State{PerformAt: start, RetryCount: 3, FirstPush: start, Error: "boom"}
	e.place("a", state, pay("p", 1), pay("q", 2))
	left := e.settlePayload(e.acquire("n1").one(), 0)
	e.clock.Advance(ttl + time.Microsecond)
	h := e.acquire("n2")
	orphans := h.orphans()
	e.same("the orphans", orphans, []core.Claim{left})
	h.settle(recovered(orphans[0]))
	state.RetryCount, state.Recoveries = -1, 1
	e.same("the recovered job", e.queued("a"), job("a", state, pay("q", 2)))
}

func payloadReceipts(e *env) {
	h := e.acquire("n1")
	c := e.pushThree(h)
	once := e.settlePayload(c, 0)
	twice := e.settlePayload(once, 0)
	e.refused("Settle with the receipt before", e.settleOutside(done(c)), ports.ErrLeaseLost)
	reply := h.settle(done(c), failed(twice, "boom", time.Minute), failed(once, "bang", 0))
	e.reported("the skipped settlements", reply.Skipped, []int{0, 2})
	e.same("the job put back", e.queued("a"), core.Job{
		ID: "a", State: core.State{PerformAt: e.now().Add(time.Minute), FirstPush: start, Error: "boom"}, Payloads: []core.Payload{pay("r", 3)},
	})
	e.countsMatch(orders, 0, 1)
}

func payloadOnce(e *env) {
	c := e.pushThree(e.acquire("n1"))
	e.settlePayload(c, 0)
	other := c
	other.ID = "b"
	e.unchanged("a refused SettlePayload", func() {
		e.refused("SettlePayload again", e.tryPayload(c.SettlePayload(0)), ports.ErrLeaseLost)
		e.refused("SettlePayload of a job that is not claimed", e.tryPayload(other.SettlePayload(0)), ports.ErrLeaseLost)
	})
}

func payloadRepeat(e *env) {
	e.push(entry("a", "p", 1), entry("a", "q", 2), entry("b", "p", 1), entry("b", "q", 2))
	h := e.acquire("n1")
	r := h.request(2)
	claims := h.send(r).Claims
	e.settlePayload(claims[0], 0)
	e.same("the claims again", h.send(r).Claims, claims[1:])
}

func payloadLast(e *env) {
	h := e.acquire("n1")
	c := e.pushThree(h)
	e.unchanged("a refused SettlePayload", func() {
		e.refused("SettlePayload behind the last", e.tryPayload(c.SettlePayload(3)), ports.ErrInvalidRequest)
		e.refused("SettlePayload before the first", e.tryPayload(c.SettlePayload(-1)), ports.ErrInvalidRequest)
	})
	left := e.settlePayload(e.settlePayload(c, 2), 0)
	e.unchanged("a SettlePayload of the last one", func() {
		e.refused("SettlePayload", e.tryPayload(left.SettlePayload(0)), ports.ErrInvalidRequest)
	})
	e.must(e.settleOutside(done(left)), "Settle of the last one")
	e.countsMatch(orders, 1, 0)
}

func payloadHandedOver(e *env) {
	c := e.pushThree(e.acquire("n1"))
	e.clock.Advance(ttl + time.Microsecond)
	h := e.acquire("n2")
	e.same("the orphans", h.orphans(), []core.Claim{c})
	e.unchanged("a refused SettlePayload", func() {
		e.refused("SettlePayload", e.tryPayload(c.SettlePayload(0)), ports.ErrLeaseLost)
	})
	e.reported("what the new lease can't settle", h.settle(recovered(c)).Skipped, nil)
}

// payloadNotHandedOver settles a payload of a job that the later lease does not have yet. That
// lease gets the job without the payload. There are more jobs than an acquire and a turn may hand
// over.
func payloadNotHandedOver(e *env) {
	left := leaveVolume(e, volume{jobs: 12, payloads: 250, size: 4})
	h := e.acquire("n2")
	last := len(left) - 1
	if len(h.inherited) > last {
		e.tb.Fatalf("the lease has handed over all %d jobs, more than the bounds allow", len(h.inherited))
	}
	left[last] = e.settlePayload(left[last], 0)
	h.handedOver(len(left))
	e.same("the jobs handed over", briefly(h.inherited), briefly(left))
	handed := h.inherited[last]
	e.same("the receipt of the last one", handed.Receipt, left[last].Receipt)
	e.refused("SettlePayload once it was handed over", e.tryPayload(handed.SettlePayload(0)), ports.ErrLeaseLost)
}

func payloadCancel(e *env) {
	h := e.acquire("n1")
	left := e.settlePayload(e.pushThree(h), 0)
	e.cancel(true, "a")
	want := []ports.Cancellation{{ID: "a", Receipt: left.Receipt, Drop: true}}
	e.same("the cancellations", h.turn(0).Cancellations, want)
}

// beginPayload settles the first of a job's payloads in a transaction, and returns the claim and
// what the transaction leaves of it.
func beginPayload(e *env) (h *holder, tx Transaction, c, left core.Claim) {
	h = e.acquire("n1")
	c = e.pushThree(h)
	s := c.SettlePayload(0)
	left, _ = s.Apply(c)
	tx = e.begin()
	e.must(tx.SettlePayload(e.ctx, e.shard, s), "SettlePayload in a transaction")
	return h, tx, c, left
}

// transactionPayload settles a payload in a transaction. The payload is removed when the
// transaction commits. Until then no other call can change the job.
func transactionPayload(e *env) {
	h, tx, c, left := beginPayload(e)
	reply := h.settle(done(left), done(c))
	e.reported("the skipped settlements", reply.Skipped, []int{0})
	e.reported("the deferred settlements", reply.Deferred, []int{1})
	e.must(tx.Commit(e.ctx), "Commit")
	e.same("the claimed job", e.claimed("a"), left)
	reply = h.settle(done(c), done(left))
	e.reported("the skipped settlements once it has committed", reply.Skipped, []int{0})
	e.countsMatch(orders, 1, 0)
}

func transactionTwoPayloads(e *env) {
	_, tx, _, left := beginPayload(e)
	e.refused("SettlePayload of the next", tx.SettlePayload(e.ctx, e.shard, left.SettlePayload(0)), ports.ErrLeaseLost)
	e.refused("Settle of the rest", tx.Settle(e.ctx, e.shard, []core.Settlement{done(left)}), ports.ErrLeaseLost)
	e.must(tx.Commit(e.ctx), "Commit")
	e.same("the claimed job", e.claimed("a"), left)
}
