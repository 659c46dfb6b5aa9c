package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleSetMerge  = "SetMerge: the new rule holds for each merge after the call"
	ruleOverBound = "RULES 2: a payload that merges supersedes one payload at most; an id with more payloads than the new rule keeps gets no more"
)

func setMergeCases() []namedCase {
	return []namedCase{
		{"can be changed", "SetMerge changes the merge rule of a queue", setMergeRecord},
		{"can't be changed to one with another Same", "SetMerge: ErrQueueMismatch for a rule with another Same", setMergeMismatch},
		{"can't be changed to an invalid one", "SetMerge: core.ErrInvalidRule", setMergeInvalid},
		{"decides what pushes leave after a change", ruleSetMerge, setMergePushes},
		{"keeps what is queued and dead at a change", "SetMerge itself removes no payload", setMergeKeeps},
		{"bounds a put-back after a change", ruleOverBound, setMergePutBack},
		{"bounds a burial after a change", ruleOverBound, setMergeBurial},
		{"bounds a revive after a change", ruleOverBound, setMergeRevive},
		{"bounds large jobs and dead letters after a change", ruleOverBound, setMergeLarge},
		{"leaves a claimed job whole at a change", "SetMerge itself removes no payload", setMergeClaimed},
		{"counts what an edit drops after a change", ruleSuperseded, setMergeEdit},
		{"counts what an edit of a large dead letter drops after a change", ruleSuperseded, setMergeEditLarge},
	}
}

// setMerge changes the merge rule of the queue orders.
func (e *env) setMerge(rule core.MergeRule) {
	e.tb.Helper()
	e.must(e.store.SetMerge(e.ctx, ports.SetMergeRequest{Queue: orders, Merge: rule}), "SetMerge")
	q := e.declared[orders]
	q.Merge = rule
	e.declared[orders] = q
}

// lastOf is latest(n).
func lastOf(n int) core.MergeRule { return core.MergeRule{Stays: core.Highest, Keep: n} }

// numbered returns the payloads p1 to pn, with their numbers as scores.
func numbered(n int) []core.Payload {
	var all []core.Payload
	for i := range n {
		all = append(all, pay(fmt.Sprintf("p%02d", i+1), float64(i+1)))
	}
	return all
}

func setMergeRecord(e *env) {
	e.declare("other", 2)
	e.pause(orders)
	for _, rule := range []core.MergeRule{newest, lastOf(core.MaxTurnPayloads), latest, {}, latest} {
		for range 2 {
			e.setMerge(rule)
			queues, err := e.store.Queues(e.ctx)
			e.must(err, "Queues")
			e.same("the queues", queues, []ports.Queue{
				{Name: orders, Shards: 1, Generation: 1, Merge: rule, Paused: true}, {Name: "other", Shards: 2, Generation: 1},
			})
			e.same("the record in Stats", e.stats(orders).Queue, queues[0])
		}
		e.declareWith(ports.DeclareRequest{Queue: orders, Shards: 1, Merge: rule})
	}
	_, err := e.store.Declare(e.ctx, ports.DeclareRequest{Queue: orders, Shards: 1})
	e.refused("Declare with the former rule", err, ports.ErrQueueMismatch)
	e.resume(orders)
	e.same("the rule after a resume", e.stats(orders).Queue.Merge, latest)

	e.declareWith(ports.DeclareRequest{Queue: "every", Shards: 1, Merge: every})
	e.must(e.store.SetMerge(e.ctx, ports.SetMergeRequest{Queue: "every", Merge: every.Last(3)}), "SetMerge")
	e.same("the rule of a queue that counts each push", e.stats("every").Queue.Merge, every.Last(3))
	e.refused("SetMerge of a queue that was not declared", e.store.SetMerge(e.ctx, ports.SetMergeRequest{Queue: "none"}), ports.ErrUnknownQueue)
}

func setMergeMismatch(e *env) {
	e.declareWith(ports.DeclareRequest{Queue: "every", Shards: 1, Merge: every})
	for _, r := range []ports.SetMergeRequest{{Queue: orders, Merge: every}, {Queue: orders, Merge: every.Last(2)}, {Queue: "every"}, {Queue: "every", Merge: latest}} {
		e.refused(fmt.Sprintf("SetMerge of %s to %v", r.Queue, r.Merge), e.store.SetMerge(e.ctx, r), ports.ErrQueueMismatch)
	}
	e.same("the rule of one queue", e.stats(orders).Queue.Merge, core.MergeRule{})
	e.same("the rule of the other", e.stats("every").Queue.Merge, every)
	e.push(entry("a", "p", 1), entry("a", "q", 2))
	e.same("the payloads", len(e.queued("a").Payloads), 2)
}

func setMergeInvalid(e *env) {
	for _, rule := range []core.MergeRule{{Keep: 1}, {Stays: 2}, {Stays: core.Highest, Keep: core.MaxTurnPayloads + 1}} {
		e.refused(fmt.Sprintf("SetMerge to %v", rule), e.store.SetMerge(e.ctx, ports.SetMergeRequest{Queue: orders, Merge: rule}), core.ErrInvalidRule)
	}
	e.same("the rule", e.stats(orders).Queue.Merge, core.MergeRule{})
}

func setMergePushes(e *env) {
	e.push(entry("a", "p", 1), entry("a", "q", 2), entry("a", "r", 3), entry("b", "p", 1))
	e.setMerge(newest)
	e.push(entry("a", "p", 4), entry("b", "p", 0))
	e.same("by newest", e.queued("a").Payloads, []core.Payload{pay("q", 2), pay("r", 3), pay("p", 4)})
	e.same("by newest, a smaller score", e.queued("b").Payloads, []core.Payload{pay("p", 1)})
	e.setMerge(lastOf(2))
	e.met("pushes to an id with too many payloads", e.pushRequest(orders, entry("a", "s", 5), entry("a", "o", 0), entry("a", "s", 6), entry("b", "q", 2), entry("b", "r", 3)),
		ports.PushReply{Merged: 3, Superseded: 1, Duplicate: 1})
	e.same("by latest(2), an id with three", e.queued("a").Payloads, []core.Payload{pay("r", 3), pay("p", 4), pay("s", 6)})
	e.same("by latest(2), an id with one", e.queued("b").Payloads, []core.Payload{pay("q", 2), pay("r", 3)})
	e.countedOnce("how many are superseded", e.counts().Superseded, int64(3))
	e.setMerge(core.MergeRule{})
	e.push(entry("b", "s", 4), entry("b", "r", 1))
	e.same("by union again", e.queued("b").Payloads, []core.Payload{pay("r", 1), pay("q", 2), pay("s", 4)})
	e.countedOnce("how many are superseded", e.counts().Superseded, int64(3))
}

func setMergeKeeps(e *env) {
	e.push(entriesOf("a", numbered(5))...)
	e.push(entriesOf("b", numbered(4))...)
	e.byIDs(e.store.Bury, "b")
	e.setMerge(latest)
	e.same("the queued job", e.queued("a").Payloads, numbered(5))
	e.same("the dead letter", e.deadLetter("b").Payloads, numbered(4))
	h := e.acquire("n1")
	c := h.one()
	e.same("the claim", c.Payloads, numbered(5))
	h.settle(done(c))
	e.same("how many are superseded", e.counts().Superseded, int64(0))
}

func setMergeClaimed(e *env) {
	e.push(entriesOf("a", numbered(5))...)
	h := e.acquire("n1")
	c := h.cut(3)
	e.setMerge(lastOf(4))
	e.push(entry("a", "p06", 6))
	h.settle(failed(c, "boom", time.Minute))
	e.same("the payloads", e.queued("a").Payloads, append(numbered(5)[2:], pay("p06", 6)))
	e.countedOnce("how many are superseded", e.counts().Superseded, int64(2))
}

func setMergePutBack(e *env) {
	e.push(entriesOf("a", numbered(5))...)
	e.push(entriesOf("b", numbered(5))...)
	h := e.acquire("n1")
	claims := h.claim(2)
	e.setMerge(lastOf(2))
	e.push(entry("b", "newer", 9))
	h.settle(failed(claims[0], "boom", time.Minute), failed(claims[1], "boom", time.Minute))
	e.same("an id with no queued job", e.queued("a").Payloads, numbered(5)[3:])
	e.same("an id with a queued job", e.queued("b").Payloads, []core.Payload{pay("p05", 5), pay("newer", 9)})
	e.countedOnce("how many are superseded", e.counts().Superseded, int64(7))
}

func setMergeBurial(e *env) {
	for _, id := range []string{"a", "b", "c"} {
		e.push(entriesOf(id, numbered(5))...)
	}
	h := e.acquire("n1")
	c := h.claim(1)[0]
	e.setMerge(lastOf(2))
	h.settle(buried(c, "no use"))
	h.release()
	e.byIDs(e.store.Bury, "b")
	e.bringIn(letter("d", 1, numbered(3)...))
	e.same("a burial by a handler", e.deadLetter("a").Payloads, numbered(5)[3:])
	e.same("a burial by an operator", e.deadLetter("b").Payloads, numbered(5)[3:])
	e.same("an import", e.deadLetter("d").Payloads, numbered(3)[1:])
	e.countedOnce("how many are superseded", e.counts().Superseded, int64(7))
}

func setMergeRevive(e *env) {
	for _, id := range []string{"a", "b", "c"} {
		e.push(entriesOf(id, numbered(5))...)
	}
	e.byIDs(e.store.Bury, "a", "b", "c")
	e.setMerge(lastOf(2))
	e.push(entry("b", "newer", 9))
	e.byRefs(e.store.Revive, whole("a"), whole("b"), ports.DeadLetterRef{ID: "c", Payloads: [][]byte{[]byte("p01"), []byte("p02"), []byte("p03")}})
	e.same("an id with no queued job", e.queued("a").Payloads, numbered(5)[3:])
	e.same("an id with a queued job", e.queued("b").Payloads, []core.Payload{pay("p05", 5), pay("newer", 9)})
	e.same("a part of a dead letter", e.queued("c").Payloads, numbered(5)[1:3])
	e.same("its rest", e.deadLetter("c").Payloads, numbered(5)[3:])
	e.countedOnce("how many are superseded", e.counts().Superseded, int64(8))
}

// setMergeLarge has more payloads than a store may keep in one record, and than one step moves.
func setMergeLarge(e *env) {
	all := numbered(core.MaxTurnPayloads + 300)
	n := len(all)
	e.pushList("a", all)
	e.pushList("b", all)
	e.setMerge(lastOf(3))
	newer := pay("newer", float64(n+1))
	e.push(entriesOf("b", []core.Payload{newer, pay("older", 0)})...)
	e.same("the payloads after pushes", brief(e.queued("b").Payloads), brief(append(all[1:n:n], newer)))
	e.inSteps("a", e.store.Bury)
	e.same("the payloads after a burial", e.deadLetter("a").Payloads, all[n-3:])
	e.setMerge(core.MergeRule{})
	e.inSteps("b", e.store.Bury)
	e.setMerge(lastOf(3))
	e.inSteps("b", func(ctx context.Context, s ports.JobStep) (ports.StepReply, error) {
		return e.store.Revive(ctx, ports.DeadLetterStep{Shard: s.Shard, DeadLetters: []ports.DeadLetterRef{whole(s.IDs[0])}})
	})
	e.same("the payloads after a revive", e.queued("b").Payloads, append(all[n-2:n:n], newer))
	e.countedOnce("how many are superseded", e.counts().Superseded, int64(2+n-3+n-3))
}

// inSteps repeats a step with an id until it has dealt with all payloads.
func (e *env) inSteps(id string, do jobStep) {
	e.tb.Helper()
	e.stepIDs([]string{id}, func(ids []string) (ports.StepReply, error) {
		return do(e.ctx, ports.JobStep{Shard: e.shard, IDs: ids})
	}, func(int, bool) {})
}

func setMergeEdit(e *env) {
	e.push(entriesOf("a", numbered(4))...)
	e.byIDs(e.store.Bury, "a")
	e.setMerge(lastOf(2))
	e.edit("a", "p03", "new")
	e.same("the dead letter", e.deadLetter("a").Payloads, []core.Payload{pay("p02", 2), pay("new", 3), pay("p04", 4)})
	e.countedOnce("how many are superseded", e.counts().Superseded, int64(1))
}

// setMergeEditLarge edits a dead letter that has more payloads than a store may keep in one record,
// also to the bytes that a payload has. A repeat of that edit drops another payload.
func setMergeEditLarge(e *env) {
	all := numbered(99)
	e.pushList("a", all)
	e.byIDs(e.store.Bury, "a")
	e.setMerge(lastOf(2))
	e.edit("a", "p50", "p50")
	e.edit("a", "p60", "new")
	all[59].Data = []byte("new")
	e.countedOnce("the dead letter", brief(e.deadLetter("a").Payloads), brief(all[2:]))
	e.countedOnce("how many are superseded", e.counts().Superseded, int64(2))
}
