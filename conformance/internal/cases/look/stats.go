package look

import (
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func statsCases() []env.Case {
	return []env.Case{
		{Name: "counts every place", Rule: "Counts are the sizes of a queue or of a shard", Check: statsCount},
		{Name: "sums up the shards", Rule: "QueueStats: Shards are in order of index", Check: statsShards},
		{
			Name: "returns the time of the oldest job",
			Rule: "Counts: Oldest is the smallest WaitsFrom of the queued jobs; " +
				"unlike a shard's head, it ignores pauses and claims",
			Check: statsOldest,
		},
		{
			Name:  "counts the wait of an urgent job from its push",
			Rule:  "RULES 6: a job waits from the later of PerformAt and FirstPush",
			Check: statsUrgent,
		},
		{
			Name:  "counts the wait of a job put back from its push after the clock was set back",
			Rule:  "RULES 6: a job waits from the later of PerformAt and FirstPush",
			Check: statsPutBackEarlier,
		},
		{
			Name:  "shows the job that has waited longest behind urgent ones",
			Rule:  "RULES 6: the lag of a shard is the longest wait of its queued jobs and orphans",
			Check: statsBehindUrgent,
		},
		{
			Name: "show a dead owner's jobs as orphans",
			Rule: "ShardStats: Owner and Token are those of the last lease, which ends at ExpiresAt; " +
				"Owner is empty if the lease was released",
			Check: statsOrphans,
		},
		{
			Name:  "are in the order of the request",
			Rule:  "Stats sums up queues, in the order of the names given",
			Check: statsOrder,
		},
		{
			Name:  "refuse a queue that was not declared",
			Rule:  "Inspector: every method returns ErrUnknownQueue",
			Check: statsUnknown,
		},
	}
}

func statsCount(e *env.Env) {
	e.Push(env.EntryAt("f1", "p", 1, 10), env.EntryAt("f2", "p", 1, 10), env.EntryAt("f2", "q", 1, 10),
		env.EntryAt("d1", "p", 1, 1), env.EntryAt("d2", "p", 1, 2),
		env.EntryAt("d2", "q", 1, 2), env.EntryAt("r1", "p", 1, 3), env.EntryAt("p1", "p", 1, 4),
		env.EntryAt("c1", "p", 1, 5), env.EntryAt("c2", "p", 1, 6))

	h := e.Acquire("n1")
	c := h.Claim(6)
	h.Settle(env.Buried(c[0], "no"), env.Buried(c[1], "no"), env.Failed(c[2], "boom", time.Hour), env.Done(c[3]))

	got := e.Stats(env.Orders)
	want := ports.Counts{
		Fresh:     2,
		Retrying:  1,
		Claimed:   2,
		Dead:      2,
		Processed: 1,
		Failed:    3,
		Oldest:    env.Due(env.Start),
	}

	e.Same("the counts of the queue", got.Counts, want)
	e.Same("the counts of the shard", got.Shards, []ports.ShardStats{{
		Shard:     e.Shard,
		Counts:    want,
		Owner:     "n1",
		Token:     h.Lease.Token,
		ExpiresAt: env.Start.Add(env.TTL),
	}})

	e.Same("the record", got.Queue, e.Declared[env.Orders])
	e.Same("the store's clock", got.Now, env.Start)
}

func statsShards(e *env.Env) {
	e.Declare("wide", 3)

	for i, s := range core.Shards("wide", 3) {
		for _, id := range env.IDsOf(s, 3, i) {
			e.PushTo("wide", env.EntryAt(id, "p", 1, env.Start.Add(time.Duration(100-i)*time.Second)))
		}
	}

	got := e.Stats("wide")
	e.Same("the fresh jobs of all", got.Fresh, int64(3))
	e.Same("the oldest of all", got.Oldest, env.Due(env.Start.Add(98*time.Second)))

	for i, s := range got.Shards {
		e.Same("the shard", s.Shard, core.Shard{Queue: "wide", Index: i})
		e.Same("its fresh jobs", s.Fresh, int64(i))
	}

	e.Same("how many shards", len(got.Shards), 3)
	e.Same("the oldest of an empty shard", env.Plain(got.Shards[0].Oldest), core.Head{})
}

func statsOldest(e *env.Env) {
	e.Same("of an empty queue", env.Plain(e.Counts().Oldest), core.Head{})
	e.PushIDs("a")
	e.Acquire("n1").One()
	e.Push(env.EntryAt("a", "q", 1, env.Start.Add(10*time.Second)))
	e.Push(env.EntryAt("b", "q", 1, env.Start.Add(20*time.Second)))
	e.Pause(env.Orders)
	e.Same("with a claim and a pause", e.Counts().Oldest, env.Due(env.Start.Add(10*time.Second)))
}

func statsUrgent(e *env.Env) {
	h := e.Acquire("n1")
	e.Push(env.Entry("a", "p", 1))
	c := h.One()
	e.Clock.Advance(time.Minute)
	e.Push(env.Urgent("a", "q", 2, time.Hour), env.Urgent("b", "p", 1, 2*time.Hour), env.EntryAt("c", "p", 1, 10))

	e.Same("of urgent jobs", e.Counts().Oldest, env.Due(e.Now()))
	e.Same("of the shard", e.Stats(env.Orders).Shards[0].Oldest, env.Due(e.Now()))

	e.Push(env.EntryAt("d", "p", 1, e.Now().Add(time.Hour)))
	e.Clock.Advance(time.Second)
	e.Push(env.Urgent("d", "q", 2, time.Hour))
	e.Same("beside one whose first push is older", e.Counts().Oldest, env.Due(e.Now().Add(-time.Second)))

	h.Settle(env.Done(c))
	h.Claim(5)
	e.Same("of no job", env.Plain(e.Counts().Oldest), core.Head{})
}

func statsPutBackEarlier(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("b", "p", 1))
	h := e.Acquire("n1")
	claims := h.Claim(2)
	e.Clock.Advance(-time.Minute)
	h.Settle(env.Failed(claims[0], "boom", time.Second), env.Snoozed(claims[1], 2*time.Second))
	e.Same("the oldest", e.Counts().Oldest, env.Due(env.Start))
	e.Clock.Advance(2 * time.Minute)
	h.Settle(env.SettleAll(h.Claim(2), env.Done)...)
	e.Same("of no job", env.Plain(e.Counts().Oldest), core.Head{})
}

func statsBehindUrgent(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("b", "p", 1))
	e.Clock.Advance(time.Minute)

	for i, long := range []string{"", strings.Repeat("x", 3<<10)} {
		for n := range 20 {
			id := fmt.Sprint(i, "-", n)
			e.Push(env.Urgent(id, long, 1, time.Hour), env.Urgent(id, "q", 2, time.Hour))
			e.Clock.Advance(time.Second)
		}
	}

	e.Same("behind urgent jobs", e.Counts().Oldest, env.Due(env.Start))
	reply, err := e.Store.Recount(e.Ctx, ports.RecountRequest{Shard: e.Shard})
	e.Must(err, "Recount")
	e.Same("of a recount", reply.After.Oldest, env.Due(env.Start))

	e.ByIDs(e.Store.Delete, "a", "b")
	e.Same("without them", e.Counts().Oldest, env.Due(env.Start.Add(time.Minute)))
}

// statsOrphans follows a lease. Its claims are orphaned while the shard has no owner.
func statsOrphans(e *env.Env) {
	e.Declare("wide", 2)
	left, other := core.Shard{Queue: "wide"}, core.Shard{Queue: "wide", Index: 1}

	for _, s := range []core.Shard{left, other} {
		for _, id := range env.IDsOf(s, 2, 3) {
			e.PushTo("wide", env.Entry(id, "p", 1))
		}
	}

	alive := e.AcquireAt(other, "n2")
	alive.Claim(1)
	h := e.AcquireAt(left, "n1")
	h.Claim(2)

	want := func(when string, orphaned int64) {
		e.TB.Helper()
		alive.Renew()
		got := e.Stats("wide")
		e.Same("the orphans of the shard "+when, got.Shards[0].Orphaned(got.Now), orphaned)
		e.Same("the orphans of the queue "+when, got.Orphaned(), orphaned)
		e.Same("the claimed jobs "+when, got.Claimed, int64(3))
	}

	want("while its lease lasts", 0)
	e.Clock.Advance(env.TTL)
	want("when it has run out", 2)

	h.Renew()
	want("after a late renewal", 0)
	h.Release()
	want("after its release", 2)

	e.AcquireAt(left, "n3")
	want("when another has the shard", 0)
}

func statsOrder(e *env.Env) {
	e.Declare("b", 1)
	e.Declare("a", 1)
	all, err := e.Store.Stats(e.Ctx, ports.StatsRequest{Queues: []string{"b", env.Orders, "a"}})
	e.Must(err, "Stats")
	var names []string
	for _, q := range all {
		names = append(names, q.Queue.Name)
	}
	e.Same("the names", names, []string{"b", env.Orders, "a"})
}

func statsUnknown(e *env.Env) {
	_, err := e.Store.Stats(e.Ctx, ports.StatsRequest{Queues: []string{env.Orders, "nowhere"}})
	e.Refused("Stats with an unknown queue among them", err, ports.ErrUnknownQueue)
	_, err = e.Store.Heads(e.Ctx, []core.Shard{e.Shard, {Queue: "nowhere"}})
	e.Refused("Heads with an unknown queue among them", err, ports.ErrUnknownQueue)
}

const (
	ruleCount = "Recount counts a shard's queued, claimed and dead entries one by one " +
		"and corrects the counts of Stats and Groups if they differ"
	ruleCountSteps = "Recount: the caller repeats the step with the Next of the last reply until Next is empty; " +
		"then the counts are right, even if the shard changed between the steps"
	ruleCounted = "RecountReply: over all steps, Counted is at least the number of entries that existed all the time"
)

func recountCases() []env.Case {
	return []env.Case{
		{Name: "agrees with Stats", Rule: ruleCount, Check: recountAgrees},
		{
			Name:  "does not disturb a job that runs alone",
			Rule:  "Recount only counts; while a job that runs alone is claimed, no other job is, before and after",
			Check: recountAlone,
		},
		{Name: "counts every entry over its steps", Rule: ruleCounted, Check: recountCounts},
		{Name: "works while jobs of the shard run", Rule: ruleCountSteps, Check: recountBesideWork},
		{
			Name:  "may be repeated",
			Rule:  "Recount: repeating a step, or all of them, changes nothing more",
			Check: recountAgain,
		},
		{
			Name: "refuses an invalid shard or place",
			Rule: "Recount: ErrInvalidRequest for a shard that the queue does not have, " +
				"and for an After that no reply returned",
			Check: recountInvalid,
		},
	}
}

// recounted is the number of entries of each kind that recountOf makes.
const recounted = 12

// recountOf fills the shard with queued, failed, claimed and dead entries, and returns the claims.
func recountOf(e *env.Env) (*env.Holder, []core.Claim) {
	e.TB.Helper()

	some := func(what string) (ids []string) {
		for i := range recounted {
			ids = append(ids, fmt.Sprintf("%s-%02d", what, i))
		}
		return ids
	}

	for i, id := range some("dead") {
		e.BuryIn(fmt.Sprintf("group %d", i%5), id)
	}
	e.FailAll(some("failed")...)
	e.PushIDs(some("claimed")...)

	h := e.Acquire("n1")
	claims := h.Claim(recounted)
	e.PushIDs(some("fresh")...)
	return h, claims
}

func recountAgrees(e *env.Env) {
	e.BuryAll("dead1", "dead2")
	e.PushIDs("a", "b", "c", "d", "e")

	h := e.Acquire("n1")
	claims := h.Claim(3)
	h.Settle(env.Failed(claims[0], "boom", time.Hour), env.Done(claims[1]))
	e.PushIDs("c")

	e.Unchanged("Recount", func() {
		counts := e.Stats(env.Orders).Shards[0].Counts
		reply := e.Recount(0, func() {})
		e.Same("the counts before", reply.Before, counts)
		e.Same("the counts after", reply.After, counts)
		e.Same("fresh, retrying, claimed and dead",
			[4]int64{counts.Fresh, counts.Retrying, counts.Claimed, counts.Dead}, [4]int64{3, 1, 1, 2})
	})
}

func recountAlone(e *env.Env) {
	e.PlaceAlone("r", 10)
	h := e.Acquire("n1")
	c := h.One()
	e.Push(env.EntryAt("a", "p", 1, 20))
	e.Recount(0, func() {})
	e.Same("the claims beside it", h.Claim(10), nil)
	e.Same("the claims once it is done", env.IDs(h.Turn(10, env.Done(c)).Claims), []string{"a"})
	e.Push(env.EntryAt("b", "p", 1, 30))
	e.Recount(0, func() {})
	e.Same("the claims beside one that does not run alone", env.IDs(h.Claim(10)), []string{"b"})
}

func recountCounts(e *env.Env) {
	recountOf(e)
	for _, limit := range []int{1, 5, 0} {
		e.Unchanged("Recount", func() {
			counts := e.Stats(env.Orders).Shards[0].Counts
			reply := e.Recount(limit, func() {})
			e.Same(fmt.Sprintf("the counts after steps of %d entries", limit), reply.After, counts)
			if reply.Counted < 4*recounted {
				e.Errorf("steps of %d entries have counted %d of %d", limit, reply.Counted, 4*recounted)
			}
		})
	}
}

// recountBesideWork pushes, claims, settles, buries, revives and purges between the steps of
// recounts. The recounts must correct nothing and damage nothing.
func recountBesideWork(e *env.Env) {
	h, claims := recountOf(e)
	var processed, failures int64 = 0, 2 * recounted

	turn := 0
	work := func() {
		turn++
		var settled []core.Settlement
		for i, c := range claims {
			s := env.Done(c)
			switch (turn + i) % 4 {
			case 0:
				s = env.Failed(c, "boom", 0)
			case 1:
				s = env.BuriedAs(c, fmt.Sprintf("group %d", turn%7))
			case 2:
				s = env.Untouched(c)
			}
			settled = append(settled, s)
			processed, failures = processed+env.Count(s.Processed), failures+env.Count(s.Failed)
		}

		e.Clock.Advance(time.Microsecond)
		claims = h.Turn(3, settled...).Claims
		e.PushIDs(fmt.Sprintf("fresh-%02d", turn%40), fmt.Sprintf("dead-%02d", turn%recounted))
		e.ByIDs(e.Store.Bury, fmt.Sprintf("fresh-%02d", (turn+3)%40), fmt.Sprintf("failed-%02d", turn%recounted))

		switch turn % 3 {
		case 0:
			e.ByRefs(e.Store.Purge, env.Whole(fmt.Sprintf("dead-%02d", turn%recounted)))
		case 1:
			e.ByAge(e.Store.Revive, core.MaxInstant, 2)
		}
	}

	for range 3 {
		work()
		reply := e.Recount(4, work)
		e.Same("what was corrected", reply.Before, reply.After)
		e.CountsMatch(env.Orders, e.Stats(env.Orders).Processed, e.Stats(env.Orders).Failed)
	}

	e.Same("processed and failed",
		[2]int64{e.Stats(env.Orders).Processed, e.Stats(env.Orders).Failed}, [2]int64{processed, failures})
}

func recountAgain(e *env.Env) {
	recountOf(e)
	e.Unchanged("Recount", func() {
		counts := e.Stats(env.Orders).Shards[0].Counts

		r := ports.RecountRequest{Shard: e.Shard, Limit: 5}
		for more := true; more; {
			first, err := e.Store.Recount(e.Ctx, r)
			e.Must(err, "Recount")
			again, err := e.Store.Recount(e.Ctx, r)
			e.Must(err, "Recount of the same step")
			e.Same("the counts after a step that is repeated", again.After, counts)

			more = first.Next != ""
			r.After = first.Next
		}
	})
}

func recountInvalid(e *env.Env) {
	for name, r := range map[string]struct {
		request ports.RecountRequest
		want    error
	}{
		"a shard that is not there": {
			ports.RecountRequest{Shard: core.Shard{Queue: env.Orders, Index: 1}}, ports.ErrInvalidRequest,
		},
		"a shard below 0": {
			ports.RecountRequest{Shard: core.Shard{Queue: env.Orders, Index: -1}}, ports.ErrInvalidRequest,
		},
		"an unknown queue":     {ports.RecountRequest{Shard: core.Shard{Queue: "never"}}, ports.ErrUnknownQueue},
		"an After of no reply": {ports.RecountRequest{Shard: e.Shard, After: "nowhere"}, ports.ErrInvalidRequest},
	} {
		_, err := e.Store.Recount(e.Ctx, r.request)
		e.Refused("Recount of "+name, err, r.want)
	}
}
