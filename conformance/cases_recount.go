package conformance

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleCount      = "Recount counts a shard's queued, claimed and dead entries one by one and corrects what Stats and Groups say of them, should that differ"
	ruleCountSteps = "Recount: the caller repeats the step with the Next of the last reply until that is empty; then the counts are right, also if the shard was worked and changed between the steps"
	ruleCounted    = "RecountReply: over all steps Counted is at least the number of the entries that were there all the time"
)

func recountCases() []namedCase {
	return []namedCase{
		{"agrees with Stats", ruleCount, recountAgrees},
		{"leaves a job alone that runs alone", "Recount counts; while a job that runs alone is claimed nothing else is, before and after", recountAlone},
		{"counts all in its steps", ruleCounted, recountCounts},
		{"goes on while the shard is worked", ruleCountSteps, recountBesideWork},
		{"may be repeated", "Recount: repeating a step, or all of them, changes nothing more", recountAgain},
		{"refuses what is no shard and no place", "Recount: ErrInvalidRequest for a shard that the queue does not have, and for an After that no reply had", recountInvalid},
	}
}

// recount takes all steps of a recount of the shard, about limit entries a step, and calls between
// between them.
func (e *env) recount(limit int, between func()) ports.RecountReply {
	e.tb.Helper()
	reply, err := harness.RecountAround(e.store, e.ctx, ports.RecountRequest{Shard: e.shard, Limit: limit}, between)
	e.must(err, "Recount")
	return reply
}

// recounted is the number of entries that recountOf makes, of each kind.
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
// recounts, which find nothing to correct, and do no harm.
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
		"a place that is none":      {ports.RecountRequest{Shard: e.shard, After: "nowhere"}, ports.ErrInvalidRequest},
	} {
		_, err := e.store.Recount(e.ctx, r.request)
		e.refused("Recount of "+name, err, r.want)
	}
}
