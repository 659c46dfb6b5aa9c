package ports

import (
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// Errors of the port. Adapters wrap them with %w and add what to do.
var (
	// ErrUnknownQueue reports a queue that was never declared, or whose record the store has lost.
	// Declare the queue, then repeat the call.
	ErrUnknownQueue = errors.New("unknown queue: in this store, no job was pushed to it and no server has run it; " +
		"do either, or check its name and the store's database, prefix or schema")
	// ErrUnknownNode reports a server without a current announcement: it never ran on this store,
	// was retired or is gone.
	ErrUnknownNode = errors.New("unknown server: no server announces this owner id, or it has stopped; " +
		"use the owner id of a server that the list of servers shows as alive or draining")
	// ErrShardCountMismatch reports a shard count or a generation that differs from the queue's
	// record. Nothing was written.
	ErrShardCountMismatch = errors.New("shard count mismatch")
	// ErrQueueMismatch reports a declaration whose other permanent options differ from the queue's
	// record. Nothing was written.
	ErrQueueMismatch = errors.New("queue declared with other options")
	// ErrLeaseHeld reports a shard that another owner has leased; see HeldError.
	ErrLeaseHeld = errors.New("lease is held by another owner")
	// ErrLeaseLost reports a lease that is no longer the caller's. Nothing was written, and nothing
	// will be written under that token.
	ErrLeaseLost = errors.New("lease lost")
	// ErrStaleTurn reports a turn older than the lease's last. Nothing was written.
	ErrStaleTurn = errors.New("stale turn")
	// ErrStaleAttempt reports an acquire older than the owner's last, an acquire of an attempt that
	// was released, or a call for permits older than the owner's last. Nothing was written.
	ErrStaleAttempt = errors.New("stale attempt")
	// ErrInvalidRequest reports a request that breaks this package's rules, such as a negative TTL.
	// Nothing was written. The caller has a bug.
	ErrInvalidRequest = errors.New("invalid request")
	// ErrUnusable reports a store that answers but can't be used as it is configured. Waiting does
	// not help. Examples are a wrong password, missing rights, no schema, no such database, a
	// policy that evicts keys, and an invalid prefix. The error text names what to change. Nothing
	// was written.
	ErrUnusable = errors.New("store can't be used")
	// ErrNotPaused reports an import into a shard that is not paused, although the request demands
	// it. Nothing was written. Pause the queue and repeat the call.
	ErrNotPaused = errors.New("queue is not paused")
	// ErrNotEmpty reports a queue that can't be forgotten because it holds jobs, dead letters,
	// schedules or records in the [Quarantine].
	ErrNotEmpty = errors.New("queue is not empty")
	// ErrSettingsConflict reports settings of a queue that were changed since the caller has read
	// them; see SettingsConflictError. Nothing was written.
	ErrSettingsConflict = errors.New("the settings were changed meanwhile")
	// ErrTooManyTracked reports a queue with [MaxTracked] tracked ids. Nothing was written. Untrack
	// an id before another one is tracked.
	ErrTooManyTracked = errors.New("too many tracked ids")
	// ErrFull reports a store without room for the data of a call, such as the entries of a push.
	// Nothing was written to the shard of the call, or, for a push, to the shards of the entries
	// that the [PushError] names. Whether servers can still handle jobs, and so make room, depends
	// on the store: they can on a full Redis, but not on a full disk of Postgres.
	ErrFull = errors.New("store is full")
	// ErrReadOnly reports a store whose server refuses all writes, such as a Postgres that became a
	// standby. Nothing was written. Repeat the call once the store's connections lead to the primary.
	ErrReadOnly = errors.New("store is read-only")
	// ErrNotBegun reports a call whose context had ended before the call began. Nothing was sent,
	// and nothing was written.
	ErrNotBegun = errors.New("the call was not begun")
)

// HeldError is an [ErrLeaseHeld] with the owner of the lease. Acquire and Forget return it.
// [errors.Is] reports that it is [ErrLeaseHeld].
type HeldError struct {
	Shard core.Shard
	// Owner is the owner of the lease, for people.
	Owner string
	// Remaining is how much longer the lease lasts unless it is renewed.
	Remaining time.Duration
}

// Error implements error.
func (e *HeldError) Error() string {
	return fmt.Sprintf("shard %v: %v: %s, for %v more", e.Shard, ErrLeaseHeld, e.Owner, e.Remaining)
}

// Unwrap returns [ErrLeaseHeld].
func (e *HeldError) Unwrap() error { return ErrLeaseHeld }

// PushError is the error of a push if some of its entries are not known to be stored.
type PushError struct {
	// Entries are the positions of the entries that are not known to be stored,
	// ascending.
	Entries []int
	// Err is the cause. If it wraps a sentinel of this package or of core, these entries were not
	// stored. Otherwise they may be stored after all; if they are pushed again, they merge.
	Err error
}

// Error implements error.
func (e *PushError) Error() string {
	entries, what := "1 pushed entry is", "not known to be stored"
	if n := len(e.Entries); n != 1 {
		entries = fmt.Sprintf("%d pushed entries are", n)
	}
	if e.Err != nil && FailureOf(e.Err).NoEffect() {
		what = "not stored"
	}
	return fmt.Sprintf("%s %s: %v", entries, what, e.Err)
}

// Unwrap returns Err.
func (e *PushError) Unwrap() error { return e.Err }

var errNoOwner = fmt.Errorf("%w: the server has no owner id; set it", ErrInvalidRequest)
