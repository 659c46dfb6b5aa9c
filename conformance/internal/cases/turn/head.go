package turn

import (
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
)

func headCases() []env.Case {
	return []env.Case{
		{Name: "is absent for an empty shard", Rule: ruleHead, Check: headEmpty},
		{Name: "is the earliest time, due or not", Rule: ruleHead, Check: headEarliest},
		{Name: "skips claimed ids", Rule: ruleHead, Check: headPassesOver},
		{
			Name:  "is absent while the queue is paused",
			Rule:  "TurnReply: Head is not OK while the queue is paused",
			Check: headPaused,
		},
		{
			Name:  "is absent while a recovered job is claimed",
			Rule:  "Turn: while a recovered job is claimed, no other job is",
			Check: headRecoveredClaimed,
		},
		{Name: "is the time of a recovered job if nothing is claimed", Rule: ruleHead, Check: headRecovered},
		{Name: "is absent behind a recovered job that waits", Rule: ruleHead, Check: headParked},
		{Name: "is the time of a job before a recovered one that waits", Rule: ruleHead, Check: headBeforeParked},
		{
			Name:  "needs no lease and writes nothing",
			Rule:  "Heads: it writes nothing; it needs no lease",
			Check: headReads,
		},
		{Name: "is listed in the order of the request", Rule: "Heads: in the order asked", Check: headOrder},
		{
			Name:  "is returned with a new lease",
			Rule:  "AcquireReply: Head and Paused are as in TurnReply",
			Check: headOfAcquire,
		},
		{
			Name:  "is returned with the shortest lease",
			Rule:  "AcquireReply: Head and Paused are as in TurnReply",
			Check: headOfShortLease,
		},
		{
			Name:  "counts the put-backs and claims of its turn",
			Rule:  "TurnReply: Head is when the shard's next job could be claimed",
			Check: headOfTurn,
		},
	}
}

func headEmpty(e *env.Env) {
	h := e.Acquire("n1")
	e.SameHead("without jobs", h, core.Head{})
	e.PushIDs("a")
	h.One()
	e.SameHead("with a claimed job only", h, core.Head{})
}

func headEarliest(e *env.Env) {
	h := e.Acquire("n1")
	e.Push(env.EntryAt("b", "p", 1, env.Start.Add(time.Hour)))
	e.SameHead("with a later job", h, env.Due(env.Start.Add(time.Hour)))
	e.Push(env.EntryAt("c", "p", 1, 12345))
	e.SameHead("with a due job", h, env.Due(12345))
	e.Push(env.EntryAt("a", "p", 1, env.Start.Add(time.Minute)))
	h.One()
	e.SameHead("once it is claimed", h, env.Due(env.Start.Add(time.Minute)))
}

func headPassesOver(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	c := h.One()
	e.Push(env.EntryAt("a", "q", 2, 5))
	e.SameHead("with the claimed id only", h, core.Head{})
	e.Push(env.EntryAt("b", "p", 1, env.Start.Add(time.Hour)))
	e.SameHead("with a later job", h, env.Due(env.Start.Add(time.Hour)))
	h.Settle(env.Done(c))
	e.SameHead("once it is settled", h, env.Due(5))
}

func headPaused(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")

	e.Must(e.Store.Pause(e.Ctx, env.Orders), "Pause")
	e.SameHead("while paused", h, core.Head{})
	e.Same("while paused: the turn's Paused", h.Turn(0).Paused, true)
	e.Same("while paused: the renewal's Paused", h.Renew().Paused, true)
	e.Same("while paused: the repeated acquire's Paused", h.Reacquire().Paused, true)

	e.Must(e.Store.Resume(e.Ctx, env.Orders), "Resume")
	e.SameHead("after it", h, env.Due(env.Start))
	e.Same("after it: the turn's Paused", h.Turn(0).Paused, false)
	e.Same("after it: the renewal's Paused", h.Renew().Paused, false)
	e.Same("after it: the repeated acquire's Paused", h.Reacquire().Paused, false)
}

func headRecoveredClaimed(e *env.Env) {
	e.PlaceAlone("r", 10)
	e.Push(env.EntryAt("a", "p", 1, 20))
	h := e.Acquire("n1")
	c := h.One()
	e.SameHead("while it is claimed", h, core.Head{})
	h.Settle(env.Done(c))
	e.SameHead("once it is settled", h, env.Due(20))
}

func headRecovered(e *env.Env) {
	e.PlaceAlone("r", env.Start.Add(time.Hour))
	h := e.Acquire("n1")
	e.SameHead("alone", h, env.Due(env.Start.Add(time.Hour)))
	e.Push(env.EntryAt("a", "p", 1, env.Start.Add(2*time.Hour)))
	e.SameHead("before another", h, env.Due(env.Start.Add(time.Hour)))
}

func headParked(e *env.Env) {
	e.PlaceAlone("r", 20)
	e.Push(env.EntryAt("a", "p", 1, 10), env.EntryAt("b", "p", 1, 30))
	h := e.Acquire("n1")
	c := h.One()
	e.SameHead("while another is claimed", h, core.Head{})
	h.Settle(env.Done(c))
	e.SameHead("once that is settled", h, env.Due(20))
}

func headBeforeParked(e *env.Env) {
	e.PlaceAlone("r", env.Start.Add(time.Hour))
	e.Push(env.EntryAt("a", "p", 1, 10), env.EntryAt("b", "p", 1, env.Start.Add(time.Minute)),
		env.EntryAt("c", "p", 1, env.Start.Add(2*time.Hour)))
	h := e.Acquire("n1")
	h.One()
	e.SameHead("with a job before it", h, env.Due(env.Start.Add(time.Minute)))
	e.Clock.Advance(time.Minute)
	h.One()
	e.SameHead("with a job behind it only", h, core.Head{})
}

func headReads(e *env.Env) {
	e.PushIDs("a")
	e.Unchanged("Heads", func() { e.Same("the head", e.Head(), env.Due(env.Start)) })
	reply, err := e.Store.Heads(e.Ctx, []core.Shard{e.Shard})
	e.Must(err, "Heads")
	e.Same("the store's clock", reply.Now, env.Start)
}

func headOrder(e *env.Env) {
	e.Declare("wide", 3)
	for i, id := range env.IDsOf(core.Shard{Queue: "wide", Index: 0}, 3, 1) {
		e.PushTo("wide", env.EntryAt(id, "p", 1, core.Instant(100+i)))
	}
	for i, id := range env.IDsOf(core.Shard{Queue: "wide", Index: 2}, 3, 1) {
		e.PushTo("wide", env.EntryAt(id, "p", 1, core.Instant(300+i)))
	}
	e.Push(env.EntryAt("a", "p", 1, 400))
	w := core.Shards("wide", 3)
	e.Same("the heads", e.Heads(w[2], e.Shard, w[1], w[0]), []core.Head{env.Due(300), env.Due(400), {}, env.Due(100)})
	e.Same("no shards", e.Heads(), nil)
}

func headOfAcquire(e *env.Env) {
	h := e.Acquire("n1")
	h.Release()

	e.PushIDs("a")
	h = e.Acquire("n1")
	e.Same("with a due job: the acquire's Head", env.Plain(h.Reply.Head), env.Due(env.Start))

	h.One()
	h = e.Acquire("n1")
	e.Same("with a job that the last lease left: the acquire's Head",
		env.Plain(h.Reply.Head), orElseNow(h, 1, core.Head{}))

	e.Push(env.EntryAt("a", "q", 2, 5), env.EntryAt("b", "p", 1, env.Start.Add(time.Hour)))
	h = e.Acquire("n1")
	e.Same("with a later job besides: the acquire's Head",
		env.Plain(h.Reply.Head), orElseNow(h, 1, env.Due(env.Start.Add(time.Hour))))

	h.Settle(env.SettleAll(h.Orphans(), env.Dropped)...)
	h = e.Acquire("n1")
	e.Same("once it is settled: the acquire's Head", env.Plain(h.Reply.Head), env.Due(5))

	e.Must(e.Store.Pause(e.Ctx, env.Orders), "Pause")
	h = e.Acquire("n1")
	e.Same("while paused: the acquire's Head", env.Plain(h.Reply.Head), core.Head{})
	e.Same("while paused: the acquire's Paused", h.Reply.Paused, true)
}

// headOfShortLease acquires a shard for the shortest TTL, as a holder that only reads may do.
// Before that, each entry of a push has made a job due earlier.
func headOfShortLease(e *env.Env) {
	h := e.Acquire("n1")
	h.Release()
	var entries []core.Entry
	for i := range 12 {
		entries = append(entries, env.EntryAt("a", string(rune('a'+i)), 1, core.Instant(16-i)))
	}
	e.PushBy(core.PushRule{Kind: core.Earliest}, entries...)
	r := e.AcquireRequest(e.Shard, "n1")
	r.TTL = time.Millisecond
	e.Same("the acquire's Head", env.Plain(e.AcquireBy(r).Reply.Head), env.Due(5))
}

// orElseNow returns the head that an acquire should return, given how many jobs the last owner
// left. The head is due now if the acquire has not handed over all of them.
func orElseNow(h *env.Holder, left int, head core.Head) core.Head {
	if len(h.Reply.Claims) < left {
		return env.Due(h.Reply.Now)
	}
	return head
}

func headOfTurn(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	reply := h.Turn(1)
	e.Same("after a claim", env.Plain(reply.Head), env.Due(env.Start))
	reply = h.Turn(1, env.Failed(reply.Claims[0], "boom", time.Minute))
	e.Same("after a put-back and a claim", env.Plain(reply.Head), env.Due(env.Start.Add(time.Minute)))
	reply = h.Settle(env.Done(reply.Claims[0]))
	e.Same("after the last", env.Plain(reply.Head), env.Due(env.Start.Add(time.Minute)))
}
