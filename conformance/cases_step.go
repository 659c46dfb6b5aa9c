package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleBefore  = "JobStep: Before limits the step to jobs whose FirstPush is before it"
	ruleClaimed = "Operator: only Cancel touches claimed jobs"
)

func stepCases() []namedCase {
	return []namedCase{
		{"expedite makes later jobs due", "Expedite: PerformAt = min(PerformAt, now)", expediteMakesDue},
		{"bury moves jobs whole and keeps their error", "Bury moves queued jobs with all their payloads to the morgue; they keep their error, or get core.BuriedByHand if it is empty", buryMoves},
		{"bury merges into the morgue", ruleMorgue, buryMerges},
		{"delete removes jobs", "Delete removes queued jobs", deleteRemoves},
		{"leaves claimed jobs alone", ruleClaimed, stepLeavesClaimed},
		{"handles the queued job of a claimed id", ruleClaimed, stepQueuedOfClaimed},
		{"ignores ids of other shards", "JobStep: ids of other shards are ignored", stepOtherShards},
		{"ignores ids that no job can have", "JobStep: ids that no job can have are ignored", stepImpossibleIDs},
		{"handles nothing without ids", "JobStep: an empty IDs means no job", stepNoIDs},
		{"handles 250 ids", "JobStep: IDs are at most MaxStep", stepMost},
		{"skips jobs pushed at its Before or later", ruleBefore, stepBefore},
		{"skips jobs that were done and pushed again", ruleBefore, stepPushedAnew},
		{"takes a job pushed before, with payloads merged later", "JobStep: Before limits the step by FirstPush, the time of the oldest push", stepMergedLater},
		{"can be limited to jobs with a failure", "JobStep: Failed limits the step to jobs with a failure", stepFailed},
		{"counts nothing again", "Operator: a repeated call neither does nor counts anything twice", stepRepeats},
		{"refuses a bad step", "JobStep.Validate, DeadLetterStep.Validate, EditRequest.Validate: ErrInvalidRequest", stepInvalid},
	}
}

func expediteMakesDue(e *env) {
	failAll(e, "failed")
	e.push(entryAt("later", "p", 1, start.Add(time.Hour)), entryAt("old", "p", 1, 12345), entryAt("other", "p", 1, start.Add(time.Hour)))
	before := e.queued("failed")
	reply := e.byIDs(e.store.Expedite, "later", "failed", "old", "never")
	e.reported("the reply", reply, ports.StepReply{Handled: 2, Reached: 4, Now: start})
	e.same("a later job", e.queued("later").State, fresh(start))
	before.PerformAt = start
	e.same("a failed job", e.queued("failed"), before)
	e.same("a due job", e.queued("old").State, fresh(12345))
	e.same("another job", e.queued("other").State, fresh(start.Add(time.Hour)))
	e.same("the oldest", e.head(), due(12345))
}

func buryMoves(e *env) {
	failAll(e, "failed")
	e.push(entry("failed", "q", 0), entry("fresh", "p", 1), entry("fresh", "q", 2), entry("other", "p", 1))
	e.clock.Advance(time.Second)
	e.reported("the reply", e.byIDs(e.store.Bury, "fresh", "failed", "never"), ports.StepReply{Handled: 2, Reached: 3, Now: e.now()})
	e.same("a failed job", e.deadLetter("failed"), core.DeadLetter{
		ID: "failed", ChangedAt: e.now(), Error: "boom", Group: core.BuriedByHand, Payloads: []core.Payload{pay("q", 0), pay("p", 1)},
	})
	e.same("a fresh job", e.deadLetter("fresh"), core.DeadLetter{
		ID: "fresh", ChangedAt: e.now(), Error: core.BuriedByHand, Group: core.BuriedByHand, Payloads: []core.Payload{pay("p", 1), pay("q", 2)},
	})
	e.same("the queued jobs", e.queuedIDs(), []string{"other"})
}

func buryMerges(e *env) {
	h, c := claimedJob(e)
	h.settle(buried(c, "first"))
	e.push(entry("a", "p3", 1), entry("a", "p4", 4))
	e.clock.Advance(time.Second)
	e.byIDs(e.store.Bury, "a")
	e.same("the dead letter", e.deadLetter("a"), core.DeadLetter{
		ID: "a", ChangedAt: e.now(), Error: core.BuriedByHand, Group: core.BuriedByHand,
		Payloads: []core.Payload{pay("p1", 1), pay("p3", 1), pay("p2", 2), pay("p4", 4)},
	})
}

func deleteRemoves(e *env) {
	failAll(e, "failed")
	e.pushIDs("a", "b")
	e.reported("the reply", e.byIDs(e.store.Delete, "b", "failed", "never"), ports.StepReply{Handled: 2, Reached: 3, Now: start})
	e.same("the queued jobs", e.queuedIDs(), []string{"a"})
	e.same("the dead", e.deadIDs(), nil)
	counts := e.counts()
	e.same("fresh and retries", [2]int64{counts.Fresh, counts.Retrying}, [2]int64{1, 0})
}

func stepLeavesClaimed(e *env) {
	e.pushIDs("a")
	e.acquire("n1").one()
	for name, do := range e.jobSteps() {
		e.unchanged(name, func() {
			e.reported("how many "+name+" handled", e.byIDs(do, "a").Handled, 0)
		})
	}
}

func stepQueuedOfClaimed(e *env) {
	e.pushIDs("a")
	c := e.acquire("n1").one()
	for name, do := range e.jobSteps() {
		e.push(entryAt("a", "q", 2, start.Add(time.Hour)))
		e.reported("how many "+name+" handled", e.byIDs(do, "a").Handled, 1)
		e.same("the claimed job after "+name, e.claimed("a"), c)
		e.byIDs(e.store.Delete, "a")
	}
}

func stepOtherShards(e *env) {
	e.declare("wide", 2)
	s := core.Shards("wide", 2)
	mine, other := idsOf(s[0], 2, 1)[0], idsOf(s[1], 2, 1)[0]
	for name, do := range e.jobSteps() {
		for _, id := range []string{mine, other} {
			e.pushTo("wide", entryAt(id, "p", 1, start.Add(time.Hour)))
		}
		want := e.findIn("wide", other)
		reply, err := do(e.ctx, ports.JobStep{Shard: s[0], IDs: []string{mine, other}})
		e.must(err, name)
		e.reported("how many "+name+" handled", reply.Handled, 1)
		e.same("the other shard's job", e.findIn("wide", other), want)
	}
}

// impossibleIDs returns ids that no push stores: empty, not UTF-8, with a control character, too
// long.
func impossibleIDs() []string {
	return []string{"", "\xff", "a\x00b", strings.Repeat("x", core.MaxIDBytes+1)}
}

func stepImpossibleIDs(e *env) {
	for name, do := range e.jobSteps() {
		e.push(entryAt("a", "p", 1, start.Add(time.Hour)))
		reply, err := do(e.ctx, ports.JobStep{Shard: e.shard, IDs: append(impossibleIDs(), "a")})
		e.must(err, name)
		e.reported("how many "+name+" handled", reply.Handled, 1)
	}
	e.push(entry("b", "p", 1))
	buried, err := e.store.Bury(e.ctx, ports.JobStep{Shard: e.shard, IDs: []string{"b"}})
	e.must(err, "Bury")
	e.reported("how many were buried", buried.Handled, 1)
	for _, id := range impossibleIDs() {
		for name, do := range e.deadLetterSteps() {
			reply, err := do(e.ctx, ports.DeadLetterStep{Shard: e.shard, DeadLetters: []ports.DeadLetterRef{whole(id), {ID: id, Payloads: [][]byte{[]byte("p")}}}})
			e.must(err, name)
			e.reported("how many "+name+" handled", reply.Handled, 0)
		}
		reply, err := e.store.Edit(e.ctx, ports.EditRequest{Shard: e.shard, ID: id, Old: []byte("p"), New: []byte("q")})
		e.must(err, "Edit")
		e.reported("how many Edit changed", reply.Handled, 0)
	}
	reply, err := e.store.Cancel(e.ctx, ports.CancelRequest{Shard: e.shard, IDs: impossibleIDs()})
	e.must(err, "Cancel")
	e.reported("how many Cancel cancelled", reply.Handled, 0)
}

func stepNoIDs(e *env) {
	failAll(e, "a")
	e.push(entryAt("b", "p", 1, start.Add(time.Hour)))
	for name, do := range e.jobSteps() {
		e.unchanged(name, func() {
			for _, ids := range [][]string{nil, {}} {
				reply, err := do(e.ctx, ports.JobStep{Shard: e.shard, IDs: ids})
				e.must(err, name)
				e.reported("what "+name+" did", reply, ports.StepReply{Now: start})
			}
		})
	}
}

func stepMost(e *env) {
	entries, ids := make([]core.Entry, ports.MaxStep+2), make([]string, ports.MaxStep+2)
	for i := range entries {
		ids[i] = fmt.Sprint(i)
		entries[i] = entryAt(ids[i], "p", 1, start.Add(time.Hour))
	}
	for name, do := range e.jobSteps() {
		e.push(entries...)
		most := ports.StepReply{Handled: ports.MaxStep, Reached: ports.MaxStep, Now: start}
		e.reported("a step of "+name, e.byIDs(do, ids[:ports.MaxStep]...), most)
		e.byIDs(e.store.Delete, ids[ports.MaxStep:]...)
	}
}

// before handles the named jobs that were first pushed before an instant.
func (e *env) before(do jobStep, before core.Instant, ids ...string) ports.StepReply {
	e.tb.Helper()
	reply, err := do(e.ctx, ports.JobStep{Shard: e.shard, IDs: ids, Before: before})
	e.must(err, "a step by ids and Before")
	return reply
}

// stepBefore pushes two jobs, a second apart. A step with Before handles no job, or only the first
// one.
func stepBefore(e *env) {
	for name, do := range e.jobSteps() {
		later, pushed := e.now().Add(time.Hour), e.now()
		e.push(entryAt("a", "p", 1, later))
		e.clock.Advance(time.Second)
		e.push(entryAt("b", "p", 1, later))
		e.unchanged(name, func() {
			e.reported("the step", e.before(do, pushed, "b", "a"), ports.StepReply{Reached: 2, Now: e.now()})
		})
		b := e.queued("b")
		e.reported("the step after a", e.before(do, pushed+1, "b", "a"), ports.StepReply{Handled: 1, Reached: 2, Now: e.now()})
		e.same("b after "+name, e.queued("b"), b)
		e.reported("the step after b", e.before(do, e.now()+1, "b").Handled, 1)
		e.byIDs(e.store.Delete, "a", "b")
	}
}

// stepPushedAnew selects a failed job. Before the step the job is done, and its id is pushed again.
func stepPushedAnew(e *env) {
	for name, do := range e.jobSteps() {
		failAll(e, "a")
		chosen := e.now() + 1
		e.clock.Advance(time.Minute)
		h := e.acquire("n1")
		h.settle(done(h.one()))
		h.release()
		e.push(entryAt("a", "q", 2, e.now().Add(time.Hour)))
		e.unchanged(name, func() { e.reported("how many "+name+" handled", e.before(do, chosen, "a").Handled, 0) })
		e.byIDs(e.store.Delete, "a")
	}
}

func stepMergedLater(e *env) {
	for name, do := range e.jobSteps() {
		later := e.now().Add(time.Hour)
		e.push(entryAt("a", "p", 1, later))
		e.clock.Advance(time.Second)
		e.push(entryAt("a", "q", 2, later))
		e.reported("how many "+name+" handled", e.before(do, e.now(), "a").Handled, 1)
		e.byIDs(e.store.Delete, "a")
	}
}

func stepFailed(e *env) {
	for name, do := range e.jobSteps() {
		failAll(e, "failed")
		e.push(entryAt("fresh", "p", 1, e.now().Add(time.Hour)))
		want := e.queued("fresh")
		reply, err := do(e.ctx, ports.JobStep{Shard: e.shard, IDs: []string{"fresh", "failed", "none"}, Failed: true})
		e.must(err, name)
		e.reported("the reply of "+name, reply, ports.StepReply{Handled: 1, Reached: 3, Now: e.now()})
		e.same("the fresh job after "+name, e.queued("fresh"), want)
		e.byIDs(e.store.Delete, "fresh", "failed")
	}
}

func stepRepeats(e *env) {
	for name, do := range e.jobSteps() {
		failAll(e, name)
		e.reported("how many "+name+" handled", e.byIDs(do, name).Handled, 1)
		e.unchanged(name+" repeated", func() {
			e.reported("how many it handled again", e.byIDs(do, name).Handled, 0)
		})
		e.byIDs(e.store.Delete, name)
	}
}

func stepInvalid(e *env) {
	below := core.Shard{Queue: orders, Index: -1}
	for name, do := range e.jobSteps() {
		_, err := do(e.ctx, ports.JobStep{Shard: below})
		e.refused(name+" of a shard below 0", err, ports.ErrInvalidRequest)
		_, err = do(e.ctx, ports.JobStep{Shard: e.shard, IDs: make([]string, ports.MaxStep+1)})
		e.refused(name+" of too many ids", err, ports.ErrInvalidRequest)
	}
	for name, do := range e.deadLetterSteps() {
		_, err := do(e.ctx, ports.DeadLetterStep{Shard: below})
		e.refused(name+" of a shard below 0", err, ports.ErrInvalidRequest)
		_, err = do(e.ctx, ports.DeadLetterStep{Shard: e.shard, DeadLetters: make([]ports.DeadLetterRef, ports.MaxStep+1)})
		e.refused(name+" of too many entries", err, ports.ErrInvalidRequest)
	}
	_, err := e.store.Edit(e.ctx, ports.EditRequest{Shard: below, ID: "a"})
	e.refused("Edit in a shard below 0", err, ports.ErrInvalidRequest)
}
