package conformance

import (
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// both makes the case on a shard of which nothing is known yet, and once more on one
// that has worked. A store may treat the usual turns of a shard that works in a
// shorter way than others, and both ways must keep the rule.
func (c namedCase) both(tb testing.TB, f Factory) {
	tb.Helper()
	c.run(tb, f)
	c.Rule += " (here on a shard that has worked before)"
	c.runAfter((*env).workBefore, tb, f)
}

// check makes a case of the group both ways. Worked cases of docs/rules.md are made once:
// each is hundreds of jobs of one queue, whose turns are mostly usual ones anyway.
func (g group) check(c namedCase, tb testing.TB, f Factory) {
	tb.Helper()
	if g.Name == "vectors" {
		c.run(tb, f)
		return
	}
	c.both(tb, f)
}

// workBefore has the shard of orders claim and settle a job, so that the case's turns
// are not its first. It leaves nothing behind, counts nothing, and gives no token that
// the case would not get without it. From then on each lease begins with a turn that
// does nothing but use up its number, so that those of the case follow one that wrote.
func (e *env) workBefore() {
	e.tb.Helper()
	e.clock.Advance(-time.Microsecond)
	defer e.clock.Advance(time.Microsecond)
	e.pushIDs("worked before")
	h := e.acquire("n0")
	h.settle(settleAll(h.claim(core.MaxTurnJobs), dropped)...)
	h.release()
	e.worked = map[ports.Lease]bool{}
}

// workFirst makes the first turn of a lease, which settles what is not claimed.
func (h *holder) workFirst() {
	h.e.tb.Helper()
	if h.e.worked[h.lease] {
		return // it was acquired again
	}
	h.e.worked[h.lease] = true
	h.settle(core.Settlement{ID: "not claimed", Receipt: core.Receipt{Token: h.lease.Token, Number: 1}})
}
