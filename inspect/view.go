package inspect

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// QueuedJob is a job that waits. Its payloads are read-only.
type QueuedJob struct {
	ID string
	// PerformAt is when the job may run.
	PerformAt time.Time
	// Retries is how often the job has failed: 0 at first.
	Retries int
	// Recoveries is how often it has lost the process it ran in since it last
	// ended.
	Recoveries int
	// FirstPush is when the oldest push that merged into it came.
	FirstPush time.Time
	// LastError is the text of the last failure, empty if there was none.
	LastError string
	// Payloads are the first of its PayloadCount payloads, lowest score first, as
	// many as ListOptions.Payloads says; [Inspector.Payloads] lists all.
	Payloads     []core.Payload
	PayloadCount int
	// Cursor is the job's place in the list; of a [Found], in that [ByTime].
	Cursor Cursor
}

// ClaimedJob is a job that a server has claimed: it runs, or is about to. Its payloads are read-only.
type ClaimedJob struct {
	// QueuedJob is the job as it was queued.
	QueuedJob
	Shard core.Shard
	// Owner and Node are the id and the name of the node that has it.
	Owner string
	Node  string
	// Token is the fencing token of the lease it was claimed under.
	Token int64
	// Since is when it was claimed.
	Since time.Time
	// Begun reports that its handler was about to start when its node last said so,
	// which is known only of jobs with Recoveries.
	Begun bool
	// LeaseOver reports that its node is gone, or has lost the shard: the shard's
	// next owner puts the job back.
	LeaseOver bool
	// LeaseUntil is when that lease ends unless the node renews it, which it does after a third of it;
	// zero if it is over.
	LeaseUntil time.Time
	// Cancelled reports that [Inspector.Cancel] was called for it, and Drop that it is
	// dropped when it ends, and not put back.
	Cancelled bool
	Drop      bool
}

// DeadLetter is what the morgue holds for an id. Its payloads are read-only.
type DeadLetter struct {
	ID string
	// ChangedAt is when a payload last came in or was edited.
	ChangedAt time.Time
	// LastError is why the newest payload was buried, and Group the group of that error; see [Inspector.Groups].
	LastError string
	Group     string
	// Payloads are the first of its PayloadCount payloads, lowest score first, as
	// many as ListOptions.Payloads says; [Inspector.Payloads] lists all.
	Payloads     []core.Payload
	PayloadCount int
	// Cursor is its place in the list; of a [Found], in that [ByTime].
	Cursor Cursor
}

// Found is what a queue holds for an id. What is nil is not there: an id can
// be in all three places, with different payloads.
type Found struct {
	ID    string
	Shard core.Shard

	Queued     *QueuedJob
	Claimed    *ClaimedJob
	DeadLetter *DeadLetter
	// Damaged are the places, "queued", "claimed" or "dead", where the store has something of the id that it can't read,
	// so that its field is nil. It is about to be set aside: see [Inspector.Quarantined].
	Damaged []string
}

// Queue is a queue as a store knows it.
type Queue struct {
	Name string
	// Shards is its permanent shard count.
	Shards int
	// IndexIDs reports that its jobs can be listed [ByID].
	IndexIDs bool
	// Paused reports that nothing of it is claimed until [Inspector.Resume].
	Paused bool
}

// Counts are the sizes of a queue or of one of its shards.
type Counts struct {
	// Fresh and Retrying are the queued jobs without and with a failure.
	Fresh    int64
	Retrying int64
	// Claimed are the jobs that servers have taken, and Orphaned those of them whose server is
	// gone: the lease of their shard is over. Nobody runs them until a server works the shard and puts
	// them back, or one with ServerOptions.RecoverOrphans does. Claimed - Orphaned run, or are about to.
	Claimed  int64
	Orphaned int64
	// Dead is how many ids are in the morgue.
	Dead int64
	// Quarantined is how many records were set aside since they can't be read; see [Inspector.Quarantined].
	Quarantined int64
	// Processed and Failed are the jobs that were done, and those that failed or
	// were buried, since the queue began.
	Processed int64
	Failed    int64
	// Oldest is the smallest PerformAt of the queued jobs; zero if there is none.
	Oldest time.Time
	// Lag is how long the job that has waited longest for a server has waited; 0 if none waits. A queued job
	// waits from its PerformAt, an orphan from the end of the lease under which it was claimed. The end of a lease
	// that was released is not known, so orphans of such a lease add no lag. A paused queue lags too.
	Lag time.Duration
}

// Length returns how many jobs are queued: Fresh + Retrying. It is the number of jobs that [Inspector.Jobs] lists.
func (c Counts) Length() int64 { return c.Fresh + c.Retrying }

// Waiting returns how many jobs wait for a server: Length + Orphaned. If the only server of a queue is lost
// while it has all jobs claimed, Length is 0 and Waiting is not.
func (c Counts) Waiting() int64 { return c.Length() + c.Orphaned }

// QueueStats is the state of a queue. Its [Counts] are the sums of its shards, and
// the largest Lag.
type QueueStats struct {
	Queue Queue
	Counts
	// Now is the store's clock when it was asked.
	Now time.Time
	// Shards are those that were reached, in order of index.
	Shards []ShardStats
}

// ShardStats is the state of a shard.
type ShardStats struct {
	Shard core.Shard
	Counts
	// Owner is the node of the last lease, with this Token, which ends at ExpiresAt: once that is
	// past, nobody works the shard, unless its owner still renews it. Empty if the lease was released.
	Owner     string
	Token     int64
	ExpiresAt time.Time
}

// MinuteStats is what was counted in one minute, or in one HistoryOptions.Step.
type MinuteStats struct {
	// At is its start.
	At time.Time
	// Processed and Failed are jobs, as in [Counts].
	Processed uint64
	Failed    uint64
	// Wait is from PerformAt to the start of a job, Run from start to end. Quantile reads them.
	Wait core.Histogram
	Run  core.Histogram
	// WaitMean and RunMean are their means, and WaitDeviation and RunDeviation their standard
	// deviations: exact, where quantiles are by buckets. 0 if no job has run.
	WaitMean      time.Duration
	WaitDeviation time.Duration
	RunMean       time.Duration
	RunDeviation  time.Duration
}

// viewer makes views of what a store returns.
type viewer struct {
	// decodeError is Options.DecodeError.
	decodeError func(stored string) string
}

func (w viewer) queuedJob(v *ports.JobView, order SortBy) QueuedJob {
	job := QueuedJob{
		ID:           v.ID,
		PerformAt:    v.PerformAt.Time(),
		Retries:      v.RetryCount + 1,
		Recoveries:   v.Recoveries,
		FirstPush:    v.FirstPush.Time(),
		LastError:    w.errorText(v.Error),
		Payloads:     v.Payloads,
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
		Payloads:     v.Payloads,
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
	return Queue{Name: q.Name, Shards: q.Shards, IndexIDs: q.IndexIDs, Paused: q.Paused}
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

// orphanHead returns since when the orphans of a shard wait: the end of their lease. It is not OK if there are
// none, or if the lease was released, whose end the store does not report.
func orphanHead(s *ports.ShardStats, now core.Instant) core.Head {
	return core.Head{Due: s.ExpiresAt, OK: s.Owner != "" && s.Orphaned(now) > 0}
}

// countsOf makes the counts of a shard or a queue, whose orphans wait since left.
func countsOf(c *ports.Counts, orphaned int64, left core.Head, now core.Instant) Counts {
	counts := Counts{
		Fresh: c.Fresh, Retrying: c.Retrying, Claimed: c.Claimed, Orphaned: orphaned, Dead: c.Dead,
		Processed: c.Processed, Failed: c.Failed, Lag: c.Oldest.Earlier(left).Lag(now), Quarantined: c.Quarantined,
	}
	if c.Oldest.OK {
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

// convert returns f of each element; nil for nil.
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
