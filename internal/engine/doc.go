// Package engine runs the jobs of a node. Every goroutine of Skein starts here.
//
// # Parts
//
// An [Engine] is one node (node is what its parts share). It splits the shards of its queues
// over lanes, once, at the start.
//
// A lane is a goroutine that runs one batch at a time. Its scheduler chooses a shard by the heads
// of its shards, which say when the next job of each is due; the lane takes a batch of that shard
// (shard.take), or waits until a turn has brought one (lane.fetch), runs the handler, and hands
// the outcomes back (shard.finish).
//
// A shard has a goroutine of its own (shard.run). It acquires a lease, turns while that lasts,
// and begins again. A turn is one exchange with the store: it settles what has finished, begins
// recovered jobs, renews the lease and claims the next jobs. At most one is in flight; what finishes
// meanwhile goes with the next, so that batches form by themselves under load.
//
// # A turn
//
// shard.turnLoop asks shard.nextStep what to do. If there is something to send or to claim,
// shard.request makes the request and shard.turn sends it. shard.takeReply carries out the
// reply, step by step in one file. A turn without an answer may have been carried out, so it is
// repeated as it was; the shard is unresponsive until then, and its lane works others.
//
// Loops of the node cause turns, too: polls and wake-ups bring news of jobs that are due, and the
// tick sees to what waits for time to pass, such as jobs that go back since their lane is busy.
//
// # Leases
//
// shard.acquire gets a lease. Each turn extends it, and Engine.maintainLeases renews those that
// no turn has extended for a third of the TTL. This node acts as if the lease ended a fifth of the TTL
// before the store says so. A lease that runs out or that the store refuses is dropped: the handler
// is cancelled, nothing of it is sent, and the shard is not acquired again until it has returned.
// The next owner gets the claimed jobs as orphans, and its first turn settles them.
//
// # Shutdown
//
// When Run's context ends, node.stop is closed. Lanes start nothing more and end with their
// handlers; after the shutdown timeout the contexts of handlers are cancelled. Then each shard
// settles what has finished, puts back what never started, and releases its lease. Last, the loops of
// the node end, waiting hooks are called, and the node's announcement is withdrawn.
//
// # Locks
//
// shard.mu guards a shard's state. The Batch has a lock of its own, taken inside it, and so have
// its contexts, taken inside that; lastChance.mu is taken inside shard.mu. The goroutine of a
// lane owns the lane, that of a shard its attempts. Nothing calls a store, a handler, a logger or an
// observer with a lock held.
package engine
