package inspect

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// QueuedJob is a queued job. Its payloads are read-only.
type QueuedJob struct {
	ID string
	// PerformAt is when the job may run.
	PerformAt time.Time
	// Retries is the number of failures of the job since it was last fresh. It is 0 at first, and
	// again after its first payload was done or buried, after a release or a revival, and after
	// skein.Await.
	Retries int
	// Held is true if the job is held, because it used up its retries or recoveries in a queue with
	// skein.Hold. It does not run before [Inspector.Release], [Inspector.RunNow],
	// [Inspector.BuryFirst] or [Inspector.DeleteFirst] is called for it. While it is held, its
	// PerformAt is the latest time that a store can hold, in the year 2255.
	Held bool
	// Recoveries is the number of times that the job lost its process and that count, since the job
	// was last done, failed, snoozed or buried (docs/rules.md 4).
	Recoveries int
	// FirstPush is the time of the oldest push that merged into the job.
	FirstPush time.Time
	// LastError is the text of the last failure. It is empty if the job has not failed, and after
	// skein.Await or a revival.
	LastError string
	// Tags are the tags of the pushes that merged into the job, in the order of their bytes; see
	// skein.Tags. nil means no tags.
	Tags []string
	// Payloads are the first of its PayloadCount payloads, lowest score first, at most
	// ListOptions.Payloads. [Inspector.Payloads] lists all of them.
	Payloads     []core.Payload
	PayloadCount int
	// Cursor is the job's position in the list. In a [Found] it is the position in the list
	// [ByTime].
	Cursor Cursor
}

// ClaimedJob is a job that a server has claimed: it runs, or will run soon. Its payloads are
// read-only.
type ClaimedJob struct {
	// QueuedJob is the job as it was queued.
	QueuedJob
	Shard core.Shard
	// Owner and Node are the id and the name of the server that has claimed the job.
	Owner string
	Node  string
	// Token is the fencing token of the lease under which the job was claimed.
	Token int64
	// Since is when the job was claimed.
	Since time.Time
	// Begun is true if its server has announced that the job's handler starts. Servers announce
	// that only for jobs with Recoveries.
	Begun bool
	// LeaseOver is true if its server no longer holds the lease under which the job was claimed.
	// The shard's next owner requeues the job.
	LeaseOver bool
	// LeaseUntil is when that lease ends unless the server renews it. A server renews a lease after
	// a third of its duration. LeaseUntil is zero if the lease is over.
	LeaseUntil time.Time
	// Cancelled is true if [Inspector.Cancel] was called for the job. Drop is true if the job is
	// dropped when it ends, and false if it is requeued.
	Cancelled bool
	Drop      bool
}

// DeadLetter is the buried payloads of one id, in the morgue. They are read-only.
type DeadLetter struct {
	ID string
	// ChangedAt is when a payload was last added or edited.
	ChangedAt time.Time
	// LastError is the error for which the newest payload was buried. Group is the group of that
	// error; see [Inspector.Groups].
	LastError string
	Group     string
	// Tags are the tags of the jobs that were buried, in the order of their bytes. nil means no
	// tags.
	Tags []string
	// Payloads are the first of its PayloadCount payloads, lowest score first, at most
	// ListOptions.Payloads. [Inspector.Payloads] lists all of them.
	Payloads     []core.Payload
	PayloadCount int
	// Cursor is the dead letter's position in the list. In a [Found] it is the position in the list
	// [ByTime].
	Cursor Cursor
}

// Found is everything that a queue holds for an id. A nil field means that this place has nothing
// of the id. An id can be in all three places, with different payloads.
type Found struct {
	ID    string
	Shard core.Shard

	Queued     *QueuedJob
	Claimed    *ClaimedJob
	DeadLetter *DeadLetter
	// Damaged are the places ("queued", "claimed", "dead") where the store has a record of the id
	// that it can't read. The field of such a place is nil. The record will be set aside: see
	// [Inspector.Quarantined].
	Damaged []string
}

// Queue is the store's record of a queue.
type Queue struct {
	Name string
	// Shards is its permanent shard count.
	Shards int
	// IndexIDs is true if its jobs can be listed [ByID].
	IndexIDs bool
	// Merge is its merge rule; its String is "union", "newest", "latest(n)", "every" or
	// "every.last(n)".
	Merge core.MergeRule
	// Paused is true if no job of the queue is claimed until [Inspector.Resume].
	Paused bool
}

// Counts are the sizes of a queue or of one of its shards.
type Counts struct {
	// Fresh is the number of queued jobs without a failure, and Retrying is the number of queued
	// jobs with one.
	Fresh    int64
	Retrying int64
	// Held is the number of held jobs; see QueuedJob.Held. Retrying includes them.
	Held int64
	// Claimed is the number of jobs that servers have claimed. Orphaned is the number of those
	// whose server is gone, because the lease of their shard is over. Orphans don't run until a
	// server acquires the shard and requeues them, or until a server with
	// ServerOptions.RecoverOrphans requeues them. The other claimed jobs, Claimed - Orphaned, run
	// or will run soon.
	Claimed  int64
	Orphaned int64
	// Dead is the number of ids in the morgue.
	Dead int64
	// Quarantined is the number of records that were set aside because they can't be read; see
	// [Inspector.Quarantined].
	Quarantined int64
	// Superseded is the number of payloads that the queue's merge rule has dropped since the queue
	// began, because the rule keeps only higher ones. A payload that is pushed again after it was
	// superseded counts again.
	Superseded int64
	// Processed counts, since the queue began, each time that a job was done. Failed counts each
	// time that a job failed, that its handler buried it or some of its payloads, or that it was
	// recovered too often.
	Processed int64
	Failed    int64
	// Oldest is the time from which the longest-waiting queued job waits, or at which the first one
	// becomes due. A job waits from its PerformAt, or from its FirstPush if that is later, as for an
	// urgent job. Oldest is zero if no job is queued, or if all of them are held and so never due.
	Oldest time.Time
	// Lag is the longest time that a job has waited for a server. It is 0 if no job waits. A queued
	// job waits from the time that Oldest describes. An orphan waits from the end of the lease
	// under which it was claimed. The end of a released lease is unknown, so orphans of such a
	// lease add no lag. A paused queue has a lag too.
	Lag time.Duration
}

// Length returns the number of queued jobs: Fresh + Retrying. It is the number of jobs that
// [Inspector.Jobs] lists.
func (c Counts) Length() int64 { return c.Fresh + c.Retrying }

// Waiting returns the number of jobs that no server works on: Length + Orphaned. It includes jobs
// that are held or not due yet, which have no Lag. If the only server of a queue dies while it has
// claimed all jobs, Length is 0 and Waiting is not.
func (c Counts) Waiting() int64 { return c.Length() + c.Orphaned }

// QueueStats is the state of a queue. Its [Counts] are the sums over its shards, except that Oldest
// is the earliest and Lag the longest of them.
type QueueStats struct {
	Queue Queue
	Counts
	// Now is the store's clock when the counts were read.
	Now time.Time
	// Shards are the shards that were reached, in order of index.
	Shards []ShardStats
}

// ShardStats is the state of a shard.
type ShardStats struct {
	Shard core.Shard
	Counts
	// Owner is the id of the server with the last lease. That lease has this Token and ends at
	// ExpiresAt. After ExpiresAt no server runs the shard, unless the owner still renews the lease.
	// Owner is empty if the lease was released, or if the shard was never acquired.
	Owner     string
	Token     int64
	ExpiresAt time.Time
}

// MinuteStats is the statistics of one minute, or of one HistoryOptions.Step.
type MinuteStats struct {
	// At is the start of the minute or step.
	At time.Time
	// Processed and Failed count jobs, as in [Counts].
	Processed uint64
	Failed    uint64
	// Wait counts how long jobs waited until their start, from PerformAt or from FirstPush if that
	// is later. Run counts how long they ran. Use the method Quantile of both.
	Wait core.Histogram
	Run  core.Histogram
	// WaitMean and RunMean are the means of these times, and WaitDeviation and RunDeviation their
	// standard deviations. They are exact, unlike quantiles, which are taken from buckets. They are
	// 0 if no job has run.
	WaitMean      time.Duration
	WaitDeviation time.Duration
	RunMean       time.Duration
	RunDeviation  time.Duration
}

// viewer makes views of the entries that a store returns.
type viewer struct {
	// decodeError is Options.DecodeError.
	decodeError func(stored string) string
}

func (w viewer) queuedJob(v *ports.JobView, order SortBy) QueuedJob {
	job := QueuedJob{
		ID:           v.ID,
		PerformAt:    v.PerformAt.Time(),
		Retries:      v.RetryCount + 1,
		Held:         v.Held(),
		Recoveries:   v.Recoveries,
		FirstPush:    v.FirstPush.Time(),
		LastError:    w.errorText(v.Error),
		Tags:         v.Tags.List(),
		Payloads:     core.PushedPayloads(v.Payloads),
		PayloadCount: v.Count,
		Cursor:       Cursor{id: v.ID},
	}
	switch order {
	case ByTime, RetryingByTime:
		job.Cursor.key = int64(v.PerformAt)
	case RetryingByCount:
		job.Cursor.key = int64(v.RetryCount)
	}
	return job
}

func (w viewer) claimedJob(v *ports.ClaimView) ClaimedJob {
	job := ClaimedJob{
		QueuedJob: w.queuedJob(&ports.JobView{Job: v.Job, Count: v.Count}, ByTime),
		Shard:     v.Shard,
		Owner:     v.Owner,
		Node:      v.Node,
		Token:     v.Receipt.Token,
		Since:     v.Since.Time(),
		Begun:     v.Begun,
		LeaseOver: v.LeaseOver,
		Cancelled: v.Cancelled,
		Drop:      v.Drop,
	}
	if !v.LeaseOver {
		job.LeaseUntil = v.LeaseUntil.Time()
	}
	job.Cursor.key = int64(v.Since)
	return job
}

func (w viewer) deadLetter(v *ports.DeadLetterView, order SortBy) DeadLetter {
	d := DeadLetter{
		ID:           v.ID,
		ChangedAt:    v.ChangedAt.Time(),
		LastError:    w.errorText(v.Error),
		Group:        v.Group,
		Tags:         v.Tags.List(),
		Payloads:     core.PushedPayloads(v.Payloads),
		PayloadCount: v.Count,
		Cursor:       Cursor{id: v.ID},
	}
	if order == ByTime {
		d.Cursor.key = int64(v.ChangedAt)
	}
	return d
}

// errorText returns a stored error as it is shown.
func (w viewer) errorText(stored string) string {
	if stored == "" || w.decodeError == nil {
		return stored
	}
	return w.decodeError(stored)
}

func queueOf(q *ports.Queue) Queue {
	return Queue{Name: q.Name, Shards: q.Shards, IndexIDs: q.IndexIDs, Merge: q.Merge, Paused: q.Paused}
}

func queueStatsOf(s *ports.QueueStats) QueueStats {
	var left core.Head
	for at := range s.Shards {
		left = left.Earlier(orphanHead(&s.Shards[at], s.Now))
	}
	return QueueStats{
		Queue:  queueOf(&s.Queue),
		Counts: countsOf(&s.Counts, s.Orphaned(), left, s.Now),
		Now:    s.Now.Time(),
		Shards: convert(s.Shards, func(sh *ports.ShardStats) ShardStats { return shardStatsOf(sh, s.Now) }),
	}
}

func shardStatsOf(s *ports.ShardStats, now core.Instant) ShardStats {
	stats := ShardStats{Shard: s.Shard, Counts: countsOf(&s.Counts, s.Orphaned(now), orphanHead(s, now), now), Owner: s.Owner, Token: s.Token}
	if s.Owner != "" {
		stats.ExpiresAt = s.ExpiresAt.Time()
	}
	return stats
}

// orphanHead returns the time from which the orphans of a shard wait: the end of their lease. It is
// not OK if there are no orphans, or if the lease was released, because the store does not report
// the end of such a lease.
func orphanHead(s *ports.ShardStats, now core.Instant) core.Head {
	return core.Head{Due: s.ExpiresAt, OK: s.Owner != "" && s.Orphaned(now) > 0}
}

// countsOf makes the counts of a shard or a queue. left is the time from which its orphans wait.
func countsOf(c *ports.Counts, orphaned int64, left core.Head, now core.Instant) Counts {
	counts := Counts{
		Fresh: c.Fresh, Retrying: c.Retrying, Claimed: c.Claimed, Orphaned: orphaned, Dead: c.Dead,
		Processed: c.Processed, Failed: c.Failed, Lag: c.Oldest.Earlier(left).Lag(now), Quarantined: c.Quarantined,
		Superseded: c.Superseded, Held: c.Held,
	}
	if c.Oldest.OK && c.Oldest.Due != core.MaxInstant { // held jobs are never due
		counts.Oldest = c.Oldest.Due.Time()
	}
	return counts
}

func minuteStatsOf(m *ports.MinuteStats) MinuteStats {
	return MinuteStats{
		At: m.At.Time(), Processed: m.Processed, Failed: m.Failed, Wait: m.Wait, Run: m.Run,
		WaitMean: m.MeanWait(), WaitDeviation: m.WaitDeviation(), RunMean: m.MeanRun(), RunDeviation: m.RunDeviation(),
	}
}

// convert returns the results of f for the elements of a list. It returns nil for nil.
func convert[P, V any](list []P, f func(*P) V) []V {
	if list == nil {
		return nil
	}
	views := make([]V, len(list))
	for at := range list {
		views[at] = f(&list[at])
	}
	return views
}
