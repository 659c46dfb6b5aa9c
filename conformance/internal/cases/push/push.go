package push

import (
	"strconv"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func pushCases() []env.Case {
	return []env.Case{
		{Name: "makes a fresh job at the store's present time",
			Rule: "RULES 1: PerformAt unset is the store's present time; " +
				"RetryCount -1 is fresh; FirstPush is the time of the oldest push",
			Check: pushMakesAJob},
		{
			Name:  "counts a delay from the store's present time",
			Rule:  "core.In: after the store's present time, by the store's clock",
			Check: pushDelays,
		},
		{Name: "unites payloads", Rule: env.RulePayloads, Check: pushUnites},
		{Name: "keeps the smaller score", Rule: env.RulePayloads, Check: pushKeepsSmaller},
		{Name: "keeps the Meta of the copy that stays",
			Rule:  "RULES 1: Meta is not part of a payload's identity; the copy that stays keeps its Meta",
			Check: pushKeepsMeta},
		{Name: "orders payloads by score, then bytes",
			Rule:  "RULES 1: payloads of a job are ordered by (score, bytes)",
			Check: pushOrders},
		{Name: "merges an id given twice in the order given",
			Rule:  "Push: in the order given, so that an id given twice merges twice",
			Check: pushMergesTwice},
		{
			Name:  "keeps the time of the queued job",
			Rule:  "RULES 2, row 1: PerformAt and RetryCount are the queued job's",
			Check: pushKeepsTime,
		},
		{Name: "keeps the time and error of a failed job",
			Rule:  "RULES 2, row 1: PerformAt, RetryCount and error are the queued job's, by every push rule",
			Check: pushKeepsBackoff},
		{Name: "keeps the first push", Rule: "RULES 2: FirstPush: the smaller", Check: pushKeepsFirst},
		{
			Name:  "takes the sooner time by Earliest",
			Rule:  "RULES 2, Earliest: the sooner PerformAt wins",
			Check: pushEarliest,
		},
		{Name: "postpones a job by Debounce",
			Rule:  "RULES 2, Debounce: max(queued, min(pushed, FirstPush + limit))",
			Check: pushDebounces},
		{
			Name:  "debounces for a minute by default",
			Rule:  "RULES 2, Debounce: limit 1 minute unless given",
			Check: pushDebouncesAMinute,
		},
		{Name: "leaves a claimed job alone",
			Rule:  "RULES 2: a claimed job is never touched: the push makes a new queued job for the id",
			Check: pushLeavesClaimed},
		{
			Name:  "reports whether its entries are new, merged or duplicates",
			Rule:  "PushReply: New, Merged and Duplicate, in the order of the entries",
			Check: pushSaysWhatItMet,
		},
		{
			Name:  "reports whether many entries are new, merged or duplicates",
			Rule:  "PushReply covers all shards and parts of a push",
			Check: pushSaysWhatManyMet,
		},
		{
			Name:  "merges again when it is repeated",
			Rule:  "Push: payloads that are still queued merge",
			Check: pushRepeats,
		},
	}
}

func pushMakesAJob(e *env.Env) {
	reply, err := e.Store.Push(e.Ctx, e.PushRequest(env.Orders, env.Entry("a", "p", 1)))
	e.Must(err, "Push")
	e.Same("the store's clock", reply.Now, env.Start)
	e.Same("the jobs", e.Jobs(), []core.Job{env.Job("a", env.Fresh(env.Start), env.Pay("p", 1))})
}

func pushDelays(e *env.Env) {
	for id, when := range map[string]core.When{
		"at": core.At(12345), "in": core.In(time.Hour), "ago": core.In(-time.Hour), "end": core.At(core.MaxInstant),
	} {
		e.Push(core.Entry{ID: id, Payload: env.Pay("p", 1), When: when})
		e.Same("the job "+id, e.Queued(id).State, env.Fresh(when.Resolve(env.Start)))
	}
}

func pushUnites(e *env.Env) {
	e.Push(env.Entry("a", "p1", 1), env.Entry("a", "p2", 2))
	e.Push(env.Entry("a", "p2", 2), env.Entry("a", "p3", 3))
	e.Same("the payloads", e.Queued("a").Payloads, []core.Payload{env.Pay("p1", 1), env.Pay("p2", 2), env.Pay("p3", 3)})
}

func pushKeepsSmaller(e *env.Env) {
	e.Push(env.Entry("there", "p", 2), env.Entry("coming", "p", 3))
	e.Push(env.Entry("there", "p", 3), env.Entry("coming", "p", 2))
	e.Same("the smaller was there", e.Queued("there").Payloads, []core.Payload{env.Pay("p", 2)})
	e.Same("the smaller came", e.Queued("coming").Payloads, []core.Payload{env.Pay("p", 2)})
}

func pushKeepsMeta(e *env.Env) {
	meta := func(score float64, text string) core.Entry {
		en := env.Entry("a", "p", score)
		en.Meta = []byte(text)
		return en
	}

	e.Push(meta(2, "there"))
	e.Push(meta(3, "larger"))
	e.Same("after a larger score", e.Queued("a").Payloads[0].Meta, []byte("there"))

	e.Push(meta(2, "equal"))
	e.Same("after an equal score", e.Queued("a").Payloads[0].Meta, []byte("there"))

	e.Push(meta(1, "smaller"))
	e.Same("after a smaller score", e.Queued("a").Payloads[0].Meta, []byte("smaller"))

	e.Push(env.Entry("a", "p", 0))
	e.Same("after a smaller score without Meta", len(e.Queued("a").Payloads[0].Meta), 0)
}

func pushOrders(e *env.Env) {
	e.Push(env.Entry("a", "b", 2), env.Entry("a", "é", 1), env.Entry("a", "z", 1), env.Entry("a", "", 1),
		env.Entry("a", "Z", 1), env.Entry("a", "a", -1), env.Entry("a", "c", 10), env.Entry("a", "\x00", 1))
	e.Same("the payloads", e.Queued("a").Payloads, []core.Payload{
		env.Pay("a", -1), env.Pay("", 1), env.Pay("\x00", 1), env.Pay("Z", 1), env.Pay("z", 1), env.Pay("é", 1),
		env.Pay("b", 2), env.Pay("c", 10),
	})
}

func pushMergesTwice(e *env.Env) {
	e.Push(env.EntryAt("a", "p", 3, env.Start), env.EntryAt("a", "q", 1, 7), env.EntryAt("a", "p", 2, 8))
	e.Same("the job", e.Queued("a"), env.Job("a", env.Fresh(env.Start), env.Pay("q", 1), env.Pay("p", 2)))
}

func pushKeepsTime(e *env.Env) {
	e.Push(env.EntryAt("a", "p", 1, env.Start.Add(time.Hour)))
	e.Clock.Advance(time.Minute)
	e.Push(env.EntryAt("a", "q", 2, env.Start), env.EntryAt("a", "r", 3, env.Start.Add(2*time.Hour)))
	e.Same("the state", e.Queued("a").State, env.Fresh(env.Start.Add(time.Hour)))
}

func pushKeepsBackoff(e *env.Env) {
	e.Push(env.Entry("a", "p", 1))
	h := e.Acquire("n1")
	h.Settle(env.Failed(h.One(), "boom", time.Hour))
	want := core.State{PerformAt: env.Start.Add(time.Hour), FirstPush: env.Start, Failures: env.Failures("boom")}
	for _, kind := range []core.RuleKind{core.Keep, core.Earliest, core.Debounce} {
		e.PushBy(core.PushRule{Kind: kind, Limit: 9 * time.Hour},
			env.EntryAt("a", "q", 2, env.Start), env.EntryAt("a", "r", 3, env.Start.Add(2*time.Hour)))
		e.Same("the state", e.Queued("a").State, want)
	}
}

func pushKeepsFirst(e *env.Env) {
	e.Push(env.Entry("a", "p", 1))
	e.Clock.Advance(time.Minute)
	e.Push(env.Entry("a", "q", 2))
	e.Same("FirstPush after a later push", e.Queued("a").FirstPush, env.Start)
	e.Clock.Set(env.Start.Add(-time.Minute).Time())
	e.Push(env.Entry("a", "r", 3))
	e.Same("FirstPush after the clock stepped back", e.Queued("a").FirstPush, env.Start.Add(-time.Minute))
}

func pushEarliest(e *env.Env) {
	earliest := core.PushRule{Kind: core.Earliest}
	e.Push(env.EntryAt("a", "p", 1, env.Start.Add(time.Hour)))
	e.PushBy(earliest, env.EntryAt("a", "q", 2, env.Start.Add(time.Minute)))
	e.Same("after a sooner push", e.Queued("a").State, env.Fresh(env.Start.Add(time.Minute)))
	e.PushBy(earliest, env.EntryAt("a", "r", 3, env.Start.Add(2*time.Hour)))
	e.Same("after a later push", e.Queued("a").State, env.Fresh(env.Start.Add(time.Minute)))
}

func pushDebounces(e *env.Env) {
	rule := core.PushRule{Kind: core.Debounce, Limit: time.Hour}
	e.PushBy(rule, env.EntryAt("a", "p", 1, env.Start.Add(time.Minute)))
	e.Clock.Advance(30 * time.Second)
	e.PushBy(rule, env.EntryAt("a", "q", 2, env.Start.Add(2*time.Minute)))
	e.Same("after a later push", e.Queued("a").State, env.Fresh(env.Start.Add(2*time.Minute)))
	e.PushBy(rule, env.EntryAt("a", "r", 3, env.Start.Add(time.Minute)))
	e.Same("after a sooner push", e.Queued("a").State, env.Fresh(env.Start.Add(2*time.Minute)))
	e.PushBy(rule, env.EntryAt("a", "s", 4, env.Start.Add(3*time.Hour)))
	e.Same("after a push beyond the limit", e.Queued("a").State, env.Fresh(env.Start.Add(time.Hour)))
}

func pushDebouncesAMinute(e *env.Env) {
	e.Push(env.Entry("a", "p", 1))
	e.PushBy(core.PushRule{Kind: core.Debounce}, env.EntryAt("a", "q", 2, env.Start.Add(time.Hour)))
	e.Same("the state", e.Queued("a").State, env.Fresh(env.Start.Add(core.DefaultDebounceLimit)))
}

func pushLeavesClaimed(e *env.Env) {
	e.Push(env.Entry("a", "p", 1))
	c := e.Acquire("n1").One()
	e.Clock.Advance(time.Second)
	e.Push(env.Entry("a", "p", 9))
	e.Same("the claimed job", e.Claimed("a"), c)
	want := env.Job("a", env.Fresh(e.Now()), env.Pay("p", 9))
	want.FirstPush = e.Now()
	e.Same("the queued job", e.Queued("a"), want)
}

func pushSaysWhatItMet(e *env.Env) {
	met := func(what string, rule core.PushRule, want ports.PushReply, entries ...core.Entry) {
		e.TB.Helper()
		r := e.PushRequest(env.Orders, entries...)
		r.Rule = rule
		e.Met(what, r, want)
	}

	keep, earliest := core.PushRule{}, core.PushRule{Kind: core.Earliest}
	met("a new id", keep, ports.PushReply{New: 1}, env.Entry("a", "p", 2))
	met("the same payload", keep, ports.PushReply{Duplicate: 1}, env.Entry("a", "p", 3))
	met("the same payload with a lower score", keep, ports.PushReply{Duplicate: 1}, env.Entry("a", "p", 1))
	met("another payload", keep, ports.PushReply{Merged: 1}, env.Entry("a", "q", 2))
	met("the other payload again", keep, ports.PushReply{Duplicate: 1}, env.Entry("a", "q", 5))
	met("the other payload with a lower score", keep, ports.PushReply{Duplicate: 1}, env.Entry("a", "q", 0))

	met("ids given twice", keep, ports.PushReply{New: 2, Merged: 2, Duplicate: 3},
		env.Entry("b", "p", 1), env.Entry("b", "p", 1), env.Entry("b", "q", 1), env.Entry("b", "q", 0),
		env.Entry("c", "p", 1), env.Entry("a", "p", 1), env.Entry("a", "r", 1))
	met("ids given twice, by Earliest", earliest, ports.PushReply{New: 1, Merged: 2, Duplicate: 2},
		env.Entry("d", "p", 2), env.Entry("d", "p", 1), env.Entry("d", "q", 1), env.Entry("a", "p", 1),
		env.Entry("a", "s", 1))

	h := e.Acquire("n1")
	h.Turn(10)
	met("a claimed id", keep, ports.PushReply{New: 1, Merged: 1, Duplicate: 1},
		env.Entry("a", "p", 1), env.Entry("a", "t", 1), env.Entry("a", "p", 0))
	met("nothing", keep, ports.PushReply{})
}

func pushSaysWhatManyMet(e *env.Env) {
	const ids, each = 60, 20
	var entries []core.Entry
	for n := range each {
		for id := range ids {
			entries = append(entries, env.Entry(strconv.Itoa(id), strconv.Itoa(n/2), float64(n)))
		}
	}
	want := ports.PushReply{New: ids, Merged: ids * (each/2 - 1), Duplicate: ids * each / 2}
	e.Met("new ids", e.PushRequest(env.Orders, entries...), want)
	e.Met("queued ids", e.PushRequest(env.Orders, entries...), ports.PushReply{Duplicate: ids * each})
}

func pushRepeats(e *env.Env) {
	r := e.PushRequest(env.Orders, env.Entry("a", "p", 1), env.Entry("b", "q", 2))
	_, err := e.Store.Push(e.Ctx, r)
	e.Must(err, "Push")
	e.Unchanged("a repeated Push", func() {
		_, err := e.Store.Push(e.Ctx, r)
		e.Must(err, "Push again")
	})
}
