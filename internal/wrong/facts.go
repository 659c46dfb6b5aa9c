package wrong

import (
	"slices"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
)

// unservedSince returns since when no server serves a queue with due jobs: the time when its last
// server was gone, or the time from which a job waits, whichever is later.
func (r *rules) unservedSince(s *inspect.QueueStats) (since time.Time) {
	for at := range r.Nodes {
		if n := &r.Nodes[at]; n.State == inspect.NodeGone &&
			slices.Contains(n.Queues, s.Queue.Name) && n.ExpiresAt.After(since) {
			since = n.ExpiresAt
		}
	}
	if s.Lag > 0 && behindSince(s).After(since) {
		since = behindSince(s)
	}
	return since
}

// behindSince returns the time from which the longest-waiting job waits.
func behindSince(s *inspect.QueueStats) time.Time { return s.Now.Add(-s.Lag) }

// orphanedSince returns when the first of the leases ended under which orphans were claimed.
func orphanedSince(s *inspect.QueueStats) (since time.Time) {
	for at := range s.Shards {
		if sh := &s.Shards[at]; sh.Orphaned > 0 && sh.Owner != "" && (since.IsZero() || sh.ExpiresAt.Before(since)) {
			since = sh.ExpiresAt
		}
	}
	return since
}

// hottest returns the shard with the largest lag, its lag, and the median lag of all shards. For a
// queue with fewer than hotShards shards it returns -1 and zeros.
func hottest(s *inspect.QueueStats) (index int, most, median time.Duration) {
	if len(s.Shards) < hotShards {
		return -1, 0, 0
	}
	lags := make([]time.Duration, len(s.Shards))
	for at := range s.Shards {
		lags[at] = s.Shards[at].Lag
		if lags[at] > most {
			index, most = s.Shards[at].Shard.Index, lags[at]
		}
	}
	slices.Sort(lags)
	return index, most, lags[(len(lags)-1)/2]
}

// ended returns the number of jobs that ended in the minutes whose end is after a time.
func ended(minutes []inspect.MinuteStats, after time.Time) (n uint64) {
	for at := range minutes {
		if m := &minutes[at]; m.At.Add(time.Minute).After(after) {
			n += m.Processed + m.Failed
		}
	}
	return n
}

// wait describes how many jobs wait: "1 job waits".
func wait(n int64) string {
	switch n {
	case 0:
		return "no job waits"
	case 1:
		return "1 job waits"
	}
	return figures.Count(n) + " jobs wait"
}

func jobs(n int64) string { return plural(n, "job") }

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return figures.Count(n) + " " + what + "s"
}
