package turn

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// mixedCases are about calls with several entries of one kind. No entry affects the others.
func mixedCases() []env.Case {
	return []env.Case{
		{Name: "a skipped settlement leaves the next one its own outcome", Rule: ruleSkip, Check: mixedSkipped},
		{Name: "the head is the earliest of what was put back", Rule: ruleHead, Check: mixedHead},
		{Name: "a returning job keeps its larger recoveries", Rule: ruleReturn, Check: mixedRecoveries},
		{Name: "the smaller first push stays, whichever side it is on", Rule: ruleReturn, Check: mixedFirst},
		{Name: "a repeat returns the present head", Rule: ruleHead, Check: mixedRepeatHead},
		{Name: "a repeat returns the head beside a job that runs alone", Rule: ruleHead, Check: mixedRepeatAlone},
		{
			Name:  "a server whose announcement expired starts anew",
			Rule:  "Node: StartedAt is the time of the first announcement since the server was unknown",
			Check: mixedStarted,
		},
		{Name: "a job that begins twice has begun", Rule: ruleBegin, Check: mixedBegins},
		{
			Name:  "forget checks all shards before it removes the first",
			Rule:  "Forget checks all shards before it removes the first",
			Check: mixedForget,
		},
		{
			Name:  "forget returns the rest of a lease after the clock stepped back",
			Rule:  ruleStepBack,
			Check: mixedForgetStepBack,
		},
		{
			Name:  "an id cancelled twice in a call is cancelled once",
			Rule:  "Cancel requests that claimed jobs end",
			Check: mixedCancel,
		},
	}
}

func mixedSkipped(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	claims := h.Claim(2)

	other, never := claims[0], claims[0]
	other.Receipt.Number++
	never.ID = "never"

	reply := h.Settle(env.Buried(never, "of nobody"),
		env.Buried(other, "of a"), env.Failed(claims[1], "of b", time.Hour))
	e.Reported("the skipped", reply.Skipped, []int{0, 1})
	e.Same("the error of the second", e.Queued("b").Failures.Newest().Text, "of b")
	e.Same("the dead", e.DeadIDs(), nil)
	e.Same("the first", e.Claimed("a"), claims[0])
}

func mixedHead(e *env.Env) {
	e.PushIDs("a", "b", "c")
	h := e.Acquire("n1")
	claims := h.Claim(3)
	reply := h.Settle(env.Failed(claims[0], "boom", 2*time.Hour),
		env.Failed(claims[1], "boom", time.Hour), env.Failed(claims[2], "boom", 3*time.Hour))
	e.Same("the head", env.Plain(reply.Head), env.Due(env.Start.Add(time.Hour)))
}

func mixedRecoveries(e *env.Env) {
	e.Push(env.Entry("a", "p", 1))
	h := e.Acquire("n1")
	c := h.One()
	e.Push(env.Entry("a", "q", 2))
	h.Settle(env.Recovered(c))
	want := env.Fresh(env.Start)
	want.Recoveries = 1
	e.Same("the merged job", e.Queued("a"), env.Job("a", want, env.Pay("p", 1), env.Pay("q", 2)))
}

func mixedFirst(e *env.Env) {
	e.Push(env.Entry("a", "p", 1))
	h := e.Acquire("n1")
	c := h.One()
	e.Clock.Advance(-time.Minute)
	e.Push(env.Entry("a", "q", 2))
	e.Clock.Advance(2 * time.Minute)
	c = h.One(env.Untouched(c))
	e.Same("the queued job's was smaller", c.FirstPush, env.Start.Add(-time.Minute))
	e.Push(env.Entry("a", "r", 3))
	h.Settle(env.Untouched(c))
	e.Same("the returning job's was smaller", e.Queued("a").FirstPush, env.Start.Add(-time.Minute))
}

func mixedCancel(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	h.One()
	e.Reported("how many were cancelled", e.Cancel(true, "a", "a").Handled, 1)
	e.Same("the cancels", len(h.Turn(0).Cancellations), 1)
}

// mixedRepeatHead repeats a turn before, during and after a pause. The pause hides the head.
func mixedRepeatHead(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	r := h.Request(1)
	h.Send(r)
	e.Same("with a due job", env.Plain(h.Send(r).Head), env.Due(env.Start))
	e.Pause(env.Orders)
	e.Same("while paused", env.Plain(h.Send(r).Head), core.Head{})
	e.Resume(env.Orders)
	e.Same("after it", env.Plain(h.Send(r).Head), env.Due(env.Start))
}

func mixedRepeatAlone(e *env.Env) {
	e.PlaceAlone("r", 20)
	e.Push(env.EntryAt("a", "p", 1, 10), env.EntryAt("b", "p", 1, 30))
	h := e.Acquire("n1")
	r := h.Request(1)
	c := h.Send(r).Claims[0]
	e.Same("the claim before it", c.ID, "a")
	e.Same("before it", env.Plain(h.Send(r).Head), core.Head{})
	r = h.Request(1, env.Done(c))
	e.Same("its claim", env.IDs(h.Send(r).Claims), []string{"r"})
	e.Same("beside it", env.Plain(h.Send(r).Head), core.Head{})
}

func mixedStarted(e *env.Env) {
	announce := func() ports.Node {
		e.TB.Helper()
		reply, err := e.Store.Announce(e.Ctx, ports.AnnounceRequest{
			Node: ports.Node{Owner: "n1", Name: "n1"},
			TTL:  env.TTL,
		})
		e.Must(err, "Announce")
		return reply.Nodes[0]
	}

	announce()
	e.Clock.Advance(env.TTL / 2)
	e.Same("while it is known", announce().StartedAt, env.Start)

	e.Clock.Advance(2 * env.TTL)
	e.Same("after it ran out", announce().StartedAt, e.Now())
}

func mixedBegins(e *env.Env) {
	e.PlaceRecovered(1, "r", 10)
	h := e.Acquire("n1")
	c := h.One()
	for range 2 {
		e.Reported("what has not begun", h.Begin(c, c).NotBegun, nil)
		e.Same("whether it has begun", e.Claimed("r").Begun, true)
	}
	h.Settle(env.Done(c))
	e.Same("processed", e.Counts().Processed, int64(1))
}

func mixedForget(e *env.Env) {
	e.Declare("wide", 3)
	shards := core.Shards("wide", 3)
	e.PushTo("wide", env.Entry(env.IDsOf(shards[2], 3, 1)[0], "p", 1))
	before := e.Snapshot("wide")
	e.Refused("Forget", e.Store.Forget(e.Ctx, "wide"), ports.ErrNotEmpty)
	e.Same("the queue", e.Snapshot("wide"), before)
	for _, s := range shards {
		e.PushTo("wide", env.Entry(env.IDsOf(s, 3, 1)[0], "p", 1))
	}
}

func mixedForgetStepBack(e *env.Env) {
	e.Acquire("n1")
	e.Clock.Advance(-time.Hour)
	held, ok := errors.AsType[*ports.HeldError](e.Store.Forget(e.Ctx, env.Orders))
	if !ok {
		e.Errorf("Forget of a leased queue returned no *HeldError")
		return
	}
	e.Same("how long the lease lasts", held.Remaining, env.TTL)
}

const ruleLease = "Consumer: owner and token decide who may call Turn, " +
	"until the lease is released or another owner acquires the shard"

// usualCases are about the most frequent turns and pushes, which a store may handle in a shorter
// way: a turn that settles done jobs and claims jobs with one payload, and a push of new ids that
// are due now.
func usualCases() []env.Case {
	return []env.Case{
		{Name: "a released lease can neither settle nor claim", Rule: ruleLease, Check: usualReleased},
		{Name: "a job is settled once", Rule: ruleSkip, Check: usualTwice},
		{Name: "each settlement names its own receipt", Rule: ruleSkip, Check: usualReceipts},
		{Name: "the bytes are those of the payloads", Rule: ruleBudget, Check: usualBytes},
		{Name: "Meta and times do not count as bytes", Rule: ruleBudget, Check: usualBytesOnly},
		{Name: "the first payload is taken whatever its size", Rule: ruleBudget, Check: usualFirst},
		{Name: "the head is absent before a job that runs alone", Rule: ruleHead, Check: usualHeadAlone},
		{
			Name:  "a turn that settles counts what failed",
			Rule:  "Settlement: Processed and Failed report whether the queue's counters increase",
			Check: usualCounts,
		},
		{
			Name:  "ids are listed while they are queued",
			Rule:  "DeclareRequest: IndexIDs keeps every queued job listed by id",
			Check: usualIndex,
		},
		{
			Name:  "a claimed job is not counted as a retry",
			Rule:  "RULES 7: retries are queued jobs with RetryCount >= 0",
			Check: usualRetry,
		},
		{Name: "one of several entries is of a claimed id", Rule: ruleClaimedPush, Check: usualClaimedEntry},
		{Name: "the second job of an id is claimed when the first is done", Rule: ruleClaimedPush, Check: usualSecond},
		{
			Name:  "a lease ends at the last instant at the latest",
			Rule:  "Instant.Add: limited to the range of an Instant",
			Check: usualForever,
		},
		{
			Name:  "a lease lasts for the turn's TTL after the clock stepped back",
			Rule:  ruleStepBack,
			Check: usualStepBack,
		},
		{
			Name:  "an empty turn returns the rest of a lease after the clock stepped back",
			Rule:  ruleStepBack,
			Check: usualLookBack,
		},
	}
}

const ruleClaimedPush = "RULES 2: the push makes a new queued job for a claimed id, " +
	"which can't be claimed while the first is"

func usualReleased(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	c := h.One()
	h.Release()
	e.Unchanged("a turn after the release", func() {
		h.Refused("a turn that claims", h.Request(1), ports.ErrLeaseLost)
		h.Refused("a turn that settles", h.Request(0, env.Done(c)), ports.ErrLeaseLost)
	})
}

func usualTwice(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	c := h.One()
	reply := h.Turn(1, env.Done(c), env.Done(c))
	e.Reported("the skipped", reply.Skipped, []int{1})
	e.Same("what was processed", e.Counts().Processed, int64(1))
}

func usualReceipts(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	other := claims[1]
	other.Receipt.Number++
	e.Reported("the skipped", h.Settle(env.Done(claims[0]), env.Done(other)).Skipped, []int{1})
	e.Same("the job with another receipt", e.Claimed("b"), claims[1])
	e.Same("what was processed", e.Counts().Processed, int64(1))
}

// pushSized pushes a job with one payload for each size. All are due at the same instant, and their
// ids are in order.
func pushSized(e *env.Env, meta []byte, when core.Instant, sizes ...int) {
	e.TB.Helper()
	for i, size := range sizes {
		p := env.Sized(size, 1)
		p.Meta = meta
		e.Push(core.Entry{ID: fmt.Sprint(i), Payload: p, When: core.At(when)})
	}
}

// besides has the turns that a case tries: a usual one, and a resent one, for which a store may not
// use its shorter way.
func besides() map[string]bool { return map[string]bool{"": false, " of a turn that is resent": true} }

func usualBytes(e *env.Env) {
	h := e.Acquire("n1")
	for beside, resent := range besides() {
		pushSized(e, nil, env.Start, 60, 40, 1)
		r := h.Request(10)
		r.Bytes, r.Resent = 100, resent
		reply := h.Send(r)
		e.Same("the claims"+beside, env.IDs(reply.Claims), []string{"0", "1"})
		e.Same("the head"+beside, env.Plain(reply.Head), env.Due(env.Start))
		h.Settle(env.SettleAll(append(reply.Claims, h.One()), env.Done)...)
	}
}

func usualBytesOnly(e *env.Env) {
	pushSized(e, []byte(strings.Repeat("m", core.MaxMetaBytes)), env.Start, 50, 50)
	h := e.Acquire("n1")
	claims := bytesTurn(h, 100).Claims
	e.Same("the claims with Meta", env.IDs(claims), []string{"0", "1"})
	h.Settle(env.SettleAll(claims, env.Done)...)
	pushSized(e, nil, 5, 50, 50)
	e.Same("the claims of an earlier time", env.IDs(bytesTurn(h, 100).Claims), []string{"0", "1"})
}

func usualFirst(e *env.Env) {
	h := e.Acquire("n1")
	for beside, resent := range besides() {
		pushSized(e, nil, env.Start, 200, 0)
		r := h.Request(10)
		r.Bytes, r.Resent = 100, resent
		claims := h.Send(r).Claims
		e.Same("the claims"+beside, env.IDs(claims), []string{"0"})
		h.Settle(env.SettleAll(append(claims, h.One()), env.Done)...)
	}
}

func usualHeadAlone(e *env.Env) {
	e.PlaceAlone("r", 20)
	e.Push(env.EntryAt("a", "p", 1, 10))
	e.Same("the head beside a claimed job", env.Plain(e.Acquire("n1").Turn(1).Head), core.Head{})
}

func usualCounts(e *env.Env) {
	e.PushIDs("a", "b", "c", "d")
	h := e.Acquire("n1")
	claims := h.Claim(4)

	both := env.Done(claims[1])
	both.Failed = true
	h.Settle(env.Done(claims[0]), both, env.Dropped(claims[2]))
	h.Settle(env.Failed(claims[3], "boom", time.Hour))

	again := e.Acquire("n1")
	again.Settle()
	counts := e.Counts()
	e.Same("processed and failed", [2]int64{counts.Processed, counts.Failed}, [2]int64{2, 2})

	e.Clock.Advance(2 * time.Hour)
	again.Settle(env.Failed(again.One(), "boom", time.Hour))
	e.Same("what has failed after another failure", e.Counts().Failed, int64(3))
}

func usualIndex(e *env.Env) {
	e.DeclareWith(ports.DeclareRequest{Queue: "indexed", Shards: 1, IndexIDs: true})

	listed := func(want ...string) {
		e.TB.Helper()
		page, err := e.Store.Jobs(e.Ctx, ports.JobsRequest{PageRequest: env.WholePage("indexed"), SortBy: ports.ByID})
		e.Must(err, "Jobs")
		var got []string
		for _, j := range page.Jobs {
			got = append(got, j.ID)
		}
		e.Same("the jobs by id", got, want)
	}

	e.PushTo("indexed", env.Entry("b", "p", 1))
	listed("b")
	e.PushTo("indexed", env.Entry("c", "p", 1), env.Entry("a", "p", 1))
	listed("a", "b", "c")

	h := e.AcquireBy(e.AcquireRequest(core.Shard{Queue: "indexed"}, "n1"))
	c := h.One()
	listed("b", "c")

	e.PushTo("indexed", env.Entry("a", "q", 1))
	h.Turn(2, env.Done(c))
	listed("c")
}

func usualRetry(e *env.Env) {
	e.FailAll("a")
	e.Clock.Advance(time.Minute)
	c := e.Acquire("n1").One()
	e.Same("the claimed job's retries", c.RetryCount, 0)
	counts := e.Counts()
	e.Same("fresh, retries and claimed", [3]int64{counts.Fresh, counts.Retrying, counts.Claimed}, [3]int64{0, 0, 1})
	for _, order := range []ports.SortBy{ports.RetryingByTime, ports.RetryingByID, ports.RetryingByCount} {
		e.Same("the retries listed", e.JobPages(order)(env.WholePage(env.Orders)).IDs, nil)
	}
}

// usualClaimedEntry pushes a few entries, and then more, because a store may look up many ids in
// another way.
func usualClaimedEntry(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	c := h.One()
	e.Push(env.Entry("a", "q", 2), env.Entry("b", "p", 1))
	e.Same("the claims beside it", env.IDs(h.Claim(10)), []string{"b"})
	e.ByIDs(e.Store.Delete, "a")
	e.Push(env.Entry("c", "p", 1), env.Entry("d", "p", 1), env.Entry("a", "q", 2),
		env.Entry("e", "p", 1), env.Entry("f", "p", 1), env.Entry("g", "p", 1))
	e.Same("the claims beside it, of more", env.IDs(h.Claim(10)), []string{"c", "d", "e", "f", "g"})
	e.Same("once it is done", env.IDs(h.Turn(10, env.Done(c)).Claims), []string{"a"})
}

func usualSecond(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	c := h.One()
	e.Push(env.Entry("a", "q", 2))
	second := h.One(env.Done(c))
	e.Same("the payloads", second.Payloads, []core.Payload{env.Pay("q", 2)})
	e.Same("the queued jobs", e.Jobs(), nil)
	counts := e.Counts()
	e.Same("fresh and claimed", [2]int64{counts.Fresh, counts.Claimed}, [2]int64{0, 1})
	h.Settle(env.Done(second))
	e.Same("the head", e.Head(), core.Head{})
}

func usualForever(e *env.Env) {
	const forever = time.Duration(math.MaxInt64)
	e.PushIDs("a")

	r := e.AcquireRequest(e.Shard, "n1")
	r.TTL = forever
	h := e.AcquireBy(r)
	want := core.MaxInstant.Sub(env.Start)
	e.Same("how long an acquired lease lasts", h.Reply.Remaining, want)

	turn := h.Request(1)
	turn.TTL = forever
	c := h.Send(turn)
	e.Same("how long a lease lasts after a turn", c.Remaining, want)

	turn = h.Request(0, env.Failed(c.Claims[0], "boom", 0))
	turn.TTL = forever
	e.Same("how long it lasts after a turn with a failure", h.Send(turn).Remaining, want)

	renewed, err := e.Store.Renew(e.Ctx, ports.RenewRequest{Lease: h.Lease, TTL: forever})
	e.Must(err, "Renew")
	e.Same("how long a renewed lease lasts", renewed.Remaining, want)
}

// heldFor checks how long the lease of the shard lasts for another owner.
func heldFor(e *env.Env, what string, want time.Duration) {
	e.TB.Helper()
	_, err := e.Store.Acquire(e.Ctx, e.AcquireRequest(e.Shard, "n2"))
	held, ok := errors.AsType[*ports.HeldError](err)
	if !ok {
		e.Errorf("%s: Acquire returned %v, want a *HeldError", what, err)
		return
	}
	e.Same(what+": how long the lease lasts", held.Remaining, want)
}

func usualStepBack(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	r := h.Request(1)
	r.TTL = 10 * time.Minute
	h.Send(r)
	e.Clock.Advance(-time.Hour)
	heldFor(e, "after a turn", 10*time.Minute)
	_, err := e.Store.Renew(e.Ctx, ports.RenewRequest{Lease: h.Lease, TTL: 5 * time.Minute})
	e.Must(err, "Renew")
	e.Clock.Advance(-time.Hour)
	heldFor(e, "after a renewal", 5*time.Minute)
}

func usualLookBack(e *env.Env) {
	h := e.Acquire("n1")
	e.Clock.Advance(-time.Hour)
	e.Same("how long the lease lasts", h.Turn(1).Remaining, env.TTL)
}
