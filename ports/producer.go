package ports

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
)

// MaxPush is a number of entries of one shard that a push stores all or none of. A store
// may store more than that in several steps, so that each step is bounded.
const MaxPush = 500

// Producer is how work comes in. It neither needs nor waits for a worker.
type Producer interface {
	// Declare makes sure that a queue exists with the given permanent options, and
	// returns its generation, which pushes and acquires carry. It is atomic
	// for the queue. Repeating it changes nothing. Shards in a part of the store that
	// can't be reached now may be left undone: a push or an acquire of one returns
	// ErrUnknownQueue then, and declaring again completes it.
	//
	// Errors: core.ErrInvalidQueue; ErrShardCountMismatch if the queue exists
	// with another count, ErrQueueMismatch with another index.
	Declare(ctx context.Context, r DeclareRequest) (DeclareReply, error)

	// Push stores entries: each makes a new job for its id or merges into the
	// queued one by RULES 2, in the order given, so that an id given twice
	// merges twice. A claimed job is never touched, nor waited for. A new job's
	// FirstPush is the store's now.
	//
	// It is atomic for each shard, or, of more than MaxPush entries of one shard, for
	// each MaxPush of them, in order; a store may take fewer at once where these, or what is
	// queued of their ids, have more than core.MaxStepBytes. A push without entries does nothing. Repeating a
	// push is safe: what is still queued merges, and what was handled in between runs
	// again.
	//
	// Errors: what PushRequest.Validate returns, with nothing stored; a *PushError
	// around any other, naming the entries that are not known to be stored.
	// Those are ErrUnknownQueue, ErrShardCountMismatch and ErrFull for shards
	// that stored nothing, or an error of unknown outcome.
	Push(ctx context.Context, r PushRequest) (PushReply, error)
}

// DeclareRequest names a queue and what is permanent about it.
type DeclareRequest struct {
	Queue string
	// Shards is the shard count, within 1 … core.MaxShards.
	Shards int
	// IndexIDs keeps every queued job listed by id (ByID), at a cost in memory.
	IndexIDs bool
}

// Validate returns [core.ErrInvalidQueue] for a name or a count that RULES refuse.
func (r *DeclareRequest) Validate() error {
	return core.ValidateQueue(r.Queue, r.Shards)
}

// DeclareReply is what Declare returns.
type DeclareReply struct {
	// Generation counts the queue's layouts, from 1: resharding raises it.
	Generation int64
}

// PushRequest is what to push. The caller's knowledge of the queue goes along,
// so that a client that missed a resharding can't scatter an id.
type PushRequest struct {
	Queue      string
	Shards     int
	Generation int64
	// Rule is how entries merge into queued jobs that have not failed. The zero value is
	// core.Keep.
	Rule core.PushRule
	// Entries are stored in order.
	Entries []core.Entry
}

// Validate returns core's error for the first entry, rule or queue that RULES
// refuse, naming the entry's position.
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

// PushReply is what Push returns.
//
// New, Merged and Duplicate say what the entries met, each by itself and in their order. Each entry that this call
// has stored is in one of them, so a push that is repeated since its outcome was unknown counts what the
// repeat has met: what its first call has stored is Duplicate, unless it was claimed meanwhile. Producers that
// don't know what a push will meet leave them 0: that of a caller's transaction, whose entries meet what is
// queued after it has committed. Until then, and until a turn or a look has merged them, they count as not
// there for other pushes. With an error they are at most what is known to be stored, and may be 0.
type PushReply struct {
	// Now is the store's clock at the push.
	Now core.Instant
	// New is how many entries have made a job: nothing was queued for their ids. A claimed
	// job is not queued.
	New int
	// Merged is how many have added a payload to a queued job, also to one that an earlier entry
	// of the push has made.
	Merged int
	// Duplicate is how many have met a queued job that had their Data already. Such an entry
	// may still lower the payload's score, and move the job's time by the push rule.
	Duplicate int
}

// Add counts what another part of the same push has met, and takes its Now.
func (r *PushReply) Add(part PushReply) {
	r.Now = part.Now
	r.New += part.New
	r.Merged += part.Merged
	r.Duplicate += part.Duplicate
}
