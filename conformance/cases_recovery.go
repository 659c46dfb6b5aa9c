package conformance

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleOrphans = "Acquire: jobs that an earlier lease left claimed stay claimed, with their receipts, and pass to the new lease, in order of id"

func orphanCases() []namedCase {
	return []namedCase{
		{"pass to the next lease with their receipts", ruleOrphans, orphansPass},
		{"are returned in order of id", ruleOrphans, orphansInOrder},
		{"are returned again when the attempt is repeated",
			"Acquire: the owner's last attempt again returns the same token and claims again",
			orphansComeAgain},
		{"are returned again when their turn is repeated",
			"Turn: a repeat returns the same orphans if they are still claimed",
			orphansOfATurn},
		{"count nothing until they are settled", "Acquire: acquiring does not count as a recovery", orphansCountNothing},
		{"are settled under the new lease", "Acquire: the owner of the new lease settles them as core.RetryPolicy.Recover says", orphansSettle},
		{"no longer belong to the old lease", "Consumer: owner and token decide who may call Turn", orphansOfTheOld},
		{"are not claimed a second time", "Turn: ids that are claimed are skipped", orphansClaimedOnce},
	}
}

func orphansPass(e *env) {
	e.push(core.Entry{ID: "a", Payload: core.Payload{Data: []byte("p"), Score: 1, Meta: []byte("m")}})
	left := claimAndCrash(e, "n1")
	e.same("the jobs left", e.acquire("n2").orphans(), left)
	e.clock.Advance(ttl + time.Microsecond)
	e.same("the jobs left, a lease on", e.acquire("n3").orphans(), left)
}

func orphansInOrder(e *env) {
	e.pushIDs("c", "a", "é", "Z", "b")
	claimAndCrash(e, "n1")
	h := e.acquire("n2")
	for i, c := range h.inherited[:max(0, len(h.inherited)-1)] {
		if c.ID >= h.inherited[i+1].ID {
			e.errorf("Acquire returned %q, want them in order of id", ids(h.inherited))
		}
	}
	e.same("the jobs left", ids(h.orphans()), []string{"Z", "a", "b", "c", "é"})
}

func orphansComeAgain(e *env) {
	e.pushIDs("a", "b", "c")
	left := claimAndCrash(e, "n1")
	r := e.acquireRequest(e.shard, "n2")
	_, err := e.store.Acquire(e.ctx, r)
	e.must(err, "Acquire")
	h := e.acquireBy(r)
	e.same("the jobs left", h.orphans(), left)
	h.settle(recovered(left[1]))
	for _, c := range e.acquireBy(r).inherited {
		if c.ID == left[1].ID {
			e.errorf("the repeated Acquire returned %q, which is settled", c.ID)
		}
	}
}

func orphansOfATurn(e *env) {
	e.pushIDs("a", "b")
	claimAndCrash(e, "n1")
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
	want := claimAndCrash(e, "n1")
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
	left := claimAndCrash(e, "n1")
	h := e.acquire("n2")
	h.orphans()
	reply := h.settle(recovered(left[0]), done(left[1]))
	e.reported("the skipped", reply.Skipped, nil)
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
	claimAndCrash(e, "n1")
	e.push(entry("a", "q", 2))
	h := e.acquire("n2")
	h.orphans()
	e.same("the claims", h.claim(10), nil)
}

const (
	ruleAlone  = "RULES 4: a job with 2 Recoveries or more is claimed alone, and only if no other job of its shard is claimed; claiming stops in front of it"
	ruleBeside = "RULES 4: a job with 1 Recovery runs like any other, in order of (PerformAt, id), beside others"
)

// recoveredCases are about the isolation of jobs that may kill their process.
func recoveredCases() []namedCase {
	return []namedCase{
		{"is claimed beside others after one recovery", ruleBeside, recoveredOnce},
		{"is claimed alone", ruleAlone, recoveredAlone},
		{"keeps all others waiting while it is claimed", "Turn: while it is claimed, no other job is", recoveredBlocks},
		{"waits until nothing else is claimed", ruleAlone, recoveredWaits},
		{"stops the turn in front of it", ruleAlone, recoveredStops},
		{"is never overtaken", "Turn: claiming stops in front of it, so it is never overtaken", recoveredNotOvertaken},
		{"stops no other job before it is due", ruleAlone, recoveredNotDue},
		{"is claimed in the turn that settles the last other job", ruleAlone, recoveredAfterSettle},
		{"runs with others once it has settled", "RULES 4: done, failure, snooze and bury clear Recoveries", recoveredCleared},
		{"is passed to the next owner alone", ruleAlone, recoveredOrphan},
	}
}

func recoveredOnce(e *env) {
	e.placeRecovered(1, "r", 10)
	e.placeRecovered(1, "q", 5)
	e.push(entryAt("a", "p", 1, 7), entryAt("b", "p", 1, 30))
	h := e.acquire("n1")
	e.same("the claims", ids(h.claim(3)), []string{"q", "a", "r"})
	e.same("the claims beside them", ids(h.claim(3)), []string{"b"})
}

func recoveredAlone(e *env) {
	e.placeAlone("r", 10)
	e.push(entryAt("a", "p", 1, 20), entryAt("b", "p", 1, 30))
	e.same("the claims", ids(e.acquire("n1").claim(10)), []string{"r"})
}

func recoveredBlocks(e *env) {
	e.placeAlone("r", 10)
	h := e.acquire("n1")
	c := h.one()
	e.push(entryAt("older", "p", 1, 5), entryAt("newer", "p", 1, 20))
	e.same("the claims beside it", h.claim(10), nil)
	e.same("the claims once it is done", ids(h.turn(10, done(c)).Claims), []string{"older", "newer"})
}

func recoveredWaits(e *env) {
	e.placeAlone("r", 20)
	e.push(entryAt("a", "p", 1, 10))
	h := e.acquire("n1")
	a := h.one()
	e.same("the claim before it", a.ID, "a")
	e.same("the claims beside another", h.claim(10), nil)
	e.same("the claims after it", ids(h.turn(10, done(a)).Claims), []string{"r"})
}

func recoveredStops(e *env) {
	e.placeAlone("r", 20)
	e.push(entryAt("a", "p", 1, 10), entryAt("b", "p", 1, 15), entryAt("c", "p", 1, 30))
	e.same("the claims", ids(e.acquire("n1").claim(10)), []string{"a", "b"})
}

func recoveredNotOvertaken(e *env) {
	e.placeAlone("r", 20)
	e.push(entryAt("a", "p", 1, 10), entryAt("later", "p", 1, 30))
	h := e.acquire("n1")
	a := h.one()
	e.same("the claims behind it", h.claim(10), nil)
	e.push(entryAt("before", "p", 1, 15))
	b := h.claim(10)
	e.same("the claims before it", ids(b), []string{"before"})
	e.same("its turn", ids(h.turn(10, done(a), done(b[0])).Claims), []string{"r"})
}

func recoveredNotDue(e *env) {
	e.placeAlone("r", start.Add(time.Hour))
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	e.same("the claims", ids(h.claim(1)), []string{"a"})
	e.same("the claims beside them", ids(h.claim(10)), []string{"b"})
}

func recoveredAfterSettle(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	c := h.one()
	e.push(entryAt("later", "p", 1, start))
	c.Recoveries, c.Begun = 1, true
	reply := h.turn(10, recovered(c))
	e.same("the claims", ids(reply.Claims), []string{"a"})
	e.same("its recoveries", reply.Claims[0].Recoveries, 2)
}

func recoveredCleared(e *env) {
	e.placeAlone("r", 10)
	e.push(entryAt("b", "p", 1, 20))
	h := e.acquire("n1")
	reply := h.turn(10, snoozed(h.one(), -time.Minute))
	e.same("the claims", ids(reply.Claims), []string{"b", "r"})
}

func recoveredOrphan(e *env) {
	e.placeAlone("r", 10)
	e.push(entryAt("a", "p", 1, 20))
	left := claimAndCrash(e, "n1")
	h := e.acquire("n2")
	e.same("the jobs left", h.orphans(), left)
	e.same("the claims beside it", h.claim(10), nil)
	e.same("the claims after it", ids(h.turn(10, recovered(left[0])).Claims), []string{"r"})
}
