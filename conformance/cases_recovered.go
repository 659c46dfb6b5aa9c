package conformance

import (
	"time"

	"github.com/skeinq/skein/core"
)

const (
	ruleAlone  = "RULES 4: a job with 2 Recoveries or more is claimed only when nothing else of its shard is, and alone; claiming stops in front of it"
	ruleBeside = "RULES 4: a job with 1 Recovery runs like any other, in order of (PerformAt, id), beside others"
)

// recoveredCases are about the isolation of jobs that may kill their process.
func recoveredCases() []namedCase {
	return []namedCase{
		{"is claimed beside others once", ruleBeside, recoveredOnce},
		{"is claimed alone", ruleAlone, recoveredAlone},
		{"keeps all others waiting while it is claimed", "Turn: while it is claimed nothing else is", recoveredBlocks},
		{"waits until nothing else is claimed", ruleAlone, recoveredWaits},
		{"stops the turn in front of it", ruleAlone, recoveredStops},
		{"is never overtaken", "Turn: claiming stops in front of it, so it is never overtaken", recoveredNotOvertaken},
		{"holds nobody up before it is due", ruleAlone, recoveredNotDue},
		{"is claimed in the turn that settles the last other", ruleAlone, recoveredAfterSettle},
		{"runs with others once it has settled", "RULES 4: done, failure, snooze and bury clear Recoveries", recoveredCleared},
		{"is passed to the next owner alone", ruleAlone, recoveredOrphan},
	}
}

// placeRecovered queues a job that was recovered twice, due at an instant.
func placeRecovered(e *env, id string, at core.Instant) {
	e.tb.Helper()
	e.placeAfter(2, id, at)
}

// placeAfter queues a job that was recovered so often.
func (e *env) placeAfter(recoveries int, id string, at core.Instant) {
	e.tb.Helper()
	s := fresh(at)
	s.Recoveries = recoveries
	e.place(id, s, pay("p", 1))
}

func recoveredOnce(e *env) {
	e.placeAfter(1, "r", 10)
	e.placeAfter(1, "q", 5)
	e.push(entryAt("a", "p", 1, 7), entryAt("b", "p", 1, 30))
	h := e.acquire("n1")
	e.same("the claims", ids(h.claim(3)), []string{"q", "a", "r"})
	e.same("the claims beside them", ids(h.claim(3)), []string{"b"})
}

func recoveredAlone(e *env) {
	placeRecovered(e, "r", 10)
	e.push(entryAt("a", "p", 1, 20), entryAt("b", "p", 1, 30))
	e.same("the claims", ids(e.acquire("n1").claim(10)), []string{"r"})
}

func recoveredBlocks(e *env) {
	placeRecovered(e, "r", 10)
	h := e.acquire("n1")
	c := h.one()
	e.push(entryAt("older", "p", 1, 5), entryAt("newer", "p", 1, 20))
	e.same("the claims beside it", h.claim(10), nil)
	e.same("the claims once it is done", ids(h.turn(10, done(c)).Claims), []string{"older", "newer"})
}

func recoveredWaits(e *env) {
	placeRecovered(e, "r", 20)
	e.push(entryAt("a", "p", 1, 10))
	h := e.acquire("n1")
	a := h.one()
	e.same("the claim before it", a.ID, "a")
	e.same("the claims beside another", h.claim(10), nil)
	e.same("the claims after it", ids(h.turn(10, done(a)).Claims), []string{"r"})
}

func recoveredStops(e *env) {
	placeRecovered(e, "r", 20)
	e.push(entryAt("a", "p", 1, 10), entryAt("b", "p", 1, 15), entryAt("c", "p", 1, 30))
	e.same("the claims", ids(e.acquire("n1").claim(10)), []string{"a", "b"})
}

func recoveredNotOvertaken(e *env) {
	placeRecovered(e, "r", 20)
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
	placeRecovered(e, "r", start.Add(time.Hour))
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
	placeRecovered(e, "r", 10)
	e.push(entryAt("b", "p", 1, 20))
	h := e.acquire("n1")
	reply := h.turn(10, snoozed(h.one(), -time.Minute))
	e.same("the claims", ids(reply.Claims), []string{"b", "r"})
}

func recoveredOrphan(e *env) {
	placeRecovered(e, "r", 10)
	e.push(entryAt("a", "p", 1, 20))
	left := leave(e, "n1")
	h := e.acquire("n2")
	e.same("the jobs left", h.orphans(), left)
	e.same("the claims beside it", h.claim(10), nil)
	e.same("the claims after it", ids(h.turn(10, recovered(left[0])).Claims), []string{"r"})
}
