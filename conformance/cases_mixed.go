package conformance

import (
	"errors"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// mixedCases are about several of a kind in one call: none of them affects the others.
func mixedCases() []namedCase {
	return []namedCase{
		{"a skipped settlement leaves the next one its own outcome", ruleSkip, mixedSkipped},
		{"the head is the earliest of what was put back", ruleHead, mixedHead},
		{"a returning job keeps its larger recoveries", ruleReturn, mixedRecoveries},
		{"the smaller first push stays, whichever side it is on", ruleReturn, mixedFirst},
		{"a repeat tells the head as it is", ruleHead, mixedRepeatHead},
		{"a repeat tells the head beside a job that runs alone", ruleHead, mixedRepeatAlone},
		{"a node that ran out has started anew", "Node: StartedAt is when the node announced itself after it was not known", mixedStarted},
		{"a job that begins twice has begun", ruleBegin, mixedBegins},
		{"forget looks at all shards before it removes the first", "Forget: it looks at all shards before it removes the first", mixedForget},
		{"forget tells what a clock that steps back leaves of a lease", ruleStepBack, mixedForgetStepBack},
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

// mixedRepeatHead repeats turns where something keeps the head back.
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
