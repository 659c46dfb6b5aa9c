package transaction

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// transactionPending looks at an id while transactions push for it and put it back, and nothing
// else merges what they leave.
func transactionPending(e *env.Env) {
	pending := func(what string, want ports.Pending) {
		e.TB.Helper()
		want.Shard, want.Now = e.Shard, e.Now()
		e.Same(what, e.Pending(env.Orders, "a"), []ports.Pending{want})
	}

	tx := begin(e)
	_, err := tx.Push(e.Ctx, e.PushRequest(env.Orders, env.Entry("a", "p", 1)))
	e.Must(err, "Push in a transaction")
	pending("before the commit", ports.Pending{})
	e.Must(tx.Commit(e.Ctx), "Commit")
	pending("after the commit", ports.Pending{Queued: true, FirstPush: env.Start})

	h := e.Acquire("n1")
	c := h.One()
	pushWithin(e, env.Entry("a", "q", 2))
	pending("pushed while it is claimed", ports.Pending{Queued: true, Claimed: true, FirstPush: env.Start})
	e.Clock.Advance(time.Second)
	within(e, func(tx env.Transaction) error {
		return tx.Settle(e.Ctx, e.Shard, []core.Settlement{env.Failed(c, "boom", time.Hour)})
	})
	pending("put back", ports.Pending{Queued: true, FirstPush: env.Start})

	e.ByIDs(e.Store.Expedite, "a")
	c = h.One()
	within(e, func(tx env.Transaction) error {
		return tx.Settle(e.Ctx, e.Shard, []core.Settlement{env.Done(c)})
	})
	pending("done", ports.Pending{})

	e.Push(env.Entry("a", "p", 1))
	c = h.One()
	within(e, func(tx env.Transaction) error {
		return tx.Settle(e.Ctx, e.Shard, []core.Settlement{env.Buried(c, "no use")})
	})
	pending("buried", ports.Pending{Dead: true})
}

// transactionTags pushes tags in a transaction, and settles a job with tags in one.
func transactionTags(e *env.Env) {
	e.Push(env.Tagged("a", "p", 1, "x"), env.Tagged("b", "p", 1, "x"), env.Entry("b", "q", 2), env.Entry("b", "r", 3))
	h := e.Acquire("n1")
	claims := h.Claim(2)

	tx := begin(e)
	_, err := tx.Push(e.Ctx,
		e.PushRequest(env.Orders, env.Tagged("a", "q", 2, "y"), env.Entry("a", "r", 3), env.Tagged("c", "p", 1, "y")))
	e.Must(err, "Push in a transaction")

	s := env.Failed(claims[1], "boom", 0)
	s.Except = []core.PayloadDisposition{{Position: 0, Disposition: core.Bury}}
	s.Letter = core.DeadLetter{Failures: env.Failures("no use"), Group: "g"}
	e.Must(tx.Settle(e.Ctx, e.Shard, []core.Settlement{s}), "Settle in a transaction")
	e.Must(tx.Commit(e.Ctx), "Commit")

	e.Same("pushed beside a claim", e.Queued("a").Tags, env.Tags("y"))
	e.Same("pushed", e.Queued("c").Tags, env.Tags("y"))
	e.Same("the job put back", e.Queued("b").Tags, env.Tags("x"))
	e.Same("its error", e.Queued("b").Failures.Newest().Text, "boom")
	e.Same("the dead letter", e.DeadLetter("b").Tags, env.Tags("x"))
	e.Same("its error", e.DeadLetter("b").Failures.Newest().Text, "no use")

	h.Settle(env.Failed(claims[0], "boom", 0))
	e.Same("put back onto it", e.Queued("a").Tags, env.Tags("x y"))

	tx = begin(e)
	_, err = tx.Push(e.Ctx, e.PushRequest(env.Orders, env.Tagged("a", "q", 2, "z"), env.Tagged("b", "q", 2, "z")))
	e.Must(err, "Push in another transaction")
	e.Must(tx.Commit(e.Ctx), "Commit")
	e.Same("pushed onto jobs",
		[]core.Tags{e.Queued("a").Tags, e.Queued("b").Tags}, []core.Tags{env.Tags("x y z"), env.Tags("x z")})
}

// transactionSlot puts a job back with a slot in a transaction, and pushes for it in others, before and
// after it is merged.
func transactionSlot(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2))
	h := e.Acquire("n1")
	c := h.One()
	within(e, func(tx env.Transaction) error {
		return tx.Settle(e.Ctx, e.Shard, []core.Settlement{c.PutOff(time.Hour, "tenant")})
	})

	want := env.Fresh(env.Start.Add(time.Hour))
	want.Slot = "tenant"
	payloads := env.TwoPayloads()
	for i := range 3 {
		r := e.PushRequest(env.Orders, env.EntryAt("a", fmt.Sprint("r", i), 3, 5), env.Urgent("a", fmt.Sprint("s", i), 4, time.Hour))
		r.Rule = core.PushRule{Kind: core.Earliest}
		within(e, func(tx env.Transaction) error {
			_, err := tx.Push(e.Ctx, r)
			return err
		})
		e.Same("the claims before the slot", h.Claim(1), nil)
		e.Same("the state", e.Queued("a").State, want)
		payloads = slices.Insert(payloads, 2+i, env.Pay(fmt.Sprint("r", i), 3))
		payloads = append(payloads, env.Pay(fmt.Sprint("s", i), 4))
	}

	e.Clock.Advance(time.Hour)
	e.Same("the claim", h.One().Job, env.Job("a", want, payloads...))
}

const rulePast = "Settle: each settlement with a Past records it, in the caller's transaction; the next turns remove records"

// recorded settles a claim as done, with a record.
func recorded(c core.Claim, result string) core.Settlement {
	s := env.Done(c)
	s.Record(&c, core.Run{Started: env.Start, Took: time.Second, Node: "web-1", Result: []byte(result)})
	return s
}

// results returns the results of the records of ids, and "none" for an id without a record.
func results(e *env.Env, ids ...string) (list []string) {
	for _, id := range ids {
		if p := e.Find(id).Past; p != nil {
			list = append(list, id+" "+string(p.Result))
		} else {
			list = append(list, id+" none")
		}
	}
	return list
}

// removedByTurns checks that turns that settle jobs remove records down to one.
func removedByTurns(e *env.Env, h *env.Holder) {
	keep := core.KeepPast{Age: time.Hour, Count: 1}
	for range 3 { // a store may count records of transactions with a later turn
		e.Clock.Advance(env.TTL / 2)
		e.Push(env.EntryAt("z", "p", 1, 0))
		r := h.Request(0, recorded(h.One(), "z"))
		r.Keep = keep
		h.Send(r)
	}
	page, err := e.Store.Past(e.Ctx, env.WholePage(env.Orders))
	e.Must(err, "Past")
	e.Same("the number of records", len(page.Past), 1)
	e.Same("the record", results(e, "z"), []string{"z z"})
}

func settlerPast(e *env.Env) {
	e.PushIDs("a", "b", "c")
	h := e.Acquire("n1")
	claims := h.Claim(3)
	e.Must(settleOutside(e, recorded(claims[0], "1"), env.Done(claims[1])), "Settle")
	e.Same("the records", results(e, "a", "b"), []string{"a 1", "b none"})
	e.Same("the whole record", *e.Find("a").Past, core.Past{
		ID: "a", Started: env.Start, DoneAt: env.Start, Took: time.Second, Score: 1, Payloads: 1, Attempt: 1, Node: "web-1",
		Result: []byte("1"),
	})

	e.Refused("Settle with a job that is not claimed", settleOutside(e, recorded(claims[2], "3"), recorded(claims[1], "2")),
		ports.ErrLeaseLost)
	e.Same("the records then", results(e, "a", "b", "c"), []string{"a 1", "b none", "c none"})
	e.Must(settleOutside(e, recorded(claims[2], "3")), "Settle")
	removedByTurns(e, h)
}

const ruleMark = "Settle and SettlePayload: each with a Mark raises the mark of the id, in the caller's transaction"

// markedParts returns claims of two jobs of three payloads, a settlement of the first with a mark, and
// that of a payload of the second.
func markedParts(e *env.Env) (h *env.Holder, whole core.Settlement, part core.PayloadSettlement, second core.Claim) {
	e.Push(env.EntriesOf("a", env.ThreePayloads())...)
	e.Push(env.EntriesOf("b", env.ThreePayloads())...)
	h = e.Acquire("n1")
	claims := []core.Claim{h.One(), h.One()}
	whole, part = env.Failed(claims[0], "boom", 0), claims[1].SettlePayload(1)
	whole.Mark, whole.Stale, part.Mark = core.MarkAt(3), 2, core.MarkAt(2)
	return h, whole, part, claims[1]
}

// sameMarks checks the marks of a and b, and the number of stale payloads.
func sameMarks(e *env.Env, what string, a, b core.Mark, stale int64) {
	e.TB.Helper()
	e.Same("the marks "+what, []core.Mark{e.Find("a").Mark, e.Find("b").Mark}, []core.Mark{a, b})
	e.Same("how many payloads are stale "+what, e.Counts().Stale, stale)
}

func settlerMarks(e *env.Env) {
	h, whole, part, second := markedParts(e)
	sameMarks(e, "at first", core.Mark{}, core.Mark{}, 0)
	e.Must(settleOutside(e, whole), "Settle")
	e.Must(tryPayload(e, part), "SettlePayload")
	sameMarks(e, "then", core.MarkAt(3), core.MarkAt(2), 2)

	// A lower mark changes nothing.
	left, _ := part.Apply(second)
	part = left.SettlePayload(0)
	part.Mark = core.MarkAt(1)
	e.Must(tryPayload(e, part), "SettlePayload")
	sameMarks(e, "after a lower one", core.MarkAt(3), core.MarkAt(2), 2)
	removedByTurns(e, h)
	sameMarks(e, "that turns have removed", core.Mark{}, core.Mark{}, 2)
}

func transactionMarks(e *env.Env) {
	h, whole, part, second := markedParts(e)
	tx := begin(e)
	e.Must(tx.Settle(e.Ctx, e.Shard, []core.Settlement{whole}), "Settle in a transaction")
	e.Must(tx.SettlePayload(e.Ctx, e.Shard, part), "SettlePayload in a transaction")
	sameMarks(e, "before the commit", core.Mark{}, core.Mark{}, 0)
	e.Must(tx.Commit(e.Ctx), "Commit")
	sameMarks(e, "after a commit", core.MarkAt(3), core.MarkAt(2), 2)
	left, _ := part.Apply(second)
	h.Settle(env.Dropped(left))
	removedByTurns(e, h)
	sameMarks(e, "that turns have removed", core.Mark{}, core.Mark{}, 2)
}

const ruleOnce = "RULES 17: a push in a transaction is decided when it is merged, as if it came at its own time"

// once returns an entry with a time of a minute.
func once(id, data string) core.Entry {
	en := env.Entry(id, data, 1)
	en.OnceIn = time.Minute
	return en
}

func transactionOnce(e *env.Env) {
	// What an open transaction has pushed is not remembered yet.
	tx := begin(e)
	_, err := tx.Push(e.Ctx, e.PushRequest(env.Orders, once("open", "p")))
	e.Must(err, "Push in a transaction")
	e.Met("a push meanwhile", e.PushRequest(env.Orders, once("open", "p")), ports.PushReply{New: 1})
	e.ByIDs(e.Store.Delete, "open")
	e.Must(tx.Commit(e.Ctx), "Commit")
	e.Same("the queue after the commit", e.QueuedIDs(), nil)
	e.CountedOnce("how many are repeats at first", e.Counts().Repeated, int64(1))

	pushWithin(e, once("a", "p"), once("a", "q"), once("a", "p"))
	pushWithin(e, once("a", "q"), once("b", "p"))
	e.Same("the queue", e.QueuedIDs(), []string{"a", "b"})
	e.Same("the payloads", e.Queued("a").Payloads, []core.Payload{env.Pay("p", 1), env.Pay("q", 1)})
	e.CountedOnce("how many are repeats", e.Counts().Repeated, int64(3))

	// Whatever became of them, also for other pushes.
	h := e.Acquire("n1")
	h.Settle(env.SettleAll(h.Claim(2), env.Done)...)
	e.Clock.Advance(time.Second)
	pushWithin(e, once("a", "p"), once("b", "p"))
	e.Same("the queue after repeats", e.QueuedIDs(), nil)
	e.CountedOnce("how many are repeats then", e.Counts().Repeated, int64(5))
	e.Met("a push outside", e.PushRequest(env.Orders, once("a", "p")), ports.PushReply{Repeated: 1})
	e.Push(once("c", "p"))
	pushWithin(e, once("c", "p"), env.Entry("d", "p", 1))
	e.CountedOnce("how many are repeats of another push", e.Counts().Repeated, int64(7))

	e.Clock.Advance(time.Minute)
	pushWithin(e, once("a", "p"))
	e.Same("the queue after the time", e.QueuedIDs(), []string{"c", "d", "a"})
}

// transactionOnceMany pushes more entries than one call merges.
func transactionOnceMany(e *env.Env) {
	const n = 2 * ports.MaxPush
	var entries []core.Entry
	for i := range n {
		entries = append(entries, once(fmt.Sprint("id", i%10), fmt.Sprint("p", i)))
	}
	h := e.Acquire("n1")
	pushWithin(e, entries...)
	pushWithin(e, append(entries, once("other", "p"))...)
	e.Same("the number of jobs at first", len(e.QueuedIDs()), 11)
	h.Settle(env.SettleAll(h.Claim(2), env.Done)...)
	pushWithin(e, entries...)
	e.Same("the number of jobs", len(e.QueuedIDs()), 9)
	e.CountedOnce("how many are repeats", e.Counts().Repeated, int64(2*n))
}

func transactionPast(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	claims := h.Claim(2)

	tx := begin(e)
	e.Must(tx.Settle(e.Ctx, e.Shard, []core.Settlement{recorded(claims[0], "1"), recorded(claims[1], "2")}),
		"Settle in a transaction")
	e.Same("the records before the commit", results(e, "a", "b"), []string{"a none", "b none"})
	late := h.Request(0, recorded(claims[0], "late"))
	late.Keep = core.KeepPast{Age: time.Hour}
	e.Reported("deferred meanwhile", h.Send(late).Deferred, []int{0})
	e.Same("the records of deferred settlements", results(e, "a", "b"), []string{"a none", "b none"})
	e.Must(tx.Commit(e.Ctx), "Commit")
	e.Same("the records after a commit", results(e, "a", "b"), []string{"a 1", "b 2"})

	// A run in a turn replaces the record, and then one in a transaction.
	e.PushIDs("a")
	r := h.Request(0, recorded(h.One(), "3"))
	r.Keep = core.KeepPast{Age: time.Hour, Count: 5}
	h.Send(r)
	e.Same("the records after a turn", results(e, "a", "b"), []string{"a 3", "b 2"})
	e.PushIDs("b")
	c := h.One()
	within(e, func(tx env.Transaction) error {
		return tx.Settle(e.Ctx, e.Shard, []core.Settlement{recorded(c, "")})
	})
	e.Same("the records after another transaction", results(e, "a", "b"), []string{"a 3", "b "})
	removedByTurns(e, h)
}

const ruleSettler = "Settler: settlements of one shard, all or none; each (ID, Receipt) must be claimed"

func settlerCases() []env.Case {
	return append([]env.Case{
		{Name: "settles outside a turn", Rule: ruleSettler, Check: settlerSettles},
		{Name: "buries in a group", Rule: env.RuleGroups, Check: settlerGroups},
		{
			Name:  "settles all or none",
			Rule:  "Settle: ErrLeaseLost, with nothing changed, if one is not claimed",
			Check: settlerAllOrNone,
		},
		{
			Name:  "can't be repeated",
			Rule:  "Settle: repeating it after success returns ErrLeaseLost",
			Check: settlerOnce,
		},
		{
			Name:  "takes no lease",
			Rule:  "Settle: the claimed jobs are the fence: it takes no lease",
			Check: settlerTakesNoLease,
		},
		{Name: "records a job that is done", Rule: rulePast, Check: settlerPast},
		{Name: "raises marks", Rule: ruleMark, Check: settlerMarks},
		{
			Name:  "takes jobs out of a turn's repeat",
			Rule:  "Turn: a repeat returns the jobs that still carry this receipt",
			Check: settlerRepeat,
		},
	}, payloadCases()...)
}

func settleOutside(e *env.Env, s ...core.Settlement) error {
	since := e.Repeats.Lossy.Load()
	err := e.Store.(ports.Settler).Settle(e.Ctx, e.Shard, s)
	e.GiveUpIfRepeated(since)
	return err
}

func settlerSettles(e *env.Env) {
	e.PushIDs("a", "b", "c")
	claims := e.Acquire("n1").Claim(3)
	e.Must(settleOutside(e,
		env.Done(claims[0]),
		env.Failed(claims[1], "boom", time.Minute),
		env.Buried(claims[2], "no use"),
	), "Settle")

	e.Same("the job put back", e.Queued("b").State, core.State{
		PerformAt: env.Start.Add(time.Minute), FirstPush: env.Start, Failures: env.Failures("boom"),
	})

	e.Same("the dead", e.DeadIDs(), []string{"c"})
	counts := e.Counts()
	e.Same("claimed, processed and failed",
		[3]int64{counts.Claimed, counts.Processed, counts.Failed}, [3]int64{0, 1, 2})
}

func settlerGroups(e *env.Env) {
	e.PushIDs("a", "b", "c")
	claims := e.Acquire("n1").Claim(3)
	e.Clock.Advance(time.Second)

	long := strings.Repeat("é", core.MaxGroupBytes)
	e.Must(settleOutside(e,
		env.BuriedAs(claims[0], "timeout"),
		env.BuriedAs(claims[1], long),
		env.BuriedAs(claims[2], ""),
	), "Settle")

	e.HaveGroups("of what was settled outside", env.GroupOf(core.OtherGroup, 1, 1, 1),
		env.GroupOf("timeout", 1, 1, 1), env.GroupOf(core.GroupName(long), 1, 1, 1))
	e.Lists("the list of a group", env.Orders, e.MorgueOf("timeout"), []string{"a"})
}

func settlerAllOrNone(e *env.Env) {
	e.PushIDs("a", "b")
	claims := e.Acquire("n1").Claim(2)
	other := claims[1]
	other.Receipt.Number++
	e.Unchanged("a refused Settle", func() {
		e.Refused("Settle with another receipt",
			settleOutside(e, env.Done(claims[0]), env.Done(other)), ports.ErrLeaseLost)
		e.Refused("Settle of one twice", settleOutside(e, env.Done(claims[0]), env.Done(claims[0])), ports.ErrLeaseLost)
	})
}

func settlerOnce(e *env.Env) {
	e.PushIDs("a")
	c := e.Acquire("n1").One()
	e.Must(settleOutside(e, env.Done(c)), "Settle")
	e.Unchanged("a repeated Settle", func() {
		e.Refused("Settle again", settleOutside(e, env.Done(c)), ports.ErrLeaseLost)
	})
}

func settlerTakesNoLease(e *env.Env) {
	e.PushIDs("a")
	c := e.ClaimAndCrash("n1")[0]
	h := e.Acquire("n2")
	h.Orphans()
	e.Must(settleOutside(e, env.Done(c)), "Settle of a job whose lease is over")
	e.Reported("what the new lease can settle of it", h.Settle(env.Recovered(c)).Skipped, []int{0})
	e.Same("the lease's owner", e.Stats(env.Orders).Shards[0].Owner, "n2")
}

func settlerRepeat(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	r := h.Request(2)
	claims := h.Send(r).Claims
	e.Must(settleOutside(e, env.Done(claims[0])), "Settle")
	e.Same("the claims again", h.Send(r).Claims, claims[1:])
}

// transactionCases are about calls in a transaction together with calls outside of it.
func transactionCases() []env.Case {
	return []env.Case{
		{
			Name:  "shows a push when it commits",
			Rule:  "Transactor: other callers see a transaction's changes once it has committed",
			Check: transactionCommits,
		},
		{
			Name:  "is pending from its commit on, since its push",
			Rule:  "Pending: payloads that a transaction has left and that are not merged yet count as queued",
			Check: transactionPending,
		},
		{Name: "is not overtaken by a later push", Rule: env.RuleCommitted, Check: transactionPush},
		{Name: "an urgent push merges by Earliest", Rule: env.RuleUrgent, Check: transactionUrgent},
		{Name: "tags are with what is pushed and settled", Rule: env.RuleTags, Check: transactionTags},
		{
			Name:  "keeps the slot of a job put back",
			Rule:  "RULES 2: while a job has a slot, no push changes its time",
			Check: transactionSlot,
		},
		{
			Name: "keeps the slot of a job put back in a queue with a merge rule",
			Rule: "RULES 2: while a job has a slot, no push changes its time",
			Check: func(e *env.Env) {
				e.By(core.MergeRule{Stays: core.Highest, Keep: 10})
				transactionSlot(e)
			},
		},
		{Name: "records a job that is done", Rule: rulePast, Check: transactionPast},
		{Name: "raises marks", Rule: ruleMark, Check: transactionMarks},
		{Name: "drops repeats", Rule: ruleOnce, Check: transactionOnce},
		{
			Name:  "drops repeats of many entries",
			Rule:  ruleOnce,
			Check: transactionOnceMany,
		},
		{
			Name: "drops repeats in a queue with a merge rule",
			Rule: ruleOnce,
			Check: func(e *env.Env) {
				e.By(core.MergeRule{Stays: core.Highest})
				transactionOnce(e)
			},
		},
		{
			Name:  "keeps the backoff of a job put back",
			Rule:  "RULES 2: a new push meets a queued job, whose PerformAt and RetryCount stay",
			Check: transactionPutBack,
		},
		{Name: "ends the wait of an awaiting job by a push", Rule: env.RuleAwait, Check: transactionAwaiting},
		{
			Name:  "ends the wait by a push that began before the job",
			Rule:  env.RuleAwait,
			Check: transactionAwaitingEarlier,
		},
		{
			Name: "ends the wait by such a push in a queue with a merge rule",
			Rule: env.RuleAwait,
			Check: func(e *env.Env) {
				e.By(core.MergeRule{Stays: core.Highest, Keep: 10})
				transactionAwaitingEarlier(e)
			},
		},
		{Name: "is not overtaken behind a long inbox", Rule: env.RuleCommitted, Check: transactionLong},
		{
			Name:  "does not stop other ids with a long inbox",
			Rule:  "Turn: due jobs in order of (PerformAt, id)",
			Check: transactionLongBeside,
		},
		{
			Name:  "runs an id that is pushed without end",
			Rule:  "Turn: due jobs in order of (PerformAt, id)",
			Check: transactionWithoutEnd,
		},
		{
			Name:  "puts a job back once",
			Rule:  "RULES 2, Earliest: the sooner PerformAt wins",
			Check: transactionPutBackOnce,
		},
		{Name: "merges by the queue's rule", Rule: env.RuleMerge, Check: transactionMerges},
		{
			Name: "locks a job that it settles",
			Rule: "Turn: a settlement whose job a caller's transaction has locked is reported as deferred, " +
				"and changes nothing",
			Check: transactionLocks,
		},
		{
			Name:  "removes a payload when it commits",
			Rule:  "SettlePayload: while a transaction that has settled a payload is open, the job can't be reached",
			Check: transactionPayload,
		},
		{
			Name:  "keeps turns from ending another payload",
			Rule:  "Turn: a part is skipped if the store can't reach the job now",
			Check: transactionPart,
		},
		{
			Name:  "settles one payload of a job",
			Rule:  "SettlePayload: in the transaction that has settled a payload, the job counts as not claimed",
			Check: transactionTwoPayloads,
		},
	}
}

// within calls a function with a transaction and then commits the transaction.
func within(e *env.Env, do func(tx env.Transaction) error) {
	e.TB.Helper()
	tx := begin(e)
	e.Must(do(tx), "a call in a transaction")
	e.Must(tx.Commit(e.Ctx), "Commit")
}

func begin(e *env.Env) env.Transaction {
	e.TB.Helper()
	tx, err := e.Store.(env.Transactor).Begin(e.Ctx)
	e.Must(err, "Begin")
	return tx
}

// pushWithin pushes to orders in a transaction.
func pushWithin(e *env.Env, entries ...core.Entry) {
	e.TB.Helper()
	within(e, func(tx env.Transaction) error {
		_, err := tx.Push(e.Ctx, e.PushRequest(env.Orders, entries...))
		return err
	})
}

func settleWithin(e *env.Env, settle ...core.Settlement) {
	e.TB.Helper()
	within(e, func(tx env.Transaction) error { return tx.Settle(e.Ctx, e.Shard, settle) })
}

func transactionCommits(e *env.Env) {
	tx := begin(e)
	_, err := tx.Push(e.Ctx, e.PushRequest(env.Orders, env.Entry("a", "p", 1)))
	e.Must(err, "Push in a transaction")
	h := e.Acquire("n1")
	e.Same("the claims before it commits", h.Claim(1), nil)
	e.Must(tx.Commit(e.Ctx), "Commit")
	e.Same("the claims after it has committed", env.IDs(h.Claim(1)), []string{"a"})
}

func transactionPush(e *env.Env) {
	h := e.Acquire("n1")
	pushWithin(e, env.Entry("a", "first", 1))
	e.Push(env.Entry("a", "second", 2))
	e.Same("the payloads", h.One().Payloads, []core.Payload{env.Pay("first", 1), env.Pay("second", 2)})
}

func transactionPutBack(e *env.Env) {
	e.Push(env.Entry("a", "first", 1))
	h := e.Acquire("n1")
	settleWithin(e, env.Failed(h.One(), "boom", time.Minute))
	e.Push(env.Entry("a", "second", 2))
	e.Same("the claims during its backoff", h.Claim(1), nil)
	e.Same("the queued job", e.Queued("a"), core.Job{
		ID:       "a",
		State:    core.State{PerformAt: e.Now().Add(time.Minute), FirstPush: env.Start, Failures: env.Failures("boom")},
		Payloads: []core.Payload{env.Pay("first", 1), env.Pay("second", 2)},
	})
}

// transactionAwaitingEarlier lets an awaiting job meet a push of a transaction. The transaction
// began before the job was pushed, and commits while the job is claimed.
func transactionAwaitingEarlier(e *env.Env) {
	tx := begin(e)
	_, err := tx.Push(e.Ctx, e.PushRequest(env.Orders, env.Entry("a", "q", 2)))
	e.Must(err, "Push in a transaction")
	e.Clock.Advance(time.Second)
	e.Push(env.Entry("a", "p", 1))
	h := e.Acquire("n1")
	c := h.One()
	e.Clock.Advance(time.Second)
	e.Must(tx.Commit(e.Ctx), "Commit")
	h.Settle(env.Awaiting(c, time.Hour))
	e.Same("the payloads of the next claim", payloadsByID(h.Claim(1)), map[string]int{"a": 2})
}

// transactionAwaiting lets three jobs await a push. The first meets the push of a transaction that
// has committed, the second meets a direct push, and the third meets no push.
func transactionAwaiting(e *env.Env) {
	e.Push(env.EntryAt("a", "p", 1, 1), env.EntryAt("a", "q", 2, 1),
		env.EntryAt("b", "p", 1, 2), env.EntryAt("b", "q", 2, 2), env.EntryAt("c", "p", 1, 3))
	h := e.Acquire("n1")
	claims := h.Claim(3)

	e.Clock.Advance(time.Second)
	pushWithin(e, env.Entry("a", "r", 3))
	e.Push(env.Entry("b", "r", 3))

	for _, c := range claims {
		settleWithin(e, env.Awaiting(c, time.Hour))
	}

	want := map[string]core.Instant{"a": e.Now(), "b": e.Now(), "c": e.Now().Add(time.Hour)}
	got := map[string]core.Instant{}
	for id := range want {
		got[id] = e.Queued(id).PerformAt
	}
	e.Same("when the jobs run", got, want)

	e.Same("the payloads of those that run now", payloadsByID(h.Claim(3)), map[string]int{"a": 3, "b": 3})
}

func payloadsByID(claims []core.Claim) map[string]int {
	n := map[string]int{}
	for _, c := range claims {
		n[c.ID] = len(c.Payloads)
	}
	return n
}

// LongInbox is a number of entries that transactions have pushed. No turn merges that many.
const LongInbox = 12_000

// fillInbox pushes LongInbox entries in a transaction, each for an id of its own.
func fillInbox(e *env.Env) {
	e.TB.Helper()
	entries := make([]core.Entry, LongInbox)
	for i := range entries {
		entries[i] = env.EntryAt(fmt.Sprintf("other-%05d", i), "p", 1, e.Now().Add(time.Hour))
	}
	pushWithin(e, entries...)
}

func transactionMerges(e *env.Env) {
	e.By(core.MergeRule{Stays: core.Highest, Keep: 2})
	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2), env.Entry("b", "p", 9))
	h := e.Acquire("n1")
	claims := h.Claim(2)

	pushWithin(e, env.Entry("a", "r", 3), env.Entry("b", "p", 5), env.Entry("c", "p", 1),
		env.Entry("c", "q", 3), env.Entry("c", "r", 2), env.Entry("c", "q", 4))
	settleWithin(e, env.Untouched(claims[0]), env.Buried(claims[1], "no use"))
	e.Push(env.Entry("c", "s", 5))

	e.Same("what is put back", e.Queued("a").Payloads, []core.Payload{env.Pay("q", 2), env.Pay("r", 3)})
	e.Same("what is pushed", e.Queued("c").Payloads, []core.Payload{env.Pay("q", 4), env.Pay("s", 5)})
	e.Same("what is pushed beside a claim", e.Queued("b").Payloads, []core.Payload{env.Pay("p", 5)})

	e.ByRefs(e.Store.Revive, env.Whole("b"))
	e.Same("what is revived", e.Queued("b").Payloads, []core.Payload{env.Pay("p", 9)})
}

func transactionLong(e *env.Env) {
	e.Push(env.Entry("put back", "first", 1))
	h := e.Acquire("n1")
	c := h.One()

	fillInbox(e)
	settleWithin(e, env.Untouched(c))
	pushWithin(e, env.Entry("pushed", "first", 1))

	e.Push(env.Entry("put back", "second", 2), env.Entry("pushed", "second", 2),
		env.Entry("several", "p", 1), env.Entry("several", "q", 2))

	seen := map[string][]core.Payload{}
	for range LongInbox { // many more turns than any store needs
		for _, c := range h.Claim(core.MaxTurnJobs) {
			seen[c.ID] = c.Payloads
		}
		if len(seen) == 3 {
			break
		}
	}

	both := []core.Payload{env.Pay("first", 1), env.Pay("second", 2)}
	e.Same("the claimed payloads", seen, map[string][]core.Payload{
		"put back": both, "pushed": both, "several": {env.Pay("p", 1), env.Pay("q", 2)},
	})
}

func transactionLongBeside(e *env.Env) {
	h := e.Acquire("n1")
	fillInbox(e)
	pushWithin(e, env.Entry("a", "first", 1))
	e.Push(env.Entry("a", "second", 2), env.Entry("b", "p", 1), env.Entry("c", "p", 1), env.Entry("c", "q", 2))
	claims := h.Claim(core.MaxTurnJobs)
	found := map[string]bool{}
	for _, c := range claims {
		found[c.ID] = true
	}
	e.Same("whether the first turn claimed what is not in the inbox",
		[]bool{found["b"], found["c"]}, []bool{true, true})
}

func transactionLocks(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	tx := begin(e)
	e.Must(tx.Settle(e.Ctx, e.Shard, []core.Settlement{env.Done(claims[0])}), "Settle in a transaction")
	reply := h.Settle(env.Done(claims[0]), env.Done(claims[1]))
	e.Reported("the deferred settlements", reply.Deferred, []int{0})
	e.Reported("the skipped settlements", reply.Skipped, nil)
	e.Must(tx.Commit(e.Ctx), "Commit")
	e.Reported("the skipped settlements once it has committed", h.Settle(env.Done(claims[0])).Skipped, []int{0})
	e.CountsMatch(env.Orders, 2, 0)
}

// transactionWithoutEnd lets transactions push for one id, one after another without end. Meanwhile
// a holder makes turns, which must claim the id again and again.
func transactionWithoutEnd(e *env.Env) {
	const claims, pushers, turns = 10, 2, 200

	h := e.Acquire("n1")
	var pushing sync.WaitGroup
	pushed, stop := make(chan struct{}), make(chan struct{})
	within := e.Store.(env.Transactor)

	for i := range pushers {
		pushing.Go(func() {
			for n := 0; ; n++ {
				pushOne(e, within, env.Entry("hot", fmt.Sprint(i, n), float64(n)))
				select {
				case pushed <- struct{}{}:
				case <-stop:
					return
				default:
				}
			}
		})
	}

	defer pushing.Wait() // also if a turn fails, since no goroutine may report after the case has ended
	defer close(stop)

	claimed := 0
	var settle []core.Settlement
	for n := 0; n < turns && claimed < claims; n++ {
		<-pushed // otherwise a turn may find nothing
		reply := h.Turn(1, settle...)
		settle = env.SettleAll(reply.Claims, env.Done)
		claimed += len(reply.Claims)
	}

	e.Same("how often the id was claimed", claimed, claims)
}

// pushOne pushes an entry to orders in a transaction. It may be called from any goroutine.
func pushOne(e *env.Env, s env.Transactor, en core.Entry) {
	tx, err := s.Begin(e.Ctx)
	if !e.Check(err, "Begin") {
		return
	}
	_, err = tx.Push(e.Ctx, e.PushRequest(env.Orders, en))
	if e.Check(err, "Push in a transaction") {
		e.Check(tx.Commit(e.Ctx), "Commit")
	}
}

// transactionPutBackOnce lets a transaction push for other ids and put back a job with many
// payloads: together enough for a store to merge them in parts. Between two parts it pushes for the
// job.
func transactionPutBackOnce(e *env.Env) {
	const payloads, before = 900, 500
	entries := make([]core.Entry, payloads)
	for i := range entries {
		entries[i] = env.Entry("a", fmt.Sprint(i), float64(i))
	}
	e.Push(entries...)

	h := e.Acquire("n1")
	c := h.One()

	tx := begin(e)
	for i := range before {
		entries[i] = env.EntryAt(fmt.Sprintf("other-%05d", i), "p", 1, e.Now().Add(time.Hour))
	}
	_, err := tx.Push(e.Ctx, e.PushRequest(env.Orders, entries[:before]...))
	e.Must(err, "Push in a transaction")
	e.Must(tx.Settle(e.Ctx, e.Shard, []core.Settlement{env.Snoozed(c, time.Hour)}), "Settle in a transaction")
	e.Must(tx.Commit(e.Ctx), "Commit")

	h.Turn(0)
	e.PushBy(core.PushRule{Kind: core.Earliest}, env.Entry("a", "now", payloads))
	e.Same("what is claimed after the push", h.Served().ID, "a")
}

// transactionUrgent pushes an urgent entry and others in a transaction.
func transactionUrgent(e *env.Env) {
	e.Push(env.EntryAt("a", "p", 1, env.Start.Add(time.Hour)), env.EntryAt("b", "p", 1, env.Start.Add(time.Hour)))
	e.Clock.Advance(time.Second)

	tx := begin(e)
	_, err := tx.Push(e.Ctx, e.PushRequest(env.Orders,
		env.Entry("b", "q", 2),
		env.Urgent("a", "q", 2, time.Minute),
		env.Urgent("c", "p", 1, time.Minute),
	))
	e.Must(err, "Push in a transaction")
	e.Must(tx.Commit(e.Ctx), "Commit")

	e.Same("the queued job that it meets", e.Queued("a").State, env.Fresh(e.Now().Add(-time.Minute)))
	e.Same("the one that another entry meets", e.Queued("b").State, env.Fresh(env.Start.Add(time.Hour)))
	made := core.State{PerformAt: e.Now().Add(-time.Minute), RetryCount: core.FreshRetryCount, FirstPush: e.Now()}
	e.Same("the job that it makes", e.Queued("c").State, made)
}
