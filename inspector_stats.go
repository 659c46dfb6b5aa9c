package skein

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// QueueInfo is what a store knows of a queue.
type QueueInfo struct {
	Name string
	// Shards is its permanent shard count.
	Shards int
	// IndexIDs reports that its jobs are listed ByID.
	IndexIDs bool
	// Paused reports that nothing of it is claimed until Resume.
	Paused bool
}

func queueInfo(q *ports.Queue) QueueInfo {
	return QueueInfo{Name: q.Name, Shards: q.Shards, IndexIDs: q.IndexIDs, Paused: q.Paused}
}

// Node is a running server.
type Node struct {
	// Owner is drawn at each start of the server: the owner of its leases.
	Owner string
	// Name is ServerOptions.Name; several nodes may share it.
	Name string
	// Host and PID say where it runs.
	Host string
	PID  int
	// Lanes is how many batches it runs at once.
	Lanes int
	// Queues are the names of those it serves, in order of its handlers.
	Queues []string
	// StartedAt is when it first announced itself, and ExpiresAt when it counts
	// as gone unless it announces itself again.
	StartedAt time.Time
	ExpiresAt time.Time
}

func nodeOf(n *ports.Node) Node {
	return Node{
		Owner: n.Owner, Name: n.Name, Host: n.Host, PID: n.PID, Lanes: n.Lanes, Queues: n.Queues,
		StartedAt: n.StartedAt.Time(), ExpiresAt: n.ExpiresAt.Time(),
	}
}

// Counts are the sizes of a queue or of one of its shards.
type Counts struct {
	// Fresh and Retries are the queued jobs without and with a failure.
	Fresh    int64
	Retrying int64
	// Claimed are the jobs that lanes have taken.
	Claimed int64
	// Dead is how many ids are in the morgue.
	Dead int64
	// Processed and Failed are the jobs that were done, and those that failed or
	// were buried, since the queue began.
	Processed int64
	Failed    int64
	// Oldest is the smallest PerformAt of the queued jobs; zero if there is none.
	Oldest time.Time
	// Lag is how long that job has been due, 0 if it isn't. A paused queue lags
	// too.
	Lag time.Duration
}

// Length is how many jobs are queued: Fresh + Retries.
func (c Counts) Length() int64 { return c.Fresh + c.Retrying }

func countsOf(c *ports.Counts, now core.Instant) Counts {
	counts := Counts{
		Fresh: c.Fresh, Retrying: c.Retrying, Claimed: c.Claimed, Dead: c.Dead,
		Processed: c.Processed, Failed: c.Failed, Lag: c.Oldest.Lag(now),
	}
	if c.Oldest.OK {
		counts.Oldest = c.Oldest.Due.Time()
	}
	return counts
}

// QueueStats is the state of a queue. Its Counts are the sums of its shards, and
// the largest Lag.
type QueueStats struct {
	Queue QueueInfo
	Counts
	// Now is the store's clock when it was asked.
	Now time.Time
	// Shards are in order of index.
	Shards []ShardStats
}

// ShardStats is the state of a shard.
type ShardStats struct {
	Shard core.Shard
	Counts
	// Owner is the node that works the shard, by its lease with this Token until
	// ExpiresAt; empty if none does.
	Owner     string
	Token     int64
	ExpiresAt time.Time
}

func queueStats(s *ports.QueueStats) QueueStats {
	return QueueStats{
		Queue:  queueInfo(&s.Queue),
		Counts: countsOf(&s.Counts, s.Now),
		Now:    s.Now.Time(),
		Shards: convert(s.Shards, func(sh *ports.ShardStats) ShardStats {
			view := ShardStats{Shard: sh.Shard, Counts: countsOf(&sh.Counts, s.Now), Owner: sh.Owner, Token: sh.Token}
			if sh.Owner != "" {
				view.ExpiresAt = sh.ExpiresAt.Time()
			}
			return view
		}),
	}
}

// Minute is what was counted in one minute.
type MinuteStats struct {
	// At is its start.
	At time.Time
	// Processed and Failed are jobs, as in Counts.
	Processed uint64
	Failed    uint64
	// Wait is from PerformAt to the start of a job, Run from start to end.
	// Quantile reads them, Add sums several minutes up.
	Wait core.Histogram
	Run  core.Histogram
}

func minuteOf(m *ports.MinuteStats) MinuteStats {
	return MinuteStats{At: m.At.Time(), Processed: m.Processed, Failed: m.Failed, Wait: m.Wait, Run: m.Run}
}
