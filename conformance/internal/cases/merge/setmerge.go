package merge

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleSetMerge  = "SetMerge: the new rule holds for each merge after the call"
	ruleOverBound = "RULES 2: a payload that merges supersedes one payload at most; " +
		"an id with more payloads than the new rule keeps gets no more"
)

func setMergeCases() []env.Case {
	return []env.Case{
		{Name: "can be changed", Rule: "SetMerge changes the merge rule of a queue", Check: setMergeRecord},
		{
			Name:  "can't be changed to one with another Same",
			Rule:  "SetMerge: ErrQueueMismatch for a rule with another Same",
			Check: setMergeMismatch,
		},
		{Name: "can't be changed to an invalid one", Rule: "SetMerge: core.ErrInvalidRule", Check: setMergeInvalid},
		{Name: "decides what pushes leave after a change", Rule: ruleSetMerge, Check: setMergePushes},
		{
			Name:  "keeps what is queued and dead at a change",
			Rule:  "SetMerge itself removes no payload",
			Check: setMergeKeeps,
		},
		{Name: "bounds a put-back after a change", Rule: ruleOverBound, Check: setMergePutBack},
		{Name: "bounds a burial after a change", Rule: ruleOverBound, Check: setMergeBurial},
		{Name: "bounds a revive after a change", Rule: ruleOverBound, Check: setMergeRevive},
		{Name: "bounds large jobs and dead letters after a change", Rule: ruleOverBound, Check: setMergeLarge},
		{
			Name:  "leaves a claimed job whole at a change",
			Rule:  "SetMerge itself removes no payload",
			Check: setMergeClaimed,
		},
		{Name: "counts what an edit drops after a change", Rule: ruleSuperseded, Check: setMergeEdit},
		{
			Name:  "counts what an edit of a large dead letter drops after a change",
			Rule:  ruleSuperseded,
			Check: setMergeEditLarge,
		},
	}
}

// setMerge changes the merge rule of the queue orders.
func setMerge(e *env.Env, rule core.MergeRule) {
	e.TB.Helper()
	e.Must(e.Store.SetMerge(e.Ctx, ports.SetMergeRequest{Queue: env.Orders, Merge: rule}), "SetMerge")
	q := e.Declared[env.Orders]
	q.Merge = rule
	e.Declared[env.Orders] = q
}

// lastOf is latest(n).
func lastOf(n int) core.MergeRule { return core.MergeRule{Stays: core.Highest, Keep: n} }

// numbered returns the payloads p1 to pn, with their numbers as scores.
func numbered(n int) []core.Payload {
	var all []core.Payload
	for i := range n {
		all = append(all, env.Pay(fmt.Sprintf("p%02d", i+1), float64(i+1)))
	}
	return all
}

func setMergeRecord(e *env.Env) {
	e.Declare("other", 2)
	e.Pause(env.Orders)

	for _, rule := range []core.MergeRule{env.Newest, lastOf(core.MaxTurnPayloads), latest, {}, latest} {
		for range 2 {
			setMerge(e, rule)
			queues, err := e.Store.Queues(e.Ctx)
			e.Must(err, "Queues")
			e.Same("the queues", queues, []ports.Queue{
				{Name: env.Orders, Shards: 1, Generation: 1, Merge: rule, Paused: true},
				{Name: "other", Shards: 2, Generation: 1},
			})
			e.Same("the record in Stats", e.Stats(env.Orders).Queue, queues[0])
		}
		e.DeclareWith(ports.DeclareRequest{Queue: env.Orders, Shards: 1, Merge: rule})
	}

	_, err := e.Store.Declare(e.Ctx, ports.DeclareRequest{Queue: env.Orders, Shards: 1})
	e.Refused("Declare with the former rule", err, ports.ErrQueueMismatch)
	e.Resume(env.Orders)
	e.Same("the rule after a resume", e.Stats(env.Orders).Queue.Merge, latest)

	e.DeclareWith(ports.DeclareRequest{Queue: "every", Shards: 1, Merge: every})
	e.Must(e.Store.SetMerge(e.Ctx, ports.SetMergeRequest{Queue: "every", Merge: every.Last(3)}), "SetMerge")
	e.Same("the rule of a queue that counts each push", e.Stats("every").Queue.Merge, every.Last(3))
	e.Refused("SetMerge of a queue that was not declared",
		e.Store.SetMerge(e.Ctx, ports.SetMergeRequest{Queue: "none"}), ports.ErrUnknownQueue)
}

func setMergeMismatch(e *env.Env) {
	e.DeclareWith(ports.DeclareRequest{Queue: "every", Shards: 1, Merge: every})
	for _, r := range []ports.SetMergeRequest{
		{Queue: env.Orders, Merge: every},
		{Queue: env.Orders, Merge: every.Last(2)},
		{Queue: "every"},
		{Queue: "every", Merge: latest},
	} {
		e.Refused(fmt.Sprintf("SetMerge of %s to %v", r.Queue, r.Merge),
			e.Store.SetMerge(e.Ctx, r), ports.ErrQueueMismatch)
	}

	e.Same("the rule of one queue", e.Stats(env.Orders).Queue.Merge, core.MergeRule{})
	e.Same("the rule of the other", e.Stats("every").Queue.Merge, every)

	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2))
	e.Same("the payloads", len(e.Queued("a").Payloads), 2)
}

func setMergeInvalid(e *env.Env) {
	for _, rule := range []core.MergeRule{
		{Keep: 1}, {Stays: 2}, {Stays: core.Highest, Keep: core.MaxTurnPayloads + 1},
	} {
		e.Refused(fmt.Sprintf("SetMerge to %v", rule),
			e.Store.SetMerge(e.Ctx, ports.SetMergeRequest{Queue: env.Orders, Merge: rule}), core.ErrInvalidRule)
	}
	e.Same("the rule", e.Stats(env.Orders).Queue.Merge, core.MergeRule{})
}

func setMergePushes(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2), env.Entry("a", "r", 3), env.Entry("b", "p", 1))

	setMerge(e, env.Newest)
	e.Push(env.Entry("a", "p", 4), env.Entry("b", "p", 0))
	e.Same("by newest", e.Queued("a").Payloads, []core.Payload{env.Pay("q", 2), env.Pay("r", 3), env.Pay("p", 4)})
	e.Same("by newest, a smaller score", e.Queued("b").Payloads, []core.Payload{env.Pay("p", 1)})

	setMerge(e, lastOf(2))
	e.Met("pushes to an id with too many payloads",
		e.PushRequest(env.Orders, env.Entry("a", "s", 5), env.Entry("a", "o", 0),
			env.Entry("a", "s", 6), env.Entry("b", "q", 2), env.Entry("b", "r", 3)),
		ports.PushReply{Merged: 3, Superseded: 1, Duplicate: 1})

	e.Same("by latest(2), an id with three",
		e.Queued("a").Payloads, []core.Payload{env.Pay("r", 3), env.Pay("p", 4), env.Pay("s", 6)})
	e.Same("by latest(2), an id with one", e.Queued("b").Payloads, []core.Payload{env.Pay("q", 2), env.Pay("r", 3)})
	e.CountedOnce("how many are superseded", e.Counts().Superseded, int64(3))

	setMerge(e, core.MergeRule{})
	e.Push(env.Entry("b", "s", 4), env.Entry("b", "r", 1))
	e.Same("by union again", e.Queued("b").Payloads, []core.Payload{env.Pay("r", 1), env.Pay("q", 2), env.Pay("s", 4)})
	e.CountedOnce("how many are superseded", e.Counts().Superseded, int64(3))
}

func setMergeKeeps(e *env.Env) {
	e.Push(env.EntriesOf("a", numbered(5))...)
	e.Push(env.EntriesOf("b", numbered(4))...)
	e.ByIDs(e.Store.Bury, "b")
	setMerge(e, latest)
	e.Same("the queued job", e.Queued("a").Payloads, numbered(5))
	e.Same("the dead letter", e.DeadLetter("b").Payloads, numbered(4))
	h := e.Acquire("n1")
	c := h.One()
	e.Same("the claim", c.Payloads, numbered(5))
	h.Settle(env.Done(c))
	e.Same("how many are superseded", e.Counts().Superseded, int64(0))
}

func setMergeClaimed(e *env.Env) {
	e.Push(env.EntriesOf("a", numbered(5))...)
	h := e.Acquire("n1")
	c := h.Cut(3)
	setMerge(e, lastOf(4))
	e.Push(env.Entry("a", "p06", 6))
	h.Settle(env.Failed(c, "boom", time.Minute))
	e.Same("the payloads", e.Queued("a").Payloads, append(numbered(5)[2:], env.Pay("p06", 6)))
	e.CountedOnce("how many are superseded", e.Counts().Superseded, int64(2))
}

func setMergePutBack(e *env.Env) {
	e.Push(env.EntriesOf("a", numbered(5))...)
	e.Push(env.EntriesOf("b", numbered(5))...)
	h := e.Acquire("n1")
	claims := h.Claim(2)
	setMerge(e, lastOf(2))
	e.Push(env.Entry("b", "newer", 9))
	h.Settle(env.Failed(claims[0], "boom", time.Minute), env.Failed(claims[1], "boom", time.Minute))
	e.Same("an id with no queued job", e.Queued("a").Payloads, numbered(5)[3:])
	e.Same("an id with a queued job", e.Queued("b").Payloads, []core.Payload{env.Pay("p05", 5), env.Pay("newer", 9)})
	e.CountedOnce("how many are superseded", e.Counts().Superseded, int64(7))
}

func setMergeBurial(e *env.Env) {
	for _, id := range []string{"a", "b", "c"} {
		e.Push(env.EntriesOf(id, numbered(5))...)
	}

	h := e.Acquire("n1")
	c := h.Claim(1)[0]
	setMerge(e, lastOf(2))
	h.Settle(env.Buried(c, "no use"))
	h.Release()

	e.ByIDs(e.Store.Bury, "b")
	e.BringIn(env.Letter("d", 1, numbered(3)...))

	e.Same("a burial by a handler", e.DeadLetter("a").Payloads, numbered(5)[3:])
	e.Same("a burial by an operator", e.DeadLetter("b").Payloads, numbered(5)[3:])
	e.Same("an import", e.DeadLetter("d").Payloads, numbered(3)[1:])
	e.CountedOnce("how many are superseded", e.Counts().Superseded, int64(7))
}

func setMergeRevive(e *env.Env) {
	for _, id := range []string{"a", "b", "c"} {
		e.Push(env.EntriesOf(id, numbered(5))...)
	}

	e.ByIDs(e.Store.Bury, "a", "b", "c")
	setMerge(e, lastOf(2))
	e.Push(env.Entry("b", "newer", 9))

	e.ByRefs(e.Store.Revive, env.Whole("a"), env.Whole("b"), ports.DeadLetterRef{
		ID:       "c",
		Payloads: [][]byte{[]byte("p01"), []byte("p02"), []byte("p03")},
	})

	e.Same("an id with no queued job", e.Queued("a").Payloads, numbered(5)[3:])
	e.Same("an id with a queued job", e.Queued("b").Payloads, []core.Payload{env.Pay("p05", 5), env.Pay("newer", 9)})
	e.Same("a part of a dead letter", e.Queued("c").Payloads, numbered(5)[1:3])
	e.Same("its rest", e.DeadLetter("c").Payloads, numbered(5)[3:])
	e.CountedOnce("how many are superseded", e.Counts().Superseded, int64(8))
}

// setMergeLarge has more payloads than a store may keep in one record, and than one step moves.
func setMergeLarge(e *env.Env) {
	all := numbered(core.MaxTurnPayloads + 300)
	n := len(all)
	e.PushList("a", all)
	e.PushList("b", all)

	setMerge(e, lastOf(3))
	newer := env.Pay("newer", float64(n+1))
	e.Push(env.EntriesOf("b", []core.Payload{newer, env.Pay("older", 0)})...)
	e.Same("the payloads after pushes", env.Brief(e.Queued("b").Payloads), env.Brief(append(all[1:n:n], newer)))

	inSteps(e, "a", e.Store.Bury)
	e.Same("the payloads after a burial", e.DeadLetter("a").Payloads, all[n-3:])

	setMerge(e, core.MergeRule{})
	inSteps(e, "b", e.Store.Bury)
	setMerge(e, lastOf(3))
	inSteps(e, "b", func(ctx context.Context, s ports.JobStep) (ports.StepReply, error) {
		return e.Store.Revive(ctx, ports.DeadLetterStep{
			Shard:       s.Shard,
			DeadLetters: []ports.DeadLetterRef{env.Whole(s.IDs[0])},
		})
	})

	e.Same("the payloads after a revive", e.Queued("b").Payloads, append(all[n-2:n:n], newer))
	e.CountedOnce("how many are superseded", e.Counts().Superseded, int64(2+n-3+n-3))
}

// inSteps repeats a step with an id until it has dealt with all payloads.
func inSteps(e *env.Env, id string, do env.JobStep) {
	e.TB.Helper()
	e.StepIDs([]string{id}, func(ids []string) (ports.StepReply, error) {
		return do(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: ids})
	}, func(int, bool) {})
}

func setMergeEdit(e *env.Env) {
	e.Push(env.EntriesOf("a", numbered(4))...)
	e.ByIDs(e.Store.Bury, "a")
	setMerge(e, lastOf(2))
	e.Edit("a", "p03", "new")
	e.Same("the dead letter",
		e.DeadLetter("a").Payloads, []core.Payload{env.Pay("p02", 2), env.Pay("new", 3), env.Pay("p04", 4)})
	e.CountedOnce("how many are superseded", e.Counts().Superseded, int64(1))
}

// setMergeEditLarge edits a dead letter that has more payloads than a store may keep in one record,
// also to the bytes that a payload has. A repeat of that edit drops another payload.
func setMergeEditLarge(e *env.Env) {
	all := numbered(99)
	e.PushList("a", all)
	e.ByIDs(e.Store.Bury, "a")
	setMerge(e, lastOf(2))
	e.Edit("a", "p50", "p50")
	e.Edit("a", "p60", "new")
	all[59].Data = []byte("new")
	e.CountedOnce("the dead letter", env.Brief(e.DeadLetter("a").Payloads), env.Brief(all[2:]))
	e.CountedOnce("how many are superseded", e.Counts().Superseded, int64(2))
}
