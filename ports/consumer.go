package ports

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// Consumer is how work is taken and settled. The engine uses it.
//
// A shard has at most one owner by its lease. Each Acquire that starts a lease
// returns a new fencing token, larger than any that the shard had before:
// max(last token + 1, the store's clock in µs). Owner and token decide who may
// turn, renew or release, not the expiry: until somebody else acquires, a late call
// counts. A lease has run out when its expiry is not after now.
//
// Every method returns [ErrInvalidRequest] for a shard that its queue does not have;
// Acquire compares the layout first.
//
// Acquire and Turn do bounded work, whatever lies in the shard: what one hands over,
// claims or moves is at most core.MaxTurnPayloads payloads and core.MaxStepBytes of their
// Data (core.Bound), of which the first always passes. What a turn costs depends on what
// it settles and claims, not on what waits behind it.
type Consumer interface {
	// Acquire makes the caller the owner of a shard if the shard is free, if its lease
	// has run out, or if the caller owns it already, and looks when the next job could
	// be claimed. It is atomic.
	//
	// Attempt distinguishes a repeat from a new attempt. The owner's last attempt
	// again, while that lease lasts, returns the same token and claims again, renews
	// the lease, looks again and resets nothing, also after turns. After the lease has run out it
	// starts a new one. A larger attempt always starts a new lease, also over the
	// owner's own.
	// The owner's attempts are forgotten when somebody else acquires.
	//
	// Jobs that an earlier lease left claimed stay claimed, with their receipts, and
	// pass to the new lease, whose owner settles them as core.RetryPolicy.Recover
	// says. The reply has the first of them in order of id, as far as the bounds allow;
	// a claim comes whole. The rest, and those that the store could not reach now, are
	// TurnReply.Orphans of later turns. A repeat hands over nothing new: of the jobs that
	// were handed over under this lease it returns those that are still claimed, the
	// first in order of id, as far as the bounds allow. Acquiring does not count as a
	// recovery.
	//
	// A lease whose expiry is further away than its own TTL, because the clock
	// stepped back, expires that TTL from now; a refused Acquire stores the new expiry.
	//
	// Errors: ErrInvalidRequest; ErrUnknownQueue; ErrShardCountMismatch;
	// ErrStaleAttempt for an attempt below the owner's last, or for the last
	// after its Release; a *HeldError.
	Acquire(ctx context.Context, r AcquireRequest) (AcquireReply, error)

	// Turn settles what is finished, renews the lease and claims the next jobs,
	// in this order, atomically. The holder numbers its turns 1, 2, 3 …, with
	// one in flight. The store compares Number with the last that it carried out
	// under this lease (0 after Acquire):
	//
	//   last+1  settle, begin, renew, claim; the number is used up
	//   last    a repeat: apply, count and claim nothing, ignore the request's
	//           other fields but TTL, renew, and return in their first order the
	//           jobs that still carry this receipt, with the same orphans as far
	//           as they are still claimed, and no Skipped, Deferred or NotBegun;
	//           TurnReply.Repeat is true
	//   less    ErrStaleTurn, nothing is written
	//   more    ErrLeaseLost, nothing is written: the store has lost turns
	//
	// A turn with number last+1 that has nothing to settle or begin,
	// finds nothing to claim and hands over no orphan writes nothing,
	// does not renew and does not use up its number, as TurnReply.Last shows. But
	// one that is Resent always uses up its number, so that its first call, should
	// it arrive late, is a repeat or stale, and a number never has two contents.
	//
	// A store does not repeat a call by itself. The caller repeats one that failed, and
	// sees from Repeat whether it had been carried out before.
	//
	// Settling. A settlement whose (ID, Receipt) is not claimed is skipped, not
	// counted, and reported; so is the second one of an id in a turn. What a
	// settlement does to its job is core.Settlement.Apply, and the merge rules of
	// RULES 2 for what is put back and what is buried. A settlement whose job the
	// store can't reach now, because a caller's transaction has locked it, is
	// reported as deferred, changes nothing, and must be sent again with a later
	// turn. So is one that does not fit the bounds: settlements are applied in order, and
	// from the first on whose payloads, those that it puts back or buries, do not fit
	// any more, all are deferred but those that are core.Settlement.Plain, which
	// fit. (A store that must read a claim to end it may defer Plain ones too, after
	// core.DefaultTurnBytes of those.) So does the first of the others: each turn gets on,
	// and a deferred one that leads the next turn's settlements is applied by it. A store
	// may leave out of the count what it moves without touching each payload, such as a whole job
	// whose id has nothing queued. A paused shard settles.
	//
	// Handing over. A turn, of a paused shard too, returns the next of what earlier
	// leases left and this lease was not handed yet, in order of id, as far as the
	// bounds allow: TurnReply.Orphans. Each is handed over once, but for repeats, and one
	// settled meanwhile is passed over.
	//
	// Beginning. RULES 4 has a recovered job begin before its handler runs: each
	// claimed job that Begin names is marked as begun until it is settled. One
	// whose (ID, Receipt) is not claimed after the settlements, or that the store
	// can't reach now, is reported as not begun.
	//
	// Claiming. Due jobs (PerformAt <= now) in order of (PerformAt, id), put-backs
	// of this turn included, as core.Budget allows; a turn that hands over orphans may
	// claim less, since both together keep to the bounds. Ids that are claimed after
	// this turn's settlements are passed over. A job with
	// core.AloneRecoveries or more Recoveries is claimed only when nothing else
	// of its shard is, and alone; claiming stops in front of it, so it is never
	// overtaken, and while it is claimed nothing else is. The payloads of a job that
	// do not fit stay queued with its State. A claimed job gets the receipt (token,
	// number). Of a paused shard nothing is claimed, whatever is asked for.
	//
	// Errors: ErrInvalidRequest; ErrUnknownQueue; ErrLeaseLost if the owner or
	// the token is not the shard's; ErrStaleTurn. A turn of unknown outcome is
	// repeated as it was.
	Turn(ctx context.Context, r TurnRequest) (TurnReply, error)

	// Renew extends the lease to the TTL from now and, atomically with that, looks
	// when the next job could be claimed. Repeating it renews again.
	//
	// Errors: ErrInvalidRequest; ErrUnknownQueue; ErrLeaseLost.
	Renew(ctx context.Context, r RenewRequest) (RenewReply, error)

	// Release ends the lease and its token at once: the shard is free. Jobs still
	// claimed stay claimed for the next owner. A Notifier notifies those who wait for
	// the shard.
	//
	// Errors: ErrUnknownQueue; ErrLeaseLost, also when it is repeated.
	Release(ctx context.Context, l Lease) error

	// Heads returns when the next job of each shard could be claimed, in the order
	// asked. It writes nothing; each head is exact for its own instant. It needs no
	// lease.
	//
	// A store in several parts answers shard by shard: those of a part that it can't
	// reach now, or that has not answered when ctx ends, are Unreached, and the heads
	// of all others are returned.
	//
	// Errors: ErrUnknownQueue; any other only if no shard was reached.
	Heads(ctx context.Context, shards []core.Shard) (HeadsReply, error)
}

// Lease is how an owner proves that it holds a shard: all fields must match the
// shard's lease.
type Lease struct {
	Shard core.Shard
	// Owner is unique to a process run: an id drawn at its start.
	Owner string
	// Token is the fencing token that Acquire returned.
	Token int64
}

// AcquireRequest asks for a shard.
type AcquireRequest struct {
	Shard      core.Shard
	Shards     int
	Generation int64
	// Owner is non-empty and unique to a process run.
	Owner string
	// Attempt is above 0 and rises with each new attempt of the owner at the
	// shard.
	Attempt int64
	// TTL is how long the lease lasts unless renewed, at least 1 ms.
	TTL time.Duration
}

// Validate returns [ErrInvalidRequest] for an owner that is empty or no [core.Text], an attempt below 1 or a
// TTL below 1 ms.
func (r *AcquireRequest) Validate() error {
	if r.Owner == "" {
		return fmt.Errorf("%w: acquire %v without an owner", ErrInvalidRequest, r.Shard)
	}
	if err := validateTexts("the owner", r.Owner); err != nil {
		return err
	}
	if r.Attempt < 1 {
		return fmt.Errorf("%w: attempt %d; attempts count from 1", ErrInvalidRequest, r.Attempt)
	}
	return validateTTL(r.TTL)
}

// AcquireReply is what Acquire returns.
type AcquireReply struct {
	Token int64
	// Now is the store's clock.
	Now core.Instant
	// Remaining is how long the lease lasts from Now.
	Remaining time.Duration
	// Claims are the jobs that earlier leases left, in order of id: the first that the
	// bounds allow and the store could reach.
	Claims []core.Claim
	// Cancellations are as in TurnReply.
	Cancellations []Cancellation
	// Head and Paused are as in TurnReply. An owner makes no turn before Head, so a
	// store that does not look at all must say now, and not leave Head zero.
	Head   core.Head
	Paused bool
}

// TurnRequest is one exchange between a lease's holder and the store.
type TurnRequest struct {
	Lease  Lease
	Number int64
	// TTL is how long the lease is to last from now, at least 1 ms.
	TTL time.Duration
	// Resent means that an earlier call of this turn was not answered and may still
	// arrive. The other fields are as they were in that call.
	Resent bool
	// Settlements are applied in order, at most core.MaxTurnJobs.
	Settlements []core.Settlement
	// Begin names the recovered jobs whose handlers start once this turn has
	// answered, at most core.MaxTurnJobs.
	Begin []core.ClaimRef
	// Want is how many jobs to claim, at most core.MaxTurnJobs; more is taken as that.
	// 0 claims nothing.
	Want int
	// PerJob is how many payloads of one job to claim. 0 is
	// core.MaxTurnPayloads.
	PerJob int
	// Bytes is how many bytes of payload to claim, at most core.MaxStepBytes; more is
	// taken as that. 0 is core.DefaultTurnBytes.
	Bytes int
	// Node is the node's name, which is shown with the claims.
	Node string
}

// Validate returns [ErrInvalidRequest] for a number below 1, a TTL below 1 ms,
// too many settlements or jobs to begin, or a Node that is no [core.Text].
func (r *TurnRequest) Validate() error {
	if r.Number < 1 {
		return fmt.Errorf("%w: turn %d; turns count from 1", ErrInvalidRequest, r.Number)
	}
	if len(r.Settlements) > core.MaxTurnJobs {
		return fmt.Errorf("%w: %d settlements in a turn, at most %d", ErrInvalidRequest, len(r.Settlements), core.MaxTurnJobs)
	}
	if len(r.Begin) > core.MaxTurnJobs {
		return fmt.Errorf("%w: a turn that begins %d jobs, at most %d", ErrInvalidRequest, len(r.Begin), core.MaxTurnJobs)
	}
	if err := validateTexts("the node", r.Node); err != nil {
		return err
	}
	return validateTTL(r.TTL)
}

// Budget returns the budget of what the turn may claim.
func (r *TurnRequest) Budget() core.Budget {
	return core.Budget{Jobs: r.Want, PerJob: r.PerJob, Bytes: r.Bytes}
}

// TurnReply is what Turn returns.
type TurnReply struct {
	// Last is the number of the lease's last turn that was carried out: the
	// request's, unless that turn wrote nothing.
	Last int64
	// Repeat reports that a turn of this number had been carried out before, and
	// that this call applied, begun and claimed nothing.
	Repeat bool
	// Now is the store's clock, and Remaining how long the lease lasts from it.
	Now       core.Instant
	Remaining time.Duration
	// Claims are the jobs this turn claimed, in order of (PerformAt, id).
	Claims []core.Claim
	// Orphans are jobs that earlier leases left and that neither Acquire nor an earlier
	// turn has handed over, in order of id; they are settled like Acquire's Claims.
	Orphans []core.Claim
	// Skipped are the positions in Settlements whose jobs were not claimed, ascending.
	Skipped []int
	// Deferred are the positions in Settlements that must be sent again, ascending. One
	// after another that was applied perhaps only did not fit, and is sent again at once;
	// for the others something has to end first.
	Deferred []int
	// NotBegun are the positions in Begin of jobs that were not marked as begun,
	// ascending. Their handlers must not start.
	NotBegun []int
	// Head is when the shard's next job could be claimed, if nothing were pushed or
	// settled; not OK while the queue is paused. While jobs that earlier leases left are
	// still to be handed over it is no later than now, unless the queue is paused. A
	// store that can't tell at the moment says now, so that the next turn looks.
	Head core.Head
	// Paused reports that the queue is paused.
	Paused bool
	// Cancellations are the claimed jobs of the shard that an operator has cancelled,
	// in order of id, in each reply until they are settled.
	Cancellations []Cancellation
}

// Cancellation is a claimed job whose handler is to be stopped.
type Cancellation struct {
	ID      string
	Receipt core.Receipt
	// Drop removes the job when it ends; otherwise it is put back.
	Drop bool
}
