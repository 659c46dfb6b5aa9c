package turn

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleMark = "RULES 16: the mark of an id rises with each payload that is done, " +
		"also of a job that then fails; it is the higher one of its stored mark and the score of its record"
	ruleMarkPush = "RULES 16: a push that drops what is stale drops an entry " +
		"whose score is at or below the mark of its id: it changes nothing but counts"
	ruleMarkRevive = "Revive: Fresh leaves dead letters with a stale payload alone; " +
		"Unmark removes mark and record of an id of which a stale payload is revived"
	ruleMarkGoes = "RULES 16: a mark goes as records do, and counts among them"
)

// markCases are about the marks of ids.
func markCases() []env.Case {
	return []env.Case{
		{Name: "is the score of the record", Rule: ruleMark, Check: markOfRecord},
		{Name: "rises with a job that fails", Rule: ruleMark, Check: markOfFailed},
		{Name: "rises with a part", Rule: ruleMark, Check: markOfPart},
		{Name: "is not raised by what is skipped", Rule: ruleMark, Check: markSkipped},
		{Name: "is not lowered", Rule: ruleMark, Check: markHighest},
		{Name: "has any score", Rule: ruleMark, Check: markScores},
		{Name: "is refused if it is invalid", Rule: "ValidateSettlements: a Mark is a score", Check: markRefused},
		{Name: "is not kept by a turn that keeps none", Rule: "Turn: Keep keeps no record", Check: markUnkept},
		{Name: "comes with each claim", Rule: "Turn: with Marks, each claim has the mark of its id", Check: markOfClaims},
		{Name: "comes with the claims of a repeat", Rule: "Turn: with Marks, each claim of a repeat has the mark of its id",
			Check: markOfRepeat},
		{Name: "is no record", Rule: "RULES 16: a mark is no record of a run that was done: it is not listed",
			Check: markUnlisted},
		{Name: "goes by age", Rule: ruleMarkGoes, Check: markByAge},
		{Name: "goes by count", Rule: ruleMarkGoes, Check: markByCount},
		{Name: "is forgotten with its queue", Rule: "RULES 14: to forget a queue removes its records", Check: markForgotten},
		{Name: "drops stale entries of a push", Rule: ruleMarkPush, Check: markPush},
		{Name: "drops no entry of another push", Rule: ruleMarkPush, Check: markPushAll},
		{Name: "drops stale entries of a large push", Rule: ruleMarkPush, Check: markPushMany},
		{Name: "keeps stale dead letters in the morgue", Rule: ruleMarkRevive, Check: markRevive},
		{Name: "is removed by a revive of what is stale", Rule: ruleMarkRevive, Check: markUnmark},
		{Name: "is not removed by another revive", Rule: ruleMarkRevive, Check: markUnmarkFresh},
		{Name: "counts what settlements have dropped", Rule: "Settlement: Stale is added to the count of stale payloads",
			Check: markCounts},
		{Name: "drops only the first payloads of a claim",
			Rule:  "RULES 16: what is stale is dropped, and the others are put back as they were",
			Check: markPartly},
	}
}

// marked settles a claim as failed at once, with a mark.
func marked(c core.Claim, score float64) core.Settlement {
	s := env.Failed(c, "boom", 0)
	s.Mark = core.MarkAt(score)
	return s
}

// sameMark checks the mark of an id.
func sameMark(e *env.Env, what, id string, want core.Mark) {
	e.TB.Helper()
	e.Same("the mark of "+id+" "+what, e.Find(id).Mark, want)
}

// versioned settles a claim as done, with a record that raises the mark.
func versioned(c core.Claim, result string) core.Settlement {
	s := recorded(c, result)
	s.MarkDone(&c, &core.Outcome{Kind: core.Done})
	return s
}

// raise makes the mark of a new id, with a job that is then deleted.
func raise(h *env.Holder, keep core.KeepPast, id string, score float64) {
	h.Env.TB.Helper()
	h.Env.Push(env.EntryAt(id, "p", score, 0))
	s := env.Dropped(h.One())
	s.Mark = core.MarkAt(score)
	record(h, keep, s)
}

func markOfRecord(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2.5))
	h := e.Acquire("n1")
	c := h.One()
	sameMark(e, "before it is done", "a", core.Mark{})
	e.Same("the mark of the claim", c.Mark, core.Mark{})
	record(h, keepDay(), versioned(c, ""))
	sameMark(e, "once it is done", "a", core.MarkAt(2.5))
	sameMark(e, "which was not pushed", "b", core.Mark{})
	e.Same("whether the record raises the mark", e.Find("a").Past.Raises, true)

	// The record of a queue that handles what is stale raises none.
	e.Push(env.EntryAt("b", "p", 1, 0))
	record(h, keepDay(), recorded(h.One(), ""))
	sameMark(e, "of another queue", "b", core.Mark{})
	e.Push(env.EntryAt("a", "p", 9, 0))
	record(h, keepDay(), recorded(h.One(), ""))
	sameMark(e, "whose next run raises none", "a", core.Mark{})
}

func markOfFailed(e *env.Env) {
	e.PushIDs("a", "b", "c")
	h := e.Acquire("n1")
	claims := h.Claim(3)
	buried := env.Buried(claims[1], "no use")
	buried.Mark = core.MarkAt(8)
	record(h, keepDay(), marked(claims[0], 7), buried, versioned(claims[2], "c"))
	sameMark(e, "that has failed", "a", core.MarkAt(7))
	sameMark(e, "that was buried", "b", core.MarkAt(8))
	sameMark(e, "that was done", "c", core.MarkAt(1))
	e.CountsMatch(env.Orders, 1, 2)
}

func markOfPart(e *env.Env) {
	e.Push(env.EntriesOf("a", env.ThreePayloads())...)
	h := e.Acquire("n1")
	c := h.One()
	part := c.SettlePayload(0)
	part.Mark = core.MarkAt(c.Payloads[0].Score)
	r := h.Request(0)
	r.Parts, r.Keep = []core.PayloadSettlement{part}, keepDay()
	h.Send(r)
	sameMark(e, "after a part", "a", core.MarkAt(1))

	left, _ := part.Apply(c)
	part = left.SettlePayload(1)
	part.Mark = core.MarkAt(3)
	r = h.Request(0)
	r.Parts, r.Keep = []core.PayloadSettlement{part}, keepDay()
	h.Send(r)
	sameMark(e, "after the last part", "a", core.MarkAt(3))
	e.Same("its record", e.Find("a").Past, (*core.Past)(nil))
}

func markSkipped(e *env.Env) {
	e.Push(env.EntriesOf("a", env.ThreePayloads())...)
	h := e.Acquire("n1")
	c := h.One()
	wrong := marked(c, 9)
	wrong.Receipt.Number++
	r := h.Request(0, wrong)
	r.Keep = keepDay()
	for _, part := range []core.PayloadSettlement{c.SettlePayload(7), c.SettlePayload(0)} {
		part.Mark = core.MarkAt(9)
		r.Parts = append(r.Parts, part)
	}
	r.Parts[1].Receipt.Number++
	reply := h.Send(r)
	e.Reported("skipped", reply.Skipped, []int{0})
	e.Reported("skipped parts", reply.SkippedParts, []int{0, 1})
	sameMark(e, "whose settlement and parts are skipped", "a", core.Mark{})
}

func markHighest(e *env.Env) {
	h := e.Acquire("n1")
	e.PushIDs("a")
	c := h.One()
	for i, score := range []float64{5, 3, -1, 6, 5} {
		record(h, keepDay(), marked(c, score))
		sameMark(e, fmt.Sprint("after ", i), "a", core.MarkAt([]float64{5, 5, 5, 6, 6}[i]))
		e.Clock.Advance(time.Second)
		c = h.One()
	}

	// A later record with a lower score does not lower it.
	record(h, keepDay(), versioned(c, ""))
	sameMark(e, "with a record of score 1", "a", core.MarkAt(6))
	e.Push(env.Entry("a", "p", 8))
	record(h, keepDay(), versioned(h.One(), ""))
	sameMark(e, "with a record of score 8", "a", core.MarkAt(8))
}

func markScores(e *env.Env) {
	h := e.Acquire("n1")
	for i, score := range []float64{
		0, math.Copysign(0, -1), -0.1, 5e-324, 1<<53 - 1, math.MaxFloat64, -math.MaxFloat64, 0.1,
	} {
		id := fmt.Sprint("id", i)
		raise(h, keepDay(), id, score)
		got := e.Find(id).Mark
		e.Same("the mark of "+id, got, core.MarkAt(score))
		e.Same("whether it is below 0", math.Signbit(got.Score), score < 0)

		e.Push(env.EntryAt(id, "p", score, 0))
		r := h.Request(1)
		r.Keep, r.Marks = keepDay(), true
		claims := h.Send(r).Claims
		e.Same("the mark of its claim", claims[0].Mark, core.MarkAt(score))
		record(h, keepDay(), env.Dropped(claims[0]))
	}
}

func markRefused(e *env.Env) {
	e.Push(env.EntriesOf("a", env.ThreePayloads())...)
	h := e.Acquire("n1")
	c := h.One()
	for _, score := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)} {
		s, part := env.Failed(c, "boom", 0), c.SettlePayload(0)
		s.Mark, part.Mark = core.Mark{Score: score, OK: true}, core.Mark{Score: score, OK: true}
		r := h.Request(0, s)
		_, err := e.Store.Turn(e.Ctx, r)
		e.Refused("a turn with a mark that is no score", err, ports.ErrInvalidRequest)
		r = h.Request(0)
		r.Parts = []core.PayloadSettlement{part}
		_, err = e.Store.Turn(e.Ctx, r)
		e.Refused("a turn with a part whose mark is no score", err, ports.ErrInvalidRequest)
	}
	s := env.Failed(c, "boom", 0)
	s.Stale = -1
	_, err := e.Store.Turn(e.Ctx, h.Request(0, s))
	e.Refused("a turn with a Stale below 0", err, ports.ErrInvalidRequest)
}

func markUnkept(e *env.Env) {
	e.Push(env.EntriesOf("a", env.ThreePayloads())...)
	h := e.Acquire("n1")
	c := h.One()
	part := c.SettlePayload(0)
	part.Mark = core.MarkAt(9)
	r := h.Request(0)
	r.Parts = []core.PayloadSettlement{part}
	h.Send(r)
	c, _ = part.Apply(c)
	record(h, core.KeepPast{}, marked(c, 9))
	sameMark(e, "of a queue that keeps no record", "a", core.Mark{})
}

func markOfClaims(e *env.Env) {
	h := e.Acquire("n1")
	e.Push(env.EntryAt("a", "p", 1, 0))
	record(h, keepDay(), versioned(h.One(), ""))
	done(h, keepDay(), "b")
	raise(h, keepDay(), "b", 4)
	raise(h, keepDay(), "c", 5)

	e.PushIDs("a", "b", "c", "d")
	e.Push(env.EntriesOf("e", env.ThreePayloads())...) // which is no usual job
	r := h.Request(9)
	r.Keep, r.Marks = keepDay(), true
	var marks []string
	reply := h.Send(r)
	for _, c := range reply.Claims {
		marks = append(marks, fmt.Sprint(c.ID, " ", c.Mark))
	}
	e.Same("the marks of the claims", marks, []string{
		fmt.Sprint("a ", core.MarkAt(1)), fmt.Sprint("b ", core.MarkAt(4)), fmt.Sprint("c ", core.MarkAt(5)),
		fmt.Sprint("d ", core.Mark{}), fmt.Sprint("e ", core.Mark{}),
	})

	// The mark that the same turn raises comes too.
	e.Push(env.EntryAt("a", "q", 7, 0))
	s := marked(reply.Claims[0], 6)
	s.Rest = core.Discard
	r = h.Request(9, s)
	r.Keep, r.Marks = keepDay(), true
	claims := h.Send(r).Claims
	e.Same("the claims", len(claims), 1)
	e.Same("the mark that the turn raises", claims[0].Mark, core.MarkAt(6))

	r = h.Request(9, env.Untouched(claims[0]))
	r.Keep = keepDay()
	e.Same("the mark if the turn does not ask", h.Send(r).Claims[0].Mark, core.Mark{})
}

func markOfRepeat(e *env.Env) {
	h := e.Acquire("n1")
	raise(h, keepDay(), "b", 5)
	e.PushIDs("a", "b", "c")
	r := h.Request(9)
	r.Keep, r.Marks = keepDay(), true
	for range 2 {
		claims := h.Send(r).Claims
		e.Same("the claims", len(claims), 3)
		e.Same("the marks", []core.Mark{claims[0].Mark, claims[1].Mark, claims[2].Mark},
			[]core.Mark{{}, core.MarkAt(5), {}})
		r.Resent = true
	}
}

func markUnlisted(e *env.Env) {
	h := e.Acquire("n1")
	done(h, keepDay(), "a")
	raise(h, keepDay(), "a", 4)
	raise(h, keepDay(), "b", 5)
	done(h, keepDay(), "c")
	e.Same("the records", pastIDs(e), []string{"a", "c"})
	e.Same("the record of a mark", e.Find("b").Past, (*core.Past)(nil))
	e.Same("the score of the record", e.Find("a").Past.Score, 1.0)

	// It is listed page by page, whatever is between the records.
	var ids []string
	request := env.WholePage(env.Orders)
	request.Limit = 1
	for range 9 {
		page, err := e.Store.Past(e.Ctx, request)
		e.Must(err, "Past")
		for _, p := range page.Past {
			ids = append(ids, p.ID)
		}
		if page.Next == (ports.Cursor{}) {
			break
		}
		request.After = page.Next
	}
	e.Same("the records, page by page", ids, []string{"a", "c"})
}

func markByAge(e *env.Env) {
	keep := core.KeepPast{Age: time.Minute}
	h := e.Acquire("n1")
	raise(h, keep, "a", 5)
	e.Clock.Advance(time.Minute)
	done(h, keep, "b")
	sameMark(e, "of the age", "a", core.MarkAt(5))
	e.Clock.Advance(time.Microsecond)
	done(h, keep, "c")
	sameMark(e, "that is older", "a", core.Mark{})
}

func markByCount(e *env.Env) {
	keep := core.KeepPast{Age: time.Hour, Count: 2}
	h := e.Acquire("n1")
	raise(h, keep, "a", 5)
	e.Clock.Advance(time.Second)
	done(h, keep, "b")
	e.Clock.Advance(time.Second)
	sameMark(e, "among two records", "a", core.MarkAt(5))
	raise(h, keep, "b", 6)
	e.Clock.Advance(time.Second)
	sameMark(e, "before two records", "a", core.Mark{})
	e.Same("the records", pastIDs(e), []string{"b"})
	done(h, keep, "c", "d")
	sameMark(e, "before two others", "b", core.Mark{})
	e.Same("the records at the end", pastIDs(e), []string{"c", "d"})
}

func markForgotten(e *env.Env) {
	h := e.Acquire("n1")
	raise(h, keepDay(), "a", 5)
	h.Release()
	e.Forget()
	e.Declare(env.Orders, 1)
	sameMark(e, "of a forgotten queue", "a", core.Mark{})
}

func markPush(e *env.Env) {
	h := e.Acquire("n1")
	raise(h, keepDay(), "a", 5)
	r := e.PushRequest(env.Orders, env.Entry("a", "q", 4), env.Tagged("a", "r", 5, "tag"), env.Entry("b", "q", 1))
	r.DropStale = true
	e.Met("a push of stale entries", r, ports.PushReply{New: 1, Stale: 2})
	e.Same("the queue", e.QueuedIDs(), []string{"b"})
	e.CountedOnce("how many are stale", e.Counts().Stale, int64(2))

	r = e.PushRequest(env.Orders,
		env.Entry("a", "q", 4), env.Entry("a", "s", 5.5), env.Entry("a", "t", 3), env.Entry("a", "u", 6))
	r.DropStale = true
	e.Met("a push of stale and fresh entries", r, ports.PushReply{New: 1, Merged: 1, Stale: 2})
	e.Same("the job", e.Queued("a").Payloads, []core.Payload{env.Pay("s", 5.5), env.Pay("u", 6)})
	e.CountedOnce("how many are stale then", e.Counts().Stale, int64(4))

	// A stale entry changes nothing of a queued job.
	before := e.Queued("a")
	r = e.PushRequest(env.Orders, env.Tagged("a", "s", 5, "tag"), env.Urgent("a", "z", 1, time.Hour))
	r.DropStale, r.Rule = true, core.PushRule{Kind: core.Earliest}
	e.Met("a push to a queued job", r, ports.PushReply{Stale: 2})
	e.Same("the job then", e.Queued("a"), before)
}

func markPushAll(e *env.Env) {
	h := e.Acquire("n1")
	raise(h, keepDay(), "a", 5)
	e.Met("a push", e.PushRequest(env.Orders, env.Entry("a", "q", 4)), ports.PushReply{New: 1})
	e.Same("the queue", e.QueuedIDs(), []string{"a"})
	e.Same("how many are stale", e.Counts().Stale, int64(0))
}

// markPushMany pushes more entries than a store handles in one step, of ids with and without marks.
func markPushMany(e *env.Env) {
	const ids = 50
	h := e.Acquire("n1")
	for i := range ids {
		raise(h, keepDay(), fmt.Sprint("id", i), 5)
	}

	var entries []core.Entry
	for k := range 2 * ports.MaxPush {
		entries = append(entries, env.Entry(fmt.Sprint("id", k%(2*ids)), fmt.Sprint("p", k), float64(k/(2*ids))))
	}
	r := e.PushRequest(env.Orders, entries...)
	r.DropStale = true
	stale := 6 * ids // those with scores 0 to 5 of ids with a mark
	e.Met("a large push", r, ports.PushReply{New: 2 * ids, Merged: len(entries) - 2*ids - stale, Stale: stale})
	e.Same("the scores of a job with a mark", e.Queued("id7").Payloads[0].Score, 6.0)
	e.Same("the scores of a job without", e.Queued("id77").Payloads[0].Score, 0.0)
	e.CountedOnce("how many are stale", e.Counts().Stale, int64(stale))
}

// withDead makes dead letters of two ids with the mark 2: a with the payloads p1, p2 and p3 of these
// scores, and b with p3 alone.
func withDead(e *env.Env) *env.Holder {
	h := e.Acquire("n1")
	for _, id := range []string{"a", "b"} {
		e.Push(env.EntryAt(id, "v", 2, 0))
		record(h, keepDay(), versioned(h.One(), strings.Repeat("r", 100)))
	}
	e.Push(env.EntriesOf("a", env.ThreePayloads())...)
	e.Push(env.Entry("b", "p3", 3), env.Entry("c", "p", 1))
	e.ByIDs(e.Store.Bury, "a", "b", "c")
	return h
}

func markRevive(e *env.Env) {
	withDead(e)
	fresh := func(refs ...ports.DeadLetterRef) ports.StepReply {
		reply, err := e.Store.Revive(e.Ctx, ports.DeadLetterStep{Shard: e.Shard, DeadLetters: refs, Fresh: true})
		e.Must(err, "Revive")
		return reply
	}

	reply := fresh(env.Whole("a"), env.Whole("b"), env.Whole("z"), env.Whole("c"))
	e.Reported("what is revived", []int{reply.Handled, reply.Reached}, []int{2, 4})
	e.Reported("what is stale", reply.Stale, 1)
	e.Same("the morgue", e.DeadIDs(), []string{"a"})
	e.Same("the queue", e.QueuedIDs(), []string{"b", "c"})

	reply = fresh(env.Parts("a", "p3", "p1"))
	e.Same("what is revived of parts", []int{reply.Handled, reply.Stale}, []int{0, 1})
	reply = fresh(env.Parts("a", "p3"))
	e.Reported("what is revived of a part", []int{reply.Handled, reply.Stale}, []int{1, 0})
	e.Same("the dead letter", e.DeadLetter("a").Payloads, env.ThreePayloads()[:2])
	sameMark(e, "after all", "a", core.MarkAt(2))

	reply, err := e.Store.Revive(e.Ctx, ports.DeadLetterStep{
		Shard:       e.Shard,
		DeadLetters: []ports.DeadLetterRef{env.Whole("a")},
	})
	e.Must(err, "Revive")
	e.Reported("what another revive has revived", []int{reply.Handled, reply.Stale}, []int{1, 0})
	sameMark(e, "after another revive", "a", core.MarkAt(2))
	e.Same("the morgue at the end", e.DeadIDs(), nil)
}

func markUnmark(e *env.Env) {
	h := withDead(e)
	raise(h, keepDay(), "a", 2.5)
	for range 2 {
		_, err := e.Store.Revive(e.Ctx, ports.DeadLetterStep{
			Shard: e.Shard, DeadLetters: []ports.DeadLetterRef{env.Whole("a"), env.Whole("b")}, Unmark: true,
		})
		e.Must(err, "Revive")
	}
	sameMark(e, "that was revived", "a", core.Mark{})
	e.Same("its record", e.Find("a").Past, (*core.Past)(nil))
	sameMark(e, "whose payload is not stale", "b", core.MarkAt(2))
	e.Same("the records", pastIDs(e), []string{"b"})
	e.Same("the job", e.Queued("a").Payloads, env.ThreePayloads())

	// The records that are left are counted.
	keep := core.KeepPast{Age: time.Hour, Count: 3, Bytes: core.MaxResultBytes}
	done(h, keep, "x")
	done(h, keep, "y")
	e.Same("the records within the bounds", len(pastIDs(e)), 3)
	done(h, keep, "z")
	e.Same("the records beyond them", len(pastIDs(e)), 3)
}

func markUnmarkFresh(e *env.Env) {
	withDead(e)
	for _, r := range []ports.DeadLetterStep{
		{DeadLetters: []ports.DeadLetterRef{env.Parts("a", "p3")}, Unmark: true},
		{DeadLetters: []ports.DeadLetterRef{env.Whole("b"), env.Whole("z")}, Unmark: true},
		{DeadLetters: []ports.DeadLetterRef{env.Parts("a", "p1")}},
	} {
		r.Shard = e.Shard
		_, err := e.Store.Revive(e.Ctx, r)
		e.Must(err, "Revive")
	}
	sameMark(e, "of which no stale payload is revived so", "a", core.MarkAt(2))
	sameMark(e, "without a stale payload", "b", core.MarkAt(2))

	for _, r := range []ports.DeadLetterStep{
		{DeadLetters: []ports.DeadLetterRef{env.Whole("a")}, Fresh: true, Unmark: true},
		{Fresh: true}, {Unmark: true},
	} {
		r.Shard = e.Shard
		_, err := e.Store.Revive(e.Ctx, r)
		e.Refused("a revive with Fresh and Unmark, or without dead letters", err, ports.ErrInvalidRequest)
	}
}

func markCounts(e *env.Env) {
	e.PushIDs("a", "b", "c")
	h := e.Acquire("n1")
	claims := h.Claim(3)
	whole, partly := env.Dropped(claims[0]), env.Untouched(claims[1])
	whole.Stale, partly.Stale = 3, 2
	record(h, core.KeepPast{}, whole, partly, env.Done(claims[2]))
	counts := e.Counts()
	e.CountedOnce("how many are stale", counts.Stale, int64(5))
	e.Same("how many are processed", counts.Processed, int64(1))
	e.Same("how many have failed", counts.Failed, int64(0))

	wrong := env.Dropped(claims[0])
	wrong.Stale = 7
	record(h, core.KeepPast{}, wrong)
	e.CountedOnce("how many are stale after a skipped settlement", e.Counts().Stale, int64(5))
}

func markPartly(e *env.Env) {
	h := e.Acquire("n1")
	raise(h, keepDay(), "a", 2)
	e.Push(env.EntriesOf("a", env.ThreePayloads())...)
	r := h.Request(1)
	r.Keep, r.Marks = keepDay(), true
	c := h.Send(r).Claims[0]
	e.Same("how many payloads are stale", c.Stale(), 2)

	r = h.Request(1, c.DropStale(2))
	r.Keep, r.Marks = keepDay(), true
	claims := h.Send(r).Claims
	e.Same("the claims", len(claims), 1)
	e.Same("the payloads that are left", claims[0].Payloads, slices.Clone(env.ThreePayloads()[2:]))
	e.Same("how many of them are stale", claims[0].Stale(), 0)
	e.CountedOnce("how many were stale", e.Counts().Stale, int64(2))
}
