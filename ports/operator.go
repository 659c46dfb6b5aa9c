package ports

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
)

// MaxStep is the most entries that one step of an operator handles. It is also the
// default.
const MaxStep = 250

// Operator is what can be done by hand (RULES 7). Only Cancel touches claimed jobs.
//
// A call is one bounded step on one shard, atomic, so that bulk actions can be
// cancelled and report progress: the caller repeats the step with what it has not reached, or a
// step over all dead letters until its reply says that nothing is left. All jobs of a kind are
// found by [Inspector.Jobs] and handled by their ids, with what they were chosen for as
// conditions (JobStep).
//
// A step handles at most MaxStep entries, and moves or removes at most
// core.MaxTurnPayloads payloads and core.MaxStepBytes of their Data (core.Bound), of
// which the first always passes. A store may leave out of the count what it moves or
// removes without touching each payload. An entry with more payloads than
// a step moves goes in parts, lowest first: what is left of a job or dead letter keeps its
// State, or its ChangedAt, Error and Group, until a later step finishes and counts it. Each
// step that has something to handle gets on.
//
// Every method returns [ErrUnknownQueue] for a queue
// that was not declared, and [ErrInvalidRequest] for a step that its Validate
// refuses or a shard that the queue does not have. A call of unknown outcome may be
// repeated: what it has done already is not done twice, and not counted again.
type Operator interface {
	// Pause stops claims on all shards of a queue; what is claimed goes on and
	// settles. It is atomic for each shard. Repeating it changes nothing.
	Pause(ctx context.Context, queue string) error

	// Resume ends a pause. Repeating it changes nothing.
	Resume(ctx context.Context, queue string) error

	// Forget removes a queue in which nothing is queued, claimed or dead and
	// whose shards nobody has leased: its record, counters and history. After it
	// the name can be declared anew, with another shard count too. It looks at
	// all shards before it removes the first, and each is removed atomically, so
	// that no push is lost; one that arrives in between stops it. The queue is
	// then still listed, pushes to shards that are gone get ErrUnknownQueue
	// until it is declared again, and Forget can be repeated.
	//
	// Errors: ErrUnknownQueue, also when it is repeated; ErrNotEmpty; a
	// *HeldError.
	Forget(ctx context.Context, queue string) error

	// Recount counts a shard's queued, claimed and dead entries one by one and
	// corrects what Stats and Groups say of them, should that differ. Processed and Failed
	// stay, and so do First and Last of a group; those of one that was not counted are by the
	// ChangedAt of its dead letters.
	//
	// A call is one step: the caller repeats it with the Next of the last reply until that is
	// empty. Then the counts are right, also if the shard was worked and changed between the
	// steps. A step goes through about Limit entries. A store may go through more, or all, where
	// that keeps no other call on the shard waiting. A recount that is not finished keeps
	// no state; until one is finished, counts that were wrong may be wrong otherwise. Repeating a
	// step, or all of them, changes nothing more.
	//
	// A store that keeps a record of the queue or of the shard beside the entries, and has lost
	// it, stores it again with the first step.
	//
	// Errors: those of Operator; ErrInvalidRequest for an After that no reply had.
	Recount(ctx context.Context, r RecountRequest) (RecountReply, error)

	// Expedite makes queued jobs due: PerformAt = min(PerformAt, now). Those that are due are not
	// counted.
	Expedite(ctx context.Context, s JobStep) (StepReply, error)

	// Bury moves queued jobs with all their payloads to the morgue, into the group
	// core.BuriedByHand. They keep their error, or get that text if it is empty.
	Bury(ctx context.Context, s JobStep) (StepReply, error)

	// Delete removes queued jobs.
	Delete(ctx context.Context, s JobStep) (StepReply, error)

	// Cancel requests that claimed jobs end: their owner learns of it with its next turn,
	// cancels their handlers, and drops the jobs or puts them back. Ids that are not
	// claimed are ignored and not counted. If it is repeated, the last Drop counts;
	// whether a repeat that changes nothing is counted is left open.
	Cancel(ctx context.Context, r CancelRequest) (StepReply, error)

	// Revive puts dead payloads back into the queue by RULES 2, last row.
	Revive(ctx context.Context, s DeadLetterStep) (StepReply, error)

	// Purge removes dead payloads.
	Purge(ctx context.Context, s DeadLetterStep) (StepReply, error)

	// Edit replaces one dead payload, keeping its Score and Meta. If the dead letter
	// has the new bytes already, the two merge. Its ChangedAt becomes now; its Error and Group stay. A payload
	// that is not there is not counted. Repeating it changes nothing more, unless the
	// dead letter has received the old bytes again.
	Edit(ctx context.Context, r EditRequest) (StepReply, error)

	// Import puts dead letters that another morgue had into this one, as they were there: payloads with Score and
	// Meta, ChangedAt, Error and Group. Nothing in it runs, and what is queued or claimed of their ids stays. One whose id is in the
	// morgue already is united with it: of equal bytes the smaller score stays, on a tie the one that was there; ChangedAt,
	// Error and Group are those of the one that changed later, on a tie of the one that was there. It is counted in its
	// group as buried at its ChangedAt, and in core.OtherGroup if the shard has core.MaxGroups others.
	//
	// Handled counts the dead letters that are new or of which something changed. So repeating it changes and counts nothing more;
	// but what was revived or purged meanwhile comes back. A ChangedAt may be in the future: a step that takes what changed before
	// an instant passes over it until then.
	//
	// Errors: those of ImportRequest.Validate, and ErrShardCountMismatch for another layout than the queue's: then nothing
	// is stored. ErrFull.
	Import(ctx context.Context, r ImportRequest) (StepReply, error)
}

// JobStep chooses queued jobs of one shard.
type JobStep struct {
	Shard core.Shard
	// IDs are the ids to handle, in order, at most MaxStep; ids of other shards are
	// ignored, as everywhere in steps, and so are ids that no job can have.
	// StepReply.Reached says how far the step came. None means no job.
	IDs []string
	// Before limits the step to jobs whose FirstPush is before it: so a job that was chosen from a
	// list, has ended and was pushed anew is left alone. 0 is no bound.
	Before core.Instant
	// Failed limits the step to jobs with a failure.
	Failed bool
}

// Validate returns [ErrInvalidRequest] for too many ids or a shard below 0.
func (s *JobStep) Validate() error {
	return validateStep(s.Shard, len(s.IDs))
}

// About reports whether the step is about a queued job of one of its IDs.
func (s *JobStep) About(j *core.State) bool {
	return (s.Before == 0 || j.FirstPush < s.Before) && (!s.Failed || j.RetryCount >= 0)
}

// DeadLetterStep chooses dead payloads of one shard.
type DeadLetterStep struct {
	Shard core.Shard
	// DeadLetters are those to handle, in order, at most MaxStep; ids of other shards are
	// ignored. StepReply.Reached says how far the step came. nil means all that last changed before Before, and an empty
	// list means nothing.
	DeadLetters []DeadLetterRef
	// Before limits the step to dead letters that last changed before it: the store's now when the action
	// began. 0 is no limit for those that are named, and none of all.
	Before core.Instant
	// Group limits a step over all to the dead letters of a group, as [Inspector] counts them; empty is all.
	Group string
	// Limit is how many dead letters to handle if DeadLetters is nil: 0 is MaxStep,
	// which is also the most. They are taken in order of (ChangedAt, id).
	Limit int
}

// Validate returns [ErrInvalidRequest] for too many entries, a shard below 0, a Group beside DeadLetters, and one
// that no dead letter can be of.
func (s *DeadLetterStep) Validate() error {
	if s.Group != "" && s.DeadLetters != nil {
		return fmt.Errorf("%w: group %q of dead letters that are named; leave one out", ErrInvalidRequest, s.Group)
	}
	if err := validateGroup(s.Group); err != nil {
		return err
	}
	return validateStep(s.Shard, len(s.DeadLetters))
}

// Size is Limit with its default and bound.
func (s *DeadLetterStep) Size() int { return stepSize(s.Limit) }

// DeadLetterRef names payloads of one dead letter.
type DeadLetterRef struct {
	ID string
	// Payloads are the Data of the payloads; nil means all of them, and an empty list
	// means nothing. Payloads that are not there are ignored. A dead letter that loses
	// its last payload is removed; one that keeps some keeps its ChangedAt, Error and Group.
	Payloads [][]byte
}

// CancelRequest chooses claimed jobs of one shard.
type CancelRequest struct {
	Shard core.Shard
	// IDs are at most MaxStep; ids of other shards are ignored.
	IDs []string
	// Drop removes the jobs when they end; otherwise they are put back.
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
	// Old is the Data to replace, New what replaces it.
	Old, New []byte
}

// Validate returns [ErrInvalidRequest] for a shard below 0.
func (r *EditRequest) Validate() error {
	return validateStep(r.Shard, 1)
}

// StepReply is what a step returns.
type StepReply struct {
	// Handled is how many jobs, dead letters or, for Edit, payloads were changed. One
	// that goes in parts is counted by the step that finishes it.
	Handled int
	// Reached is how many of the IDs or DeadLetters that the step names it has dealt
	// with, from the first, those that it passed over included; all of them for Cancel; 0 for a step that names none, and
	// for Edit. The caller goes on with those from Reached on. To repeat all could change
	// what was pushed or buried meanwhile.
	Reached int
	// More reports that a step over all dead letters left some, be it a part of one.
	More bool
	// Now is the store's clock.
	Now core.Instant
}

// RecountRequest asks for a step of a recount.
type RecountRequest struct {
	Shard core.Shard
	// After is the Next of the step before; empty is the first step.
	After string
	// Limit is about how many entries to go through: 0 is MaxStep, which is also the most.
	Limit int
}

// Validate returns [ErrInvalidRequest] for a shard below 0.
func (r *RecountRequest) Validate() error { return validateStep(r.Shard, 0) }

// Size is Limit with its default and bound.
func (r *RecountRequest) Size() int { return stepSize(r.Limit) }

// RecountReply is what a step of Recount returns.
type RecountReply struct {
	// Before is what Stats said of the shard before the step, After what it says since. What
	// others have changed meanwhile is in both, so the difference is what the step corrected.
	Before, After Counts
	// Counted is how many queued, claimed and dead entries the step has counted. Over all steps
	// it is at least the number of those that were there all the time.
	Counted int
	// Next is where the next step goes on from; empty if all is counted. Only the same store
	// reads it.
	Next string
}

// Then returns what two steps have done, of which next is the later one. What others have changed
// between them is in Before and After. The Oldest of Before is as the first step that changed it
// found it.
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
		return fmt.Errorf("%w: shard %v", ErrInvalidRequest, shard)
	}
	if entries > MaxStep {
		return fmt.Errorf("%w: %d entries in a step, at most %d", ErrInvalidRequest, entries, MaxStep)
	}
	return nil
}
