package ports

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
)

// MaxStep is the maximum number of entries that one step of an operator handles. It is also the
// default.
const MaxStep = 250

// Operator changes the content of a store on behalf of an operator (docs/rules.md 7). Only Cancel
// changes claimed jobs.
//
// A call is one bounded, atomic step on one shard, so bulk actions can be cancelled and can report
// progress. A step may end before it has dealt with all named entries: the caller repeats it with
// the entries from StepReply.Reached on. The caller repeats a step over all dead letters until
// StepReply.More is false. To handle all jobs of a kind, the caller lists them by [Inspector.Jobs]
// and passes their ids, together with the conditions by which they were selected (JobStep).
//
// A step handles at most MaxStep entries. It moves or removes at most core.MaxTurnPayloads payloads
// and core.MaxStepBytes of their Data, as core.Bound counts them; the first payload is always
// within the bounds. Payloads that a store moves or removes without touching each of them need not
// count. An entry with more payloads than a step moves is handled in parts, lowest payloads first.
// The rest of a job keeps its State, and the rest of a dead letter keeps its ChangedAt, Failures,
// Group and Tags. The step that handles the last part counts the entry. Each step that has
// something to handle makes progress.
//
// Every method returns [ErrUnknownQueue] for a queue that was not declared, and [ErrInvalidRequest]
// for a step that its Validate refuses or a shard that the queue does not have. A call of unknown
// outcome may be repeated: a change that was already made is not made twice and not counted again,
// unless the method states an exception.
type Operator interface {
	// Pause stops claims on all shards of a queue. Claimed jobs continue and are settled. It is
	// atomic for each shard. A repeated call changes nothing.
	Pause(ctx context.Context, queue string) error

	// Resume ends a pause. A repeated call changes nothing.
	Resume(ctx context.Context, queue string) error

	// SetMerge changes the merge rule of a queue (docs/rules.md 2). The new rule holds for each merge
	// after the call, and calls that are under way merge by either rule. SetMerge itself removes no
	// payload: an id that has more payloads than the new rule keeps has no more after any merge, and
	// fewer once they were handled or put back. It is atomic for each shard. A repeated call changes
	// nothing.
	//
	// Errors: core.ErrInvalidRule for a rule that core.MergeRule.Validate refuses; ErrQueueMismatch
	// for a rule with another Same, since the queue's payloads are stored by it.
	SetMerge(ctx context.Context, r SetMergeRequest) error

	// Configure replaces the settings of a queue (docs/rules.md 11), if no other call has changed them
	// meanwhile: the version that the store has must be the Version of the new settings less one. 0 is
	// the version of a queue that was never configured. If the store already has settings that are
	// equal to the new ones, also in their Version, the call is a repeat and changes nothing. It is
	// atomic: of several calls with the same Version and other content exactly one succeeds.
	//
	// The store keeps settings whose names or values it does not know. It keeps them when the queue is
	// paused, resumed or declared again, and when its merge rule changes. Forget removes them. No
	// wake-up announces a change, since servers read the settings by Queues.
	//
	// If the store can't read the settings that it has, the version is compared if it can be read, and
	// otherwise each Version is accepted.
	//
	// Errors: ErrUnknownQueue; a *SettingsConflictError with the present settings; ErrInvalidRequest,
	// as ConfigureRequest.Validate returns it.
	Configure(ctx context.Context, r ConfigureRequest) error

	// Forget removes a queue: its record, settings, counters, history, records of what became of
	// its ids, and what it remembers of pushes with OnceIn. The queue must have no queued, claimed
	// or dead entry, no schedule and no record in the [Quarantine], and no shard of it may be
	// leased. After that the name can be declared anew, even with another shard count.
	//
	// Forget examines all shards before it removes the first, and removes a shard only if the shard
	// is empty in the same atomic step. So no push is lost. If a push arrives in between, Forget
	// ends with an error. The queue is then still listed, pushes to shards that were removed return
	// ErrUnknownQueue until the queue is declared again, and Forget can be repeated. While a
	// caller's transaction that has pushed is open, Forget may return an error of unknown outcome.
	//
	// Errors: ErrUnknownQueue, also for a repeated call; ErrNotEmpty; a *HeldError.
	Forget(ctx context.Context, queue string) error

	// Recount counts a shard's queued, claimed and dead entries one by one, and corrects the counts
	// that Stats and Groups return, if they differ. Processed, Failed and Superseded stay. First
	// and Last of a group stay too. For a group that was not counted before, they are set from the
	// ChangedAt of its dead letters.
	//
	// A call is one step. The caller repeats it with the Next of the last reply until that is
	// empty. Then the counts are right, even if servers and operators changed the shard between the
	// steps. A step counts about Limit entries. A store may count more of them, or all, if that
	// delays no other call on the shard. A recount can be abandoned between two steps. Until a
	// recount is finished, counts that were wrong may become wrong in another way. Repeating a
	// step, or all of them, changes nothing more. The reply to a repeat does not have what the first
	// call corrected, so a store does not repeat a step of unknown outcome by itself.
	//
	// If a store keeps a record of the queue or of the shard, and has lost this record, the first
	// step stores it again. Records of schedules that can't be read are set aside in the
	// [Quarantine], also those that are not due.
	//
	// Errors: those of Operator; ErrInvalidRequest for an After that is not the Next of a reply.
	Recount(ctx context.Context, r RecountRequest) (RecountReply, error)

	// Expedite makes queued jobs due, as core.State.Expedited describes: PerformAt = min(PerformAt,
	// now), a held job becomes fresh, and a job that waits for a slot loses it. Jobs that are already
	// due do not change and are not counted.
	//
	// Errors: those of Operator; ErrInvalidRequest for a step with Payloads or First.
	Expedite(ctx context.Context, s JobStep) (StepReply, error)

	// Bury moves queued jobs with all their payloads to the morgue, into the group
	// core.BuriedByHand. The dead letter has the job's failure, or core.BuriedByHand if the job has
	// none. With JobStep.First, Bury moves only the first payload of each job.
	//
	// Errors: those of Operator; ErrInvalidRequest for a step with Payloads.
	Bury(ctx context.Context, s JobStep) (StepReply, error)

	// Delete removes queued jobs. With JobStep.Payloads it removes only these payloads of the jobs,
	// so that a caller who has copied payloads elsewhere removes exactly these, and no payload that
	// was pushed since. With JobStep.First it removes only the first payload of each job. A job
	// that loses its last payload is removed.
	Delete(ctx context.Context, s JobStep) (StepReply, error)

	// Cancel requests that claimed jobs end. The owner of the shard learns of the request by its
	// next turn, cancels the handlers of these jobs, and drops or requeues the jobs. Ids that are
	// not claimed, and jobs that a caller's transaction is settling, are ignored and not counted.
	// If a call is repeated, the Drop of the last call applies; a store may or may not count a
	// repeated call that changes nothing.
	Cancel(ctx context.Context, r CancelRequest) (StepReply, error)

	// Revive requeues dead payloads by the row of docs/rules.md 2 about a job from the morgue.
	Revive(ctx context.Context, s DeadLetterStep) (StepReply, error)

	// Purge removes dead payloads.
	Purge(ctx context.Context, s DeadLetterStep) (StepReply, error)

	// Edit replaces the Data of one dead payload or, with Queued, of one payload of a queued job, and
	// keeps its Score and Meta. If the dead letter or the job already has the new bytes, the two
	// payloads merge by the queue's rule. The ChangedAt of a dead letter becomes now; its Failures,
	// Group and Tags stay. The State of a job stays, whichever payload is then its first. A claimed
	// job is not edited. A payload that does not exist is not counted. A repeated call changes nothing
	// more, unless the dead letter or the job has received the old bytes again or Old and New are
	// equal.
	Edit(ctx context.Context, r EditRequest) (StepReply, error)

	// Import adds dead letters of another morgue to this one, or jobs, records or marks of another
	// queue to this one, unchanged.
	//
	// A dead letter keeps its payloads with Score and Meta, ChangedAt, Failures, Group and Tags. It
	// does not run, and queued and claimed jobs of its id stay.
	//
	// If the morgue already has the id, the two dead letters are united. Their payloads merge by
	// the queue's rule; on a tie the payload that was there stays. Tags unite. ChangedAt, Failures and
	// Group are those of the dead letter that changed later, or on a tie those of the dead letter
	// that was there. The dead letter is counted in its group as buried at its ChangedAt, and in
	// core.OtherGroup if the shard has core.MaxGroups other groups.
	//
	// Handled counts the dead letters that are new or were changed. So a repeated call changes and
	// counts nothing more, except that payloads that were revived or purged meanwhile come back. A
	// ChangedAt may be in the future; until then a step with a Before skips the dead letter.
	//
	// Payloads that come from a queue with another rule are made a set first, by
	// core.MergeRule.Imported.
	//
	// A job keeps its payloads with Score and Meta, and its State, with two exceptions. Its Slot is
	// dropped. A FirstPush in the future becomes now, since steps with a Before would skip the job
	// until that time. If the id has a queued job, the payloads merge into it by the queue's rule,
	// and the State becomes that of core.MergeImport. A claimed job stays, and the imported job waits
	// behind it, like a push. A dead letter of the id stays too. Handled counts all jobs that the
	// step has reached, whether they changed anything or not. A repeated call changes nothing more,
	// except that jobs that were claimed or deleted meanwhile come back, and that payloads that the
	// rule drops count again as superseded.
	//
	// A record keeps its fields and its Result. If the id has a record already, core.ImportPast decides
	// which of the two stays. If it has a mark beside its record, core.ImportMark returns the mark that
	// is kept. Import removes no other record. The next turns do, by their Keep, or by
	// core.ImportedKeepAge if no turn of the shard has kept any record yet. Handled counts all records
	// and marks that the step has reached. A repeated call changes nothing more, except that records
	// that were removed meanwhile come back. A DoneAt may be in the future.
	//
	// Errors, with nothing stored: those of ImportRequest.Validate; ErrShardCountMismatch if the
	// layout is not the queue's; ErrNotPaused if the request is OnlyPaused and the shard is not
	// paused; ErrFull.
	Import(ctx context.Context, r ImportRequest) (StepReply, error)
}

// SetMergeRequest changes the merge rule of a queue.
type SetMergeRequest struct {
	Queue string
	// Merge is the new rule. Its Same must be that of the queue.
	Merge core.MergeRule
}

// Validate returns core.ErrInvalidRule for an invalid rule.
func (r *SetMergeRequest) Validate() error { return r.Merge.Validate() }

// JobStep selects queued jobs of one shard.
type JobStep struct {
	Shard core.Shard
	// IDs are the ids to handle, in order, at most MaxStep. Ids of other shards are ignored, as in
	// all steps, and so are ids that no job can have. An empty list handles no job.
	// StepReply.Reached is how far the step came.
	IDs []string
	// Before limits the step to jobs whose FirstPush is before it. So if a job was selected from a
	// list, then ended and was pushed anew, the step ignores the new job. 0 means no limit.
	Before core.Instant
	// Failed limits the step to jobs with a failure, and Held to held jobs, which are some of these
	// ([core.State.Held]).
	Failed, Held bool
	// Payloads limits Delete to payloads: the nth element has those of the nth of IDs, with Data
	// and Score. A payload that the job does not have with this very Score is ignored, since then
	// another one has merged with it. If the job's first payload is removed, the others stay queued
	// in the state core.State.WithoutFirst. nil means all payloads of the jobs. All together have no
	// more payloads and bytes than a step moves, and each id occurs once. Other steps refuse
	// Payloads.
	Payloads [][]core.Payload
	// First limits Bury and Delete to the first payload of each job, the one with the lowest score.
	// It has the Data of that payload for each of the IDs, and each id occurs once. A job is skipped
	// if its first payload has other Data, so a repeated step takes nothing more. The other payloads
	// of a job stay queued in the state core.State.WithoutFirst. nil means whole jobs.
	First [][]byte
}

// Validate returns [ErrInvalidRequest] for too many ids or a shard below 0. It returns the same for
// a step with both Payloads and First, and for a step with one of them that does not match IDs,
// names an id twice, or exceeds what a step moves. It returns the error of package core for an
// invalid payload or score.
func (s *JobStep) Validate() error {
	if err := validateStep(s.Shard, len(s.IDs)); err != nil || s.Payloads == nil && s.First == nil {
		return err
	}

	switch {
	case s.Payloads != nil && s.First != nil:
		return fmt.Errorf("%w: Payloads and First in one step; give one of them", ErrInvalidRequest)
	case s.First == nil && len(s.Payloads) != len(s.IDs):
		return fmt.Errorf("%w: payloads of %d jobs for %d ids; give one element for each id",
			ErrInvalidRequest, len(s.Payloads), len(s.IDs))
	case s.First != nil && len(s.First) != len(s.IDs):
		return fmt.Errorf("%w: %d first payloads for %d ids; give one for each id",
			ErrInvalidRequest, len(s.First), len(s.IDs))
	}

	var bound core.Bound
	ids := make(map[string]bool, len(s.IDs))
	for i, id := range s.IDs {
		switch {
		case ids[id]:
			return fmt.Errorf("%w: id %q occurs twice; name all its payloads at once", ErrInvalidRequest, id)
		case s.Payloads != nil && bound.Take(s.Payloads[i]) < len(s.Payloads[i]):
			return fmt.Errorf("%w: the payloads of id %q exceed the %d payloads or %d bytes of a step; "+
				"name the rest in another call",
				ErrInvalidRequest, id, core.MaxTurnPayloads, core.MaxStepBytes)
		case s.First != nil && bound.Take([]core.Payload{{Data: s.First[i]}}) == 0:
			return fmt.Errorf("%w: the first payloads exceed the %d bytes of a step at id %q; "+
				"name the rest in another call",
				ErrInvalidRequest, core.MaxStepBytes, id)
		case s.Payloads != nil:
			if err := validateNamed(id, s.Payloads[i]); err != nil {
				return err
			}
		}
		ids[id] = true
	}

	return nil
}

// validateNamed returns the error of package core for the first invalid payload that a step names.
// It does not check the id, since a step ignores ids that no job can have.
func validateNamed(id string, payloads []core.Payload) error {
	for i := range payloads {
		entry := core.Entry{ID: "any", Payload: core.Payload{Data: payloads[i].Data, Score: payloads[i].Score}}
		if err := entry.Validate(); err != nil {
			return fmt.Errorf("payload %d of id %q: %w", i, id, err)
		}
	}
	return nil
}

// ValidateBury is Validate for Bury: it returns [ErrInvalidRequest] for Payloads too.
func (s *JobStep) ValidateBury() error {
	if s.Payloads != nil {
		return fmt.Errorf("%w: only Delete takes payloads of jobs", ErrInvalidRequest)
	}
	return s.Validate()
}

// ValidateWhole is Validate for a step that handles whole jobs: it returns [ErrInvalidRequest] for
// Payloads and First too.
func (s *JobStep) ValidateWhole() error {
	if s.First != nil {
		return fmt.Errorf("%w: only Bury and Delete take first payloads of jobs", ErrInvalidRequest)
	}
	return s.ValidateBury()
}

// About reports whether a queued job of one of the IDs meets the conditions of the step.
func (s *JobStep) About(j *core.State) bool {
	return (s.Before == 0 || j.FirstPush < s.Before) && (!s.Failed || !j.Fresh()) && (!s.Held || j.Held())
}

// DeadLetterStep selects dead payloads of one shard.
type DeadLetterStep struct {
	Shard core.Shard
	// DeadLetters are the dead letters to handle, in order, at most MaxStep. Ids of other shards
	// are ignored. StepReply.Reached is how far the step came. nil means all dead letters that last
	// changed before Before, and an empty list means no dead letter.
	DeadLetters []DeadLetterRef
	// Before limits the step to dead letters that last changed before it. It is usually the store's
	// now when the action began. For a step that names DeadLetters, 0 means no limit. For a step
	// over all dead letters, 0 selects no dead letter.
	Before core.Instant
	// Group limits a step over all dead letters to those of that group, as [Inspector].Groups
	// counts them. Empty means all groups.
	Group string
	// Limit is the maximum number of dead letters to handle if DeadLetters is nil. A value below 1
	// means MaxStep, which is also the maximum. The step handles them in order of (ChangedAt, id).
	Limit int
	// Fresh leaves the named dead letters alone of which a named payload is stale: at or below the
	// mark of its id (docs/rules.md 16). Unmark removes the mark and the record of an id if a stale
	// payload of it is revived, in the same atomic step. Only Revive has them, for a step that
	// names DeadLetters, and at most one of the two.
	Fresh, Unmark bool
	// Keep is how many dead letters of the shard a step over all of them leaves at least: it handles at
	// most those that the shard has above Keep. So two steps at the same time leave as many as one.
	// 0 leaves none.
	Keep int64
}

// Validate returns [ErrInvalidRequest] for too many dead letters, a shard below 0, Fresh and Unmark
// together or without DeadLetters, a Group together with DeadLetters, a Group that no dead letter can
// have, or a Keep that is below 0 or together with DeadLetters or a Group.
func (s *DeadLetterStep) Validate() error {
	if s.Keep < 0 || s.Keep > 0 && (s.DeadLetters != nil || s.Group != "") {
		return fmt.Errorf("%w: a step that keeps %d dead letters; give 0, or more without DeadLetters and Group",
			ErrInvalidRequest, s.Keep)
	}
	if s.Fresh && s.Unmark || (s.Fresh || s.Unmark) && s.DeadLetters == nil {
		return fmt.Errorf("%w: a step with Fresh or Unmark; give one of them, and name the DeadLetters",
			ErrInvalidRequest)
	}
	if s.Group != "" && s.DeadLetters != nil {
		return fmt.Errorf("%w: group %q together with named dead letters; name only one of them",
			ErrInvalidRequest, s.Group)
	}
	if err := validateGroup(s.Group); err != nil {
		return err
	}
	return validateStep(s.Shard, len(s.DeadLetters))
}

// Size returns Limit with its default and maximum applied.
func (s *DeadLetterStep) Size() int { return stepSize(s.Limit) }

// DeadLetterRef names payloads of one dead letter.
type DeadLetterRef struct {
	ID string
	// Payloads are the Data of the payloads. nil means all payloads, and an empty list means no
	// payload. Payloads that do not exist are ignored. A dead letter that loses its last payload is
	// removed; otherwise it keeps its ChangedAt, Failures, Group and Tags.
	Payloads [][]byte
}

// CancelRequest selects claimed jobs of one shard.
type CancelRequest struct {
	Shard core.Shard
	// IDs are the ids of the jobs, at most MaxStep. Ids of other shards are ignored.
	IDs []string
	// Drop is true if the jobs are removed when their handlers have returned, and false if they are
	// requeued.
	Drop bool
}

// Validate returns [ErrInvalidRequest] for too many ids or a shard below 0.
func (r *CancelRequest) Validate() error {
	return validateStep(r.Shard, len(r.IDs))
}

// EditRequest replaces one payload.
type EditRequest struct {
	Shard core.Shard
	ID    string
	// Queued selects the queued job of the id instead of its dead letter.
	Queued bool
	// Old is the Data to replace, and New is the Data to replace it with.
	Old, New []byte
}

// Validate returns [ErrInvalidRequest] for a shard below 0.
func (r *EditRequest) Validate() error {
	return validateStep(r.Shard, 1)
}

// StepReply is the result of a step.
type StepReply struct {
	// Handled is the number of jobs, dead letters or, for Edit, payloads that were changed. An
	// Import of jobs, records or marks counts all that it has reached. An entry that is handled in
	// parts is counted by the step that handles the last part.
	Handled int
	// Reached is the number of the step's IDs, or of the entries of an Import, from the first, that the
	// step has dealt with, including those that it skipped. It is the number of all IDs for Cancel, and
	// 0 for Edit and for a step that names no entry. The caller continues with the entries from
	// Reached on. If it repeated all entries, it could change jobs or dead letters that came
	// meanwhile.
	Reached int
	// Stale is the number of dead letters that a step with Fresh has left alone.
	Stale int
	// More is true if a step over all dead letters left some of them, or a part of one, above those
	// that it keeps.
	More bool
	// Now is the store's clock.
	Now core.Instant
}

// RecountRequest is a request for one step of a recount.
type RecountRequest struct {
	Shard core.Shard
	// After is the Next of the previous step. It is empty for the first step.
	After string
	// Limit is the approximate number of entries to count. A value below 1 means MaxStep, which is
	// also the maximum.
	Limit int
}

// Validate returns [ErrInvalidRequest] for a shard below 0.
func (r *RecountRequest) Validate() error { return validateStep(r.Shard, 0) }

// Size returns Limit with its default and maximum applied.
func (r *RecountRequest) Size() int { return stepSize(r.Limit) }

// RecountReply is the result of a step of Recount.
type RecountReply struct {
	// Before has the counts of the shard as Stats returned them before the step, and After has them
	// as Stats returns them after it. Changes that other calls made meanwhile are in both, so the
	// difference is the correction that the step made.
	Before, After Counts
	// Counted is the number of queued, claimed and dead entries that the step has counted. Over all
	// steps it is at least the number of entries that existed the whole time.
	Counted int
	// Next is the position at which the next step continues. It is empty when all entries are
	// counted. Only the same store can read it.
	Next string
	// RestoredShards is the number of shards that had lost their records and have new ones since the
	// step. It may include other shards of the queue. RestoredQueue is true if the step has restored
	// the record of the queue. Only some stores can lose records.
	RestoredShards int
	RestoredQueue  bool
}

// Then returns the sum of two steps; next is the later one. Changes that other calls made between
// the steps are in both Before and After. If a step has changed Oldest, Before has the Oldest that
// the first such step found. Otherwise it has that of the last step.
func (r RecountReply) Then(next RecountReply) RecountReply {
	sum := RecountReply{
		Before: r.Before, After: next.After, Counted: r.Counted + next.Counted, Next: next.Next,
		RestoredShards: r.RestoredShards + next.RestoredShards, RestoredQueue: r.RestoredQueue || next.RestoredQueue,
	}

	before := &sum.Before
	before.Fresh += next.Before.Fresh - r.After.Fresh
	before.Retrying += next.Before.Retrying - r.After.Retrying
	before.Claimed += next.Before.Claimed - r.After.Claimed
	before.Dead += next.Before.Dead - r.After.Dead
	before.Quarantined += next.Before.Quarantined - r.After.Quarantined
	before.Processed += next.Before.Processed - r.After.Processed
	before.Failed += next.Before.Failed - r.After.Failed
	before.Superseded += next.Before.Superseded - r.After.Superseded
	before.Held += next.Before.Held - r.After.Held

	if r.Before.Oldest == r.After.Oldest {
		before.Oldest = next.Before.Oldest
	}

	return sum
}

func stepSize(limit int) int {
	if limit <= 0 {
		return MaxStep
	}
	return min(limit, MaxStep)
}

func validateStep(shard core.Shard, entries int) error {
	if shard.Index < 0 {
		return fmt.Errorf("%w: shard %v; shards are numbered from 0", ErrInvalidRequest, shard)
	}
	if entries > MaxStep {
		return fmt.Errorf("%w: the step has %d entries; name at most %d, and the others in another step",
			ErrInvalidRequest, entries, MaxStep)
	}
	return nil
}
