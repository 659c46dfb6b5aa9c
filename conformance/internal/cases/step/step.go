package step

import (
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleBefore  = "JobStep: Before limits the step to jobs whose FirstPush is before it"
	ruleClaimed = "Operator: only Cancel touches claimed jobs"
)

func stepCases() []env.Case {
	return []env.Case{
		{
			Name:  "expedite makes later jobs due",
			Rule:  "Expedite: PerformAt = min(PerformAt, now)",
			Check: expediteMakesDue,
		},
		{
			Name: "bury moves jobs whole and keeps their error",
			Rule: "Bury moves queued jobs with all their payloads to the morgue; " +
				"they keep their error, or get core.BuriedByHand if it is empty",
			Check: buryMoves,
		},
		{Name: "bury merges into the morgue", Rule: env.RuleMorgue, Check: buryMerges},
		{Name: "delete removes jobs", Rule: "Delete removes queued jobs", Check: deleteRemoves},
		{Name: "leaves claimed jobs alone", Rule: ruleClaimed, Check: stepLeavesClaimed},
		{Name: "handles the queued job of a claimed id", Rule: ruleClaimed, Check: stepQueuedOfClaimed},
		{Name: "ignores ids of other shards", Rule: "JobStep: ids of other shards are ignored", Check: stepOtherShards},
		{
			Name:  "ignores ids that no job can have",
			Rule:  "JobStep: ids that no job can have are ignored",
			Check: stepImpossibleIDs,
		},
		{Name: "handles nothing without ids", Rule: "JobStep: an empty IDs means no job", Check: stepNoIDs},
		{Name: "handles 250 ids", Rule: "JobStep: IDs are at most MaxStep", Check: stepMost},
		{Name: "skips jobs pushed at its Before or later", Rule: ruleBefore, Check: stepBefore},
		{Name: "skips jobs that were done and pushed again", Rule: ruleBefore, Check: stepPushedAnew},
		{
			Name:  "takes a job pushed before, with payloads merged later",
			Rule:  "JobStep: Before limits the step by FirstPush, the time of the oldest push",
			Check: stepMergedLater,
		},
		{
			Name:  "can be limited to jobs with a failure",
			Rule:  "JobStep: Failed limits the step to jobs with a failure",
			Check: stepFailed,
		},
		{
			Name:  "counts nothing again",
			Rule:  "Operator: a repeated call neither does nor counts anything twice",
			Check: stepRepeats,
		},
		{
			Name:  "refuses a bad step",
			Rule:  "JobStep.Validate, DeadLetterStep.Validate, EditRequest.Validate: ErrInvalidRequest",
			Check: stepInvalid,
		},
	}
}

func expediteMakesDue(e *env.Env) {
	e.FailAll("failed")
	e.Push(env.EntryAt("later", "p", 1, env.Start.Add(time.Hour)),
		env.EntryAt("old", "p", 1, 12345), env.EntryAt("other", "p", 1, env.Start.Add(time.Hour)))

	before := e.Queued("failed")
	reply := e.ByIDs(e.Store.Expedite, "later", "failed", "old", "never")
	e.Reported("the reply", reply, ports.StepReply{Handled: 2, Reached: 4, Now: env.Start})

	e.Same("a later job", e.Queued("later").State, env.Fresh(env.Start))
	before.PerformAt = env.Start
	e.Same("a failed job", e.Queued("failed"), before)
	e.Same("a due job", e.Queued("old").State, env.Fresh(12345))
	e.Same("another job", e.Queued("other").State, env.Fresh(env.Start.Add(time.Hour)))
	e.Same("the oldest", e.Head(), env.Due(12345))
}

func buryMoves(e *env.Env) {
	e.FailAll("failed")
	e.Push(env.Entry("failed", "q", 0), env.Entry("fresh", "p", 1),
		env.Entry("fresh", "q", 2), env.Entry("other", "p", 1))

	e.Clock.Advance(time.Second)
	e.Reported("the reply",
		e.ByIDs(e.Store.Bury, "fresh", "failed", "never"), ports.StepReply{Handled: 2, Reached: 3, Now: e.Now()})

	e.Same("a failed job", e.DeadLetter("failed"), core.DeadLetter{
		ID:        "failed",
		ChangedAt: e.Now(),
		Failures:  env.Failures("boom"),
		Group:     core.BuriedByHand,
		Payloads:  []core.Payload{env.Pay("q", 0), env.Pay("p", 1)},
	})
	e.Same("a fresh job", e.DeadLetter("fresh"), core.DeadLetter{
		ID:        "fresh",
		ChangedAt: e.Now(),
		Failures:  core.Failures{{Text: core.BuriedByHand}},
		Group:     core.BuriedByHand,
		Payloads:  []core.Payload{env.Pay("p", 1), env.Pay("q", 2)},
	})

	e.Same("the queued jobs", e.QueuedIDs(), []string{"other"})
}

func buryMerges(e *env.Env) {
	h, c := e.ClaimedJob()
	h.Settle(env.Buried(c, "first"))
	e.Push(env.Entry("a", "p3", 1), env.Entry("a", "p4", 4))
	e.Clock.Advance(time.Second)
	e.ByIDs(e.Store.Bury, "a")
	e.Same("the dead letter", e.DeadLetter("a"), core.DeadLetter{
		ID:        "a",
		ChangedAt: e.Now(),
		Failures:  core.Failures{{Text: core.BuriedByHand}},
		Group:     core.BuriedByHand,
		Payloads:  []core.Payload{env.Pay("p1", 1), env.Pay("p3", 1), env.Pay("p2", 2), env.Pay("p4", 4)},
	})
}

func deleteRemoves(e *env.Env) {
	e.FailAll("failed")
	e.PushIDs("a", "b")
	e.Reported("the reply",
		e.ByIDs(e.Store.Delete, "b", "failed", "never"), ports.StepReply{Handled: 2, Reached: 3, Now: env.Start})
	e.Same("the queued jobs", e.QueuedIDs(), []string{"a"})
	e.Same("the dead", e.DeadIDs(), nil)
	counts := e.Counts()
	e.Same("fresh and retries", [2]int64{counts.Fresh, counts.Retrying}, [2]int64{1, 0})
}

func stepLeavesClaimed(e *env.Env) {
	e.PushIDs("a")
	e.Acquire("n1").One()
	for name, do := range jobSteps(e) {
		e.Unchanged(name, func() {
			e.Reported("how many "+name+" handled", e.ByIDs(do, "a").Handled, 0)
		})
	}
}

func stepQueuedOfClaimed(e *env.Env) {
	e.PushIDs("a")
	c := e.Acquire("n1").One()
	for name, do := range jobSteps(e) {
		e.Push(env.EntryAt("a", "q", 2, env.Start.Add(time.Hour)))
		e.Reported("how many "+name+" handled", e.ByIDs(do, "a").Handled, 1)
		e.Same("the claimed job after "+name, e.Claimed("a"), c)
		e.ByIDs(e.Store.Delete, "a")
	}
}

func stepOtherShards(e *env.Env) {
	e.Declare("wide", 2)
	s := core.Shards("wide", 2)
	mine, other := env.IDsOf(s[0], 2, 1)[0], env.IDsOf(s[1], 2, 1)[0]
	for name, do := range jobSteps(e) {
		for _, id := range []string{mine, other} {
			e.PushTo("wide", env.EntryAt(id, "p", 1, env.Start.Add(time.Hour)))
		}
		want := e.FindIn("wide", other)
		reply, err := do(e.Ctx, ports.JobStep{Shard: s[0], IDs: []string{mine, other}})
		e.Must(err, name)
		e.Reported("how many "+name+" handled", reply.Handled, 1)
		e.Same("the other shard's job", e.FindIn("wide", other), want)
	}
}

// impossibleIDs returns ids that no push stores: empty, not UTF-8, with a control character, too
// long.
func impossibleIDs() []string {
	return []string{"", "\xff", "a\x00b", strings.Repeat("x", core.MaxIDBytes+1)}
}

func stepImpossibleIDs(e *env.Env) {
	for name, do := range jobSteps(e) {
		e.Push(env.EntryAt("a", "p", 1, env.Start.Add(time.Hour)))
		reply, err := do(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: append(impossibleIDs(), "a")})
		e.Must(err, name)
		e.Reported("how many "+name+" handled", reply.Handled, 1)
	}

	e.Push(env.Entry("b", "p", 1))
	buried, err := e.Store.Bury(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: []string{"b"}})
	e.Must(err, "Bury")
	e.Reported("how many were buried", buried.Handled, 1)

	for _, id := range impossibleIDs() {
		for name, do := range e.DeadLetterSteps() {
			reply, err := do(e.Ctx, ports.DeadLetterStep{
				Shard:       e.Shard,
				DeadLetters: []ports.DeadLetterRef{env.Whole(id), {ID: id, Payloads: [][]byte{[]byte("p")}}},
			})
			e.Must(err, name)
			e.Reported("how many "+name+" handled", reply.Handled, 0)
		}

		reply, err := e.Store.Edit(e.Ctx, ports.EditRequest{Shard: e.Shard, ID: id, Old: []byte("p"), New: []byte("q")})
		e.Must(err, "Edit")
		e.Reported("how many Edit changed", reply.Handled, 0)
	}

	reply, err := e.Store.Cancel(e.Ctx, ports.CancelRequest{Shard: e.Shard, IDs: impossibleIDs()})
	e.Must(err, "Cancel")
	e.Reported("how many Cancel cancelled", reply.Handled, 0)
}

func stepNoIDs(e *env.Env) {
	e.FailAll("a")
	e.Push(env.EntryAt("b", "p", 1, env.Start.Add(time.Hour)))
	for name, do := range jobSteps(e) {
		e.Unchanged(name, func() {
			for _, ids := range [][]string{nil, {}} {
				reply, err := do(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: ids})
				e.Must(err, name)
				e.Reported("what "+name+" did", reply, ports.StepReply{Now: env.Start})
			}
		})
	}
}

func stepMost(e *env.Env) {
	entries, ids := make([]core.Entry, ports.MaxStep+2), make([]string, ports.MaxStep+2)
	for i := range entries {
		ids[i] = fmt.Sprint(i)
		entries[i] = env.EntryAt(ids[i], "p", 1, env.Start.Add(time.Hour))
	}
	for name, do := range jobSteps(e) {
		e.Push(entries...)
		most := ports.StepReply{Handled: ports.MaxStep, Reached: ports.MaxStep, Now: env.Start}
		e.Reported("a step of "+name, e.ByIDs(do, ids[:ports.MaxStep]...), most)
		e.ByIDs(e.Store.Delete, ids[ports.MaxStep:]...)
	}
}

// before handles the named jobs that were first pushed before an instant.
func before(e *env.Env, do env.JobStep, before core.Instant, ids ...string) ports.StepReply {
	e.TB.Helper()
	reply, err := do(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: ids, Before: before})
	e.Must(err, "a step by ids and Before")
	return reply
}

// stepBefore pushes two jobs, a second apart. A step with Before handles no job, or only the first
// one.
func stepBefore(e *env.Env) {
	for name, do := range jobSteps(e) {
		later, pushed := e.Now().Add(time.Hour), e.Now()
		e.Push(env.EntryAt("a", "p", 1, later))
		e.Clock.Advance(time.Second)
		e.Push(env.EntryAt("b", "p", 1, later))

		e.Unchanged(name, func() {
			e.Reported("the step", before(e, do, pushed, "b", "a"), ports.StepReply{Reached: 2, Now: e.Now()})
		})

		b := e.Queued("b")
		e.Reported("the step after a",
			before(e, do, pushed+1, "b", "a"), ports.StepReply{Handled: 1, Reached: 2, Now: e.Now()})
		e.Same("b after "+name, e.Queued("b"), b)
		e.Reported("the step after b", before(e, do, e.Now()+1, "b").Handled, 1)

		e.ByIDs(e.Store.Delete, "a", "b")
	}
}

// stepPushedAnew selects a failed job. Before the step the job is done, and its id is pushed again.
func stepPushedAnew(e *env.Env) {
	for name, do := range jobSteps(e) {
		e.FailAll("a")
		chosen := e.Now() + 1
		e.Clock.Advance(time.Minute)
		h := e.Acquire("n1")
		h.Settle(env.Done(h.One()))
		h.Release()
		e.Push(env.EntryAt("a", "q", 2, e.Now().Add(time.Hour)))
		e.Unchanged(name, func() { e.Reported("how many "+name+" handled", before(e, do, chosen, "a").Handled, 0) })
		e.ByIDs(e.Store.Delete, "a")
	}
}

func stepMergedLater(e *env.Env) {
	for name, do := range jobSteps(e) {
		later := e.Now().Add(time.Hour)
		e.Push(env.EntryAt("a", "p", 1, later))
		e.Clock.Advance(time.Second)
		e.Push(env.EntryAt("a", "q", 2, later))
		e.Reported("how many "+name+" handled", before(e, do, e.Now(), "a").Handled, 1)
		e.ByIDs(e.Store.Delete, "a")
	}
}

func stepFailed(e *env.Env) {
	for name, do := range jobSteps(e) {
		e.FailAll("failed")
		e.Push(env.EntryAt("fresh", "p", 1, e.Now().Add(time.Hour)))
		want := e.Queued("fresh")
		reply, err := do(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: []string{"fresh", "failed", "none"}, Failed: true})
		e.Must(err, name)
		e.Reported("the reply of "+name, reply, ports.StepReply{Handled: 1, Reached: 3, Now: e.Now()})
		e.Same("the fresh job after "+name, e.Queued("fresh"), want)
		e.ByIDs(e.Store.Delete, "fresh", "failed")
	}
}

func stepRepeats(e *env.Env) {
	for name, do := range jobSteps(e) {
		e.FailAll(name)
		e.Reported("how many "+name+" handled", e.ByIDs(do, name).Handled, 1)
		e.Unchanged(name+" repeated", func() {
			e.Reported("how many it handled again", e.ByIDs(do, name).Handled, 0)
		})
		e.ByIDs(e.Store.Delete, name)
	}
}

func stepInvalid(e *env.Env) {
	below := core.Shard{Queue: env.Orders, Index: -1}
	for name, do := range jobSteps(e) {
		_, err := do(e.Ctx, ports.JobStep{Shard: below})
		e.Refused(name+" of a shard below 0", err, ports.ErrInvalidRequest)
		_, err = do(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: make([]string, ports.MaxStep+1)})
		e.Refused(name+" of too many ids", err, ports.ErrInvalidRequest)
	}

	for name, do := range e.DeadLetterSteps() {
		_, err := do(e.Ctx, ports.DeadLetterStep{Shard: below})
		e.Refused(name+" of a shard below 0", err, ports.ErrInvalidRequest)
		_, err = do(e.Ctx, ports.DeadLetterStep{
			Shard:       e.Shard,
			DeadLetters: make([]ports.DeadLetterRef, ports.MaxStep+1),
		})
		e.Refused(name+" of too many entries", err, ports.ErrInvalidRequest)
	}

	_, err := e.Store.Edit(e.Ctx, ports.EditRequest{Shard: below, ID: "a"})
	e.Refused("Edit in a shard below 0", err, ports.ErrInvalidRequest)
}

// jobSteps are the methods that handle queued jobs.
func jobSteps(e *env.Env) map[string]env.JobStep {
	return map[string]env.JobStep{"Expedite": e.Store.Expedite, "Bury": e.Store.Bury, "Delete": e.Store.Delete}
}
