package conformance

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func statsCases() []namedCase {
	return []namedCase{
		{"counts every place", "Counts are the sizes of a queue or of a shard", statsCount},
		{"sums up the shards", "QueueStats: Shards are in order of index", statsShards},
		{"tells the oldest job", "Counts: Oldest is the smallest PerformAt of the queued jobs; unlike a shard's head it ignores pauses and claims", statsOldest},
		{"show a dead owner's jobs as orphans", "ShardStats: Owner and Token are those of the last lease, which ends at ExpiresAt; Owner is empty if the lease was released", statsOrphans},
		{"come in the order asked", "Stats sums up queues, in the order of the names given", statsOrder},
		{"refuse a queue that was not declared", "Inspector: every method returns ErrUnknownQueue", statsUnknown},
	}
}

func statsCount(e *env) {
	e.push(entryAt("f1", "p", 1, 10), entryAt("f2", "p", 1, 10), entryAt("f2", "q", 1, 10), entryAt("d1", "p", 1, 1), entryAt("d2", "p", 1, 2),
		entryAt("d2", "q", 1, 2), entryAt("r1", "p", 1, 3), entryAt("p1", "p", 1, 4), entryAt("c1", "p", 1, 5), entryAt("c2", "p", 1, 6))
	h := e.acquire("n1")
	c := h.claim(6)
	h.settle(buried(c[0], "no"), buried(c[1], "no"), failed(c[2], "boom", time.Hour), done(c[3]))
	got := e.stats(orders)
	want := ports.Counts{
		Fresh: 2, Retrying: 1, Claimed: 2, Dead: 2, Processed: 1, Failed: 3, Oldest: due(10),
	}
	e.same("the counts of the queue", got.Counts, want)
	e.same("the counts of the shard", got.Shards, []ports.ShardStats{{
		Shard: e.shard, Counts: want, Owner: "n1", Token: h.lease.Token, ExpiresAt: start.Add(ttl),
	}})
	e.same("the record", got.Queue, e.declared[orders])
	e.same("the store's clock", got.Now, start)
}

func statsShards(e *env) {
	e.declare("wide", 3)
	for i, s := range core.Shards("wide", 3) {
		for _, id := range idsOf(s, 3, i) {
			e.pushTo("wide", entryAt(id, "p", 1, core.Instant(100-i)))
		}
	}
	got := e.stats("wide")
	e.same("the fresh jobs of all", got.Fresh, int64(3))
	e.same("the oldest of all", got.Oldest, due(98))
	for i, s := range got.Shards {
		e.same("the shard", s.Shard, core.Shard{Queue: "wide", Index: i})
		e.same("its fresh jobs", s.Fresh, int64(i))
	}
	e.same("how many shards", len(got.Shards), 3)
	e.same("the oldest of an empty shard", plain(got.Shards[0].Oldest), core.Head{})
}

func statsOldest(e *env) {
	e.same("of an empty queue", plain(e.counts().Oldest), core.Head{})
	e.pushIDs("a")
	e.acquire("n1").one()
	e.push(entryAt("a", "q", 1, 10))
	e.push(entryAt("b", "q", 1, 20))
	e.pause(orders)
	e.same("with a claim and a pause", e.counts().Oldest, due(10))
}

// statsOrphans follows a lease: its claims are orphaned while the shard has no owner.
func statsOrphans(e *env) {
	e.declare("wide", 2)
	left, other := core.Shard{Queue: "wide"}, core.Shard{Queue: "wide", Index: 1}
	for _, s := range []core.Shard{left, other} {
		for _, id := range idsOf(s, 2, 3) {
			e.pushTo("wide", entry(id, "p", 1))
		}
	}
	alive := e.acquireAt(other, "n2")
	alive.claim(1)
	h := e.acquireAt(left, "n1")
	h.claim(2)
	want := func(when string, orphaned int64) {
		e.tb.Helper()
		alive.renew()
		got := e.stats("wide")
		e.same("the orphans of the shard "+when, got.Shards[0].Orphaned(got.Now), orphaned)
		e.same("the orphans of the queue "+when, got.Orphaned(), orphaned)
		e.same("the claimed jobs "+when, got.Claimed, int64(3))
	}
	want("while its lease lasts", 0)
	e.clock.Advance(ttl)
	want("when it has run out", 2)
	h.renew()
	want("after a late renewal", 0)
	h.release()
	want("after its release", 2)
	e.acquireAt(left, "n3")
	want("when another has the shard", 0)
}

func statsOrder(e *env) {
	e.declare("b", 1)
	e.declare("a", 1)
	all, err := e.store.Stats(e.ctx, ports.StatsRequest{Queues: []string{"b", orders, "a"}})
	e.must(err, "Stats")
	var names []string
	for _, q := range all {
		names = append(names, q.Queue.Name)
	}
	e.same("the names", names, []string{"b", orders, "a"})
}

func statsUnknown(e *env) {
	_, err := e.store.Stats(e.ctx, ports.StatsRequest{Queues: []string{orders, "nowhere"}})
	e.refused("Stats with an unknown queue among them", err, ports.ErrUnknownQueue)
	_, err = e.store.Heads(e.ctx, []core.Shard{e.shard, {Queue: "nowhere"}})
	e.refused("Heads with an unknown queue among them", err, ports.ErrUnknownQueue)
}
