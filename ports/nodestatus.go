package ports

import (
	"time"

	"github.com/skeinq/skein/core"
)

// MaxLongest is the maximum number of running jobs that a server's status names.
const MaxLongest = 32

// MaxLaneBusy is the maximum number of shards of a queue that a server's status lists with a busy
// lane.
const MaxLaneBusy = 1000

// ClockLimit is the difference between a process's clock and the store's from which operators are
// warned: by the check "clocks" and by the server's log.
const ClockLimit = time.Second

// NodeStatus is the state of a server at its last announcement. A server announces itself at each
// third of its lease TTL and when the list of servers changes. For a server that is gone it is the
// last known state. The zero value means that the server has no shard and runs nothing.
type NodeStatus struct {
	// Shards is the number of shards whose lease the server held.
	Shards int
	// Running is the number of jobs in batches that ran. These jobs were in a handler, waited for
	// another job of their batch, or had ended before the rest of their batch.
	Running int
	// Busy is the number of its lanes that ran a batch.
	Busy int
	// Claimed is the number of jobs that the server had claimed and not started.
	Claimed int
	// Memory is the number of bytes that the Go runtime of its process had from the operating
	// system. Goroutines is the number of its goroutines. 0 means unknown.
	Memory     int64
	Goroutines int
	// StartedAt is when the server started, by its estimate of the store's clock. Unlike
	// [Node.StartedAt] it stays the same if the announcement runs out and the server announces itself
	// again. 0 means unknown.
	StartedAt core.Instant
	// ClockAhead is how far the clock of its process was ahead of the store's. It is negative if the
	// clock was behind, and 0 if the difference is unknown. Its error is the time of an exchange.
	ClockAhead time.Duration
	// Queues are the configuration and the state of each queue that it serves, in the order of
	// [Node.Queues].
	Queues []QueueStatus
	// Longest are the jobs whose handlers had run longest, longest first, at most [MaxLongest].
	Longest []RunningJob
	// LastChance is the job on its last chance that the server ran or was about to run. Others wait
	// for its end, in whatever queue they are (docs/rules.md 4). The zero value means that there was
	// no such job.
	LastChance LastChance
}

// QueueStatus is the configuration and the state of one queue on one server.
type QueueStatus struct {
	Queue string
	// Merge is the merge rule that the server's program has for the queue. The queue's own may have
	// been changed since.
	Merge core.MergeRule
	// MaxRetries is the number of times that the server retries a job of the queue. After that the
	// job is exhausted: its first payload goes to the morgue, or the job is held.
	MaxRetries int
	// MaxRecoveries is the number of times that a job of the queue may lose its process. A job with
	// as many recoveries is on its last chance. 0 means that no job is, or unknown.
	MaxRecoveries int
	// MaxRunning is the maximum number of batches of the queue that may run at once over all
	// servers. 0 means no limit.
	MaxRunning int
	// MaxLanes is the maximum number of lanes of the server that may run batches of the queue at
	// once. Parallel is the maximum number of batches of one shard that may run at once on the
	// server. 0 means no limit. BatchSize is the maximum number of jobs in a batch; 0 means
	// unknown.
	MaxLanes  int
	Parallel  int
	BatchSize int
	// Rate is the rate at which batches of the queue may start over all servers, as core.Rate.String
	// returns it. It is empty if the queue has no rate.
	Rate string
	// Shards, Running, Busy and Claimed are the queue's part of the same fields of [NodeStatus].
	Shards  int
	Running int
	Busy    int
	Claimed int
	// LaneBusy are the indexes of the queue's shards whose lane ran a batch, if the splitter pins
	// shards to lanes. Such a shard starts no batch before the lane's batch has ended. The indexes
	// are in order, at most [MaxLaneBusy]. LaneBusy is empty if lanes share the shards.
	LaneBusy []int
	// Code are the values that the server's program has for settings of the queue, by name: see
	// core.DescribedSettings. A setting without a value in the program is absent. SettingsVersion is
	// the version of the queue's settings that the server follows. MaxRunning, MaxLanes and
	// Rate are by these.
	Code            map[string]string
	SettingsVersion int64
}

// RunningJob is a job whose handler runs.
type RunningJob struct {
	Shard core.Shard
	ID    string
	// Receipt is the receipt that its claim had first. If payloads of the job were settled by
	// themselves, compare it with core.Receipt.Whole of the claim's receipt.
	Receipt core.Receipt
	// Began is when its handler began, by the server's estimate of the store's clock. If a handler
	// takes all jobs of a batch at once, all of them begin at the same time.
	Began core.Instant
}

// LastChance is a job on its last chance: if its process is lost once more, its recoveries are
// exhausted (docs/rules.md 4).
type LastChance struct {
	Shard core.Shard
	ID    string
}
