package conformance

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// largeJob is a number of payloads. A store may keep a job with that many payloads in another way
// than a small job.
const largeJob = 20

// largeCases are about jobs and dead letters with many payloads. The rules are the same as for
// small ones.
func largeCases() []namedCase {
	return []namedCase{
		{"keeps the smaller score", rulePayloads, largeKeepsSmaller},
		{"keeps the Meta of the copy that stays", ruleMeta, largeKeepsMeta},
		{"keeps the Meta of the payload that made it large", ruleMeta, largeGetsMeta},
		{"removes Meta with its payload", ruleMeta, largeForgetsMeta},
		{"removes every payload of a deleted job", "Delete removes queued jobs", largeDeleted},
		{"is put back with all its Meta", ruleReturn, largeComesBack},
		{"merges a job put back in the turn that claims it again", ruleReturn, largeMerges},
		{"takes the smaller score of a payload put back", rulePayloads, largeMergesSmaller},
		{"is buried and revived with all its Meta", ruleMorgue, largeBuried},
		{"is edited in the morgue", "Edit replaces one dead payload, keeping its Score and Meta", largeEdited},
		{"revives payloads that are named one by one", "DeadLetterRef: Payloads are the Data of the payloads", largeParts},
		{"is not claimed if its first payload does not fit", ruleBudget, largeDoesNotFit},
		{"limits the payloads of a turn", "core.MaxTurnPayloads is the most payloads that one turn claims", largeBounds},
	}
}

const ruleMeta = "RULES 1: Meta is not part of a payload's identity; the copy that stays keeps its Meta"

// largePayloads returns payloads with scores from 0, each with a Meta.
func largePayloads() []core.Payload {
	all := make([]core.Payload, largeJob)
	for i := range all {
		all[i] = core.Payload{Data: fmt.Appendf(nil, "%04d", i), Score: float64(i), Meta: fmt.Appendf(nil, "meta %d", i)}
	}
	return all
}

// pushLarge pushes payloads for one id, due now.
func pushLarge(e *env, id string, payloads ...core.Payload) {
	e.tb.Helper()
	entries := make([]core.Entry, len(payloads))
	for i, p := range payloads {
		entries[i] = core.Entry{ID: id, Payload: p}
	}
	e.push(entries...)
}

func withScore(p core.Payload, score float64, meta string) core.Payload {
	p.Score, p.Meta = score, []byte(meta)
	return p
}

func largeKeepsSmaller(e *env) {
	want := largePayloads()
	pushLarge(e, "a", want...)
	pushLarge(e, "a", withScore(want[5], 99, "larger"), withScore(want[6], 6, "equal"))
	e.same("after larger and equal scores", e.queued("a").Payloads, want)
	want[7] = withScore(want[7], 6.5, "smaller")
	pushLarge(e, "a", want[7])
	e.same("after a smaller score", e.queued("a").Payloads, want)
	e.same("the claimed payloads", e.acquire("n1").one().Payloads, want)
}

func largeKeepsMeta(e *env) {
	want := largePayloads()
	pushLarge(e, "a", want...)
	want[7] = withScore(want[7], 6.5, "")
	pushLarge(e, "a", want[7])
	e.same("after a smaller score without Meta", e.queued("a").Payloads, want)
}

func largeGetsMeta(e *env) {
	want := largePayloads()
	want[0].Meta = nil
	pushLarge(e, "a", want[0])
	pushLarge(e, "a", want[1:]...)
	e.same("the payloads", e.queued("a").Payloads, want)
}

func largeForgetsMeta(e *env) {
	all := largePayloads()
	pushLarge(e, "a", all...)
	h := e.acquire("n1")
	c := h.cut(2)
	again := withScore(all[1], 1, "")
	pushLarge(e, "a", again)
	e.same("the rest", e.queued("a").Payloads, append([]core.Payload{again}, all[2:]...))
	h.settle(done(c))
}

func largeDeleted(e *env) {
	all := largePayloads()
	pushLarge(e, "a", all...)
	e.byIDs(e.store.Delete, "a")
	var want []core.Payload
	for i, p := range all[1:] {
		if i > 0 {
			p.Meta = nil
		}
		want = append(want, p)
	}
	pushLarge(e, "a", want...)
	e.same("the payloads pushed after it", e.queued("a").Payloads, want)
}

func largeComesBack(e *env) {
	want := largePayloads()
	pushLarge(e, "a", want...)
	h := e.acquire("n1")
	c := h.one()
	e.same("the claimed payloads", c.Payloads, want)
	h.settle(failed(c, "boom", time.Hour))
	e.same("the payloads put back", e.queued("a").Payloads, want)
	e.clock.Advance(2 * time.Hour)
	c = h.one()
	e.same("the payloads claimed again", c.Payloads, want)
	h.settle(done(c))
	e.same("the queued job", e.queued("a"), core.Job{})
}

func largeMerges(e *env) {
	want := largePayloads()
	pushLarge(e, "a", want...)
	h := e.acquire("n1")
	r := h.request(1, untouched(h.cut(2)))
	r.Number, r.PerJob = h.number+1, largeJob-2
	c := h.only(r)
	e.same("the payloads claimed", c.Payloads, want[:largeJob-2])
	e.same("the rest", e.queued("a").Payloads, want[largeJob-2:])
	e.same("the rest once they are done", h.one(done(c)).Payloads, want[largeJob-2:])
}

func largeMergesSmaller(e *env) {
	want := largePayloads()
	pushLarge(e, "a", want...)
	h := e.acquire("n1")
	c := h.cut(2)
	lower := withScore(want[2], 1.5, "lower")
	pushLarge(e, "a", withScore(want[0], 2.5, "near"), withScore(want[1], 99, "far"), lower)
	r := h.request(1, untouched(c))
	r.Number, r.PerJob = h.number+1, 4
	want[2] = lower
	c = h.only(r)
	e.same("the payloads claimed", c.Payloads, want[:4])
	e.same("the rest", e.queued("a").Payloads, want[4:])
	pushLarge(e, "a", withScore(want[0], -1, "lowest"))
	r = h.request(1, untouched(c))
	r.Number, r.PerJob = h.number+1, largeJob
	want[0] = withScore(want[0], -1, "lowest")
	e.same("the payloads claimed again", h.only(r).Payloads, want)
}

func largeBuried(e *env) {
	want := largePayloads()
	pushLarge(e, "a", want[:largeJob-1]...)
	e.byIDs(e.store.Bury, "a")
	pushLarge(e, "a", withScore(want[3], 99, "larger"), withScore(want[4], 3.5, "smaller"), want[largeJob-1])
	e.byIDs(e.store.Bury, "a")
	want[4] = withScore(want[4], 3.5, "smaller")
	e.same("the dead payloads", e.deadLetter("a").Payloads, want)
	e.byRefs(e.store.Revive, whole("a"))
	e.same("the revived payloads", e.queued("a").Payloads, want)
	e.same("the morgue by id", e.morguePages(true)(wholePage(orders)).ids, nil)
	e.same("the morgue by time", e.deadIDs(), nil)
}

func largeEdited(e *env) {
	want := largePayloads()
	pushLarge(e, "a", want...)
	e.byIDs(e.store.Bury, "a")
	_, err := e.store.Edit(e.ctx, ports.EditRequest{Shard: e.shard, ID: "a", Old: want[3].Data, New: []byte("new")})
	e.must(err, "Edit")
	want[3].Data = []byte("new")
	e.same("the dead payloads", e.deadLetter("a").Payloads, want)
}

func largeParts(e *env) {
	for _, n := range []int{4, largeJob} {
		id, all := fmt.Sprint(n), largePayloads()[:n]
		pushLarge(e, id, all...)
		e.byIDs(e.store.Bury, id)
		e.byRefs(e.store.Revive, parts(id, "0000"), parts(id, "0001"))
		e.same("the revived payloads", e.queued(id).Payloads, all[:2])
		e.same("the dead payloads", e.deadLetter(id).Payloads, all[2:])
	}
}

func largeDoesNotFit(e *env) {
	e.push(core.Entry{ID: "a", Payload: sized(60, 1), When: core.At(1)}, core.Entry{ID: "b", Payload: sized(41, 1), When: core.At(2)},
		core.Entry{ID: "b", Payload: sized(42, 2), When: core.At(2)})
	h := e.acquire("n1")
	e.same("the claims", ids(bytesTurn(h, 100).Claims), []string{"a"})
	e.same("what does not fit", len(e.queued("b").Payloads), 2)
	e.same("the next turn", ids(bytesTurn(h, 100).Claims), []string{"b"})
}

func largeBounds(e *env) {
	pushPayloads(e, core.MaxTurnPayloads-1, "a")
	e.push(entry("b", "p", 1), entry("c", "p", 1))
	e.same("the claims", ids(e.acquire("n1").claim(10)), []string{"a", "b"})
}
