package conformance

import (
	"runtime"
	"strconv"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func pushCases() []namedCase {
	return []namedCase{
		{"makes a fresh job at the store's present time",
			"RULES 1: PerformAt unset is the store's present time; RetryCount -1 is fresh; FirstPush is the time of the oldest push",
			pushMakesAJob},
		{"counts a delay from the store's present time", "core.In: after the store's present time, by the store's clock", pushDelays},
		{"unites payloads", rulePayloads, pushUnites},
		{"keeps the smaller score", rulePayloads, pushKeepsSmaller},
		{"keeps the Meta of the copy that stays",
			"RULES 1: Meta is not part of a payload's identity; the copy that stays keeps its Meta",
			pushKeepsMeta},
		{"orders payloads by score, then bytes",
			"RULES 1: payloads of a job are ordered by (score, bytes)",
			pushOrders},
		{"merges an id given twice in the order given",
			"Push: in the order given, so that an id given twice merges twice",
			pushMergesTwice},
		{"keeps the time of the queued job", "RULES 2, row 1: PerformAt and RetryCount are the queued job's", pushKeepsTime},
		{"keeps the time and error of a failed job",
			"RULES 2, row 1: PerformAt, RetryCount and error are the queued job's, by every push rule",
			pushKeepsBackoff},
		{"keeps the first push", "RULES 2: FirstPush: the smaller", pushKeepsFirst},
		{"takes the sooner time by Earliest", "RULES 2, Earliest: the sooner PerformAt wins", pushEarliest},
		{"postpones a job by Debounce",
			"RULES 2, Debounce: max(queued, min(pushed, FirstPush + limit))",
			pushDebounces},
		{"debounces for a minute by default", "RULES 2, Debounce: limit 1 minute unless given", pushDebouncesAMinute},
		{"leaves a claimed job alone",
			"RULES 2: a claimed job is never touched: the push makes a new queued job for the id",
			pushLeavesClaimed},
		{"reports whether its entries are new, merged or duplicates", "PushReply: New, Merged and Duplicate, in the order of the entries", pushSaysWhatItMet},
		{"reports whether many entries are new, merged or duplicates", "PushReply covers all shards and parts of a push", pushSaysWhatManyMet},
		{"merges again when it is repeated", "Push: payloads that are still queued merge", pushRepeats},
	}
}

func pushMakesAJob(e *env) {
	reply, err := e.store.Push(e.ctx, e.pushRequest(orders, entry("a", "p", 1)))
	e.must(err, "Push")
	e.same("the store's clock", reply.Now, start)
	e.same("the jobs", e.jobs(), []core.Job{job("a", fresh(start), pay("p", 1))})
}

func pushDelays(e *env) {
	for id, when := range map[string]core.When{
		"at": core.At(12345), "in": core.In(time.Hour), "ago": core.In(-time.Hour), "end": core.At(core.MaxInstant),
	} {
		e.push(core.Entry{ID: id, Payload: pay("p", 1), When: when})
		e.same("the job "+id, e.queued(id).State, fresh(when.Resolve(start)))
	}
}

func pushUnites(e *env) {
	e.push(entry("a", "p1", 1), entry("a", "p2", 2))
	e.push(entry("a", "p2", 2), entry("a", "p3", 3))
	e.same("the payloads", e.queued("a").Payloads, []core.Payload{pay("p1", 1), pay("p2", 2), pay("p3", 3)})
}

func pushKeepsSmaller(e *env) {
	e.push(entry("there", "p", 2), entry("coming", "p", 3))
	e.push(entry("there", "p", 3), entry("coming", "p", 2))
	e.same("the smaller was there", e.queued("there").Payloads, []core.Payload{pay("p", 2)})
	e.same("the smaller came", e.queued("coming").Payloads, []core.Payload{pay("p", 2)})
}

func pushKeepsMeta(e *env) {
	meta := func(score float64, text string) core.Entry {
		en := entry("a", "p", score)
		en.Meta = []byte(text)
		return en
	}
	e.push(meta(2, "there"))
	e.push(meta(3, "larger"))
	e.same("after a larger score", e.queued("a").Payloads[0].Meta, []byte("there"))
	e.push(meta(2, "equal"))
	e.same("after an equal score", e.queued("a").Payloads[0].Meta, []byte("there"))
	e.push(meta(1, "smaller"))
	e.same("after a smaller score", e.queued("a").Payloads[0].Meta, []byte("smaller"))
	e.push(entry("a", "p", 0))
	e.same("after a smaller score without Meta", len(e.queued("a").Payloads[0].Meta), 0)
}

func pushOrders(e *env) {
	e.push(entry("a", "b", 2), entry("a", "é", 1), entry("a", "z", 1), entry("a", "", 1),
		entry("a", "Z", 1), entry("a", "a", -1), entry("a", "c", 10), entry("a", "\x00", 1))
	e.same("the payloads", e.queued("a").Payloads, []core.Payload{
		pay("a", -1), pay("", 1), pay("\x00", 1), pay("Z", 1), pay("z", 1), pay("é", 1), pay("b", 2), pay("c", 10),
	})
}

func pushMergesTwice(e *env) {
	e.push(entryAt("a", "p", 3, start), entryAt("a", "q", 1, 7), entryAt("a", "p", 2, 8))
	e.same("the job", e.queued("a"), job("a", fresh(start), pay("q", 1), pay("p", 2)))
}

func pushKeepsTime(e *env) {
	e.push(entryAt("a", "p", 1, start.Add(time.Hour)))
	e.clock.Advance(time.Minute)
	e.push(entryAt("a", "q", 2, start), entryAt("a", "r", 3, start.Add(2*time.Hour)))
	e.same("the state", e.queued("a").State, fresh(start.Add(time.Hour)))
}

func pushKeepsBackoff(e *env) {
	e.push(entry("a", "p", 1))
	h := e.acquire("n1")
	h.settle(failed(h.one(), "boom", time.Hour))
	want := core.State{PerformAt: start.Add(time.Hour), FirstPush: start, Error: "boom"}
	for _, kind := range []core.RuleKind{core.Keep, core.Earliest, core.Debounce} {
		e.pushBy(core.PushRule{Kind: kind, Limit: 9 * time.Hour},
			entryAt("a", "q", 2, start), entryAt("a", "r", 3, start.Add(2*time.Hour)))
		e.same("the state", e.queued("a").State, want)
	}
}

func pushKeepsFirst(e *env) {
	e.push(entry("a", "p", 1))
	e.clock.Advance(time.Minute)
	e.push(entry("a", "q", 2))
	e.same("FirstPush after a later push", e.queued("a").FirstPush, start)
	e.clock.Set(start.Add(-time.Minute).Time())
	e.push(entry("a", "r", 3))
	e.same("FirstPush after the clock stepped back", e.queued("a").FirstPush, start.Add(-time.Minute))
}

func pushEarliest(e *env) {
	earliest := core.PushRule{Kind: core.Earliest}
	e.push(entryAt("a", "p", 1, start.Add(time.Hour)))
	e.pushBy(earliest, entryAt("a", "q", 2, start.Add(time.Minute)))
	e.same("after a sooner push", e.queued("a").State, fresh(start.Add(time.Minute)))
	e.pushBy(earliest, entryAt("a", "r", 3, start.Add(2*time.Hour)))
	e.same("after a later push", e.queued("a").State, fresh(start.Add(time.Minute)))
}

func pushDebounces(e *env) {
	rule := core.PushRule{Kind: core.Debounce, Limit: time.Hour}
	e.pushBy(rule, entryAt("a", "p", 1, start.Add(time.Minute)))
	e.clock.Advance(30 * time.Second)
	e.pushBy(rule, entryAt("a", "q", 2, start.Add(2*time.Minute)))
	e.same("after a later push", e.queued("a").State, fresh(start.Add(2*time.Minute)))
	e.pushBy(rule, entryAt("a", "r", 3, start.Add(time.Minute)))
	e.same("after a sooner push", e.queued("a").State, fresh(start.Add(2*time.Minute)))
	e.pushBy(rule, entryAt("a", "s", 4, start.Add(3*time.Hour)))
	e.same("after a push beyond the limit", e.queued("a").State, fresh(start.Add(time.Hour)))
}

func pushDebouncesAMinute(e *env) {
	e.push(entry("a", "p", 1))
	e.pushBy(core.PushRule{Kind: core.Debounce}, entryAt("a", "q", 2, start.Add(time.Hour)))
	e.same("the state", e.queued("a").State, fresh(start.Add(core.DefaultDebounceLimit)))
}

func pushLeavesClaimed(e *env) {
	e.push(entry("a", "p", 1))
	c := e.acquire("n1").one()
	e.clock.Advance(time.Second)
	e.push(entry("a", "p", 9))
	e.same("the claimed job", e.claimed("a"), c)
	want := job("a", fresh(e.now()), pay("p", 9))
	want.FirstPush = e.now()
	e.same("the queued job", e.queued("a"), want)
}

func pushSaysWhatItMet(e *env) {
	met := func(what string, rule core.PushRule, want ports.PushReply, entries ...core.Entry) {
		e.tb.Helper()
		r := e.pushRequest(orders, entries...)
		r.Rule = rule
		e.met(what, r, want)
	}
	keep, earliest := core.PushRule{}, core.PushRule{Kind: core.Earliest}
	met("a new id", keep, ports.PushReply{New: 1}, entry("a", "p", 2))
	met("the same payload", keep, ports.PushReply{Duplicate: 1}, entry("a", "p", 3))
	met("the same payload with a lower score", keep, ports.PushReply{Duplicate: 1}, entry("a", "p", 1))
	met("another payload", keep, ports.PushReply{Merged: 1}, entry("a", "q", 2))
	met("the other payload again", keep, ports.PushReply{Duplicate: 1}, entry("a", "q", 5))
	met("the other payload with a lower score", keep, ports.PushReply{Duplicate: 1}, entry("a", "q", 0))
	met("ids given twice", keep, ports.PushReply{New: 2, Merged: 2, Duplicate: 3},
		entry("b", "p", 1), entry("b", "p", 1), entry("b", "q", 1), entry("b", "q", 0), entry("c", "p", 1), entry("a", "p", 1), entry("a", "r", 1))
	met("ids given twice, by Earliest", earliest, ports.PushReply{New: 1, Merged: 2, Duplicate: 2},
		entry("d", "p", 2), entry("d", "p", 1), entry("d", "q", 1), entry("a", "p", 1), entry("a", "s", 1))
	h := e.acquire("n1")
	h.turn(10)
	met("a claimed id", keep, ports.PushReply{New: 1, Merged: 1, Duplicate: 1}, entry("a", "p", 1), entry("a", "t", 1), entry("a", "p", 0))
	met("nothing", keep, ports.PushReply{})
}

func pushSaysWhatManyMet(e *env) {
	const ids, each = 60, 20
	var entries []core.Entry
	for n := range each {
		for id := range ids {
			entries = append(entries, entry(strconv.Itoa(id), strconv.Itoa(n/2), float64(n)))
		}
	}
	want := ports.PushReply{New: ids, Merged: ids * (each/2 - 1), Duplicate: ids * each / 2}
	e.met("new ids", e.pushRequest(orders, entries...), want)
	e.met("queued ids", e.pushRequest(orders, entries...), ports.PushReply{Duplicate: ids * each})
}

// met pushes, and checks how many entries were new, merged or duplicates. If the store does not
// report that, the case ends and passes. If the push was repeated, the case has no verdict, because
// the repeat meets the entries that the first call has stored.
func (e *env) met(what string, r ports.PushRequest, want ports.PushReply) {
	e.tb.Helper()
	before := e.repeats.All.Load()
	reply, err := e.store.Push(e.ctx, r)
	e.must(err, "Push of "+what)
	want.Now = e.now()
	switch {
	case e.repeats.All.Load() > before:
		e.giveUp()
	case reply == (ports.PushReply{Now: reply.Now}) && len(r.Entries) > 0:
		runtime.Goexit()
	}
	e.same("what "+what+" met", reply, want)
}

func pushRepeats(e *env) {
	r := e.pushRequest(orders, entry("a", "p", 1), entry("b", "q", 2))
	_, err := e.store.Push(e.ctx, r)
	e.must(err, "Push")
	e.unchanged("a repeated Push", func() {
		_, err := e.store.Push(e.ctx, r)
		e.must(err, "Push again")
	})
}
