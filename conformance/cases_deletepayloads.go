package conformance

import (
	"math"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleDeletePayloads = "JobStep: Payloads limits Delete to the payloads with this Data and this Score"
const ruleDeleteFirst = "JobStep: Payloads: if the job's first payload is removed, the others stay queued in the state core.State.WithoutFirst"

func deletePayloadsCases() []namedCase {
	return []namedCase{
		{"removes the named payloads and no other", ruleDeletePayloads, deletePayloadsNamed},
		{"leaves what was pushed since", ruleDeletePayloads, deletePayloadsSince},
		{"leaves what was pushed since to a queue that keeps the larger score", ruleDeletePayloads, deletePayloadsSinceHigher},
		{"removes a job with its last payload", "Delete: a job that loses its last payload is removed", deletePayloadsLast},
		{"keeps the state of a job that keeps its first payload", "Delete: a job that keeps its first payload keeps its State", deletePayloadsState},
		{"continues with the others once the first payload is gone", ruleDeleteFirst, deletePayloadsFirst},
		{"leaves claimed jobs alone", ruleClaimed, deletePayloadsClaimed},
		{"obeys the conditions of a step", ruleBefore, deletePayloadsConditions},
		{"counts nothing again", "Operator: a repeated call neither does nor counts anything twice", deletePayloadsRepeat},
		{"refuses a bad step", "JobStep.Validate: ErrInvalidRequest", deletePayloadsInvalid},
	}
}

// deletePayloads deletes payloads of one job, and returns the number of handled jobs.
func (e *env) deletePayloads(id string, payloads ...core.Payload) int {
	e.tb.Helper()
	if payloads == nil {
		payloads = []core.Payload{}
	}
	reply, err := e.store.Delete(e.ctx, ports.JobStep{Shard: e.shard, IDs: []string{id}, Payloads: [][]core.Payload{payloads}})
	e.must(err, "Delete of payloads")
	return reply.Handled
}

func deletePayloadsNamed(e *env) {
	for _, n := range []int{3, 8, 20, 300} {
		id, all := "a", many(n)
		e.bringInJobs(job(id, fresh(start), all...), job("b", fresh(start), all...))
		e.unchanged("no payload", func() { e.reported("how many were handled", e.deletePayloads(id), 0) })
		e.unchanged("payloads with other scores, or that are not there", func() {
			e.reported("how many were handled", e.deletePayloads(id, pay("0000", 0.5), pay("0001", 0), pay("none", 1)), 0)
		})
		e.reported("how many were handled", e.deletePayloads(id, all[n-1], all[1], pay("0002", 1)), 1)
		left := slices.Concat(all[:1], all[2:n-1])
		e.same("the payloads that are left", e.queued(id).Payloads, left)
		e.same("those of another", e.queued("b").Payloads, all)
		reply, err := e.store.Delete(e.ctx, ports.JobStep{Shard: e.shard, IDs: []string{"never", "b", id}, Payloads: [][]core.Payload{{pay("p", 1)}, all[:2], all[:1]}})
		e.must(err, "Delete of payloads")
		e.reported("the reply", reply, ports.StepReply{Handled: 2, Reached: 3, Now: e.now()})
		e.same("what is left of b", e.queued("b").Payloads, all[2:])
		e.same("what is left of a", e.queued(id).Payloads, left[1:])
		e.byIDs(e.store.Delete, "a", "b")
	}
	e.push(core.Entry{ID: "c", Payload: core.Payload{Data: []byte{}, Score: 0}}, entry("c", "q", 2))
	e.reported("how many were handled", e.deletePayloads("c", core.Payload{}), 1)
	e.same("what is left of c", e.queued("c").Payloads, []core.Payload{pay("q", 2)})
}

func deletePayloadsSince(e *env) { pushedSince(e, pay("0001", 0.5), pay("new", 1)) }

func deletePayloadsSinceHigher(e *env) {
	e.by(newest)
	pushedSince(e, pay("new", 1), pay("0002", 99))
}

// pushedSince pushes a new payload, and known ones with a smaller and a larger score. Then it
// deletes the payloads that were queued before these pushes. left are the payloads that must stay.
func pushedSince(e *env, left ...core.Payload) {
	e.tb.Helper()
	for _, n := range []int{3, 20} {
		all := many(n)
		e.bringInJobs(job("a", fresh(start), all...))
		e.push(entry("a", "0001", 0.5), entry("a", "0002", 99), entry("a", "new", 1))
		e.reported("how many were handled", e.deletePayloads("a", all...), 1)
		e.same("what is left", e.queued("a").Payloads, left)
		e.byIDs(e.store.Delete, "a")
	}
}

func deletePayloadsLast(e *env) {
	e.forget()
	e.declareWith(ports.DeclareRequest{Queue: orders, Shards: 1, IndexIDs: true})
	before := e.snapshot(orders)
	for _, n := range []int{1, 8, 20} {
		for _, state := range []core.State{fresh(start), retrying(start, 2)} {
			e.bringInJobs(job("a", state, many(n)...))
			e.reported("how many were handled", e.deletePayloads("a", many(n)...), 1)
			e.same("the queue", e.snapshot(orders), before)
		}
	}
	e.bringInJobs(job("a", retrying(start, 2), many(20)...))
	for _, p := range many(20) {
		e.reported("how many were handled", e.deletePayloads("a", p), 1)
	}
	e.same("the queue", e.snapshot(orders), before)
	recount := e.recount(0, func() {})
	e.same("the counts, one by one", recount.After, recount.Before)
}

func deletePayloadsState(e *env) {
	want := retrying(start.Add(-time.Minute), 3)
	want.Recoveries = 1
	for _, n := range []int{3, 20} {
		e.bringInJobs(job("a", want, many(n)...))
		e.deletePayloads("a", many(n)[1:]...)
		e.same("the job", e.queued("a"), job("a", want, many(n)[:1]...))
		h := e.acquire("n1")
		c := h.one()
		e.same("the claimed job", c.Job, job("a", want, many(n)[:1]...))
		h.settle(done(c))
		h.release()
	}
}

func deletePayloadsFirst(e *env) {
	later := start.Add(time.Hour)
	for _, n := range []int{3, 20} {
		for _, state := range []core.State{retrying(later, 3), retrying(start.Add(-time.Minute), 3), heldState(), fresh(later)} {
			state.Recoveries = 1
			e.bringInJobs(job("a", state, many(n)...))
			e.reported("how many were handled", e.deletePayloads("a", append(many(n)[2:3:3], many(n)[0])...), 1)
			left := slices.Concat(many(n)[1:2], many(n)[3:])
			want := job("a", state.WithoutFirst(e.now()), left...)
			e.same("the job", e.queued("a"), want)
			h := e.acquire("n1")
			if !state.Fresh() {
				e.same("the claimed jobs", len(h.claim(1)), 1)
				e.same("the claimed job", e.claimed("a").Job, want)
				h.settle(done(e.claimed("a")))
			}
			h.release()
			e.byIDs(e.store.Delete, "a")
		}
	}
	e.push(entry("c", "p", 1))
	h := e.acquire("n1")
	c := h.one()
	e.bringInJobs(job("c", retrying(later, 3), many(3)...))
	e.deletePayloads("c", many(1)...)
	e.same("the job behind a claimed one", e.queued("c"), job("c", retrying(later, 3).WithoutFirst(e.now()), many(3)[1:]...))
	h.settle(done(c))
	e.same("the next", h.one().ID, "c")
	recount := e.recount(0, func() {})
	e.same("the counts, one by one", recount.After, recount.Before)
}

func deletePayloadsClaimed(e *env) {
	e.pushIDs("a")
	c := e.acquire("n1").one()
	e.unchanged("Delete of payloads of a claimed job", func() { e.reported("how many were handled", e.deletePayloads("a", c.Payloads...), 0) })
	e.push(entryAt("a", "q", 2, start.Add(time.Hour)))
	e.reported("how many were handled", e.deletePayloads("a", append(slices.Clone(c.Payloads), pay("q", 2))...), 1)
	e.same("the claimed job", e.claimed("a"), c)
	e.same("the queued job", e.queued("a"), core.Job{})
}

func deletePayloadsConditions(e *env) {
	e.clock.Advance(time.Second)
	e.bringInJobs(job("old", fresh(start), pay("p", 1)), job("failed", retrying(start, 0), pay("p", 1)))
	young := retrying(start, 0)
	young.FirstPush = start + 1
	e.bringInJobs(job("young", young, pay("p", 1)))
	step := ports.JobStep{Shard: e.shard, IDs: []string{"old", "failed", "young"}, Before: start + 1, Failed: true}
	for range step.IDs {
		step.Payloads = append(step.Payloads, []core.Payload{pay("p", 1)})
	}
	reply, err := e.store.Delete(e.ctx, step)
	e.must(err, "Delete of payloads")
	e.reported("the reply", reply, ports.StepReply{Handled: 1, Reached: 3, Now: e.now()})
	e.same("the queued", e.queuedIDs(), []string{"old", "young"})
}

func deletePayloadsRepeat(e *env) {
	e.bringInJobs(job("a", fresh(start), many(20)...))
	e.reported("how many were handled", e.deletePayloads("a", many(20)[:5]...), 1)
	e.unchanged("a repeated Delete", func() { e.reported("how many it handled again", e.deletePayloads("a", many(20)[:5]...), 0) })
}

func deletePayloadsInvalid(e *env) {
	e.push(entry("a", "p", 1), entry("b", "p", 1))
	one := []core.Payload{pay("p", 1)}
	for name, step := range map[string]ports.JobStep{
		"too few":           {IDs: []string{"a", "b"}, Payloads: [][]core.Payload{one}},
		"too many":          {IDs: []string{"a"}, Payloads: [][]core.Payload{one, one}},
		"an id twice":       {IDs: []string{"a", "a"}, Payloads: [][]core.Payload{one, one}},
		"too many payloads": {IDs: []string{"a", "b"}, Payloads: [][]core.Payload{many(core.MaxTurnPayloads), one}},
		"too many bytes":    {IDs: []string{"a", "b"}, Payloads: [][]core.Payload{{sized(core.MaxStepBytes, 1)}, one}},
	} {
		step.Shard = e.shard
		e.unchanged(name, func() {
			_, err := e.store.Delete(e.ctx, step)
			e.refused("Delete with "+name, err, ports.ErrInvalidRequest)
		})
	}
	for name, p := range map[string]core.Payload{"a score that is NaN": pay("p", math.NaN()), "an infinite score": pay("p", math.Inf(1))} {
		e.unchanged(name, func() {
			_, err := e.store.Delete(e.ctx, ports.JobStep{Shard: e.shard, IDs: []string{"a"}, Payloads: [][]core.Payload{{p}}})
			e.refused("Delete with "+name, err, core.ErrInvalidScore)
		})
	}
	for name, do := range map[string]jobStep{"Expedite": e.store.Expedite, "Bury": e.store.Bury} {
		e.unchanged(name, func() {
			_, err := do(e.ctx, ports.JobStep{Shard: e.shard, IDs: []string{"a"}, Payloads: [][]core.Payload{one}})
			e.refused(name+" of payloads", err, ports.ErrInvalidRequest)
		})
	}
}
