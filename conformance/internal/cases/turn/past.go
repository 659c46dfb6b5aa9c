package turn

import (
	"bytes"
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
	rulePast     = "RULES 14: a job that ends as done is recorded in the step that settles it"
	rulePastOne  = "RULES 14: an id has one record, that of its last run that was done"
	rulePastNone = "RULES 14: a job that fails, is snoozed, put back or dropped, or of which a payload is buried, " +
		"is not recorded; neither is one whose settlement is skipped or deferred"
	rulePastGoes = "RULES 14: a record goes if the job was done before now - age, if there are too many, " +
		"or if their results have too many bytes: the first by (time, id)"
	rulePastLists = "Past: the records in order of (DoneAt, id), without their results"
)

// pastCases are about the records of what became of ids.
func pastCases() []env.Case {
	return []env.Case{
		{Name: "has a record of a done job", Rule: rulePast, Check: pastRecorded},
		{Name: "has a record of each job of a turn", Rule: rulePast, Check: pastOfMany},
		{Name: "has a record of jobs beside others", Rule: rulePast, Check: pastBeside},
		{Name: "has a record of large, paused and cancelled jobs", Rule: rulePast, Check: pastUnusual},
		{Name: "has any result", Rule: rulePast, Check: pastResults},
		{Name: "is stored within its ranges", Rule: "Turn: records are kept as Past.Stored returns them", Check: pastRanges},
		{Name: "is that of the last run", Rule: rulePastOne, Check: pastReplaced},
		{Name: "is that of the last run after a clock that steps back", Rule: rulePastOne, Check: pastReplacedBack},
		{Name: "is not left by a job that is not done", Rule: rulePastNone, Check: pastNotDone},
		{Name: "is not left by a skipped settlement", Rule: rulePastNone, Check: pastSkipped},
		{
			Name:  "is not left by a deferred settlement",
			Rule:  "Turn: results count in the bounds of a turn; what does not fit is deferred, and records nothing",
			Check: pastDeferred,
		},
		{Name: "is there once when a turn is repeated", Rule: "Turn: a repeat applies nothing", Check: pastRepeated},
		{
			Name:  "is refused if it is invalid",
			Rule:  "ValidateSettlements: a Past needs a settlement that is Plain, and a result has at most MaxResultBytes",
			Check: pastRefused,
		},
		{Name: "is not kept by a turn that keeps none", Rule: "Turn: Keep keeps no record", Check: pastUnkept},
		{Name: "goes by age", Rule: rulePastGoes, Check: pastByAge},
		{Name: "goes by count", Rule: rulePastGoes, Check: pastByCount},
		{Name: "goes by the bytes of results", Rule: rulePastGoes, Check: pastByBytes},
		{Name: "goes in steps", Rule: "RULES 14: a settlement removes at most 500 records", Check: pastInSteps},
		{
			Name:  "goes when no record is kept any more",
			Rule:  "RULES 14: in a queue that keeps none, the records that are left go by the age for which they were kept last",
			Check: pastGoesUnkept,
		},
		{
			Name:  "is not changed by pushes and operators",
			Rule:  "RULES 14: an operator's steps, a push, a revive and an import leave the record of an id as it is",
			Check: pastUnchanged,
		},
		{Name: "is listed by time", Rule: rulePastLists, Check: pastListed},
		{Name: "is listed from a time", Rule: rulePastLists, Check: pastListedFrom},
		{Name: "is forgotten with its queue", Rule: "RULES 14: to forget a queue removes its records", Check: pastForgotten},
	}
}

// keepDay keeps records for a day.
func keepDay() core.KeepPast { return core.KeepPast{Age: 24 * time.Hour} }

// recorded settles a claim as done, with a record.
func recorded(c core.Claim, result string) core.Settlement {
	s := env.Done(c)
	s.Record(&c, core.Run{Started: env.Start - 7, Took: 3 * time.Second, Node: "web-1", Result: []byte(result)})
	return s
}

// record sends a turn that keeps records.
func record(h *env.Holder, keep core.KeepPast, settle ...core.Settlement) ports.TurnReply {
	h.Env.TB.Helper()
	r := h.Request(0, settle...)
	r.Keep = keep
	return h.Send(r)
}

// done pushes, claims and records one job for each id, each in a turn of its own.
func done(h *env.Holder, keep core.KeepPast, ids ...string) {
	h.Env.TB.Helper()
	for _, id := range ids {
		h.Env.Push(env.EntryAt(id, "p", 1, 0))
		record(h, keep, recorded(h.One(), ""))
	}
}

// past returns the records of the queue orders, by time.
func past(e *env.Env) []ports.PastView {
	e.TB.Helper()
	page, err := e.Store.Past(e.Ctx, env.WholePage(env.Orders))
	e.Must(err, "Past")
	e.Same("the cursor of the whole list", page.Next, ports.Cursor{})
	return page.Past
}

// pastIDs returns the ids that have a record, by time.
func pastIDs(e *env.Env) (ids []string) {
	e.TB.Helper()
	for _, p := range past(e) {
		ids = append(ids, p.ID)
	}
	return ids
}

// samePast checks the record of an id, in the list and by Find.
func samePast(e *env.Env, what string, want core.Past) {
	e.TB.Helper()
	found := e.Find(want.ID).Past
	e.Same(what+", found", found, &want)
	if found != nil && math.Signbit(found.Score) != math.Signbit(want.Score) {
		e.Errorf("%s: the score is %v", what, found.Score)
	}

	view := ports.PastView{Past: want, ResultBytes: len(want.Result)}
	view.Result = nil
	listed := slices.DeleteFunc(past(e), func(p ports.PastView) bool { return p.ID != want.ID })
	e.Same(what+", listed", listed, []ports.PastView{view})
}

func pastRecorded(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2.5))
	h := e.Acquire("n1")
	c := h.One()
	e.Same("the record of a claimed job", e.Find("a").Past, (*core.Past)(nil))

	e.Clock.Advance(time.Second)
	s := recorded(c, "42")
	s.Past.ID, s.Past.DoneAt = "b", 5 // which the store sets
	record(h, keepDay(), s)
	samePast(e, "the record", core.Past{
		ID: "a", Started: env.Start - 7, DoneAt: env.Start.Add(time.Second), Took: 3 * time.Second, Score: 2.5,
		Payloads: 2, Attempt: 1, Node: "web-1", Result: []byte("42"),
	})
	e.Same("that of another id", e.Find("b").Past, (*core.Past)(nil))
	e.CountsMatch(env.Orders, 1, 0)
}

// pastOfMany settles jobs with and without results and records in one turn, after a turn that
// claimed them all.
func pastOfMany(e *env.Env) {
	e.PushIDs("a", "b", "c", "d", "e")
	h := e.Acquire("n1")
	claims := h.Claim(5)
	e.PushIDs("f")
	r := h.Request(9, recorded(claims[0], ""), recorded(claims[1], "b"), env.Done(claims[2]), recorded(claims[3], "dd"),
		recorded(claims[4], ""))
	r.Keep = keepDay()
	next := h.Send(r).Claims
	e.Same("the next claims", len(next), 1)

	var results []string
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		if p := e.Find(id).Past; p != nil {
			results = append(results, p.ID+" "+string(p.Result))
		}
	}
	e.Same("the records", results, []string{"a ", "b b", "d dd", "e "})
	e.Same("the list", pastIDs(e), []string{"a", "b", "d", "e"})
	record(h, keepDay(), recorded(next[0], "f"))
	e.CountsMatch(env.Orders, 6, 0)
}

// pastBeside settles jobs with records beside a failed, a snoozed and a buried one, and a job whose id
// was pushed since.
func pastBeside(e *env.Env) {
	e.PushIDs("a", "b", "c", "d", "e")
	h := e.Acquire("n1")
	claims := h.Claim(5)
	e.Push(env.Entry("e", "since", 1))
	reply := record(h, keepDay(),
		env.Failed(claims[0], "boom", time.Minute),
		recorded(claims[1], "b"),
		env.Buried(claims[2], "no use"),
		env.Snoozed(claims[3], time.Minute),
		recorded(claims[4], "e"),
	)
	e.Same("skipped", reply.Skipped, nil)
	e.Same("the list", pastIDs(e), []string{"b", "e"})
	e.Same("the result", string(e.Find("e").Past.Result), "e")
	e.Same("the queued", e.QueuedIDs(), []string{"e", "a", "d"})
	e.CountsMatch(env.Orders, 2, 2)

	record(h, keepDay(), recorded(h.One(), "again"))
	e.Same("the result of the next run", string(e.Find("e").Past.Result), "again")
}

func pastUnusual(e *env.Env) {
	e.PushLarge("large", env.Sized(300<<10, 1), env.Sized(300<<10, 2))
	e.PlaceRecovered(2, "recovered", 5)
	h := e.Acquire("n1")
	alone := h.One()
	record(h, keepDay(), recorded(alone, "alone"))
	e.Same("the first", alone.ID, "recovered")

	large := h.One()
	e.Pause(env.Orders)
	record(h, keepDay(), recorded(large, "large"))
	e.Resume(env.Orders)
	e.Push(env.Entry("cancelled", "p", 1))
	cancelled := h.One()
	_, err := e.Store.Cancel(e.Ctx, ports.CancelRequest{Shard: e.Shard, IDs: []string{"cancelled"}})
	e.Must(err, "Cancel")
	record(h, keepDay(), recorded(cancelled, "cancelled"))

	for _, id := range []string{"recovered", "large", "cancelled"} {
		p := e.Find(id).Past
		if p == nil {
			e.Errorf("%s has no record", id)
			continue
		}
		e.Same("the size of the result of "+id, len(p.Result) > 0, true)
	}
	e.Same("the payloads of the large job", e.Find("large").Past.Payloads, 2)
}

func pastResults(e *env.Env) {
	h := e.Acquire("n1")
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for i, result := range []string{
		"", "0", "\x00", "null", "\\x00", "'\"\\%s$1{}", string(every), strings.Repeat("\xff", core.MaxResultBytes),
		strings.Repeat("r", core.MaxResultBytes), "",
	} {
		e.Push(env.Entry("a", fmt.Sprint("p", i), 1))
		record(h, keepDay(), recorded(h.One(), result))
		p := e.Find("a").Past
		if p == nil || !bytes.Equal(p.Result, []byte(result)) {
			e.Errorf("result %d is not the given one: %v", i, p)
		}
		e.Same("its size", past(e)[0].ResultBytes, len(result))
	}
}

func pastRanges(e *env.Env) {
	h := e.Acquire("n1")
	for i, p := range []core.Past{
		{},
		{Started: -1, Took: -time.Second, Score: math.Copysign(0, -1), Payloads: -1, Attempt: -1, Result: []byte{}},
		{Started: core.MaxInstant + 1, Took: math.MaxInt64, Score: math.MaxFloat64, Payloads: math.MaxInt, Attempt: math.MaxInt},
		{Started: core.MaxInstant, Took: core.Forever, Score: -math.MaxFloat64, Payloads: math.MaxInt32, Attempt: math.MaxInt32},
		{Took: time.Microsecond + 1, Score: math.NaN(), Node: strings.Repeat("é", core.MaxNodeBytes)},
		{Took: 999, Score: math.Inf(1), Node: "a\x00b\xff"},
		{Score: 5e-324, Node: "'\"\\\u2028\U0001F9F6 \x01"},
		{Score: 1<<53 - 1, Started: env.Start},
		{Score: -0.1},
	} {
		id := fmt.Sprint(i)
		e.Push(env.Entry(id, "p", 1))
		c := h.One()
		s := env.Done(c)
		s.Past = &p
		record(h, keepDay(), s)
		samePast(e, "record "+id, p.Stored(id, e.Now()))
	}
}

func pastReplaced(e *env.Env) {
	h := e.Acquire("n1")
	done(h, keepDay(), "a", "b")
	e.Clock.Advance(time.Hour)

	e.Push(env.Entry("a", "p", 1))
	c := h.One(env.Failed(h.One(), "boom", 0))
	record(h, keepDay(), recorded(c, "second"))
	want := core.Past{
		ID: "a", Started: env.Start - 7, DoneAt: env.Start.Add(time.Hour), Took: 3 * time.Second, Score: 1,
		Payloads: 1, Attempt: 2, Node: "web-1", Result: []byte("second"),
	}
	samePast(e, "the second record", want)
	e.Same("the list", pastIDs(e), []string{"b", "a"})

	e.Push(env.Entry("a", "p", -3))
	record(h, keepDay(), recorded(h.One(), ""))
	want.Score, want.Attempt, want.Result = -3, 1, nil
	samePast(e, "the third record", want)
	e.Same("the list at the end", pastIDs(e), []string{"b", "a"})

	// The bytes of the second result are free again.
	keep := core.KeepPast{Age: time.Hour, Bytes: core.MaxResultBytes}
	e.Push(env.Entry("c", "p", 1))
	record(h, keep, recorded(h.One(), strings.Repeat("r", core.MaxResultBytes)))
	e.Same("with a large result", pastIDs(e), []string{"b", "a", "c"})
}

func pastReplacedBack(e *env.Env) {
	e.Clock.Advance(time.Hour)
	h := e.Acquire("n1")
	done(h, keepDay(), "a", "b")
	e.Clock.Advance(-time.Hour)

	e.Push(env.EntryAt("a", "p", 1, 0))
	record(h, keepDay(), recorded(h.One(), "back"))
	e.Same("the list", pastIDs(e), []string{"a", "b"})
	e.Same("the result", string(e.Find("a").Past.Result), "back")
}

func pastNotDone(e *env.Env) {
	h := e.Acquire("n1")
	for name, settle := range map[string]func(core.Claim) core.Settlement{
		"failed":   func(c core.Claim) core.Settlement { return env.Failed(c, "boom", 0) },
		"snoozed":  func(c core.Claim) core.Settlement { return env.Snoozed(c, 0) },
		"put back": env.Untouched,
		"put off":  func(c core.Claim) core.Settlement { return c.PutOff(0, "tenant") },
		"awaiting": func(c core.Claim) core.Settlement { return env.Awaiting(c, 0) },
		"buried":   func(c core.Claim) core.Settlement { return env.Buried(c, "no use") },
		"dropped":  env.Dropped,
	} {
		e.Push(env.Entry("a", "p", 1))
		c := h.One()
		s := settle(c)
		s.Record(&c, core.Run{Result: []byte("result")})
		record(h, keepDay(), s)
		e.Same("the records after a job was "+name, past(e), nil)
		e.Same("the record of a job that was "+name, e.Find("a").Past, (*core.Past)(nil))
	}
}

func pastSkipped(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	wrong, unknown := recorded(claims[0], "wrong"), recorded(claims[1], "unknown")
	wrong.Receipt.Number++
	unknown.ID = "z"
	reply := record(h, keepDay(), wrong, recorded(claims[1], "first"), recorded(claims[1], "second"), unknown)
	e.Reported("skipped", reply.Skipped, []int{0, 2, 3})
	e.Same("the list", pastIDs(e), []string{"b"})
	e.Same("the result", string(e.Find("b").Past.Result), "first")

	reply = record(h, keepDay(), recorded(claims[1], "again"), recorded(claims[0], "a"))
	e.Reported("skipped then", reply.Skipped, []int{0})
	e.Same("the results", []string{string(e.Find("a").Past.Result), string(e.Find("b").Past.Result)}, []string{"a", "first"})
	e.CountsMatch(env.Orders, 2, 0)
}

func pastDeferred(e *env.Env) {
	const jobs = 200 // whose results have 12.5 MiB
	e.PushMany(jobs)
	h := e.Acquire("n1")
	claims := h.Claim(jobs)
	e.Same("the claims", len(claims), jobs)

	result := strings.Repeat("r", core.MaxResultBytes)
	left := env.SettleAll(claims, func(c core.Claim) core.Settlement { return recorded(c, result) })
	left = append(left[:jobs-1], env.Done(claims[jobs-1])) // which always fits
	total := 0
	for turns := 0; len(left) > 0; turns++ {
		reply := record(h, keepDay(), left...)
		e.Reported("whether the turn is a repeat, which does not report deferred settlements", reply.Repeat, false)
		settled := len(left) - len(reply.Deferred)
		if settled == 0 || turns > jobs {
			e.Errorf("a turn settles none of %d jobs", len(left))
			return
		}
		if turns == 0 && slices.Contains(reply.Deferred, jobs-1) {
			e.Errorf("a plain settlement without a result is deferred")
		}
		if settled > core.MaxStepBytes/core.MaxResultBytes+1 {
			e.Errorf("a turn records %d results of %d bytes", settled, core.MaxResultBytes)
		}

		var rest []core.Settlement
		for _, i := range reply.Deferred {
			rest = append(rest, left[i])
			e.Same("the record of a deferred settlement", e.Find(left[i].ID).Past, (*core.Past)(nil))
		}
		total, left = total+settled, rest
	}
	e.Same("settled", total, jobs)
	e.Same("the records", len(past(e)), jobs-1)
	e.CountsMatch(env.Orders, jobs, 0)
}

func pastRepeated(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	r := h.Request(0, recorded(claims[0], "first"))
	r.Keep = keepDay()
	h.Send(r)
	before := *e.Find("a").Past

	e.Clock.Advance(time.Second)
	h.Send(r)
	samePast(e, "after a repeat", before)
	r.Settlements = []core.Settlement{recorded(claims[0], "other"), recorded(claims[1], "other")}
	r.Keep = core.KeepPast{}
	e.Same("the repeat", h.Send(r).Repeat, true)
	samePast(e, "after another request with the number", before)
	e.Same("the list", pastIDs(e), []string{"a"})
}

func pastRefused(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	c := h.One()

	kept := env.Failed(c, "boom", 0)
	kept.Past = &core.Past{}
	long := recorded(c, strings.Repeat("r", core.MaxResultBytes+1))
	for what, s := range map[string]core.Settlement{"a job that fails": kept, "a result that is too long": long} {
		r := h.Request(0, s)
		r.Keep = keepDay()
		h.Refused("Turn with a record of "+what, r, ports.ErrInvalidRequest)
		if settler, ok := e.Store.(ports.Settler); ok {
			err := settler.Settle(e.Ctx, e.Shard, []core.Settlement{s})
			e.Refused("Settle with a record of "+what, err, ports.ErrInvalidRequest)
		}
	}

	for _, keep := range []core.KeepPast{
		{Age: time.Second}, {Count: 5}, {Age: time.Hour, Count: -1}, {Age: time.Hour, Bytes: 5}, {Age: core.MaxKeepAge + 1},
	} {
		r := h.Request(0, env.Done(c))
		r.Keep = keep
		h.Refused(fmt.Sprintf("Turn with the Keep %+v", keep), r, ports.ErrInvalidRequest)
	}
	e.Same("the claim", e.Claimed("a"), c)
	e.Same("the records", past(e), nil)
}

func pastUnkept(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	h.Settle(recorded(h.One(), "a"))
	e.Same("the records", past(e), nil)
	e.Same("the record", e.Find("a").Past, (*core.Past)(nil))
	e.CountsMatch(env.Orders, 1, 0)
}

func pastByAge(e *env.Env) {
	h := e.Acquire("n1")
	keep := core.KeepPast{Age: 2 * time.Minute}
	done(h, keep, "a", "b")
	e.Clock.Advance(time.Second)
	done(h, keep, "c")

	e.Clock.Advance(119 * time.Second)
	done(h, keep, "d")
	e.Same("after two minutes", pastIDs(e), []string{"a", "b", "c", "d"})
	e.Clock.Advance(time.Microsecond)
	done(h, keep, "e")
	e.Same("a microsecond later", pastIDs(e), []string{"c", "d", "e"})
	e.Same("a removed record", e.Find("a").Past, (*core.Past)(nil))

	e.Clock.Advance(time.Hour)
	done(h, keep, "a")
	e.Same("an hour later", pastIDs(e), []string{"a"})

	// A turn that settles a job without a record removes records too.
	e.Clock.Advance(time.Hour)
	e.PushIDs("b")
	record(h, keep, env.Failed(h.One(), "boom", time.Hour))
	e.Same("after a failure", pastIDs(e), nil)
}

func pastByCount(e *env.Env) {
	h := e.Acquire("n1")
	keep := core.KeepPast{Age: time.Hour, Count: 3}
	done(h, keep, "d", "b", "c")
	e.Same("as many as are kept", pastIDs(e), []string{"b", "c", "d"})

	e.Clock.Advance(time.Second)
	done(h, keep, "e")
	e.Same("the first by id of those of one time is gone", pastIDs(e), []string{"c", "d", "e"})
	done(h, keep, "c")
	e.Same("an id that is done again takes no more room", pastIDs(e), []string{"d", "c", "e"})

	e.PushIDs("f", "g", "h", "i")
	claims := h.Claim(4)
	record(h, keep, env.SettleAll(claims, func(c core.Claim) core.Settlement { return recorded(c, c.ID) })...)
	e.Same("after many in a turn", pastIDs(e), []string{"g", "h", "i"})
	e.Same("the result of the last", string(e.Find("i").Past.Result), "i")
	e.Same("that of one that is gone at once", e.Find("f").Past, (*core.Past)(nil))

	keep.Count = 1
	done(h, keep, "j")
	e.Same("of fewer", pastIDs(e), []string{"j"})
	keep.Count = 0
	done(h, keep, "k", "l", "m", "n")
	e.Same("without a limit", len(past(e)), 5)
}

func pastByBytes(e *env.Env) {
	h := e.Acquire("n1")
	keep := core.KeepPast{Age: time.Hour, Bytes: core.MaxResultBytes}
	large := strings.Repeat("r", core.MaxResultBytes/2)
	one := func(id, result string) {
		e.Push(env.EntryAt(id, "p", 1, 0))
		record(h, keep, recorded(h.One(), result))
		e.Clock.Advance(time.Second)
	}
	one("a", "")
	one("b", large)
	one("c", "")
	one("d", large)
	e.Same("within the bytes", pastIDs(e), []string{"a", "b", "c", "d"})
	one("e", "")
	e.Same("one without a result", pastIDs(e), []string{"a", "b", "c", "d", "e"})
	one("f", "x")
	e.Same("a byte more", pastIDs(e), []string{"c", "d", "e", "f"})
	one("d", "")
	one("g", strings.Repeat("r", core.MaxResultBytes-1))
	e.Same("an id that is done again without a result", pastIDs(e), []string{"c", "e", "f", "d", "g"})
	one("h", strings.Repeat("r", core.MaxResultBytes))
	e.Same("the largest result", pastIDs(e), []string{"h"})
	e.Same("its result", len(e.Find("h").Past.Result), core.MaxResultBytes)
}

func pastInSteps(e *env.Env) {
	const jobs = 700
	e.PushMany(jobs + 3)
	h := e.Acquire("n1")
	var claims []core.Claim
	for len(claims) < jobs {
		r := h.Request(min(core.MaxTurnJobs, jobs-len(claims)),
			env.SettleAll(claims[max(0, len(claims)-core.MaxTurnJobs):], func(c core.Claim) core.Settlement {
				return recorded(c, "r")
			})...)
		r.Keep = keepDay()
		claims = append(claims, h.Send(r).Claims...)
	}
	var last []core.Settlement
	for _, c := range claims {
		if e.Find(c.ID).Claim != nil {
			last = append(last, recorded(c, "r"))
		}
	}
	record(h, keepDay(), last...)
	e.Same("the records", len(past(e)), jobs)

	keep := core.KeepPast{Age: time.Hour, Count: 10}
	record(h, keep, recorded(h.One(), ""))
	e.Same("after a turn", len(past(e)), jobs+1-core.MaxPastRemoved)
	record(h, keep, recorded(h.One(), ""))
	e.Same("after a second turn", len(past(e)), 10)
	e.Same("the processed", e.Counts().Processed, int64(jobs+2))
}

// pastGoesUnkept settles jobs by turns that keep none, with renewals in between.
func pastGoesUnkept(e *env.Env) {
	h := e.Acquire("n1")
	e.PushMany(600)
	for range 3 {
		claims := h.Claim(200)
		record(h, keepDay(), env.SettleAll(claims, func(c core.Claim) core.Settlement { return recorded(c, "r") })...)
	}
	e.Clock.Advance(23 * time.Hour)
	e.Push(env.EntryAt("last", "p", 1, 0))
	h.Settle(env.Done(h.One()))
	e.Same("the records", len(past(e)), 600)

	e.Clock.Advance(time.Hour)
	for i := 0; len(past(e)) > 0; i++ {
		if i == 20 {
			e.Errorf("after %d turns that keep none there are records", i)
			return
		}
		e.Clock.Advance(env.TTL / 2)
		e.Push(env.EntryAt("last", "p", 1, 0))
		h.Settle(env.Done(h.One()))
	}
	done(h, core.KeepPast{Age: time.Hour, Count: 2}, "a", "b", "c")
	e.Same("kept again", pastIDs(e), []string{"b", "c"})
}

func pastUnchanged(e *env.Env) {
	h := e.Acquire("n1")
	e.Push(env.Entry("a", "p", 1))
	record(h, keepDay(), recorded(h.One(), "42"))
	want := *e.Find("a").Past

	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2), env.Entry("a", "r", 3))
	samePast(e, "after a push", want)
	e.ByIDs(e.Store.Expedite, "a")
	e.Firsts(e.Store.Bury, "a", "p")
	e.ByIDs(e.Store.Bury, "a")
	samePast(e, "after a burial", want)
	_, err := e.Store.Revive(e.Ctx, ports.DeadLetterStep{Shard: e.Shard, Before: e.Now() + 1})
	e.Must(err, "Revive")
	samePast(e, "after a revive", want)
	e.ByIDs(e.Store.Delete, "a")
	samePast(e, "after a deletion", want)

	_, err = e.Store.Recount(e.Ctx, ports.RecountRequest{Shard: e.Shard})
	e.Must(err, "Recount")
	samePast(e, "after a recount", want)
	e.Push(env.Entry("a", "s", 1))
	record(h, keepDay(), env.Recovered(h.One()))
	samePast(e, "after a recovery", want)
}

// pastPages is the pager of the records.
func pastPages(e *env.Env) env.Pager {
	return func(r ports.PageRequest) env.Listed {
		page, err := e.Store.Past(e.Ctx, r)
		e.Must(err, "Past")
		l := env.Listed{Next: page.Next}
		for _, p := range page.Past {
			l.IDs = append(l.IDs, p.ID)
		}
		return l
	}
}

// wideDone records jobs of the three shards of the queue wide: two at each of four times. It returns
// their ids in order.
func wideDone(e *env.Env) (ids []string) {
	e.Declare("wide", 3)
	for i := range 8 {
		ids = append(ids, fmt.Sprint("id ", i))
	}
	holders := map[int]*env.Holder{}
	for i, id := range ids {
		if i%2 == 0 {
			e.Clock.Advance(time.Second)
		}
		s := core.Shard{Queue: "wide", Index: core.ShardOf(id, 3)}
		if holders[s.Index] == nil {
			holders[s.Index] = e.AcquireAt(s, "n1")
		}
		e.PushTo("wide", env.EntryAt(id, "p", 1, 0))
		h := holders[s.Index]
		record(h, keepDay(), recorded(h.One(), strings.Repeat("r", i)))
	}
	return ids
}

func pastListed(e *env.Env) {
	e.Lists("no records", env.Orders, pastPages(e), nil)
	ids := wideDone(e)
	e.Lists("the records", "wide", pastPages(e), ids)

	page, err := e.Store.Past(e.Ctx, ports.PageRequest{Queue: "wide", Descending: true, Payloads: 9, MaxCount: 9, ErrorBytes: 9})
	e.Must(err, "Past")
	for i, p := range page.Past {
		e.Same("the size of a result", p.ResultBytes, len(ids)-1-i)
		e.Same("the result", p.Result, nil)
	}

	for index := range 3 {
		var want []string
		for _, id := range ids {
			if core.ShardOf(id, 3) == index {
				want = append(want, id)
			}
		}
		r := ports.PageRequest{Queue: "wide", Shards: []int{index}, Limit: 2}
		e.Same(fmt.Sprintf("the records of shard %d", index), env.AllPages(r, pastPages(e), len(want)), want)
	}
	_, err = e.Store.Past(e.Ctx, ports.PageRequest{Queue: "wide", Shards: []int{3}})
	e.Refused("Past of a shard that the queue does not have", err, ports.ErrInvalidRequest)
	_, err = e.Store.Past(e.Ctx, ports.PageRequest{Queue: "wide", Prefix: "id"})
	e.Refused("Past with a prefix", err, ports.ErrInvalidRequest)
}

func pastListedFrom(e *env.Env) {
	ids := wideDone(e)
	at := func(seconds int) *ports.Cursor {
		return &ports.Cursor{Key: int64(env.Start.Add(time.Duration(seconds) * time.Second)), ID: "zz"}
	}
	for _, limit := range []int{1, 3, 100} {
		r := ports.PageRequest{Queue: "wide", From: at(3), Limit: limit}
		e.Same("from a time", env.AllPages(r, pastPages(e), 8), ids[4:])
		r.Descending = true
		want := slices.Clone(ids[:6])
		slices.Reverse(want)
		e.Same("back from a time", env.AllPages(r, pastPages(e), 8), want)
		r.From = at(-1)
		e.Same("back from a time before all", env.AllPages(r, pastPages(e), 8), nil)
	}
}

func pastForgotten(e *env.Env) {
	h := e.Acquire("n1")
	e.Push(env.Entry("a", "p", 1))
	record(h, keepDay(), recorded(h.One(), "42"))
	h.Release()
	e.Forget()

	e.Declare(env.Orders, 1)
	e.Same("the records of the new queue", past(e), nil)
	e.Same("the record of the id", e.Find("a").Past, (*core.Past)(nil))
	h = e.Acquire("n1")
	done(h, core.KeepPast{Age: time.Hour, Count: 1}, "b")
	e.Same("the new records", pastIDs(e), []string{"b"})
}
