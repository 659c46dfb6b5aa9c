package ports

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
)

// Consumer leases shards, claims jobs and settles them. The engine of a server uses it.
//
// A shard has at most one owner, by its lease. Each Acquire that starts a lease returns a new
// fencing token, larger than every earlier token of the shard: max(last token + 1, the store's
// clock in µs). Turn, Renew and Release check the owner and the token, not the expiry. So a call
// after the expiry still succeeds, until the shard is acquired again or released. A lease has run
// out when its expiry is not after now.
//
// Every method returns [ErrInvalidRequest] for a shard that its queue does not have. Acquire
// compares the layout first.
//
// Acquire and Turn do bounded work, whatever the shard holds. The jobs that one call hands over,
// claims or moves have at most core.MaxTurnPayloads payloads and core.MaxStepBytes of Data in
// total, as core.Bound counts them. The first payload is always within the bounds, however large it
// is. Only an acquire is strict: it hands over at most core.AcquireBytes. The cost of a turn
// depends on what it settles and claims, not on the number of jobs that wait.
type Consumer interface {
	// Acquire makes the caller the owner of a shard if the shard is free, if its lease has run out,
	// or if the caller already owns it. It also returns when the next job could be claimed. It is
	// atomic.
	//
	// Attempt distinguishes a repeated call from a new attempt. If the owner repeats its last
	// attempt while that lease lasts, Acquire returns the same token, renews the lease, determines
	// the head again and resets nothing, even after turns. If the lease has run out, the repeated
	// attempt starts a new lease. A larger attempt always starts a new lease, even over the owner's
	// own. The attempts of an owner are forgotten when another owner acquires the shard.
	//
	// Jobs that an earlier lease left claimed stay claimed, with their receipts, and pass to the
	// new lease. The new owner settles them as core.RetryPolicy.Recover decides. The reply has the
	// first of them in order of id, as far as the bounds of an acquire allow. A claim is never
	// split, so the reply may have no claim. The remaining jobs, and those that the store can't
	// reach now, are TurnReply.Orphans of later turns. A repeated call hands over no further job.
	// It returns the jobs that were handed over under this lease and are still claimed, in order of
	// id, as far as the bounds allow. An Acquire does not count as a recovery.
	//
	// If the clock stepped back, the expiry of a lease can be further away than its own TTL. Such a
	// lease expires that TTL from now; an Acquire that is refused stores the new expiry.
	//
	// Errors: ErrInvalidRequest; ErrUnknownQueue; ErrShardCountMismatch; ErrStaleAttempt for an
	// attempt below the owner's last, or for the last after its Release; a *HeldError.
	Acquire(ctx context.Context, r AcquireRequest) (AcquireReply, error)

	// Turn settles the finished jobs, renews the lease and claims the next jobs, in this order,
	// atomically. The owner numbers its turns 1, 2, 3 … and has one turn in flight at a time. The
	// store compares Number with the number of the last turn that it carried out under this lease
	// (0 after an Acquire that started the lease):
	//
	//   last+1  settle, end parts, begin, renew, claim; the number is used up
	//   last    a repeat: apply, count and claim nothing, ignore the request's
	//           other fields except TTL, renew, and return in their first order
	//           the jobs that still carry this receipt, with the same orphans as
	//           far as they are still claimed, and no Skipped, Deferred,
	//           SkippedParts or NotBegun; TurnReply.Repeat is true
	//   less    ErrStaleTurn, nothing is written
	//   more    ErrLeaseLost, nothing is written: the store has lost turns
	//
	// A turn with number last+1 that has no settlement, part or job to begin, finds no job to claim
	// and hands over no orphan writes nothing, does not renew and does not use up its number, as
	// TurnReply.Last shows. A turn that is Resent always uses up its number. So if its first call
	// arrives late, that call is a repeat or stale, and a number never has two contents.
	//
	// A store does not repeat a turn by itself. The caller repeats a turn whose outcome is unknown,
	// and TurnReply.Repeat reports whether the turn had been carried out before.
	//
	// Settling. A settlement whose (ID, Receipt) is not claimed is skipped, is not counted, and is
	// reported as Skipped. The same holds for each further settlement of an id after one was
	// applied. Of settlements of one id with different receipts, the one that is claimed is
	// applied, whatever its place. core.Settlement.Apply defines the effect of a settlement on its
	// job, and docs/rules.md 2 the merging of requeued and buried payloads. A settlement is
	// deferred if the store can't reach its job now because a caller's transaction has locked it:
	// it changes nothing, is reported as Deferred, and must be sent again with a later turn.
	//
	// A settlement is deferred as well if it does not fit the bounds. Settlements are applied in
	// order. Once the requeued and buried payloads of one settlement do not fit, it and all later
	// settlements that are not core.Settlement.Plain are deferred. Plain settlements always fit. (A
	// store that must read a claim to end it may defer Plain settlements too, after
	// core.DefaultTurnBytes of them.) The first settlement that is not Plain always fits. So each
	// turn makes progress, and a deferred settlement that leads the settlements of the next turn is
	// applied by it. Payloads that a store moves without touching each of them need not count, for
	// example those of a whole job whose id has no queued job. A result counts as a payload, and a
	// settlement with one as a settlement that is not Plain. A paused shard settles jobs too.
	//
	// Recording. A settlement with a Past that is applied records it, as core.Past.Stored returns
	// it, unless TurnRequest.Keep keeps no record. The record replaces the former one of the id, also
	// if that has a later DoneAt. A settlement that is skipped or deferred records nothing. A turn
	// that has settlements, or parts with marks that it keeps, then removes the first records of the
	// shard by (DoneAt, id) while core.KeepPast.Removes reports true, at most core.MaxPastRemoved. So a
	// record stays as long as it is not older than Age, fewer than Count other records and marks of
	// the shard were stored since, and their results fit Bytes together with its own. It may stay
	// longer, since a store need not look for old records while no job is settled. If a turn keeps no
	// record, the Age of the last turn that kept some applies, and a store may leave the removal to
	// turns that come at least a third of the TTL after the last renewal. A store without room for
	// more data may leave out the Result.
	//
	// Marks. A settlement or a part with a Mark that is applied raises the mark of its id
	// (docs/rules.md 16), unless Keep keeps no record. The mark is stored beside the record of the id,
	// as a record of its own with the time of the call. It is never listed and not lowered, goes as
	// other records do, and counts among them. The mark of an id is the higher one of what is stored so
	// and the Score of its record, if that Raises.
	//
	// If the turn asks for Marks, each of its Claims has the mark that its id has after the settlements
	// and parts, and so has each claim of a repeat. Settlement.Stale is added to the count of stale
	// payloads.
	//
	// Parts. A part ends one payload of a claimed job as done, as core.PayloadSettlement.Apply
	// defines, and marks the job as begun, since its next payload runs when the turn has been
	// answered. No count changes. Parts are applied after the settlements. A part is skipped, and
	// reported as SkippedParts, if its (ID, Receipt) is not claimed, if the claim has no payload at
	// this position or no other payload, or if the store can't reach the job now. Parts are applied
	// in order, so a job may have several. A store may also skip a part, except the first one, to
	// bound the bytes that it writes. A part that was applied before has given its claim the
	// receipt core.Receipt.NextPart. Then it is not applied again, and is not skipped: the job is
	// marked as begun.
	//
	// Handing over. A turn, also of a paused shard, returns the next jobs that earlier leases left
	// claimed and that were not handed over under this lease, in order of id, as far as the bounds
	// and TurnRequest.Bytes allow: TurnReply.Orphans. The first of them always fits. Each is handed
	// over once, except for repeats. A job that was settled meanwhile is skipped.
	//
	// Beginning. By docs/rules.md 4 a recovered job begins before its handler runs: each claimed
	// job that Begin names is marked as begun until it is settled. A job whose (ID, Receipt) is not
	// claimed after the settlements and parts, or that the store can't reach now, is reported as
	// NotBegun.
	//
	// Claiming. Due jobs (PerformAt <= now) are claimed in order of (PerformAt, id), including jobs
	// that this turn requeued, as core.Budget allows. A turn that hands over orphans may claim
	// fewer jobs, since the bounds apply to orphans and claims together. Jobs whose ids are still
	// claimed after this turn's settlements are skipped. A job with core.AloneRecoveries or more
	// Recoveries is claimed only when no other job of its shard is claimed, and alone. Claiming
	// stops in front of such a job, so it is never overtaken. While it is claimed, no other job of
	// the shard is claimed. If some payloads of a job do not fit, they stay queued with the state
	// core.State.Rest. A claimed job gets the receipt (token, number). No job of a paused shard is
	// claimed, whatever Want is.
	//
	// Errors: ErrInvalidRequest; ErrUnknownQueue; ErrLeaseLost if the owner or the token is not
	// that of the shard's lease, or if the store has lost turns; ErrStaleTurn. If the outcome of a
	// turn is unknown, the caller sends the same turn again, with Resent.
	Turn(ctx context.Context, r TurnRequest) (TurnReply, error)

	// Renew makes the lease last for the TTL from now, even if that shortens it. In the same atomic
	// step it determines when the next job could be claimed. A repeated call renews again.
	//
	// Errors: ErrInvalidRequest; ErrUnknownQueue; ErrLeaseLost.
	Renew(ctx context.Context, r RenewRequest) (RenewReply, error)

	// Release ends the lease and its token at once: the shard is free. Jobs that are still claimed
	// stay claimed for the next owner. A Notifier sends a wake-up to the servers that wait for the
	// shard.
	//
	// Errors: ErrUnknownQueue; ErrLeaseLost, also for a repeated call.
	Release(ctx context.Context, l Lease) error

	// Heads returns when the next job of each shard could be claimed, in the order of the request.
	// It writes nothing and needs no lease. Each head is exact at some instant of the call, which
	// may be another one for each shard.
	//
	// A store in several parts answers shard by shard. Shards whose part can't be reached now, or
	// has not answered when ctx ends, are Unreached. The heads of all other shards are returned.
	//
	// Errors: ErrInvalidRequest; ErrUnknownQueue; any other error only if no shard was reached.
	Heads(ctx context.Context, shards []core.Shard) (HeadsReply, error)
}

// Lease proves that its owner holds a shard: all fields must match the shard's lease.
type Lease struct {
	Shard core.Shard
	// Owner is the id of one run of a server, drawn at its start.
	Owner string
	// Token is the fencing token that Acquire returned.
	Token int64
}

// AcquireRequest is a request for the lease of a shard.
type AcquireRequest struct {
	Shard core.Shard
	// Shards and Generation are the layout of the queue as the caller knows it; see DeclareReply.
	Shards     int
	Generation int64
	// Owner is as in Lease. It is not empty.
	Owner string
	// Attempt is above 0. It rises with each new attempt of the owner to acquire the shard.
	Attempt int64
	// TTL is how long the lease lasts from now unless it is renewed, at least 1 ms.
	TTL time.Duration
}

// Validate returns [ErrInvalidRequest] for an owner that is empty or not a [core.Text], an attempt
// below 1 or a TTL below 1 ms.
func (r *AcquireRequest) Validate() error {
	if r.Owner == "" {
		return fmt.Errorf("%w: the acquire of %v has no Owner; set it", ErrInvalidRequest, r.Shard)
	}
	if err := validateTexts("the owner", r.Owner); err != nil {
		return err
	}
	if r.Attempt < 1 {
		return fmt.Errorf("%w: attempt %d; attempts count from 1", ErrInvalidRequest, r.Attempt)
	}
	return validateTTL(r.TTL)
}

// AcquireReply is the result of Acquire.
type AcquireReply struct {
	// Token is the fencing token of the lease.
	Token int64
	// Now is the store's clock.
	Now core.Instant
	// Remaining is how long the lease lasts from Now.
	Remaining time.Duration
	// Claims are the first of the jobs that earlier leases left claimed, in order of id, as far as
	// they fit the bounds and the store could reach them.
	Claims []core.Claim
	// Cancellations are as in TurnReply.
	Cancellations []Cancellation
	// Head and Paused are as in TurnReply. An owner makes no turn to claim jobs before Head. So a
	// store that does not determine the head must return its now, not the zero Head.
	Head   core.Head
	Paused bool
}

// TurnRequest is one exchange between the owner of a lease and the store.
type TurnRequest struct {
	// Lease is the caller's lease of the shard. Number is the number of the turn, from 1.
	Lease  Lease
	Number int64
	// TTL is how long the lease should last from now, at least 1 ms.
	TTL time.Duration
	// Resent is true if the outcome of an earlier call of this turn is unknown, so that the call
	// may still arrive. The other fields are the same as in that call.
	Resent bool
	// Settlements are applied in order. There are at most core.MaxTurnJobs.
	Settlements []core.Settlement
	// Parts end payloads of recovered jobs that run payload by payload, and begin the next payload
	// of each. There are at most core.MaxTurnJobs.
	Parts []core.PayloadSettlement
	// Begin names the recovered jobs whose handlers start when this turn has been answered. There
	// are at most core.MaxTurnJobs.
	Begin []core.ClaimRef
	// Want is the maximum number of jobs to claim. Values above core.MaxTurnJobs mean
	// core.MaxTurnJobs. 0 claims no job.
	Want int
	// PerJob is the maximum number of payloads to claim of one job. 0, and values above
	// core.MaxTurnPayloads, mean core.MaxTurnPayloads.
	PerJob int
	// Bytes is the maximum size in bytes of the Data of all claims and orphans. Values above
	// core.MaxStepBytes mean core.MaxStepBytes. 0 means core.DefaultTurnBytes.
	Bytes int
	// Node is the server's name, which lists show with the claims.
	Node string
	// Keep bounds the records of what became of the shard's ids; see [core.KeepPast.PerShard]. The zero
	// value keeps no record.
	Keep core.KeepPast
	// Marks asks for the marks of the ids whose jobs are claimed.
	Marks bool
}

// Validate returns [ErrInvalidRequest] for a number below 1, a TTL below 1 ms, too many
// settlements, parts or jobs to begin, a Node that is not a [core.Text], a slot of a put-back that
// is not a [core.Text] of at most [MaxLimiterKey] bytes, a Past of a settlement that is not Plain,
// a result of more than core.MaxResultBytes, a Mark that core.MarkAt does not return for the score
// of a payload, a Stale below 0, or a Keep that core.KeepPast.Validate refuses.
func (r *TurnRequest) Validate() error {
	if r.Number < 1 {
		return fmt.Errorf("%w: turn %d; turns count from 1", ErrInvalidRequest, r.Number)
	}

	if len(r.Settlements) > core.MaxTurnJobs {
		return fmt.Errorf("%w: the turn has %d settlements; send at most %d, and the others with later turns",
			ErrInvalidRequest, len(r.Settlements), core.MaxTurnJobs)
	}
	if len(r.Parts) > core.MaxTurnJobs {
		return fmt.Errorf("%w: the turn has %d parts; send at most %d, and the others with later turns",
			ErrInvalidRequest, len(r.Parts), core.MaxTurnJobs)
	}
	if len(r.Begin) > core.MaxTurnJobs {
		return fmt.Errorf("%w: the turn begins %d jobs; send at most %d, and the others with later turns",
			ErrInvalidRequest, len(r.Begin), core.MaxTurnJobs)
	}

	if err := validateTexts("the name of the server", r.Node); err != nil {
		return err
	}
	if err := ValidateSettlements(r.Settlements); err != nil {
		return err
	}
	for i := range r.Parts {
		if err := validateMark(r.Parts[i].ID, r.Parts[i].Mark); err != nil {
			return err
		}
	}
	if err := r.Keep.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidRequest, err)
	}
	return validateTTL(r.TTL)
}

// ValidateSettlements returns [ErrInvalidRequest] for settlements that [TurnRequest.Validate]
// refuses in a turn.
func ValidateSettlements(settlements []core.Settlement) error {
	for i := range settlements {
		if err := validateSlot(&settlements[i]); err != nil {
			return err
		}
		if err := validatePast(&settlements[i]); err != nil {
			return err
		}
		if err := validateMark(settlements[i].ID, settlements[i].Mark); err != nil {
			return err
		}
		if settlements[i].Stale < 0 {
			return fmt.Errorf("%w: the settlement of %q has dropped %d stale payloads; give 0 or more",
				ErrInvalidRequest, settlements[i].ID, settlements[i].Stale)
		}
	}
	return nil
}

func validatePast(s *core.Settlement) error {
	switch {
	case s.Past == nil:
		return nil
	case !s.Plain():
		return fmt.Errorf("%w: the settlement of %q has a Past and keeps payloads; only a job that is done has a Past",
			ErrInvalidRequest, s.ID)
	case len(s.Past.Result) > core.MaxResultBytes:
		return fmt.Errorf("%w: the result of %q has %d bytes; the maximum is %d",
			ErrInvalidRequest, s.ID, len(s.Past.Result), core.MaxResultBytes)
	}
	return nil
}

func validateMark(id string, m core.Mark) error {
	zero := m.Score == 0 && math.Signbit(m.Score)
	if zero || math.IsNaN(m.Score) || math.IsInf(m.Score, 0) {
		return fmt.Errorf("%w: the mark of %q is %v; give core.MarkAt of the score of a payload",
			ErrInvalidRequest, id, m.Score)
	}
	return nil
}

func validateSlot(s *core.Settlement) error {
	slot := s.PutBack.Slot
	if len(slot) > MaxLimiterKey {
		return fmt.Errorf("%w: the slot of %q has %d bytes; give the key of a limiter, of at most %d bytes",
			ErrInvalidRequest, s.ID, len(slot), MaxLimiterKey)
	}
	return validateTexts("the slot", slot)
}

// OnlyClaims reports whether the turn has no settlement, no part and no job to begin.
func (r *TurnRequest) OnlyClaims() bool {
	return len(r.Settlements)+len(r.Parts)+len(r.Begin) == 0
}

// RemovesPast reports whether the turn removes records that are no longer kept: whether it has
// settlements, or parts with marks that it keeps.
func (r *TurnRequest) RemovesPast() bool {
	marked := func(p core.PayloadSettlement) bool { return p.Mark.OK }
	return len(r.Settlements) > 0 || r.Keep.Any() && slices.ContainsFunc(r.Parts, marked)
}

// Recorded returns Settlements and Parts with the records and marks that the turn keeps: without their
// Past and Mark if Keep keeps no record.
func (r *TurnRequest) Recorded() ([]core.Settlement, []core.PayloadSettlement) {
	recorded := func(s core.Settlement) bool { return s.Past != nil || s.Mark.OK }
	marked := func(p core.PayloadSettlement) bool { return p.Mark.OK }
	settlements, parts := r.Settlements, r.Parts
	if r.Keep.Any() {
		return settlements, parts
	}

	if slices.ContainsFunc(settlements, recorded) {
		settlements = slices.Clone(settlements)
		for i := range settlements {
			settlements[i].Past, settlements[i].Mark = nil, core.Mark{}
		}
	}
	if slices.ContainsFunc(parts, marked) {
		parts = slices.Clone(parts)
		for i := range parts {
			parts[i].Mark = core.Mark{}
		}
	}
	return settlements, parts
}

// Budget returns the limits of what the turn may claim, with every default and maximum of
// [core.Budget] applied. A store that claims in Go calls [core.Budget.Take]; one that claims in a
// script or a statement passes the numbers to it.
func (r *TurnRequest) Budget() core.Budget {
	b := core.Budget{
		Jobs:   max(0, min(r.Want, core.MaxTurnJobs)),
		PerJob: core.MaxTurnPayloads,
		Bytes:  core.DefaultTurnBytes,
	}
	if r.PerJob > 0 {
		b.PerJob = min(r.PerJob, core.MaxTurnPayloads)
	}
	if r.Bytes > 0 {
		b.Bytes = min(r.Bytes, core.MaxStepBytes)
	}
	return b
}

// TurnReply is the result of Turn.
type TurnReply struct {
	// Last is the number of the last turn that was carried out under the lease. It is the request's
	// number, or one less if the turn wrote nothing.
	Last int64
	// Repeat is true if a turn with this number had been carried out before. This call then
	// applied, began and claimed nothing.
	Repeat bool
	// Now is the store's clock. Remaining is how long the lease lasts from Now.
	Now       core.Instant
	Remaining time.Duration
	// Claims are the jobs that this turn claimed, in order of (PerformAt, id).
	Claims []core.Claim
	// Orphans are jobs that earlier leases left claimed and that neither Acquire nor an earlier
	// turn has handed over, in order of id. The owner settles them like the Claims of Acquire.
	Orphans []core.Claim
	// Skipped are the positions in Settlements of jobs that were not claimed, ascending.
	Skipped []int
	// Deferred are the positions in Settlements that must be sent again, ascending. If a deferred
	// settlement follows an applied one, it may only have exceeded the bounds, so the owner sends
	// it again at once. Any other deferred settlement waits for something else to end first, such
	// as a caller's transaction.
	Deferred []int
	// SkippedParts are the positions in Parts of payloads that were not ended, ascending. The next
	// payload of such a job must not start.
	SkippedParts []int
	// NotBegun are the positions in Begin of jobs that were not marked as begun, ascending. Their
	// handlers must not start.
	NotBegun []int
	// Head is when the shard's next job could be claimed if no push and no settlement came. It is
	// not OK while the queue is paused. While jobs that earlier leases left are still to be handed
	// over, it is no later than now, unless the queue is paused. A store that can't determine it at
	// the moment returns now, so that the next turn tries to claim.
	Head core.Head
	// Paused reports whether the queue is paused.
	Paused bool
	// Cancellations are the claimed jobs of the shard that an operator has cancelled, in order of
	// id. Each reply lists them until they are settled.
	Cancellations []Cancellation
}

// Cancellation is a claimed job whose handler the owner should stop.
type Cancellation struct {
	ID      string
	Receipt core.Receipt
	// Drop is true if the job is removed when its handler has returned, and false if it is
	// requeued.
	Drop bool
}
