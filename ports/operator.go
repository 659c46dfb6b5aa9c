package ports

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
)

// MaxStep is the maximum number of entries that one step of an operator handles. It is also the
// default.
const MaxStep = 250

// Operator changes what a store holds on behalf of an operator (docs/rules.md 7). Only Cancel
// touches claimed jobs.
//
// A call is one bounded, atomic step on one shard, so bulk actions can be cancelled and can report
// progress. The caller repeats a step with the entries that it has not reached. It repeats a step
// over all dead letters until the reply reports that none is left. To handle all jobs of a kind,
// the caller finds them by [Inspector.Jobs] and passes their ids, together with the conditions they
// were selected by (JobStep).
//
// A step handles at most MaxStep entries. It moves or removes at most core.MaxTurnPayloads payloads
// and core.MaxStepBytes of their Data, as core.Bound counts them; the first payload is always
// within the bounds. A store may leave payloads out of the count that it moves or removes without
// touching each of them. An entry with more payloads than a step moves goes in parts, lowest
// payloads first. The rest of a job keeps its State, and the rest of a dead letter keeps its
// ChangedAt, Error and Group, until a later step finishes and counts the entry. Each step that has
// something to handle makes progress.
//
// Every method returns [ErrUnknownQueue] for a queue that was not declared, and [ErrInvalidRequest]
// for a step that its Validate refuses or a shard that the queue does not have. A call of unknown
// outcome may be repeated: a change that was already made is not made twice and not counted again.
type Operator interface {
	// Pause stops claims on all shards of a queue. Claimed jobs continue and are settled. It is
	// atomic for each shard. A repeated call changes nothing.
	Pause(ctx context.Context, queue string) error

	// Resume ends a pause. A repeated call changes nothing.
	Resume(ctx context.Context, queue string) error

	// Forget removes a queue: its record, counters and history. The queue must have no queued,
	// claimed or dead entry, and no shard of it may be leased. After that the name can be declared
	// anew, even with another shard count.
	//
	// Forget examines all shards before it removes the first, and removes each shard atomically, so
	// no push is lost. A push that arrives in between stops it. The queue is then still listed,
	// pushes to shards that were removed return ErrUnknownQueue until the queue is declared again,
	// and Forget can be repeated.
	//
	// Errors: ErrUnknownQueue, also for a repeated call; ErrNotEmpty; a *HeldError.
	Forget(ctx context.Context, queue string) error

	// Recount counts a shard's queued, claimed and dead entries one by one, and corrects the counts
	// that Stats and Groups return, should they differ. Processed and Failed stay. First and Last
	// of a group stay too; for a group that was not counted before they are set from the ChangedAt
	// of its dead letters.
	//
	// A call is one step. The caller repeats it with the Next of the last reply until that is
	// empty. Then the counts are right, even if the shard was worked and changed between the steps.
	// A step goes through about Limit entries. A store may go through more, or all, if that delays
	// no other call on the shard. An unfinished recount keeps no state; until one is finished,
	// counts that were wrong may be wrong in another way. Repeating a step, or all of them, changes
	// nothing more.
	//
	// If a store keeps a record of the queue or of the shard beside the entries, and has lost it,
	// the first step stores it again.
	//
	// Errors: those of Operator; ErrInvalidRequest for an After that no reply had.
	Recount(ctx context.Context, r RecountRequest) (RecountReply, error)

	// Expedite makes queued jobs due, as core.State.Expedited describes: PerformAt = min(PerformAt,
	// now), and a held job becomes fresh. Jobs that are already due are not counted.
	//
	// Errors: those of Operator; ErrInvalidRequest for a step with First.
	Expedite(ctx context.Context, s JobStep) (StepReply, error)

	// Bury moves queued jobs with all their payloads to the morgue, into the group
	// core.BuriedByHand. A job keeps its error; if that is empty, the error becomes
	// core.BuriedByHand. With First it moves only the first payload of each job.
	Bury(ctx context.Context, s JobStep) (StepReply, error)

	// Delete removes queued jobs, or with JobStep.Payloads those payloads of them, so that a caller
	// who has copied payloads elsewhere removes exactly these, and not what was pushed since. A job
	// that loses its last payload is removed. With JobStep.First it removes only the first payload
	// of each job.
	Delete(ctx context.Context, s JobStep) (StepReply, error)

	// Cancel requests that claimed jobs end. Their owner learns of it with its next turn, cancels
	// their handlers, and drops or requeues the jobs. Ids that are not claimed are ignored and not
	// counted. If a call is repeated, the last Drop counts; a store may or may not count a repeated
	// call that changes nothing.
	Cancel(ctx context.Context, r CancelRequest) (StepReply, error)

	// Revive requeues dead payloads by docs/rules.md 2, last row.
	Revive(ctx context.Context, s DeadLetterStep) (StepReply, error)

	// Purge removes dead payloads.
	Purge(ctx context.Context, s DeadLetterStep) (StepReply, error)

	// Edit replaces the Data of one dead payload and keeps its Score and Meta. If the dead letter
	// already has the new bytes, the two payloads merge. The ChangedAt of the dead letter becomes
	// now; its Error and Group stay. A payload that does not exist is not counted. A repeated call
	// changes nothing more, unless the dead letter has received the old bytes again.
	Edit(ctx context.Context, r EditRequest) (StepReply, error)

	// Import adds dead letters of another morgue to this one, or jobs of another queue to this one,
	// unchanged.
	//
	// A dead letter keeps its payloads with Score and Meta, ChangedAt, Error and Group. It does not
	// run, and queued and claimed jobs of its id stay.
	//
	// If the morgue already has the id, the two dead letters are united. Their payloads merge by
	// the queue's rule; on a tie the payload that was there stays. ChangedAt, Error and Group are
	// those of the dead letter that changed later; on a tie those of the one that was there. The
	// dead letter is counted in its group as buried at its ChangedAt, and in core.OtherGroup if the
	// shard has core.MaxGroups other groups.
	//
	// Handled counts the dead letters that are new or were changed. So a repeated call changes and
	// counts nothing more, except that payloads that were revived or purged meanwhile come back. A
	// ChangedAt may be in the future; until then a step with a Before skips the dead letter.
	//
	// A job keeps its payloads with Score and Meta, and its State, but a FirstPush in the future
	// becomes now: else steps with a Before would skip the job until then. If the id has a queued
	// job, the payloads merge into it by the queue's rule, and the State becomes that of
	// core.MergeImport. A claimed job stays; the imported one waits behind it, like a push, and a
	// dead letter of its id stays. Handled counts all jobs that the step has reached, whether they
	// changed anything or not. To repeat the call changes nothing more, except that jobs that were
	// claimed or deleted meanwhile come back, and that payloads that the rule drops count again as
	// superseded.
	//
	// Errors: those of ImportRequest.Validate, and ErrShardCountMismatch if the layout is not the
	// queue's, and ErrNotPaused if the request is OnlyPaused and the shard is not paused: then
	// nothing is stored. ErrFull.
	Import(ctx context.Context, r ImportRequest) (StepReply, error)
}

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
	// Failed limits the step to jobs with a failure.
	Failed bool
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
// Payloads and First that do not match IDs, for both of them, and for those that exceed what a step
// moves. It returns core's error for a payload or a score that docs/rules.md refuses.
func (s *JobStep) Validate() error {
	if err := validateStep(s.Shard, len(s.IDs)); err != nil || s.Payloads == nil && s.First == nil {
		return err
	}
	switch {
	case s.Payloads != nil && s.First != nil:
		return fmt.Errorf("%w: Payloads and First in one step; give one of them", ErrInvalidRequest)
	case s.First == nil && len(s.Payloads) != len(s.IDs):
		return fmt.Errorf("%w: payloads of %d jobs for %d ids; give one element for each id", ErrInvalidRequest, len(s.Payloads), len(s.IDs))
	case s.First != nil && len(s.First) != len(s.IDs):
		return fmt.Errorf("%w: %d first payloads for %d ids; give one for each id", ErrInvalidRequest, len(s.First), len(s.IDs))
	}
	var bound core.Bound
	ids := make(map[string]bool, len(s.IDs))
	for i, id := range s.IDs {
		switch {
		case ids[id]:
			return fmt.Errorf("%w: id %q occurs twice; name all its payloads at once", ErrInvalidRequest, id)
		case s.Payloads != nil && bound.Take(s.Payloads[i]) < len(s.Payloads[i]):
			return fmt.Errorf("%w: the payloads of id %q exceed the %d payloads or %d bytes of a step; name the rest in another call",
				ErrInvalidRequest, id, core.MaxTurnPayloads, core.MaxStepBytes)
		case s.First != nil && bound.Take([]core.Payload{{Data: s.First[i]}}) == 0:
			return fmt.Errorf("%w: the first payloads exceed the %d bytes of a step at id %q; name the rest in another call",
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

// validateNamed returns core's error for the first invalid one of the payloads that a step names.
// Ids may be such that no job has them, so it does not check them.
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
	return (s.Before == 0 || j.FirstPush < s.Before) && (!s.Failed || j.RetryCount >= 0)
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
	// over all, 0 selects no dead letter.
	Before core.Instant
	// Group limits a step over all to the dead letters of that group, as [Inspector].Groups counts
	// them. Empty means all groups.
	Group string
	// Limit is the maximum number of dead letters to handle if DeadLetters is nil. 0 means MaxStep,
	// which is also the maximum. They are handled in order of (ChangedAt, id).
	Limit int
}

// Validate returns [ErrInvalidRequest] for too many entries, a shard below 0, a Group together with
// DeadLetters, and a Group that no dead letter can have.
func (s *DeadLetterStep) Validate() error {
	if s.Group != "" && s.DeadLetters != nil {
		return fmt.Errorf("%w: group %q together with named dead letters; name only one of them", ErrInvalidRequest, s.Group)
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
	// removed; otherwise it keeps its ChangedAt, Error and Group.
	Payloads [][]byte
}

// CancelRequest selects claimed jobs of one shard.
type CancelRequest struct {
	Shard core.Shard
	// IDs are the ids of the jobs, at most MaxStep. Ids of other shards are ignored.
	IDs []string
	// Drop removes the jobs when they end. Otherwise they are requeued.
	Drop bool
}

// Validate returns [ErrInvalidRequest] for too many ids or a shard below 0.
func (r *CancelRequest) Validate() error {
	return validateStep(r.Shard, len(r.IDs))
}

// EditRequest replaces one dead payload.
type EditRequest struct {
	Shard core.Shard
	ID    string
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
	// entry that goes in parts is counted by the step that finishes it.
	Handled int
	// Reached is the number of the step's IDs or DeadLetters, from the first, that the step has
	// dealt with, including those that it skipped. It is the number of all IDs for Cancel, and 0
	// for Edit and for a step that names no entry. The caller continues with the entries from
	// Reached on. Repeating all of them could change jobs or dead letters that came meanwhile.
	Reached int
	// More is true if a step over all dead letters left some of them, or a part of one.
	More bool
	// Now is the store's clock.
	Now core.Instant
}

// RecountRequest is a request for one step of a recount.
type RecountRequest struct {
	Shard core.Shard
	// After is the Next of the previous step. It is empty for the first step.
	After string
	// Limit is the approximate number of entries to go through. 0 means MaxStep, which is also the
	// maximum.
	Limit int
}

// Validate returns [ErrInvalidRequest] for a shard below 0.
func (r *RecountRequest) Validate() error { return validateStep(r.Shard, 0) }

// Size returns Limit with its default and maximum applied.
func (r *RecountRequest) Size() int { return stepSize(r.Limit) }

// RecountReply is the result of a step of Recount.
type RecountReply struct {
	// Before is what Stats returned of the shard before the step, and After what it returns since.
	// Changes that others made meanwhile are in both, so the difference is what the step corrected.
	Before, After Counts
	// Counted is the number of queued, claimed and dead entries that the step has counted. Over all
	// steps it is at least the number of entries that existed the whole time.
	Counted int
	// Next is the position at which the next step continues. It is empty when all entries are
	// counted. Only the same store can read it.
	Next string
}

// Then returns the sum of two steps; next is the later one. Changes that others made between the
// steps are in Before and After. The Oldest of Before is the value that the first step that changed
// it found.
func (r RecountReply) Then(next RecountReply) RecountReply {
	sum := RecountReply{Before: r.Before, After: next.After, Counted: r.Counted + next.Counted, Next: next.Next}
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
		return fmt.Errorf("%w: shard %v; name a queue, and a shard from 0 on", ErrInvalidRequest, shard)
	}
	if entries > MaxStep {
		return fmt.Errorf("%w: %d entries in a step, at most %d", ErrInvalidRequest, entries, MaxStep)
	}
	return nil
}
