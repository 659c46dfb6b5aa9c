package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleAll     = "JobStep: IDs nil means all jobs that the method's comment names; Limit is how many jobs to handle if no ids are given"
	ruleClaimed = "Operator: only Cancel touches claimed jobs"
)

func stepCases() []namedCase {
	return []namedCase{
		{"expedite makes later jobs due", "Expedite: PerformAt = min(PerformAt, now)", expediteMakesDue},
		{"expedite takes all, the latest first", "Expedite: all of the shard, the last by (PerformAt, id) first, unless ids are given", expediteAll},
		{"bury moves jobs whole and keeps their error", "Bury moves queued jobs with all their payloads to the morgue; they keep their error, or get core.BuriedByHand if it is empty", buryMoves},
		{"bury merges into the morgue", ruleMorgue, buryMerges},
		{"bury takes failed jobs, the earliest first", "Bury: those with a failure, the first by (PerformAt, id) first, unless ids are given", buryAllFailed},
		{"delete removes jobs", "Delete removes queued jobs", deleteRemoves},
		{"delete takes failed jobs, the earliest first", "Delete: those with a failure, in the same order as Bury, unless ids are given", deleteAllFailed},
		{"leaves claimed jobs alone", ruleClaimed, stepLeavesClaimed},
		{"handles the queued job of a claimed id", ruleClaimed, stepQueuedOfClaimed},
		{"ignores ids of other shards", "JobStep: ids of other shards are ignored", stepOtherShards},
		{"ignores ids that no job can have", "JobStep: ids that no job can have are ignored", stepImpossibleIDs},
		{"handles nothing for no ids", "JobStep: nil means all jobs that the method's comment names, and an empty list means no job", stepNoIDs},
		{"handles 250 at most", "JobStep: 0 is MaxStep, which is also the most", stepLimit},
		{"counts nothing again", "Operator: what a call has done already is not done twice, and not counted again", stepRepeats},
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

func expediteAll(e *env) {
	failAll(e, "r")
	for i := range 4 {
		e.push(entryAt(fmt.Sprint(i), "p", 1, start.Add(time.Duration(i)*time.Hour)))
	}
	e.reported("the first step", e.byLimit(e.store.Expedite, 2), ports.StepReply{Handled: 2, More: true, Now: start})
	e.same("the latest", []core.Instant{e.queued("3").PerformAt, e.queued("2").PerformAt}, []core.Instant{start, start})
	e.same("the others", []core.Instant{e.queued("1").PerformAt, e.queued("r").PerformAt},
		[]core.Instant{start.Add(time.Hour), start.Add(time.Second)})
	e.reported("the second step", e.byLimit(e.store.Expedite, 2), ports.StepReply{Handled: 2, Now: start})
	e.reported("the third step", e.byLimit(e.store.Expedite, 2), ports.StepReply{Now: start})
}

func buryMoves(e *env) {
	failAll(e, "failed")
	e.push(entry("failed", "q", 0), entry("fresh", "p", 1), entry("fresh", "q", 2), entry("other", "p", 1))
	e.clock.Advance(time.Second)
	e.reported("the reply", e.byIDs(e.store.Bury, "fresh", "failed", "never"), ports.StepReply{Handled: 2, Reached: 3, Now: e.now()})
	e.same("a failed job", e.deadLetter("failed"), core.DeadLetter{
		ID: "failed", ChangedAt: e.now(), Error: "boom", Payloads: []core.Payload{pay("q", 0), pay("p", 1)},
	})
	e.same("a fresh job", e.deadLetter("fresh"), core.DeadLetter{
		ID: "fresh", ChangedAt: e.now(), Error: core.BuriedByHand, Payloads: []core.Payload{pay("p", 1), pay("q", 2)},
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
		ID: "a", ChangedAt: e.now(), Error: core.BuriedByHand,
		Payloads: []core.Payload{pay("p1", 1), pay("p3", 1), pay("p2", 2), pay("p4", 4)},
	})
}

func buryAllFailed(e *env) {
	failAll(e, "z", "y", "x")
	e.pushIDs("fresh")
	e.reported("the first step", e.byLimit(e.store.Bury, 2), ports.StepReply{Handled: 2, More: true, Now: start})
	e.same("the queued jobs", e.queuedIDs(), []string{"fresh", "x"})
	e.reported("the second step", e.byLimit(e.store.Bury, 2), ports.StepReply{Handled: 1, Now: start})
	e.same("the dead", e.deadIDs(), []string{"x", "y", "z"})
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

func deleteAllFailed(e *env) {
	failAll(e, "z", "y", "x")
	e.pushIDs("fresh")
	e.reported("the first step", e.byLimit(e.store.Delete, 2), ports.StepReply{Handled: 2, More: true, Now: start})
	e.same("the queued jobs", e.queuedIDs(), []string{"fresh", "x"})
	e.reported("the second step", e.byLimit(e.store.Delete, 1), ports.StepReply{Handled: 1, Now: start})
	e.same("the queued jobs after it", e.queuedIDs(), []string{"fresh"})
}

func stepLeavesClaimed(e *env) {
	e.pushIDs("a")
	e.acquire("n1").one()
	for name, do := range e.jobSteps() {
		e.unchanged(name, func() {
			e.reported("how many "+name+" handled", e.byIDs(do, "a").Handled, 0)
			e.reported("how many "+name+" handled of all", e.byLimit(do, 0).Handled, 0)
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
	e.push(entryAt("a", "q", 2, start.Add(time.Hour)))
	e.reported("how many Expedite handled of all", e.byLimit(e.store.Expedite, 0).Handled, 1)
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

// impossibleIDs are ids that no push stores: empty, no UTF-8, with a character that is none, too long.
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
			reply, err := do(e.ctx, ports.JobStep{Shard: e.shard, IDs: []string{}})
			e.must(err, name)
			e.reported("how many "+name+" handled", reply.Handled, 0)
		})
	}
}

func stepLimit(e *env) {
	entries := make([]core.Entry, ports.MaxStep+2)
	for i := range entries {
		entries[i] = entryAt(fmt.Sprint(i), "p", 1, start.Add(time.Hour))
	}
	e.push(entries...)
	e.reported("the step without a limit", e.byLimit(e.store.Expedite, 0), ports.StepReply{Handled: ports.MaxStep, More: true, Now: start})
	e.push(entries...)
	e.reported("the rest", e.byLimit(e.store.Expedite, 0).Handled, 2)
	e.clock.Advance(-time.Hour)
	e.reported("a step beyond the limit", e.byLimit(e.store.Expedite, 10*ports.MaxStep).Handled, ports.MaxStep)
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
