package conformance

import (
	"github.com/skeinq/skein/core"
)

// skipCases are about settlements that come for a claim that is not there.
func skipCases() []namedCase {
	return []namedCase{
		{"what was never claimed", ruleSkip, skipNeverClaimed},
		{"what is settled already", ruleSkip, skipSettled},
		{"the second of one id in a turn", ruleSkip, skipTwice},
		{"another receipt", ruleSkip, skipOtherReceipt},
		{"the receipt of an earlier claim", "Receipt: a settlement names the receipt, so that one from the past can't touch a later claim", skipEarlierReceipt},
		{"and count nothing", ruleSkip, skipCountsNothing},
		{"and settle the others", "TurnReply: Skipped are the positions in Settlements whose jobs were not claimed, ascending", skipOthers},
	}
}

func skipNeverClaimed(e *env) {
	e.pushIDs("queued", "due")
	h := e.acquire("n1")
	c := h.one()
	other := c
	other.ID = "due"
	e.reported("the skipped", h.settle(done(other)).Skipped, []int{0})
	e.same("the queued jobs", e.queuedIDs(), []string{"due"})
	e.same("the claimed job", e.claimed("queued"), c)
}

func skipSettled(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	c := h.one()
	h.settle(failed(c, "boom", 0))
	e.reported("the skipped", h.settle(buried(c, "late")).Skipped, []int{0})
	e.same("the retries", e.queued("a").RetryCount, 0)
	e.same("the dead letter", e.deadLetter("a"), core.DeadLetter{})
}

func skipTwice(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	c := h.one()
	e.reported("the skipped", h.settle(done(c), buried(c, "second")).Skipped, []int{1})
	e.same("the dead letter", e.deadLetter("a"), core.DeadLetter{})
	e.same("what failed", e.counts().Failed, int64(0))
}

func skipOtherReceipt(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	c := h.one()
	for _, receipt := range []core.Receipt{
		{Token: c.Receipt.Token, Number: c.Receipt.Number + 1},
		{Token: c.Receipt.Token, Number: 0},
		{Token: c.Receipt.Token - 1, Number: c.Receipt.Number},
		{Token: c.Receipt.Token + 1, Number: c.Receipt.Number},
		{},
	} {
		other := c
		other.Receipt = receipt
		e.reported("the skipped", h.settle(done(other)).Skipped, []int{0})
		e.same("the claimed job", e.claimed("a"), c)
	}
}

func skipEarlierReceipt(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	first := h.one()
	second := h.one(untouched(first))
	e.reported("the skipped", h.settle(done(first)).Skipped, []int{0})
	e.same("the later claim", e.claimed("a"), second)
	h = e.acquire("n1")
	h.orphans()
	third := h.one(untouched(second))
	e.reported("the skipped under the next lease", h.settle(done(second), done(first)).Skipped, []int{0, 1})
	e.same("the latest claim", e.claimed("a"), third)
}

func skipCountsNothing(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	claims := h.claim(2)
	h.settle(done(claims[0]))
	reply := h.settle(done(claims[0]), failed(claims[0], "boom", 0), done(claims[1]), done(claims[1]))
	e.reported("the skipped", reply.Skipped, []int{0, 1, 3})
	counts := e.counts()
	e.same("processed and failed", [2]int64{counts.Processed, counts.Failed}, [2]int64{2, 0})
}

func skipOthers(e *env) {
	e.pushIDs("a", "b", "c")
	h := e.acquire("n1")
	claims := h.claim(3)
	other := claims[1]
	other.Receipt.Number++
	e.reported("the skipped", h.settle(done(claims[2]), done(other), untouched(claims[0])).Skipped, []int{1})
	e.same("the queued jobs", e.queuedIDs(), []string{"a"})
	e.same("the claimed job", e.claimed("b"), claims[1])
}
