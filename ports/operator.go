package ports

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
)

// MaxStep is the most entries that one step of an operator handles, and the
// default.
const MaxStep = 250

// Operator is what can be done by hand (RULES 7). A claimed job is never
// touched; only Cancel reaches it.
//
// A call is one bounded step on one shard, atomic, so that bulk actions can be
// cancelled and report progress: the caller repeats the step until its reply
// says that nothing is left, or until it has handled as many entries as the
// shard held when it began. Every method returns ErrUnknownQueue for a queue
// that was not declared, and ErrInvalidRequest for a step that its Validate
// refuses or a shard that the queue does not have. An operator's call of unknown outcome may be repeated: what it has
// done already is not done twice, only not counted again.
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
	// corrects what Stats says of them, should that differ. Processed and Failed
	// stay. It is atomic for the shard, and it alone takes as long as there are
	// entries. Repeating it changes nothing more.
	Recount(ctx context.Context, shard core.Shard) (RecountReply, error)

	// Expedite makes queued jobs due: PerformAt = min(PerformAt, now). All of the
	// shard, the last by (PerformAt, id) first, unless ids are given.
	Expedite(ctx context.Context, s JobStep) (StepReply, error)

	// Bury moves queued jobs whole to the morgue, keeping their error, or
	// core.BuriedByHand where they have none. Those with a failure, the first by
	// (PerformAt, id) first, unless ids are given.
	Bury(ctx context.Context, s JobStep) (StepReply, error)

	// Delete removes queued jobs. Those with a failure, in the same order, unless
	// ids are given.
	Delete(ctx context.Context, s JobStep) (StepReply, error)

	// Cancel marks claimed jobs: their owner learns it with its next turn, ends
	// them, and drops them or puts them back. Ids that are not claimed are
	// ignored and not counted. Repeated, the last Drop holds; whether a repeat that
	// changes nothing is counted is left open.
	Cancel(ctx context.Context, r CancelRequest) (StepReply, error)

	// Revive puts dead payloads back into the queue by RULES 2, last row.
	Revive(ctx context.Context, s DeadLetterStep) (StepReply, error)

	// Purge removes dead payloads.
	Purge(ctx context.Context, s DeadLetterStep) (StepReply, error)

	// Edit replaces one dead payload, keeping its Score and Meta. New bytes that
	// the entry has already merge with them. The entry's ChangedAt becomes now.
	// A payload that is not there is not counted. Repeating it changes nothing
	// more, unless the entry has got the old bytes again.
	Edit(ctx context.Context, r EditRequest) (StepReply, error)
}

// JobStep chooses queued jobs of one shard.
type JobStep struct {
	Shard core.Shard
	// IDs are the ids to handle, at most MaxStep; ids of other shards are
	// ignored. nil is all that the method speaks of, and an empty list none.
	IDs []string
	// Limit is how many jobs to handle if no ids are given: 0 is MaxStep, which
	// is also the most.
	Limit int
}

// Validate returns ErrInvalidRequest for too many ids or a shard below 0.
func (s *JobStep) Validate() error {
	return validateStep(s.Shard, len(s.IDs))
}

// Size is Limit with its default and bound.
func (s *JobStep) Size() int { return stepSize(s.Limit) }

// DeadLetterStep chooses dead payloads of one shard.
type DeadLetterStep struct {
	Shard core.Shard
	// Entries are the entries to handle, at most MaxStep; ids of other shards
	// are ignored. nil is all that last changed before Before, and an empty list
	// none.
	DeadLetters []DeadLetterRef
	// Before bounds a step over all: the store's now when the action began.
	Before core.Instant
	// Limit is how many entries to handle if none are given: 0 is MaxStep,
	// which is also the most. The first by (ChangedAt, id) come first.
	Limit int
}

// Validate returns ErrInvalidRequest for too many entries or a shard below 0.
func (s *DeadLetterStep) Validate() error {
	return validateStep(s.Shard, len(s.DeadLetters))
}

// Size is Limit with its default and bound.
func (s *DeadLetterStep) Size() int { return stepSize(s.Limit) }

// DeadLetterRef names payloads of one morgue entry.
type DeadLetterRef struct {
	ID string
	// Payloads are the Data of those meant; nil is all, and an empty list none.
	// What is not there is
	// ignored. An entry that loses its last payload is gone; one that keeps some
	// keeps its ChangedAt and Error.
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

// Validate returns ErrInvalidRequest for too many ids or a shard below 0.
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

// Validate returns ErrInvalidRequest for a shard below 0.
func (r *EditRequest) Validate() error {
	return validateStep(r.Shard, 1)
}

// StepReply is the answer to a step.
type StepReply struct {
	// Handled is how many jobs, entries or, for Edit, payloads were changed.
	Handled int
	// More reports that a step without ids left something of its kind.
	More bool
	// Now is the store's clock.
	Now core.Instant
}

// RecountReply is the answer to Recount.
type RecountReply struct {
	// Before is what Stats said of the shard, After what it says now.
	Before, After Counts
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
