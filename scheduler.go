package skein

import "github.com/skeinq/skein/core"

// Splitter decides which shards a server owns, and which of its lanes may run them. To write one,
// see [core.Splitter].
type Splitter = core.Splitter

// SpreadSplitter spreads the shards of each queue over the servers that serve it, in proportion to
// their lanes. When a server joins or leaves, few shards move. Any lane of a server runs batches of
// any of its shards, also several batches of one shard at once, on different ids. It is the
// default.
type SpreadSplitter = core.SpreadSplitter

// LaneSplitter pins shard i to lane i mod lanes, as Lowkiq does. So at most one batch per shard
// runs at once. One server owns all shards; other servers stand by.
type LaneSplitter = core.LaneSplitter

// NodeSplitter is for servers that are numbered by their configuration. Shard i belongs to node i
// mod Nodes, and waits while that node is down. With Share, any lane of the node runs batches of
// any of its shards. Without Share, each shard is pinned to a lane. All servers must have the same
// queues in the same order and the same Nodes; otherwise some shards belong to no server. See
// [core.NodeSplitter].
type NodeSplitter = core.NodeSplitter

// Scheduler chooses the shard of the next batch. To write one, see [core.Scheduler].
type Scheduler = core.Scheduler

// SchedulerFunc builds the [Scheduler] of the lanes that share shards. [Lag] and [Seq] are
// SchedulerFuncs; [StrictBy] and [WeightedBy] return one. It may be called more than once for the
// same lanes.
type SchedulerFunc = core.SchedulerFunc

// SchedulerConfig is the argument of a [SchedulerFunc]: the shards that the lanes share, and the
// server's poll interval.
type SchedulerConfig = core.SchedulerConfig

// Lag is the [SchedulerFunc] that chooses the shard whose next due job is the oldest. It is the
// default.
func Lag(c SchedulerConfig) Scheduler { return core.Lag(c) }

// Seq is the [SchedulerFunc] that visits the shards in turn. After a round in which no job
// succeeded it waits for one poll interval, even if a job is pushed during the wait. While a batch
// of the round still runs, it continues without waiting.
func Seq(c SchedulerConfig) Scheduler { return core.Seq(c) }

// StrictBy returns a scheduler that serves the named queues in order: a queue waits while an
// earlier one has work. Queues that are not named come last. Among the shards of a queue, the one
// with the oldest due job is next. Run returns [ErrInvalidOptions] if the server has no handler for
// a named queue.
func StrictBy(queues ...string) SchedulerFunc { return core.StrictBy(queues...) }

// WeightedBy returns a scheduler that shares batches among the shards with work, in proportion to
// the weights of their queues. Each shard has the weight of its queue, so of two queues with the
// same weight the one with more shards gets more batches. A queue that is not named, or whose
// weight is below 1, has weight 1. Equal weights are round robin. A server claims several jobs at a
// time, so over fractions of a second the starts can differ from the proportion. Run returns
// [ErrInvalidOptions] if the server has no handler for a named queue.
func WeightedBy(weights map[string]int) SchedulerFunc { return core.WeightedBy(weights) }
