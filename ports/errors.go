package ports

import (
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// Errors of the port. Adapters wrap them with %w and say what to do.
var (
	// ErrUnknownQueue is a queue that was never declared, or a store that lost
	// it: declare it, then repeat.
	ErrUnknownQueue = errors.New("unknown queue: in this store nothing was pushed to it and no server has run it; " +
		"do either, or check its name and the store's database, prefix or schema")
	// ErrUnknownNode is a node that no announcement lasts of: it never ran on this
	// store, was retired or is gone.
	ErrUnknownNode = errors.New("unknown node: no server announces itself under this owner id, or it has stopped; " +
		"take the owner of a node that the list of nodes shows as alive or draining")
	// ErrShardCountMismatch is a shard count or generation that is not that of
	// the queue's record. Nothing was written.
	ErrShardCountMismatch = errors.New("shard count mismatch")
	// ErrQueueMismatch is a declaration whose other permanent options differ
	// from the queue's record. Nothing was written.
	ErrQueueMismatch = errors.New("queue declared with other options")
	// ErrLeaseHeld is the error for a shard that another owner works; see HeldError.
	ErrLeaseHeld = errors.New("lease is held by another owner")
	// ErrLeaseLost is a lease that is no longer the caller's. Nothing was
	// written, and nothing will be under that token.
	ErrLeaseLost = errors.New("lease lost")
	// ErrStaleTurn is a turn older than the lease's last. Nothing was written.
	ErrStaleTurn = errors.New("stale turn")
	// ErrStaleAttempt is an acquire older than the owner's last, or of an
	// attempt that was released, or a call for permits older than the owner's last.
	// Nothing was written.
	ErrStaleAttempt = errors.New("stale attempt")
	// ErrInvalidRequest is a request that breaks this package's rules, such as a
	// negative TTL. Nothing was written; it is a bug of the caller.
	ErrInvalidRequest = errors.New("invalid request")
	// ErrUnusable is the error of a store that answers but can't be used as it is set
	// up, which waiting does not cure: a wrong password, missing rights, no schema, no such
	// database, a policy that evicts keys, an invalid prefix. The error says what
	// to change. Nothing was written.
	ErrUnusable = errors.New("store can't be used")
	// ErrNotEmpty is a queue that can't be forgotten, since it holds jobs or dead
	// letters.
	ErrNotEmpty = errors.New("queue is not empty")
	// ErrFull is a store without room for what a push brings. Nothing of the
	// shards it names was written; handling goes on and makes room.
	ErrFull = errors.New("store is full")
	// ErrNotBegun is a call whose context had ended before it began. Nothing was sent, and
	// nothing was written.
	ErrNotBegun = errors.New("the call was not begun")
)

// HeldError is how Acquire returns [ErrLeaseHeld], with the owner. [errors.Is] reports
// that it is [ErrLeaseHeld].
type HeldError struct {
	Shard core.Shard
	// Owner holds the lease, for people to read.
	Owner string
	// Remaining is how long it lasts unless it is renewed.
	Remaining time.Duration
}

// Error implements error.
func (e *HeldError) Error() string {
	return fmt.Sprintf("shard %v: %v: %s, for another %v", e.Shard, ErrLeaseHeld, e.Owner, e.Remaining)
}

// Unwrap returns [ErrLeaseHeld].
func (e *HeldError) Unwrap() error { return ErrLeaseHeld }

// PushError is the error of a push of which some entries are not known to be stored.
type PushError struct {
	// Entries are the positions of the entries that are not known to be stored,
	// ascending.
	Entries []int
	// Err is the cause. Unless it is a sentinel, these entries may be stored after
	// all; pushing them again merges.
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

var errNoOwner = fmt.Errorf("%w: a node without an owner", ErrInvalidRequest)
