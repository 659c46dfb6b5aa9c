package inspect

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Queue is the store's record of a queue.
type Queue struct {
	Name string `json:"name" class:"queue" doc:"its name"`
	// Shards is permanent.
	Shards int `json:"shards" class:"public" doc:"its shard count"`
	// IndexIDs is true if its jobs can be listed [ByID].
	IndexIDs bool `json:"index_ids" class:"public" doc:"whether its jobs can be listed by id"`
	// Merge's String is one of the texts of its description.
	Merge core.MergeRule `json:"merge" class:"public" wide:"true" doc:"its merge rule: union, newest, latest(n), every or every.last(n)"`
	// Paused is true until [Inspector.Resume].
	Paused bool `json:"paused" class:"public" doc:"whether the queue is paused: servers claim none of its jobs"`
	// Settings are what operators have set of it. [SettingsOf] returns them with the values of the
	// servers' code.
	Settings StoredSettings `json:"settings,omitempty" class:"public" wide:"true" doc:"the settings that operators have set, such as max-running=20"`
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
	// Stale is the number of payloads that were dropped since the queue began, because a payload of
	// their id with at least their score was done: see skein.DropStale.
	Stale int64
	// Repeated is the number of payloads that were dropped since the queue began, because an equal one
	// was accepted before: see skein.OnceIn.
	Repeated int64
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

func queueOf(q *ports.Queue) Queue {
	return Queue{
		Name:     q.Name,
		Shards:   q.Shards,
		IndexIDs: q.IndexIDs,
		Merge:    q.Merge,
		Paused:   q.Paused,
		Settings: StoredSettings{q.Settings},
	}
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
	stats := ShardStats{
		Shard:  s.Shard,
		Counts: countsOf(&s.Counts, s.Orphaned(now), orphanHead(s, now), now),
		Owner:  s.Owner,
		Token:  s.Token,
	}
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
		Fresh:       c.Fresh,
		Retrying:    c.Retrying,
		Claimed:     c.Claimed,
		Orphaned:    orphaned,
		Dead:        c.Dead,
		Processed:   c.Processed,
		Failed:      c.Failed,
		Lag:         c.Oldest.Earlier(left).Lag(now),
		Quarantined: c.Quarantined,
		Superseded:  c.Superseded,
		Stale:       c.Stale,
		Repeated:    c.Repeated,
		Held:        c.Held,
	}

	if c.Oldest.OK && c.Oldest.Due != core.MaxInstant { // held jobs are never due
		counts.Oldest = c.Oldest.Due.Time()
	}
	return counts
}

func minuteStatsOf(m *ports.MinuteStats) MinuteStats {
	return MinuteStats{
		At:            m.At.Time(),
		Processed:     m.Processed,
		Failed:        m.Failed,
		Wait:          m.Wait,
		Run:           m.Run,
		WaitMean:      m.MeanWait(),
		WaitDeviation: m.WaitDeviation(),
		RunMean:       m.MeanRun(),
		RunDeviation:  m.RunDeviation(),
	}
}
