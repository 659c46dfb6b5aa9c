package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func statsCases() []namedCase {
	return []namedCase{
		{"counts every place", "Counts are the sizes of a queue or of a shard", statsCount},
		{"sums up the shards", "QueueStats: Shards are in order of index", statsShards},
		{"returns the time of the oldest job", "Counts: Oldest is the smallest WaitsFrom of the queued jobs; unlike a shard's head, it ignores pauses and claims", statsOldest},
		{"counts the wait of an urgent job from its push", "RULES 6: a job waits from the later of PerformAt and FirstPush", statsUrgent},
		{"counts the wait of a job put back from its push after the clock was set back", "RULES 6: a job waits from the later of PerformAt and FirstPush", statsPutBackEarlier},
		{"shows the job that has waited longest behind urgent ones", "RULES 6: the lag of a shard is the longest wait of its queued jobs and orphans", statsBehindUrgent},
		{"show a dead owner's jobs as orphans", "ShardStats: Owner and Token are those of the last lease, which ends at ExpiresAt; Owner is empty if the lease was released", statsOrphans},
		{"are in the order of the request", "Stats sums up queues, in the order of the names given", statsOrder},
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
		Fresh: 2, Retrying: 1, Claimed: 2, Dead: 2, Processed: 1, Failed: 3, Oldest: due(start),
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
			e.pushTo("wide", entryAt(id, "p", 1, start.Add(time.Duration(100-i)*time.Second)))
		}
	}
	got := e.stats("wide")
	e.same("the fresh jobs of all", got.Fresh, int64(3))
	e.same("the oldest of all", got.Oldest, due(start.Add(98*time.Second)))
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
	e.push(entryAt("a", "q", 1, start.Add(10*time.Second)))
	e.push(entryAt("b", "q", 1, start.Add(20*time.Second)))
	e.pause(orders)
	e.same("with a claim and a pause", e.counts().Oldest, due(start.Add(10*time.Second)))
}

func statsUrgent(e *env) {
	h := e.acquire("n1")
	e.push(entry("a", "p", 1))
	c := h.one()
	e.clock.Advance(time.Minute)
	e.push(urgent("a", "q", 2, time.Hour), urgent("b", "p", 1, 2*time.Hour), entryAt("c", "p", 1, 10))
	e.same("of urgent jobs", e.counts().Oldest, due(e.now()))
	e.same("of the shard", e.stats(orders).Shards[0].Oldest, due(e.now()))
	e.push(entryAt("d", "p", 1, e.now().Add(time.Hour)))
	e.clock.Advance(time.Second)
	e.push(urgent("d", "q", 2, time.Hour))
	e.same("beside one whose first push is older", e.counts().Oldest, due(e.now().Add(-time.Second)))
	h.settle(done(c))
	h.claim(5)
	e.same("of no job", plain(e.counts().Oldest), core.Head{})
}

func statsPutBackEarlier(e *env) {
	e.push(entry("a", "p", 1), entry("b", "p", 1))
	h := e.acquire("n1")
	claims := h.claim(2)
	e.clock.Advance(-time.Minute)
	h.settle(failed(claims[0], "boom", time.Second), snoozed(claims[1], 2*time.Second))
	e.same("the oldest", e.counts().Oldest, due(start))
	e.clock.Advance(2 * time.Minute)
	h.settle(settleAll(h.claim(2), done)...)
	e.same("of no job", plain(e.counts().Oldest), core.Head{})
}

func statsBehindUrgent(e *env) {
	e.push(entry("a", "p", 1), entry("b", "p", 1))
	e.clock.Advance(time.Minute)
	for i, long := range []string{"", strings.Repeat("x", 3<<10)} {
		for n := range 20 {
			id := fmt.Sprint(i, "-", n)
			e.push(urgent(id, long, 1, time.Hour), urgent(id, "q", 2, time.Hour))
			e.clock.Advance(time.Second)
		}
	}
	e.same("behind urgent jobs", e.counts().Oldest, due(start))
	reply, err := e.store.Recount(e.ctx, ports.RecountRequest{Shard: e.shard})
	e.must(err, "Recount")
	e.same("of a recount", reply.After.Oldest, due(start))
	e.byIDs(e.store.Delete, "a", "b")
	e.same("without them", e.counts().Oldest, due(start.Add(time.Minute)))
}

// statsOrphans follows a lease. Its claims are orphaned while the shard has no owner.
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

const (
	ruleCount      = "Recount counts a shard's queued, claimed and dead entries one by one and corrects the counts of Stats and Groups if they differ"
	ruleCountSteps = "Recount: the caller repeats the step with the Next of the last reply until Next is empty; then the counts are right, even if the shard changed between the steps"
	ruleCounted    = "RecountReply: over all steps, Counted is at least the number of entries that existed all the time"
)

func recountCases() []namedCase {
	return []namedCase{
		{"agrees with Stats", ruleCount, recountAgrees},
		{"does not disturb a job that runs alone", "Recount only counts; while a job that runs alone is claimed, no other job is, before and after", recountAlone},
		{"counts every entry over its steps", ruleCounted, recountCounts},
		{"works while jobs of the shard run", ruleCountSteps, recountBesideWork},
		{"may be repeated", "Recount: repeating a step, or all of them, changes nothing more", recountAgain},
		{"refuses an invalid shard or place", "Recount: ErrInvalidRequest for a shard that the queue does not have, and for an After that no reply returned", recountInvalid},
	}
}

// recount makes all steps of a recount of the shard, with about limit entries a step. It calls
// between after each step except the last.
func (e *env) recount(limit int, between func()) ports.RecountReply {
	e.tb.Helper()
	reply, err := harness.RecountAround(e.store, e.ctx, ports.RecountRequest{Shard: e.shard, Limit: limit}, between)
	e.must(err, "Recount")
	return reply
}

// recounted is the number of entries of each kind that recountOf makes.
const recounted = 12

// recountOf fills the shard with queued, failed, claimed and dead entries, and returns the claims.
func recountOf(e *env) (*holder, []core.Claim) {
	e.tb.Helper()
	some := func(what string) (ids []string) {
		for i := range recounted {
			ids = append(ids, fmt.Sprintf("%s-%02d", what, i))
		}
		return ids
	}
	for i, id := range some("dead") {
		e.buryIn(fmt.Sprintf("group %d", i%5), id)
	}
	failAll(e, some("failed")...)
	e.pushIDs(some("claimed")...)
	h := e.acquire("n1")
	claims := h.claim(recounted)
	e.pushIDs(some("fresh")...)
	return h, claims
}

func recountAgrees(e *env) {
	buryAll(e, "dead1", "dead2")
	e.pushIDs("a", "b", "c", "d", "e")
	h := e.acquire("n1")
	claims := h.claim(3)
	h.settle(failed(claims[0], "boom", time.Hour), done(claims[1]))
	e.pushIDs("c")
	e.unchanged("Recount", func() {
		counts := e.stats(orders).Shards[0].Counts
		reply := e.recount(0, func() {})
		e.same("the counts before", reply.Before, counts)
		e.same("the counts after", reply.After, counts)
		e.same("fresh, retrying, claimed and dead",
			[4]int64{counts.Fresh, counts.Retrying, counts.Claimed, counts.Dead}, [4]int64{3, 1, 1, 2})
	})
}

func recountAlone(e *env) {
	e.placeAlone("r", 10)
	h := e.acquire("n1")
	c := h.one()
	e.push(entryAt("a", "p", 1, 20))
	e.recount(0, func() {})
	e.same("the claims beside it", h.claim(10), nil)
	e.same("the claims once it is done", ids(h.turn(10, done(c)).Claims), []string{"a"})
	e.push(entryAt("b", "p", 1, 30))
	e.recount(0, func() {})
	e.same("the claims beside one that does not run alone", ids(h.claim(10)), []string{"b"})
}

func recountCounts(e *env) {
	recountOf(e)
	for _, limit := range []int{1, 5, 0} {
		e.unchanged("Recount", func() {
			counts := e.stats(orders).Shards[0].Counts
			reply := e.recount(limit, func() {})
			e.same(fmt.Sprintf("the counts after steps of %d entries", limit), reply.After, counts)
			if reply.Counted < 4*recounted {
				e.errorf("steps of %d entries have counted %d of %d", limit, reply.Counted, 4*recounted)
			}
		})
	}
}

// recountBesideWork pushes, claims, settles, buries, revives and purges between the steps of
// recounts. The recounts must correct nothing and damage nothing.
func recountBesideWork(e *env) {
	h, claims := recountOf(e)
	var processed, failures int64 = 0, 2 * recounted
	turn := 0
	work := func() {
		turn++
		var settled []core.Settlement
		for i, c := range claims {
			s := done(c)
			switch (turn + i) % 4 {
			case 0:
				s = failed(c, "boom", 0)
			case 1:
				s = buriedAs(c, fmt.Sprintf("group %d", turn%7))
			case 2:
				s = untouched(c)
			}
			settled = append(settled, s)
			processed, failures = processed+count(s.Processed), failures+count(s.Failed)
		}
		e.clock.Advance(time.Microsecond)
		claims = h.turn(3, settled...).Claims
		e.pushIDs(fmt.Sprintf("fresh-%02d", turn%40), fmt.Sprintf("dead-%02d", turn%recounted))
		e.byIDs(e.store.Bury, fmt.Sprintf("fresh-%02d", (turn+3)%40), fmt.Sprintf("failed-%02d", turn%recounted))
		switch turn % 3 {
		case 0:
			e.byRefs(e.store.Purge, whole(fmt.Sprintf("dead-%02d", turn%recounted)))
		case 1:
			e.byAge(e.store.Revive, core.MaxInstant, 2)
		}
	}
	for range 3 {
		work()
		reply := e.recount(4, work)
		e.same("what was corrected", reply.Before, reply.After)
		e.countsMatch(orders, e.stats(orders).Processed, e.stats(orders).Failed)
	}
	e.same("processed and failed", [2]int64{e.stats(orders).Processed, e.stats(orders).Failed}, [2]int64{processed, failures})
}

func recountAgain(e *env) {
	recountOf(e)
	e.unchanged("Recount", func() {
		counts := e.stats(orders).Shards[0].Counts
		r := ports.RecountRequest{Shard: e.shard, Limit: 5}
		for more := true; more; {
			first, err := e.store.Recount(e.ctx, r)
			e.must(err, "Recount")
			again, err := e.store.Recount(e.ctx, r)
			e.must(err, "Recount of the same step")
			e.same("the counts after a step that is repeated", again.After, counts)
			more = first.Next != ""
			r.After = first.Next
		}
	})
}

func recountInvalid(e *env) {
	for name, r := range map[string]struct {
		request ports.RecountRequest
		want    error
	}{
		"a shard that is not there": {ports.RecountRequest{Shard: core.Shard{Queue: orders, Index: 1}}, ports.ErrInvalidRequest},
		"a shard below 0":           {ports.RecountRequest{Shard: core.Shard{Queue: orders, Index: -1}}, ports.ErrInvalidRequest},
		"an unknown queue":          {ports.RecountRequest{Shard: core.Shard{Queue: "never"}}, ports.ErrUnknownQueue},
		"an After of no reply":      {ports.RecountRequest{Shard: e.shard, After: "nowhere"}, ports.ErrInvalidRequest},
	} {
		_, err := e.store.Recount(e.ctx, r.request)
		e.refused("Recount of "+name, err, r.want)
	}
}
