package storekit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// UnknownQueue returns [ports.ErrUnknownQueue] for a queue that has no record.
func UnknownQueue(queue string) error {
	return fmt.Errorf("%w: %q", ports.ErrUnknownQueue, queue)
}

// TooManyTracked returns [ports.ErrTooManyTracked] for a queue.
func TooManyTracked(queue string) error {
	return fmt.Errorf("%w: queue %q has %d, which is the maximum; untrack one of them first",
		ports.ErrTooManyTracked, queue, ports.MaxTracked)
}

// UnknownNode returns [ports.ErrUnknownNode] for an owner without a current announcement.
func UnknownNode(owner string) error {
	return fmt.Errorf("%w: %q", ports.ErrUnknownNode, owner)
}

// NotPaused returns [ports.ErrNotPaused] for an import into a shard that is not paused.
func NotPaused(shard core.Shard) error {
	return fmt.Errorf(
		"%w: shard %v; pause the queue, even if it is shown as paused, "+
			"and resume it when everything has been moved into it",
		ports.ErrNotPaused, shard)
}

// NoSuchShard returns [ports.ErrInvalidRequest] for a shard that its queue does not have.
func NoSuchShard(shard core.Shard) error {
	return fmt.Errorf("%w: %q has no shard %d; its shards are numbered from 0",
		ports.ErrInvalidRequest, shard.Queue, shard.Index)
}

// NoSuchStep returns [ports.ErrInvalidRequest] for a step of a recount whose After is not the Next
// of an earlier step.
func NoSuchStep(r *ports.RecountRequest) error {
	return fmt.Errorf("%w: no recount of %v has returned the place %q; begin with an empty After",
		ports.ErrInvalidRequest, r.Shard, r.After)
}

// Layout is a queue's shard count and its generation.
type Layout struct {
	Shards     int
	Generation int64
}

// LayoutMismatch returns [ports.ErrShardCountMismatch] for a push or an acquire with another layout
// than the queue's. If actual is zero, the error doesn't name the queue's layout.
func LayoutMismatch(queue string, asked, actual Layout) error {
	if actual == (Layout{}) {
		return fmt.Errorf("%w: %q does not have %d shards in generation %d; declare it again",
			ports.ErrShardCountMismatch, queue, asked.Shards, asked.Generation)
	}
	return fmt.Errorf("%w: %q has %d shards in generation %d, not %d in %d; declare it again",
		ports.ErrShardCountMismatch, queue, actual.Shards, actual.Generation, asked.Shards, asked.Generation)
}

// CheckDeclared compares a declaration with the record of the queue. It returns nil if
// they agree, [ports.ErrShardCountMismatch] if their shard counts differ, and
// [ports.ErrQueueMismatch] if only IndexIDs or Merge differs.
func CheckDeclared(r ports.DeclareRequest, record ports.Queue) error {
	if record.Shards != r.Shards {
		return fmt.Errorf("%w: %q has %d shards, not %d; its count is permanent",
			ports.ErrShardCountMismatch, r.Queue, record.Shards, r.Shards)
	}

	if record.IndexIDs != r.IndexIDs {
		was := "without"
		if record.IndexIDs {
			was = "with"
		}
		return fmt.Errorf("%w: %q was declared %s an index of ids (IndexIDs), which is permanent",
			ports.ErrQueueMismatch, r.Queue, was)
	}

	if record.Merge != r.Merge {
		err := fmt.Errorf("%w: %q has the merge rule %v, not %v; declare it with %v",
			ports.ErrQueueMismatch, r.Queue, record.Merge, r.Merge, record.Merge)
		if record.Merge.Same != r.Merge.Same {
			return fmt.Errorf("%w, or move its jobs and forget the queue first", err)
		}
		return fmt.Errorf("%w, or change the queue's rule first, by Inspector.SetMerge or skein queue merge", err)
	}

	return nil
}

// CheckMerge returns [ports.ErrQueueMismatch] if a queue's merge rule can't be changed to another
// one: their Same differs.
func CheckMerge(queue string, has, wanted core.MergeRule) error {
	if has.Same == wanted.Same {
		return nil
	}
	return fmt.Errorf("%w: %q has the merge rule %v, and its payloads are stored by it; "+
		"move its jobs to a queue with the rule %v",
		ports.ErrQueueMismatch, queue, has, wanted)
}

// StaleAttempt returns [ports.ErrStaleAttempt] for an acquire with an attempt below the owner's
// last, or with a released one.
func StaleAttempt(r *ports.AcquireRequest) error {
	return fmt.Errorf("%w: attempt %d at %v by %q; use a larger one",
		ports.ErrStaleAttempt, r.Attempt, r.Shard, r.Owner)
}

// StalePermit returns [ports.ErrStaleAttempt] for a call for permits with an attempt below the
// owner's last.
func StalePermit(r *ports.PermitRequest) error {
	return fmt.Errorf("%w: call %d for permits of %q by %q; use a larger number",
		ports.ErrStaleAttempt, r.Attempt, r.Queue, r.Owner)
}

// LeaseLost returns [ports.ErrLeaseLost] for a lease that is not the shard's.
func LeaseLost(l ports.Lease) error {
	return fmt.Errorf("%w: %v is not leased to %q with token %d; acquire it again",
		ports.ErrLeaseLost, l.Shard, l.Owner, l.Token)
}

// TurnsLost returns [ports.ErrLeaseLost] for a turn that does not follow last, the number of the
// last turn that the store has carried out under this lease.
func TurnsLost(r *ports.TurnRequest, last int64) error {
	return fmt.Errorf("%w: turn %d of %v, but the store's last turn is %d; acquire the shard again",
		ports.ErrLeaseLost, r.Number, r.Lease.Shard, last)
}

// StaleTurn returns [ports.ErrStaleTurn] for a turn before last, the number of the last
// turn that the store has carried out under this lease.
func StaleTurn(r *ports.TurnRequest, last int64) error {
	return fmt.Errorf("%w: turn %d of %v came after turn %d; drop the late call",
		ports.ErrStaleTurn, r.Number, r.Lease.Shard, last)
}

// NotClaimed returns [ports.ErrLeaseLost] for a Settle or a SettlePayload. claimed is the number of
// its settlements whose jobs are still claimed with their receipts. settlements is the number of
// all.
func NotClaimed(shard core.Shard, claimed, settlements int) error {
	return fmt.Errorf("%w: only %d of %d jobs of %v are still claimed under the receipts of their settlements; "+
		"roll back: another server has taken over the others, or the transaction is not on the store of the jobs",
		ports.ErrLeaseLost, claimed, settlements, shard)
}

// NoOtherPayload returns [ports.ErrInvalidRequest] for a SettlePayload of a payload that the claim
// does not have, or of its only one.
func NoOtherPayload(shard core.Shard, s *core.PayloadSettlement) error {
	return fmt.Errorf("%w: settle payload %d of the claimed job %q of %v: it has no such payload, or no other one; "+
		"settle the last payload of a job with Settle", ports.ErrInvalidRequest, s.Position, s.ID, shard)
}

// NotEmpty returns [ports.ErrNotEmpty] for a queue to forget. shard is a shard of the queue that is
// not empty.
func NotEmpty(shard core.Shard) error {
	return fmt.Errorf("%w: %v holds jobs, dead letters, schedules or unreadable records; "+
		"handle or delete jobs, revive or purge dead letters, remove schedules, discard unreadable records",
		ports.ErrNotEmpty, shard)
}

// Full returns [ports.ErrFull] for a store without room. words is the error text of the store's
// server.
func Full(words string) error {
	return fmt.Errorf("%w: %s; let servers work off the queue, or give the store more room", ports.ErrFull, words)
}

// Interrupted returns an error for a call that was interrupted by its own context, and nil for any
// other err. The call was interrupted if err wraps [context.Canceled] or [context.DeadlineExceeded]
// and ctx has ended. Interrupted checks ctx too, because a driver's own timeouts, such as that of a
// connection, wrap the same errors. The returned error wraps only the context's error, so that no
// type of a driver crosses the port.
func Interrupted(ctx context.Context, err error) error {
	if !ended(ctx) {
		return nil
	}
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			return fmt.Errorf("the call was interrupted: %w", end)
		}
	}
	return nil
}

// ended reports whether a context has ended or its deadline has passed. The deadline of a network
// call may pass some microseconds before the timer of the context ends it.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// UnknownOutcome returns an error of unknown outcome for a driver's error. It keeps the text of
// err, with the store's name in front, and hides the type of err, so that no caller mistakes a
// timeout of the connection for the end of its own context. [ports.FailureOf] still reports whether
// the server could not be reached. err must not be nil.
func UnknownOutcome(store string, err error) error {
	// Drivers put each tried address on a line that begins with a tab; a log record is one line.
	words := strings.NewReplacer("\n\t", " ", "\t", " ").Replace(err.Error())
	text := store + ": " + strings.TrimPrefix(words, store+": ")
	if ports.FailureOf(err) == ports.FailureUnreachable {
		return unreachable(text)
	}
	return errors.New(text)
}

// unreachable is the error of a connection that could not be made, or that broke. It is a
// net.Error.
type unreachable string

func (u unreachable) Error() string { return string(u) }
func (unreachable) Timeout() bool   { return false }
func (unreachable) Temporary() bool { return true }

// HasKnownOutcome reports whether err wraps a sentinel of package ports or core, so that the call
// had no effect. A call that fails with another error may have taken effect. It is false if err is
// nil.
func HasKnownOutcome(err error) bool { return err != nil && ports.FailureOf(err).NoEffect() }
