package step

import (
	"math"
	"slices"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleDeletePayloads = "JobStep: Payloads limits Delete to the payloads with this Data and this Score"

const ruleDeleteFirst = "JobStep: Payloads: if the job's first payload is removed, " +
	"the others stay queued in the state core.State.WithoutFirst"

func deletePayloadsCases() []env.Case {
	return []env.Case{
		{Name: "removes the named payloads and no other", Rule: ruleDeletePayloads, Check: deletePayloadsNamed},
		{Name: "leaves what was pushed since", Rule: ruleDeletePayloads, Check: deletePayloadsSince},
		{
			Name:  "leaves what was pushed since to a queue that keeps the larger score",
			Rule:  ruleDeletePayloads,
			Check: deletePayloadsSinceHigher,
		},
		{
			Name:  "removes a job with its last payload",
			Rule:  "Delete: a job that loses its last payload is removed",
			Check: deletePayloadsLast,
		},
		{
			Name:  "keeps the state of a job that keeps its first payload",
			Rule:  "Delete: a job that keeps its first payload keeps its State",
			Check: deletePayloadsState,
		},
		{
			Name:  "continues with the others once the first payload is gone",
			Rule:  ruleDeleteFirst,
			Check: deletePayloadsFirst,
		},
		{Name: "leaves claimed jobs alone", Rule: ruleClaimed, Check: deletePayloadsClaimed},
		{Name: "obeys the conditions of a step", Rule: ruleBefore, Check: deletePayloadsConditions},
		{
			Name:  "counts nothing again",
			Rule:  "Operator: a repeated call neither does nor counts anything twice",
			Check: deletePayloadsRepeat,
		},
		{Name: "refuses a bad step", Rule: "JobStep.Validate: ErrInvalidRequest", Check: deletePayloadsInvalid},
	}
}

// deletePayloads deletes payloads of one job, and returns the number of handled jobs.
func deletePayloads(e *env.Env, id string, payloads ...core.Payload) int {
	e.TB.Helper()
	if payloads == nil {
		payloads = []core.Payload{}
	}
	reply, err := e.Store.Delete(e.Ctx, ports.JobStep{
		Shard:    e.Shard,
		IDs:      []string{id},
		Payloads: [][]core.Payload{payloads},
	})
	e.Must(err, "Delete of payloads")
	return reply.Handled
}

func deletePayloadsNamed(e *env.Env) {
	for _, n := range []int{3, 8, 20, 300} {
		id, all := "a", many(n)
		e.BringInJobs(env.Job(id, env.Fresh(env.Start), all...), env.Job("b", env.Fresh(env.Start), all...))

		e.Unchanged("no payload", func() { e.Reported("how many were handled", deletePayloads(e, id), 0) })
		e.Unchanged("payloads with other scores, or that are not there", func() {
			e.Reported("how many were handled",
				deletePayloads(e, id, env.Pay("0000", 0.5), env.Pay("0001", 0), env.Pay("none", 1)), 0)
		})

		e.Reported("how many were handled", deletePayloads(e, id, all[n-1], all[1], env.Pay("0002", 1)), 1)
		left := slices.Concat(all[:1], all[2:n-1])
		e.Same("the payloads that are left", e.Queued(id).Payloads, left)
		e.Same("those of another", e.Queued("b").Payloads, all)

		reply, err := e.Store.Delete(e.Ctx, ports.JobStep{
			Shard:    e.Shard,
			IDs:      []string{"never", "b", id},
			Payloads: [][]core.Payload{{env.Pay("p", 1)}, all[:2], all[:1]},
		})
		e.Must(err, "Delete of payloads")
		e.Reported("the reply", reply, ports.StepReply{Handled: 2, Reached: 3, Now: e.Now()})
		e.Same("what is left of b", e.Queued("b").Payloads, all[2:])
		e.Same("what is left of a", e.Queued(id).Payloads, left[1:])

		e.ByIDs(e.Store.Delete, "a", "b")
	}

	e.Push(core.Entry{ID: "c", Payload: core.Payload{Data: []byte{}, Score: 0}}, env.Entry("c", "q", 2))
	e.Reported("how many were handled", deletePayloads(e, "c", core.Payload{}), 1)
	e.Same("what is left of c", e.Queued("c").Payloads, []core.Payload{env.Pay("q", 2)})
}

func deletePayloadsSince(e *env.Env) { pushedSince(e, env.Pay("0001", 0.5), env.Pay("new", 1)) }

func deletePayloadsSinceHigher(e *env.Env) {
	e.By(env.Newest)
	pushedSince(e, env.Pay("new", 1), env.Pay("0002", 99))
}

// pushedSince pushes a new payload, and known ones with a smaller and a larger score. Then it
// deletes the payloads that were queued before these pushes. left are the payloads that must stay.
func pushedSince(e *env.Env, left ...core.Payload) {
	e.TB.Helper()
	for _, n := range []int{3, 20} {
		all := many(n)
		e.BringInJobs(env.Job("a", env.Fresh(env.Start), all...))
		e.Push(env.Entry("a", "0001", 0.5), env.Entry("a", "0002", 99), env.Entry("a", "new", 1))
		e.Reported("how many were handled", deletePayloads(e, "a", all...), 1)
		e.Same("what is left", e.Queued("a").Payloads, left)
		e.ByIDs(e.Store.Delete, "a")
	}
}

func deletePayloadsLast(e *env.Env) {
	e.Forget()
	e.DeclareWith(ports.DeclareRequest{Queue: env.Orders, Shards: 1, IndexIDs: true})
	before := e.Snapshot(env.Orders)

	for _, n := range []int{1, 8, 20} {
		for _, state := range []core.State{env.Fresh(env.Start), env.Retrying(env.Start, 2)} {
			e.BringInJobs(env.Job("a", state, many(n)...))
			e.Reported("how many were handled", deletePayloads(e, "a", many(n)...), 1)
			e.Same("the queue", e.Snapshot(env.Orders), before)
		}
	}

	e.BringInJobs(env.Job("a", env.Retrying(env.Start, 2), many(20)...))
	for _, p := range many(20) {
		e.Reported("how many were handled", deletePayloads(e, "a", p), 1)
	}
	e.Same("the queue", e.Snapshot(env.Orders), before)

	recount := e.Recount(0, func() {})
	e.Same("the counts, one by one", recount.After, recount.Before)
}

func deletePayloadsState(e *env.Env) {
	want := env.Retrying(env.Start.Add(-time.Minute), 3)
	want.Recoveries = 1
	for _, n := range []int{3, 20} {
		e.BringInJobs(env.Job("a", want, many(n)...))
		deletePayloads(e, "a", many(n)[1:]...)
		e.Same("the job", e.Queued("a"), env.Job("a", want, many(n)[:1]...))
		h := e.Acquire("n1")
		c := h.One()
		e.Same("the claimed job", c.Job, env.Job("a", want, many(n)[:1]...))
		h.Settle(env.Done(c))
		h.Release()
	}
}

func deletePayloadsFirst(e *env.Env) {
	later := env.Start.Add(time.Hour)
	for _, n := range []int{3, 20} {
		for _, state := range []core.State{
			env.Retrying(later, 3), env.Retrying(env.Start.Add(-time.Minute), 3), env.HeldState(), env.Fresh(later),
		} {
			state.Recoveries = 1
			e.BringInJobs(env.Job("a", state, many(n)...))
			e.Reported("how many were handled", deletePayloads(e, "a", append(many(n)[2:3:3], many(n)[0])...), 1)
			left := slices.Concat(many(n)[1:2], many(n)[3:])
			want := env.Job("a", state.WithoutFirst(e.Now()), left...)
			e.Same("the job", e.Queued("a"), want)

			h := e.Acquire("n1")
			if !state.Fresh() {
				e.Same("the claimed jobs", len(h.Claim(1)), 1)
				e.Same("the claimed job", e.Claimed("a").Job, want)
				h.Settle(env.Done(e.Claimed("a")))
			}
			h.Release()

			e.ByIDs(e.Store.Delete, "a")
		}
	}

	e.Push(env.Entry("c", "p", 1))
	h := e.Acquire("n1")
	c := h.One()
	e.BringInJobs(env.Job("c", env.Retrying(later, 3), many(3)...))
	deletePayloads(e, "c", many(1)...)
	e.Same("the job behind a claimed one",
		e.Queued("c"), env.Job("c", env.Retrying(later, 3).WithoutFirst(e.Now()), many(3)[1:]...))

	h.Settle(env.Done(c))
	e.Same("the next", h.One().ID, "c")

	recount := e.Recount(0, func() {})
	e.Same("the counts, one by one", recount.After, recount.Before)
}

func deletePayloadsClaimed(e *env.Env) {
	e.PushIDs("a")
	c := e.Acquire("n1").One()
	e.Unchanged("Delete of payloads of a claimed job", func() {
		e.Reported("how many were handled", deletePayloads(e, "a", c.Payloads...), 0)
	})
	e.Push(env.EntryAt("a", "q", 2, env.Start.Add(time.Hour)))
	e.Reported("how many were handled", deletePayloads(e, "a", append(slices.Clone(c.Payloads), env.Pay("q", 2))...), 1)
	e.Same("the claimed job", e.Claimed("a"), c)
	e.Same("the queued job", e.Queued("a"), core.Job{})
}

func deletePayloadsConditions(e *env.Env) {
	e.Clock.Advance(time.Second)
	e.BringInJobs(env.Job("old", env.Fresh(env.Start), env.Pay("p", 1)),
		env.Job("failed", env.Retrying(env.Start, 0), env.Pay("p", 1)))

	young := env.Retrying(env.Start, 0)
	young.FirstPush = env.Start + 1
	e.BringInJobs(env.Job("young", young, env.Pay("p", 1)))

	step := ports.JobStep{Shard: e.Shard, IDs: []string{"old", "failed", "young"}, Before: env.Start + 1, Failed: true}
	for range step.IDs {
		step.Payloads = append(step.Payloads, []core.Payload{env.Pay("p", 1)})
	}

	reply, err := e.Store.Delete(e.Ctx, step)
	e.Must(err, "Delete of payloads")
	e.Reported("the reply", reply, ports.StepReply{Handled: 1, Reached: 3, Now: e.Now()})
	e.Same("the queued", e.QueuedIDs(), []string{"old", "young"})
}

func deletePayloadsRepeat(e *env.Env) {
	e.BringInJobs(env.Job("a", env.Fresh(env.Start), many(20)...))
	e.Reported("how many were handled", deletePayloads(e, "a", many(20)[:5]...), 1)
	e.Unchanged("a repeated Delete", func() {
		e.Reported("how many it handled again", deletePayloads(e, "a", many(20)[:5]...), 0)
	})
}

func deletePayloadsInvalid(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("b", "p", 1))

	one := []core.Payload{env.Pay("p", 1)}
	for name, step := range map[string]ports.JobStep{
		"too few":           {IDs: []string{"a", "b"}, Payloads: [][]core.Payload{one}},
		"too many":          {IDs: []string{"a"}, Payloads: [][]core.Payload{one, one}},
		"an id twice":       {IDs: []string{"a", "a"}, Payloads: [][]core.Payload{one, one}},
		"too many payloads": {IDs: []string{"a", "b"}, Payloads: [][]core.Payload{many(core.MaxTurnPayloads), one}},
		"too many bytes": {
			IDs:      []string{"a", "b"},
			Payloads: [][]core.Payload{{env.Sized(core.MaxStepBytes, 1)}, one},
		},
	} {
		step.Shard = e.Shard
		e.Unchanged(name, func() {
			_, err := e.Store.Delete(e.Ctx, step)
			e.Refused("Delete with "+name, err, ports.ErrInvalidRequest)
		})
	}

	for name, p := range map[string]core.Payload{
		"a score that is NaN": env.Pay("p", math.NaN()),
		"an infinite score":   env.Pay("p", math.Inf(1)),
	} {
		e.Unchanged(name, func() {
			_, err := e.Store.Delete(e.Ctx, ports.JobStep{
				Shard:    e.Shard,
				IDs:      []string{"a"},
				Payloads: [][]core.Payload{{p}},
			})
			e.Refused("Delete with "+name, err, core.ErrInvalidScore)
		})
	}

	for name, do := range map[string]env.JobStep{"Expedite": e.Store.Expedite, "Bury": e.Store.Bury} {
		e.Unchanged(name, func() {
			_, err := do(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: []string{"a"}, Payloads: [][]core.Payload{one}})
			e.Refused(name+" of payloads", err, ports.ErrInvalidRequest)
		})
	}
}
