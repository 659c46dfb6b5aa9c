package turn

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// largeCases are about jobs and dead letters with many payloads. The rules are the same as for
// small ones.
func largeCases() []env.Case {
	return []env.Case{
		{Name: "keeps the smaller score", Rule: env.RulePayloads, Check: largeKeepsSmaller},
		{Name: "keeps the Meta of the copy that stays", Rule: ruleMeta, Check: largeKeepsMeta},
		{Name: "keeps the Meta of the payload that made it large", Rule: ruleMeta, Check: largeGetsMeta},
		{Name: "removes Meta with its payload", Rule: ruleMeta, Check: largeForgetsMeta},
		{Name: "removes every payload of a deleted job", Rule: "Delete removes queued jobs", Check: largeDeleted},
		{Name: "is put back with all its Meta", Rule: ruleReturn, Check: largeComesBack},
		{Name: "merges a job put back in the turn that claims it again", Rule: ruleReturn, Check: largeMerges},
		{Name: "takes the smaller score of a payload put back", Rule: env.RulePayloads, Check: largeMergesSmaller},
		{Name: "is buried and revived with all its Meta", Rule: env.RuleMorgue, Check: largeBuried},
		{
			Name:  "is edited in the morgue",
			Rule:  "Edit replaces one dead payload, keeping its Score and Meta",
			Check: largeEdited,
		},
		{
			Name:  "revives payloads that are named one by one",
			Rule:  "DeadLetterRef: Payloads are the Data of the payloads",
			Check: largeParts,
		},
		{Name: "is not claimed if its first payload does not fit", Rule: ruleBudget, Check: largeDoesNotFit},
		{
			Name:  "limits the payloads of a turn",
			Rule:  "core.MaxTurnPayloads is the most payloads that one turn claims",
			Check: largeBounds,
		},
	}
}

const ruleMeta = "RULES 1: Meta is not part of a payload's identity; the copy that stays keeps its Meta"

// largePayloads returns payloads with scores from 0, each with a Meta.
func largePayloads() []core.Payload {
	all := make([]core.Payload, env.LargeJob)
	for i := range all {
		all[i] = core.Payload{
			Data:  fmt.Appendf(nil, "%04d", i),
			Score: float64(i),
			Meta:  fmt.Appendf(nil, "meta %d", i),
		}
	}
	return all
}

func largeKeepsSmaller(e *env.Env) {
	want := largePayloads()
	e.PushLarge("a", want...)
	e.PushLarge("a", env.WithScore(want[5], 99, "larger"), env.WithScore(want[6], 6, "equal"))
	e.Same("after larger and equal scores", e.Queued("a").Payloads, want)
	want[7] = env.WithScore(want[7], 6.5, "smaller")
	e.PushLarge("a", want[7])
	e.Same("after a smaller score", e.Queued("a").Payloads, want)
	e.Same("the claimed payloads", e.Acquire("n1").One().Payloads, want)
}

func largeKeepsMeta(e *env.Env) {
	want := largePayloads()
	e.PushLarge("a", want...)
	want[7] = env.WithScore(want[7], 6.5, "")
	e.PushLarge("a", want[7])
	e.Same("after a smaller score without Meta", e.Queued("a").Payloads, want)
}

func largeGetsMeta(e *env.Env) {
	want := largePayloads()
	want[0].Meta = nil
	e.PushLarge("a", want[0])
	e.PushLarge("a", want[1:]...)
	e.Same("the payloads", e.Queued("a").Payloads, want)
}

func largeForgetsMeta(e *env.Env) {
	all := largePayloads()
	e.PushLarge("a", all...)
	h := e.Acquire("n1")
	c := h.Cut(2)
	again := env.WithScore(all[1], 1, "")
	e.PushLarge("a", again)
	e.Same("the rest", e.Queued("a").Payloads, append([]core.Payload{again}, all[2:]...))
	h.Settle(env.Done(c))
}

func largeDeleted(e *env.Env) {
	all := largePayloads()
	e.PushLarge("a", all...)
	e.ByIDs(e.Store.Delete, "a")

	var want []core.Payload
	for i, p := range all[1:] {
		if i > 0 {
			p.Meta = nil
		}
		want = append(want, p)
	}

	e.PushLarge("a", want...)
	e.Same("the payloads pushed after it", e.Queued("a").Payloads, want)
}

func largeComesBack(e *env.Env) {
	want := largePayloads()
	e.PushLarge("a", want...)

	h := e.Acquire("n1")
	c := h.One()
	e.Same("the claimed payloads", c.Payloads, want)

	h.Settle(env.Failed(c, "boom", time.Hour))
	e.Same("the payloads put back", e.Queued("a").Payloads, want)

	e.Clock.Advance(2 * time.Hour)
	c = h.One()
	e.Same("the payloads claimed again", c.Payloads, want)
	h.Settle(env.Done(c))
	e.Same("the queued job", e.Queued("a"), core.Job{})
}

func largeMerges(e *env.Env) {
	want := largePayloads()
	e.PushLarge("a", want...)
	h := e.Acquire("n1")
	r := h.Request(1, env.Untouched(h.Cut(2)))
	r.Number, r.PerJob = h.Number+1, env.LargeJob-2
	c := h.Only(r)
	e.Same("the payloads claimed", c.Payloads, want[:env.LargeJob-2])
	e.Same("the rest", e.Queued("a").Payloads, want[env.LargeJob-2:])
	e.Same("the rest once they are done", h.One(env.Done(c)).Payloads, want[env.LargeJob-2:])
}

func largeMergesSmaller(e *env.Env) {
	want := largePayloads()
	e.PushLarge("a", want...)

	h := e.Acquire("n1")
	c := h.Cut(2)

	lower := env.WithScore(want[2], 1.5, "lower")
	e.PushLarge("a", env.WithScore(want[0], 2.5, "near"), env.WithScore(want[1], 99, "far"), lower)

	r := h.Request(1, env.Untouched(c))
	r.Number, r.PerJob = h.Number+1, 4
	want[2] = lower
	c = h.Only(r)
	e.Same("the payloads claimed", c.Payloads, want[:4])
	e.Same("the rest", e.Queued("a").Payloads, want[4:])

	e.PushLarge("a", env.WithScore(want[0], -1, "lowest"))
	r = h.Request(1, env.Untouched(c))
	r.Number, r.PerJob = h.Number+1, env.LargeJob
	want[0] = env.WithScore(want[0], -1, "lowest")
	e.Same("the payloads claimed again", h.Only(r).Payloads, want)
}

func largeBuried(e *env.Env) {
	want := largePayloads()
	e.PushLarge("a", want[:env.LargeJob-1]...)
	e.ByIDs(e.Store.Bury, "a")
	e.PushLarge("a", env.WithScore(want[3], 99, "larger"), env.WithScore(want[4], 3.5, "smaller"), want[env.LargeJob-1])
	e.ByIDs(e.Store.Bury, "a")
	want[4] = env.WithScore(want[4], 3.5, "smaller")
	e.Same("the dead payloads", e.DeadLetter("a").Payloads, want)
	e.ByRefs(e.Store.Revive, env.Whole("a"))
	e.Same("the revived payloads", e.Queued("a").Payloads, want)
	e.Same("the morgue by id", e.MorguePages(true)(env.WholePage(env.Orders)).IDs, nil)
	e.Same("the morgue by time", e.DeadIDs(), nil)
}

func largeEdited(e *env.Env) {
	want := largePayloads()
	e.PushLarge("a", want...)
	e.ByIDs(e.Store.Bury, "a")
	_, err := e.Store.Edit(e.Ctx, ports.EditRequest{Shard: e.Shard, ID: "a", Old: want[3].Data, New: []byte("new")})
	e.Must(err, "Edit")
	want[3].Data = []byte("new")
	e.Same("the dead payloads", e.DeadLetter("a").Payloads, want)
}

func largeParts(e *env.Env) {
	for _, n := range []int{4, env.LargeJob} {
		id, all := fmt.Sprint(n), largePayloads()[:n]
		e.PushLarge(id, all...)
		e.ByIDs(e.Store.Bury, id)
		e.ByRefs(e.Store.Revive, env.Parts(id, "0000"), env.Parts(id, "0001"))
		e.Same("the revived payloads", e.Queued(id).Payloads, all[:2])
		e.Same("the dead payloads", e.DeadLetter(id).Payloads, all[2:])
	}
}

func largeDoesNotFit(e *env.Env) {
	e.Push(core.Entry{ID: "a", Payload: env.Sized(60, 1), When: core.At(1)},
		core.Entry{ID: "b", Payload: env.Sized(41, 1), When: core.At(2)},
		core.Entry{ID: "b", Payload: env.Sized(42, 2), When: core.At(2)})
	h := e.Acquire("n1")
	e.Same("the claims", env.IDs(bytesTurn(h, 100).Claims), []string{"a"})
	e.Same("what does not fit", len(e.Queued("b").Payloads), 2)
	e.Same("the next turn", env.IDs(bytesTurn(h, 100).Claims), []string{"b"})
}

func largeBounds(e *env.Env) {
	e.PushPayloads(core.MaxTurnPayloads-1, "a")
	e.Push(env.Entry("b", "p", 1), env.Entry("c", "p", 1))
	e.Same("the claims", env.IDs(e.Acquire("n1").Claim(10)), []string{"a", "b"})
}
