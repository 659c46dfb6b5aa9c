package skein

import "github.com/skeinq/skein/core"

// Splitter says which shards a server works, and which of its lanes may work them. To write one,
// see [core.Splitter].
type Splitter = core.Splitter

// SpreadSplitter spreads the shards of each queue over the servers that serve it, in proportion
// to their lanes, and anew when one comes or goes; few shards move then. Any lane of a server runs batches of any of
// its shards, several of one shard at once on different ids. It is the default.
type SpreadSplitter = core.SpreadSplitter

// LaneSplitter pins shard i to lane i mod lanes, as Lowkiq does. So at most as many batches
// run at once as there are shards. All shards are of one server; others stand by.
type LaneSplitter = core.LaneSplitter

// NodeSplitter is for servers with numbers of their own: shard i belongs to node i mod
// Nodes, and waits while that node is down. With Share any lane of the node runs batches of
// any of its shards; without, each shard is pinned to a lane. All nodes must have the same
// queues in the same order, and the same Nodes; otherwise shards belong to nobody. See
// [core.NodeSplitter].
type NodeSplitter = core.NodeSplitter

// Scheduler chooses of which shard the next batch is. To write one, see [core.Scheduler], or
// [core.HeadScheduler] for one that chooses among many shards.
type Scheduler = core.Scheduler

// SchedulerFunc builds the [Scheduler] of the lanes that share shards: [Lag], [Seq], or what
// [StrictBy] and [WeightedBy] return. It may be called more than once for them.
type SchedulerFunc = core.SchedulerFunc

// SchedulerConfig is what a [SchedulerFunc] gets: the shards that the lanes share, and the
// server's poll interval.
type SchedulerConfig = core.SchedulerConfig

// Lag is the [SchedulerFunc] by which the shard whose next due job is the oldest comes
// next: the default.
func Lag(c SchedulerConfig) Scheduler { return core.Lag(c) }

// Seq is the [SchedulerFunc] by which shards are visited in turn, with a wait of one poll
// interval after a round in which no job succeeded, also if one is pushed meanwhile. While
// a batch of the round still runs, the visits go on.
func Seq(c SchedulerConfig) Scheduler { return core.Seq(c) }

// StrictBy returns a scheduler that takes a shard of the first of the named queues that has
// work; the others come last. Of a queue's shards that with the oldest due job is next. A
// queue waits for as long as one before it has work. A queue for which the server has no
// handler is [ErrInvalidOptions] from Run.
func StrictBy(queues ...string) SchedulerFunc { return core.StrictBy(queues...) }

// WeightedBy returns a scheduler that shares batches among the shards that have work
// in proportion to the weights of their queues; a queue that is not named, or whose
// weight is below 1, weighs 1. Equal weights are round robin. Jobs are claimed in lots, so starts
// follow the proportion over fractions of a second. A queue for which the server has no
// handler is [ErrInvalidOptions] from Run.
func WeightedBy(weights map[string]int) SchedulerFunc { return core.WeightedBy(weights) }
