package conformance

import (
	"math"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
)

const (
	ruleApply = "Turn: a settlement changes its job as core.Settlement.Apply does"
	ruleAwait = "Turn: an awaiting job is requeued as core.PutBack.Merge describes"
)

func settleCases() []namedCase {
	return []namedCase{
		{"removes jobs that are done", ruleApply, settleDone},
		{"puts a failed job back with its delay, count and error", ruleApply, settleFailed},
		{"puts an untouched job back as it was claimed", ruleApply, settleUntouched},
		{"puts a snoozed job back for later", ruleApply, settleSnoozed},
		{"puts an awaiting job back as fresh, for later", ruleAwait, settleAwaiting},
		{"an awaiting job runs with what was pushed since its claim", ruleAwait, settleAwaitingAfterPush},
		{"an awaiting job keeps an earlier time of its own", ruleAwait, settleAwaitingBeforePush},
		{"the rest of a claim does not end the wait", ruleAwait, settleAwaitingWithRest},
		{"puts a recovered job back with its count", ruleApply, settleRecovered},
		{"buries with reason and time", ruleApply, settleBuried},
		{"drops jobs that were cancelled", ruleApply, settleDropped},
		{"divides a job by position", ruleApply, settleDivides},
		{"ignores positions that the job does not have", "Settlement.Apply: positions that the job does not have are ignored", settleBeyond},
		{"keeps scores and Meta", "RULES 1: the copy that stays keeps its Meta", settleKeepsMeta},
		{"keeps the error until the job succeeds", "RULES 1: error: text of the last failure, kept until the job succeeds", settleKeepsError},
		{"forgets the failures of a job that is done", "RULES 1: error: kept until the job succeeds; RULES 2: a push for an id that is not queued makes a fresh job", settleForgets},
		{"merges a returning job into the queued one", ruleReturn, settleMerges},
		{"keeps the larger recoveries", ruleReturn, settleMergesRecoveries},
		{"merges buried payloads into the morgue", ruleMorgue, settleMergesDead},
		{"counts as the settlement says", "Settlement: Processed and Failed report whether the queue's counters increase", settleCounts},
		{"limits times to their range", "Instant.Add: limited to the range of an Instant", settleClamps},
		{"keeps errors as ErrorText returns them", "Settlement: PutBack.Error and BuryError are stored as core.ErrorText returns them", settleErrorTexts},
		{"keeps a long error whole", "core.MaxErrorBytes: the longest error text that is kept", settleLongError},
	}
}

func settleDone(e *env) {
	h, c := claimedJob(e)
	reply := h.settle(done(c))
	e.reported("the skipped", reply.Skipped, nil)
	found := e.find("a")
	if found.Queued != nil || found.Claim != nil || found.DeadLetter != nil {
		e.errorf("a job that is done is still there: %+v", found)
	}
	e.same("the counts", e.counts().Claimed, int64(0))
}

func settleFailed(e *env) {
	h, c := claimedJob(e)
	h.settle(failed(c, "boom", time.Minute))
	e.same("the job", e.queued("a"), job("a", core.State{
		PerformAt: e.now().Add(time.Minute), RetryCount: 0, FirstPush: start, Error: "boom",
	}, threePayloads()...))
	e.same("the retries", e.counts().Retrying, int64(1))
}

func settleUntouched(e *env) {
	h, c := claimedJob(e)
	h.settle(untouched(c))
	e.same("the job", e.queued("a"), job("a", fresh(start), threePayloads()...))
	e.same("the job by itself", e.queued("a"), c.Job)
}

func settleSnoozed(e *env) {
	h, c := claimedJob(e)
	h.settle(snoozed(c, time.Hour))
	e.same("the job", e.queued("a"), job("a", fresh(e.now().Add(time.Hour)), threePayloads()...))
}

// settleAwaiting lets a failed job await a push. After that the job is fresh and has no error.
func settleAwaiting(e *env) {
	h, c := claimedJob(e)
	c = h.one(failed(c, "boom", 0))
	h.settle(awaiting(c, time.Hour))
	e.same("the job", e.queued("a"), job("a", fresh(e.now().Add(time.Hour)), threePayloads()...))
	counts := e.counts()
	e.same("fresh, retries, processed and failed",
		[4]int64{counts.Fresh, counts.Retrying, counts.Processed, counts.Failed}, [4]int64{1, 0, 0, 1})
	e.pushBy(core.PushRule{Kind: core.Earliest}, entry("a", "p4", 4))
	e.same("the job after a push", e.queued("a"), job("a", fresh(e.now()), append(threePayloads(), pay("p4", 4))...))
}

func settleAwaitingAfterPush(e *env) {
	h, c := claimedJob(e)
	e.push(entryAt("a", "p2", 1, e.now()), entryAt("a", "p4", 4, e.now()))
	h.settle(awaiting(c, time.Hour))
	e.same("the merged job", e.queued("a"), job("a", fresh(e.now()), pay("p1", 1), pay("p2", 1), pay("p3", 3), pay("p4", 4)))
	e.same("the payloads of the next claim", len(h.one().Payloads), 4)
}

func settleAwaitingBeforePush(e *env) {
	h, c := claimedJob(e)
	e.push(entryAt("a", "p4", 4, e.now().Add(time.Hour)))
	h.settle(awaiting(c, time.Minute))
	e.same("the merged job", e.queued("a"), job("a", fresh(e.now().Add(time.Minute)), append(threePayloads(), pay("p4", 4))...))
}

func settleAwaitingWithRest(e *env) {
	e.push(entry("a", "p1", 1), entry("a", "p2", 2), entry("a", "p3", 3))
	e.clock.Advance(time.Second)
	h := e.acquire("n1")
	h.settle(awaiting(h.cut(2), time.Hour))
	e.same("the job", e.queued("a"), job("a", fresh(e.now().Add(time.Hour)), threePayloads()...))
}

func settleRecovered(e *env) {
	h, c := claimedJob(e)
	for n := 1; n <= 3; n++ {
		c.Begun = true
		h.settle(recovered(c))
		want := fresh(start)
		want.Recoveries = n
		e.same("the state", e.queued("a").State, want)
		c = h.one()
		e.same("the state when claimed", c.State, want)
	}
	h.settle(failed(c, "boom", 0))
	e.same("the recoveries after it settled", e.queued("a").Recoveries, 0)
}

func settleBuried(e *env) {
	h, c := claimedJob(e)
	h.settle(buried(c, "no use"))
	e.same("the dead letter", e.deadLetter("a"), core.DeadLetter{
		ID: "a", ChangedAt: e.now(), Error: "no use", Group: core.OtherGroup, Payloads: threePayloads(),
	})
	e.same("the queued job", e.queued("a"), core.Job{})
	e.same("how many are dead", e.counts().Dead, int64(1))
}

func settleDropped(e *env) {
	h, c := claimedJob(e)
	h.settle(dropped(c))
	e.same("the jobs", e.jobs(), nil)
	counts := e.counts()
	e.same("processed and failed", counts.Processed+counts.Failed, int64(0))
}

func settleDivides(e *env) {
	h, c := claimedJob(e)
	h.settle(outcome(c, core.Outcome{
		Kind: core.Snoozed, Delay: time.Hour,
		Payloads: []core.PayloadOutcome{{Position: 0}, {Position: 2, Bury: true, Error: "third", Group: "of the third"}},
	}))
	e.same("what was put back", e.queued("a"), job("a", fresh(e.now().Add(time.Hour)), pay("p2", 2)))
	e.same("what was buried", e.deadLetter("a"), core.DeadLetter{
		ID: "a", ChangedAt: e.now(), Error: "third", Group: "of the third", Payloads: []core.Payload{pay("p3", 3)},
	})
}

func settleBeyond(e *env) {
	h, c := claimedJob(e)
	s := untouched(c)
	s.Except = []core.PayloadDisposition{{Position: 3, Disposition: core.Bury}, {Position: 99}}
	h.settle(s)
	e.same("the job", e.queued("a"), job("a", fresh(start), threePayloads()...))
	e.same("the dead letter", e.deadLetter("a"), core.DeadLetter{})
}

func settleKeepsMeta(e *env) {
	p := core.Payload{Data: []byte("p"), Score: 0.1 + 0.2, Meta: []byte("meta")}
	e.push(core.Entry{ID: "a", Payload: p})
	h := e.acquire("n1")
	c := h.one(failed(h.one(), "boom", 0))
	e.same("the payload claimed again", c.Payloads, []core.Payload{p})
	h.settle(buried(c, "no use"))
	e.same("the dead payload", e.deadLetter("a").Payloads, []core.Payload{p})
}

func settleKeepsError(e *env) {
	h, c := claimedJob(e)
	c = h.one(failed(c, "boom", 0))
	e.same("the claimed job's error", c.Error, "boom")
	c = h.one(snoozed(c, 0))
	e.same("the error after a snooze", c.Error, "boom")
	h.settle(failed(c, "crash", 0))
	e.same("the newest error", e.queued("a").Error, "crash")
}

// settleForgets pushes for an id whose job failed, was recovered, and then was done.
func settleForgets(e *env) {
	h, c := claimedJob(e)
	c = h.one(failed(c, "boom", 0))
	c = h.one(recovered(c))
	e.same("the retries and recoveries before", [2]int{c.RetryCount, c.Recoveries}, [2]int{0, 1})
	h.settle(done(c))
	e.push(entry("a", "p1", 1))
	want := fresh(e.now())
	want.FirstPush = e.now()
	e.same("the job pushed again", h.one().Job, job("a", want, pay("p1", 1)))
}

func settleMerges(e *env) {
	h, c := claimedJob(e)
	e.push(entryAt("a", "p2", 1, 5), entryAt("a", "p3", 9, 5), entryAt("a", "p4", 4, 5))
	h.settle(failed(c, "boom", time.Minute))
	e.same("the merged job", e.queued("a"), job("a", core.State{
		PerformAt: e.now().Add(time.Minute), FirstPush: start, Error: "boom",
	}, pay("p1", 1), pay("p2", 1), pay("p3", 3), pay("p4", 4)))
	counts := e.counts()
	e.same("fresh and retries", [2]int64{counts.Fresh, counts.Retrying}, [2]int64{0, 1})
}

func settleMergesRecoveries(e *env) {
	e.place("a", core.State{PerformAt: start, RetryCount: 2, Recoveries: 2, FirstPush: start, Error: "boom"},
		pay("p", 1), pay("q", 2))
	h := e.acquire("n1")
	c := h.cut(1)
	h.settle(failed(c, "crash", time.Minute))
	e.same("the merged job", e.queued("a"), job("a", core.State{
		PerformAt: start.Add(time.Minute), RetryCount: 3, Recoveries: 2, FirstPush: start, Error: "crash",
	}, pay("p", 1), pay("q", 2)))
}

func settleMergesDead(e *env) {
	h, c := claimedJob(e)
	h.settle(buried(c, "first"))
	e.push(entry("a", "p1", 2), entry("a", "p2", 1), entry("a", "p0", 0))
	e.clock.Advance(time.Minute)
	h.settle(buried(h.one(), "second"))
	e.same("the dead letter", e.deadLetter("a"), core.DeadLetter{
		ID: "a", ChangedAt: e.now(), Error: "second", Group: core.OtherGroup,
		Payloads: []core.Payload{pay("p0", 0), pay("p1", 1), pay("p2", 1), pay("p3", 3)},
	})
	e.same("how many are dead", e.counts().Dead, int64(1))
}

func settleCounts(e *env) {
	e.pushIDs("a", "b", "c", "d")
	h := e.acquire("n1")
	claims := h.claim(4)
	s := settleAll(claims, dropped)
	s[0].Processed = true
	s[1].Failed = true
	s[2].Processed, s[2].Failed = true, true
	h.settle(s...)
	counts := e.counts()
	e.same("processed and failed", [2]int64{counts.Processed, counts.Failed}, [2]int64{2, 2})
}

func settleClamps(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	claims := h.claim(2)
	h.settle(snoozed(claims[0], math.MaxInt64), snoozed(claims[1], math.MinInt64))
	e.same("the longest snooze", e.queued("a").PerformAt, core.MaxInstant)
	e.same("the most negative", e.queued("b").PerformAt, core.Instant(0))
}

func settleLongError(e *env) {
	h, c := claimedJob(e)
	text := core.ErrorText(strings.Repeat("é'\"\\%s\n\t", core.MaxErrorBytes))
	c = h.one(failed(c, text, 0))
	e.same("the job's error", c.Error, text)
	h.settle(buried(c, text))
	e.same("the dead letter's error", e.deadLetter("a").Error, text)
}

// skipCases are about settlements of claims that don't exist.
func skipCases() []namedCase {
	return []namedCase{
		{"a job that was never claimed", ruleSkip, skipNeverClaimed},
		{"a job that is not due", ruleSkip, skipNotDue},
		{"a job of another queue", ruleSkip, skipOtherQueue},
		{"a job that is settled already", ruleSkip, skipSettled},
		{"the second settlement of an id in a turn", ruleSkip, skipTwice},
		{"another receipt", ruleSkip, skipOtherReceipt},
		{"another receipt beside the right one", ruleReceipts, skipBesideTheRight},
		{"the receipt of an earlier claim", "Receipt: a settlement names the receipt, so that an old settlement can't change a later claim", skipEarlierReceipt},
		{"skipped settlements count nothing", ruleSkip, skipCountsNothing},
		{"the other settlements are applied", "TurnReply: Skipped are the positions in Settlements whose jobs were not claimed, ascending", skipOthers},
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

func skipNotDue(e *env) {
	e.push(entryAt("later", "p", 1, start.Add(time.Hour)))
	h := e.acquire("n1")
	c := core.Claim{Job: e.queued("later"), Receipt: core.Receipt{Token: h.lease.Token, Number: 1}}
	for _, s := range []core.Settlement{done(c), failed(c, "boom", 0), buried(c, "no use")} {
		e.reported("the skipped", h.settle(s).Skipped, []int{0})
	}
	e.same("the queued job", e.queued("later"), c.Job)
	counts := e.counts()
	e.same("processed, failed and dead", [3]int64{counts.Processed, counts.Failed, counts.Dead}, [3]int64{})
}

func skipOtherQueue(e *env) {
	e.declare("mail", 1)
	e.pushIDs("a")
	c := e.acquire("n1").one()
	h := e.acquireAt(core.Shard{Queue: "mail"}, "n1")
	for _, s := range []core.Settlement{done(c), failed(c, "boom", 0), buried(c, "no use")} {
		e.reported("the skipped", h.settle(s).Skipped, []int{0})
	}
	e.same("the claimed job", e.claimed("a"), c)
	e.same("the jobs of the other queue", e.jobsOf("mail"), nil)
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

// skipBesideTheRight sends several settlements for a job. The one with the claim's receipt is
// applied, although others come before and after it, and also if all are Plain.
func skipBesideTheRight(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	c := h.one()
	before, behind := c, c
	before.Receipt, behind.Receipt = c.Receipt.NextPart().NextPart(), c.Receipt.NextPart()
	reply := h.settle(done(before), failed(c, "boom", 0), done(behind))
	e.reported("the skipped", reply.Skipped, []int{0, 2})
	e.same("the error of the job put back", e.queued("a").Error, "boom")
	c = h.one()
	before, behind = c, c
	before.Receipt, behind.Receipt = c.Receipt.NextPart(), c.Receipt.NextPart().NextPart()
	e.reported("the skipped when all are done", h.settle(done(before), done(c), done(behind)).Skipped, []int{0, 2})
	e.countsMatch(orders, 1, 1)
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
