package conformance

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// A store may remember up to which time it has claimed everything, so that it need not
// look there again. These cases bring jobs of before that time.

const ruleOld = "Turn: due jobs in order of (PerformAt, id), put-backs included, however long they have been due"

func oldCases() []namedCase {
	return []namedCase{
		{"takes an old job that was put back", ruleOld, claimOldPutBack},
		{"takes an old job that was put back outside a turn", ruleOld, claimOldSettled},
		{"takes an old job that was pushed", ruleOld, claimOldPush},
	}
}

// claimLong pushes a job that has been due for an hour, claims it, and then another one
// that is due now.
func (e *env) claimLong(h *holder) (old core.Claim) {
	e.tb.Helper()
	e.push(entryAt("old", "p", 1, start.Add(-time.Hour)))
	old = h.one()
	e.push(entryAt("new", "p", 1, start))
	h.settle(done(h.one()))
	return old
}

func claimOldPutBack(e *env) {
	h := e.acquire("n1")
	old := e.claimLong(h)
	e.same("the claims of the turn that puts it back", ids(h.turn(1, untouched(old)).Claims), []string{"old"})
	h = e.acquire("n1")
	h.settle(settleAll(h.orphans(), untouched)...)
	e.same("the claims of the turn after one that put it back", ids(h.claim(1)), []string{"old"})
}

func claimOldSettled(e *env) {
	settler, ok := e.store.(ports.Settler)
	if !ok {
		return
	}
	h := e.acquire("n1")
	old := e.claimLong(h)
	e.must(settler.Settle(e.ctx, e.shard, []core.Settlement{untouched(old)}), "Settle")
	e.same("the claims", ids(h.claim(1)), []string{"old"})
}

func claimOldPush(e *env) {
	h := e.acquire("n1")
	h.settle(done(e.claimLong(h)))
	e.push(entryAt("older", "p", 1, start.Add(-2*time.Hour)))
	e.same("the claims", ids(h.claim(1)), []string{"older"})
	e.push(entryAt("sooner", "p", 1, start.Add(time.Hour)))
	e.pushBy(core.PushRule{Kind: core.Earliest}, entryAt("sooner", "q", 2, start.Add(-time.Hour)))
	e.same("the claims", ids(h.claim(1)), []string{"sooner"})
}
