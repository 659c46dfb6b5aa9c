package conformance

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleOrphans = "Acquire: jobs that an earlier lease left claimed stay claimed, with their marks, and pass to the new lease, in order of id"

func orphanCases() []namedCase {
	return []namedCase{
		{"pass to the next lease with their marks", ruleOrphans, orphansPass},
		{"come in order of id", ruleOrphans, orphansInOrder},
		{"come again when the attempt is repeated",
			"Acquire: the owner's last attempt again gives the same token and claims again",
			orphansComeAgain},
		{"come again when the turn that gave them is repeated",
			"Turn: a repeat gives the same orphans as far as they are still claimed",
			orphansOfATurn},
		{"count nothing until they are settled", "Acquire: acquiring counts nothing against them", orphansCountNothing},
		{"are settled under the new lease", "Acquire: the new lease settles them as core.RetryPolicy.Recover says", orphansSettle},
		{"are the old lease's no more", "Consumer: owner and token decide who may turn", orphansOfTheOld},
		{"are not claimed a second time", "Turn: ids that are claimed are passed over", orphansClaimedOnce},
	}
}

// leave makes the owner claim everything that is due and vanish.
func leave(e *env, owner string) []core.Claim {
	e.tb.Helper()
	claims := e.acquire(owner).claim(core.MaxTurnJobs)
	e.clock.Advance(ttl + time.Microsecond)
	return claims
}

func orphansPass(e *env) {
	e.push(core.Entry{ID: "a", Payload: core.Payload{Data: []byte("p"), Score: 1, Meta: []byte("m")}})
	left := leave(e, "n1")
	e.same("the jobs left", e.acquire("n2").orphans(), left)
	e.clock.Advance(ttl + time.Microsecond)
	e.same("the jobs left, a lease on", e.acquire("n3").orphans(), left)
}

func orphansInOrder(e *env) {
	e.pushIDs("c", "a", "é", "Z", "b")
	leave(e, "n1")
	h := e.acquire("n2")
	for i, c := range h.left[:max(0, len(h.left)-1)] {
		if c.ID >= h.left[i+1].ID {
			e.errorf("Acquire gave %q, want them in order of id", ids(h.left))
		}
	}
	e.same("the jobs left", ids(h.orphans()), []string{"Z", "a", "b", "c", "é"})
}

func orphansComeAgain(e *env) {
	e.pushIDs("a", "b", "c")
	left := leave(e, "n1")
	r := e.acquireRequest(e.shard, "n2")
	_, err := e.store.Acquire(e.ctx, r)
	e.must(err, "Acquire")
	h := e.acquireBy(r)
	e.same("the jobs left", h.orphans(), left)
	h.settle(recovered(left[1]))
	for _, c := range e.acquireBy(r).left {
		if c.ID == left[1].ID {
			e.errorf("the repeated Acquire gave %q, which is settled", c.ID)
		}
	}
}

func orphansOfATurn(e *env) {
	e.pushIDs("a", "b")
	leave(e, "n1")
	e.push(entry("c", "p", 1))
	h := e.acquire("n2")
	r := h.request(1)
	first := h.send(r)
	again := h.send(r)
	e.same("the claims", again.Claims, first.Claims)
	e.same("the orphans", again.Orphans, first.Orphans)
}

func orphansCountNothing(e *env) {
	e.pushIDs("a")
	want := leave(e, "n1")
	for _, owner := range []string{"n2", "n3", "n4"} {
		h := e.acquire(owner)
		e.same("the job left", h.orphans(), want)
		e.clock.Advance(ttl + time.Microsecond)
	}
	e.same("the claimed job", e.claimed("a"), want[0])
	counts := e.counts()
	e.same("processed and failed", counts.Processed+counts.Failed, int64(0))
}

func orphansSettle(e *env) {
	e.pushIDs("a", "b")
	left := leave(e, "n1")
	h := e.acquire("n2")
	h.orphans()
	reply := h.settle(recovered(left[0]), done(left[1]))
	e.told("the skipped", reply.Skipped, nil)
	want := left[0].Job
	want.Recoveries = 1
	e.same("the jobs", e.jobs(), []core.Job{want})
	counts := e.counts()
	e.same("processed, failed and claimed", [3]int64{counts.Processed, counts.Failed, counts.Claimed}, [3]int64{1, 0, 0})
}

func orphansOfTheOld(e *env) {
	e.pushIDs("a")
	old := e.acquire("n1")
	c := old.one()
	e.clock.Advance(ttl + time.Microsecond)
	e.acquire("n2")
	e.unchanged("a turn of the old lease", func() {
		old.refused("Turn of the old lease", old.request(0, done(c)), ports.ErrLeaseLost)
	})
}

func orphansClaimedOnce(e *env) {
	e.pushIDs("a")
	leave(e, "n1")
	e.push(entry("a", "q", 2))
	h := e.acquire("n2")
	h.orphans()
	e.same("the claims", h.claim(10), nil)
}
