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
//
// # Files
//
// From callers to callees:
//
//	engine.go, rundue.go      Run and RunDue: start, serve, drain
//	config.go, register.go    what a node is given; how it declares its queues and announces itself
//	poll.go, wakeup.go        how shards learn of work
//	watch.go                  what the log says of handlers and shards that make no loop fail
//	lane.go                   choosing a shard and running a batch
//	shard.go                  a shard's state, and what it and its lane hand each other
//	acquire.go, lease.go      a shard's life; its lease: extended, renewed, released, dropped
//	turn.go, reply.go         what a turn sends; what its reply does
//	begin.go, buffer.go       claimed jobs that wait to start, recovered ones among them
//	putback.go, cancel.go     claimed jobs that go back, are recovered, or are cancelled
//	deferred.go               settlements that the store carries out later
//	head.go                   when a shard's next job is due
//	results.go, stats.go      how jobs ended, once the store confirms it; the statistics
//	joblog.go                 what the log says of jobs
//	buried.go, hooks.go       what went to the morgue; the calls of Config.Buried
//	transaction.go            settling in the handler's transaction
//	batch.go, outcome.go      a batch and its outcomes
//	jobrun.go, overdue.go     jobs of a batch one after another; handlers that outlast their context
//	runctx.go                 a handler's context
//	node.go, loop.go          what all parts share; starting, waiting and ending loops
//	outages.go, panic.go      failures of the store; panics
//	estimate.go               the store's clock, its round trips, how long jobs take
package engine
