package skein

import "github.com/skeinq/skein/core"

// Splitter deals the shards of a server's queues to its lanes. Shards are listed
// queue by queue in order of the handlers.
type Splitter = core.Splitter

// LaneSplitter deals shard i to lane i mod lanes: the default.
type LaneSplitter = core.LaneSplitter

// NodeSplitter is for servers that share a store: shard i belongs to node i mod
// Nodes, and waits while that node is down.
type NodeSplitter = core.NodeSplitter

// Scheduler chooses which of its shards a lane works next. To write one, see
// [core.Scheduler].
type Scheduler = core.Scheduler

// SchedulerFunc builds the [Scheduler] of one lane: [Lag], [Seq], or what [StrictBy] and
// [WeightedBy] return.
type SchedulerFunc = core.SchedulerFunc

// SchedulerConfig is what a [SchedulerFunc] gets: the shards of the lane, and the
// server's poll interval.
type SchedulerConfig = core.SchedulerConfig

// Lag is the [SchedulerFunc] by which a lane takes the shard whose next due job is
// the oldest: the default.
func Lag(c SchedulerConfig) Scheduler { return core.Lag(c) }

// Seq is the [SchedulerFunc] by which a lane visits its shards in turn, and waits one
// poll interval after a round in which no job succeeded, also if one is pushed
// meanwhile.
func Seq(c SchedulerConfig) Scheduler { return core.Seq(c) }

// StrictBy returns a scheduler that takes the first shard that has work, in the
// order of the named queues; the others come last. A queue for which the server has
// no handler is [ErrInvalidOptions] from Run.
func StrictBy(queues ...string) SchedulerFunc { return core.StrictBy(queues...) }

// WeightedBy returns a scheduler that shares turns among the shards that have work
// in proportion to the weights of their queues; a queue that is not named, or whose
// weight is below 1, weighs 1.
// Equal weights are round robin. A queue for which the server has no handler is
// [ErrInvalidOptions] from Run.
func WeightedBy(weights map[string]int) SchedulerFunc { return core.WeightedBy(weights) }
