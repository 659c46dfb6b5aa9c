package conformance

import (
	"math"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleClaim = "Turn: due jobs (PerformAt <= now) in order of (PerformAt, id), as core.Budget allows"
	ruleOld   = "Turn: due jobs in order of (PerformAt, id), put-backs included, however long they have been due"
)

func claimCases() []namedCase {
	return []namedCase{
		{"takes the oldest first", ruleClaim, claimOldestFirst},
		{"takes due jobs only", ruleClaim, claimDueOnly},
		{"takes what comes due while the lease lasts", ruleClaim, claimComesDue},
		{"takes the number of jobs wanted", ruleClaim, claimWanted},
		{"takes 256 jobs at most", "TurnRequest: Want above core.MaxTurnJobs means core.MaxTurnJobs", claimAtMost},
		{"takes 1,000 payloads at most", "core.MaxTurnPayloads is the most payloads that one turn claims", claimPayloads},
		{"splits a job at the limit of payloads", ruleBudget, claimPerJob},
		{"splits a job at the limit of bytes", ruleBudget, claimBytes},
		{"leaves a job that does not fit", ruleBudget, claimBytesBetween},
		{"takes the first payload whatever its size", "core.Budget: the very first payload is always taken", claimFirstExempt},
		{"takes 4 MiB by default", "core.DefaultTurnBytes is the default limit of a turn's bytes of payload", claimDefaultBytes},
		{"takes all payloads in a later turn, whatever the bytes", ruleBudget, claimLater},
		{"leaves the state of a split job with the rest of its payloads", "Turn: the payloads of a job that do not fit stay queued with Rest of its State", claimLeavesState},
		{"skips claimed ids", "Turn: ids that are claimed after this turn's settlements are skipped", claimPassesOver},
		{"skips the rest of a split job", "Turn: ids that are claimed are skipped", claimPassesOverRest},
		{"moves a job out of the queue", "architecture 2: each accepted copy of a payload is in exactly one place", claimMoves},
		{"takes an old job that was put back", ruleOld, claimOldPutBack},
		{"takes an old job that was put back outside a turn", ruleOld, claimOldSettled},
		{"takes an old job that was pushed", ruleOld, claimOldPush},
	}
}

func claimOldestFirst(e *env) {
	e.push(entryAt("b", "p", 1, 20), entryAt("é", "p", 1, 10), entryAt("B", "p", 1, 20), entryAt("z", "p", 1, 10),
		entryAt("a", "p", 1, 30), entryAt("10", "p", 1, 20), entryAt("9", "p", 1, 20))
	e.same("the claims", ids(e.acquire("n1").claim(10)), []string{"z", "é", "10", "9", "B", "b", "a"})
}

func claimDueOnly(e *env) {
	e.push(entryAt("now", "p", 1, start), entryAt("soon", "p", 1, start+1))
	e.same("the claims", ids(e.acquire("n1").claim(10)), []string{"now"})
}

func claimComesDue(e *env) {
	e.push(entryAt("a", "p", 1, start+1))
	h := e.acquire("n1")
	e.same("the claims before", h.claim(1), nil)
	e.clock.Advance(time.Microsecond)
	e.same("the claims after", ids(h.claim(1)), []string{"a"})
}

func claimWanted(e *env) {
	e.pushIDs("a", "b", "c", "d")
	h := e.acquire("n1")
	e.same("none wanted", h.claim(0), nil)
	e.same("two wanted", ids(h.claim(2)), []string{"a", "b"})
	e.same("the rest", ids(h.claim(10)), []string{"c", "d"})
}

func claimAtMost(e *env) {
	pushMany(e, core.MaxTurnJobs+4)
	h := e.acquire("n1")
	e.same("the number of claims", len(h.claim(10*core.MaxTurnJobs)), core.MaxTurnJobs)
	e.same("the next turn", ids(h.claim(10*core.MaxTurnJobs)), []string{"0256", "0257", "0258", "0259"})
}

func claimPayloads(e *env) {
	pushPayloads(e, 600, "a", "b", "c")
	claims := e.acquire("n1").claim(10)
	e.same("the claims", ids(claims), []string{"a", "b"})
	e.same("the payloads of the first", len(claims[0].Payloads), 600)
	e.same("the payloads of the second", len(claims[1].Payloads), core.MaxTurnPayloads-600)
	e.same("what is left of the second", len(e.queued("b").Payloads), 1200-core.MaxTurnPayloads)
}

func claimPerJob(e *env) {
	pushPayloads(e, 2, "a")
	pushPayloads(e, 3, "b", "c")
	h := e.acquire("n1")
	r := h.request(10)
	r.PerJob = 2
	claims := h.send(r).Claims
	e.same("the claims", ids(claims), []string{"a", "b"})
	e.same("the cut job's payloads", claims[1].Payloads, []core.Payload{pay("0000", 0), pay("0001", 1)})
	e.same("what is left of it", e.queued("b").Payloads, []core.Payload{pay("0002", 2)})
	e.same("the job after it", len(e.queued("c").Payloads), 3)
}

func claimBytes(e *env) {
	e.push(core.Entry{ID: "a", Payload: sized(60, 1), When: core.At(1)}, core.Entry{ID: "b", Payload: sized(40, 1), When: core.At(2)},
		core.Entry{ID: "b", Payload: sized(1, 2), When: core.At(2)}, core.Entry{ID: "c", Payload: pay("", 1), When: core.At(3)})
	claims := bytesTurn(e.acquire("n1"), 100).Claims
	e.same("the claims", ids(claims), []string{"a", "b"})
	e.same("the cut job's payloads", claims[1].Payloads, []core.Payload{sized(40, 1)})
	e.same("what is left of it", e.queued("b").Payloads, []core.Payload{sized(1, 2)})
}

func claimBytesBetween(e *env) {
	e.push(core.Entry{ID: "a", Payload: sized(60, 1), When: core.At(1)}, core.Entry{ID: "b", Payload: sized(41, 1), When: core.At(2)},
		core.Entry{ID: "c", Payload: sized(1, 1), When: core.At(3)})
	h := e.acquire("n1")
	e.same("the claims", ids(bytesTurn(h, 100).Claims), []string{"a"})
	e.same("the queued jobs", e.queuedIDs(), []string{"b", "c"})
	e.same("the next turn", ids(bytesTurn(h, 100).Claims), []string{"b", "c"})
}

func claimLater(e *env) {
	e.pushIDs("first")
	h := e.acquire("n1")
	h.claim(1)
	pushPayloads(e, 3, "a", "b")
	claims := bytesTurn(h, math.MaxInt).Claims
	e.same("the claims", ids(claims), []string{"a", "b"})
	e.same("the payloads", []int{len(claims[0].Payloads), len(claims[1].Payloads)}, []int{3, 3})
}

func claimFirstExempt(e *env) {
	e.push(core.Entry{ID: "a", Payload: sized(200, 1)}, core.Entry{ID: "a", Payload: sized(1, 2)}, entry("b", "", 1))
	h := e.acquire("n1")
	claims := bytesTurn(h, 100).Claims
	e.same("the claims", ids(claims), []string{"a"})
	e.same("the payloads", claims[0].Payloads, []core.Payload{sized(200, 1)})
}

func claimDefaultBytes(e *env) {
	const size = core.DefaultTurnBytes/4 + 1
	for i := range 5 {
		e.push(core.Entry{ID: "a", Payload: sized(size, float64(i))})
	}
	if got := len(e.acquire("n1").one().Payloads); got != 3 {
		e.errorf("a turn claimed %d payloads of %d bytes, want 3", got, size)
	}
}

func claimLeavesState(e *env) {
	state := core.State{PerformAt: start - 5, RetryCount: 4, Recoveries: 2, FirstPush: start, Error: "boom"}
	e.place("a", state, pay("p", 1), pay("q", 2))
	h := e.acquire("n1")
	c := h.cut(1)
	e.same("the claimed job", c.Job, job("a", state, pay("p", 1)))
	rest := state
	rest.RetryCount = -1
	e.same("the rest", e.queued("a"), job("a", rest, pay("q", 2)))
	counts := e.counts()
	e.same("fresh, retrying and claimed", [3]int64{counts.Fresh, counts.Retrying, counts.Claimed}, [3]int64{1, 0, 1})
	h.settle(core.Settlement{ID: "a", Receipt: c.Receipt, Rest: core.Requeue, PutBack: core.PutBack{SameTime: true, RetryCount: 4, Recoveries: 2, Error: "boom"}})
	e.same("the job put back", e.queued("a"), job("a", state, pay("p", 1), pay("q", 2)))
	counts = e.counts()
	e.same("fresh, retrying and claimed then", [3]int64{counts.Fresh, counts.Retrying, counts.Claimed}, [3]int64{0, 1, 0})
}

func claimPassesOver(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	a := h.one()
	e.push(entryAt("a", "q", 2, 1))
	claims := h.claim(10)
	e.same("the claims", ids(claims), []string{"b"})
	e.same("once it is settled", ids(h.turn(10, done(a)).Claims), []string{"a"})
}

func claimPassesOverRest(e *env) {
	e.push(entry("a", "p", 1), entry("a", "q", 2))
	h := e.acquire("n1")
	c := h.cut(1)
	e.same("the next turn", h.claim(10), nil)
	e.same("the rest once it is settled", h.one(done(c)).Payloads, []core.Payload{pay("q", 2)})
}

func claimMoves(e *env) {
	e.pushIDs("a")
	c := e.acquire("n1").one()
	e.same("the queued jobs", e.jobs(), nil)
	e.same("the claimed job", e.claimed("a"), c)
	counts := e.counts()
	e.same("fresh and claimed", [2]int64{counts.Fresh, counts.Claimed}, [2]int64{0, 1})
}

// A store may remember the time up to which it has claimed all jobs, and not search before that
// time again. The cases from here on add jobs that are due earlier.

// claimLong claims a job that has been due for an hour, and then one that is due now, which it
// settles. It returns the first claim.
func (e *env) claimLong(h *holder) (old core.Claim) {
	e.tb.Helper()
	e.push(entryAt("old", "p", 1, start.Add(-time.Hour)))
	old = h.one()
	e.push(entryAt("new", "p", 1, start))
	h.settle(done(h.one()))
	return old
}

func claimOldPutBack(e *env) {
	h := e.acquire("n1")
	old := e.claimLong(h)
	e.same("the claims of the turn that puts it back", ids(h.turn(1, untouched(old)).Claims), []string{"old"})
	h = e.acquire("n1")
	h.settle(settleAll(h.orphans(), untouched)...)
	e.same("the claims of the turn after one that put it back", ids(h.claim(1)), []string{"old"})
}

func claimOldSettled(e *env) {
	settler, ok := e.store.(ports.Settler)
	if !ok {
		return
	}
	h := e.acquire("n1")
	old := e.claimLong(h)
	e.must(settler.Settle(e.ctx, e.shard, []core.Settlement{untouched(old)}), "Settle")
	e.same("the claims", ids(h.claim(1)), []string{"old"})
}

func claimOldPush(e *env) {
	h := e.acquire("n1")
	h.settle(done(e.claimLong(h)))
	e.push(entryAt("older", "p", 1, start.Add(-2*time.Hour)))
	e.same("the claims", ids(h.claim(1)), []string{"older"})
	e.push(entryAt("sooner", "p", 1, start.Add(time.Hour)))
	e.pushBy(core.PushRule{Kind: core.Earliest}, entryAt("sooner", "q", 2, start.Add(-time.Hour)))
	e.same("the claims", ids(h.claim(1)), []string{"sooner"})
}
