package turn

import (
	"math"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleClaim = "Turn: due jobs (PerformAt <= now) in order of (PerformAt, id), as core.Budget allows"
	ruleOld   = "Turn: due jobs in order of (PerformAt, id), put-backs included, however long they have been due"
)

func claimCases() []env.Case {
	return []env.Case{
		{Name: "takes the oldest first", Rule: ruleClaim, Check: claimOldestFirst},
		{Name: "takes due jobs only", Rule: ruleClaim, Check: claimDueOnly},
		{Name: "takes what comes due while the lease lasts", Rule: ruleClaim, Check: claimComesDue},
		{Name: "takes the number of jobs wanted", Rule: ruleClaim, Check: claimWanted},
		{
			Name:  "takes 256 jobs at most",
			Rule:  "TurnRequest: Want above core.MaxTurnJobs means core.MaxTurnJobs",
			Check: claimAtMost,
		},
		{
			Name:  "takes 1,000 payloads at most",
			Rule:  "core.MaxTurnPayloads is the most payloads that one turn claims",
			Check: claimPayloads,
		},
		{Name: "splits a job at the limit of payloads", Rule: ruleBudget, Check: claimPerJob},
		{Name: "splits a job at the limit of bytes", Rule: ruleBudget, Check: claimBytes},
		{Name: "leaves a job that does not fit", Rule: ruleBudget, Check: claimBytesBetween},
		{
			Name:  "takes the first payload whatever its size",
			Rule:  "core.Budget: the very first payload is always taken",
			Check: claimFirstExempt,
		},
		{
			Name:  "takes 4 MiB by default",
			Rule:  "core.DefaultTurnBytes is the default limit of a turn's bytes of payload",
			Check: claimDefaultBytes,
		},
		{Name: "takes all payloads in a later turn, whatever the bytes", Rule: ruleBudget, Check: claimLater},
		{
			Name:  "leaves the state of a split job with the rest of its payloads",
			Rule:  "Turn: the payloads of a job that do not fit stay queued with Rest of its State",
			Check: claimLeavesState,
		},
		{
			Name:  "skips claimed ids",
			Rule:  "Turn: ids that are claimed after this turn's settlements are skipped",
			Check: claimPassesOver,
		},
		{
			Name:  "skips the rest of a split job",
			Rule:  "Turn: ids that are claimed are skipped",
			Check: claimPassesOverRest,
		},
		{
			Name:  "moves a job out of the queue",
			Rule:  "architecture 2: each accepted copy of a payload is in exactly one place",
			Check: claimMoves,
		},
		{Name: "takes an old job that was put back", Rule: ruleOld, Check: claimOldPutBack},
		{Name: "takes an old job that was put back outside a turn", Rule: ruleOld, Check: claimOldSettled},
		{Name: "takes an old job that was pushed", Rule: ruleOld, Check: claimOldPush},
	}
}

func claimOldestFirst(e *env.Env) {
	e.Push(env.EntryAt("b", "p", 1, 20), env.EntryAt("é", "p", 1, 10), env.EntryAt("B", "p", 1, 20),
		env.EntryAt("z", "p", 1, 10),
		env.EntryAt("a", "p", 1, 30), env.EntryAt("10", "p", 1, 20), env.EntryAt("9", "p", 1, 20))
	e.Same("the claims", env.IDs(e.Acquire("n1").Claim(10)), []string{"z", "é", "10", "9", "B", "b", "a"})
}

func claimDueOnly(e *env.Env) {
	e.Push(env.EntryAt("now", "p", 1, env.Start), env.EntryAt("soon", "p", 1, env.Start+1))
	e.Same("the claims", env.IDs(e.Acquire("n1").Claim(10)), []string{"now"})
}

func claimComesDue(e *env.Env) {
	e.Push(env.EntryAt("a", "p", 1, env.Start+1))
	h := e.Acquire("n1")
	e.Same("the claims before", h.Claim(1), nil)
	e.Clock.Advance(time.Microsecond)
	e.Same("the claims after", env.IDs(h.Claim(1)), []string{"a"})
}

func claimWanted(e *env.Env) {
	e.PushIDs("a", "b", "c", "d")
	h := e.Acquire("n1")
	e.Same("none wanted", h.Claim(0), nil)
	e.Same("two wanted", env.IDs(h.Claim(2)), []string{"a", "b"})
	e.Same("the rest", env.IDs(h.Claim(10)), []string{"c", "d"})
}

func claimAtMost(e *env.Env) {
	e.PushMany(core.MaxTurnJobs + 4)
	h := e.Acquire("n1")
	e.Same("the number of claims", len(h.Claim(10*core.MaxTurnJobs)), core.MaxTurnJobs)
	e.Same("the next turn", env.IDs(h.Claim(10*core.MaxTurnJobs)), []string{"0256", "0257", "0258", "0259"})
}

func claimPayloads(e *env.Env) {
	e.PushPayloads(600, "a", "b", "c")
	claims := e.Acquire("n1").Claim(10)
	e.Same("the claims", env.IDs(claims), []string{"a", "b"})
	e.Same("the payloads of the first", len(claims[0].Payloads), 600)
	e.Same("the payloads of the second", len(claims[1].Payloads), core.MaxTurnPayloads-600)
	e.Same("what is left of the second", len(e.Queued("b").Payloads), 1200-core.MaxTurnPayloads)
}

func claimPerJob(e *env.Env) {
	e.PushPayloads(2, "a")
	e.PushPayloads(3, "b", "c")
	h := e.Acquire("n1")
	r := h.Request(10)
	r.PerJob = 2
	claims := h.Send(r).Claims
	e.Same("the claims", env.IDs(claims), []string{"a", "b"})
	e.Same("the cut job's payloads", claims[1].Payloads, []core.Payload{env.Pay("0000", 0), env.Pay("0001", 1)})
	e.Same("what is left of it", e.Queued("b").Payloads, []core.Payload{env.Pay("0002", 2)})
	e.Same("the job after it", len(e.Queued("c").Payloads), 3)
}

func claimBytes(e *env.Env) {
	e.Push(core.Entry{ID: "a", Payload: env.Sized(60, 1), When: core.At(1)},
		core.Entry{ID: "b", Payload: env.Sized(40, 1), When: core.At(2)},
		core.Entry{ID: "b", Payload: env.Sized(1, 2), When: core.At(2)},
		core.Entry{ID: "c", Payload: env.Pay("", 1), When: core.At(3)})
	claims := bytesTurn(e.Acquire("n1"), 100).Claims
	e.Same("the claims", env.IDs(claims), []string{"a", "b"})
	e.Same("the cut job's payloads", claims[1].Payloads, []core.Payload{env.Sized(40, 1)})
	e.Same("what is left of it", e.Queued("b").Payloads, []core.Payload{env.Sized(1, 2)})
}

func claimBytesBetween(e *env.Env) {
	e.Push(core.Entry{ID: "a", Payload: env.Sized(60, 1), When: core.At(1)},
		core.Entry{ID: "b", Payload: env.Sized(41, 1), When: core.At(2)},
		core.Entry{ID: "c", Payload: env.Sized(1, 1), When: core.At(3)})
	h := e.Acquire("n1")
	e.Same("the claims", env.IDs(bytesTurn(h, 100).Claims), []string{"a"})
	e.Same("the queued jobs", e.QueuedIDs(), []string{"b", "c"})
	e.Same("the next turn", env.IDs(bytesTurn(h, 100).Claims), []string{"b", "c"})
}

func claimLater(e *env.Env) {
	e.PushIDs("first")
	h := e.Acquire("n1")
	h.Claim(1)
	e.PushPayloads(3, "a", "b")
	claims := bytesTurn(h, math.MaxInt).Claims
	e.Same("the claims", env.IDs(claims), []string{"a", "b"})
	e.Same("the payloads", []int{len(claims[0].Payloads), len(claims[1].Payloads)}, []int{3, 3})
}

func claimFirstExempt(e *env.Env) {
	e.Push(core.Entry{ID: "a", Payload: env.Sized(200, 1)},
		core.Entry{ID: "a", Payload: env.Sized(1, 2)}, env.Entry("b", "", 1))
	h := e.Acquire("n1")
	claims := bytesTurn(h, 100).Claims
	e.Same("the claims", env.IDs(claims), []string{"a"})
	e.Same("the payloads", claims[0].Payloads, []core.Payload{env.Sized(200, 1)})
}

func claimDefaultBytes(e *env.Env) {
	const size = core.DefaultTurnBytes/4 + 1
	for i := range 5 {
		e.Push(core.Entry{ID: "a", Payload: env.Sized(size, float64(i))})
	}
	if got := len(e.Acquire("n1").One().Payloads); got != 3 {
		e.Errorf("a turn claimed %d payloads of %d bytes, want 3", got, size)
	}
}

func claimLeavesState(e *env.Env) {
	state := core.State{
		PerformAt:  env.Start - 5,
		RetryCount: 4,
		Recoveries: 2,
		FirstPush:  env.Start,
		Failures:   env.Failures("boom"),
	}
	e.Place("a", state, env.Pay("p", 1), env.Pay("q", 2))

	h := e.Acquire("n1")
	c := h.Cut(1)
	e.Same("the claimed job", c.Job, env.Job("a", state, env.Pay("p", 1)))

	remaining := state
	remaining.RetryCount, remaining.Recoveries = -1, 1
	e.Same("the rest", e.Queued("a"), env.Job("a", remaining, env.Pay("q", 2)))
	counts := e.Counts()
	e.Same("fresh, retrying and claimed", [3]int64{counts.Fresh, counts.Retrying, counts.Claimed}, [3]int64{1, 0, 1})

	h.Settle(core.Settlement{
		ID:      "a",
		Receipt: c.Receipt,
		Rest:    core.Requeue,
		PutBack: core.PutBack{SameTime: true, RetryCount: 4, Recoveries: 2, Failures: env.Failures("boom")},
	})

	e.Same("the job put back", e.Queued("a"), env.Job("a", state, env.Pay("p", 1), env.Pay("q", 2)))
	counts = e.Counts()
	e.Same("fresh, retrying and claimed then",
		[3]int64{counts.Fresh, counts.Retrying, counts.Claimed}, [3]int64{0, 1, 0})
}

func claimPassesOver(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	a := h.One()
	e.Push(env.EntryAt("a", "q", 2, 1))
	claims := h.Claim(10)
	e.Same("the claims", env.IDs(claims), []string{"b"})
	e.Same("once it is settled", env.IDs(h.Turn(10, env.Done(a)).Claims), []string{"a"})
}

func claimPassesOverRest(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2))
	h := e.Acquire("n1")
	c := h.Cut(1)
	e.Same("the next turn", h.Claim(10), nil)
	e.Same("the rest once it is settled", h.One(env.Done(c)).Payloads, []core.Payload{env.Pay("q", 2)})
}

func claimMoves(e *env.Env) {
	e.PushIDs("a")
	c := e.Acquire("n1").One()
	e.Same("the queued jobs", e.Jobs(), nil)
	e.Same("the claimed job", e.Claimed("a"), c)
	counts := e.Counts()
	e.Same("fresh and claimed", [2]int64{counts.Fresh, counts.Claimed}, [2]int64{0, 1})
}

// A store may remember the time up to which it has claimed all jobs, and not search before that
// time again. The cases from here on add jobs that are due earlier.

// claimLong claims a job that has been due for an hour, and then one that is due now, which it
// settles. It returns the first claim.
func claimLong(e *env.Env, h *env.Holder) (old core.Claim) {
	e.TB.Helper()
	e.Push(env.EntryAt("old", "p", 1, env.Start.Add(-time.Hour)))
	old = h.One()
	e.Push(env.EntryAt("new", "p", 1, env.Start))
	h.Settle(env.Done(h.One()))
	return old
}

func claimOldPutBack(e *env.Env) {
	h := e.Acquire("n1")
	old := claimLong(e, h)
	e.Same("the claims of the turn that puts it back", env.IDs(h.Turn(1, env.Untouched(old)).Claims), []string{"old"})
	h = e.Acquire("n1")
	h.Settle(env.SettleAll(h.Orphans(), env.Untouched)...)
	e.Same("the claims of the turn after one that put it back", env.IDs(h.Claim(1)), []string{"old"})
}

func claimOldSettled(e *env.Env) {
	settler, ok := e.Store.(ports.Settler)
	if !ok {
		return
	}
	h := e.Acquire("n1")
	old := claimLong(e, h)
	e.Must(settler.Settle(e.Ctx, e.Shard, []core.Settlement{env.Untouched(old)}), "Settle")
	e.Same("the claims", env.IDs(h.Claim(1)), []string{"old"})
}

func claimOldPush(e *env.Env) {
	h := e.Acquire("n1")
	h.Settle(env.Done(claimLong(e, h)))
	e.Push(env.EntryAt("older", "p", 1, env.Start.Add(-2*time.Hour)))
	e.Same("the claims", env.IDs(h.Claim(1)), []string{"older"})
	e.Push(env.EntryAt("sooner", "p", 1, env.Start.Add(time.Hour)))
	e.PushBy(core.PushRule{Kind: core.Earliest}, env.EntryAt("sooner", "q", 2, env.Start.Add(-time.Hour)))
	e.Same("the claims", env.IDs(h.Claim(1)), []string{"sooner"})
}

// bytesTurn makes a turn that claims at most the given number of bytes.
func bytesTurn(h *env.Holder, size int) ports.TurnReply {
	h.Env.TB.Helper()
	r := h.Request(10)
	r.Bytes = size
	return h.Send(r)
}
