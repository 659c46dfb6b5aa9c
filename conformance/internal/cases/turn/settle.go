package turn

import (
	"math"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
)

func settleErrorTexts(e *env.Env) {
	h, c := e.ClaimedJob()
	for _, odd := range append(env.NoTexts(), strings.Repeat("é", core.MaxErrorBytes)) {
		s := env.Failed(c, "", 0)
		s.PutBack.Failures = core.Failures{{Node: odd, Text: odd}}
		c = h.One(s)
		e.Same("the job's failure", c.Failures, s.PutBack.Failures.Stored())
	}
	h.Settle(env.Buried(c, "a\x00\xff"))
	e.Same("the dead letter's error", e.DeadLetter("a").Failures.Newest().Text, core.ErrorText("a\x00\xff"))
}

const ruleApply = "Turn: a settlement changes its job as core.Settlement.Apply does"

func settleCases() []env.Case {
	return []env.Case{
		{Name: "removes jobs that are done", Rule: ruleApply, Check: settleDone},
		{Name: "puts a failed job back with its delay, count and failure", Rule: ruleApply, Check: settleFailed},
		{Name: "puts an untouched job back as it was claimed", Rule: ruleApply, Check: settleUntouched},
		{Name: "puts a snoozed job back for later", Rule: ruleApply, Check: settleSnoozed},
		{Name: "puts an awaiting job back as fresh, for later", Rule: env.RuleAwait, Check: settleAwaiting},
		{
			Name:  "an awaiting job runs with what was pushed since its claim",
			Rule:  env.RuleAwait,
			Check: settleAwaitingAfterPush,
		},
		{
			Name:  "an awaiting job keeps an earlier time of its own",
			Rule:  env.RuleAwait,
			Check: settleAwaitingBeforePush,
		},
		{Name: "the rest of a claim does not end the wait", Rule: env.RuleAwait, Check: settleAwaitingWithRest},
		{Name: "puts a recovered job back with its count", Rule: ruleApply, Check: settleRecovered},
		{Name: "buries with reason and time", Rule: ruleApply, Check: settleBuried},
		{Name: "drops jobs that were cancelled", Rule: ruleApply, Check: settleDropped},
		{Name: "divides a job by position", Rule: ruleApply, Check: settleDivides},
		{
			Name:  "ignores positions that the job does not have",
			Rule:  "Settlement.Apply: positions that the job does not have are ignored",
			Check: settleBeyond,
		},
		{Name: "keeps scores and Meta", Rule: "RULES 1: the copy that stays keeps its Meta", Check: settleKeepsMeta},
		{
			Name:  "keeps the error until the job succeeds",
			Rule:  "RULES 1: error: text of the last failure, kept until the job succeeds",
			Check: settleKeepsError,
		},
		{
			Name: "forgets the failures of a job that is done",
			Rule: "RULES 1: error: kept until the job succeeds; " +
				"RULES 2: a push for an id that is not queued makes a fresh job",
			Check: settleForgets,
		},
		{Name: "merges a returning job into the queued one", Rule: ruleReturn, Check: settleMerges},
		{Name: "keeps the larger recoveries", Rule: ruleReturn, Check: settleMergesRecoveries},
		{Name: "merges buried payloads into the morgue", Rule: env.RuleMorgue, Check: settleMergesDead},
		{
			Name:  "counts as the settlement says",
			Rule:  "Settlement: Processed and Failed report whether the queue's counters increase",
			Check: settleCounts,
		},
		{
			Name:  "limits times to their range",
			Rule:  "Instant.Add: limited to the range of an Instant",
			Check: settleClamps,
		},
		{
			Name:  "keeps failures as Failures.Stored returns them",
			Rule:  "Settlement: PutBack.Failures and Letter are stored as Failures.Stored returns them",
			Check: settleErrorTexts,
		},
		{
			Name:  "keeps a long error whole",
			Rule:  "core.MaxErrorBytes: the longest error text that is kept",
			Check: settleLongError,
		},
	}
}

func settleDone(e *env.Env) {
	h, c := e.ClaimedJob()
	reply := h.Settle(env.Done(c))
	e.Reported("the skipped", reply.Skipped, nil)
	found := e.Find("a")
	if found.Queued != nil || found.Claim != nil || found.DeadLetter != nil {
		e.Errorf("a job that is done is still there: %+v", found)
	}
	e.Same("the counts", e.Counts().Claimed, int64(0))
}

func settleFailed(e *env.Env) {
	h, c := e.ClaimedJob()
	h.Settle(env.Failed(c, "boom", time.Minute))
	e.Same("the job", e.Queued("a"), env.Job("a", core.State{
		PerformAt: e.Now().Add(time.Minute), RetryCount: 0, FirstPush: env.Start, Failures: env.Failures("boom"),
	}, env.ThreePayloads()...))
	e.Same("the retries", e.Counts().Retrying, int64(1))
}

func settleUntouched(e *env.Env) {
	h, c := e.ClaimedJob()
	h.Settle(env.Untouched(c))
	e.Same("the job", e.Queued("a"), env.Job("a", env.Fresh(env.Start), env.ThreePayloads()...))
	e.Same("the job by itself", e.Queued("a"), c.Job)
}

func settleSnoozed(e *env.Env) {
	h, c := e.ClaimedJob()
	h.Settle(env.Snoozed(c, time.Hour))
	e.Same("the job", e.Queued("a"), env.Job("a", env.Fresh(e.Now().Add(time.Hour)), env.ThreePayloads()...))
}

// settleAwaiting lets a failed job await a push. After that the job is fresh and has no error.
func settleAwaiting(e *env.Env) {
	h, c := e.ClaimedJob()
	c = h.One(env.Failed(c, "boom", 0))
	h.Settle(env.Awaiting(c, time.Hour))
	e.Same("the job", e.Queued("a"), env.Job("a", env.Fresh(e.Now().Add(time.Hour)), env.ThreePayloads()...))
	counts := e.Counts()
	e.Same("fresh, retries, processed and failed",
		[4]int64{counts.Fresh, counts.Retrying, counts.Processed, counts.Failed}, [4]int64{1, 0, 0, 1})
	e.PushBy(core.PushRule{Kind: core.Earliest}, env.Entry("a", "p4", 4))
	e.Same("the job after a push",
		e.Queued("a"), env.Job("a", env.Fresh(e.Now()), append(env.ThreePayloads(), env.Pay("p4", 4))...))
}

func settleAwaitingAfterPush(e *env.Env) {
	h, c := e.ClaimedJob()
	e.Push(env.EntryAt("a", "p2", 1, e.Now()), env.EntryAt("a", "p4", 4, e.Now()))
	h.Settle(env.Awaiting(c, time.Hour))
	e.Same("the merged job", e.Queued("a"),
		env.Job("a", env.Fresh(e.Now()), env.Pay("p1", 1), env.Pay("p2", 1), env.Pay("p3", 3), env.Pay("p4", 4)))
	e.Same("the payloads of the next claim", len(h.One().Payloads), 4)
}

func settleAwaitingBeforePush(e *env.Env) {
	h, c := e.ClaimedJob()
	e.Push(env.EntryAt("a", "p4", 4, e.Now().Add(time.Hour)))
	h.Settle(env.Awaiting(c, time.Minute))
	e.Same("the merged job", e.Queued("a"),
		env.Job("a", env.Fresh(e.Now().Add(time.Minute)), append(env.ThreePayloads(), env.Pay("p4", 4))...))
}

func settleAwaitingWithRest(e *env.Env) {
	e.Push(env.Entry("a", "p1", 1), env.Entry("a", "p2", 2), env.Entry("a", "p3", 3))
	e.Clock.Advance(time.Second)
	h := e.Acquire("n1")
	h.Settle(env.Awaiting(h.Cut(2), time.Hour))
	e.Same("the job", e.Queued("a"), env.Job("a", env.Fresh(e.Now().Add(time.Hour)), env.ThreePayloads()...))
}

func settleRecovered(e *env.Env) {
	h, c := e.ClaimedJob()
	for n := 1; n <= 3; n++ {
		c.Begun = true
		h.Settle(env.Recovered(c))

		want := env.Fresh(env.Start)
		want.Recoveries = n
		e.Same("the state", e.Queued("a").State, want)

		c = h.One()
		e.Same("the state when claimed", c.State, want)
	}

	h.Settle(env.Failed(c, "boom", 0))
	e.Same("the recoveries after it settled", e.Queued("a").Recoveries, 0)
}

func settleBuried(e *env.Env) {
	h, c := e.ClaimedJob()
	h.Settle(env.Buried(c, "no use"))
	e.Same("the dead letter", e.DeadLetter("a"), core.DeadLetter{
		ID:        "a",
		ChangedAt: e.Now(),
		Failures:  env.Failures("no use"),
		Group:     core.OtherGroup,
		Payloads:  env.ThreePayloads(),
	})
	e.Same("the queued job", e.Queued("a"), core.Job{})
	e.Same("how many are dead", e.Counts().Dead, int64(1))
}

func settleDropped(e *env.Env) {
	h, c := e.ClaimedJob()
	h.Settle(env.Dropped(c))
	e.Same("the jobs", e.Jobs(), nil)
	counts := e.Counts()
	e.Same("processed and failed", counts.Processed+counts.Failed, int64(0))
}

func settleDivides(e *env.Env) {
	h, c := e.ClaimedJob()
	h.Settle(env.Outcome(c, core.Outcome{
		Kind: core.Snoozed, Delay: time.Hour, At: env.FailedAt, Node: env.FailedOn,
		Payloads: []core.PayloadOutcome{
			{Position: 0}, {Position: 2, Bury: true, Error: "third", Group: "of the third"},
		},
	}))

	e.Same("what was put back", e.Queued("a"), env.Job("a", env.Fresh(e.Now().Add(time.Hour)), env.Pay("p2", 2)))
	e.Same("what was buried", e.DeadLetter("a"), core.DeadLetter{
		ID:        "a",
		ChangedAt: e.Now(),
		Failures:  env.Failures("third"),
		Group:     "of the third",
		Payloads:  []core.Payload{env.Pay("p3", 3)},
	})
}

func settleBeyond(e *env.Env) {
	h, c := e.ClaimedJob()
	s := env.Untouched(c)
	s.Except = []core.PayloadDisposition{{Position: 3, Disposition: core.Bury}, {Position: 99}}
	h.Settle(s)
	e.Same("the job", e.Queued("a"), env.Job("a", env.Fresh(env.Start), env.ThreePayloads()...))
	e.Same("the dead letter", e.DeadLetter("a"), core.DeadLetter{})
}

func settleKeepsMeta(e *env.Env) {
	p := core.Payload{Data: []byte("p"), Score: 0.1 + 0.2, Meta: []byte("meta")}
	e.Push(core.Entry{ID: "a", Payload: p})
	h := e.Acquire("n1")
	c := h.One(env.Failed(h.One(), "boom", 0))
	e.Same("the payload claimed again", c.Payloads, []core.Payload{p})
	h.Settle(env.Buried(c, "no use"))
	e.Same("the dead payload", e.DeadLetter("a").Payloads, []core.Payload{p})
}

func settleKeepsError(e *env.Env) {
	h, c := e.ClaimedJob()
	c = h.One(env.Failed(c, "boom", 0))
	e.Same("the claimed job's error", c.Failures.Newest().Text, "boom")
	c = h.One(env.Snoozed(c, 0))
	e.Same("the error after a snooze", c.Failures.Newest().Text, "boom")
	h.Settle(env.Failed(c, "crash", 0))
	e.Same("the newest error", e.Queued("a").Failures.Newest().Text, "crash")
}

// settleForgets pushes for an id whose job failed, was recovered, and then was done.
func settleForgets(e *env.Env) {
	h, c := e.ClaimedJob()
	c = h.One(env.Failed(c, "boom", 0))
	c = h.One(env.Recovered(c))
	e.Same("the retries and recoveries before", [2]int{c.RetryCount, c.Recoveries}, [2]int{0, 1})
	h.Settle(env.Done(c))
	e.Push(env.Entry("a", "p1", 1))
	want := env.Fresh(e.Now())
	want.FirstPush = e.Now()
	e.Same("the job pushed again", h.One().Job, env.Job("a", want, env.Pay("p1", 1)))
}

func settleMerges(e *env.Env) {
	h, c := e.ClaimedJob()
	e.Push(env.EntryAt("a", "p2", 1, 5), env.EntryAt("a", "p3", 9, 5), env.EntryAt("a", "p4", 4, 5))
	h.Settle(env.Failed(c, "boom", time.Minute))
	e.Same("the merged job", e.Queued("a"), env.Job("a", core.State{
		PerformAt: e.Now().Add(time.Minute), FirstPush: env.Start, Failures: env.Failures("boom"),
	}, env.Pay("p1", 1), env.Pay("p2", 1), env.Pay("p3", 3), env.Pay("p4", 4)))
	counts := e.Counts()
	e.Same("fresh and retries", [2]int64{counts.Fresh, counts.Retrying}, [2]int64{0, 1})
}

func settleMergesRecoveries(e *env.Env) {
	e.Place("a", core.State{
		PerformAt:  env.Start,
		RetryCount: 2,
		Recoveries: 2,
		FirstPush:  env.Start,
		Failures:   env.Failures("boom"),
	}, env.Pay("p", 1), env.Pay("q", 2))
	h := e.Acquire("n1")
	c := h.Cut(1)

	h.Settle(env.Failed(c, "crash", time.Minute))
	e.Same("the merged job", e.Queued("a"), env.Job("a", core.State{
		PerformAt:  env.Start.Add(time.Minute),
		RetryCount: 3,
		Recoveries: 1,
		FirstPush:  env.Start,
		Failures:   env.Failures("crash", "boom"),
	}, env.Pay("p", 1), env.Pay("q", 2)))
}

func settleMergesDead(e *env.Env) {
	h, c := e.ClaimedJob()
	h.Settle(env.Buried(c, "first"))
	e.Push(env.Entry("a", "p1", 2), env.Entry("a", "p2", 1), env.Entry("a", "p0", 0))
	e.Clock.Advance(time.Minute)
	h.Settle(env.Buried(h.One(), "second"))
	e.Same("the dead letter", e.DeadLetter("a"), core.DeadLetter{
		ID:        "a",
		ChangedAt: e.Now(),
		Failures:  env.Failures("second"),
		Group:     core.OtherGroup,
		Payloads:  []core.Payload{env.Pay("p0", 0), env.Pay("p1", 1), env.Pay("p2", 1), env.Pay("p3", 3)},
	})
	e.Same("how many are dead", e.Counts().Dead, int64(1))
}

func settleCounts(e *env.Env) {
	e.PushIDs("a", "b", "c", "d")
	h := e.Acquire("n1")
	claims := h.Claim(4)
	s := env.SettleAll(claims, env.Dropped)
	s[0].Processed = true
	s[1].Failed = true
	s[2].Processed, s[2].Failed = true, true
	h.Settle(s...)
	counts := e.Counts()
	e.Same("processed and failed", [2]int64{counts.Processed, counts.Failed}, [2]int64{2, 2})
}

func settleClamps(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	h.Settle(env.Snoozed(claims[0], math.MaxInt64), env.Snoozed(claims[1], math.MinInt64))
	e.Same("the longest snooze", e.Queued("a").PerformAt, core.MaxInstant)
	e.Same("the most negative", e.Queued("b").PerformAt, core.Instant(0))
}

func settleLongError(e *env.Env) {
	h, c := e.ClaimedJob()
	text := core.ErrorText(strings.Repeat("é'\"\\%s\n\t", core.MaxErrorBytes))
	c = h.One(env.Failed(c, text, 0))
	e.Same("the job's error", c.Failures.Newest().Text, text)
	h.Settle(env.Buried(c, text))
	e.Same("the dead letter's error", e.DeadLetter("a").Failures.Newest().Text, text)
}

// skipCases are about settlements of claims that don't exist.
func skipCases() []env.Case {
	return []env.Case{
		{Name: "a job that was never claimed", Rule: ruleSkip, Check: skipNeverClaimed},
		{Name: "a job that is not due", Rule: ruleSkip, Check: skipNotDue},
		{Name: "a job of another queue", Rule: ruleSkip, Check: skipOtherQueue},
		{Name: "a job that is settled already", Rule: ruleSkip, Check: skipSettled},
		{Name: "the second settlement of an id in a turn", Rule: ruleSkip, Check: skipTwice},
		{Name: "another receipt", Rule: ruleSkip, Check: skipOtherReceipt},
		{Name: "another receipt beside the right one", Rule: env.RuleReceipts, Check: skipBesideTheRight},
		{
			Name:  "the receipt of an earlier claim",
			Rule:  "Receipt: a settlement names the receipt, so that an old settlement can't change a later claim",
			Check: skipEarlierReceipt,
		},
		{Name: "skipped settlements count nothing", Rule: ruleSkip, Check: skipCountsNothing},
		{
			Name:  "the other settlements are applied",
			Rule:  "TurnReply: Skipped are the positions in Settlements whose jobs were not claimed, ascending",
			Check: skipOthers,
		},
	}
}

func skipNeverClaimed(e *env.Env) {
	e.PushIDs("queued", "due")
	h := e.Acquire("n1")
	c := h.One()
	other := c
	other.ID = "due"
	e.Reported("the skipped", h.Settle(env.Done(other)).Skipped, []int{0})
	e.Same("the queued jobs", e.QueuedIDs(), []string{"due"})
	e.Same("the claimed job", e.Claimed("queued"), c)
}

func skipNotDue(e *env.Env) {
	e.Push(env.EntryAt("later", "p", 1, env.Start.Add(time.Hour)))
	h := e.Acquire("n1")
	c := core.Claim{Job: e.Queued("later"), Receipt: core.Receipt{Token: h.Lease.Token, Number: 1}}
	for _, s := range []core.Settlement{env.Done(c), env.Failed(c, "boom", 0), env.Buried(c, "no use")} {
		e.Reported("the skipped", h.Settle(s).Skipped, []int{0})
	}
	e.Same("the queued job", e.Queued("later"), c.Job)
	counts := e.Counts()
	e.Same("processed, failed and dead", [3]int64{counts.Processed, counts.Failed, counts.Dead}, [3]int64{})
}

func skipOtherQueue(e *env.Env) {
	e.Declare("mail", 1)
	e.PushIDs("a")
	c := e.Acquire("n1").One()
	h := e.AcquireAt(core.Shard{Queue: "mail"}, "n1")
	for _, s := range []core.Settlement{env.Done(c), env.Failed(c, "boom", 0), env.Buried(c, "no use")} {
		e.Reported("the skipped", h.Settle(s).Skipped, []int{0})
	}
	e.Same("the claimed job", e.Claimed("a"), c)
	e.Same("the jobs of the other queue", e.JobsOf("mail"), nil)
}

func skipSettled(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	c := h.One()
	h.Settle(env.Failed(c, "boom", 0))
	e.Reported("the skipped", h.Settle(env.Buried(c, "late")).Skipped, []int{0})
	e.Same("the retries", e.Queued("a").RetryCount, 0)
	e.Same("the dead letter", e.DeadLetter("a"), core.DeadLetter{})
}

func skipTwice(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	c := h.One()
	e.Reported("the skipped", h.Settle(env.Done(c), env.Buried(c, "second")).Skipped, []int{1})
	e.Same("the dead letter", e.DeadLetter("a"), core.DeadLetter{})
	e.Same("what failed", e.Counts().Failed, int64(0))
}

func skipOtherReceipt(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	c := h.One()

	for _, receipt := range []core.Receipt{
		{Token: c.Receipt.Token, Number: c.Receipt.Number + 1},
		{Token: c.Receipt.Token, Number: 0},
		{Token: c.Receipt.Token - 1, Number: c.Receipt.Number},
		{Token: c.Receipt.Token + 1, Number: c.Receipt.Number},
		{},
	} {
		other := c
		other.Receipt = receipt
		e.Reported("the skipped", h.Settle(env.Done(other)).Skipped, []int{0})
		e.Same("the claimed job", e.Claimed("a"), c)
	}
}

// skipBesideTheRight sends several settlements for a job. The one with the claim's receipt is
// applied, although others come before and after it, and also if all are Plain.
func skipBesideTheRight(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	c := h.One()
	before, behind := c, c
	before.Receipt, behind.Receipt = c.Receipt.NextPart().NextPart(), c.Receipt.NextPart()

	reply := h.Settle(env.Done(before), env.Failed(c, "boom", 0), env.Done(behind))
	e.Reported("the skipped", reply.Skipped, []int{0, 2})
	e.Same("the error of the job put back", e.Queued("a").Failures.Newest().Text, "boom")

	c = h.One()
	before, behind = c, c
	before.Receipt, behind.Receipt = c.Receipt.NextPart(), c.Receipt.NextPart().NextPart()
	e.Reported("the skipped when all are done",
		h.Settle(env.Done(before), env.Done(c), env.Done(behind)).Skipped, []int{0, 2})

	e.CountsMatch(env.Orders, 1, 1)
}

func skipEarlierReceipt(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	first := h.One()
	second := h.One(env.Untouched(first))
	e.Reported("the skipped", h.Settle(env.Done(first)).Skipped, []int{0})
	e.Same("the later claim", e.Claimed("a"), second)
	h = e.Acquire("n1")
	h.Orphans()
	third := h.One(env.Untouched(second))
	e.Reported("the skipped under the next lease", h.Settle(env.Done(second), env.Done(first)).Skipped, []int{0, 1})
	e.Same("the latest claim", e.Claimed("a"), third)
}

func skipCountsNothing(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	h.Settle(env.Done(claims[0]))
	reply := h.Settle(env.Done(claims[0]), env.Failed(claims[0], "boom", 0), env.Done(claims[1]), env.Done(claims[1]))
	e.Reported("the skipped", reply.Skipped, []int{0, 1, 3})
	counts := e.Counts()
	e.Same("processed and failed", [2]int64{counts.Processed, counts.Failed}, [2]int64{2, 0})
}

func skipOthers(e *env.Env) {
	e.PushIDs("a", "b", "c")
	h := e.Acquire("n1")
	claims := h.Claim(3)
	other := claims[1]
	other.Receipt.Number++
	e.Reported("the skipped",
		h.Settle(env.Done(claims[2]), env.Done(other), env.Untouched(claims[0])).Skipped, []int{1})
	e.Same("the queued jobs", e.QueuedIDs(), []string{"a"})
	e.Same("the claimed job", e.Claimed("b"), claims[1])
}
