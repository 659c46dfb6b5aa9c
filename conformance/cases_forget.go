package conformance

import (
	"errors"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleForget = "Forget removes a queue in which nothing is queued, claimed or dead and whose shards nobody has leased: its record, counters and history"

func forgetCases() []namedCase {
	return []namedCase{
		{"removes all there is of an empty queue", ruleForget, forgetRemoves},
		{"lets the name be declared anew", "Forget: after it the name can be declared anew, with another shard count too", forgetAnew},
		{"refuses a queue that holds something", "Forget: ErrNotEmpty", forgetNotEmpty},
		{"refuses a queue that somebody works", "Forget: a *HeldError", forgetLeased},
		{"leaves other queues alone", ruleForget, forgetOthers},
	}
}

func forgetRemoves(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	r := h.request(0, settleAll(h.claim(2), done)...)
	r.Number = h.number + 1
	h.send(r)
	h.release()
	e.forget()
	queues, err := e.store.Queues(e.ctx)
	e.must(err, "Queues")
	e.same("the queues", queues, nil)
	_, err = e.store.Push(e.ctx, e.pushRequest(orders, entry("a", "p", 1)))
	e.refused("Push", err, ports.ErrUnknownQueue)
	_, err = e.store.Acquire(e.ctx, e.acquireRequest(e.shard, "n1"))
	e.refused("Acquire", err, ports.ErrUnknownQueue)
	_, err = e.store.Stats(e.ctx, ports.StatsRequest{Queues: []string{orders}})
	e.refused("Stats", err, ports.ErrUnknownQueue)
	_, err = e.store.Turn(e.ctx, r)
	e.refused("Turn", err, ports.ErrUnknownQueue)
	if e.repeats.All.Load() == 0 {
		e.refused("Forget again", e.store.Forget(e.ctx, orders), ports.ErrUnknownQueue)
	}
}

func forgetAnew(e *env) {
	e.declare("wide", 5)
	for _, at := range core.Shards("wide", 5) {
		e.pushTo("wide", entry(idsOf(at, 5, 1)[0], "p", 1))
		h := e.acquireAt(at, "n1")
		h.settle(done(h.one()))
		h.release()
	}
	e.forgetQueue("wide")
	e.declare("wide", 2)
	stats := e.stats("wide")
	e.same("the shards", len(stats.Shards), 2)
	e.same("the counts", stats.Counts, ports.Counts{})
	at := core.Shard{Queue: "wide", Index: 1}
	id := idsOf(at, 2, 1)[0]
	e.pushTo("wide", entry(id, "p", 1))
	e.same("the claims", ids(e.acquireAt(at, "n1").claim(1)), []string{id})
}

func forgetNotEmpty(e *env) {
	refused := func(what string) {
		e.tb.Helper()
		e.unchanged("a refused Forget", func() {
			e.refused("Forget with "+what, e.store.Forget(e.ctx, orders), ports.ErrNotEmpty)
		})
	}
	e.push(entryAt("a", "p", 1, start.Add(time.Hour)))
	refused("a queued job")
	e.byIDs(e.store.Expedite, "a")
	h := e.acquire("n1")
	c := h.one()
	h.release()
	refused("a claimed job")
	h = e.acquire("n1")
	h.orphans()
	h.settle(buried(c, "no use"))
	h.release()
	refused("a dead letter")
	e.byRefs(e.store.Purge, whole("a"))
	e.forget()
}

func forgetLeased(e *env) {
	h := e.acquire("n1")
	err := e.store.Forget(e.ctx, orders)
	e.refused("Forget of a leased queue", err, ports.ErrLeaseHeld)
	if held, ok := errors.AsType[*ports.HeldError](err); !ok || held.Shard != e.shard || held.Owner != "n1" {
		e.errorf("Forget of a leased queue returned %#v, want a *HeldError that names shard and owner", err)
	}
	e.same("what the holder claims", h.claim(1), nil)
	e.clock.Advance(ttl + time.Microsecond)
	e.forget()
}

func forgetOthers(e *env) {
	e.declare("orders2", 1)
	e.declare("order", 1)
	e.pushTo("orders2", entry("a", "p", 1))
	before := e.snapshot("orders2")
	e.forget()
	e.same("another queue", e.snapshot("orders2"), before)
	e.same("the length of a third", e.stats("order").Fresh, int64(0))
}

// forget forgets the queue orders.
func (e *env) forget() {
	e.tb.Helper()
	e.forgetQueue(orders)
}

func (e *env) forgetQueue(queue string) {
	e.tb.Helper()
	before := e.repeats.All.Load()
	err := e.store.Forget(e.ctx, queue)
	if errors.Is(err, ports.ErrUnknownQueue) && e.repeats.All.Load() > before {
		return // its first call has forgotten it
	}
	e.must(err, "Forget")
}
