package step

import (
	"bytes"
	"slices"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleEditQueued = "Edit with Queued replaces the Data of one payload of a queued job, keeping its Score and Meta; " +
	"the State of the job stays"

func editQueuedCases() []env.Case {
	return []env.Case{
		{Name: "replaces a payload's bytes", Rule: ruleEditQueued, Check: editQueuedReplaces},
		{Name: "keeps the state, whichever payload is first", Rule: ruleEditQueued, Check: editQueuedFirst},
		{
			Name:  "merges with equal bytes by the queue's rule",
			Rule:  "Edit: if the job already has the new bytes, the two payloads merge by the queue's rule",
			Check: editQueuedMerges,
		},
		{
			Name:  "drops what the queue's rule does not keep",
			Rule:  "RULES 2: an id that has more than n payloads has no more after other merges",
			Check: editQueuedBound,
		},
		{
			Name:  "leaves claimed jobs and dead letters alone",
			Rule:  "Edit: a claimed job is not edited",
			Check: editQueuedClaimed,
		},
		{
			Name:  "changes nothing where the payload is not there, and nothing more when it is repeated",
			Rule:  "Edit: a payload that does not exist is not counted; a repeated call changes nothing more",
			Check: editQueuedRepeats,
		},
	}
}

// editQueued edits a payload of a queued job, and returns the number of handled ones.
func editQueued(e *env.Env, id, old, replacement string) int {
	e.TB.Helper()
	reply, err := e.Store.Edit(e.Ctx, ports.EditRequest{
		Shard:  e.Shard,
		ID:     id,
		Queued: true,
		Old:    []byte(old),
		New:    []byte(replacement),
	})
	e.Must(err, "Edit of a queued job")
	e.Same("the reply apart from Handled", reply, ports.StepReply{Handled: reply.Handled, Now: e.Now()})
	return reply.Handled
}

// edited returns payloads with other bytes in a place, in their order.
func edited(payloads []core.Payload, at int, data string) []core.Payload {
	list := slices.Clone(payloads)
	list[at].Data = []byte(data)
	slices.SortFunc(list, core.Payload.Compare)
	return list
}

func editQueuedReplaces(e *env.Env) {
	state := env.Retrying(env.Start.Add(time.Hour), 2)
	for _, n := range []int{1, 3, 8, 20, 300} {
		all := many(n)
		e.BringInJobs(env.Job("a", state, all...), env.Job("b", state, all...))
		e.Clock.Advance(time.Second)

		for _, at := range []int{0, n / 2, n - 1} {
			all = edited(all, at, "new "+string(all[at].Data))
			e.Reported("how many were edited", editQueued(e, "a", string(all[at].Data[len("new "):]), string(all[at].Data)), 1)
			e.Same("the job", e.Queued("a"), env.Job("a", state, all...))
			if n == 1 {
				break
			}
		}
		e.Same("another job", e.Queued("b"), env.Job("b", state, many(n)...))
		e.Same("how many are superseded", e.Counts().Superseded, int64(0))

		e.Reported("how many were edited", editQueued(e, "a", string(all[0].Data), ""), 1)
		all = edited(all, 0, "")
		all[0].Data = nil
		e.Same("the job with an empty payload", e.Queued("a"), env.Job("a", state, all...))

		e.ByIDs(e.Store.Expedite, "a")
		h := e.Acquire("n1")
		c := h.One()
		e.Same("the claimed payloads", c.Payloads, all)
		h.Settle(env.Done(c))
		h.Release()
		e.ByIDs(e.Store.Delete, "b")
	}

	recount := e.Recount(0, func() {})
	e.Same("the counts, one by one", recount.After, recount.Before)
}

func editQueuedFirst(e *env.Env) {
	for _, state := range []core.State{env.Retrying(env.Start.Add(time.Hour), 3), env.HeldState(), env.Fresh(env.Start)} {
		state.Recoveries = 1
		e.BringInJobs(env.Job("a", state, env.Pay("b", 1), env.Pay("c", 1), env.Pay("d", 2)))
		e.Reported("how many were edited", editQueued(e, "a", "c", "a"), 1)
		e.Same("the job", e.Queued("a"), env.Job("a", state, env.Pay("a", 1), env.Pay("b", 1), env.Pay("d", 2)))
		e.ByIDs(e.Store.Delete, "a")
	}
}

// latest is latest(n).
func latest(n int) core.MergeRule { return core.MergeRule{Stays: core.Highest, Keep: n} }

func setMerge(e *env.Env, rule core.MergeRule) {
	e.TB.Helper()
	e.Must(e.Store.SetMerge(e.Ctx, ports.SetMergeRequest{Queue: env.Orders, Merge: rule}), "SetMerge")
}

func editQueuedMerges(e *env.Env) {
	for _, by := range []struct {
		rule core.MergeRule
		want float64
	}{{core.MergeRule{}, 1}, {latest(300), 2}} {
		e.By(by.rule)
		for _, n := range []int{2, 8, 20} {
			all := many(n + 1)[1:]
			for _, old := range []int{0, 1} {
				e.BringInJobs(env.Job("a", env.Fresh(env.Start), all...))
				other := string(all[1-old].Data)
				e.Reported("how many were edited", editQueued(e, "a", string(all[old].Data), other), 1)

				want := slices.Clone(all[1:])
				want[0].Data, want[0].Score = []byte(other), by.want
				want[0].Meta = all[int(by.want)-1].Meta
				e.Same("the job", e.Queued("a"), env.Job("a", env.Fresh(env.Start), want...))
				e.ByIDs(e.Store.Delete, "a")
			}
		}
		e.Same("how many are superseded", e.Counts().Superseded, int64(0))
	}
}

func editQueuedBound(e *env.Env) {
	e.By(latest(300))
	for _, n := range []int{4, 20} {
		e.BringInJobs(env.Job("a", env.Fresh(env.Start), many(n)...))
		before := e.Counts().Superseded
		setMerge(e, latest(3))
		e.Reported("how many were edited", editQueued(e, "a", string(many(n)[n-1].Data), "new"), 1)
		e.Same("the payloads", e.Queued("a").Payloads, edited(many(n), n-1, "new")[1:])
		e.Same("how many are superseded", e.Counts().Superseded-before, int64(1))
		setMerge(e, latest(300))
		e.ByIDs(e.Store.Delete, "a")
	}
}

func editQueuedClaimed(e *env.Env) {
	e.BuryAll("dead")
	letter := e.DeadLetter("dead")
	e.Push(env.Entry("a", "p", 1))
	h := e.Acquire("n1")
	c := h.One()
	e.Unchanged("Edit of a claimed job and of a dead letter", func() {
		e.Reported("how many were edited", editQueued(e, "a", "p", "new"), 0)
		e.Reported("how many were edited", editQueued(e, "dead", string(letter.Payloads[0].Data), "new"), 0)
	})

	e.Push(env.Entry("a", "p", 2))
	e.Reported("how many were edited", editQueued(e, "a", "p", "new"), 1)
	e.Same("the claimed job", e.Claimed("a"), c)
	e.Same("the queued payloads", e.Queued("a").Payloads, []core.Payload{env.Pay("new", 2)})
	h.Settle(env.Done(c))
	e.Same("the next", h.One().Payloads, []core.Payload{env.Pay("new", 2)})
}

func editQueuedRepeats(e *env.Env) {
	e.BringInJobs(env.Job("a", env.Fresh(env.Start), many(20)...))
	e.Unchanged("Edit of what is not there", func() {
		for _, r := range [][2]string{{"a", "never"}, {"never", "0001"}, {"a", ""}, {"\xff", "0001"}} {
			e.Reported("how many were edited", editQueued(e, r[0], r[1], "new"), 0)
		}
	})

	editQueued(e, "a", "0001", "new")
	e.Clock.Advance(time.Second)
	e.Unchanged("a repeated Edit", func() {
		e.Reported("how many were edited", editQueued(e, "a", "0001", "new"), 0)
	})
	if got := e.Queued("a").Payloads; !slices.ContainsFunc(got, func(p core.Payload) bool {
		return bytes.Equal(p.Data, []byte("new"))
	}) {
		e.TB.Errorf("the payloads are %v", got)
	}
}
