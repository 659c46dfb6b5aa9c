package ports

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
)

// Inspector reads what a store holds (docs/rules.md 7). Its methods write nothing and need no
// lease.
//
// Lists are merged from the shards. They are not snapshots. An entry that does not change meanwhile
// appears exactly once. An entry that moves within the list meanwhile may appear at both places or
// at neither. Because a filter looks at a bounded number of entries, a page may be shorter than
// requested, or even empty, and still have a Next. The caller continues while Next is not zero.
//
// A store in several parts, such as a Cluster, answers with the parts that it reaches. The shards
// of a part that it can't reach now are Unreached, and the rest of the reply is as if they had not
// been requested. It returns an error of unknown outcome only if it reached none of the shards.
//
// Every method returns [ErrUnknownQueue] for a queue that was not declared, and [ErrInvalidRequest]
// for a request that its Validate refuses or a shard that the queue does not have.
type Inspector interface {
	// Stats returns the state of queues, in the order of the given names.
	Stats(ctx context.Context, r StatsRequest) ([]QueueStats, error)

	// History sums up the statistics that [Registry.Record] has stored of a queue, over all owners,
	// by minute or by Step, oldest first. From is inclusive, To is exclusive. Minutes in which
	// nothing was counted are left out. Minutes that began more than [HistoryKept] before the
	// present one are not listed. Their records are kept for at least another hour, so that they
	// are listed again if the clock steps back, and are removed some hours later.
	//
	// With a Step of a [Day] it lists days instead: see HistoryRequest. A store keeps DaysKept + 3 days
	// of a queue. If there are more, it removes the day that is farthest from the present one. So a
	// clock that jumps ahead for a while costs one day, not all of them.
	//
	// A store in several parts keeps the history of a queue with one shard of the queue, or with
	// several. It returns the history of the shards that it reaches, and names the others of these
	// shards in Unreached. It returns an error of unknown outcome only if it reaches none of the
	// shards that it queries. These may be only the first shards of the queue.
	//
	// Errors: ErrInvalidRequest, as HistoryRequest.Validate returns it.
	History(ctx context.Context, r HistoryRequest) (HistoryReply, error)

	// Jobs pages through queued jobs. It returns ErrQueueMismatch for ByID if
	// the queue was not declared with IndexIDs.
	Jobs(ctx context.Context, r JobsRequest) (JobsPage, error)

	// Claimed pages through the claimed jobs, in order of (Since, id).
	Claimed(ctx context.Context, r PageRequest) (ClaimedPage, error)

	// Morgue pages through the dead letters.
	Morgue(ctx context.Context, r MorgueRequest) (MorguePage, error)

	// Groups counts the dead letters by group. Each dead letter is in one group, that of its newest
	// burial: core.GroupName of Settlement.Group, core.BuriedByHand after [Operator.Bury], or
	// core.OtherGroup if its shard already had core.MaxGroups groups without that one. So the
	// counts agree with the lists and steps by group, and their sum is Counts.Dead. The burials of
	// one call are counted together, as core.Groups defines it. An edit keeps the group. If a step
	// takes only some of the payloads of a dead letter, the rest keeps the group as well.
	//
	// The cost depends on the number of groups, not on the number of dead letters.
	Groups(ctx context.Context, r GroupsRequest) (GroupsReply, error)

	// Past pages through the records of what became of ids, in order of (DoneAt, id). The records
	// of a page have no Result. With Marks it lists the marks that are kept beside records instead:
	// each as a record that Raises, of which only ID, DoneAt and Score are set. It ignores the
	// fields of the request that are about payloads and failures. A record that the store can't
	// read is left out, so a page may then have fewer records than Limit although more follow.
	Past(ctx context.Context, r PageRequest) (PastPage, error)

	// Find returns everything that the queue holds for one id, with the first of its payloads.
	// Calls with the cursors in Found.Next return the other payloads. FindRequest describes how the
	// work of a call is bounded.
	//
	// Errors: core.ErrInvalidID and ErrInvalidRequest, as FindRequest.Validate returns them.
	Find(ctx context.Context, r FindRequest) (Found, error)

	// Pending returns for each of some ids whether jobs of it are queued or claimed, and since when.
	// Each entry describes one instant: a job that moves from one place to the other meanwhile is in
	// one of them. It reads no payload, so that programs can ask for many ids again and again.
	//
	// Errors: core.ErrInvalidID and ErrInvalidRequest, as PendingRequest.Validate returns them.
	Pending(ctx context.Context, r PendingRequest) (PendingReply, error)
}

// StatsRequest is a request for the state of queues.
type StatsRequest struct {
	Queues []string
	// Shards are the indexes of the shards to count, in any order, if Queues has one queue. nil
	// means all shards, an empty list means no shard.
	Shards []int
}

// Validate returns [ErrInvalidRequest] for Shards together with a number of queues other than one,
// and for a shard below 0.
func (r *StatsRequest) Validate() error {
	if r.Shards != nil && len(r.Queues) != 1 {
		return fmt.Errorf("%w: the shards of %d queues are asked for; name one queue", ErrInvalidRequest, len(r.Queues))
	}
	return validateShards(r.Shards)
}

// Counts are the sizes of a queue or of a shard.
type Counts struct {
	// Fresh is the number of queued jobs without a failure, and Retrying is the number of queued
	// jobs with one. Their sum is the length of the queue.
	Fresh    int64
	Retrying int64
	// Held is the number of held jobs (core.State.Held). Retrying includes them.
	Held int64
	// Claimed is the number of claimed jobs.
	Claimed int64
	// Dead is the number of ids in the morgue.
	Dead int64
	// Quarantined is the number of records that were set aside because they can't be read
	// ([Quarantine]).
	Quarantined int64
	// Processed counts, since the queue began, each time that a job was done. Failed counts each
	// time that a job failed, that its handler buried it or some of its payloads, or that it was
	// recovered too often (docs/rules.md 7).
	Processed int64
	Failed    int64
	// Superseded is the number of payloads that the queue's merge rule has dropped since the queue
	// began, because the rule keeps only higher ones (docs/rules.md 2). A payload that is pushed
	// again after it was superseded counts again.
	Superseded int64
	// Stale is the number of payloads that were dropped since the queue began because they were stale,
	// by pushes with DropStale and by settlements (docs/rules.md 16).
	Stale int64
	// Repeated is the number of payloads that were dropped since the queue began because they were
	// repeats, also of transactions (docs/rules.md 17). A push that is repeated counts again.
	Repeated int64
	// Oldest is the smallest core.State.WaitsFrom of the queued jobs: the time from which the
	// longest-waiting job waits, or at which the first one becomes due. It is not OK if no job is
	// queued. Unlike a shard's head it ignores pauses and claims. So that a store reads few jobs,
	// it may use PerformAt instead for jobs that are not among the first 100 of a shard by
	// (PerformAt, id), and for jobs whose payloads exceed 64 KiB.
	Oldest core.Head
}

// Entries returns the number of entries that [Operator.Recount] counts: queued, claimed and dead.
func (c *Counts) Entries() int { return int(c.Fresh + c.Retrying + c.Claimed + c.Dead) }

// SumCounts returns the sums of the sizes of two shards. Oldest is the earlier of both.
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
		Superseded:  a.Superseded + b.Superseded,
		Stale:       a.Stale + b.Stale,
		Repeated:    a.Repeated + b.Repeated,
		Held:        a.Held + b.Held,
	}
}

// QueueStats is the state of a queue.
type QueueStats struct {
	Queue Queue
	// Now is the store's clock; Oldest.Lag(Now) is the queue's lag. It has no meaning if no shard
	// was requested or reached.
	Now core.Instant
	// Counts are the sums of Shards.
	Counts
	// Shards are the requested shards that were reached, in order of index.
	Shards []ShardStats
	// Unreached are the requested shards that were not reached, in order of index.
	Unreached []core.Shard
}

// Orphaned returns the number of claimed jobs that are orphans, at Now: the sum over the shards.
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
	// Owner and Token are those of the last lease, which ends at ExpiresAt. After ExpiresAt no
	// server runs the shard, unless the owner still renews the lease. Owner is empty if the lease
	// was released, or if the shard was never acquired.
	Owner     string
	Token     int64
	ExpiresAt core.Instant
}

// Orphaned returns the number of the shard's claimed jobs that are orphans, given the store's
// clock. If the lease of the shard has run out or was released, all its claimed jobs are orphans.
// Otherwise no job is an orphan. No server may run orphans until an owner acquires the shard and
// recovers them.
func (s *ShardStats) Orphaned(now core.Instant) int64 {
	if s.Owner != "" && s.ExpiresAt > now {
		return 0
	}
	return s.Claimed
}

// JobView is a queued job with the first of its payloads.
type JobView struct {
	core.Job
	// Count is the number of payloads of the job, limited by MaxCount of the request.
	Count int
}

// JobsPage is a page of queued jobs.
type JobsPage struct {
	Jobs []JobView
	// Next is the cursor of the next page. It is zero if this page is the last.
	Next Cursor
	// Unreached are the shards that can't be reached now, in order of index. Their jobs are missing
	// in the page.
	Unreached []core.Shard
}

// ClaimView is a claimed job with the first of its payloads.
type ClaimView struct {
	core.Claim
	// Count is the number of payloads of the claim, limited by MaxCount of the request.
	Count int
	Shard core.Shard
	// Owner is the owner of the lease under which the job was claimed. Node is the name of the
	// server, from the turn that claimed the job.
	Owner string
	Node  string
	// Since is when the job was claimed. Begun, in the Claim, can be true only for recovered jobs,
	// since other jobs begin without a call to the store.
	Since core.Instant
	// LeaseOver is true if the lease under which the job was claimed has run out, was released, or
	// passed to another owner. Then no server may run the job, and the shard's next owner recovers
	// it.
	LeaseOver bool
	// LeaseUntil is when that lease ends unless it is renewed, as in ShardStats. It is 0 if the
	// lease is over.
	LeaseUntil core.Instant
	// Cancelled is true if an operator has cancelled the job. Drop is that of the last Cancel: it
	// is true if the job is dropped when it ends, and false if it is requeued.
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
	// Count is the number of payloads of the dead letter, limited by MaxCount of the request.
	Count int
}

// MorguePage is a page of dead letters.
type MorguePage struct {
	DeadLetters []DeadLetterView
	// Next and Unreached are as in [JobsPage].
	Next      Cursor
	Unreached []core.Shard
}

// PastView is the record of what became of an id. In a [PastPage] it has no Result.
type PastView struct {
	core.Past
	// ResultBytes is the size of the Result in bytes.
	ResultBytes int
}

// PastPage is a page of records of what became of ids.
type PastPage struct {
	Past []PastView
	// Next and Unreached are as in [JobsPage].
	Next      Cursor
	Unreached []core.Shard
}

// MaxAhead is the largest value of Claimed and Ahead in a [Standing].
const MaxAhead = 1000

// Standing is the state of a shard, apart from the job itself, that decides when the queued job of
// an id runs. It is the state at Now.
type Standing struct {
	// Now is the store's clock.
	Now core.Instant
	// Paused reports whether the queue is paused.
	Paused bool
	// Owner, Token and ExpiresAt are those of the shard's lease, as in ShardStats. All are zero if
	// the lease was released, or if the shard was never acquired.
	Owner     string
	Token     int64
	ExpiresAt core.Instant
	// Claimed is the number of claimed jobs of the shard, at most MaxAhead.
	Claimed int
	// Ahead is the number of due jobs of the shard that are claimed before the queued one, by
	// (PerformAt, id), at most MaxAhead. It is 0 if the id has no queued job, if that job is not
	// due, or if the id is claimed.
	Ahead int
	// Alone is the id of another job that runs alone (core.AloneRecoveries) and before the queued
	// one. If claimed jobs run alone, it is the first of them in order of id. Otherwise it is the
	// first of the jobs ahead, if that one runs alone. It is empty if there is no such job. It is
	// also empty if the id has no queued job, if that job is not due, or if the id is claimed.
	Alone string
}
