package ports

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
)

// MaxPush is the number of entries of one shard that a push stores atomically. A store may store
// more entries of one shard in several steps, so that each step is bounded.
const MaxPush = 500

// Producer stores pushes. It neither needs nor waits for a server.
type Producer interface {
	// Declare creates the queue with the given permanent options, unless it exists with these
	// options, and returns its generation, which pushes and acquires carry. It is atomic for the
	// queue. A repeated call changes nothing. If a part of the store can't be reached now, its
	// shards may not be created. A push to such a shard, or an acquire of it, then returns
	// ErrUnknownQueue, and declaring the queue again completes it.
	//
	// Errors: core.ErrInvalidQueue; ErrShardCountMismatch if the queue exists with another shard
	// count; ErrQueueMismatch if it exists with another IndexIDs or Merge; core.ErrInvalidRule.
	Declare(ctx context.Context, r DeclareRequest) (DeclareReply, error)

	// Push stores entries. Each entry makes a new job for its id or merges into the queued job by
	// docs/rules.md 2, in the given order, so an id that occurs twice merges twice. A claimed job
	// is never touched, and Push does not wait for it. The FirstPush of a new job is the store's
	// now.
	//
	// Push is atomic for each shard. If a shard has more than MaxPush entries, it is atomic for
	// each MaxPush of them, in order. A store may store fewer entries in one atomic step if their
	// payloads, or the queued payloads of their ids, have more than core.MaxStepBytes of Data. A
	// push without entries does nothing. Repeating a push is safe: payloads that are still queued
	// merge, and payloads that were handled in between run again.
	//
	// Once. An entry with OnceIn is dropped if it is a repeat (docs/rules.md 17), and otherwise
	// remembered in the step that stores it. Of concurrent pushes of equal entries one is accepted.
	// A push with such entries also removes what the shard remembers and whose time has passed, at
	// most core.MaxOnceRemoved, and a store may remove that at other times too. If a push of
	// unknown outcome is repeated, an entry that the first call has stored is a repeat.
	//
	// Errors: those of PushRequest.Validate, with nothing stored. Any other error is a *PushError,
	// which names the entries that are not known to be stored. Its cause is a sentinel such as
	// ErrUnknownQueue, ErrShardCountMismatch, ErrFull, ErrReadOnly or ErrUnusable if none of these
	// entries was stored, or else an error of unknown outcome.
	Push(ctx context.Context, r PushRequest) (PushReply, error)
}

// DeclareRequest is the name of a queue and its permanent options.
type DeclareRequest struct {
	Queue string
	// Shards is the shard count, 1 to core.MaxShards.
	Shards int
	// IndexIDs keeps an index of all queued jobs by id (ByID). The index costs memory.
	IndexIDs bool
	// Merge decides which payloads of an id stay when they merge, in the queue and in its morgue
	// (docs/rules.md 2). The zero value keeps all of them, and of two with equal bytes the one with
	// the smaller score.
	Merge core.MergeRule
}

// Validate returns [core.ErrInvalidQueue] for an invalid name or shard count, as
// [core.ValidateQueue] does, and [core.ErrInvalidRule] for an invalid merge rule.
func (r *DeclareRequest) Validate() error {
	if err := core.ValidateQueue(r.Queue, r.Shards); err != nil {
		return err
	}
	return r.Merge.Validate()
}

// DeclareReply is the result of Declare.
type DeclareReply struct {
	// Generation is the number of the queue's layout, from 1. Each resharding raises it.
	Generation int64
}

// PushRequest is a push. It carries the layout of the queue as the caller knows it, so that a
// client that missed a resharding can't put an id into two shards.
type PushRequest struct {
	Queue      string
	Shards     int
	Generation int64
	// Rule decides the time of queued jobs that have not failed when entries merge into them. The
	// zero value is core.Keep. An entry whose When is core.Urgent merges by core.Earliest instead
	// (core.When.Rule).
	Rule core.PushRule
	// DropStale drops the entries that are stale: whose score is at or below the mark of their id
	// (docs/rules.md 16). Such an entry changes nothing but counts. A Producer in a caller's
	// transaction may store them, since they are dropped once they are claimed.
	DropStale bool
	// Stamped is true in a queue whose Merge has core.SamePush. Then OnceIn of the entries compares
	// their payloads without the stamp.
	Stamped bool
	// Entries are stored in order. In a queue whose Merge has core.SamePush their payloads are those
	// that its Stored returns.
	Entries []core.Entry
}

// Validate returns the error of package core for an invalid queue or rule, or for the first invalid
// entry. In the last case the error names the entry's position.
func (r *PushRequest) Validate() error {
	if err := core.ValidateQueue(r.Queue, r.Shards); err != nil {
		return err
	}
	if err := r.Rule.Validate(); err != nil {
		return err
	}
	for i := range r.Entries {
		if err := r.Entries[i].Validate(); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return nil
}

// PushReply is the result of Push.
//
// New, Merged, Duplicate, Superseded, Stale and Repeated count the entries that this call has stored
// or dropped, in their order. Each entry is in one of the counts. If a push of unknown outcome is
// repeated, the repeat counts by what it meets: an entry that the first call has stored is Repeated
// if it has OnceIn, and otherwise a Duplicate, unless its job was claimed meanwhile.
//
// A Producer that can't know yet which jobs the entries meet leaves the counts at 0. An
// example is a Producer in a caller's transaction: its entries merge into the jobs that are queued
// after the commit. Until a turn or a read has merged them after the commit, other pushes count as
// if these entries did not exist. If Push also returns an error, the counts include at most the
// entries that are known to be stored, and may be 0.
type PushReply struct {
	// Now is the store's clock at the push.
	Now core.Instant
	// New is the number of entries that made a job, because their ids had no queued job. A claimed
	// job is not queued.
	New int
	// Merged is the number of entries that added a payload to a queued job. An earlier entry of the
	// same push may have made that job.
	Merged int
	// Duplicate is the number of entries that met a queued job that already had their Data. Such an
	// entry may still change the payload's score, and move the job's time by the push rule.
	Duplicate int
	// Superseded is the number of entries whose payload was dropped at once, because the merge rule
	// keeps only higher ones. Such an entry may still move the job's time by the push rule.
	Superseded int
	// Stale is the number of entries that were dropped because they were stale, if the request has
	// DropStale.
	Stale int
	// Repeated is the number of entries that were dropped because an equal one was accepted within its
	// OnceIn.
	Repeated int
}

// Add adds the counts of another part of the same push, and takes its Now.
func (r *PushReply) Add(part PushReply) {
	r.Now = part.Now
	r.New += part.New
	r.Merged += part.Merged
	r.Duplicate += part.Duplicate
	r.Superseded += part.Superseded
	r.Stale += part.Stale
	r.Repeated += part.Repeated
}
