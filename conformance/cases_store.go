package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// storeCases are about rules for the store as a whole, and about Find.
func storeCases() []namedCase {
	return []namedCase{
		{"shares its data between handles", "Factory: each handle is a store of its own; all share the backend's data", storeHandles},
		{"keeps backends apart", "Factory makes an empty backend, even while earlier ones are in use", storeBackends},
		{"keeps queues apart", "architecture 1: a queue is a named stream of jobs", storeQueues},
		{"keeps shards apart", "package ports: atomic for each shard, never across them", storeShards},
		{"finds an id wherever it is", "Find looks one id up everywhere", storeFinds},
		{"refuses to find an invalid id", "Find returns core.ErrInvalidID for an invalid id", storeFindInvalid},
		{"keeps nothing of a request except its bytes", "package ports: requests are read only during the call, except for the bytes in them", storeRequests},
		{"leaves its replies to the caller", "package ports: slices of a reply belong to the caller", storeReplies},
		{"delays due jobs when the clock steps back", "package ports: a clock that steps back delays due jobs but breaks no promise", storeClockBack},
		{"ends a call whose context has ended", "package ports: when its context ends, a call returns soon with the context's error wrapped", storeContext},
	}
}

func storeHandles(e *env) {
	other := *e
	other.store = e.open()
	other.pushIDs("a", "b")
	h := e.acquire("n1")
	e.same("what the other handle pushed", ids(h.claim(1)), []string{"a"})
	there := *h
	there.e = &other
	e.same("a turn by the other handle", ids(there.claim(1)), []string{"b"})
	other.pause(orders)
	e.same("the pause of the other handle", e.stats(orders).Queue.Paused, true)
	e.same("all that can be seen", other.snapshot(orders), e.snapshot(orders))
	_, err := other.store.Acquire(e.ctx, e.acquireRequest(e.shard, "n2"))
	e.refused("Acquire by the other handle", err, ports.ErrLeaseHeld)
}

func storeBackends(e *env) {
	e.pushIDs("a")
	e.announce(ports.Node{Owner: "1"})
	other := e.another()
	queues, err := other.Queues(e.ctx)
	e.must(err, "Queues")
	e.same("the queues of a new backend", queues, nil)
	nodes, err := other.Nodes(e.ctx)
	e.must(err, "Nodes")
	e.same("the nodes of a new backend", nodes.Nodes, nil)
}

func storeQueues(e *env) {
	names := []string{"q", "q:0", "q:1", "q.0", "Q", "q0", "0:q"}
	for _, name := range names {
		e.declare(name, 2)
		e.pushTo(name, entry("a", name, 1))
	}
	s := core.Shard{Queue: "q", Index: core.ShardOf("a", 2)}
	h := e.acquireBy(e.acquireRequest(s, "n1"))
	h.settle(failed(h.one(), "boom", time.Minute))
	_, err := e.store.Bury(e.ctx, ports.JobStep{Shard: s, IDs: []string{"a"}})
	e.must(err, "Bury")
	e.record("n1", ports.Record{Queue: "q", Minute: start.Minute(), Stats: *measured(1)})
	e.pause("q")
	for _, name := range names[1:] {
		got := e.snapshot(name)
		e.same("the jobs of "+name, got.Jobs, []core.Job{job("a", fresh(start), pay(name, 1))})
		e.same("the dead of "+name, got.Dead, nil)
		e.same("the counts of "+name, got.Stats.Counts, ports.Counts{Fresh: 1, Oldest: due(start)})
		e.same("the record of "+name, got.Stats.Queue, e.declared[name])
		e.history(ports.HistoryRequest{Queue: name})
	}
}

func storeShards(e *env) {
	const shards = 3
	e.declare("wide", shards)
	for _, s := range core.Shards("wide", shards) {
		e.pushTo("wide", entry(idsOf(s, shards, 1)[0], "p", 1))
	}
	for _, s := range core.Shards("wide", shards) {
		claims := e.acquireBy(e.acquireRequest(s, "n1")).claim(10)
		e.same("the claims of "+s.String(), ids(claims), idsOf(s, shards, 1))
	}
}

func storeFinds(e *env) {
	found := func() ports.Found {
		f := e.find("a")
		f.Standing = ports.Standing{} // has cases of its own
		return f
	}
	e.same("nothing", found(), ports.Found{Shard: e.shard})
	buryAll(e, "a")
	e.push(entryAt("a", "c", 1, 5), entryAt("a", "d", 2, 5))
	at := e.now()
	c := e.acquire("n1").one()
	e.push(entry("a", "e", 1), entry("a", "f", 2))
	queued := job("a", core.Pushed(core.When{}, at), pay("e", 1), pay("f", 2))
	e.same("everywhere", found(), ports.Found{
		Shard:  e.shard,
		Queued: &ports.JobView{Job: queued, Count: 2},
		Claim: &ports.ClaimView{
			Claim: c, Count: 2, Shard: e.shard, Owner: "n1", Node: "node of n1", Since: at, LeaseUntil: at.Add(ttl),
		},
		DeadLetter: &ports.DeadLetterView{DeadLetter: core.DeadLetter{
			ID: "a", ChangedAt: start, Error: core.BuriedByHand, Group: core.BuriedByHand, Payloads: twoPayloads(),
		}, Count: 2},
	})
}

func storeFindInvalid(e *env) {
	for _, id := range []string{"", "\n", "\xff"} {
		_, err := e.store.Find(e.ctx, ports.FindRequest{Queue: orders, ID: id, Payloads: 1000})
		e.refused(fmt.Sprintf("Find of %q", id), err, core.ErrInvalidID)
	}
}

func storeRequests(e *env) {
	r := e.pushRequest(orders, entry("a", "p", 1), entry("a", "q", 2), entry("a", "r", 3))
	_, err := e.store.Push(e.ctx, r)
	e.must(err, "Push")
	clear(r.Entries)
	h := e.acquire("n1")
	c := h.one()
	e.same("the payloads", len(c.Payloads), 3)
	s := untouched(c)
	s.Except = []core.PayloadDisposition{{Position: 0}, {Position: 2, Disposition: core.Bury}}
	turn := h.request(0, s)
	h.send(turn)
	clear(s.Except)
	clear(turn.Settlements)
	e.same("what was put back", e.queued("a").Payloads, []core.Payload{pay("q", 2)})
	e.same("what was buried", e.deadLetter("a").Payloads, []core.Payload{pay("r", 3)})
	records := []ports.Record{e.recorded(measured(1))}
	e.record("n1", records...)
	clear(records)
	e.history(ports.HistoryRequest{Queue: orders}, e.thisMinute(measured(1)))
	n := ports.Node{Owner: "1", Queues: []string{orders}}
	e.announce(n)
	clear(n.Queues)
	e.same("the node's queues", e.nodes()[0].Queues, []string{orders})
}

func storeReplies(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	r := h.request(10)
	reply := h.send(r)
	want := []string{"a", "b"}
	e.same("the claims", ids(reply.Claims), want)
	clear(reply.Claims)
	e.same("the claims again", ids(h.send(r).Claims), want)
	e.cancel(true, "a")
	clear(h.turn(0).Cancellations)
	e.same("the cancels again", h.turn(0).Cancellations[0].ID, "a")
	e.announce(ports.Node{Owner: "1", Queues: []string{orders}})
	nodes := e.nodes()
	clear(nodes[0].Queues)
	clear(nodes)
	e.same("the nodes again", e.nodes()[0].Queues, []string{orders})
}

func storeClockBack(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	e.clock.Advance(-time.Hour)
	e.same("the claims an hour before", h.claim(1), nil)
	e.push(entry("b", "p", 1))
	reply := h.turn(1)
	e.same("the claims of what came then", ids(reply.Claims), []string{"b"})
	e.same("the store's clock", reply.Now, start.Add(-time.Hour))
	h.settle(failed(reply.Claims[0], "boom", time.Minute))
	e.same("the job put back", e.queued("b").PerformAt, start.Add(-time.Hour+time.Minute))
	e.clock.Set(start.Time())
	e.same("the claims when time is back", ids(h.claim(2)), []string{"b", "a"})
}

func storeContext(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	errs := map[string]error{"Release": e.store.Release(ctx, h.lease), "Pause": e.store.Pause(ctx, orders)}
	_, errs["Push"] = e.store.Push(ctx, e.pushRequest(orders, entry("b", "p", 1)))
	_, errs["Turn"] = e.store.Turn(ctx, h.request(1))
	_, errs["Heads"] = e.store.Heads(ctx, []core.Shard{e.shard})
	_, errs["Stats"] = e.store.Stats(ctx, ports.StatsRequest{Queues: []string{orders}})
	_, errs["Find"] = e.store.Find(ctx, ports.FindRequest{Queue: orders, ID: "a", Payloads: 1000})
	errs["DrainNode"] = e.store.DrainNode(ctx, "1", true)
	_, errs["Nodes"] = e.store.Nodes(ctx)
	errs["Audit"] = e.store.Audit(ctx, ports.Action{ID: "1", Verb: "pause"})
	_, errs["Track"] = e.store.Track(ctx, ports.TrackRequest{Queue: orders, ID: "a"})
	_, errs["Tracked"] = e.store.Tracked(ctx, orders)
	_, errs["Actions"] = e.store.Actions(ctx, ports.ActionsRequest{})
	for call, err := range errs {
		if !errors.Is(err, context.Canceled) {
			e.errorf("%s with an ended context returned error %v, want context.Canceled", call, err)
		}
	}
}
