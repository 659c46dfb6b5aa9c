package ports

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
)

// Inspector is what can be seen (RULES 7). Nothing here writes or needs a lease.
//
// Lists are merged from the shards. They are not snapshots: an entry that does not
// change meanwhile appears exactly once, one that moves may appear at both places
// or at neither. A page may be shorter than was asked for, even empty, and still have a Next:
// that bounds what a filter reads. The caller goes on while Next isn't zero.
//
// A store in several parts, such as a Cluster, answers with what it reaches: the shards of a part
// that it can't reach now are Unreached, and everything else is as if they had not been asked
// for. It returns an error only if it reached none of the shards.
//
// Every method returns [ErrUnknownQueue] for a queue that was not declared, and
// [ErrInvalidRequest] for a request that its Validate refuses or a shard that the queue does
// not have.
type Inspector interface {
	// Stats sums up queues, in the order of the names given.
	Stats(ctx context.Context, r StatsRequest) ([]QueueStats, error)

	// History sums up what [Registry.Record] has stored of a queue, over all owners, by minute or
	// by Step: from inclusive to exclusive, oldest first, without those in which nothing
	// was counted. Minutes that began more than [HistoryKept] before the present one are not
	// listed. Their records are kept for at least another hour, so that a clock that is set back
	// hides nothing, and are gone some hours later.
	//
	// A store in several parts keeps the history of a queue with one shard of the queue, or with
	// several. It returns what it reaches, and names the others of these shards. It fails only if it
	// reaches no shard of the queue.
	//
	// Errors: ErrInvalidRequest, as HistoryRequest.Validate has it.
	History(ctx context.Context, r HistoryRequest) (HistoryReply, error)

	// Jobs pages through queued jobs. It returns ErrQueueMismatch for ByID if
	// the queue was not declared with IndexIDs.
	Jobs(ctx context.Context, r JobsRequest) (JobsPage, error)

	// Claimed pages through the claimed jobs, in order of (Since, id).
	Claimed(ctx context.Context, r PageRequest) (ClaimedPage, error)

	// Morgue pages through the dead letters.
	Morgue(ctx context.Context, r MorgueRequest) (MorguePage, error)

	// Groups counts the dead letters by group. Each is of one group, that of its newest burial:
	// core.GroupName of Settlement.Group, core.BuriedByHand of [Operator.Bury], or core.OtherGroup if
	// its shard had core.MaxGroups groups already and not that one. So the counts are those of the
	// lists and steps by group, and all together are Counts.Dead. What one call buries is counted together, as
	// core.Groups has it. An edit keeps the group, and so does what is left after a step has taken some of the payloads.
	//
	// What it costs depends on how many groups there are, not on how many dead letters.
	Groups(ctx context.Context, r GroupsRequest) (GroupsReply, error)

	// Find looks one id up everywhere, with the first of its payloads. The rest of them come by
	// cursor: Found.Next. What a call reads is bounded: see FindRequest.
	//
	// Errors: core.ErrInvalidID and ErrInvalidRequest, as FindRequest.Validate has them.
	Find(ctx context.Context, r FindRequest) (Found, error)
}

// StatsRequest asks for the state of queues.
type StatsRequest struct {
	Queues []string
	// Shards are the indexes of the shards to count, in any order, if there is one queue; nil is
	// all of them, an empty list none.
	Shards []int
}

// Validate returns [ErrInvalidRequest] for Shards of other than one queue, or below 0.
func (r *StatsRequest) Validate() error {
	if r.Shards != nil && len(r.Queues) != 1 {
		return fmt.Errorf("%w: shards of %d queues; name one queue", ErrInvalidRequest, len(r.Queues))
	}
	return validateShards(r.Shards)
}

// Counts are the sizes of a queue or of a shard.
type Counts struct {
	// Fresh and Retrying are how many jobs are queued without and with a failure;
	// their sum is the length of the queue.
	Fresh    int64
	Retrying int64
	Claimed  int64
	// Dead is how many ids are in the morgue.
	Dead int64
	// Quarantined is how many records were set aside since they can't be read ([Quarantine]).
	Quarantined int64
	// Processed and Failed count jobs since the queue began.
	Processed int64
	Failed    int64
	// Oldest is the smallest PerformAt of the queued jobs; not OK if nothing is
	// queued. Unlike a shard's head it ignores pauses and claims.
	Oldest core.Head
}

// Entries returns how many entries there are that [Operator.Recount] counts: queued, claimed and
// dead.
func (c *Counts) Entries() int { return int(c.Fresh + c.Retrying + c.Claimed + c.Dead) }

// SumCounts returns the sums of two shards' sizes; Oldest is the earlier of both.
func SumCounts(a, b Counts) Counts {
	return Counts{
		Fresh:     a.Fresh + b.Fresh,
		Retrying:  a.Retrying + b.Retrying,
		Claimed:   a.Claimed + b.Claimed,
		Dead:      a.Dead + b.Dead,
		Processed: a.Processed + b.Processed,
		Failed:    a.Failed + b.Failed,
		Oldest:    a.Oldest.Earlier(b.Oldest),

		Quarantined: a.Quarantined + b.Quarantined,
	}
}

// QueueStats is the state of a queue.
type QueueStats struct {
	Queue Queue
	// Now is the store's clock; Oldest.Lag(Now) is the queue's lag. It says nothing if no shard
	// was asked for or reached.
	Now core.Instant
	// Counts are the sums of Shards.
	Counts
	// Shards are those that were asked for and reached, in order of index.
	Shards []ShardStats
	// Unreached are the others that were asked for, in order of index.
	Unreached []core.Shard
}

// Orphaned returns how many of the claimed jobs are orphans, at Now: the sum over the shards.
func (s *QueueStats) Orphaned() int64 {
	var sum int64
	for i := range s.Shards {
		sum += s.Shards[i].Orphaned(s.Now)
	}
	return sum
}

// ShardStats is the state of one shard.
type ShardStats struct {
	Shard core.Shard
	Counts
	// Owner and Token are those of the last lease, which ends at ExpiresAt: once that is past,
	// nobody works the shard, unless its owner still renews it. Owner is empty if the
	// lease was released.
	Owner     string
	Token     int64
	ExpiresAt core.Instant
}

// Orphaned returns how many of the shard's claimed jobs are orphans, given the store's clock: all
// of them if its lease has run out or was released, else none. Nobody may run them until somebody acquires
// the shard, who then recovers them.
func (s *ShardStats) Orphaned(now core.Instant) int64 {
	if s.Owner != "" && s.ExpiresAt > now {
		return 0
	}
	return s.Claimed
}

// JobView is a queued job with the first of its payloads.
type JobView struct {
	core.Job
	// Count is how many payloads the job has.
	Count int
}

// JobsPage is a page of queued jobs.
type JobsPage struct {
	Jobs []JobView
	// Next is the cursor of the page that follows; zero if this is the last.
	Next Cursor
	// Unreached are the shards that can't be reached now, in order of index, whose jobs are missing.
	Unreached []core.Shard
}

// ClaimView is a claimed job with the first of its payloads.
type ClaimView struct {
	core.Claim
	// Count is how many payloads the claim has.
	Count int
	Shard core.Shard
	// Owner and Node are those of the lease and the turn that claimed it.
	Owner string
	Node  string
	// Since is when it was claimed. Begun, in the Claim, is known of recovered
	// jobs only: others begin without a call to the store.
	Since core.Instant
	// LeaseOver reports that the lease it was claimed under has run out, was
	// released, or passed to another owner: nobody may run the job, and the
	// shard's next owner recovers it.
	LeaseOver bool
	// LeaseUntil is when that lease ends unless it is renewed, as in ShardStats; 0 if it is
	// over.
	LeaseUntil core.Instant
	// Cancelled reports that an operator has cancelled it, and Drop that it is dropped
	// when it ends, as the last Cancel of it said; without Drop it goes back.
	Cancelled bool
	Drop      bool
}

// ClaimedPage is a page of claimed jobs.
type ClaimedPage struct {
	Claims []ClaimView
	// Next and Unreached are as in [JobsPage].
	Next      Cursor
	Unreached []core.Shard
}

// DeadLetterView is a dead letter with the first of its payloads.
type DeadLetterView struct {
	core.DeadLetter
	// Count is how many payloads the dead letter has.
	Count int
}

// MorguePage is a page of dead letters.
type MorguePage struct {
	DeadLetters []DeadLetterView
	// Next and Unreached are as in [JobsPage].
	Next      Cursor
	Unreached []core.Shard
}

// MaxAhead is how far Standing counts.
const MaxAhead = 1000

// Standing is what decides when a job of a shard runs, beside the job itself. It holds at Now.
type Standing struct {
	// Now is the store's clock.
	Now core.Instant
	// Paused reports that the queue is paused.
	Paused bool
	// Owner, Token and ExpiresAt are those of the shard's lease, as in ShardStats; all zero if
	// the lease was released, or none was ever acquired.
	Owner     string
	Token     int64
	ExpiresAt core.Instant
	// Claimed is how many jobs of the shard are claimed, at most MaxAhead.
	Claimed int
	// Ahead is how many due jobs of the shard are claimed before the queued one, by (PerformAt, id), at most
	// MaxAhead. It is 0 if nothing is queued, if what is queued is not due, or if the id is claimed.
	Ahead int
	// Alone is the id of another job that runs alone (core.AloneRecoveries), and before the queued one: the first by
	// id of those that are claimed, or else the first of those ahead if that is one. Empty if there is none, or where
	// nothing is ahead by that definition: for what is not queued, not due, or whose id is claimed.
	Alone string
}
