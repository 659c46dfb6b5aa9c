package conformance

import (
	"time"

	"github.com/skeinq/skein/core"
)

func headCases() []namedCase {
	return []namedCase{
		{"is absent for an empty shard", ruleHead, headEmpty},
		{"is the earliest time, due or not", ruleHead, headEarliest},
		{"skips claimed ids", ruleHead, headPassesOver},
		{"is absent while the queue is paused", "TurnReply: Head is not OK while the queue is paused", headPaused},
		{"is absent while a recovered job is claimed", "Turn: while a recovered job is claimed, no other job is", headRecoveredClaimed},
		{"is the time of a recovered job if nothing is claimed", ruleHead, headRecovered},
		{"is absent behind a recovered job that waits", ruleHead, headParked},
		{"is the time of a job before a recovered one that waits", ruleHead, headBeforeParked},
		{"needs no lease and writes nothing", "Heads: it writes nothing; it needs no lease", headReads},
		{"is listed in the order of the request", "Heads: in the order asked", headOrder},
		{"is returned with a new lease", "AcquireReply: Head and Paused are as in TurnReply", headOfAcquire},
		{"is returned with the shortest lease", "AcquireReply: Head and Paused are as in TurnReply", headOfShortLease},
		{"counts the put-backs and claims of its turn", "TurnReply: Head is when the shard's next job could be claimed", headOfTurn},
	}
}

// sameHead checks the heads in the replies of Heads, of a turn that has nothing to do, of a
// renewal and of a repeated acquire.
func (e *env) sameHead(what string, h *holder, want core.Head) {
	e.tb.Helper()
	e.same(what+": Heads", e.head(), want)
	e.same(what+": the turn's Head", plain(h.turn(0).Head), want)
	e.same(what+": the renewal's Head", plain(h.renew().Head), want)
	e.same(what+": the repeated acquire's Head", plain(h.reacquire().Head), want)
}

func headEmpty(e *env) {
	h := e.acquire("n1")
	e.sameHead("without jobs", h, core.Head{})
	e.pushIDs("a")
	h.one()
	e.sameHead("with a claimed job only", h, core.Head{})
}

func headEarliest(e *env) {
	h := e.acquire("n1")
	e.push(entryAt("b", "p", 1, start.Add(time.Hour)))
	e.sameHead("with a later job", h, due(start.Add(time.Hour)))
	e.push(entryAt("c", "p", 1, 12345))
	e.sameHead("with a due job", h, due(12345))
	e.push(entryAt("a", "p", 1, start.Add(time.Minute)))
	h.one()
	e.sameHead("once it is claimed", h, due(start.Add(time.Minute)))
}

func headPassesOver(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	c := h.one()
	e.push(entryAt("a", "q", 2, 5))
	e.sameHead("with the claimed id only", h, core.Head{})
	e.push(entryAt("b", "p", 1, start.Add(time.Hour)))
	e.sameHead("with a later job", h, due(start.Add(time.Hour)))
	h.settle(done(c))
	e.sameHead("once it is settled", h, due(5))
}

func headPaused(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	e.must(e.store.Pause(e.ctx, orders), "Pause")
	e.sameHead("while paused", h, core.Head{})
	e.same("while paused: the turn's Paused", h.turn(0).Paused, true)
	e.same("while paused: the renewal's Paused", h.renew().Paused, true)
	e.same("while paused: the repeated acquire's Paused", h.reacquire().Paused, true)
	e.must(e.store.Resume(e.ctx, orders), "Resume")
	e.sameHead("after it", h, due(start))
	e.same("after it: the turn's Paused", h.turn(0).Paused, false)
	e.same("after it: the renewal's Paused", h.renew().Paused, false)
	e.same("after it: the repeated acquire's Paused", h.reacquire().Paused, false)
}

func headRecoveredClaimed(e *env) {
	e.placeAlone("r", 10)
	e.push(entryAt("a", "p", 1, 20))
	h := e.acquire("n1")
	c := h.one()
	e.sameHead("while it is claimed", h, core.Head{})
	h.settle(done(c))
	e.sameHead("once it is settled", h, due(20))
}

func headRecovered(e *env) {
	e.placeAlone("r", start.Add(time.Hour))
	h := e.acquire("n1")
	e.sameHead("alone", h, due(start.Add(time.Hour)))
	e.push(entryAt("a", "p", 1, start.Add(2*time.Hour)))
	e.sameHead("before another", h, due(start.Add(time.Hour)))
}

func headParked(e *env) {
	e.placeAlone("r", 20)
	e.push(entryAt("a", "p", 1, 10), entryAt("b", "p", 1, 30))
	h := e.acquire("n1")
	c := h.one()
	e.sameHead("while another is claimed", h, core.Head{})
	h.settle(done(c))
	e.sameHead("once that is settled", h, due(20))
}

func headBeforeParked(e *env) {
	e.placeAlone("r", start.Add(time.Hour))
	e.push(entryAt("a", "p", 1, 10), entryAt("b", "p", 1, start.Add(time.Minute)), entryAt("c", "p", 1, start.Add(2*time.Hour)))
	h := e.acquire("n1")
	h.one()
	e.sameHead("with a job before it", h, due(start.Add(time.Minute)))
	e.clock.Advance(time.Minute)
	h.one()
	e.sameHead("with a job behind it only", h, core.Head{})
}

func headReads(e *env) {
	e.pushIDs("a")
	e.unchanged("Heads", func() { e.same("the head", e.head(), due(start)) })
	reply, err := e.store.Heads(e.ctx, []core.Shard{e.shard})
	e.must(err, "Heads")
	e.same("the store's clock", reply.Now, start)
}

func headOrder(e *env) {
	e.declare("wide", 3)
	for i, id := range idsOf(core.Shard{Queue: "wide", Index: 0}, 3, 1) {
		e.pushTo("wide", entryAt(id, "p", 1, core.Instant(100+i)))
	}
	for i, id := range idsOf(core.Shard{Queue: "wide", Index: 2}, 3, 1) {
		e.pushTo("wide", entryAt(id, "p", 1, core.Instant(300+i)))
	}
	e.push(entryAt("a", "p", 1, 400))
	w := core.Shards("wide", 3)
	e.same("the heads", e.heads(w[2], e.shard, w[1], w[0]), []core.Head{due(300), due(400), {}, due(100)})
	e.same("no shards", e.heads(), nil)
}

func headOfAcquire(e *env) {
	h := e.acquire("n1")
	h.release()
	e.pushIDs("a")
	h = e.acquire("n1")
	e.same("with a due job: the acquire's Head", plain(h.reply.Head), due(start))
	h.one()
	h = e.acquire("n1")
	e.same("with a job that the last lease left: the acquire's Head", plain(h.reply.Head), h.orElseNow(1, core.Head{}))
	e.push(entryAt("a", "q", 2, 5), entryAt("b", "p", 1, start.Add(time.Hour)))
	h = e.acquire("n1")
	e.same("with a later job besides: the acquire's Head", plain(h.reply.Head), h.orElseNow(1, due(start.Add(time.Hour))))
	h.settle(settleAll(h.orphans(), dropped)...)
	h = e.acquire("n1")
	e.same("once it is settled: the acquire's Head", plain(h.reply.Head), due(5))
	e.must(e.store.Pause(e.ctx, orders), "Pause")
	h = e.acquire("n1")
	e.same("while paused: the acquire's Head", plain(h.reply.Head), core.Head{})
	e.same("while paused: the acquire's Paused", h.reply.Paused, true)
}

// headOfShortLease acquires a shard for the shortest TTL, as a holder that only reads may do.
// Before that, each entry of a push has made a job due earlier.
func headOfShortLease(e *env) {
	h := e.acquire("n1")
	h.release()
	var entries []core.Entry
	for i := range 12 {
		entries = append(entries, entryAt("a", string(rune('a'+i)), 1, core.Instant(16-i)))
	}
	e.pushBy(core.PushRule{Kind: core.Earliest}, entries...)
	r := e.acquireRequest(e.shard, "n1")
	r.TTL = time.Millisecond
	e.same("the acquire's Head", plain(e.acquireBy(r).reply.Head), due(5))
}

// orElseNow returns the head that an acquire should return, given how many jobs the last owner
// left. The head is due now if the acquire has not handed over all of them.
func (h *holder) orElseNow(left int, head core.Head) core.Head {
	if len(h.reply.Claims) < left {
		return due(h.reply.Now)
	}
	return head
}

func headOfTurn(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	reply := h.turn(1)
	e.same("after a claim", plain(reply.Head), due(start))
	reply = h.turn(1, failed(reply.Claims[0], "boom", time.Minute))
	e.same("after a put-back and a claim", plain(reply.Head), due(start.Add(time.Minute)))
	reply = h.settle(done(reply.Claims[0]))
	e.same("after the last", plain(reply.Head), due(start.Add(time.Minute)))
}
