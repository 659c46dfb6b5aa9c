package ports

import "github.com/skeinq/skein/core"

// MaxLongest is how many running jobs a node's status may name.
const MaxLongest = 32

// MaxLaneBusy is how many shards of a queue a node's status may say have a lane that is busy.
const MaxLaneBusy = 1000

// NodeStatus is what a node was doing when it announced itself last, which it does at each third
// of its lease TTL and when the list of nodes changes; of one that is gone it is what it did last. The zero
// value is a node that does nothing.
type NodeStatus struct {
	// Shards is how many leases it held.
	Shards int
	// Running is how many jobs were in batches that ran: in a handler, behind another of their
	// batch, or ended and not settled yet.
	Running int
	// Busy is how many of its lanes ran a batch.
	Busy int
	// Claimed is how many jobs it had claimed that had not started.
	Claimed int
	// Memory is how many bytes its process had from the operating system, and Goroutines how many of
	// these it had. 0 is unknown.
	Memory     int64
	Goroutines int
	// Queues is how each queue that it serves was configured, and what it did of it, in the order of
	// [Node.Queues].
	Queues []QueueStatus
	// Longest are the jobs whose handlers had run longest, the longest first, at most [MaxLongest].
	Longest []RunningJob
}

// QueueStatus is one queue on one node.
type QueueStatus struct {
	Queue string
	// MaxRetries is how often the node retries a job of the queue before its first payload goes to
	// the morgue.
	MaxRetries int
	// MaxRunning is how many batches of the queue may run at once over all nodes; 0 is no bound.
	MaxRunning int
	// MaxLanes is how many lanes of the node may run batches of the queue at once, and Parallel how many
	// batches of one shard may run at once on it; 0 is no bound. A batch has at most BatchSize jobs; 0 is
	// unknown.
	MaxLanes  int
	Parallel  int
	BatchSize int
	// Shards, Running, Busy and Claimed are the queue's part of those of [NodeStatus].
	Shards  int
	Running int
	Busy    int
	Claimed int
	// LaneBusy are the indexes of those of its shards whose lane ran a batch, where a splitter gives each lane
	// shards of its own: none of them starts another batch before that has ended. They are in order, the first
	// [MaxLaneBusy]. It is empty where lanes share the shards.
	LaneBusy []int
}

// RunningJob is a job that is in a handler.
type RunningJob struct {
	Shard core.Shard
	ID    string
	// Receipt is that of its claim.
	Receipt core.Receipt
	// Began is when its handler began, by the store's clock as its node knew it. A batch whose
	// handler takes all of its jobs at once begins all of them.
	Began core.Instant
}
