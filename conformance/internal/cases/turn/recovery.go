package turn

import (
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleOrphans = "Acquire: jobs that an earlier lease left claimed stay claimed, " +
	"with their receipts, and pass to the new lease, in order of id"

func orphanCases() []env.Case {
	return []env.Case{
		{Name: "pass to the next lease with their receipts", Rule: ruleOrphans, Check: orphansPass},
		{Name: "are returned in order of id", Rule: ruleOrphans, Check: orphansInOrder},
		{Name: "are returned again when the attempt is repeated",
			Rule:  "Acquire: the owner's last attempt again returns the same token and claims again",
			Check: orphansComeAgain},
		{Name: "are returned again when their turn is repeated",
			Rule:  "Turn: a repeat returns the same orphans if they are still claimed",
			Check: orphansOfATurn},
		{
			Name:  "count nothing until they are settled",
			Rule:  "Acquire: acquiring does not count as a recovery",
			Check: orphansCountNothing,
		},
		{
			Name:  "are settled under the new lease",
			Rule:  "Acquire: the owner of the new lease settles them as core.RetryPolicy.Recover says",
			Check: orphansSettle,
		},
		{
			Name:  "no longer belong to the old lease",
			Rule:  "Consumer: owner and token decide who may call Turn",
			Check: orphansOfTheOld,
		},
		{
			Name:  "are not claimed a second time",
			Rule:  "Turn: ids that are claimed are skipped",
			Check: orphansClaimedOnce,
		},
	}
}

func orphansPass(e *env.Env) {
	e.Push(core.Entry{ID: "a", Payload: core.Payload{Data: []byte("p"), Score: 1, Meta: []byte("m")}})
	left := e.ClaimAndCrash("n1")
	e.Same("the jobs left", e.Acquire("n2").Orphans(), left)
	e.Clock.Advance(env.TTL + time.Microsecond)
	e.Same("the jobs left, a lease on", e.Acquire("n3").Orphans(), left)
}

func orphansInOrder(e *env.Env) {
	e.PushIDs("c", "a", "é", "Z", "b")
	e.ClaimAndCrash("n1")
	h := e.Acquire("n2")
	for i, c := range h.Inherited[:max(0, len(h.Inherited)-1)] {
		if c.ID >= h.Inherited[i+1].ID {
			e.Errorf("Acquire returned %q, want them in order of id", env.IDs(h.Inherited))
		}
	}
	e.Same("the jobs left", env.IDs(h.Orphans()), []string{"Z", "a", "b", "c", "é"})
}

func orphansComeAgain(e *env.Env) {
	e.PushIDs("a", "b", "c")
	left := e.ClaimAndCrash("n1")

	r := e.AcquireRequest(e.Shard, "n2")
	_, err := e.Store.Acquire(e.Ctx, r)
	e.Must(err, "Acquire")

	h := e.AcquireBy(r)
	e.Same("the jobs left", h.Orphans(), left)

	h.Settle(env.Recovered(left[1]))
	for _, c := range e.AcquireBy(r).Inherited {
		if c.ID == left[1].ID {
			e.Errorf("the repeated Acquire returned %q, which is settled", c.ID)
		}
	}
}

func orphansOfATurn(e *env.Env) {
	e.PushIDs("a", "b")
	e.ClaimAndCrash("n1")
	e.Push(env.Entry("c", "p", 1))
	h := e.Acquire("n2")
	r := h.Request(1)
	first := h.Send(r)
	again := h.Send(r)
	e.Same("the claims", again.Claims, first.Claims)
	e.Same("the orphans", again.Orphans, first.Orphans)
}

func orphansCountNothing(e *env.Env) {
	e.PushIDs("a")
	want := e.ClaimAndCrash("n1")
	for _, owner := range []string{"n2", "n3", "n4"} {
		h := e.Acquire(owner)
		e.Same("the job left", h.Orphans(), want)
		e.Clock.Advance(env.TTL + time.Microsecond)
	}
	e.Same("the claimed job", e.Claimed("a"), want[0])
	counts := e.Counts()
	e.Same("processed and failed", counts.Processed+counts.Failed, int64(0))
}

func orphansSettle(e *env.Env) {
	e.PushIDs("a", "b")
	left := e.ClaimAndCrash("n1")
	h := e.Acquire("n2")
	h.Orphans()

	reply := h.Settle(env.Recovered(left[0]), env.Done(left[1]))
	e.Reported("the skipped", reply.Skipped, nil)

	want := left[0].Job
	want.Recoveries = 1
	e.Same("the jobs", e.Jobs(), []core.Job{want})

	counts := e.Counts()
	e.Same("processed, failed and claimed",
		[3]int64{counts.Processed, counts.Failed, counts.Claimed}, [3]int64{1, 0, 0})
}

func orphansOfTheOld(e *env.Env) {
	e.PushIDs("a")
	old := e.Acquire("n1")
	c := old.One()
	e.Clock.Advance(env.TTL + time.Microsecond)
	e.Acquire("n2")
	e.Unchanged("a turn of the old lease", func() {
		old.Refused("Turn of the old lease", old.Request(0, env.Done(c)), ports.ErrLeaseLost)
	})
}

func orphansClaimedOnce(e *env.Env) {
	e.PushIDs("a")
	e.ClaimAndCrash("n1")
	e.Push(env.Entry("a", "q", 2))
	h := e.Acquire("n2")
	h.Orphans()
	e.Same("the claims", h.Claim(10), nil)
}

const (
	ruleAlone = "RULES 4: a job with 2 Recoveries or more is claimed alone, " +
		"and only if no other job of its shard is claimed; claiming stops in front of it"
	ruleBeside = "RULES 4: a job with 1 Recovery runs like any other, in order of (PerformAt, id), beside others"
)

// recoveredCases are about the isolation of jobs that may kill their process.
func recoveredCases() []env.Case {
	return []env.Case{
		{Name: "is claimed beside others after one recovery", Rule: ruleBeside, Check: recoveredOnce},
		{Name: "is claimed alone", Rule: ruleAlone, Check: recoveredAlone},
		{
			Name:  "keeps all others waiting while it is claimed",
			Rule:  "Turn: while it is claimed, no other job is",
			Check: recoveredBlocks,
		},
		{Name: "waits until nothing else is claimed", Rule: ruleAlone, Check: recoveredWaits},
		{Name: "stops the turn in front of it", Rule: ruleAlone, Check: recoveredStops},
		{
			Name:  "is never overtaken",
			Rule:  "Turn: claiming stops in front of it, so it is never overtaken",
			Check: recoveredNotOvertaken,
		},
		{Name: "stops no other job before it is due", Rule: ruleAlone, Check: recoveredNotDue},
		{Name: "is claimed in the turn that settles the last other job", Rule: ruleAlone, Check: recoveredAfterSettle},
		{
			Name:  "runs with others once it has settled",
			Rule:  "RULES 4: done, failure, snooze and bury clear Recoveries",
			Check: recoveredCleared,
		},
		{Name: "is passed to the next owner alone", Rule: ruleAlone, Check: recoveredOrphan},
	}
}

func recoveredOnce(e *env.Env) {
	e.PlaceRecovered(1, "r", 10)
	e.PlaceRecovered(1, "q", 5)
	e.Push(env.EntryAt("a", "p", 1, 7), env.EntryAt("b", "p", 1, 30))
	h := e.Acquire("n1")
	e.Same("the claims", env.IDs(h.Claim(3)), []string{"q", "a", "r"})
	e.Same("the claims beside them", env.IDs(h.Claim(3)), []string{"b"})
}

func recoveredAlone(e *env.Env) {
	e.PlaceAlone("r", 10)
	e.Push(env.EntryAt("a", "p", 1, 20), env.EntryAt("b", "p", 1, 30))
	e.Same("the claims", env.IDs(e.Acquire("n1").Claim(10)), []string{"r"})
}

func recoveredBlocks(e *env.Env) {
	e.PlaceAlone("r", 10)
	h := e.Acquire("n1")
	c := h.One()
	e.Push(env.EntryAt("older", "p", 1, 5), env.EntryAt("newer", "p", 1, 20))
	e.Same("the claims beside it", h.Claim(10), nil)
	e.Same("the claims once it is done", env.IDs(h.Turn(10, env.Done(c)).Claims), []string{"older", "newer"})
}

func recoveredWaits(e *env.Env) {
	e.PlaceAlone("r", 20)
	e.Push(env.EntryAt("a", "p", 1, 10))
	h := e.Acquire("n1")
	a := h.One()
	e.Same("the claim before it", a.ID, "a")
	e.Same("the claims beside another", h.Claim(10), nil)
	e.Same("the claims after it", env.IDs(h.Turn(10, env.Done(a)).Claims), []string{"r"})
}

func recoveredStops(e *env.Env) {
	e.PlaceAlone("r", 20)
	e.Push(env.EntryAt("a", "p", 1, 10), env.EntryAt("b", "p", 1, 15), env.EntryAt("c", "p", 1, 30))
	e.Same("the claims", env.IDs(e.Acquire("n1").Claim(10)), []string{"a", "b"})
}

func recoveredNotOvertaken(e *env.Env) {
	e.PlaceAlone("r", 20)
	e.Push(env.EntryAt("a", "p", 1, 10), env.EntryAt("later", "p", 1, 30))
	h := e.Acquire("n1")
	a := h.One()
	e.Same("the claims behind it", h.Claim(10), nil)
	e.Push(env.EntryAt("before", "p", 1, 15))
	b := h.Claim(10)
	e.Same("the claims before it", env.IDs(b), []string{"before"})
	e.Same("its turn", env.IDs(h.Turn(10, env.Done(a), env.Done(b[0])).Claims), []string{"r"})
}

func recoveredNotDue(e *env.Env) {
	e.PlaceAlone("r", env.Start.Add(time.Hour))
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	e.Same("the claims", env.IDs(h.Claim(1)), []string{"a"})
	e.Same("the claims beside them", env.IDs(h.Claim(10)), []string{"b"})
}

func recoveredAfterSettle(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	c := h.One()
	e.Push(env.EntryAt("later", "p", 1, env.Start))
	c.Recoveries, c.Begun = 1, true
	reply := h.Turn(10, env.Recovered(c))
	e.Same("the claims", env.IDs(reply.Claims), []string{"a"})
	e.Same("its recoveries", reply.Claims[0].Recoveries, 2)
}

func recoveredCleared(e *env.Env) {
	e.PlaceAlone("r", 10)
	e.Push(env.EntryAt("b", "p", 1, 20))
	h := e.Acquire("n1")
	reply := h.Turn(10, env.Snoozed(h.One(), -time.Minute))
	e.Same("the claims", env.IDs(reply.Claims), []string{"b", "r"})
}

func recoveredOrphan(e *env.Env) {
	e.PlaceAlone("r", 10)
	e.Push(env.EntryAt("a", "p", 1, 20))
	left := e.ClaimAndCrash("n1")
	h := e.Acquire("n2")
	e.Same("the jobs left", h.Orphans(), left)
	e.Same("the claims beside it", h.Claim(10), nil)
	e.Same("the claims after it", env.IDs(h.Turn(10, env.Recovered(left[0])).Claims), []string{"r"})
}
