package conformance

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// mixedCases are about calls with several entries of one kind. No entry affects the others.
func mixedCases() []namedCase {
	return []namedCase{
		{"a skipped settlement leaves the next one its own outcome", ruleSkip, mixedSkipped},
		{"the head is the earliest of what was put back", ruleHead, mixedHead},
		{"a returning job keeps its larger recoveries", ruleReturn, mixedRecoveries},
		{"the smaller first push stays, whichever side it is on", ruleReturn, mixedFirst},
		{"a repeat returns the present head", ruleHead, mixedRepeatHead},
		{"a repeat returns the head beside a job that runs alone", ruleHead, mixedRepeatAlone},
		{"a server whose announcement expired starts anew", "Node: StartedAt is the time of the first announcement since the server was unknown", mixedStarted},
		{"a job that begins twice has begun", ruleBegin, mixedBegins},
		{"forget checks all shards before it removes the first", "Forget checks all shards before it removes the first", mixedForget},
		{"forget returns the rest of a lease after the clock stepped back", ruleStepBack, mixedForgetStepBack},
		{"an id cancelled twice in a call is cancelled once", "Cancel requests that claimed jobs end", mixedCancel},
	}
}

func mixedSkipped(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	claims := h.claim(2)
	other, never := claims[0], claims[0]
	other.Receipt.Number++
	never.ID = "never"
	reply := h.settle(buried(never, "of nobody"), buried(other, "of a"), failed(claims[1], "of b", time.Hour))
	e.reported("the skipped", reply.Skipped, []int{0, 1})
	e.same("the error of the second", e.queued("b").Error, "of b")
	e.same("the dead", e.deadIDs(), nil)
	e.same("the first", e.claimed("a"), claims[0])
}

func mixedHead(e *env) {
	e.pushIDs("a", "b", "c")
	h := e.acquire("n1")
	claims := h.claim(3)
	reply := h.settle(failed(claims[0], "boom", 2*time.Hour), failed(claims[1], "boom", time.Hour), failed(claims[2], "boom", 3*time.Hour))
	e.same("the head", plain(reply.Head), due(start.Add(time.Hour)))
}

func mixedRecoveries(e *env) {
	e.push(entry("a", "p", 1))
	h := e.acquire("n1")
	c := h.one()
	e.push(entry("a", "q", 2))
	h.settle(recovered(c))
	want := fresh(start)
	want.Recoveries = 1
	e.same("the merged job", e.queued("a"), job("a", want, pay("p", 1), pay("q", 2)))
}

func mixedFirst(e *env) {
	e.push(entry("a", "p", 1))
	h := e.acquire("n1")
	c := h.one()
	e.clock.Advance(-time.Minute)
	e.push(entry("a", "q", 2))
	e.clock.Advance(2 * time.Minute)
	c = h.one(untouched(c))
	e.same("the queued job's was smaller", c.FirstPush, start.Add(-time.Minute))
	e.push(entry("a", "r", 3))
	h.settle(untouched(c))
	e.same("the returning job's was smaller", e.queued("a").FirstPush, start.Add(-time.Minute))
}

func mixedCancel(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	h.one()
	e.reported("how many were cancelled", e.cancel(true, "a", "a").Handled, 1)
	e.same("the cancels", len(h.turn(0).Cancellations), 1)
}

// mixedRepeatHead repeats a turn before, during and after a pause. The pause hides the head.
func mixedRepeatHead(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	r := h.request(1)
	h.send(r)
	e.same("with a due job", plain(h.send(r).Head), due(start))
	e.pause(orders)
	e.same("while paused", plain(h.send(r).Head), core.Head{})
	e.resume(orders)
	e.same("after it", plain(h.send(r).Head), due(start))
}

func mixedRepeatAlone(e *env) {
	e.placeAlone("r", 20)
	e.push(entryAt("a", "p", 1, 10), entryAt("b", "p", 1, 30))
	h := e.acquire("n1")
	r := h.request(1)
	c := h.send(r).Claims[0]
	e.same("the claim before it", c.ID, "a")
	e.same("before it", plain(h.send(r).Head), core.Head{})
	r = h.request(1, done(c))
	e.same("its claim", ids(h.send(r).Claims), []string{"r"})
	e.same("beside it", plain(h.send(r).Head), core.Head{})
}

func mixedStarted(e *env) {
	announce := func() ports.Node {
		e.tb.Helper()
		reply, err := e.store.Announce(e.ctx, ports.AnnounceRequest{Node: ports.Node{Owner: "n1", Name: "n1"}, TTL: ttl})
		e.must(err, "Announce")
		return reply.Nodes[0]
	}
	announce()
	e.clock.Advance(ttl / 2)
	e.same("while it is known", announce().StartedAt, start)
	e.clock.Advance(2 * ttl)
	e.same("after it ran out", announce().StartedAt, e.now())
}

func mixedBegins(e *env) {
	e.placeRecovered(1, "r", 10)
	h := e.acquire("n1")
	c := h.one()
	for range 2 {
		e.reported("what has not begun", h.begin(c, c).NotBegun, nil)
		e.same("whether it has begun", e.claimed("r").Begun, true)
	}
	h.settle(done(c))
	e.same("processed", e.counts().Processed, int64(1))
}

func mixedForget(e *env) {
	e.declare("wide", 3)
	shards := core.Shards("wide", 3)
	e.pushTo("wide", entry(idsOf(shards[2], 3, 1)[0], "p", 1))
	before := e.snapshot("wide")
	e.refused("Forget", e.store.Forget(e.ctx, "wide"), ports.ErrNotEmpty)
	e.same("the queue", e.snapshot("wide"), before)
	for _, s := range shards {
		e.pushTo("wide", entry(idsOf(s, 3, 1)[0], "p", 1))
	}
}

func mixedForgetStepBack(e *env) {
	e.acquire("n1")
	e.clock.Advance(-time.Hour)
	held, ok := errors.AsType[*ports.HeldError](e.store.Forget(e.ctx, orders))
	if !ok {
		e.errorf("Forget of a leased queue returned no *HeldError")
		return
	}
	e.same("how long the lease lasts", held.Remaining, ttl)
}

const ruleLease = "Consumer: owner and token decide who may call Turn, until the lease is released or another owner acquires the shard"

// usualCases are about the most frequent turns and pushes, which a store may handle in a shorter
// way: a turn that settles done jobs and claims jobs with one payload, and a push of new ids that
// are due now.
func usualCases() []namedCase {
	return []namedCase{
		{"a released lease can neither settle nor claim", ruleLease, usualReleased},
		{"a job is settled once", ruleSkip, usualTwice},
		{"each settlement names its own receipt", ruleSkip, usualReceipts},
		{"the bytes are those of the payloads", ruleBudget, usualBytes},
		{"Meta and times do not count as bytes", ruleBudget, usualBytesOnly},
		{"the first payload is taken whatever its size", ruleBudget, usualFirst},
		{"the head is absent before a job that runs alone", ruleHead, usualHeadAlone},
		{"a turn that settles counts what failed", "Settlement: Processed and Failed report whether the queue's counters increase", usualCounts},
		{"ids are listed while they are queued", "DeclareRequest: IndexIDs keeps every queued job listed by id", usualIndex},
		{"a claimed job is not counted as a retry", "RULES 7: retries are queued jobs with RetryCount >= 0", usualRetry},
		{"one of several entries is of a claimed id", ruleClaimedPush, usualClaimedEntry},
		{"the second job of an id is claimed when the first is done", ruleClaimedPush, usualSecond},
		{"a lease ends at the last instant at the latest", "Instant.Add: limited to the range of an Instant", usualForever},
		{"a lease lasts for the turn's TTL after the clock stepped back", ruleStepBack, usualStepBack},
		{"an empty turn returns the rest of a lease after the clock stepped back", ruleStepBack, usualLookBack},
	}
}

const (
	ruleClaimedPush = "RULES 2: the push makes a new queued job for a claimed id, which can't be claimed while the first is"
)

func usualReleased(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	c := h.one()
	h.release()
	e.unchanged("a turn after the release", func() {
		h.refused("a turn that claims", h.request(1), ports.ErrLeaseLost)
		h.refused("a turn that settles", h.request(0, done(c)), ports.ErrLeaseLost)
	})
}

func usualTwice(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	c := h.one()
	reply := h.turn(1, done(c), done(c))
	e.reported("the skipped", reply.Skipped, []int{1})
	e.same("what was processed", e.counts().Processed, int64(1))
}

func usualReceipts(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	claims := h.claim(2)
	other := claims[1]
	other.Receipt.Number++
	e.reported("the skipped", h.settle(done(claims[0]), done(other)).Skipped, []int{1})
	e.same("the job with another receipt", e.claimed("b"), claims[1])
	e.same("what was processed", e.counts().Processed, int64(1))
}

// pushSized pushes a job with one payload for each size. All are due at the same instant, and their
// ids are in order.
func pushSized(e *env, meta []byte, when core.Instant, sizes ...int) {
	e.tb.Helper()
	for i, size := range sizes {
		p := sized(size, 1)
		p.Meta = meta
		e.push(core.Entry{ID: fmt.Sprint(i), Payload: p, When: core.At(when)})
	}
}

// besides has the turns that a case tries: a usual one, and a resent one, for which a store may not
// use its shorter way.
func besides() map[string]bool { return map[string]bool{"": false, " of a turn that is resent": true} }

func usualBytes(e *env) {
	h := e.acquire("n1")
	for beside, resent := range besides() {
		pushSized(e, nil, start, 60, 40, 1)
		r := h.request(10)
		r.Bytes, r.Resent = 100, resent
		reply := h.send(r)
		e.same("the claims"+beside, ids(reply.Claims), []string{"0", "1"})
		e.same("the head"+beside, plain(reply.Head), due(start))
		h.settle(settleAll(append(reply.Claims, h.one()), done)...)
	}
}

func usualBytesOnly(e *env) {
	pushSized(e, []byte(strings.Repeat("m", core.MaxMetaBytes)), start, 50, 50)
	h := e.acquire("n1")
	claims := bytesTurn(h, 100).Claims
	e.same("the claims with Meta", ids(claims), []string{"0", "1"})
	h.settle(settleAll(claims, done)...)
	pushSized(e, nil, 5, 50, 50)
	e.same("the claims of an earlier time", ids(bytesTurn(h, 100).Claims), []string{"0", "1"})
}

func usualFirst(e *env) {
	h := e.acquire("n1")
	for beside, resent := range besides() {
		pushSized(e, nil, start, 200, 0)
		r := h.request(10)
		r.Bytes, r.Resent = 100, resent
		claims := h.send(r).Claims
		e.same("the claims"+beside, ids(claims), []string{"0"})
		h.settle(settleAll(append(claims, h.one()), done)...)
	}
}

func usualHeadAlone(e *env) {
	e.placeAlone("r", 20)
	e.push(entryAt("a", "p", 1, 10))
	e.same("the head beside a claimed job", plain(e.acquire("n1").turn(1).Head), core.Head{})
}

func usualCounts(e *env) {
	e.pushIDs("a", "b", "c", "d")
	h := e.acquire("n1")
	claims := h.claim(4)
	both := done(claims[1])
	both.Failed = true
	h.settle(done(claims[0]), both, dropped(claims[2]))
	h.settle(failed(claims[3], "boom", time.Hour))
	again := e.acquire("n1")
	again.settle()
	counts := e.counts()
	e.same("processed and failed", [2]int64{counts.Processed, counts.Failed}, [2]int64{2, 2})
	e.clock.Advance(2 * time.Hour)
	again.settle(failed(again.one(), "boom", time.Hour))
	e.same("what has failed after another failure", e.counts().Failed, int64(3))
}

func usualIndex(e *env) {
	e.declareWith(ports.DeclareRequest{Queue: "indexed", Shards: 1, IndexIDs: true})
	listed := func(want ...string) {
		e.tb.Helper()
		page, err := e.store.Jobs(e.ctx, ports.JobsRequest{PageRequest: wholePage("indexed"), SortBy: ports.ByID})
		e.must(err, "Jobs")
		var got []string
		for _, j := range page.Jobs {
			got = append(got, j.ID)
		}
		e.same("the jobs by id", got, want)
	}
	e.pushTo("indexed", entry("b", "p", 1))
	listed("b")
	e.pushTo("indexed", entry("c", "p", 1), entry("a", "p", 1))
	listed("a", "b", "c")
	h := e.acquireBy(e.acquireRequest(core.Shard{Queue: "indexed"}, "n1"))
	c := h.one()
	listed("b", "c")
	e.pushTo("indexed", entry("a", "q", 1))
	h.turn(2, done(c))
	listed("c")
}

func usualRetry(e *env) {
	failAll(e, "a")
	e.clock.Advance(time.Minute)
	c := e.acquire("n1").one()
	e.same("the claimed job's retries", c.RetryCount, 0)
	counts := e.counts()
	e.same("fresh, retries and claimed", [3]int64{counts.Fresh, counts.Retrying, counts.Claimed}, [3]int64{0, 0, 1})
	for _, order := range []ports.SortBy{ports.RetryingByTime, ports.RetryingByID, ports.RetryingByCount} {
		e.same("the retries listed", e.jobPages(order)(wholePage(orders)).ids, nil)
	}
}

// usualClaimedEntry pushes a few entries, and then more, because a store may look up many ids in
// another way.
func usualClaimedEntry(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	c := h.one()
	e.push(entry("a", "q", 2), entry("b", "p", 1))
	e.same("the claims beside it", ids(h.claim(10)), []string{"b"})
	e.byIDs(e.store.Delete, "a")
	e.push(entry("c", "p", 1), entry("d", "p", 1), entry("a", "q", 2), entry("e", "p", 1), entry("f", "p", 1), entry("g", "p", 1))
	e.same("the claims beside it, of more", ids(h.claim(10)), []string{"c", "d", "e", "f", "g"})
	e.same("once it is done", ids(h.turn(10, done(c)).Claims), []string{"a"})
}

func usualSecond(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	c := h.one()
	e.push(entry("a", "q", 2))
	second := h.one(done(c))
	e.same("the payloads", second.Payloads, []core.Payload{pay("q", 2)})
	e.same("the queued jobs", e.jobs(), nil)
	counts := e.counts()
	e.same("fresh and claimed", [2]int64{counts.Fresh, counts.Claimed}, [2]int64{0, 1})
	h.settle(done(second))
	e.same("the head", e.head(), core.Head{})
}

func usualForever(e *env) {
	const forever = time.Duration(math.MaxInt64)
	e.pushIDs("a")
	r := e.acquireRequest(e.shard, "n1")
	r.TTL = forever
	h := e.acquireBy(r)
	want := core.MaxInstant.Sub(start)
	e.same("how long an acquired lease lasts", h.reply.Remaining, want)
	turn := h.request(1)
	turn.TTL = forever
	c := h.send(turn)
	e.same("how long a lease lasts after a turn", c.Remaining, want)
	turn = h.request(0, failed(c.Claims[0], "boom", 0))
	turn.TTL = forever
	e.same("how long it lasts after a turn with a failure", h.send(turn).Remaining, want)
	renewed, err := e.store.Renew(e.ctx, ports.RenewRequest{Lease: h.lease, TTL: forever})
	e.must(err, "Renew")
	e.same("how long a renewed lease lasts", renewed.Remaining, want)
}

// heldFor checks how long the lease of the shard lasts for another owner.
func (e *env) heldFor(what string, want time.Duration) {
	e.tb.Helper()
	_, err := e.store.Acquire(e.ctx, e.acquireRequest(e.shard, "n2"))
	held, ok := errors.AsType[*ports.HeldError](err)
	if !ok {
		e.errorf("%s: Acquire returned %v, want a *HeldError", what, err)
		return
	}
	e.same(what+": how long the lease lasts", held.Remaining, want)
}

func usualStepBack(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	r := h.request(1)
	r.TTL = 10 * time.Minute
	h.send(r)
	e.clock.Advance(-time.Hour)
	e.heldFor("after a turn", 10*time.Minute)
	_, err := e.store.Renew(e.ctx, ports.RenewRequest{Lease: h.lease, TTL: 5 * time.Minute})
	e.must(err, "Renew")
	e.clock.Advance(-time.Hour)
	e.heldFor("after a renewal", 5*time.Minute)
}

func usualLookBack(e *env) {
	h := e.acquire("n1")
	e.clock.Advance(-time.Hour)
	e.same("how long the lease lasts", h.turn(1).Remaining, ttl)
}
